"""Section 2 of the paper: Lemma 1, Lemma 3 by its cases, and what follows from them."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize_scalar

from maxcosine import core, cosine_bound, maximise, phi
from maxcosine.framework import ell
from tests import reference
from tests.reference import cosine, maximise_by_grid, norm

NUMBERS = st.floats(-10, 10)
POSITIVE = st.floats(0.1, 10)
COSINES = st.floats(-0.99, 0.99)
VECTORS = arrays(np.float64, 4, elements=NUMBERS)


# Lemma 1


@st.composite
def situations(draw):
    """A hypothesis, a separator of length 1, a signed example y a, a step, and the next hypothesis."""
    w, separator, a = draw(VECTORS), draw(VECTORS), draw(VECTORS)
    assume(min(norm(w), norm(separator), norm(a)) > 1e-3)
    x = draw(st.floats(0, 10))
    after = w + x * norm(w) * a
    assume(norm(after) > 1e-3 * norm(w) * (1 + x * norm(a)))  # otherwise rounding decides its direction
    return w, separator / norm(separator), a, x, after


@given(situations(), st.floats(0, 10))
def test_lemma_1_holds_for_any_margin_and_is_tight_for_the_largest(situation, slack):
    w, separator, a, x, after = situation
    margin = np.dot(separator, a)

    def bound(margin):
        return cosine_bound(x, cosine(w, separator), margin, np.dot(a, a), np.dot(w, a) / norm(w))

    assert cosine(after, separator) >= bound(margin - slack) - 1e-9
    assert cosine(after, separator) == pytest.approx(bound(margin), abs=1e-9)


def test_arrays_broadcast():
    x, margins = np.linspace(0, 5, 7), np.array([0.1, 0.2, 0.3])
    table = cosine_bound(x[:, None], 0.5, margins[None, :], 1.0, 0.2)
    expected = [[cosine_bound(v, 0.5, margin, 1.0, 0.2) for margin in margins] for v in x]
    assert table.tolist() == expected


# Lemma 3


def case_of(r, p, s, q, t):
    """The case in the table of Lemma 3; 0 is the degenerate one."""
    d, e = r - p * t, p * s - r * t * q
    if d == 0:
        return 1 if p > 0 else 2 if p < 0 else 0
    if d > 0:
        return 3 if e >= 0 else 4
    return 5 if e >= 0 else 6


@st.composite
def forms(draw, case):
    """Coefficients r, p, s, q, t of Phi that fall under a case: q > 0 and s > q t^2."""
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


@pytest.mark.parametrize("case", range(7))
@given(data=st.data())
def test_maximum_is_the_one_that_a_search_finds(case, data):
    _, p, _, q, _ = form = data.draw(forms(case))
    argmax, maximum, found_case = maximise(*form)
    assert found_case == case
    assert argmax >= 0
    value = p / math.sqrt(q) if argmax == math.inf else phi(argmax, *form)
    assert maximum == pytest.approx(value, rel=1e-9, abs=1e-12)
    assert maximum == pytest.approx(maximise_by_grid(*form)[1], rel=1e-9, abs=1e-11)
    x = data.draw(st.floats(0, 1e6))
    assert phi(x, *form) == pytest.approx(reference.phi(x, *form), rel=1e-12, abs=1e-300)
    assert phi(x, *form) <= maximum + 1e-9


def test_small_forms_reach_all_cases_and_both_ends_of_case_6():
    numbers = (-2.0, -1.0, 0.0, 1.0, 2.0)
    reached = set()
    for r, p, t, q, gap in itertools.product(numbers, numbers, numbers, (1.0, 3.0), (1.0, 2.0)):
        form = r, p, q * t * t + gap, q, t
        found = maximise(*form)
        assert found.case == case_of(*form)
        assert core.maximise(*form) == found
        reached.add((found.case, found.argmax == math.inf))
    assert {case for case, _ in reached} == set(range(7))
    assert {(6, True), (6, False)} <= reached


def test_core_and_python_maximise_to_the_same_bits():
    random = np.random.default_rng(0)
    r, p, t = random.normal(size=(3, 50_000)) * 10.0 ** random.integers(-8, 8, (3, 50_000))
    q, gap = 10.0 ** random.uniform(-8, 8, (2, 50_000))
    coefficients = [column.tolist() for column in (r, p, q * t * t + gap, q, t)]
    forms = [(r, p, s, q, t) for r, p, s, q, t in zip(*coefficients, strict=True) if s > q * t * t]
    assert len(forms) > 30_000
    in_core = np.array([core.maximise(*form) for form in forms])
    in_python = np.array([maximise(*form) for form in forms])
    assert in_core.tobytes() == in_python.tobytes()


@given(POSITIVE, POSITIVE, POSITIVE, POSITIVE)
def test_lemma_2_is_t_equal_to_0(r, p, s, q):
    argmax, maximum, _ = maximise(r, p, s, q, 0.0)
    assert argmax == pytest.approx(p * s / (r * q))
    assert maximum == pytest.approx(math.sqrt(r * r / s + p * p / q))


# Rules as maximisers of their bounds; CMCP is Lemma 2 with r = ell, p = s = 1


@given(POSITIVE, POSITIVE, COSINES)
def test_naromma_maximises_its_bound(bound, sq_x, cos):
    gamma = cos * math.sqrt(sq_x)
    assume(abs(bound * gamma - 1) > 1e-6)  # away from the borders between the types
    assume(abs(bound * sq_x - gamma) > 1e-6)
    argmax, maximum, case = maximise(bound, 1.0, 1.0, sq_x, gamma / sq_x)
    if gamma >= 1 / bound:
        assert (argmax, maximum, case) == (0.0, bound, 4)  # type I
    elif gamma >= sq_x * bound:
        assert (argmax, case) == (math.inf, 5)  # type II: w becomes y a
        assert maximum == pytest.approx(1 / math.sqrt(sq_x))
    else:
        assert case == 3  # type III
        assert argmax == pytest.approx((1 - bound * gamma) / (bound * sq_x - gamma))
        assert maximum**2 == pytest.approx(bound**2 + (1 - bound * gamma) ** 2 / (sq_x - gamma**2))


# The merge of two hypotheses: r and p are their bounds, s = q = 1, t is their cosine


@given(POSITIVE, POSITIVE, COSINES)
def test_merge_of_two_hypotheses_has_a_closed_form(ell_1, ell_2, c):
    weights = ell_1 - c * ell_2, ell_2 - c * ell_1
    assume(min(map(abs, weights)) > 1e-6)
    ratio, merged, _ = maximise(ell_1, ell_2, 1.0, 1.0, c)
    if min(weights) > 0:
        assert ratio == pytest.approx(weights[1] / weights[0])
        assert merged**2 == pytest.approx((ell_1**2 + ell_2**2 - 2 * c * ell_1 * ell_2) / (1 - c * c))
    else:
        assert ratio == (0.0 if ell_1 > ell_2 else math.inf)
        assert merged == max(ell_1, ell_2)


def test_merge_of_two_hypotheses_is_the_shortest_point_between_them():
    for u_1, u_2 in np.random.default_rng(0).normal(size=(20, 2, 3)):  # points of the hull, w / Lambda
        merged = maximise(1 / norm(u_1), 1 / norm(u_2), 1.0, 1.0, cosine(u_1, u_2))

        def sq_norm(share, u_1=u_1, u_2=u_2):
            return np.sum(((1 - share) * u_1 + share * u_2) ** 2)

        inside = minimize_scalar(sq_norm, bounds=(0, 1), method="bounded", options={"xatol": 1e-12}).fun
        shortest = math.sqrt(min(inside, sq_norm(0), sq_norm(1)))
        assert 1 / merged.maximum == pytest.approx(shortest)


def test_ell_is_0_where_the_hypothesis_is_0():
    assert ell(3.0, 0.0) == 0.0
    assert ell(np.array([3.0, 1.0]), np.array([1.5, 0.0])).tolist() == [2.0, 0.0]
