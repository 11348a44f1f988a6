"""What a first fit ever costs, what later processes pay, and how fast a user's own rule compiles."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

PROCESS = """
import json, time
import numpy, scipy.sparse, sklearn.linear_model
started = time.perf_counter()
import maxcosine
from maxcosine import OnlineClassifier
imported = time.perf_counter()
X = scipy.sparse.random_array((100, 50), density=0.2, format="csr", dtype="float32", rng=0)
y = numpy.arange(100) % 2
OnlineClassifier("pa1").fit(X, y)
print(json.dumps({"import": imported - started, "fit": time.perf_counter() - imported}))
"""

OWN_RULE = """
import json, time
import numpy, scipy.sparse
from maxcosine import OnlineClassifier, rule
X = scipy.sparse.random_array((100, 50), density=0.2, format="csr", dtype="float32", rng=0)
y = numpy.arange(100) % 2
OnlineClassifier("pa1").fit(X, y)

@rule(params={"C": 1.0})
def mine(margin, sq_w, sq_x, coef_sum, state, params):
    return 1.0, min(params.C, max(0.0, 1.0 - margin) / sq_x), state

started = time.perf_counter()
mine.entry
compiled = time.perf_counter() - started
X = scipy.sparse.random_array((200_000, 1000), density=0.05, format="csr", dtype="float32", rng=0)
y = numpy.arange(200_000) % 2
times = {}
for _ in range(5):
    for name, r in (("own", mine), ("built_in", "pa1")):
        started = time.perf_counter()
        OnlineClassifier(r).fit(X, y)
        times[name] = min(times.get(name, 9.0), time.perf_counter() - started)
print(json.dumps({"compile": compiled, "slower_than_built_in": times["own"] / times["built_in"]}))
"""


def _run(code: str, cache: str) -> dict[str, float]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def measure() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as cache:
        first = _run(PROCESS, cache)
        later = min((_run(PROCESS, cache) for _ in range(3)), key=lambda r: r["import"] + r["fit"])
        own = _run(OWN_RULE, cache)
    return {
        "first_fit_s": first["import"] + first["fit"],
        "first_fit_most_s": 8.0,
        "later_process_s": later["import"] + later["fit"],
        "later_process_most_s": 0.3,
        "own_rule_compile_s": own["compile"],
        "own_rule_compile_most_s": 1.0,
        "own_rule_slower": own["slower_than_built_in"],
    }
