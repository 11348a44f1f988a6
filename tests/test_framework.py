"""Lemma 1, and the form Phi that every cosine bound takes."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from maxcosine import cosine_bound, phi
from tests import reference
from tests.reference import cosine, norm

NUMBERS = st.floats(-10, 10)
VECTORS = arrays(np.float64, 4, elements=NUMBERS)


@st.composite
def forms(draw):
    """r, p, s, q, t with a radicand that is positive everywhere: q > 0 and s > q t^2."""
    r, p, t = draw(NUMBERS), draw(NUMBERS), draw(st.floats(-3, 3))
    q, gap = draw(st.floats(0.1, 10)), draw(st.floats(0.01, 10))
    return r, p, q * t * t + gap, q, t


@st.composite
def situations(draw):
    """A hypothesis, a separator of length 1, a signed example y a, and a relative step."""
    w, separator, a = draw(VECTORS), draw(VECTORS), draw(VECTORS)
    assume(min(norm(w), norm(separator), norm(a)) > 1e-3)
    x = draw(st.floats(0, 10))
    after = w + x * norm(w) * a
    assume(norm(after) > 1e-3 * norm(w) * (1 + x * norm(a)))  # else its direction is rounding
    return w, separator / norm(separator), a, x, after


def guaranteed(w, separator, a, x, margin):
    return cosine_bound(x, cosine(w, separator), margin, np.dot(a, a), np.dot(w, a) / norm(w))


@settings(max_examples=200, deadline=None)
@given(forms(), st.floats(0, 100))
def test_phi_is_the_quotient_of_lemma_3(form, x):
    assert phi(x, *form) == pytest.approx(reference.phi(x, *form), rel=1e-12, abs=1e-300)


@settings(max_examples=200, deadline=None)
@given(situations(), st.floats(0, 10))
def test_lemma_1_no_step_leads_below_the_cosine_bound(situation, slack):
    w, separator, a, x, after = situation
    margin = np.dot(separator, a) - slack  # any margin that the example has
    assert cosine(after, separator) >= guaranteed(w, separator, a, x, margin) - 1e-9


@settings(max_examples=200, deadline=None)
@given(situations())
def test_lemma_1_is_tight_for_an_example_on_the_margin(situation):
    w, separator, a, x, after = situation
    bound = guaranteed(w, separator, a, x, np.dot(separator, a))
    assert bound == pytest.approx(cosine(after, separator), abs=1e-9)


@given(st.floats(-1, 1), NUMBERS, st.floats(0.1, 10), st.floats(-0.1, 0.1))
def test_no_step_leaves_the_cosine_where_it_is(start, margin, sq_x, projection):
    assert cosine_bound(0.0, start, margin, sq_x, projection) == start


@settings(deadline=None)
@given(forms())
def test_phi_tends_to_p_over_root_q(form):
    _, p, _, q, _ = form
    assert phi(1e12, *form) == pytest.approx(p / math.sqrt(q), abs=1e-6)


def test_arrays_are_taken_element_by_element():
    x = np.linspace(0, 5, 7)
    assert phi(x, 1.0, 2.0, 3.0, 1.0, -0.5).tolist() == [phi(v, 1.0, 2.0, 3.0, 1.0, -0.5) for v in x]
    sq_x = np.linspace(1, 2, 7)
    expected = [cosine_bound(v, 0.5, 0.1, sq, 0.2) for v, sq in zip(x, sq_x, strict=True)]
    assert cosine_bound(x, 0.5, 0.1, sq_x, 0.2).tolist() == expected


def test_arrays_broadcast():
    x, margins = np.linspace(0, 5, 7), np.array([0.1, 0.2, 0.3])
    table = cosine_bound(x[:, None], 0.5, margins[None, :], 1.0, 0.2)
    assert table.shape == (7, 3)
    assert table[4, 2] == cosine_bound(x[4], 0.5, margins[2], 1.0, 0.2)
