"""Compiled kernels on disk, stale as soon as any file of the package changes, or what compiles them.

A file is a line of JSON and the object code. It lies in the folder of NUMBA_CACHE_DIR, if set; else in
`__pycache__` of the package; else, for installations that cannot be written, in the user's cache folder.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import os
import platform
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from maxcosine import files

_PACKAGE = Path(__file__).parent.parent
_COMPILERS = ("numba", "llvmlite")


class Compiled(NamedTuple):
    """What is kept of a compiled kernel."""

    code: bytes
    results: str = ""
    """Which numbers it returns, as the module struct names them."""


def found_or_made(name: str, kinds: str, make: Callable[[], Compiled]) -> Compiled:
    """The kernel of this name for arguments of these kinds: from disk, or else made, and kept there."""
    file = f"{name}-{hashlib.sha256(kinds.encode()).hexdigest()[:12]}.kernel"
    facts = {"stamp": stamp(), "kinds": kinds}
    for folder in _folders():
        with suppress(OSError, ValueError, KeyError):
            head, code = (folder / file).read_bytes().split(b"\n", 1)
            told = json.loads(head)
            if {key: told[key] for key in facts} == facts and told["crc32"] == zlib.crc32(code):
                return Compiled(code, told["results"])
    compiled = make()
    head = json.dumps({**facts, "results": compiled.results, "crc32": zlib.crc32(compiled.code)}).encode()
    for folder in _folders():
        try:
            files.write(folder / file, head + b"\n" + compiled.code)
        except OSError:
            continue  # it is compiled again by the next process, if nothing can be written
        break
    return compiled


def _folders() -> list[Path]:
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return [Path(chosen) / "maxcosine"]
    return [_PACKAGE / "__pycache__", files.user_cache()]


@functools.cache
def stamp() -> str:
    """What compiled code depends on beside the types of its arguments."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.read_bytes())
    for name in _COMPILERS:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        digest.update(Path(spec.origin).with_name("_version.py").read_bytes())
    settings = {k: v for k, v in os.environ.items() if k.startswith("NUMBA_") and k != "NUMBA_CACHE_DIR"}
    digest.update(repr((sys.version_info[:2], sorted(settings.items()), _processor())).encode())
    return digest.hexdigest()


def _processor() -> str:
    """The processor and what it can do: code is compiled for just this one."""
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text()
        first = text.split("\n\n", 1)[0].splitlines()
        return "".join(line for line in first if line.startswith(("model", "flags", "Features", "CPU ")))
    return platform.machine() + platform.processor()
