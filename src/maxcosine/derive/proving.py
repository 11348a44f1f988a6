"""Decide inequalities: proved, false with a counterexample, or tested and said so.

A claim is decided by the signs of its coefficients where they suffice, else by open cells (exactly, for rational
claims in up to three symbols), in one variable also by outward-rounded intervals. What none of them decides is tried at
many points. Proofs are about real arithmetic, at every point of the region at which claim and conditions are defined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

import sympy as sp

from maxcosine.derive import intervals
from maxcosine.derive.cells import MAX_SECONDS, Budget, OutOfBudgetError
from maxcosine.derive.deciding import NotRationalError, Point, Proof, decide, interior_point
from maxcosine.derive.real_roots import simplest_between, to_fraction
from maxcosine.derive.regions import (
    Conjunction,
    Range,
    as_fraction,
    check_symbols,
    ranges,
    sign_from_ranges,
    split_expression,
    split_region,
)
from maxcosine.derive.sampling import find_interior_point, find_violation

__all__ = [
    "Verdict",
    "all_of",
    "best_constant",
    "feasible",
    "prove",
    "prove_defined",
    "prove_positive",
]

RESOLUTION = Fraction(1, 2**20)
"""How close to the largest constant :func:`best_constant` comes."""


@dataclass(frozen=True)
class Verdict:
    """What was found out about one inequality.

    Attributes
    ----------
    status : {"proved", "tested", "false"}
        Tested: no violation was found, and no proof.
    method : str
        For proved: "signs", "cells", "intervals", or several of them.
    points : int
        For tested: how many points were tried.
    counterexample : mapping of str to Fraction
        For false: names of symbols to values, at which exact arithmetic confirms the violation. Empty if the claim
        is false of every example.
    """

    status: Literal["proved", "tested", "false"]
    method: str = ""
    points: int = 0
    counterexample: Mapping[str, Fraction] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.status == "proved"

    def __str__(self) -> str:
        if self.status == "proved":
            return f"proved ({self.method})" if self.method else "proved"
        if self.status == "tested":
            return f"tested, not proved ({self.points:,} points)"
        at = ", ".join(f"{name} = {value}" for name, value in sorted(self.counterexample.items()))
        return f"false at {at}" if at else "false"


def all_of(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on several claims together: the worst of them.

    Parameters
    ----------
    verdicts : iterable of Verdict
        One a claim.

    Returns
    -------
    Verdict
        The first that is false, else the tested one with the fewest points, else proved by all their methods.
    """
    found = list(verdicts)
    for verdict in found:
        if verdict.status == "false":
            return verdict
    if tested := [verdict for verdict in found if verdict.status == "tested"]:
        return min(tested, key=lambda verdict: verdict.points)
    return _proved({method for verdict in found for method in verdict.method.split(", ") if method})


def _proved(methods: Iterable[str]) -> Verdict:
    return Verdict("proved", ", ".join(sorted(methods)))


def _false(point: Point) -> Verdict:
    return Verdict("false", counterexample={s.name: value for s, value in sorted(point.items(), key=str)})


# --- claims ----------------------------------------------------------------------------------


def prove(
    claim: sp.Expr, region: Sequence[Any], *, partition: Sequence[Any] = (), seconds: float = MAX_SECONDS
) -> Verdict:
    """Decide whether claim >= 0 wherever all conditions of the region hold.

    Parameters
    ----------
    claim : Expr
        May contain Max, Min, Abs and Piecewise. Symbols must be declared with real=True and nothing else.
    region : sequence of relational
        The conditions, ranges of the symbols among them.
    partition : sequence of relational
        Conditions of one case of several that cover the region. The claims of all cases together must be values of
        one continuous function: then a part of a case without interior is a border of others, which prove it.
    seconds : float
        How long exact decisions may take; beyond that the claim is tested.

    Returns
    -------
    Verdict
        False always comes with a counterexample.

    Examples
    --------
    >>> u, c = sp.symbols("u c", real=True)
    >>> print(prove(u**2 - 2 * u * c + 1, [u > 0, c > -1, c < 1]))
    proved (cells)
    >>> print(prove(1 - 2 * u * c, [u > 0, c >= 0, c < 1]))
    false at c = 1/2, u = 2
    """
    claim, everything = sp.sympify(claim, strict=True), (*region, *partition)
    check_symbols([claim, *(sp.sympify(one, strict=True) for one in everything)])
    verdict = _exactly(claim, region, seconds, strict=False, partition=partition)
    if verdict is not None:
        return verdict
    if len(claim.free_symbols) == 1 and _is_zero(claim):
        return Verdict("proved", "identity")
    verdict = _test(claim, everything, strict=False)
    if verdict.status == "false" or len(claim.free_symbols) != 1:
        return verdict
    return Verdict("proved", "intervals") if _by_intervals(claim, everything) else verdict


