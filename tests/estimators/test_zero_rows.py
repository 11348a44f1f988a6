"""With an intercept a row without features is the example (0, 1), as an explicit column of ones makes it."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.preprocessing import OneHotEncoder

from maxcosine import RULES, OnlineClassifier

CLASSES = np.array(["no", "yes"])


def categories(n=400, seed=0):
    """Two columns of categories, and labels that mostly follow from them."""
    random = np.random.default_rng(seed)
    table = random.integers(0, 3, (n, 2))
    truth = np.array([-1.0, 1.0, 0.5])[table[:, 0]] + np.array([-0.5, 0.3, 1.0])[table[:, 1]]
    return table, CLASSES[(truth + 0.4 * random.normal(size=n) > 0).astype(int)]


def encoded():
    """The rows that scikit-learn's encoder makes of them: a ninth of them is 0."""
    table, y = categories()
    X = scipy.sparse.csr_array(OneHotEncoder(drop="first").fit_transform(table))
    assert 20 < np.count_nonzero(np.diff(X.indptr) == 0) < 80
    return X, y


def with_ones(X):
    return scipy.sparse.csr_array(scipy.sparse.hstack([X, np.ones((X.shape[0], 1))]))


def dicts(X):
    return [
        dict(zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True))
        for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)
    ]


def learn(way, X, y, tmp_path, **options):
    """Learn rows in one of several ways; returns the weights, constant ones last, and the classifier."""
    learner = OnlineClassifier(dtype="float64", **options)
    columns = np.arange(X.shape[1])
    if way == "dense":
        learner.partial_fit(X.toarray(), y)
    elif way == "csr":
        learner.partial_fit(X, y)
    elif way == "dicts":
        learner.learn_many(dicts(X), y)
        columns = np.argsort(learner.features_.astype(int))
    else:
        path = tmp_path / "rows.svm"
        with open(path, "w") as file:
            for x, label in zip(dicts(X), y, strict=True):
                file.write(" ".join([label, *(f"{k + 1}:{v}" for k, v in x.items())]) + "\n")
        learner.fit_stream(path)
        columns = np.arange(learner.n_features_in_)[-X.shape[1] :]
    return np.append(learner.coef_[0, columns], learner.intercept_), learner


@pytest.mark.parametrize("way", ["dense", "csr", "dicts", "stream"])
@pytest.mark.parametrize("rule", RULES)
def test_one_hot_rows_are_learnt_as_with_a_column_of_ones(tmp_path, rule, way):
    X, y = encoded()
    for average in (False, True):
        w, learner = learn(way, X, y, tmp_path, rule=rule, average=average)
        expected, explicit = learn(way, with_ones(X), y, tmp_path, rule=rule, average=average, fit_intercept=False)
        assert expected[-1] == 0.0
        # Up to three numbers are added in the order of their columns, so that not a bit differs.
        if way == "dense":
            np.testing.assert_allclose(w, expected[:-1], rtol=1e-9)
        else:
            np.testing.assert_array_equal(w, expected[:-1])
        certificate, wanted = learner.certificate_, explicit.certificate_
        assert learner.n_seen_ == explicit.n_seen_ == len(y)
        assert learner.mistakes_ == explicit.mistakes_
        assert (certificate.mistakes, certificate.updates) == (wanted.mistakes, wanted.updates)
        assert certificate.bound == pytest.approx(wanted.bound, rel=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_zero_rows_decide_where_their_class_is(rule):
    """A third of all rows is 0, of one class: they fix the sign of the intercept."""
    X = scipy.sparse.csr_array(np.tile(np.eye(3)[:, :2], (60, 1)))
    y = np.tile([1, 1, 0], 60)
    learner = OnlineClassifier(rule).fit(X, y)
    assert learner.intercept_[0] < 0.0
    assert learner.score(X, y) == 1.0


@pytest.mark.parametrize("rule", RULES)
def test_without_an_intercept_zero_rows_are_judged_and_not_learnt(rule):
    X, y = np.array([[1.0], [0.0], [2.0], [0.0], [0.0]]), [1, 1, 1, 0, 1]
    learner = OnlineClassifier(rule, fit_intercept=False).partial_fit(X, y, classes=[0, 1])
    certificate = learner.certificate_
    # A score of 0 predicts the first class: wrong for rows 0, 1 and 4. A head counts margins of its examples.
    assert learner.mistakes_ == 3
    assert (learner.n_seen_, certificate.seen, certificate.mistakes) == (5, 5, 1)
