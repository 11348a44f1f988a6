"""Streams of examples, and the binary problems that a classifier solves on them."""

import numpy as np
import scipy.sparse

from tests.reference import all_joint_examples


def stream(n, n_features, *, n_classes=2, noise=0.1, density=0.6, dtype=np.float64, seed=0):
    """Rows with zeros and some zero rows, labelled by random directions, some labels wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < density)
    codes = (X @ rng.normal(size=(n_features, n_classes))).argmax(axis=1)
    wrong = rng.random(n) < noise
    codes[wrong] = rng.integers(0, n_classes, wrong.sum())
    X[5::17] = 0.0
    return X.astype(dtype), codes


def late(n, n_features, first_rows, **options):
    """A stream in which class c first occurs in row first_rows[c]; one of these rows is 0."""
    X, codes = stream(n, n_features, n_classes=len(first_rows), **options)
    first_rows = np.asarray(first_rows)
    codes[first_rows[codes] > np.arange(n)] = first_rows.argmin()
    codes[first_rows] = np.arange(len(first_rows))
    return X, codes


def separable(n, n_features, *, margin=0.1, fit_intercept=False, dtype=np.float64, seed=0):
    """Rows of two classes that a unit vector w* separates, through the origin of the space, with `margin`.

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


def clusters(n, n_classes=4, *, dtype=np.float64, seed=0):
    """Rows around the unit vectors, one a class: each class is separable from the rest, and all jointly."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n) % n_classes)
    X = np.eye(n_classes)[codes] + 0.1 * rng.uniform(-1.0, 1.0, size=(n, n_classes))
    return X.astype(dtype), codes


def separable_in(setting, n, seed=0):
    """Rows that are separable in a setting, their codes, and a separator of length 1 for each problem."""
    if setting.learning == "binary":
        options = {"fit_intercept": setting.fit_intercept, "dtype": setting.dtype, "seed": seed}
        X, codes, w_star = separable(n, 5, **options)
        return X, codes, [w_star]
    X, codes = clusters(n, setting.n_classes, dtype=setting.dtype, seed=seed)
    # Towards its own unit vector and away from the others; no use is made of the intercept.
    separators = 1.5 * np.eye(setting.n_classes) - 0.5
    separators = np.pad(separators, ((0, 0), (0, int(setting.fit_intercept))))
    separators = separators.reshape(1 if setting.learning == "joint" else setting.n_classes, -1)
    return X, codes, list(separators / np.linalg.norm(separators, axis=1, keepdims=True))


def augmented(X, fit_intercept):
    """The rows as a learner sees them: with a constant 1 if there is an intercept."""
    return np.column_stack([X, np.ones(len(X))]) if fit_intercept else X


def are_examples(X, fit_intercept):
    """Which rows are learnt: with an intercept a zero row is the example (0, 1), without one it has no direction."""
    return X.any(axis=1) | fit_intercept


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


# A classifier of several classes solves several binary problems, or one on Kesler's examples


def problems(setting, X, codes):
    """The examples and signs of each binary problem, in float64; rows that are no examples are left out."""
    used = are_examples(X, setting.fit_intercept)
    Z, codes = augmented(X, setting.fit_intercept)[used].astype(np.float64), np.asarray(codes)[used]
    if setting.learning == "joint":
        pairs = all_joint_examples(Z, codes, setting.n_classes)
        return [(pairs, np.ones(len(pairs)))]
    if setting.learning == "binary":
        return [(Z, signs(codes))]
    return [(Z, signs(codes == code)) for code in range(setting.n_classes)]


def hypotheses(setting, learner):
    """The weights of each binary problem, in float64, up to a positive factor each."""
    W = np.column_stack([learner.coef_, learner.intercept_]) if setting.fit_intercept else learner.coef_
    return list(W.astype(np.float64).reshape(1 if setting.learning == "joint" else len(W), -1))


def claims(certificate, name):
    """A number of a certificate, for each binary problem."""
    return np.atleast_1d(getattr(certificate, name))
