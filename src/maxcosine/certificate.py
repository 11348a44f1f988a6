"""What is proven of a hypothesis and of the examples that it was learnt from.

Every rule moves w by keep >= 0 and add >= 0. So w is a combination of the signed examples with coefficients
>= 0, whose sum is Lambda. For any w* of length 1 that separates the examples with margin gamma,
w*.w >= gamma Lambda. The cosine between w and w* is therefore at least gamma ell with ell = Lambda / norm(w),
and gamma is at most 1 / ell.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from maxcosine.certificate_text import describe
from maxcosine.heads import LIMITS, Heads, Proven, quotient
from maxcosine.rules import RULES

# More than the rounding of the few operations of a formula, relative to its result.
ROUNDING = 8 * float(np.finfo(np.float64).eps)

HOW = ("certified", "mean")
"""The ways of merging, see `Merge`."""

Number = Any
"""A float or an int, or an array with one number for each class."""


class _Comparable:
    """Compares dataclass instances whose values may be arrays."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        return all(np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))  # type: ignore[arg-type]

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class Merge(_Comparable):
    """The models that a hypothesis was merged from, and the bounds of both ways of merging.

    Parameters
    ----------
    how : {"certified", "mean"}
        The way of merging that was chosen.
    models : int
        How many models were merged.
    certified : float or array
        The bound ell of the nearest point to the origin in the hull of the models.
    mean : float or array
        The bound ell of the plain mean of the models.

    Examples
    --------
    >>> from maxcosine import MCPClassifier, merge
    >>> parts = [MCPClassifier().fit([[2.0, 0.0], [0.0, k]], [1, 0]) for k in (1.0, 2.0)]
    >>> merge(parts, "mean").certificate_.merge.how
    'mean'
    """

    how: str
    models: int
    certified: Number
    mean: Number


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(_Comparable):
    """Proven facts about a hypothesis.

    Values are numbers; for one-vs-rest with more than two classes they are arrays with one number for each
    class. All statements are about separation through the origin of the space that the learner sees: the
    features, and a constant 1 if there is an intercept.

    Parameters
    ----------
    rule : str
        The name of the rule.
    coef_sum : float or array
        Lambda, the sum of the coefficients of w, reduced by a proven bound on the rounding error. So the
        claim is Lambda / (norm(w) + slack).
    norm : float or array
        The norm of w, constant weight included.
    bound : float or array
        The bound ell = Lambda / norm(w). The cosine to a separator of margin gamma is at least
        gamma ell - rounding.
    best_bound : float or array
        The largest ell so far.
    seen : int or array
        Examples since the hypothesis began.
    mistakes : int or array
        How many margins of the hypothesis were 0 or below before the example was learnt: what a mistake budget
        speaks of. Rows that were skipped, without features and intercept, are not counted.
    updates : int or array
        How many of them changed the hypothesis.
    rounding : float or array
        A bound on the distance, relative to norm(w), between w and the exact combination of examples.
    since : int or array
        How many examples the model had seen before the hypothesis began; above 0 if its class came late.
    augmented : bool
        Whether the space has a constant feature, the intercept.
    joint : bool
        Whether one hypothesis, with weights for each class, learns all classes.
    weighted : bool
        Whether steps were multiplied by weights. There is no mistake budget then.
    own_bound : float, array or None
        The ell of the rule's own mistake budget, or None if the rule has none.
    gain : float or None
        From its start on, the rule makes at most (1 / gain) (R / gamma)^2 mistakes on examples of norm at most R that a
        separator of margin gamma separates. None if no such bound is proven, or if steps were weighted.
    classes : array or None
        The classes that the entries of arrays belong to, for one-vs-rest.
    merge : Merge or None
        The models that the hypothesis was merged from.
    before_averaging : Certificate or None
        For an averaged hypothesis, the certificate of the last one; else None.

    References
    ----------
    N. H. Bshouty and C. A. Haddad-Zaknoon, "The Maximum Cosine Framework for Deriving Perceptron Based Linear
    Classifiers", 2017, arXiv:1707.00821.

    Examples
    --------
    >>> from maxcosine import MCPClassifier
    >>> learner = MCPClassifier(fit_intercept=False).fit([[2.0, 0.0], [0.0, 1.0]], [1, 0])
    >>> certificate = learner.certificate_
    >>> certificate.seen
    2
    >>> certificate.margin_ceiling >= 1 / certificate.best_bound
    True
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
    augmented: bool = False
    joint: bool = False
    weighted: bool = False
    own_bound: Number | None = None
    gain: float | None = None
    classes: Any = None
    merge: Merge | None = None
    before_averaging: Certificate | None = None

    @property
    def margin_ceiling(self) -> Number:
        """1 / best_bound, rounded up: no separator of the examples seen has a larger margin."""
        with np.errstate(divide="ignore"):
            ceiling = np.nextafter(1.0 / np.asarray(self.best_bound, dtype=np.float64), np.inf)
        return float(ceiling) if ceiling.ndim == 0 else ceiling

    @property
    def averaged(self) -> bool:
        """Whether the certificate is about the average of the hypotheses."""
        return self.before_averaging is not None

    @property
    def last(self) -> Certificate:
        """The certificate of the last hypothesis; this one, unless it is about the average."""
        return self if self.before_averaging is None else self.before_averaging

    @property
    def space(self) -> str:
        """The space in which the separators of the statements live."""
        space = "the features and a constant 1" if self.augmented else "the features"
        return f"{space}, once for each class" if self.joint else space

    def mistake_budget(self, margin: float, radius: float) -> Number:
        """Bound the number of mistakes to come, if a separator of this margin exists.

        The budget is radius^2 (1 / margin^2 - ell^2) / gain, with the rule's own ell.

        Parameters
        ----------
        margin : float
            The margin of a separator of all examples, past and future.
        radius : float
            The largest norm of a future example. Both are measured in the space of the certificate; in joint
            learning an example is sqrt(2) times as long as its features.

        Returns
        -------
        float or array
            The largest possible number of future mistakes; nan where `margin` is above `margin_ceiling`,
            because the certificate then excludes such a separator.
        """
        if self.weighted:
            raise ValueError(
                "the mistake budget assumes steps of the length that the rule chose, but sample_weight or "
                "class_weight changed them; the bound and the ceiling still hold"
            )
        if self.own_bound is None or self.gain is None:
            having = ", ".join(name for name, rule in RULES.items() if rule.own_bound)
            raise ValueError(
                f"rule {self.rule!r} has no mistake budget: it does not declare the bound that a mistake raises, "
                f"its own_bound; built-in rules that do: {having}"
            )
        for name, value in (("margin", margin), ("radius", radius)):
            if not 0.0 < value < np.inf:
                raise ValueError(f"{name}={value} must be a positive number")
        # Rounded up: each square and quotient is exact to within one unit in the last place.
        own = np.square(np.asarray(self.own_bound, float)) * (1.0 - ROUNDING)
        budget = radius**2 * (1.0 / margin**2 * (1.0 + ROUNDING) - own) / self.gain * (1.0 + ROUNDING)
        budget = np.where(margin > self.margin_ceiling, np.nan, np.maximum(budget, 0.0))
        return float(budget) if budget.ndim == 0 else budget

    def __repr__(self) -> str:
        return describe(self)


def certificate_of(heads: Heads, classes: np.ndarray, merge: Merge | None = None) -> Certificate:
    """What is proven so far of the hypotheses that predict."""
    last = _certificate(heads, heads.proven(), classes, merge, None)
    if not heads.average:
        return last
    return _certificate(heads, heads.proven(averaged=True), classes, merge, last)


def _certificate(
    heads: Heads, proven: Proven, classes: np.ndarray, merge: Merge | None, last: Certificate | None
) -> Certificate:
    table, rule = heads.table, heads.rule
    best_bound = np.maximum(table["best_bound"], proven.bound)
    if last is not None:
        best_bound = np.maximum(best_bound, last.best_bound)
    since = np.where(table["since"] < 0, table["seen"], table["since"])
    weighted = bool(table["weighted"].any())
    one = len(table) == 1

    def given(values: np.ndarray) -> Any:
        return values[0].item() if one else values.copy()

    return Certificate(
        rule=rule.name,
        coef_sum=given(proven.coef_sum),
        norm=given(proven.norm),
        bound=given(proven.bound),
        best_bound=given(best_bound),
        rounding=given(quotient(proven.slack, proven.norm) + LIMITS[heads.dtype].eps),
        since=given(since),
        seen=given(table["seen"] - since),
        mistakes=given(table["mistakes"]),
        updates=given(table["updates"]),
        augmented=heads.fit_intercept,
        joint=heads.joint,
        weighted=weighted,
        classes=None if one else classes,
        own_bound=given(_own_bounds(heads)) if rule.own_bound and not weighted else None,
        gain=None if weighted else rule.gain,
        merge=merge,
        before_averaging=last,
    )


def _own_bounds(heads: Heads) -> np.ndarray:
    """The bounds that the rule's mistake budget rests on, one a head; at most what the last hypotheses prove."""
    own_bound, n_state = heads.rule.own_bound, len(heads.rule.state)
    assert own_bound is not None
    last = heads.proven()
    given = zip(heads.arrays.state, np.square(last.norm).tolist(), last.coef_sum.tolist(), strict=True)
    own = np.array([own_bound(tuple(state[:n_state]), sq_w, coef_sum) for state, sq_w, coef_sum in given])
    return np.asarray(np.minimum(own, last.bound))
