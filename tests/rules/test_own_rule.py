"""A user's own rule is a rule like any other."""

import copy
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

from maxcosine import BadStep, OnlineClassifier, Param, rule
from maxcosine.compiled import JIT_ENABLED
from maxcosine.rules import cmcp
from tests.rules.streams import Walk, learner, learnt, stream

DATA = stream(11, noise=0.05)


@rule(params={"target": Param(0.5, "the margin asked for", low=0.0)})
def hinge(margin, sq_w, sq_x, coef_sum, state, params):
    """A step of fixed length whenever the margin is below the target."""
    return 1.0, (1.0 / math.sqrt(sq_x) if margin <= params.target else 0.0), state


@rule(
    state={"bound": 0.0},
    scale_free=True,
    own_bound=cmcp.own_bound,
    restart_state=cmcp.restart_state,
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


@rule(state={"rounds": 0.0, "largest": 0.0})
def cooling(margin, sq_w, sq_x, coef_sum, state, params):
    """Two numbers of state: steps shrink with the rounds and with the largest norm so far."""
    rounds, largest = state[0] + 1.0, max(state[1], sq_x)
    add = 1.0 / math.sqrt(rounds * largest) if margin <= 0.0 else 0.0
    return 1.0, add, (rounds, largest)


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


def same_model(a, b):
    return a.coef_.tobytes() == b.coef_.tobytes() and a.certificate_ == b.certificate_


def test_it_learns():
    data = stream(11)
    model = OnlineClassifier(rule=hinge, passes=10).fit(data.X, data.y)
    used = data.X.any(axis=1)
    assert model.score(data.X[used], data.y[used]) == 1.0
    assert model.certificate_.rule == "hinge"
    assert model.certificate_.bound > 0


def test_its_parameters_are_used_and_checked():
    eager, lazy = (learnt(hinge, DATA, target=target).updates_ for target in (5.0, 0.1))
    assert eager > lazy
    with pytest.raises(ValueError, match=r"target=-1 of rule 'hinge' is out of range"):
        learnt(hinge, DATA, target=-1.0)


@pytest.mark.parametrize("own", [hinge, own_mcp, cooling], ids=repr)
def test_the_engine_does_what_the_function_says(own):
    walk = Walk.of(own, DATA.X.shape[1])
    for _ in walk.over(DATA):
        pass
    model = learnt(own, DATA)
    np.testing.assert_allclose(model.coef_[0], walk.w, rtol=1e-9, atol=1e-12)
    assert model.certificate_.coef_sum == pytest.approx(walk.coef_sum)


def test_a_copy_of_mcp_is_mcp_to_the_bit():
    own, builtin = learnt(own_mcp, DATA), learnt("mcp", DATA)
    assert own.coef_.tobytes() == builtin.coef_.tobytes()
    for name in ("coef_sum", "norm", "bound", "best_bound", "own_bound", "seen", "mistakes", "updates"):
        assert getattr(own.certificate_, name) == getattr(builtin.certificate_, name), name


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))])
@pytest.mark.parametrize("own", [hinge, own_mcp, cooling], ids=repr)
def test_copies_of_a_rule_are_itself(own, copied):
    assert copied(own) is own


def test_clones_and_pickles_of_a_learner_have_the_same_rule():
    model = learnt(hinge, DATA, target=0.2)
    assert clone(model).get_params() == model.get_params()
    loaded = pickle.loads(pickle.dumps(model))
    assert loaded.rule is hinge
    assert same_model(loaded, model)
    for each in (loaded, model):
        each.partial_fit(DATA.X, DATA.y)
    assert same_model(loaded, model)


@pytest.mark.skipif(not JIT_ENABLED, reason="nothing is compiled")
def test_a_rule_that_cannot_be_compiled_is_refused_by_name():
    @rule
    def chatty(margin, sq_w, sq_x, coef_sum, state, params):
        return 1.0, {"step": margin}.popitem(), open("log")

    with pytest.raises(TypeError, match="rule 'chatty' could not be compiled"):
        learnt(chatty, DATA)


# Steps that are refused


@pytest.fixture(params=range(len(FAULTS)), ids=[str(fault) for fault in FAULTS])
def fault(request):
    return float(request.param)


@pytest.fixture
def poisoned():
    """The rows, with one in the middle on which the faulty rule fails."""
    X = DATA.X.copy()
    X[60] = 1000.0
    return X


def test_a_bad_step_is_refused_with_the_rule_and_the_row(fault, poisoned):
    model = learner(faulty, fault=fault)
    with pytest.raises(BadStep, match=r"rule 'faulty' asked in row 60, head 0.*finite and at least 0"):
        model.fit(poisoned, DATA.y)
    assert not model.__sklearn_is_fitted__()


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_a_refused_call_leaves_the_model_as_it_was(call, fault, poisoned):
    model = learnt(faulty, DATA, fault=fault)
    before, twin = pickle.dumps(model), copy.deepcopy(model)
    with pytest.raises(BadStep):
        getattr(model, call)(poisoned, DATA.y)
    assert pickle.dumps(model) == before
    assert same_model(model, twin)
    for each in (model, twin):  # and it goes on as if nothing had been
        each.partial_fit(DATA.X[::-1], DATA.y[::-1])
    assert same_model(model, twin)


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


def test_a_rule_of_a_script_reaches_worker_processes(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
