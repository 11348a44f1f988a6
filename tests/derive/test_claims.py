"""What is proven of derived rules, and that false claims are found out, with counterexamples in exact arithmetic."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from maxcosine import RULES, OnlineClassifier
from maxcosine.derive import Abs, Max, Min, curve, derive, ell, g, norm_w, param, sq_x, sqrt, state, v, x
from maxcosine.derive.proving import prove
from maxcosine.derive.symbols import reduced
from tests.derive.test_derivation import LEMMA_1, MCP_BOUND, WITHOUT_PROJECTION, noisy_stream


def lemma_1_sq(u, c, z):
    """The squared bound after a step, in exact arithmetic."""
    return (u + z) ** 2 / (1 + z**2 + 2 * c * z)


def point_of(derivation, name):
    verdict = derivation.claim(name).verdict
    assert verdict.status == "false"
    point = dict(verdict.counterexample)
    assert point["u"] > 0
    assert -1 < point["c"] < 1
    return point


def is_separable_with_bound(u, c):
    """Vectors with these u and c for which Lemma 1 holds with equality: w*.w = gamma ell norm(w) and w*.a = gamma.

    In the plane, with w = (1, 0), a = (c, s), s^2 = 1 - c^2 and gamma = 1, the separator (u, (1 - c u) / s) does.
    """
    s_sq = 1 - c**2
    return u * c + (1 - c * u) / s_sq * s_sq == 1


def test_bound_that_halves_the_square_is_found_out():
    wrong = derive((ell + x) / sqrt(1 + sq_x * x**2 / 2), when=g <= 0, account="paper")
    point = point_of(wrong, "sound")
    u, c = point["u"], point["c"]
    assert c <= 0
    assert is_separable_with_bound(u, c)
    z = 2 / u  # the step that it takes
    assert lemma_1_sq(u, c, z) < u**2 + 2  # less than the u'^2 that it claims
    assert wrong.mistake_bound().m is None
    assert wrong.mistake_bound().failed.name == "sound"
    assert wrong.rule.gain is None


def test_bound_of_mcp_is_not_its_account_on_positive_margins():
    wrong = derive(WITHOUT_PROJECTION, when=g <= 1 / (2 * ell), account="paper")
    point = point_of(wrong, "sound")
    u, c = point["u"], point["c"]
    assert 0 < c <= 1 / (2 * u)
    assert lemma_1_sq(u, c, 1 / u) < u**2 + 1
    assert str(wrong.mistake_bound()).startswith("no mistake bound")


def test_next_bound_that_forgets_the_factor_two_is_found_out():
    wrong = derive(WITHOUT_PROJECTION, when=g <= 1 / (2 * ell), next_bound=sqrt(ell**2 + (1 - ell * Max(0, g)) / sq_x))
    point = point_of(wrong, "sound")
    u, c = point["u"], point["c"]
    assert lemma_1_sq(u, c, 1 / u) < u**2 + 1 - u * c


def test_threshold_that_is_too_high_lets_ell_fall():
    wrong = curve(1, 1, 0.6)
    point = point_of(wrong, "rises")
    u, c = point["u"], point["c"]
    assert 0 < u * c <= Fraction(6, 10)
    assert lemma_1_sq(u, c, 1 / u) < u**2


def test_curve_outside_the_band_gains_less():
    k = Fraction(21, 10)
    wrong = curve(sp.Rational(21, 10))
    point = point_of(wrong, "gain")
    u, c = point["u"], point["c"]
    assert c <= 0
    assert lemma_1_sq(u, c, k / u) < u**2


@pytest.mark.parametrize("k", [sp.Rational(1, 4), sp.Rational(1, 2), sp.Rational(3, 2), sp.Rational(7, 4)])
def test_constant_curve_gains_2k_minus_k_squared(k):
    found = curve(k, k, 1 - k / 2)
    assert found.mistake_bound().m == Fraction(int((2 * k - k**2).p), int((2 * k - k**2).q))
    assert point_of(curve(k, k, 1 - k / 2 + sp.Rational(1, 100)), "rises")["c"] > 0


@pytest.mark.parametrize("a", [1, 2, 3, 5])
def test_damped_curve_gains_as_the_theory_says(a):
    assert curve(1 / (1 + a * Abs(v)), theta=0.5).mistake_bound().m == min(Fraction(1), Fraction(2, a))


def test_curve_with_a_root_is_proved_by_intervals():
    root = curve(1 / sqrt(1 - 2 * v), 1 - v, 1)
    assert root.mistake_bound().m == 1
    assert "intervals" in root.claim("gain").verdict.method


@pytest.mark.slow
def test_root_that_leaves_the_band_is_not_proved():
    outside = curve(1 / sqrt(1 - 20 * v), 1 - v, 1)
    k, at = 1 / np.sqrt(3.0), -0.1
    assert 2 * k * (1 - at) - k**2 < 0.95
    assert outside.claim("gain").m is None or outside.claim("gain").m < Fraction(95, 100)


def test_mistakes_on_the_border_are_not_forgotten():
    leaves_margin_0 = derive(WITHOUT_PROJECTION, when=g < 0)
    point = point_of(leaves_margin_0, "moves")
    assert point["c"] == 0  # a margin of 0 is a mistake
    assert leaves_margin_0.mistake_bound().failed.name == "moves"
    assert leaves_margin_0.rule(0.0, 1.0, 1.0, 1.0, (), ())[:2] == (1.0, 0.0)


def test_deep_mistakes_are_not_forgotten():
    shallow = derive(WITHOUT_PROJECTION, when=[g <= 0, g >= -1 / ell])
    point = point_of(shallow, "moves")
    assert point["u"] * point["c"] < -1


def test_moves_on_a_line_alone_are_not_proved_harmless():
    # It moves where g = 1 / ell too, and loses there; the line has no interior for cells to see.
    odd = derive(step=1 / (ell * sq_x), when=g * (g - 1 / ell) ** 2 <= 0)
    assert lemma_1_sq(Fraction(2), Fraction(1, 2), Fraction(1, 2)) < 4
    assert not odd.claim("rises").verdict


def steps_of_state(following, **more):
    k = state("k", 1, low=1, high="3/2")
    return derive(step=k / (ell * sq_x), when=g <= 0, next_state={k: following(k)}, **more)


def test_state_that_leaves_its_interval_is_found_out():
    leaky = steps_of_state(lambda k: 100 * k)
    verdict = leaky.claim("state").verdict
    assert verdict.status == "false"
    assert 100 * verdict.counterexample["k"] > Fraction(3, 2)
    assert leaky.mistake_bound().failed.name == "state"
    assert leaky.rule.gain is None


def test_state_that_stays_in_its_interval_is_proved_to():
    kept = steps_of_state(lambda k: Min(k + 1, sp.Rational(3, 2)))
    assert kept.claim("state").verdict
    assert kept.mistake_bound().m == Fraction(3, 4)  # 2 k - k^2 at k = 3/2
    assert not [one for one in curve(1).claims if one.name == "state"]


def test_state_may_change_with_the_example():
    shrinking = steps_of_state(lambda k: 1 + (k - 1) / (1 + ell**2 * sq_x))
    assert shrinking.claim("state").verdict
    assert not steps_of_state(lambda k: k - ell * g).claim("state").verdict


def test_division_by_zero_on_the_border_is_found():
    point = point_of(derive(step=1 / (ell * sq_x - g), when=[g <= ell * sq_x, g <= 1 / (2 * ell)]), "forward")
    assert point["u"] == point["c"]
    below = derive(step=1 / (ell * sq_x - g), when=[g < ell * sq_x, g <= 1 / (2 * ell)])
    assert below.mistake_bound().m == 1


def test_division_by_zero_inside_a_curve_is_found():
    point = point_of(curve((v**2 + 3 * v + 2) / ((v + 1) * (v + 2))), "forward")  # 1, but for two points
    assert point["u"] * point["c"] in (-1, -2)


def test_division_by_zero_in_a_condition_is_found():
    point = point_of(derive(step=1 / (ell * sq_x), when=1 / (ell * sq_x - g) > 0), "forward")
    assert point["u"] == point["c"]


def test_root_of_a_negative_number_is_found():
    point = point_of(curve(1 + sqrt(1 + v) / 10), "forward")
    assert point["u"] * point["c"] < -1


def test_negative_step_is_found():
    backwards = derive(step=g / sq_x, when=g <= 0)
    assert point_of(backwards, "forward")["c"] < 0


def test_perceptron_loses_ell_sometimes():
    perceptron = derive(step=1 / norm_w, when=g <= 0)
    point = point_of(perceptron, "rises")
    u, c, z = point["u"], point["c"], 1 / point["norm_w"]
    assert lemma_1_sq(u, c, z) < u**2
    assert lemma_1_sq(Fraction(2), Fraction(-1, 2), Fraction(4)) < 4  # the example of the theory


def test_perceptron_has_its_theorem_by_its_own_potential():
    sq_r, margin, lam, gamma, square = sp.symbols("sq_r margin lam gamma square", real=True)
    # norm(w)^2 <= R^2 Lambda: a mistake adds 2 margin + norm(x)^2 to the left, and R^2 to the right.
    grows = prove(sq_r - 2 * margin - square, [margin <= 0, square > 0, square <= sq_r])
    # With gamma Lambda <= w*.w <= norm(w), and one mistake a step of 1.
    counts = prove(sq_r - gamma**2 * lam, [lam > 0, gamma > 0, sq_r * lam >= gamma**2 * lam**2])
    assert grows
    assert counts
    assert RULES["perceptron"].gain == 1.0


PROVEN = {
    "cmcp": derive(WITHOUT_PROJECTION, when=g <= 0, account="paper"),
    "mcp": derive(WITHOUT_PROJECTION, when=g <= 1 / (2 * ell), next_bound=MCP_BOUND),
    "mcp_exact": derive(WITHOUT_PROJECTION, when=g <= 1 / (2 * ell)),
    "naromma": derive(LEMMA_1),
    "aggressive_romma": derive(LEMMA_1),  # Theorem 7: it points where NAROMMA points
    "romma": derive(LEMMA_1, when=g <= 0),
    "damped_mcp": curve(1 / (1 + Abs(v)), theta=0.7),
    "soft_mcp": curve(1, 1 - v, 1),
}


def test_pa_has_its_theorem_by_its_own_potential():
    margin, square, sq_r = sp.symbols("margin square sq_r", real=True)
    # norm(w - u)^2, with y (u.x) >= 1, falls by 2 step (1 - margin) - step^2 norm(x)^2 at least, and never below 0.
    step = (1 - margin) / square
    falls = 2 * step * (1 - margin) - step**2 * square
    assert prove(falls - 1 / sq_r, [margin <= 0, square > 0, square <= sq_r])
    assert prove(falls, [margin <= 1, square > 0])
    assert RULES["pa"].gain == 1.0  # at most norm(u)^2 R^2 mistakes, and norm(u) = 1 / gamma


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.own_bound])
def test_built_in_rule_has_the_mistake_bound_that_is_proven_of_its_derivation(name):
    assert PROVEN[name].mistake_bound().m == RULES[name].gain
    X, y = noisy_stream(7, n=400)
    ours, theirs = (OnlineClassifier(rule, fit_intercept=False).fit(X, y) for rule in (PROVEN[name].rule, name))
    cosine = np.vdot(ours.coef_, theirs.coef_) / np.linalg.norm(ours.coef_) / np.linalg.norm(theirs.coef_)
    assert cosine == pytest.approx(1.0, abs=1e-9)


def test_symbolic_parameter_is_proved_for_its_whole_interval():
    a = param("a", 1, low=0, high=2)
    claim = curve(1 / (1 + a * Abs(v)), theta=0.5).claim("gain")
    assert claim.m == 1
    assert "cells" in claim.verdict.method
    wider = param("a", 1, low=0, high=4)
    assert curve(1 / (1 + wider * Abs(v)), theta=0.5).claim("gain").m == Fraction(1, 2)


@pytest.mark.slow
def test_three_parameters_are_tested_and_said_to_be():
    a, b, d = (param(name, 1, low=0, high=1) for name in "abd")
    verdict = curve(1 / (1 + (a + b + d) * Abs(v) / 2), theta=0.5).claim("gain").verdict
    assert verdict.status == "tested"
    assert "not proved" in str(verdict)
    assert verdict.points >= 1000


@pytest.mark.slow
def test_proofs_of_one_rule_end_in_time():
    kinks = curve(1 / (1 + sum(Abs(v - i) for i in range(10))), theta=0.5)
    th = param("th", "1/2", low=0, high=1)
    radicand = 2 * th * g * x + sq_x * x**2 * (th + 1) + sp.Rational(5, 3)
    hard = derive((ell + x + Max(0, g) / sq_x) / sqrt(radicand), when=g < ell * sq_x)
    for one in (kinks, hard):
        start = time.process_time()
        assert one.claims
        assert time.process_time() - start < 20
    assert kinks.mistake_bound().m > Fraction(1, 30)


def test_rule_without_time_for_proofs_is_tested_and_has_no_mistake_bound(monkeypatch):
    monkeypatch.setattr("maxcosine.derive.claims.MAX_SECONDS", 0.0)
    hurried = derive(LEMMA_1, when=g <= 1 / (2 * ell))
    assert hurried.claim("rises").verdict.status == "tested"
    assert hurried.mistake_bound().m is None


@pytest.mark.parametrize(
    "rule",
    [
        derive(step=1 / (ell * sq_x), when=[g <= 0, -g <= norm_w]),
        derive(step=1 / (ell * sq_x), when=[g <= 0, norm_w <= -g]),
        derive(step=norm_w / sq_x, when=g <= 0),
    ],
    ids=lambda rule: rule.origin,
)
def test_length_of_w_that_matters_is_shown(rule):
    point = {sp.Symbol(name, real=True): sp.Rational(at) for name, at in point_of(rule, "scale_free").items()}
    doubled = {**point, norm_w: 2 * point[norm_w]}

    def moves(at):
        return tuple(reduced(one).subs(at) for one in rule.expressions)

    assert moves(point) != moves(doubled)


def test_numeric_gain_is_absolute_and_zero_is_no_gain():
    # A maximiser at z = 1: for small u a step gains much, and nothing where u = 1, c = 0.
    at_one = derive(-ell * Abs(ell * sq_x * x / ell - sqrt(sq_x)) / sqrt(sq_x), when=g <= 0)
    gain = at_one.claim("gain")
    assert gain.m is None
    assert gain.verdict.status == "false"
    half = derive(1 / sqrt(sq_x) - Abs(x - 1 / (2 * ell * sq_x)), when=g <= 0).claim("gain")
    assert half.m == Fraction(3, 4)  # 2 k - k^2 with k = 1/2, for every u


def test_explanation_names_every_claim_and_speaks_of_real_arithmetic():
    text = PROVEN["mcp"].explain()
    assert "ell never falls" in text
    assert "mistakes <= (R / gamma)^2" in text
    assert "real arithmetic" in text
    for claim in PROVEN["mcp"].claims:
        assert f"{claim.statement}  " in text


def test_notebook_shows_the_table_of_cases():
    latex, html = PROVEN["naromma"]._repr_latex_(), PROVEN["naromma"]._repr_html_()
    for part in (r"\text{Type}", r"\text{III}", r"\ell_{i+1}^2", r"y_i \mathbf{a}_i"):
        assert part in latex
    assert html.count("<tr>") == 1 + 3 + len(PROVEN["naromma"].claims)
    assert "proved (" in html


def test_everything_between_cmcp_and_naromma_has_the_mistake_bound():
    b = param("b", 0.5, low=0, high=1)
    between = derive((ell + x) / sqrt(1 + sq_x * x**2 + 2 * b * g * x), when=g <= 1 / (2 * ell))
    assert between.mistake_bound().m == 1  # for every b in [0, 1]
    random = np.random.default_rng(0)
    u, c = np.exp(random.normal(size=20_000)), random.uniform(-1, 0, 20_000)
    for value in (0.0, 0.3, 1.0):
        z = (1 - value * u * c) / (u - value * c)
        assert np.all((u + z) ** 2 >= (u**2 + 1) * (1 + z**2 + 2 * c * z) * (1 - 1e-12))


def test_lower_edge_of_the_band_gains_exactly_one():
    edge = curve(1 / (1 - v + sqrt(v**2 - 2 * v)), 1 - v, 1)
    assert edge.mistake_bound().m == 1
    assert "identity" in edge.claim("gain").verdict.method
