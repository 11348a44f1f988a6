"""The average is the mean of the hypotheses after each example, however w is rescaled in between."""

import itertools

import numpy as np
import pytest

from maxcosine import RULES, OnlineClassifier
from tests.contract.streams import stream
from tests.engine.own_rule import rescaling

TOLERANCE = {"float32": 1e-4, "float64": 1e-11}


def learner(name, params, fit_intercept, **options):
    return OnlineClassifier(name, rule_params=params, fit_intercept=fit_intercept, **options)


def assert_average_is_explicit_mean(name, X, codes, params=None, fit_intercept=False):
    """Compare with the mean over a second learner that is asked for its weights after every row."""
    single, hypotheses = learner(name, params, fit_intercept), []
    for k in range(len(X)):
        single.partial_fit(X[k : k + 1], codes[k : k + 1], classes=[0, 1])
        if X[k].any() or fit_intercept:
            hypotheses.append(np.append(single.coef_[0], single.intercept_).astype(np.float64))
    averaged = learner(name, params, fit_intercept, average=True).partial_fit(X, codes, classes=[0, 1])
    found = np.append(averaged.coef_[0], averaged.intercept_)
    longest = np.linalg.norm(hypotheses, axis=1).max()
    np.testing.assert_allclose(found, np.mean(hypotheses, axis=0), atol=TOLERANCE[X.dtype.name] * longest)


@pytest.mark.parametrize("name", RULES)
def test_average_is_the_mean_of_the_hypotheses(name):
    for dtype, fit_intercept in (("float32", False), ("float64", True)):
        X, codes = stream(80, 7, dtype=dtype)
        assert_average_is_explicit_mean(name, X, codes, fit_intercept=fit_intercept)


@pytest.mark.parametrize("keep", [0.5, 2.0], ids=["halving", "doubling"])
def test_average_survives_rescaling(keep):
    for dtype, always in itertools.product(("float32", "float64"), (0.0, 1.0)):
        X, codes = stream(120, 4, dtype=dtype, noise=0.5)
        assert_average_is_explicit_mean(rescaling, X, codes, {"keep": keep, "always": always})


def test_average_survives_the_decay_of_norma():
    for dtype, decay in itertools.product(("float32", "float64"), (0.001, 0.1, 0.9)):
        X, codes = stream(120, 4, dtype=dtype)
        assert_average_is_explicit_mean("norma", X, codes, {"eta": 1.0, "lambda_reg": decay})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_average_of_norma_stays_true_for_long(dtype):
    """By default a long stream sees w decay by hundreds of orders of magnitude, and be learnt again."""
    X, codes = stream(400_000, 3, density=1.0, dtype=dtype)
    last, average = (
        OnlineClassifier("norma", average=average, fit_intercept=False).fit(X, codes).coef_[0]
        for average in (False, True)
    )
    assert np.dot(last, average) >= 0.9 * np.linalg.norm(last) * np.linalg.norm(average)
    assert np.linalg.norm(average) <= 3.0 * np.linalg.norm(last)
