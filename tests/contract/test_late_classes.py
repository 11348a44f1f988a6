"""Classes may appear at any row: their heads, their labels, and what is refused."""

import contextlib
import itertools
import pickle

import numpy as np
import pytest

from maxcosine import BadStep, OnlineClassifier
from tests.contract.streams import csr, late, stream
from tests.contract.test_same_bits import assert_same_head
from tests.learners import PAIRWISE_SETTINGS, breaks_late, everything, learnt, tensors

pytestmark = pytest.mark.filterwarnings("ignore::maxcosine.SortedLabelsWarning")

both_ways = pytest.mark.parametrize("multiclass", ["ovr", "joint"])


def in_chunks(learner, X, y, cuts):
    for start, stop in itertools.pairwise([0, *cuts, len(y)]):
        learner.partial_fit(X[start:stop], y[start:stop])
    return learner


@both_ways
@pytest.mark.filterwarnings("error")
def test_forty_classes_may_appear_late_without_a_warning(some_rule, multiclass):
    X, y = late(300, 6, np.random.default_rng(0).permutation(200)[:40])
    options = {"rule": some_rule, "average": True, "multiclass": multiclass}
    whole = OnlineClassifier(**options).partial_fit(X, y)
    assert whole.classes_.tolist() == list(range(40))
    assert learnt(in_chunks(OnlineClassifier(**options), X, y, range(20, 300, 20))) == learnt(whole)


# Two classes, then a third


def test_two_classes_learn_what_they_learn_when_named_first(some_rule):
    for first_rows, setting in itertools.product(([0, 1], [15, 0]), PAIRWISE_SETTINGS[:2]):
        X, y = late(30, 6, first_rows, dtype=setting.dtype)
        named = setting.classifier(some_rule).partial_fit(X, y, classes=[0, 1])
        whole = setting.classifier(some_rule).partial_fit(X, y)
        np.testing.assert_array_equal(whole.coef_, named.coef_)
        np.testing.assert_array_equal(whole.intercept_, named.intercept_)
        assert whole.certificate_ == named.certificate_
        for cuts in (range(3, 30, 3), [max(first_rows)]):
            assert learnt(in_chunks(setting.classifier(some_rule), X, y, cuts)) == learnt(whole)


def test_two_classes_are_told_apart_jointly_from_the_second_one_on(some_rule):
    for first_rows, average in (([0, 1], False), ([15, 0], True)):
        X, y = late(30, 6, first_rows)
        begun = max(first_rows)
        options = {"rule": some_rule, "average": average, "multiclass": "joint"}
        named = OnlineClassifier(**options).partial_fit(X[begun:], y[begun:], classes=[0, 1])
        unnamed = in_chunks(OnlineClassifier(**options), X, y, range(1, 30, 2))
        np.testing.assert_array_equal(unnamed.coef_, named.coef_)
        np.testing.assert_array_equal(unnamed.intercept_, named.intercept_)
        for name in ("bound", "best_bound", "mistakes", "updates"):
            assert getattr(unnamed.certificate_, name) == getattr(named.certificate_, name)


def test_third_class_divides_the_one_head_of_two(some_rule):
    """One head becomes two, which are each other's mirror images; the third one is empty."""
    for third, average in ((5, False), (15, True), (25, True)):
        X, codes = late(60, 6, [0, 1])
        learner = OnlineClassifier(some_rule, average=average, fit_intercept=False)
        learner.partial_fit(X, np.array([10, 20])[codes])
        before = tensors(learner)
        learner.partial_fit(np.zeros((1, 6)), [third])
        after, places = tensors(learner), {label: c for c, label in enumerate(learner.classes_.tolist())}
        for name in {"v", "total"} & before.keys():
            w = before[name][:, 0]
            np.testing.assert_array_equal(after[name][:, places[10]], -w)
            np.testing.assert_array_equal(after[name][:, places[20]], w)
            assert not after[name][:, places[third]].any()
        changed = {"head.positive", "head.first", "head.stop", "head.seen"}
        for name in {name for name in before if name.startswith("head.")} - changed:
            assert after[name][places[10]] == after[name][places[20]] == before[name][0], name
        assert learner.certificate_.margin_ceiling[places[third]] == np.inf
        assert learner.n_seen_ == 61


def test_first_two_heads_are_those_of_three_named_first(some_rule):
    X, y = late(80, 6, [20, 0, 40])
    for average in (False, True):
        unnamed = OnlineClassifier(some_rule, average=average).partial_fit(X, y)
        named = OnlineClassifier(some_rule, average=average).partial_fit(X, y, classes=[0, 1, 2])
        for head in (0, 1):
            assert_same_head(tensors(unnamed), head, tensors(named), head)


