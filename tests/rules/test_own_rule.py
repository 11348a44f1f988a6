"""A user's rule is a rule like any other; a faulty one is refused, or what it learns is true."""

import copy
import math
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from maxcosine import RULES, BadStep, OnlineClassifier, Param, rule
from maxcosine.rules.compiling import SlowRuleWarning
from tests.learners import PAIRWISE_SETTINGS, everything, points
from tests.learners import learnt as bits_of
from tests.reference import maximal_margin
from tests.rules.streams import Walk, learner, learnt, stream

DATA = stream(11, noise=0.05)


@rule(
    params={"target": Param(0.5, "the margin asked for", low=0.0)},
    state={"rounds": 0.0, "largest": 0.0},
)
def hinge(margin, sq_w, sq_x, coef_sum, state, params):
    """A step below the target margin; it shrinks with the rounds and with the largest norm so far."""
    rounds, largest = state[0] + 1.0, max(state[1], sq_x)
    add = 1.0 / math.sqrt(math.sqrt(rounds) * largest) if margin <= params.target else 0.0
    return 1.0, add, (rounds, largest)


@rule(
    state={"bound": 0.0},
    scale_free=True,
    own_bound=RULES["mcp"].own_bound,
    restart_state=RULES["mcp"].restart_state,
)
def own_mcp(margin, sq_w, sq_x, coef_sum, state, params):
    (bound,) = state
    if coef_sum == 0.0:
        return 0.0, 1.0, (1.0 / math.sqrt(sq_x),)
    norm_w = math.sqrt(sq_w)
    if margin > norm_w / (2.0 * bound):
        return 1.0, 0.0, state
    eta = max(0.0, margin) * bound / norm_w
    add = norm_w / (bound * sq_x)
    return 1.0, add, (math.sqrt(bound * bound + max(0.0, 1.0 - 2.0 * eta) / sq_x),)


FAULTS = (
    (1.0, math.nan),
    (1.0, -1.0),
    (1.0, math.inf),
    (math.nan, 1.0),
    (-1.0, 1.0),
    (math.inf, 1.0),
)


@rule(params={"fault": 0.0}, state={"rounds": 0.0})
def faulty(margin, sq_w, sq_x, coef_sum, state, params):
    """The Perceptron, until an example is longer than 100."""
    if sq_x > 1e4:
        keep, add = FAULTS[int(params.fault)]
    else:
        keep, add = 1.0, 1.0 if margin <= 0.0 else 0.0
    return keep, add, (state[0] + 1.0,)


# What is known of it


@pytest.mark.parametrize("gain", [0, -0.5, 1.0000001, math.nan, math.inf, "1", 1j])
def test_gain_outside_of_its_range_is_refused(gain):
    with pytest.raises(ValueError, match=r"of rule 'hinge' must be above 0 and at most 1; give the m of its proven"):
        rule(hinge.function, gain=gain)


def test_own_bound_means_a_gain_of_1_unless_another_is_given():
    bound = own_mcp.own_bound
    assert own_mcp.gain == 1.0
    assert hinge.gain is None
    assert rule(own_mcp.function, own_bound=bound, gain=0.25).with_params({}).gain == 0.25
    assert rule(hinge.function, params=hinge.params, gain=0.5).with_params({"target": 1.0}).gain == 0.5


# What it learns


def test_own_rule_learns():
    data = stream(11)
    model = OnlineClassifier(rule=hinge, passes=10).fit(data.X, data.y)
    used = data.X.any(axis=1)
    assert model.score(data.X[used], data.y[used]) == 1.0
    assert model.certificate_.rule == "hinge"
    assert model.certificate_.bound > 0


def test_parameters_are_used_and_checked():
    eager, lazy = (learnt(hinge, DATA, target=target).updates_ for target in (5.0, 0.1))
    assert eager > lazy
    with pytest.raises(ValueError, match=r"target=-1 of rule 'hinge' is out of range"):
        learnt(hinge, DATA, target=-1.0)


