"""Classes that come when they come: the same bits whatever the chunks, and a proof from each first row on."""

import contextlib
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maxcosine
from maxcosine import BadStep, OnlineClassifier
from tests.contract.streams import (
    augmented,
    averaged_or_not,
    bits,
    csr,
    every_rule,
    signs,
    stacked,
    stream,
    taught,
)
from tests.estimators.learners import everything, learnt
from tests.reference import all_joint_examples, maximal_margin, norm, run, run_joint
from tests.rules.test_reference import close

pytestmark = pytest.mark.filterwarnings("ignore::maxcosine.SortedLabelsWarning")

both_ways = pytest.mark.parametrize("multiclass", ["ovr", "joint"])
in_one_call_or_by_row = pytest.mark.parametrize("cuts", [[], range(100)], ids=["one call", "by row"])
STORAGES = np.asarray, csr

LAYOUT = ("positive", "first", "stop")  # where a head is, not what it has learnt


def late(n, n_features, births, **options):
    """A stream in which class c first comes with row births[c]; the earliest one is row 0."""
    X, codes = stream(n, n_features, n_classes=len(births), **options)
    births = np.asarray(births) - min(births)
    codes[births[codes] > np.arange(n)] = births.argmin()
    codes[births] = np.arange(len(births))
    return X, codes


def in_chunks(learner, X, y, cuts, **options):
    """Learn without a word about the classes to come."""
    cuts = [0, *sorted(cut for cut in set(cuts) if 0 < cut < len(y)), len(y)]
    for start, stop in itertools.pairwise(cuts):
        chunk = {name: values[start:stop] for name, values in options.items()}
        learner.partial_fit(X[start:stop], y[start:stop], **chunk)
    return learner


def assert_same_learner(one, other):
    same_to_the_user, same_bits = learnt(one) == learnt(other), bits(one._model) == bits(other._model)
    assert same_to_the_user
    assert same_bits


# Chunks


@every_rule
@averaged_or_not
@both_ways
@settings(max_examples=6, deadline=None)
@given(
    births=st.lists(st.integers(0, 79), min_size=2, max_size=6, unique=True),
    cuts=st.lists(st.integers(1, 99), max_size=8),
    sparse=st.booleans(),
    single=st.booleans(),
    shorter=st.sampled_from([1.0, 0.85]),
)
def test_any_chunking_gives_the_bits_of_one_call(
    name, average, multiclass, births, cuts, sparse, single, shorter
):
    X, y = late(100, 7, births, dtype=np.float32 if single else np.float64)
    X *= (shorter ** np.arange(100)[:, None]).astype(X.dtype)  # rules that start anew do so often
    X = csr(X) if sparse else X
    options = {"rule": name, "average": average, "multiclass": multiclass}
    whole = OnlineClassifier(**options).partial_fit(X, y)
    assert_same_learner(in_chunks(OnlineClassifier(**options), X, y, cuts), whole)


@every_rule
@averaged_or_not
@both_ways
def test_row_at_a_time_gives_the_bits_of_one_call(name, average, multiclass):
    options = {"rule": name, "average": average, "multiclass": multiclass}
    for births in ([0, 1, 2, 3], [29, 20, 0, 10]):
        X, y = late(30, 6, births)
        whole = OnlineClassifier(**options).partial_fit(X, y)
        assert_same_learner(in_chunks(OnlineClassifier(**options), X, y, range(30)), whole)


@every_rule
@both_ways
def test_forty_classes_may_come_late(name, multiclass):
    X, y = late(300, 6, np.random.default_rng(0).permutation(200)[:40])
    options = {"rule": name, "average": True, "multiclass": multiclass}
    whole = OnlineClassifier(**options).partial_fit(X, y)
    assert whole.classes_.tolist() == list(range(40))
    assert_same_learner(in_chunks(OnlineClassifier(**options), X, y, range(0, 300, 20)), whole)


@every_rule
@both_ways
def test_progress_reports_change_nothing(name, multiclass, capsys):
    X, y = late(60, 5, [0, 30, 10, 45])
    quiet, loud = (OnlineClassifier(name, multiclass=multiclass, verbose=verbose) for verbose in (0, 1))
    assert_same_learner(in_chunks(loud, X, y, [20, 40]), in_chunks(quiet, X, y, [20, 40]))
    assert capsys.readouterr().err.count("20 of 20 rows") == 3


