"""Read eight features at a time, and find where tokens end, in vector registers.

Here is what is done, as plain Python; `native_code` writes the instructions.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np

from maxcosine.compiled import native

_FEATURE = rb"[ \t](\d{1,8}):(-?(?:(?=.{1,7}$)(?:\d+\.?\d*|\.\d+)|\d\.\d{6,7}))"


@native
def mark_bits(text: Any, p: Any) -> Any:
    """Of 64 bytes from p on, which are colons, spaces or below a space: a bit each, the first byte lowest."""
    marked = [byte <= ord(" ") or byte == ord(":") for byte in text[int(p) : int(p) + 64].tolist()]
    return np.uint64(sum(1 << k for k, is_mark in enumerate(marked) if is_mark))


@native
def put_sixteen(marks: Any, count: Any, first: Any, bits: Any) -> None:
    """Write down, from marks[count] on, `first` plus the position of each of the first sixteen bits that are
    set. If there are fewer, what is written behind them means nothing."""
    found = [k for k in range(64) if int(bits) >> k & 1][:16]
    for k, bit in enumerate(found):
        marks[int(count) + k] = int(first) + bit


@native
def read_eight(text: Any, at: Any, k: Any, ids: Any, data: Any, feature: Any) -> Any:
    """Read eight features that begin at the k-th mark, or those up to the end of the line: one to eight
    digits, a colon, and a number of at most seven letters, or d.dddddd or d.ddddddd, each with or without a
    minus. A space is behind each of them, or a newline.

    Returns how many there are; 0 if anything else is among them. What is written to `ids` and `data` behind
    them means nothing.
    """
    starts = at[int(k) : int(k) + 17 : 2].tolist()
    for j, (start, stop) in enumerate(itertools.pairwise(starts)):
        found = re.fullmatch(_FEATURE, bytes(text[start:stop]))
        if found is None or start + 1 + len(found[1]) != at[int(k) + 2 * j + 1] or text[stop] not in b" \n":
            return np.uint64(0)
        ids[int(feature) + j], data[int(feature) + j] = int(found[1]), float(found[2])
        if text[stop] == ord("\n"):
            return np.uint64(j + 1)
    return np.uint64(8)
