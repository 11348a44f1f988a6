"""What it costs to trace every step: a pass with a trace beside the same pass without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from datasets import Missing, log_uniform, mnist, newsgroups
from table import Result, Section
from timing import best_of

from maxcosine import OnlineClassifier

# With a trace, a pass takes at most 1.5 times as long: without, at least this share of the time.
LEAST = round(1 / 1.5, 2)


def measure(folder: Path | None, repeats: int) -> Section:
    def mnist_as(storage: Any) -> tuple[Any, Any]:
        X, y, _, _ = mnist(folder)
        return storage(X), y

    cases = [
        ("20 Newsgroups, CSR", lambda: newsgroups(folder)),
        ("synthetic, CSR", lambda: log_uniform(200_000, 2**20)),
        ("MNIST, ten classes, CSR", lambda: mnist_as(scipy.sparse.csr_matrix)),
        ("MNIST, ten classes, dense", lambda: mnist_as(np.ascontiguousarray)),
    ]
    results, missing = [], []
    for name, load in cases:
        try:
            X, y = load()
        except Missing as error:
            missing.append(f"{name}: {error}")
            continue

        def fit(X: Any = X, y: Any = y, *, trace: bool) -> None:
            OnlineClassifier("pa1", fit_intercept=False).fit(X, y, trace=trace)

        seconds = best_of(repeats, lambda fit=fit: fit(trace=True), lambda fit=fit: fit(trace=False))
        with_trace, without = (1e3 * one for one in seconds)
        results.append(Result(f"{name}; peer: without a trace", with_trace, "ms", without, least=LEAST))
    notes = [
        'ours: OnlineClassifier("pa1", fit_intercept=False).fit(X, y, trace=True), float32',
        "peer: the same without a trace",
    ]
    return Section("Tracing every step, one thread", notes, results, missing)
