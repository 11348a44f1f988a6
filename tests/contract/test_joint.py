"""Section 9 of the theory: one hypothesis for all classes, learnt by any rule and certified."""

import functools
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from sklearn.datasets import load_digits

from maxcosine import RULES, OnlineClassifier
from tests.contract.streams import (
    augmented,
    averaged_or_not,
    bits,
    both_types,
    csr,
    every_rule,
    new_model,
    one_by_one,
    signs,
    stacked,
    stream,
    taught,
    teach,
    with_intercept_or_not,
)
from tests.contract.test_finite import assert_finite, every_stream, make_stream
from tests.reference import all_joint_examples, attained_margin, maximal_margin, norm, run_joint
from tests.rules.test_reference import assert_same, close

ROUNDING = {"float32": 1e-5, "float64": 1e-12}
TOLERANCE = {"float32": 1e-4, "float64": 1e-9}

BUDGETED = [name for name, rule in RULES.items() if rule.own_bound]
SCALE_INVARIANT = [name for name, rule in RULES.items() if rule.scale_invariant]

jointly = functools.partial(taught, multiclass="joint")
new_joint_model = functools.partial(new_model, multiclass="joint")
JointClassifier = functools.partial(OnlineClassifier, multiclass="joint")


def separable(n, n_features, n_classes=4, *, margin=0.05, fit_intercept=False, dtype=np.float64, seed=0):
    """Rows whose classes W* of Frobenius norm 1 tells apart with `margin`. Returns X, codes and W*."""
    rng = np.random.default_rng(seed)
    W_star = rng.normal(size=(n_classes, n_features + fit_intercept))
    W_star[:, n_features:] *= 0.2  # no class drowns in another's constant
    W_star -= W_star.mean(axis=0)
    W_star /= np.linalg.norm(W_star)
    X = (rng.normal(size=(100 * n, n_features)) / np.sqrt(n_features)).astype(dtype)
    scores = augmented(X, fit_intercept).astype(np.float64) @ W_star.T
    codes = scores.argmax(axis=1)
    scores.sort(axis=1)
    wide = scores[:, -1] - scores[:, -2] >= margin
    some = [np.flatnonzero(wide & (codes == code))[: n // n_classes] for code in range(n_classes)]
    chosen = rng.permutation(np.concatenate(some))
    assert len(chosen) == n
    return X[chosen], codes[chosen], W_star


def seen_space(X, fit_intercept):
    """The rows as the learner sees them, in float64; zero rows stay zero."""
    return augmented(X, fit_intercept).astype(np.float64) * X.any(axis=1, keepdims=True)


def blocks(model):
    """The hypothesis that predicts, one block a row, and its constant weights if there are any."""
    heads = model.heads
    W = stacked(heads.averaged_weights() if heads.average else heads.weights())
    return W[:, : heads.n_features + heads.fit_intercept]


# The same as the rule on Kesler's examples

STREAMS = {"separable": {"noise": 0.0, "n_features": 6}, "noisy": {"noise": 0.05, "n_features": 20}}


def assert_same_model(model, expected):
    """The certificate and W, or where its length means nothing, the point W / Lambda of the hull."""
    certificate, W, coef_sum = model.certificate(), expected.w, expected.coef_sum
    assert_same(certificate.last, expected)
    if certificate.averaged:
        W, coef_sum = expected.averaged_w, expected.averaged_coef_sum
        bound = coef_sum / norm(W)
        assert certificate.bound == close(bound)
        assert certificate.best_bound == close(max(expected.best_bound, bound))
    found = blocks(model).ravel()
    if model.rule.scale_free:
        found, W = found / model.heads.exact_coef_sum, W / coef_sum
    np.testing.assert_allclose(found, W, rtol=1e-9, atol=1e-9 * norm(W))


@every_rule
@averaged_or_not
@with_intercept_or_not
@pytest.mark.parametrize("kind", STREAMS)
def test_joint_learning_is_the_rule_on_keslers_examples(name, average, fit_intercept, kind):
    for seed in range(2):
        X, codes = stream(100, n_classes=4, seed=seed, **STREAMS[kind])
        model = jointly(name, X, codes, n_classes=4, average=average, fit_intercept=fit_intercept)
        assert_same_model(model, run_joint(name, seen_space(X, fit_intercept), codes, 4, average=average))


@every_rule
@averaged_or_not
def test_starting_anew_clears_every_block(name, average):
    """Each row is much shorter than the last: the ROMMAs that are aggressive start anew from many."""
    for seed in range(3):
        X, codes = stream(10, 3, n_classes=3, noise=0.0, density=1.0, seed=seed)
        X *= 0.3 ** np.arange(10)[:, None]
        expected = run_joint(name, X, codes, 3, average=average)
        assert expected.kinds.count("II") > 1 or not RULES[name].restarts
        assert_same_model(jointly(name, X, codes, n_classes=3, average=average), expected)


@every_rule
@both_types
@averaged_or_not
def test_blocks_sum_to_zero_at_every_step(name, dtype, average):
    X, codes = stream(50, 6, n_classes=4, dtype=dtype)
    options = {"n_classes": 4, "average": average, "fit_intercept": True}
    for model in one_by_one(new_joint_model(name, X, **options), X, codes):
        W = blocks(model)
        assert np.linalg.norm(W.sum(axis=0)) <= TOLERANCE[dtype] * np.linalg.norm(W)


def tracked_sq_w(heads):
    return (np.square(heads.table["scale"]) * heads.table["sq_v"])[0]


@every_rule
@both_types
@with_intercept_or_not
def test_tracked_norm_is_that_of_all_blocks_at_every_step(name, dtype, fit_intercept):
    X, codes = stream(50, 6, n_classes=5, dtype=dtype)
    options = {"n_classes": 5, "fit_intercept": fit_intercept}
    for model in one_by_one(new_joint_model(name, X, **options), X, codes):
        W = blocks(model)
        assert tracked_sq_w(model.heads) == pytest.approx(np.square(W).sum(), rel=TOLERANCE[dtype])
        assert model.certificate().norm == pytest.approx(np.linalg.norm(W), rel=TOLERANCE[dtype])


@every_rule
@both_types
@averaged_or_not
def test_tracked_lambda_is_the_sum_of_the_coefficients_at_every_step(name, dtype, average):
    """A column that is 1 for a class and 0 for the others: its weight in the block of the class is the sum
    of the coefficients of the rows of this class."""
    X, codes = stream(50, 6, n_classes=4, dtype=dtype)
    X = np.column_stack([X, np.eye(4, dtype=dtype)[codes]])
    for model in one_by_one(new_joint_model(name, X, n_classes=4, average=average), X, codes):
        added_up = np.trace(blocks(model)[:, 6:])
        assert model.heads.exact_coef_sum[0] == pytest.approx(added_up, rel=TOLERANCE[dtype])
        assert model.certificate().coef_sum <= added_up * (1 + ROUNDING[dtype])


@every_rule
@both_types
@averaged_or_not
def test_zero_rows_change_nothing_but_seen(name, dtype, average):
    X, codes = stream(60, 6, n_classes=3, dtype=dtype)
    options = {"n_classes": 3, "average": average, "fit_intercept": True}
    expected = jointly(name, X, codes, **options)
    for storage in (np.asarray, csr):
        zeros = storage(np.zeros((9, 6), dtype))
        model = teach(new_joint_model(name, X, **options), zeros, [0, 1, 2] * 3)
        teach(teach(model, X[:30], codes[:30]), zeros, [1, 0, 2] * 3)
        teach(model, X[30:], codes[30:])
        assert model.heads.table["seen"] == expected.heads.table["seen"] + 18
        model.heads.table["seen"] -= 18
        assert bits(model) == bits(expected)


# The same bits


@every_rule
@both_types
@averaged_or_not
def test_dense_and_sparse_rows_give_the_same_bits(name, dtype, average):
    for n_classes in (2, 3, 5, 9):
        X, codes = stream(120, 13, n_classes=n_classes, dtype=dtype)
        options = {"n_classes": n_classes, "average": average, "fit_intercept": True}
        dense = bits(jointly(name, X, codes, **options))
        for index in (np.int32, np.int64):
            assert bits(jointly(name, csr(X, index), codes, **options)) == dense


def learn_in_chunks(learner, X, y, cuts):
    cuts = [0, *sorted(set(cuts) - {0, len(y)}), len(y)]
    for start, stop in itertools.pairwise(cuts):
        learner.partial_fit(X[start:stop], y[start:stop], classes=np.unique(y))
    return learner


@every_rule
@averaged_or_not
@settings(max_examples=6, deadline=None)
@given(cuts=st.lists(st.integers(1, 119), max_size=10), sparse=st.booleans(), single=st.booleans())
def test_any_chunking_gives_the_bits_of_one_pass(name, average, cuts, sparse, single):
    X, y = stream(120, 7, n_classes=4, dtype=np.float32 if single else np.float64)
    X = csr(X) if sparse else X
    whole = JointClassifier(name, average=average).fit(X, y)
    cut = learn_in_chunks(JointClassifier(name, average=average), X, y, cuts)
    assert bits(cut._model) == bits(whole._model)
    assert cut.certificate_ == whole.certificate_


@every_rule
@both_types
@averaged_or_not
def test_row_at_a_time_gives_the_bits_of_one_pass(name, dtype, average):
    X, y = stream(40, 7, n_classes=4, dtype=dtype)
    whole = JointClassifier(name, average=average).fit(X, y)
    single = learn_in_chunks(JointClassifier(name, average=average), X, y, range(len(y)))
    assert bits(single._model) == bits(whole._model)


@every_rule
@averaged_or_not
def test_passes_are_so_many_partial_fits(name, average):
    X, y = stream(80, 6, n_classes=4)
    twice = JointClassifier(name, average=average, passes=2).fit(X, y)
    calls = learn_in_chunks(JointClassifier(name, average=average), np.tile(X, (2, 1)), np.tile(y, 2), [80])
    assert bits(twice._model) == bits(calls._model)
    assert twice.n_seen_ == 2 * len(X)


@every_rule
@averaged_or_not
def test_a_pickle_goes_on_with_the_same_bits(name, average):
    X, y = stream(80, 6, n_classes=4)
    learner = JointClassifier(name, average=average).fit(X[:40], y[:40])
    copy = pickle.loads(pickle.dumps(learner))
    assert bits(copy._model) == bits(learner._model)
    np.testing.assert_array_equal(copy.decision_function(X), learner.decision_function(X))
    learner.partial_fit(X[40:], y[40:])
    copy.partial_fit(X[40:], y[40:])
    assert bits(copy._model) == bits(learner._model)
    assert copy.certificate_ == learner.certificate_


@every_rule
def test_sparse_weights_learn_the_same_bits(name):
    X, y = stream(120, 9, n_classes=4)
    X[:60, 2::3] = 0.0
    plain, thin = (JointClassifier(name, average=True).fit(X[:60], y[:60]) for _ in range(2))
    thin.sparsify().partial_fit(X[60:], y[60:])
    np.testing.assert_array_equal(thin.coef_.toarray(), plain.partial_fit(X[60:], y[60:]).coef_)
    assert thin.certificate_.updates == plain.certificate_.updates


# Two classes


@every_rule
@averaged_or_not
def test_two_classes_are_one_learner_of_examples_longer_by_the_root_of_two(name, average):
    for seed in range(3):
        X, codes = stream(120, 6, noise=0.02, seed=seed)
        together = jointly(name, X, codes, average=average)
        longer = taught(name, np.sqrt(2.0) * X, codes, average=average)
        found, expected = together.certificate(), longer.certificate()
        for count in ("seen", "mistakes", "updates"):
            assert getattr(found, count) == getattr(expected, count)
        assert found.margin_ceiling == close(expected.margin_ceiling)
        w = longer.hypothesis()[0][0]
        W = blocks(together) * (norm(w) / np.linalg.norm(blocks(together)))
        np.testing.assert_allclose(W, [-w / np.sqrt(2), w / np.sqrt(2)], atol=1e-9 * norm(w))


@pytest.mark.parametrize("name", SCALE_INVARIANT)
@averaged_or_not
@with_intercept_or_not
def test_two_classes_are_predicted_as_by_one_hypothesis(name, average, fit_intercept):
    for seed in range(3):
        X, y = stream(120, 6, noise=0.02, seed=seed)
        options = {"rule": name, "average": average, "fit_intercept": fit_intercept}
        together, alone = JointClassifier(**options).fit(X, y), OnlineClassifier(**options).fit(X, y)
        np.testing.assert_array_equal(together.predict(X), alone.predict(X))
        assert (together.mistakes_, together.updates_) == (alone.mistakes_, alone.updates_)
        found, expected = together.certificate_, alone.certificate_
        assert found.margin_ceiling == close(np.sqrt(2.0) * expected.margin_ceiling)
        margin = np.sqrt(2.0) * alone.attained_margin(X, y)
        assert together.attained_margin(X, y) == pytest.approx(margin)


@with_intercept_or_not
def test_joint_margin_of_two_classes_is_the_root_of_two_times_the_plain_one(fit_intercept):
    X, codes, _ = separable(60, 4, n_classes=2, fit_intercept=fit_intercept)
    Z = augmented(X, fit_intercept)
    margin = maximal_margin(Z, signs(codes))
    assert margin > 0.01
    pairs = all_joint_examples(Z, codes, 2)
    assert maximal_margin(pairs, np.ones(len(pairs))) == pytest.approx(np.sqrt(2.0) * margin)


# What is proven


@every_rule
@both_types
@with_intercept_or_not
@averaged_or_not
def test_cosine_to_the_separator_is_at_least_gamma_ell(name, dtype, fit_intercept, average):
    X, codes, W_star = separable(60, 5, fit_intercept=fit_intercept, dtype=dtype)
    pairs = all_joint_examples(augmented(X, fit_intercept).astype(np.float64), codes, 4)
    gamma = (pairs @ W_star.ravel()).min()
    assert gamma >= 0.049
    options = {"n_classes": 4, "fit_intercept": fit_intercept, "average": average}
    best_of_last = 0.0
    for model in one_by_one(new_joint_model(name, X, **options), X, codes):
        W, certificate = blocks(model), model.certificate()
        cosine = np.vdot(W, W_star) / np.linalg.norm(W)
        assert cosine >= gamma * certificate.bound - ROUNDING[dtype]
        assert certificate.best_bound >= certificate.bound > 0.0
        assert certificate.last.best_bound >= best_of_last * (1 - ROUNDING[dtype])
        best_of_last = certificate.last.best_bound
        assert gamma <= certificate.margin_ceiling * (1 + ROUNDING[dtype])


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "intercept"])
def solved(request):
    """Rows that can be told apart, Kesler's examples of them, and the maximal joint margin."""
    X, codes, _ = separable(48, 4, margin=0.03, fit_intercept=request.param, seed=1)
    pairs = all_joint_examples(augmented(X, request.param), codes, 4)
    margin = maximal_margin(pairs, np.ones(len(pairs)))
    assert margin >= 0.03
    return X, codes, request.param, pairs, margin


