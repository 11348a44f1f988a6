"""Time functions and processes, in turns and several times, because machines are noisy."""

from __future__ import annotations

import compileall
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import maxcosine
from maxcosine.experiments.environment import processor

SHORTEST_S = 4.0


def best_of(repeats: int, *sides: Callable[[], object]) -> list[float]:
    """Return the shortest time of each side in seconds.

    The sides take turns, after one turn that is not timed: at least `repeats` turns, and at least 4 s.
    """
    for side in sides:
        side()
    best = [float("inf")] * len(sides)
    started, turns = time.perf_counter(), 0
    while turns < repeats or time.perf_counter() - started < SHORTEST_S:
        turns += 1
        for i, side in enumerate(sides):
            before = time.perf_counter()
            side()
            best[i] = min(best[i], time.perf_counter() - before)
    return best


@dataclass
class Finished:
    """A process that has ended."""

    seconds: float
    peak_mb: float
    printed: str


def run(command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> Finished:
    """Run a process to its end. Its peak memory is at least that of this process, which must be small."""
    started = time.perf_counter()
    environment = {**os.environ, **(env or {})}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment) as process:
        assert process.stdout is not None
        printed = process.stdout.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))[:200]} failed:\n{printed[-2000:]}")
    return Finished(time.perf_counter() - started, usage.ru_maxrss * 1024 / 1e6, printed)


def best_run(repeats: int, commands: Mapping[str, Sequence[str | Path]]) -> dict[str, Finished]:
    """Return the shortest run of each command; they take turns, after one turn that does not count."""
    best: dict[str, Finished] = {}
    for turn in range(repeats + 1):
        for name, command in commands.items():
            found = run(command)
            print(f"    {name}: {found.seconds:.2f} s", file=sys.stderr, flush=True)
            if turn and (name not in best or found.seconds < best[name].seconds):
                best[name] = found
    return best


def maxcosine_command(*arguments: str | Path) -> list[str | Path]:
    """Return a command line of `maxcosine`."""
    return [sys.executable, "-m", "maxcosine", *arguments]


def compile_bytecode() -> None:
    """Write the bytecode of the package, as pip does; an editable installation may lack it."""
    assert maxcosine.__file__ is not None
    compileall.compile_dir(Path(maxcosine.__file__).parent, quiet=1)


def version_of(package: str) -> str:
    """Return a package with its version."""
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} (not installed)"


def environment() -> dict[str, Any]:
    """Return what results depend on."""
    return {
        "maxcosine": maxcosine.__version__,
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "processor": processor(),
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
    }
