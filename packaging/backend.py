"""The build backend: scikit-build-core, with a C++ compiler from PyPI where the machine has none.

`ziglang` is a package on PyPI that holds a whole C++ compiler.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from scikit_build_core import build as scikit_build
from scikit_build_core.build import (  # noqa: F401, hooks that need no compiler
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

COMPILERS = ("c++", "g++", "clang++", "cl", "clang-cl")


def compiler_requirements() -> list[str]:
    """What to install to have a compiler: nothing if there is one."""
    has_one = os.environ.get("CXX") or any(map(shutil.which, COMPILERS))
    return [] if has_one else ["ziglang>=0.13"]


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    return [*scikit_build.get_requires_for_build_wheel(config_settings), *compiler_requirements()]


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    return [*scikit_build.get_requires_for_build_editable(config_settings), *compiler_requirements()]


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    _choose_compiler()
    return scikit_build.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    _choose_compiler()
    return scikit_build.build_editable(wheel_directory, config_settings, metadata_directory)


def _choose_compiler() -> None:
    """Point CMake to zig's C++ compiler and archiver if the machine has no compiler."""
    if not compiler_requirements():
        return
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("there is no C++ compiler; install g++ or clang++, or: pip install ziglang, and try again")
    scripts = Path("build", "zig").resolve()  # hooks run in the project's folder
    scripts.mkdir(parents=True, exist_ok=True)
    zig = Path(spec.submodule_search_locations[0]) / "zig"
    for name in ("c++", "ar", "ranlib"):
        script = scripts / f"zig-{name}"
        script.write_text(f'#!/bin/sh\nexec "{zig}" {name} "$@"\n')
        script.chmod(0o755)
    os.environ["CXX"] = str(scripts / "zig-c++")
    tools = f"-DCMAKE_AR={scripts / 'zig-ar'} -DCMAKE_RANLIB={scripts / 'zig-ranlib'}"
    os.environ["CMAKE_ARGS"] = f"{os.environ.get('CMAKE_ARGS', '')} {tools}".strip()


if __name__ == "__main__":
    sys.stdout.write(" ".join(compiler_requirements()))
