"""The step that a generated function finds is the best one: checked by brute force, and by Lemma 3."""

import math
from types import FunctionType

import numpy as np
import pytest
import sympy as sp

from maxcosine.derive.numeric import maximiser_source
from maxcosine.derive.symbols import c, u, z
from maxcosine.framework import maximise
from tests.rules.streams import learnt, stream


def lemma_1(cosine):
    return (u + z) / sp.sqrt(1 + z**2 + 2 * cosine * z)


NAROMMA = lemma_1(c)
BOUNDS = {
    "naromma": NAROMMA,
    "mean of two cosines": (lemma_1(c) + lemma_1(-c)) / 2,
    "quartic radicand": (u + z) / sp.sqrt(1 + z**2 + z**4 / 4 + 2 * c * z * (1 + z**2 / 4)),
    "two humps": (1 + u) / (1 + (8 * z - 1) ** 2) + (2 + c) / (1 + (z / 8 - 1) ** 2),
    "max": sp.Max(NAROMMA, (u + 2 * z) / sp.sqrt(1 + z**4)),
    "min": sp.Min(NAROMMA, (u + 1) / (1 + z) + sp.Abs(z - c) / 4),
    "largest on a kink": (u + 1) / (1 + sp.Abs(z - 1 - c)),
    "cube root": (u + z) / (1 + z**3 + c * z) ** sp.Rational(1, 3),
    "negative radicand": z * sp.sqrt(u - z) + sp.sqrt(1 - c * z),
}
KINKS = {
    "max in the radicand": (u + z) / sp.sqrt(1 + z**2 + 2 * sp.Max(0, c * z)),
    "lower of two bounds": sp.Min((u + z) / sp.sqrt(1 + z**2), NAROMMA),
    "min in the numerator": sp.Min(2 * u, u + z) / sp.sqrt(1 + z**2 + 2 * c * z),
    "abs in the numerator": (u + sp.Abs(z - c)) / sp.sqrt(1 + z**2),
}
GRID = np.linspace(0.0, 1.0, 20_001)[:-1]  # of s, z = s / (1 - s)


def generated(bound, parameters=()):
    space = {"__name__": "generated"}
    exec(maximiser_source(bound, parameters), space)
    return space


def points(n=1000):
    """Bounds u from 1e-3 to 1e6, and cosines up to 1 - 1e-8 of either sign."""
    random = np.random.default_rng(7)
    lengths = np.exp(random.uniform(-7.0, 14.0, n))
    cosines = random.choice([-1.0, 1.0], n) * (1.0 - 10.0 ** random.uniform(-8.0, 0.0, n))
    return list(zip(lengths.tolist(), cosines.tolist(), strict=True))


