"""The average is the mean of the hypotheses after each example, however w is rescaled in between."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from maxcosine import RULES, OnlineClassifier
from tests.contract.streams import separable, signs, stream
from tests.engine.own_rule import rescaling
from tests.reference import run

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


# Rows and weights of very different sizes, in exact arithmetic


def power_of_two(exponent):
    return Fraction(2) ** int(exponent)


def exact_last(learner):
    """The last hypothesis as its rule would have it, and how far rounding may have moved it, as fractions."""
    heads = learner.model_.heads
    (head,) = heads.table
    unit = Fraction(float(head["scale"])) * power_of_two(head["w_exponent"])
    w = [Fraction(float(v)) * unit for v in heads.arrays.v[:, 0]]
    return w, Fraction(float(head["slack_v"])) * unit


def exact_average(learner):
    """The averaged hypothesis, and how far rounding may have moved it, as fractions."""
    heads = learner.model_.heads
    (head,), (slack,) = heads.table, heads.proven(averaged=True).slack
    unit = power_of_two(head["sum_exponent"])
    S, v, total = Fraction(float(head["sum_scale"])), heads.arrays.v[:, 0], heads.arrays.total[:, 0]
    sums = [S * Fraction(float(a)) + Fraction(float(b)) for a, b in zip(v, total, strict=True)]
    return [one * unit / int(head["learnt"]) for one in sums], Fraction(float(slack)) * unit


def norm_of(vector):
    """The norm of a vector of fractions that may be far outside of float64, as a fraction up to rounding."""
    largest = max(abs(component) for component in vector)
    if not largest:
        return Fraction(0)
    return largest * Fraction(float(np.linalg.norm([float(component / largest) for component in vector])))


def of_many_sizes(of_rows, of_weights, *, noise, dtype):
    """Rows whose lengths, and weights that, differ by so many decades."""
    random = np.random.default_rng(of_rows)
    X, codes, _ = separable(80, 4, margin=0.02)
    codes[random.random(80) < noise] ^= 1
    lengths = 10.0 ** random.uniform(-of_rows / 2, of_rows / 2, (80, 1))
    weights = 10.0 ** random.uniform(-of_weights / 2, of_weights / 2, 80)
    return (X * lengths).astype(dtype), codes, weights


decades = pytest.mark.parametrize(("of_rows", "of_weights"), [(6, 0), (9, 0), (0, 6), (0, 9), (9, 9)])


@decades
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", RULES)
def test_average_of_many_sizes_is_the_exact_mean(name, dtype, of_rows, of_weights):
    X, codes, weights = of_many_sizes(of_rows, of_weights, noise=0.1, dtype=dtype)
    last, mean, moved, longest = learner(name, None, False), [Fraction(0)] * 4, Fraction(0), Fraction(0)
    for k in range(80):
        last.partial_fit(X[k : k + 1], codes[k : k + 1], classes=[0, 1], sample_weight=weights[k : k + 1])
        w, slack = exact_last(last)
        mean = [total + component / 80 for total, component in zip(mean, w, strict=True)]
        moved, longest = moved + slack / 80, max(longest, norm_of(w))
    averaged = learner(name, None, False, average=True)
    averaged.partial_fit(X, codes, classes=[0, 1], sample_weight=weights)
    found, slack = exact_average(averaged)
    distance = norm_of([a - b for a, b in zip(found, mean, strict=True)])
    assert distance <= slack + moved  # what is claimed of it
    assert distance <= Fraction(TOLERANCE[dtype]) * longest
    assert norm_of(mean) > 0


@decades
@pytest.mark.parametrize("name", RULES)
def test_average_of_many_sizes_is_that_of_the_reference(name, of_rows, of_weights):
    X, codes, weights = of_many_sizes(of_rows, of_weights, noise=0.0, dtype="float64")
    averaged = learner(name, None, False, average=True).partial_fit(X, codes, [0, 1], sample_weight=weights)
    expected = run(name, X, signs(codes), weights, average=True).averaged_w
    found = averaged.coef_[0] / np.linalg.norm(averaged.coef_[0])
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected), atol=1e-9)
