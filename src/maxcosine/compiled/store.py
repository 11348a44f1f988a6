"""Compiled kernels on disk, stale as soon as any file of the package changes, or what compiles them.

A file is a line of JSON and the object code. It lies in the folder of NUMBA_CACHE_DIR, if set; else in
`__pycache__` of the package; else, for installations that cannot be written, in the user's cache folder.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from maxcosine import files
from maxcosine.record import Record

_PACKAGE = Path(__file__).parent.parent
_COMPILERS = ("numba", "llvmlite")
_TOLD_TIME = 1e9  # in the year 2001
_FACTS = ("model", "flags", "Features", "CPU ")  # as /proc/cpuinfo calls them


def before_compiling() -> None:
    """What is done before a kernel is compiled, which takes seconds: nothing, unless somebody shows it."""


class Compiled(Record):
    """What is kept of a compiled kernel."""

    code: bytes
    results: str = ""
    """Which numbers it returns, as the module struct names them."""


def found_or_made(name: str, kinds: str, make: Callable[[], Compiled]) -> Compiled:
    """The kernel of this name for arguments of these kinds: from disk, or else made, and kept there."""
    machine = _machine()
    # With the place of the package: two installations that share a folder do not take turns in it.
    file = f"{name}-{zlib.crc32(f'{kinds} {machine} {_PACKAGE}'.encode()):08x}.kernel"
    facts = {"stamp": stamp(), "kinds": kinds, "machine": machine}
    for folder in _folders():
        with suppress(OSError, ValueError, KeyError):
            head, code = (folder / file).read_bytes().split(b"\n", 1)
            told = json.loads(head)
            compiled = Compiled(code, told["results"] if isinstance(told, dict) else "")
            if told == {**facts, **_sealed(compiled)}:
                return compiled
    before_compiling()
    compiled = make()
    head = json.dumps({**facts, **_sealed(compiled)}).encode()
    for folder in _folders():
        try:
            files.write(folder / file, head + b"\n" + compiled.code)
        except OSError:
            continue  # it is compiled again by the next process, if nothing can be written
        break
    return compiled


def _sealed(compiled: Compiled) -> dict[str, Any]:
    checksum = zlib.crc32(compiled.code, zlib.crc32(compiled.results.encode()))
    return {"results": compiled.results, "crc32": checksum}


def _folders() -> Iterator[Path]:
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen) / "maxcosine"
    else:
        yield _PACKAGE / "__pycache__"
        with suppress(RuntimeError):  # there is nobody whose folder it could be
            yield files.user_cache()


@functools.cache
def stamp() -> str:
    """Of the sources: their sizes and times, as Python tells stale bytecode; and of what compiles them."""
    compilers = [Path(spec.origin) for spec in map(find_spec, _COMPILERS) if spec and spec.origin]
    versions = [path.with_name("_version.py") for path in compilers]
    facts = [_fact(entry) for entry in _sources(_PACKAGE)]
    return " ".join([*sorted(facts), *(f"{_checksum(path):x}" for path in versions if path.exists())])


def _fact(entry: os.DirEntry[str]) -> str:
    found = entry.stat()
    # Some tools give all files one time, long ago; then it tells nothing.
    when = int(found.st_mtime) if found.st_mtime >= _TOLD_TIME else f"{_checksum(entry.path):x}"
    return f"{entry.path.removeprefix(str(_PACKAGE))}:{found.st_size}:{when}"


def _checksum(path: str | Path) -> int:
    return zlib.crc32(Path(path).read_bytes())


def _sources(folder: str | os.PathLike[str]) -> Iterator[os.DirEntry[str]]:
    for entry in os.scandir(folder):
        if entry.name.endswith(".py"):
            yield entry
        elif entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(entry.path)


@functools.cache
def _machine() -> str:
    """Settings of the compiler, and the processor: code is compiled for just this one."""
    settings = {k: v for k, v in os.environ.items() if k.startswith("NUMBA_") and k != "NUMBA_CACHE_DIR"}
    kind = (sys.implementation.cache_tag, sys.platform, platform.machine())
    return repr((kind, sorted(settings.items()), _processor()))


def _processor() -> list[str]:
    """What the processor is, and what it can do."""
    with suppress(OSError):
        first, *_ = Path("/proc/cpuinfo").read_text().split("\n\n", 1)
        if facts := [line for line in first.splitlines() if line.startswith(_FACTS)]:
            return facts
    import llvmlite.binding as llvm  # which is needed there anyway

    return [llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()]
