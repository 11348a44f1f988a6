"""Learning from dicts: the same model as from rows, with late features and classes."""

import collections
import contextlib
import copy
import fractions
import math
import pickle
import types

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from maxcosine import RULES, BadStep, OnlineClassifier, PAClassifier
from tests.estimators.dicts import (
    LARGEST_ID,
    at_once,
    in_parts,
    one_by_one,
    order_seen,
    sparse_rows,
    stream,
)
from tests.learners import PAIRWISE_SETTINGS, breaks_late, everything, learnt

pytestmark = pytest.mark.filterwarnings("ignore::maxcosine.SortedLabelsWarning")

each_kind = pytest.mark.parametrize("kind", ["names", "ids"])


# The same model, however the examples are given


@each_kind
@pytest.mark.parametrize("rule", RULES)
def test_one_by_one_gives_the_bits_of_all_at_once(rule, kind):
    for setting in PAIRWISE_SETTINGS:
        X, y = stream(n_classes=setting.n_classes, kind=kind)
        single, whole, cut = (setting.classifier(rule) for _ in range(3))
        assert learnt(one_by_one(single, X, y)) == learnt(at_once(whole, X, y))
        assert learnt(in_parts(cut, X, y, [1, 2, 17, 40])) == learnt(whole)
        assert single.features_.tolist() == whole.features_.tolist() == order_seen(X)
        assert sorted(single.classes_) == sorted(set(y))
        assert single.n_features_in_ == single.coef_.shape[1] == len(order_seen(X))
        assert single.n_seen_ == len(X)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=30)
@given(
    setting=st.sampled_from(PAIRWISE_SETTINGS),
    cuts=st.lists(st.integers(1, 59), max_size=8),
    kind=st.sampled_from(["names", "ids"]),
)
def test_any_chunks_give_the_same_bits(rule, setting, cuts, kind):
    X, y = stream(n_classes=setting.n_classes, kind=kind)
    cut, whole = setting.classifier(rule), setting.classifier(rule)
    assert learnt(in_parts(cut, X, y, cuts)) == learnt(at_once(whole, X, y))


def test_dicts_learn_as_sparse_rows_do_up_to_rounding(learner):
    X, y = stream(n_classes=3, kind="ids")
    for multiclass in ("ovr", "joint"):
        learner.set_params(multiclass=multiclass)
        dicts = one_by_one(clone(learner), X, y)
        rows = clone(learner).partial_fit(sparse_rows(X), y)
        ids = dicts.features_.astype(int)
        assert np.array_equal(dicts.classes_, rows.classes_)
        scale = np.abs(rows.coef_).max()
        np.testing.assert_allclose(dicts.coef_, rows.coef_[:, ids], atol=1e-9 * scale)
        np.testing.assert_allclose(dicts.intercept_, rows.intercept_, atol=1e-9 * scale)
        assert np.count_nonzero(np.delete(rows.coef_, ids, axis=1)) == 0
        np.testing.assert_allclose(dicts.certificate_.bound, rows.certificate_.bound, rtol=1e-9)
        assert np.array_equal(dicts.mistakes_, rows.mistakes_)


def test_rows_and_dicts_may_alternate(learner):
    X, y = stream(n_classes=3, kind="ids")
    X = [{key: x[key] for key in sorted(x)} for x in X]  # in the order of sparse rows
    dicts, both = at_once(clone(learner), X, y), clone(learner)
    at_once(both, X[:20], y[:20]).partial_fit(sparse_rows(X[20:40], 400), y[20:40])
    one_by_one(both, X[40:], y[40:])
    assert learnt(both) == learnt(dicts)
    assert both.features_.tolist() == dicts.features_.tolist()


@each_kind
def test_classes_begin_with_their_first_example(learner, kind):
    X, y = stream(n_classes=5, kind=kind)
    for row, (x, label) in enumerate(zip(X, y, strict=True)):
        assert learner.predict_one(x) in [None, *y[:row]]
        learner.learn_one(x, label)
        assert set(learner.classes_) == set(y[: row + 1])
    since = [y.index(label) for label in learner.classes_]
    first_two = sorted(since)[:2]
    assert learner.certificate_.since.tolist() == [0 if row in first_two else row for row in since]


def test_huge_ids_are_features_like_others(learner):
    X, y = stream(kind="ids")
    small = one_by_one(clone(learner), X, y)
    huge = one_by_one(learner, [{LARGEST_ID - key: x[key] for key in x} for x in X], y)
    assert learnt(huge) == learnt(small)
    assert [LARGEST_ID - key for key in huge.features_.tolist()] == small.features_.tolist()


# Predicting


