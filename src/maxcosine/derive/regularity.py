"""Whether a region is the closure of what its conditions, taken strictly, leave: no isolated points, lines or sheets.

A continuous function that is non-negative on all open cells of a region need not be so on a part without interior:
{c >= 0, c <= 0} has no open cell at all.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import sympy as sp

from maxcosine.derive.real_roots import line_cells
from maxcosine.derive.regions import Condition, Conjunction, Range, as_fraction, ranges, sign_from_ranges, split_region

C = sp.Symbol("c", real=True)
"""The cosine c = g / norm(x), in which most conditions are linear."""


def is_regular(region: Sequence[Any], variable: sp.Symbol = C) -> bool:
    """Whether every point of a region is a limit of points at which all conditions hold strictly.

    Only then does a continuous function that is non-negative on the open cells have to be so on the whole region:
    {c >= 0, c <= 0} has no open cell at all. A variable in which all conditions are linear, with coefficients that
    vanish nowhere, is eliminated: the region lies between bounds on it, lower ones L_i and upper ones U_j, and has
    the property if the region of the other variables with all L_i <= U_j has. What is left in one variable is decided
    exactly. Conditions with Max, Min or Abs are split first, and each part must have the property, for then so has
    their union.

    Parameters
    ----------
    region : sequence of relational
        All of them hold.
    variable : Symbol
        The variable to eliminate first; the others follow by name.

    Returns
    -------
    bool
        True if it is established; False says nothing.

    Examples
    --------
    >>> u, c = sp.symbols("u c", real=True)
    >>> is_regular([u > 0, c >= 0, 2 * u * c <= 1])
    True
    >>> is_regular([u > 0, c >= 0, c <= 0])
    False
    """
    return all(is_regular_part(part, variable) for part in split_region(region))


@functools.lru_cache(maxsize=512)
def is_regular_part(conditions: Conjunction, variable: sp.Symbol = C) -> bool:
    """What :func:`is_regular` says of a region without Max, Min and Abs.

    Parameters
    ----------
    conditions : tuple of Condition
        All of them hold.
    variable : Symbol
        The variable to eliminate first.

    Returns
    -------
    bool
        True if it is established.
    """
    simplified = _as_polynomials(conditions)
    if simplified is None:
        return False
    symbols = sorted(set().union(*(k.symbols for k in simplified)), key=lambda s: (s != variable, s.name))
    if len(symbols) <= 1:
        return _is_regular_on_line(simplified)
    return any(
        below is not None and is_regular_part(below, variable)
        for below in (_eliminate_linear(simplified, s) for s in symbols)
    )


def _as_polynomials(conditions: Conjunction) -> Conjunction | None:
    """Conditions p > 0 or p >= 0 with polynomials that allow at least the same points, and the same open set.

    Denominators and factors of known sign are divided out; other denominators are multiplied twice.
    """
    known = ranges(conditions)
    found = []
    for condition in conditions:
        if condition.relation == "!=":
            continue  # takes away nothing that is open
        fraction = as_fraction(condition.expression)
        if fraction is None or condition.relation == "==":
            return None
        if len(condition.symbols) == 1 and condition.symbols <= known.keys() and _is_linear(fraction):
            found.append(condition)
            continue
        numerator, denominator = fraction
        product = (numerator * denominator).as_expr()
        leading, factors = sp.factor_list(product, *numerator.gens)
        sign, rest = (1 if leading > 0 else -1), sp.Integer(1)
        for factor, multiplicity in factors:
            told = sign_from_ranges(sp.Poly(factor, *numerator.gens), known)
            if told is not None and told[1]:
                sign *= told[0] ** multiplicity
            else:
                rest *= factor**multiplicity
        if product == 0 and condition.relation == ">=":
            return None  # holds everywhere and strictly nowhere: two bounds that coincide
        if product == 0 or (rest == 1 and sign < 0):
            return (Condition(sp.Integer(-1), ">"),)  # holds nowhere
        if rest == 1:
            continue  # holds everywhere
        found.append(Condition(sp.expand(sign * rest), condition.relation))
    return tuple(found)


def _is_linear(fraction: tuple[sp.Poly, sp.Poly]) -> bool:
    numerator, denominator = fraction
    return bool(numerator.total_degree() == 1 and denominator.total_degree() == 0)


def _eliminate_linear(conditions: Conjunction, variable: sp.Symbol) -> Conjunction | None:
    """The conditions on the other variables under which the bounds on this one leave room; None if not linear."""
    known = ranges(conditions)
    others = tuple(k for k in conditions if variable not in k.symbols)
    lower: list[tuple[sp.Expr, sp.Expr, bool]] = []
    upper: list[tuple[sp.Expr, sp.Expr, bool]] = []
    for condition in conditions:
        if variable not in condition.symbols:
            continue
        p = sp.Poly(condition.expression, variable)
        if p.degree() != 1:
            return None
        slope, constant = p.all_coeffs()
        told = _strict_sign(slope, known, others)
        if told is None:
            return None
        (lower if told > 0 else upper).append((told * slope, constant, condition.relation == ">"))
    room = [
        Condition(sp.expand(upper_constant * lower_slope + lower_constant * upper_slope), ">" if a or b else ">=")
        for (lower_slope, lower_constant, a), (upper_slope, upper_constant, b) in itertools.product(lower, upper)
    ]
    return (*others, *room)


def _strict_sign(expression: sp.Expr, known: dict[sp.Symbol, Range], conditions: Conjunction) -> int | None:
    """The sign of an expression that vanishes nowhere in the region; None if that is not established."""
    fraction = as_fraction(expression)
    assert fraction is not None
    told = sign_from_ranges(fraction[0], known)
    if told is not None and told[1]:
        return told[0]
    symbols = expression.free_symbols
    if len(symbols) != 1:
        return None
    about = [k for k in conditions if k.symbols == symbols]
    polynomials = [fraction[0], *(sp.Poly(k.expression, *symbols) for k in about)]
    signs = {
        cell.signs[0]
        for cell in line_cells(polynomials)
        if all(k.admits(s) for k, s in zip(about, cell.signs[1:], strict=True))
    }
    return signs.pop() if len(signs) == 1 and 0 not in signs else None


def _is_regular_on_line(conditions: Conjunction) -> bool:
    """Each root that the conditions allow has a neighbouring interval on which they hold strictly."""
    symbol = next((s for k in conditions for s in k.symbols), sp.Dummy("one"))
    cells = line_cells([sp.Poly(k.expression, symbol) for k in conditions])
    allowed = [all(k.admits(s) for k, s in zip(conditions, cell.signs, strict=True)) for cell in cells]
    strictly = [cell.is_open and all(s > 0 for s in cell.signs) for cell in cells]
    return all(
        strictly[i] if cell.is_open else strictly[i - 1] or strictly[i + 1]
        for i, cell in enumerate(cells)
        if allowed[i]
    )