def test_joint_class_has_no_weights_before_it_appears_and_moves_no_others_then(some_rule):
    X, y = late(60, 6, [25, 0, 30])
    for average in (False, True):
        learner = OnlineClassifier(some_rule, average=average, multiclass="joint", fit_intercept=False)
        learner.partial_fit(X[:25], y[:25])
        assert not learner.coef_.any()
        learner.partial_fit(X[25:30], y[25:30])
        before, bound = learner.coef_[0] / 2, learner.certificate_.bound
        learner.partial_fit(np.zeros((1, 6)), [2])
        np.testing.assert_allclose(learner.coef_, [-before, before, np.zeros(6)], rtol=1e-12)
        assert learner.certificate_.bound == bound


@both_ways
def test_one_class_so_far_is_predicted(some_rule, multiclass):
    X, _ = stream(30, 4)
    learner = OnlineClassifier(some_rule, average=True, multiclass=multiclass).partial_fit(X, [7] * 30)
    assert learner.classes_.tolist() == [7]
    assert learner.predict(-X).tolist() == [7] * 30
    assert learner.predict_one({0: 1.0}) == 7
    assert learner.decision_function(X).shape == (30,)
    assert learner.n_seen_ == 30


@both_ways
def test_shapes_follow_the_classes(multiclass):
    X, y = late(60, 5, [40, 20, 0, 50])
    learner = OnlineClassifier(multiclass=multiclass)
    for start, stop, n_classes in ((0, 20, 1), (20, 40, 2), (40, 50, 3), (50, 60, 4)):
        learner.partial_fit(X[start:stop], y[start:stop])
        n_scores = n_classes if n_classes > 2 else 1
        assert learner.classes_.tolist() == sorted(set(y[:stop]))
        assert learner.coef_.shape == (n_scores, 5)
        assert learner.intercept_.shape == (n_scores,)
        assert learner.decision_function(X).shape == ((60,) if n_classes <= 2 else (60, n_classes))
        assert set(learner.predict(X)) <= set(learner.classes_)
        one_for_each = multiclass == "ovr" and n_classes > 2
        assert np.shape(learner.certificate_.bound) == ((n_classes,) if one_for_each else ())
        if one_for_each:
            np.testing.assert_array_equal(learner.certificate_.classes, learner.classes_)


# Rows that teach nothing


@both_ways
def test_class_begins_with_a_row_without_features(some_rule, multiclass):
    first_rows = [50, 0, 30, 10]
    X, y = late(80, 6, first_rows)
    X[first_rows] = 0.0
    for fit_intercept in (False, True):
        options = {"rule": some_rule, "average": True, "multiclass": multiclass, "fit_intercept": fit_intercept}
        whole = OnlineClassifier(**options).partial_fit(X, y)
        if multiclass == "ovr":
            assert whole.certificate_.since.tolist() == [50, 0, 30, 0]
        assert learnt(in_chunks(OnlineClassifier(**options), X, y, range(2, 80, 7))) == learnt(whole)


@both_ways
def test_class_does_not_begin_with_a_row_of_weight_0(some_rule, multiclass):
    """The row is as if absent, whether other rows of its class come or not."""
    first_rows = [50, 0, 30, 10]
    X, y = late(80, 6, first_rows)
    weights = np.ones(80)
    weights[first_rows] = 0.0
    used = weights > 0.0
    options = {"rule": some_rule, "average": True, "multiclass": multiclass}
    learner = OnlineClassifier(**options).partial_fit(X, y, sample_weight=weights)
    present = OnlineClassifier(**options).partial_fit(X[used], y[used])
    assert learnt(learner) == learnt(present)
    assert learner.mistakes_ == present.mistakes_
    weights[y == 2] = 0.0
    used = weights > 0.0
    learner = OnlineClassifier(**options).partial_fit(X, y, sample_weight=weights)
    present = OnlineClassifier(**options).partial_fit(X[used], y[used])
    assert learner.classes_.tolist() == [0, 1, 2, 3]
    assert present.classes_.tolist() == [0, 1, 3]
    assert not learner.coef_[2].any()
    np.testing.assert_array_equal(learner.coef_[[0, 1, 3]], present.coef_)
    assert (learner.n_seen_, learner.mistakes_) == (present.n_seen_, present.mistakes_)


