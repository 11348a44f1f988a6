"""The attribute `trace_`: when it is there, what an error leaves of it, and scikit-learn's tools around it."""

import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from maxcosine import BadStep, MCPClassifier, OnlineClassifier, load, save
from maxcosine.engine import learn
from maxcosine.features import Features
from maxcosine.model import Model
from maxcosine.rules import RULES
from maxcosine.trace import STEP, Trace
from tests.learners import breaks_late, points

pytestmark = pytest.mark.filterwarnings("ignore::maxcosine.SortedLabelsWarning")


def test_fields_are_those_of_the_documentation():
    names = ["example", "row", "head", "mistake", "margin", "keep", "add", "norm", "coef_sum", "ell"]
    learner = MCPClassifier().fit(*points(3), trace=True)
    assert list(learner.trace_.dtype.names) == names
    assert learner.trace_["mistake"].dtype == bool
    assert learner.trace_.itemsize == 72
    assert learner.trace_["head"].tolist() == [0, 1, 2] * 120
    assert learner.trace_["example"].tolist() == np.repeat(np.arange(120), 3).tolist()


def test_trace_is_that_of_the_last_call(learner):
    X, y = points()
    assert not hasattr(learner.fit(X, y), "trace_")
    assert len(learner.fit(X, y, trace=True).trace_) == len(X)
    assert learner.partial_fit(X[:7], y[:7], trace=True).trace_["example"].tolist() == list(range(120, 127))
    assert not hasattr(learner.partial_fit(X[:7], y[:7]), "trace_")
    assert not hasattr(learner.fit(X, y, trace=True).fit(X, y), "trace_")
    assert not hasattr(learner.fit(X, y, trace=True).fit_stream([(X, y)]), "trace_")


def test_copies_keep_the_trace_and_clones_and_files_do_not(tmp_path):
    learner = MCPClassifier().fit(*points(), trace=True)
    assert np.array_equal(pickle.loads(pickle.dumps(learner)).trace_, learner.trace_)
    assert not hasattr(clone(learner), "trace_")
    save(learner, tmp_path / "model.safetensors")
    assert not hasattr(load(tmp_path / "model.safetensors"), "trace_")


def test_refused_rows_leave_the_earlier_trace(learner):
    X, y = points()
    before = learner.fit(X, y, trace=True).trace_
    X[60, 0] = 1e200  # finite, and too long to learn from
    for method in (learner.fit, learner.partial_fit):
        for trace in (True, False):
            with pytest.raises(ValueError, match=r"Row 60 of X has the norm 1e\+200"):
                method(X, y, trace=trace)
            assert learner.trace_ is before


def test_rule_that_breaks_leaves_the_earlier_trace():
    X, y = points()
    learner = OnlineClassifier(breaks_late, rule_params={"limit": 1e9}).fit(X, y, trace=True)
    before = learner.trace_
    learner.set_params(rule_params={"limit": 40.0})
    for method in (learner.fit, learner.partial_fit):
        with pytest.raises(BadStep):
            method(X, y, trace=True)
        assert learner.trace_ is before


# scikit-learn's tools


def test_pipelines_pass_trace_on():
    X, y = points()
    pipeline = Pipeline([("scale", StandardScaler()), ("learn", MCPClassifier())]).fit(X, y, learn__trace=True)
    expected = MCPClassifier().fit(StandardScaler().fit_transform(X), y, trace=True)
    assert np.array_equal(pipeline["learn"].trace_, expected.trace_)


def test_trace_can_be_requested_as_metadata():
    X, y = points()
    with config_context(enable_metadata_routing=True):
        steps = [("scale", StandardScaler()), ("learn", MCPClassifier().set_fit_request(trace=True))]
        assert len(Pipeline(steps).fit(X, y, trace=True)["learn"].trace_) == len(X)
        with pytest.raises(UnsetMetadataPassedError, match="trace"):
            Pipeline([("learn", MCPClassifier())]).fit(X, y, trace=True)


# The model's own method


def new_model(rule, n_classes):
    params = rule.make_params()
    options = {"fit_intercept": False, "average": False}
    return Model.create(rule, params, np.arange(n_classes), Features(6), np.dtype(float), **options)


def test_model_fills_a_trace_over_several_calls():
    X, y = points(3)
    trace, model = Trace(2 * len(X) * 3), new_model(RULES["mcp"], 3)
    model.learn(X, y, trace=trace)
    model.learn(X, y, np.arange(50), trace=trace)
    expected = MCPClassifier(fit_intercept=False).fit(X, y, trace=True).trace_
    assert trace.steps.dtype == STEP
    assert np.array_equal(trace.steps[: len(expected)], expected)
    assert trace.steps["row"][len(expected) :: 3].tolist() == list(range(50))
    assert trace.steps["example"].max() == 169


@pytest.mark.filterwarnings("ignore::maxcosine.rules.compiling.SlowRuleWarning")
def test_trace_has_the_steps_before_a_refused_row():
    X, y = points()
    trace, model = Trace(len(X)), new_model(breaks_late, 2)
    with pytest.raises(BadStep, match="row 40"):
        model.learn(X, y, trace=trace)
    assert trace.steps["row"].tolist() == list(range(40))
    assert trace.steps["coef_sum"].tolist() == list(range(1, 41))
    X[5] = np.nan
    trace, model = Trace(len(X)), new_model(RULES["mcp"], 2)
    with pytest.raises(ValueError, match="NaN in row 5"):
        model.learn(X, y, trace=trace)
    assert trace.steps["row"].tolist() == list(range(5))


def test_too_little_room_is_refused_before_anything_is_learnt():
    X, y = points(3)
    model = new_model(RULES["mcp"], 3)
    with pytest.raises(ValueError, match="room for one step for each row and head"):
        learn(model.heads, X, y, trace=Trace(len(X) * 3 - 1))
    assert model.n_seen == 0
