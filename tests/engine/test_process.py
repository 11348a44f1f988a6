"""What a process notices of the engine: light imports, nothing written, other threads that run."""

import threading
import time

import numpy as np

from maxcosine import OnlineClassifier
from tests.contract.streams import stream
from tests.engine.processes import run_python

PROGRAM = """
import json, sys, maxcosine
maxcosine.RULES["mcp"]
imported = list(sys.modules)
maxcosine.OnlineClassifier("mcp").fit([[1.0, 0.0], [0.0, 1.0]], [0, 1])
print(json.dumps([imported, list(sys.modules)]))
"""


def test_import_is_light_and_learning_needs_no_numba():
    imported, needed = run_python("-c", PROGRAM)
    for heavy in ("sklearn", "scipy", "pandas", "pyarrow", "sympy", "numba"):
        assert heavy not in imported
    assert "numba" not in needed


def test_other_threads_run_while_the_engine_learns():
    X, codes = stream(2000, 256, density=1.0, dtype=np.float32, noise=0.3)
    X, codes = np.tile(X, (40, 1)), np.tile(codes, 40)
    span, ticks = [], []

    def fit():
        span.append(time.perf_counter())
        OnlineClassifier("pa1").fit(X, codes)
        span.append(time.perf_counter())

    worker = threading.Thread(target=fit)
    worker.start()
    while worker.is_alive():
        time.sleep(0.001)
        ticks.append(time.perf_counter())
    start, stop = span
    middle = [tick for tick in ticks if start + 0.3 * (stop - start) < tick < stop - 0.1 * (stop - start)]
    assert len(middle) >= 10
