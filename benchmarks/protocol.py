"""The paper's whole protocol on MNIST, compared with scikit-learn doing a third of it."""

from __future__ import annotations

import os
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import scipy.sparse
from one_pass import SGD
from sklearn.linear_model import SGDClassifier
from table import Result, Section
from timing import best_of, version_of

from maxcosine.experiments import datasets
from maxcosine.experiments.protocol import PAPER_RULES, Protocol, learners_of
from maxcosine.experiments.run import run

MOST_S, LEAST, AIM = 10.0, 1.0, 3.0


def measure(folder: Path | None, repeats: int) -> Section:
    notes = [
        "data: MNIST, ten labels, 20 orders; all processors",
        "ours: three rules and their tests, from the files on disk to the results file",
        f"peer: {version_of('scikit-learn')}, SGDClassifier with the step of PA alone, and its tests",
    ]
    title = "The paper's protocol"
    try:
        data = datasets.load("mnist", folder)
    except datasets.Unavailable:
        return Section(title, notes, [], ["MNIST is not available"])
    protocol = Protocol(learners_of(PAPER_RULES), data.buckets)
    peer = _Peer(data, protocol)
    with tempfile.TemporaryDirectory() as scratch:

        def run_ours() -> None:
            run(datasets.load("mnist", folder), protocol, Path(scratch) / "results.json")

        ours_s, peer_s = best_of(repeats, run_ours, peer.run)
    return Section(
        title,
        notes,
        [Result("the paper's protocol on MNIST", ours_s, "s", peer_s, least=LEAST, aim=AIM, most=MOST_S)],
    )


class _Peer:
    """SGDClassifier with the PA step, fitted to all rows in order, which is faster than bucket by bucket."""

    def __init__(self, data: datasets.Dataset, protocol: Protocol) -> None:
        self.data, self.protocol = data, protocol
        self.X = scipy.sparse.csr_array(data.X_train).astype(float)
        self.X_test = scipy.sparse.csr_array(data.X_test).astype(float)

    def run(self) -> None:
        orders = range(self.protocol.permutations)
        units = [(label, order) for label in range(len(self.data.labels)) for order in orders]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda unit: self._run_unit(*unit), units))

    def _run_unit(self, label: int, permutation: int) -> int:
        size = self.X.shape[0] // self.protocol.buckets
        order = self.protocol.order(label, permutation)
        rows = (order[:, None] * size + np.arange(size)).ravel()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a single pass
            learner = SGDClassifier(**SGD).fit(self.X[rows], self.data.y_train[rows] == label)
        return int(np.count_nonzero(learner.predict(self.X_test) != (self.data.y_test == label)))