@every_rule
@averaged_or_not
@both_ways
def test_a_pickle_meets_new_classes_with_the_same_bits(name, average, multiclass):
    X, y = late(60, 5, [0, 45, 10, 30])
    learner = OnlineClassifier(name, average=average, multiclass=multiclass).partial_fit(X[:20], y[:20])
    copy = pickle.loads(pickle.dumps(learner)).partial_fit(X[20:], y[20:])
    assert_same_learner(copy, learner.partial_fit(X[20:], y[20:]))


@every_rule
@averaged_or_not
@both_ways
def test_examples_one_by_one_meet_new_classes_as_rows_do(name, average, multiclass):
    X, y = late(60, 5, [0, 45, 10, 30], density=1.0)
    X, y = X[X.any(axis=1)], y[X.any(axis=1)]
    single = OnlineClassifier(name, average=average, multiclass=multiclass)
    for x, label in zip(X.tolist(), y.tolist(), strict=True):
        single.learn_one(dict(enumerate(x)), label)
    rows = OnlineClassifier(name, average=average, multiclass=multiclass).partial_fit(X, y)
    same_bits = bits(single._model) == bits(rows._model)
    assert same_bits
    assert single.certificate_ == rows.certificate_
    assert [single.predict_one(dict(enumerate(x))) for x in X.tolist()] == rows.predict(X).tolist()


@every_rule
@both_ways
def test_shuffled_rows_give_a_true_certificate(name, multiclass):
    """The order is drawn, but which classes there are is not: each is certified from where it began."""
    X, y = late(80, 5, [0, 30, 20, 50], noise=0.0)
    learner = OnlineClassifier(name, multiclass=multiclass, shuffle=True, random_state=3).partial_fit(X, y)
    again = OnlineClassifier(name, multiclass=multiclass, shuffle=True, random_state=3).partial_fit(X, y)
    assert_same_learner(again, learner)
    order = np.random.RandomState(3).permutation(80)
    assert_ceilings_hold(learner, X[order], y[order])


# Two classes


BOTH_ORDERS = ([0, 1], [1, 0], [0, 15], [15, 0])


@every_rule
@averaged_or_not
def test_two_classes_learn_what_they_learn_when_named_first(name, average):
    for births in BOTH_ORDERS:
        X, y = late(30, 6, births)
        named = OnlineClassifier(name, average=average).partial_fit(X, y, classes=[0, 1])
        for cuts in ([], range(0, 30, 3), [max(births)]):
            unnamed = in_chunks(OnlineClassifier(name, average=average), X, y, cuts)
            assert_same_learner(unnamed, named)


@every_rule
@averaged_or_not
@in_one_call_or_by_row
def test_two_classes_are_told_apart_jointly_from_the_second_one_on(name, average, cuts):
    options = {"rule": name, "average": average, "multiclass": "joint"}
    for births in BOTH_ORDERS:
        X, y = late(30, 6, births)
        begun = max(births)
        named = OnlineClassifier(**options).partial_fit(X[begun:], y[begun:], classes=[0, 1])
        unnamed = in_chunks(OnlineClassifier(**options), X, y, cuts)
        np.testing.assert_array_equal(unnamed.coef_, named.coef_)
        np.testing.assert_array_equal(unnamed.intercept_, named.intercept_)
        found, expected = unnamed.certificate_, named.certificate_
        assert (found.bound, found.best_bound) == (expected.bound, expected.best_bound)
        assert (found.mistakes, found.updates) == (expected.mistakes, expected.updates)


@every_rule
@averaged_or_not
@both_ways
def test_one_class_so_far_is_predicted(name, average, multiclass):
    X, _ = stream(30, 4)
    learner = OnlineClassifier(name, average=average, multiclass=multiclass).partial_fit(X, [7] * 30)
    assert learner.classes_.tolist() == [7]
    assert learner.predict(-X).tolist() == [7] * 30
    assert learner.predict_one({0: 1.0}) == 7
    assert learner.decision_function(X).shape == (30,)
    assert learner.coef_.shape == (1, 4)
    assert learner.n_seen_ == 30
    if multiclass == "ovr":  # jointly, there is nothing to tell apart
        assert learner.certificate_.seen == 30
        assert learner.certificate_.updates >= 1


# A third class


