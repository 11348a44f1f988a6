"""Section 8 of the theory: models learnt on different data become one, certified on all of it."""

import functools
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

import maxcosine
from maxcosine import RULES, OnlineClassifier, maximise, merge
from maxcosine.merging import HOW, nearest_point
from maxcosine.model import Model
from tests.contract.streams import (
    augmented,
    averaged_or_not,
    bits,
    both_types,
    csr,
    every_rule,
    new_model,
    separable,
    signs,
    stacked,
    stream,
    taught,
    teach,
    with_intercept_or_not,
)
from tests.contract.test_finite import assert_finite
from tests.estimators.learners import everything, learnt, named
from tests.reference import all_joint_examples, cosine, maximal_margin, norm

# What a few hundred steps may round away of a bound.
ROUNDING = {"float32": 1e-4, "float64": 1e-11}
EPS = np.finfo(np.float64).eps

BUDGETED = [name for name, rule in RULES.items() if rule.own_bound]
RESTARTED = [name for name, rule in RULES.items() if rule.restart_state]
TIED = [name for name, rule in RULES.items() if rule.restart_norm]

both_ways = pytest.mark.parametrize("how", HOW)
both_kinds = pytest.mark.parametrize("multiclass", ["ovr", "joint"])


def parts(name, X, y, k=3, **options):
    """k models, each learnt on every k-th row."""
    classes = np.unique(y)
    return [
        OnlineClassifier(name, **options).partial_fit(X[i::k], y[i::k], classes=classes) for i in range(k)
    ]


def of_one_example(name, a, label=1):
    model = OnlineClassifier(name, fit_intercept=False)
    return model.partial_fit(np.atleast_2d(a), [label], classes=[0, 1])


def points(model):
    """u = w / Lambda of each hypothesis that a model predicts with, constant weights included."""
    heads = model._model.heads
    w = stacked(heads.hypotheses())
    return w.reshape(len(heads.table), -1) / heads.exact_coef_sum[:, None]


def bounds(models):
    return np.array([model.certificate_.bound for model in models])


def assert_same_points(model, other, tolerance=1e-12):
    assert model.classes_.tolist() == other.classes_.tolist()
    expected = points(other)
    assert np.abs(points(model) - expected).max() <= tolerance * np.abs(expected).max()


