"""What `derive` makes of bounds: cases, rules that equal the built-in ones, and errors."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import cloudpickle
import numpy as np
import pytest
import sympy as sp
from sklearn.base import clone

from maxcosine import RULES, OnlineClassifier
from maxcosine.derive import (
    Abs,
    BadBound,
    Max,
    Min,
    UnitError,
    curve,
    derive,
    ell,
    g,
    norm_w,
    param,
    sq_x,
    sqrt,
    state,
    v,
    x,
)

LEMMA_1 = (ell + x) / sqrt(1 + sq_x * x**2 + 2 * g * x)
WITHOUT_PROJECTION = (ell + x) / sqrt(1 + sq_x * x**2)
NUMERIC_BOUND = (ell + x) / (1 + sq_x**2 * x**4) ** sp.Rational(1, 4)
MCP_BOUND = sqrt(ell**2 + (1 - 2 * ell * Max(0, g)) / sq_x)


def paper_rules():
    return [
        derive(WITHOUT_PROJECTION, when=g <= 0, account="paper", name="cmcp"),
        derive(LEMMA_1, name="naromma"),
        derive(WITHOUT_PROJECTION, when=g <= 1 / (2 * ell), next_bound=MCP_BOUND, name="mcp"),
        derive(WITHOUT_PROJECTION, when=g <= 1 / (2 * ell), name="mcp_exact"),
        curve(1 / (1 + Abs(v)), theta=0.7, name="damped_mcp"),
        curve(1, 1 - v, 1, name="soft_mcp"),
    ]


@pytest.fixture(scope="module")
def derived():
    return {one.name: one for one in paper_rules()}


NAMES = [one.name for one in paper_rules()]


def noisy_stream(seed, n=2000, n_features=40):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, n_features)) * np.exp(random.normal(size=(n, 1)))
    X[random.random(X.shape) < 0.5] = 0.0
    y = (X @ random.normal(size=n_features) > 0) ^ (random.random(n) < 0.05)
    return X, y.astype(int)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_derived_rule_makes_the_updates_of_the_built_in_one(derived, name, seed):
    X, y = noisy_stream(seed)
    ours = OnlineClassifier(derived[name].rule).fit(X, y)
    theirs = OnlineClassifier(RULES[name]).fit(X, y)
    assert ours.certificate_.updates == theirs.certificate_.updates
    assert ours.certificate_.mistakes == theirs.certificate_.mistakes
    w, wanted = (np.append(one.coef_, one.intercept_) for one in (ours, theirs))
    np.testing.assert_allclose(w / np.linalg.norm(w), wanted / np.linalg.norm(wanted), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_theorem_is_proved_again(derived, name):
    assert derived[name].mistake_bound().m == 1  # Theorem 10
    assert derived[name].rule.gain == 1.0 == RULES[name].gain


@pytest.mark.parametrize("name", NAMES)
def test_traits_are_those_of_the_built_in_rule(derived, name):
    for trait in ("conservative", "scale_free", "scale_invariant", "restarts"):
        assert getattr(derived[name].rule, trait) == getattr(RULES[name], trait), trait


def test_naromma_has_the_three_types_of_lemma_6(derived):
    none, restart, step = derived["naromma"].cases
    assert none.conditions == (g >= 1 / ell,)
    assert none.step == 0
    assert restart.conditions == (g >= ell * sq_x,)  # that 1 / ell is larger follows, because g < norm(x)
    assert str(restart.step) == "oo"
    assert set(step.conditions) == {g < ell * sq_x, g < 1 / ell}
    assert (step.step - (1 - ell * g) / (ell * sq_x - g)).simplify() == 0
    after = derived["naromma"].next_sq(step)
    assert (after - ell**2 - (1 - ell * g) ** 2 / (sq_x - g**2)).simplify() == 0


def test_infinite_step_on_the_border_is_kept(derived):
    narrow = derive(LEMMA_1, when=g <= ell * sq_x)  # where g = ell sq_x, the step is infinite
    assert narrow.mistake_bound().m == 1
    X, y = [[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]], [1, 1, -1]
    ours, theirs = (OnlineClassifier(one, fit_intercept=False).fit(X, y) for one in (narrow.rule, "naromma"))
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)
    below = derive(LEMMA_1, when=[g < ell * sq_x, g < 1 / ell])
    assert [case.conditions for case in below.cases] == [()]


def test_bound_with_max_has_one_case_for_each_branch():
    soft = derive((ell + x) / sqrt(1 + sq_x * x**2 / (1 - ell * Max(0, g))), when=g < 1 / ell)
    assert [case.conditions for case in soft.cases] == [(g <= 0,), (g >= 0,)]
    assert soft.mistake_bound().m == 1


@pytest.mark.parametrize(
    "bound",
    [
        (ell + x) / sqrt(1 + sq_x * x**2 + 2 * Max(0, g * x)),
        Min(WITHOUT_PROJECTION, LEMMA_1),
        (ell + Abs(x)) / sqrt(1 + sq_x * x**2),
        Min(2 * ell, ell + x) / sqrt(1 + sq_x * x**2),
    ],
    ids=str,
)
def test_bound_whose_branches_depend_on_the_step_is_maximised_numerically(bound):
    assert [str(case.step) for case in derive(bound, when=g <= 0).cases] == ["argmax"]


def test_rule_whose_bound_has_branches_in_the_step_takes_the_best_step():
    capped = derive(Min(2 * ell, ell + x) / sqrt(1 + sq_x * x**2), when=g <= 0)
    # With u = 1/2, u + z reaches its cap at z = 1/2; (u + z) / sqrt(1 + z^2) rises up to z = 2.
    assert capped.rule(-1.0, 4.0, 1.0, 1.0, (), ())[:2] == (1.0, pytest.approx(2 * 0.5))


def test_certificate_carries_the_mistake_bound_of_the_derived_rule():
    cautious = curve(1 / (1 + 4 * Abs(v)), theta=0.5, name="cautious")
    assert cautious.mistake_bound().m == 0.5  # min(1, 2 / a) for a = 4
    X, y = noisy_stream(0)
    certificate = OnlineClassifier(cautious.rule, fit_intercept=False).fit(X, y).certificate_
    assert certificate.gain == 0.5
    assert "2 (R / g)^2" in str(certificate)


def test_rule_runs_from_its_file_without_sympy(derived, tmp_path):
    path = tmp_path / "my_rules.py"
    path.write_text(derived["mcp"].to_python())
    code = f"""
