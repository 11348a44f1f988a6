"""Rules that learn the same label side by side. Of the experiments, only this module uses the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxcosine.engine import learn, score
from maxcosine.experiments.results import CURVES, finite
from maxcosine.heads import Heads, one_vs_rest
from maxcosine.rows import SlotRows
from maxcosine.rules.rule import Rule

# With float64 weights the counts equal those of exact arithmetic, except for ties.
WEIGHT_TYPE = np.dtype(np.float64)


def sparse_rows(X: np.ndarray) -> SlotRows:
    """Return dense rows in the form that the engine reads."""
    places, n_features = np.flatnonzero(X), X.shape[1]
    indptr = np.concatenate([[0], np.cumsum(np.count_nonzero(X, axis=1))])
    values = X.reshape(-1)[places].astype(WEIGHT_TYPE)
    return SlotRows(indptr, (places % n_features).astype(np.uint32), values, n_features)


class RuleHeads:
    """One head per rule; all heads learn from the same examples in one sweep."""

    def __init__(self, rules: Sequence[Rule], n_features: int, *, average: bool) -> None:
        self._heads = Heads.side_by_side(
            [
                Heads.create(
                    rule,
                    rule.make_params(),
                    one_vs_rest([1]),
                    n_features,
                    WEIGHT_TYPE,
                    fit_intercept=False,
                    average=average,
                )
                for rule in rules
            ]
        )
        self.hypotheses = {kind: Hypotheses(self._heads, averaged=kind) for kind in sorted({False, average})}
        """The hypotheses by whether they are averaged."""

    def learn(self, rows: SlotRows, positive: np.ndarray) -> None:
        """Learn from rows; `positive` says which of them have the label."""
        learn(self._heads, rows, positive.astype(np.int64))
        for hypotheses in self.hypotheses.values():
            hypotheses.record()

    def counts(self, head: int) -> dict[str, int]:
        """Return the mistakes and updates that a head has made while learning."""
        scalars = self._heads.table[head]
        return {"train_mistakes": int(scalars["mistakes"]), "updates": int(scalars["updates"])}

    def best_bounds(self) -> np.ndarray:
        """Return the largest bound that the last hypothesis of each head has ever had."""
        best: np.ndarray = np.maximum(self._heads.table["best_bound"], self._heads.proven().bound)
        return best


class Hypotheses:
    """The last or the averaged hypotheses of all heads, recorded after each bucket."""

    def __init__(self, heads: Heads, *, averaged: bool) -> None:
        self._heads, self._averaged = heads, averaged
        self._weights: list[np.ndarray] = []
        self._scalars: list[np.ndarray] = []

    def record(self) -> None:
        """Remember the present hypotheses."""
        heads, table = self._heads, self._heads.table
        if self._averaged:
            w, _ = heads.averaged_weights()
            coef_sum, slack = table["sum_coef"] / heads.rounds, table["sum_slack"] / heads.rounds
        else:
            w, _ = heads.weights()
            coef_sum, slack = heads.coef_sum, np.zeros(len(table))
        self._weights.append(w)
        self._scalars.append(np.array([coef_sum, slack, table["best_bound"], table["mistakes"]]))

    def test(self, rows: SlotRows, positive: np.ndarray) -> np.ndarray:
        """Count the mistakes of each hypothesis on test rows."""
        heads = self._heads if self._averaged else self._heads.last()
        predicted = score(heads, rows) > 0.0
        mistakes: np.ndarray = np.count_nonzero(predicted != positive[:, None], axis=0)
        return mistakes

    def bounds(self) -> np.ndarray:
        """Return Lambda / norm(w) of each hypothesis, less rounding errors."""
        proven = self._heads.averaged_proven() if self._averaged else self._heads.proven()
        return proven.bound

    def curves(self, head: int) -> dict[str, list[Any]]:
        """Return each of CURVES for a head: one value per bucket."""
        w = np.array([one[head] for one in self._weights])
        coef_sum, slack, best_bound, mistakes = np.array(self._scalars)[:, :, head].T
        norms = np.sqrt(np.einsum("ij,ij->i", w, w))
        last = norms[-1] or 1.0
        bound = _divide(coef_sum, norms + slack, norms > 0.0, 0.0)
        best = np.maximum.accumulate(np.maximum(best_bound, bound))
        ceiling = _divide(1.0, best, best > 0.0, np.inf)
        cosine = _divide(w @ w[-1], norms * last, norms > 0.0, 0.0)
        values = (
            mistakes.astype(int).tolist(),
            bound.tolist(),
            [finite(one) for one in ceiling.tolist()],
            np.minimum(cosine, 1.0).tolist(),
        )
        return dict(zip(CURVES, values, strict=True))


def _divide(a: Any, b: np.ndarray, where: np.ndarray, otherwise: float) -> np.ndarray:
    """Divide where that is possible, and fill in a value elsewhere."""
    quotient: np.ndarray = np.divide(a, b, out=np.full(len(b), otherwise), where=where)
    return quotient
