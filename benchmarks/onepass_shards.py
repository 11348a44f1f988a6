"""Measure what shards cost a one-pass learner: test errors of 1, 4, 8 and 32 shards, beside those of a rule.

``python benchmarks/onepass_shards.py --data DIR``, where DIR contains sparse/20news_*.svm.gz and sparse/a9a_*.svm.gz.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from sklearn.datasets import load_svmlight_files

from maxcosine import MCPExactClassifier, OnePassClassifier
from maxcosine.distributed import fit

SETS = {"20 Newsgroups": "20news", "a9a": "a9a"}
SHARDS, ORDERS = (1, 4, 8, 32), 3

# The estimator, the number of rounds, and how to merge.
LEARNERS = {
    "OnePassClassifier()": (OnePassClassifier(), 1, "certified"),
    "the same, two rounds": (OnePassClassifier(), 2, "certified"),
    'MCPExactClassifier(average=True), how="mean"': (MCPExactClassifier(average=True), 1, "mean"),
}


def load(folder: Path, name: str) -> tuple[Any, ...]:
    """Return the training rows, their labels, the test rows and their labels."""
    paths = [str(datasets.find(folder, f"sparse/{name}_{part}.svm.gz")) for part in ("train", "test")]
    return tuple(load_svmlight_files(paths))


def errors(data: tuple[Any, ...], learner: Any, n_shards: int, rounds: int, how: str) -> list[float]:
    """Return the test error for each order of the training rows."""
    X, y, X_test, y_test = data
    found = []
    for seed in range(ORDERS):
        order = np.random.default_rng(seed).permutation(len(y))
        edges = np.linspace(0, len(y), n_shards + 1).astype(int)
        shards = [[(X[order[i:j]], y[order[i:j]])] for i, j in itertools.pairwise(edges)]
        found.append(float(np.mean(fit(shards, learner, rounds=rounds, how=how).predict(X_test) != y_test)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    folder = parser.parse_args().data
    print(
        f"test errors in %, means of {ORDERS} orders, and in relation to one shard and one round of OnePassClassifier"
    )
    for title, name in SETS.items():
        data, one = load(folder, name), 0.0
        for learner, (estimator, rounds, how) in LEARNERS.items():
            for n_shards in SHARDS:
                error = float(np.mean(errors(data, estimator, n_shards, rounds, how)))
                one = one or error
                print(f"{title:14} {learner:46} {n_shards:3} shards {100 * error:6.2f} {error / one:5.2f}", flush=True)


if __name__ == "__main__":
    main()
