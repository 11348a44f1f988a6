"""No NaN or infinity ever enters a model, whatever the stream; what is tracked stays true (section 10)."""

import functools

import numpy as np
import pytest

from maxcosine.engine.heads import LIMITS
from tests.contract.streams import (
    averaged_or_not,
    both_types,
    every_rule,
    new_model,
    rows,
    stacked,
    taught,
    teach,
    with_intercept_or_not,
)

LONGEST = {dtype.name: 0.99 * limits.high_sq_x**0.5 for dtype, limits in LIMITS.items()}  # still let in


def directions(rng, n, n_features):
    X = rng.normal(size=(n, n_features))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def noisy(rng, dtype):
    """Three labels in ten are wrong: the ROMMAs' bound grows geometrically."""
    X = rng.normal(size=(rows(30_000), 5))
    return X, (X[:, 0] > 0) ^ (rng.random(len(X)) < 0.3)


def contradicting(rng, dtype):
    """Every example comes with both labels, at once or later."""
    X = rng.normal(size=(rows(300), 4))
    return np.vstack([np.repeat(X, 2, axis=0), X, X]), np.resize([0, 1], 4 * len(X))


def nearly_antiparallel(rng, dtype):
    """One direction with both labels, up to angles of 1e-8: hardly any margin is left."""
    X = np.ones(6) + 1e-8 * rng.normal(size=(rows(3000), 6))
    return X * rng.uniform(0.5, 2.0, (len(X), 1)), rng.integers(0, 2, len(X))


def of_all_lengths(rng, dtype):
    """Norms log-uniform over all that is allowed."""
    top = np.log(LONGEST[dtype])
    X = directions(rng, rows(5000), 5)
    return X * np.exp(rng.uniform(-top, top, (len(X), 1))), rng.integers(0, 2, len(X))


def longest_first(rng, dtype):
    """One example of the largest norm, then all of the smallest."""
    X = directions(rng, rows(5000), 20) / LONGEST[dtype]
    X[0] *= LONGEST[dtype] ** 2
    return X, rng.integers(0, 2, len(X))


def shortest_first(rng, dtype):
    X, codes = longest_first(rng, dtype)
    return X / np.square(np.linalg.norm(X, axis=1, keepdims=True)), codes


def shrinking(rng, dtype):
    """A long chain of parallel examples, each a little shorter: a restart each time."""
    X = np.full((rows(20_000), 3), 1.0) * (1 - 1e-3) ** np.arange(rows(20_000))[:, None]
    return X, np.ones(len(X))


def shrinking_to_and_fro(rng, dtype):
    X, _ = shrinking(rng, dtype)
    return X, np.resize([0, 1], len(X))


def swinging(rng, dtype):
    """w swings between an example and its opposite, so that the average nearly vanishes."""
    X = np.tile([0.2, 0.66, 0.2 / 7], (rows(2000), 1))
    X[0] /= 2
    return X, np.resize([1, 0], len(X))


def easy(rng, dtype):
    """One example over and over: rules that forget do nothing else."""
    return np.tile(np.array([1.0, *[0.4] * 100]), (rows(2000), 1)), np.ones(rows(2000))


STREAMS = [
    noisy,
    contradicting,
    nearly_antiparallel,
    of_all_lengths,
    longest_first,
    shortest_first,
    shrinking,
    shrinking_to_and_fro,
    swinging,
    easy,
]
every_stream = pytest.mark.parametrize("make", STREAMS, ids=lambda make: make.__name__)


@functools.cache
def make_stream(make, dtype):
    X, codes = make(np.random.default_rng(0), dtype)
    return X.astype(dtype), np.asarray(codes, np.int64)


@functools.cache
def learnt(make, name, dtype, fit_intercept):
    """An averaged model, whose last hypothesis is that of a plain one."""
    return taught(name, *make_stream(make, dtype), average=True, fit_intercept=fit_intercept)


def is_finite(weights):
    return bool(np.isfinite(stacked(weights)).all())


def assert_finite(model):
    heads = model.heads
    assert is_finite(heads.weights())
    assert not heads.average or is_finite(heads.averaged_weights())
    assert np.isfinite(heads.arrays.state).all()
    assert all(np.isfinite(heads.table[scalar]).all() for scalar in heads.table.dtype.names)


