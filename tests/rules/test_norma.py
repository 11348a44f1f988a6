"""NORMA's moving margin."""

import itertools

from maxcosine import RULES
from tests.rules.streams import Walk, learnt, stream

ETA, LAMBDA = 0.1, 0.5


def test_share_of_margin_errors_tends_to_nu():
    """rho_n = eta (nu n - errors), and |rho| stays below R norm(w) + eta <= R^2 / lambda + eta."""
    n = 5_000
    for nu, noise in itertools.product((0.1, 0.3, 0.6), (0.0, 0.2)):
        data = stream(3, n=n, noise=noise, zeros=0.0)
        data.X /= data.radius
        model = learnt("norma", data, eta=ETA, lambda_reg=LAMBDA, nu=nu, clip=0.0)
        assert abs(model.updates_ / n - nu) <= (1 / LAMBDA + ETA) / (ETA * n)


def test_clipped_margin_learns_from_every_mistake():
    for noise in (0.0, 0.3):
        data = stream(4, n=500, noise=noise)
        walk = Walk.of(RULES["norma"], data.X.shape[1])
        for x, y in zip(data.X, data.y, strict=True):
            if x.any():
                mistaken, before = walk.margin(x, y) <= 0, walk.coef_sum
                walk.step(x, y)
                assert walk.state[0] >= 0
                assert walk.coef_sum > before or not mistaken


def test_hypothesis_stays_within_the_inverse_of_lambda():
    """norm(w) <= (1 - eta lambda) norm(w) + eta R at every round."""
    data = stream(5, n=500, noise=0.2)
    model = learnt("norma", data, eta=ETA, lambda_reg=LAMBDA)
    assert model.certificate_.norm <= data.radius / LAMBDA
    assert model.certificate_.coef_sum <= 1 / LAMBDA
