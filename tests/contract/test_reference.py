"""Every rule, in every setting, learns what its paper's pseudocode learns (`tests/reference.py`)."""

import numpy as np
import pytest

from maxcosine import RULES
from tests.contract.streams import (
    augmented,
    clusters,
    hypotheses,
    late,
    problems,
    separable,
    signs,
    stream,
)
from tests.learners import PAIRWISE_SETTINGS, Setting
from tests.reference import REFERENCE, norm, run, run_joint

pytestmark = pytest.mark.filterwarnings("ignore::maxcosine.SortedLabelsWarning")

TOLERANCE = {"float32": 2e-4, "float64": 1e-9}
BINARY = Setting("binary", average=False, fit_intercept=False, dtype="float64")
AVERAGED = Setting("binary", average=True, fit_intercept=True, dtype="float64")


def without_ties(setting, rule, X, codes):
    """Leave out the zero rows where they decide by a tie.

    A rule that restarts goes on from w = (0, 1) after them. Each later row of class 1 then has the margin 1 exactly,
    which is where these rules stop moving, and rounding decides.
    """
    clear = X.any(axis=1) | (not (RULES[rule].restarts and setting.fit_intercept))
    return X[clear], codes[clear]


def references(setting, rule, X, codes, **params):
    """The pseudocode's result for each binary problem."""
    Z = augmented(X, setting.fit_intercept).astype(np.float64)
    if setting.learning == "joint":
        return [run_joint(rule, Z, codes, setting.n_classes, average=True, **params)]
    positives = [1] if setting.learning == "binary" else range(setting.n_classes)
    return [run(rule, Z, signs(codes == positive), average=True, **params) for positive in positives]


def assert_is_reference(setting, learner, expected, tolerance):
    """Compare directions and certificates; lengths only where they mean something to the rule."""
    certificate, last = learner.certificate_, learner.certificate_.last
    for k, (w, result) in enumerate(zip(hypotheses(setting, learner), expected, strict=True)):

        def claimed(proven, name, k=k):
            return np.atleast_1d(getattr(proven, name))[k]

        for count in ("seen", "mistakes", "updates"):
            assert claimed(certificate, count) == getattr(result, count), (setting, count)
        assert claimed(last, "bound") == pytest.approx(result.bound, rel=tolerance)
        # The best bound that was proven when w was last summed anew, or is now; there were better ones between.
        assert claimed(last, "bound") <= claimed(last, "best_bound") <= result.best_bound * (1 + tolerance)
        if last.own_bound is not None:
            assert claimed(last, "own_bound") == pytest.approx(result.own_bound, rel=tolerance)
        if not RULES[certificate.rule].scale_free:
            assert claimed(last, "coef_sum") == pytest.approx(result.coef_sum, rel=tolerance)
            assert claimed(last, "norm") == pytest.approx(norm(result.w), rel=tolerance)
        goal = result.averaged_w if setting.average else result.w
        np.testing.assert_allclose(w / norm(w), goal / norm(goal), atol=tolerance)
        if setting.average:
            bound = result.averaged_coef_sum / norm(goal)
            assert claimed(certificate, "bound") == pytest.approx(bound, rel=tolerance)
            best = max(claimed(certificate, "bound"), claimed(last, "best_bound"))
            assert claimed(certificate, "best_bound") == best


def learn(setting, rule, X, codes, weights=None, **params):
    learner = setting.classifier(rule, rule_params=params or None)
    return learner.partial_fit(X, codes, classes=np.arange(setting.n_classes), sample_weight=weights)


def test_every_rule_has_a_reference():
    assert set(RULES) == set(REFERENCE)


def test_separable_stream_is_learnt_as_by_the_reference(rule, settings):
    for setting in settings:
        if setting.learning == "binary":
            X, codes, _ = separable(100, 6, fit_intercept=setting.fit_intercept, dtype=setting.dtype)
        else:
            X, codes = clusters(100, dtype=setting.dtype)
        X[5::17] = 0.0
        X, codes = without_ties(setting, rule, X, codes)
        expected = references(setting, rule, X, codes)
        assert_is_reference(setting, learn(setting, rule, X, codes), expected, TOLERANCE[setting.dtype])


