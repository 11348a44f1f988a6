"""The hypotheses being learnt, one head for each, as the arrays that the core learns into.

A head stores w as scale * v, so that shrinking w costs nothing, and its scalars relative to the scale:
sq_v = norm(v)^2 and coef_v = Lambda / scale. Weights lie feature by feature, ``v[feature, column]``, so the columns
of one feature are neighbours in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from maxcosine import core
from maxcosine.calibration import new_calibration
from maxcosine.rules.rule import Rule

# The scalars of a head, laid out as `struct Head` in core/head.hpp, which says what each of them means.
HEAD = np.dtype(
    [
        ("positive", np.int64),
        ("joint", np.int64),
        ("first", np.int64),
        ("stop", np.int64),
        ("since", np.int64),
        ("weighted", np.int64),
        ("scale_free", np.int64),
        ("scale", np.float64),
        ("sq_v", np.float64),
        ("coef_v", np.float64),
        ("slack_v", np.float64),
        ("start_sq_w", np.float64),
        ("peak_sq_v", np.float64),
        ("written", np.int64),
        ("highest", np.int64),
        ("logged", np.int64),
        ("w_exponent", np.int64),
        ("radius", np.float64),
        ("best_bound", np.float64),
        ("seen", np.int64),
        ("learnt", np.int64),
        ("mistakes", np.int64),
        ("updates", np.int64),
        ("roundings", np.int64),
        ("sum_exponent", np.int64),
        ("sum_scale", np.float64),
        ("sum_coef", np.float64),
        ("sum_slack", np.float64),
    ],
    align=True,
)

# The counts of a model, laid out as `struct ModelScalars` there.
MODEL_SCALARS = np.dtype([("mean_weight", np.float64), ("weighed_rows", np.int64), ("mistakes", np.int64)], align=True)


class Limits(NamedTuple):
    """What a weight type can carry, as core/head.hpp sets it. Examples outside are refused."""

    eps: float
    low_sq_x: float
    high_sq_x: float
    low_sq_v: float
    high_sq_v: float
    high_sq_w: float
    underflow: float


LIMITS = {np.dtype(name): Limits(*limits) for name, limits in core.LIMITS.items()}

# The core reads the columns of one feature four at a time.
LANES = 4

# Clearing w slot by slot pays while the log is shorter than this share of the features.
LOG_SHARE = 8

# The value of `logged` when slots were written that the log does not list.
LOG_OVERFLOWED = np.iinfo(np.int64).max


class Arrays(NamedTuple):
    """The arrays of the heads of one model."""

    v: np.ndarray
    """Weights before their scale, of shape (features, columns); columns are padded to 1, 4, 8, 12, ..."""
    bias: np.ndarray
    """The weights of the constant feature, one a column."""
    total: np.ndarray
    """Sums over time in float64, of the shape of v; without rows if hypotheses are not averaged."""
    total_bias: np.ndarray
    table: np.ndarray
    """The scalars of the heads, of type HEAD."""
    state: np.ndarray
    """The state of each head's rule, padded with at least one zero."""
    params: np.ndarray
    """The parameters of each head's rule, padded likewise."""
    log: np.ndarray
    """Slots written since w was last 0, one row a head; without rows if no rule restarts."""
    class_seen: np.ndarray
    """By class code: whether a row of that class has come."""
    scalars: np.ndarray
    """The counts of the model, of type MODEL_SCALARS."""
    calibration: np.ndarray
    """One record of type CALIBRATION, or none if the model has no probabilities."""


WEIGHTS = ("v", "bias", "total", "total_bias")
"""The arrays that have one entry a column."""

RECORDS = ("table", "scalars", "calibration")
"""The arrays of records."""


class Proven(NamedTuple):
    """What is proven of hypotheses, one number a head; core/claims.hpp says how."""

    coef_sum: np.ndarray
    """Lambda, reduced so that it is bound * norm."""
    norm: np.ndarray
    bound: np.ndarray
    """Lambda / norm(w), reduced by what rounding may have added to it."""
    slack: np.ndarray
    """How far rounding may have moved the hypotheses."""


