"""The hypotheses being learnt: all that the engine owns, one head for each.

A head stores w as scale * v, so that shrinking w costs nothing, and its scalars relative to the
scale: sq_v = norm(v)^2 and coef_v = Lambda / scale. Weights lie feature by feature,
``v[feature, head]``, so that the heads of one example are neighbours in memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maxcosine.compiled import JIT_ENABLED, lengthened
from maxcosine.engine.native import LANES
from maxcosine.record import Record
from maxcosine.rules.rule import Rule

HEAD = np.dtype(
    [
        ("positive", np.int64),  # the class that counts as +1, one-vs-rest
        ("joint", np.int64),  # whether this head learns all classes, one in each of its columns
        ("first", np.int64),  # its columns of the weights
        ("stop", np.int64),
        ("since", np.int64),  # rows the model had seen when this head began; -1: its class is still to come
        ("weighted", np.int64),  # whether a step was weighted
        ("scale_free", np.int64),  # whether the length of w means nothing to the rule
        ("scale", np.float64),
        ("sq_v", np.float64),
        ("coef_v", np.float64),  # as the rule reads it
        ("claim_v", np.float64),  # as it is claimed: at most coef_v, see certify in sweep.py
        ("slack_v", np.float64),  # how far rounding may have taken v from the combination it stands for
        ("start_sq_w", np.float64),  # norm(w)^2 after the first step, where the length means nothing
        ("peak_sq_v", np.float64),  # largest sq_v since it was last computed exactly
        ("written", np.int64),  # non-zeros written since then
        ("highest", np.int64),  # highest slot written since w was last cleared
        ("logged", np.int64),  # slots in the log of what was written since w was last cleared
        ("radius", np.float64),  # largest norm of an example that entered w
        ("best_bound", np.float64),
        ("seen", np.int64),  # by the model
        ("learnt", np.int64),  # since it began, less the zero rows
        ("mistakes", np.int64),
        ("updates", np.int64),
        ("sum_scale", np.float64),  # sum over time of scale; see Averaging in sweep.py
        ("sum_coef", np.float64),  # sum over time of Lambda
        ("sum_norm", np.float64),  # sum over time of norm(w)
        ("sum_slack", np.float64),  # how far rounding may have taken the sum over time of w
    ],
    align=True,
)

MOVE = 2
"""How many numbers a rule decides a step with: keep and add."""


class Limits(NamedTuple):
    """What a weight type can carry. Examples outside are refused; v is rescaled to stay inside."""

    eps: float
    low_sq_x: float
    high_sq_x: float
    low_sq_v: float
    high_sq_v: float
    high_sq_w: float


# Steps in proportion to norm(w) can lengthen it by the largest ratio of two norms, 1e18 in float32
# and 1e96 in float64, from at most 1e12 (see hold_length). high_sq_w is above the square of that,
# and leaves the sum over 10^7 rounds, which averaging needs, within the type.
LIMITS = {
    np.dtype(np.float32): Limits(
        eps=float(np.finfo(np.float32).eps),
        low_sq_x=1e-18,
        high_sq_x=1e18,
        low_sq_v=2.0**-100,
        high_sq_v=2.0**100,
        high_sq_w=1e62,
    ),
    np.dtype(np.float64): Limits(
        eps=float(np.finfo(np.float64).eps),
        low_sq_x=1e-96,
        high_sq_x=1e96,
        low_sq_v=2.0**-400,
        high_sq_v=2.0**400,
        high_sq_w=1e300,
    ),
}

# Squares are added up in blocks of this length, and the blocks exactly; so many of them at a time stay in
# the cache.
SUM_BLOCK, BLOCKS_AT_ONCE = 1024, 32

# Clearing slot by slot pays while the log is shorter than this share of the features.
LOG_SHARE = 8


def one_vs_rest(positive: Any) -> np.ndarray:
    """The table of heads of which head h learns class positive[h] against the rest."""
    table = _new_heads(len(positive))
    table["positive"] = positive
    return table


def joint(n_classes: int) -> np.ndarray:
    """The table of one head that learns all classes."""
    table = _new_heads(1)
    table["joint"] = 1
    table["stop"] = n_classes
    return table


def _new_heads(n_heads: int) -> np.ndarray:
    table = np.zeros(n_heads, HEAD)
    table["first"] = np.arange(n_heads)
    table["stop"] = np.arange(n_heads) + 1
    table["scale"] = 1.0
    table["highest"] = -1
    return table


def _padded(n_columns: int) -> int:
    """Several columns are read as whole vectors."""
    return 1 if n_columns == 1 else -(-n_columns // LANES) * LANES


def norms(w: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """Norms of the rows of w, each with its constant weight, in float64."""
    # Row by row: the order of summation is the same for one head and for many.
    squares = [_sum_of_squares(row) for row in w]
    lengths: np.ndarray = np.sqrt(np.array(squares) + np.square(constant, dtype=np.float64))
    return lengths


def _sum_of_squares(row: np.ndarray) -> float:
    """The same to the bit however many zeros follow: there may be room for features to come."""
    squares, sums = np.zeros((BLOCKS_AT_ONCE, SUM_BLOCK)), list[float]()
    for start in range(0, len(row), squares.size):
        part = row[start : start + squares.size]
        np.square(part, dtype=np.float64, out=squares.reshape(-1)[: len(part)])
        squares.reshape(-1)[len(part) :] = 0.0
        sums += squares.sum(axis=1).tolist()
    return math.fsum(sums)


def _quotient(a: Any, b: np.ndarray) -> np.ndarray:
    """a / b, and 0 where b is 0."""
    quotient: np.ndarray = np.divide(a, b, out=np.zeros_like(b), where=b > 0.0)
    return quotient


def _longer(rows: np.ndarray, n: int) -> np.ndarray:
    """The rows and zero rows after them, up to n: in place, so that no second copy needs memory."""
    owned: np.ndarray = rows if rows.flags.owndata else rows.copy()
    owned.resize((n, rows.shape[1]), refcheck=False)
    return owned


def _entries(rules: Sequence[Rule]) -> np.ndarray:
    """Machine addresses of the rules, or plain functions when nothing is compiled."""
    return np.array([rule.entry for rule in rules], dtype=np.uint64 if JIT_ENABLED else object)


def _stacked(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays on top of each other, the narrower ones filled up with zeros."""
    width = max(row.shape[1] for row in rows)
    return np.concatenate([np.pad(row, ((0, 0), (0, width - row.shape[1]))) for row in rows])


