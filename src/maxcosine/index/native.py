"""Read a dict and bytes in memory, and count bits, from compiled code.

The functions of Python's C interface that Numba does not offer, and a few instructions. Kernels that use
those of dicts hold the interpreter lock, and none of them calls Python code, so that no dict changes while it
is read. Here is what each does, as plain Python; `native_code` writes the instructions.
"""

from __future__ import annotations

import ctypes
import itertools
from collections import deque
from typing import Any

import numpy as np

from maxcosine.compiled import native

# Where `next_item` leaves what it found, and `text_of` the length of a text.
POSITION, KEY, VALUE, SIZE = 0, 1, 2, 3
CURSOR_LENGTH = 4

_alive: deque[Any] = deque(maxlen=100)  # the texts whose addresses were given away last
_errors: list[Exception] = []


def _object_at(address: int) -> Any:
    return ctypes.cast(int(address), ctypes.py_object).value


@native
def next_item(mapping: Any, cursor: Any) -> bool:
    """Move the cursor to the next item of the dict at address `mapping`; whether there is one."""
    items = itertools.islice(_object_at(mapping).items(), int(cursor[POSITION]), None)
    for key, value in items:
        cursor[POSITION] += 1
        cursor[KEY], cursor[VALUE] = id(key), id(value)
        return True
    return False


@native
def text_of(key: Any, cursor: Any) -> int:
    """Address of the UTF-8 bytes of the str at address `key`, their number in the cursor; 0 if none."""
    try:
        text = ctypes.create_string_buffer(str.encode(_object_at(key)))
    except (TypeError, UnicodeEncodeError) as error:
        _errors.append(error)
        return 0
    _alive.append(text)
    cursor[SIZE] = len(text) - 1
    return ctypes.addressof(text)


@native
def id_of(key: Any) -> Any:
    """The int at address `key`, as 64 bits without a sign; see `failed`."""
    value = _object_at(key)
    if isinstance(value, int) and 0 <= value < 2**64:
        return np.uint64(value)
    _errors.append(TypeError("not an id"))
    return np.uint64(2**64 - 1)


@native
def number_of(value: Any) -> float:
    """The float or int at address `value`; see `failed`."""
    number = _object_at(value)
    try:
        if isinstance(number, float | int):
            return float(number)
        raise TypeError("neither float nor int")
    except (TypeError, OverflowError) as error:
        _errors.append(error)
        return -1.0


@native
def failed() -> bool:
    """Whether one of the functions above failed; the error it left is cleared."""
    occurred = bool(_errors)
    _errors.clear()
    return occurred


@native
def word_at(address: Any) -> Any:
    """Eight bytes from an address."""
    return np.uint64(ctypes.c_uint64.from_address(int(address)).value)


@native
def byte_at(address: Any) -> Any:
    """The byte at an address."""
    return np.uint64(ctypes.c_uint8.from_address(int(address)).value)


@native
def fetch_ahead(address: Any) -> None:
    """Ask the memory for what lies at an address, wherever that is."""


@native
def count_bits(word: Any) -> Any:
    """How many bits are set."""
    return np.uint64(int(word).bit_count())


@native
def put_word(address: Any, word: Any) -> None:
    """Write eight bytes to an address."""
    ctypes.c_uint64.from_address(int(address)).value = int(word)


@native
def trailing_zeros(word: Any) -> Any:
    """How many of the lowest bits are 0."""
    return np.uint64((int(word) & -int(word)).bit_length() - 1 if word else 64)


@native
def leading_zeros(word: Any) -> Any:
    """How many of the highest bits are 0."""
    return np.uint64(64 - int(word).bit_length())


@native
def pointer_to(address: Any) -> Any:
    """An address as a pointer."""
    return ctypes.c_void_p(int(address))