@functools.cache
def clusters(fit_intercept):
    """Rows of three classes that are told apart, each from the rest and jointly, and their best margins."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 90)
    X = 3.0 * np.eye(3)[y] + 0.3 * rng.normal(size=(90, 3))
    Z = augmented(X, fit_intercept)
    ovr = np.array([maximal_margin(Z, signs(y == code)) for code in range(3)])
    pairs = all_joint_examples(Z, y, 3)
    return X, y, {"ovr": ovr, "joint": maximal_margin(pairs, np.ones(len(pairs)))}


# The point of a hull nearest to the origin


def nearest_by_faces(U):
    """The distance from the origin to the hull of the rows of U: the nearest of its faces, all looked at."""
    shortest = np.inf
    for size in range(1, len(U) + 1):
        for face in itertools.combinations(range(len(U)), size):
            gram = U[list(face)] @ U[list(face)].T
            system = np.block([[gram, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            tau = np.linalg.lstsq(system, np.append(np.zeros(size), 1.0), rcond=None)[0][:-1]
            if tau.min() >= -1e-12 and abs(tau.sum() - 1) < 1e-9:
                shortest = min(shortest, norm(tau @ U[list(face)]))
    return shortest


def hulls(kind, n=40):
    rng = np.random.default_rng(0)
    for _ in range(n):
        k, d = rng.integers(1, 6), rng.integers(1, 6)
        U = rng.normal(size=(k, d))
        if kind == "to one side":
            U[:, 0] = np.abs(U[:, 0]) + 0.1
        if kind == "nearly parallel":
            U = U[0] + 1e-5 * U
        if kind == "of all lengths":
            U *= 10.0 ** rng.uniform(-14, 0, (k, 1)) / np.linalg.norm(U, axis=1, keepdims=True)
        yield U


@pytest.mark.parametrize("kind", ["anywhere", "to one side", "nearly parallel"])
def test_nearest_point_is_the_nearest_of_all_faces(kind):
    for U in hulls(kind):
        tau = nearest_point(U @ U.T)
        assert tau.min() >= 0.0
        assert tau.sum() == pytest.approx(1.0, abs=8 * EPS)
        assert norm(tau @ U) == pytest.approx(nearest_by_faces(U), rel=1e-9, abs=1e-7 * norm(U[0]))


def test_nearest_point_has_every_point_of_the_hull_behind_it():
    for U in hulls("to one side"):
        nearest = nearest_point(U @ U.T) @ U
        assert (U @ nearest).min() >= np.dot(nearest, nearest) * (1 - 1e-9)


def test_nearest_point_is_no_further_than_the_shortest_whatever_the_lengths():
    for U in hulls("of all lengths", 400):
        assert norm(nearest_point(U @ U.T) @ U) <= np.linalg.norm(U, axis=1).min() * (1 + 1e-9)


# Two models: the closed form


def assert_merged_by_the_closed_form(first, second):
    """Weights in proportion to ell_1 - c ell_2 and ell_2 - c ell_1, on vectors of length 1."""
    ((u_1,), (u_2,)), merged = map(points, (first, second)), merge([first, second])
    ell_1, ell_2, c = 1 / norm(u_1), 1 / norm(u_2), cosine(u_1, u_2)
    weights = np.array([ell_1 - c * ell_2, ell_2 - c * ell_1])
    if weights.min() > 0.0:
        ell = np.sqrt((ell_1**2 + ell_2**2 - 2 * c * ell_1 * ell_2) / (1 - c * c))
    else:
        weights, ell = np.array([ell_1 >= ell_2, ell_1 < ell_2]), max(ell_1, ell_2)
    (u,), direction = points(merged), weights @ np.array([ell_1 * u_1, ell_2 * u_2])
    assert u == pytest.approx(direction / norm(direction) / ell, rel=1e-9, abs=1e-9 / ell)
    assert merged.certificate_.bound == pytest.approx(ell, rel=1e-9)
    if abs(c) < 1.0:
        best = maximise(r=ell_1, p=ell_2, s=1.0, q=1.0, t=c)  # Lemma 3
        assert merged.certificate_.bound == pytest.approx(best.maximum, rel=1e-9)
        step = ell_2 * u_2 if best.argmax == np.inf else ell_1 * u_1 + best.argmax * ell_2 * u_2
        assert cosine(u, step) == pytest.approx(1.0, rel=1e-9)
    return min(weights) > 0.0


@every_rule
@averaged_or_not
def test_two_models_are_merged_by_the_closed_form(name, average):
    for seed in range(4):
        X, y, _ = separable(60, 4, margin=0.02, seed=seed)
        cut = 15 if seed % 2 else 30  # a model of few examples, or of half of them
        options = {"average": average, "fit_intercept": False}
        pair = [
            OnlineClassifier(name, **options).partial_fit(X[rows], y[rows], classes=[0, 1])
            for rows in (slice(cut), slice(cut, None))
        ]
        assert_merged_by_the_closed_form(*pair)


@every_rule
@pytest.mark.parametrize(
    ("a", "b", "mixed"),
    [
        ([1.0, 0.0], [0.0, 2.0], True),
        ([1.0, 1.0], [-1.0, 1.5], True),
        ([1.0, 0.0], [3.0, 1.0], False),  # behind the first
        ([1.0, 0.0], [1.0, 2.0], False),  # exactly beside it
        ([3.0, 4.0], [6.0, 8.0], False),  # parallel: c = 1
    ],
)
def test_models_of_one_example_are_merged_by_the_closed_form(name, a, b, mixed):
    pair = of_one_example(name, a), of_one_example(name, b)
    assert points(pair[0]) == pytest.approx(np.array([[*a, 0.0]]))  # u is the example itself
    assert assert_merged_by_the_closed_form(*pair) == mixed
    assert assert_merged_by_the_closed_form(*reversed(pair)) == mixed


def test_merging_examples_in_is_the_update_of_naromma():
    X, y, _ = separable(60, 3, margin=0.05)
    X *= np.random.default_rng(0).uniform(0.2, 3.0, (60, 1))  # of many lengths: all types of steps
    learner = of_one_example("naromma", X[0], y[0])
    merged = learner
    for a, label in zip(X[1:], y[1:], strict=True):
        merged = merge([merged, of_one_example("naromma", a, label)])
        learner.partial_fit(a[None], [label])
        assert_same_points(merged, learner, 1e-6)
        assert merged.certificate_.bound == pytest.approx(learner.certificate_.bound, rel=1e-9)


# What the merged bounds are


def data_for_merging(kind, dtype="float64"):
    if kind == "separable":
        return separable(240, 5, margin=0.05, dtype=dtype)[:2]
    return stream(240, 5, noise=0.2, dtype=dtype)


data_of_both_kinds = pytest.mark.parametrize("kind", ["separable", "noisy"])


@every_rule
@data_of_both_kinds
@both_types
def test_certified_bound_is_never_below_the_largest(name, kind, dtype):
    shards = parts(name, *data_for_merging(kind, dtype), 8, average=True)
    for models in (shards, shards[:2], shards[2:5]):
        merged, rest = merge(models).certificate_, 1 - ROUNDING[dtype]
        averaged, last = zip(*((m.certificate_, m.certificate_.last) for m in models), strict=True)
        for proven, before in ((merged, averaged), (merged.last, last)):
            assert proven.bound >= max(certificate.bound for certificate in before) * rest
            assert proven.best_bound >= max(certificate.best_bound for certificate in before) * rest


@every_rule
@data_of_both_kinds
@averaged_or_not
def test_mean_is_the_plain_mean_of_the_points(name, kind, average):
    models = parts(name, *data_for_merging(kind), 5, average=average)
    merged = merge(models, "mean")
    mean = np.mean([points(model) for model in models], axis=0)
    assert points(merged) == pytest.approx(mean, rel=1e-9, abs=1e-12 * norm(mean[0]))
    assert merged.certificate_.bound == pytest.approx(1 / norm(mean[0]), rel=1e-9)
    assert 1 / merged.certificate_.bound <= np.mean(1 / bounds(models)) * (1 + 1e-9)


@every_rule
@averaged_or_not
@both_kinds
def test_k_models_have_the_nearest_point_of_their_hull(name, average, multiclass):
    X, y, _ = clusters(True)
    models = parts(name, X, y, 6, average=average, multiclass=multiclass)
    merged = merge(models)
    for head, u in enumerate(points(merged)):
        hull = np.array([points(model)[head] for model in models])
        assert norm(u) == pytest.approx(maximal_margin(hull, np.ones(len(hull))), rel=1e-6)
        assert (hull @ u).min() >= np.dot(u, u) * (1 - 1e-9)


@every_rule
@averaged_or_not
def test_order_of_the_models_does_not_matter(name, average):
    models = parts(name, *separable(120, 4)[:2], 4, average=average)
    for how, order in itertools.product(HOW, ([3, 1, 0, 2], [1, 0, 3, 2])):
        expected, merged = merge(models, how), merge([models[i] for i in order], how)
        assert_same_points(merged, expected, 1e-8)
        assert merged.certificate_.bound == pytest.approx(expected.certificate_.bound, rel=1e-9)


@every_rule
def test_merging_step_by_step_never_proves_more_than_merging_at_once(name):
    models = parts(name, *separable(120, 4)[:2], 4)
    at_once, halves = merge(models), [merge(models[:2]), merge(models[2:])]
    assert merge(halves).certificate_.bound <= at_once.certificate_.bound * (1 + 1e-9)
    assert_same_points(
        merge([merge(models[:2], "mean"), merge(models[2:], "mean")], "mean"), merge(models, "mean")
    )


@every_rule
@averaged_or_not
@both_kinds
def test_copies_of_one_model_are_that_model(name, average, multiclass):
    X, y, _ = clusters(True)
    model = OnlineClassifier(name, average=average, multiclass=multiclass).fit(X, y)
    for how, copies in itertools.product(HOW, (1, 5)):
        merged = merge([model] * copies, how)
        assert_same_points(merged, model)
        assert np.allclose(merged.certificate_.bound, model.certificate_.bound, rtol=1e-12)
        assert np.allclose(merged.certificate_.best_bound, model.certificate_.best_bound, rtol=1e-12)
        assert np.array_equal(merged.predict(X), model.predict(X))


def test_rounding_that_only_one_model_suffered_costs_the_other_nothing():
    """A long run in float32 is certified with some slack; a longer point beside it may then prove more."""
    worn, fresh = (
        maxcosine.PAClassifier("pa1", C=1e-6, fit_intercept=False).partial_fit(X, np.ones(len(X)), [0, 1])
        for X in (np.full((200_000, 1), 1.0, np.float32), np.full((1, 1), 1.001, np.float32))
    )
    assert fresh.certificate_.bound > worn.certificate_.bound
    assert merge([worn, fresh]).certificate_.bound >= fresh.certificate_.bound * (1 - ROUNDING["float32"])


# The certificate is true of all examples together


@every_rule
@both_types
@with_intercept_or_not
@averaged_or_not
def test_cosine_to_the_separator_is_at_least_gamma_ell(name, dtype, fit_intercept, average):
    X, y, w_star = separable(120, 4, fit_intercept=fit_intercept, dtype=dtype)
    Z, Y = augmented(X, fit_intercept).astype(np.float64), signs(y)
    gamma, best = (Y * (Z @ w_star)).min(), maximal_margin(Z, Y)
    models = parts(name, X, y, 3, fit_intercept=fit_intercept, average=average)
    for merged in (merge(models, how) for how in HOW):
        w, proven = points(merged)[0, : len(w_star)], merged.certificate_
        assert cosine(w, w_star) >= gamma * proven.bound - ROUNDING[dtype]
        for certificate in (proven, proven.last):
            assert certificate.margin_ceiling >= best * (1 - 1e-6)
            assert certificate.seen == len(X)


@every_rule
@both_types
@both_kinds
def test_ceilings_of_several_classes_are_true_of_all_examples(name, dtype, multiclass):
    X, y, margins = clusters(True)
    models = parts(name, X.astype(dtype), y, 3, multiclass=multiclass, average=True)
    for proven in (merge(models, how).certificate_ for how in HOW):
        for certificate in (proven, proven.last):
            assert np.all(certificate.margin_ceiling >= margins[multiclass] * (1 - 1e-6))
            assert np.all(certificate.bound > 0.0)


@every_rule
def test_ceilings_are_true_of_labels_that_are_noise(name):
    """More columns than rows: any labels are separable, with a small margin."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(24, 30)), np.resize([0, 1, 1], 24)
    best = maximal_margin(X, signs(y))
    assert best > 0.1
    models = parts(name, X, y, 4, average=True, fit_intercept=False)
    for proven in (merge(models, how).certificate_ for how in HOW):
        assert proven.margin_ceiling >= best * (1 - 1e-9)
        assert proven.last.margin_ceiling >= best * (1 - 1e-9)


