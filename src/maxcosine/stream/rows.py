"""Examples as every reader gives them, and the engine takes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from maxcosine.record import Record

_NONE = np.empty(0, np.int64)


class Named(NamedTuple):
    """Features with their names, if they have any."""

    letters: np.ndarray
    """Of all names, one after another."""
    starts: np.ndarray
    """Where each name begins, and the last ends."""
    columns: np.ndarray
    """Ids, or hashed columns as they came; nothing if features are known by their names."""
    data: np.ndarray
    """Their values."""


NO_NAMES = np.empty(0, np.uint8), np.zeros(1, np.int32)
"""Their letters, and where they begin."""


class Rows(Record):
    """Examples as the engine takes them."""

    indptr: np.ndarray
    columns: np.ndarray
    """uint32: column numbers or hashed columns; uint64: ids for an index. Each once in a row, in any
    order."""
    names: tuple[np.ndarray, np.ndarray] | None
    """Instead of columns: the letters of all names, and where each begins."""
    data: np.ndarray
    codes: np.ndarray
    """Positions in the stream's labels; -1 for a row without one."""
    weights: np.ndarray | None
    ends: Any
    """Of each row: the place where the next one begins."""
    skipped: np.ndarray = _NONE
    """For each bad line: how many rows were before it."""
    named: Iterable[Named] | None = None
    """If names are kept: hashed features with their names."""
    squares: np.ndarray | None = None
    """The square norm of each row, if it is known."""
    n_columns: int | None = None
    """One more than the highest column, if it is known."""
    pieces: Iterable[Named] | None = None
    """The features of a long row, if it is the only one: they are read when somebody asks for them, and are
    not here. Ids come once in all pieces, names as they came."""

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def features(self) -> Named:
        """The features of all rows."""
        letters, starts = NO_NAMES if self.names is None else self.names
        return Named(letters, starts, self.columns, self.data)

    def __getitem__(self, span: slice) -> Rows:
        """Some of the rows, one after another."""
        start, stop, _ = span.indices(len(self))
        if (start, stop) == (0, len(self)):
            return self
        values = slice(self.indptr[start], self.indptr[stop])
        names = self.names
        if names is not None:
            letters, starts = names
            names = letters, starts[values.start : values.stop + 1]
        return Rows(
            self.indptr[start : stop + 1] - self.indptr[start],
            self.columns[values],
            names,
            self.data[values],
            self.codes[start:stop],
            None if self.weights is None else self.weights[start:stop],
            self.ends[start:],
            named=self.named,
            squares=None if self.squares is None else self.squares[start:stop],
        )


def n_columns(columns: np.ndarray) -> int:
    """One more than the highest column."""
    return int(columns.max()) + 1 if len(columns) else 0


def taken(rows: Rows, kept: np.ndarray) -> Rows:
    """Some of the rows."""
    if kept.all():
        return rows
    sizes = np.diff(rows.indptr)
    by_value = np.repeat(kept, sizes)
    names = rows.names
    if names is not None:
        letters, starts = names
        begins, lengths = starts[:-1][by_value], np.diff(starts)[by_value]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        letters = letters[np.repeat(begins - ends[:-1], lengths) + np.arange(ends[-1])]
        # What is compared with the letters of an index may be read from eight bytes before on.
        names = np.concatenate([np.zeros(8, np.uint8), letters])[8:], ends
    return Rows(
        np.concatenate([[0], np.cumsum(sizes[kept])]),
        rows.columns[by_value] if len(rows.columns) else rows.columns,
        names,
        rows.data[by_value],
        rows.codes[kept],
        None if rows.weights is None else rows.weights[kept],
        rows.ends,
        squares=None if rows.squares is None else rows.squares[kept],
    )
