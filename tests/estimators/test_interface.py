"""What every classifier offers, whatever its rule."""

import inspect
import itertools

import numpy as np
import pytest
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from maxcosine import RULES, OnlineClassifier
from tests.learners import NAMED, PAIRWISE_SETTINGS, STORAGES, learnt, named, points


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
    assert type(learner.mistakes_) is int
    assert 0 < learner.mistakes_ <= len(X)
    assert np.shape(learner.updates_) == (() if n_classes == 2 else (heads,))
    assert np.array_equal(learner.updates_, learner.certificate_.updates)
    assert learner.score(X, y) == accuracy_score(y, learner.predict(X)) > 1 / n_classes


@pytest.mark.parametrize("rule", RULES)
def test_scores_are_affine_in_the_published_weights(rule):
    for setting, storage in itertools.product(PAIRWISE_SETTINGS, STORAGES.values()):
        X, y = points(setting.n_classes, dtype=setting.dtype)
        X = storage(X)
        learner = setting.classifier(rule).set_params(dtype=None).fit(X, y)
        scores = X @ learner.coef_.T + learner.intercept_
        assert learner.coef_.dtype == learner.intercept_.dtype == setting.dtype  # the weights take X's type
        assert setting.fit_intercept or not learner.intercept_.any()
        assert learner.certificate_.augmented == setting.fit_intercept
        expected = scores.ravel() if setting.n_classes == 2 else scores
        tolerance = 100 * np.finfo(setting.dtype).eps * np.abs(scores).max()
        np.testing.assert_allclose(learner.decision_function(X), expected, rtol=0, atol=tolerance)
        codes = (scores[:, 0] > 0).astype(int) if setting.n_classes == 2 else scores.argmax(axis=1)
        assert np.array_equal(learner.predict(X), learner.classes_[codes])


def test_positive_scores_mean_the_second_class(learner):
    X, y = np.array([[1.0, 0.0], [-1.0, 0.0]] * 4), np.array(["b", "a"] * 4)
    learner.fit(X, y)
    assert learner.classes_.tolist() == ["a", "b"]
    assert learner.decision_function([[1.0, 0.0]]) > 0
    assert learner.predict([[1.0, 0.0], [-1.0, 0.0]]).tolist() == ["b", "a"]


def test_score_0_predicts_the_first_class(learner, n_classes):
    X, y = points(n_classes)
    nothing = np.zeros((1, X.shape[1]))
    learner.set_params(fit_intercept=False).fit(X, y)
    assert not learner.decision_function(nothing).any()
    assert learner.predict(nothing) == learner.classes_[:1]


@pytest.mark.parametrize("rule", RULES)
def test_intercept_is_a_constant_feature_1(rule):
    X, y = points()
    inside = OnlineClassifier(rule, fit_intercept=True).fit(X, y)
    outside = OnlineClassifier(rule, fit_intercept=False).fit(np.column_stack([X, np.ones(len(X))]), y)
    assert np.allclose([*inside.coef_[0], *inside.intercept_], outside.coef_[0], rtol=1e-9)
    assert np.isclose(inside.certificate_.margin_ceiling, outside.certificate_.margin_ceiling)


def test_threads_predict_to_the_bit(storage, n_classes):
    X, y = points(n_classes, n_rows=3001, n_columns=20)
    X = storage(X)
    for average, multiclass in itertools.product((False, True), ("ovr", "joint")):
        one = OnlineClassifier(average=average, multiclass=multiclass).fit(X[:200], y[:200])
        scores, margin = one.decision_function(X), one.attained_margin(X, y)
        for n_jobs, n_rows in itertools.product((2, 4, -1), (1, 2, 3001)):
            one.set_params(n_jobs=n_jobs)
            assert np.array_equal(one.decision_function(X[:n_rows]), scores[:n_rows])
        assert np.array_equal(one.attained_margin(X, y), margin)


# Named classes


@pytest.mark.parametrize("rule", RULES)
def test_named_class_learns_as_the_rule_does(rule):
    for n_classes, average in ((2, True), (3, False)):
        X, y = points(n_classes)
        given = {"average": average, "fit_intercept": average}
        assert learnt(named(rule, **given).fit(X, y)) == learnt(OnlineClassifier(rule, **given).fit(X, y))


PARAMETERS = [(rule, name) for rule in RULES for name in RULES[rule].params]


@pytest.mark.parametrize(("rule", "name"), PARAMETERS)
def test_parameters_of_named_class_have_the_defaults_of_the_rule_and_reach_it(rule, name):
    default = RULES[rule].params[name].default
    shown = inspect.signature(type(named(rule))).parameters[name].default
    assert shown is None if callable(default) else shown == default
    X, y = points()
    value = False if name == "clip" else getattr(RULES[rule].make_params(), name) / 4
    plain = OnlineClassifier(rule).fit(X, y)
    given = OnlineClassifier(rule, rule_params={name: value}).fit(X, y)
    assert learnt(named(rule, **{name: value}).fit(X, y)) == learnt(given) != learnt(plain)


def test_named_classes_share_the_parameters_of_online_classifier():
    general = OnlineClassifier().get_params()
    shared = {name: value for name, value in general.items() if name not in ("rule", "rule_params")}
    for cls in NAMED:
        assert shared.items() <= cls().get_params().items()
