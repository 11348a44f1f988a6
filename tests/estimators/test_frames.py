"""Dicts for models of columns, and data frames."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

from maxcosine import OnlineClassifier
from tests.estimators.dicts import at_once, one_by_one, stream
from tests.learners import everything, learnt, points

pytestmark = pytest.mark.filterwarnings("ignore::maxcosine.SortedLabelsWarning")


# Models that know columns


def fitted_with_columns(named, sparse, **options):
    X, y = points(3, n_rows=30)
    X = pd.DataFrame(X, columns=list("abcdef")) if named else X
    learner = OnlineClassifier(**options).fit(X, y)
    return learner.sparsify() if sparse else learner


@pytest.mark.parametrize("named", [False, True], ids=["numbers", "names"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_dicts_may_hold_columns(named, sparse):
    dicts, many, rows = (fitted_with_columns(named, sparse, average=True) for _ in range(3))
    X, y = points(4, n_rows=12, seed=1)  # with a class that is new
    keys = list("abcdef") if named else list(range(6))
    examples = [{keys[k]: x[k] for k in np.flatnonzero(x)[::-1]} for x in X]
    X = pd.DataFrame(X, columns=keys) if named else scipy.sparse.csr_array(X)
    one_by_one(dicts, examples, y.tolist())
    at_once(many, examples, y)
    rows.partial_fit(X, y)
    for learner in (dicts, many):
        assert learnt(learner) == learnt(rows)
        assert learner.classes_.tolist() == [0, 1, 2, 3]
        assert learner.features_.tolist() == keys
        assert [learner.predict_one(x) for x in examples] == rows.predict(X).tolist()
        assert learner.predict_many(examples).tolist() == rows.predict(X).tolist()


@pytest.mark.parametrize("named", [False, True], ids=["numbers", "names"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_unknown_columns_are_refused_when_learning_and_ignored_when_predicting(named, sparse):
    learner = fitted_with_columns(named, sparse)
    known, unknown = ("a", ["z", 0, ""]) if named else (0, [6, -1, "a", 2**64, 0.5])
    before = everything(learner)
    for key in unknown:
        with pytest.raises(ValueError, match=r"the feature .* is none of the 6 columns .* fitted with; learn from"):
            learner.learn_one({known: 1.0, key: 1.0}, 1)
        assert learner.predict_one({known: 3.0, key: 1e9}) == learner.predict_one({known: 3.0})
    for value in ("red", None, [1.0]):
        with pytest.raises(TypeError, match=f"the value of feature {known!r} is"):
            learner.learn_one({known: value}, 1)
    with pytest.raises(ValueError, match=f"feature {known!r} in example 0 is nan"):
        learner.learn_one({known: math.nan}, 1)
    assert everything(learner) == before


def test_dicts_may_bring_late_classes_to_columns():
    X, y = points()
    learner = OnlineClassifier().fit(X, y)
    learner.learn_one({0: 9.0}, 7)
    assert learner.classes_.tolist() == [0, 1, 7]
    named = OnlineClassifier().partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="not among the classes"):
        named.learn_one({0: 9.0}, 7)


def test_fit_after_dicts_starts_anew():
    X, y = points()
    learner = one_by_one(OnlineClassifier(), *stream(n_classes=3)).fit(X.astype(np.float32), y)
    fresh = OnlineClassifier().fit(X.astype(np.float32), y)
    assert learnt(learner) == learnt(fresh)
    assert learner.features_.tolist() == list(range(6))
    learner.learn_one({2: 1.0}, 1)
    fresh.learn_one({2: 1.0}, 1)
    assert learnt(learner) == learnt(fresh)


# Data frames


def frame(n_classes=2, seed=0, columns="abcdef"):
    X, y = points(n_classes, n_rows=50, seed=seed)
    return pd.DataFrame(X, columns=list(columns), index=np.arange(50)[::-1] + 7), pd.Series(y)


def test_frame_is_its_records(n_classes):
    X, y = frame(n_classes)
    frames, records = OnlineClassifier(average=True), OnlineClassifier(average=True)
    for rows in (slice(0, 20), slice(20, 50)):
        frames.learn_many(X.iloc[rows], y.iloc[rows])
        records.learn_many(X.iloc[rows].to_dict("records"), y.iloc[rows])
    assert frames.features_.tolist() == records.features_.tolist()
    assert learnt(frames) == learnt(records)
    assert frames.predict_many(X).tolist() == records.predict_many(X.to_dict("records")).tolist()


def test_numbers_that_name_columns_are_ids():
    X, y = frame(3, columns=(17, 3, 40, 2**40, 0, 5))
    frames, records = at_once(OnlineClassifier(), X, y), at_once(OnlineClassifier(), X.to_dict("records"), y)
    assert frames.features_.tolist() == records.features_.tolist()
    assert learnt(frames) == learnt(records)
    assert frames.predict_many(X).tolist() == records.predict_many(X.to_dict("records")).tolist()


def test_frames_may_have_columns_in_any_order():
    X, y = frame(3)
    frames = at_once(OnlineClassifier(), X[["c", "a"]].iloc[:20], y.iloc[:20])
    assert set(frames.features_) == {"c", "a"}
    at_once(frames, X[["f", "a", "b"]].iloc[20:], y.iloc[20:])
    assert set(frames.features_) == {"c", "a", "f", "b"}
    assert frames.predict_many(X).tolist() == frames.predict_many(X[list("fedcba")]).tolist()
    assert frames.predict_many(X[["d", "e"]]).tolist() == frames.predict_many([{}] * len(X)).tolist()


def test_predictions_for_a_frame_have_its_index(n_classes):
    X, y = frame(n_classes)
    learner = at_once(OnlineClassifier(), X, y)
    predicted = learner.predict_many(X)
    assert isinstance(predicted, pd.Series)
    assert predicted.index.equals(X.index)
    assert predicted.tolist() == [learner.predict_one(x) for x in X.to_dict("records")]
    fitted = OnlineClassifier().fit(X, y)
    assert fitted.predict_many(X).index.equals(X.index)
    assert fitted.predict_many(X).tolist() == fitted.predict(X).tolist()


def test_frame_for_a_model_of_columns_is_rows():
    X, y = frame()
    many, rows = OnlineClassifier().fit(X, y), OnlineClassifier().fit(X, y)
    many.learn_many(X, y, [0.5] * len(X))
    assert learnt(many) == learnt(rows.partial_fit(X, y, sample_weight=[0.5] * len(X)))


def test_polars_frame_is_its_rows():
    X, y = frame(3)
    pandas, polars = (
        at_once(OnlineClassifier(), X, y),
        at_once(OnlineClassifier(), pl.DataFrame(X.to_dict("list")), y),
    )
    assert learnt(polars) == learnt(pandas)
    assert polars.predict_many(pl.DataFrame(X.to_dict("list"))).tolist() == pandas.predict_many(X).tolist()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_frame_that_is_not_finite_leaves_no_trace(value):
    X, y = frame()
    learner = at_once(OnlineClassifier(), X[["a", "b"]], y)
    before = everything(learner)
    X.iloc[30, 4] = value
    with pytest.raises(ValueError, match=r"(NaN|infinity).* in row 30"):
        learner.learn_many(X, y)
    assert everything(learner) == before


def test_rows_without_names_are_refused_by_a_model_of_names():
    learner = one_by_one(OnlineClassifier(), *stream())
    before = everything(learner)
    for call in (learner.predict, lambda X: learner.partial_fit(X, ["north", "east"])):
        with pytest.raises(ValueError, match="knows its features by name, and the columns of X have no names"):
            call(np.ones((2, 3)))
    assert everything(learner) == before


def test_frame_with_names_is_refused_by_a_model_of_ids():
    learner = one_by_one(OnlineClassifier(), *stream(kind="ids"))
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    before = everything(learner)
    with pytest.raises(ValueError, match=r"name|number"):
        learner.learn_many(X, ["north", "east"])
    assert everything(learner) == before
