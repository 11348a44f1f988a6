"""Text becomes expressions of a small grammar; other text is refused, and nothing is ever evaluated."""

import contextlib
import random
import re
import time

import pytest
import sympy as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from maxcosine.derive.parsing import MAX_LENGTH, BadExpression, parse_conditions, parse_expression

x, ell, g, sq_x = sp.symbols("x ell g sq_x", real=True)
NAMES = {"x": x, "ell": ell, "g": g, "sq_x": sq_x}

# Texts at the limits take up to 0.15 s; the rest is for a busy machine.
SECONDS = 5.0


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("(ell + x) / sqrt(1 + sq_x*x**2 + 2*g*x)", (ell + x) / sp.sqrt(1 + sq_x * x**2 + 2 * g * x)),
        ("0.1", sp.Rational(1, 10)),
        (".5 * x + 2.e-1", x / 2 + sp.Rational(1, 5)),
        ("  1e2 - x", 100 - x),
        ("-x**2", -(x**2)),
        ("2**-3 * x", x / 8),
        ("x**(1/3)", sp.cbrt(x)),
        ("x**-0.5", 1 / sp.sqrt(x)),
        ("1 - x - ell", 1 - x - ell),
        ("x / ell / g", x / (ell * g)),
        ("+x", x),
        ("min(x, ell, 1)", sp.Min(x, ell, 1)),
        ("max(0, g) + abs(x)", sp.Max(0, g) + sp.Abs(x)),
        ("Max(0, Min(g, x)) + Abs(g)", sp.Max(0, sp.Min(g, x)) + sp.Abs(g)),
    ],
)
def test_expression_means_what_python_would_mean(text, meaning):
    assert parse_expression(text, NAMES) == meaning


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("g <= 0", (g <= 0,)),
        ("0 <= g <= 1/ell", (sp.Le(0, g), g <= 1 / ell)),
        ("g > -x and (ell >= 2 and x < 3)", (g > -x, ell >= 2, x < 3)),
    ],
)
def test_conditions_are_comparisons_joined_by_and(text, meaning):
    assert parse_conditions(text, NAMES) == meaning


def test_expression_has_the_symbols_that_were_given():
    theta = sp.Symbol("theta", real=True)
    assert parse_expression("theta", {"theta": theta}) is theta
    with pytest.raises(BadExpression, match="unknown name 'x'; known names: theta"):
        parse_expression("x", {"theta": theta})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ell + (lam)", "column 8: unknown name 'lam'; known names: ell, g, sq_x, x"),
        ("  lam", "column 3: unknown name 'lam'"),
        ("", "column 1: found nothing; allowed: names"),
        ("x +", "column 4: invalid syntax; allowed: names"),
        ("(x", "column 1: '(' was never closed"),
        ("x + 0x10", "column 5: found '0x10'; allowed: names, decimal numbers"),
        ("1_000", "column 1: found '1_000'"),
        ("2j", "column 1: found '2j'"),
        ("1e999", "column 1: found '1e999'"),
        ("x + True", "column 5: found 'True'"),
        ("'x'", 'column 1: found "\'"'),
        ("x // 2", "column 1: found 'x // 2'"),
        ("x % 2", "column 3: found '%'"),
        ("x < 1", "column 1: found 'x < 1'"),
        ("x, ell", "column 1: found 'x, ell'"),
        ("sin(x)", "column 1: unknown function 'sin'; known functions: sqrt, min, max, abs"),
        ("max(x)", "column 1: max takes two or more arguments; found 1"),
        ("sqrt(x, 2)", "column 1: sqrt takes one argument; found 2"),
        ("x / (2 - 1 - 1)", "column 6: '2 - 1 - 1' is 0; do not divide by it"),
        ("x / (g - g)", "column 6: 'g - g' is 0"),
        ("1 + 0**-1", "column 5: '0' is 0; do not divide by it"),
        ("sqrt(1 - 3)", "column 1: 'sqrt(1 - 3)' is not real"),
        ("(-8)**(1/3)", "column 1: '(-8)**(1/3)' is not real"),
        ("sqrt(-x**2)", "column 1: 'sqrt(-x**2)' is not real"),
        ("max(x, sqrt(-abs(g) - 1))", "column 8: 'sqrt(-abs(g) - 1)' is not real"),
        ("x**ell", "column 4: exponent 'ell'; an exponent is a number"),
        ("x**13", "column 4: exponent '13'"),
        ("x**0.01", "column 4: exponent '0.01'"),
        ("9**9**9", "column 4: exponent '9**9'"),
        ("((x**9)**9)**9", "column 2: the total degree of '(x**9)**9' may be 81; at most 24"),
        ("(x*ell)**12 * x", "column 1: the total degree of '(x*ell)**12 * x' may be 25"),
        ("1/(x**9 + 1) + 1/(x**9 + 2)", "may be 27"),
        ("(((9**12)**12)**12)**12", "column 3: '(9**12)**12' needs more than 128 bits"),
        ("9" * 60, "needs more than 128 bits"),
        (" + ".join(["x"] * 60), "more than 40 operations inside one another"),
        ("max(x, " * 13 + "1" + ")" * 13, "more than 12 branches"),
        ("+".join(f"abs(x-{i})" for i in range(7)), "column 55: min, max and abs have more than 12 branches"),
        ("(" + "+".join(["(x" + "+x" * 20 + ")"] * 12) + ")", "more than 200 names, numbers and operations"),
        ("x" * (MAX_LENGTH + 1), "2001 characters found; at most 2000"),
    ],
)
def test_error_gives_the_column_what_was_found_and_what_is_allowed(text, message):
    with pytest.raises(BadExpression, match=re.escape(message)):
        parse_expression(text, NAMES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", "column 1: found 'x'; allowed: comparisons by < <= > >=, joined by 'and'"),
        ("x == 1", "column 3: found '='"),
        ("x != 1", "column 3: found '!'"),
        ("x < 1 or g < 1", "column 1: found 'x < 1 or g < 1'"),
        ("not x < 1", "column 1: found 'not x < 1'"),
        ("x < (g < 1)", "column 6: found 'g < 1'"),
        ("x < 1 and ell", "column 11: found 'ell'"),
        ("x in ell", "column 1: found 'x in ell'"),
        ("x**2 >= 0", "column 1: 'x**2 >= 0' always holds"),
        ("g > 0 and 2 < 1", "column 11: '2 < 1' never holds"),
        ("x < lam", "column 5: unknown name 'lam'"),
    ],
)
def test_error_in_a_condition_gives_the_column(text, message):
    with pytest.raises(BadExpression, match=re.escape(message)):
        parse_conditions(text, NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "__import__(x)",
        "x.args",
        "x.subs(x, 1)",
        "sqrt.__globals__",
        "lambda x: x",
        "lambda: 1",
        "[x for x in ell]",
        "max(x for x in ell)",
        "f'{x}'",
        "x[0]",
        "(x := 1)",
        "x if g else ell",
        "max(*x)",
        "max(x, g, key=abs)",
        "sqrt(x)(x)",
        "(max)(x)(g)",
        "await x",
        "yield x",
        "print(x)",
        "x @ g",
        "~x",
        "{x}",
        "x;x",
        "x\nx",
        "x # g",
        "...",
        "None",
        "1if x else g",
        "\uff58",  # Python reads this wide x as x
        "x\0",
        "\ud800",
    ],
)
def test_every_other_python_is_refused(text):
    for parse in (parse_expression, parse_conditions):
        with pytest.raises(BadExpression):
            parse(text, NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "x" + ")" * 5000,
        "(" * 990 + "x" + ")" * 990,
        "-" * 5000 + "x",
        "-" * 1990 + "x",
        "+".join(["x"] * 990),
        "x" + "**x" * 600,
        "sqrt(" * 390 + "x",
        "sqrt(" * 300 + "x" + ")" * 300,
        "x<" * 900 + "x",
        "x<1and " * 250 + "x<1",
    ],
    ids=lambda text: text[:10],
)
def test_deep_nesting_is_refused(text):
    for parse in (parse_expression, parse_conditions):
        with pytest.raises(BadExpression):
            parse(text, NAMES)