@every_rule
@both_types
@averaged_or_not
def test_models_of_long_noisy_streams_can_be_merged(name, dtype, average):
    """Where nothing separates, the ROMMAs claim all that rounding leaves to claim, and go on learning."""
    X, y = stream(8000, 5, noise=0.3, dtype=dtype)
    models = parts(name, X, y, 2, average=average)
    ceiling = min(model.certificate_.margin_ceiling for model in models)
    for merged in (merge(models, how) for how in HOW):
        assert_finite(merged._model)
        assert merged.certificate_.margin_ceiling <= ceiling * 1.01  # norms are tracked up to rounding
        assert_finite(merged.partial_fit(X[:100], y[:100])._model)


@every_rule
def test_digits_in_shards_predict_about_as_well_as_one_of_them(name):
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(X))
    X, y = X[rows] / 16.0, y[rows]
    models = parts(name, X[:1200], y[:1200], 4)
    alone = np.mean([model.score(X[1200:], y[1200:]) for model in models])
    assert merge(models, "mean").score(X[1200:], y[1200:]) >= alone - 0.02


# What a merged model says of itself


@every_rule
@averaged_or_not
def test_both_bounds_are_shown(name, average):
    models = parts(name, *separable(120, 4)[:2], 3, average=average)
    proven = {how: merge(models, how).certificate_ for how in HOW}
    for how in HOW:
        shown = proven[how].merge
        assert (shown.how, shown.models) == (how, 3)
        assert shown.certified == pytest.approx(proven["certified"].bound, rel=1e-12)
        assert shown.mean == pytest.approx(proven["mean"].bound, rel=1e-12)
        assert shown.certified >= shown.mean * (1 - 1e-12)
        assert proven[how].last.merge == shown
        bounds_shown = f"certified {shown.certified:.6g}, mean {shown.mean:.6g}"
        assert f"merged from 3 models by '{how}'; bounds at the merge: {bounds_shown}" in repr(proven[how])