@dataclass(eq=False)
class Heads:
    """The hypotheses of one model, or of several side by side, with their scalars and their rules' states."""

    rules: tuple[Rule, ...]
    """The rule of each head."""
    arrays: Arrays
    fit_intercept: bool
    average: bool
    _engine: tuple[Arrays, core.Engine] | None = field(default=None, init=False, repr=False)

    @classmethod
    def create(
        cls,
        rule: Rule,
        params: tuple[float, ...],
        table: np.ndarray,
        n_features: int,
        dtype: np.dtype,
        *,
        fit_intercept: bool,
        average: bool,
        probability: bool = False,
    ) -> Heads:
        """Heads that have seen nothing, with the layout that `one_vs_rest` or `joint` gives."""
        n_heads, width = len(table), _padded(int(table["stop"].max()))
        table["scale_free"] = rule.scale_free
        arrays = Arrays(
            v=np.zeros((n_features, width), dtype),
            bias=np.zeros(width, dtype),
            total=np.zeros((n_features if average else 0, width)),
            total_bias=np.zeros(width),
            table=table,
            state=np.tile(np.array([*rule.initial_state(), 0.0]), (n_heads, 1)),
            params=np.tile(np.array([*params, 0.0]), (n_heads, 1)),
            log=_new_log(n_heads, n_features, [rule]),
            class_seen=np.ones(max(width, 2), np.int64),
            scalars=np.zeros(1, MODEL_SCALARS),
            calibration=new_calibration(wanted=probability),
        )
        return cls((rule,) * n_heads, arrays, fit_intercept, average)

    @classmethod
    def side_by_side(cls, parts: Sequence[Heads]) -> Heads:
        """The heads of several models of one type and number of features, to learn in one sweep.

        They have no probabilities: a calibration is that of one model.
        """
        arrays, n = [part.arrays for part in parts], sum(part.n_columns for part in parts)

        def columns(name: str) -> np.ndarray:
            own = [getattr(part.arrays, name)[..., : part.n_columns] for part in parts]
            joined = np.concatenate(own, axis=-1)
            return np.pad(joined, [(0, 0)] * (joined.ndim - 1) + [(0, _padded(n) - n)])

        table = np.concatenate([part.table for part in parts])
        stops = np.cumsum(table["stop"] - table["first"])
        table["first"], table["stop"] = stops - (table["stop"] - table["first"]), stops
        table["logged"] = np.where(table["logged"] > 0, LOG_OVERFLOWED, 0)
        rules = tuple(rule for part in parts for rule in part.rules)
        joined = Arrays(
            **{name: columns(name) for name in WEIGHTS},
            table=table,
            state=_stacked([a.state for a in arrays]),
            params=_stacked([a.params for a in arrays]),
            log=_new_log(len(table), parts[0].n_features, rules),
            class_seen=np.ones(max(_padded(n), 2), np.int64),
            scalars=np.zeros(1, MODEL_SCALARS),
            calibration=new_calibration(wanted=False),
        )
        return cls(rules, joined, parts[0].fit_intercept, parts[0].average)

    @property
    def engine(self) -> core.Engine:
        """The core's view of the arrays as they are now."""
        if self._engine is None or self._engine[0] is not self.arrays:
            # The core takes the arrays in the order of `Arrays`, and records as rows of 8-byte words.
            records = {name: _words(getattr(self.arrays, name)) for name in RECORDS}
            arrays = self.arrays._replace(**records)
            rules = [rule.compiled for rule in self.rules]
            engine = core.Engine(*arrays, rules, fit_intercept=self.fit_intercept, average=self.average)
            self._engine = self.arrays, engine
        return self._engine[1]

    # What they are

    @property
    def rule(self) -> Rule:
        """The rule of all heads of one model."""
        return self.rules[0]

    @property
    def dtype(self) -> np.dtype:
        """The type of the weights."""
        return self.arrays.v.dtype

    @property
    def n_features(self) -> int:
        """How many features have room for weights."""
        return int(self.arrays.v.shape[0])

    @property
    def table(self) -> np.ndarray:
        """The scalars of the heads."""
        return self.arrays.table

    @property
    def joint(self) -> bool:
        """Whether one head learns all classes."""
        return bool(self.table[0]["joint"])

    @property
    def probability(self) -> bool:
        """Whether they have probabilities."""
        return len(self.arrays.calibration) > 0

    @property
    def n_columns(self) -> int:
        """Columns of the weights without padding: one a head or, if joint, one a class."""
        return int(self.table["stop"].max())

    @property
    def rounds(self) -> np.ndarray:
        """Rows that each head has learnt, at least 1."""
        return np.asarray(np.maximum(self.table["learnt"], 1))

    def set_params(self, params: tuple[float, ...]) -> None:
        """Continue with other parameters of the rule."""
        self.arrays.params[:, : len(params)] = params

    def last(self) -> Heads:
        """The same heads, not averaged and without probabilities: their last hypotheses predict."""
        arrays = self.arrays._replace(total=self.arrays.total[:0], calibration=self.arrays.calibration[:0])
        return replace(self, arrays=arrays, average=False)

    def copy(self) -> Heads:
        """Independent heads of the same values."""
        return replace(self, arrays=Arrays(*(array.copy() for array in self.arrays)))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_engine": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # joblib may have loaded the arrays as read-only memory maps.
        self.arrays = Arrays(*(np.require(np.asarray(array), requirements="W") for array in self.arrays))

    # Other layouts

    def reserve(self, n_features: int) -> None:
        """Make room for at least this many features, and for some more to come."""
        if n_features > self.n_features:
            self.grow(n_features + n_features // (2 if n_features < 2**18 else 8))

    def grow(self, n_features: int) -> None:
        """Make room for more features; known features keep their weights and slots."""
        old = self.arrays
        log = np.zeros((old.log.shape[0], n_features // LOG_SHARE), np.uint64)
        log[:, : old.log.shape[1]] = old.log
        # An overflowed log lacks slots, so it must stay overflowed.
        self.table["logged"][self.table["logged"] > old.log.shape[1]] = LOG_OVERFLOWED
        total = _longer(old.total, n_features) if self.average else old.total
        self.arrays = old._replace(v=_longer(old.v, n_features), total=total, log=log)

    def select(self, slots: np.ndarray, n_features: int) -> None:
        """Move features: feature f gets the weights of slots[f], or none where that is -1.

        Every slot with weights must be among them.
        """
        old, kept = self.arrays, np.flatnonzero(slots >= 0)

        def moved(weights: np.ndarray) -> np.ndarray:
            rows = np.zeros((n_features, weights.shape[1]), weights.dtype)
            rows[kept] = weights[slots[kept]]
            return rows

        table = self.table
        table["highest"] = np.where(table["highest"] >= 0, n_features - 1, -1)
        table["logged"] = np.where(table["logged"] > 0, LOG_OVERFLOWED, 0)
        self.arrays = old._replace(
            v=moved(old.v),
            total=moved(old.total) if self.average else old.total,
            log=np.zeros((len(old.log), n_features // LOG_SHARE), np.uint64),
        )

    def rearrange(self, table: np.ndarray, sources: Sequence[tuple[int, float]], *, waiting: bool) -> None:
        """Give the heads the layout of `table`: new column c is sign * column, (column, sign) = sources[c].

        A source of -1 is a new class: a new head or, if joint, a column without weights. It begins now or, if
        `waiting`, with the first row of that class.
        """
        old, n_new = self.arrays, len(sources)
        kept = [(new, column, sign) for new, (column, sign) in enumerate(sources) if column >= 0]

        def moved(weights: np.ndarray) -> np.ndarray:
            columns = np.zeros((*weights.shape[:-1], _padded(n_new)), weights.dtype)
            for new, column, sign in kept:
                # 0 - w and not -w: weights never written are 0, not -0.
                (np.add if sign > 0 else np.subtract)(0.0, weights[..., column], out=columns[..., new])
            return columns

        state = np.tile(np.array([*self.rule.initial_state(), 0.0]), (len(table), 1))
        log = np.zeros((len(table) if self.rule.restarts else 0, old.log.shape[1]), np.uint64)
        layout = {name: table[name].copy() for name in ("positive", "first", "stop")}
        seen = old.table["seen"].max()
        table["scale_free"], table["seen"] = self.rule.scale_free, seen
        table["since"] = -1 if waiting else seen
        class_seen = np.ones(max(_padded(n_new), 2), np.int64)
        class_seen[[new for new, (column, _) in enumerate(sources) if column < 0]] = not waiting
        for new, source in [(0, 0)] if self.joint else [(new, column) for new, column, _ in kept]:
            table[new], state[new] = old.table[source], old.state[source]
            if len(log):
                log[new] = old.log[source]
        for name, values in layout.items():
            table[name] = values
        self.rules = (self.rule,) * len(table)
        self.arrays = Arrays(
            **{name: moved(getattr(old, name)) for name in WEIGHTS},
            table=table,
            state=state,
            params=np.tile(old.params[0], (len(table), 1)),
            log=log,
            class_seen=class_seen,
            scalars=old.scalars,
            calibration=old.calibration,
        )

    # What can be read off them

    def by_column(self, scalars: np.ndarray) -> np.ndarray:
        """A number a column, from a number a head."""
        return np.repeat(scalars, self.table["stop"] - self.table["first"])

    def averaged_weights(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean of the hypotheses after each example, and their constant weights."""
        rounds, n, a = self.by_column(self.rounds), self.n_columns, self.arrays
        last = self.by_column(self.table["sum_scale"]) / rounds
        w = a.v[:, :n] * last + a.total[:, :n] / rounds
        bias = a.bias[:n] * last + a.total_bias[:n] / rounds
        return self._typed(w.T), self._typed(bias)

    def hypotheses(self) -> tuple[np.ndarray, np.ndarray]:
        """The averaged or last hypotheses, w of shape (columns, features), and their constant weights."""
        if self.average:
            return self.averaged_weights()
        scale, n = self.by_column(self.table["scale"]), self.n_columns
        v, bias = self.arrays.v[:, :n], self.arrays.bias[:n]
        return self._typed((v * scale).T), self._typed(bias * scale)

    def _typed(self, values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(values, dtype=self.dtype)

    @property
    def coef_sum(self) -> np.ndarray:
        """Lambda of the hypotheses that predict, as it was summed: a unit of length, not a claim."""
        if self.average:
            return np.asarray(self.table["sum_coef"] / self.rounds)
        return np.asarray(self.table["scale"] * self.table["coef_v"])

    def proven(self, *, averaged: bool = False) -> Proven:
        """What is proven of the last or the averaged hypotheses, computed from the weights. Nothing is stored."""
        norm, bound, slack = np.array(self.engine.claims(averaged)).T
        unit = 1.0 / self.rounds if averaged else self.table["scale"]
        with np.errstate(over="ignore"):  # an infinite slack claims nothing
            return Proven(bound * norm * unit, norm * unit, bound, slack * unit)


def one_vs_rest(positive: Sequence[int] | range) -> np.ndarray:
    """The table of heads of which head h learns class positive[h] against the rest."""
    table = np.zeros(len(positive), HEAD)
    table["positive"] = positive
    table["first"] = np.arange(len(positive))
    table["stop"] = table["first"] + 1
    table["scale"] = 1.0
    table["highest"] = -1
    return table


def joint(n_classes: int) -> np.ndarray:
    """The table of one head that learns all classes."""
    table = one_vs_rest([0])
    table["joint"] = 1
    table["stop"] = n_classes
    return table


def quotient(a: Any, b: np.ndarray) -> np.ndarray:
    """a / b, and 0 where b is 0."""
    return np.asarray(np.divide(a, b, out=np.zeros_like(b), where=b > 0.0))


def _words(records: np.ndarray) -> np.ndarray:
    """Records of 8-byte fields as rows of integers."""
    return records.view(np.int64).reshape(len(records), records.dtype.itemsize // 8)


def _new_log(n_heads: int, n_features: int, rules: Iterable[Rule]) -> np.ndarray:
    needed = any(rule.restarts for rule in rules)
    return np.zeros((n_heads if needed else 0, n_features // LOG_SHARE if needed else 0), np.uint64)


def _padded(n_columns: int) -> int:
    return 1 if n_columns == 1 else -(-n_columns // LANES) * LANES


def _longer(rows: np.ndarray, n: int) -> np.ndarray:
    """The rows, followed by zero rows up to n of them."""
    longer = np.zeros((n, rows.shape[1]), rows.dtype)
    longer[: len(rows)] = rows
    return longer


def _stacked(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays stacked vertically, padded with zeros to the widest."""
    width = max(row.shape[1] for row in rows)
    return np.concatenate([np.pad(row, ((0, 0), (0, width - row.shape[1]))) for row in rows])
