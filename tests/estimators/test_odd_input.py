"""Input that is unusual but means something is learnt from as its plain equivalent."""

import itertools
import tempfile

import joblib
import numpy as np
import pytest
import scipy.sparse

from maxcosine import RULES, OnlineClassifier
from tests.learners import PAIRWISE_SETTINGS, learnt, points


def small_numbers():
    """Rows of -2, ..., 2: of any type without rounding."""
    X, y = points()
    return np.clip(np.round(X), -2, 2), y


def memory_map(X):
    file = tempfile.NamedTemporaryFile()  # noqa: SIM115, it lives as long as the map does
    X.tofile(file)
    file.flush()
    mapped = np.memmap(file.name, mode="r", shape=X.shape, dtype=X.dtype)
    mapped.file = file
    return mapped


def joblib_map(X):
    with tempfile.TemporaryDirectory() as folder:
        joblib.dump(X, f"{folder}/X")
        return joblib.load(f"{folder}/X", mmap_mode="r")


def read_only(X):
    for array in (X.data, X.indices, X.indptr) if scipy.sparse.issparse(X) else (X,):
        array.flags.writeable = False
    return X


def unsorted(X):
    """The non-zeros of each row in falling order; the flag lies."""
    X = scipy.sparse.csr_array(X)
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        for array in (X.indices, X.data):
            array[start:stop] = array[start:stop][::-1].copy()
    X.has_sorted_indices = X.has_canonical_format = True
    return X


def duplicated(X):
    """Each value as two halves, in two places of its row."""
    halves = scipy.sparse.hstack([scipy.sparse.csr_array(X) / 2] * 2, format="csr")
    return scipy.sparse.csr_array((halves.data, halves.indices % X.shape[1], halves.indptr), shape=X.shape)


def wide_indices(X):
    X = scipy.sparse.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def explicit_zeros(X):
    X = scipy.sparse.csr_array(X + 1e9)
    X.data -= 1e9
    return X


ODD = {
    "lists": np.ndarray.tolist,
    "float16": lambda X: X.astype(np.float16),
    "longdouble": lambda X: X.astype(np.longdouble),
    "big-endian": lambda X: X.astype(">f8"),
    "int64": lambda X: X.astype(np.int64),
    "int8": lambda X: X.astype(np.int8),
    "objects": lambda X: X.astype(object),
    "numbers in strings": lambda X: X.astype(str),
    "Fortran order": np.asfortranarray,
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": read_only,
    "memory map": memory_map,
    "joblib's memory map": joblib_map,
    "csr_matrix": scipy.sparse.csr_matrix,
    "csc_array": scipy.sparse.csc_array,
    "coo_matrix": scipy.sparse.coo_matrix,
    "lil_array": scipy.sparse.lil_array,
    "integer csr": lambda X: scipy.sparse.csr_array(X.astype(np.int32)),
    "read-only csr": lambda X: read_only(scipy.sparse.csr_array(X)),
    "int64 indices": wide_indices,
    "unsorted indices": unsorted,
    "duplicate indices": duplicated,
    "read-only unsorted indices": lambda X: read_only(unsorted(X)),
    "explicit zeros": explicit_zeros,
}


def raw(X):
    """The bytes of rows that must not be touched."""
    if scipy.sparse.issparse(X):
        return [array.tobytes() for array in (X.data, X.indices, X.indptr)] if X.format == "csr" else None
    return np.asarray(X).tolist()


@pytest.mark.parametrize("odd", ODD)
def test_odd_storage_learns_as_plain_rows_do_and_is_not_touched(odd):
    X, _ = small_numbers()
    for n_classes in (2, 3):
        y = np.arange(len(X)) % n_classes
        plain, stored = OnlineClassifier().fit(X, y), ODD[odd](X.copy())
        before = raw(stored)
        for learner in (
            OnlineClassifier().fit(stored, y),
            OnlineClassifier().partial_fit(stored, y, classes=np.unique(y)),
        ):
            assert raw(stored) == before
            assert np.allclose(learner.decision_function(stored), plain.decision_function(X), rtol=1e-12)
            if odd == "explicit zeros":  # zeros take up lanes of the sums
                assert np.allclose(learner.coef_, plain.coef_, rtol=1e-12)
            else:
                assert learnt(learner) == learnt(plain)


