"""The hypotheses being learnt: all that the engine owns, one head for each.

A head stores w as scale * v, so that shrinking w costs nothing, and its scalars relative to the
scale: sq_v = norm(v)^2 and coef_v = Lambda / scale. Weights lie feature by feature,
``v[feature, head]``, so that the heads of one example are neighbours in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from maxcosine.compiled import JIT_ENABLED
from maxcosine.engine.native import LANES
from maxcosine.rule import Rule

HEAD = np.dtype(
    [
        ("positive", np.int64),  # the class that counts as +1
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
        ("seen", np.int64),
        ("learnt", np.int64),  # seen, less the zero rows
        ("mistakes", np.int64),
        ("updates", np.int64),
        ("sum_scale", np.float64),  # sum over time of scale; see Averaging in sweep.py
        ("sum_coef", np.float64),  # sum over time of Lambda
        ("sum_norm", np.float64),  # sum over time of norm(w)
        ("sum_slack", np.float64),  # how far rounding may have taken the sum over time of w
    ],
    align=True,
)


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

# Clearing slot by slot pays while the log is shorter than this share of the features.
LOG_SHARE = 8


def norms(w: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """Norms of the rows of w, each with its constant weight, in float64."""
    # Row by row and contiguous: the order of summation is the same for one head and for many.
    squares = [np.square(np.ascontiguousarray(row), dtype=np.float64).sum() for row in w]
    lengths: np.ndarray = np.sqrt(np.array(squares) + np.square(constant, dtype=np.float64))
    return lengths


def _quotient(a: Any, b: np.ndarray) -> np.ndarray:
    """a / b, and 0 where b is 0."""
    quotient: np.ndarray = np.divide(a, b, out=np.zeros_like(b), where=b > 0.0)
    return quotient


def _entries(rule: Rule, n_heads: int) -> np.ndarray:
    """Machine addresses of the rule, or plain functions when nothing is compiled."""
    return np.full(n_heads, rule.entry, dtype=np.uint64 if JIT_ENABLED else object)


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


@dataclass
class Heads:
    """The hypotheses of one model, their scalars, and their rules' states."""

    rule: Rule
    arrays: Arrays
    fit_intercept: bool

    @classmethod
    def create(
        cls,
        rule: Rule,
        params: tuple[float, ...],
        positive: np.ndarray,
        n_features: int,
        dtype: np.dtype,
        *,
        fit_intercept: bool,
        average: bool,
    ) -> Heads:
        """Heads that have seen nothing; head h learns class positive[h] against the rest."""
        n_heads = len(positive)
        width = 1 if n_heads == 1 else -(-n_heads // LANES) * LANES
        table = np.zeros(n_heads, HEAD)
        table["positive"] = positive
        table["scale_free"] = rule.scale_free
        table["scale"] = 1.0
        table["highest"] = -1
        arrays = Arrays(
            v=np.zeros((n_features, width), dtype),
            bias=np.zeros(width, dtype),
            total=np.zeros((n_features if average else 0, width), dtype),
            total_bias=np.zeros(width, dtype),
            table=table,
            state=np.tile(np.array([*rule.initial_state(), 0.0]), (n_heads, 1)),
            params=np.tile(np.array([*params, 0.0]), (n_heads, 1)),
            rules=_entries(rule, n_heads),
            log=np.zeros((n_heads if rule.restarts else 0, n_features // LOG_SHARE), np.uint64),
        )
        return cls(rule, arrays, fit_intercept)

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
    def average(self) -> bool:
        return bool(self.arrays.total.shape[0] == self.n_features)

    def set_params(self, params: tuple[float, ...]) -> None:
        """Go on with other parameters of the rule."""
        self.arrays.params[:, : len(params)] = params

    def copy(self) -> Heads:
        return Heads(self.rule, Arrays(*(a.copy() for a in self.arrays)), self.fit_intercept)

    def __getstate__(self) -> dict[str, Any]:
        # An address means nothing in another process.
        return {**vars(self), "arrays": self.arrays._replace(rules=None)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # Arrays that were loaded as memory maps, read-only, must be learnt into all the same.
        arrays = [a if a is None else np.require(np.asarray(a), requirements="W") for a in self.arrays]
        self.arrays = Arrays(*arrays)._replace(rules=_entries(self.rule, len(self.table)))

    def grow(self, n_features: int) -> None:
        """Make room for more features; those there were keep their weights and slots."""
        more = n_features - self.n_features

        def longer(rows: np.ndarray) -> np.ndarray:
            return np.concatenate([rows, np.zeros((more, rows.shape[1]), rows.dtype)])

        old = self.arrays
        log = np.zeros((old.log.shape[0], n_features // LOG_SHARE), np.uint64)
        log[:, : old.log.shape[1]] = old.log
        total = longer(old.total) if self.average else old.total
        # A log that had overflowed lacks slots: it must go on counting as overflowed.
        overflowed = self.table["logged"] > old.log.shape[1]
        self.table["logged"][overflowed] = np.iinfo(np.int64).max
        self.arrays = old._replace(v=longer(old.v), total=total, log=log)

    @property
    def coef_sum(self) -> np.ndarray:
        """Lambda of the last hypotheses, less what rounding may have made of it."""
        return self.table["scale"] * self.table["claim_v"]  # type: ignore[no-any-return]

    @property
    def exact_coef_sum(self) -> np.ndarray:
        """Lambda of the hypotheses that predict, as it was added up: a unit, not a claim."""
        if self.average:
            return self.table["sum_coef"] / self._rounds  # type: ignore[no-any-return]
        return self.table["scale"] * self.table["coef_v"]  # type: ignore[no-any-return]

    @property
    def norm(self) -> np.ndarray:
        """norm(w) of the last hypotheses."""
        return self.table["scale"] * self._norm_v  # type: ignore[no-any-return]

    @property
    def bound(self) -> np.ndarray:
        """Lambda / norm(w) of the last hypotheses, from v: w itself may underflow."""
        return _quotient(self.table["claim_v"], self._norm_v)

    @property
    def averaged_norm(self) -> np.ndarray:
        """norm(w) of the averaged hypotheses."""
        return norms(*self.averaged_weights())

    @property
    def averaged_bound(self) -> np.ndarray:
        """Lambda / norm(w) of the averaged hypotheses, less what rounding may have made of it.

        Their Lambda is the average of the Lambdas.
        """
        eps = LIMITS[self.dtype].eps
        norm = self.averaged_norm
        slack = self.table["sum_slack"] / self._rounds + eps * norm
        bound = _quotient(self.table["sum_coef"] / self._rounds, norm + slack)
        largest = _quotient(1.0, eps * self.table["radius"])
        return np.minimum(bound, largest)  # type: ignore[no-any-return]

    @property
    def averaged_coef_sum(self) -> np.ndarray:
        """Lambda of the averaged hypotheses, less what rounding may have made of it."""
        return self.averaged_bound * self.averaged_norm  # type: ignore[no-any-return]

    @property
    def _rounds(self) -> np.ndarray:
        return np.maximum(self.table["learnt"], 1)  # type: ignore[no-any-return]

    @property
    def _norm_v(self) -> np.ndarray:
        n = len(self.table)
        return norms(self.arrays.v[:, :n].T, self.arrays.bias[:n])

    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """The last hypotheses, w of shape (n_heads, n_features), and their constant weights."""
        scale = self.table["scale"]
        n = len(scale)
        v, bias = self.arrays.v[:, :n], self.arrays.bias[:n]
        return self._typed((v * scale).T), self._typed(bias * scale)

    def averaged_weights(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean of the hypotheses after each example, and their constant weights."""
        n = len(self.table)
        rounds = self._rounds
        last = self.table["sum_scale"] / rounds
        a = self.arrays
        w = a.v[:, :n] * last + a.total[:, :n] / rounds
        bias = a.bias[:n] * last + a.total_bias[:n] / rounds
        return self._typed(w.T), self._typed(bias)

    def _typed(self, values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(values, dtype=self.dtype)
