"""A weight multiplies the step of its row; Lambda follows the step, so that every certificate stays true."""

import numpy as np
import pytest

from maxcosine import RULES, OnlineClassifier
from tests.contract.streams import hypotheses, separable, separable_in, stream
from tests.learners import PAIRWISE_SETTINGS, learnt
from tests.reference import cosine

BOTH_TYPES = ("float32", "float64")


def random_weights(n, decades, seed=0):
    return 10.0 ** np.random.default_rng(seed).uniform(-decades, decades, n)


def learn(rule, X, codes, weights=None, **options):
    """Two classes, no intercept, all rows at once."""
    learner = OnlineClassifier(rule, fit_intercept=False, **options)
    return learner.partial_fit(X, codes, classes=[0, 1], sample_weight=weights)


def test_weights_of_1_change_no_bit(some_rule, settings):
    for setting in settings:
        X, codes = stream(120, 6, n_classes=setting.n_classes, dtype=setting.dtype)
        expected = setting.classifier(some_rule).fit(X, codes)
        assert not expected.certificate_.weighted
        for weights in (np.ones(len(X)), 1.0, np.ones(len(X), bool)):
            found = setting.classifier(some_rule).fit(X, codes, sample_weight=weights)
            assert learnt(found) == learnt(expected)
        found = setting.classifier(some_rule, class_weight={0: 1.0, 5: 7.0}).fit(X, codes)
        assert learnt(found) == learnt(expected)


def test_rows_of_weight_0_are_left_out(rule, settings):
    for setting in settings:
        X, codes = stream(120, 6, n_classes=setting.n_classes, dtype=setting.dtype)
        left_out = np.random.default_rng(0).random(len(X)) < 0.3
        classes = np.arange(setting.n_classes)
        found = setting.classifier(rule).fit(X, codes, sample_weight=np.where(left_out, 0.0, 1.0))
        expected = setting.classifier(rule).partial_fit(X[~left_out], codes[~left_out], classes=classes)
        assert found.n_seen_ == len(X)
        np.testing.assert_array_equal(found.coef_, expected.coef_)
        for name in ("bound", "best_bound", "mistakes", "updates", "weighted"):
            one, other = (getattr(learner.certificate_, name) for learner in (found, expected))
            np.testing.assert_array_equal(one, other)


def test_rows_that_move_nothing_may_have_any_weight(rule):
    for dtype in BOTH_TYPES:
        X, codes, _ = separable(100, 5, dtype=dtype)
        learner = OnlineClassifier(rule, fit_intercept=False)
        updates = [learner.partial_fit(X[k : k + 1], codes[k : k + 1], classes=[0, 1]).updates_ for k in range(100)]
        still = np.diff(updates, prepend=0) == 0
        assert still.any()
        found = learn(rule, X, codes, np.where(still, random_weights(len(X), 12), 1.0))
        np.testing.assert_array_equal(found.coef_, learner.coef_)
        assert found.certificate_.bound == learner.certificate_.bound


def test_extreme_weights_leave_a_hypothesis_on_the_side_of_the_separator(rule, settings):
    for setting in settings:
        X, codes, separators = separable_in(setting, 60)
        learner = setting.classifier(rule)
        for seed in range(3):
            weights = random_weights(len(X), 12, seed)
            learner.partial_fit(X, codes, classes=np.arange(setting.n_classes), sample_weight=weights)
            rounding = np.atleast_1d(learner.certificate_.rounding) + 1e3 * np.finfo(setting.dtype).eps
            for w, w_star, allowed in zip(hypotheses(setting, learner), separators, rounding, strict=True):
                assert cosine(w, w_star) >= -allowed


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.scale_free])
def test_where_length_means_nothing_the_first_weight_changes_the_length_only(name):
    for setting in PAIRWISE_SETTINGS:
        if setting.learning == "binary":
            X, codes = stream(150, 6, dtype=setting.dtype)
            for weight in (2.0**-10, 8.0):
                first = np.where(np.arange(len(X)) == 0, weight, 1.0)
                found = learn(name, X, codes, first, average=setting.average)
                expected = learn(name, X, codes, average=setting.average)
                np.testing.assert_array_equal(found.coef_, weight * expected.coef_)
                assert found.certificate_.bound == expected.certificate_.bound
                assert found.mistakes_ == expected.mistakes_


def test_scaling_all_weights_scales_the_perceptron_only():
    for dtype in BOTH_TYPES:
        X, codes = stream(150, 6, dtype=dtype)
        weights = random_weights(len(X), 2)
        for average, factor in ((False, 2.0**-20), (True, 0.5), (False, 2.0**20)):
            one, other = (learn("perceptron", X, codes, c * weights, average=average) for c in (1.0, factor))
            np.testing.assert_array_equal(other.coef_, factor * one.coef_)
            assert other.certificate_.bound == one.certificate_.bound
            assert other.mistakes_ == one.mistakes_


def test_lambda_of_the_perceptron_is_the_weight_of_its_mistakes():
    X, codes = stream(150, 6)
    weights, learner = random_weights(len(X), 2), OnlineClassifier("perceptron", fit_intercept=False)
    total = before = 0
    for k, weight in enumerate(weights):
        row = slice(k, k + 1)
        learner.partial_fit(X[row], codes[row], classes=[0, 1], sample_weight=[weight])
        total, before = total + (learner.mistakes_ - before) * weight, learner.mistakes_
        assert learner.certificate_.coef_sum == pytest.approx(total, rel=1e-9)


def test_weight_on_the_largest_step_of_pa1_is_a_larger_c():
    C = 2.0**-20  # every step is cut
    for dtype in BOTH_TYPES:
        X, codes = stream(150, 6, dtype=dtype)
        weighted = learn("pa1", X, codes, np.full(len(X), 8.0), rule_params={"C": C})
        larger = learn("pa1", X, codes, rule_params={"C": 8.0 * C})
        np.testing.assert_array_equal(weighted.coef_, larger.coef_)
        assert weighted.certificate_.bound == larger.certificate_.bound


def test_class_weights_are_the_weights_of_their_rows(some_rule):
    for setting in PAIRWISE_SETTINGS:
        X, codes = stream(120, 6, n_classes=setting.n_classes, dtype=setting.dtype)
        of_class = {0: 0.3, 1: 7.0, 2: 1e-3, 3: 1.0}
        rows = np.array([of_class[code] for code in codes])
        found = setting.classifier(some_rule, class_weight=of_class).fit(X, codes, sample_weight=rows)
        expected = setting.classifier(some_rule).fit(X, codes, sample_weight=rows * rows)
        assert learnt(found) == learnt(expected)


def test_class_of_weight_0_moves_nothing(some_rule):
    X, codes = stream(120, 6, n_classes=3)
    found = OnlineClassifier(some_rule, class_weight={0: 0}).fit(X, codes)
    others = OnlineClassifier(some_rule).partial_fit(X[codes != 0], codes[codes != 0], classes=[0, 1, 2])
    np.testing.assert_array_equal(found.coef_, others.coef_)
    assert found.n_seen_ == len(X)
    assert not found.certificate_.weighted
