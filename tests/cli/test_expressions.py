"""Expressions and parameters from options."""

import pytest
import sympy as sp

from maxcosine.cli.expressions import derivation_of, grid_of, parameters_of
from maxcosine.derive import curve, derive, ell, g, param, sq_x, sqrt, v, x

BOUND = "(ell + x)/sqrt(1 + sq_x*x**2)"


def test_texts_give_the_derivation_that_python_gives():
    theta = param("theta", 0.5, 0, 1)
    expected = derive((ell + x) / sqrt(1 + sq_x * x**2), when=g <= theta / ell)
    found = derivation_of(BOUND, when="g <= theta/ell", params=["theta=0.5:0:1"])
    assert found.cases == expected.cases
    assert found.when == expected.when
    assert (found.parameters[0].low, found.parameters[0].high) == (0, 1)


def test_texts_give_the_curve_that_python_gives():
    a, theta = param("a", "1/3"), param("theta", 0.7, 0, 1)
    expected = curve(1 / (1 - a * v), 1 - v, theta, name="two")
    params = ["a=1/3", "theta=0.7:0:1"]
    found = derivation_of(curve="1/(1 - a*v)", margins="1 - v", theta="theta", params=params, name="two")
    assert (found.name, found.cases, found.when) == ("two", expected.cases, expected.when)
    assert found.parameters[0].high == sp.oo


def test_step_accounting_and_next_bound_are_passed_on():
    assert derivation_of(BOUND, when="g <= 0", account="paper").paper
    made = derivation_of(step="1/(ell*sq_x)", when="g <= 0", next_bound="sqrt(ell**2 + 1/sq_x)")
    assert made.cases[0].step == 1 / (ell * sq_x)
    assert made.next_bound == sqrt(ell**2 + 1 / sq_x)


@pytest.mark.parametrize(
    "given", [{"bound": "(" * 10_000}, {"curve": "1", "params": ["a=" + "9" * 10_000]}], ids=["bound", "param"]
)
def test_errors_shorten_what_was_given(given):
    with pytest.raises(ValueError, match=r"\.\.\.") as caught:
        derivation_of(**given)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give one of BOUND, --step and --curve"),
        ({"bound": BOUND, "curve": "1"}, "give one of BOUND, --step and --curve"),
        ({"bound": BOUND, "theta": "1"}, "--theta goes with --curve only"),
        ({"bound": BOUND, "margins": "1"}, "--margins goes with --curve only"),
        ({"curve": "1", "when": "g <= 0"}, "--when does not go with --curve"),
        ({"curve": "1", "account": "paper"}, "--account does not go with --curve"),
        ({"curve": "1", "next_bound": "ell"}, "--next-bound does not go with --curve"),
        ({"bound": "(ell + y)/x"}, r"BOUND '\(ell \+ y\)/x': column 8: unknown name 'y'"),
        ({"bound": BOUND, "when": "g == 0"}, "--when 'g == 0': column 3"),
        ({"bound": BOUND, "when": "x <= 0"}, "when: x <= 0 depends on the step x"),
        ({"bound": "ell + sq_x*x"}, "BOUND: .* adds or compares unlike things"),
        ({"curve": "ell"}, "--curve 'ell': column 1: unknown name 'ell'"),
        ({"curve": "1", "theta": "__import__('os')"}, "--theta .*: column 12"),
        ({"step": "x"}, "--step: step x depends on the step x"),
        ({"curve": "1", "params": ["a=1"]}, "--param a: no expression contains a"),
        ({"curve": "a", "params": ["a=1", "a=2"]}, "--param a=2: a is given twice"),
        ({"curve": "a", "params": ["a=2:0:1"]}, "--param a=2:0:1: a = 2 is not between 0 and 1"),
        ({"curve": "1", "params": ["ell=2"]}, "--param ell=2: 'ell' cannot name a parameter"),
    ],
)
def test_errors_name_the_option(given, message):
    with pytest.raises(ValueError, match=message):
        derivation_of(**given)


@pytest.mark.parametrize(
    "text", ["a", "a=", "a=1:2", "=1", "a=1:0:4:5", "a=one", "a=1/0", "a=1e999", "a=1:0:" + "9" * 40]
)
def test_parameters_that_cannot_be_read(text):
    with pytest.raises(ValueError, match="write NAME=DEFAULT or NAME=DEFAULT:LOW:HIGH"):
        parameters_of([text])


def test_numbers_of_parameters_are_exact():
    found = parameters_of(["a=0.1:-inf:1e2", "b=1/3"])
    assert (found["a"].start, found["a"].low, found["a"].high) == (sp.Rational(1, 10), -sp.oo, 100)
    assert found["b"].start == sp.Rational(1, 3)


def test_grids_are_lists_or_even_steps_in_exact_numbers():
    found = grid_of(["a=0:1:4", "b=0.1,1/3,2"])
    assert found["a"] == [0, sp.Rational(1, 3), sp.Rational(2, 3), 1]
    assert found["b"] == [sp.Rational(1, 10), sp.Rational(1, 3), 2]


@pytest.mark.parametrize("text", ["a", "a=", "a=0:8", "a=0:8:1", "a=0:8:x", "a=0:8:501", "a=x,2", "a=inf", "=1,2"])
def test_grids_that_cannot_be_read_are_refused_with_an_example(text):
    with pytest.raises(ValueError, match=r"write NAME=VALUE,VALUE,... or NAME=LOW:HIGH:COUNT, for example a=0:4:9"):
        grid_of([text])


def test_parameter_that_is_in_the_grid_twice_is_refused():
    with pytest.raises(ValueError, match="a is given twice"):
        grid_of(["a=1", "a=2"])
