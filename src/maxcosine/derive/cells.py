"""Rational points, one in each open cell that polynomials cut space into: open cylindrical decomposition.

The signs of the polynomials are constant on a cell, so that one point decides for the whole of it, exactly.
Variables are eliminated one after the other. Over an open cell of the remaining variables on which no leading
coefficient, discriminant or resultant vanishes, the roots of the polynomials are continuous functions that neither
meet nor disappear: leading coefficients, discriminants and resultants are all that has to be projected
(Strzebonski, Solving systems of strict polynomial inequalities, 2000).
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

import sympy as sp

from maxcosine.derive.real_roots import isolate_roots, points_between

MAX_CELLS = 20_000
MAX_SECONDS = 15.0
MAX_TERMS = {1: 250, 2: 1500, 3: 1500}
"""By number of variables: a resultant that may have more terms is not attempted, for no deadline stops such a step.
The largest take a few seconds."""

Point = Mapping[sp.Symbol, Fraction]


class OutOfBudgetError(Exception):
    """The decomposition was given up; nothing is known."""


class Budget:
    """How much a decomposition may cost. Every step asks, and one too many raises OutOfBudgetError.

    Parameters
    ----------
    seconds : float
        Processor time from now on, so that other processes on the machine change no verdict.
    cells : int
        Number of sample points.
    """

    def __init__(self, seconds: float = MAX_SECONDS, cells: int = MAX_CELLS) -> None:
        self.deadline = time.thread_time() + seconds
        self.cells = cells

    def check(self) -> None:
        """Raise OutOfBudgetError past the deadline."""
        if time.thread_time() > self.deadline:
            raise OutOfBudgetError("out of time")

    def share(self) -> float:
        """Half of the time until the deadline: what one of several decisions may take."""
        return self.seconds_left() / 2

    def seconds_left(self) -> float:
        """Time until the deadline, at least 0."""
        return max(0.0, self.deadline - time.thread_time())

    def count_cell(self) -> None:
        """Account for one sample point."""
        self.check()
        self.cells -= 1
        if self.cells < 0:
            raise OutOfBudgetError("too many cells")


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
        for value in points_between(isolate_roots(here, check=budget.check)):
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
    """Raise OutOfBudgetError if the resultant may have too many terms, or past the deadline."""
    budget.check()
    eliminated, *rest = p.gens
    p_degree, q_degree = p.degree(eliminated), q.degree(eliminated)
    in_box = math.prod(p_degree * q.degree(v) + q_degree * p.degree(v) + 1 for v in rest)
    of_degree = math.comb(p.total_degree() * q.total_degree() + len(rest), len(rest))
    if min(in_box, of_degree) > MAX_TERMS.get(len(rest), 0):
        raise OutOfBudgetError("a resultant with too many terms")


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


def _fix(p: sp.Poly, variable: sp.Symbol, value: Fraction) -> sp.Poly:
    """Substitute for one variable. In an open cell of the projection no polynomial above can vanish."""
    fixed = p.eval(variable, sp.Rational(value.numerator, value.denominator))
    assert not fixed.is_zero, f"{p.as_expr()} vanishes at {variable} = {value}: the projection lost a factor"
    return fixed
