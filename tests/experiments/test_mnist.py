"""One label and one order of the full MNIST, beside the reference: the same counts, to the digit."""

import numpy as np
import pytest

from maxcosine import RULES
from maxcosine.experiments.protocol import Laboratory, Protocol, learners_of
from tests.reference import REFERENCE, UPDATES

LABEL, PERMUTATION = 5, 3

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def unit(mnist):
    laboratory = Laboratory(mnist, Protocol(learners_of(list(RULES), average=True), mnist.buckets))
    return {run["rule"]: run for run in laboratory.unit(LABEL, PERMUTATION)["runs"]}


def in_order(mnist):
    order = Protocol(learners_of(["pa"]), mnist.buckets).order(LABEL, PERMUTATION)
    rows = (order[:, None] * 1000 + np.arange(1000)).ravel()
    return mnist.X_train[rows], np.where(mnist.y_train[rows] == LABEL, 1, -1)


@pytest.mark.parametrize("name", RULES)
def test_counts_on_mnist_are_those_of_the_reference(name, mnist, unit):
    X, y = in_order(mnist)
    learner = REFERENCE[name]()
    w, total = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    mistakes = updates = 0
    for a, sign in zip(X, y, strict=True):
        a = a.astype(np.float64)
        mistakes += bool(sign * np.dot(w, a) <= 0)
        updates += learner.learn(a, sign) in UPDATES
        w = learner.w
        total += w
    right = mnist.y_test == LABEL
    for run, hypothesis in ((unit[name], w), (unit[f"avg_{name}"], total)):
        wrong = np.count_nonzero((mnist.X_test.astype(np.float64) @ hypothesis > 0.0) != right)
        assert (run["test_mistakes"], run["train_mistakes"], run["updates"]) == (wrong, mistakes, updates)
