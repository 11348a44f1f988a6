"""The software and hardware that results were computed with."""

from __future__ import annotations

import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

from maxcosine import __version__


def versions() -> dict[str, str]:
    """Return the versions of the packages that the numbers depend on; Numba only compiles a user's rules."""
    found = {"maxcosine": __version__}
    for name in ("numpy", "scipy", "numba"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return {**found, "python": platform.python_version()}


def processor() -> str:
    """Return the name of the processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