@each_kind
def test_predicting_one_or_many_dicts_or_rows_is_the_same(learner, kind):
    for n_classes, multiclass, average in ((2, "ovr", True), (4, "ovr", False), (4, "joint", True)):
        X, y = stream(60, n_classes=n_classes, kind=kind)
        fitted = clone(learner).set_params(average=average, multiclass=multiclass)
        one_by_one(fitted, X[:40], y[:40])
        before = everything(fitted)
        many = fitted.predict_many(X)  # with features that were never seen
        assert [fitted.predict_one(x) for x in X] == many.tolist()
        rows = pd.DataFrame(X).fillna(0.0) if kind == "names" else sparse_rows(X)
        assert fitted.predict(rows).tolist() == many.tolist()
        assert set(many) <= set(fitted.classes_)
        assert everything(fitted) == before


@pytest.mark.parametrize("label", ["yes", 3, True, 2.0], ids=repr)
def test_predicted_label_has_the_type_that_was_given(label):
    learner = OnlineClassifier()
    learner.learn_one({"a": 1.0}, label)
    assert learner.predict_one({"a": 1.0}) == label
    assert type(learner.predict_one({"a": 1.0})) is type(label)


def test_before_learning_there_is_no_prediction(learner):
    assert learner.predict_one({"a": 1.0}) is None
    with pytest.raises(NotFittedError):
        learner.predict_many([{"a": 1.0}])


@each_kind
def test_features_never_seen_have_no_weight(kind):
    X, y = stream(n_classes=3, kind=kind)
    learner = one_by_one(OnlineClassifier(), X, y)
    unknown = {"never seen": 1e9, "": -1e9} if kind == "names" else {LARGEST_ID: 1e9, 2**40: -1e9}
    for x in (*X[-20:], {}):
        assert learner.predict_one({**unknown, **x}) == learner.predict_one(x)
    assert learner.features_.tolist() == order_seen(X)


def test_no_examples_have_no_predictions():
    learner = one_by_one(OnlineClassifier(), *stream())
    assert learner.predict_many([]).tolist() == []


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_predicting_refuses_values_that_are_not_finite(value):
    learner = one_by_one(OnlineClassifier(), *stream())
    x = {learner.features_[0]: 1.0, learner.features_[1]: value}
    with pytest.raises(ValueError, match=r"nan|NaN|inf"):
        learner.predict_one(x)
    with pytest.raises(ValueError, match=r"nan|NaN|inf"):
        learner.predict_many([x])


# Weights


def test_weight_of_an_example_is_the_weight_of_its_row(learner):
    X, y = stream(n_classes=3)
    w = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], len(X))  # a class may begin with weight 0
    single, whole = one_by_one(clone(learner), X, y, w.tolist()), at_once(clone(learner), X, y, w)
    assert learnt(single) == learnt(whole)
    assert set(single.classes_) == set(y)
    unweighted = at_once(clone(learner), X, y)
    assert learnt(single) != learnt(unweighted)
    assert learnt(one_by_one(clone(learner), X, y, [1] * len(X))) == learnt(unweighted)


def test_class_weight_is_the_weight_of_every_example_of_the_class(learner):
    X, y = stream(n_classes=3)
    weight = {"north": 2.0, "south": 0.25, "no such class": 7.0}
    w = [0.5 * weight.get(label, 1.0) for label in y]
    expected = learnt(one_by_one(clone(learner), X, y, w))
    learner.set_params(class_weight=weight)
    assert learnt(one_by_one(clone(learner), X, y, [0.5] * len(X))) == expected
    assert learnt(at_once(clone(learner), X, y, [0.5] * len(X))) == expected


def test_example_of_weight_0_is_as_if_absent():
    X, y = stream(40)
    learner = one_by_one(OnlineClassifier(), X, y)
    coef, counts = learner.coef_, (learner.n_seen_, learner.mistakes_, learner.certificate_)
    learner.learn_one({"word 1": 5.0}, y[0], w=0.0)
    assert np.array_equal(learner.coef_[:, : coef.shape[1]], coef)
    assert (learner.n_seen_, learner.mistakes_, learner.certificate_) == counts


# Examples that are unusual but valid


class Twin(collections.UserDict):
    """A mapping that is not a dict."""


MAPPINGS = {
    "OrderedDict": collections.OrderedDict,
    "defaultdict": lambda x: collections.defaultdict(float, x),
    "Counter": collections.Counter,
    "MappingProxyType": types.MappingProxyType,
    "ChainMap": collections.ChainMap,
    "UserDict": Twin,
}


@pytest.mark.parametrize("mapping", MAPPINGS.values(), ids=MAPPINGS)
def test_any_mapping_is_an_example(mapping):
    for kind in ("names", "ids"):
        X, y = stream(kind=kind)
        plain = one_by_one(OnlineClassifier(), X, y)
        mapped = [mapping(x) for x in X]
        assert learnt(one_by_one(OnlineClassifier(), mapped, y)) == learnt(plain)
        assert learnt(at_once(OnlineClassifier(), mapped, y)) == learnt(plain)
        assert [plain.predict_one(x) for x in mapped] == plain.predict_many(mapped).tolist()
        assert plain.predict_many(mapped).tolist() == plain.predict_many(X).tolist()
        rows = OnlineClassifier().fit(sparse_rows(X), y) if kind == "ids" else plain
        assert [rows.predict_one(x) for x in mapped] == rows.predict_many(X).tolist()


