"""What is proven of a hypothesis, and of the examples it was learnt from (Lambda / norm(w)).

Every rule moves w by keep >= 0 and add >= 0, so w is a non-negative combination of the signed
examples with coefficients that sum to Lambda. For any w* of length 1 that separates the examples
with margin gamma, w*.w >= gamma Lambda: the cosine between w and w* is at least gamma * ell with
ell = Lambda / norm(w), and gamma itself is at most 1 / ell.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

Number = Any  # a float or an int, or an array with one for each class


@dataclass(frozen=True, repr=False, eq=False)
class Certificate:
    """Proven facts about a hypothesis; numbers for two classes, arrays for one-vs-rest.

    Everything here is about separation through the origin of the space that the learner sees: with
    an intercept, the features and a constant 1.

    Attributes
    ----------
    rule : name of the rule
    coef_sum : Lambda, the sum of the coefficients that w is made with, less what rounding may have
        made of it: what is claimed is Lambda / (norm(w) + slack), see the decisions
    norm : norm(w), constant weight included
    bound : ell = Lambda / norm(w); the cosine to a separator of margin gamma is at least gamma ell
    best_bound : the largest ell so far
    margin_ceiling : 1 / best_bound; no separator of the examples seen has a larger margin
    seen, mistakes, updates : how many examples there were, were mistaken, moved the hypothesis
    averaged : whether it is about the average of the hypotheses
    augmented : whether the space has a constant feature, the intercept
    own_bound : the ell that the rule's mistake budget rests on, or None
    classes : what the entries of arrays are about, for one-vs-rest
    last : the certificate of the last hypothesis; the same one, unless averaged
    """

    rule: str
    coef_sum: Number
    norm: Number
    bound: Number
    best_bound: Number
    seen: Number
    mistakes: Number
    updates: Number
    averaged: bool = False
    augmented: bool = False
    own_bound: Number | None = None
    classes: Any = None
    _last: Certificate | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Certificate):
            return NotImplemented
        names = [field.name for field in fields(self)]
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]

    @property
    def margin_ceiling(self) -> Number:
        with np.errstate(divide="ignore"):
            ceiling = 1.0 / np.asarray(self.best_bound, dtype=np.float64)
        return float(ceiling) if ceiling.ndim == 0 else ceiling

    @property
    def last(self) -> Certificate:
        return self if self._last is None else self._last

    @property
    def space(self) -> str:
        """The space in which the separators of the statement live."""
        return "the features and a constant 1" if self.augmented else "the features"

    def mistake_budget(self, margin: float, radius: float) -> Number:
        """How many mistakes can still come, if a separator of this margin exists.

        For examples past and future separated with `margin`, and future examples no longer than
        `radius` (both in the space of the certificate), at most
        radius^2 (1 / margin^2 - ell^2), with the rule's own ell.
        It is nan where the certificate refutes the margin: it is above `margin_ceiling`.
        """
        if self.own_bound is None:
            raise ValueError(
                f"rule {self.rule!r} has no mistake budget of this form; the rules that have one: "
                "cmcp, mcp, mcp_exact, romma, aggressive_romma and naromma"
            )
        for name, value in (("margin", margin), ("radius", radius)):
            if not 0.0 < value < np.inf:
                raise ValueError(f"{name}={value} must be a positive number")
        budget = radius**2 * (1.0 / margin**2 - np.square(np.asarray(self.own_bound, float)))
        budget = np.where(margin > self.margin_ceiling, np.nan, np.maximum(budget, 0.0))
        return float(budget) if budget.ndim == 0 else budget

    def __repr__(self) -> str:
        what = f"the {'averaged ' if self.averaged else ''}{self.rule} hypothesis"
        if np.ndim(self.bound) == 0:
            return "\n".join(
                [
                    f"Certificate of {what}",
                    f"  proven: {self._statement(self.margin_ceiling, self.seen)}",
                    f"  its cosine to a separator of margin g is at least {self.bound:.6g} g",
                    f"  space: {self.space}, through the origin",
                    f"  Lambda {self.coef_sum:.6g}, norm {self.norm:.6g}, bound {self.bound:.6g}, "
                    f"best bound {self.best_bound:.6g}",
                    f"  seen {self.seen:,}, mistakes {self.mistakes:,}, updates {self.updates:,}",
                ]
            )
        lines = [
            f"Certificate of {what}, one for each class against the rest",
            f"  proven of the {np.max(self.seen):,} examples seen: no separator of a class from the rest "
            "has a margin above its ceiling",
            f"  space: {self.space}, through the origin; "
            "the cosine to a separator of margin g is at least bound * g",
            f"{'class':>16}{'ceiling':>12}{'bound':>12}{'best bound':>12}{'Lambda':>12}{'norm':>12}"
            f"{'mistakes':>12}{'updates':>12}",
        ]
        numbers = (self.margin_ceiling, self.bound, self.best_bound, self.coef_sum, self.norm)
        for label, *row in zip(self.classes, *numbers, self.mistakes, self.updates, strict=True):
            cells = "".join(f"{value:12.5g}" for value in row[:-2])
            lines.append(f"{label!s:>16}{cells}{row[-2]:12,d}{row[-1]:12,d}")
        return "\n".join(lines)

    @staticmethod
    def _statement(ceiling: float, seen: int) -> str:
        if ceiling == np.inf:
            return "nothing yet"
        return f"no separator of the {seen:,} examples seen has a margin above {ceiling:.6g}"
