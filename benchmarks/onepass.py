"""Measure OnePassClassifier beside other learners: ``make results-onepass DATA=DIR``.

This runs ``python benchmarks/onepass.py --data DIR --json docs/results/onepass.json``, and then
``python docs/generate_onepass.py`` for the page. DIR contains mnist/*.gz and sparse/*.gz; sets that it lacks are left
out. Fashion-MNIST is downloaded if it is not in DIR/fashion.

Every one-pass learner reads the same three orders of the training rows as they are, once, with its defaults, in one
thread. The learners take turns, and their seconds are those of the processor, so that other work does not count. The
batch learners do not depend on the order, so they run once; they choose their parameters by cross-validation. Sets
without test examples are divided as ``benchmarks/gallery.py`` divides them.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onepass_batch as batch
from onepass_learners import OnePassLearner, Outcome, learners
from onepass_problems import Problem, Stream, load_all
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

from maxcosine import OnePassClassifier, files
from maxcosine.experiments.environment import processor, versions

ORDERS = (0, 1, 2)
"""The seeds of the orders."""
BINS = 15
"""Of the expected calibration error."""
BATCH = ("LinearSVC", "LogisticRegression")

Figures = dict[str, Any]


def measure(problem: Problem, compared: list[OnePassLearner]) -> list[Figures]:
    """Measure all learners on a problem, and on its labels against the rest."""
    compared = [one for one in compared if problem.small or not one.small_only]
    runs: dict[str, Figures] = {one.name: {"mistakes": [[]], "seconds": []} for one in compared}
    rest: dict[str, Figures] = {}
    for seed in ORDERS:
        stream = Stream(problem, np.random.default_rng(seed).permutation(len(problem.y)))
        for one in compared:
            outcome = one.run(stream)
            _add(runs[one.name], problem, outcome, calibration=one.name == "onepass")
            if problem.rest_title is not None:
                wins = onepass_against_rest(stream) if one.name == "onepass" else outcome.against_rest
                mistakes = np.sum(wins != (problem.y_test[:, None] == np.arange(problem.n_classes)), axis=0)
                of_labels = rest.setdefault(one.name, {"mistakes": [[] for _ in mistakes]})["mistakes"]
                for of_label, count in zip(of_labels, mistakes.tolist(), strict=True):
                    of_label.append(count)
    batches = {name: batch.measure(problem, name) for name in BATCH}
    found = [_set(problem, problem.name, problem.title, runs, batches)]
    if problem.rest_title is not None:
        batches = {
            name: {"cv_error": one["cv_error"], "mistakes": one.pop("rest_mistakes")} for name, one in batches.items()
        }
        found.append(_set(problem, f"{problem.name}_rest", problem.rest_title, rest, batches))
    return found


def _add(runs: Figures, problem: Problem, outcome: Outcome, *, calibration: bool) -> None:
    right = outcome.predicted == problem.y_test
    runs["mistakes"][0].append(int(np.sum(~right)))
    runs["seconds"].append(round(outcome.seconds, 5))
    if outcome.probabilities is not None:
        loss = log_loss(problem.y_test, outcome.probabilities, labels=np.arange(problem.n_classes))
        runs.setdefault("log_loss", []).append(float(loss))
    if calibration:
        error = expected_calibration_error(outcome.probabilities.max(axis=1), right)
        runs.setdefault("calibration_error", []).append(error)


def expected_calibration_error(confidence: np.ndarray, right: np.ndarray) -> float:
    """Return the mean over rows of |mean confidence - share right| of the row's bin; bins have equal widths.

    The confidence of a prediction is the probability of the predicted class.
    """
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, confidence, BINS) - np.bincount(bins, right, BINS)
    return float(np.abs(gaps).sum() / len(confidence))


def onepass_against_rest(stream: Stream) -> np.ndarray:
    """Learn each label against the rest, and return which win; the other learners do so for ten classes anyway."""
    labels = range(stream.problem.n_classes)
    models = (OnePassClassifier().fit(stream.X, stream.y == label) for label in labels)
    return np.column_stack([model.predict(stream.problem.X_test) for model in models])


def _set(problem: Problem, name: str, title: str, runs: dict[str, Figures], batches: dict[str, Figures]) -> Figures:
    return {
        "name": name,
        "title": title,
        "content": problem.content,
        "train": len(problem.y),
        "test": len(problem.y_test),
        "features": problem.X.shape[1],
        "classes": 2 if name != problem.name else problem.n_classes,
        "divided": problem.divided,
        "choice_rows": problem.choice_rows,
        "views": list(batch.views(problem)),
        "sha256": problem.sha256,
        "runs": runs,
        "batch": batches,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder with mnist/, fashion/ and sparse/")
    parser.add_argument("--json", type=Path, required=True, help="the file for the figures")
    options = parser.parse_args()
    compared = learners()
    started = time.perf_counter()
    sets: list[Figures] = []
    with threadpool_limits(1):
        for problem in load_all(options.data):
            sets += measure(problem, compared)
            print(f"{problem.name}: {time.perf_counter() - started:.0f} s", flush=True)
    packages = ("scikit-learn", "vowpalwabbit", "river")
    results = {
        "command": "make results-onepass DATA=DIR",
        "orders": ORDERS,
        "bins": BINS,
        "learners": [{"name": one.name, "title": one.title, "family": one.family} for one in compared],
        "batch": {
            "learners": BATCH,
            "folds": batch.FOLDS,
            "strengths": batch.STRENGTHS,
            "choice_iterations": batch.CHOICE_ITERATIONS,
            "final_iterations": batch.FINAL_ITERATIONS,
            "tolerance": batch.TOLERANCE,
        },
        "versions": versions() | {name: version(name) for name in packages},
        "processor": processor(),
        "sets": sets,
    }
    # The figures of one label, and a candidate of a batch learner, are one line of the file.
    text = re.sub(r"[\[{][^\[\]{}]*[\]}]", lambda found: " ".join(found[0].split()), json.dumps(results, indent=1))
    files.write(options.json, text + "\n")


if __name__ == "__main__":
    main()
