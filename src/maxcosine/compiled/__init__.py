"""Functions that run as machine code.

Numba compiles them, and takes longer to import than a small file takes to learn from. So nothing here
imports it: compiled kernels lie on disk (`store`) and are loaded (`code`) without it. Numba comes in
(`compiler`) when one is missing. `NUMBA_DISABLE_JIT=1` leaves everything plain Python, which is how the tests
check the kernels.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import struct
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from maxcosine.compiled import code, store
from maxcosine.record import Record

# Arrays that are lengthened in place get half as much again while they are small, and an eighth later.
SMALL = 2**18


def lengthened(n: int) -> int:
    """How long an array is made that must hold at least n."""
    return n + (n // 2 if n < SMALL else n // 8)


F = TypeVar("F", bound=Callable[..., Any])

JIT_ENABLED = os.environ.get("NUMBA_DISABLE_JIT", "") in ("", "0")

# error_model="numpy": a division by zero gives an infinity for the engine to refuse, not an
# exception inside a loop that has let go of the interpreter lock. No fastmath: results are
# the same to the bit wherever they are computed.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": False}

# What only other compiled functions call needs none of Numba's ways of being called.
INSIDE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def _compiler() -> Any:
    return importlib.import_module("maxcosine.compiled.compiler")


class Named:
    """Something for kernels to use that only a compiler needs, known by its name until then."""

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    @functools.cached_property
    def real(self) -> Any:
        return getattr(importlib.import_module(self._module), self._name)


def native(function: F) -> F:
    """The plain Python twin of machine instructions that a function of its name writes, in the module beside
    it: `here.native_code` for `here.native`."""
    named = Named(f"{function.__module__}_code", function.__name__)
    return named if JIT_ENABLED else function  # type: ignore[return-value]


class Compilable:
    """A function that Numba compiles as part of others, once one of them is compiled."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        functools.update_wrapper(self, function)
        # By these names Numba knows what it may compile into the body of another function.
        self.py_func, self.targetoptions = function, {**OPTIONS, **options}

    def __reduce__(self) -> str:
        return self.py_func.__qualname__  # it is known by where it was defined

    @functools.cached_property
    def real(self) -> Any:
        """What Numba makes of it, for other compiled functions to call."""
        return _compiler().dispatcher(self.py_func, {**self.targetoptions, **INSIDE})

    @functools.cached_property
    def _called(self) -> Any:
        return _compiler().dispatcher(self.py_func, self.targetoptions)

    def __call__(self, *arguments: Any) -> Any:
        return self._called(*arguments)


class Jitted(Compilable):
    """A function that Numba compiles for any arguments and results, keeps on disk, and calls."""

    @functools.cached_property
    def real(self) -> Any:
        return _compiler().cached_dispatcher(self.py_func, self.targetoptions)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.real(*arguments, **named)


# Where in an array object its address is: to ask NumPy for it takes four times as long as to look.
_PROBE = np.empty(1)
_ADDRESS = next(
    offset
    for offset in range(0, np.ndarray.__basicsize__, 8)
    if ctypes.c_size_t.from_address(id(_PROBE) + offset).value == _PROBE.ctypes.data
)
_address_at = ctypes.c_size_t.from_address

# How numbers of Python and NumPy are handed over, eight bytes each, as the module struct names it.
_KINDS = {bool: "?", np.bool_: "?", int: "q", np.int64: "q", np.uint64: "Q", float: "d", np.float64: "d"}
_SLOTS = {"?": "?7x", "q": "q", "Q": "Q", "d": "d"}


def _note(arguments: Iterable[Any], kinds: list[Any], values: list[Any]) -> None:
    """Write down of which kind arguments are, and what compiled code is told of each."""
    for argument in arguments:
        kind = type(argument)
        if isinstance(argument, np.ndarray):
            if not argument.flags.c_contiguous:
                raise TypeError("a kernel is given arrays that are C-contiguous; see readable()")
            kinds.append((argument.dtype, argument.ndim))
            values.append(_address_at(id(argument) + _ADDRESS).value)
            values += argument.shape
        elif kind in _KINDS:
            kinds.append(_KINDS[kind])
            values.append(argument)
        elif isinstance(argument, tuple):
            kinds.append((kind, len(argument)))
            _note(argument, kinds, values)
        else:
            raise TypeError(f"a kernel is given arrays, numbers and tuples of them, not {kind.__name__}")


def _in_words(kind: Any) -> str:
    """The kind of an argument, in the same words in every process."""
    if isinstance(kind, str):
        return kind
    what, n = kind
    name = what.descr if isinstance(what, np.dtype) else f"{what.__module__}.{what.__qualname__}"
    return f"{name} {n}"


def _layout(slots: str) -> struct.Struct:
    return struct.Struct("=" + "".join(_SLOTS[slot] for slot in slots))


