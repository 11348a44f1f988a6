"""Rows as the engine trusts them: no zeros, no feature twice; logarithms and unit length on the way."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from maxcosine.compiled import borrow, helper, inline, kernel
from maxcosine.engine.arithmetic import square_norm
from maxcosine.stream.memory import own_pages

NORMALIZE = (None, "l2")
OUTSIDE = (
    "the example is too long, or too short, to be learnt from; scale the values, for example with "
    "--normalize l2 or --log1p"
)
"""What is wrong with rows that `rows_outside` finds."""
_NOTHING = np.empty(0)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
LONG_ROW = 2**18
"""A row of more values than this is sorted, part by part, where others are put in a table that is larger than
they are."""


@inline
def ascends(columns: Any, start: Any, stop: Any) -> bool:
    ascending = True
    for k in range(start + np.uint64(1), stop):
        ascending &= columns[k] > columns[k - np.uint64(1)]
    return ascending


@inline
def has_zeros(data: Any, start: Any, stop: Any) -> bool:
    zeros = False
    for k in range(start, stop):
        zeros |= data[k] == 0.0
    return zeros


@inline
def add_up(columns: Any, data: Any, start: Any, stop: Any, table: Any, end: Any) -> Any:
    """Move a row to `end`, each feature once, in the order in which they first come; returns its end.

    `table` has room for twice the row: by hash, one more than the place of a feature, or 0.
    """
    places, shift = np.uint64(2), np.uint64(63)
    while places < np.uint64(2) * (stop - start):
        places, shift = places * np.uint64(2), shift - np.uint64(1)
    for k in range(places):
        table[k] = 0
    for k in range(start, stop):
        column, value = columns[k], data[k]
        place = (np.uint64(column) * _GOLDEN) >> shift
        while table[place] != 0 and columns[np.uint64(table[place] - 1)] != column:
            place = (place + np.uint64(1)) & (places - np.uint64(1))
        if table[place] == 0:
            columns[end], data[end] = column, value
            end += np.uint64(1)
            table[place] = end
        else:
            data[np.uint64(table[place] - 1)] += value
    return end


@helper
def sift(columns: Any, data: Any, start: Any, at: Any, n: Any) -> None:
    """Let the value at a place of a heap of n sink until no larger column is below it."""
    column, value = columns[start + at], data[start + at]
    while True:
        child = np.uint64(2) * at + np.uint64(1)
        if child >= n:
            break
        if child + np.uint64(1) < n and columns[start + child + np.uint64(1)] > columns[start + child]:
            child += np.uint64(1)
        if columns[start + child] <= column:
            break
        columns[start + at], data[start + at] = columns[start + child], data[start + child]
        at = child
    columns[start + at], data[start + at] = column, value


@helper
def sort_and_add_up(columns: Any, data: Any, start: Any, stop: Any, end: Any) -> Any:
    """As `add_up`, with the features in ascending order, and in place: by Williams' heapsort."""
    one, n = np.uint64(1), stop - start
    for k in range(n // np.uint64(2)):
        sift(columns, data, start, n // np.uint64(2) - one - k, n)
    for k in range(n - one):
        last = stop - one - k
        columns[start], columns[last] = columns[last], columns[start]
        data[start], data[last] = data[last], data[start]
        sift(columns, data, start, np.uint64(0), last - start)
    first = end
    for k in range(start, stop):
        if end > first and columns[end - one] == columns[k]:
            data[end - one] += data[k]
        else:
            columns[end], data[end] = columns[k], data[k]
            end += one
    return end


@inline
def sort_part(columns: Any, data: Any, n: Any) -> Any:
    """Let the first n values ascend, each feature once; returns how many there are then."""
    if ascends(columns, np.uint64(0), n):
        return n
    return sort_and_add_up(columns, data, np.uint64(0), n, np.uint64(0))


@helper
def add_part(columns: Any, data: Any, first: Any, end: Any, part: Any, values: Any, n: Any) -> Any:
    """Add the first n values of a part to a row; both ascend, and so will the row. Returns its end."""
    one, new, k = np.uint64(1), n, first
    if end > first and part[0] <= columns[end - one]:
        for i in range(n):
            while k < end and columns[k] < part[i]:
                k += one
            if k < end and columns[k] == part[i]:
                data[k] += values[i]
                new -= one
    # From the last to the first, so that nothing is overwritten that has not been moved.
    left, k, to = n, end, end + new
    while to > k:
        if k > first and columns[k - one] >= part[left - one]:
            k -= one
            if columns[k] == part[left - one]:  # it was added
                left -= one
            to -= one
            columns[to], data[to] = columns[k], data[k]
        else:
            left -= one
            to -= one
            columns[to], data[to] = part[left], values[left]
    return end + new


@helper
def add_up_parts(columns: Any, data: Any, start: Any, stop: Any, first: Any) -> Any:
    """As `add_up`, with the features in ascending order, for a row of any length: parts of LONG_ROW values
    are added to what was before them, one after another."""
    part, values = np.empty(LONG_ROW, columns.dtype), np.empty(LONG_ROW, data.dtype)
    end = first
    for begin in range(start, stop, np.uint64(LONG_ROW)):
        n = min(stop - begin, np.uint64(LONG_ROW))
        for k in range(n):
            part[k], values[k] = columns[begin + k], data[begin + k]
        end = add_part(columns, data, first, end, part, values, sort_part(part, values, n))
    return end


@kernel
def append_part(columns: Any, data: Any, end: int, part: Any, values: Any, n: int) -> Any:
    """Add a part, which is sorted for it, to a row that ascends up to `end`; returns its new end."""
    columns, data, part, values = borrow(columns), borrow(data), borrow(part), borrow(values)
    n = sort_part(part, values, np.uint64(n))
    return np.int64(add_part(columns, data, np.uint64(0), np.uint64(end), part, values, n))


@kernel
def tidy(indptr: Any, columns: Any, data: Any, table: Any, log1p: bool, l2: bool, beside: Any) -> None:
    """Add up the values of a feature that comes twice in a row, drop zeros, and transform, in place.

    `table`, int64, has room for twice the longest row that is not a long one, and for a power of two.
    `beside`: of each row, the square norm of what else counts for its length; or nothing.
    """
    indptr, columns, data, table = borrow(indptr), borrow(columns), borrow(data), borrow(table)
    beside = borrow(beside)
    start, end = np.uint64(indptr[0]), np.uint64(0)
    for row in range(len(indptr) - 1):
        stop, first = np.uint64(indptr[row + 1]), end
        if ascends(columns, start, stop):
            last = stop
            begin = start
        else:
            if stop - start > np.uint64(LONG_ROW):
                last = add_up_parts(columns, data, start, stop, first)
            else:
                last = add_up(columns, data, start, stop, table, first)
            begin = first
        if begin == end and not has_zeros(data, begin, last):
            end = last  # as it mostly is
        else:
            for k in range(begin, last):
                columns[end], data[end] = columns[k], data[k]
                end += np.uint64(data[k] != 0.0)
        if log1p:
            for k in range(first, end):
                data[k] = math.copysign(math.log1p(abs(np.float64(data[k]))), data[k])
        if l2:
            square = beside[row] if len(beside) > 0 else 0.0
            for k in range(first, end):
                square += np.float64(data[k]) * np.float64(data[k])
            if square > 0.0:
                length = math.sqrt(square)
                for k in range(first, end):
                    data[k] = np.float64(data[k]) / length
        start = stop
        indptr[row + 1] = end
    indptr[0] = 0


def tidied(
    indptr: np.ndarray,
    columns: np.ndarray,
    data: np.ndarray,
    *,
    log1p: bool,
    l2: bool,
    beside: np.ndarray = _NOTHING,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows, tidied in place."""
    longest = min(int(np.diff(indptr).max(initial=0)), LONG_ROW)
    table = np.empty(1 << (2 * longest + 1).bit_length(), np.int64)
    tidy(indptr, columns, data, table, log1p, l2, beside)
    return indptr, columns[: indptr[-1]], data[: indptr[-1]]


class LongRow:
    """A row that comes in pieces, added up as `tidy` does it with a whole one: in parts of LONG_ROW values,
    wherever pieces end.

    It takes memory for the features that are different, of which there may be `most`, and for one part.
    """

    def __init__(self, most: int, column_type: Any, dtype: Any) -> None:
        self._most, self._end, self._n = most, 0, 0
        self._columns, self._data = own_pages(most + LONG_ROW, column_type), own_pages(most + LONG_ROW, dtype)
        self._part, self._values = own_pages(LONG_ROW, column_type), own_pages(LONG_ROW, dtype)

    def add(self, columns: np.ndarray, data: np.ndarray) -> bool:
        """Append a piece; False if there are too many different features."""
        while len(columns):
            if self._n == LONG_ROW and not self._add_part():
                return False
            taken = min(LONG_ROW - self._n, len(columns))
            here = slice(self._n, self._n + taken)
            self._part[here], self._values[here] = columns[:taken], data[:taken]
            columns, data, self._n = columns[taken:], data[taken:], self._n + taken
        return True

    def _add_part(self) -> bool:
        n, self._n = self._n, 0
        self._end = append_part(self._columns, self._data, self._end, self._part, self._values, n)
        return self._end <= self._most

    def taken(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The row, to be tidied; None if it has too many different features."""
        if not self._end:  # not a long one
            return self._part[: self._n], self._values[: self._n]
        if not self._add_part():
            return None
        return self._columns[: self._end], self._data[: self._end]


class Appended:
    """A row that comes in pieces, in which each feature comes once."""

    def __init__(self, most: int, column_type: Any, dtype: Any) -> None:
        self._columns, self._data, self._end = own_pages(most, column_type), own_pages(most, dtype), 0

    def add(self, columns: np.ndarray, data: np.ndarray) -> None:
        """Append a piece."""
        here = slice(self._end, self._end + len(columns))
        self._columns[here], self._data[here], self._end = columns, data, here.stop

    def taken(self) -> tuple[np.ndarray, np.ndarray]:
        """The row."""
        return self._columns[: self._end], self._data[: self._end]


@kernel
def _measure(indptr: Any, data: Any, squares: Any) -> None:
    indptr, data, squares = borrow(indptr), borrow(data), borrow(squares)
    for row in range(len(indptr) - 1):
        squares[row] = square_norm(data[indptr[row] : indptr[row + 1]])


def square_norms(indptr: np.ndarray, data: np.ndarray) -> np.ndarray:
    """The square norm of each row, as the engine finds it."""
    squares = np.empty(len(indptr) - 1)
    _measure(indptr, data, squares)
    return squares


def rows_outside(indptr: np.ndarray, squares: np.ndarray, limits: tuple[float, float]) -> np.ndarray | None:
    """Which rows have a square norm that is not within limits; None if no row has."""
    low, high = limits
    if len(squares) and low <= squares.min() and squares.max() <= high:  # as nearly always
        return None
    outside = ~((low <= squares) & (squares <= high)) & (indptr[1:] > indptr[:-1])
    return outside if outside.any() else None