def test_unsigned_values_are_numbers(storage):
    X, y = small_numbers()
    for dtype in (bool, np.uint8):
        unsigned = np.abs(X).astype(dtype)
        expected = OnlineClassifier().fit(unsigned.astype(float), y)
        assert learnt(OnlineClassifier().fit(storage(unsigned), y)) == learnt(expected)


def test_read_only_labels_are_learnt_from():
    X, y = points()
    y.flags.writeable = False
    assert learnt(OnlineClassifier().fit(X, y)) == learnt(OnlineClassifier().fit(X, y.copy()))


def test_huge_shape_costs_only_its_weights():
    X, y = points(dtype=np.float32)
    wide = scipy.sparse.csr_array(X)
    wide.resize(len(X), 2**22)
    learner = OnlineClassifier("naromma").fit(wide, y)
    assert learner.n_features_in_ == 2**22
    assert np.array_equal(learner.coef_[:, :6], OnlineClassifier("naromma").fit(X, y).coef_)


# Rows that contradict each other, or are of very different lengths


@pytest.mark.parametrize("rule", RULES)
def test_contradictions_leave_everything_finite(rule):
    for setting in PAIRWISE_SETTINGS:
        X, y = points(setting.n_classes, dtype=setting.dtype)
        # Each row with two labels.
        X, y = np.repeat(X, 2, axis=0), np.column_stack([y, (y + 1) % setting.n_classes]).ravel()
        learner = setting.classifier(rule, passes=5).fit(X, y)
        assert np.isfinite(learner.coef_).all()
        assert np.isfinite(learner.intercept_).all()
        ceilings = np.atleast_1d(learner.certificate_.margin_ceiling)
        assert np.all((ceilings > 0.0) & (ceilings < np.inf))


@pytest.mark.parametrize("rule", RULES)
def test_norms_at_the_limits_leave_everything_finite(rule):
    longest = {"float32": 1e8, "float64": 1e47}
    for dtype, average, sign in itertools.product(longest, (False, True), (1, -1)):
        X, y = points()
        X[::2] *= longest[dtype] ** sign / np.linalg.norm(X[::2], axis=1, keepdims=True)
        learner = OnlineClassifier(rule, average=average, fit_intercept=False).fit(X.astype(dtype), y)
        assert np.isfinite(learner.coef_).all()
        assert 0.0 < learner.certificate_.margin_ceiling < np.inf


@pytest.mark.parametrize("rule", RULES)
def test_rows_of_very_different_norms_are_learnt_from(rule):
    for spread in (1e4, 1e6):
        X, y = points(n_rows=5_000, dtype=np.float32)
        X[::2] /= spread
        learner = OnlineClassifier(rule, fit_intercept=False).fit(X, y)
        assert np.isfinite(learner.coef_).all()
        assert np.isfinite(learner.decision_function(X)).all()
        assert 0.0 < learner.certificate_.bound < np.inf


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_long_noise_does_not_wear_the_weights_down_to_nothing(rule):
    random = np.random.default_rng(0)
    X = random.normal(size=(500_000, 2)).astype(np.float32)
    y = (X[:, 0] > 0) ^ (random.random(len(X)) < 0.2)
    learner = OnlineClassifier(rule, fit_intercept=False).fit(X, y)
    assert learner.coef_.any()
    assert learner.score(X, y) > 0.5
    # In the end rounding leaves nothing to claim of w; what was proven before stays proven.
    assert 0.0 <= learner.certificate_.bound <= learner.certificate_.best_bound < np.inf
    assert learner.certificate_.best_bound > 0.0
