"""Rules that learn the same label side by side. Of the experiments, only this module uses the engine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxcosine.engine import learn, score
from maxcosine.heads import Heads, one_vs_rest, quotient
from maxcosine.rows import SlotRows
from maxcosine.rules.rule import Rule

# With float64 weights the counts equal those of exact arithmetic, except for ties.
WEIGHT_TYPE = np.dtype(np.float64)


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
        self.kinds = sorted({False, average})
        """Whether hypotheses are averaged: the last ones are not."""
        self._records: dict[bool, list[tuple[np.ndarray, np.ndarray]]] = {kind: [] for kind in self.kinds}

    def learn(self, rows: SlotRows, positive: np.ndarray, *, record: bool = True) -> None:
        """Learn from rows, of which those with the label are `positive`, and record the hypotheses for `curves`."""
        learn(self._heads, rows, positive.astype(np.int64))
        if not record:
            return
        table = self._heads.table
        for averaged in self.kinds:
            scalars = np.array([self._bounds(averaged), table["best_bound"], table["mistakes"]])
            self._records[averaged].append((self._predicting(averaged).hypotheses()[0], scalars))

    def _predicting(self, averaged: bool) -> Heads:
        return self._heads if averaged else self._heads.last()

    def _bounds(self, averaged: bool) -> np.ndarray:
        return self._heads.proven(averaged=averaged).bound

    def outcomes(self, rows: SlotRows, positive: np.ndarray, *, averaged: bool) -> list[dict[str, Any]]:
        """Test the hypotheses on rows; return the counts and bounds that a `Run` has, for each head."""
        predicted = score(self._predicting(averaged), rows) > 0.0
        test_mistakes = np.count_nonzero(predicted != positive[:, None], axis=0)
        table, bounds = self._heads.table, self._bounds(averaged)
        best_bounds = np.max([bounds, self._bounds(False), table["best_bound"]], axis=0)
        return [
            {
                "test_mistakes": int(test_mistakes[head]),
                "train_mistakes": int(table["mistakes"][head]),
                "updates": int(table["updates"][head]),
                "bound": float(bounds[head]),
                "margin_ceiling": ceiling_of(best_bounds[head]),
            }
            for head in range(len(table))
        ]

    def curves(self, head: int, *, averaged: bool) -> dict[str, list[Any]]:
        """Return the curves of a head, by name: one value for each time it has learnt."""
        w = np.array([weights[head] for weights, _ in self._records[averaged]])
        bound, best_bound, mistakes = np.array([one[:, head] for _, one in self._records[averaged]]).T
        norms = np.sqrt(np.einsum("ij,ij->i", w, w))
        best = np.maximum.accumulate(np.maximum(best_bound, bound))
        cosine = quotient(w @ w[-1], norms * norms[-1])
        return {
            "mistakes": mistakes.astype(int).tolist(),
            "bound": bound.tolist(),
            "margin_ceiling": [ceiling_of(one) for one in best],
            "cosine": np.minimum(cosine, 1.0).tolist(),
        }


def ceiling_of(best_bound: float) -> float | None:
    """Return the margin ceiling that a bound proves, rounded up; None if it proves nothing."""
    return math.nextafter(1.0 / float(best_bound), math.inf) if best_bound > 0.0 else None
