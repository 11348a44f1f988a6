"""The same numbers give the same bits: whatever the storage, the chunks, and the heads beside."""

import copy
import itertools
import pickle
import tempfile

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import maxcosine
from maxcosine import RULES, OnlineClassifier
from tests.contract.streams import csr, late, stream
from tests.learners import IN_MEMORY, PAIRWISE_SETTINGS, learnt, tensors

pytestmark = pytest.mark.filterwarnings("ignore::maxcosine.SortedLabelsWarning")

N_ROWS, N_FEATURES, HALF = 70, 7, 35


def late_stream(setting):
    """Rows, classes that appear late, and weights; the first row has a value in every column."""
    first_rows = [3, 0] if setting.learning == "binary" else [30, 0, 45, 10]
    X, y = late(N_ROWS, N_FEATURES, first_rows, dtype=setting.dtype)
    X[0] = np.arange(1, N_FEATURES + 1)
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], N_ROWS)
    weights[:5] = 1.0
    return X, y, weights


def dicts(X):
    """Every row as a dict of column to value, in the order of the columns."""
    return [{k: value for k, value in enumerate(row) if value} for row in X.astype(np.float64).tolist()]


def with_gaps(X):
    """CSR rows in arrays that are not contiguous."""
    plain = scipy.sparse.csr_array(X)
    data = np.full(2 * plain.nnz, 77.0, X.dtype)
    indices = np.full(2 * plain.nnz, 5, plain.indices.dtype)
    data[::2], indices[::2] = plain.data, plain.indices
    gaps = scipy.sparse.csr_array((data[::2], indices[::2], plain.indptr), shape=plain.shape)
    assert not gaps.data.flags.c_contiguous
    return gaps


# Ways to learn the same stream, each with its own storage or its own chunks


def stored_as(storage):
    def learn(learner, X, y, w):
        return learner.partial_fit(storage(X), y, sample_weight=w)

    return learn


def in_chunks(cuts, storage=np.asarray):
    def learn(learner, X, y, w):
        for start, stop in itertools.pairwise([0, *cuts, len(y)]):
            learner.partial_fit(storage(X[start:stop]), y[start:stop], sample_weight=w[start:stop])
        return learner

    return learn


def interrupted(change):
    """Learn half of the rows, then go on with what `change` makes of the classifier."""

    def learn(learner, X, y, w):
        learner.partial_fit(X[:HALF], y[:HALF], sample_weight=w[:HALF])
        return change(learner).partial_fit(csr(X[HALF:]), y[HALF:], sample_weight=w[HALF:])

    return learn


def saved_and_loaded(learner):
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        maxcosine.save(learner, f"{folder}/model.safetensors")
        return maxcosine.load(f"{folder}/model.safetensors")


def one_dict_at_a_time(learner, X, y, w):
    for x, label, weight in zip(dicts(X), y.tolist(), w.tolist(), strict=True):
        learner.learn_one(x, label, weight)
    return learner


def all_dicts_at_once(learner, X, y, w):
    learner.learn_many(dicts(X), y, w)
    return learner


def dicts_and_rows_in_turn(learner, X, y, w):
    learner.learn_many(dicts(X[:20]), y[:20], w[:20])
    learner.partial_fit(csr(X[20:50]), y[20:50], sample_weight=w[20:50])
    return one_dict_at_a_time(learner, X[50:], y[50:], w[50:])


WAYS = {
    "CSR": stored_as(csr),
    "CSR with 64-bit indices": stored_as(lambda X: csr(X, np.int64)),
    "CSR with gaps": stored_as(with_gaps),
    "Fortran order": stored_as(np.asfortranarray),
    "chunks": in_chunks([1, 2, 25, 26]),
    "chunks of CSR": in_chunks([3, 46], csr),
    "row at a time": in_chunks(range(1, N_ROWS)),
    "dict at a time": one_dict_at_a_time,
    "dicts at once": all_dicts_at_once,
    "dicts and rows in turn": dicts_and_rows_in_turn,
    "pickled": interrupted(lambda learner: pickle.loads(pickle.dumps(learner))),
    "copied": interrupted(copy.deepcopy),
    "saved": interrupted(saved_and_loaded),
    "sparsified": interrupted(lambda learner: learner.sparsify()),
    "verbose": interrupted(lambda learner: learner.set_params(verbose=1)),
}


