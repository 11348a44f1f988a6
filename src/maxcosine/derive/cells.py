"""Rational points, one in each open cell that polynomials cut space into: open cylindrical decomposition.

The signs of the polynomials are constant on a cell, so that one point decides for the whole of it, exactly.
Variables are eliminated one after the other. Over an open cell of the remaining variables on which no leading
coefficient, discriminant or resultant vanishes, the roots of the polynomials are continuous functions that neither
meet nor disappear: leading coefficients, discriminants and resultants are all that has to be projected
(Strzebonski, Solving systems of strict polynomial inequalities, 2000).

On a line the roots themselves are cells too (:func:`line_cells`), so that statements in one variable are decided at
every point.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import sympy as sp

MAX_CELLS = 20_000
MAX_SECONDS = 15.0
MAX_RESULTANT_DEGREE = 150
"""A resultant whose degree may exceed this is not attempted: one such step could outlast any deadline."""

Point = Mapping[sp.Symbol, Fraction]


class OutOfBudgetError(Exception):
    """The decomposition was given up; nothing is known."""


class Budget:
    """How much a decomposition may cost. Every step asks, and one too many raises OutOfBudgetError.

    Parameters
    ----------
    seconds : float
        Time from now on.
    cells : int
        Number of sample points.
    """

    def __init__(self, seconds: float = MAX_SECONDS, cells: int = MAX_CELLS) -> None:
        self.deadline = time.monotonic() + seconds
        self.cells = cells

    def check(self) -> None:
        """Raise OutOfBudgetError past the deadline."""
        if time.monotonic() > self.deadline:
            raise OutOfBudgetError("out of time")

    def seconds_left(self) -> float:
        """Time until the deadline, at least 0."""
        return max(0.0, self.deadline - time.monotonic())

    def count_cell(self) -> None:
        """Account for one sample point."""
        self.check()
        self.cells -= 1
        if self.cells < 0:
            raise OutOfBudgetError("too many cells")


# --- one variable ----------------------------------------------------------------------------


@dataclass(frozen=True)
class LineCell:
    """An open interval or a root: the signs of the polynomials there.

    Attributes
    ----------
    sample : Fraction or None
        A rational point of the cell; None for an irrational root.
    signs : tuple of int
        The sign of each polynomial on the cell.
    is_open : bool
        Whether the cell is an interval and not a root.
    """

    sample: Fraction | None
    signs: tuple[int, ...]
    is_open: bool


def line_cells(polynomials: Sequence[sp.Poly]) -> list[LineCell]:
    """Cut the line at all real roots, from left to right.

    Parameters
    ----------
    polynomials : sequence of Poly
        In one variable, with rational coefficients; constants are allowed.

    Returns
    -------
    list of LineCell
        Intervals and roots in turn, an interval first and last.
    """
    square_free = [p.sqf_part() for p in polynomials]
    roots = isolate_roots(square_free)
    gaps = [_sign_cell(polynomials, point) for point in _points_between(roots)]
    at_roots = [_sign_root(polynomials, square_free, a, b) for a, b in roots]
    return [gaps[0], *itertools.chain.from_iterable(zip(at_roots, gaps[1:], strict=True))]


def _sign_cell(polynomials: Sequence[sp.Poly], point: Fraction) -> LineCell:
    return LineCell(point, tuple(_sign(_value(p, point)) for p in polynomials), is_open=True)


def _sign_root(polynomials: Sequence[sp.Poly], square_free: Sequence[sp.Poly], a: Fraction, b: Fraction) -> LineCell:
    """Signs at the only root in [a, b]: a polynomial vanishes there, or has no root in [a, b] at all."""
    signs = []
    for p, reduced in zip(polynomials, square_free, strict=True):
        vanishes = _value(reduced, a) * _value(reduced, b) < 0 if a < b else _value(p, a) == 0
        signs.append(0 if vanishes else _sign(_value(p, a)))
    return LineCell(a if a == b else None, tuple(signs), is_open=False)


def isolate_roots(polynomials: Sequence[sp.Poly]) -> list[tuple[Fraction, Fraction]]:
    """Intervals around the real roots of polynomials in one variable, one a root.

    Parameters
    ----------
    polynomials : sequence of Poly
        In one variable, with rational coefficients.

    Returns
    -------
    list of (Fraction, Fraction)
        Closed intervals from left to right that have no point in common. A root of several polynomials appears
        once. An interval of length 0 is a rational root.
    """
    # Intervals isolated for each polynomial alone may overlap; those of the product cannot.
    product = math.prod(p for p in polynomials if p.degree() > 0)
    if product == 1:
        return []
    product = product.sqf_part().clear_denoms(convert=True)[1]
    slope = product.diff()
    roots = [(_fraction(a), _fraction(b)) for a, b in product.intervals(sqf=True)]
    for i in range(len(roots) - 1):
        # SymPy's intervals may touch, and the end of one may be the root beside it.
        while roots[i][1] >= roots[i + 1][0]:
            roots[i] = _bisect(product, slope, *roots[i])
            roots[i + 1] = _bisect(product, slope, *roots[i + 1])
    return roots


def _bisect(f: sp.Poly, slope: sp.Poly, a: Fraction, b: Fraction) -> tuple[Fraction, Fraction]:
    """Halve an open interval that has one simple root of f inside."""
    if a == b:
        return a, b
    middle = (a + b) / 2
    at_middle = _sign(_value(f, middle))
    if at_middle == 0:
        return middle, middle
    # If a is itself a root, the sign just right of it is that of the slope.
    right_of_a = _sign(_value(f, a)) or _sign(_value(slope, a))
    return (a, middle) if at_middle != right_of_a else (middle, b)


def _points_between(roots: Sequence[tuple[Fraction, Fraction]]) -> list[Fraction]:
    """One rational point in each open interval that the roots leave."""
    if not roots:
        return [Fraction(0)]
    first, last = Fraction(math.floor(roots[0][0]) - 1), Fraction(math.ceil(roots[-1][1]) + 1)
    inner = [simplest_between(left[1], right[0]) for left, right in itertools.pairwise(roots)]
    return [first, *inner, last]


def simplest_between(low: Fraction, high: Fraction) -> Fraction:
    """The rational number of smallest denominator strictly between two numbers.

    Parameters
    ----------
    low, high : Fraction
        The ends, low < high.

    Returns
    -------
    Fraction
        Of the numbers of smallest denominator, the one nearest to 0.

    Examples
    --------
    >>> simplest_between(Fraction(3, 10), Fraction(3, 5))
    Fraction(1, 2)
    """
    if low < 0 < high:
        return Fraction(0)
    if high <= 0:
        return -simplest_between(-high, -low)
    whole = math.floor(low)
    if whole + 1 < high:
        return Fraction(whole + 1)
    if low == whole:  # above low there is no integer; 1 / t fits for a large enough t
        return whole + Fraction(1, math.floor(1 / (high - whole)) + 1)
    return whole + 1 / simplest_between(1 / (high - whole), 1 / (low - whole))


# --- several variables -----------------------------------------------------------------------


def sample_points(
    polynomials: Sequence[sp.Poly],
    variables: Sequence[sp.Symbol],
    budget: Budget,
    keep: Callable[[Point], bool] = lambda point: True,
) -> Iterator[dict[sp.Symbol, Fraction]]:
    """One rational point in every open cell of the polynomials (sometimes more than one).

    Parameters
    ----------
    polynomials : sequence of Poly
        With rational coefficients, none identically zero.
    variables : sequence of Symbol
        In the order of elimination: the first is eliminated first, and chosen last.
    budget : Budget
        What the decomposition may cost.
    keep : callable
        Called with the values of the variables chosen so far; if False, the cells above are skipped.

    Yields
    ------
    dict
        Symbols to values.
    """
    levels = projections(polynomials, variables, budget)

    def lift(
        levels: Sequence[Sequence[sp.Poly]], point: dict[sp.Symbol, Fraction]
    ) -> Iterator[dict[sp.Symbol, Fraction]]:
        if not levels:
            yield point
            return
        *above, here = levels
        variable = variables[len(above)]
        for value in _points_between(isolate_roots(here)):
            budget.count_cell()
            extended = {**point, variable: value}
            if keep(extended):
                yield from lift([[_fix(p, variable, value) for p in level] for level in above], extended)

    yield from lift(levels, {})


def projections(polynomials: Sequence[sp.Poly], variables: Sequence[sp.Symbol], budget: Budget) -> list[list[sp.Poly]]:
    """For each variable the factors that cut its line, after all variables before it were eliminated.

    Parameters
    ----------
    polynomials : sequence of Poly
        With rational coefficients.
    variables : sequence of Symbol
        In the order of elimination.
    budget : Budget
        What the projections may cost.

    Returns
    -------
    list of list of Poly
        Irreducible and pairwise different; level i holds polynomials in variables[i:] that contain variables[i].
    """
    levels = []
    current = irreducible_factors([p.as_expr() for p in polynomials], variables, budget)
    for i, variable in enumerate(variables):
        here = [p for p in current if p.degree(variable) > 0]
        levels.append(here)
        rest = variables[i + 1 :]
        if rest:
            below = [p.as_expr() for p in current if p.degree(variable) <= 0]
            current = irreducible_factors([*below, *_project(here, budget)], rest, budget)
    return levels


def _project(polynomials: Sequence[sp.Poly], budget: Budget) -> list[sp.Expr]:
    """Leading coefficients, discriminants and resultants with respect to the first generator."""
    found = [sp.Poly(p.as_expr(), p.gens[0]).LC() for p in polynomials]
    for p in polynomials:
        if p.degree() > 1:
            _refuse_large(p, p, budget)
            found.append(p.discriminant().as_expr())
    for p, q in itertools.combinations(polynomials, 2):
        _refuse_large(p, q, budget)
        found.append(p.resultant(q).as_expr())
    return found


def _refuse_large(p: sp.Poly, q: sp.Poly, budget: Budget) -> None:
    budget.check()
    if p.degree() * q.total_degree() + q.degree() * p.total_degree() > MAX_RESULTANT_DEGREE:
        raise OutOfBudgetError("a resultant of too large a degree")


def irreducible_factors(
    expressions: Sequence[sp.Expr], variables: Sequence[sp.Symbol], budget: Budget
) -> list[sp.Poly]:
    """The irreducible factors of polynomials, each once, constants left out, in an order that depends on them alone.

    Parameters
    ----------
    expressions : sequence of Expr
        Polynomials with rational coefficients, none identically zero.
    variables : sequence of Symbol
        Their variables.
    budget : Budget
        What factoring may cost.

    Returns
    -------
    list of Poly
        Primitive, with integer coefficients.
    """
    found = {}
    for expression in expressions:
        budget.check()
        polynomial = sp.Poly(expression, *variables)
        assert not polynomial.is_zero, "different irreducible factors have a common factor"
        integral = polynomial.clear_denoms(convert=True)[1]
        for factor, _ in integral.factor_list()[1]:
            found[tuple(factor.terms())] = factor
    return [found[key] for key in sorted(found, key=lambda terms: (len(terms), terms))]


def elimination_order(polynomials: Sequence[sp.Poly], variables: Sequence[sp.Symbol]) -> list[sp.Symbol]:
    """Variables of low degree first, then those in few terms, then by name (Brown's heuristic).

    Parameters
    ----------
    polynomials : sequence of Poly
        What will be decomposed.
    variables : sequence of Symbol
        All of their variables.

    Returns
    -------
    list of Symbol
        In the order of elimination.
    """

    def cost(variable: sp.Symbol) -> tuple[int, int, int, str]:
        degree = total = terms = 0
        for p in polynomials:
            if variable in p.gens:
                i = p.gens.index(variable)
                with_it = [monomial for monomial in p.monoms() if monomial[i]]
                degree = max(degree, max((monomial[i] for monomial in with_it), default=0))
                total = max(total, max((sum(monomial) for monomial in with_it), default=0))
                terms += len(with_it)
        return degree, total, terms, variable.name

    return sorted(variables, key=cost)


# --- numbers ---------------------------------------------------------------------------------


def _fix(p: sp.Poly, variable: sp.Symbol, value: Fraction) -> sp.Poly:
    """Substitute for one variable. In an open cell of the projection no polynomial above can vanish."""
    fixed = p.eval(variable, sp.Rational(value.numerator, value.denominator))
    assert not fixed.is_zero, f"{p.as_expr()} vanishes at {variable} = {value}: the projection lost a factor"
    return fixed


def _value(p: sp.Poly, point: Fraction) -> Fraction:
    """Evaluate by Horner's rule in Fractions."""
    total = Fraction(0)
    for coefficient in p.all_coeffs():
        total = total * point + _fraction(coefficient)
    return total


def _fraction(number: sp.Rational) -> Fraction:
    return Fraction(int(number.p), int(number.q))


def _sign(value: Fraction) -> int:
    return (value > 0) - (value < 0)
