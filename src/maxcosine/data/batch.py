"""RowBatch: the one container of examples between the parsers and the engine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from maxcosine.data.inputs import START, Place


def _no_lines() -> np.ndarray:
    return np.zeros(0, np.int64)


class Names(NamedTuple):
    """Names of features: name k is letters[starts[k] : starts[k + 1]], in UTF-8."""

    letters: np.ndarray
    starts: np.ndarray

    def take(self, kept: np.ndarray) -> Names:
        """Return the names where a boolean array is true."""
        lengths = np.diff(self.starts)
        letters = self.letters[self.starts[0] : self.starts[-1]]
        return Names(letters[np.repeat(kept, lengths)], _offsets(lengths[kept]))


@dataclass(frozen=True, eq=False)
class RowPlaces:
    """Where the rows of a batch are in the inputs: for messages and checkpoints.

    Lines are counted from the first line of the block; in a cache, an example is a line.
    """

    lines: np.ndarray = field(default_factory=_no_lines)  # the line of each row
    offsets: np.ndarray | None = None  # the byte of the block where each row begins; None in a cache
    bad_lines: np.ndarray = field(default_factory=_no_lines)  # the bad lines of the block
    bad_bytes: np.ndarray = field(default_factory=_no_lines)  # what each of them takes in the file of bad lines
    before: Place = START  # where the block begins
    after: Place = START  # where the next block begins

    def start(self, row: int) -> Place:
        """Return where a row begins."""
        line = int(self.lines[row])
        n_bad = int(np.searchsorted(self.bad_lines, line))
        return Place(
            self.before.source,
            0 if self.offsets is None else self.before.offset + int(self.offsets[row]),
            self.before.line + line,
            self.before.bad + n_bad,
            self.before.bad_bytes + int(self.bad_bytes[:n_bad].sum()),
        )

    def end(self, row: int) -> Place:
        """Return where the row after this one begins, or the next block."""
        return self.start(row + 1) if row + 1 < len(self.lines) else self.after


@dataclass(eq=False)
class RowBatch:
    """Examples in the order of the data, with their features in CSR layout.

    Columns and ids occur once in a row, in any order, and their values are not 0. Names may occur several
    times: only an index knows which of them are equal.
    """

    indptr: np.ndarray  # int64: where the features of each row begin, and where the last row ends
    keys: np.ndarray | Names  # the features: uint32 for column numbers and hashed columns, uint64 for ids, or names
    values: np.ndarray  # float32 or float64
    codes: np.ndarray  # of each row's label among the labels of the stream; -1 for a row without a label
    weights: np.ndarray | None = None  # how much each row counts; None if all weights are 1
    squares: np.ndarray | None = None  # the square norm of each row, if it is known
    n_columns: int | None = None  # one more than the highest column, if it is known
    hashed_names: Names | None = None  # names of hashed features as written in the text, if they are kept
    hashed_columns: np.ndarray | None = None  # the column of each of these names
    kept_columns: Any = None  # of records: the columns that are kept, as an Arrow table
    skipped: np.ndarray = field(default_factory=_no_lines)  # for each bad line of the block: rows that precede it
    places: RowPlaces = field(default_factory=RowPlaces)  # where the rows are in the inputs

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def kind(self) -> str:
        """What features are known by: "columns", "ids" or "names"."""
        if isinstance(self.keys, Names):
            return "names"
        return "columns" if self.keys.dtype == np.uint32 else "ids"

    def __getitem__(self, rows: slice) -> RowBatch:
        """Return consecutive rows, without copying their features."""
        start, stop, _ = rows.indices(len(self))
        if (start, stop) == (0, len(self)):
            return self
        first, last = self.indptr[start], self.indptr[stop]
        if isinstance(self.keys, Names):
            keys: np.ndarray | Names = self.keys._replace(starts=self.keys.starts[first : last + 1])
        else:
            keys = self.keys[first:last]
        indptr = self.indptr[start : stop + 1] - first
        part = self._select(rows, replace(self, indptr=indptr, keys=keys, values=self.values[first:last]))
        if stop < len(self):
            part.places = replace(part.places, after=self.places.start(stop))
        return part

    def take(self, kept: np.ndarray) -> RowBatch:
        """Return the rows where a boolean array is true."""
        if kept.all():
            return self
        sizes = np.diff(self.indptr)
        features = np.repeat(kept, sizes)
        keys = self.keys.take(features) if isinstance(self.keys, Names) else self.keys[features]
        indptr = _offsets(sizes[kept])
        return self._select(kept, replace(self, indptr=indptr, keys=keys, values=self.values[features]))

    def _select(self, rows: np.ndarray | slice, features: RowBatch) -> RowBatch:
        """Return the features of some rows with the other properties of these rows."""
        lines, offsets = self.places.lines[rows], self.places.offsets
        return replace(
            features,
            codes=self.codes[rows],
            weights=None if self.weights is None else self.weights[rows],
            squares=None if self.squares is None else self.squares[rows],
            kept_columns=None if self.kept_columns is None else _rows_of_table(self.kept_columns, rows),
            n_columns=None,
            skipped=_no_lines(),
            places=replace(self.places, lines=lines, offsets=None if offsets is None else offsets[rows]),
        )


def _rows_of_table(table: Any, rows: np.ndarray | slice) -> Any:
    """Return consecutive rows of an Arrow table, or those where a boolean array is true."""
    if isinstance(rows, slice):
        start, stop, _ = rows.indices(len(table))
        return table.slice(start, stop - start)
    return table.take(np.flatnonzero(rows))


def _offsets(sizes: np.ndarray) -> np.ndarray:
    """Return where items of these sizes begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes)])
