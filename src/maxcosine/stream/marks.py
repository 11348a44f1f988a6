"""Where tokens end, found for thousands of bytes at once.

A number that is read from where the last one ended has to wait for it. If the ends are known before, a
processor reads several numbers at the same time; Langdale and Lemire, "Parsing gigabytes of JSON per second",
The VLDB Journal 28, 2019, read JSON in these two steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxcosine.compiled import borrow, helper, inline
from maxcosine.index.native import count_bits, trailing_zeros, word_at
from maxcosine.stream.numbers import COLON, SPACE, U

SEGMENT = 8192
"""Bytes whose marks are found together; with them, they fit into the first-level cache."""
_WORD = 64  # bytes whose marks are the bits of one word
_AT_ONCE = 8
MOST_MARKS = SEGMENT + _WORD
_GATHER = U(0x0102040810204080)  # times eight bytes that are 0 or 1, it has these as its highest eight bits


@inline
def _put_eight(marks: Any, count: Any, first: Any, bits: Any) -> Any:
    """Write down the first eight bits that are set; returns the others."""
    for k in range(_AT_ONCE):
        marks[count + U(k)] = first + trailing_zeros(bits)
        bits &= bits - U(1)
    return bits


@helper
def find_marks(text: Any, p: Any, n: Any, flags: Any, marks: Any) -> Any:
    """Find the colons, spaces, and whatever is below a space, of a segment; returns how many there are.

    `flags`, uint8, has room for SEGMENT bytes, and `marks`, uint64, for MOST_MARKS. A segment that ends with
    the text has marks in the zeros behind it.
    """
    size = min((n - p + U(_WORD - 1)) & ~U(_WORD - 1), U(SEGMENT))
    for k in range(size):
        byte = text[p + k]
        flags[k] = (byte <= SPACE) | (byte == COLON)
    address, count = U(flags.ctypes.data), U(0)
    for k in range(U(0), size, U(_WORD)):
        bits = U(0)
        for part in range(U(0), U(_WORD), U(8)):
            bits |= ((word_at(address + k + part) * _GATHER) >> U(56)) << part
        found = count_bits(bits)
        # Always eight or sixteen: to know how many, the processor would have to guess.
        bits = _put_eight(marks, count, p + k, bits)
        if found > U(_AT_ONCE):
            bits = _put_eight(marks, count + U(_AT_ONCE), p + k, bits)
        for more in range(U(2 * _AT_ONCE), found):
            marks[count + more] = p + k + trailing_zeros(bits)
            bits &= bits - U(1)
        count += found
    return count


class Marks(NamedTuple):
    """Room for the marks of a segment."""

    flags: Any
    at: Any
    state: Any
    """Which mark is next, and how many there are. How many features are to be read one by one, and how many
    it will be the next time."""


@inline
def borrow_marks(marks: Any) -> Any:
    return Marks(borrow(marks.flags), borrow(marks.at), borrow(marks.state))


def room_for_marks() -> Marks:
    """Room for the marks of a segment, of which none is found yet."""
    return Marks(
        np.empty(SEGMENT, np.uint8), np.empty(MOST_MARKS, np.uint64), np.array([0, 0, 0, 1], np.uint64)
    )
