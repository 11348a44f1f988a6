"""Input that is unusual but means something is learnt from as its plain equivalent."""

import tempfile

import joblib
import numpy as np
import pytest
import scipy.sparse

from maxcosine import OnlineClassifier
from maxcosine.engine.heads import LIMITS
from tests.estimators.learners import contents, learnt, points


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
each_oddity = pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())


def raw(X):
    return contents([X.data, X.indices, X.indptr] if getattr(X, "format", "") == "csr" else np.asarray(X))


@each_oddity
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_odd_storage_learns_as_plain_rows_do_and_is_not_touched(odd, call, n_classes):
    X, _ = small_numbers()
    y = np.arange(len(X)) % n_classes
    plain = OnlineClassifier().fit(X, y)
    stored = odd(X.copy())
    before = raw(stored) if not scipy.sparse.issparse(stored) or stored.format == "csr" else None
    learner = OnlineClassifier()
    if call == "fit":
        learner.fit(stored, y)
    else:
        learner.partial_fit(stored, y, classes=np.unique(y))
    assert before is None or raw(stored) == before
    if odd is explicit_zeros:  # zeros take up lanes of the sums
        assert np.allclose(learner.coef_, plain.coef_, rtol=1e-12)
        return
    assert learnt(learner) == learnt(plain)
    assert np.allclose(learner.decision_function(stored), plain.decision_function(X), rtol=1e-12)


@pytest.mark.parametrize("dtype", [bool, np.uint8])
def test_unsigned_values_are_numbers(dtype, storage):
    X, y = small_numbers()
    X = np.abs(X).astype(dtype)
    assert learnt(OnlineClassifier().fit(storage(X), y)) == learnt(OnlineClassifier().fit(X.astype(float), y))


def test_read_only_labels():
    X, y = points()
    y.flags.writeable = False
    assert learnt(OnlineClassifier().fit(X, y)) == learnt(OnlineClassifier().fit(X, y.copy()))


def test_huge_shape_costs_only_its_weights():
    X, y = points(dtype=np.float32)
    wide = scipy.sparse.csr_array(X)
    wide.resize(len(X), 2**24)
    learner = OnlineClassifier("naromma").fit(wide, y)
    assert learner.n_features_in_ == 2**24
    assert np.array_equal(learner.coef_[:, :6], OnlineClassifier("naromma").fit(X, y).coef_)


# Rows that say nothing, or contradict each other


def test_zero_rows_are_seen_and_skipped(learner, storage, n_classes):
    X, y = points(n_classes)
    learner.set_params(average=True).fit(X, y)
    with_zeros = type(learner)(**learner.get_params())
    places = np.arange(0, len(X), 3)
    with_zeros.fit(storage(np.insert(X, places, 0.0, axis=0)), np.insert(y, places, 0))
    assert with_zeros.n_seen_ == len(X) + len(places)
    assert np.array_equal(with_zeros.coef_, learner.coef_)
    assert np.array_equal(with_zeros.mistakes_, learner.mistakes_)
    assert np.array_equal(with_zeros.certificate_.margin_ceiling, learner.certificate_.margin_ceiling)


def test_only_zero_rows_teach_nothing(learner, storage, n_classes):
    X, y = points(n_classes)
    learner.fit(storage(0.0 * X), y)
    assert not learner.coef_.any()
    assert not learner.intercept_.any()
    assert learner.n_seen_ == len(X)
    assert not np.any(learner.mistakes_)
    assert np.all(np.isinf(learner.certificate_.margin_ceiling))
    assert set(learner.predict(X)) == {0}


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_contradictions_leave_everything_finite(learner, average, fit_intercept, dtype):
    X, y = points(dtype=dtype)
    X, y = np.repeat(X, 2, axis=0), np.column_stack([y, 1 - y]).ravel()  # each row with either label
    learner.set_params(average=average, fit_intercept=fit_intercept, passes=5).fit(X, y)
    assert np.isfinite(learner.coef_).all()
    assert np.isfinite(learner.intercept_).all()
    assert 0.0 < learner.certificate_.margin_ceiling < np.inf


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("end", ["shortest", "longest"])
def test_norms_within_the_limits_leave_everything_finite(rule, average, dtype, end):
    limits = LIMITS[np.dtype(dtype)]
    norm = {"shortest": 10 * limits.low_sq_x**0.5, "longest": limits.high_sq_x**0.5 / 10}[end]
    X, y = points()
    X[::2] *= norm / np.linalg.norm(X[::2], axis=1, keepdims=True)  # beside rows of ordinary norm
    learner = OnlineClassifier(rule, average=average, fit_intercept=False).fit(X.astype(dtype), y)
    assert np.isfinite(learner.coef_).all()
    assert 0.0 < learner.certificate_.margin_ceiling < np.inf


@pytest.mark.parametrize("spread", [1e4, 1e6])
def test_rows_of_very_different_norms_leave_everything_finite(rule, spread):
    X, y = points(n_rows=20_000, dtype=np.float32)
    X[::2] /= spread
    learner = OnlineClassifier(rule, fit_intercept=False).fit(X, y)
    assert np.isfinite(learner.coef_).all()
    assert np.isfinite(learner.decision_function(X)).all()
    assert 0.0 < learner.certificate_.bound < np.inf


def test_long_noise_does_not_wear_the_weights_down_to_nothing(rule):
    random = np.random.default_rng(0)
    X = random.normal(size=(500_000, 2)).astype(np.float32)
    y = (X[:, 0] > 0) ^ (random.random(len(X)) < 0.2)
    learner = OnlineClassifier(rule, fit_intercept=False).fit(X, y)
    assert learner.coef_.any()
    assert learner.score(X, y) > 0.5
    assert 0.0 < learner.certificate_.bound <= learner.certificate_.best_bound < np.inf