@every_rule
def test_both_bounds_of_each_class_are_shown(name):
    X, y, _ = clusters(True)
    proven = merge(parts(name, X, y)).certificate_
    assert proven.merge.certified == pytest.approx(proven.bound, rel=1e-12)
    assert np.all(proven.merge.mean <= proven.merge.certified * (1 + 1e-12))
    low, high = proven.merge.certified.min(), proven.merge.certified.max()
    assert f"certified {low:.6g} to {high:.6g}, mean" in repr(proven)


def test_models_that_were_never_merged_show_nothing():
    X, y, _ = separable(20, 3)
    proven = OnlineClassifier().fit(X, y).certificate_
    assert proven.merge is None
    assert "merged" not in repr(proven)


@every_rule
@both_kinds
def test_examples_mistakes_and_updates_add_up(name, multiclass):
    X, y, _ = clusters(False)
    models = parts(name, X, y, 3, multiclass=multiclass)
    for merged in (merge(models, how) for how in HOW):
        assert merged.n_seen_ == len(X)
        for count in ("seen", "mistakes", "updates"):
            total = np.sum([getattr(model.certificate_, count) for model in models], axis=0)
            assert np.array_equal(getattr(merged.certificate_, count), total)


def test_merging_remembers_that_steps_were_weighted():
    X, y, _ = separable(60, 3)
    plain, weighted = parts("mcp", X, y, 2)
    weighted.partial_fit(X, y, sample_weight=np.full(len(X), 2.0))
    assert not merge([plain, plain]).certificate_.weighted
    assert merge([plain, weighted]).certificate_.weighted
    with pytest.raises(ValueError, match="sample_weight"):
        merge([plain, weighted]).certificate_.mistake_budget(0.01, 1.0)


@every_rule
def test_models_that_are_merged_stay_as_they_were(name):
    X, y, _ = clusters(True)
    models = parts(name, X, y, average=True)
    models[1].sparsify()
    before = [everything(model) for model in models]
    for how in HOW:
        merge(models, how).partial_fit(X, y)
        assert [everything(model) for model in models] == before


@every_rule
@both_ways
def test_same_models_give_the_same_bits(name, how):
    models = parts(name, *stream(200, 6, noise=0.05), 3, average=True)
    assert bits(merge(models, how)._model) == bits(merge(models, how)._model)
    assert bits(merge(iter(models), how)._model) == bits(merge(tuple(models), how)._model)


@every_rule
def test_a_merged_model_is_of_the_type_of_the_first(name):
    X, y, _ = separable(60, 3)
    for first in (named(name, passes=2), OnlineClassifier(name, shuffle=True, random_state=3)):
        second = OnlineClassifier(name)
        merged = merge([model.partial_fit(X, y) for model in (first, second)])
        assert type(merged) is type(first)
        assert merged is not first
        assert merged.get_params() == first.get_params()
        assert learnt(clone(merged).fit(X, y)) == learnt(clone(first).fit(X, y))
        assert type(merge([second, first])) is OnlineClassifier


def test_a_merged_model_has_the_parameters_of_the_first():
    X, y, _ = separable(60, 3)
    first, second = (maxcosine.PAClassifier("pa1", C=C).fit(X, y) for C in (0.1, 2.0))
    merged = merge([first, second])
    assert merged.C == 0.1
    assert merged._model.heads.arrays.params[0, 0] == 0.1


@every_rule
@both_ways
@both_kinds
def test_models_as_values_can_be_merged(name, how, multiclass):
    X, y, _ = clusters(False)
    learners = parts(name, X, y, 2, fit_intercept=False, multiclass=multiclass)
    values = [taught(name, X[i::2].copy(), y[i::2], n_classes=3, multiclass=multiclass) for i in range(2)]
    merged = merge(values, how)
    assert type(merged) is Model
    assert bits(merged) == bits(merge(learners, how)._model)
    assert merged.certificate() == merge(learners, how).certificate_
    assert type(merge([learners[0], values[1]], how)) is OnlineClassifier
    assert_finite(teach(merged, X, y))


@every_rule
@averaged_or_not
def test_a_merged_model_survives_pickling(name, average):
    X, y, _ = clusters(True)
    merged = merge(parts(name, X, y, average=average))
    copied = pickle.loads(pickle.dumps(merged))
    assert everything(copied) == everything(merged)
    assert copied.certificate_.merge == merged.certificate_.merge
    assert learnt(copied.partial_fit(X, y)) == learnt(merged.partial_fit(X, y))


# Going on


@every_rule
@both_types
@averaged_or_not
def test_a_merged_model_goes_on_with_a_true_certificate(name, dtype, average):
    X, y, w_star = separable(240, 4, margin=0.02, dtype=dtype)
    Z, Y = X.astype(np.float64), signs(y)
    gamma, best = (Y * (Z @ w_star)).min(), maximal_margin(Z, Y)
    models = parts(name, X[:120], y[:120], 3, fit_intercept=False, average=average)
    for merged in (merge(models, how) for how in HOW):
        before = merged.certificate_
        after = merged.partial_fit(X[120:], y[120:]).certificate_
        assert_finite(merged._model)
        assert after.seen == 240
        assert after.updates > before.updates
        assert after.merge == before.merge
        assert cosine(points(merged)[0, :4], w_star) >= gamma * after.bound - ROUNDING[dtype]
        for certificate in (after, after.last):
            assert certificate.margin_ceiling >= best * (1 - 1e-6)
            assert certificate.best_bound >= before.last.best_bound * (1 - 1e-12)


