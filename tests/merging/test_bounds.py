"""Section 8 of the theory: the bounds of merged models, and what they prove."""

import itertools

import numpy as np
import pytest

import maxcosine
from maxcosine import RULES, OnlineClassifier, maximise, merge
from maxcosine.certificate import HOW
from maxcosine.merging import nearest_point
from tests.contract.streams import separable, signs, stream
from tests.merging.models import (
    assert_same_points,
    averaged_or_not,
    both_kinds,
    clusters,
    every_rule,
    of_one_example,
    parts,
    points,
    some_rules,
)
from tests.reference import cosine, maximal_margin, norm

# What a few hundred steps may round away of a bound.
ROUNDING = {"float32": 1e-4, "float64": 1e-11}


# The point of a hull nearest to the origin


def nearest_by_faces(U):
    """The distance from the origin to the hull of the rows of U, by a look at all faces."""
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
        assert tau.sum() == pytest.approx(1.0, abs=8 * np.finfo(float).eps)
        assert norm(tau @ U) == pytest.approx(nearest_by_faces(U), rel=1e-9, abs=1e-7 * norm(U[0]))


def test_nearest_point_is_no_further_than_the_shortest_whatever_the_lengths():
    for U in hulls("of all lengths", 400):
        assert norm(nearest_point(U @ U.T) @ U) <= np.linalg.norm(U, axis=1).min() * (1 + 1e-9)


# Two models: the closed form


def assert_merged_by_the_closed_form(first, second):
    """The weights of unit vectors are in proportion to ell_1 - c ell_2 and ell_2 - c ell_1."""
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
    return min(weights) > 0.0


@every_rule
def test_two_models_are_merged_by_the_closed_form(name):
    for seed, average in itertools.product(range(2), (False, True)):
        X, y, _ = separable(60, 4, margin=0.02, seed=seed)
        cut = 15 if seed else 30
        learners = [OnlineClassifier(name, average=average, fit_intercept=False) for _ in range(2)]
        halves = ((X[:cut], y[:cut]), (X[cut:], y[cut:]))
        pair = [one.partial_fit(*half, classes=[0, 1]) for one, half in zip(learners, halves, strict=True)]
        assert_merged_by_the_closed_form(*pair)


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
def test_models_of_one_example_are_merged_by_the_closed_form(a, b, mixed):
    pair = of_one_example("mcp", a), of_one_example("mcp", b)
    assert assert_merged_by_the_closed_form(*pair) == mixed
    assert assert_merged_by_the_closed_form(*reversed(pair)) == mixed


def test_merging_examples_in_is_the_update_of_naromma():
    X, y, _ = separable(60, 3, margin=0.05)
    X *= np.random.default_rng(0).uniform(0.2, 3.0, (60, 1))  # of many lengths: all types of steps
    merged = learner = of_one_example("naromma", X[0], y[0])
    for a, label in zip(X[1:], y[1:], strict=True):
        merged = merge([merged, of_one_example("naromma", a, label)])
        learner.partial_fit(a[None], [label])
        assert_same_points(merged, learner, 1e-6)
        assert merged.certificate_.bound == pytest.approx(learner.certificate_.bound, rel=1e-9)


# The merged bounds


@every_rule
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_certified_bound_is_never_below_the_largest(name, dtype):
    for X, y in (separable(240, 5, margin=0.05, dtype=dtype)[:2], stream(240, 5, noise=0.2, dtype=dtype)):
        models = parts(name, X, y, 5, average=True)
        merged, rest = merge(models).certificate_, 1 - ROUNDING[dtype]
        averaged, last = zip(*((m.certificate_, m.certificate_.last) for m in models), strict=True)
        for proven, before in ((merged, averaged), (merged.last, last)):
            assert proven.bound >= max(certificate.bound for certificate in before) * rest
            assert proven.best_bound >= max(certificate.best_bound for certificate in before) * rest


@every_rule
@averaged_or_not
def test_mean_is_the_plain_mean_of_the_points(name, average):
    models = parts(name, *stream(240, 5, noise=0.2), 5, average=average)
    merged = merge(models, "mean")
    mean = np.mean([points(model) for model in models], axis=0)
    assert points(merged) == pytest.approx(mean, rel=1e-9, abs=1e-12 * norm(mean[0]))
    assert merged.certificate_.bound == pytest.approx(1 / norm(mean[0]), rel=1e-9)
    of_merged = merge([merge(models[:2], "mean"), merge(models[2:], "mean")], "mean", weights=[2, 3])
    assert_same_points(of_merged, merged, 1e-9)


@some_rules
@both_kinds
def test_k_models_have_the_nearest_point_of_their_hull_in_any_order(name, multiclass):
    X, y, _ = clusters()
    models = parts(name, X, y, 5, average=True, multiclass=multiclass)
    merged = merge(models)
    for head, u in enumerate(points(merged)):
        hull = np.array([points(model)[head] for model in models])
        assert norm(u) == pytest.approx(maximal_margin(hull, np.ones(len(hull))), rel=1e-6)
        assert (hull @ u).min() >= np.dot(u, u) * (1 - 1e-9)
    assert_same_points(merge(models[::-1]), merged, 1e-8)


@some_rules
@both_kinds
def test_copies_of_one_model_are_that_model(name, multiclass):
    X, y, _ = clusters()
    model = OnlineClassifier(name, average=True, multiclass=multiclass).fit(X, y)
    for how in HOW:
        merged = merge([model] * 3, how)
        assert_same_points(merged, model)
        assert np.allclose(merged.certificate_.bound, model.certificate_.bound, rtol=1e-12)
        assert np.array_equal(merged.predict(X), model.predict(X))