@every_rule
@both_types
@averaged_or_not
def test_maximal_margin_lies_between_the_attained_one_and_the_ceiling(name, dtype, average, solved):
    X, codes, fit_intercept, pairs, margin = solved
    X = X.astype(dtype)
    learner = JointClassifier(name, average=average, fit_intercept=fit_intercept, passes=20).fit(X, codes)
    attained = learner.attained_margin(X, codes)
    W = blocks(learner._model).ravel()
    assert attained == pytest.approx(attained_margin(W, pairs, np.ones(len(pairs))), abs=ROUNDING["float32"])
    assert attained <= margin * (1 + 1e-5)
    assert margin <= learner.certificate_.margin_ceiling * (1 + 1e-5)
    assert margin <= learner.certificate_.last.margin_ceiling * (1 + 1e-5)


@every_rule
@averaged_or_not
@with_intercept_or_not
def test_hypothesis_is_a_point_of_the_hull_on_noisy_data(name, average, fit_intercept):
    """So no weights have a margin above its norm, whether or not the classes can be told apart."""
    X, codes = stream(60, 4, n_classes=3, noise=0.3, seed=2)
    options = {"n_classes": 3, "average": average, "fit_intercept": fit_intercept}
    model = jointly(name, X, codes, **options)
    point = blocks(model).ravel() / model.heads.exact_coef_sum
    pairs = all_joint_examples(seen_space(X, fit_intercept), codes, 3)
    pairs = pairs[pairs.any(axis=1)]
    _, distance = nnls(np.vstack([pairs.T, np.ones(len(pairs))]), np.append(point, 1.0))
    assert distance <= 1e-9
    certificate = model.certificate()
    assert certificate.bound * norm(point) <= 1 + 1e-9
    assert certificate.margin_ceiling >= maximal_margin(pairs, np.ones(len(pairs))) - 1e-9