@pytest.mark.parametrize("own", [hinge, own_mcp], ids=repr)
def test_engine_does_what_the_function_says(own):
    walk = Walk.of(own, DATA.X.shape[1])
    for _ in walk.over(DATA):
        pass
    model = learnt(own, DATA)
    np.testing.assert_allclose(model.coef_[0], walk.w, rtol=1e-9, atol=1e-12)
    assert model.certificate_.coef_sum == pytest.approx(walk.coef_sum)


def test_copy_of_mcp_is_mcp_to_the_bit():
    for setting in PAIRWISE_SETTINGS:
        X, y = points(setting.n_classes)
        own, builtin = (setting.classifier(each).fit(X, y) for each in (own_mcp, "mcp"))
        np.testing.assert_array_equal(own.coef_, builtin.coef_)
        for name in ("coef_sum", "norm", "bound", "best_bound", "own_bound", "seen", "mistakes", "updates"):
            found, expected = (getattr(model.certificate_, name) for model in (own, builtin))
            np.testing.assert_array_equal(found, expected)


def shortened(step, target):
    return step / (1.0 + damping(target))


def damping(target):
    return 1.0 / target  # no error, but infinity, for 0


@rule(params={"target": Param(0.5, low=0.0, closed="left")})
def damped(margin, sq_w, sq_x, coef_sum, state, params):
    """The Perceptron with a step that functions beside it compute."""
    return 1.0, (shortened(1.0, params.target) if margin <= 0.0 else 0.0), state


def test_rule_calls_functions_of_its_own_file():
    model, perceptron = learnt(damped, DATA), learnt("perceptron", DATA)
    np.testing.assert_allclose(model.coef_, perceptron.coef_ / 3.0, rtol=1e-12)
    assert not learnt(damped, DATA, target=0.0).coef_.any()


def test_rule_calls_functions_that_are_defined_around_it():
    def doubled(step):
        return 2.0 * step

    @rule
    def double(margin, sq_w, sq_x, coef_sum, state, params):
        return 1.0, (doubled(1.0) if margin <= 0.0 else 0.0), state

    np.testing.assert_array_equal(learnt(double, DATA).coef_, 2.0 * learnt("perceptron", DATA).coef_)


def test_rule_calls_functions_of_its_own_file_without_numba(monkeypatch):
    monkeypatch.setattr("maxcosine.rules.compiling.find_spec", lambda name: None)
    slow = rule(damped.function, params=damped.params)
    with pytest.warns(SlowRuleWarning):
        model = learnt(slow, DATA)
    np.testing.assert_allclose(model.coef_, learnt("perceptron", DATA).coef_ / 3.0, rtol=1e-12)


# Copies


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))])
def test_copies_of_a_rule_are_itself(copied):
    for own in (hinge, own_mcp):
        assert copied(own) is own


def test_clones_and_pickles_of_a_learner_have_the_same_rule():
    model = learnt(hinge, DATA, target=0.2)
    assert clone(model).get_params() == model.get_params()
    loaded = pickle.loads(pickle.dumps(model))
    assert loaded.rule is hinge
    assert bits_of(loaded) == bits_of(model)
    for each in (loaded, model):
        each.partial_fit(DATA.X, DATA.y)
    assert bits_of(loaded) == bits_of(model)


SCRIPT = """
import pickle
import numpy as np
from sklearn.model_selection import cross_val_score
from maxcosine import OnlineClassifier, rule

@rule(params={"target": 0.1})
def mine(margin, sq_w, sq_x, coef_sum, state, params):
    return 1.0, (1.0 if margin <= params.target else 0.0), state

if __name__ == "__main__":
    assert pickle.loads(pickle.dumps(mine)) is mine
    X = np.random.default_rng(0).normal(size=(60, 3))
    scores = cross_val_score(OnlineClassifier(mine), X, X[:, 0] > 0, n_jobs=2, cv=2)
    assert scores.min() > 0.5
"""


