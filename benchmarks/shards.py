"""Measure what shards and rounds cost in mistakes and in proven bound, and what a second worker gains.

``python benchmarks/shards.py --data DIR --text FOLDER --json docs/results/distribute.json``, and then
``python docs/generate_distribute.py`` for the tables and the figure. DIR contains mnist/*.gz and
sparse/20news_*.svm.gz; data sets that it lacks are left out. FOLDER receives 2 GB of svmlight text, unless it
has them already.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import scipy.sparse
import text
from timing import environment

from maxcosine import MCPExactClassifier
from maxcosine.certificate import HOW
from maxcosine.distributed import Job
from maxcosine.distributed.dask import connected, fit

SHARDS, ROUNDS, ORDERS = (1, 2, 4, 8, 16, 32, 64), 3, 3
SYNTHETIC_ROWS, SYNTHETIC_FEATURES, SYNTHETIC_TEST = 400_000, 2**18, 50_000
TEXT_MEGABYTES, TEXT_SHARDS, TEXT_REPEATS = 2000, 16, 3


def mnist(folder: Path) -> tuple[Any, ...]:
    X, y, X_test, y_test = datasets.mnist(folder)
    return scipy.sparse.csr_array(X), y.astype(int), scipy.sparse.csr_array(X_test), y_test.astype(int)


def newsgroups(folder: Path) -> tuple[Any, ...]:
    (X, y), (X_test, y_test) = datasets.newsgroups(folder), datasets.newsgroups(folder, "test")
    n_columns = min(X.shape[1], X_test.shape[1])  # words that only one part has do not matter
    return X[:, :n_columns], y, X_test[:, :n_columns], y_test


def synthetic(_: Path) -> tuple[Any, ...]:
    """Rows whose ids are as frequent as words, with the labels of a noisy separator."""
    X, _labels = datasets.log_uniform(SYNTHETIC_ROWS + SYNTHETIC_TEST, SYNTHETIC_FEATURES)
    random = np.random.default_rng(1)
    scores = X @ random.normal(size=SYNTHETIC_FEATURES)
    y = np.where(scores + 0.5 * random.normal(size=len(scores)) > 0, 1, -1)
    n = SYNTHETIC_ROWS
    return X[:n], y[:n], X[n:], y[n:]


def curves(X: Any, y: Any, X_test: Any, y_test: Any) -> Iterator[dict[str, Any]]:
    """One result for each order of the examples, number of shards, way of merging and round."""
    learner = MCPExactClassifier(fit_intercept=False)
    for seed, n_shards in itertools.product(range(ORDERS), SHARDS):
        order = np.random.default_rng(seed).permutation(len(y))
        edges = np.linspace(0, len(y), n_shards + 1).astype(int)
        shards = [[(X[order[i:j]], y[order[i:j]])] for i, j in itertools.pairwise(edges)]
        first = [Job(learner).learn(shard) for shard in shards]
        for how in HOW:
            job, start, parts = Job(learner, how), None, first
            for number in range(1, ROUNDS + 1):
                received = sum(len(part.model) for part in parts)
                sent = 0 if start is None else n_shards * len(start.model)
                start = job.finish_round(job.merge(parts), start)
                fitted = job.to_estimator(start)
                yield {
                    "order": seed,
                    "shards": n_shards,
                    "how": how,
                    "round": number,
                    "mistakes": _mean_mistakes(fitted, X_test, y_test),
                    "error": float(np.mean(fitted.predict(X_test) != y_test)),
                    "log_bound": float(np.mean(np.log(fitted.certificate_.bound))),
                    "bytes": received + sent,
                }
                parts = [job.learn(shard, start) for shard in shards] if number < ROUNDS else []


def _mean_mistakes(learner: Any, X_test: Any, y_test: Any) -> float:
    """Test mistakes of each label against the rest, averaged over the labels."""
    scores = learner.decision_function(X_test)
    if scores.ndim == 1:
        return float(np.count_nonzero((scores > 0) != (y_test == learner.classes_[1])))
    return float(np.count_nonzero((scores > 0) != (y_test[:, None] == learner.classes_)) / scores.shape[1])


def all_curves(folder: Path) -> dict[str, Any]:
    """The curves of all data sets in a folder."""
    results = {}
    for title, load in (("MNIST", mnist), ("20 Newsgroups", newsgroups), ("synthetic stream", synthetic)):
        try:
            data = load(folder)
        except datasets.Missing as missing:
            print(f"{title}: not measured, {missing} is not in --data", file=sys.stderr)
            continue
        results[title] = {"train": data[0].shape, "test": len(data[3]), "rows": list(curves(*data))}
        print(f"{title}: measured", file=sys.stderr)
    return results


def throughput(folder: Path) -> dict[str, Any]:
    """Times of one worker and of two on the same text, in turns."""
    folder.mkdir(parents=True, exist_ok=True)
    path = text.write(folder, TEXT_MEGABYTES)["svm"]
    few_lines = folder / "few.svm"
    few_lines.write_text("1 1:1\n-1 2:1\n" * 2)
    seconds, processor_seconds = {1: [], 2: []}, {1: [], 2: []}
    models, growth = set(), 0
    for _, n_workers in itertools.product(range(TEXT_REPEATS), (1, 2)):
        with connected(f"dask-local:{n_workers}") as client:
            # Modules are imported before the time is taken.
            fit(few_lines, MCPExactClassifier(), n_shards=4, client=client)
            before, peak = client.run(time.process_time), _peak_bytes()
            started = time.perf_counter()
            learner = fit(path, MCPExactClassifier(), n_shards=TEXT_SHARDS, client=client)
            seconds[n_workers].append(time.perf_counter() - started)
            after = client.run(time.process_time)
        growth = max(growth, _peak_bytes() - peak)
        processor_seconds[n_workers].append(sum(after[worker] - before[worker] for worker in before))
        models.add(learner.coef_.tobytes())
        print(f"{n_workers} workers: {seconds[n_workers][-1]:.2f} s", file=sys.stderr)
    best = {n: min(times) for n, times in seconds.items()}
    return {
        "bytes": path.stat().st_size,
        "shards": TEXT_SHARDS,
        "seconds": seconds,
        "processor_seconds": processor_seconds,
        "speedup": best[1] / best[2],
        "megabytes_a_second": {n: path.stat().st_size / s / 1e6 for n, s in best.items()},
        "driver_grew_by_bytes": growth,
        "model_bytes": learner.coef_.nbytes,
        "same_bits": len(models) == 1,
    }


def _peak_bytes() -> int:
    """The largest amount of memory that this process has had; Linux reports it in KB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="a folder with data sets: measure mistakes and bounds")
    parser.add_argument("--text", type=Path, help="a folder for 2 GB of text: measure workers")
    parser.add_argument("--json", type=Path, help="update this file instead of printing the results")
    given = parser.parse_args()
    results = json.loads(given.json.read_text()) if given.json and given.json.exists() else {}
    results["environment"] = environment()
    if given.data is not None:
        results["curves"] = all_curves(given.data)
    if given.text is not None:
        results["throughput"] = throughput(given.text)
    if given.json is None:
        print(json.dumps(results))
    else:
        given.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
