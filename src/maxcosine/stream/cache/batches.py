"""What is in a batch, checked: kernels trust it."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from maxcosine.stream.cache.arrow import (
    flags_of,
    has_room,
    lists_of,
    numbers_of,
    offsets_of,
    own_numbers,
    texts_of,
)
from maxcosine.stream.cache.header import MOST_BITS, Header
from maxcosine.stream.parsed import MARGIN
from maxcosine.stream.rows import Rows
from maxcosine.stream.tidy import square_norms


class Wrong(Exception):
    """What is wrong with a row of a batch."""

    def __init__(self, what: str, row: int = 0) -> None:
        self.what, self.row = what, row


def check_structure(batch: Any, header: Header) -> None:
    """Check that lists and texts lie within what was read."""
    _check_ascend(offsets_of(batch.column("label")), "label")
    for name in (header.kind, "values"):
        column = batch.column(name)
        _check_ascend(numbers_of(column.offsets), name)
        if column.null_count or column.values.null_count:
            raise Wrong(f"something is missing (null) in {name}")
    if header.kind == "names":
        names = batch.column("names")
        _check_ascend(offsets_of(names.values), "names", numbers_of(names.offsets))
    if batch.column("goes_on").null_count:
        raise Wrong("something is missing (null) in goes_on")
    if len(batch) > 1 and flags_of(batch.column("goes_on")).any():
        raise Wrong("an example that goes on is not alone in its batch")


def _check_ascend(offsets: np.ndarray, name: str, rows: np.ndarray | None = None) -> None:
    """`rows`: where the rows begin that these are in; by default, each is one."""
    descend = offsets[1:] < offsets[:-1]
    if descend.any():
        k = int(np.argmax(descend))
        row = k if rows is None else int(np.searchsorted(rows, k, side="right")) - 1
        raise Wrong(f"something in {name} ends before it begins", row)


def rows_of(batch: Any, header: Header) -> Rows:
    """The rows of a batch, but for their codes and ends; all is checked that kernels trust."""
    indptr, features = lists_of(batch.column(header.kind))
    value_indptr, values = lists_of(batch.column("values"))
    differ = indptr != value_indptr
    if differ.any():
        raise Wrong(f"the lists {header.kind} and values differ in length", int(np.argmax(differ)) - 1)
    data = own_numbers(values)
    squares = square_norms(indptr, data)
    if not (np.isfinite(squares).all() or np.isfinite(data).all()):
        _refuse_first(~np.isfinite(data), "the value {} is not finite", data, indptr)
    columns, names, highest = np.empty(0, np.uint64), None, -1
    if header.kind == "names":
        names = letters_of(features)
    else:
        columns = own_numbers(features)
    if header.kind == "columns":
        n_columns = 1 << (header.bits or MOST_BITS)
        highest = int(columns.max()) if len(columns) else -1
        if highest >= n_columns:
            _refuse_first(columns >= n_columns, f"the column {{}} is not below {n_columns}", columns, indptr)
    weights = _weights(batch.column("weight")) if header.weighted else None
    return Rows(
        indptr,
        columns,
        names,
        data,
        np.empty(0, np.int64),
        weights,
        ends=(),
        squares=squares,
        n_columns=highest + 1 if header.kind == "columns" else None,
    )


def _weights(column: Any) -> np.ndarray | None:
    """Weights; None if all are 1."""
    if column.null_count:
        raise Wrong("something is missing (null) in weight")
    weights = own_numbers(column)
    bad = ~((weights >= 0.0) & (weights < np.inf))
    if bad.any():
        _refuse_first(bad, "the weight {} is not a number from 0 on", weights, np.arange(len(weights) + 1))
    return None if (weights == 1.0).all() else weights


def _refuse_first(bad: np.ndarray, what: str, numbers: np.ndarray, indptr: np.ndarray) -> NoReturn:
    """Refuse the first number that is bad."""
    k = int(np.argmax(bad))
    raise Wrong(what.format(numbers[k]), int(np.searchsorted(indptr, k, side="right")) - 1)


def letters_of(names: Any) -> tuple[np.ndarray, np.ndarray]:
    """The letters of names, with room before the first and behind the last, and where each begins."""
    offsets, letters = texts_of(names)
    starts = offsets - offsets[0] if offsets[0] else offsets
    if letters.max(initial=0) >= 0x80:
        str(letters.data, "utf-8")
        begins = starts[:-1][starts[1:] > starts[:-1]]
        if ((letters[begins] & 0xC0) == 0x80).any():
            raise Wrong("a name begins in the middle of a letter")
    if not has_room(names.buffers()[2], MARGIN):
        room = np.zeros(MARGIN, np.uint8)
        letters = np.concatenate([room, letters, room])[MARGIN:-MARGIN]
    return letters, starts
