"""Derivations as plain text."""

import pytest
import sympy as sp

from maxcosine.derive import (
    Abs,
    Max,
    Min,
    curve,
    derive,
    ell,
    g,
    norm_w,
    param,
    parse_conditions,
    parse_expression,
    sq_x,
    sqrt,
    state,
    v,
    x,
)
from maxcosine.derive.text import roman, written
from maxcosine.experiments import derivation_report

LEMMA_1 = (ell + x) / sqrt(1 + sq_x * x**2 + 2 * g * x)
RULES = {
    "naromma": lambda: derive(LEMMA_1),
    "soft": lambda: curve(1, 1 - v, 1),
    "with a parameter": lambda: curve(1 / (1 + Abs(v)), theta=param("theta", 0.5, 0, 1)),
    "numeric": lambda: derive((ell + x) / (1 + sq_x * x**2), when=g <= 0),
    "three conditions": lambda: derive((ell + x) / sqrt(1 + sq_x * x**2 + 2 * Max(0, g) * x)),
    "length of w": lambda: derive(step=norm_w / sq_x, when=g <= 0),
}


@pytest.mark.parametrize("make", RULES.values(), ids=RULES)
def test_explanation_fits_a_terminal_and_explains_each_symbol_once(make):
    derivation = make()
    text = derivation.explain()
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 79
    for name in ("  ell   ", "  g     ", "  sq_x  "):
        assert text.count(f"\n{name}") == 1
    assert ("\n  norm_w" in text) == any(one.has(norm_w) for one in derivation.expressions)


def test_counterexamples_are_explained_where_there_are_any():
    assert "Here u = ell norm(a), c = g / norm(a)." in derive(LEMMA_1).explain()
    cmcp = derive((ell + x) / sqrt(1 + sq_x * x**2), when=g <= 0, account="paper")
    assert "Here u" not in cmcp.explain()


def test_false_without_a_counterexample_is_said_without_one():
    margins_only = derive(step=1 / (ell * sq_x), when=g > 0)
    assert str(margins_only.claim("gain").verdict) == "false"
    assert str(margins_only.claim("moves").verdict).startswith("false at ")


def test_cases_are_numbered_without_end():
    assert [roman(n) for n in (1, 4, 9, 10, 11, 14, 39, 49)] == ["I", "IV", "IX", "X", "XI", "XIV", "XXXIX", "XLIX"]


def test_state_is_explained_wherever_the_rule_is_shown():
    k = state("k", 1, low=1, high="3/2")
    growing = derive(step=k / (ell * sq_x), when=g <= 0, next_state={k: Min(k + 1, sp.Rational(3, 2))})
    told = "1 at the start, from 1 to 3/2; each step makes it Min(3/2, 1 + k)"
    for text in (growing.explain(), growing.to_python(), growing._repr_html_(), derivation_report.page(growing, "")):
        assert told in " ".join(text.split())


def test_a_gain_of_zero_is_not_said_to_be_more():
    gain = derive(step=-g / sq_x, when=g <= 0).claim("gain")
    assert (gain.m, gain.statement) == (None, "a mistake raises ell^2 by some m > 0 / sq_x")
    assert gain.verdict.status == "false"


def test_written_expressions_can_be_read_again():
    names = {one.name: one for one in (x, ell, g, sq_x)}
    for expression in (LEMMA_1, (1 - ell * g) / (ell * sq_x - g), ell**2 - Max(0, g) * ell / sq_x - 1 / sq_x):
        assert parse_expression(written(expression), names) == expression
    assert parse_conditions(written(g <= 1 / (2 * ell)), names) == (g <= 1 / (2 * ell),)
    assert written((1 - ell * g) / (ell * sq_x - g)) == "(1 - ell*g)/(ell*sq_x - g)"
