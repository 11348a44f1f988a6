"""Dicts that cannot be learnt from are refused with a message that helps, and leave no trace."""

import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from maxcosine import OnlineClassifier
from tests.estimators.dicts import at_once, one_by_one, stream
from tests.learners import attributes, everything, learnt

pytestmark = pytest.mark.filterwarnings("ignore::maxcosine.SortedLabelsWarning")


class Case(NamedTuple):
    name: str
    x: Any
    match: str
    y: Any = "north"
    w: Any = 1.0
    error: Any = (TypeError, ValueError)


def spoilt(kind):
    """Examples that no model can learn from, among features that are known and new."""
    known, new, late = ("word 1", "new", "late") if kind == "names" else (1, 10**15, 10**16)

    def with_value(value):
        return {known: 1.0, new: value, late: 1.0}

    def with_key(key):
        return {known: 1.0, new: 2.0, key: 1.0, late: 1.0}

    named = f"feature {new!r}"
    yield Case("NaN", with_value(math.nan), f"{named}.* is nan; impute it", error=ValueError)
    yield Case("infinity", with_value(-math.inf), f"{named}.* is -inf", error=ValueError)
    yield Case("huge norm", with_value(1e60), r"norm 1e\+60.*Rescale", error=ValueError)
    yield Case("tiny norm", {new: 1e-60}, "norm 1e-60.*Rescale", error=ValueError)
    for value in ("red", None, [1.0], 1j, 10**400):
        yield Case(repr(value)[:9], with_value(value), f"{named} is .*which is not a number; use", error=TypeError)
    wrong = (7, None, ("a",), 1.5, "\ud800") if kind == "names" else ("a", None, (1,), 1.5, -1, 2**64)
    for key in wrong:
        yield Case(f"key {key!r}", with_key(key), r"the feature .* is not a", error=TypeError)
    for x in ([1.0, 2.0], [(known, 1.0)], np.ones(2), 5, None, "abc", pd.Series({known: 1.0})):
        yield Case(f"a {type(x).__name__}", x, "an example is a dict of feature to value", error=TypeError)
    if kind == "ids":
        return
    good = with_value(1.0)
    for label in (["north"], {"north"}, {"north": 1}, None, math.nan, 1.5, ("north", "east"), 3):
        yield Case(f"label {label!r}", good, r"label|unhashable|1d|y ", label)
    for weight in (-1.0, math.nan, math.inf, 1e101, "heavy"):
        yield Case(f"weight {weight!r}", good, r"weight|convert string", w=weight, error=ValueError)


CASES = [(kind, case) for kind in ("names", "ids") for case in spoilt(kind)]


def each_case(cases):
    names = [f"{case.name}, {kind}".encode("ascii", "replace").decode() for kind, case in cases]
    return pytest.mark.parametrize(("kind", "case"), cases, ids=names)


LEARNERS = {
    "names": OnlineClassifier("mcp", multiclass="joint"),
    "ids": OnlineClassifier("aggressive_romma", average=True, class_weight={"north": 2.0}),
}


def started(kind="names"):
    """A classifier in the middle of a stream, taught by both calls."""
    X, y = stream(40, n_classes=3, kind=kind)
    learner = clone(LEARNERS[kind])
    at_once(learner, X[:10], y[:10])
    return one_by_one(learner, X[10:], y[10:])


@each_case(CASES)
def test_refused_example_leaves_no_trace(kind, case):
    learner, twin = started(kind), started(kind)
    before = everything(learner)
    with pytest.raises(case.error, match=f"(?s){case.match}"):
        learner.learn_one(case.x, case.y, case.w)
    assert everything(learner) == before
    X, y = stream(40, n_classes=4, kind=kind, seed=1)  # with features and classes that are new
    w = None if case.w == 1.0 else [1.0] * 30 + [case.w] + [1.0] * 10
    with pytest.raises(case.error, match=f"(?s){case.match}|inhomogeneous"):
        learner.learn_many([*X[:30], case.x, *X[30:]], [*y[:30], case.y, *y[30:]], w)
    assert everything(learner) == before
    assert learnt(one_by_one(learner, X, y)) == learnt(one_by_one(twin, X, y))
    assert learner.features_.tolist() == twin.features_.tolist()