def _slots(kind: Any) -> str:
    """The slots of an argument: a number, or the address of an array and its shape."""
    if isinstance(kind, str):
        return kind
    what, n = kind
    return "q" * (1 + n) if isinstance(what, np.dtype) else ""


class _Entry(Record):
    """A compiled kernel, for arguments of certain kinds."""

    function: Callable[[int], int]
    arguments: struct.Struct
    results: struct.Struct
    size: int


class Kernel(Compilable):
    """A loop that is compiled for the kinds of its arguments: arrays, numbers, and tuples of them.

    Arrays are handed over by their addresses: they are C-contiguous, and none outlives the call. It returns
    nothing, a number, or a few of them. The interpreter lock is let go of meanwhile.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._entries: dict[tuple[Any, ...], _Entry] = {}
        self._lock = threading.Lock()

    def __call__(self, *arguments: Any) -> Any:
        kinds: list[Any] = []
        values: list[Any] = []
        _note(arguments, kinds, values)
        key = tuple(kinds)
        entry = self._entries.get(key) or self._entry(key, arguments)
        memory = bytearray(entry.size)
        entry.arguments.pack_into(memory, 0, *values)
        if entry.function(ctypes.addressof(ctypes.c_char.from_buffer(memory))):
            raise MemoryError(
                f"{self.py_func.__name__} ran out of memory, or, with NUMBA_BOUNDSCHECK, out of an array"
            )
        results = entry.results.unpack_from(memory)
        return results if len(results) > 1 else results[0] if results else None

    def _entry(self, kinds: tuple[Any, ...], arguments: tuple[Any, ...]) -> _Entry:
        with self._lock:
            if kinds not in self._entries:
                in_words = ", ".join(map(_in_words, kinds))
                compiled = store.found_or_made(
                    f"{self.py_func.__module__}.{self.py_func.__name__}",
                    in_words,
                    lambda: _compiler().compile_kernel(self.real, arguments),
                )
                given, results = _layout("".join(map(_slots, kinds))), _layout(compiled.results)
                function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(code.load(compiled.code))
                self._entries[kinds] = _Entry(function, given, results, max(given.size, results.size, 1))
            return self._entries[kinds]


def kernel(function: F) -> F:
    """Compile a loop, or load it from disk, when it is first called."""
    return Kernel(function) if JIT_ENABLED else function  # type: ignore[return-value]


def jit(function: F, **options: Any) -> F:
    """Have Numba compile a function when it is first called, and call it: for any arguments and results."""
    return Jitted(function, **options) if JIT_ENABLED else function  # type: ignore[return-value]


def jit_holding_lock(function: F) -> F:
    """`jit` for what reads Python's own objects, and keeps the interpreter lock."""
    return jit(function, nogil=False)


def inline(function: F) -> F:
    """Compile a helper into the body of the kernels that call it.

    Arrays handed to a separate function are reference-counted on the way in and out, which costs
    more than a short helper itself.
    """
    return Compilable(function, inline="always") if JIT_ENABLED else function  # type: ignore[return-value]


def helper(function: F) -> F:
    """Compile a helper of kernels as a function of its own, for what is rarely called."""
    return Compilable(function) if JIT_ENABLED else function  # type: ignore[return-value]


def readable(array: np.ndarray) -> np.ndarray:
    """The same numbers as kernels read them: one after another, and aligned."""
    return np.require(array, requirements=["C", "A"])


def entry_of(function: Any, *arguments: Any) -> Any:
    """What `jit` compiled for arguments of these types, without the choice among types.

    That choice costs more than learning from a short row.
    """
    return _compiler().entry_of(function.real, *arguments) if JIT_ENABLED else function


@helper
def not_literally(flag: bool) -> bool:
    """A flag that is not known to the compiler: for each that is, it compiles what is called once more."""
    return bool(int(flag))


class Callback(Record):
    """A compiled function that kernels call by its address."""

    address: int
    owner: Any = None
    """What the machine code lives as long as, if not as long as the process."""


def compile_callback(
    function: Callable[..., Any], *, key: str | None, doubles: int, pointers: int
) -> Callback:
    """Compile a function that is given so many doubles, and then so many pointers to doubles.

    It is kept on disk if there is a key, which tells it from others of its name.
    """
    signature = "d" * doubles + "p" * pointers
    if key is None:
        owner = _compiler().compile_c_function(function, signature)
        return Callback(owner.address, owner)
    compiled = store.found_or_made(
        f"{function.__module__}.{function.__name__}",
        f"{signature} {key}",
        lambda: _compiler().compile_callback(function, signature),
    )
    return Callback(code.load(compiled.code))


borrow: Any = Named("maxcosine.compiled.compiler", "borrow") if JIT_ENABLED else lambda array: array
"""The same array without its owner: a kernel outlives none of its arguments, so that counting references to
them, which costs more than a short row, is not needed."""