def test_moved_items_are_read_in_their_new_order():
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


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_any_number_is_a_value(number):
    X, y = stream(kind="ids")
    plain = [{key: float(number(round(value))) for key, value in x.items()} for x in X]
    typed = [{key: number(round(value)) for key, value in x.items()} for x in X]
    expected = one_by_one(OnlineClassifier(), plain, y)
    assert learnt(one_by_one(OnlineClassifier(), typed, y)) == learnt(expected)
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


def test_generator_of_examples_is_learnt_from():
    X, y = stream()
    generated = at_once(OnlineClassifier(), (x for x in X), np.array(y))
    assert learnt(generated) == learnt(at_once(OnlineClassifier(), X, y))


def test_empty_examples_are_seen_and_teach_nothing_without_an_intercept(learner):
    X, y = stream(n_classes=3)
    learner.set_params(fit_intercept=False)
    with_empty = clone(learner)
    one_by_one(learner, X, y)
    places = range(len(X) // 2, len(X), 3)
    for row, (x, label) in enumerate(zip(X, y, strict=True)):
        with_empty.learn_one(x, label)
        if row in places:
            with_empty.learn_one({}, y[0])
            with_empty.learn_one({"never seen": 0.0}, y[0])
    assert with_empty.n_seen_ == len(X) + 2 * len(places)
    assert np.array_equal(with_empty.coef_, learner.coef_)
    assert with_empty.certificate_.mistakes.tolist() == learner.certificate_.mistakes.tolist()
    assert learner.mistakes_ <= with_empty.mistakes_ <= learner.mistakes_ + 2 * len(places)
    assert with_empty.features_.tolist() == learner.features_.tolist()


@each_kind
def test_first_example_may_be_empty(learner, kind):
    X, y = stream(n_classes=3, kind=kind)
    for multiclass in ("ovr", "joint"):
        single, whole = (clone(learner).set_params(multiclass=multiclass) for _ in range(2))
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


def test_examples_are_not_changed():
    X, y = stream()
    before = copy.deepcopy(X)
    learner = one_by_one(OnlineClassifier(), X, y)
    learner.learn_many(X, y)
    learner.predict_many(X)
    assert before == X


# Parameters that change between calls


def test_parameters_of_the_rule_may_change_between_examples():
    X, y = stream()
    single, mixed, whole = (PAClassifier("pa1", C=1.0) for _ in range(3))
    for start, C in ((0, 1.0), (12, 1e-3), (24, 1.0), (36, 1e-2), (48, 1.0)):
        rows = slice(start, start + 12)
        one_by_one(single.set_params(C=C), X[rows], y[rows])
        (at_once if start in (12, 36) else one_by_one)(mixed.set_params(C=C), X[rows], y[rows])
        at_once(whole.set_params(C=C), X[rows], y[rows])
    assert learnt(single) == learnt(mixed) == learnt(whole)


def test_parameters_in_a_dict_may_change_in_place():
    X, y = stream()
    params = {"C": 1.0}
    changed = OnlineClassifier("pa1", rule_params=params)
    expected = OnlineClassifier("pa1", rule_params={"C": 1.0})
    one_by_one(changed, X[:30], y[:30])
    one_by_one(expected, X[:30], y[:30])
    params["C"] = 1e-3
    one_by_one(changed, X[30:], y[30:])
    one_by_one(expected.set_params(rule_params={"C": 1e-3}), X[30:], y[30:])
    assert learnt(changed) == learnt(expected)


# Rules of a user


def test_own_rule_learns_from_dicts(n_classes):
    X, y = stream(n_classes=n_classes)
    single, whole = (OnlineClassifier(breaks_late, rule_params={"limit": 1e9}, average=True) for _ in range(2))
    assert learnt(one_by_one(single, X, y)) == learnt(at_once(whole, X, y))
    assert np.all(single.updates_ > 20)


@pytest.mark.parametrize("call", ["one", "many"])
def test_own_rule_that_breaks_leaves_no_trace(call):
    X, y = stream(n_classes=3)
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


@pytest.mark.parametrize("duplicate", [lambda learner: pickle.loads(pickle.dumps(learner)), copy.deepcopy])
def test_copies_go_on_independently_to_the_same_bits(learner, duplicate):
    for kind in ("names", "ids"):
        X, y = stream(60, n_classes=4, kind=kind)
        original = one_by_one(clone(learner), X[:30], y[:30])
        copied, before = duplicate(original), everything(original)
        assert everything(copied) == before
        one_by_one(copied, X[30:], y[30:])
        assert everything(original) == before
        assert learnt(copied) == learnt(one_by_one(original, X[30:], y[30:]))
        assert copied.features_.tolist() == original.features_.tolist() == order_seen(X)
        assert [copied.predict_one(x) for x in X] == [original.predict_one(x) for x in X]