@every_rule
@both_kinds
def test_a_merged_model_goes_on_with_several_classes(name, multiclass):
    X, y, margins = clusters(True)
    merged = merge(parts(name, X[:60], y[:60], 2, multiclass=multiclass, average=True))
    merged.partial_fit(X[60:], y[60:])
    assert_finite(merged._model)
    assert np.all(merged.certificate_.margin_ceiling >= margins[multiclass] * (1 - 1e-9))
    assert merged.score(X, y) > 0.9


@pytest.mark.parametrize("name", [name for name in RULES if name not in RESTARTED])
@averaged_or_not
@both_kinds
def test_going_on_from_one_merged_model_is_going_on_from_it(name, average, multiclass):
    X, y = stream(240, 6, n_classes=3, noise=0.05, seed=3)
    options = {"average": average, "multiclass": multiclass}
    model = OnlineClassifier(name, **options).partial_fit(X[:100], y[:100], classes=[0, 1, 2])
    merged = merge([model])
    for learner in (model, merged):
        learner.partial_fit(X[100:], y[100:])
    assert_same_points(merged, model, 1e-9)
    assert np.array_equal(merged.predict(X), model.predict(X))
    assert np.array_equal(merged.mistakes_, model.mistakes_)
    assert np.array_equal(merged.updates_, model.updates_)
    assert np.allclose(merged.certificate_.bound, model.certificate_.bound, rtol=1e-9)


@pytest.mark.parametrize("name", RESTARTED)
@both_ways
@averaged_or_not
def test_the_recursion_goes_on_from_the_merged_bound(name, how, average):
    X, y, _ = separable(120, 4)
    merged = merge(parts(name, X, y, average=average), how)
    assert merged.certificate_.own_bound == pytest.approx(merged.certificate_.last.bound, rel=1e-12)
    X, y, _ = clusters(False)
    merged = merge(parts(name, X, y, average=average), how)
    assert np.allclose(merged.certificate_.own_bound, merged.certificate_.last.bound, rtol=1e-12)


@pytest.mark.parametrize("name", TIED)
@both_ways
@both_types
@averaged_or_not
def test_where_the_norm_is_the_bound_it_still_is(name, how, dtype, average):
    X, y, _ = separable(120, 4, dtype=dtype)
    merged = merge(parts(name, X, y, average=average), how)
    for _ in range(2):
        proven = merged.certificate_.last
        assert proven.norm == pytest.approx(proven.bound, rel=ROUNDING[dtype])
        assert proven.coef_sum == pytest.approx(proven.norm**2, rel=ROUNDING[dtype])
        merged.partial_fit(X[::-1].copy(), y[::-1])


@pytest.mark.parametrize("name", BUDGETED)
@both_types
@with_intercept_or_not
def test_mistakes_after_a_merge_are_within_the_budget(name, dtype, fit_intercept):
    X, y, _ = separable(200, 6, margin=0.03, fit_intercept=fit_intercept, dtype=dtype, seed=2)
    Z = augmented(X, fit_intercept).astype(np.float64)
    radius, margin = np.linalg.norm(Z, axis=1).max(), maximal_margin(Z, signs(y)) * (1 - 1e-5)
    models = parts(name, X[:100], y[:100], 4, fit_intercept=fit_intercept)
    for merged in (merge(models, how) for how in HOW):
        before = merged.certificate_
        for _ in range(3):
            merged.partial_fit(X[100:], y[100:])
        budget = before.mistake_budget(margin, radius * (1 + 1e-6))
        assert merged.mistakes_ - before.mistakes <= budget + 1e-6


@both_types
def test_models_of_both_types_make_one_that_goes_on(dtype):
    X, y, _ = separable(120, 4)
    other = {"float32": "float64", "float64": "float32"}[dtype]
    models = [
        OnlineClassifier(dtype=chosen).partial_fit(X[i::2], y[i::2])
        for i, chosen in enumerate((dtype, other))
    ]
    merged = merge(models)
    assert merged._model.heads.dtype == dtype
    assert_finite(merged.partial_fit(X, y)._model)


@every_rule
@both_kinds
def test_a_merged_model_learns_of_new_classes(name, multiclass):
    X, y, _ = clusters(True)
    two = y < 2
    models = [
        OnlineClassifier(name, multiclass=multiclass).partial_fit(X[two][i::2], y[two][i::2])
        for i in range(2)
    ]
    merged = merge(models)
    assert merged.classes_.tolist() == [0, 1]
    merged.partial_fit(X, y)
    assert merged.classes_.tolist() == [0, 1, 2]
    assert merged.score(X, y) > 0.8
    closed = merge(parts(name, X[two], y[two], multiclass=multiclass))  # whose classes were named
    with pytest.raises(ValueError, match="not among the classes"):
        closed.partial_fit(X, y)
    assert not merge([models[0], closed])._model.closed


# Classes


