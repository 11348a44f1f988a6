"""Streams that change and streams that do not: ``python benchmarks/drift.py --data DIR``.

DIR contains mnist/*.gz and sparse/*.gz; sets that it lacks are left out. Each set is read in one order of its training
rows, once as it is, to count alarms, of which there should be none; and once with labels that are shifted by one class
from the middle on. Then the error over the second half is compared with that of a learner which begins there, as an
oracle would let it, and with one that ignores the drift.
"""

from __future__ import annotations

import argparse
from importlib.metadata import version
from pathlib import Path

import numpy as np
from onepass_problems import Problem, load_all

from maxcosine import OnePassClassifier
from maxcosine.experiments.environment import processor

SEED = 0


def second_half(problem: Problem, order: np.ndarray, on_drift: str) -> tuple[float, OnePassClassifier]:
    """Return the progressive error over the second half of a stream whose labels change in the middle."""
    X, y, middle = problem.X[order], problem.y[order], len(order) // 2
    y[middle:] = (y[middle:] + 1) % problem.n_classes
    learner = OnePassClassifier(on_drift=on_drift)
    if on_drift == "oracle":
        learner = OnePassClassifier().fit(X[middle:], y[middle:])
        return learner.error_.rate, learner
    learner.partial_fit(X[:middle], y[:middle])
    before = learner.mistakes_
    learner.partial_fit(X[middle:], y[middle:])
    return (learner.mistakes_ - before) / (len(y) - middle), learner


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder with mnist/, fashion/ and sparse/")
    options = parser.parse_args()
    print(f"maxcosine {version('maxcosine')}, {processor()}; error over the second half, in percent")
    print(f"{'set':<16}{'rows':>8}{'restart':>9}{'oracle':>9}{'ratio':>7}{'ignore':>8}  alarms if nothing changes")
    for problem in load_all(options.data):
        order = np.random.default_rng(SEED).permutation(len(problem.y))
        steady = OnePassClassifier().fit(problem.X[order], problem.y[order])
        (restarted, _), (oracle, _), (ignoring, _) = (
            second_half(problem, order, how) for how in ("restart", "oracle", "ignore")
        )
        print(
            f"{problem.name:<16}{len(order):>8,}{100 * restarted:>9.2f}{100 * oracle:>9.2f}{restarted / oracle:>7.2f}"
            f"{100 * ignoring:>8.2f}  {[str(one) for one in steady.drift_] or 'none'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
