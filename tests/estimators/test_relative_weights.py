"""Weights are relative to their mean so far, in `fit`, in chunks and in streams alike."""

import itertools

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import AdaBoostClassifier
from sklearn.model_selection import train_test_split

from maxcosine import RULES, MCPClassifier, OnlineClassifier
from maxcosine.data import open_stream
from tests.learners import learnt, points

N = 120


@pytest.fixture(scope="module")
def digits():
    return train_test_split(*load_digits(return_X_y=True), random_state=0)


def rounded_points(n_classes=3):
    """Rows that text holds exactly, labels as text, and weights of four decades, some of them 0."""
    X, codes = points(n_classes, n_rows=N)
    random = np.random.default_rng(0)
    weights = np.round(10.0 ** random.uniform(-2, 2, N), 4) * (random.random(N) < 0.9)
    weights[:3] = 1.0  # the first rows bring all classes
    codes[:3] = np.resize(np.arange(n_classes), 3)
    return np.round(X, 3), np.array([f"c{code}" for code in codes]), weights


def in_chunks(learner, X, y, weights, cuts, **options):
    for start, stop in itertools.pairwise([0, *cuts, len(y)]):
        learner.partial_fit(X[start:stop], y[start:stop], sample_weight=weights[start:stop], **options)
    return learner


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("multiclass", ["ovr", "joint"])
def test_fit_is_partial_fit_in_any_chunks(rule, multiclass):
    X, y, weights = rounded_points()
    options = {"rule": rule, "average": True, "multiclass": multiclass}
    fitted = OnlineClassifier(**options).fit(X, y, sample_weight=weights)
    for cuts in ([], [1, 50], range(1, N)):
        chunked = in_chunks(OnlineClassifier(**options), X, y, weights, cuts, classes=np.unique(y))
        assert learnt(chunked) == learnt(fitted)


@pytest.mark.parametrize("rule", RULES)
def test_streams_weigh_rows_as_chunks_do(tmp_path, rule):
    X, y, weights = rounded_points()
    stream = [(X[k : k + 11], y[k : k + 11], weights[k : k + 11]) for k in range(0, N, 11)]
    learner = OnlineClassifier(rule, average=True).fit_stream(stream)
    assert learnt(learner) == learnt(in_chunks(OnlineClassifier(rule, average=True), X, y, weights, [7, 60]))
    rows = [{f"f{k}": float(x[k]) for k in np.flatnonzero(x)} for x in X]
    path = tmp_path / "rows.vw"
    with open(path, "w") as file:
        for row, label, weight in zip(rows, y, weights.tolist(), strict=True):
            file.write(f"{label} {weight} |a {' '.join(f'{name}:{value}' for name, value in row.items())}\n")
    from_file = OnlineClassifier(rule, average=True, dtype="float64")
    from_file.fit_stream(open_stream(path, exact=True, dtype="float64", block_bytes=500))
    from_dicts = OnlineClassifier(rule, average=True)
    from_dicts.learn_many(rows, y, weights)
    # The numbers of a row are added up in another order.
    np.testing.assert_allclose(from_file.coef_, from_dicts.coef_, rtol=1e-9)
    for name in ("n_seen_", "mistakes_", "updates_"):
        np.testing.assert_array_equal(getattr(from_file, name), getattr(from_dicts, name))
    assert from_file.n_seen_ == learner.n_seen_ == np.count_nonzero(weights)


def test_weights_of_one_nth_cost_no_accuracy(digits):
    X, X_test, y, y_test = digits
    for average in (False, True):
        plain = MCPClassifier(average=average).fit(X, y)
        weighted = MCPClassifier(average=average).fit(X, y, sample_weight=np.full(len(y), 1.0 / len(y)))
        assert learnt(weighted) == learnt(plain)
        assert weighted.score(X_test, y_test) > (0.9 if average else 0.85)


@pytest.mark.parametrize("average", [False, True])
def test_adaboost_over_mcp_learns(digits, average):
    """Its weights begin at 1/n and come to differ by orders of magnitude."""
    X, X_test, y, y_test = digits
    boosted = AdaBoostClassifier(MCPClassifier(average=average), n_estimators=10, random_state=0).fit(X, y)
    assert len(boosted.estimators_) == 10
    assert boosted.estimator_errors_.max() < 0.9  # of weighted rows; chance
    alone = MCPClassifier(average=average).fit(X, y).score(X_test, y_test)
    assert boosted.score(X_test, y_test) > alone - 0.05 > 0.8
