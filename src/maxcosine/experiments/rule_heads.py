"""Rules that learn the same label side by side. Of the experiments, only this module uses the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxcosine.engine import learn, score
from maxcosine.experiments.results import CURVES, finite
from maxcosine.heads import Heads, one_vs_rest
from maxcosine.rows import SlotRows, csr_array, slot_rows_of
from maxcosine.rules.rule import Rule

# With float64 weights the counts equal those of exact arithmetic, except for ties.
WEIGHT_TYPE = np.dtype(np.float64)


def sparse_rows(X: np.ndarray) -> SlotRows:
    """Return dense rows in the form that the engine reads."""
    return slot_rows_of(csr_array(X).astype(WEIGHT_TYPE))


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
        self._tables: list[np.ndarray] = []
        self._weights: list[np.ndarray] = []

    def record(self) -> None:
        """Remember the hypotheses as they are now."""
        w, _ = self._heads.averaged_weights() if self._averaged else self._heads.weights()
        self._weights.append(w)
        self._tables.append(self._heads.table.copy())

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
        table = np.array([one[head] for one in self._tables])
        w = np.array([one[head] for one in self._weights])
        coef_sum, slack = self._coef_sums(table)
        norms = np.sqrt(np.einsum("ij,ij->i", w, w))
        last = norms[-1] or 1.0
        bound = _divide(coef_sum, norms + slack, norms > 0.0, 0.0)
        best = np.maximum.accumulate(np.maximum(table["best_bound"], bound))
        ceiling = _divide(1.0, best, best > 0.0, np.inf)
        cosine = _divide(w @ w[-1], norms * last, norms > 0.0, 0.0)
        values = (
            table["mistakes"].tolist(),
            bound.tolist(),
            [finite(one) for one in ceiling.tolist()],
            np.minimum(cosine, 1.0).tolist(),
        )
        return dict(zip(CURVES, values, strict=True))

    def _coef_sums(self, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return Lambda of the hypotheses, and how far rounding may have moved them."""
        if not self._averaged:
            return table["scale"] * table["claim_v"], np.zeros(len(table))
        rounds = np.maximum(table["learnt"], 1)
        return table["sum_coef"] / rounds, table["sum_slack"] / rounds


def _divide(a: Any, b: np.ndarray, where: np.ndarray, otherwise: float) -> np.ndarray:
    """Divide where that is possible, and fill in a value elsewhere."""
    quotient: np.ndarray = np.divide(a, b, out=np.full(len(b), otherwise), where=where)
    return quotient
