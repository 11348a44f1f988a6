"""A classifier that keeps weights only for the columns that have any is the same classifier."""

import pickle

import numpy as np
import pytest
import scipy.sparse

from maxcosine import MCPClassifier, OnlineClassifier
from tests.learners import PAIRWISE_SETTINGS, everything, learnt, points, tensors


def wide(n_classes, n_columns=400, dtype=np.float64):
    """Rows of few columns among many; column 7 occurs in the second half only."""
    X, y = points(n_classes, dtype=dtype)
    rows = np.zeros((len(X), n_columns), dtype)
    rows[:, [3, 50, 51, 170, 200, 399]] = X
    rows[60:, 7] = X[60:, 0]
    return rows, y


def size(learner):
    return sum(array.nbytes for array in tensors(learner).values())


@pytest.mark.parametrize("rule", ["mcp", "aggressive_romma", "norma"])
def test_sparse_model_is_the_same_model(rule):
    for setting in PAIRWISE_SETTINGS:
        X, y = wide(setting.n_classes, dtype=setting.dtype)
        dense, thin = (setting.classifier(rule).fit(X, y) for _ in range(2))
        assert thin.sparsify() is thin
        assert isinstance(thin.coef_, scipy.sparse.csr_array)
        assert thin.coef_.shape == dense.coef_.shape
        assert np.array_equal(thin.coef_.toarray(), dense.coef_)
        assert np.array_equal(thin.intercept_, dense.intercept_)
        assert thin.n_features_in_ == 400
        assert np.array_equal(thin.features_, np.arange(400))
        for rows in (X, scipy.sparse.csr_array(X)):
            assert np.array_equal(thin.decision_function(rows), dense.decision_function(rows))
        assert np.allclose(thin.certificate_.bound, dense.certificate_.bound, rtol=1e-6)
        assert size(thin) < size(dense) / 2
        assert learnt(thin.densify()) == learnt(dense)


@pytest.mark.parametrize("rule", ["mcp", "aggressive_romma", "norma"])
def test_sparse_model_goes_on_as_a_dense_one(rule):
    for setting in PAIRWISE_SETTINGS:
        X, y = wide(setting.n_classes, dtype=setting.dtype)
        dense, thin = (setting.classifier(rule).fit(X[:60], y[:60]) for _ in range(2))
        thin.sparsify()
        copied = pickle.loads(pickle.dumps(thin))
        for rows in (X[60:61], y[60:61]), (scipy.sparse.csr_array(X[61:100]), y[61:100]), (X[100:], y[100:]):
            for learner in (dense, thin, copied):
                learner.partial_fit(*rows)
        assert everything(copied) == everything(thin)
        found, expected = thin.coef_.toarray(), dense.coef_
        assert expected[:, 7].any()  # a column that was new to it
        tolerance = 1e3 * np.finfo(setting.dtype).eps * np.abs(expected).max()
        assert np.allclose(found, expected, rtol=0, atol=tolerance)
        assert np.array_equal(thin.mistakes_, dense.mistakes_)
        assert np.array_equal(thin.updates_, dense.updates_)
        assert np.array_equal(thin.predict(X), dense.predict(X))
        assert np.array_equal(thin.densify().coef_, found)


def test_sparsify_and_densify_twice_change_nothing(average):
    X, y = wide(3)
    learner = OnlineClassifier(average=average).fit(X, y)
    before = learnt(learner)
    once = learner.sparsify().coef_
    assert (learner.sparsify().coef_ != once).nnz == 0
    assert learnt(learner.densify().densify()) == before


def test_sparse_model_may_know_nothing_yet():
    X, y = wide(2)
    learner = OnlineClassifier().fit(np.zeros_like(X[:2]), [0, 1]).sparsify()
    assert learner.coef_.nnz == 0
    assert learner.predict(X).tolist() == [0] * len(X)
    expected = OnlineClassifier().fit(X, y)
    assert np.allclose(learner.partial_fit(X, y).coef_.toarray(), expected.coef_, rtol=1e-12)


def test_sparse_model_may_grow():
    X, y = wide(3)
    dense, thin = (OnlineClassifier(grow_features=True).partial_fit(X[:60, :300], y[:60]) for _ in range(2))
    thin.sparsify()
    for learner in (dense, thin):
        learner.partial_fit(X[60:], y[60:])
    assert thin.coef_.shape == dense.coef_.shape == (3, 400)
    assert np.allclose(thin.coef_.toarray(), dense.coef_, rtol=1e-9, atol=1e-12)
    assert np.array_equal(thin.predict(X), dense.predict(X))


def test_threads_predict_sparsely_to_the_bit():
    X, y = points(3, n_rows=2500)
    thin = MCPClassifier(n_jobs=2).fit(X[:200], y[:200]).sparsify()
    thick = MCPClassifier().fit(X[:200], y[:200])
    assert np.array_equal(thin.decision_function(X), thick.decision_function(X))


def test_models_of_dicts_are_sparse_already():
    X, y = points()
    learner = OnlineClassifier()
    learner.learn_many([dict(enumerate(row)) for row in X.tolist()], y)
    before = everything(learner)
    assert everything(learner.sparsify().densify()) == before
    assert isinstance(learner.coef_, np.ndarray)


def test_unfitted_model_cannot_be_made_sparse():
    for call in ("sparsify", "densify"):
        with pytest.raises(ValueError, match="not fitted"):
            getattr(OnlineClassifier(), call)()
