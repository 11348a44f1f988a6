"""Two sides in one run: interleaved, the best of several, because machines are noisy."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from importlib.metadata import version

SHORTEST_S = 4.0


def best_of(repeats: int, *sides: Callable[[], object]) -> list[float]:
    """The shortest time of each side in seconds, the sides taking turns; one unmeasured turn first.

    At least `repeats` turns, and at least four seconds: a short noise must not hide a short run.
    """
    for side in sides:
        side()
    best = [float("inf")] * len(sides)
    begun, turns = time.perf_counter(), 0
    while turns < repeats or time.perf_counter() - begun < SHORTEST_S:
        turns += 1
        for i, side in enumerate(sides):
            started = time.perf_counter()
            side()
            best[i] = min(best[i], time.perf_counter() - started)
    return best


def environment() -> dict[str, str]:
    """What was measured with what."""
    packages = ("maxcosine", "scikit-learn", "numba", "numpy", "scipy")
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processor": _processor(),
        **{name: version(name) for name in packages},
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
