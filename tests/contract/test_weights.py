"""A weight multiplies the step of its row; Lambda follows the step, so that every certificate stays true."""

import functools
import itertools

import numpy as np
import pytest

from maxcosine import RULES
from maxcosine.engine import learn
from tests.contract.streams import (
    augmented,
    averaged_or_not,
    bits,
    both_types,
    csr,
    every_rule,
    new_model,
    one_by_one,
    rows,
    separable,
    signs,
    stacked,
    stream,
    taught,
    teach,
    with_intercept_or_not,
)
from tests.contract.test_finite import (
    assert_claims_no_more_than_rounding_allows,
    assert_finite,
    assert_norm_is_tracked,
    contradicting,
    directions,
    make_stream,
    nearly_antiparallel,
    noisy,
    of_all_lengths,
)
from tests.reference import REFERENCE, UPDATES, Result, all_joint_examples, cosine, maximal_margin

TOLERANCE = {"float32": 2e-4, "float64": 1e-9}
ROUNDING = {"float32": 1e-4, "float64": 1e-11}

BUDGETED = [name for name, rule in RULES.items() if rule.own_bound]
SCALE_FREE = [name for name, rule in RULES.items() if rule.scale_free]

both_kinds = pytest.mark.parametrize("multiclass", ["ovr", "joint"])


def teach_weighted(model, X, codes, weights):
    model.changed()
    learn(model.heads, X, np.asarray(codes, np.int64), None, np.asarray(weights, np.float64))
    return model


def taught_weighted(name, X, codes, weights, **options):
    return teach_weighted(new_model(name, X, **options), X, codes, weights)


def random_weights(n, decades, seed=0):
    return 10.0 ** np.random.default_rng(seed).uniform(-decades, decades, n)


def unmarked(model):
    """Forget that steps were weighted, so that bits can be compared."""
    model.heads.table["weighted"] = 0
    return model


# What a weight does


def weighted(algorithm):
    """The printed algorithm, but that each step, and the example's coefficient with it, is multiplied."""

    class Weighted(algorithm):
        weight = 1.0

        def update(self, lam, y, a, keep=1.0):
            super().update(self.weight * lam, y, a, keep)

    if algorithm is REFERENCE["naromma"]:  # its ell is Lambda / norm(w), which the scaled steps change
        Weighted.own_bound = property(lambda self: self.bound, lambda self, ell: None)
    return Weighted


def run_weighted(name, X, Y, weights):
    learner, result = weighted(REFERENCE[name])(), Result(w=np.zeros(X.shape[1]))
    hypotheses, coef_sums = [], []
    for a, y, learner.weight in zip(X, Y, weights, strict=True):
        result.seen += 1
        if not a.any() or learner.weight == 0.0:
            continue
        result.mistakes += int(y * np.dot(result.w, a) <= 0)
        result.updates += learner.learn(a, y) in UPDATES
        result.w, result.best_bound = learner.w, max(result.best_bound, learner.bound)
        hypotheses.append(learner.w)
        coef_sums.append(learner.coef_sum)
    result.coef_sum = learner.coef_sum
    result.averaged_w, result.averaged_coef_sum = np.mean(hypotheses, axis=0), np.mean(coef_sums)
    return result


@every_rule
@both_types
@with_intercept_or_not
def test_model_is_the_one_of_explicit_weighted_steps(name, dtype, fit_intercept):
    X, codes, _ = separable(120, 6, fit_intercept=fit_intercept, dtype=dtype)
    weights = random_weights(len(X), 0.5) * (np.arange(len(X)) % 7 != 3)  # some are 0
    heads = taught_weighted(name, X, codes, weights, fit_intercept=fit_intercept, average=True).heads
    expected = run_weighted(name, augmented(X, fit_intercept).astype(float), signs(codes), weights)
    tolerance, width = TOLERANCE[dtype], X.shape[1] + fit_intercept
    w, averaged = (stacked(w)[0, :width] for w in (heads.weights(), heads.averaged_weights()))
    np.testing.assert_allclose(w, expected.w, atol=tolerance * np.abs(expected.w).max())
    longest = np.abs(expected.averaged_w).max()
    np.testing.assert_allclose(averaged, expected.averaged_w, atol=tolerance * longest)
    assert heads.coef_sum[0] == pytest.approx(expected.coef_sum, rel=tolerance)
    assert heads.averaged_proven().coef_sum[0] == pytest.approx(expected.averaged_coef_sum, rel=tolerance)
    assert heads.table["best_bound"][0] == pytest.approx(expected.best_bound, rel=tolerance)
    counts = tuple(int(heads.table[count][0]) for count in ("seen", "mistakes", "updates"))
    assert counts == (expected.seen, expected.mistakes, expected.updates)