@pytest.mark.parametrize("way", WAYS)
def test_way_of_learning_changes_no_bit(some_rule, settings, way):
    for setting in settings:
        X, y, w = late_stream(setting)
        expected = setting.classifier(some_rule).partial_fit(X, y, sample_weight=w)
        found = WAYS[way](setting.classifier(some_rule), X, y, w)
        assert learnt(found) == learnt(expected), setting


@pytest.mark.slow
@hypothesis_settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    first_rows=st.lists(st.integers(0, 79), min_size=2, max_size=6, unique=True),
    cuts=st.sets(st.integers(1, 99), max_size=8),
    sparse=st.booleans(),
    shorter=st.sampled_from([1.0, 0.85]),
    setting=st.sampled_from(PAIRWISE_SETTINGS),
)
def test_any_chunks_give_the_bits_of_one_call(some_rule, first_rows, cuts, sparse, shorter, setting):
    X, y = late(100, 7, np.array(first_rows) - min(first_rows), dtype=setting.dtype)
    X *= (shorter ** np.arange(100)[:, None]).astype(X.dtype)  # rules that restart do so often
    whole = setting.classifier(some_rule).partial_fit(X, y)
    found = in_chunks(sorted(cuts), csr if sparse else np.asarray)(setting.classifier(some_rule), X, y, np.ones(len(y)))
    assert learnt(found) == learnt(whole)


def test_fit_is_partial_fit_with_all_classes(some_rule, settings):
    for setting in settings:
        X, y, w = late_stream(setting)
        fitted = setting.classifier(some_rule, passes=2).fit(X, y, sample_weight=w)
        streamed = setting.classifier(some_rule)
        for _ in range(2):
            streamed.partial_fit(X, y, classes=np.unique(y), sample_weight=w)
        assert learnt(fitted) == learnt(streamed), setting
        assert not np.any(fitted.certificate_.since)


def test_late_columns_were_zero_before(some_rule, settings):
    for setting in settings:
        X, y, w = late_stream(setting)
        grown, wide = setting.classifier(some_rule, grow_features=True), setting.classifier(some_rule)
        for start, stop, n_columns in ((0, 10, 2), (10, 30, 5), (30, 50, 3), (50, N_ROWS, N_FEATURES)):
            storage, rows = (csr if start else np.asarray), slice(start, stop)
            part = np.where(np.arange(N_FEATURES) < n_columns, X[rows], 0.0).astype(setting.dtype)
            narrow = np.ascontiguousarray(part[:, :n_columns])
            grown.partial_fit(storage(narrow), y[rows], sample_weight=w[rows])
            wide.partial_fit(storage(part), y[rows], sample_weight=w[rows])
        assert grown.n_features_in_ == N_FEATURES
        assert learnt(grown) == learnt(wide), setting


def test_late_features_of_dicts_were_zero_before(some_rule):
    for setting in PAIRWISE_SETTINGS:
        X, y, _ = late_stream(setting)
        X[:HALF, ::2] = 0.0
        learner = setting.classifier(some_rule)
        learner.learn_many(dicts(X), y)
        columns = learner.features_.astype(int)
        expected = setting.classifier(some_rule).partial_fit(X, y)
        scale = 1e4 * np.finfo(setting.dtype).eps * np.abs(expected.coef_).max()
        np.testing.assert_allclose(learner.coef_, expected.coef_[:, columns], atol=scale)
        np.testing.assert_array_equal(learner.mistakes_, expected.mistakes_)


def test_heads_of_one_sweep_are_separate_binary_learners(rule):
    for setting in PAIRWISE_SETTINGS:
        if setting.learning == "ovr":
            X, y = stream(150, 9, n_classes=6, dtype=setting.dtype)
            together = tensors(setting.classifier(rule).fit(X, y))
            for code in range(6):
                alone = tensors(setting.classifier(rule).fit(X, y == code))
                assert_same_head(together, code, alone, 0)


def assert_same_head(these, k, those, j):
    """Compare weights, averages, scalars and state of one head of each of two models."""
    layout = {"head.positive", "head.first", "head.stop"}
    scalars = {name for name in these if name.startswith("head.")} - layout
    for name in (*scalars, "bias", "total_bias", "state"):
        assert these[name][k].tobytes() == those[name][j].tobytes(), name
    for name in {"v", "total"} & these.keys():
        np.testing.assert_array_equal(these[name][:, k], those[name][:, j])


