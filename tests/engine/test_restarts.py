"""A step with keep = 0 clears all weights that were written since the last one, logged or not."""

import numpy as np
import pytest

from maxcosine import OnlineClassifier
from tests.contract.streams import csr, signs
from tests.engine.own_rule import rescaling
from tests.learners import tensors
from tests.reference import norm, run

RESTARTING = ["aggressive_romma", "naromma"]
N_FEATURES = 16
# The log has room for one slot in eight columns: for no row, for some of them, and for all.
WIDTHS = (N_FEATURES, 80, 16_000)

restarting = pytest.mark.parametrize("name", RESTARTING)


def closing_in(dtype, n=200, seed=0):
    """Ever shorter examples of about one direction, some others between: many type II steps."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n, N_FEATURES))
    X[:, 0] = 1.0
    np.put_along_axis(X, rng.integers(1, N_FEATURES, (n, 2)), 0.3 * rng.normal(size=(n, 2)), axis=1)
    X *= 0.97 ** np.arange(n)[:, None]
    codes = rng.integers(0, 2, n)
    return (X * signs(codes)[:, None]).astype(dtype), codes


def widened(X, width):
    return csr(np.pad(X, ((0, 0), (0, width - X.shape[1]))))


def learn(name, X, codes, **options):
    return OnlineClassifier(name, fit_intercept=False, **options).partial_fit(X, codes, classes=[0, 1])


@restarting
@pytest.mark.parametrize("average", [False, True], ids=["last", "average"])
def test_restarts_leave_what_the_reference_has_whatever_the_log(name, average):
    for dtype in ("float32", "float64"):
        X, codes = closing_in(dtype)
        expected = run(name, X.astype(np.float64), signs(codes), average=True)
        assert 20 < expected.kinds.count("II") < 180
        goal = expected.averaged_w if average else expected.w
        learners = [learn(name, widened(X, width), codes, average=average) for width in WIDTHS]
        for learner in learners:
            w = learner.coef_[0, :N_FEATURES].astype(np.float64)
            tolerance = 2e3 * np.finfo(dtype).eps
            np.testing.assert_allclose(w / norm(w), goal / norm(goal), atol=tolerance)
            assert learner.updates_ == expected.updates
            assert not learner.coef_[0, N_FEATURES:].any()
            if not average:
                np.testing.assert_array_equal(w != 0, goal != 0)
            np.testing.assert_array_equal(learner.coef_[0, :N_FEATURES], learners[0].coef_[0, :N_FEATURES])


@restarting
def test_growing_in_between_changes_no_bit(name):
    for dtype, after in (("float32", 1), ("float64", 37), ("float32", 100)):
        X, codes = closing_in(dtype)
        expected = learn(name, widened(X, WIDTHS[2]), codes, average=True)
        grown = OnlineClassifier(name, fit_intercept=False, average=True, grow_features=True)
        for rows, width in zip((slice(after), slice(after, after + 40), slice(after + 40, None)), WIDTHS, strict=True):
            grown.partial_fit(widened(X[rows], width), codes[rows], classes=[0, 1])
        these, those = tensors(grown), tensors(expected)
        for tensor in these:
            np.testing.assert_array_equal(these[tensor], those[tensor], err_msg=tensor)


def test_rule_need_not_announce_its_restarts():
    """With keep = 0 in every round, w is the last example divided by its square norm."""
    for dtype in ("float32", "float64"):
        X, codes = closing_in(dtype, n=30)
        plain, averaged = (
            OnlineClassifier(rescaling, rule_params={"keep": 0.0}, fit_intercept=False, average=average)
            for average in (False, True)
        )
        hypotheses = signs(codes)[:, None] * X / np.square(X).sum(axis=1, keepdims=True)
        for k in range(len(X)):
            for learner in (plain, averaged):
                learner.partial_fit(X[k : k + 1], codes[k : k + 1], classes=[0, 1])
            np.testing.assert_allclose(plain.coef_[0], hypotheses[k], rtol=1e-5)
            mean = hypotheses[: k + 1].mean(axis=0)
            np.testing.assert_allclose(averaged.coef_[0], mean, atol=1e-5 * np.abs(hypotheses[k]).max())
