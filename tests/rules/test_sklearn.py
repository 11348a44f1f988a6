"""The rules that scikit-learn has, too: the same weights from two programs."""

import itertools

import numpy as np
import pytest
from sklearn.linear_model import Perceptron, SGDClassifier

from tests.rules.streams import learnt, stream

ONE_PASS = {"fit_intercept": False, "penalty": None, "shuffle": False, "max_iter": 1, "tol": None}


@pytest.fixture(params=[0.0, 0.1], ids=["separable", "noisy"])
def data(request):
    # scikit-learn's passive-aggressive learners take a zero row for one of norm eps.
    return stream(7, n=1000, noise=request.param, zeros=0.0)


def assert_same_weights(ours, theirs):
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9, atol=1e-12)


def test_passive_aggressive_rules_are_those_of_scikit_learn(data):
    for name, C in itertools.product(("pa1", "pa2"), (0.01, 0.1, 1.0, 10.0)):
        theirs = SGDClassifier(loss="hinge", learning_rate=name, eta0=C, **ONE_PASS)
        assert_same_weights(learnt(name, data, C=C), theirs.fit(data.X, data.y))


def test_pa_is_pa1_without_a_cap(data):
    theirs = SGDClassifier(loss="hinge", learning_rate="pa1", eta0=1e9, **ONE_PASS)
    assert_same_weights(learnt("pa", data), theirs.fit(data.X, data.y))


def test_perceptron_is_that_of_scikit_learn(data):
    theirs = Perceptron(**ONE_PASS).fit(data.X, data.y)
    assert_same_weights(learnt("perceptron", data), theirs)