import sys
sys.modules["sympy"] = None
sys.path.insert(0, {str(tmp_path)!r})
from my_rules import mcp
print(mcp(0.25, 4.0, 1.0, 3.0, (1.0,), ()), mcp.gain)
"""
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    step, gain = printed.rsplit(" ", 1)
    keep, add, (bound,) = eval(step)
    assert (keep, add, (pytest.approx(bound),)) == RULES["mcp"](0.25, 4.0, 1.0, 3.0, (1.0,), ())
    assert float(gain) == 1.0


def test_parameters_are_those_of_the_rule_and_can_be_fixed():
    a = param("a", 1, low=0, high=2)
    damped = curve(1 / (1 + a * Abs(v)), theta=0.5, name="damped")
    assert damped.mistake_bound().m == 1  # for every a in [0, 2]
    assert damped.rule.make_params({"a": 2})._asdict() == {"a": 2.0}
    with pytest.raises(ValueError, match=r"a=3.*\[0, 2\]"):
        damped.rule.make_params({"a": 3})
    fixed = damped.at(a=2, name="damped_2")
    assert not fixed.parameters
    margin, sq_w, norm_x, coef_sum = -1.0, 4.0, 2.0, 3.0
    given = damped.rule(margin, sq_w, norm_x, coef_sum, (), damped.rule.make_params({"a": 2}))
    assert fixed.rule(margin, sq_w, norm_x, coef_sum, (), ())[:2] == pytest.approx(given[:2])
    with pytest.raises(ValueError, match="no parameter 'b'"):
        damped.at(b=1)
    with pytest.raises(ValueError, match="not between 0 and 2"):
        damped.at(a=3)


def test_state_changes_with_each_step():
    updates = state("updates", 0, low=0)
    slowing = derive(step=1 / (ell * sq_x * (1 + updates)), when=g <= 0, next_state={updates: updates + 1})
    assert slowing.rule.state == {"updates": 0.0}
    keep, add, after = slowing.rule(-1.0, 4.0, 1.0, 2.0, (3.0,), ())
    assert (keep, add, after) == (1.0, pytest.approx(2.0 / 4), (4.0,))
    assert slowing.mistake_bound().m is None  # steps without a lower limit gain less and less


def test_infinite_maximiser_restarts(derived):
    # g = 0.9, ell = 0.5 and norm(x) = 1: 1 / ell > g >= ell sq_x, type II.
    assert derived["naromma"].rule(0.9, 1.0, 1.0, 0.5, (), ())[:2] == (0.0, 1.0)


@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_derived_rule_is_cloned_and_pickled(derived, pickler):
    learner = clone(OnlineClassifier(derived["mcp_exact"].rule))
    X, y = noisy_stream(1, n=200)
    other = pickler.loads(pickler.dumps(learner.fit(X[:100], y[:100])))
    for one in (other, learner):
        one.partial_fit(X[100:], y[100:])
    np.testing.assert_array_equal(other.coef_, learner.coef_)
    assert other.certificate_ == learner.certificate_


def test_pickled_rule_keeps_changed_parameters():
    a = param("a", 1, low=0, high=2)
    changed = curve(1 / (1 + a * Abs(v)), theta=0.5, name="damped").rule.with_params({"a": 2})
    other = pickle.loads(pickle.dumps(changed))
    assert other.make_params() == (2.0,)
    assert other.gain == changed.gain == 1.0


def test_derived_rules_learn_side_by_side(derived, tmp_path):
    from maxcosine.experiments.protocol import Experiment, Protocol, learners_of
    from tests.experiments.small import small_dataset

    rules = [derived["mcp_exact"].rule, RULES["pa"]]
    experiment = Experiment(small_dataset(), Protocol(learners_of(rules), buckets=5, permutations=1))
    for unit in experiment.run(experiment.units[:1], jobs=1):
        assert {run["rule"] for run in unit["runs"]} == {"mcp_exact", "pa"}


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        ((ell + x) / sqrt(1 + sq_x * x), r"1 is a number, sq_x\*x is a length"),
        ((ell + sq_x * x) / sqrt(1 + sq_x * x**2), r"length\^-1"),
        ((1 + ell * x * sq_x) / sqrt(1 + sq_x * x**2), r"must be a length\^-1"),
    ],
)
def test_bound_that_mixes_units_is_refused(bound, message):
    with pytest.raises(UnitError, match=message):
        derive(bound)


def test_condition_that_mixes_units_is_refused():
    with pytest.raises(UnitError, match="g is a length, ell is a length"):
        derive(WITHOUT_PROJECTION, when=g <= ell)


def test_radicand_that_is_not_positive_is_refused():
    with pytest.raises(BadBound, match="radicand"):
        derive((ell + x) / sqrt(1 - sq_x * x**2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give either a bound"),
        ({"bound": LEMMA_1, "step": 1 / ell}, "give either a bound"),
        ({"bound": LEMMA_1, "account": "mine"}, "next_bound="),
        ({"step": 1 / (ell * sq_x), "account": "paper"}, "it needs a bound"),
        ({"bound": LEMMA_1, "when": False}, "never true"),
        ({"bound": LEMMA_1, "when": x < ell}, "depends on the step x"),
        ({"bound": ell}, "does not depend on the step x"),
        ({"step": x}, "depends on the step x"),
        ({"bound": LEMMA_1, "next_state": {state("k", 1): ell * sq_x * x}}, "without x"),
        ({"bound": LEMMA_1, "name": "my rule"}, "not a Python name"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        derive(**arguments)


@pytest.mark.parametrize("name", ["bound", "step", "next_bound", "when"])
def test_text_is_refused_and_never_executed(name, tmp_path):
    file = tmp_path / "written"
    code = f"__import__('pathlib').Path({str(file)!r}).touch()"
    for value in (code, [code]) if name == "when" else (code,):
        with pytest.raises(TypeError, match=rf"{name} is the text .* read it with parse_expression"):
            derive(**({"bound": LEMMA_1} if name in ("when", "next_bound") else {}), **{name: value})
    for arguments in ((code,), (1, code), (1, 1, code)):
        with pytest.raises(TypeError, match="is the text"):
            curve(*arguments)
    assert not file.exists()


@pytest.mark.parametrize("number", [1j, sp.I, sp.zoo, sp.nan])
def test_numbers_that_are_not_real_are_refused(number):
    with pytest.raises(ValueError, match="is not real"):
        derive(number * LEMMA_1)
    with pytest.raises(ValueError, match="is not real"):
        curve(1, number)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"account": "paper"}, "account='exact'"),
        ({"next_bound": sqrt(ell**2 + 1 / (8 * sq_x))}, "leave it out"),
    ],
)
def test_accounts_that_need_the_step_in_closed_form_are_refused_without_it(arguments, message):
    with pytest.raises(BadBound, match=message):
        derive(NUMERIC_BOUND, when=g <= 0, **arguments)


def test_length_of_w_is_refused_in_a_bound_that_is_maximised_numerically():
    with pytest.raises(BadBound, match="without norm_w"):
        derive(NUMERIC_BOUND * (1 + norm_w**2 * ell * x / (1 + norm_w**2 * ell * x)))


def test_parameter_of_a_numeric_bound_may_have_no_lower_limit():
    b = param("b", 1, low=-float("inf"))
    found = derive((ell + x) / (1 + (1 + b**2) * sq_x**2 * x**4) ** sp.Rational(1, 4), when=g <= 0)
    assert found.claim("moves").verdict.status == "tested"


def test_next_bound_that_is_not_real_is_refused():
    with pytest.raises(BadBound, match="not defined at c = "):
        derive(WITHOUT_PROJECTION, next_bound=sqrt(ell**2 + (1 - 4 * ell * g) / sq_x))


def test_conditions_that_exclude_each_other_are_refused():
    with pytest.raises(ValueError, match="never true"):
        derive(WITHOUT_PROJECTION, when=[g <= 0, g >= 1 / ell])


@pytest.mark.parametrize("name", ["_a", "a_", "bound", "cosine", "lambda"])
def test_names_that_the_code_of_a_rule_uses_are_refused_for_symbols(name):
    for make in (param, state):
        with pytest.raises(ValueError, match="cannot name a parameter"):
            make(name, 1)


def test_two_symbols_of_one_name_are_refused():
    one, other, memory = param("a", 1, 0, 2), param("a", "1/2", 0, 1), state("a", 1, 0, 2)
    for make in (
        lambda: curve(one * other),
        lambda: curve(one, theta=other),
        lambda: derive(LEMMA_1, when=g <= one / other / ell),
        lambda: derive(step=one * memory / (ell * sq_x)),
    ):
        with pytest.raises(ValueError, match="two different symbols are called a"):
            make()


@pytest.mark.parametrize("name", ["math", "_square", "best_step_near", "a b", "class"])
def test_names_that_a_rule_cannot_have_are_refused(name):
    with pytest.raises(ValueError, match="choose another"):
        derive(NUMERIC_BOUND, when=g <= 0, name=name)
    with pytest.raises(ValueError, match="choose another"):
        curve(param("a", 1, 0, 2)).at(a=1, name=name)


def test_conditions_that_a_number_decides_are_left_out():
    th = param("th", "1/2", 0, 1)
    fixed = derive(step=th / (ell * sq_x), when=[g <= 0, th > 0])
    assert fixed.at(th=1).when == (g <= 0,)
    assert fixed.at(th=1).mistake_bound().m == 1
    with pytest.raises(ValueError, match="never true"):
        fixed.at(th=0)


def test_number_that_a_step_divides_by_must_not_be_zero():
    with pytest.raises(ValueError, match="do not divide by 0"):
        curve(1 / param("a", 1, 0, 2)).at(a=0)


def test_derivation_with_symbols_is_copied_and_pickled():
    a = param("a", 1, low="1/2", high="3/2")
    for one in (curve(a, theta=0), derive(NUMERIC_BOUND, when=g <= a / ell)):
        for other in (copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
            assert other.parameters == [a]
            assert other.cases == one.cases
    assert copy.deepcopy(curve(a, theta=0)).mistake_bound().m == curve(a, theta=0).mistake_bound().m


@pytest.mark.parametrize(("name", "low", "high"), [("ell", 0, 1), ("not a name", 0, 1), ("a", 1, 2), ("a", 0.5, 0.5)])
def test_wrong_parameters_are_refused(name, low, high):
    with pytest.raises(ValueError, match=r"cannot name a parameter|is not between|write the number itself"):
        param(name, 0.5, low=low, high=high)


def test_curve_must_be_a_function_of_v():
    with pytest.raises(UnitError, match="v alone"):
        curve(ell * v)


def test_dependence_on_the_length_of_w_is_found():
    perceptron = derive(step=1 / norm_w, when=g <= 0, name="perceptron")
    claim = perceptron.claim("scale_free")
    assert claim.verdict.status == "false"
    assert not perceptron.rule.scale_free
    assert perceptron.rule(-1.0, 4.0, 2.0, 3.0, (), ())[:2] == (1.0, 1.0)
