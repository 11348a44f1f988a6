"""Decide a claim on a region exactly: branch by branch, by signs or by cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy as sp

from maxcosine.derive.cells import Budget, OutOfBudgetError, elimination_order, sample_points
from maxcosine.derive.real_roots import line_cells
from maxcosine.derive.regions import (
    Condition,
    Conjunction,
    as_fraction,
    ranges,
    sign_from_ranges,
    split_expression,
    split_region,
)
from maxcosine.derive.regularity import is_regular_part
from maxcosine.derive.sampling import is_violation

MAX_SYMBOLS = 3
"""Cells of claims in more symbols (u, c and one parameter) do not finish."""

Point = dict[sp.Symbol, Fraction]
RationalFunction = tuple[sp.Poly, sp.Poly]


class NotRationalError(Exception):
    """The claim or a condition is not rational, or there are too many symbols."""


@dataclass(frozen=True)
class Proof:
    """The claim holds.

    Attributes
    ----------
    methods : frozenset of str
        Of "signs" and "cells" those that were needed.
    """

    methods: frozenset[str]


def decide(
    claim: sp.Expr, region: Sequence[Any], budget: Budget, strict: bool = False, partition: Sequence[Any] = ()
) -> Proof | Point | None:
    """Prove or refute claim >= 0, or claim > 0 if `strict`, on a region.

    Parameters
    ----------
    claim : Expr
        The claim.
    region : sequence of relational
        Where it is claimed.
    budget : Budget
        What the decision may cost.
    strict : bool
        Whether a zero refutes the claim. Then cells are used in one variable only.
    partition : sequence of relational
        Further conditions, that need not be regular; see `maxcosine.derive.proving.prove`.

    Returns
    -------
    Proof, dict or None
        A proof; or a point at which exact arithmetic confirms that the claim fails; or None if undecided.
    """
    methods: set[str] = set()
    undecided = False
    for part in split_region(region):
        # A Piecewise need not be continuous: the conditions of its pieces count as the region's own.
        for piece, expression in split_expression(claim, (sp.Piecewise,), part):
            found = _decide_piece(expression, (*part, *piece), split_region(partition), budget, strict)
            if isinstance(found, dict) and is_violation(claim, (*region, *partition), found, strict):
                return found
            if isinstance(found, Proof):
                methods |= found.methods
            else:
                undecided = True
    return None if undecided else Proof(frozenset(methods))


def _decide_piece(
    claim: sp.Expr, conditions: Conjunction, partition: Sequence[Conjunction], budget: Budget, strict: bool
) -> Proof | Point | None:
    """Decide a continuous claim.

    The branches of Max, Min and Abs cover the region, and the claim is continuous across them: what holds on the open
    cells of all branches holds on the whole region if that is regular. The branches themselves need not be, nor the
    parts of a partition.
    """
    symbols = claim.free_symbols.union(*(k.symbols for part in partition for k in part))
    relevant = _connected(conditions, symbols)
    rest = tuple(k for k in conditions if k not in relevant)
    methods: set[str] = set()
    branches = [
        ((*part, *branch), expression)
        for part in partition
        for branch, expression in split_expression(claim, (sp.Max, sp.Min, sp.Abs), (*conditions, *part))
    ]
    for branch, expression in branches:
        method: str | Point | None = _by_signs(expression, (*relevant, *branch), strict)
        try:
            if method is None:
                method = _by_cells(expression, (*relevant, *branch), budget, strict)
            if isinstance(method, dict):
                elsewhere = _common_point(rest, budget)
                if elsewhere is not None:
                    return {**elsewhere, **method}
                method = "cells" if is_regular_part(rest) else None  # regular without interior: empty
        except (OutOfBudgetError, NotRationalError):
            method = None
        if method == "open cells":
            method = "cells" if is_regular_part(relevant) else None
        methods.add("" if method is None else method)
    return None if "" in methods else Proof(frozenset(methods))


def _connected(conditions: Conjunction, symbols: Iterable[sp.Symbol]) -> Conjunction:
    """The conditions that share a symbol with these, directly or through other conditions."""
    reached = set(symbols)
    while True:
        found = tuple(k for k in conditions if k.symbols & reached or not k.symbols)
        more = set().union(*(k.symbols for k in found)) - reached
        if not more:
            return found
        reached |= more


def _by_signs(claim: sp.Expr, conditions: Conjunction, strict: bool) -> str | None:
    """Signs of the coefficients. They hold at every point, whether the region is regular or not."""
    fraction = as_fraction(claim)
    if fraction is None:
        return None
    known = ranges(conditions)
    numerator, denominator = (sign_from_ranges(p, known) for p in fraction)
    if numerator is None or denominator is None or (strict and not numerator[1]):
        return None
    return "signs" if fraction[0].is_zero or numerator[0] == denominator[0] else None


def _by_cells(claim: sp.Expr, conditions: Conjunction, budget: Budget, strict: bool) -> str | Point | None:
    """Decide one branch: "cells" if it holds at every point, "open cells" if on those, or a counterexample."""
    symbols = sorted(set().union(claim.free_symbols, *(k.symbols for k in conditions)), key=str)
    fractions = [f for e in (claim, *(k.expression for k in conditions)) if (f := as_fraction(e)) is not None]
    if len(fractions) <= len(conditions) or len(symbols) > MAX_SYMBOLS:
        raise NotRationalError
    if len(symbols) <= 1:
        return _on_line(fractions, conditions, symbols, strict)
    if strict or any(k.relation == "==" for k in conditions):
        return None
    point = _search_open_cells(fractions, conditions, symbols, budget)
    return "open cells" if point is None else point


def _on_line(
    fractions: Sequence[RationalFunction], conditions: Conjunction, symbols: Sequence[sp.Symbol], strict: bool
) -> str | Point | None:
    """Decide a claim in at most one variable, at every point."""
    variable = symbols[0] if symbols else sp.Dummy("one")
    cells = line_cells([sp.Poly(p.as_expr(), variable) for fraction in fractions for p in fraction])
    undecided = False
    for cell in cells:
        pairs = zip(cell.signs[::2], cell.signs[1::2], strict=True)
        claim, *values = (numerator * denominator if denominator else None for numerator, denominator in pairs)
        inside = all(value is not None and k.admits(value) for k, value in zip(conditions, values, strict=True))
        if inside and claim is not None and (claim <= 0 if strict else claim < 0):
            if cell.sample is not None:
                return {variable: cell.sample} if symbols else {}
            undecided = True  # it fails at an irrational point: no counterexample in rational numbers
    return None if undecided else "cells"


def _search_open_cells(
    fractions: Sequence[RationalFunction], conditions: Conjunction, symbols: Sequence[sp.Symbol], budget: Budget
) -> Point | None:
    """A sample point at which the conditions hold strictly and the claim, the first fraction, is negative."""
    claim, *others = fractions
    tests = []
    for fraction, condition in zip(others, conditions, strict=True):
        if not fraction[0].is_zero:
            tests.append((fraction, condition))
        elif not condition.admits(0):
            return None
    if claim[0].is_zero:
        return None
    cutting = [p for fraction in (claim, *(f for f, _ in tests)) for p in fraction if p.total_degree() > 0]

    def inside(point: Mapping[sp.Symbol, Fraction]) -> bool:
        return all(k.admits(_sign_at(f, point)) for f, k in tests if k.symbols <= point.keys())

    for point in sample_points(cutting, elimination_order(cutting, symbols), budget, inside):
        if _sign_at(claim, point) < 0:
            return point
    return None


def _sign_at(fraction: RationalFunction, point: Mapping[sp.Symbol, Fraction]) -> int:
    """The sign at a point of an open cell, where neither part vanishes."""
    sign = 1
    for p in fraction:
        values = [point.get(s, Fraction(0)) for s in p.gens]  # a generator that is no symbol belongs to a constant
        sign *= 1 if p(*(sp.Rational(x.numerator, x.denominator) for x in values)) > 0 else -1
    return sign


def interior_point(conditions: Conjunction, budget: Budget) -> Point | None:
    """A rational point at which all conditions hold strictly; None if there is none.

    Parameters
    ----------
    conditions : tuple of Condition
        The conditions.
    budget : Budget
        What the search may cost.

    Returns
    -------
    dict or None
        Symbols to values.
    """
    if any(k.relation == "==" for k in conditions):
        return None
    return _common_point(
        tuple(Condition(k.expression, "!=" if k.relation == "!=" else ">") for k in conditions), budget
    )


def _common_point(conditions: Conjunction, budget: Budget) -> Point | None:
    """A rational point at which all conditions hold: any on a line, else one in an open cell."""
    point: Point = {}
    remaining = conditions
    while remaining:
        group = _connected(remaining, remaining[0].symbols)
        remaining = tuple(k for k in remaining if k not in group)
        found = _by_cells(sp.Integer(-1), group, budget, strict=False)
        if not isinstance(found, dict):
            return None
        point |= found
    return point