def prove_positive(claim: sp.Expr, region: Sequence[Any], *, seconds: float = MAX_SECONDS) -> Verdict:
    """Decide whether claim > 0 at every point of the region, its border included where it belongs to it.

    Parameters
    ----------
    claim : Expr
        As in :func:`prove`.
    region : sequence of relational
        As in :func:`prove`.
    seconds : float
        As in :func:`prove`.

    Returns
    -------
    Verdict
        Proved by signs, or exactly if one variable decides. Cells alone cannot exclude a zero on their borders.
    """
    claim = sp.sympify(claim, strict=True)
    check_symbols([claim, *(sp.sympify(one, strict=True) for one in region)])
    verdict = _exactly(claim, region, seconds, strict=True)
    if verdict is not None:
        return verdict
    not_negative = _exactly(claim, region, seconds, strict=False)
    if not_negative is not None and not_negative.status == "false":
        return not_negative
    return _test(claim, region, strict=True)


def prove_defined(expression: sp.Expr, region: Sequence[Any], *, seconds: float = MAX_SECONDS) -> Verdict:
    """Decide whether an expression divides by zero, or takes a root of a negative number, nowhere in the region.

    Parameters
    ----------
    expression : Expr
        As in :func:`prove`.
    region : sequence of relational
        As in :func:`prove`.
    seconds : float
        As in :func:`prove`.

    Returns
    -------
    Verdict
        A counterexample is a point at which the expression has no value.
    """
    verdicts = []
    for base, exponent in sorted((power.args for power in expression.atoms(sp.Pow)), key=str):
        if exponent.is_negative:
            verdicts.append(_prove_nonzero(base, region, seconds))
        if not exponent.is_Integer:
            verdicts.append(prove(base, region, seconds=seconds))
    return all_of(verdicts)


def feasible(region: Sequence[Any], *, seconds: float = MAX_SECONDS) -> bool | None:
    """Whether the conditions hold on an open set.

    Parameters
    ----------
    region : sequence of relational
        The conditions.
    seconds : float
        How long exact decisions may take.

    Returns
    -------
    bool or None
        None if it cannot be decided.
    """
    check_symbols(sp.sympify(one, strict=True) for one in region)
    budget = Budget(seconds)
    answers: list[bool | None] = []
    for part in split_region(region):
        try:
            answers.append(interior_point(part, budget) is not None)
        except (OutOfBudgetError, NotRationalError):
            answers.append(None)
    if any(answers):
        return True
    if None in answers:
        return True if find_interior_point(region) is not None else None
    return False


def best_constant(
    decide: Callable[[sp.Rational], Verdict], *, seconds: float = MAX_SECONDS
) -> tuple[Fraction | None, Verdict]:
    """The largest m in (0, 1] for which a claim is proved.

    Parameters
    ----------
    decide : callable
        From m to the verdict on the claim; a claim that holds for m must hold for all smaller ones.
    seconds : float
        For how long to look for a larger one.

    Returns
    -------
    (Fraction or None, Verdict)
        The constant, within 2^-20 of the largest if time allowed, with its proof; None with the verdict on m = 2^-20
        if that is not proved.
    """
    budget = Budget(seconds)
    verdict = decide(sp.Integer(1))
    if verdict:
        return Fraction(1), verdict
    low, high = RESOLUTION, Fraction(1)
    verdict = decide(sp.Rational(low.numerator, low.denominator))
    if not verdict:
        return None, verdict
    while high - low > RESOLUTION and budget.seconds_left() > 0:
        # The simplest number first: the answer is often one, and then the next number up is refuted.
        for m in (simplest_between(low, high), low + RESOLUTION, (low + high) / 2):
            if low < m < high:
                found = decide(sp.Rational(m.numerator, m.denominator))
                low, high, verdict = (m, high, found) if found else (low, m, verdict)
    return low, verdict


