"""One example at a time: from a dict to the heads in one compiled call.

To call a kernel from Python costs about as much for each array that it is given as to learn from a
feature. So the kernels here are given one array, of where all the others lie: it is made anew whenever
one of them moves.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from maxcosine.compiled import JIT_ENABLED, Named, entry_of, inline, jit_holding_lock, not_literally
from maxcosine.engine import Heads
from maxcosine.engine.arithmetic import is_zero, square_norm
from maxcosine.engine.heads import HEAD, LIMITS, Arrays, Limits
from maxcosine.engine.learn import refused
from maxcosine.engine.score import score_rows
from maxcosine.engine.sweep import BAD_ROW, sweep
from maxcosine.index import FeatureIndex
from maxcosine.index.kernels import FINISHED, FULL, SCRATCH_LENGTH, Table, map_dict
from maxcosine.index.native import pointer_to

carray: Any = Named("numba", "carray")

# What ended a call, beside what ends a mapping: there are more features than weights, or the sweep
# ended early.
NO_WEIGHTS, REFUSED = 10, 11

# Each array is known by its address and its shape.
_PLACE = 3
_N_HEADS, _N_TABLE = len(Arrays._fields), len(Table._fields)


def _whereabouts(arrays: tuple[Any, ...]) -> Any:
    """Where arrays lie, as the kernels read it; as plain Python, the arrays themselves."""
    if not JIT_ENABLED:
        return arrays
    places = np.zeros(_PLACE * len(arrays), np.int64)
    for k, array in enumerate(arrays):
        places[_PLACE * k : _PLACE * k + 1 + array.ndim] = array.__array_interface__["data"][0], *array.shape
    return places


@inline
def vector_at(places: Any, k: int, dtype: Any) -> Any:
    return carray(pointer_to(places[_PLACE * k]), (places[_PLACE * k + 1],), dtype)


@inline
def matrix_at(places: Any, k: int, dtype: Any) -> Any:
    shape = (places[_PLACE * k + 1], places[_PLACE * k + 2])
    return carray(pointer_to(places[_PLACE * k]), shape, dtype)


@inline
def heads_at(places: Any, like: Any) -> Any:
    """The arrays of the heads, whose weights have the type of `like`."""
    return Arrays(
        matrix_at(places, 0, like.dtype),
        vector_at(places, 1, like.dtype),
        matrix_at(places, 2, like.dtype),
        vector_at(places, 3, like.dtype),
        vector_at(places, 4, HEAD),
        matrix_at(places, 5, np.float64),
        matrix_at(places, 6, np.float64),
        vector_at(places, 7, np.uint64),
        matrix_at(places, 8, np.uint64),
        vector_at(places, 9, np.int64),
        vector_at(places, 10, np.float64),
    )


@inline
def table_at(places: Any) -> Any:
    return Table(
        vector_at(places, _N_HEADS, np.int32),
        vector_at(places, _N_HEADS + 1, np.int64),
        vector_at(places, _N_HEADS + 2, np.uint64),
    )


if not JIT_ENABLED:

    def heads_at(places: Any, like: Any) -> Any:
        return Arrays(*places[:_N_HEADS])

    def table_at(places: Any) -> Any:
        return Table(*places[_N_HEADS:])


@inline
def limits_of(numbers: Any) -> Any:
    return Limits(numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5])


@jit_holding_lock
def learn_dict(
    places: Any,
    numbers: Any,
    scratch: Any,
    slots: Any,
    data: Any,
    named: bool,
    mapping: int,
    count: int,
    code: int,
    weight: float,
) -> tuple[int, int, int, int]:
    """Learn from the dict at address `mapping`.

    Returns what ended it, the item or the head at fault, how many keys there are, and what ended the
    sweep.
    """
    heads, table = heads_at(places, data), table_at(places)
    row = scratch[SCRATCH_LENGTH:]
    indptr, order, codes = row[:2], row[2:3], row[3:]
    weights_at, stride = heads.v.ctypes.data, heads.v.shape[1] * data.itemsize
    yes = not_literally(True)
    fault, n, count = map_dict(table, named, count, yes, mapping, slots, data, scratch, weights_at, stride)
    if fault != FINISHED:
        return fault, n, count, 0
    limits, values = limits_of(numbers), data[:n]
    sq_x = square_norm(values)
    if not (limits.low_sq_x <= sq_x <= limits.high_sq_x or (sq_x == 0.0 and is_zero(values))):
        return REFUSED, 0, count, BAD_ROW  # before there are weights for it
    if count > heads.v.shape[0]:
        return NO_WEIGHTS, n, count, 0
    indptr[1], codes[0], numbers[7] = n, code, weight
    weights = numbers[8:] if weight == 1.0 else numbers[7:]
    _, swept, head = sweep(
        indptr, slots, data, numbers[8:], order, codes, weights, scratch[:0], yes, numbers[6], limits, heads
    )
    return (FINISHED if swept == 0 else REFUSED), (n if swept == 0 else head), count, swept


@jit_holding_lock
def score_dict(
    places: Any,
    numbers: Any,
    scratch: Any,
    slots: Any,
    data: Any,
    named: bool,
    mapping: int,
    count: int,
    as_points: bool,
    out: Any,
) -> tuple[int, int]:
    """Scores of the dict at address `mapping`; returns what ended it, and the item at fault."""
    indptr = scratch[SCRATCH_LENGTH : SCRATCH_LENGTH + 2]
    no = not_literally(False)
    fault, n, _ = map_dict(table_at(places), named, count, no, mapping, slots, data, scratch, 0, 0)
    if fault == FINISHED:
        indptr[1] = n
        score_rows(indptr, slots, data, numbers[6], as_points, heads_at(places, data), out)
    return fault, n


@cache
def _entries(dtype: np.dtype) -> dict[Any, Any]:
    """The kernels compiled for weights of this type; the other types are always the same."""
    return {}


class OneByOne:
    """Learns from dicts, and scores them, with the heads and the index of one model."""

    def __init__(self, dtype: np.dtype) -> None:
        self._slots = np.empty(1, np.uint32)
        self._data = np.empty(1, dtype)
        self._room = 1
        # The limits, the constant feature, and the weight of the example.
        self._numbers = np.array([*LIMITS[dtype], 0.0, 1.0])
        # For the mapping; then the ends of the row, its number, and its class.
        self._scratch = np.zeros(SCRATCH_LENGTH + 4, np.int64)
        self._entries = _entries(dtype)
        self._learn = self._entries.get("learn")
        self._arrays: Any = None
        self._table: Any = None
        self._given: tuple[Any, ...] = ()

    def __reduce__(self) -> Any:
        # Addresses mean nothing elsewhere.
        return OneByOne, (self._data.dtype,)

    def _bind(self, heads: Heads, index: FeatureIndex, n: int) -> None:
        """Remember where everything lies, with room for n values; who moves an array makes a new tuple."""
        if n >= self._room:
            # One more than there are values: what is written and not kept may come last.
            self._slots = np.empty(2 * n + 1, np.uint32)
            self._data = np.empty(2 * n + 1, self._data.dtype)
            self._room = len(self._slots)
        self._arrays, self._table = heads.arrays, index.table
        self._numbers[6] = 1.0 if heads.fit_intercept else 0.0
        places = _whereabouts((*heads.arrays, *index.table))
        self._given = places, self._numbers, self._scratch, self._slots, self._data, index.named

    def _entry(self, name: str, kernel: Any, given: tuple[Any, ...]) -> Any:
        entry = self._entries.get(name)
        if entry is None:
            entry = self._entries[name] = entry_of(kernel, *given)
        return entry

    def learn(self, heads: Heads, index: FeatureIndex, x: dict[Any, Any], code: int, weight: float) -> None:
        """Learn from an example; index and heads grow with it. A refused one changes nothing."""
        before = index.count
        try:
            while True:
                moved = heads.arrays is not self._arrays or index.table is not self._table
                if moved or len(x) >= self._room:
                    self._bind(heads, index, len(x))
                given = (*self._given, id(x), index.count, code, weight)
                learn = self._learn or self._entry("learn", learn_dict, given)
                fault, at, index.count, swept = learn(*given)
                if fault == FINISHED:
                    return
                x = self._mended(heads, index, x, fault, at, swept)
        except BaseException:
            index.truncate(before)
            raise

    def _mended(
        self, heads: Heads, index: FeatureIndex, x: dict[Any, Any], fault: int, at: int, swept: int
    ) -> dict[Any, Any]:
        """The example to try again with, after what it lacked was made; or an error that says why not."""
        if fault == FULL:
            index.make_room()
        elif fault == NO_WEIGHTS:
            heads.reserve(index.count)
        elif fault == REFUSED:
            values = np.array([value for value in x.values() if value], heads.dtype)
            raise refused(heads, swept, values, 0, at)
        else:
            return index.mended(fault, x, at)
        return x

    def score(self, heads: Heads, index: FeatureIndex, x: dict[Any, Any], *, as_points: bool) -> np.ndarray:
        """Scores of an example, one a column of the weights."""
        out = np.empty((1, heads.n_columns))
        while True:
            moved = heads.arrays is not self._arrays or index.table is not self._table
            if moved or len(x) >= self._room:
                self._bind(heads, index, len(x))
            given = (*self._given, id(x), index.count, as_points, out)
            fault, at = self._entry("score", score_dict, given)(*given)
            if fault == FINISHED:
                return out
            x = index.mended(fault, x, at)