@pytest.mark.parametrize("name", [*BUDGETED, "perceptron"])
@both_types
@with_intercept_or_not
def test_mistakes_are_at_most_twice_the_square_of_radius_by_margin(name, dtype, fit_intercept):
    for seed in range(3):
        X, codes, _ = separable(60, 5, fit_intercept=fit_intercept, dtype=dtype, seed=seed)
        Z = augmented(X, fit_intercept).astype(np.float64)
        pairs = all_joint_examples(Z, codes, 4)
        margin = maximal_margin(pairs, np.ones(len(pairs)))
        options = {"n_classes": 4, "fit_intercept": fit_intercept}
        model = jointly(name, np.tile(X, (10, 1)), np.tile(codes, 10), **options)
        radius = np.linalg.norm(Z, axis=1).max()
        assert model.certificate().mistakes <= 2 * (radius / margin) ** 2 + 1e-6


@pytest.mark.parametrize("name", BUDGETED)
@both_types
@with_intercept_or_not
def test_mistakes_to_come_are_within_the_budget(name, dtype, fit_intercept):
    X, codes, _ = separable(60, 5, fit_intercept=fit_intercept, dtype=dtype, seed=2)
    pairs = all_joint_examples(augmented(X, fit_intercept).astype(np.float64), codes, 4)
    radius = np.linalg.norm(pairs, axis=1).max() * (1 + 1e-9)  # of the space of the certificate
    margin = maximal_margin(pairs, np.ones(len(pairs))) * (1 - 1e-5)
    X, codes = np.tile(X, (4, 1)), np.tile(codes, 4)
    history = []
    options = {"n_classes": 4, "fit_intercept": fit_intercept}
    for model in one_by_one(new_joint_model(name, X, **options), X, codes):
        certificate = model.certificate()
        history.append((certificate.mistakes, certificate.mistake_budget(margin, radius)))
    mistakes, budget = np.array(history).T
    assert np.all(mistakes[-1] - mistakes <= budget + 1e-6)
    assert np.isnan(certificate.mistake_budget(1.01 * certificate.margin_ceiling, radius))


