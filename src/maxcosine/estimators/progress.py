"""Progress reports on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np

from maxcosine.model import Model

BLOCK_ROWS = 2**14
SECONDS_PER_REPORT = 1.0


def report_blocks(order: np.ndarray, title: str, model: Model) -> Iterator[np.ndarray]:
    """Yield the rows in blocks, and report progress about once a second."""
    started = reported = time.perf_counter()
    for start in range(0, len(order), BLOCK_ROWS):
        yield order[start : start + BLOCK_ROWS]
        done = min(start + BLOCK_ROWS, len(order))
        now = time.perf_counter()
        if done < len(order) and now - reported < SECONDS_PER_REPORT:
            continue
        reported = now
        seconds = max(now - started, 1e-9)
        mistakes = int(model.heads.table["mistakes"].sum())
        print(
            f"{title}: {done:,} of {len(order):,} rows ({done / len(order):.0%}), "
            f"{done / seconds:,.0f} rows/s, {mistakes:,} mistakes, {seconds:.1f} s",
            file=sys.stderr,
        )