def test_averaging_changes_no_last_hypothesis(some_rule):
    for setting in PAIRWISE_SETTINGS:
        X, y, w = late_stream(setting)
        plain, averaged = (
            setting.classifier(some_rule).set_params(average=average).partial_fit(X, y, sample_weight=w)
            for average in (False, True)
        )
        assert averaged.certificate_.last == plain.certificate_
        these, those = tensors(plain), tensors(averaged)
        for name in ("v", "bias", "state"):
            np.testing.assert_array_equal(those[name], these[name])


def test_moved_columns_change_rounding_only(some_rule):
    """Columns in another order, or far apart as hashing leaves them."""
    for setting, width in itertools.product(PAIRWISE_SETTINGS, (13, 4096)):
        X, y = stream(150, 13, n_classes=setting.n_classes, noise=0.0, dtype=setting.dtype)
        slots = np.random.default_rng(1).permutation(width)[:13]
        moved = scipy.sparse.lil_array((len(X), width), dtype=setting.dtype)
        moved[:, slots] = X
        here = setting.classifier(some_rule).fit(X, y)
        there = setting.classifier(some_rule).fit(moved.tocsr(), y)
        tolerance = 1e4 * np.finfo(setting.dtype).eps * np.linalg.norm(here.coef_)
        np.testing.assert_allclose(there.coef_[:, slots], here.coef_, atol=tolerance)
        np.testing.assert_allclose(there.intercept_, here.intercept_, atol=tolerance)
        assert np.count_nonzero(there.coef_) == np.count_nonzero(here.coef_)


def test_stored_zeros_change_rounding_only(some_rule):
    X, y = stream(150, 13, noise=0.0)
    here, there = (OnlineClassifier(some_rule).fit(csr(X, explicit_zeros=zeros), y) for zeros in (False, True))
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-9)


def test_same_input_and_seed_give_the_same_bits(some_rule):
    X, y = stream(200, 9, n_classes=3)
    one, again, other = (
        OnlineClassifier(some_rule, shuffle=True, passes=2, random_state=seed).fit(X.copy(), y) for seed in (7, 7, 8)
    )
    assert learnt(one) == learnt(again)
    assert learnt(one) != learnt(other)
    random = np.random.RandomState(7)
    order = np.concatenate([random.permutation(len(X)) for _ in range(2)])
    assert learnt(OnlineClassifier(some_rule).fit(X[order], y[order])) == learnt(one)


def test_zero_rows_change_nothing_but_the_count_without_an_intercept(some_rule, settings):
    for setting in settings:
        if setting.fit_intercept:
            continue
        X, y, _ = late_stream(setting)
        places = np.arange(12, N_ROWS, 20)
        expected = setting.classifier(some_rule).partial_fit(X, y)
        for storage in (np.asarray, csr, lambda X: csr(X, explicit_zeros=True)):
            zeros = np.where(np.arange(N_FEATURES) % 2, -0.0, 0.0).astype(setting.dtype)
            learner = setting.classifier(some_rule).partial_fit(X[:12], y[:12])
            for start, stop in itertools.pairwise([*places.tolist(), N_ROWS]):
                learner.partial_fit(storage(zeros[None, :]), [y[0]])
                some = slice(start, stop)
                learner.partial_fit(X[some], y[some])
            assert learner.n_seen_ == expected.n_seen_ + len(places)
            np.testing.assert_array_equal(learner.coef_, expected.coef_)
            np.testing.assert_array_equal(learner.intercept_, expected.intercept_)
            for name in ("bound", "best_bound", "mistakes", "updates", "coef_sum", "norm"):
                found, plain = (getattr(one.certificate_, name) for one in (learner, expected))
                np.testing.assert_array_equal(found, plain)


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.scale_invariant])
def test_scaling_all_examples_changes_no_prediction(name):
    for n_classes, factor in itertools.product((2, 4), (2.0**-12, 2.0**9, 1000.0)):
        X, y = stream(300, 8, n_classes=n_classes)
        for average in (False, True):
            here, there = (
                OnlineClassifier(name, average=average, fit_intercept=False).fit(c * X, y) for c in (1.0, factor)
            )
            np.testing.assert_array_equal(there.predict(factor * X), here.predict(X))
            np.testing.assert_array_equal(there.mistakes_, here.mistakes_)
            np.testing.assert_array_equal(there.updates_, here.updates_)
