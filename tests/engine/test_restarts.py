"""A step with keep = 0 clears what was written since the last one, whether it was logged or not."""

import numpy as np
import pytest

from maxcosine import rule
from maxcosine.engine.heads import LOG_SHARE
from tests.contract.streams import (
    averaged_or_not,
    both_types,
    csr,
    new_model,
    one_by_one,
    signs,
    stacked,
    taught,
    teach,
)
from tests.reference import run

RESTARTING = ["aggressive_romma", "naromma"]
N_FEATURES = 16
# The log is a share of the width: too short for any row, overflowing now and then, long enough for all.
WIDTHS = {"no log": N_FEATURES, "short log": 10 * LOG_SHARE, "long log": 2000 * LOG_SHARE}

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
    return np.pad(X, ((0, 0), (0, width - X.shape[1])))


@restarting
@both_types
@averaged_or_not
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_restarts_leave_what_the_reference_has(name, dtype, average, width):
    X, codes = closing_in(dtype)
    expected = run(name, X.astype(float), signs(codes), average=True)
    assert 20 < expected.kinds.count("II") < 180
    heads = taught(name, csr(widened(X, width)), codes, average=average).heads
    w = stacked(heads.averaged_weights() if average else heads.weights())[0, :N_FEATURES]
    goal = expected.averaged_w if average else expected.w
    np.testing.assert_allclose(w, goal, atol=2e3 * np.finfo(dtype).eps * np.abs(goal).max())
    assert heads.table["updates"] == expected.updates
    if not average:
        np.testing.assert_array_equal(w != 0, goal != 0)


@restarting
@both_types
def test_the_log_changes_no_bit(name, dtype):
    X, codes = closing_in(dtype)
    learnt = [taught(name, csr(widened(X, width)), codes, average=True).heads for width in WIDTHS.values()]
    for weights in ("weights", "averaged_weights"):
        first, *others = (stacked(getattr(heads, weights)())[0, :N_FEATURES] for heads in learnt)
        for other in others:
            np.testing.assert_array_equal(other, first)


@restarting
@both_types
@pytest.mark.parametrize("after", [1, 2, 37, 100])
def test_growing_in_between_changes_no_bit(name, dtype, after):
    X, codes = closing_in(dtype)
    wide = widened(X, WIDTHS["long log"])
    expected = taught(name, csr(wide), codes, average=True).heads
    model = teach(new_model(name, X, average=True), csr(X[:after]), codes[:after])
    model.heads.grow(WIDTHS["short log"])
    middle = slice(after, after + 40)
    teach(model, csr(widened(X, WIDTHS["short log"])[middle]), codes[middle])
    model.heads.grow(WIDTHS["long log"])
    heads = teach(model, csr(wide[after + 40 :]), codes[after + 40 :]).heads
    np.testing.assert_array_equal(stacked(heads.weights()), stacked(expected.weights()))
    np.testing.assert_array_equal(stacked(heads.averaged_weights()), stacked(expected.averaged_weights()))
    kept = ["sq_v", "coef_v", "scale", "best_bound", "seen", "updates", "mistakes", "highest", "sum_coef"]
    assert heads.table[kept] == expected.table[kept]


@rule
def latest(margin, sq_w, sq_x, coef_sum, state, params):
    """Believe the last example, a third of it if it is no surprise; restarts without saying so."""
    return 0.0, (1.0 if margin <= 0.0 else 1.0 / 3.0), state


@both_types
@averaged_or_not
def test_a_rule_need_not_announce_its_restarts(dtype, average):
    X, codes = closing_in(dtype, n=30)
    hypotheses = []
    for model, x, y in zip(
        one_by_one(new_model(latest, X, average=average), X, codes), X, signs(codes), strict=True
    ):
        w = model.heads.weights()[0][0]
        surprise = not hypotheses or y * (hypotheses[-1] @ x) <= 0
        np.testing.assert_allclose(w, (1.0 if surprise else 1 / 3) * y * x, rtol=1e-6)
        hypotheses.append(w.astype(np.float64))
        if average:
            mean = model.heads.averaged_weights()[0][0]
            np.testing.assert_allclose(mean, np.mean(hypotheses, axis=0), atol=1e-6)
