"""One row at a time: the same kernels, without what it costs to call them for many rows.

The arrays in which a row travels are kept, and the kernels are called for types that are known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxcosine.compiled import entry_of
from maxcosine.engine.heads import LIMITS, Heads
from maxcosine.engine.learn import UNWEIGHTED, refused
from maxcosine.engine.score import score_rows
from maxcosine.engine.sweep import FINISHED, sweep

_ENTRIES: dict[tuple[str, np.dtype], Any] = {}


def _entry(kernel: Any, name: str, dtype: np.dtype, arguments: tuple[Any, ...]) -> Any:
    """The kernel compiled for these arguments; their types depend on the weights' type only."""
    key = name, dtype
    if key not in _ENTRIES:
        _ENTRIES[key] = entry_of(kernel, *arguments)
    return _ENTRIES[key]


class OneRow:
    """A row of slots and values; whoever fills it makes room first."""

    def __init__(self, dtype: np.dtype) -> None:
        self.slots = np.empty(0, np.uint32)
        self.data = np.empty(0, dtype)
        self._indptr = np.zeros(2, np.int64)
        self._order = np.zeros(1, np.int64)
        self._code = np.zeros(1, np.int64)
        self._weight = np.ones(1)
        self._limits = LIMITS[dtype]

    def make_room(self, n: int) -> None:
        if n > len(self.slots):
            self.slots, self.data = np.empty(2 * n, np.uint32), np.empty(2 * n, self.data.dtype)

    def learn(self, heads: Heads, n: int, code: int, weight: float) -> None:
        """Learn from the first n values; each of their slots occurs once."""
        self._indptr[1] = n
        self._code[0] = code
        self._weight[0] = weight
        arguments = (
            self._indptr,
            self.slots,
            self.data,
            self._order,
            self._code,
            UNWEIGHTED if weight == 1.0 else self._weight,
            True,
            1.0 if heads.fit_intercept else 0.0,
            self._limits,
            heads.arrays,
        )
        _, fault, head = _entry(sweep, "sweep", heads.dtype, arguments)(*arguments)
        if fault != FINISHED:
            raise refused(heads, fault, self.data[:n], 0, head)

    def score(self, heads: Heads, n: int, *, as_points: bool) -> np.ndarray:
        """Scores of the first n values, one a column of the weights."""
        self._indptr[1] = n
        out = np.empty((1, heads.n_columns))
        constant = 1.0 if heads.fit_intercept else 0.0
        arguments = (self._indptr, self.slots, self.data, constant, as_points, heads.arrays, out)
        _entry(score_rows, "score", heads.dtype, arguments)(*arguments)
        scores: np.ndarray = out[0]
        return scores
