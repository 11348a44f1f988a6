"""What features add to a score."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_digits

from maxcosine import OnePassClassifier


@pytest.mark.parametrize("sparse", [False, True])
def test_contributions_add_up_to_the_score(sparse):
    X, y = load_breast_cancer(return_X_y=True)
    X = X - X.mean(axis=0)  # negative values, too
    X[np.random.default_rng(0).random(X.shape) < 0.3] = 0.0
    X = scipy.sparse.csr_array(X) if sparse else X
    learner = OnePassClassifier().fit(X[:400], y[:400])
    found = learner.contributions(X)
    np.testing.assert_allclose(found.of_features.sum(axis=1) + found.rest, learner.decision_function(X), rtol=1e-9)
    assert found.of_features.shape == X.shape
    assert found.of_features.nnz == np.count_nonzero(X.toarray() if sparse else X)


def test_contributions_to_the_score_of_a_class():
    X, y = load_digits(return_X_y=True)
    learner = OnePassClassifier().fit(X[:1000], y[:1000])
    for label in (0, 7):
        found = learner.contributions(X, label)
        score = learner.decision_function(X)[:, label]
        np.testing.assert_allclose(found.of_features.sum(axis=1) + found.rest, score, rtol=1e-8, atol=1e-10)
    with pytest.raises(ValueError, match=r"label=None has no score; name the class to explain, one of 0, 1"):
        learner.contributions(X)
    with pytest.raises(ValueError, match=r"label=11 has no score"):
        learner.contributions(X, 11)


def test_contributions_of_dicts_name_features():
    learner = OnePassClassifier()
    for _ in range(20):
        learner.learn_many([{"free": 1, "the": 1}, {"noon": 2, "the": 1}], ["spam", "ham"])
    found = learner.contributions_one({"free": 1, "the": 1, "unknown": 3})
    assert list(found) == ["free", "the"]
    assert found["free"] > abs(found["the"])
    values, rest = learner.contributions([{"free": 1, "the": 1}])
    assert values.sum() + rest[0] == pytest.approx(learner.decision_function([{"free": 1, "the": 1}])[0])
    with pytest.raises(ValueError, match="two classes have one score"):
        learner.contributions_one({"free": 1}, "spam")
