"""What is proven of a hypothesis, and of the examples it was learnt from (Lambda / norm(w)).

Every rule moves w by keep >= 0 and add >= 0, so w is a non-negative combination of the signed
examples with coefficients that sum to Lambda. For any w* of length 1 that separates the examples
with margin gamma, w*.w >= gamma Lambda: the cosine between w and w* is at least gamma * ell with
ell = Lambda / norm(w), and gamma itself is at most 1 / ell.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxcosine.record import Record

Number = Any  # a float or an int, or an array with one for each class


def _same(one: Record, other: object) -> bool:
    """Equal values, where values may be arrays."""
    if type(one) is not type(other):
        return False
    return all(np.array_equal(value, getattr(other, name)) for name, value in one.as_dict().items())


class Merge(Record, frozen=True):
    """What a hypothesis was merged from, and what both ways of merging would have proven.

    Attributes
    ----------
    how : "certified" or "mean"
    models : how many models were merged
    certified : ell of the point of the hull of the models nearest to the origin
    mean : ell of their plain mean
    """

    how: str
    models: int
    certified: Number
    mean: Number

    def __eq__(self, other: object) -> bool:
        return _same(self, other)

    __hash__ = None  # type: ignore[assignment]


class Certificate(Record, frozen=True):
    """Proven facts about a hypothesis; arrays for one-vs-rest with more than two classes, else numbers.

    Everything here is about separation through the origin of the space that the learner sees: with
    an intercept, the features and a constant 1.

    Attributes
    ----------
    rule : name of the rule
    coef_sum : Lambda, the sum of the coefficients that w is made with, less what rounding may have
        made of it: what is claimed is Lambda / (norm(w) + slack), see the decisions
    norm : norm(w), constant weight included
    bound : ell = Lambda / norm(w); the cosine to a separator of margin gamma is at least
        gamma ell - rounding
    rounding : how far rounding may have taken w from the combination it stands for, relative to norm(w)
    best_bound : the largest ell so far
    margin_ceiling : 1 / best_bound; no separator of the examples seen has a larger margin
    since : examples that the model had seen when this hypothesis began; its class came late, if not 0
    seen, mistakes, updates : how many examples there were since, were mistaken, moved the hypothesis
    averaged : whether it is about the average of the hypotheses
    augmented : whether the space has a constant feature, the intercept
    joint : whether one hypothesis, with weights for each class, tells all classes apart
    weighted : whether steps were multiplied by weights; then there is no mistake budget
    own_bound : the ell that the rule's mistake budget rests on, or None
    classes : what the entries of arrays are about, for one-vs-rest
    merge : what the hypothesis was merged from, or None
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
    rounding: Number = 0.0
    since: Number = 0
    averaged: bool = False
    augmented: bool = False
    joint: bool = False
    weighted: bool = False
    own_bound: Number | None = None
    classes: Any = None
    merge: Merge | None = None
    _last: Certificate | None = None

    def __eq__(self, other: object) -> bool:
        return _same(self, other)

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
        space = "the features and a constant 1" if self.augmented else "the features"
        return f"{space}, once for each class" if self.joint else space

    def mistake_budget(self, margin: float, radius: float) -> Number:
        """How many mistakes can still come, if a separator of this margin exists.

        For examples past and future separated with `margin`, and future examples no longer than
        `radius` (both in the space of the certificate: jointly, an example is sqrt(2) times as long as its
        features), at most radius^2 (1 / margin^2 - ell^2), with the rule's own ell.
        It is nan where the certificate refutes the margin: it is above `margin_ceiling`.
        """
        if self.weighted:
            raise ValueError(
                "the mistake budget rests on steps of the length that the rule chose, and sample_weight or "
                "class_weight changed them; the bound and the ceiling hold all the same"
            )
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
        kinds = f"{'averaged ' if self.averaged else ''}{'joint ' if self.joint else ''}"
        what = f"the {kinds}{self.rule} hypothesis"
        lines = self._table(what) if np.ndim(self.bound) else self._text(what)
        if self.merge is not None:
            lines.append(
                f"  merged from {self.merge.models:,} models by {self.merge.how!r}; bounds at the merge: "
                f"certified {_shown(self.merge.certified)}, mean {_shown(self.merge.mean)}"
            )
        if self.weighted:
            lines.append("  steps were weighted: Lambda counts them as they were taken, no mistake budget")
        return "\n".join(lines)

    def _text(self, what: str) -> list[str]:
        return [
            f"Certificate of {what}",
            f"  proven: {self._statement()}",
            f"  its cosine to a separator of margin g is at least {self.bound:.6g} g - {self.rounding:.1g}",
            f"  space: {self.space}, through the origin",
            f"  Lambda {self.coef_sum:.6g}, norm {self.norm:.6g}, bound {self.bound:.6g}, "
            f"best bound {self.best_bound:.6g}",
            f"  seen {self.seen:,}{self._from()}, mistakes {self.mistakes:,}, updates {self.updates:,}",
        ]

    def _table(self, what: str) -> list[str]:
        late = np.any(self.since)
        counted = "from example" if self.merge is None else "seen"
        lines = [
            f"Certificate of {what}, one for each class against the rest",
            f"  proven of the {np.max(self.seen):,} examples seen: no separator of a class from the rest "
            "has a margin above its ceiling",
            f"  space: {self.space}, through the origin; "
            f"the cosine to a separator of margin g is at least bound * g - {np.max(self.rounding):.1g}",
            f"{'class':>16}{'ceiling':>12}{'bound':>12}{'best bound':>12}{'Lambda':>12}{'norm':>12}"
            f"{'mistakes':>12}{'updates':>12}{counted if late else '':>14}".rstrip(),
        ]
        if late:
            which = "of the models that know it" if self.merge else "from its first one on"
            lines.insert(2, f"  a class that not all examples count for: of the examples {which}")
        numbers = (self.margin_ceiling, self.bound, self.best_bound, self.coef_sum, self.norm)
        counts = (self.mistakes, self.updates, self.seen if self.merge else self.since + 1)
        for label, *row in zip(self.classes, *numbers, *counts, strict=True):
            cells = "".join(f"{value:12.5g}" for value in row[:-3])
            start = f"{row[-1]:14,d}" if late else ""
            lines.append(f"{label!s:>16}{cells}{row[-3]:12,d}{row[-2]:12,d}{start}")
        return lines

    def _statement(self) -> str:
        ceiling = self.margin_ceiling
        if ceiling == np.inf:
            return "nothing yet"
        examples = f"the {self.seen:,} examples seen"
        if self.joint:
            return f"no weights tell the classes of {examples} apart with a margin above {ceiling:.6g}"
        return f"no separator of {examples} has a margin above {ceiling:.6g}"

    def _from(self) -> str:
        """Which examples it counts, if not all."""
        if not self.since:
            return ""
        if self.merge is not None:
            return f" of {self.since + self.seen:,}"
        return f" from example {self.since + 1:,} on"


def _shown(bounds: Number) -> str:
    low, high = np.min(bounds), np.max(bounds)
    return f"{low:.6g}" if np.ndim(bounds) == 0 else f"{low:.6g} to {high:.6g}"
