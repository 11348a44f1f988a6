"""Intervals enclose, round outwards, and never call something undefined proved."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from maxcosine.derive.intervals import Interval, UnsupportedError, enclose, is_nonnegative, without_poles

V, S = sp.symbols("v s", real=True)
OO = sp.oo


def band(k: sp.Expr, m: sp.Expr = 1) -> sp.Expr:
    """2 k (1 - v) - k^2 - m: a step k / (ell sq_x) gains at least m on mistakes."""
    return 2 * k * (1 - V) - k**2 - m


def ends(interval: Interval) -> tuple[float, float]:
    return float(interval.low), float(interval.high)


# --- arithmetic ------------------------------------------------------------------------------


def test_operations_enclose_exact_results() -> None:
    rng = np.random.default_rng(5)
    numbers = [Fraction(float(x)) for x in rng.normal(0, 1, 40) * 10.0 ** rng.integers(-200, 200, 40)]
    with np.errstate(all="ignore"):
        for a, b in zip(numbers[::2], numbers[1::2], strict=True):
            x, y = Interval.exactly(a), Interval.exactly(b)
            for found, exact in (
                (x + y, a + b),
                (x + -y, a - b),
                (x * y, a * b),
                (x.reciprocal(), 1 / a),
                (x.power(3), a**3),
                (x.power(4), a**4),
            ):
                low, high = ends(found)
                assert low == -math.inf or Fraction(low) <= exact
                assert high == math.inf or Fraction(high) >= exact


def test_square_roots_enclose_exact_results() -> None:
    for number in (Fraction(2), Fraction(1, 10**300), Fraction(10) ** 300, Fraction(9, 4)):
        low, high = (Fraction(end) for end in ends(Interval.exactly(number).sqrt()))
        assert low**2 <= number <= high**2


@pytest.mark.parametrize(
    "number", [Fraction(9, 10), Fraction(1, 3), Fraction(-1, 10), Fraction(1, 2), Fraction(10) ** 400]
)
def test_rational_numbers_are_not_rounded_before_they_are_enclosed(number: Fraction) -> None:
    low, high = ends(Interval.exactly(number))
    assert Fraction(low) <= number
    assert high == math.inf or number <= Fraction(high)
    assert (low == high) == (number == Fraction(1, 2))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (lambda: Interval(0.0, 1.0) * Interval(2.0, math.inf), (0.0, math.inf)),  # 0 * inf
        (lambda: Interval(0.0, 0.0) * Interval(-math.inf, math.inf), (0.0, 0.0)),
        (lambda: Interval(-1.0, 2.0).reciprocal(), (-math.inf, math.inf)),  # 0 inside
        (lambda: Interval(0.0, 2.0).power(-1), (math.nextafter(0.5, 0), math.inf)),
        (lambda: Interval(-3.0, 2.0).power(2), (0.0, math.nextafter(9.0, 10))),  # even powers are not negative
        (lambda: Interval(-3.0, 2.0).magnitude(), (0.0, 3.0)),
        (lambda: Interval(2.0, math.inf).reciprocal(), (0.0, math.nextafter(0.5, 1))),
    ],
)
def test_special_values(found, expected: tuple[float, float]) -> None:
    with np.errstate(all="ignore"):
        assert ends(found()) == expected


@pytest.mark.parametrize("undefined", [Interval(-1.0, 4.0).sqrt, Interval(0.0, 0.0).reciprocal])
def test_what_may_be_undefined_stays_undefined(undefined) -> None:
    with np.errstate(all="ignore"):
        interval = undefined()
        results = (
            interval,
            interval * Interval(0.0, 0.0),
            interval + Interval(9.0, 9.0),
            interval.power(2),
            interval.power(0),
        )
        assert all(not float(result.low) >= 0 for result in results)


@pytest.mark.parametrize("expression", [sp.sin(V), V ** sp.Rational(1, 3), sp.pi * V, sp.Heaviside(V)])
def test_unknown_functions_are_refused(expression: sp.Expr) -> None:
    with pytest.raises(UnsupportedError):
        enclose(expression, V, Interval(0.0, 1.0))
    assert not is_nonnegative(expression + 1000, V, sp.Integer(0), sp.Integer(1))


def test_enclosures_hold_all_values() -> None:
    expression = (sp.Max(V, 1 - V**3) - sp.Abs(V) / 7) / sp.sqrt(1 + V**2) - sp.Min(
        V, sp.Rational(1, 3)
    ) * V ** sp.Rational(3, 2)
    lows = np.linspace(0, 3, 31)[:-1]
    box = Interval(lows, lows + 0.1)
    found = enclose(expression, V, box)
    function = sp.lambdify(V, expression, "numpy")
    for share in np.linspace(0, 1, 11):
        values = function(lows + 0.1 * share)
        assert np.all((found.low <= values + 1e-12) & (values - 1e-12 <= found.high))


# --- inequalities ----------------------------------------------------------------------------

INSIDE_BAND = [
    1 / sp.sqrt(1 - 2 * V),
    sp.sqrt(1 - V),
    sp.sqrt(sp.sqrt(1 - V)),
    sp.sqrt(1 - V + sp.sqrt(1 - V) - 1),
]


@pytest.mark.parametrize("k", INSIDE_BAND)
def test_curves_inside_the_band_are_proved_though_they_touch_it_at_zero(k: sp.Expr) -> None:
    assert is_nonnegative(band(k), V, -OO, sp.Integer(0))


@pytest.mark.parametrize("k", INSIDE_BAND)
@pytest.mark.parametrize("epsilon", [sp.Rational(1, 10_000), -sp.Rational(1, 10_000)])
def test_curves_a_little_beyond_the_band_are_not_proved(k: sp.Expr, epsilon: sp.Expr) -> None:
    assert not is_nonnegative(band(k + epsilon), V, -OO, sp.Integer(0))


def test_a_curve_that_leaves_the_band_only_far_out_is_not_proved() -> None:
    k = 1 / sp.sqrt(1 - 2 * V)
    assert not is_nonnegative(band(k + sp.Rational(1, 1000) * V**2), V, -OO, sp.Integer(0))
    assert not is_nonnegative(sp.sqrt(1 - V) + V / 10**6, V, -OO, sp.Integer(0))  # negative beyond v = -10^12


def test_a_dip_between_two_boxes_is_not_missed() -> None:
    dip = (V + sp.Rational(1, 3)) ** 2 + sp.sqrt(V**2 + 1) - sp.sqrt(sp.Rational(10, 9))
    assert not is_nonnegative(dip, V, -sp.Integer(2), sp.Integer(0))
    assert is_nonnegative(dip + sp.Rational(1, 10), V, -sp.Integer(2), sp.Integer(0))


def test_undefined_claims_are_not_proved() -> None:
    assert not is_nonnegative(sp.sqrt(V + 1) + 1, V, -sp.Integer(2), sp.Integer(0))
    assert is_nonnegative(sp.sqrt(V + 1) + 1, V, -sp.Integer(1), sp.Integer(0))


def test_both_infinities_have_charts() -> None:
    assert is_nonnegative(sp.sqrt(V**2 + 1) - V, V, -OO, OO) is is_nonnegative(sp.sqrt(V**2 + 1) + V, V, -OO, OO)
    assert is_nonnegative(2 * sp.sqrt(V**2 + 1) - V, V, -OO, OO)
    assert not is_nonnegative(sp.sqrt(V**2 + 1) - 2 * V, V, -OO, OO)
    assert is_nonnegative(sp.sqrt(V) - 2, V, sp.Integer(5), OO)
    assert not is_nonnegative(sp.sqrt(V) - 3, V, sp.Integer(5), OO)


def test_zero_with_several_vanishing_derivatives_is_closed() -> None:
    assert is_nonnegative(sp.sqrt(1 + V**4) - 1, V, sp.Integer(0), sp.Integer(1))
    assert not is_nonnegative(1 - sp.sqrt(1 + V**4), V, sp.Integer(0), sp.Integer(1))
    assert is_nonnegative(1 - sp.sqrt(1 + V**3), V, -sp.Rational(1, 2), sp.Integer(0))
    assert not is_nonnegative(sp.sqrt(1 + V**3) - 1, V, -sp.Rational(1, 2), sp.Integer(0))


def test_powers_are_divided_out_at_infinity() -> None:
    finite = without_poles(sp.sqrt(1 + 2 / S**2) - 1 / S, S)
    assert sp.simplify(finite - (sp.sqrt(S**2 + 2) - 1)) == 0