# --- helpers ---------------------------------------------------------------------------------


def _exactly(
    claim: sp.Expr, region: Sequence[Any], seconds: float, strict: bool, partition: Sequence[Any] = ()
) -> Verdict | None:
    found = decide(claim, region, Budget(seconds), strict, partition)
    if isinstance(found, Proof):
        return _proved(found.methods)
    return None if found is None else _false(found)


def _test(claim: sp.Expr, region: Sequence[Any], strict: bool) -> Verdict:
    point, points = find_violation(claim, region, strict)
    return Verdict("tested", points=points) if point is None else _false(point)


def _prove_nonzero(expression: sp.Expr, region: Sequence[Any], seconds: float) -> Verdict:
    """Decide whether an expression vanishes nowhere in the region."""
    exactly = _exactly(expression**2, region, seconds, strict=True)
    if exactly is not None:
        return exactly
    for symbol in sorted(expression.free_symbols, key=str):
        zero = _zero(expression, symbol, region)
        if zero is None:
            continue
        verdict = prove(sp.Integer(-1), _at(region, symbol, zero), seconds=seconds)
        if verdict.status == "false":
            point = {one: sp.Rational(verdict.counterexample[one.name]) for one in zero.free_symbols}
            at = to_fraction(zero.subs(point))
            return replace(verdict, counterexample={**verdict.counterexample, symbol.name: at})
        if verdict:
            return verdict
    apart = sp.Rational(RESOLUTION.numerator, RESOLUTION.denominator)
    proofs = (verdict for sign in (1, -1) if (verdict := prove(sign * expression - apart, region, seconds=seconds)))
    return next(proofs, None) or _test(expression**2, region, strict=True)


def _zero(expression: sp.Expr, symbol: sp.Symbol, region: Sequence[Any]) -> sp.Expr | None:
    """The only value of a symbol at which an expression vanishes; None if there are others, or if it is not known."""
    fraction = as_fraction(expression)
    if fraction is None or fraction[0].degree(symbol) != 1:
        return None
    slope, rest = sp.Poly(fraction[0].as_expr(), symbol).all_coeffs()
    signs = [sign_from_ranges(sp.Poly(slope, *fraction[0].gens), ranges(part)) for part in split_region(region)]
    return -rest / slope if all(sign is not None and sign[1] for sign in signs) else None


def _at(region: Sequence[Any], symbol: sp.Symbol, value: sp.Expr) -> list[Any]:
    """The region with a value in place of a symbol; where a condition is defined nowhere, it does not hold."""
    try:
        return [one.subs(symbol, value) for one in region]
    except TypeError:  # SymPy does not compare zoo
        return [sp.false]


def _is_zero(claim: sp.Expr) -> bool:
    """Whether a claim in one variable is 0 identically: neither tests nor intervals would tell."""
    (v,) = claim.free_symbols
    nearly = all(abs(sp.N(claim.subs(v, sp.Rational(-1, n)))) < 1e-12 for n in (1, 3, 7))
    return nearly and sp.simplify(claim) == 0


def _by_intervals(claim: sp.Expr, region: Sequence[Any]) -> bool:
    """Whether intervals prove a claim in one variable, on its range in each branch."""
    (v,) = claim.free_symbols

    def holds(expression: sp.Expr, conditions: Conjunction) -> bool:
        known = ranges(conditions).get(v, Range())
        low, high = (-sp.oo if known.low is None else known.low), (sp.oo if known.high is None else known.high)
        return bool(low > high) or intervals.is_nonnegative(expression, v, low, high)

    kinds = (sp.Max, sp.Min, sp.Abs, sp.Piecewise)
    return all(
        all(holds(e, (*part, *branch)) for branch, e in split_expression(claim, kinds, part)) or holds(claim, part)
        for part in split_region(region)
    )
