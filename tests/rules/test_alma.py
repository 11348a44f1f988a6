"""Gentile's theorems on ALMA for p = 2: gamma is the margin of the normalised examples."""

import itertools

import numpy as np
import pytest

from maxcosine import RULES
from tests.reference import attained_margin, maximal_margin, norm
from tests.rules.streams import Stream, Walk, learner, learnt, stream


def normalised(data):
    norms = np.linalg.norm(data.X, axis=1, keepdims=True)
    return Stream(data.X / np.where(norms > 0, norms, 1), data.y, data.separator)


def test_hypothesis_stays_in_the_unit_ball():
    for noise, alpha in itertools.product((0.0, 0.3), (0.2, 0.9, 1.0)):
        data = stream(1, noise=noise)
        walk = Walk.of(RULES["alma"], data.X.shape[1], alpha=alpha)
        for _ in walk.over(data):
            assert norm(walk.w) <= 1 + 1e-12
        assert learnt("alma", data, alpha=alpha).certificate_.norm <= 1 + 1e-12


def test_only_directions_matter():
    """ALMA learns from x / norm(x), so that the lengths of examples change nothing but Lambda."""
    data = stream(2)
    ours, unit = learnt("alma", data), learnt("alma", normalised(data))
    np.testing.assert_allclose(ours.coef_, unit.coef_, rtol=1e-9)
    assert ours.mistakes_ == unit.mistakes_


@pytest.mark.parametrize("alpha", [0.5, 0.9])
def test_cycling_stops_in_time_with_the_margin_asked_for(alpha):
    """At most (2 / gamma^2) (2 / alpha - 1)^2 + 8 / alpha - 4 updates, then margin > (1 - alpha) gamma."""
    data = normalised(stream(3, n=60, gap=0.5))
    gamma = maximal_margin(data.X, data.y)
    most = 2 / gamma**2 * (2 / alpha - 1) ** 2 + 8 / alpha - 4
    model = learner("alma", alpha=alpha)
    updates = -1
    while updates < (updates := model.partial_fit(data.X, data.y, classes=[-1, 1]).updates_):
        assert updates <= most
    assert attained_margin(model.coef_[0], data.X, data.y) >= (1 - alpha) * gamma


def test_scale_of_the_margin_follows_from_alpha():
    chosen = RULES["alma"].make_params({"alpha": 0.5})
    assert np.sqrt(8.0) / 0.5 == chosen.B
