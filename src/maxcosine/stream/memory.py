"""Memory for one block after another."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np

_PROBE = [object()]
_ALONE = sys.getrefcount(_PROBE[0])
"""References to something in a list that nobody else refers to, as `getrefcount` counts them."""

_SMALL = 2**14
_MOST_BYTES = 2**27  # of address space, of which far less is touched


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
            fit = [k for k in self._free() if size <= len(self._pieces[k]) <= size + size // 2]
            if not fit:
                fit = [self._add(size + size // 8)]  # the next one may need a little more
            return self._pieces[fit[0]][:size].view(dtype)

    def _free(self) -> list[int]:
        # By their positions: a name for a piece would be one more that refers to it.
        return [k for k in range(len(self._pieces)) if sys.getrefcount(self._pieces[k]) == _ALONE]

    def _add(self, size: int) -> int:
        """One more piece; if there is much already, what is free is given back."""
        if sum(map(len, self._pieces)) + size > _MOST_BYTES:
            free = set(self._free())
            self._pieces = [piece for k, piece in enumerate(self._pieces) if k not in free]
        self._pieces.append(np.empty(size, np.uint8))
        return len(self._pieces) - 1
