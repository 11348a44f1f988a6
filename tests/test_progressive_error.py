"""The interval for the true error: it covers at all times at once, and is as narrow as the theory says."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxcosine import MCPClassifier, ProgressiveError
from maxcosine.progressive_error import LAMBDAS, log_wealth


def wealth(wrong, judged, p, sign):
    """The martingale, term by term."""
    lambdas = [sign * 2.0**k for k in range(-8, 3)]
    return math.fsum(math.exp(x * wrong) / (1 - p + p * math.exp(x)) ** judged for x in lambdas) / len(lambdas)


@pytest.mark.parametrize(("wrong", "judged"), [(0, 1), (1, 1), (3, 40), (40, 40), (0, 200), (25, 100)])
def test_ends_are_where_the_martingale_reaches_its_limit(wrong, judged):
    error = ProgressiveError(wrong, judged)
    if error.low > 0.0:
        assert wealth(wrong, judged, error.low, 1) == pytest.approx(40.0, rel=1e-6)  # 2 / 0.05
    if error.high < 1.0:
        assert wealth(wrong, judged, error.high, -1) == pytest.approx(40.0, rel=1e-6)


@given(st.integers(1, 10**9), st.floats(0, 1), st.floats(0.5, 0.999))
def test_interval_contains_the_rate_and_widens_with_confidence(judged, share, confidence):
    wrong = round(share * judged)
    error, surer = (
        ProgressiveError(wrong, judged, confidence),
        ProgressiveError(wrong, judged, 1 - (1 - confidence) / 2),
    )
    assert 0.0 <= surer.low <= error.low <= error.rate <= error.high <= surer.high <= 1.0


@pytest.mark.parametrize(("judged", "width"), [(10**3, 0.047), (10**4, 0.015), (10**5, 0.0047)])
def test_width_at_an_error_of_five_percent(judged, width):
    error = ProgressiveError(judged // 20, judged)
    assert error.high - error.low == pytest.approx(width, rel=0.02)


def test_nothing_is_known_before_the_first_prediction():
    error = ProgressiveError(0, 0)
    assert (error.rate, error.low, error.high) == (0.0, 0.0, 1.0)


def misses(random, n_streams, n_rows):
    """The share of streams on which the mean error probability leaves the interval at any time."""
    missed = 0
    limit = math.log(2 / 0.05)
    rows = np.arange(1, n_rows + 1)
    for _ in range(n_streams):
        # A rate that jumps, drifts, and reacts to the errors so far, as that of a learner does.
        start, end, jump = random.uniform(0, 0.6, 3)
        p = np.where(rows < random.integers(1, n_rows), np.linspace(start, end, n_rows), jump)
        wrong = random.random(n_rows) < p
        after_error = np.concatenate([[False], wrong[:-1]])
        p = np.where(after_error, p / 2, p)
        wrong &= ~after_error | (random.random(n_rows) < 0.5)
        errors, mean = np.cumsum(wrong), np.cumsum(p) / rows
        outside = [log_wealth(errors, rows, mean, side) >= limit for side in (LAMBDAS, -LAMBDAS)]
        missed += bool(np.any(outside))
    return missed / n_streams


def test_interval_covers_at_all_times_at_once():
    assert misses(np.random.default_rng(0), 200, 500) <= 0.05


@pytest.mark.slow
def test_interval_covers_at_all_times_at_once_on_many_long_streams():
    assert misses(np.random.default_rng(1), 2000, 5000) <= 0.05


def test_words_round_outwards():
    error = ProgressiveError(410, 10_000)
    assert str(error).startswith(
        "error so far 4.1 %; with 95 % confidence the mean true error of the hypotheses used lies"
    )
    low, high = (float(word) for word in error.ends.replace("%", "").split("and"))
    assert low <= 100 * error.low
    assert 100 * error.high <= high


@pytest.mark.parametrize(("wrong", "judged", "confidence"), [(2, 1, 0.95), (-1, 5, 0.95), (0, 1, 1.0), (0, 1, 0.0)])
def test_impossible_counts_are_refused(wrong, judged, confidence):
    with pytest.raises(ValueError, match="give"):
        ProgressiveError(wrong, judged, confidence)


def test_classifiers_have_the_error_of_their_mistakes():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 5))
    y = (X[:, 0] > 0).astype(int)
    learner = MCPClassifier().fit(X, y)
    assert learner.error_ == ProgressiveError(learner.mistakes_, 300)
    twice = MCPClassifier(passes=2).fit(X, y)
    assert not hasattr(twice, "error_")
    with pytest.raises(AttributeError, match="not learnt before"):
        twice.error_  # noqa: B018
