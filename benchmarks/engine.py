"""The engine without estimators: its cost by the number of features, its index, and its memory."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from datasets import log_uniform
from table import Result, Section
from timing import best_of, run

from maxcosine import RULES
from maxcosine.core import FeatureIndex
from maxcosine.engine import learn
from maxcosine.heads import Heads, one_vs_rest
from maxcosine.rows import SlotRows

N_ROWS = 100_000
FEW, MANY = 2**16, 2**26
LARGEST_FACTOR = 3.0
INDEX_FEATURES = 2**20

MEMORY_FEATURES, MEMORY_CLASSES = 10_000_000, 10

# In another process: the peak of this one would include all benchmarks before.
LEARN = """
import re, sys
import numpy as np, scipy.sparse
from maxcosine import OnlineClassifier

features, classes, rows, ids_per_row = int(sys.argv[2]), int(sys.argv[3]), 10_000, 50
learner = OnlineClassifier("pa1", dtype="float32")
if sys.argv[1] == "exact":
    learner.learn_one({0: 1.0}, 0)
step = features * 7 // 11 | 1  # each id once, far from the one before
assert np.gcd(step, features) == 1
for first in range(0, features, rows * ids_per_row):
    ids = np.arange(first, min(features, first + rows * ids_per_row)) * step % features
    ids = np.sort(ids.reshape(-1, ids_per_row), axis=1)
    values = np.random.default_rng(first).random(ids.size, dtype=np.float32)
    indptr = np.arange(0, ids.size + 1, ids_per_row)
    X = scipy.sparse.csr_array((values, ids.ravel(), indptr), shape=(len(ids), features))
    learner.partial_fit(X, np.arange(len(ids)) % classes)
print(int(re.search(r"VmHWM:\\s*([0-9]+)", open("/proc/self/status").read())[1]) * 1024 / 1e6)
"""


def measure(repeats: int) -> Section:
    notes = [
        f"speed: pa1, one head, float32, {N_ROWS:,} rows of 60 log-uniform ids; time per non-zero",
        f"index: mapping ids to slots compared with learning the mapped rows, {INDEX_FEATURES:,} features",
        f"memory: peak of a process that learns {MEMORY_FEATURES:,} features and {MEMORY_CLASSES} classes",
    ]
    few = _nanoseconds(FEW, repeats)
    many = _nanoseconds(MANY, repeats)
    results = [
        Result(f"learning with {FEW:,} features", few, "ns"),
        Result(f"learning with {MANY:,} features", many, "ns", most=round(LARGEST_FACTOR * few, 1)),
        *_index(repeats),
        *(_memory(kind) for kind in ("columns", "exact")),
    ]
    return Section("Engine", notes, results)


def _pass_seconds(n_features: int, rows: Any, codes: np.ndarray, repeats: int, *, mapped: bool = False) -> float:
    """Return the shortest time of a pass; weights are in memory before it starts."""
    rule, best = RULES["pa1"], float("inf")
    for _ in range(repeats + 1):
        heads = Heads.create(
            rule,
            rule.make_params(),
            one_vs_rest([1]),
            n_features,
            np.dtype(np.float32),
            fit_intercept=False,
            average=False,
        )
        heads.arrays.v.fill(0.0)
        started = time.perf_counter()
        learn(heads, rows, codes, mapped=mapped)
        best = min(best, time.perf_counter() - started)
    return best


def _nanoseconds(n_features: int, repeats: int) -> float:
    X, y = log_uniform(N_ROWS, n_features)
    return 1e9 * _pass_seconds(n_features, X, (y > 0).astype(np.int64), repeats) / X.nnz


def _index(repeats: int) -> list[Result]:
    X, y = log_uniform(N_ROWS, INDEX_FEATURES)
    indptr, codes = X.indptr.astype(np.int64), (y > 0).astype(np.int64)
    random_ids = np.random.default_rng(0).integers(0, 2**64 - 1, X.shape[1], np.uint64)
    results = []
    for name, ids in (("column numbers", X.indices.view(np.uint32)), ("64-bit ids", random_ids[X.indices])):
        index = FeatureIndex("ids")
        rows = SlotRows(*index.map_ids(indptr, ids, X.data, grow=True), len(index))

        def map_ids(ids: np.ndarray = ids) -> None:
            FeatureIndex("ids").map_ids(indptr, ids, X.data, grow=True)

        (ours,) = best_of(repeats, map_ids)
        peer = _pass_seconds(len(index), rows, codes, repeats, mapped=True)
        nanoseconds = [1e9 * seconds / X.nnz for seconds in (ours, peer)]
        results.append(Result(f"index of {name}; peer: learning", nanoseconds[0], "ns", nanoseconds[1]))
    return results


def _memory(kind: str) -> Result:
    found = run([sys.executable, "-c", LEARN, kind, str(MEMORY_FEATURES), str(MEMORY_CLASSES)])
    return Result(f"memory, features as {kind}", float(found.printed), "MB")
