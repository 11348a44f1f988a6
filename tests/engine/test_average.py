"""The averaged hypothesis is the mean of the hypotheses after each example, and its Lambda that of theirs."""

import numpy as np
import pytest

from maxcosine import rule
from tests.contract.streams import (
    both_types,
    every_rule,
    new_model,
    one_by_one,
    rows,
    stacked,
    stream,
    taught,
    teach,
    with_intercept_or_not,
)

TOLERANCE = {"float32": 1e-4, "float64": 1e-11}


@rule
def halving(margin, sq_w, sq_x, coef_sum, state, params):
    """Forget half in every round, learn in every round."""
    return 0.5, 1.0 / sq_x, state


@rule
def slow_halving(margin, sq_w, sq_x, coef_sum, state, params):
    """Forget half in every round, learn from mistakes only."""
    return 0.5, (1.0 / sq_x if margin <= 0.0 else 0.0), state


@rule
def doubling(margin, sq_w, sq_x, coef_sum, state, params):
    """Trust w twice as much in every round, up to a point."""
    return (2.0 if sq_w < 1e6 else 1e-3), 1.0 / sq_x, state


OWN = {"halving": halving, "slow_halving": slow_halving, "doubling": doubling}


def explicit_mean(learner, X, codes, **options):
    """Mean and largest length of the hypotheses after each row, and the mean Lambda."""
    hypotheses, coef_sums = [], []
    for model in one_by_one(new_model(learner, X, **options), X, codes):
        hypotheses.append(stacked(model.heads.weights())[0])
        coef_sums.append(model.heads.coef_sum[0])
    learnt = X.any(axis=1)
    hypotheses, coef_sums = np.array(hypotheses)[learnt], np.array(coef_sums)[learnt]
    return hypotheses.mean(axis=0), np.linalg.norm(hypotheses, axis=1).max(), coef_sums.mean()


def assert_is_explicit_mean(learner, X, codes, **options):
    mean, longest, coef_sum = explicit_mean(learner, X, codes, **options)
    heads = taught(learner, X, codes, average=True, **options).heads
    tolerance = TOLERANCE[X.dtype.name]
    np.testing.assert_allclose(stacked(heads.averaged_weights())[0], mean, rtol=0, atol=tolerance * longest)
    # What is claimed of Lambda is less by what rounding may have done in as many writes as rows.
    exact = heads.table["sum_coef"][0] / heads.table["learnt"][0]
    assert exact == pytest.approx(coef_sum, rel=4 * len(X) * float(np.finfo(X.dtype).eps))
    assert 0.0 < heads.averaged_proven().coef_sum[0] <= exact


@every_rule
@both_types
@with_intercept_or_not
def test_average_is_the_mean_of_the_hypotheses(name, dtype, fit_intercept):
    X, codes = stream(150, 7, dtype=dtype)
    assert_is_explicit_mean(name, X, codes, fit_intercept=fit_intercept)


@both_types
@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("n", [40, 200, 3000])
def test_average_survives_rescaling(name, dtype, n):
    X, codes = stream(rows(n), 4, dtype=dtype, noise=0.5)
    assert_is_explicit_mean(OWN[name], X, codes)


@both_types
@pytest.mark.parametrize("decay", [0.001, 0.1, 0.9])
def test_average_survives_the_decay_of_norma(dtype, decay):
    X, codes = stream(rows(3000), 4, dtype=dtype)
    assert_is_explicit_mean("norma", X, codes, eta=1.0, lambda_reg=decay)


@both_types
def test_average_of_norma_stays_true_for_long(dtype):
    """By default a long stream sees w decay by hundreds of orders of magnitude, and be learnt again."""
    X, codes = stream(rows(400_000), 3, density=1.0, dtype=dtype)
    heads = taught("norma", X, codes, average=True).heads
    last, average = heads.weights()[0][0], heads.averaged_weights()[0][0]
    assert np.dot(last, average) >= 0.9 * np.linalg.norm(last) * np.linalg.norm(average)
    assert np.linalg.norm(average) <= 3.0 * np.linalg.norm(last)


@every_rule
def test_averaging_changes_no_last_hypothesis(name):
    X, codes = stream(100, 7, n_classes=3)
    plain, averaged = (
        taught(name, X, codes, n_classes=3, average=average).heads for average in (False, True)
    )
    np.testing.assert_array_equal(stacked(averaged.weights()), stacked(plain.weights()))


@every_rule
def test_growing_keeps_the_average(name):
    X, codes = stream(100, 6)
    X[:50, 3:] = 0.0
    narrow = np.ascontiguousarray(X[:50, :3])
    expected = taught(name, X, codes, average=True).heads
    model = teach(new_model(name, narrow, average=True), narrow, codes[:50])
    model.heads.grow(6)
    heads = teach(model, X[50:], codes[50:]).heads
    np.testing.assert_array_equal(stacked(heads.averaged_weights()), stacked(expected.averaged_weights()))
