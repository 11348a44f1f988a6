"""What is proven of MCP with the exact bound ell = Lambda / norm(w)."""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from maxcosine import RULES
from tests.reference import attained_margin, maximal_margin
from tests.rules.streams import Walk, learner, stream

RULE = RULES["mcp_exact"]
STREAMS = [stream(seed, n=60, gap=gap, noise=noise) for seed, gap, noise in [(0, 0.5, 0), (1, 0.3, 0.1)]]
POSITIVE = st.floats(0.1, 10)


def test_ell_never_falls_and_a_mistake_raises_its_square_by_the_inverse_of_sq_x():
    for data in STREAMS:
        walk = Walk.of(RULE, data.X.shape[1])
        for x, y in zip(data.X, data.y, strict=True):
            if x.any():
                before, mistaken = walk.bound**2, walk.margin(x, y) <= 0
                walk.step(x, y)
                least = 1 / (x @ x) if mistaken else 0
                assert walk.bound**2 >= (before + least) * (1 - 1e-12)


@settings(max_examples=100, deadline=None)
@given(POSITIVE, POSITIVE, POSITIVE, st.floats(-0.99, 0.99))
def test_gain_has_its_closed_form(norm_w, ell, sq_x, cos):
    margin, coef_sum = cos * norm_w * math.sqrt(sq_x), ell * norm_w
    keep, add, _ = RULE(margin, norm_w**2, sq_x, coef_sum, (), ())
    z, eta = 1 / (ell**2 * sq_x), margin * ell / norm_w
    assume(abs(eta - 0.5) > 1e-9)
    if eta > 0.5:
        assert (keep, add) == (1, 0)
        return
    sq_after = norm_w**2 + 2 * add * margin + add**2 * sq_x
    gain = (coef_sum + add) ** 2 / sq_after - ell**2
    assert gain == pytest.approx((1 + z - 2 * eta) / (1 + z * (1 + 2 * eta)) / sq_x, rel=1e-6, abs=1e-9)
    assert gain > 0


@settings(max_examples=100, deadline=None)
@given(POSITIVE, POSITIVE, st.floats(-0.99, 0.99))
def test_step_raises_ell_exactly_when_eta_is_below_half_of_1_plus_z(ell, sq_x, cos):
    """The step itself, from w of length 1, whether or not the rule would take it."""
    z, eta, add = 1 / (ell**2 * sq_x), cos * math.sqrt(sq_x) * ell, 1 / (ell * sq_x)
    assume(abs(eta - (1 + z) / 2) > 1e-6)
    sq_after = 1 + 2 * add * cos * math.sqrt(sq_x) + add**2 * sq_x
    assert ((ell + add) / math.sqrt(sq_after) > ell) == (eta < (1 + z) / 2)


@pytest.mark.parametrize("seed", range(3))
def test_cycling_stops_with_half_the_largest_margin(seed):
    data = stream(seed, n=50, d=6, gap=0.8)
    gamma = maximal_margin(data.X, data.y)
    ratio = (data.radius / gamma) ** 2
    most = ratio**2 / 2 + 2 * ratio
    model, updates = learner("mcp_exact"), -1
    while updates < (updates := model.partial_fit(data.X, data.y, classes=[-1, 1]).updates_):
        assert updates <= most
    margin, ell = attained_margin(model.coef_[0], data.X, data.y), model.certificate_.bound
    assert margin > (1 - 1e-9) / (2 * ell)
    assert 1 / (2 * ell) >= gamma / 2 * (1 - 1e-9)
