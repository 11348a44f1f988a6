"""Learning from dicts: the same model as from rows, with features and classes that come as they come."""

import collections
import contextlib
import copy
import fractions
import itertools
import math
import pickle
import types
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import maxcosine
from maxcosine import BadStep, OnlineClassifier, PAClassifier
from tests.contract.streams import averaged_or_not, every_rule
from tests.estimators.learners import contents, everything, learnt, points

pytestmark = pytest.mark.filterwarnings("ignore::maxcosine.SortedLabelsWarning")

LABELS = np.array(["north", "east", "south", "west", "up", "down"])
LARGEST_ID = 2**64 - 1

each_kind = pytest.mark.parametrize("kind", ["names", "ids"])
each_multiclass = pytest.mark.parametrize("multiclass", ["ovr", "joint"])


def stream(n_rows=60, n_classes=2, kind="names", seed=0):
    """Dicts and labels; features and classes come by and by, some rows are empty, some values 0."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(n_classes, n_rows + 10))
    ids = random.permutation(3 * (n_rows + 10))
    examples, labels = [], []
    for row in range(n_rows):
        label = int(random.integers(min(n_classes, 1 + row // 6)))
        columns = random.choice(6 + row // 2, size=0 if row % 17 == 5 else 5, replace=False)
        values = np.round(centres[label, columns] + 0.3 * random.normal(size=len(columns)), 1)
        keys = [f"word {ids[column]}" if kind == "names" else int(ids[column]) for column in columns]
        examples.append(dict(zip(keys, values.tolist(), strict=True)))
        labels.append(LABELS[label].item())
    return examples, labels


def one_by_one(learner, X, y, w=None):
    for x, label, weight in zip(X, y, itertools.repeat(1.0) if w is None else w, strict=w is not None):
        learner.learn_one(x, label, weight)
    return learner


def at_once(learner, X, y, w=None):
    learner.learn_many(X, y, w)
    return learner


def in_parts(learner, X, y, cuts):
    for start, stop in itertools.pairwise([0, *sorted(cuts), len(y)]):
        if stop > start:
            learner.learn_many(X[start:stop], y[start:stop])
    return learner


def order_seen(X):
    """The features in the order in which they first come with a value other than 0."""
    return list(dict.fromkeys(key for x in X for key, value in x.items() if value))


def sparse_rows(X, n_columns=None):
    """Dicts of ids as sparse rows, the ids their columns."""
    n_columns = n_columns or 1 + max(key for x in X for key in x)
    rows = scipy.sparse.lil_array((len(X), n_columns))
    for row, x in enumerate(X):
        for key, value in x.items():
            rows[row, key] = value
    return rows.tocsr()


# The same model, however the examples come


@each_multiclass
@pytest.mark.parametrize("n_classes", [2, 5])
def test_one_by_one_gives_the_bits_of_all_at_once(rule, average, n_classes, multiclass):
    X, y = stream(n_classes=n_classes)
    options = {"average": average, "multiclass": multiclass}
    single, whole = OnlineClassifier(rule, **options), OnlineClassifier(rule, **options)
    assert learnt(one_by_one(single, X, y)) == learnt(at_once(whole, X, y))
    assert single.features_.tolist() == whole.features_.tolist() == order_seen(X)
    assert sorted(single.classes_) == sorted(set(y))
    assert single.n_features_in_ == single.coef_.shape[1] == len(order_seen(X))
    assert single.n_seen_ == len(X)


@every_rule
@averaged_or_not
@each_multiclass
@settings(max_examples=4, deadline=None)
@given(cuts=st.lists(st.integers(1, 59), max_size=8), kind=st.sampled_from(["names", "ids"]))
def test_any_cutting_gives_the_same_bits(name, average, multiclass, cuts, kind):
    X, y = stream(n_classes=4, kind=kind)
    options = {"average": average, "multiclass": multiclass}
    cut, whole = OnlineClassifier(name, **options), OnlineClassifier(name, **options)
    assert learnt(in_parts(cut, X, y, cuts)) == learnt(at_once(whole, X, y))


@each_multiclass
def test_dicts_learn_as_sparse_rows_do_up_to_rounding(rule, average, multiclass):
    X, y = stream(n_classes=3, kind="ids")
    options = {"average": average, "multiclass": multiclass}
    dicts = one_by_one(OnlineClassifier(rule, **options), X, y)
    rows = OnlineClassifier(rule, **options).partial_fit(sparse_rows(X), y)
    ids = dicts.features_.astype(int)
    assert np.array_equal(dicts.classes_, rows.classes_)
    scale = np.abs(rows.coef_).max()
    np.testing.assert_allclose(dicts.coef_, rows.coef_[:, ids], atol=1e-9 * scale)
    np.testing.assert_allclose(dicts.intercept_, rows.intercept_, atol=1e-9 * scale)
    assert np.count_nonzero(np.delete(rows.coef_, ids, axis=1)) == 0
    np.testing.assert_allclose(dicts.certificate_.bound, rows.certificate_.bound, rtol=1e-9)
    assert np.array_equal(dicts.mistakes_, rows.mistakes_)


def test_rows_and_dicts_may_alternate(rule, average):
    X, y = stream(n_classes=3, kind="ids")
    X = [{key: x[key] for key in sorted(x)} for x in X]  # as sparse rows have them
    dicts, both = (OnlineClassifier(rule, average=average) for _ in range(2))
    at_once(dicts, X, y)
    at_once(both, X[:20], y[:20]).partial_fit(sparse_rows(X[20:40], 400), y[20:40])
    one_by_one(both, X[40:], y[40:])
    assert learnt(both) == learnt(dicts)
    assert both.features_.tolist() == dicts.features_.tolist()


def test_features_that_come_late_were_zero_all_along(rule, average):
    X, y = stream(n_classes=3)
    everywhere = dict.fromkeys(order_seen(X), 0.0)
    grown = one_by_one(OnlineClassifier(rule, average=average), X, y)
    padded = one_by_one(OnlineClassifier(rule, average=average), [{**everywhere, **x} for x in X], y)
    order = [padded.features_.tolist().index(name) for name in grown.features_]
    np.testing.assert_allclose(grown.coef_, padded.coef_[:, order], atol=1e-9 * np.abs(grown.coef_).max())


@each_kind
def test_classes_begin_with_their_first_example(rule, kind):
    X, y = stream(n_classes=5, kind=kind)
    learner = OnlineClassifier(rule)
    for row, (x, label) in enumerate(zip(X, y, strict=True)):
        assert learner.predict_one(x) in [None, *y[:row]]
        learner.learn_one(x, label)
        assert set(learner.classes_) == set(y[: row + 1])
    since = [max(y.index(label), 0) for label in learner.classes_]
    first_two = sorted(since)[:2]
    assert learner.certificate_.since.tolist() == [0 if row in first_two else row for row in since]


def test_huge_ids_are_features_like_others(rule):
    X, y = stream(kind="ids")
    small = one_by_one(OnlineClassifier(rule), X, y)
    huge = one_by_one(OnlineClassifier(rule), [{LARGEST_ID - key: x[key] for key in x} for x in X], y)
    assert learnt(huge) == learnt(small)
    assert [LARGEST_ID - key for key in huge.features_.tolist()] == small.features_.tolist()


def test_float32_weights_give_the_same_bits_however_examples_come(rule, average):
    X, y = stream(n_classes=3)
    options = {"average": average, "fit_intercept": average, "dtype": "float32"}
    single, whole = (OnlineClassifier(rule, **options) for _ in range(2))
    assert learnt(one_by_one(single, X, y)) == learnt(at_once(whole, X, y))
    assert single.coef_.dtype == np.float32


def test_every_named_learner_learns_from_dicts(learner):
    X, y = stream(200, n_classes=3)
    assert learner.predict_one(X[0]) is None
    one_by_one(learner, X, y)
    rows = type(learner)(**learner.get_params()).partial_fit(pd.DataFrame(X).fillna(0.0), y)
    assert np.mean(learner.predict_many(X) == y) > 0.8
    assert np.mean(rows.predict(pd.DataFrame(X).fillna(0.0)) == learner.predict_many(X)) > 0.99


# Predicting


@each_kind
@each_multiclass
def test_predicting_one_or_many_dicts_or_rows_is_the_same(rule, average, kind, multiclass):
    X, y = stream(60, n_classes=2 if average else 4, kind=kind)
    learner = OnlineClassifier(rule, average=average, multiclass=multiclass)
    one_by_one(learner, X[:40], y[:40])
    before = everything(learner)
    many = learner.predict_many(X)  # with features that were never seen
    assert [learner.predict_one(x) for x in X] == many.tolist()
    rows = pd.DataFrame(X).fillna(0.0) if kind == "names" else sparse_rows(X)
    assert learner.predict(rows).tolist() == many.tolist()
    assert set(many) <= set(learner.classes_)
    assert everything(learner) == before


@pytest.mark.parametrize("label", ["yes", 3, True, 2.0], ids=repr)
def test_prediction_is_a_label_as_it_was_given(label):
    learner = OnlineClassifier()
    learner.learn_one({"a": 1.0}, label)
    assert learner.predict_one({"a": 1.0}) == label
    assert type(learner.predict_one({"a": 1.0})) is type(label)


def test_before_learning_there_is_no_prediction(learner):
    assert learner.predict_one({"a": 1.0}) is None
    with pytest.raises(NotFittedError):
        learner.predict_many([{"a": 1.0}])


@each_kind
def test_features_never_seen_have_no_weight(rule, kind):
    X, y = stream(n_classes=3, kind=kind)
    learner = one_by_one(OnlineClassifier(rule), X, y)
    unknown = {"never seen": 1e9, "": -1e9} if kind == "names" else {LARGEST_ID: 1e9, 2**40: -1e9}
    for x in (*X[-20:], {}):
        assert learner.predict_one({**unknown, **x}) == learner.predict_one(x)
    assert learner.features_.tolist() == order_seen(X)


def test_no_examples_have_no_predictions():
    learner = one_by_one(OnlineClassifier(), *stream())
    assert learner.predict_many([]).tolist() == []


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("call", ["predict_one", "predict_many"])
def test_predicting_refuses_what_is_not_finite(call, value):
    learner = one_by_one(OnlineClassifier(), *stream())
    x = {learner.features_[0]: 1.0, learner.features_[1]: value}
    with pytest.raises(ValueError, match=r"nan|NaN|inf"):
        getattr(learner, call)(x if call == "predict_one" else [x])


# Weights


def test_weight_of_an_example_is_the_weight_of_its_row(rule, average):
    X, y = stream(n_classes=3)
    w = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], len(X))
    w[[y.index(label) for label in set(y)]] = 2.0
    single = one_by_one(OnlineClassifier(rule, average=average), X, y, w.tolist())
    whole = at_once(OnlineClassifier(rule, average=average), X, y, w)
    assert learnt(single) == learnt(whole)
    unweighted = at_once(OnlineClassifier(rule, average=average), X, y)
    assert learnt(single) != learnt(unweighted)
    ones = one_by_one(OnlineClassifier(rule, average=average), X, y, [1] * len(X))
    assert learnt(ones) == learnt(unweighted)


def test_class_weight_is_the_weight_of_every_example_of_the_class(rule):
    X, y = stream(n_classes=3)
    weight = {"north": 2.0, "south": 0.25, "no such class": 7.0}
    w = [weight.get(label, 1.0) for label in y]
    by_hand = learnt(one_by_one(OnlineClassifier(rule), X, y, w))
    assert learnt(one_by_one(OnlineClassifier(rule, class_weight=weight), X, y)) == by_hand
    assert learnt(at_once(OnlineClassifier(rule, class_weight=weight), X, y)) == by_hand
    twice = [0.5 * number for number in w]
    assert learnt(one_by_one(OnlineClassifier(rule, class_weight=weight), X, y, [0.5] * len(X))) == learnt(
        one_by_one(OnlineClassifier(rule), X, y, twice)
    )


def test_example_of_weight_0_is_seen_and_skipped(rule):
    X, y = stream(40)
    learner = one_by_one(OnlineClassifier(rule), X, y)
    coef, seen = learner.coef_, learner.n_seen_
    learner.learn_one({"word 1": 5.0}, y[0], w=0.0)
    assert np.array_equal(learner.coef_[:, : coef.shape[1]], coef)
    assert learner.n_seen_ == seen + 1


def test_class_may_begin_with_an_example_of_weight_0(n_classes):
    X, y = stream(40, n_classes=n_classes)
    w = [float(label in y[:row]) for row, label in enumerate(y)]
    single = one_by_one(OnlineClassifier(), X, y, w)
    assert learnt(single) == learnt(at_once(OnlineClassifier(), X, y, w))
    assert set(single.classes_) == set(y)


# Examples that are unusual but mean something


class Twin(collections.UserDict):
    """A mapping that is no dict."""


MAPPINGS = {
    "OrderedDict": collections.OrderedDict,
    "defaultdict": lambda x: collections.defaultdict(float, x),
    "Counter": collections.Counter,
    "MappingProxyType": types.MappingProxyType,
    "ChainMap": collections.ChainMap,
    "UserDict": Twin,
}


@each_kind
@pytest.mark.parametrize("mapping", MAPPINGS.values(), ids=MAPPINGS.keys())
def test_any_mapping_is_an_example(kind, mapping):
    X, y = stream(kind=kind)
    plain = one_by_one(OnlineClassifier(), X, y)
    mapped = [mapping(x) for x in X]
    assert learnt(one_by_one(OnlineClassifier(), mapped, y)) == learnt(plain)
    assert learnt(at_once(OnlineClassifier(), mapped, y)) == learnt(plain)
    assert [plain.predict_one(x) for x in mapped] == plain.predict_many(mapped).tolist()
    assert plain.predict_many(mapped).tolist() == plain.predict_many(X).tolist()
    rows = OnlineClassifier().fit(sparse_rows(X), y) if kind == "ids" else plain
    assert [rows.predict_one(x) for x in mapped] == rows.predict_many(X).tolist()


def test_items_that_were_moved_come_in_their_new_order():
    x = collections.OrderedDict(a=1.0, b=2.0, c=3.0)
    x.move_to_end("a")
    learner = OnlineClassifier()
    learner.learn_one(x, "north")
    assert learner.features_.tolist() == ["b", "c", "a"]
    x = collections.OrderedDict(a="red", b=2.0)
    x.move_to_end("a")
    with pytest.raises(TypeError, match="'a' is 'red'"):
        learner.learn_one(x, "north")


NUMBERS = {
    "int": int,
    "bool": bool,
    "float32": np.float32,
    "int8": np.int8,
    "bool_": np.bool_,
    "0-d array": np.asarray,
    "Fraction": fractions.Fraction,
}


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS.keys())
def test_any_number_is_a_value(number):
    X, y = stream(kind="ids")
    plain = [{key: float(number(round(value))) for key, value in x.items()} for x in X]
    typed = [{key: number(round(value)) for key, value in x.items()} for x in X]
    assert learnt(one_by_one(OnlineClassifier(), typed, y)) == learnt(
        one_by_one(OnlineClassifier(), plain, y)
    )
    rows, twin = (OnlineClassifier().fit(sparse_rows(plain), y) for _ in range(2))
    assert learnt(one_by_one(rows, typed, y)) == learnt(one_by_one(twin, plain, y))


def test_keys_and_labels_may_be_numpy_scalars():
    X, y = stream(n_classes=3, kind="ids")
    plain = one_by_one(OnlineClassifier(), X, y)
    for key_type in (np.int64, np.uint64, np.int32):
        typed = [{key_type(key): value for key, value in x.items()} for x in X]
        assert learnt(one_by_one(OnlineClassifier(), typed, map(np.str_, y))) == learnt(plain)
        assert learnt(at_once(OnlineClassifier(), typed, np.array(y))) == learnt(plain)
        assert [plain.predict_one(x) for x in typed] == plain.predict_many(X).tolist()
    names, y = stream(n_classes=3)
    typed = [{np.str_(key): value for key, value in x.items()} for x in names]
    learner = one_by_one(OnlineClassifier(), typed, y)
    assert learnt(learner) == learnt(one_by_one(OnlineClassifier(), names, y))
    assert learner.features_.tolist() == order_seen(names)


def test_examples_may_come_from_a_generator():
    X, y = stream()
    generated = at_once(OnlineClassifier(), (x for x in X), np.array(y))
    assert learnt(generated) == learnt(at_once(OnlineClassifier(), X, y))


def test_empty_examples_are_seen_and_teach_nothing(rule, average):
    X, y = stream(n_classes=3)
    learner = one_by_one(OnlineClassifier(rule, average=average), X, y)
    with_empty = OnlineClassifier(rule, average=average)
    places = range(len(X) // 2, len(X), 3)
    for row, (x, label) in enumerate(zip(X, y, strict=True)):
        with_empty.learn_one(x, label)
        if row in places:
            with_empty.learn_one({}, y[0])
            with_empty.learn_one({"never seen": 0.0}, y[0])
    assert with_empty.n_seen_ == len(X) + 2 * len(places)
    assert np.array_equal(with_empty.coef_, learner.coef_)
    assert np.array_equal(with_empty.mistakes_, learner.mistakes_)
    assert with_empty.features_.tolist() == learner.features_.tolist()


@each_multiclass
def test_first_example_may_be_empty(rule, average, multiclass):
    X, y = stream(n_classes=3, kind="names" if average else "ids")
    options = {"average": average, "multiclass": multiclass}
    single, whole = (OnlineClassifier(rule, **options) for _ in range(2))
    single.learn_one({}, y[0])
    assert single.predict_one({}) == single.predict_one(X[1]) == y[0]
    assert single.features_.tolist() == []
    assert single.coef_.shape == (1, 0)
    one_by_one(single, X, y)
    assert learnt(single) == learnt(at_once(whole, [{}, *X], [y[0], *y]))
    assert single.features_.tolist() == order_seen(X)


@each_kind
def test_rows_may_follow_empty_examples(kind):
    X = pd.DataFrame(np.eye(2), columns=["a", "b"]) if kind == "names" else np.eye(2)
    learner = one_by_one(OnlineClassifier(), [{}, {}], [0, 1]).partial_fit(X, [0, 1])
    assert learner.features_.tolist() == (["a", "b"] if kind == "names" else [0, 1])
    assert learner.predict(X).tolist() == [0, 1]


def test_no_examples_change_nothing():
    learner = OnlineClassifier()
    with contextlib.suppress(ValueError):
        learner.learn_many([], [])
    assert learner.predict_one({"a": 1.0}) is None
    before = everything(one_by_one(learner, *stream()))
    with contextlib.suppress(ValueError):
        learner.learn_many([], [])
    assert everything(learner) == before


def test_an_example_is_not_touched():
    X, y = stream()
    before = copy.deepcopy(X)
    learner = one_by_one(OnlineClassifier(), X, y)
    learner.learn_many(X, y)
    learner.predict_many(X)
    assert before == X


# What cannot be learnt from


class Case(NamedTuple):
    name: str
    x: Any
    match: str
    y: Any = "north"
    w: Any = 1.0
    error: Any = (TypeError, ValueError)


def spoilt(kind):
    """What no model can learn from, among features that are known and new."""
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
        yield Case(
            repr(value)[:9], with_value(value), f"{named} is .* no number; make it one", error=TypeError
        )
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
    for weight in (-1.0, math.nan, math.inf, 1e20, "heavy"):
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
    """A learner in the middle of a stream, by way of both calls."""
    X, y = stream(40, n_classes=3, kind=kind)
    learner = clone(LEARNERS[kind])
    at_once(learner, X[:10], y[:10])
    return one_by_one(learner, X[10:], y[10:])


@each_case(CASES)
def test_refused_example_leaves_a_learner_exactly_as_it_was(kind, case):
    learner, twin = started(kind), started(kind)
    before = everything(learner)
    with pytest.raises(case.error, match=f"(?s){case.match}"):
        learner.learn_one(case.x, case.y, case.w)
    assert everything(learner) == before
    X, y = stream(20, n_classes=4, kind=kind, seed=1)
    assert learnt(one_by_one(learner, X, y)) == learnt(one_by_one(twin, X, y))
    assert learner.features_.tolist() == twin.features_.tolist()


@each_case(CASES)
def test_one_refused_example_refuses_all(kind, case):
    learner, twin = started(kind), started(kind)
    before = everything(learner)
    X, y = stream(40, n_classes=4, kind=kind, seed=1)  # with features and classes that are new
    w = None if case.w == 1.0 else [1.0] * 30 + [case.w] + [1.0] * 10
    with pytest.raises(case.error, match=f"(?s){case.match}|inhomogeneous"):
        learner.learn_many([*X[:30], case.x, *X[30:]], [*y[:30], case.y, *y[30:]], w)
    assert everything(learner) == before
    assert learnt(at_once(learner, X, y)) == learnt(at_once(twin, X, y))
    assert learner.features_.tolist() == twin.features_.tolist()


@each_case([(kind, case) for kind, case in CASES if case.y != 3])  # a number is a label like another
def test_refused_first_example_leaves_a_learner_unfitted(kind, case):
    learner = OnlineClassifier()
    before = dict(vars(learner))
    with pytest.raises(case.error):
        learner.learn_one(case.x, case.y, case.w)
    with pytest.raises(case.error):
        learner.learn_many([case.x], [case.y], [case.w])
    assert vars(learner) == before
    assert learner.predict_one({}) is None


@each_kind
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
        with pytest.raises(
            TypeError, match="an example is a dict of feature to value, and this one is a str"
        ):
            call()


def test_balanced_classes_are_refused():
    learner = OnlineClassifier(class_weight="balanced")
    with pytest.raises(ValueError, match="class_weight='balanced' needs all labels at once"):
        learner.learn_one({"a": 1.0}, "north")
    learner = started().set_params(class_weight="balanced")
    with pytest.raises(ValueError, match="class_weight='balanced' needs all labels at once"):
        learner.learn_one({"a": 1.0}, "north")


# Parameters that change on the way


def test_parameters_of_the_rule_may_change_between_examples():
    X, y = stream()
    single, whole = PAClassifier("pa1", C=1.0), PAClassifier("pa1", C=1.0)
    for start, C in ((0, 1.0), (12, 1e-3), (24, 1.0), (36, 1e-2), (48, 1.0)):
        rows = slice(start, start + 12)
        one_by_one(single.set_params(C=C), X[rows], y[rows])
        at_once(whole.set_params(C=C), X[rows], y[rows])
    assert learnt(single) == learnt(whole)


def test_parameters_hold_whichever_call_comes_next():
    X, y = stream()
    both, whole = PAClassifier("pa1", C=1.0), PAClassifier("pa1", C=1.0)
    for start, C in ((0, 1.0), (12, 1e-3), (24, 1.0), (36, 1e-2), (48, 1.0)):
        rows = slice(start, start + 12)
        teach = at_once if start in (12, 36) else one_by_one
        teach(both.set_params(C=C), X[rows], y[rows])
        at_once(whole.set_params(C=C), X[rows], y[rows])
    assert learnt(both) == learnt(whole)


def test_parameters_given_in_a_dict_may_change_in_place():
    X, y = stream()
    params = {"C": 1.0}
    changed, told = (
        OnlineClassifier("pa1", rule_params=params),
        OnlineClassifier("pa1", rule_params={"C": 1.0}),
    )
    one_by_one(changed, X[:30], y[:30])
    one_by_one(told, X[:30], y[:30])
    params["C"] = 1e-3
    one_by_one(changed, X[30:], y[30:])
    one_by_one(told.set_params(rule_params={"C": 1e-3}), X[30:], y[30:])
    assert learnt(changed) == learnt(told)


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
def test_what_cannot_change_between_examples_is_refused(change):
    learner = started()
    before, params = learnt(learner), learner.get_params()
    learner.set_params(**change)
    for call in (lambda: learner.learn_one({"a": 1.0}, "north"), lambda: learner.learn_many([{}], ["north"])):
        with pytest.raises(ValueError, match=f"{next(iter(change))} was .* when learning began"):
            call()
    assert learnt(learner) == before
    learner.set_params(**params).learn_one({"a": 1.0}, "north")


@pytest.mark.parametrize(
    "change", [{"average": "yes"}, {"class_weight": [1.0]}, {"rule": "no such"}], ids=str
)
def test_parameters_that_are_none_are_refused(change):
    learner = started().set_params(**change)
    for call in (lambda: learner.learn_one({"a": 1.0}, "north"), lambda: learner.learn_many([{}], ["north"])):
        with pytest.raises(ValueError, match=next(iter(change))):
            call()


# Models that know columns


def fitted_with_columns(rule, named, sparse, **options):
    X, y = points(3, n_rows=30)
    X = pd.DataFrame(X, columns=list("abcdef")) if named else X
    learner = OnlineClassifier(rule, **options).fit(X, y)
    return learner.sparsify() if sparse else learner


@pytest.mark.parametrize("named", [False, True], ids=["numbers", "names"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_columns_may_come_as_dicts(rule, named, sparse):
    dicts, many, rows = (fitted_with_columns(rule, named, sparse, average=True) for _ in range(3))
    X, y = points(4, n_rows=12, seed=1)  # with a class that is new
    keys = list("abcdef") if named else list(range(6))
    examples = [{keys[k]: x[k] for k in np.flatnonzero(x)[::-1]} for x in X]
    X = pd.DataFrame(X, columns=keys) if named else scipy.sparse.csr_array(X)
    one_by_one(dicts, examples, y.tolist())
    at_once(many, examples, y)
    rows.partial_fit(X, y)
    for learner in (dicts, many):
        assert contents(learner.certificate_) == contents(rows.certificate_)
        a, b = (coef.toarray() if sparse else coef for coef in (learner.coef_, rows.coef_))
        assert np.array_equal(a, b)
        assert learner.classes_.tolist() == [0, 1, 2, 3]
        assert learner.features_.tolist() == keys
        assert [learner.predict_one(x) for x in examples] == rows.predict(X).tolist()
        assert learner.predict_many(examples).tolist() == rows.predict(X).tolist()


@pytest.mark.parametrize("named", [False, True], ids=["numbers", "names"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_unknown_columns_are_refused_when_learning_and_ignored_when_predicting(named, sparse):
    learner = fitted_with_columns("mcp", named, sparse)
    known, unknown = ("a", ["z", 0, ""]) if named else (0, [6, -1, "a", 2**64, 0.5])
    before = everything(learner)
    for key in unknown:
        with pytest.raises(
            ValueError, match=r"the feature .* is none of the 6 columns .* fitted with; learn from"
        ):
            learner.learn_one({known: 1.0, key: 1.0}, 1)
        assert learner.predict_one({known: 3.0, key: 1e9}) == learner.predict_one({known: 3.0})
    for value in ("red", None, [1.0]):
        with pytest.raises(TypeError, match=f"the value of feature {known!r} is"):
            learner.learn_one({known: value}, 1)
    with pytest.raises(ValueError, match=f"feature {known!r} in example 0 is nan"):
        learner.learn_one({known: math.nan}, 1)
    assert everything(learner) == before


def test_columns_may_get_classes_that_come_late(rule):
    X, y = points()
    learner = OnlineClassifier(rule).fit(X, y)
    learner.learn_one({0: 9.0}, 7)
    assert learner.classes_.tolist() == [0, 1, 7]
    named = OnlineClassifier(rule).partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="not among the classes"):
        named.learn_one({0: 9.0}, 7)


def test_fit_after_dicts_starts_anew(rule):
    X, y = points()
    learner = one_by_one(OnlineClassifier(rule), *stream(n_classes=3)).fit(X.astype(np.float32), y)
    fresh = OnlineClassifier(rule).fit(X.astype(np.float32), y)
    assert learnt(learner) == learnt(fresh)
    assert learner.features_.tolist() == list(range(6))
    learner.learn_one({2: 1.0}, 1)
    fresh.learn_one({2: 1.0}, 1)
    assert learnt(learner) == learnt(fresh)


# Data frames


def frame(n_classes=2, seed=0, columns="abcdef"):
    X, y = points(n_classes, n_rows=50, seed=seed)
    return pd.DataFrame(X, columns=list(columns), index=np.arange(50)[::-1] + 7), pd.Series(y)


def test_frame_is_its_records(rule, n_classes):
    X, y = frame(n_classes)
    frames, records = OnlineClassifier(rule, average=True), OnlineClassifier(rule, average=True)
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


def test_frames_may_bring_columns_in_any_order(rule):
    X, y = frame(3)
    frames = at_once(OnlineClassifier(rule), X[["c", "a"]].iloc[:20], y.iloc[:20])
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
        with pytest.raises(ValueError, match="knows its features by name, and the columns of X have none"):
            call(np.ones((2, 3)))
    assert everything(learner) == before


def test_frame_with_names_is_refused_by_a_model_of_ids():
    learner = one_by_one(OnlineClassifier(), *stream(kind="ids"))
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    before = everything(learner)
    with pytest.raises(ValueError, match=r"name|number"):
        learner.learn_many(X, ["north", "east"])
    assert everything(learner) == before


# Rules of one's own


@maxcosine.rules.rule
def breaks_late(margin, sq_w, sq_x, coef_sum, state, params):
    return 1.0, (1.0 if coef_sum < 40.0 else -1.0), state


@maxcosine.rules.rule
def own_perceptron(margin, sq_w, sq_x, coef_sum, state, params):
    return 1.0, (1.0 if margin <= 0.0 else 0.0), state


def test_rule_of_ones_own_learns_from_dicts(average, n_classes):
    X, y = stream(n_classes=n_classes)
    own = one_by_one(OnlineClassifier(own_perceptron, average=average), X, y)
    assert learnt(own) == learnt(at_once(OnlineClassifier(own_perceptron, average=average), X, y))
    perceptron = one_by_one(OnlineClassifier("perceptron", average=average), X, y)
    assert np.array_equal(own.coef_, perceptron.coef_)


@pytest.mark.parametrize("call", ["one", "many"])
def test_rule_that_breaks_leaves_no_trace(call, n_classes):
    X, y = stream(n_classes=n_classes)
    learner = one_by_one(OnlineClassifier(breaks_late), X[:20], y[:20])
    examples = [{f"new with {row}": 1.0, **x} for row, x in enumerate(X)]
    teach = learner.learn_one if call == "one" else lambda x, label: learner.learn_many([x] * 3, [label] * 3)
    refused = 0
    for x, label in zip(examples, y, strict=True):
        before = everything(learner)
        try:
            teach(x, label)
        except BadStep:
            refused += 1
            assert everything(learner) == before
    assert refused > 0
    with pytest.raises(BadStep, match="'breaks_late' asked in row"):
        learner.learn_many(examples, y)
    assert learner.predict_one(X[0]) == learner.predict_many(X)[0]


# Copies


def pickled(learner):
    return pickle.loads(pickle.dumps(learner))


@pytest.mark.parametrize("duplicate", [pickled, copy.deepcopy])
def test_copies_go_on_by_themselves_to_the_same_bits(rule, average, duplicate):
    X, y = stream(60, n_classes=4, kind="names" if duplicate is pickled else "ids")
    learner = one_by_one(OnlineClassifier(rule, average=average), X[:30], y[:30])
    copied, before = duplicate(learner), everything(learner)
    assert everything(copied) == before
    one_by_one(copied, X[30:], y[30:])
    assert everything(learner) == before
    assert learnt(copied) == learnt(one_by_one(learner, X[30:], y[30:]))
    assert copied.features_.tolist() == learner.features_.tolist() == order_seen(X)
    assert [copied.predict_one(x) for x in X] == [learner.predict_one(x) for x in X]


def test_sparsify_and_densify_change_nothing(rule, average):
    X, y = stream(n_classes=3)
    learner, twin = (one_by_one(OnlineClassifier(rule, average=average), X[:30], y[:30]) for _ in range(2))
    before = everything(learner)
    assert everything(learner.sparsify()) == before
    assert everything(learner.densify()) == before
    assert learnt(one_by_one(learner.sparsify(), X[30:], y[30:])) == learnt(one_by_one(twin, X[30:], y[30:]))