@every_rule
@both_types
@both_kinds
def test_weights_of_1_change_no_bit(name, dtype, multiclass):
    X, codes = stream(120, 6, n_classes=3, dtype=dtype)
    options = {"n_classes": 3, "multiclass": multiclass, "average": True, "fit_intercept": True}
    model = taught_weighted(name, X, codes, np.ones(len(X)), **options)
    assert bits(model) == bits(taught(name, X, codes, **options))
    assert not model.certificate().weighted


@every_rule
@both_types
@both_kinds
def test_a_weight_of_0_leaves_the_row_out(name, dtype, multiclass):
    X, codes = stream(120, 6, n_classes=3, dtype=dtype)
    left_out = np.random.default_rng(0).random(len(X)) < 0.3
    options = {"n_classes": 3, "multiclass": multiclass, "average": True, "fit_intercept": True}
    model = taught_weighted(name, X, codes, np.where(left_out, 0.0, 1.0), **options)
    expected = taught(name, X[~left_out], codes[~left_out], **options)
    assert np.all(model.heads.table["seen"] == len(X))
    model.heads.table["seen"] -= np.count_nonzero(left_out)
    assert bits(model) == bits(expected)


@every_rule
@both_types
@both_kinds
def test_storage_and_chunks_change_no_bit(name, dtype, multiclass):
    X, codes = stream(120, 6, n_classes=3, dtype=dtype)
    weights = random_weights(len(X), 2) * (np.arange(len(X)) % 5 != 1)
    options = {"n_classes": 3, "multiclass": multiclass, "average": True, "fit_intercept": True}
    expected = bits(taught_weighted(name, X, codes, weights, **options))
    for storage, cuts in itertools.product((np.array, csr), ([0, 120], [0, 1, 2, 50, 51, 120])):
        model = new_model(name, X, **options)
        for start, stop in itertools.pairwise(cuts):
            teach_weighted(model, storage(X[start:stop]), codes[start:stop], weights[start:stop])
        assert bits(model) == expected


@every_rule
@both_types
def test_rows_that_move_nothing_may_weigh_anything(name, dtype):
    X, codes, _ = separable(200, 5, dtype=dtype)
    model = new_model(name, X)
    updates = np.array([int(m.heads.table["updates"][0]) for m in one_by_one(model, X, codes)])
    still = np.diff(updates, prepend=0) == 0
    assert still.any()
    weights = np.where(still, random_weights(len(X), 12), 1.0)
    assert bits(unmarked(taught_weighted(name, X, codes, weights))) == bits(model)


@every_rule
@both_types
def test_one_example_certifies_itself_whatever_its_weight(name, dtype):
    X = np.array([[3.0, 4.0]], dtype)
    for weight in (1e-12, 0.3, 1e12):
        certificate = taught_weighted(name, X, [1], [weight]).certificate()
        assert certificate.bound == pytest.approx(0.2, rel=1e-6)
        assert (certificate.seen, certificate.mistakes, certificate.updates) == (1, 1, 1)


@pytest.mark.parametrize("name", SCALE_FREE)
@both_types
@averaged_or_not
@pytest.mark.parametrize("weight", [2.0**-10, 8.0])
def test_where_length_means_nothing_the_first_weight_is_but_a_length(name, dtype, average, weight):
    X, codes = stream(150, 6, dtype=dtype)
    first = np.where(np.arange(len(X)) == 0, weight, 1.0)
    model = taught_weighted(name, X, codes, first, average=average)
    expected = taught(name, X, codes, average=average)
    for found, plain in zip(model.heads.hypotheses(), expected.heads.hypotheses(), strict=True):
        assert np.array_equal(found, weight * plain)
    assert model.certificate().bound == expected.certificate().bound
    assert model.certificate().mistakes == expected.certificate().mistakes


