"""How rows reach a classifier: in chunks, in passes, shuffled, with late columns."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from maxcosine import BadStep, OnlineClassifier, PAClassifier, SortedLabelsWarning
from tests.learners import breaks_late, everything, learnt, points


def test_fit_forgets_what_was_learnt_before(learner, n_classes):
    X, y = points(n_classes)
    once = everything(learner.fit(X, y))
    assert everything(learner.fit(X, y)) == once
    learner.fit(*points(4, n_columns=3, dtype=np.float32))
    assert everything(learner.fit(X, y)) == once


def test_partial_fit_goes_on_after_fit(learner, n_classes):
    X, y = points(n_classes)
    whole = clone(learner).fit(np.vstack([X, X[:1]]), np.append(y, y[0]))
    learner.fit(X[:50], y[:50])
    learner.partial_fit(X[50:], y[50:]).partial_fit(X[:1], y[:1], classes=learner.classes_)
    assert learnt(learner) == learnt(whole)


def test_shuffle_draws_a_permutation_for_each_pass(learner, storage):
    X, y = points()
    weights = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], len(y))
    random = np.random.RandomState(7)
    order = np.concatenate([random.permutation(len(X)) for _ in range(3)])
    expected = clone(learner).fit(storage(X[order]), y[order], sample_weight=weights[order])
    learner.set_params(shuffle=True, random_state=7, passes=3)
    for _ in range(2):  # the same permutations again
        assert learnt(learner.fit(storage(X), y, sample_weight=weights)) == learnt(expected)
    learner.set_params(random_state=8).fit(storage(X), y, sample_weight=weights)
    assert learnt(learner) != learnt(expected)


@pytest.mark.parametrize("chunk", [20, 120])
def test_verbose_reports_on_standard_error_and_changes_nothing(capsys, chunk):
    X, y = points()
    quiet, loud = (OnlineClassifier(verbose=verbose, passes=2) for verbose in (0, 1))
    assert learnt(quiet.fit(X, y)) == learnt(loud.fit(X, y))
    for start in range(0, len(X), chunk):
        rows = slice(start, start + chunk)
        assert learnt(quiet.partial_fit(X[rows], y[rows])) == learnt(loud.partial_fit(X[rows], y[rows]))
    out, err = capsys.readouterr()
    assert out == ""
    assert f"[OnlineClassifier] pass 2 of 2: {len(X)} of {len(X)} rows (100%)" in err
    assert err.count(f"{chunk} of {chunk} rows") >= len(X) // chunk
    assert "mistakes" in err


# Labels in order


def labels_in_order(n_classes=2):
    X, y = points(n_classes)
    order = np.argsort(y, kind="stable")
    return X[order], y[order]


def test_one_pass_over_rows_sorted_by_class_warns(learner, n_classes):
    with pytest.warns(SortedLabelsWarning, match="shuffle=True") as caught:
        learner.fit(*labels_in_order(n_classes))
    assert {warning.filename for warning in caught} == {__file__}  # the warning names the caller


@pytest.mark.parametrize(
    ("params", "data"),
    [
        ({"shuffle": True}, labels_in_order()),
        ({"passes": 2}, labels_in_order()),
        ({}, points()),
        ({}, (np.eye(2), [0, 1])),  # two rows are always in some order
    ],
    ids=["shuffle", "passes", "mixed", "two rows"],
)
def test_no_warning_without_a_reason(params, data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OnlineClassifier(**params).fit(*data)


# Late columns


def test_growing_predicts_for_any_number_of_columns(learner, storage, n_classes):
    X, y = points(n_classes)
    learner.set_params(grow_features=True).fit(storage(X), y)
    scores = learner.decision_function(storage(X))
    more = np.hstack([X, np.ones_like(X)])
    assert np.array_equal(learner.decision_function(storage(more)), scores)  # no weight
    fewer, zeros = X[:, :4], np.where(np.arange(6) < 4, X, 0.0)  # no value
    assert np.allclose(learner.decision_function(storage(fewer)), learner.decision_function(storage(zeros)), atol=1e-12)


def test_fit_starts_with_the_columns_it_is_given():
    X, y = points()
    learner = OnlineClassifier(grow_features=True).fit(X, y).fit(X[:, :3], y)
    assert learner.coef_.shape == (1, 3)


@pytest.mark.parametrize("n_columns", [4, 8])
@pytest.mark.parametrize("call", ["partial_fit", "predict"])
def test_without_growing_other_columns_are_refused(call, n_columns):
    X, y = points()
    learner = OnlineClassifier().fit(X, y)
    other = np.ones((len(X), n_columns))
    with pytest.raises(ValueError, match=f"X has {n_columns} features, but OnlineClassifier is expecting 6"):
        learner.partial_fit(other, y) if call == "partial_fit" else learner.predict(other)


def frame(names, X):
    return pd.DataFrame(X[:, : len(names)], columns=list(names))


def test_growing_names_keep_their_places():
    X, y = points()
    learner = OnlineClassifier(grow_features=True).fit(frame("abc", X), y)
    learner.partial_fit(frame("abcde", X), y).partial_fit(frame("ab", X), y)
    assert learner.feature_names_in_.tolist() == list("abcde")
    assert learner.n_features_in_ == 5
    assert len(learner.predict(frame("abcdef", X))) == len(X)
    for names in ("abdc", "xabcde"):
        before = everything(learner)
        with pytest.raises(ValueError, match=r"column . of X is named '.' and was '.'"):
            learner.partial_fit(frame(names, X), y)
        assert everything(learner) == before
        with pytest.raises(ValueError, match=r"column . of X is named '.' and was '.'"):
            learner.predict(frame(names, X))


@pytest.mark.parametrize("n_columns", [6, 9])
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_rule_that_breaks_in_the_middle_leaves_no_trace(call, n_columns):
    X, y = points(n_columns=9)
    learner = OnlineClassifier(breaks_late, grow_features=True).fit(X[:20, :6], y[:20])
    before = everything(learner)
    with pytest.raises(BadStep, match="'breaks_late' asked in row"):
        getattr(learner, call)(X[:, :n_columns], y)
    assert everything(learner) == before


def test_parameters_of_the_rule_may_change_between_partial_fits():
    X, y = points()
    changed = PAClassifier("pa1", C=1.0).partial_fit(X[:60], y[:60], classes=[0, 1])
    changed.set_params(C=1e-3).partial_fit(X[60:], y[60:])
    kept = PAClassifier("pa1", C=1.0).partial_fit(X, y, classes=[0, 1])
    assert np.linalg.norm(changed.coef_ - kept.coef_) > 0
    same = PAClassifier("pa1", C=1.0).partial_fit(X[:60], y[:60], classes=[0, 1])
    assert np.linalg.norm(changed.coef_ - same.coef_) <= 60 * 1e-3 * np.linalg.norm(X, axis=1).max()


@pytest.mark.parametrize("change", [{"rule": "pa"}, {"average": True}, {"fit_intercept": False}], ids=str)
def test_parameter_that_cannot_change_between_partial_fits_is_refused(change):
    X, y = points()
    learner = OnlineClassifier().partial_fit(X, y, classes=[0, 1])
    before = learnt(learner)
    learner.set_params(**change)
    with pytest.raises(ValueError, match=f"{next(iter(change))} was .* when learning began"):
        learner.partial_fit(X, y)
    learner.set_params(rule="mcp", average=False, fit_intercept=True)
    assert learnt(learner) == before