@every_rule
@averaged_or_not
@pytest.mark.parametrize("third", [5, 15, 25])
def test_two_heads_come_from_one_with_the_same_scalars(name, average, third):
    for births in ([0, 1], [1, 0]):
        X, codes = late(60, 6, births)
        learner = OnlineClassifier(name, average=average).partial_fit(X, np.array([10, 20])[codes])
        before = learner._model.copy().heads
        learner.partial_fit(np.zeros((1, 6)), [third])
        after, places = learner._model.heads, {label: c for c, label in enumerate(learner.classes_.tolist())}
        for weights in ("weights", "averaged_weights") if average else ("weights",):
            w, found = stacked(getattr(before, weights)())[0], stacked(getattr(after, weights)())
            np.testing.assert_array_equal(found[places[10]], -w)
            np.testing.assert_array_equal(found[places[20]], w)
            assert not found[places[third]].any()
        scalars = [field for field in before.table.dtype.names if field not in (*LAYOUT, "seen")]
        for label in (10, 20):
            assert after.table[places[label]][scalars] == before.table[0][scalars]
            np.testing.assert_array_equal(after.arrays.state[places[label]], before.arrays.state[0])
        assert after.table["seen"].tolist() == [61] * 3
        assert learner.certificate_.margin_ceiling[places[third]] == np.inf


@every_rule
@averaged_or_not
def test_the_first_two_heads_are_those_of_three_named_first(name, average):
    X, y = late(80, 6, [20, 0, 40])
    unnamed = OnlineClassifier(name, average=average).partial_fit(X, y)
    named = OnlineClassifier(name, average=average).partial_fit(X, y, classes=[0, 1, 2])
    for head in (0, 1):
        assert_same_head(unnamed._model.heads, head, named._model.heads, head)


def assert_same_head(heads, head, others, other, ignore=()):
    """The same bits: weights, averages, scalars and state."""
    for weights in ("weights", "averaged_weights") if heads.average else ("weights",):
        found, expected = stacked(getattr(heads, weights)()), stacked(getattr(others, weights)())
        np.testing.assert_array_equal(found[head], expected[other])
    scalars = [field for field in heads.table.dtype.names if field not in (*LAYOUT, *ignore)]
    assert heads.table[head][scalars] == others.table[other][scalars]
    np.testing.assert_array_equal(heads.arrays.state[head], others.arrays.state[other])


@every_rule
@averaged_or_not
@pytest.mark.parametrize("fit_intercept", [False, True], ids=["plain", "intercept"])
def test_a_late_head_is_one_learnt_from_its_first_row_on(name, average, fit_intercept):
    births = [50, 0, 22, 10]  # row 22 is zero: it begins with that one all the same
    X, y = late(100, 6, births)
    assert not X[22].any()
    learner = OnlineClassifier(name, average=average, fit_intercept=fit_intercept).partial_fit(X, y)
    for head in (0, 2):
        since = births[head]
        alone = taught(name, X[since:], y[since:] == head, average=average, fit_intercept=fit_intercept)
        assert_same_head(learner._model.heads, head, alone.heads, 0, ignore=("since", "seen"))


@every_rule
@averaged_or_not
@in_one_call_or_by_row
def test_joint_learning_meets_new_classes_as_the_rule_does(name, average, cuts):
    """Kesler's examples, where a class is a wrong one only from its first row on."""
    for births in ([0, 10, 20, 40], [1, 50, 0, 22]):
        X, y = late(60, 12, births, noise=0.02)
        expected = run_joint(name, X, y, 4, average=average, late=True)
        learner = OnlineClassifier(name, average=average, multiclass="joint", fit_intercept=False)
        certificate = in_chunks(learner, X, y, cuts).certificate_
        assert certificate.last.bound == close(expected.bound)
        assert certificate.best_bound >= expected.best_bound * (1 - 1e-9)
        assert (certificate.mistakes, certificate.updates) == (expected.mistakes, expected.updates)
        if average:
            assert certificate.bound == close(expected.averaged_coef_sum / norm(expected.averaged_w))


@every_rule
@averaged_or_not
def test_a_joint_class_has_no_weights_before_it_comes_and_moves_no_others_by_coming(name, average):
    X, y = late(60, 6, [25, 0, 30])
    learner = OnlineClassifier(name, average=average, multiclass="joint").partial_fit(X[:25], y[:25])
    assert not learner.coef_.any()
    learner.partial_fit(X[25:30], y[25:30])
    before, bound = learner.coef_[0] / 2, learner.certificate_.bound
    learner.partial_fit(np.zeros((1, 6)), [2])
    np.testing.assert_allclose(learner.coef_, [-before, before, np.zeros(6)], rtol=1e-12)
    assert learner.certificate_.bound == bound


