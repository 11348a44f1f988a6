"""Lemma 3 by its cases, and the learners and the merge that it yields."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from maxcosine import maximise, phi
from tests.reference import cosine, maximise_by_grid, norm

CASES = range(7)  # 0 is the degenerate one
BOUNDS = st.floats(0.1, 10)


def case_of(r, p, s, q, t):
    """Lemma 3's table; 0 is the degenerate case."""
    d, e = r - p * t, p * s - r * t * q
    if d == 0:
        return 1 if p > 0 else 2 if p < 0 else 0
    if d > 0:
        return 3 if e >= 0 else 4
    return 5 if e >= 0 else 6


@st.composite
def forms(draw, case):
    """r, p, s, q, t that fall under `case`, found from the signs of d and e."""
    size = st.integers(1, 24).map(lambda n: n / 8)  # few digits, so that d = 0 is exact
    q, gap, t = draw(size), draw(size), draw(size) * draw(st.sampled_from((-1, 0, 1)))
    if case <= 2:
        d, p = 0.0, draw(size) * (0, 1, -1)[case]
    else:
        d, e = draw(size) * (1 if case in (3, 4) else -1), draw(size) * (1 if case in (3, 5) else -1)
        p = (e + d * q * t) / gap
    form = p * t + d, p, q * t * t + gap, q, t
    assert case_of(*form) == case
    return form


def each_case(test):
    return pytest.mark.parametrize("case", CASES)(settings(max_examples=40, deadline=None)(test))


@each_case
@given(st.data())
def test_every_case_agrees_with_looking_everywhere(case, data):
    form = data.draw(forms(case))
    found, (argmax, maximum) = maximise(*form), maximise_by_grid(*form)
    assert found.case == case
    assert found.maximum == pytest.approx(maximum, rel=1e-9, abs=1e-11)
    if not math.isclose(found.argmax, argmax, rel_tol=1e-3):  # then Phi is as good as flat between them
        assert phi(min(found.argmax, 1e15), *form) == pytest.approx(maximum, rel=1e-9, abs=1e-11)


@each_case
@given(st.data())
def test_the_maximum_is_attained(case, data):
    _, p, _, q, _ = form = data.draw(forms(case))
    argmax, maximum, _ = maximise(*form)
    value = p / math.sqrt(q) if argmax == math.inf else phi(argmax, *form)
    assert argmax >= 0
    assert maximum == pytest.approx(value, rel=1e-9, abs=1e-12)


@each_case
@given(st.data(), st.floats(0, 1e6))
def test_no_step_does_better(case, data, x):
    form = data.draw(forms(case))
    assert phi(x, *form) <= maximise(*form).maximum + 1e-9


def test_the_cases_are_complete():
    """All the small forms there are: every case occurs, case 6 with both of its ends."""
    numbers = (-2.0, -1.0, 0.0, 1.0, 2.0)
    reached = set()
    for r, p, t, q, gap in itertools.product(numbers, numbers, numbers, (1.0, 3.0), (1.0, 2.0)):
        form = r, p, q * t * t + gap, q, t
        found = maximise(*form)
        assert found.case == case_of(*form)
        reached.add((found.case, found.argmax == math.inf))
    assert {case for case, _ in reached} == set(CASES)
    assert {(6, True), (6, False)} <= reached


@settings(deadline=None)
@given(BOUNDS, BOUNDS, BOUNDS, BOUNDS)
def test_lemma_2_is_t_equal_to_0(r, p, s, q):
    argmax, maximum, _ = maximise(r, p, s, q, 0.0)
    assert argmax == pytest.approx(p * s / (r * q))
    assert maximum == pytest.approx(math.sqrt(r * r / s + p * p / q))


# Learners recovered


@settings(max_examples=300, deadline=None)
@given(BOUNDS, BOUNDS, st.floats(-0.99, 0.99))
def test_naromma_is_the_maximiser_of_its_bound(ell, sq_x, cos):
    gamma = cos * math.sqrt(sq_x)
    assume(abs(ell * gamma - 1) > 1e-6)  # away from the borders between the types
    assume(abs(ell * sq_x - gamma) > 1e-6)
    argmax, maximum, case = maximise(ell, 1.0, 1.0, sq_x, gamma / sq_x)
    if gamma >= 1 / ell:
        assert (argmax, maximum, case) == (0.0, ell, 4)  # type I
    elif gamma >= sq_x * ell:
        assert (argmax, case) == (math.inf, 5)  # type II: w becomes y a
        assert maximum == pytest.approx(1 / math.sqrt(sq_x))
    else:
        assert case == 3  # type III
        assert argmax == pytest.approx((1 - ell * gamma) / (ell * sq_x - gamma))
        assert maximum**2 == pytest.approx(ell**2 + (1 - ell * gamma) ** 2 / (sq_x - gamma**2))


@settings(deadline=None)
@given(BOUNDS, BOUNDS)
def test_cmcp_is_the_maximiser_of_its_bound(ell, sq_x):
    argmax, maximum, _ = maximise(ell, 1.0, 1.0, sq_x, 0.0)
    assert argmax == pytest.approx(1 / (ell * sq_x))
    assert maximum**2 == pytest.approx(ell**2 + 1 / sq_x)


# The merge of two hypotheses: r = ell_1, p = ell_2, s = q = 1, t = their cosine


@settings(max_examples=300, deadline=None)
@given(BOUNDS, BOUNDS, st.floats(-0.99, 0.99))
def test_the_merge_of_two_hypotheses_has_the_closed_form(ell_1, ell_2, c):
    weights = ell_1 - c * ell_2, ell_2 - c * ell_1
    assume(min(map(abs, weights)) > 1e-6)
    ratio, ell, _ = maximise(ell_1, ell_2, 1.0, 1.0, c)
    if min(weights) > 0:
        assert ratio == pytest.approx(weights[1] / weights[0])
        assert ell**2 == pytest.approx((ell_1**2 + ell_2**2 - 2 * c * ell_1 * ell_2) / (1 - c * c))
    else:
        assert ratio == (0.0 if ell_1 > ell_2 else math.inf)
        assert ell == max(ell_1, ell_2)


@pytest.mark.parametrize("seed", range(20))
def test_the_merge_of_two_hypotheses_is_the_shortest_point_between_them(seed):
    u_1, u_2 = np.random.default_rng(seed).normal(size=(2, 3))  # points of the hull, w / Lambda
    merged = maximise(1 / norm(u_1), 1 / norm(u_2), 1.0, 1.0, cosine(u_1, u_2))

    def sq_norm(share):
        return np.sum(((1 - share) * u_1 + share * u_2) ** 2)

    inside = minimize_scalar(sq_norm, bounds=(0, 1), method="bounded", options={"xatol": 1e-12}).fun
    shortest = math.sqrt(min(inside, sq_norm(0), sq_norm(1)))
    assert 1 / merged.maximum == pytest.approx(shortest)
