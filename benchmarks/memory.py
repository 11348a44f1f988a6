"""How much memory a process takes that learns 10^7 features and 10 classes in float32."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

FEATURES, CLASSES, ROWS_A_CHUNK, IDS_A_ROW = 10_000_000, 10, 10_000, 50
MOST_BYTES = 1e9

# In a process of its own: the peak of this one would count all benchmarks before.
LEARN = """
import json, sys
import numpy as np, scipy.sparse
from maxcosine import OnlineClassifier

features, classes, rows, ids_a_row = map(int, sys.argv[2:])
def chunk(ids, seed):
    random = np.random.default_rng(seed)
    n = len(ids) // ids_a_row
    ids = np.sort(ids[: n * ids_a_row].reshape(n, ids_a_row), axis=1)
    indptr = np.arange(0, ids.size + 1, ids_a_row)
    values = random.random(ids.size, dtype=np.float32)
    X = scipy.sparse.csr_array((values, ids.ravel(), indptr), shape=(n, features))
    return X, np.arange(n) % classes

learner = OnlineClassifier("pa1", dtype="float32")
if sys.argv[1] == "exact":
    learner.learn_one({0: 1.0}, 0)
def peak():
    # Not getrusage: its peak is inherited from the process that started this one.
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
start = peak()
# Every id once, far apart from the one before: features * 7 / 11 steps around the ring.
step = features * 7 // 11 | 1
assert np.gcd(step, features) == 1
a_chunk = rows * ids_a_row
for first in range(0, features, a_chunk):
    ids = (np.arange(first, first + a_chunk, dtype=np.int64) * step) % features
    learner.partial_fit(*chunk(ids, first))
model = learner._model
index = model.features.index
print(json.dumps({
    "features_seen": int(np.count_nonzero(model.heads.arrays.v.any(axis=1))),
    "start_bytes": start,
    "peak_bytes": peak(),
    "weights_bytes": model.heads.arrays.v.nbytes,
    "index_bytes": 0 if index is None else index.nbytes,
}))
"""


def measure() -> list[dict[str, Any]]:
    found = []
    for how in ("columns", "exact"):
        sizes = (FEATURES, CLASSES, ROWS_A_CHUNK, IDS_A_ROW)
        small = (20_000, CLASSES, 100, IDS_A_ROW)  # compiles what is not compiled yet
        for given in (small, sizes):
            command = [sys.executable, "-c", LEARN, how, *map(str, given)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found.append({"features": how, "most_bytes": MOST_BYTES, **json.loads(output)})
    return found
