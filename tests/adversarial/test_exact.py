"""The exact geometry, where the answer is known."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.adversarial.exact import float_above, float_below, nearest_point, sqrt_above, sqrt_below, whole
from tests.reference import maximal_margin


def points_of(X):
    numbers, unit = whole(X.ravel())
    return [numbers[start : start + X.shape[1]] for start in range(0, len(numbers), X.shape[1])], unit


@pytest.mark.parametrize(
    ("points", "square"),
    [
        ([(3, 4)], 25),
        ([(1, 0), (0, 1)], Fraction(1, 2)),
        ([(1, 0), (3, 1)], 1),
        ([(1, 0), (0, 1), (1, 1), (5, -3)], Fraction(1, 2)),
        ([(1, 2), (-1, -2)], 0),
        ([(1, 0, 0), (-1, 1, 0), (-1, -1, 0), (0, 0, 7)], 0),
        ([(1, 0, 0), (0, 1, 0), (0, 0, 1)], Fraction(1, 3)),
    ],
)
def test_nearest_points_of_small_hulls(points, square):
    nearest = nearest_point(points)
    assert nearest.sq_margin == square
    assert nearest.separable == (square > 0)


@pytest.mark.parametrize("gap", [1e-3, 1e-9, 1e-15])
def test_nearly_equal_rows_of_opposite_labels_lose_nothing(gap):
    a, b = (1.0, 1.0), (1.0, 1.0 + gap)
    (p, q), unit = points_of(np.array([a, np.negative(b)]))
    exact_gap = Fraction(b[1]) - 1
    # The hull is a segment; the origin's distance is the area of the parallelogram by the segment's length.
    assert nearest_point([p, q], unit).sq_margin == exact_gap**2 / (4 + (2 + exact_gap) ** 2)


@pytest.mark.parametrize("seed", range(20))
def test_random_hulls_agree_with_a_quadratic_program(seed):
    random = np.random.default_rng(seed)
    X, Y = random.normal(size=(int(random.integers(1, 40)), 5)), np.ones(1)
    X[:, 0] = np.abs(X[:, 0]) + 0.1
    points, unit = points_of(X)
    nearest = nearest_point(points, unit)
    assert math.sqrt(nearest.sq_margin) == pytest.approx(maximal_margin(X, np.repeat(Y, len(X))), rel=1e-7)
    # What proves it: the separator attains the distance.
    attained = min(sum(w * x for w, x in zip(nearest.direction, point, strict=True)) for point in points)
    length = sum(w * w for w in nearest.direction)
    assert Fraction(attained**2, length) * unit**2 == nearest.sq_margin


def test_square_roots_and_floats_are_enclosed():
    for square in (Fraction(2), Fraction(1, 3), Fraction(10) ** 90, Fraction(1, 10**90), Fraction(9, 4)):
        low, high = sqrt_below(square), sqrt_above(square)
        assert low**2 <= square <= high**2
        assert high <= low * (1 + Fraction(1, 2**150))
        assert Fraction(float_below(low)) <= low <= high <= Fraction(float_above(high))
    assert sqrt_below(Fraction(9, 4)) == sqrt_above(Fraction(9, 4)) == Fraction(3, 2)