@pytest.mark.parametrize("name", [name for name in RULES if name not in BUDGETED])
def test_other_rules_have_no_budget(name):
    X, codes, _ = separable(20, 3)
    with pytest.raises(ValueError, match="no mistake budget"):
        jointly(name, X, codes, n_classes=4).certificate().mistake_budget(0.1, 1.0)


@every_rule
def test_first_example_is_a_mistake_and_its_ceiling_the_length_of_keslers_example(name):
    certificate = jointly(name, np.array([[0.0, 0.0], [3.0, 4.0]]), [0, 2], n_classes=3).certificate()
    assert (certificate.seen, certificate.mistakes, certificate.updates) == (2, 1, 1)
    assert certificate.margin_ceiling == pytest.approx(5.0 * np.sqrt(2.0))


@every_rule
def test_nothing_seen_proves_nothing(name):
    X = np.zeros((3, 2))
    certificate = jointly(name, X, [0, 1, 2], n_classes=3, average=True).certificate()
    assert (certificate.bound, certificate.margin_ceiling, certificate.seen) == (0.0, np.inf, 3)
    assert "nothing yet" in repr(certificate)


@every_rule
@averaged_or_not
def test_certificate_is_one_for_all_classes_and_says_so(name, average):
    X, y = stream(60, 5, n_classes=4)
    learner = JointClassifier(name, average=average).fit(X, y)
    certificate = learner.certificate_
    assert certificate.joint
    assert certificate.classes is None
    numbers = ("coef_sum", "norm", "bound", "best_bound", "margin_ceiling", "since", "seen", "mistakes")
    assert all(np.isscalar(getattr(certificate, number)) for number in numbers)
    assert (certificate.since, certificate.seen) == (0, 60)
    assert f"joint {name} hypothesis" in repr(certificate)
    assert "no weights tell the classes of the 60 examples seen apart" in repr(certificate)
    assert "once for each class" in repr(certificate)
    assert "joint" not in repr(OnlineClassifier(name, average=average).fit(X, y).certificate_)


