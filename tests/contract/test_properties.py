"""All laws at once, on streams that Hypothesis makes up."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.contract.streams import are_examples, claims, csr, hypotheses, problems
from tests.contract.test_finite import assert_finite_and_tracked
from tests.learners import ALL_SETTINGS, learnt
from tests.reference import attained_margin

pytestmark = pytest.mark.filterwarnings("ignore::maxcosine.SortedLabelsWarning")


@st.composite
def streams(draw):
    """A setting, rows of mixed norms and density, labels that are more or less noise, cuts into chunks.

    Returns the setting, X, codes, the directions that made the labels, and the cuts.
    """
    setting = draw(st.sampled_from(ALL_SETTINGS))
    n, n_features = draw(st.integers(1, 250)), draw(st.integers(1, 40))
    decades, density, noise = draw(st.floats(0, 5)), draw(st.floats(0.05, 1)), draw(st.floats(0, 1))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < density)
    X = (X * 10.0 ** rng.uniform(-decades, decades, (n, 1))).astype(setting.dtype)
    X[np.linalg.norm(X, axis=1) < 1e-8] = 0.0  # float32 weights cannot learn from much shorter rows
    truth = rng.normal(size=(setting.n_classes, n_features))
    codes = (X @ truth.T).argmax(axis=1)
    wrong = rng.random(n) < max(0.0, noise - 0.5)
    codes = np.where(wrong, rng.integers(0, setting.n_classes, n), codes)
    return setting, X, codes, truth, [0, *sorted(draw(st.sets(st.integers(1, n), max_size=6)) - {n}), n]


def separators(setting, truth):
    """The vectors that made the labels, one for each binary problem."""
    W = np.pad(truth, ((0, 0), (0, int(setting.fit_intercept))))
    if setting.learning == "joint":
        return [W.ravel()]
    return [W[1] - W[0]] if setting.learning == "binary" else list(W - np.roll(W, 1, axis=0))


def assert_ceilings_hold(setting, learner, X, codes, truth):
    """No margin is above the ceiling: neither that of the hypothesis nor that of the labelling vectors."""
    if X.any():
        ceilings = claims(learner.certificate_, "margin_ceiling")
        for w, w_star, (Z, Y), ceiling in zip(
            hypotheses(setting, learner),
            separators(setting, truth),
            problems(setting, X, codes),
            ceilings,
            strict=True,
        ):
            rounding = 1e2 * np.finfo(X.dtype).eps * np.linalg.norm(Z, axis=1).max()
            assert max(attained_margin(w, Z, Y), attained_margin(w_star, Z, Y)) <= ceiling + rounding


@pytest.mark.slow
@hypothesis_settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(made=streams())
def test_every_law_on_any_stream(rule, made):
    setting, X, codes, truth, cuts = made
    classes = np.arange(setting.n_classes)
    learner = setting.classifier(rule).partial_fit(X, codes, classes=classes)
    chunked = setting.classifier(rule)
    for start, stop in itertools.pairwise(cuts):
        chunked.partial_fit(csr(X[start:stop]), codes[start:stop], classes=classes)
    assert learnt(chunked) == learnt(learner)
    assert_finite_and_tracked(learner)
    assert learner.n_seen_ == len(X)
    assert np.all(claims(learner.certificate_, "mistakes") <= are_examples(X, setting.fit_intercept).sum())
    assert learner.mistakes_ <= len(X)
    assert_ceilings_hold(setting, learner, X, codes, truth)
