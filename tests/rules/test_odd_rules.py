"""Rules of a user's own that do odd things: each is refused, or what it learns is true."""

import math

import numpy as np
import pytest

from maxcosine import RULES, BadStep, OnlineClassifier, rule
from maxcosine.compiled import JIT_ENABLED
from tests.reference import maximal_margin

X = np.tile([[1.0, 0.0], [0.0, 1.0]], (20, 1))
Y = np.tile([0, 1], 20)


@rule
def grows_from_the_start(margin, sq_w, sq_x, coef_sum, state, params):
    return 1e4, 1e-3, state


@rule(state={"rounds": 0.0})
def grows_before_its_first_step(margin, sq_w, sq_x, coef_sum, state, params):
    (rounds,) = state
    return (1e200 if rounds < 6.0 else 1.0), (1.0 if rounds == 5.0 else 0.0), (rounds + 1.0,)


@rule
def raises(margin, sq_w, sq_x, coef_sum, state, params):
    if sq_w > 1.5:
        raise ValueError("out of bounds")
    return 1.0, 1.0, state


@rule(state={"memory": 0.0})
def remembers_nan(margin, sq_w, sq_x, coef_sum, state, params):
    return 1.0, 1.0, (math.nan,)


@rule(state={"memory": 0.0})
def returns_too_much(margin, sq_w, sq_x, coef_sum, state, params):
    return 1.0, 1.0, (1.0, 2.0)


@rule
def overflows(margin, sq_w, sq_x, coef_sum, state, params):
    return 1e100, 1.0, state


@rule
def infinite_keep_of_nothing(margin, sq_w, sq_x, coef_sum, state, params):
    return math.inf, 1.0, state


def learner(own):
    return OnlineClassifier(own, fit_intercept=False)


@pytest.mark.parametrize("own", [grows_from_the_start, grows_before_its_first_step], ids=lambda r: r.name)
def test_growth_leaves_a_true_certificate(own):
    certificate = learner(own).fit(X[:12], Y[:12]).certificate_
    gamma = maximal_margin(X[:12], np.where(Y[:12] == 1, 1, -1))
    assert gamma <= certificate.margin_ceiling * (1 + 1e-12)
    assert certificate.bound > 0


@pytest.mark.parametrize("own", [remembers_nan, overflows, infinite_keep_of_nothing], ids=lambda r: r.name)
def test_what_cannot_enter_a_model_is_a_bad_step(own):
    with pytest.raises(BadStep, match=f"'{own.name}'.*row"):
        learner(own).fit(X, Y)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_error_inside_a_rule_ends_the_call():
    with pytest.raises(BadStep if JIT_ENABLED else ValueError):
        learner(raises).fit(X, Y)


def test_a_state_of_another_length_is_refused():
    with pytest.raises(TypeError if JIT_ENABLED else ValueError):
        learner(returns_too_much).fit(X, Y)


def test_a_rule_needs_a_name():
    with pytest.raises(TypeError, match="define it with def"):
        rule(lambda *scalars: (1.0, 0.0, ()))


def test_a_default_may_follow_from_the_parameters_before_it():
    chosen = RULES["alma"].make_params({"alpha": 0.5})
    assert math.sqrt(8.0) / 0.5 == chosen.B
