"""The slack bounds what rounding did to the weights: checked in exact rational arithmetic, row by row.

A Perceptron's exact hypothesis is a plain sum of signed rows, so nothing of the engine is needed to know it.
"""

from fractions import Fraction

import numpy as np
import pytest

from maxcosine import OnlineClassifier

DTYPES = ("float32", "float64")


def rows_that_cancel(dtype, seed):
    """Rows of very different lengths, some of them followed by near-duplicates of the opposite label."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(60, 4)) * 10.0 ** random.uniform(-4, 4, (60, 1))
    twins = random.permutation(60)[:40].reshape(20, 2)
    closeness = 10.0 ** -random.uniform(1, 8, 20)
    X[twins[:, 1]] = X[twins[:, 0]] * (1.0 + closeness[:, None] * random.normal(size=(20, 4)))
    y = random.integers(0, 2, 60)
    y[twins[:, 1]] = 1 - y[twins[:, 0]]
    return X.astype(dtype), y


def exact(vector):
    return np.array([Fraction(float(value)) for value in vector])


def squared(vector):
    return sum(value * value for value in vector)


class ExactPerceptron:
    """The sum of the rows that were added, the sum of these sums over time, and how many rows were added."""

    def __init__(self, n_features):
        self.w = self.total = np.array([Fraction(0)] * n_features)
        self.coef_sum, self.coef_total = 0, 0

    def learn(self, x, sign, updated, cleared):
        if updated:
            self.w, self.coef_sum = self.w + sign * exact(x), self.coef_sum + 1
        if cleared:
            self.w, self.coef_sum = 0 * self.w, 0
        self.total, self.coef_total = self.total + self.w, self.coef_total + self.coef_sum


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(4))
def test_weights_are_within_the_slack_of_the_exact_sum(dtype, seed):
    X, y = rows_that_cancel(dtype, seed)
    learner = OnlineClassifier("perceptron", fit_intercept=False, average=True)
    perceptron, updates, moved = ExactPerceptron(X.shape[1]), 0, 0
    for x, label in zip(X, y.tolist(), strict=True):
        learner.partial_fit(x[None], [label], classes=[0, 1])
        heads = learner.model_.heads
        head, arrays = heads.table[0], heads.arrays
        perceptron.learn(x, 1 if label else -1, head["updates"] > updates, head["coef_v"] == 0.0)
        updates = head["updates"]
        scale, v = Fraction(float(head["scale"])), exact(arrays.v[:, 0])
        assert scale * Fraction(float(head["coef_v"])) == perceptron.coef_sum
        error = squared(scale * v - perceptron.w)
        assert error <= (scale * Fraction(float(head["slack_v"]))) ** 2
        S, slack = Fraction(float(head["sum_scale"])), Fraction(float(head["sum_slack"]))
        error_of_sum = squared(S * v + exact(arrays.total[:, 0]) - perceptron.total)
        assert error_of_sum <= (slack + S * Fraction(float(head["slack_v"]))) ** 2
        moved += error > 0
    assert moved > 10  # rounding did move the weights


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(4))
def test_claimed_bounds_are_below_the_exact_ones(dtype, seed):
    X, y = rows_that_cancel(dtype, seed)
    learner = OnlineClassifier("perceptron", fit_intercept=False, average=True)
    perceptron, updates = ExactPerceptron(X.shape[1]), 0
    best_possible = Fraction(0)
    for x, label in zip(X, y.tolist(), strict=True):
        learner.partial_fit(x[None], [label], classes=[0, 1])
        head = learner.model_.heads.table[0]
        perceptron.learn(x, 1 if label else -1, head["updates"] > updates, head["coef_v"] == 0.0)
        updates = head["updates"]
        proven = learner.certificate_
        claims = {proven.last.bound: (perceptron.coef_sum, perceptron.w)}
        claims[proven.bound] = (perceptron.coef_total, perceptron.total)
        for bound, (coef_sum, w) in claims.items():
            assert Fraction(bound) ** 2 * squared(w) <= coef_sum**2
            if squared(w):
                best_possible = max(best_possible, coef_sum**2 / squared(w))
        assert Fraction(proven.best_bound) ** 2 <= best_possible
        assert Fraction(proven.margin_ceiling) * Fraction(proven.best_bound) >= 1


def test_two_rows_that_nearly_cancel_give_no_false_ceiling():
    """The tracked norm of these two rows is wrong by 6 parts in 10,000."""
    X = np.array([[42.8858, 41.818825], [42.639626, 42.485214]], np.float32)
    for rule in ("alma", "romma", "aggressive_romma", "naromma", "mcp"):
        learner = OnlineClassifier(rule, fit_intercept=False)
        learner.partial_fit(X[:1], [0], classes=[0, 1])
        learner.partial_fit(X[1:], [1])
        # A separator: the direction of the point of the segment from -x_0 to x_1 that is nearest to the origin.
        first, second = -exact(X[0]), exact(X[1])
        along = second - first
        nearest = first - (first @ along) / squared(along) * along
        attained = min(nearest @ first, nearest @ second)
        assert attained > 0
        assert Fraction(learner.certificate_.margin_ceiling) ** 2 * squared(nearest) >= attained**2