# Streams that hurt


@functools.cache
def hard_stream(make, dtype):
    """Four classes: the two of the stream, each of them twice and at random."""
    X, codes = make_stream(make, dtype)
    return X, codes + 2 * np.random.default_rng(1).integers(0, 2, len(codes))


@every_stream
@every_rule
def test_every_stream_leaves_a_finite_model_that_is_tracked(make, name):
    for dtype in ("float32", "float64"):
        X, codes = hard_stream(make, dtype)
        model = jointly(name, X, codes, n_classes=4, average=True, fit_intercept=True)
        heads, certificate = model.heads, model.certificate()
        assert heads.table["seen"][0] == len(X)
        assert_finite(model)
        v, bias = heads.arrays.v.astype(np.float64), heads.arrays.bias.astype(np.float64)
        assert heads.table["sq_v"][0] == pytest.approx(np.square(v).sum() + np.square(bias).sum(), rel=1e-2)
        eps, radius = np.finfo(dtype).eps, heads.table["radius"][0]
        for proven in (certificate, certificate.last):
            assert np.isfinite([proven.coef_sum, proven.norm, proven.bound, proven.best_bound]).all()
            assert proven.bound * eps * radius <= 1.01


@every_rule
@both_types
def test_one_direction_never_loses_its_ceiling(name, dtype):
    """Rows of one class along one direction u: the best weights are (-u, 2u, -u) / sqrt(6)."""
    rng = np.random.default_rng(0)
    lengths = np.exp(rng.uniform(-8, 8, 3000))
    X = (lengths[:, None] * np.array([0.6, 0.0, 0.8])).astype(dtype)
    margin = np.sqrt(1.5) * np.linalg.norm(X.astype(np.float64), axis=1).min()
    certificate = jointly(name, X, np.ones(3000), n_classes=3, average=True).certificate()
    for proven in (certificate, certificate.last):
        assert proven.margin_ceiling >= margin * (1 - 1e4 * np.finfo(dtype).eps)


