"""The compiled learner does what the reference does, after every example."""

import numpy as np
import pytest

from maxcosine.onepass import OnePassState
from tests.onepass.learning import assert_equals_reference, distance, learn, margins_of
from tests.onepass.streams import STREAMS, binary, joint, late_classes
from tests.onepass_reference import OnePassReference

TOLERANCE = 1e-9

# A margin is a difference of terms of about the size of the usual margin, 1, that may cancel.
SMALLEST_MARGIN = 1e-3


def margins_differ(ours, theirs):
    return np.abs(ours - theirs).max() / max(np.abs(theirs).max(), SMALLEST_MARGIN)


@pytest.mark.parametrize("name", STREAMS)
def test_every_example_changes_the_state_as_in_the_reference(name):
    n_classes, make = STREAMS[name]
    X, codes, weights = make()
    state = OnePassState.create(X.shape[1], n_classes=n_classes)
    reference = OnePassReference(X.shape[1], n_classes)
    weights = np.ones(len(X)) if weights is None else weights
    for t, (x, code, weight) in enumerate(zip(X, codes, weights, strict=True)):
        row = slice(t, t + 1)
        margins, predicted = learn(state, X[row], codes[row], weights[row], sparse=t % 2 == 1)
        expected, expected_class = reference.learn(x, code, weight)
        assert margins_differ(margins[0, : len(expected)], expected) <= TOLERANCE, t
        # Equal margins of two classes may be told apart by rounding.
        if np.abs(expected).max() > TOLERANCE:
            assert predicted[0] == expected_class, t
        if t < 40 or t % 10 == 0:  # comparing everything takes longer than learning
            assert_equals_reference(state, reference, TOLERANCE)
    assert_equals_reference(state, reference, TOLERANCE)


@pytest.mark.parametrize("name", STREAMS)
def test_scores_of_rows_that_are_not_learnt(name):
    n_classes, make = STREAMS[name]
    X, codes, weights = make()
    half = len(X) // 2
    state = OnePassState.create(X.shape[1], n_classes=n_classes)
    reference = OnePassReference(X.shape[1], n_classes)
    learn(state, X[:half], codes[:half], None if weights is None else weights[:half])
    for t in range(half):
        reference.learn(X[t], codes[t], 1.0 if weights is None else weights[t])
    before = state.copy()
    expected = np.array([reference.margins(x) for x in X])
    for sparse in (False, True):
        assert distance(margins_of(state, X, sparse=sparse), expected) <= TOLERANCE
    for ours, old in zip(state.arrays, before.arrays, strict=True):
        assert ours.tobytes() == old.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("make", [binary, joint])
def test_thousands_of_rows(make):
    """Sums that are corrected at T = 2^k, and by every row, do not drift."""
    X, codes, _ = make(5000)
    n_classes = codes.max() + 1
    state, reference = OnePassState.create(7, n_classes=n_classes), OnePassReference(7, n_classes)
    margins, predicted = learn(state, X, codes)
    expected = [reference.learn(x, code) for x, code in zip(X, codes, strict=True)]
    assert np.array_equal(predicted, [guess for _, guess in expected])
    assert distance(margins[:, : len(expected[0][0])], np.array([m for m, _ in expected])) <= TOLERANCE
    assert_equals_reference(state, reference, TOLERANCE)
    assert state.mistakes == np.sum(predicted != codes)


@pytest.mark.parametrize("name", ["binary", "joint", "late features", "constants"])
@pytest.mark.parametrize("cut", [1, 100, 128])
def test_a_geometry_that_is_fixed_between_powers_of_two(name, cut):
    n_classes, make = STREAMS[name]
    X, codes, _ = make()
    state = OnePassState.create(X.shape[1], n_classes=n_classes)
    reference = OnePassReference(X.shape[1], n_classes)
    for t, (x, code) in enumerate(zip(X, codes, strict=True)):
        learn(state, X[t : t + 1], codes[t : t + 1])
        reference.learn(x, code)
        if t + 1 == cut:
            state.fix_geometry()
            reference.geometry.mu = reference.geometry.S / cut
            reference.geometry.fix(np.flatnonzero(reference.geometry.n))
        if t % 20 == 0:
            assert_equals_reference(state, reference, TOLERANCE)
    expected = np.array([reference.margins(x) for x in X])
    assert distance(margins_of(state, X), expected) <= TOLERANCE


@pytest.mark.parametrize("make", [binary, joint])
def test_probabilities(make):
    X, codes, _ = make(200)
    state, reference = OnePassState.create(7), OnePassReference(7)
    learn(state, X, codes)
    for x, code in zip(X, codes, strict=True):
        reference.learn(x, code)
    expected = np.array([reference.probabilities(x) for x in X])
    np.testing.assert_allclose(state.probabilities(margins_of(state, X)), expected, rtol=TOLERANCE)


@pytest.mark.parametrize("make", [binary, joint, late_classes])
def test_ceiling(make):
    X, codes, _ = make()
    state, reference = OnePassState.create(7), OnePassReference(7)
    for t, (x, code) in enumerate(zip(X, codes, strict=True)):
        learn(state, X[t : t + 1], codes[t : t + 1])
        reference.learn(x, code)
        norm, coef_sum, ceiling = state.claim()
        dual = reference.mixed_dual()
        assert np.sqrt(dual.sq_norm(reference.geometry)) == pytest.approx(norm, rel=TOLERANCE)
        assert dual.coef_sum == pytest.approx(coef_sum, rel=TOLERANCE)
        assert norm / coef_sum <= ceiling <= norm / coef_sum * (1 + 1e-9)


@pytest.mark.parametrize("name", [name for name in STREAMS if name not in ("unscaled", "wild", "spikes")])
def test_float32_is_close(name):
    n_classes, make = STREAMS[name]
    X, codes, weights = make()
    X = X.astype(np.float32)
    states = [OnePassState.create(X.shape[1], dtype, n_classes=n_classes) for dtype in (np.float32, np.float64)]
    (ours, predicted), (exact, expected) = (learn(state, X, codes, weights) for state in states)
    np.testing.assert_allclose(ours, exact, atol=1e-3, rtol=1e-3)
    assert np.mean(predicted != expected) <= 0.01
    assert states[0].claim().norm == pytest.approx(states[1].claim().norm, rel=1e-3)
    assert states[0].claim().ceiling >= states[1].claim().norm / states[1].claim().coef_sum * (1 - 1e-6)