def test_noisy_stream_is_learnt_as_by_the_reference(rule, settings):
    for setting in settings:
        if setting.dtype == "float64":  # on noise, rounding to float32 changes which steps are taken
            X, codes = stream(80, 20, n_classes=setting.n_classes, noise=0.03)
            X, codes = without_ties(setting, rule, X, codes)
            expected = references(setting, rule, X, codes)
            assert_is_reference(setting, learn(setting, rule, X, codes), expected, 1e-9)


def test_restarts_clear_every_weight(rule):
    """Each row is much shorter than the last: aggressive ROMMA and NAROMMA start anew from many."""
    for setting in PAIRWISE_SETTINGS:
        if setting.dtype == "float64":
            X, codes = stream(10, 3, n_classes=setting.n_classes, noise=0.0, density=1.0, seed=1)
            X *= 0.3 ** np.arange(10)[:, None]
            X, codes = without_ties(setting, rule, X, codes)
            expected = references(setting, rule, X, codes)
            restarts = sum(result.kinds.count("II") for result in expected)
            assert restarts > len(expected) or not RULES[rule].restarts or setting.fit_intercept
            assert_is_reference(setting, learn(setting, rule, X, codes), expected, 1e-9)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("pa1", {"C": 0.05}),
        ("pa2", {"C": 0.05}),
        ("alma", {"alpha": 0.5, "B": 2.0, "C": 0.7}),
        ("norma", {"eta": 0.3, "lambda_reg": 0.1, "nu": 0.5, "clip": 0.0}),
    ],
)
def test_parameters_mean_what_they_mean_in_the_paper(name, params):
    X, codes = stream(100, 8)
    learner = learn(BINARY, name, X, codes, **params)
    assert_is_reference(BINARY, learner, references(BINARY, name, X, codes, **params), 1e-9)


# Late classes


def test_joint_learning_meets_late_classes_as_the_reference_does(rule):
    """Kesler's examples, where a class is a wrong one only from its first row on."""
    setting = Setting("joint", average=True, fit_intercept=False, dtype="float64")
    for first_rows in ([0, 10, 20, 40], [1, 50, 0, 22]):
        X, codes = late(60, 12, first_rows, noise=0.02)
        expected = run_joint(rule, X, codes, 4, average=True, late=True)
        certificate = setting.classifier(rule).partial_fit(X, codes).certificate_
        assert certificate.last.bound == pytest.approx(expected.bound, rel=1e-9)
        assert certificate.best_bound == max(certificate.bound, certificate.last.best_bound)
        assert certificate.last.best_bound <= expected.best_bound * (1 + 1e-9)
        assert (certificate.mistakes, certificate.updates) == (expected.mistakes, expected.updates)
        bound = expected.averaged_coef_sum / norm(expected.averaged_w)
        assert certificate.bound == pytest.approx(bound, rel=1e-9)


def test_late_head_is_learnt_from_its_first_row_on(rule):
    setting = Setting("ovr", average=False, fit_intercept=False, dtype="float64")
    first_rows = [50, 0, 22, 10]  # row 22 is 0; the class begins there all the same
    X, codes = late(100, 8, first_rows, noise=0.0)
    assert not X[22].any()
    learner = setting.classifier(rule).partial_fit(X, codes)
    certificate = learner.certificate_
    assert certificate.since.tolist() == [50, 0, 22, 0]
    for head, since in enumerate(certificate.since):
        expected = run(rule, X[since:], signs(codes[since:] == head))
        assert certificate.seen[head] == 100 - since
        assert certificate.mistakes[head] == expected.mistakes
        assert certificate.updates[head] == expected.updates
        assert certificate.bound[head] == pytest.approx(expected.bound, rel=1e-9)


# Weights


def test_weighted_steps_are_those_of_the_reference(rule):
    for setting in (BINARY, AVERAGED):
        X, codes, _ = separable(120, 6, fit_intercept=setting.fit_intercept)
        weights = 10.0 ** np.random.default_rng(0).uniform(-0.5, 0.5, len(X))
        weights[3::7] = 0.0
        ((Z, Y),) = problems(setting, X, codes)
        expected = run(rule, Z, Y, weights, average=True)
        learner = learn(setting, rule, X, codes, weights)
        assert learner.certificate_.weighted
        assert_is_reference(setting, learner, [expected], 1e-9)
