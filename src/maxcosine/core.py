"""The compiled core: the extension module that was built for this processor.

On x86-64 there is one module for each instruction set; the environment variable MAXCOSINE_CPU=v2 or v3 overrides
the choice. All of them give the same bits. `core.pyi` documents what they hold.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def _level() -> str:
    """Which module to load: "v2" or "v3" on x86-64, "base" on other processors."""
    if find_spec("maxcosine._processor") is None:
        return "base"
    wanted = os.environ.get("MAXCOSINE_CPU")
    if wanted is None:
        return f"v{import_module('maxcosine._processor').x86_64_level()}"
    if wanted not in ("v2", "v3"):
        raise ImportError(f"MAXCOSINE_CPU is {wanted!r}; choose v2 or v3, or unset it")
    return wanted


LEVEL = _level()
_module = import_module(f"maxcosine._core_{LEVEL}")


def __getattr__(name: str) -> Any:
    return getattr(_module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *dir(_module)])