@both_types
@averaged_or_not
@pytest.mark.parametrize("factor", [2.0**-20, 0.5, 2.0**20])
def test_the_perceptron_takes_weights_as_relative_ones(dtype, average, factor):
    X, codes = stream(150, 6, dtype=dtype)
    weights = random_weights(len(X), 2)
    one, other = (
        taught_weighted("perceptron", X, codes, c * weights, average=average) for c in (1.0, factor)
    )
    for w, scaled in zip(one.heads.hypotheses(), other.heads.hypotheses(), strict=True):
        assert np.array_equal(scaled, factor * w)
    assert other.certificate().bound == one.certificate().bound
    assert other.certificate().mistakes == one.certificate().mistakes


def test_lambda_of_the_perceptron_is_the_weight_of_its_mistakes():
    X, codes = stream(150, 6)
    weights, model, total, before = random_weights(len(X), 2), new_model("perceptron", X), 0.0, 0
    for row, weight in enumerate(weights):
        teach_weighted(model, X[row : row + 1], codes[row : row + 1], [weight])
        mistaken = int(model.heads.table["mistakes"][0]) - before
        total, before = total + mistaken * weight, before + mistaken
        assert model.heads.exact_coef_sum[0] == pytest.approx(total, rel=1e-12)


@both_types
def test_a_weight_on_the_largest_step_of_pa1_is_a_larger_c(dtype):
    X, codes = stream(150, 6, dtype=dtype)
    C = 2.0**-20  # every step is cut
    weighted = taught_weighted("pa1", X, codes, np.full(len(X), 8.0), C=C)
    assert bits(unmarked(weighted)) == bits(taught("pa1", X, codes, C=8.0 * C))


# What stays proven


@every_rule
@both_types
@with_intercept_or_not
@averaged_or_not
def test_cosine_to_the_separator_is_at_least_gamma_ell(name, dtype, fit_intercept, average):
    X, codes, w_star = separable(150, 5, fit_intercept=fit_intercept, dtype=dtype)
    Z, Y = augmented(X, fit_intercept).astype(np.float64), signs(codes)
    gamma, best = (Y * (Z @ w_star)).min(), maximal_margin(Z, Y)
    model = new_model(name, X, fit_intercept=fit_intercept, average=average)
    for start, weights in zip(range(0, 150, 10), np.split(random_weights(150, 3), 15), strict=True):
        some = slice(start, start + 10)
        certificate = teach_weighted(model, X[some], codes[some], weights).certificate()
        w = stacked(model.heads.hypotheses())[0, : len(w_star)]
        assert cosine(w, w_star) >= gamma * certificate.bound - ROUNDING[dtype]
        for proven in (certificate, certificate.last):
            assert proven.margin_ceiling >= best * (1 - 1e-9)


@every_rule
@both_types
@averaged_or_not
def test_weights_of_any_size_leave_a_hypothesis_on_the_side_of_the_separator(name, dtype, average):
    X, codes, w_star = separable(150, 5, dtype=dtype)
    gamma = (signs(codes) * (X @ w_star)).min()
    model = new_model(name, X, average=average)
    for seed in range(4):
        teach_weighted(model, X, codes, random_weights(len(X), 12, seed))
        w = stacked(model.heads.hypotheses())[0, :5]
        proven = model.certificate()
        assert cosine(w, w_star) >= gamma * proven.bound - proven.rounding - ROUNDING[dtype]


