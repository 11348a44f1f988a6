"""Joint learning: one hypothesis for all classes, learnt by any rule and certified."""

import functools

import numpy as np
import pytest
from sklearn.datasets import load_digits

from maxcosine import RULES, OnlineClassifier
from tests.contract.streams import augmented, clusters, separable, signs, stream
from tests.learners import everything
from tests.reference import all_joint_examples, maximal_margin, norm

JointClassifier = functools.partial(OnlineClassifier, multiclass="joint")
TOLERANCE = {"float32": 1e-4, "float64": 1e-9}


def close(value):
    return pytest.approx(value, rel=1e-9)


def test_blocks_sum_to_zero_at_every_step(rule):
    for dtype, average in (("float32", True), ("float64", False)):
        X, codes = stream(40, 6, n_classes=4, dtype=dtype)
        learner = JointClassifier(rule, average=average)
        for k in range(len(X)):
            learner.partial_fit(X[k : k + 1], codes[k : k + 1], classes=range(4))
            W = np.column_stack([learner.coef_, learner.intercept_]).astype(np.float64)
            assert np.linalg.norm(W.sum(axis=0)) <= TOLERANCE[dtype] * np.linalg.norm(W)


def test_lambda_is_the_sum_of_the_coefficients_at_every_step(rule):
    """A column that is 1 for a class and 0 for the others: its weight in the block of the class is the sum
    of the coefficients of the rows of this class."""
    for dtype, average in (("float32", False), ("float64", True)):
        X, codes = stream(40, 6, n_classes=4, dtype=dtype)
        X = np.column_stack([X, np.eye(4, dtype=dtype)[codes]])
        learner = JointClassifier(rule, average=average, fit_intercept=False)
        for k in range(len(X)):
            learner.partial_fit(X[k : k + 1], codes[k : k + 1], classes=range(4))
            W, certificate = learner.coef_.astype(np.float64), learner.certificate_
            added_up = np.trace(W[:, 6:]) / np.linalg.norm(W)
            assert certificate.bound == pytest.approx(added_up, rel=TOLERANCE[dtype])
            assert certificate.bound <= added_up * (1 + 1e-6)


def test_first_row_moves_its_class_and_the_first_wrong_one_only(some_rule):
    learner = JointClassifier(some_rule, fit_intercept=False)
    W = learner.partial_fit([[1.0, 2.0]], [2], classes=range(4)).coef_
    assert not W[1].any()
    assert not W[3].any()
    np.testing.assert_array_equal(W[2], -W[0])
    assert np.dot(W[2], [1.0, 2.0]) > 0.0


# Two classes


def test_two_classes_are_one_learner_of_examples_longer_by_the_root_of_two(rule):
    for seed, average in ((0, False), (1, True)):
        X, codes = stream(120, 6, noise=0.02, seed=seed)
        together = JointClassifier(rule, average=average, fit_intercept=False).fit(X, codes)
        longer = OnlineClassifier(rule, average=average, fit_intercept=False).fit(np.sqrt(2.0) * X, codes)
        found, expected = together.certificate_, longer.certificate_
        for count in ("seen", "mistakes", "updates"):
            assert getattr(found, count) == getattr(expected, count)
        assert found.margin_ceiling == close(expected.margin_ceiling)
        w, goal = together.coef_[0], longer.coef_[0]
        np.testing.assert_allclose(w / norm(w), goal / norm(goal), atol=1e-9)


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.scale_invariant])
def test_two_classes_are_predicted_as_by_one_hypothesis(name):
    for seed, average, fit_intercept in ((0, False, True), (1, True, False), (2, True, True)):
        X, y = stream(120, 6, noise=0.02, seed=seed)
        options = {"rule": name, "average": average, "fit_intercept": fit_intercept}
        together, alone = JointClassifier(**options).fit(X, y), OnlineClassifier(**options).fit(X, y)
        np.testing.assert_array_equal(together.predict(X), alone.predict(X))
        assert (together.mistakes_, together.updates_) == (alone.mistakes_, alone.updates_)
        ceiling = np.sqrt(2.0) * alone.certificate_.margin_ceiling
        assert together.certificate_.margin_ceiling == close(ceiling)
        margin = np.sqrt(2.0) * alone.attained_margin(X, y)
        assert together.attained_margin(X, y) == pytest.approx(margin)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_joint_margin_of_two_classes_is_the_root_of_two_times_the_plain_one(fit_intercept):
    X, codes, _ = separable(60, 4, fit_intercept=fit_intercept)
    Z = augmented(X, fit_intercept)
    margin, pairs = maximal_margin(Z, signs(codes)), all_joint_examples(Z, codes, 2)
    assert margin > 0.01
    assert maximal_margin(pairs, np.ones(len(pairs))) == pytest.approx(np.sqrt(2.0) * margin)


# Several classes


def test_digits_are_told_apart(rule):
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    for average in (False, True):
        learner = JointClassifier(rule, average=average, random_state=0, shuffle=True)
        assert learner.fit(X[:1200], y[:1200]).score(X[1200:], y[1200:]) > 0.8


def test_mistakes_of_the_perceptron_are_at_most_twice_the_square_of_radius_by_margin():
    X, codes = clusters(40)
    pairs = all_joint_examples(X, codes, 4)
    margin = maximal_margin(pairs, np.ones(len(pairs)))
    learner = JointClassifier("perceptron", fit_intercept=False, passes=10).fit(X, codes)
    assert learner.certificate_.mistakes <= 2 * (np.linalg.norm(X, axis=1).max() / margin) ** 2 + 1e-6


def test_one_class_so_far_is_predicted_and_teaches_nothing(some_rule):
    X, _ = stream(30, 4)
    learner = JointClassifier(some_rule, average=True).partial_fit(X, ["only"] * 30)
    assert not learner.coef_.any()
    assert learner.predict(X).tolist() == ["only"] * 30
    certificate = learner.certificate_
    assert (certificate.mistakes, certificate.updates, certificate.margin_ceiling) == (0, 0, np.inf)


def test_joint_learning_cannot_begin_or_end_between_partial_fits():
    X, y = stream(40, 5, n_classes=3)
    for then, now in (("joint", "ovr"), ("ovr", "joint")):
        learner = OnlineClassifier(multiclass=then).fit(X, y)
        _, *before = everything(learner)
        with pytest.raises(ValueError, match=f"multiclass was '{then}'.*is '{now}'"):
            learner.set_params(multiclass=now).partial_fit(X, y)
        assert everything(learner)[1:] == tuple(before)
