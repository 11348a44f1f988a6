"""Where bytes are in a text, looked for in a small part of it at a time: a text may be most of the memory."""

from __future__ import annotations

import numpy as np

_BYTES_AT_ONCE = 65536


def first_of(text: np.ndarray, wanted: bytes, start: int, stop: int) -> int:
    """Where the first of these bytes is, from `start` on and before `stop`; `stop` if none is there.

    >>> text = np.frombuffer(b"one two|three", np.uint8)
    >>> first_of(text, b" |", 0, 13), first_of(text, b" |", 4, 13), first_of(text, b"!", 0, 13)
    (3, 7, 13)
    """
    for begin in range(start, stop, _BYTES_AT_ONCE):
        part = text[begin : min(begin + _BYTES_AT_ONCE, stop)].tobytes()
        found = [at for byte in wanted if (at := part.find(byte)) >= 0]
        if found:
            return begin + min(found)
    return stop


def first_other_than(text: np.ndarray, passed: bytes, start: int, stop: int) -> int:
    """Where the first byte is that is none of these, from `start` on and before `stop`; `stop` if there is
    none.

    >>> first_other_than(np.frombuffer(b"  one", np.uint8), b" ", 0, 5)
    2
    """
    for begin in range(start, stop, _BYTES_AT_ONCE):
        part = text[begin : min(begin + _BYTES_AT_ONCE, stop)].tobytes()
        rest = part.lstrip(passed)
        if rest:
            return begin + len(part) - len(rest)
    return stop


def after_last_of(text: np.ndarray, wanted: bytes, start: int, stop: int) -> int:
    """One more than where the last of these bytes is, from `start` on and before `stop`; `start` if none is
    there.

    >>> after_last_of(np.frombuffer(b"one two|three", np.uint8), b" |", 0, 13)
    8
    """
    for end in range(stop, start, -_BYTES_AT_ONCE):
        begin = max(start, end - _BYTES_AT_ONCE)
        part = text[begin:end].tobytes()
        found = max(part.rfind(byte) for byte in wanted)
        if found >= 0:
            return begin + found + 1
    return start
