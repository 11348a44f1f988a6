"""A weight, relative to the mean so far, multiplies the step of its row; certificates follow the steps taken."""

import numpy as np
import pytest

from maxcosine import OnlineClassifier
from tests.contract.streams import hypotheses, separable, separable_in, stream
from tests.learners import PAIRWISE_SETTINGS, learnt
from tests.reference import cosine, weight_factors

BOTH_TYPES = ("float32", "float64")


def random_weights(n, decades, seed=0):
    return 10.0 ** np.random.default_rng(seed).uniform(-decades, decades, n)


def learn(rule, X, codes, weights=None, **options):
    """Two classes, no intercept, all rows at once."""
    learner = OnlineClassifier(rule, fit_intercept=False, **options)
    return learner.partial_fit(X, codes, classes=[0, 1], sample_weight=weights)


def test_equal_weights_change_no_bit(some_rule, settings):
    for setting in settings:
        X, codes = stream(120, 6, n_classes=setting.n_classes, dtype=setting.dtype)
        expected = setting.classifier(some_rule).fit(X, codes)
        assert not expected.certificate_.weighted
        for weights in (np.ones(len(X)), 1.0, np.ones(len(X), bool), np.full(len(X), 1 / len(X)), 0.1, 1e-100, 1e100):
            found = setting.classifier(some_rule).fit(X, codes, sample_weight=weights)
            assert learnt(found) == learnt(expected)
        found = setting.classifier(some_rule, class_weight={0: 1.0, 5: 7.0}).fit(X, codes)
        assert learnt(found) == learnt(expected)


def test_multiplying_all_weights_by_a_power_of_two_changes_no_bit(rule, settings):
    for setting in settings:
        X, codes = stream(120, 6, n_classes=setting.n_classes, dtype=setting.dtype)
        weights = random_weights(len(X), 2)
        weights[::9] = 0.0
        expected = setting.classifier(rule).partial_fit(X, codes, sample_weight=weights)
        assert expected.certificate_.weighted
        for factor in (2.0**-300, 0.5, 2.0**20):
            found = setting.classifier(rule).partial_fit(X, codes, sample_weight=factor * weights)
            assert learnt(found) == learnt(expected), (setting, factor)


def test_multiplying_all_weights_by_a_constant_changes_rounding_only(rule):
    """On data with a margin, where rounding decides no step."""
    for setting in PAIRWISE_SETTINGS:
        X, codes, _ = separable_in(setting, 60)
        weights = random_weights(len(X), 1)
        one, other = (
            setting.classifier(rule).partial_fit(X, codes, classes=range(setting.n_classes), sample_weight=c * weights)
            for c in (1.0, 1 / 3000)
        )
        scale = 1e4 * np.finfo(setting.dtype).eps * np.abs(one.coef_).max()
        np.testing.assert_allclose(other.coef_, one.coef_, atol=scale)
        np.testing.assert_allclose(other.intercept_, one.intercept_, atol=scale)
        assert other.mistakes_ == one.mistakes_
        np.testing.assert_array_equal(other.updates_, one.updates_)


def test_first_weight_alone_has_no_effect_on_the_first_step(rule):
    """The first row is its own mean."""
    for dtype in BOTH_TYPES:
        X, codes = stream(1, 6, dtype=dtype)
        expected = learn(rule, X, codes)
        for weight in (1e-100, 0.3, 7.0, 1e100):
            assert learnt(learn(rule, X, codes, [weight])) == learnt(expected)
        assert not expected.certificate_.weighted


def test_rows_of_weight_0_are_as_if_absent(rule, settings):
    for setting in settings:
        X, codes = stream(120, 6, n_classes=setting.n_classes, dtype=setting.dtype)
        weights = random_weights(len(X), 1)
        weights[np.random.default_rng(0).random(len(X)) < 0.3] = 0.0
        used, classes = weights > 0.0, np.arange(setting.n_classes)
        found = setting.classifier(rule).partial_fit(X, codes, classes=classes, sample_weight=weights)
        expected = setting.classifier(rule)
        expected.partial_fit(X[used], codes[used], classes=classes, sample_weight=weights[used])
        assert learnt(found) == learnt(expected)
        assert found.n_seen_ == used.sum()


def test_rows_that_move_nothing_enter_the_mean_weight_only(rule):
    for dtype in BOTH_TYPES:
        X, codes, _ = separable(100, 5, dtype=dtype)
        learner = OnlineClassifier(rule, fit_intercept=False)
        updates = [learner.partial_fit(X[k : k + 1], codes[k : k + 1], classes=[0, 1]).updates_ for k in range(100)]
        still = np.diff(updates, prepend=0) == 0
        last = np.flatnonzero(~still)[-1] + 1
        assert still[last:].any()
        weights = np.where(np.arange(100) < last, 1.0, random_weights(len(X), 12))
        found = learn(rule, X, codes, weights)
        np.testing.assert_array_equal(found.coef_, learner.coef_)
        assert found.certificate_.bound == learner.certificate_.bound


def test_no_factor_is_beyond_its_limits():
    """A weight counts as at least 1e-12, and at most 1e12, of the mean weight."""
    X, codes = np.eye(4), [0, 1, 0, 1]
    steps = learn("perceptron", X, codes, [1.0, 1e-90, 1e-90, 3e-91])
    np.testing.assert_allclose(np.abs(steps.coef_[0]), [1.0, 1e-12, 1e-12, 1e-12])
    # With n rows, no weight is above n times the mean.
    steps = learn("perceptron", X, codes, [1e-90, 1e-90, 1e-90, 1e90])
    np.testing.assert_allclose(np.abs(steps.coef_[0]), [1.0, 1.0, 1.0, 4.0])


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


def test_lambda_of_the_perceptron_is_the_relative_weight_of_its_mistakes():
    X, codes = stream(150, 6)
    X[5::17] = 1.0  # without features, a row is judged and teaches nothing
    weights, learner = random_weights(len(X), 2), OnlineClassifier("perceptron", fit_intercept=False)
    total = before = 0
    for k, factor in enumerate(weight_factors(weights)):
        row = slice(k, k + 1)
        learner.partial_fit(X[row], codes[row], classes=[0, 1], sample_weight=weights[row])
        mistakes = learner.certificate_.mistakes
        total, before = total + (mistakes - before) * factor, mistakes
        assert learner.certificate_.coef_sum == pytest.approx(total, rel=1e-9)


def test_weight_on_the_largest_step_of_pa1_is_a_larger_c():
    C = 2.0**-20  # every step is cut
    for dtype in BOTH_TYPES:
        X, codes = stream(150, 6, dtype=dtype)
        first = np.where(np.arange(len(X)) < 75, 1.0, 8.0)
        weighted = learn("pa1", X, codes, first, rule_params={"C": C})
        larger = OnlineClassifier("pa1", fit_intercept=False, rule_params={"C": C})
        for k, factor in enumerate(weight_factors(first)):
            larger.set_params(rule_params={"C": factor * C})
            larger.partial_fit(X[k : k + 1], codes[k : k + 1], classes=[0, 1])
        np.testing.assert_allclose(weighted.coef_, larger.coef_, rtol=20 * np.finfo(dtype).eps, atol=1e-12)
        assert weighted.certificate_.bound == pytest.approx(larger.certificate_.bound, rel=1e-5)


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
    assert found.n_seen_ == np.count_nonzero(codes)
    assert not found.certificate_.weighted
