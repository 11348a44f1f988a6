"""What is claimed of w holds for the exact combination of examples that w stands for, however rounding moved w."""

from fractions import Fraction

import numpy as np
import pytest

from maxcosine import OnlineClassifier, merge
from tests.engine.own_rule import adding
from tests.learners import tensors
from tests.reference import maximal_margin

EPS = float(np.finfo(np.float32).eps)


def learn_steps(X, signs, steps, **options):
    """Add each row with its own coefficient, one after the other; no intercept."""
    learner = OnlineClassifier(adding, fit_intercept=False, **options)
    for x, sign, step in zip(X, signs, steps, strict=True):
        learner.set_params(rule_params={"add": step})
        learner.partial_fit(x[None], [int(sign > 0)], classes=[0, 1])
    return learner


def exact_point(X, signs, steps):
    """The combination of the rows with these coefficients, and its square norm, as fractions."""
    coefs = [int(sign) * Fraction(step) for sign, step in zip(signs, steps, strict=True)]
    point = [sum(c * Fraction(float(x)) for c, x in zip(coefs, column, strict=True)) for column in X.T]
    return point, sum(component**2 for component in point)


def test_w_that_cancels_to_0_claims_no_more_than_its_slack_allows():
    """Rows too short for float32 beside w are lost one by one; then w cancels to 0, and what was lost is all of it."""
    for n_lost in (1, 64, 1024):
        step = 2.0**-26  # beside 1, less than half a unit in the last place, on either side
        X = np.array([[1.0, 1.0], *[[1.0, -1.0]] * n_lost, [1.0, 1.0]], np.float32)
        signs, steps = [1, *[1] * n_lost, -1], [1.0, *[step] * n_lost, 1.0]
        learner = learn_steps(X, signs, steps)
        certificate = learner.certificate_
        assert certificate.norm == 0.0
        assert not learner.coef_.any()
        _, sq_norm = exact_point(X, signs, steps)
        assert Fraction(certificate.best_bound) ** 2 * sq_norm <= sum(map(Fraction, steps)) ** 2
        assert certificate.margin_ceiling >= EPS * np.sqrt(2.0)
        # Not much less either: each step may lose eps times what it writes.
        assert certificate.margin_ceiling <= 2 * (n_lost + 2) * EPS * np.sqrt(2.0)


def test_separable_rows_whose_sum_rounds_to_0_keep_their_margin():
    """The second row is rounded up in one place, and down in the other; the third one is minus what came of it."""
    first = np.array([1.9, 4.0], np.float32)
    second = np.array([1.01 * 2.0**-24, 0.99 * 2.0**-22], np.float32)
    X = np.stack([first, second, first + second])
    signs = np.array([1.0, 1.0, -1.0])
    margin = maximal_margin(X.astype(np.float64), signs)
    assert margin > 1e-9
    for average in (False, True):
        certificate = learn_steps(X, signs, [1.0] * 3, average=average).certificate_
        assert certificate.last.norm == 0.0
        assert certificate.margin_ceiling >= margin


@pytest.mark.parametrize("step", [1e-162, 1e-200, 1e-230])
def test_steps_whose_squares_underflow_claim_no_more_than_steps_of_1(step):
    """w is kept as scale * v, so its claim stays the same; sums over time underflow, and claim less."""
    random = np.random.default_rng(0)
    X = random.normal(size=(30, 3))
    signs = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    codes = (signs > 0).astype(int)
    for average in (False, True):
        short, plain = (learn_steps(X, signs, [s] * 30, average=average) for s in (step, 1.0))
        last, expected = short.certificate_.last, plain.certificate_.last
        assert last.bound == pytest.approx(expected.bound, rel=1e-12)
        assert last.best_bound == pytest.approx(expected.best_bound, rel=1e-12)
        assert last.norm == pytest.approx(step * expected.norm, rel=1e-12)
        assert 0.0 < short.certificate_.bound <= plain.certificate_.bound * (1 + 1e-12)
        assert short.certificate_.norm == pytest.approx(step * plain.certificate_.norm, rel=1e-12)
        attained = short.attained_margin(X, codes)
        assert attained == pytest.approx(plain.attained_margin(X, codes), rel=1e-9, abs=1e-9)
        assert attained <= maximal_margin(X, signs) * (1 + 1e-9) <= short.certificate_.margin_ceiling * (1 + 2e-9)
        np.testing.assert_array_equal(short.predict(X), plain.predict(X))


def test_rows_too_short_to_carry_a_claim_beside_long_ones_claim_none():
    """In float32, beside a row of length 1e9, nothing is known of directions that rows of length 1e-9 span."""
    X = np.array([[0.9e9, 0.0], [0.0, 1.1e-9], [0.9e9, 0.0]], np.float32)
    certificate = learn_steps(X, [1, 1, -1], [1.0] * 3).certificate_
    assert certificate.margin_ceiling >= EPS * 0.9e9


@pytest.mark.parametrize("name", ["romma", "aggressive_romma", "naromma"])
def test_slack_that_overflows_claims_nothing_and_can_be_saved(name):
    """On noise, w shrinks without end beside what rounding did to it."""
    random = np.random.default_rng(1)
    X = random.normal(size=(60_000, 5))
    y = (X[:, 0] > 0) ^ (random.random(len(X)) < 0.3)
    noisy = OnlineClassifier(name, average=True).fit(X, y)
    model = tensors(noisy)
    assert np.isinf(model["head.slack_v"]).all()
    assert not np.isnan(model["head.sum_slack"]).any()
    certificate = noisy.certificate_
    for proven in (certificate, certificate.last):
        assert proven.bound == 0.0
        assert proven.best_bound > 0.0
    quiet = OnlineClassifier(name, average=True).fit(X[:50], X[:50, 0] > 0)
    for how in ("certified", "mean"):
        merged = merge([noisy, quiet], how=how)
        assert not np.isnan(tensors(merged)["head.slack_v"]).any()
        assert merged.certificate_.best_bound >= certificate.best_bound
        bound, alone = merged.certificate_.bound, quiet.certificate_.bound
        assert bound == 0.0 if how == "mean" else alone * (1 - 1e-8) <= bound <= alone