# What is proven


def assert_ceilings_hold(learner, X, y):
    """No separator has a margin above the ceiling, of the examples that each is about."""
    certificate = learner.certificate_
    Z = augmented(X, True) * X.any(axis=1, keepdims=True)
    if certificate.joint:
        pairs = all_joint_examples(Z[certificate.since :], y[certificate.since :], len(learner.classes_))
        margin = maximal_margin(pairs, np.ones(len(pairs)))
        assert margin <= certificate.margin_ceiling * (1 + 1e-9) + 1e-9
        return
    for head, since in enumerate(certificate.since):
        margin = maximal_margin(Z[since:], signs(y[since:] == head))
        assert margin <= certificate.margin_ceiling[head] * (1 + 1e-9) + 1e-9


@every_rule
@averaged_or_not
@both_ways
def test_ceiling_holds_for_the_examples_it_is_about(name, average, multiclass):
    for noise in (0.0, 0.2):
        X, y = late(60, 5, [50, 0, 22, 10], noise=noise)
        X = np.column_stack([X, 3.0 * np.eye(4)[y]])  # so that there is a margin
        X[5::17] = 0.0
        learner = OnlineClassifier(name, average=average, multiclass=multiclass)
        assert_ceilings_hold(in_chunks(learner, X, y, [15, 40]), X, y)


@every_rule
@averaged_or_not
def test_certificate_counts_from_the_first_row_of_a_class(name, average):
    births = [50, 0, 22, 10]
    X, y = late(100, 8, births, noise=0.0)
    learner = OnlineClassifier(name, average=average, fit_intercept=False).partial_fit(X, y)
    certificate = learner.certificate_
    assert certificate.since.tolist() == certificate.last.since.tolist() == [50, 0, 22, 0]
    assert certificate.seen.tolist() == [50, 100, 78, 100]
    assert learner.n_seen_ == 100
    for head, since in enumerate(certificate.since):
        expected = run(name, X[since:], signs(y[since:] == head))
        assert certificate.mistakes[head] == expected.mistakes
        assert certificate.updates[head] == expected.updates
        assert certificate.best_bound[head] >= expected.best_bound * (1 - 1e-9)


@every_rule
@averaged_or_not
def test_certificate_shows_from_which_example_it_counts(name, average):
    X, y = late(1300, 5, [0, 1, 2, 1234])
    learner = OnlineClassifier(name, average=average).partial_fit(X[:2], y[:2])
    assert "from example" not in repr(learner.certificate_)
    shown = repr(learner.partial_fit(X[2:], y[2:]).certificate_).splitlines()
    assert any(line.endswith("of the examples from its first one on") for line in shown)
    header = next(line for line in shown if line.lstrip().startswith("class"))
    assert header.endswith("from example")
    rows = shown[shown.index(header) + 1 :]
    assert [line.split()[-1] for line in rows] == ["1", "1", "3", "1,235"]
    named = OnlineClassifier(name, average=average).partial_fit(X, y, classes=[0, 1, 2, 3])
    assert "from example" not in repr(named.certificate_)
    assert not named.certificate_.since.any()


# Rows that teach nothing


@every_rule
@averaged_or_not
@both_ways
def test_a_class_begins_with_a_row_that_teaches_nothing(name, average, multiclass):
    births = [50, 0, 30, 10]
    X, y = late(80, 6, births)
    weights = np.ones(80)
    weights[births] = 0.0
    zeros = np.where(weights[:, None] == 0.0, 0.0, X)
    options = {"rule": name, "average": average, "multiclass": multiclass}
    whole = OnlineClassifier(**options).partial_fit(zeros, y)
    if multiclass == "ovr":
        assert whole.certificate_.since.tolist() == [50, 0, 30, 0]
    for cuts in ([], range(2, 80, 7)):
        assert_same_learner(in_chunks(OnlineClassifier(**options), zeros, y, cuts), whole)
        weighted = in_chunks(OnlineClassifier(**options), X, y, cuts, sample_weight=weights)
        assert_same_learner(weighted, whole)


