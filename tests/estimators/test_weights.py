"""Weights of rows and classes as users give them; predictions by several threads; models kept sparse."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_class_weight

from maxcosine import MCPClassifier, OnlineClassifier
from tests.contract.streams import bits
from tests.contract.test_weights import taught_weighted
from tests.estimators.learners import everything, learnt, points

multiclass_kinds = pytest.mark.parametrize("multiclass", ["ovr", "joint"])


def random_weights(n, seed=0):
    """Weights of four decades, some of them 0."""
    random = np.random.default_rng(seed)
    return 10.0 ** random.uniform(-2, 2, n) * (random.random(n) < 0.9)


def dicts(X):
    return [dict(enumerate(row)) for row in X.tolist()]


# Rows


def test_steps_are_multiplied_by_the_weights_of_their_rows(rule, storage, n_classes):
    X, y = points(n_classes)
    weights = random_weights(len(X))
    learner = OnlineClassifier(rule, average=True).fit(storage(X), y, sample_weight=weights)
    options = {"n_classes": n_classes, "average": True, "fit_intercept": True}
    assert bits(learner._model) == bits(taught_weighted(rule, X, y, weights, **options))
    assert learnt(learner) != learnt(clone(learner).fit(storage(X), y))


@multiclass_kinds
def test_any_chunking_gives_the_bits_of_one_pass(rule, multiclass, average):
    X, y = points(3)
    weights = random_weights(len(X))
    weights[:3] = 0.1, 2.0, 30.0
    options = {"multiclass": multiclass, "average": average, "class_weight": {1: 3.0}}
    whole, chunks = (OnlineClassifier(rule, **options) for _ in range(2))
    whole.fit(X, y, sample_weight=weights)
    for start, stop in itertools.pairwise([0, 1, 2, 3, 60, 120]):
        some = slice(start, stop)
        chunks.partial_fit(X[some], y[some], classes=[0, 1, 2], sample_weight=weights[some])
    assert learnt(chunks) == learnt(whole)


def test_a_chunk_of_which_nothing_counts_changes_nothing_but_what_was_seen(average):
    X, y = points()
    learner, expected = (OnlineClassifier(average=average).fit(X, y) for _ in range(2))
    learner.partial_fit(X[:5], y[:5], sample_weight=np.zeros(5))
    assert learner.n_seen_ == expected.n_seen_ + 5
    learner._model.heads.table["seen"] -= 5
    assert bits(learner._model) == bits(expected._model)


def test_a_first_example_of_weight_0_is_seen():
    learner = OnlineClassifier()
    learner.learn_one({"a": 1.0}, 0, w=0.0)
    assert learner.n_seen_ == 1
    learner.learn_one({"a": 1.0}, 1, w=0.0)
    assert (learner.n_seen_, learner.updates_) == (2, 0)


def test_weights_of_1_change_no_bit(learner, n_classes):
    X, y = points(n_classes)
    expected = learnt(clone(learner).fit(X, y))
    for weights in (np.ones(len(X)), [1] * len(X), 1.0, np.ones(len(X), bool)):
        assert learnt(clone(learner).fit(X, y, sample_weight=weights)) == expected
    for weights in ({}, {0: 1.0, 1: 1}, {5: 7.0}):
        assert learnt(clone(learner).set_params(class_weight=weights).fit(X, y)) == expected


@pytest.mark.parametrize(
    "form",
    [list, tuple, np.float32, lambda w: pd.Series(w, index=np.arange(len(w))[::-1]), np.asfortranarray],
    ids=["list", "tuple", "float32", "series", "array"],
)
def test_weights_may_come_as_anything_like_an_array(form):
    X, y = points()
    weights = random_weights(len(X)).astype(np.float32).astype(np.float64)
    expected = OnlineClassifier().fit(X, y, sample_weight=weights)
    assert learnt(OnlineClassifier().fit(X, y, sample_weight=form(weights))) == learnt(expected)
    assert learnt(OnlineClassifier().partial_fit(X, y, None, form(weights))) == learnt(expected)


def test_one_weight_for_all_rows_is_that_of_each(rule):
    X, y = points()
    expected = OnlineClassifier(rule).fit(X, y, sample_weight=np.full(len(X), 0.3))
    assert learnt(OnlineClassifier(rule).fit(X, y, sample_weight=0.3)) == learnt(expected)


def test_weights_are_not_written_to():
    X, y = points()
    weights = random_weights(len(X))
    before = weights.copy()
    OnlineClassifier(class_weight={0: 2.0}).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(weights, before)


def test_each_pass_and_each_shuffle_takes_the_weights_along(rule, storage):
    X, y = points()
    weights, random = random_weights(len(X)), np.random.RandomState(7)
    order = np.concatenate([random.permutation(len(X)) for _ in range(2)])
    shuffled = OnlineClassifier(rule, shuffle=True, random_state=7, passes=2)
    shuffled.fit(storage(X), y, sample_weight=weights)
    by_hand = OnlineClassifier(rule).fit(storage(X[order]), y[order], sample_weight=weights[order])
    assert learnt(shuffled) == learnt(by_hand)
    twice = OnlineClassifier(rule, passes=2).fit(storage(X), y, sample_weight=weights)
    calls = OnlineClassifier(rule).fit(storage(X), y, sample_weight=weights)
    assert learnt(calls.partial_fit(storage(X), y, sample_weight=weights)) == learnt(twice)


def test_verbose_takes_the_weights_along(capsys):
    X, y = points()
    weights = random_weights(len(X))
    quiet, loud = (OnlineClassifier(verbose=v).fit(X, y, sample_weight=weights) for v in (0, 1))
    assert learnt(quiet) == learnt(loud)
    assert "mistakes" in capsys.readouterr().err


def test_weights_of_dicts_are_weights_of_rows(rule, n_classes, average):
    X, y = points(n_classes)
    X, weights = np.where(X == 0.0, 0.5, X), random_weights(len(X))  # every key comes with the first row
    options = {"rule": rule, "average": average, "class_weight": {0: 2.0, 1: 0.5}}
    columns, many, one = (OnlineClassifier(**options) for _ in range(3))
    columns.partial_fit(X, y, sample_weight=weights)
    many.learn_many(dicts(X), y, weights)
    one.learn_many(dicts(X[:10]), y[:10], weights[:10])
    for x, label, weight in zip(dicts(X[10:]), y[10:].tolist(), weights[10:].tolist(), strict=True):
        one.learn_one(x, label, w=weight)
    assert learnt(one) == learnt(many)
    assert np.allclose(many.coef_, columns.coef_, rtol=1e-9)
    assert many.certificate_.weighted
    assert np.array_equal(many.mistakes_, columns.mistakes_)


# Classes


def test_weights_of_classes_are_weights_of_their_rows(learner, n_classes):
    X, y = points(n_classes)
    weights = {0: 0.3, 1: 7.0, 2: 1e-3}
    rows = np.array([weights[label] for label in y])
    expected = learnt(clone(learner).fit(X, y, sample_weight=rows))
    learner.set_params(class_weight=weights)
    assert learnt(clone(learner).fit(X, y)) == expected
    assert learnt(clone(learner).partial_fit(X, y, classes=range(n_classes))) == expected


def test_weights_of_rows_and_classes_multiply(rule, n_classes):
    X, y = points(n_classes)
    weights = random_weights(len(X))
    both = OnlineClassifier(rule, class_weight={1: 4.0}).fit(X, y, sample_weight=weights)
    expected = OnlineClassifier(rule).fit(X, y, sample_weight=weights * np.where(y == 1, 4.0, 1.0))
    assert learnt(both) == learnt(expected)


def test_weights_of_classes_that_are_names(rule):
    X, y = points(3)
    names = np.array(["ham", "spam", "an even longer name"])[y]
    weights = {"spam": 3.0, "an even longer name": 0.2}
    learner = OnlineClassifier(rule, class_weight=weights).fit(X, names)
    expected = OnlineClassifier(rule).fit(X, names, sample_weight=[weights.get(n, 1.0) for n in names])
    assert learnt(learner) == learnt(expected)


def test_a_class_of_weight_0_moves_nothing(rule, n_classes):
    X, y = points(n_classes)
    learner = OnlineClassifier(rule, class_weight={0: 0}).fit(X, y)
    others = OnlineClassifier(rule).partial_fit(X[y != 0], y[y != 0], classes=range(n_classes))
    assert np.array_equal(learner.coef_, others.coef_)
    assert learner.n_seen_ == len(X)
    assert not learner.certificate_.weighted


def test_balanced_weights_are_those_of_scikit_learn(learner, n_classes):
    X, y = points(n_classes)
    rare = (y != 1) | (np.arange(len(y)) % 4 == 0)
    X, y = X[rare], y[rare]
    weights = compute_class_weight("balanced", classes=np.arange(n_classes), y=y)
    assert weights[1] > 1.0 > weights[0]
    balanced = clone(learner).set_params(class_weight="balanced", passes=2)
    expected = learner.set_params(passes=2).fit(X, y, sample_weight=weights[y])
    assert learnt(clone(balanced).fit(X, y)) == learnt(expected)
    rows = random_weights(len(X))
    assert learnt(balanced.fit(X, y, sample_weight=rows)) == learnt(
        learner.fit(X, y, sample_weight=rows * weights[y])
    )


@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("keyed", [False, True])
def test_balanced_weights_of_a_stream_are_refused(fitted, keyed):
    X, y = points()
    learner = OnlineClassifier()
    if fitted:
        learner.learn_many(dicts(X), y) if keyed else learner.fit(X, y)
    learner.set_params(class_weight="balanced")
    before = everything(learner) if fitted else vars(learner).copy()
    calls = [lambda: learner.learn_one({0: 1.0}, 1), lambda: learner.learn_many(dicts(X), y)]
    for call in [*calls, lambda: learner.partial_fit(X, y)]:
        with pytest.raises(ValueError, match=r"needs all labels at once, as fit has them; .* sample_weight"):
            call()
        assert (everything(learner) if fitted else vars(learner)) == before


# Refused weights


def at_row_7(value):
    def spoil(weights):
        weights = weights.astype(object if isinstance(value, str) else np.float64)
        weights[7] = value
        return weights

    return spoil


BAD_VALUES = {"negative": -1.0, "nan": np.nan, "inf": np.inf, "too large": 1e13, "too small": 1e-13}
BAD_FORMS = {
    "strings": (at_row_7("heavy"), "could not convert string to float: 'heavy'"),
    "too short": (lambda w: w[:-1], r"sample_weight.shape == \(119,\), expected \(120,\)"),
    "too long": (lambda w: np.append(w, 1.0), r"sample_weight.shape == \(121,\), expected \(120,\)"),
    "a column": (lambda w: w[:, None], "Sample weights must be 1D array or scalar"),
    "a table": (lambda w: np.column_stack([w, w]), "Sample weights must be 1D array or scalar"),
}


def assert_refuses(weights, match):
    X, y = points()
    for call in ("fit", "partial_fit"):
        fresh, old = OnlineClassifier(), OnlineClassifier(average=True).fit(X, y)
        before = everything(old)
        for learner in (fresh, old):
            with pytest.raises(ValueError, match=match):
                getattr(learner, call)(X, y, sample_weight=weights)
        assert vars(fresh) == vars(OnlineClassifier())
        assert everything(old) == before


@pytest.mark.parametrize("value", BAD_VALUES.values(), ids=BAD_VALUES)
def test_bad_weights_are_refused_by_their_row(value):
    assert_refuses(at_row_7(value)(np.ones(120)), "row 7")


@pytest.mark.parametrize(("spoil", "match"), BAD_FORMS.values(), ids=BAD_FORMS)
def test_what_is_no_list_of_weights_is_refused(spoil, match):
    assert_refuses(spoil(np.ones(120)), match)


def test_weights_that_multiply_out_of_range_are_refused_by_their_row():
    X, y = points()
    first = int(np.flatnonzero(y == 1)[0])
    learner = OnlineClassifier(class_weight={1: 1e-8})
    with pytest.raises(ValueError, match=rf"the weight of row {first} is 1e-16; weights are 0, or between"):
        learner.fit(X, y, sample_weight=np.full(len(X), 1e-8))


@pytest.mark.parametrize("value", [*BAD_VALUES.values(), "heavy", None, [1.0]], ids=str)
@pytest.mark.parametrize("call", ["fit", "partial_fit", "learn_many", "learn_one"])
def test_bad_weights_of_classes_are_refused_by_their_class(value, call):
    X, y = points()
    examples = X if call.endswith("fit") else dicts(X)
    data = (examples[0], 1) if call == "learn_one" else (examples, y)
    fresh, old = OnlineClassifier(), OnlineClassifier()
    old.learn_many(dicts(X), y)
    for learner in (fresh, old):
        learner.set_params(class_weight={1: value})
    before = learnt(old)
    for learner in (fresh, old):
        with pytest.raises(ValueError, match="class_weight gives class 1 the weight"):
            getattr(learner, call)(*data)
    assert not hasattr(fresh, "_model")
    assert learnt(old) == before


@pytest.mark.parametrize("value", BAD_VALUES.values(), ids=BAD_VALUES)
def test_a_bad_weight_of_one_example_is_refused(value):
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
def test_searches_and_cross_validation_route_weights(rule):
    X, y = points()
    weights = random_weights(len(X))
    learner = OnlineClassifier(rule).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    search = GridSearchCV(learner, {"average": [False, True]}, cv=2, error_score="raise")
    best = search.fit(X, y, sample_weight=weights).best_estimator_
    assert learnt(best) == learnt(clone(best).fit(X, y, sample_weight=weights))
    assert best.certificate_.weighted
    scores = cross_validate(
        learner, X, y, cv=2, params={"sample_weight": weights}, return_estimator=True, error_score="raise"
    )
    assert all(model.certificate_.weighted for model in scores["estimator"])
    learner.set_fit_request(sample_weight=False)
    scores = cross_validate(
        learner, X, y, cv=2, params={"sample_weight": weights}, return_estimator=True, error_score="raise"
    )
    assert not any(model.certificate_.weighted for model in scores["estimator"])


@pytest.mark.usefixtures("routing")
def test_weights_and_classes_of_partial_fit_can_be_asked_for(learner):
    X, y = points(3)
    weights = random_weights(len(X))
    learner.set_partial_fit_request(classes=True, sample_weight=True)
    assert learner.get_metadata_routing().partial_fit.requests == {"classes": True, "sample_weight": True}
    assert set(learner.get_metadata_routing().fit.requests) == {"sample_weight"}
    ovr = OneVsRestClassifier(clone(learner).set_partial_fit_request(classes=False))
    ovr.partial_fit(X, y, classes=[0, 1, 2], sample_weight=weights)
    for code, head in enumerate(ovr.estimators_):
        expected = clone(learner).partial_fit(X, (y == code).astype(int), [0, 1], weights)
        assert np.array_equal(head.coef_, expected.coef_)


# Threads


@pytest.mark.parametrize("n_jobs", [2, -1])
@multiclass_kinds
def test_threads_predict_to_the_bit(storage, n_classes, average, multiclass, n_jobs):
    X, y = points(n_classes, n_rows=3001, n_columns=20)
    X = storage(X)
    one = OnlineClassifier(average=average, multiclass=multiclass).fit(X[:200], y[:200])
    several = clone(one).set_params(n_jobs=n_jobs).fit(X[:200], y[:200])
    assert np.array_equal(several.decision_function(X), one.decision_function(X))
    assert np.array_equal(several.predict(X), one.predict(X))
    assert several.attained_margin(X, y) == pytest.approx(one.attained_margin(X, y), rel=0)


def test_threads_predict_by_name_and_sparsely_to_the_bit():
    X, y = points(3, n_rows=2500)
    one = MCPClassifier()
    one.learn_many(dicts(X[:200]), y[:200])
    several = pickle.loads(pickle.dumps(one)).set_params(n_jobs=2)
    assert np.array_equal(several.decision_function(X), one.decision_function(X))
    thin = MCPClassifier(n_jobs=2).fit(X[:200], y[:200]).sparsify()
    thick = MCPClassifier().fit(X[:200], y[:200])
    assert np.array_equal(thin.decision_function(X), thick.decision_function(X))


def test_no_row_is_too_few_for_threads():
    X, y = points()
    learner = MCPClassifier(n_jobs=4).fit(X, y)
    expected = MCPClassifier().fit(X, y)
    for n_rows in (1, 2, 120):
        assert np.array_equal(learner.predict(X[:n_rows]), expected.predict(X[:n_rows]))


# Models kept sparse


def wide(n_classes, n_columns=400, dtype=np.float64):
    """Rows of few columns among many; some columns come in the second half only."""
    X, y = points(n_classes, dtype=dtype)
    columns = np.array([3, 50, 51, 170, 200, 399])
    rows = np.zeros((len(X), n_columns), dtype)
    rows[:, columns] = X
    rows[60:, 7] = X[60:, 0]
    return rows, y


def size(learner):
    return sum(a.nbytes for a in learner._model.heads.arrays)


@multiclass_kinds
def test_a_sparse_model_is_the_same_model(rule, n_classes, average, multiclass):
    X, y = wide(n_classes)
    dense, thin = (OnlineClassifier(rule, average=average, multiclass=multiclass).fit(X, y) for _ in range(2))
    assert thin.sparsify() is thin
    assert isinstance(thin.coef_, scipy.sparse.csr_array)
    assert thin.coef_.shape == dense.coef_.shape
    assert np.array_equal(thin.coef_.toarray(), dense.coef_)
    assert np.array_equal(thin.intercept_, dense.intercept_)
    assert thin.n_features_in_ == 400
    assert np.array_equal(thin.features_, np.arange(400))
    for rows in (X, scipy.sparse.csr_array(X)):
        assert np.array_equal(thin.decision_function(rows), dense.decision_function(rows))
        assert np.array_equal(thin.predict(rows), dense.predict(rows))
    assert np.allclose(thin.certificate_.bound, dense.certificate_.bound, rtol=1e-12)
    assert size(thin) < size(dense) / 4
    assert learnt(thin.densify()) == learnt(dense)


@multiclass_kinds
def test_a_sparse_model_goes_on_as_a_dense_one(rule, average, multiclass):
    X, y = wide(3)
    dense, thin = (
        OnlineClassifier(rule, average=average, multiclass=multiclass).fit(X[:60], y[:60]) for _ in range(2)
    )
    thin.sparsify()
    for rows in (X[60:61], y[60:61]), (scipy.sparse.csr_array(X[61:100]), y[61:100]), (X[100:], y[100:]):
        dense.partial_fit(*rows)
        thin.partial_fit(*rows)
    found, expected = thin.coef_.toarray(), dense.coef_
    assert expected[:, 7].any()  # a column that was new to it
    assert np.allclose(found, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())
    refreshed = (dense._model.heads.table["sq_v"] != thin._model.heads.table["sq_v"]).any()
    assert refreshed or np.array_equal(found, expected)
    assert np.array_equal(thin.mistakes_, dense.mistakes_)
    assert np.array_equal(thin.updates_, dense.updates_)
    assert np.array_equal(thin.predict(X), dense.predict(X))
    assert size(thin) < size(dense) / 4
    assert np.array_equal(thin.densify().coef_, found)


def test_a_sparse_model_survives_pickling(rule, average):
    X, y = wide(3)
    thin = OnlineClassifier(rule, average=average).fit(X[:60], y[:60]).sparsify()
    copied = pickle.loads(pickle.dumps(thin))
    for learner in (thin, copied):
        learner.partial_fit(X[60:], y[60:])
    assert bits(copied._model) == bits(thin._model)
    assert len(pickle.dumps(thin)) < len(pickle.dumps(thin.densify())) / 2


def test_sparsifying_twice_and_densifying_twice_changes_nothing(average):
    X, y = wide(3)
    learner = OnlineClassifier(average=average).fit(X, y)
    before = learnt(learner)
    once = learner.sparsify().coef_
    assert (learner.sparsify().coef_ != once).nnz == 0
    assert learnt(learner.densify().densify()) == before


def test_a_sparse_model_that_knows_nothing_yet():
    X, y = wide(2)
    learner = OnlineClassifier().fit(np.zeros_like(X[:2]), [0, 1]).sparsify()
    assert learner.coef_.nnz == 0
    assert learner.predict(X).tolist() == [0] * len(X)
    expected = OnlineClassifier().fit(X, y)
    assert np.allclose(learner.partial_fit(X, y).coef_.toarray(), expected.coef_, rtol=1e-12)


def test_a_sparse_model_may_grow():
    X, y = wide(3)
    dense, thin = (OnlineClassifier(grow_features=True).partial_fit(X[:60, :300], y[:60]) for _ in range(2))
    thin.sparsify()
    for learner in (dense, thin):
        learner.partial_fit(X[60:], y[60:])
    assert thin.coef_.shape == dense.coef_.shape == (3, 400)
    assert np.allclose(thin.coef_.toarray(), dense.coef_, rtol=1e-9, atol=1e-12)
    assert np.array_equal(thin.predict(X), dense.predict(X))


def test_models_of_dicts_are_sparse_already():
    X, y = points()
    learner = OnlineClassifier()
    learner.learn_many(dicts(X), y)
    before = everything(learner)
    assert everything(learner.sparsify().densify()) == before
    assert isinstance(learner.coef_, np.ndarray)


def test_a_model_that_is_not_fitted_cannot_be_made_sparse():
    for call in ("sparsify", "densify"):
        with pytest.raises(ValueError, match="not fitted"):
            getattr(OnlineClassifier(), call)()