@each_case([(kind, case) for kind, case in CASES if case.y != 3])  # as the first label, a number is valid
def test_refused_first_example_leaves_a_learner_unfitted(kind, case):
    learner = OnlineClassifier()
    before = attributes(learner)
    with pytest.raises(case.error):
        learner.learn_one(case.x, case.y, case.w)
    with pytest.raises(case.error):
        learner.learn_many([case.x], [case.y], [case.w])
    assert attributes(learner) == before
    assert learner.predict_one({}) is None


@pytest.mark.parametrize("kind", ["names", "ids"])
def test_refused_example_after_an_empty_one_leaves_no_trace(kind):
    learner = one_by_one(OnlineClassifier(), [{}, {}, {}], ["north", "east", "north"])
    before = everything(learner)
    with pytest.raises(ValueError, match="is nan"):
        learner.learn_one({"a" if kind == "names" else 1: math.nan}, "north")
    assert everything(learner) == before


def test_refused_example_is_named_by_its_number():
    X, y = stream(40)
    learner = one_by_one(OnlineClassifier(), X, y)
    X[17] = {**X[17], "new": math.nan}
    with pytest.raises(ValueError, match="feature 'new' in example 17 is nan"):
        learner.learn_many(X, y)
    X[17] = {"new": 1e60}
    with pytest.raises(ValueError, match=r"Row 17 of X has the norm 1e\+60"):
        learner.learn_many(X, y)


@pytest.mark.parametrize("value", [1e60, -1e60])
def test_value_beyond_the_type_of_the_weights_is_refused(value):
    learner = one_by_one(OnlineClassifier(dtype="float32"), *stream())
    before = learnt(learner), learner.features_.tolist()
    with pytest.raises(ValueError, match="too large for float32"):
        learner.learn_one({"word 1": 1.0, "new": value}, "north")
    with (
        pytest.raises(ValueError, match="too large for float32"),
        np.errstate(over="ignore"),
    ):
        learner.learn_many([{"word 1": 1.0, "new": value}], ["north"])
    assert (learnt(learner), learner.features_.tolist()) == before


@pytest.mark.parametrize(
    ("X", "y", "w"),
    [
        ([{"a": 1.0}], ["north"] * 2, None),
        ([{"a": 1.0}] * 2, ["north"], None),
        ([{"a": 1.0}], ["north"], [1, 1]),
    ],
    ids=["labels", "examples", "weights"],
)
def test_lengths_that_differ_are_refused(X, y, w):
    learner = started()
    before = everything(learner)
    with pytest.raises(ValueError, match=r"inconsistent numbers|shape"):
        learner.learn_many(X, y, w)
    assert everything(learner) == before
    fresh = OnlineClassifier()
    with pytest.raises(ValueError, match=r"inconsistent numbers|shape"):
        fresh.learn_many(X, y, w)
    assert fresh.predict_one({}) is None


def test_one_dict_for_many_is_refused():
    learner = started()
    for call in (lambda: learner.learn_many({"a": 1.0}, ["north"]), lambda: learner.predict_many({"a": 1.0})):
        with pytest.raises(TypeError, match="an example is a dict of feature to value, and this one is a str"):
            call()


# Parameters that cannot change


@pytest.mark.parametrize(
    "change",
    [
        {"rule": "pa"},
        {"average": True},
        {"fit_intercept": False},
        {"multiclass": "ovr"},
        {"dtype": "float32"},
    ],
    ids=str,
)
def test_parameter_that_cannot_change_between_examples_is_refused(change):
    learner = started()
    before, params = learnt(learner), learner.get_params()
    learner.set_params(**change)
    for call in (lambda: learner.learn_one({"a": 1.0}, "north"), lambda: learner.learn_many([{}], ["north"])):
        with pytest.raises(ValueError, match=f"{next(iter(change))} was .* when learning began"):
            call()
    assert learnt(learner) == before
    learner.set_params(**params).learn_one({"a": 1.0}, "north")


@pytest.mark.parametrize("change", [{"average": "yes"}, {"class_weight": [1.0]}, {"rule": "no such"}], ids=str)
def test_invalid_parameters_are_refused(change):
    learner = started().set_params(**change)
    for call in (lambda: learner.learn_one({"a": 1.0}, "north"), lambda: learner.learn_many([{}], ["north"])):
        with pytest.raises(ValueError, match=next(iter(change))):
            call()