@every_rule
@averaged_or_not
def test_a_class_has_the_merged_heads_of_the_models_that_know_it(name, average):
    X, y, _ = clusters(True)
    chosen = [y < 2, y > 0]  # classes 0 and 1, classes 1 and 2
    first, second = (OnlineClassifier(name, average=average).partial_fit(X[c], y[c]) for c in chosen)
    merged = merge([first, second])
    assert merged.classes_.tolist() == [0, 1, 2]
    zero, one, two = points(merged)
    (u_first,), (u_second,) = points(first), points(second)  # each for its second class
    assert zero == pytest.approx(-u_first, rel=1e-12)
    assert two == pytest.approx(u_second, rel=1e-12)
    hull = np.array([u_first, -u_second])
    assert one == pytest.approx(nearest_point(hull @ hull.T) @ hull, rel=1e-9)
    n_first, n_second = (np.count_nonzero(c) for c in chosen)
    assert merged.certificate_.seen.tolist() == [n_first, n_first + n_second, n_second]
    assert merged.n_seen_ == n_first + n_second
    for code in range(3):
        know = [c for c in chosen if code in y[c]]
        rows, labels = np.vstack([X[c] for c in know]), np.concatenate([y[c] for c in know])
        best = maximal_margin(augmented(rows, True), signs(labels == code))
        assert merged.certificate_.margin_ceiling[code] >= best * (1 - 1e-9)


@every_rule
def test_models_of_other_classes_share_none(name):
    X, y, _ = clusters(True)
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(len(y)) < 0.5, 10 + y, y)
    low, high = labels < 2, (labels >= 10) & (labels < 12)
    first, second = (OnlineClassifier(name).partial_fit(X[c], labels[c]) for c in (low, high))
    merged = merge([first, second])
    assert merged.classes_.tolist() == [0, 1, 10, 11]
    (u_first,), (u_second,) = points(first), points(second)
    assert points(merged) == pytest.approx(np.array([-u_first, u_first, -u_second, u_second]), rel=1e-12)


@every_rule
@averaged_or_not
@both_kinds
def test_two_classes_among_three_are_as_if_all_had_been_named(name, average, multiclass):
    X, y, margins = clusters(True)
    two = y < 2
    options = {"average": average, "multiclass": multiclass}
    unnamed = OnlineClassifier(name, **options).partial_fit(X[two], y[two])
    all_named = OnlineClassifier(name, **options).partial_fit(X[two], y[two], classes=[0, 1, 2])
    three = OnlineClassifier(name, **options).partial_fit(X, y)
    found, expected = (points(merge([model, three])) for model in (unnamed, all_named))
    assert np.all(merge([unnamed, three]).certificate_.margin_ceiling >= margins[multiclass] * (1 - 1e-9))
    if multiclass == "ovr":  # the third class against the rest is learnt only where it is known
        assert found[:2] == pytest.approx(expected[:2], rel=1e-9)
        assert found[2] == pytest.approx(points(three)[2], rel=1e-12)


@every_rule
@averaged_or_not
def test_models_of_one_class_each_are_as_if_both_had_been_named(name, average):
    X, y, _ = separable(60, 4)
    options = {"average": average}
    alone = [OnlineClassifier(name, **options).partial_fit(X[y == c], y[y == c]) for c in (0, 1)]
    told = [
        OnlineClassifier(name, **options).partial_fit(X[y == c], y[y == c], classes=[0, 1]) for c in (0, 1)
    ]
    expected = merge(told)
    assert_same_points(merge(alone), expected)
    assert_same_points(merge([alone[1], told[0]]), expected)
    assert np.array_equal(merge(alone).predict(X), expected.predict(X))


@every_rule
def test_three_models_of_one_class_each_make_a_model_of_three(name):
    X, y, margins = clusters(True)
    merged = merge([OnlineClassifier(name).partial_fit(X[y == c], y[y == c]) for c in (2, 0, 1)])
    assert merged.classes_.tolist() == [0, 1, 2]
    assert merged.score(X, y) > 0.9
    assert np.all(merged.certificate_.margin_ceiling >= margins["ovr"] * (1 - 1e-9))
    assert merged.certificate_.seen.tolist() == [np.count_nonzero(y == c) for c in range(3)]


@every_rule
@averaged_or_not
def test_joint_models_of_some_classes_are_joined_block_by_block(name, average):
    X, y, margins = clusters(False)
    options = {"multiclass": "joint", "fit_intercept": False, "average": average}
    chosen = [y < 2, y > 0, y == 0]  # one class alone teaches nothing
    models = [OnlineClassifier(name, **options).partial_fit(X[c], y[c]) for c in chosen]
    merged = merge(models)
    assert merged.classes_.tolist() == [0, 1, 2]
    (u,) = points(merged).reshape(1, 3, -1)
    assert np.abs(u.sum(axis=0)).max() < 1e-12
    blocks = np.zeros((2, 3, u.shape[1]))
    blocks[0, :2], blocks[1, 1:] = (points(model).reshape(2, -1) for model in models[:2])
    hull = blocks.reshape(2, -1)
    assert u.ravel() == pytest.approx(nearest_point(hull @ hull.T) @ hull, rel=1e-9, abs=1e-12)
    assert merged.certificate_.margin_ceiling >= margins["joint"] * (1 - 1e-9)
    assert merged.n_seen_ == sum(map(np.count_nonzero, chosen))


@every_rule
@both_kinds
def test_classes_may_be_strings_of_any_length(name, multiclass):
    X, y, _ = clusters(True)
    labels = np.array(["a", "long", "longer still"])[y]
    numbered, named_ = (
        [OnlineClassifier(name, multiclass=multiclass).partial_fit(X[c], target[c]) for c in (y < 2, y > 0)]
        for target in (y, labels)
    )
    merged, expected = merge(named_), merge(numbered)
    assert merged.classes_.tolist() == ["a", "long", "longer still"]
    assert np.array_equal(points(merged), points(expected))
    assert np.array_equal(merged.predict(X), np.array(merged.classes_)[expected.predict(X)])


# Features


