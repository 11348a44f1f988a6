"""Every rule, in the engine, against its paper's pseudocode."""

import numpy as np
import pytest

from maxcosine import RULES, OnlineClassifier
from tests.reference import REFERENCE, norm, run
from tests.rules.streams import stream

STREAMS = {
    "separable": {},
    "noisy": {"noise": 0.03, "d": 20, "n": 80},
    "plenty of zero rows": {"zeros": 0.5},
}


@pytest.fixture(params=STREAMS)
def data(request):
    return [stream(seed, **STREAMS[request.param]) for seed in range(3)]


def test_every_rule_has_its_reference():
    assert set(RULES) == set(REFERENCE)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_its_papers_algorithm(name, average, data):
    for sample in data:
        learner = OnlineClassifier(name, average=average, fit_intercept=False)
        learner.partial_fit(sample.X, sample.y, classes=[-1, 1])
        expected = run(name, sample.X, sample.y, average=average)
        assert_same(learner.certificate_.last, expected)
        if average:
            assert_same_average(learner, expected)
        else:
            assert_same_vector(learner, expected.w, expected.coef_sum)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("pa1", {"C": 0.05}),
        ("pa2", {"C": 0.05}),
        ("alma", {"alpha": 0.5, "B": 2.0, "C": 0.7}),
        ("norma", {"eta": 0.3, "lambda_reg": 0.1, "nu": 0.5, "clip": 0.0}),
    ],
)
def test_parameters_mean_what_they_mean_in_the_paper(name, params, data):
    for sample in data:
        learner = OnlineClassifier(name, rule_params=params, fit_intercept=False)
        learner.partial_fit(sample.X, sample.y, classes=[-1, 1])
        expected = run(name, sample.X, sample.y, **params)
        assert_same(learner.certificate_, expected)
        assert_same_vector(learner, expected.w, expected.coef_sum)


def close(value):
    return pytest.approx(value, rel=1e-9)


def assert_same(certificate, expected):
    for count in ("seen", "mistakes", "updates"):
        assert getattr(certificate, count) == getattr(expected, count), count
    assert certificate.bound == close(expected.bound)
    assert certificate.best_bound == close(expected.best_bound)
    if certificate.own_bound is not None:
        assert certificate.own_bound == close(expected.own_bound)
    if not RULES[certificate.rule].scale_free:
        assert certificate.coef_sum == close(expected.coef_sum)
        assert certificate.norm == close(norm(expected.w))


def assert_same_vector(learner, w, coef_sum):
    """The same w, or where its length means nothing, the same point w / Lambda of the hull."""
    found = learner.coef_[0]
    if RULES[learner.rule].scale_free:
        found, w = found / learner.certificate_.coef_sum, w / coef_sum
    np.testing.assert_allclose(found, w, rtol=1e-9, atol=1e-9 * norm(w))


def assert_same_average(learner, expected):
    """The mean of the hypotheses, whose Lambda is the mean of their Lambdas."""
    certificate, bound = learner.certificate_, expected.averaged_coef_sum / norm(expected.averaged_w)
    assert certificate.averaged
    assert certificate.bound == close(bound)
    assert certificate.best_bound == close(max(expected.best_bound, bound))
    assert_same_vector(learner, expected.averaged_w, expected.averaged_coef_sum)
