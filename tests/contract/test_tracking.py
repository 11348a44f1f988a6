"""What the engine tracks by increments is what can be recomputed from scratch."""

import numpy as np
import pytest

from maxcosine import RULES
from tests.contract.streams import (
    augmented,
    averaged_or_not,
    bits,
    both_types,
    every_rule,
    every_storage,
    new_model,
    one_by_one,
    separable,
    signs,
    stacked,
    stream,
    taught,
    teach,
    with_intercept_or_not,
)
from tests.reference import run

TOLERANCE = {"float32": 1e-4, "float64": 1e-9}


def tracked_sq_w(heads):
    return np.square(heads.table["scale"]) * heads.table["sq_v"]


@every_rule
@both_types
@with_intercept_or_not
def test_tracked_norm_is_the_norm_at_every_step(name, dtype, fit_intercept):
    X, codes = stream(120, 6, dtype=dtype)
    for model in one_by_one(new_model(name, X, fit_intercept=fit_intercept), X, codes):
        w = stacked(model.heads.weights())[0]
        np.testing.assert_allclose(tracked_sq_w(model.heads), np.dot(w, w), rtol=TOLERANCE[dtype])


@every_rule
@both_types
@with_intercept_or_not
def test_model_is_the_one_of_explicit_coefficients(name, dtype, fit_intercept):
    X, codes, _ = separable(150, 6, fit_intercept=fit_intercept, dtype=dtype)
    heads = taught(name, X, codes, fit_intercept=fit_intercept, average=True).heads
    expected = run(name, augmented(X, fit_intercept).astype(float), signs(codes), average=True)
    tolerance = TOLERANCE[dtype]
    width = X.shape[1] + fit_intercept
    w, averaged = (stacked(w)[0, :width] for w in (heads.weights(), heads.averaged_weights()))
    np.testing.assert_allclose(w, expected.w, atol=tolerance * np.abs(expected.w).max())
    np.testing.assert_allclose(averaged, expected.averaged_w, atol=tolerance * np.abs(expected.w).max())
    assert heads.coef_sum[0] == pytest.approx(expected.coef_sum, rel=tolerance)
    assert heads.averaged_proven().coef_sum[0] == pytest.approx(expected.averaged_coef_sum, rel=tolerance)
    assert heads.table["best_bound"][0] == pytest.approx(expected.best_bound, rel=tolerance)
    counts = tuple(int(heads.table[count][0]) for count in ("seen", "mistakes", "updates"))
    assert counts == (expected.seen, expected.mistakes, expected.updates)


@every_rule
def test_first_example_is_a_mistake_and_an_update(name):
    certificate = taught(name, np.array([[0.0, 0.0], [3.0, 4.0]]), [0, 1]).certificate()
    assert (certificate.seen, certificate.mistakes, certificate.updates) == (2, 1, 1)
    assert certificate.margin_ceiling == pytest.approx(5.0)


@every_rule
@both_types
@with_intercept_or_not
@averaged_or_not
@every_storage
def test_zero_rows_change_nothing_but_seen(name, dtype, fit_intercept, average, storage):
    X, codes = stream(60, 6, dtype=dtype)
    options = {"fit_intercept": fit_intercept, "average": average}
    zeros = storage(np.array([[0.0] * 6, [-0.0] * 6] * 5, dtype))
    model = teach(new_model(name, X, **options), zeros, [0, 1] * 5)
    teach(teach(model, X[:30], codes[:30]), zeros, [1, 0] * 5)
    teach(teach(model, X[30:], codes[30:]), zeros, [1, 1] * 5)
    expected = taught(name, X, codes, **options)
    assert model.heads.table["seen"] == expected.heads.table["seen"] + 30
    model.heads.table["seen"] -= 30
    assert bits(model) == bits(expected)


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.scale_invariant])
@pytest.mark.parametrize("factor", [2.0**-12, 2.0**9, 1000.0])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_scaling_all_examples_changes_no_prediction(name, factor, n_classes):
    X, codes = stream(300, 8, n_classes=n_classes)
    here, there = (taught(name, c * X, codes, n_classes=n_classes, average=True) for c in (1.0, factor))
    np.testing.assert_array_equal(
        (X @ there.hypothesis()[0].T).argmax(axis=1), (X @ here.hypothesis()[0].T).argmax(axis=1)
    )
    np.testing.assert_array_equal(
        np.sign(X @ there.heads.weights()[0].T), np.sign(X @ here.heads.weights()[0].T)
    )
    np.testing.assert_array_equal(there.heads.table["mistakes"], here.heads.table["mistakes"])