def weights_by_feature(model):
    """The weights of each feature, by what it is known by."""
    coef = model.coef_.toarray() if scipy.sparse.issparse(model.coef_) else model.coef_
    return {key: column.tolist() for key, column in zip(model.features_.tolist(), coef.T, strict=True)}


def assert_same_weights(model, other):
    """The same weights for each feature that has any."""
    found, expected = (
        {key: values for key, values in weights_by_feature(m).items() if any(values)} for m in (model, other)
    )
    assert found.keys() == expected.keys()
    assert all(found[key] == pytest.approx(expected[key], rel=1e-9, abs=1e-12) for key in expected)
    assert model.intercept_ == pytest.approx(other.intercept_, rel=1e-9)
    assert np.allclose(model.certificate_.bound, other.certificate_.bound, rtol=1e-9)


def dicts(X, names=None):
    names = range(X.shape[1]) if names is None else names
    return [{key: value for key, value in zip(names, row, strict=True) if value} for row in X.tolist()]


def of_dicts(name, X, y, names=None, **options):
    learner = OnlineClassifier(name, **options)
    learner.learn_many(dicts(X, names), y)
    return learner


@every_rule
@averaged_or_not
def test_more_columns_are_zero_columns_elsewhere(name, average):
    X, y = stream(90, 8, n_classes=3, noise=0.0)
    X[:40, 5:] = 0.0
    narrow, padded, wide = (
        OnlineClassifier(name, average=average).partial_fit(rows, labels, classes=[0, 1, 2])
        for rows, labels in ((X[:40, :5], y[:40]), (X[:40], y[:40]), (X[40:], y[40:]))
    )
    for models, expected in (([narrow, wide], [padded, wide]), ([wide, narrow], [wide, padded])):
        merged = merge(models)
        assert merged.n_features_in_ == 8
        assert_same_points(merged, merge(expected))
        assert np.array_equal(
            merged.partial_fit(X, y).predict(X), merge(expected).partial_fit(X, y).predict(X)
        )


@every_rule
@averaged_or_not
def test_named_columns_are_joined_by_name(name, average):
    X, y = stream(90, 5, noise=0.0)
    all_names = list("abcde")
    frame = pd.DataFrame(X, columns=all_names)
    frame.loc[:39, "a"] = 0.0
    frame.loc[40:, "e"] = 0.0
    options = {"average": average}
    first = OnlineClassifier(name, **options).partial_fit(frame[list("dbce")][:40], y[:40])
    second = OnlineClassifier(name, **options).partial_fit(frame[list("abcd")][40:], y[40:])
    whole = [
        OnlineClassifier(name, **options).partial_fit(frame[r], y[r]) for r in (slice(40), slice(40, 90))
    ]
    merged, expected = merge([first, second]), merge(whole)
    assert merged.feature_names_in_.tolist() == list("dbcea")
    assert merged.n_features_in_ == 5
    assert_same_weights(merged, expected)
    assert np.array_equal(merged.predict(frame[list("dbcea")]), expected.predict(frame))
    merged.partial_fit(frame[list("dbcea")], y)
    with pytest.raises(ValueError, match="feature names should match"):
        merged.partial_fit(frame, y)


@every_rule
@averaged_or_not
@pytest.mark.parametrize("names", [None, ["a", "b", "c", "d", "e", "f"]], ids=["ids", "names"])
def test_features_of_dicts_are_joined_by_key(name, average, names):
    X, y = stream(90, 6, noise=0.0)
    X[:40, :2], X[40:, 4:] = 0.0, 0.0  # neither model knows all
    options = {"average": average}
    halves = (slice(40), slice(40, None))
    models = [of_dicts(name, X[rows], y[rows], names, **options) for rows in halves]
    frame = X if names is None else pd.DataFrame(X, columns=names)
    columns = [OnlineClassifier(name, **options).partial_fit(frame[rows], y[rows]) for rows in halves]
    expected = merge(columns)
    for some in (models, [models[0], columns[1]], [columns[0], models[1]]):
        merged = merge(some)
        assert_same_weights(merged, expected)
        assert merged.predict_many(dicts(X, names)).tolist() == expected.predict(frame).tolist()
    going = merge(models)
    going.learn_one({("z" if names else 77): 1.0}, 1)
    assert going.n_features_in_ == 7
    assert_finite(going._model)


@every_rule
@averaged_or_not
def test_sparse_models_are_merged_as_dense_ones(name, average):
    X, y = stream(90, 12, n_classes=3, noise=0.0)
    X[:, 3:7] = 0.0
    X[:45, 9], X[45:, 10] = 0.0, 0.0
    dense = parts(name, X, y, 2, average=average)
    thin = [model.sparsify() for model in parts(name, X, y, 2, average=average)]
    expected = merge(dense)
    for models in (thin, [thin[0], dense[1]], [dense[0], thin[1]]):
        merged = merge(models)
        assert scipy.sparse.issparse(merged.coef_) == (models[0] is thin[0])
        assert_same_weights(merged, expected)
        assert np.array_equal(merged.predict(X), expected.predict(X))
        merged.partial_fit(csr(X), y)
        assert_finite(merged._model)


# What cannot be merged


@every_rule
@both_ways
@averaged_or_not
def test_opposite_models_are_refused_and_stay_as_they_were(name, how, average):
    X, y, _ = separable(60, 4)
    for dtype in (np.float32, np.float64):
        models = [
            OnlineClassifier(name, average=average).fit(X.astype(dtype), labels) for labels in (y, 1 - y)
        ]
        before = [everything(model) for model in models]
        with pytest.raises(ValueError, match=r"cannot be merged.*nothing separates the examples of all"):
            merge(models, how)
        assert [everything(model) for model in models] == before


