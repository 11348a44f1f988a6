"""What every learner offers, whatever its rule."""

import inspect

import numpy as np
import pytest
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from maxcosine import RULES, OnlineClassifier
from tests.estimators.learners import NAMED, learnt, named, points
from tests.reference import run

dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def test_fitted_attributes(learner, n_classes):
    X, y = points(n_classes)
    assert learner.fit(X, y) is learner
    check_is_fitted(learner)
    heads = 1 if n_classes == 2 else n_classes
    assert learner.coef_.shape == (heads, X.shape[1])
    assert learner.intercept_.shape == (heads,)
    assert learner.classes_.tolist() == list(range(n_classes))
    assert learner.n_features_in_ == X.shape[1]
    assert not hasattr(learner, "feature_names_in_")
    assert learner.n_seen_ == len(X)
    assert np.shape(learner.mistakes_) == np.shape(learner.updates_) == (() if n_classes == 2 else (heads,))
    assert np.all(learner.mistakes_ > 0)
    assert np.all(learner.mistakes_ <= len(X))
    assert np.array_equal(learner.mistakes_, learner.certificate_.mistakes)
    assert np.array_equal(learner.updates_, learner.certificate_.updates)
    assert learner.score(X, y) == accuracy_score(y, learner.predict(X)) > 1 / n_classes


@dtypes
def test_decision_function_is_affine_in_the_published_weights(learner, n_classes, storage, dtype, average):
    X, y = points(n_classes, dtype=dtype)
    X = storage(X)
    learner.set_params(average=average).fit(X, y)
    scores = X @ learner.coef_.T + learner.intercept_
    assert learner.coef_.dtype == learner.intercept_.dtype == dtype  # the weights take X's type
    expected = scores.ravel() if n_classes == 2 else scores
    tolerance = 100 * np.finfo(dtype).eps * np.abs(scores).max()
    np.testing.assert_allclose(learner.decision_function(X), expected, rtol=0, atol=tolerance)
    codes = (scores[:, 0] > 0).astype(int) if n_classes == 2 else scores.argmax(axis=1)
    assert np.array_equal(learner.predict(X), learner.classes_[codes])


def test_positive_scores_mean_the_second_class(rule):
    X = np.array([[1.0, 0.0], [-1.0, 0.0]] * 4)
    y = np.array(["b", "a"] * 4)
    learner = OnlineClassifier(rule).fit(X, y)
    assert learner.classes_.tolist() == ["a", "b"]
    assert learner.decision_function([[1.0, 0.0]]) > 0
    assert learner.predict([[1.0, 0.0], [-1.0, 0.0]]).tolist() == ["b", "a"]


def test_score_0_predicts_the_first_class(rule, n_classes):
    X, y = points(n_classes)
    learner = OnlineClassifier(rule, fit_intercept=False).fit(X, y)
    nothing = np.zeros((1, X.shape[1]))
    assert not learner.intercept_.any()
    assert not learner.decision_function(nothing).any()
    assert learner.predict(nothing) == learner.classes_[:1]


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("label", [0, 1])
def test_first_example_that_is_not_zero_is_a_mistake_and_an_update(learner, average, fit_intercept, label):
    X, _ = points()
    learner.set_params(average=average, fit_intercept=fit_intercept)
    learner.fit(np.vstack([0 * X[:1], X[:1], 0 * X[:1]]), [1 - label, label, 1 - label])
    assert learner.n_seen_ == 3
    assert learner.mistakes_ == learner.updates_ == 1
    assert learner.predict(X[:1]) == label


def test_intercept_is_a_constant_feature_1(rule):
    X, y = points()
    augmented = np.column_stack([X, np.ones(len(X))])
    inside = OnlineClassifier(rule, fit_intercept=True).fit(X, y)
    outside = OnlineClassifier(rule, fit_intercept=False).fit(augmented, y)
    assert np.allclose([*inside.coef_[0], *inside.intercept_], outside.coef_[0], rtol=1e-9)
    assert np.isclose(inside.certificate_.margin_ceiling, outside.certificate_.margin_ceiling)


# One class a learner


def test_named_class_learns_as_the_rule_does(rule, n_classes, average):
    X, y = points(n_classes)
    given = {"average": average, "fit_intercept": False}
    assert learnt(named(rule, **given).fit(X, y)) == learnt(OnlineClassifier(rule, **given).fit(X, y))


PARAMETERS = [(rule, name) for rule in RULES for name in RULES[rule].params]


@pytest.mark.parametrize(("rule", "name"), PARAMETERS)
def test_named_class_has_the_defaults_of_the_rule(rule, name):
    default = RULES[rule].params[name].default
    shown = inspect.signature(type(named(rule))).parameters[name].default
    assert shown is None if callable(default) else shown == default


@pytest.mark.parametrize(("rule", "name"), PARAMETERS)
def test_parameters_of_named_class_reach_the_rule(rule, name):
    X, y = points()
    value = False if name == "clip" else getattr(RULES[rule].make_params(), name) / 4
    plain = OnlineClassifier(rule).fit(X, y)
    given = OnlineClassifier(rule, rule_params={name: value}).fit(X, y)
    assert learnt(named(rule, **{name: value}).fit(X, y)) == learnt(given) != learnt(plain)


def test_named_classes_share_the_parameters_of_online_classifier():
    shared = set(OnlineClassifier().get_params()) - {"rule", "rule_params"}
    for cls in NAMED:
        assert shared <= set(cls().get_params())
        assert {
            name: cls().get_params()[name] for name in shared
        }.items() <= OnlineClassifier().get_params().items()


# Averaging


def test_average_is_the_mean_of_the_hypotheses_after_each_example(rule):
    X, y = points()
    expected = run(rule, X, 2 * y - 1, average=True)
    learner = OnlineClassifier(rule, average=True, fit_intercept=False).fit(X, y)
    assert np.allclose(learner.coef_[0], expected.averaged_w, rtol=1e-9)
    assert np.isclose(learner.certificate_.coef_sum, expected.averaged_coef_sum, rtol=1e-9)
    assert np.isclose(learner.certificate_.norm, np.linalg.norm(learner.coef_))
    assert np.array_equal(learner.predict(X), (X @ expected.averaged_w > 0).astype(int))


def test_averaging_does_not_change_what_is_learnt(rule, n_classes):
    X, y = points(n_classes)
    averaged = OnlineClassifier(rule, average=True).fit(X, y).certificate_
    last = OnlineClassifier(rule).fit(X, y).certificate_
    assert averaged.averaged
    assert not averaged.last.averaged
    assert last.last is last
    for field in ("coef_sum", "norm", "bound", "best_bound", "seen", "mistakes", "updates"):
        assert np.array_equal(getattr(averaged.last, field), getattr(last, field))
    # It is about the data, so both know it; each may prove it by its own hypothesis, up to rounding.
    assert np.all(averaged.best_bound >= last.best_bound * (1 - 1e-9))