class Arrays(NamedTuple):
    """The heads as the kernels see them."""

    v: Any
    bias: Any
    total: Any
    total_bias: Any
    table: Any
    state: Any
    params: Any
    rules: Any
    log: Any
    came: Any  # by class: whether it has come
    scratch: Any  # for a sweep: what a rule decides, and the scores of a row


class Proven(Record):
    """What the certificate of hypotheses rests on, a number a head each."""

    coef_sum: np.ndarray
    """Lambda, less what rounding may have made of it."""
    norm: np.ndarray
    """norm(w)."""
    bound: np.ndarray
    """Lambda / norm(w), less what rounding may have made of it."""
    rounding: np.ndarray
    """How far rounding may have taken the hypotheses, relative to their norms."""


class Heads(Record):
    """The hypotheses of one model, or of several side by side, their scalars, and their rules' states."""

    rules: tuple[Rule, ...]
    """The rule of each head."""
    arrays: Arrays
    fit_intercept: bool
    average: bool

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
    ) -> Heads:
        """Heads that have seen nothing, as `one_vs_rest` or `joint` lays them out."""
        n_heads, width = len(table), _padded(int(table["stop"].max()))
        table["scale_free"] = rule.scale_free
        arrays = Arrays(
            v=np.zeros((n_features, width), dtype),
            bias=np.zeros(width, dtype),
            total=np.zeros((n_features if average else 0, width), dtype),
            total_bias=np.zeros(width, dtype),
            table=table,
            state=np.tile(np.array([*rule.initial_state(), 0.0]), (n_heads, 1)),
            params=np.tile(np.array([*params, 0.0]), (n_heads, 1)),
            rules=_entries([rule] * n_heads),
            log=np.zeros((n_heads if rule.restarts else 0, n_features // LOG_SHARE), np.uint64),
            came=np.ones(max(width, 2), np.int64),
            scratch=np.zeros(MOVE + width),
        )
        return cls((rule,) * n_heads, arrays, fit_intercept, average)

    @classmethod
    def side_by_side(cls, parts: Sequence[Heads]) -> Heads:
        """The heads of several, of one type and with one number of features, as they would go on
        by themselves: rules that are compared learn in one sweep."""
        arrays, n = [part.arrays for part in parts], sum(part.n_columns for part in parts)

        def columns(name: str) -> np.ndarray:
            own = [getattr(part.arrays, name)[..., : part.n_columns] for part in parts]
            joined = np.concatenate(own, axis=-1)
            return np.pad(joined, [(0, 0)] * (joined.ndim - 1) + [(0, _padded(n) - n)])

        table = np.concatenate([part.table for part in parts])
        stops = np.cumsum(table["stop"] - table["first"])
        table["first"], table["stop"] = stops - (table["stop"] - table["first"]), stops
        # What was written since w was last 0 is anywhere.
        table["logged"] = np.where(table["logged"] > 0, np.iinfo(np.int64).max, 0)
        rules = tuple(rule for part in parts for rule in part.rules)
        n_slots = parts[0].n_features // LOG_SHARE if any(rule.restarts for rule in rules) else 0
        joined = Arrays(
            v=columns("v"),
            bias=columns("bias"),
            total=columns("total"),
            total_bias=columns("total_bias"),
            table=table,
            state=_stacked([a.state for a in arrays]),
            params=_stacked([a.params for a in arrays]),
            rules=_entries(rules),
            log=np.zeros((len(table) if n_slots else 0, n_slots), np.uint64),
            came=np.ones(max(_padded(n), 2), np.int64),
            scratch=np.zeros(MOVE + _padded(n)),
        )
        return cls(rules, joined, parts[0].fit_intercept, parts[0].average)

    def last(self) -> Heads:
        """The same heads, not averaged: their last hypotheses predict."""
        a = self.arrays
        return self.replace(arrays=a._replace(total=a.total[:0]), average=False)

    @property
    def rule(self) -> Rule:
        """The rule of all heads of one model."""
        return self.rules[0]

    @property
    def dtype(self) -> np.dtype:
        return self.arrays.v.dtype  # type: ignore[no-any-return]

    @property
    def n_features(self) -> int:
        return int(self.arrays.v.shape[0])

    @property
    def table(self) -> np.ndarray:
        return self.arrays.table  # type: ignore[no-any-return]

    @property
    def joint(self) -> bool:
        return bool(self.table[0]["joint"])

    @property
    def n_columns(self) -> int:
        """Columns of the weights that mean something: one a head, or, joint, one a class."""
        return int(self.table["stop"].max())

    def set_params(self, params: tuple[float, ...]) -> None:
        """Go on with other parameters of the rule."""
        self.arrays.params[:, : len(params)] = params

    def copy(self) -> Heads:
        return self.replace(arrays=Arrays(*(a.copy() for a in self.arrays)))

    def __getstate__(self) -> dict[str, Any]:
        # An address means nothing in another process, and what a sweep left behind nothing at all.
        return {**vars(self), "arrays": self.arrays._replace(rules=None, scratch=None)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # Arrays that were loaded as memory maps, read-only, must be learnt into all the same.
        arrays = [a if a is None else np.require(np.asarray(a), requirements="W") for a in self.arrays]
        scratch = np.zeros(MOVE + self.arrays.v.shape[1])
        self.arrays = Arrays(*arrays)._replace(rules=_entries(self.rules), scratch=scratch)

    def reserve(self, n_features: int) -> None:
        """Make room for so many features, and for some more to come."""
        if n_features > self.n_features:
            self.grow(lengthened(n_features))

    def grow(self, n_features: int) -> None:
        """Make room for more features; those there were keep their weights and slots."""
        old = self.arrays
        log = np.zeros((old.log.shape[0], n_features // LOG_SHARE), np.uint64)
        log[:, : old.log.shape[1]] = old.log
        # A log that had overflowed lacks slots: it must go on counting as overflowed.
        overflowed = self.table["logged"] > old.log.shape[1]
        self.table["logged"][overflowed] = np.iinfo(np.int64).max
        total = _longer(old.total, n_features) if self.average else old.total
        self.arrays = old._replace(v=_longer(old.v, n_features), total=total, log=log)

    def select(self, slots: np.ndarray, n_features: int) -> None:
        """Lay the features out anew: feature f gets the weights of slots[f], or none where it is -1.

        No slot with weights may be missing.
        """
        old, kept = self.arrays, np.flatnonzero(slots >= 0)

        def moved(weights: np.ndarray) -> np.ndarray:
            rows = np.zeros((n_features, weights.shape[1]), weights.dtype)
            rows[kept] = weights[slots[kept]]
            return rows

        total = moved(old.total) if self.average else old.total
        # What was written since w was last 0 is anywhere now.
        table, log = self.table, np.zeros((len(old.log), n_features // LOG_SHARE), np.uint64)
        table["highest"] = np.where(table["highest"] >= 0, n_features - 1, -1)
        table["logged"] = np.where(table["logged"] > 0, np.iinfo(np.int64).max, 0)
        self.arrays = old._replace(v=moved(old.v), total=total, log=log)

    def rearrange(self, table: np.ndarray, sources: Sequence[tuple[int, float]], *, waiting: bool) -> None:
        """Lay the heads out as `table`: new column c is sign * column, with (column, sign) = sources[c].

        A source of -1 is a class that is new: one-vs-rest a new head, joint a column without weights.
        It begins now, or, `waiting`, with the first row that carries it.
        """
        old, n_new = self.arrays, len(sources)
        kept = [(new, column, sign) for new, (column, sign) in enumerate(sources) if column >= 0]

        def moved(weights: np.ndarray) -> np.ndarray:
            stays = len(kept) == n_new == weights.shape[-1] == 1  # then no second copy needs memory
            columns = weights if stays else np.zeros((*weights.shape[:-1], _padded(n_new)), weights.dtype)
            for new, column, sign in kept:
                # 0 - w, not -w: weights never written are 0 and not -0
                (np.add if sign > 0 else np.subtract)(0.0, weights[..., column], out=columns[..., new])
            return columns

        heads = [(0, 0)] if self.joint else [(new, column) for new, column, _ in kept]
        state = np.tile(np.array([*self.rule.initial_state(), 0.0]), (len(table), 1))
        log = np.zeros((len(table) if self.rule.restarts else 0, old.log.shape[1]), np.uint64)
        layout = {name: table[name].copy() for name in ("positive", "first", "stop")}
        seen = old.table["seen"].max()
        table["scale_free"], table["seen"] = self.rule.scale_free, seen
        table["since"] = -1 if waiting else seen
        came = np.ones(max(_padded(n_new), 2), np.int64)
        came[[new for new, (column, _) in enumerate(sources) if column < 0]] = not waiting
        for new, source in heads:
            table[new] = old.table[source]
            state[new] = old.state[source]
            if len(log):
                log[new] = old.log[source]
        for name, values in layout.items():
            table[name] = values
        self.rules = (self.rule,) * len(table)
        self.arrays = Arrays(
            table=table,
            state=state,
            params=np.tile(old.params[0], (len(table), 1)),
            rules=_entries([self.rule] * len(table)),
            log=log,
            came=came,
            scratch=np.zeros(MOVE + _padded(n_new)),
            # Last, as some may stay in their place: whatever fails, fails before.
            v=moved(old.v),
            bias=moved(old.bias),
            total=moved(old.total),
            total_bias=moved(old.total_bias),
        )

    @property
    def coef_sum(self) -> np.ndarray:
        """Lambda of the last hypotheses, less what rounding may have made of it."""
        return self.table["scale"] * self.table["claim_v"]  # type: ignore[no-any-return]

    @property
    def exact_coef_sum(self) -> np.ndarray:
        """Lambda of the hypotheses that predict, as it was added up: a unit, not a claim."""
        if self.average:
            return self.table["sum_coef"] / self.rounds  # type: ignore[no-any-return]
        return self.table["scale"] * self.table["coef_v"]  # type: ignore[no-any-return]

    def proven(self) -> Proven:
        """Of the last hypotheses. The bound is from v: w itself may underflow."""
        norm_v = self.norm_v
        return Proven(
            self.coef_sum,
            self.table["scale"] * norm_v,
            _quotient(self.table["claim_v"], norm_v),
            _quotient(self.table["slack_v"], norm_v),
        )

    def averaged_proven(self) -> Proven:
        """Of the averaged hypotheses, whose Lambda is the average of the Lambdas."""
        eps = LIMITS[self.dtype].eps
        norm = self.by_head(norms(*self.averaged_weights()))
        slack = self.table["sum_slack"] / self.rounds
        bound = np.minimum(
            _quotient(self.table["sum_coef"] / self.rounds, norm + (slack + eps * norm)),
            _quotient(1.0, eps * self.table["radius"]),
        )
        return Proven(bound * norm, norm, bound, _quotient(slack, norm) + eps)

    @property
    def rounds(self) -> np.ndarray:
        return np.maximum(self.table["learnt"], 1)  # type: ignore[no-any-return]

    @property
    def norm_v(self) -> np.ndarray:
        """norm(v): that of the last hypotheses, before their scale."""
        n = self.n_columns
        return self.by_head(norms(self.arrays.v[:, :n].T, self.arrays.bias[:n]))

    def by_head(self, lengths: np.ndarray) -> np.ndarray:
        """The lengths of the hypotheses, from those of their columns."""
        return np.sqrt(np.square(lengths).sum(keepdims=True)) if self.joint else lengths

    def by_column(self, scalars: np.ndarray) -> np.ndarray:
        """A number a column, from a number a head."""
        return np.repeat(scalars, self.table["stop"] - self.table["first"])

    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """The last hypotheses, w of shape (n_columns, n_features), and their constant weights."""
        scale, n = self.by_column(self.table["scale"]), self.n_columns
        v, bias = self.arrays.v[:, :n], self.arrays.bias[:n]
        return self._typed((v * scale).T), self._typed(bias * scale)

    def averaged_weights(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean of the hypotheses after each example, and their constant weights."""
        rounds, n, a = self.by_column(self.rounds), self.n_columns, self.arrays
        last = self.by_column(self.table["sum_scale"]) / rounds
        w = a.v[:, :n] * last + a.total[:, :n] / rounds
        bias = a.bias[:n] * last + a.total_bias[:n] / rounds
        return self._typed(w.T), self._typed(bias)

    def hypotheses(self) -> tuple[np.ndarray, np.ndarray]:
        """Those that predictions are made with: the averaged ones, or the last."""
        return self.averaged_weights() if self.average else self.weights()

    def _typed(self, values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(values, dtype=self.dtype)
