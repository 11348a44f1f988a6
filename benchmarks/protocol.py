"""The paper's whole protocol on MNIST, compared with scikit-learn doing a third of it.

maxcosine: three rules, ten labels, 20 orders, that is 36 million learning steps, and their tests, from the
files on disk to the results file. scikit-learn: one rule, PA, in the same orders, and its tests. Both use all
processors.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from one_pass import sgd
from timing import best_of

from maxcosine.experiments import datasets
from maxcosine.experiments.protocol import PAPER_RULES, Protocol, learners_of
from maxcosine.experiments.run import run

MOST_S, AIM_S = 10.0, 4.0
LEAST, AIM = 1.0, 3.0


def measure(folder: Path | None, repeats: int) -> dict[str, Any]:
    """Measure both; `folder` holds MNIST, if it is given."""
    what = {"most_s": MOST_S, "aim_s": AIM_S, "least": LEAST, "aim": AIM}
    try:
        data = datasets.load("mnist", folder)
    except datasets.Unavailable:
        return {**what, "missing": "MNIST"}
    protocol = Protocol(learners_of(PAPER_RULES), data.buckets)
    with tempfile.TemporaryDirectory() as scratch:

        def ours() -> None:
            run(datasets.load("mnist", folder), protocol, Path(scratch) / "results.json")

        peer = _Peer(data, protocol)
        ours_s, peer_s = best_of(repeats, ours, peer.run)
        return {
            **what,
            "processors": os.cpu_count(),
            "ours_s": ours_s,
            "peer_s": peer_s,
            "ratio": peer_s / ours_s,
            "command_s": _whole_command(folder, Path(scratch)),
            "peer_mean_mistakes": float(np.mean(peer.mistakes)),
        }


class _Peer:
    """SGDClassifier with the PA step, fitted to all rows in order: faster than bucket by bucket."""

    def __init__(self, data: datasets.Dataset, protocol: Protocol) -> None:
        self.data, self.protocol = data, protocol
        self.X = scipy.sparse.csr_array(data.X_train).astype(float)
        self.X_test = scipy.sparse.csr_array(data.X_test).astype(float)
        self.mistakes: list[int] = []

    def run(self) -> None:
        units = [
            (label, k) for label in range(len(self.data.labels)) for k in range(self.protocol.permutations)
        ]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            self.mistakes = list(pool.map(lambda unit: self._unit(*unit), units))

    def _unit(self, label: int, permutation: int) -> int:
        size = self.X.shape[0] // self.protocol.buckets
        order = self.protocol.order(label, permutation)
        rows = (order[:, None] * size + np.arange(size)).ravel()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            learner = sgd().fit(self.X[rows], self.data.y_train[rows] == label)
        return int(np.count_nonzero(learner.predict(self.X_test) != (self.data.y_test == label)))


def _whole_command(folder: Path | None, scratch: Path) -> float:
    """Time the command in a new process, results and report included."""
    given = [] if folder is None else ["--data", str(folder)]
    written = ["--json", str(scratch / "c.json"), "--report", str(scratch / "c.html")]
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "maxcosine", "reproduce", "mnist", *given, *written],
        check=True,
        capture_output=True,
    )
    return time.perf_counter() - started
