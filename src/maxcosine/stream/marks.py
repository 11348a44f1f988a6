"""Where tokens end, found for thousands of bytes at once.

A number that is read from where the last one ended has to wait for it. If the ends are known before, a
processor reads several numbers at the same time; Langdale and Lemire, "Parsing gigabytes of JSON per second",
The VLDB Journal 28, 2019, read JSON in these two steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxcosine.compiled import borrow, helper, inline
from maxcosine.index.native import count_bits, trailing_zeros
from maxcosine.stream.native import mark_bits, put_sixteen
from maxcosine.stream.numbers import U

SEGMENT = 8192
"""Bytes whose marks are found together; with them, they fit into the first-level cache."""
_WORD = 64  # bytes whose marks are the bits of one word
_AT_ONCE = 16
MOST_MARKS = SEGMENT + _WORD


@helper
def find_marks(text: Any, p: Any, n: Any, marks: Any) -> Any:
    """Find the colons, spaces, and whatever is below a space, of a segment; returns how many there are.

    `marks`, uint64, has room for MOST_MARKS. A segment that ends with the text has marks in the zeros behind
    it.
    """
    stop, count = p + min((n - p + U(_WORD - 1)) & ~U(_WORD - 1), U(SEGMENT)), U(0)
    for first in range(p, stop, U(_WORD)):
        bits = mark_bits(text, first)
        found = count_bits(bits)
        # Always sixteen: to know how many, the processor would have to guess.
        put_sixteen(marks, count, first, bits)
        if found > U(_AT_ONCE):
            for k in range(found):
                marks[count + k] = first + trailing_zeros(bits)
                bits &= bits - U(1)
        count += found
    return count


class Marks(NamedTuple):
    """Room for the marks of a segment."""

    at: Any
    state: Any
    """Which mark is next, and how many there are. How many features are to be read one by one, and how many
    it will be the next time."""


@inline
def borrow_marks(marks: Any) -> Any:
    return Marks(borrow(marks.at), borrow(marks.state))


def room_for_marks() -> Marks:
    """Room for the marks of a segment, of which none is found yet."""
    return Marks(np.empty(MOST_MARKS, np.uint64), np.array([0, 0, 0, 1], np.uint64))
