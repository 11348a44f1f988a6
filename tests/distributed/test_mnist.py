"""MNIST in eight shards, compared with one pass over all examples."""

import itertools

import numpy as np
import pytest
import scipy.sparse

from maxcosine import MCPExactClassifier
from maxcosine.distributed import fit

N_SHARDS, N_ORDERS = 8, 3

pytestmark = pytest.mark.slow


def test_one_round_costs_at_most_5_percent_and_three_rounds_cost_nothing(mnist):
    X_test, y_test = scipy.sparse.csr_array(mnist.X_test.astype(np.float64)), mnist.y_test
    learner = MCPExactClassifier(fit_intercept=False)
    mistakes = dict.fromkeys(("one pass", 1, 3), 0)

    def count(key, fitted):
        wrong = (fitted.decision_function(X_test) > 0) != (y_test[:, None] == fitted.classes_)
        mistakes[key] += np.count_nonzero(wrong)

    for seed in range(N_ORDERS):
        order = np.random.default_rng(seed).permutation(len(mnist.y_train))
        X = scipy.sparse.csr_array(mnist.X_train[order].astype(np.float64))
        y = mnist.y_train[order].astype(int)
        edges = np.linspace(0, len(y), N_SHARDS + 1).astype(int)
        shards = [[(X[i:j], y[i:j])] for i, j in itertools.pairwise(edges)]
        count("one pass", fit([[(X, y)]], learner))
        for rounds in (1, 3):
            count(rounds, fit(shards, learner, rounds=rounds))
    assert mistakes[1] <= 1.05 * mistakes["one pass"]
    assert mistakes[3] <= mistakes["one pass"]
