"""What every rule promises as a function of scalars; a new rule is found by discovery."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from maxcosine import RULES, OnlineClassifier

POSITIVE = st.floats(0.01, 100)
EXAMPLES = settings(max_examples=40)
PARAMETERS = [(rule, name) for rule in RULES.values() for name in rule.params]
each_parameter = pytest.mark.parametrize(
    ("rule", "name"), PARAMETERS, ids=[f"{rule.name}-{name}" for rule, name in PARAMETERS]
)


def every_rule(trait=None):
    """Every rule that has a trait, such as "scale_free"."""
    rules = [rule for rule in RULES.values() if trait is None or getattr(rule, trait)]
    return pytest.mark.parametrize("rule", rules, ids=lambda rule: rule.name)


@st.composite
def scalars(draw, cosines):
    """margin, sq_w, sq_x and Lambda of a hypothesis that has learnt something."""
    norm_w, norm_x, bound = draw(POSITIVE), draw(POSITIVE), draw(POSITIVE)
    margin = draw(cosines) * norm_w * norm_x
    return margin, norm_w**2, norm_x**2, bound * norm_w


ANY, RIGHT, WRONG = (scalars(st.floats(*interval)) for interval in ((-1, 1), (1e-3, 1), (-0.99, 0)))


def ask(rule, margin, sq_w, sq_x, coef_sum, state=None):
    state = rule.restart(sq_w, coef_sum) if state is None else state
    return rule(margin, sq_w, sq_x, coef_sum, state, rule.make_params())


@every_rule()
@EXAMPLES
@given(situation=ANY)
def test_step_is_pure_and_keeps_the_certificate(rule, situation):
    """keep >= 0 and add >= 0 make w a non-negative combination of the signed examples."""
    keep, add, state = ask(rule, *situation)
    assert ask(rule, *situation) == (keep, add, state)
    assert 0 <= keep < math.inf
    assert 0 <= add < math.inf
    assert keep + add > 0
    assert len(state) == len(rule.state)
    assert np.isfinite(state).all()
    assert keep > 0 or rule.restarts


@every_rule()
@EXAMPLES
@given(sq_x=POSITIVE, situation=WRONG)
def test_first_example_and_every_mistake_are_learnt_from(rule, sq_x, situation):
    _, add, _ = ask(rule, 0.0, 0.0, sq_x, 0.0, rule.initial_state())
    assert add > 0
    _, add, _ = ask(rule, *situation)
    assert add > 0


@every_rule("conservative")
@EXAMPLES
@given(situation=RIGHT)
def test_conservative_rule_leaves_what_is_right(rule, situation):
    state = rule.restart(situation[1], situation[3])
    assert ask(rule, *situation, state) == (1, 0, state)


@every_rule("scale_free")
@EXAMPLES
@given(situation=ANY, exponent=st.integers(-8, 8))
def test_scale_free_rule_scales_with_w(rule, situation, exponent):
    """c w and c Lambda give c add, or w becomes y x all the same; exactly, for powers of 2."""
    margin, sq_w, sq_x, coef_sum = situation
    assume(margin == 0.0 or abs(margin) > 1e-300)  # smaller ones are not halved exactly
    c, state = 2.0**exponent, rule.restart(sq_w, coef_sum)
    keep, add, after = ask(rule, margin, sq_w, sq_x, coef_sum, state)
    scaled = ask(rule, c * margin, c * c * sq_w, sq_x, c * coef_sum, state)
    assert scaled == (keep, c * add if keep else add, after)


@every_rule()
@EXAMPLES
@given(sq_w=POSITIVE, coef_sum=POSITIVE)
def test_restart_gives_a_state_that_goes_on_from_what_is_proven(rule, sq_w, coef_sum):
    state = rule.restart(sq_w, coef_sum)
    assert len(state) == len(rule.state)
    assert np.isfinite(state).all()
    if rule.own_bound:
        assert rule.own_bound(state, sq_w, coef_sum) == pytest.approx(coef_sum / math.sqrt(sq_w))


# Names, documents, parameters


def test_rules_are_known_by_their_names():
    assert all(rule.name == name for name, rule in RULES.items())
    with pytest.raises(TypeError):
        RULES["mine"] = RULES["mcp"]


def test_every_rule_says_what_it_does_and_where_it_is_from():
    for rule in RULES.values():
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


@each_parameter
def test_parameter_out_of_range_is_refused_with_its_interval(rule, name):
    param = rule.params[name]
    for value in outside(param):
        for refuse in (
            lambda value=value: rule.make_params({name: value}),
            lambda value=value: OnlineClassifier(rule.name, rule_params={name: value}).fit(np.eye(2), [0, 1]),
        ):
            with pytest.raises(ValueError, match="out of range") as refused:
                refuse()
            for fact in (f"{name}={value:g}", param.interval, repr(rule.name)):
                assert fact in str(refused.value)


@each_parameter
def test_closed_ends_and_the_default_are_in_range(rule, name):
    param = rule.params[name]
    assert (param.low in param) == (param.closed in ("left", "both"))
    assert (param.high in param) == (param.closed in ("right", "both"))
    assert getattr(rule.make_params(), name) in param


def test_unknown_parameters_are_refused_with_the_known_ones():
    for rule in RULES.values():
        with pytest.raises(ValueError, match="has no parameter 'speed'") as refused:
            rule.make_params({"speed": 1.0})
        assert all(fact in str(refused.value) for fact in (repr(rule.name), *rule.params))


def test_rate_and_decay_of_norma_are_checked_together():
    with pytest.raises(ValueError, match=r"eta \* lambda_reg.*below 1"):
        RULES["norma"].make_params({"eta": 2.0, "lambda_reg": 0.5})