@pytest.mark.slow
def test_rule_of_a_script_reaches_worker_processes(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# Steps that are refused


@pytest.fixture(params=range(len(FAULTS)), ids=[str(fault) for fault in FAULTS])
def fault(request):
    return float(request.param)


def test_bad_step_is_refused_with_the_rule_and_the_row_and_leaves_no_trace(fault):
    X = DATA.X.copy()
    X[60] = 1000.0  # here the faulty rule fails
    fresh, model = learner(faulty, fault=fault), learnt(faulty, DATA, fault=fault)
    before, twin = everything(model), copy.deepcopy(model)
    for call in (fresh.fit, model.fit, model.partial_fit):
        with pytest.raises(BadStep, match=r"rule 'faulty' asked in row 60, head 0.*finite and at least 0"):
            call(X, DATA.y)
    assert not fresh.__sklearn_is_fitted__()
    assert everything(model) == before
    for each in (model, twin):  # and it goes on as if nothing had been
        each.partial_fit(DATA.X[::-1], DATA.y[::-1])
    assert bits_of(model) == bits_of(twin)


X = np.tile([[1.0, 0.0], [0.0, 1.0]], (20, 1))
Y = np.tile([0, 1], 20)


@rule(params={"kind": 0.0}, state={"memory": 0.0})
def odd(margin, sq_w, sq_x, coef_sum, state, params):
    """Steps that are unusual, or that no model can take."""
    rounds = state[0]
    keep, add, memory = 1.0, 1.0, rounds + 1.0
    if params.kind == 1.0:  # grows from the start
        keep, add = 1e4, 1e-3
    elif params.kind == 2.0:  # grows before its first step
        keep, add = (1e200 if rounds < 6.0 else 1.0), (1.0 if rounds == 5.0 else 0.0)
    elif params.kind == 3.0:  # remembers NaN
        memory = math.nan
    elif params.kind == 4.0:  # overflows
        keep = 1e100
    elif params.kind == 5.0:  # keeps infinitely much of nothing
        keep = math.inf
    elif params.kind == 6.0 and sq_w > 1.5:
        raise ValueError("out of bounds")
    return keep, add, (memory,)


@pytest.mark.parametrize("kind", [1.0, 2.0])
def test_growth_leaves_a_true_certificate(kind):
    certificate = learner(odd, kind=kind).fit(X[:12], Y[:12]).certificate_
    gamma = maximal_margin(X[:12], np.where(Y[:12] == 1, 1, -1))
    assert gamma <= certificate.margin_ceiling * (1 + 1e-12)
    assert certificate.bound > 0


@pytest.mark.parametrize("kind", [3.0, 4.0, 5.0])
def test_step_that_cannot_enter_a_model_is_a_bad_step(kind):
    with pytest.raises(BadStep, match=r"'odd'.*row"):
        learner(odd, kind=kind).fit(X, Y)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_error_inside_a_rule_ends_the_call():
    with pytest.raises((BadStep, ValueError)):
        learner(odd, kind=6.0).fit(X, Y)


@rule(state={"memory": 0.0})
def returns_too_much(margin, sq_w, sq_x, coef_sum, state, params):
    return 1.0, 1.0, (1.0, 2.0)


def test_state_of_another_length_is_refused():
    with pytest.raises(TypeError, match="'returns_too_much' declares 1 numbers of state and returns 2"):
        learner(returns_too_much).fit(X, Y)


@rule
def chatty(margin, sq_w, sq_x, coef_sum, state, params):
    return 1.0, {"step": margin}.popitem(), open("log")


def test_rule_that_cannot_be_compiled_is_refused_in_one_line_that_names_its_place():
    with pytest.raises(TypeError, match=r"test_own_rule.py:\d+: rule 'chatty' cannot be compiled") as refused:
        learnt(chatty, DATA)
    assert "\n" not in str(refused.value)


def test_rule_runs_as_python_without_numba_and_warns_once(monkeypatch):
    monkeypatch.setattr("maxcosine.rules.compiling.find_spec", lambda name: None)
    slow = rule(own_mcp.function, state=own_mcp.state, scale_free=True, own_bound=own_mcp.own_bound)
    with pytest.warns(SlowRuleWarning, match=r"pip install 'maxcosine\[rules\]'"):
        model = learnt(slow, DATA)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learnt(slow, DATA)
    np.testing.assert_array_equal(model.coef_, learnt("mcp", DATA).coef_)


def test_rule_needs_a_name():
    with pytest.raises(TypeError, match="define it with def"):
        rule(lambda *scalars: (1.0, 0.0, ()))
