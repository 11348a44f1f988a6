"""Shards and rounds: what they cost in mistakes and in proof, and what a second worker gains.

``python benchmarks/distribute.py --data DIR --json docs/results/distribute.json``; then
``python docs/generate_distribute.py`` makes the page and its figure. DIR holds mnist/*.gz and
sparse/20news_*.svm.gz; what it lacks is left out. ``--text FOLDER`` writes 2 GB of svmlight text there,
unless it is there already, and measures one worker and two on it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import psutil
import scipy.sparse
import text
from timing import environment

from maxcosine import MCPExactClassifier
from maxcosine.distributed import Job, close_round, combine, fitted, learn
from maxcosine.distributed.dask import connected, fit
from maxcosine.merging import HOW

SHARDS, ROUNDS, ORDERS = (1, 2, 4, 8, 16, 32, 64), 3, 3
SYNTHETIC_ROWS, SYNTHETIC_FEATURES, SYNTHETIC_TEST = 400_000, 2**18, 50_000
TEXT_MEGABYTES, TEXT_SHARDS, TEXT_REPEATS = 2000, 16, 3


def mnist(folder: Path) -> tuple[Any, ...]:
    X, y, X_test, y_test = datasets.mnist(folder)
    return scipy.sparse.csr_array(X), y.astype(int), scipy.sparse.csr_array(X_test), y_test.astype(int)


def newsgroups(folder: Path) -> tuple[Any, ...]:
    (X, y), (X_test, y_test) = datasets.newsgroups(folder), datasets.newsgroups(folder, "test")
    n_columns = min(X.shape[1], X_test.shape[1])  # words of one part only have no weight, or no use
    return X[:, :n_columns], y, X_test[:, :n_columns], y_test


def synthetic(_: Path) -> tuple[Any, ...]:
    """Rows of log-uniform ids, as words are, and the labels of a separator that errs on some."""
    X, _labels = datasets.log_uniform(SYNTHETIC_ROWS + SYNTHETIC_TEST, SYNTHETIC_FEATURES)
    random = np.random.default_rng(1)
    scores = X @ random.normal(size=SYNTHETIC_FEATURES)
    y = np.where(scores + 0.5 * random.normal(size=len(scores)) > 0, 1, -1)
    n = SYNTHETIC_ROWS
    return X[:n], y[:n], X[n:], y[n:]


def curves(X: Any, y: Any, X_test: Any, y_test: Any) -> Iterator[dict[str, Any]]:
    """One row for each number of shards, way of merging and round, over several orders of the examples."""
    learner = MCPExactClassifier(fit_intercept=False)
    for seed in range(ORDERS):
        order = np.random.default_rng(seed).permutation(len(y))
        examples, labels = X[order], y[order]
        for n_shards in SHARDS:
            edges = np.linspace(0, len(y), n_shards + 1).astype(int)
            shards = [[(examples[i:j], labels[i:j])] for i, j in itertools.pairwise(edges)]
            first = [learn(Job(learner), shard) for shard in shards]
            for how in HOW:
                job, start, parts = Job(learner, how), None, first
                for number in range(1, ROUNDS + 1):
                    sent = sum(len(part.model) for part in parts)
                    given = 0 if start is None else n_shards * len(start.model)
                    start = close_round(job, combine(job, parts), start)
                    found = fitted(job, start)
                    yield {
                        "order": seed,
                        "shards": n_shards,
                        "how": how,
                        "round": number,
                        "mistakes": _mistakes(found, X_test, y_test),
                        "error": float(np.mean(found.predict(X_test) != y_test)),
                        "log_bound": float(np.mean(np.log(found.certificate_.bound))),
                        "bytes": sent + given,
                    }
                    parts = [learn(job, shard, start) for shard in shards] if number < ROUNDS else []


def all_curves(folder: Path) -> dict[str, Any]:
    """The curves of all data that are there."""
    found = {}
    for title, load in (("MNIST", mnist), ("20 Newsgroups", newsgroups), ("synthetic stream", synthetic)):
        try:
            data = load(folder)
        except datasets.Missing as missing:
            print(f"{title}: not measured, {missing} is not in --data", file=sys.stderr)
            continue
        found[title] = {"train": data[0].shape, "test": len(data[3]), "rows": list(curves(*data))}
        print(f"{title}: measured", file=sys.stderr)
    return found


def _mistakes(learner: Any, X_test: Any, y_test: Any) -> float:
    """Test mistakes of each label against the rest, their mean."""
    scores = learner.decision_function(X_test)
    if scores.ndim == 1:
        return float(np.count_nonzero((scores > 0) != (y_test == learner.classes_[1])))
    return float(np.count_nonzero((scores > 0) != (y_test[:, None] == learner.classes_)) / scores.shape[1])


class Memory:
    """The most memory that this process has had while something ran."""

    def __enter__(self) -> Memory:
        self._process, self._done = psutil.Process(), threading.Event()
        self.before = self.most = self._process.memory_info().rss
        self._watcher = threading.Thread(target=self._watch)
        self._watcher.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(0.05):
            self.most = max(self.most, self._process.memory_info().rss)

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watcher.join()


def throughput(folder: Path) -> dict[str, Any]:
    """Seconds of one worker and of two, of one thread each, on the same text, several times in turn."""
    folder.mkdir(parents=True, exist_ok=True)
    path = text.write(folder, TEXT_MEGABYTES)["svm"]
    _warm_up()
    learner, digests, grown = MCPExactClassifier(), set(), 0
    seconds, processor_seconds = {1: [], 2: []}, {1: [], 2: []}
    for _, n_workers in itertools.product(range(TEXT_REPEATS), (1, 2)):
        with connected(f"dask-local:{n_workers}") as client:
            client.run(_warm_up)
            before = client.run(time.process_time)
            with Memory() as memory:
                begun = time.perf_counter()
                found = fit(path, learner, n_shards=TEXT_SHARDS, client=client)
                seconds[n_workers].append(time.perf_counter() - begun)
            after = client.run(time.process_time)
            processor_seconds[n_workers].append(sum(after[worker] - before[worker] for worker in before))
            grown = max(grown, memory.most - memory.before)
            digests.add(found.coef_.tobytes())
            print(f"{n_workers} workers: {seconds[n_workers][-1]:.2f} s", file=sys.stderr)
    best = {n: min(of_n) for n, of_n in seconds.items()}
    return {
        "bytes": path.stat().st_size,
        "shards": TEXT_SHARDS,
        "seconds": seconds,
        "processor_seconds": processor_seconds,
        "speedup": best[1] / best[2],
        "megabytes_a_second": {n: path.stat().st_size / s / 1e6 for n, s in best.items()},
        "driver_grew_by_bytes": grown,
        "model_bytes": found.coef_.nbytes,
        "same_bits": len(digests) == 1,
    }


def _warm_up() -> None:
    """A worker that has been at work for a while has loaded its kernels."""
    import tempfile
    from pathlib import Path

    from maxcosine import MCPExactClassifier
    from maxcosine.distributed import fit, plan

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "few.svm"
        path.write_text("1 1:1\n-1 2:1\n")
        fit(plan(path), MCPExactClassifier())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="a folder with data sets: measure curves")
    parser.add_argument("--text", type=Path, help="a folder for 2 GB of text: measure workers")
    parser.add_argument("--json", type=Path, help="where to write what was found; what it has stays")
    given = parser.parse_args()
    found = json.loads(given.json.read_text()) if given.json and given.json.exists() else {}
    found["environment"] = environment()
    if given.data is not None:
        found["curves"] = all_curves(given.data)
    if given.text is not None:
        found["throughput"] = throughput(given.text)
    if given.json is None:
        print(json.dumps(found))
    else:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
