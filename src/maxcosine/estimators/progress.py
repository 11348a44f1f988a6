"""Progress on standard error, for those who wait."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np

from maxcosine.model import Model

ROWS_A_REPORT = 2**14
SECONDS_A_REPORT = 1.0


def reported(order: np.ndarray, title: str, model: Model) -> Iterator[np.ndarray]:
    """The rows in blocks, with a line of progress now and then."""
    started = reported = time.perf_counter()
    for start in range(0, len(order), ROWS_A_REPORT):
        yield order[start : start + ROWS_A_REPORT]
        done = min(start + ROWS_A_REPORT, len(order))
        now = time.perf_counter()
        if done < len(order) and now - reported < SECONDS_A_REPORT:
            continue
        reported = now
        seconds = max(now - started, 1e-9)
        mistakes = int(model.heads.table["mistakes"].sum())
        print(
            f"{title}: {done:,} of {len(order):,} rows ({done / len(order):.0%}), "
            f"{done / seconds:,.0f} rows/s, {mistakes:,} mistakes, {seconds:.1f} s",
            file=sys.stderr,
        )
