"""One pass of PA-I beside scikit-learn's SGDClassifier with the same step, whole `fit` timed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from datasets import Missing, log_uniform, mnist, newsgroups
from sklearn.linear_model import SGDClassifier
from timing import best_of

from maxcosine import OnlineClassifier

PEER = (
    'SGDClassifier(loss="hinge", penalty=None, learning_rate="pa1", eta0=1, fit_intercept=False, '
    "shuffle=False, max_iter=1, tol=None)"
)
OURS = 'OnlineClassifier("pa1", fit_intercept=False)'


def ours(X: Any, y: Any) -> OnlineClassifier:
    return OnlineClassifier("pa1", fit_intercept=False).fit(X, y)


def sgd() -> SGDClassifier:
    return SGDClassifier(
        loss="hinge",
        penalty=None,
        learning_rate="pa1",
        eta0=1,
        fit_intercept=False,
        shuffle=False,
        max_iter=1,
        tol=None,
    )


def peer(X: Any, y: Any) -> SGDClassifier:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sgd().fit(X, y)


def _cases(folder: Path | None) -> Iterator[tuple[str, float, float, Callable[[], tuple[Any, Any]]]]:
    """Name, the ratio asked for, the ratio aimed at, and the data."""

    def digits(storage: Callable[[Any], Any]) -> tuple[Any, Any]:
        X, y, _, _ = mnist(folder)
        return storage(X), y

    yield "20 Newsgroups, CSR float32", 1.6, 2.5, lambda: newsgroups(folder)
    yield "synthetic, 2^20 features, 60 ids a row", 1.4, 2.0, lambda: log_uniform(200_000, 2**20)
    yield "MNIST, ten classes, CSR float32", 3.0, 6.0, lambda: digits(scipy.sparse.csr_matrix)
    yield "MNIST, ten classes, dense float32", 8.0, 15.0, lambda: digits(np.ascontiguousarray)


def measure(folder: Path | None, repeats: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name, least, aim, load in _cases(folder):
        row: dict[str, Any] = {"data": name, "least": least, "aim": aim}
        rows.append(row)
        try:
            X, y = load()
        except Missing as missing:
            row["missing"] = str(missing)
            continue
        a, b = ours(X, y).coef_, peer(X, y).coef_
        # Both sides must have done the same work.
        row["largest_difference"] = float(np.abs(a - b).max() / np.abs(b).max())
        row["ours_s"], row["peer_s"] = best_of(repeats, partial(ours, X, y), partial(peer, X, y))
        row["ratio"] = row["peer_s"] / row["ours_s"]
    return rows
