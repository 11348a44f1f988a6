"""On what results were found: versions and machine."""

from __future__ import annotations

import platform
from importlib.metadata import version


def versions() -> dict[str, str]:
    """Of what has a say in the numbers."""
    found = {name: version(name) for name in ("maxcosine", "numpy", "scipy", "numba")}
    return {**found, "python": platform.python_version()}


def processor() -> str:
    """What the machine calls its processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