@both_ways
def test_rows_of_weight_0_may_come_alone(multiclass):
    X, y = late(20, 6, [1, 0, 10])
    weights = np.resize([0.0, 1.0], 20)
    whole = OnlineClassifier(multiclass=multiclass).partial_fit(X, y, sample_weight=weights)
    cut = in_chunks(OnlineClassifier(multiclass=multiclass), X, y, range(20), sample_weight=weights)
    assert_same_learner(cut, whole)


@both_ways
def test_an_example_of_weight_0_may_bring_a_class(multiclass):
    learner = OnlineClassifier(multiclass=multiclass)
    for label in ("a", "b", "a", "c"):
        learner.learn_one({0: 1.0, 1: 2.0}, label, w=0.0)
    assert learner.classes_.tolist() == ["a", "b", "c"]
    assert not learner.coef_.any()


@every_rule
@both_ways
def test_only_zero_rows_leave_nothing_learnt(name, multiclass):
    X, y = np.zeros((6, 3)), [2, 2, 0, 1, 0, 3]
    learner = OnlineClassifier(name, multiclass=multiclass, average=True).partial_fit(X, y)
    assert not learner.coef_.any()
    assert np.all(learner.certificate_.margin_ceiling == np.inf)
    assert learner.predict(np.ones((1, 3))).tolist() == [0]


# Shapes and labels


@every_rule
@both_ways
def test_shapes_follow_the_classes(name, multiclass):
    X, y = late(60, 5, [40, 20, 0, 50])
    learner = OnlineClassifier(name, multiclass=multiclass)
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


LABELS = {
    "ints": [np.array([-3, 0, 5, 700])] * 4,
    "wider ints": [np.array([1, 20, 30, 40], dtype) for dtype in (np.int8, np.uint16, np.int32, np.int64)],
    "whole floats": [np.array([0, 1, 2, 3])] * 2 + [np.array([0.0, 1.0, 2.0, 3.0])] * 2,
    "longer strings": [np.array(["a", "ab", "abc", "b, a longer name"])] * 4,
    "objects": [np.array(["no", "so", "yes", "yes and no"], object)] * 4,
    "strings and objects": [np.array(["no", "so", "yes", "zero"], kind) for kind in (str, object) * 2],
    "lists": [["north", "south", "up", "west"]] * 4,
}


@every_rule
@both_ways
def test_labels_of_any_kind_are_learnt_alike(name, multiclass):
    X, codes = late(60, 5, [40, 20, 0, 50])
    for kind, chunks in LABELS.items():
        learner, expected = (OnlineClassifier(name, multiclass=multiclass) for _ in range(2))
        for start, stop, labels in zip((0, 20, 40, 50), (20, 40, 50, 60), chunks, strict=True):
            y = [labels[code] for code in codes[start:stop]]
            y = y if kind == "lists" else np.array(y, labels.dtype)
            learner.partial_fit(X[start:stop], y)
            expected.partial_fit(X[start:stop], codes[start:stop])
            assert learner.classes_.tolist() == [labels[code] for code in np.unique(codes[:stop])]
        np.testing.assert_array_equal(learner.predict(X), np.asarray(labels)[expected.predict(X)])
        same_bits = bits(learner._model) == bits(expected._model)
        assert same_bits, kind


@both_ways
def test_strings_are_never_cut(multiclass):
    """NumPy cuts strings that are put into an array of shorter ones."""
    learner = OnlineClassifier(multiclass=multiclass)
    for label in ("b", "bb", "a long one", "c"):
        learner.partial_fit(np.ones((2, 3)), np.array([label, label]))
    assert learner.classes_.tolist() == ["a long one", "b", "bb", "c"]


@every_rule
@both_ways
def test_truth_values_are_labels(name, multiclass):
    for births in ([0, 1], [1, 0]):
        X, y = late(40, 5, births)
        learner = in_chunks(OnlineClassifier(name, multiclass=multiclass), X, y.astype(bool), [1, 7])
        assert learner.classes_.dtype == bool
        assert learner.predict(X).dtype == bool
        expected = in_chunks(OnlineClassifier(name, multiclass=multiclass), X, y, [1, 7])
        assert bits(learner._model) == bits(expected._model)


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


