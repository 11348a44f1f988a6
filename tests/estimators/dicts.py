"""Streams of dicts, and the ways to learn from them."""

import itertools

import numpy as np
import scipy.sparse

LABELS = np.array(["north", "east", "south", "west", "up", "down"])
LARGEST_ID = 2**64 - 1


def stream(n_rows=60, n_classes=2, kind="names", seed=0):
    """Dicts and labels; features and classes appear late, some rows are empty, some values 0."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(n_classes, n_rows + 10))
    ids = random.permutation(3 * (n_rows + 10))
    examples, labels = [], []
    for row in range(n_rows):
        label = int(random.integers(min(n_classes, 1 + row // 6)))
        columns = random.choice(6 + row // 2, size=0 if row % 17 == 5 else 5, replace=False)
        values = np.round(centres[label, columns] + 0.3 * random.normal(size=len(columns)), 1)
        keys = [f"word {ids[column]}" if kind == "names" else int(ids[column]) for column in columns]
        examples.append(dict(zip(keys, values.tolist(), strict=True)))
        labels.append(LABELS[label].item())
    return examples, labels


def one_by_one(learner, X, y, w=None):
    for x, label, weight in zip(X, y, itertools.repeat(1.0) if w is None else w, strict=w is not None):
        learner.learn_one(x, label, weight)
    return learner


def at_once(learner, X, y, w=None):
    learner.learn_many(X, y, w)
    return learner


def in_parts(learner, X, y, cuts):
    for start, stop in itertools.pairwise([0, *sorted(cuts), len(y)]):
        if stop > start:
            learner.learn_many(X[start:stop], y[start:stop])
    return learner


def order_seen(X):
    """The features in the order of their first value other than 0."""
    return list(dict.fromkeys(key for x in X for key, value in x.items() if value))


def sparse_rows(X, n_columns=None):
    """Dicts of ids as sparse rows, whose columns are the ids."""
    n_columns = n_columns or 1 + max(key for x in X for key in x)
    rows = scipy.sparse.lil_array((len(X), n_columns))
    for row, x in enumerate(X):
        for key, value in x.items():
            rows[row, key] = value
    return rows.tocsr()
