"""Count the test mistakes of the gallery's learners: ``make gallery DATA=DIR``.

This runs ``python benchmarks/gallery.py --data DIR --json docs/results/gallery.json``, and then
``python docs/generate_gallery.py`` for the page. DIR contains mnist/*.gz and sparse/*.svm.gz; sparse sets that it lacks
are left out. Fashion-MNIST is downloaded if it is not in DIR/fashion.

Every learner reads the same orders, in one pass, without an intercept and without scaling. Images are learnt as in the
paper: each label against the rest, in buckets of 1,000 examples. Sparse sets have two classes, and their rows are
shuffled one by one. Sets without test examples are divided once: every fifth row of a fixed shuffle is a test example.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import runpy
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.datasets import load_svmlight_file, load_svmlight_files

from maxcosine import RULES, files
from maxcosine.experiments import datasets
from maxcosine.experiments.environment import processor, versions
from maxcosine.experiments.protocol import Experiment, Learner, Protocol
from maxcosine.experiments.rule_heads import WEIGHT_TYPE, RuleHeads
from maxcosine.rows import csr_array, slot_rows_of
from maxcosine.rules.rule import Rule

LEARNERS = Path(__file__).parents[1] / "docs" / "gallery" / "learners.py"
PEERS = ("mcp", "mcp_exact", "perceptron", "pa1", "alma")
IMAGES = ("mnist", "fashion")
SPARSE = {
    "20news": ("20 Newsgroups", "word counts; sci, comp and forsale against the other groups"),
    "rcv1_small": ("RCV1", "a sample of news; tf-idf"),
    "sms_spam": ("SMS spam", "word counts"),
    "a9a": ("a9a", "Adult, one-hot; noisy"),
    "w8a": ("w8a", "web pages, binary; 3 % positive"),
    "mushrooms": ("mushrooms", "one-hot; separable"),
}
"""By name of the file: title and content."""
IMAGE_ORDERS, SPARSE_ORDERS = 20, 50
SEED = 0
TEST_SHARE = 5  # of a set without test examples, every fifth row is one

Counts = dict[str, dict[str, list[list[int]]]]
"""By rule: test mistakes of the last and of the averaged hypothesis, and mistakes while learning, each by label and
order."""


@dataclass(frozen=True)
class SparseSet:
    """Two classes of sparse rows."""

    X: scipy.sparse.csr_array
    positive: np.ndarray
    X_test: scipy.sparse.csr_array
    test_positive: np.ndarray
    divided: bool
    """Whether the test rows were taken from the training file."""
    sha256: str
    """The checksum of its files, one after the other."""


def rules() -> list[Rule]:
    """The rules to compare; learners that are built in run as built in."""
    derived = runpy.run_path(str(LEARNERS))["learners"]()
    return [RULES.get(one.name, one.rule) for one in derived] + [RULES[name] for name in PEERS]


def count_on_images(name: str, compared: list[Rule], folder: Path | None) -> dict[str, Any]:
    data = datasets.load(name, folder)
    learners = [Learner(rule, averaged) for rule in compared for averaged in (False, True)]
    protocol = Protocol(learners, data.buckets, IMAGE_ORDERS, SEED)
    experiment = Experiment(data, protocol)
    counts = _empty(compared, len(data.labels), IMAGE_ORDERS)
    for unit in experiment.run(experiment.units, jobs=1):
        for run in unit["runs"]:
            kind, rule = ("averaged" if run["rule"].startswith("avg_") else "last"), run["rule"].removeprefix("avg_")
            label, order = run["label"], run["permutation"]
            counts[rule][kind][label][order] = run["test_mistakes"]
            counts[rule]["learning"][label][order] = run["train_mistakes"]
    return {
        "name": name,
        "title": data.title,
        "content": "pixels from 0 to 255; each of ten labels against the rest",
        "train": len(data.X_train),
        "test": len(data.X_test),
        "features": data.X_test.shape[1],
        "divided": False,
        "sha256": data.sha256,
        "counts": counts,
    }


def count_on_sparse(name: str, compared: list[Rule], folder: Path) -> dict[str, Any]:
    data = load_sparse(name, folder)
    counts = _empty(compared, 1, SPARSE_ORDERS)
    test_rows = slot_rows_of(csr_array(data.X_test, dtype=WEIGHT_TYPE))
    for order in range(SPARSE_ORDERS):
        shuffled = np.random.default_rng([SEED, order]).permutation(len(data.positive))
        heads = RuleHeads(compared, data.X.shape[1], average=True)
        heads.learn(slot_rows_of(csr_array(data.X[shuffled], dtype=WEIGHT_TYPE)), data.positive[shuffled])
        for kind, averaged in ("last", False), ("averaged", True):
            outcomes = heads.outcomes(test_rows, data.test_positive, averaged=averaged)
            for rule, outcome in zip(compared, outcomes, strict=True):
                counts[rule.name][kind][0][order] = outcome["test_mistakes"]
                counts[rule.name]["learning"][0][order] = outcome["train_mistakes"]
    title, content = SPARSE[name]
    return {
        "name": name,
        "title": title,
        "content": content,
        "train": len(data.positive),
        "test": len(data.test_positive),
        "features": data.X.shape[1],
        "divided": data.divided,
        "sha256": data.sha256,
        "counts": counts,
    }


def load_sparse(name: str, folder: Path) -> SparseSet:
    """Read a sparse set with its test examples, or divide it."""
    parts = [folder / "sparse" / f"{name}_{part}.svm.gz" for part in ("train", "test")]
    if all(path.is_file() for path in parts):
        X, y, X_test, y_test = load_svmlight_files([str(path) for path in parts])
        return SparseSet(X, y > 0, X_test, y_test > 0, divided=False, sha256=_sha256(*parts))
    alone = parts[0] if parts[0].is_file() else folder / "sparse" / f"{name}.svm.gz"
    X, y = load_svmlight_file(str(alone))
    shuffled = np.random.default_rng(SEED).permutation(len(y))
    test, train = shuffled[::TEST_SHARE], np.delete(shuffled, np.s_[::TEST_SHARE])
    return SparseSet(X[train], y[train] > 0, X[test], y[test] > 0, divided=True, sha256=_sha256(alone))


def _sha256(*paths: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def _empty(compared: list[Rule], n_labels: int, n_orders: int) -> Counts:
    kinds = ("last", "averaged", "learning")
    return {rule.name: {kind: [[-1] * n_orders for _ in range(n_labels)] for kind in kinds} for rule in compared}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder with mnist/, fashion/ and sparse/")
    parser.add_argument("--json", type=Path, required=True, help="the file for the counts")
    options = parser.parse_args()
    compared = rules()
    started = time.perf_counter()
    found = []
    for name in IMAGES:
        found.append(count_on_images(name, compared, options.data))
        print(f"{name}: {time.perf_counter() - started:.0f} s", flush=True)
    for name in SPARSE:
        try:
            found.append(count_on_sparse(name, compared, options.data))
        except FileNotFoundError as error:
            print(f"{name} is left out: {error}")
            continue
        print(f"{name}: {time.perf_counter() - started:.0f} s", flush=True)
    results = {
        "command": "make gallery DATA=DIR",
        "seed": SEED,
        "rules": [rule.name for rule in compared],
        "params": {rule.name: rule.make_params()._asdict() for rule in compared if rule.params},
        "versions": versions() | {name: version(name) for name in ("sympy", "scikit-learn")},
        "processor": processor(),
        "sets": found,
    }
    # The counts of one label are one line of the file.
    text = re.sub(r"\[[\s\d,]+\]", lambda found: " ".join(found[0].split()), json.dumps(results, indent=1))
    files.write(options.json, text + "\n")


if __name__ == "__main__":
    main()
