"""How the cost of a non-zero grows with the number of features, allocation excluded."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from datasets import log_uniform

from maxcosine import RULES
from maxcosine.engine import Heads, learn, one_vs_rest

N_ROWS = 100_000
EXPONENTS = (16, 18, 20, 22, 24, 26)
LARGEST_FACTOR = 3.0


def measure(repeats: int) -> dict[str, Any]:
    rule = RULES["pa1"]
    nanoseconds = {}
    for exponent in EXPONENTS:
        X, y = log_uniform(N_ROWS, 2**exponent)
        codes = (y > 0).astype(np.int64)
        best = float("inf")
        for _ in range(repeats):
            heads = Heads.create(
                rule,
                rule.make_params(),
                one_vs_rest([1]),
                X.shape[1],
                X.dtype,
                fit_intercept=False,
                average=False,
            )
            heads.arrays.v.fill(0.0)  # the pages exist now
            started = time.perf_counter()
            learn(heads, X, codes)
            best = min(best, time.perf_counter() - started)
        nanoseconds[f"2^{exponent}"] = best / X.nnz * 1e9
    factor = nanoseconds[f"2^{EXPONENTS[-1]}"] / nanoseconds[f"2^{EXPONENTS[0]}"]
    return {"rows": N_ROWS, "ns_a_nonzero": nanoseconds, "factor": factor, "most": LARGEST_FACTOR}
