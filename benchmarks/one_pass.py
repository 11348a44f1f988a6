"""One pass of PA-I, the whole `fit`, compared with scikit-learn's SGDClassifier with the same step."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from datasets import Missing, log_uniform, mnist, newsgroups
from sklearn.linear_model import SGDClassifier
from table import Result, Section
from timing import best_of, version_of

from maxcosine import OnlineClassifier

SYNTHETIC_ROWS, SYNTHETIC_FEATURES = 200_000, 2**20
SGD = {
    "loss": "hinge",
    "penalty": None,
    "learning_rate": "pa1",
    "eta0": 1,
    "fit_intercept": False,
    "shuffle": False,
    "max_iter": 1,
    "tol": None,
}


def fit_ours(X: Any, y: Any) -> OnlineClassifier:
    return OnlineClassifier("pa1", fit_intercept=False).fit(X, y)


def fit_peer(X: Any, y: Any) -> SGDClassifier:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a single pass
        return SGDClassifier(**SGD).fit(X, y)


def measure(folder: Path | None, repeats: int) -> Section:
    def mnist_as(storage: Any) -> tuple[Any, Any]:
        X, y, _, _ = mnist(folder)
        return storage(X), y

    cases = [
        ("20 Newsgroups, CSR float32", 2.0, lambda: newsgroups(folder)),
        ("synthetic, CSR float32", 1.5, lambda: log_uniform(SYNTHETIC_ROWS, SYNTHETIC_FEATURES)),
        ("MNIST, ten classes, CSR float32", 5.0, lambda: mnist_as(scipy.sparse.csr_matrix)),
        ("MNIST, ten classes, dense float32", 11.0, lambda: mnist_as(np.ascontiguousarray)),
    ]
    results, missing = [], []
    for name, least, load in cases:
        try:
            X, y = load()
        except Missing as error:
            missing.append(f"{name}: {error}")
            continue
        ours, peer = fit_ours(X, y).coef_, fit_peer(X, y).coef_
        assert np.abs(ours - peer).max() <= 1e-3 * np.abs(peer).max(), "both must have done the same work"
        seconds = best_of(repeats, lambda X=X, y=y: fit_ours(X, y), lambda X=X, y=y: fit_peer(X, y))
        ours_ms, peer_ms = (1e3 * one for one in seconds)
        results.append(Result(name, ours_ms, "ms", peer_ms, least=least))
    settings = ", ".join(f"{name}={value!r}" for name, value in SGD.items())
    notes = [
        f"synthetic: {SYNTHETIC_ROWS:,} rows of 60 log-uniform ids out of {SYNTHETIC_FEATURES:,}",
        'ours: OnlineClassifier("pa1", fit_intercept=False).fit(X, y)',
        f"peer: {version_of('scikit-learn')}, SGDClassifier({settings})",
    ]
    return Section("One pass over data in memory, one thread", notes, results, missing)