def assert_claims_no_more_than_rounding_allows(certificate, heads, first_row):
    """1 / ell is known up to eps times the longest example so far, which the first one bounds from below."""
    eps = np.finfo(heads.dtype).eps
    shortest = np.linalg.norm([*first_row.astype(np.float64), float(heads.fit_intercept)])
    assert np.isfinite([certificate.coef_sum, certificate.norm, certificate.bound]).all()
    assert certificate.bound * eps * heads.table["radius"][0] <= 1.01
    assert certificate.best_bound * eps * shortest <= 1.01


def assert_norm_is_tracked(heads, rel=1e-2):
    v, bias = heads.arrays.v.astype(np.float64), heads.arrays.bias.astype(np.float64)
    exact = (np.square(v).sum(axis=0) + np.square(bias))[: len(heads.table)]
    np.testing.assert_allclose(heads.table["sq_v"], exact, rtol=rel)


@every_stream
@every_rule
@both_types
@with_intercept_or_not
def test_every_stream_is_learnt_and_leaves_a_finite_model(make, name, dtype, fit_intercept):
    model = learnt(make, name, dtype, fit_intercept)
    assert model.heads.table["seen"][0] == len(make_stream(make, dtype)[0])
    assert_finite(model)


@every_stream
@every_rule
@both_types
@with_intercept_or_not
def test_last_hypothesis_is_tracked_and_certified_within_rounding(make, name, dtype, fit_intercept):
    model = learnt(make, name, dtype, fit_intercept)
    assert_norm_is_tracked(model.heads)
    first = make_stream(make, dtype)[0][0]
    assert_claims_no_more_than_rounding_allows(model.certificate().last, model.heads, first)


@every_stream
@every_rule
@both_types
@with_intercept_or_not
def test_averaged_hypothesis_is_certified_within_rounding(make, name, dtype, fit_intercept):
    model = learnt(make, name, dtype, fit_intercept)
    first = make_stream(make, dtype)[0][0]
    assert_claims_no_more_than_rounding_allows(model.certificate(), model.heads, first)


@every_stream
@every_rule
@both_types
def test_one_direction_never_loses_its_ceiling(make, name, dtype):
    """Examples of one label along one direction: the shortest is the maximal margin."""
    X, _ = make_stream(make, dtype)
    norms = np.linalg.norm(X.astype(np.float64), axis=1, keepdims=True)
    X = (norms * directions(np.random.default_rng(0), 1, X.shape[1])).astype(dtype)
    certificate = taught(name, X, np.ones(len(X)), average=True).certificate()
    eps = np.finfo(dtype).eps
    shortest, longest = norms.min(), norms.max()
    for proven in (certificate, certificate.last):
        assert proven.margin_ceiling >= shortest * (1 - 1e4 * eps) - eps * longest


@pytest.mark.parametrize("rounds", [100, 148, 150, 535, 538, 600, 890, 2000])
@both_types
@averaged_or_not
def test_forgetting_for_long_leaves_a_true_model(rounds, dtype, average):
    """NORMA that halves w in every round: w is far below the smallest number, and still no false claim."""
    X, codes = np.tile(np.array([1.0, *[0.4] * 100], dtype), (rounds, 1)), np.ones(rounds)
    margin = np.linalg.norm(X[0])
    model = new_model("norma", X, average=average, eta=1.0, lambda_reg=0.5, nu=0.0)
    certificate = teach(model, X, codes).certificate()
    assert certificate.margin_ceiling == pytest.approx(margin, rel=1e-5)
    assert certificate.last.margin_ceiling == pytest.approx(margin, rel=1e-5)
    teach(model, X[:1], [0])  # the first mistake for long
    assert_finite(model)
    assert np.allclose(model.heads.weights()[0], -X[:1], rtol=1e-5)


@pytest.mark.slow
@every_rule
@both_types
@averaged_or_not
@pytest.mark.parametrize("noise", [0.02, 0.3, 0.5])
def test_a_million_noisy_rows_leave_a_finite_model(name, dtype, average, noise):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(rows(1_000_000), 5))
    codes = (X[:, 0] > 0) ^ (rng.random(len(X)) < noise)
    X = X.astype(dtype)
    model = taught(name, X, codes, average=average, fit_intercept=True)
    assert_finite(model)
    assert_norm_is_tracked(model.heads)
    for certificate in (model.certificate(), model.certificate().last):
        assert_claims_no_more_than_rounding_allows(certificate, model.heads, X[0])