@pytest.mark.parametrize("length", [1e-3, 0.7, 1.0, 42.0])
def test_opposite_examples_of_other_lengths_are_refused(length):
    rng = np.random.default_rng(0)
    for a in rng.normal(size=(30, 5)):
        with pytest.raises(ValueError, match="the origin lies in the hull"):
            merge([of_one_example("mcp", a), of_one_example("mcp", -length * a)])


@both_ways
def test_an_average_that_is_0_is_refused_in_words_that_help(how):
    X, y = np.ones((3, 1)), [1, 0, 0]  # w is 1, 0, -1
    model = OnlineClassifier("perceptron", average=True, fit_intercept=False).partial_fit(X, y)
    assert not model.coef_.any()
    with pytest.raises(ValueError, match="the origin lies in the hull"):
        merge([model, model], how)


@every_rule
@averaged_or_not
def test_models_that_learnt_nothing_change_nothing(name, average):
    X, y, _ = clusters(True)
    model = OnlineClassifier(name, average=average).fit(X, y)
    empty = OnlineClassifier(name, average=average).partial_fit(np.zeros((5, 3)), [0, 1, 2, 0, 1])
    for models in ([model, empty], [empty, model]):
        assert_same_points(merge(models), model)
        assert merge(models).n_seen_ == len(X) + 5
    nothing = merge([empty, empty]).certificate_
    assert np.all(np.isinf(nothing.margin_ceiling))
    assert np.all(nothing.merge.certified == 0.0)


def test_a_model_of_empty_dicts_has_features_of_no_kind():
    empty, other = OnlineClassifier(), of_dicts("mcp", np.eye(2), [0, 1])
    empty.learn_one({}, 0)
    assert_same_weights(merge([other, empty]), other)


def fitted(rule="mcp", X=None, y=(0, 1, 0, 1), **options):
    X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [1.0, 2.0]]) if X is None else X
    return OnlineClassifier(rule, **options).fit(X, list(y))


@pytest.mark.parametrize(
    ("others", "match"),
    [
        ([OnlineClassifier()], r"model 1 is not fitted: OnlineClassifier\(\)"),
        ([fitted("mcp"), OnlineClassifier("pa")], r"model 2 is not fitted: OnlineClassifier\(rule='pa'\)"),
        ([None], "model 1 is not fitted: None"),
        ([fitted("cmcp")], "agree in rule: it is 'mcp' for model 0 and 'cmcp' for model 1"),
        ([fitted(), fitted("pa")], "agree in rule: it is 'mcp' for model 0 and 'pa' for model 2"),
        ([fitted(multiclass="joint")], "agree in multiclass: it is 'ovr' for model 0 and 'joint'"),
        ([fitted(fit_intercept=False)], "agree in fit_intercept: it is True for model 0 and False"),
        ([fitted(average=True)], "agree in average: it is False for model 0 and True"),
        ([fitted(y="abab")], "agree in labels: it is 'numbers' for model 0 and 'strings'"),
        ([fitted(X=pd.DataFrame(np.eye(4)[:, :2], columns=["a", "b"]))], "model 1 knows .* name and model 0"),
    ],
)
def test_models_that_do_not_fit_together_are_refused(others, match):
    first = fitted()
    before = everything(first)
    with pytest.raises(ValueError, match=match):
        merge([first, *others])
    assert everything(first) == before


def test_names_and_ids_of_dicts_are_refused_together():
    X, y = np.eye(2), [0, 1]
    with pytest.raises(ValueError, match="model 0 knows its features by name and model 1 by number"):
        merge([of_dicts("mcp", X, y, "ab"), of_dicts("mcp", X, y)])
    with pytest.raises(ValueError, match="model 1 knows its features by name and model 0 by number"):
        merge([fitted(), of_dicts("mcp", X, y, "ab")])


def test_nothing_to_merge_is_refused():
    with pytest.raises(ValueError, match="nothing to merge: give at least one"):
        merge([])


@pytest.mark.parametrize("how", ["best", "Mean", "", None])
def test_other_ways_of_merging_are_refused(how):
    with pytest.raises(ValueError, match=r"is not a way of merging; it is one of certified, mean"):
        merge([fitted()], how)


def test_other_rules_of_the_same_name_are_refused():
    def mine(margin, sq_w, sq_x, coef_sum, state, params):
        return 1.0, (1.0 if margin <= 0.0 else 0.0), state

    def halved(margin, sq_w, sq_x, coef_sum, state, params):
        return 0.5, 1.0 / sq_x, state

    halved.__name__ = "mine"
    with pytest.raises(ValueError, match="agree in rule"):
        merge([fitted(maxcosine.rules.rule(mine)), fitted(maxcosine.rules.rule(halved))])


def test_a_value_that_has_seen_nothing_can_be_merged():
    X, y, _ = separable(40, 3)
    empty, model = new_model("mcp", X), taught("mcp", X, y)
    merged = merge([empty, model])
    assert merged.n_seen == 40
    assert merged.certificate().bound == pytest.approx(model.certificate().bound, rel=1e-12)


def test_merges_are_the_same_to_the_bit_for_any_number_of_blas_threads():
    random = np.random.default_rng(0)
    X = random.normal(size=(6, 100_001))  # so long that BLAS sums otherwise in two threads
    models = [maxcosine.MCPClassifier().partial_fit(X[k : k + 2], [0, 1]) for k in (0, 2, 4)]

    def merged(n_threads):
        with threadpool_limits(n_threads):
            return merge(models).coef_.tobytes(), merge(models, "mean").coef_.tobytes()

    assert merged(1) == merged(2)
