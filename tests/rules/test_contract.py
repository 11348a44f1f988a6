"""What every rule promises, built-in or not: it is found by discovery and tested here."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from maxcosine import RULES, OnlineClassifier
from tests.rules.streams import learnt, stream

POSITIVE = st.floats(0.01, 100)
COSINES = st.floats(-1, 1)
PARAMETERS = [(rule, name) for rule in RULES.values() for name in rule.params]


def having(trait):
    return [rule for rule in RULES.values() if getattr(rule, trait)]


def every_rule(test):
    return pytest.mark.parametrize("rule", RULES.values(), ids=RULES)(test)


def named(rules):
    return pytest.mark.parametrize("rule", rules, ids=lambda rule: rule.name)


@st.composite
def scalars(draw, cosines=COSINES):
    """margin, sq_w, sq_x and Lambda of a hypothesis that has learnt something."""
    norm_w, norm_x, bound = draw(POSITIVE), draw(POSITIVE), draw(POSITIVE)
    margin = draw(cosines) * norm_w * norm_x
    return margin, norm_w**2, norm_x**2, bound * norm_w


def ask(rule, margin, sq_w, sq_x, coef_sum, state=None):
    state = rule.restart(sq_w, coef_sum) if state is None else state
    return rule(margin, sq_w, sq_x, coef_sum, state, rule.make_params())


@every_rule
@settings(deadline=None)
@given(situation=scalars())
def test_a_rule_is_pure(rule, situation):
    state = rule.restart(situation[1], situation[3])
    assert ask(rule, *situation, state) == ask(rule, *situation, state)


@every_rule
@settings(deadline=None)
@given(situation=scalars())
def test_a_step_keeps_the_certificate(rule, situation):
    """keep >= 0 and add >= 0 make w a non-negative combination of the signed examples."""
    keep, add, state = ask(rule, *situation)
    assert 0 <= keep < math.inf
    assert 0 <= add < math.inf
    assert keep + add > 0
    assert len(state) == len(rule.state)
    assert np.isfinite(state).all()
    assert keep > 0 or rule.restarts


@every_rule
@given(sq_x=POSITIVE)
def test_the_first_example_is_learnt_from(rule, sq_x):
    _, add, _ = ask(rule, 0.0, 0.0, sq_x, 0.0, rule.initial_state())
    assert add > 0


@named(having("conservative"))
@settings(deadline=None)
@given(situation=scalars(cosines=st.floats(1e-3, 1)))
def test_a_conservative_rule_leaves_what_is_right(rule, situation):
    state = rule.restart(situation[1], situation[3])
    assert ask(rule, *situation, state) == (1, 0, state)


@every_rule
@settings(deadline=None)
@given(situation=scalars(cosines=st.floats(-0.99, 0)))
def test_every_rule_learns_from_a_mistake(rule, situation):
    assert ask(rule, *situation)[1] > 0


@named(having("scale_free"))
@settings(deadline=None)
@given(situation=scalars(), exponent=st.integers(-8, 8))
def test_a_scale_free_rule_scales_with_w(rule, situation, exponent):
    """c w and c Lambda give c add, or w becomes y x all the same; exactly, for powers of 2."""
    margin, sq_w, sq_x, coef_sum = situation
    assume(margin == 0.0 or abs(margin) > 1e-300)  # smaller ones are not halved exactly
    c, state = 2.0**exponent, rule.restart(sq_w, coef_sum)
    keep, add, after = ask(rule, margin, sq_w, sq_x, coef_sum, state)
    scaled = ask(rule, c * margin, c * c * sq_w, sq_x, c * coef_sum, state)
    assert scaled == (keep, c * add if keep else add, after)


@named(having("scale_invariant"))
@pytest.mark.parametrize("factor", [2.0**-10, 8.0])
def test_a_scale_invariant_rule_predicts_the_same_in_any_unit(rule, factor):
    data, unit = stream(1, noise=0.02), stream(1, noise=0.02)
    unit.X *= factor
    ours, theirs = learnt(rule, data), learnt(rule, unit)
    assert (ours.mistakes_, ours.updates_) == (theirs.mistakes_, theirs.updates_)
    assert ours.predict(data.X).tolist() == theirs.predict(unit.X).tolist()
    assert theirs.certificate_.bound * factor == pytest.approx(ours.certificate_.bound)


@every_rule
@given(sq_w=POSITIVE, coef_sum=POSITIVE)
def test_restart_gives_a_state(rule, sq_w, coef_sum):
    state = rule.restart(sq_w, coef_sum)
    assert len(state) == len(rule.state)
    assert np.isfinite(state).all()
    if rule.own_bound:  # it goes on from what is proven
        assert rule.own_bound(state, sq_w, coef_sum) == pytest.approx(coef_sum / math.sqrt(sq_w))


# Names, documents, parameters


def test_rules_are_known_by_their_names():
    assert all(rule.name == name == rule.function.__name__ for name, rule in RULES.items())
    with pytest.raises(TypeError):
        RULES["mine"] = RULES["mcp"]


@every_rule
def test_a_rule_says_what_it_does_and_where_it_is_from(rule):
    assert rule.__doc__
    assert rule.reference
    assert rule.name in repr(rule)
    assert all(param.doc for param in rule.params.values())


def outside(param):
    """nan, what lies beyond the ends of the interval, and the ends that are not part of it."""
    yield math.nan
    for end, direction, side in ((param.low, -1, "left"), (param.high, 1, "right")):
        if math.isfinite(end):
            yield end + direction
        if param.closed not in (side, "both"):
            yield end


def assert_names(refused, *facts):
    assert all(fact in str(refused.value) for fact in facts), str(refused.value)


@pytest.mark.parametrize(("rule", "name"), PARAMETERS, ids=[f"{r.name}-{n}" for r, n in PARAMETERS])
def test_parameters_out_of_range_are_refused(rule, name):
    param = rule.params[name]
    for value in outside(param):
        with pytest.raises(ValueError, match="out of range") as refused:
            rule.make_params({name: value})
        assert_names(refused, f"{name}={value:g}", param.interval, repr(rule.name))
        with pytest.raises(ValueError, match="out of range") as refused:
            OnlineClassifier(rule.name, rule_params={name: value}).fit([[1.0], [-1.0]], [0, 1])
        assert_names(refused, name, param.interval, repr(rule.name))


@pytest.mark.parametrize(("rule", "name"), PARAMETERS, ids=[f"{r.name}-{n}" for r, n in PARAMETERS])
def test_the_closed_ends_and_the_default_are_in_range(rule, name):
    param = rule.params[name]
    assert (param.low in param) == (param.closed in ("left", "both"))
    assert (param.high in param) == (param.closed in ("right", "both"))
    assert getattr(rule.make_params(), name) in param


@every_rule
def test_unknown_parameters_are_refused(rule):
    with pytest.raises(ValueError, match="has no parameter 'speed'") as refused:
        rule.make_params({"speed": 1.0})
    assert_names(refused, repr(rule.name), *rule.params)


def test_normas_rate_and_decay_are_checked_together():
    with pytest.raises(ValueError, match="below 1") as refused:
        RULES["norma"].make_params({"eta": 2.0, "lambda_reg": 0.5})
    assert_names(refused, "'norma'", "eta * lambda_reg")
