"""Derivations as plain text."""

import pytest

from maxcosine.derive import (
    Abs,
    Max,
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
    v,
    x,
)
from maxcosine.derive.text import verdict, written

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
    assert verdict(margins_only.claim("gain")) == "false"
    assert verdict(margins_only.claim("moves")).startswith("false at ")


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