@functools.cache
def clusters():
    """Rows of three classes, and their best margins: each class against the rest, and jointly."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 90)
    X = 3.0 * np.eye(3)[codes] + 0.3 * rng.normal(size=(90, 3))
    Z = augmented(X, True)
    ovr = np.array([maximal_margin(Z, signs(codes == code)) for code in range(3)])
    pairs = all_joint_examples(Z, codes, 3)
    return X, codes, {"ovr": ovr, "joint": maximal_margin(pairs, np.ones(len(pairs)))}


@every_rule
@both_types
@both_kinds
def test_ceilings_of_several_classes_are_true(name, dtype, multiclass):
    X, codes, margins = clusters()
    options = {"n_classes": 3, "multiclass": multiclass, "average": True, "fit_intercept": True}
    for decades in (0.5, 3):
        weights = random_weights(len(X), decades)
        certificate = taught_weighted(name, X.astype(dtype), codes, weights, **options).certificate()
        for proven in (certificate, certificate.last):
            assert np.all(proven.margin_ceiling >= margins[multiclass] * (1 - 1e-6))
            assert np.all(proven.best_bound > 0.0)


@every_rule
@averaged_or_not
def test_ceilings_are_true_of_labels_that_are_noise(name, average):
    """More columns than rows: any labels are separable, with a small margin."""
    X, codes = np.random.default_rng(1).normal(size=(24, 30)), np.resize([0, 1, 1], 24)
    best = maximal_margin(X, signs(codes))
    assert best > 0.1
    X, codes = np.tile(X, (4, 1)), np.tile(codes, 4)
    for seed in range(3):
        weights = random_weights(len(X), 3, seed)
        certificate = taught_weighted(name, X, codes, weights, average=average).certificate()
        assert certificate.margin_ceiling >= best * (1 - 1e-9)
        assert certificate.last.margin_ceiling >= best * (1 - 1e-9)


@pytest.mark.parametrize("name", BUDGETED)
@pytest.mark.parametrize("weight", [2.0, 0.5, 1.0 + 1e-15])
def test_weighted_steps_have_no_mistake_budget(name, weight):
    X, codes, _ = separable(60, 4)
    model = taught_weighted(name, X, codes, np.ones(len(X)))
    assert model.certificate().mistake_budget(1e-3, 1.0) > 0.0
    certificate = teach_weighted(model, X[:1], codes[:1], [weight]).certificate()
    assert certificate.weighted
    assert certificate.own_bound is None
    assert "steps were weighted" in repr(certificate)
    with pytest.raises(ValueError, match=r"sample_weight or class_weight changed them; the bound .* hold"):
        certificate.mistake_budget(1e-3, 1.0)
    with pytest.raises(ValueError, match="sample_weight or class_weight changed them"):
        teach(model, X, codes).certificate().mistake_budget(1e-3, 1.0)  # what was weighted stays weighted


@pytest.mark.parametrize("name", BUDGETED)
def test_rows_left_out_cost_no_mistake_budget(name):
    X, codes, _ = separable(60, 4)
    model = taught_weighted(name, X, codes, np.arange(len(X)) % 3 > 0)
    assert not model.certificate().weighted
    assert model.certificate().mistake_budget(1e-3, 1.0) > 0.0


# Weights of any size


def weights_of_any_size(n):
    """All sizes at random; the largest and the smallest, alone and in turn."""
    return random_weights(n, 12), *(np.resize(w, n) for w in ([1e12], [1e-12], [1e-12, 1e12, 1.0]))


@pytest.mark.parametrize(
    "make",
    [contradicting, noisy, nearly_antiparallel, of_all_lengths],
    ids=lambda make: make.__name__,
)
@every_rule
@both_types
@averaged_or_not
def test_weights_of_any_size_leave_a_finite_model(make, name, dtype, average):
    X, codes = (values[: rows(1000)] for values in make_stream(make, dtype))
    for weights in weights_of_any_size(len(X)):
        model = taught_weighted(name, X, codes, weights, average=average)
        assert model.heads.table["seen"][0] == len(X)
        assert_finite(model)
        assert_norm_is_tracked(model.heads)
        for certificate in (model.certificate(), model.certificate().last):
            assert_claims_no_more_than_rounding_allows(certificate, model.heads, X[0])


@every_rule
@both_types
@both_kinds
def test_weights_of_any_size_leave_several_classes_finite(name, dtype, multiclass):
    X, codes = stream(rows(600), 5, n_classes=4, noise=0.5, dtype=dtype)
    options = {"n_classes": 4, "multiclass": multiclass, "average": True, "fit_intercept": True}
    for weights in weights_of_any_size(len(X)):
        model = taught_weighted(name, X, codes, weights, **options)
        assert_finite(model)
        assert np.isfinite(model.certificate().bound).all()
        assert np.isfinite(model.scores(X)).all()


@every_rule
@both_types
def test_weights_of_any_size_never_lose_the_ceiling_of_one_direction(name, dtype):
    """Examples of one label along one direction: the shortest is the maximal margin."""
    rng = np.random.default_rng(0)
    lengths = 10.0 ** rng.uniform(-3, 3, (rows(500), 1))
    X, eps = (lengths * directions(rng, 1, 4)).astype(dtype), np.finfo(dtype).eps
    for weights in weights_of_any_size(len(X)):
        certificate = taught_weighted(name, X, np.ones(len(X)), weights, average=True).certificate()
        for proven in (certificate, certificate.last):
            assert proven.margin_ceiling >= lengths.min() * (1 - 1e4 * eps) - eps * lengths.max()
