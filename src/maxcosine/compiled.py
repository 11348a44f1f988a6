"""Compilation by Numba, with a disk cache that notices every change of the package.

Numba stamps a cached function with its own source file only: edit a helper in another file and a
stale kernel is loaded. Here the stamp covers every source file of the package.
`NUMBA_DISABLE_JIT=1` leaves everything plain Python, which is how the tests check the kernels.
"""

from __future__ import annotations

import functools
import hashlib
import pathlib
from collections.abc import Callable
from typing import Any, TypeVar

import llvmlite.binding as llvm
import numba
import numpy as np
from numba.core import caching, cgutils
from numba.core.ccallback import CFunc
from numba.core.runtime import _nrt_python
from numba.core.sigutils import normalize_signature
from numba.extending import intrinsic

# Arrays that are lengthened in place get half as much again while they are small, and an eighth later.
SMALL = 2**18


def lengthened(n: int) -> int:
    """How long an array is made that must hold at least n."""
    return n + (n // 2 if n < SMALL else n // 8)


F = TypeVar("F", bound=Callable[..., Any])

JIT_ENABLED = not numba.config.DISABLE_JIT

# error_model="numpy": a division by zero gives an infinity for the engine to refuse, not an
# exception inside a loop that has let go of the interpreter lock. No fastmath: results are
# the same to the bit wherever they are computed.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": False}


@functools.cache
def _package_stamp() -> bytes:
    digest = hashlib.sha256()
    for path in sorted(pathlib.Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()


class _PackageStamp:
    def get_source_stamp(self) -> bytes:
        return _package_stamp()


class _UserProvided(_PackageStamp, caching.UserProvidedCacheLocator):  # type: ignore[misc]
    """The folder of NUMBA_CACHE_DIR, if set."""


class _InTree(_PackageStamp, caching.InTreeCacheLocator):  # type: ignore[misc]
    """`__pycache__` beside the source, if it can be written."""


class _UserWide(_PackageStamp, caching.UserWideCacheLocator):  # type: ignore[misc]
    """The user's cache folder, for installations that cannot be written."""


class _PackageCacheImpl(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_UserProvided, _InTree, _UserWide)

    def reduce(self, cres: Any) -> Any:
        """As Numba's, without the environments of Numba's own functions.

        Compiled code reads none of them, and to bring them back imports what only a compiler needs.
        """
        *compiled, environments = super().reduce(cres)
        return (*compiled, tuple(e for e in environments if not e.globals["__name__"].startswith("numba.")))


@functools.cache
def _name_runtime() -> None:
    """Tell loaded code where the functions of Numba's runtime are.

    Numba compiles a few more of them at this point, which loaded code has inside it already.
    """
    for name, address in _nrt_python.c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class PackageCache(caching.FunctionCache):  # type: ignore[misc]
    """Numba's function cache, stale as soon as any file of the package changes."""

    _impl_class = _PackageCacheImpl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """As Numba's, which first gets ready to compile; what is found here is compiled already."""
        _name_runtime()
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def jit(function: F, **options: Any) -> F:
    """Compile a function when it is first called, or load it from the disk cache."""
    dispatcher = numba.njit(function, **{**OPTIONS, **options})
    if JIT_ENABLED:
        dispatcher._cache = PackageCache(function)
    return dispatcher  # type: ignore[no-any-return]


def jit_holding_lock(function: F) -> F:
    """`jit` for a kernel that reads Python's own objects: it keeps the interpreter lock."""
    return jit(function, nogil=False)


class _Writable:
    """The memory of an array, without the word that it is not to be written to."""

    def __init__(self, array: np.ndarray) -> None:
        self.owner = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def readable(array: np.ndarray) -> np.ndarray:
    """The same numbers as kernels are compiled for: one after another, aligned, and as if writable.

    For arrays that are not, each kernel would be compiled once more. None writes to what it is given to read.
    """
    array = np.require(array, requirements=["C", "A"])
    return array if array.flags.writeable else np.asarray(_Writable(array))


def entry_of(kernel: Any, *arguments: Any) -> Any:
    """The compiled kernel for arguments of these types, without the choice among types.

    That choice costs more than learning from a short row.
    """
    if not JIT_ENABLED:
        return kernel
    return kernel.compile(tuple(numba.typeof(argument) for argument in arguments))


def inline(function: F) -> F:
    """Compile a helper into the body of the kernels that call it.

    Arrays handed to a separate function are reference-counted on the way in and out, which costs
    more than a short helper itself.
    """
    return numba.njit(function, inline="always", **OPTIONS)  # type: ignore[no-any-return]


def helper(function: F) -> F:
    """Compile a helper of kernels as a function of its own, for what is rarely called."""
    return numba.njit(function, **OPTIONS)  # type: ignore[no-any-return]


@helper
def not_literally(flag: bool) -> bool:
    """A flag that is not known to the compiler: for each that is, it compiles what is called once more."""
    return bool(int(flag))


def compile_callback(function: Callable[..., Any], signature: Any, *, cache: bool) -> Any:
    """Compile a function to a machine address that kernels can call, for as long as it lives."""
    callback = CFunc(function, normalize_signature(signature), {}, {"error_model": "numpy"})
    if cache:
        callback._cache = PackageCache(function)
    callback.compile()
    return callback


@intrinsic
def _borrow(typingctx: Any, array: Any) -> Any:
    """The same array without its owner: a kernel outlives none of its arguments, so that counting
    references to them, which costs more than a short row, is not needed."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        view = context.make_array(sig.args[0])(context, builder, args[0])
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        view.parent = cgutils.get_null_value(view.parent.type)
        return view._getvalue()

    return array(array), codegen


def _same(array: Any) -> Any:
    return array


borrow: Any = _borrow if JIT_ENABLED else _same
