"""Open cells: none is lost, whatever the roots look like, and a decomposition that costs too much is given up."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from maxcosine.derive.cells import (
    Budget,
    OutOfBudgetError,
    elimination_order,
    irreducible_factors,
    projections,
    sample_points,
)
from maxcosine.derive.real_roots import isolate_roots, line_cells, simplest_between

U, C, A = sp.symbols("u c a", real=True)


def poly(expression: sp.Expr, *variables: sp.Symbol) -> sp.Poly:
    return sp.Poly(expression, *(variables or (U,)))


def signs(polynomials: list[sp.Expr], point: dict[sp.Symbol, Fraction]) -> tuple[int, ...]:
    values = {s: sp.Rational(x.numerator, x.denominator) for s, x in point.items()}
    return tuple(int(sp.sign(p.subs(values))) for p in polynomials)


# --- roots -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("polynomials", "count"),
    [
        ([U - 1, (U - 1) * (U + 1)], 2),  # a root in common
        ([U**2 - 2, (U**2 - 2) * (U - 1), U * (U**2 - 2)], 4),  # irrational roots in common
        ([U**2 - 2, U**2 - 2, 4 - 2 * U**2], 2),  # the same polynomial again
        ([U * (5 * U - 1), U * (5 * U - 2)], 3),  # a common root at the end of other roots' intervals
        ([U, U - 1, 2 * U - 1, U**2 - 2], 5),  # rational roots are the ends of their neighbours' intervals
        ([U**2 - 2, U - sp.Rational(141421356, 10**8)], 3),  # closer than the isolating intervals are wide
        ([U**2 - 2, U**2 - 2 - sp.Rational(1, 10**12)], 4),
        ([U**3 - 3 * U + 1], 3),
        ([U**2 + 1], 0),
        ([sp.Integer(3)], 0),
        ([(1000 * U - 1) * (1001 * U - 1)], 2),
    ],
)
def test_isolated_roots_are_strictly_apart_and_none_is_lost(polynomials: list[sp.Expr], count: int) -> None:
    roots = isolate_roots([poly(p) for p in polynomials])
    assert len(roots) == count
    assert all(left[1] < right[0] for left, right in itertools.pairwise(roots))
    product = sp.Poly(sp.Mul(*polynomials), U).sqf_part()
    for low, high in roots:
        assert product.count_roots(sp.Rational(low), sp.Rational(high)) == 1


def test_cells_of_a_line_hold_the_sign_at_roots_of_any_multiplicity() -> None:
    # (u^2 - 2)^2 touches zero at +-sqrt(2); u + 3 is nonzero there, and -3 is rational.
    cells = line_cells([poly((U**2 - 2) ** 2), poly(U + 3)])
    assert [cell.signs for cell in cells] == [(1, -1), (1, 0), (1, 1), (0, 1), (1, 1), (0, 1), (1, 1)]
    assert [cell.is_open for cell in cells] == [True, False] * 3 + [True]
    assert cells[1].sample == -3
    assert cells[3].sample is None


def test_roots_can_be_narrowed() -> None:
    ((low, high),) = isolate_roots([poly(U**3 - 2)], Fraction(1, 10**9))
    assert high - low <= Fraction(1, 10**9)
    assert low**3 < 2 < high**3


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ("0", "1", "1/2"),
        ("-1", "1", "0"),
        ("1/3", "1/2", "2/5"),
        ("3", "4", "7/2"),
        ("-1/2", "-1/3", "-2/5"),
        ("0", "1/7", "1/8"),
    ],
)
def test_simplest_number_between_excludes_the_ends(low: str, high: str, expected: str) -> None:
    assert simplest_between(Fraction(low), Fraction(high)) == Fraction(expected)


# --- decompositions --------------------------------------------------------------------------


def test_every_combination_of_signs_that_sampling_finds_has_a_cell() -> None:
    rng = np.random.default_rng(3)
    monomials = [U**i * C**j for i in range(3) for j in range(3)]
    for _ in range(12):
        polynomials = [
            sum((int(k) * m for k, m in zip(rng.integers(-2, 3, 9), monomials, strict=True)), U - C) for _ in range(2)
        ]
        polynomials = [p for p in polynomials if p.free_symbols]
        cut = [poly(p, C, U) for p in polynomials]
        found = {signs(polynomials, point) for point in sample_points(cut, (C, U), Budget())}
        points = rng.normal(0, 3, (2, 5000))
        values = [np.broadcast_to(sp.lambdify((U, C), p)(*points), 5000) for p in polynomials]
        clear = np.all([np.abs(v) > 1e-6 for v in values], axis=0)
        sampled = set(zip(*(np.sign(v[clear]).astype(int).tolist() for v in values), strict=True))
        assert sampled <= found


@pytest.mark.parametrize("order", list(itertools.permutations((U, C, A))))
def test_a_cell_of_volume_one_in_a_million_million_is_found_in_any_order(order: tuple[sp.Symbol, ...]) -> None:
    ball = (U - 1) ** 2 + (C + sp.Rational(1, 3)) ** 2 + (A - sp.Rational(1, 2)) ** 2 - sp.Rational(1, 10**8)
    points = sample_points([poly(ball, *order)], order, Budget())
    assert any(signs([ball], point) == (-1,) for point in points)


def test_cells_between_curves_that_touch_are_not_lost() -> None:
    # c = u^2 and c = 2 u - 1 touch at u = 1, c = 1; between them is a cell on either side of u = 1.
    curves = [C - U**2, C - 2 * U + 1]
    points = list(sample_points([poly(p, C, U) for p in curves], (C, U), Budget()))
    between = [point for point in points if signs(curves, point) == (-1, 1)]
    assert {point[U] < 1 for point in between} == {True, False}


def test_a_polynomial_that_vanishes_on_a_whole_line_is_cut_there() -> None:
    # u c + u^2 - u vanishes identically at u = 0; u is a factor, and a leading coefficient below.
    product = U * C + U**2 - U
    (below, above) = (
        {p.as_expr() for p in level} for level in reversed(projections([poly(product, C, U)], (C, U), Budget()))
    )
    assert below == {U}
    assert above == {C + U - 1}


def test_decomposition_is_the_same_every_time() -> None:
    polynomials = [poly(p, C, U, A) for p in (A * U * C - 1, U**2 + C**2 - A, U - C)]
    first, second = (list(sample_points(polynomials[::step], (C, U, A), Budget())) for step in (1, -1))
    assert first == second


def test_factors_appear_once_whatever_their_sign_and_multiplicity() -> None:
    factors = irreducible_factors([(U - C) ** 2 * U, (C - U) / 3, sp.Integer(5)], (U, C), Budget())
    assert [p.as_expr() for p in factors] == [U, U - C]


def test_variables_of_low_degree_are_eliminated_first() -> None:
    polynomials = [poly(U**4 * C - 1, U, C), poly(U * A**2 + C, U, C, A)]
    assert elimination_order(polynomials, [A, C, U]) == [C, A, U]


@pytest.mark.parametrize("budget", [Budget(seconds=-1), Budget(cells=5)])
def test_running_out_of_budget_raises(budget: Budget) -> None:
    with pytest.raises(OutOfBudgetError):
        list(sample_points([poly(U**2 + C**2 - 1, C, U), poly(C - U**3, C, U)], (C, U), budget))


def test_huge_resultants_are_not_attempted() -> None:
    p, q = (sum((A + k) * U**i * C ** (15 - i) for i in range(16)) - k for k in (2, 3))
    with pytest.raises(OutOfBudgetError, match="too many terms"):
        projections([poly(p, C, U, A), poly(q, C, U, A)], (C, U, A), Budget())
