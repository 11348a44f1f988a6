"""What the state of the one-pass learner allows, refuses and proves."""

import numpy as np
import pytest
from scipy.optimize import linprog

from maxcosine.core import FeatureIndex
from maxcosine.onepass import OnePassState
from tests.contract.streams import separable
from tests.onepass.learning import BAD_ROW, NEW_CLASS, NOT_CANONICAL, assert_same_bits, csr, learn, learnt, margins_of
from tests.onepass.streams import binary, by_arrival, joint, late_classes, spikes
from tests.onepass_reference import CONSTANT, OnePassReference, squash


def is_finite(state):
    floats = [np.ascontiguousarray(array[name]) for array in state.arrays[1:] for name in array.dtype.names or ()]
    return all(np.isfinite(array).all() for array in [state.arrays.weights, *floats])


# What is refused


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_row_that_is_not_finite_changes_nothing(bad, sparse):
    X, codes, _ = binary(40)
    state, expected = learnt(X[:20], codes[:20]), learnt(X[:20], codes[:20])
    X[20, 3] = bad
    with pytest.raises(ValueError, match="row 0 is not finite"):
        learn(state, X[20:], codes[20:], sparse=sparse)
    assert_same_bits(state, expected)
    assert np.isnan(margins_of(state, X[20:21])).all()


def test_a_dict_that_is_not_finite_leaves_no_feature_behind():
    state, index = OnePassState.create(4), FeatureIndex("names")
    assert state.engine.learn_dict(index, {"a": 1.0, "b": np.inf}, 0, 1.0)[0] == BAD_ROW
    assert len(index) == 0
    assert state.rows == 0


def test_the_sweep_ends_at_a_class_without_a_block():
    X, codes, _ = late_classes()
    state = OnePassState.create(7)
    done, fault = state.engine.learn_dense(X, codes, None, None, None, None)
    assert (done, fault) == (40, NEW_CLASS)
    assert state.rows == 40
    assert_same_bits(state, learnt(X[:40], codes[:40]))


def test_rows_that_are_not_sorted_are_told():
    indptr, slots, values = csr(np.ones((1, 3)))
    engine = OnePassState.create(3).engine
    codes = np.zeros(1, np.int64)
    assert engine.learn_rows(indptr, slots[::-1].copy(), values, False, codes, None, None, None, None) == (
        0,
        NOT_CANONICAL,
    )
    too_high = slots + np.uint32(1)
    assert engine.learn_rows(indptr, too_high, values, False, codes, None, None, None, None)[1] == NOT_CANONICAL


# What is predicted before two classes are known, and without features


def test_before_any_class_is_known_none_is_predicted():
    X, _, _ = binary(6)
    state = OnePassState.create(7)
    _, predicted = learn(state, X, [0, 0, 0, 1, 0, 1])
    assert predicted[:4].tolist() == [-1, 0, 0, 0]
    assert state.mistakes == np.sum(predicted != [0, 0, 0, 1, 0, 1])


def test_a_row_without_features_is_learnt():
    state = learnt(np.zeros((30, 2)), np.ones(30, np.int64), n_classes=2)
    assert state.rows == 30
    assert margins_of(state, np.zeros((1, 2)))[0, 0] > 0
    assert state.mistakes == 1


def test_features_that_were_never_seen_count_nothing():
    X, codes, _ = binary(100)
    state = OnePassState.create(9)
    learn(state, X, codes)
    unseen = np.hstack([X, np.full((100, 2), 5.0)])
    np.testing.assert_array_equal(margins_of(state, unseen), margins_of(state, X))


# Weights


def test_weights_are_relative():
    X, codes, _ = joint(200)
    weights = np.random.default_rng(0).uniform(0.1, 5.0, 200)
    a, b = learnt(X, codes, weights), learnt(X, codes, 2.0**70 * weights)
    assert np.array_equal(a.arrays.weights, b.arrays.weights)