def test_rounding_of_one_model_costs_the_other_nothing():
    """A long run in float32 has a large slack; a longer point beside it may then prove more."""
    worn, fresh = (
        maxcosine.PAClassifier("pa1", C=1e-6, fit_intercept=False).partial_fit(X, np.ones(len(X)), [0, 1])
        for X in (np.full((200_000, 1), 1.0, np.float32), np.full((1, 1), 1.001, np.float32))
    )
    assert fresh.certificate_.bound > worn.certificate_.bound
    assert merge([worn, fresh]).certificate_.bound >= fresh.certificate_.bound * (1 - ROUNDING["float32"])


# The certificate holds for all examples together, and goes on to hold


@every_rule
@averaged_or_not
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_the_certificate_holds_for_all_examples_and_for_those_to_come(name, average, dtype):
    X, y, w_star = separable(240, 4, margin=0.02, dtype=dtype)
    Z, Y = X.astype(np.float64), signs(y)
    gamma, best = (Y * (Z @ w_star)).min(), maximal_margin(Z, Y)
    models = parts(name, X[:120], y[:120], 3, fit_intercept=False, average=average)
    for merged in (merge(models, how) for how in HOW):
        before = merged.certificate_
        for seen in (120, 240):
            proven = merged.certificate_
            assert proven.seen == seen
            assert cosine(points(merged)[0, :4], w_star) >= gamma * proven.bound - ROUNDING[dtype]
            for certificate in (proven, proven.last):
                assert certificate.margin_ceiling >= best * (1 - 1e-6)
                assert certificate.best_bound >= before.last.best_bound * (1 - 1e-12)
            merged.partial_fit(X[120:], y[120:])
        assert merged.certificate_.merge == before.merge


@some_rules
@both_kinds
def test_ceilings_of_several_classes_hold_for_all_examples(name, multiclass):
    X, y, margins = clusters()
    merged = merge(parts(name, X[:60], y[:60], 2, multiclass=multiclass, average=True))
    merged.partial_fit(X[60:], y[60:])
    assert np.all(merged.certificate_.margin_ceiling >= margins[multiclass] * (1 - 1e-6))
    assert np.all(merged.certificate_.last.margin_ceiling >= margins[multiclass] * (1 - 1e-6))
    assert merged.score(X, y) > 0.9


@every_rule
def test_models_of_noisy_streams_can_be_merged_and_go_on(name):
    X, y = stream(4000, 5, noise=0.3, dtype="float32")
    models = parts(name, X, y, 2, average=True)
    ceiling = min(model.certificate_.margin_ceiling for model in models)
    for merged in (merge(models, how) for how in HOW):
        assert merged.certificate_.margin_ceiling <= ceiling * 1.01  # norms are tracked up to rounding
        assert np.isfinite(merged.partial_fit(X[:100], y[:100]).coef_).all()


@every_rule
@averaged_or_not
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_models_of_separable_rows_of_all_lengths_can_be_merged(name, average, dtype):
    """No margin is lost to the averages, and no merge says that nothing separates what a vector separates."""
    for seed in range(3):
        X, y, w_star = separable(120, 4, margin=0.1, seed=seed)
        lengths = 10.0 ** np.random.default_rng(seed).uniform(-4.5, 4.5, (120, 1))
        X = (X * lengths).astype(dtype)
        gamma = (signs(y) * (X.astype(np.float64) @ w_star)).min() * (1 - 1e-12)
        assert gamma > 0.0
        models = parts(name, X, y, 3, fit_intercept=False, average=average)
        for how in HOW:
            merged = merge(models, how).certificate_
            for proven in (merged, merged.last):
                assert proven.margin_ceiling >= gamma
                assert 1.0 / max(proven.bound, 1e-300) >= gamma
            assert merged.best_bound >= max(model.certificate_.last.best_bound for model in models)


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if not rule.restart_state])
def test_going_on_from_one_merged_model_is_going_on_from_it(name):
    X, y = stream(240, 6, n_classes=3, noise=0.05, seed=3)
    model = OnlineClassifier(name, average=True).partial_fit(X[:100], y[:100], classes=[0, 1, 2])
    merged = merge([model])
    for learner in (model, merged):
        learner.partial_fit(X[100:], y[100:])
    assert_same_points(merged, model, 1e-9)
    assert np.array_equal(merged.mistakes_, model.mistakes_)
    assert np.array_equal(merged.updates_, model.updates_)


def test_the_state_of_a_rule_goes_on_from_the_merged_bound():
    X, y, _ = separable(120, 4)
    for name, how in itertools.product((name for name, r in RULES.items() if r.restart_state), HOW):
        proven = merge(parts(name, X, y), how).certificate_
        assert proven.own_bound == pytest.approx(proven.last.bound, rel=1e-12)
    for name, how in itertools.product((name for name, r in RULES.items() if r.restart_norm), HOW):
        merged = merge(parts(name, X, y), how)
        for _ in range(2):
            proven = merged.certificate_.last
            assert proven.norm == pytest.approx(proven.bound, rel=1e-9)
            merged.partial_fit(X[::-1].copy(), y[::-1])


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.own_bound])
def test_mistakes_after_a_merge_are_within_the_budget(name):
    X, y, _ = separable(200, 6, margin=0.03, seed=2)
    radius, margin = np.linalg.norm(X, axis=1).max(), maximal_margin(X, signs(y)) * (1 - 1e-5)
    models = parts(name, X[:100], y[:100], 4, fit_intercept=False)
    for merged in (merge(models, how) for how in HOW):
        before = merged.certificate_
        for _ in range(3):
            merged.partial_fit(X[100:], y[100:])
        budget = before.mistake_budget(margin, radius * (1 + 1e-6))
        assert merged.certificate_.mistakes - before.mistakes <= budget