@every_rule
@both_ways
def test_a_bad_row_with_a_new_class_leaves_no_trace(name, multiclass):
    X, y = stream(40, 5)
    learner = OnlineClassifier(name, multiclass=multiclass, grow_features=True).partial_fit(X, y)
    before = everything(learner)
    for bad in (np.nan, np.inf, 1e200):
        rows = np.ones((3, 6))
        rows[2, 1] = bad
        with pytest.raises(ValueError, match=r"[rR]ow 2"):
            learner.partial_fit(rows, [2, 3, 0])
        assert everything(learner) == before


@maxcosine.rules.rule
def breaks_late(margin, sq_w, sq_x, coef_sum, state, params):
    return 1.0, (1.0 if coef_sum < 50.0 else -1.0), state


@both_ways
def test_a_rule_that_breaks_after_a_new_class_leaves_no_trace(multiclass):
    X, y = late(80, 6, [0, 1, 40])
    learner = OnlineClassifier(breaks_late, multiclass=multiclass, grow_features=True)
    learner.partial_fit(X[:20, :4], y[:20])
    before = everything(learner)
    with pytest.raises(BadStep, match="'breaks_late' asked in row"):
        learner.partial_fit(X[20:], y[20:])
    assert everything(learner) == before


@both_ways
@pytest.mark.filterwarnings("error")
def test_many_classes_are_no_reason_to_warn(multiclass):
    X, y = late(300, 6, np.random.default_rng(0).permutation(200)[:40])
    found = OnlineClassifier(multiclass=multiclass).partial_fit(X, y)
    named = OnlineClassifier(multiclass=multiclass).partial_fit(X, y, classes=np.arange(40))
    assert len(found.classes_) == len(named.classes_) == 40


@both_ways
def test_no_two_classes_become_one(multiclass):
    """2^53 and 2^53 + 1 are two ints and one float."""
    learner = OnlineClassifier(multiclass=multiclass).partial_fit(np.eye(2), np.array([2**53, 2**53 + 1]))
    before = everything(learner)
    with contextlib.suppress(ValueError):  # refusing is as good as keeping them apart
        learner.partial_fit(np.ones((1, 2)), np.array([3.0]))
    assert len(learner.classes_) == 3 or everything(learner) == before


# Classes that are named


@every_rule
@both_ways
def test_named_classes_are_all_there_are(name, multiclass):
    X, y = stream(40, 5, n_classes=3)
    learner = OnlineClassifier(name, multiclass=multiclass).partial_fit(X, y, classes=[0, 1, 2])
    before = everything(learner)
    with pytest.raises(ValueError, match=r"not among the classes: \[3\]; the classes are \[0, 1, 2\]"):
        learner.partial_fit(X[:2], [1, 3])
    with pytest.raises(ValueError, match=r"not among the classes: \[4\]"):
        learner.partial_fit(X[:2], [1, 4], classes=[0, 1, 2, 3])
    with pytest.raises(ValueError, match=r"lacks classes that the model has: \[0\]"):
        learner.partial_fit(X[:2], [1, 2], classes=[1, 2])
    with pytest.raises(ValueError, match="number of classes has to be greater than one"):
        OnlineClassifier(name, multiclass=multiclass).partial_fit(X[:2], [1, 1], classes=[1])
    assert everything(learner) == before


@every_rule
@averaged_or_not
@both_ways
def test_classes_named_later_begin_then(name, average, multiclass):
    X, y = stream(60, 5, n_classes=4)
    y[:30] %= 2
    for named_before in (None, [0, 1]):
        learner = OnlineClassifier(name, average=average, multiclass=multiclass)
        learner.partial_fit(X[:30], y[:30], classes=named_before)
        learner.partial_fit(X[30:], y[30:], classes=[0, 1, 2, 3])
        assert learner.classes_.tolist() == [0, 1, 2, 3]
        with pytest.raises(ValueError, match="not among the classes"):  # they are all there are
            learner.partial_fit(X[:1], [4])
        if multiclass == "joint":
            continue
        assert learner.certificate_.since.tolist() == [0, 0, 30, 30]
        for head in (2, 3):
            alone = taught(name, X[30:], y[30:] == head, average=average, fit_intercept=True)
            assert_same_head(learner._model.heads, head, alone.heads, 0, ignore=("since", "seen"))


