"""Weights of rows and classes as users give them; see tests/contract for what they do to a step."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_class_weight

from maxcosine import OnlineClassifier
from tests.learners import attributes, everything, learnt, points


def random_weights(n, seed=0):
    """Weights of four decades, some of them 0."""
    random = np.random.default_rng(seed)
    return 10.0 ** random.uniform(-2, 2, n) * (random.random(n) < 0.9)


def dicts(X):
    return [dict(enumerate(row)) for row in X.tolist()]


# Rows


def test_chunk_of_weight_0_changes_nothing(average):
    X, y = points()
    learner, expected = (OnlineClassifier(average=average).fit(X, y) for _ in range(2))
    learner.partial_fit(X[:5], y[:5], sample_weight=np.zeros(5))
    assert everything(learner) == everything(expected)


@pytest.mark.parametrize(
    "form",
    [list, tuple, np.float32, lambda w: pd.Series(w, index=np.arange(len(w))[::-1]), np.asfortranarray],
    ids=["list", "tuple", "float32", "series", "array"],
)
def test_weights_may_be_anything_like_an_array(form):
    X, y = points()
    weights = random_weights(len(X)).astype(np.float32).astype(np.float64)
    expected = OnlineClassifier().fit(X, y, sample_weight=weights)
    assert learnt(OnlineClassifier().fit(X, y, sample_weight=form(weights))) == learnt(expected)
    assert learnt(OnlineClassifier().partial_fit(X, y, None, form(weights))) == learnt(expected)


def test_one_weight_for_all_rows_is_that_of_each():
    X, y = points()
    expected = OnlineClassifier().fit(X, y, sample_weight=np.full(len(X), 0.3))
    assert learnt(OnlineClassifier().fit(X, y, sample_weight=0.3)) == learnt(expected)


def test_weights_are_not_written_to():
    X, y = points()
    weights = random_weights(len(X))
    before = weights.copy()
    OnlineClassifier(class_weight={0: 2.0}).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(weights, before)


def test_weights_of_dicts_are_weights_of_rows(learner, n_classes):
    X, y = points(n_classes)
    X, weights = np.where(X == 0.0, 0.5, X), random_weights(len(X))  # every key is in the first row
    learner.set_params(class_weight={0: 2.0, 1: 0.5})
    columns, many, one = (clone(learner) for _ in range(3))
    columns.partial_fit(X, y, sample_weight=weights)
    many.learn_many(dicts(X), y, weights)
    one.learn_many(dicts(X[:10]), y[:10], weights[:10])
    for x, label, weight in zip(dicts(X[10:]), y[10:].tolist(), weights[10:].tolist(), strict=True):
        one.learn_one(x, label, w=weight)
    assert learnt(one) == learnt(many) == learnt(columns)
    assert many.certificate_.weighted


# Classes


def test_class_weights_of_names():
    X, y = points(3)
    names = np.array(["ham", "spam", "an even longer name"])[y]
    weights = {"spam": 3.0, "an even longer name": 0.2, "no such class": 7.0}
    learner = OnlineClassifier(class_weight=weights).fit(X, names)
    expected = OnlineClassifier().fit(X, names, sample_weight=[weights.get(n, 1.0) for n in names])
    assert learnt(learner) == learnt(expected)


def test_balanced_weights_are_those_of_scikit_learn(learner, n_classes):
    X, y = points(n_classes)
    rare = (y != 1) | (np.arange(len(y)) % 4 == 0)
    X, y = X[rare], y[rare]
    weights = compute_class_weight("balanced", classes=np.arange(n_classes), y=y)
    assert weights[1] > 1.0 > weights[0]
    balanced = clone(learner).set_params(class_weight="balanced", passes=2)
    learner.set_params(passes=2)
    assert learnt(balanced.fit(X, y)) == learnt(learner.fit(X, y, sample_weight=weights[y]))
    rows = random_weights(len(X))
    expected = learner.fit(X, y, sample_weight=rows * weights[y])
    assert learnt(balanced.fit(X, y, sample_weight=rows)) == learnt(expected)


@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("keyed", [False, True])
def test_balanced_weights_of_a_stream_are_refused(fitted, keyed):
    X, y = points()
    learner = OnlineClassifier()
    if fitted:
        learner.learn_many(dicts(X), y) if keyed else learner.fit(X, y)
    learner.set_params(class_weight="balanced")
    before = everything(learner)
    calls = [lambda: learner.learn_one({0: 1.0}, 1), lambda: learner.learn_many(dicts(X), y)]
    for call in [*calls, lambda: learner.partial_fit(X, y)]:
        with pytest.raises(ValueError, match=r"needs all labels at once.*sample_weight"):
            call()
        assert everything(learner) == before


# Refused weights


def at_row_7(value):
    def spoil(weights):
        weights = weights.astype(object if isinstance(value, str) else np.float64)
        weights[7] = value
        return weights

    return spoil


BAD_VALUES = {"negative": -1.0, "nan": np.nan, "inf": np.inf, "too large": 1e101, "too small": 1e-101}
BAD_WEIGHTS = {
    **{name: (at_row_7(value), "row 7") for name, value in BAD_VALUES.items()},
    "strings": (at_row_7("heavy"), "could not convert string to float: 'heavy'"),
    "too short": (lambda w: w[:-1], r"sample_weight.shape == \(119,\), expected \(120,\)"),
    "too long": (lambda w: np.append(w, 1.0), r"sample_weight.shape == \(121,\), expected \(120,\)"),
    "a column": (lambda w: w[:, None], "Sample weights must be 1D array or scalar"),
    "a table": (lambda w: np.column_stack([w, w]), "Sample weights must be 1D array or scalar"),
}


@pytest.mark.parametrize("name", BAD_WEIGHTS)
def test_bad_weights_are_refused_and_leave_no_trace(name):
    spoil, match = BAD_WEIGHTS[name]
    X, y = points()
    for call in ("fit", "partial_fit"):
        fresh, old = OnlineClassifier(), OnlineClassifier(average=True).fit(X, y)
        before = everything(old)
        for learner in (fresh, old):
            with pytest.raises(ValueError, match=match):
                getattr(learner, call)(X, y, sample_weight=spoil(np.ones(120)))
        assert attributes(fresh) == attributes(OnlineClassifier())
        assert everything(old) == before


def test_weights_whose_product_is_out_of_range_are_refused_with_their_row():
    X, y = points()
    first = int(np.flatnonzero(y == 1)[0])
    learner = OnlineClassifier(class_weight={1: 1e-60})
    with pytest.raises(ValueError, match=rf"the weight of row {first} is 1e-120; weights are 0, or between"):
        learner.fit(X, y, sample_weight=np.full(len(X), 1e-60))


@pytest.mark.parametrize("value", [*BAD_VALUES.values(), "heavy", None, [1.0]], ids=str)
def test_bad_weights_of_classes_are_refused_with_their_class(value):
    X, y = points()
    for call in ("fit", "partial_fit", "learn_many", "learn_one"):
        examples = X if call.endswith("fit") else dicts(X)
        data = (examples[0], 1) if call == "learn_one" else (examples, y)
        fresh, old = OnlineClassifier(), OnlineClassifier()
        old.learn_many(dicts(X), y)
        before = learnt(old)
        for learner in (fresh, old):
            learner.set_params(class_weight={1: value})
            with pytest.raises(ValueError, match="class_weight gives class 1 the weight"):
                getattr(learner, call)(*data)
        assert not fresh.__sklearn_is_fitted__()
        assert learnt(old) == before


@pytest.mark.parametrize("value", BAD_VALUES.values(), ids=BAD_VALUES)
def test_bad_weight_of_one_example_is_refused(value):
    learner = OnlineClassifier()
    learner.learn_many([{"a": 1.0}, {"b": 1.0}], [0, 1])
    before = learnt(learner)
    with pytest.raises(ValueError, match=r"an example of class 1 has the weight .*; weights are 0, or"):
        learner.learn_one({"new": 1.0}, 1, w=value)
    assert learnt(learner) == before
    assert learner.features_.tolist() == ["a", "b"]


@pytest.mark.parametrize("weights", ["heavy", [1.0, 2.0], 3.0])
def test_other_kinds_of_class_weight_are_refused(weights):
    with pytest.raises(ValueError, match="The 'class_weight' parameter"):
        OnlineClassifier(class_weight=weights).fit(*points())


# Metadata routing


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_pipelines_route_weights(learner):
    X, y = points()
    weights = random_weights(len(X))
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    expected = clone(learner).fit(scaler.fit_transform(X), y, sample_weight=weights)
    pipeline = make_pipeline(scaler, learner.set_fit_request(sample_weight=True))
    pipeline.fit(X, y, sample_weight=weights)
    assert learnt(pipeline[-1]) == learnt(expected)
    unasked = make_pipeline(scaler, clone(learner).set_fit_request(sample_weight=False))
    assert learnt(unasked.fit(X, y)[-1]) == learnt(clone(expected).fit(scaler.transform(X), y))


@pytest.mark.usefixtures("routing")
def test_searches_and_cross_validation_route_weights():
    X, y = points()
    weights = random_weights(len(X))
    learner = OnlineClassifier().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    search = GridSearchCV(learner, {"average": [False, True]}, cv=2, error_score="raise")
    best = search.fit(X, y, sample_weight=weights).best_estimator_
    assert learnt(best) == learnt(clone(best).fit(X, y, sample_weight=weights))
    assert best.certificate_.weighted
    for requested in (True, False):
        learner.set_fit_request(sample_weight=requested)
        options = {"cv": 2, "params": {"sample_weight": weights}, "return_estimator": True}
        models = cross_validate(learner, X, y, error_score="raise", **options)["estimator"]
        assert [model.certificate_.weighted for model in models] == [requested, requested]


@pytest.mark.usefixtures("routing")
def test_weights_and_classes_of_partial_fit_can_be_requested(learner):
    X, y = points(3)
    weights = random_weights(len(X))
    learner.set_partial_fit_request(classes=True, sample_weight=True)
    requested = {"classes": True, "sample_weight": True, "trace": None}
    assert learner.get_metadata_routing().partial_fit.requests == requested
    assert set(learner.get_metadata_routing().fit.requests) == {"sample_weight", "trace"}
    ovr = OneVsRestClassifier(clone(learner).set_partial_fit_request(classes=False))
    ovr.partial_fit(X, y, classes=[0, 1, 2], sample_weight=weights)
    for code, head in enumerate(ovr.estimators_):
        expected = clone(learner).partial_fit(X, (y == code).astype(int), [0, 1], weights)
        assert np.array_equal(head.coef_, expected.coef_)