@both_ways
def test_examples_of_weight_0_alone_bring_their_classes_and_are_not_seen(multiclass):
    learner = OnlineClassifier(multiclass=multiclass)
    for label in ("a", "b", "a", "c"):
        learner.learn_one({0: 1.0, 1: 2.0}, label, w=0.0)
    assert learner.classes_.tolist() == ["a", "b", "c"]
    assert not learner.coef_.any()
    assert (learner.n_seen_, learner.mistakes_) == (0, 0)
    assert not np.any(learner.updates_)


# Labels

LABELS = {
    "ints": [np.array([-3, 0, 5, 700])] * 4,
    "wider ints": [np.array([1, 20, 30, 40], dtype) for dtype in (np.int8, np.uint16, np.int32, np.int64)],
    "whole floats": [np.array([0, 1, 2, 3])] * 2 + [np.array([0.0, 1.0, 2.0, 3.0])] * 2,
    "longer strings": [np.array(["a", "ab", "abc", "b, a longer name"])] * 4,
    "objects": [np.array(["no", "so", "yes", "yes and no"], object)] * 4,
    "strings and objects": [np.array(["no", "so", "yes", "zero"], kind) for kind in (str, object) * 2],
    "lists": [["north", "south", "up", "west"]] * 4,
}


@both_ways
@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_kind_are_learnt_alike(multiclass, kind):
    X, codes = late(60, 5, [40, 20, 0, 50])
    learner, expected = (OnlineClassifier(multiclass=multiclass) for _ in range(2))
    for start, stop, labels in zip((0, 20, 40, 50), (20, 40, 50, 60), LABELS[kind], strict=True):
        y = [labels[code] for code in codes[start:stop]]
        learner.partial_fit(X[start:stop], y if kind == "lists" else np.array(y, labels.dtype))
        expected.partial_fit(X[start:stop], codes[start:stop])
        assert learner.classes_.tolist() == [labels[code] for code in np.unique(codes[:stop])]
    np.testing.assert_array_equal(learner.predict(X), np.asarray(labels)[expected.predict(X)])
    np.testing.assert_array_equal(learner.coef_, expected.coef_)


@both_ways
def test_strings_are_never_cut(multiclass):
    """NumPy cuts strings that are put into an array of shorter ones."""
    learner = OnlineClassifier(multiclass=multiclass)
    for label in ("b", "bb", "a long one", "c"):
        learner.partial_fit(np.ones((2, 3)), np.array([label, label]))
    assert learner.classes_.tolist() == ["a long one", "b", "bb", "c"]


@both_ways
def test_truth_values_are_labels(multiclass):
    for first_rows in ([0, 1], [1, 0]):
        X, y = late(40, 5, first_rows)
        learner = in_chunks(OnlineClassifier(multiclass=multiclass), X, y.astype(bool), [1, 7])
        assert learner.classes_.dtype == bool
        assert learner.predict(X).dtype == bool
        expected = in_chunks(OnlineClassifier(multiclass=multiclass), X, y, [1, 7])
        np.testing.assert_array_equal(learner.coef_, expected.coef_)


REFUSED = {
    "strings after ints": ([0, 1], ["a", "b"], "mixes labels of types"),
    "ints after strings": (["a", "b"], [0, 1], "mixes labels of types"),
    "strings among ints": ([0, 1], np.array([1, "a"], object), "mixes labels of types"),
    "parts of a whole": ([0, 1], [0.5, 1.0], "Unknown label type"),
    "nan": ([0, 1], [1.0, np.nan], "NaN"),
    "bytes after ints": ([0, 1], np.array([b"a", b"b"]), "bytes"),
    "none after strings": (["a", "b"], np.array([None, None]), "NoneType"),
}


@both_ways
@pytest.mark.parametrize("case", REFUSED)
def test_labels_of_another_type_are_refused_and_leave_no_trace(multiclass, case):
    known, unknown, message = REFUSED[case]
    X = np.array([[1.0, 2.0], [2.0, -1.0]])
    learner = OnlineClassifier(multiclass=multiclass, grow_features=True).partial_fit(X, known)
    before = everything(learner)
    with pytest.raises((ValueError, TypeError), match=message):
        learner.partial_fit(np.ones((2, 3)), unknown)
    assert everything(learner) == before


@both_ways
def test_no_two_classes_become_one(multiclass):
    """2^53 and 2^53 + 1 are two ints and one float."""
    learner = OnlineClassifier(multiclass=multiclass).partial_fit(np.eye(2), np.array([2**53, 2**53 + 1]))
    before = everything(learner)
    with contextlib.suppress(ValueError):  # refusing is as good as keeping them apart
        learner.partial_fit(np.ones((1, 2)), np.array([3.0]))
    assert len(learner.classes_) == 3 or everything(learner) == before


