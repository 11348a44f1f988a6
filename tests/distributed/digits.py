"""The digits of scikit-learn as shards and as lines of text, and the comparison of two results."""

import itertools

import numpy as np
from sklearn.datasets import load_digits

X, Y = load_digits(return_X_y=True)
LINES = [
    f"{label} " + " ".join(f"{k}:{v:g}" for k, v in enumerate(row, 1) if v) + "\n"
    for row, label in zip(X, Y, strict=True)
]


def cut(n, *columns):
    """Divide the rows of arrays into n shards of one chunk each."""
    columns = columns or (X, Y)
    edges = np.linspace(0, len(columns[0]), n + 1).astype(int)
    return [[tuple(column[i:j] for column in columns)] for i, j in itertools.pairwise(edges)]


def assert_same(result, expected):
    """Two classifiers have the same weights, to the bit, and the same certificate and counts."""
    assert result.classes_.tolist() == expected.classes_.tolist()
    assert result.coef_.tobytes() == expected.coef_.tobytes()
    assert result.intercept_.tobytes() == expected.intercept_.tobytes()
    assert result.certificate_ == expected.certificate_
    assert getattr(result, "rounds_", None) == getattr(expected, "rounds_", None)
