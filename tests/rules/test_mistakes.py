"""Lemmas 8 and 9, Theorem 10, and the mistakes that can still come."""

import numpy as np
import pytest

from maxcosine import RULES
from tests.reference import attained_margin, cosine, maximal_margin
from tests.rules.streams import Walk, learner, learnt, stream

STREAMS = [stream(seed, n=90, gap=gap) for seed, gap in enumerate((0.1, 0.3, 0.5))]
BUDGETED = [name for name, rule in RULES.items() if rule.own_bound]


@pytest.mark.parametrize("name", ["cmcp", "mcp"])
def test_lemmas_8_and_9_the_cosine_is_at_least_gamma_ell(name):
    for data in STREAMS:
        gamma = attained_margin(data.separator, data.X, data.y)
        walk = Walk.of(RULES[name], data.X.shape[1])
        for _ in walk.over(data):
            if walk.w.any():
                assert cosine(walk.w, data.separator) >= gamma * walk.own_bound - 1e-12


@pytest.mark.parametrize("name", RULES)
def test_every_rule_is_certified_at_every_step(name):
    """Lambda / norm(w) in place of the paper's ell: alpha >= gamma ell for all of them."""
    for data in STREAMS:
        gamma, best = attained_margin(data.separator, data.X, data.y), maximal_margin(data.X, data.y)
        walk = Walk.of(RULES[name], data.X.shape[1])
        for _ in walk.over(data):
            if walk.w.any():
                assert cosine(walk.w, data.separator) >= gamma * walk.bound - 1e-12
                assert best <= (1 + 1e-9) / walk.bound


@pytest.mark.parametrize("name", BUDGETED)
def test_own_bound_never_exceeds_the_exact_one(name):
    """The recursion of CMCP and MCP drops terms; that of the others is exact."""
    for data in STREAMS:
        walk = Walk.of(RULES[name], data.X.shape[1])
        for _ in walk.over(data):
            assert walk.own_bound <= walk.bound * (1 + 1e-9)


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.gain])
def test_theorem_10_bounds_the_mistakes_of_any_number_of_passes(name):
    """Novikoff proved it for the Perceptron; Crammer et al. did for PA, their Theorem 2."""
    for data in STREAMS:
        model = learner(name)
        for _ in range(10):
            model.partial_fit(data.X, data.y, classes=[-1, 1])
        most = (data.radius / maximal_margin(data.X, data.y)) ** 2 / RULES[name].gain
        assert model.certificate_.mistakes <= most


@pytest.mark.parametrize("name", ["cmcp", "mcp", "mcp_exact"])
def test_theorem_10_is_attained_on_an_orthonormal_basis(name):
    """gamma = 1 / sqrt(d) and R = 1 there: each of the d examples is a mistake."""
    d = 9
    y = np.where(np.arange(d) % 2, 1, -1)
    model = learner(name).partial_fit(np.eye(d), y, classes=[-1, 1])
    gamma = maximal_margin(np.eye(d), y)
    assert model.certificate_.mistakes == d == pytest.approx((1 / gamma) ** 2)
    assert model.certificate_.margin_ceiling == pytest.approx(gamma)


@pytest.mark.parametrize("name", BUDGETED)
def test_no_more_mistakes_come_than_the_budget_allows(name):
    for data in STREAMS:
        gamma = 0.999999 * maximal_margin(data.X, data.y)  # rounding must not refute it
        total = learnt(name, data).certificate_.mistakes
        model = learner(name)
        for x, y in zip(data.X, data.y, strict=True):
            model.partial_fit([x], [y], classes=[-1, 1])
            certificate = model.certificate_
            assert total - certificate.mistakes <= certificate.mistake_budget(gamma, data.radius)


@pytest.mark.parametrize("name", RULES)
def test_large_bound_leaves_no_admissible_mistake(name):
    """If ell^2 > 1 / gamma^2 - 1 / R^2, w errs on no example of norm <= R and margin >= gamma."""
    for data in STREAMS:
        gamma = attained_margin(data.separator, data.X, data.y)
        walk = Walk.of(RULES[name], data.X.shape[1])
        for x, y in walk.over(data):
            proven = walk.bound**2 > 1 / gamma**2 - 1 / data.radius**2
            assert not (proven and walk.margin(x, y) <= 0)
