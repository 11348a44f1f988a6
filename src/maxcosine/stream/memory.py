"""Memory for one block after another."""

from __future__ import annotations

import mmap
import sys
import threading
from contextlib import suppress
from typing import Any

import numpy as np

_PROBE = [object()]
_ALONE = sys.getrefcount(_PROBE[0])
"""References to something in a list that nobody else refers to, as `getrefcount` counts them."""

_SMALL = 2**14


class Memory:
    """Arrays in memory that is used again once nobody refers to it, from its beginning on.

    Blocks are given far more room than most need. In memory that is shared with others, what is touched would
    be now here and now there, and in the end everywhere.
    """

    def __init__(self) -> None:
        self._pieces: list[np.ndarray] = []
        self._lock = threading.Lock()

    def empty(self, n: int, dtype: Any) -> np.ndarray:
        """As `np.empty`."""
        size = n * np.dtype(dtype).itemsize
        if size < _SMALL:
            return np.empty(n, dtype)
        with self._lock:
            # By their positions: a name for a piece would be one more that refers to it.
            sizes = [(len(self._pieces[k]), k) for k in range(len(self._pieces)) if self._is_free(k)]
            _, k = min((found for found in sizes if size <= found[0] <= 2 * size), default=(0, -1))
            if k < 0:
                k = self._add(size + size // 8)  # the next may need more
            return self._pieces[k][:size].view(dtype)

    def give_back(self) -> None:
        """Give all back that nobody refers to."""
        with self._lock:
            self._give_back()

    def _is_free(self, k: int) -> bool:
        return sys.getrefcount(self._pieces[k]) == _ALONE

    def _add(self, size: int) -> int:
        """One more piece. What is free is given back: blocks have changed, and it serves no more."""
        self._give_back()
        self._pieces.append(own_pages(size, np.uint8))
        return len(self._pieces) - 1

    def _give_back(self) -> None:
        free = [self._is_free(k) for k in range(len(self._pieces))]
        self._pieces = [piece for piece, was_free in zip(self._pieces, free, strict=True) if not was_free]


def own_pages(n: int, dtype: Any) -> np.ndarray:
    """As `np.empty`, in pages of its own, which the system has back as soon as nobody refers to them. What is
    never written to takes no memory.

    `np.empty` asks for pages of 2 MB: how many are used depends on where they happen to lie.
    """
    return np.frombuffer(_pages(max(1, n * np.dtype(dtype).itemsize)), dtype, n)


def _pages(size: int) -> mmap.mmap:
    """Pages of the system, of its usual size, which a process that is forked off has for itself."""
    if not hasattr(mmap, "MAP_ANONYMOUS"):
        return mmap.mmap(-1, size)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with suppress(OSError):  # a system that knows of no others
            pages.madvise(mmap.MADV_NOHUGEPAGE)
    return pages