# The estimator


@every_rule
@averaged_or_not
def test_digits_are_told_apart(name, average):
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    learner = JointClassifier(name, average=average, random_state=0, shuffle=True).fit(X[:1200], y[:1200])
    assert learner.score(X[1200:], y[1200:]) > 0.8


@every_rule
@averaged_or_not
@with_intercept_or_not
def test_scores_are_those_of_the_weights(name, average, fit_intercept):
    for n_classes in (2, 3, 5):
        X, y = stream(80, 6, n_classes=n_classes)
        learner = JointClassifier(name, average=average, fit_intercept=fit_intercept).fit(X, y)
        n_scores = 1 if n_classes == 2 else n_classes
        assert learner.coef_.shape == (n_scores, 6)
        assert learner.intercept_.shape == (n_scores,)
        assert fit_intercept or not learner.intercept_.any()
        scores = learner.decision_function(X)
        assert scores.shape == ((80,) if n_classes == 2 else (80, n_classes))
        expected = X @ learner.coef_.T + learner.intercept_
        np.testing.assert_allclose(scores.reshape(80, -1), expected, atol=1e-9 * np.abs(expected).max())
        best = (scores > 0).astype(int) if n_classes == 2 else scores.argmax(axis=1)
        np.testing.assert_array_equal(learner.predict(X), learner.classes_[best])
        np.testing.assert_array_equal(learner.set_params(n_jobs=2).decision_function(X), scores)


def test_joint_learning_cannot_be_begun_or_ended_between_partial_fits():
    X, y = stream(40, 5, n_classes=3)
    for then, now in (("joint", "ovr"), ("ovr", "joint")):
        learner = OnlineClassifier(multiclass=then).fit(X, y)
        before = bits(learner._model)
        with pytest.raises(ValueError, match=f"multiclass was '{then}' when learning began and is '{now}'"):
            learner.set_params(multiclass=now).partial_fit(X, y)
        assert bits(learner._model) == before


@every_rule
def test_one_class_so_far_is_predicted_and_teaches_nothing(name):
    X, _ = stream(30, 4)
    learner = JointClassifier(name, average=True).partial_fit(X, ["only"] * 30)
    assert not learner.coef_.any()
    assert learner.predict(X).tolist() == ["only"] * 30
    certificate = learner.certificate_
    assert (certificate.mistakes, certificate.updates, certificate.margin_ceiling) == (0, 0, np.inf)


@every_rule
@averaged_or_not
def test_a_class_that_has_not_come_has_no_weights(name, average):
    """Not even when a zero row has brought it: the two that were there keep theirs."""
    X, y = stream(60, 5, n_classes=2)
    learner = JointClassifier(name, average=average).partial_fit(X, y)
    learner.partial_fit(np.zeros((1, 5)), [2])
    assert learner.coef_.shape == (3, 5)
    assert learner.coef_[:2].any(axis=1).all()
    assert not learner.coef_[2].any()
    assert learner.intercept_[2] == 0.0
    np.testing.assert_allclose(learner.coef_[0], -learner.coef_[1], rtol=1e-9)


@every_rule
def test_weights_of_all_classes_are_learnt_from_the_best_wrong_one_only(name):
    """The first row is taken for the first wrong class; the others keep no weights."""
    model = jointly(name, np.array([[1.0, 2.0]]), [2], n_classes=4)
    W = blocks(model)
    assert not W[1].any()
    assert not W[3].any()
    np.testing.assert_array_equal(W[2], -W[0])
    assert np.dot(W[2], [1.0, 2.0]) > 0.0