# Random text

PIECES = ["x", "ell", "g", "sq_x", "lam", "0", "1", "2", "12", "0.1", "7e9", "1e-3", " ", ", "]
PIECES += ["+", "-", "*", "/", "**", "**(1/2)", "**-3", "(", ")", "sqrt(", "max(", "min(", "abs("]
PIECES += ["<", "<=", ">", " and ", " or ", "not ", "=", ".", "[", "]", "lambda", "True", "'"]


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=40).map("".join)))
@example("max(1,1)**(1/2)")
def test_random_text_is_read_or_refused(text):
    for parse in (parse_expression, parse_conditions):
        with contextlib.suppress(BadExpression):
            parse(text, NAMES)  # raises nothing else


def random_text(rng, size):
    """A text of the grammar with about `size` operations."""
    if size <= 0:
        return rng.choice(["x", "ell", "g", "sq_x", "1", "2", "3", "0.5", "1/3"])
    left, right = (random_text(rng, part) for part in (size // 2, size - size // 2 - 1))
    kind = rng.randrange(9)
    if kind < 4:
        return f"({left} {'+-*/'[kind]} {right})"
    if kind == 4:
        return f"({left})**{rng.choice(['2', '3', '-1', '(1/2)', '(-3/2)'])}"
    if kind == 5:
        return f"(-{left})"
    return f"{['min', 'max'][kind - 6]}({left}, {right})" if kind < 8 else f"sqrt(abs({left}))"


def test_printed_expression_is_read_as_an_equal_one():
    rng = random.Random(1)
    read = 0
    for _ in range(300):
        try:
            expression = parse_expression(random_text(rng, rng.randrange(9)), NAMES)
            again = parse_expression(str(expression), NAMES)
        except BadExpression:  # an even root of a negative number, say
            continue
        read += 1
        for _ in range(2):
            point = {symbol: sp.Rational(rng.randrange(-40, 40), rng.randrange(1, 9)) for symbol in NAMES.values()}
            difference = (expression - again).subs(point)
            if difference.is_finite is not False and not difference.has(sp.nan, sp.zoo):
                assert abs(difference.evalf(30)) < 1e-20, (expression, again)
    assert read > 200


@pytest.mark.parametrize("size", [30, 90])
def test_time_is_bounded(size):
    rng = random.Random(size)
    for _ in range(20):
        text = random_text(rng, size)
        begin = time.perf_counter()
        with contextlib.suppress(BadExpression):
            parse_expression(text, NAMES)
        assert time.perf_counter() - begin < SECONDS, text