@every_rule
@averaged_or_not
@both_ways
def test_new_classes_may_come_after_fit(name, average, multiclass):
    X, y = stream(60, 5, n_classes=4)
    y[:30] %= 3
    learner = OnlineClassifier(name, average=average, multiclass=multiclass, passes=2).fit(X[:30], y[:30])
    chunked = pickle.loads(pickle.dumps(learner))
    learner.partial_fit(X[30:], y[30:])
    assert learner.classes_.tolist() == [0, 1, 2, 3]
    assert learner.decision_function(X).shape == (60, 4)
    assert learner.n_seen_ == 90
    if multiclass == "ovr":
        first = 30 + int(np.flatnonzero(y == 3)[0])  # after two passes
        assert learner.certificate_.since.tolist() == [0, 0, 0, first]
    assert_same_learner(in_chunks(chunked, X[30:], y[30:], range(0, 30, 4)), learner)


@every_rule
@both_ways
def test_fit_knows_all_its_classes_from_the_start(name, multiclass):
    X, y = late(60, 5, [0, 10, 40])
    fitted = OnlineClassifier(name, multiclass=multiclass).fit(X, y)
    named = OnlineClassifier(name, multiclass=multiclass).partial_fit(X, y, classes=[0, 1, 2])
    assert_same_learner(fitted, named)
    assert not np.any(fitted.certificate_.since)


# Columns that come late, too


def widths(X, steps):
    """The rows in chunks, each with columns of its own number."""
    for (start, n_columns), (stop, _) in itertools.pairwise([*steps, (len(X), 0)]):
        yield slice(start, stop), n_columns


@every_rule
@averaged_or_not
@both_ways
def test_classes_and_columns_may_come_late_together(name, average, multiclass):
    X, y = late(100, 16, [60, 0, 45, 10, 20])
    for storage in STORAGES:
        grown, wide = (
            OnlineClassifier(name, average=average, multiclass=multiclass, grow_features=grow)
            for grow in (True, False)
        )
        for rows, n_columns in widths(X, [(0, 2), (5, 9), (40, 3), (60, 16)]):
            part = np.where(np.arange(16) < n_columns, X[rows], 0.0)
            grown.partial_fit(storage(part[:, :n_columns]), y[rows])
            wide.partial_fit(storage(part), y[rows])
            assert grown.n_features_in_ == grown.coef_.shape[1]
            assert grown.decision_function(storage(X)).shape == wide.decision_function(storage(X)).shape
        assert grown.n_features_in_ == 16
        same = learnt(grown) == learnt(wide)
        assert same


@both_ways
def test_without_growing_late_columns_are_refused_and_leave_no_trace(multiclass):
    X, y = late(40, 6, [0, 1, 20])
    for storage in STORAGES:
        learner = OnlineClassifier(multiclass=multiclass).partial_fit(storage(X[:20, :4]), y[:20])
        before = everything(learner)
        with pytest.raises(ValueError, match="X has 6 features, but OnlineClassifier is expecting 4"):
            learner.partial_fit(storage(X[20:]), y[20:])
        assert everything(learner) == before


@every_rule
@both_ways
def test_weights_kept_sparse_meet_new_classes_alike(name, multiclass):
    X, y = late(80, 9, [0, 60, 10, 40])
    X[:40, 2::3] = 0.0
    plain, thin = (
        OnlineClassifier(name, multiclass=multiclass, average=True).partial_fit(X[:40], y[:40])
        for _ in range(2)
    )
    thin.sparsify().partial_fit(X[40:], y[40:])
    plain.partial_fit(X[40:], y[40:])
    np.testing.assert_array_equal(thin.coef_.toarray(), plain.coef_)
    np.testing.assert_array_equal(thin.certificate_.since, plain.certificate_.since)
    np.testing.assert_array_equal(thin.certificate_.updates, plain.certificate_.updates)


@averaged_or_not
@both_ways
def test_classes_may_be_announced_one_by_one_before_any_comes(average, multiclass):
    X, y = late(80, 6, [0, 3, 30, 50])
    before, after = slice(None, 20), slice(20, None)

    def announced(*announcements):
        learner = OnlineClassifier("mcp", average=average, multiclass=multiclass)
        learner.partial_fit(X[before], y[before])
        for labels in announcements:
            learner._model.add_classes(np.array(labels), waiting=True)
        return learner.partial_fit(X[after], y[after])

    assert_same_learner(announced([2], [3]), announced([2, 3]))
    assert_same_learner(announced([3], [2]), announced())