# Refused rows


@both_ways
def test_bad_row_with_a_new_class_leaves_no_trace(some_rule, multiclass):
    X, y = stream(40, 5)
    learner = OnlineClassifier(some_rule, multiclass=multiclass, grow_features=True).partial_fit(X, y)
    before = everything(learner)
    for bad in (np.nan, np.inf, 1e200):
        rows = np.ones((3, 6))
        rows[2, 1] = bad
        with pytest.raises(ValueError, match=r"[rR]ow 2"):
            learner.partial_fit(rows, [2, 3, 0])
        assert everything(learner) == before


@both_ways
def test_rule_that_breaks_after_a_new_class_leaves_no_trace(multiclass):
    X, y = late(80, 6, [0, 1, 40])
    learner = OnlineClassifier(breaks_late, multiclass=multiclass, grow_features=True)
    learner.partial_fit(X[:20, :4], y[:20])
    before = everything(learner)
    with pytest.raises(BadStep, match="'breaks_late' asked in row"):
        learner.partial_fit(X[20:], y[20:])
    assert everything(learner) == before


@both_ways
def test_late_columns_are_refused_without_growing_and_leave_no_trace(multiclass):
    X, y = late(40, 6, [0, 1, 20])
    for storage in (np.asarray, csr):
        learner = OnlineClassifier(multiclass=multiclass).partial_fit(storage(X[:20, :4]), y[:20])
        before = everything(learner)
        with pytest.raises(ValueError, match="X has 6 features, but OnlineClassifier is expecting 4"):
            learner.partial_fit(storage(X[20:]), y[20:])
        assert everything(learner) == before


# Classes that are named


@both_ways
def test_named_classes_are_all_there_are(multiclass):
    X, y = stream(40, 5, n_classes=3)
    learner = OnlineClassifier(multiclass=multiclass).partial_fit(X, y, classes=[0, 1, 2])
    before = everything(learner)
    with pytest.raises(ValueError, match=r"not among the classes: \[3\]; the classes are \[0, 1, 2\]"):
        learner.partial_fit(X[:2], [1, 3])
    with pytest.raises(ValueError, match=r"not among the classes: \[4\]"):
        learner.partial_fit(X[:2], [1, 4], classes=[0, 1, 2, 3])
    with pytest.raises(ValueError, match=r"lacks classes that the model has: \[0\]"):
        learner.partial_fit(X[:2], [1, 2], classes=[1, 2])
    with pytest.raises(ValueError, match="number of classes has to be greater than one"):
        OnlineClassifier(multiclass=multiclass).partial_fit(X[:2], [1, 1], classes=[1])
    assert everything(learner) == before


@both_ways
def test_classes_named_later_begin_then(some_rule, multiclass):
    X, y = stream(60, 5, n_classes=4)
    y[:30] %= 2
    for named_before in (None, [0, 1]):
        learner = OnlineClassifier(some_rule, average=True, multiclass=multiclass)
        learner.partial_fit(X[:30], y[:30], classes=named_before)
        learner.partial_fit(X[30:], y[30:], classes=[0, 1, 2, 3])
        assert learner.classes_.tolist() == [0, 1, 2, 3]
        with pytest.raises(ValueError, match="not among the classes"):  # they are all there are
            learner.partial_fit(X[:1], [4])
        if multiclass == "ovr":
            assert learner.certificate_.since.tolist() == [0, 0, 30, 30]
            alone = OnlineClassifier(some_rule, average=True).partial_fit(X[30:], y[30:] == 3, [False, True])
            assert learner.certificate_.bound[3] == alone.certificate_.bound
            assert learner.updates_[3] == alone.updates_


@both_ways
def test_new_classes_may_appear_after_fit(some_rule, multiclass):
    X, y = stream(60, 5, n_classes=4)
    y[:30] %= 3
    learner = OnlineClassifier(some_rule, average=True, multiclass=multiclass, passes=2).fit(X[:30], y[:30])
    chunked = pickle.loads(pickle.dumps(learner))
    learner.partial_fit(X[30:], y[30:])
    assert learner.classes_.tolist() == [0, 1, 2, 3]
    assert learner.n_seen_ == 90
    if multiclass == "ovr":
        first = 30 + int(np.flatnonzero(y == 3)[0])  # after two passes
        assert learner.certificate_.since.tolist() == [0, 0, 0, first]
    assert learnt(in_chunks(chunked, X[30:], y[30:], range(4, 30, 4))) == learnt(learner)
