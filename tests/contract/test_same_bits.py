"""The same numbers give the same bits: whatever the storage, the cuts into chunks and the heads beside."""

import itertools

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from maxcosine import OnlineClassifier
from tests.contract.streams import (
    averaged_or_not,
    bits,
    both_types,
    csr,
    every_rule,
    stacked,
    stream,
    taught,
    two_or_more_classes,
    with_intercept_or_not,
)


@every_rule
@both_types
@two_or_more_classes
@averaged_or_not
def test_dense_and_sparse_rows_give_the_same_bits(name, dtype, n_classes, average):
    X, codes = stream(150, 13, n_classes=n_classes, dtype=dtype)
    options = {"n_classes": n_classes, "average": average, "fit_intercept": True}
    dense = bits(taught(name, X, codes, **options))
    for index in (np.int32, np.int64):
        assert bits(taught(name, csr(X, index), codes, **options)) == dense


def learn_in_chunks(estimator, X, y, cuts):
    cuts = [0, *sorted(set(cuts) - {0, len(y)}), len(y)]
    for start, stop in itertools.pairwise(cuts):
        estimator.partial_fit(X[start:stop], y[start:stop], classes=np.arange(3))
    return estimator


@every_rule
@averaged_or_not
@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(1, 199), max_size=12), sparse=st.booleans(), single=st.booleans())
def test_any_chunking_gives_the_bits_of_one_pass(name, average, cuts, sparse, single):
    X, y = stream(200, 7, n_classes=3, dtype=np.float32 if single else np.float64)
    X = csr(X) if sparse else X
    options = {"rule": name, "average": average}
    whole = OnlineClassifier(**options).fit(X, y)
    cut = learn_in_chunks(OnlineClassifier(**options), X, y, cuts)
    assert bits(cut._model) == bits(whole._model)
    assert repr(cut.certificate_) == repr(whole.certificate_)
    for count in ("seen", "mistakes", "updates"):
        np.testing.assert_array_equal(getattr(cut.certificate_, count), getattr(whole.certificate_, count))


@every_rule
@both_types
@averaged_or_not
def test_row_at_a_time_gives_the_bits_of_one_pass(name, dtype, average):
    X, y = stream(80, 7, n_classes=3, dtype=dtype)
    options = {"rule": name, "average": average}
    whole = OnlineClassifier(**options).fit(X, y)
    single = learn_in_chunks(OnlineClassifier(**options), X, y, range(len(y)))
    assert bits(single._model) == bits(whole._model)


@every_rule
@both_types
def test_same_input_gives_the_same_bits(name, dtype):
    X, codes = stream(200, 9, n_classes=3, dtype=dtype)
    first, second = (taught(name, X.copy(), codes, n_classes=3, average=True) for _ in range(2))
    assert bits(first) == bits(second)


@every_rule
@both_types
@with_intercept_or_not
def test_heads_of_one_sweep_are_separate_binary_learners(name, dtype, fit_intercept):
    X, codes = stream(150, 9, n_classes=6, dtype=dtype)
    options = {"average": True, "fit_intercept": fit_intercept}
    together = taught(name, X, codes, n_classes=6, **options).heads
    scalars = [field for field in together.table.dtype.names if field not in ("positive", "first", "stop")]
    for head in range(6):
        alone = taught(name, X, codes == head, **options).heads
        for weights in ("weights", "averaged_weights"):
            expected, got = stacked(getattr(alone, weights)())[0], stacked(getattr(together, weights)())[head]
            np.testing.assert_array_equal(got, expected)
        assert together.table[head][scalars] == alone.table[0][scalars]
        np.testing.assert_array_equal(together.arrays.state[head], alone.arrays.state[0])


@every_rule
@both_types
@pytest.mark.parametrize("width", [13, 4096], ids=["permuted", "hashed"])
def test_moving_columns_changes_rounding_only(name, dtype, width):
    X, codes = stream(150, 13, noise=0.0, dtype=dtype)
    slots = np.random.default_rng(1).permutation(width)[:13]  # a hash without collisions
    moved = scipy.sparse.lil_array((len(X), width), dtype=dtype)
    moved[:, slots] = X
    here = taught(name, X, codes, fit_intercept=True, average=True)
    there = taught(name, csr(moved.tocsr()), codes, fit_intercept=True, average=True)
    tolerance = 1e4 * np.finfo(dtype).eps
    for weights in ("weights", "averaged_weights"):
        (w, b), (w_moved, b_moved) = (getattr(model.heads, weights)() for model in (here, there))
        scale = np.linalg.norm(w)
        np.testing.assert_allclose(w_moved[:, slots], w, atol=tolerance * scale)
        np.testing.assert_allclose(b_moved, b, atol=tolerance * scale)
        assert np.count_nonzero(w_moved) == np.count_nonzero(w)


@every_rule
def test_zeros_stored_in_sparse_rows_change_rounding_only(name):
    X, codes = stream(150, 13, noise=0.0)
    here = taught(name, csr(X), codes, fit_intercept=True)
    there = taught(name, csr(X, explicit_zeros=True), codes, fit_intercept=True)
    np.testing.assert_allclose(stacked(there.heads.weights()), stacked(here.heads.weights()), rtol=1e-9)


@every_rule
def test_a_seed_fixes_the_shuffle(name):
    X, y = stream(200, 9)
    a, b, other = (
        OnlineClassifier(name, shuffle=True, passes=2, random_state=seed).fit(X, y) for seed in (7, 7, 8)
    )
    assert bits(a._model) == bits(b._model)
    assert bits(a._model) != bits(other._model)
