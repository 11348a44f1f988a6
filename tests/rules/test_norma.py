"""NORMA's moving margin."""

import pytest

from maxcosine import RULES
from tests.rules.streams import LONG, Walk, learnt, stream

N = 2_000 * LONG
ETA, LAMBDA = 0.1, 0.5


@pytest.mark.parametrize("nu", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_the_share_of_margin_errors_tends_to_nu(nu, noise):
    """rho_n = eta (nu n - errors), and |rho| stays below R norm(w) + eta <= R^2 / lambda + eta."""
    data = stream(3, n=N, noise=noise, zeros=0.0)
    data.X /= data.radius
    model = learnt("norma", data, eta=ETA, lambda_reg=LAMBDA, nu=nu, clip=0.0)
    assert abs(model.updates_ / N - nu) <= (1 / LAMBDA + ETA) / (ETA * N)


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_clipped_it_learns_from_every_mistake(noise):
    data = stream(4, n=N // 10, noise=noise)
    walk = Walk.of(RULES["norma"], data.X.shape[1])
    for x, y in zip(data.X, data.y, strict=True):
        if x.any():
            mistaken, before = walk.margin(x, y) <= 0, walk.coef_sum
            walk.step(x, y)
            assert walk.state[0] >= 0
            assert walk.coef_sum > before or not mistaken


def test_the_hypothesis_stays_within_the_inverse_of_lambda():
    """norm(w) <= (1 - eta lambda) norm(w) + eta R at every round."""
    data = stream(5, n=N // 10, noise=0.2)
    model = learnt("norma", data, eta=ETA, lambda_reg=LAMBDA)
    assert model.certificate_.norm <= data.radius / LAMBDA
    assert model.certificate_.coef_sum <= 1 / LAMBDA