@pytest.mark.parametrize("bound", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning", "ignore:divide by zero:RuntimeWarning")
def test_no_step_of_a_grid_is_better(bound):
    compare_with_grid(bound, points())


@pytest.mark.parametrize("bound", KINKS.values(), ids=KINKS)
def test_no_step_of_a_grid_is_better_beside_a_kink(bound):
    compare_with_grid(bound, points(200))


def compare_with_grid(bound, points):
    best_step = generated(bound)["best_step"]
    value = sp.lambdify((z, u, c), bound, "numpy")
    for length, cosine in points:
        step = best_step(length, cosine)
        reached = value(np.float64(min(step, 1e15)), length, cosine)
        on_grid = np.nanmax(value(GRID / (1.0 - GRID), length, cosine))
        assert reached >= on_grid - 1e-9 * abs(on_grid), (length, cosine, step)


def test_step_is_that_of_lemma_3():
    best_step = generated(NAROMMA)["best_step"]
    kinds = set()
    for length, cosine in points():
        expected = maximise(length, 1.0, 1.0, 1.0, cosine).argmax
        kinds.add((expected == 0.0, expected == math.inf))
        assert best_step(length, cosine) == pytest.approx(expected, rel=1e-6, abs=0.0)
    assert len(kinds) == 3  # not moving, a step, and an infinite step


@pytest.mark.parametrize("gap", [1e-15, 1e-12, 1e-9, 1e-6, 1e-3])
def test_step_between_a_long_one_and_an_infinite_one(gap):
    best_step = generated(NAROMMA)["best_step"]
    assert best_step(0.5, 0.5) == math.inf
    assert best_step(0.5, 0.5 + gap) == math.inf
    expected = maximise(0.5, 1.0, 1.0, 1.0, 0.5 - gap).argmax
    assert best_step(0.5, 0.5 - gap) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("bound", "step"),
    [
        (u / (1 + z), 0.0),
        (u + 0 * z, 0.0),  # the same everywhere
        (-sp.Abs(z - 1), 1.0),  # a kink where the charts meet
        (-sp.Abs(z - sp.Rational(1, 4)), 0.25),  # a kink on a point of the scan
        (-((z - 3) ** 4), 3.0),  # no curvature at the top
        (-sp.sqrt(sp.Abs(z - 3)), 3.0),  # infinite slopes
        (sp.Min(z, 3), 3.0),  # flat from there on
        (sp.Min(z, 3, 6 - z), 3.0),
        (sp.Min(z, sp.Rational(1, 3)), 1 / 3),
        (sp.Min(z, 2) * z / (1 + z), math.inf),  # a minimum inside
        (sp.Min(sp.Max(sp.Rational(63, 50), 2 * z), 9 - 12 * z), 9 / 14),  # flat below its peak, in one cell
        (sp.Min(sp.Max(sp.Rational(63, 50), 2 / z), 9 - 12 / z), 14 / 9),
        (sp.Min(1, z**4 - sp.Max(2, z) / 2), 2**0.25),  # a minimum of a maximum
        (-sp.Abs(sp.cbrt(sp.Min(z, 9) - 2)), 2.0),
        (1 - 1 / (1 + z**2), math.inf),  # and flat in the limit
        (z**2 / (1 + z), math.inf),  # grows without bound
        (z / (1 + z), math.inf),
        (sp.sqrt(2 - z) / 1000 + z, 2 - 2.5e-7),  # defined up to 2
        (sp.sqrt(z - 2) - z, 2.25),  # defined from 2 on
        (sp.sqrt(z) - z, 0.25),  # infinite slope at 0
        (1 / (1 + (10**7 * z - 1) ** 2), 1e-7),
        (1 / (1 + (z / 10**7 - 1) ** 2), 1e7),
        (1 / (1 + (10**10 * z - 1) ** 2), 1e-10),  # below the scan
        (sp.sqrt(-1 - z), 0.0),  # defined nowhere
    ],
    ids=str,
)
def test_unusual_bounds(bound, step):
    assert generated(bound)["best_step"](2.0, 0.5) == pytest.approx(step, rel=1e-5, abs=0.0)


def test_parameters_follow_u_and_c_under_any_name():
    slope, part0, theta = sp.symbols("slope part0 theta", real=True)
    best_step = generated(-((z - slope - part0 * theta) ** 2), (theta, slope, part0))["best_step"]
    assert best_step(1.0, 0.0, 3.0, 0.5, 2.0) == pytest.approx(6.5)


def test_symbol_that_is_no_parameter_is_refused():
    with pytest.raises(ValueError, match="the bound has the symbol theta, which is none of u, c, z and parameters"):
        maximiser_source(u + z * sp.Symbol("theta"), ())


RULE = """
from maxcosine import rule


@rule(restarts=True)
def numeric_naromma(margin, sq_w, sq_x, coef_sum, state, params):
    if coef_sum == 0.0:
        return 0.0, 1.0, state
    norm_w, norm_x = math.sqrt(sq_w), math.sqrt(sq_x)
    step = best_step(coef_sum / norm_w * norm_x, margin / (norm_w * norm_x))
    return (0.0, 1.0, state) if step == math.inf else (1.0, step * norm_w / norm_x, state)
"""


def test_compiled_rule_finds_the_steps_of_naromma():
    space = {"__name__": "generated"}
    exec(maximiser_source(NAROMMA, ()) + RULE, space)
    own = space["numeric_naromma"]
    data = stream(11, noise=0.05)
    found, expected = (learnt(each, data) for each in (own, "naromma"))
    assert found.updates_ == expected.updates_
    directions = [model.coef_ / np.linalg.norm(model.coef_) for model in (found, expected)]
    np.testing.assert_allclose(*directions, rtol=1e-6, atol=1e-9)


def test_compiled_function_finds_the_steps_of_the_plain_one():
    numba = pytest.importorskip("numba")
    plain, compiled = generated(BOUNDS["min"]), generated(BOUNDS["min"])
    for name, function in compiled.items():
        if isinstance(function, FunctionType):
            compiled[name] = numba.njit(function, error_model="numpy")
    for length, cosine in points(200):
        expected = plain["best_step"](length, cosine)
        assert compiled["best_step"](length, cosine) == pytest.approx(expected, rel=1e-9)