def test_rows_of_weight_0_are_as_if_absent():
    X, codes, _ = binary(200)
    weights = np.where(np.arange(200) % 3 == 1, 0.0, 1.0)
    assert_same_bits(learnt(X, codes, weights), learnt(X[weights > 0], codes[weights > 0]))


# Classes


def test_two_classes_may_change_their_codes():
    X, codes, _ = binary(300)
    state = learnt(X[:150], codes[:150], n_classes=2)
    state.rearrange([1, 0])
    learn(state, X[150:], 1 - codes[150:])
    expected = learnt(X, codes, n_classes=2)
    np.testing.assert_allclose(margins_of(state, X), -margins_of(expected, X), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(state.scalars["calibration"], expected.scalars["calibration"] * [1, -1], rtol=1e-9)


def test_a_first_class_may_become_the_second():
    X, codes, _ = binary(100)
    state = learnt(X[:50], np.zeros(50, np.int64))
    state.rearrange([-1, 0])
    learn(state, X[50:], codes[50:])
    expected = learnt(X, [*np.zeros(50, np.int64), *(1 - codes[50:])])
    np.testing.assert_allclose(margins_of(state, X), -margins_of(expected, X), rtol=1e-9, atol=1e-9)


def test_many_classes_may_change_their_codes():
    X, codes, _ = joint(300)
    state = learnt(X[:150], codes[:150], n_classes=4)
    order = np.array([2, 0, 3, 1])
    state.rearrange([2, 0, -1, 3, 1])
    state.rearrange([0, 1, 3, 4, 2])
    margins = margins_of(state, X)
    np.testing.assert_allclose(margins[:, :4], margins_of(learnt(X[:150], codes[:150], n_classes=4), X)[:, order])
    assert not margins[:, 4].any()


@pytest.mark.parametrize("n_known", [1, 2])
def test_a_third_class_does_not_change_what_is_known_of_two(n_known):
    X, codes, _ = binary(200)
    state = learnt(X, by_arrival(codes) % n_known)
    one, before = margins_of(state, X)[:, 0], state.claim()
    state.add_classes(3)
    blocks = margins_of(state, X)
    np.testing.assert_allclose(blocks[:, 1] - blocks[:, 0], one, rtol=1e-9, atol=1e-12)
    assert not blocks[:, 2].any()
    # The norm of two halves is that of the whole over sqrt(2), and Lambda is halved.
    assert state.claim().ceiling == pytest.approx(np.sqrt(2) * before.ceiling, rel=1e-6)


def test_known_classes_cannot_be_dropped():
    with pytest.raises(ValueError, match="each of the 3 known classes must be named once"):
        OnePassState.create(2, n_classes=3).rearrange([0, 1])


def test_features_may_move():
    X, codes, _ = binary(300)
    state, expected = learnt(X[:200], codes[:200]), learnt(X[:200], codes[:200])
    slots = np.array([-1, 3, 0, 6, -1, 1, 2, 4, 5, -1])
    state.select(slots, 10)
    back = np.zeros((100, 10))
    back[:, slots >= 0] = X[200:, slots[slots >= 0]]
    learn(state, back, codes[200:])
    learn(expected, X[200:], codes[200:])
    np.testing.assert_allclose(margins_of(state, back), margins_of(expected, X[200:]), rtol=1e-9, atol=1e-9)


# Numbers


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_nothing_infinite_enters_the_state(dtype, n_classes, seed):
    rng, limits = np.random.default_rng(seed), np.finfo(dtype)
    lowest, highest = np.log10(float(limits.smallest_subnormal)), np.log10(float(limits.max))
    X = np.sign(rng.normal(size=(1500, 6))) * 10.0 ** rng.uniform(lowest, highest, (1500, 6))
    X *= rng.random(X.shape) < 0.6
    weights, codes = 10.0 ** rng.uniform(-100, 100, 1500), rng.integers(0, n_classes, 1500)
    state = OnePassState.create(6, dtype, n_classes=n_classes)
    margins, _ = learn(state, X, codes, weights)
    assert is_finite(state)
    assert np.isfinite(margins[:, : state.n_blocks]).all()
    assert np.isfinite(margins_of(state, X)).all()
    norm, coef_sum, ceiling = state.claim()
    assert 0 < norm / coef_sum <= ceiling


@pytest.mark.parametrize("weights", [10.0 ** np.linspace(-100, 100, 300), 10.0 ** np.linspace(100, -100, 300)])
def test_weights_that_grow_or_shrink_without_end(weights):
    X, codes, _ = binary(300)
    for dtype in (np.float32, np.float64):
        assert is_finite(learnt(X, codes, weights, dtype=dtype))


def test_a_constant_stays_finite_for_very_many_rows():
    """SS - S^2 / (T + 1) is SS / (T + 1) and cancels; rounding must not make it 0 or negative."""
    state = OnePassState.create(1, n_classes=2)
    for _ in range(8):
        learn(state, np.full((50_000, 1), 0.1), np.arange(50_000) % 2)
    assert is_finite(state)
    exact = 1 / np.log1p(0.1) ** 2 * np.sqrt(400_001)
    assert state.arrays.features["inverse_scale"][0] == pytest.approx(exact, rel=0.2)


def test_sums_recover_from_a_spike_among_many_features():
    """They are computed anew as soon as the visits pay for it."""
    X, codes, _ = spikes(400)
    X = np.hstack([X, np.eye(400, 3000)])
    state, reference = OnePassState.create(3007, n_classes=2), OnePassReference(3007, 2)
    for t in range(400):
        learn(state, X[t : t + 1], codes[t : t + 1])
        reference.learn(X[t], codes[t])
    expected = np.array([reference.margins(x) for x in X[:20]])
    assert np.abs(margins_of(state, X[:20]) - expected).max() <= 1e-6


# The ceiling


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_separator_has_a_margin_above_the_ceiling(dtype):
    """A separator of the rows in today's geometry, found by linear programming, stays below the ceiling."""
    X, codes, _ = separable(150, 4, margin=0.3, dtype=dtype)
    state, reference, radii = OnePassState.create(4, dtype, n_classes=2), OnePassReference(4, 2), []
    for t in range(len(X)):
        learn(state, X[t : t + 1], codes[t : t + 1])
        reference.learn(X[t].astype(float), codes[t])
        radii.append(reference.geometry.row(squash(X[t]))[1])
        if t % 10 != 9:
            continue
        g = reference.geometry
        rows = (squash(X[: t + 1]) - g.mu) / np.array(radii)[:, None] * np.sqrt(g.D)
        rows = np.column_stack([rows, np.full(t + 1, CONSTANT * np.sqrt(g.constant_metric))])
        signed = np.where(codes[: t + 1, None] == 1, 1.0, -1.0) * rows
        # Maximise the margin over the cube that the unit ball holds: its best point, brought to length 1.
        n = rows.shape[1]
        below = np.column_stack([-signed, np.ones(t + 1)])
        result = linprog([*np.zeros(n), -1.0], below, np.zeros(t + 1), bounds=[(-1, 1)] * n + [(None, None)])
        w = result.x[:n] / np.linalg.norm(result.x[:n])
        assert (signed @ w).min() > 0
        assert (signed @ w).min() <= state.claim().ceiling


def test_rounding_in_float32_is_in_the_ceiling():
    X, codes, _ = binary(2000)
    X = X.astype(np.float32)
    rounded, exact = learnt(X, codes, dtype=np.float32).claim(), learnt(X, codes).claim()
    assert rounded.ceiling > exact.norm / exact.coef_sum
    assert exact.ceiling <= exact.norm / exact.coef_sum * (1 + 1e-8)


def test_before_the_first_row_nothing_is_claimed():
    assert OnePassState.create(3).claim() == (0.0, 0.0, np.inf)
