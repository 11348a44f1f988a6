"""Streams of examples, and the few tools that the contracts share."""

import numpy as np
import pytest
import scipy.sparse

from maxcosine import RULES
from maxcosine.compiled import JIT_ENABLED
from maxcosine.engine import learn
from maxcosine.features import Features
from maxcosine.model import Model

BUDGET = 1.0 if JIT_ENABLED else 0.1  # plain Python has time for fewer rows

# Those that another one stands for where time is short: they differ in a line of their formula.
ALIKE = {"pa", "pa2", "romma", "naromma"}

every_rule = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in ALIKE)) for name in RULES]
)
# What holds to the bit of float32 holds of float64, with more room; the slow tests ask both.
both_types = pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
averaged_or_not = pytest.mark.parametrize("average", [False, True], ids=["last", "averaged"])
with_intercept_or_not = pytest.mark.parametrize("fit_intercept", [False, True], ids=["plain", "intercept"])
two_or_more_classes = pytest.mark.parametrize("n_classes", [2, 5], ids=["binary", "multiclass"])


def rows(n):
    """n rows when compiled, fewer in plain Python."""
    return max(40, int(n * BUDGET))


def new_model(rule, X, n_classes=2, *, fit_intercept=False, average=False, multiclass="ovr", **params):
    """A model that has seen nothing, for classes 0, 1, ...; `rule` may be a name."""
    rule = RULES[rule] if isinstance(rule, str) else rule
    return Model.create(
        rule,
        rule.make_params(params),
        np.arange(n_classes),
        Features(X.shape[1]),
        X.dtype,
        fit_intercept=fit_intercept,
        average=average,
        multiclass=multiclass,
    )


def teach(model, X, codes):
    model.changed()
    learn(model.heads, X, np.asarray(codes, np.int64))
    return model


def taught(rule, X, codes, **options):
    return teach(new_model(rule, X, **options), X, codes)


def one_by_one(model, X, codes):
    """Teach row after row, and stop after each to look."""
    for row in range(X.shape[0]):
        yield teach(model, X[row : row + 1], codes[row : row + 1])


def bits(model):
    """Everything learnt, as bytes: weights, averages, scalars and the rule's states."""
    heads = model.heads
    parts = [*heads.weights(), heads.table, heads.arrays.state]
    if heads.average:
        parts += heads.averaged_weights()
    return b"".join(part.tobytes() for part in parts)


def stacked(weights):
    """Weights and constant weights as one float64 matrix: the hypotheses of the augmented space."""
    w, constant = weights
    return np.column_stack([w, constant]).astype(np.float64)


def augmented(X, fit_intercept):
    return np.column_stack([X, np.ones(len(X))]) if fit_intercept else X


def signs(codes):
    return np.where(np.asarray(codes) == 1, 1.0, -1.0)


def csr(X, index=np.int32, explicit_zeros=False):
    """The same numbers as sparse rows."""
    n, m = X.shape
    if explicit_zeros:
        sparse = scipy.sparse.csr_array((X.ravel(), np.tile(np.arange(m), n), np.arange(n + 1) * m), X.shape)
    else:
        sparse = scipy.sparse.csr_array(X)
    sparse.indices, sparse.indptr = sparse.indices.astype(index), sparse.indptr.astype(index)
    return sparse


def stream(n, n_features, *, n_classes=2, noise=0.1, density=0.6, dtype=np.float64, seed=0):
    """Sparse-ish rows with some zero ones, labelled by random directions, some labels wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < density)
    codes = (X @ rng.normal(size=(n_features, n_classes))).argmax(axis=1)
    wrong = rng.random(n) < noise
    codes[wrong] = rng.integers(0, n_classes, wrong.sum())
    X[5::17] = 0.0
    return X.astype(dtype), codes


def separable(n, n_features, *, margin=0.1, fit_intercept=False, dtype=np.float64, seed=0):
    """Rows that a unit vector w* separates through the origin (of the augmented space) with `margin`.

    Returns X, codes and w*.
    """
    rng = np.random.default_rng(seed)
    w_star = rng.normal(size=n_features + fit_intercept)
    w_star /= np.linalg.norm(w_star)
    X = (rng.normal(size=(20 * n, n_features)) / np.sqrt(n_features)).astype(dtype)
    scores = augmented(X, fit_intercept).astype(np.float64) @ w_star
    wide = np.flatnonzero(np.abs(scores) >= margin)[:n]
    assert len(wide) == n
    return X[wide], (scores[wide] > 0).astype(np.int64), w_star


every_storage = pytest.mark.parametrize(
    "storage",
    [np.asarray, csr, lambda X: csr(X, np.int64), lambda X: csr(X, explicit_zeros=True)],
    ids=["dense", "csr", "csr64", "explicit zeros"],
)
