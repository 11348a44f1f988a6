"""RowBatch: the one container of examples between the parsers and the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from maxcosine.data.inputs import START, Place


def _no_lines() -> np.ndarray:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class RowPlaces:
    """Where the rows of a batch are in the inputs: for messages and checkpoints.

    Lines are counted from the first line of the block; in a cache, an example is a line.
    """

    lines: np.ndarray = field(default_factory=_no_lines)
    """The line of each row."""
    offsets: np.ndarray | None = None
    """The byte where each row begins, counted from the start of the block; None in a cache."""
    bad_lines: np.ndarray = field(default_factory=_no_lines)
    """The bad lines of the block."""
    bad_bytes: np.ndarray = field(default_factory=_no_lines)
    """Bytes that each of them takes in the file of bad lines."""
    before: Place = START
    """Where the block begins."""
    after: Place = START
    """Where the next block begins."""

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

    def take(self, rows: np.ndarray | slice) -> RowPlaces:
        """Return the places of some of the rows."""
        offsets = None if self.offsets is None else self.offsets[rows]
        return replace(self, lines=self.lines[rows], offsets=offsets)


class NamedColumns(NamedTuple):
    """The names of hashed features, one after another."""

    columns: np.ndarray
    """uint32: the column that each name was hashed to."""
    letters: np.ndarray
    starts: np.ndarray


@dataclass(eq=False)
class RowBatch:
    """Examples in the order of the data, with their features in CSR layout.

    Features are known by column numbers, ids or names; two of `columns`, `ids` and `letters` are None. Columns
    and ids occur once in a row, in any order, and their values are not 0. Names may occur several times: only
    an index knows which of them are equal.
    """

    indptr: np.ndarray
    """int64, n_rows + 1: where the features of each row begin."""
    values: np.ndarray
    """float32 or float64: the values of the features."""
    codes: np.ndarray
    """int64: the code of each row's label among the labels of the stream; -1 for a row without a label."""
    columns: np.ndarray | None = None
    """uint32: column numbers, or hashed columns."""
    ids: np.ndarray | None = None
    """uint64: ids for an index."""
    letters: np.ndarray | None = None
    """uint8: the names of the features, one after another, in UTF-8."""
    name_starts: np.ndarray | None = None
    """int64, n_values + 1: where each name begins in `letters`."""
    weights: np.ndarray | None = None
    """float64: what the step of each row is multiplied by; None if all weights are 1."""
    squares: np.ndarray | None = None
    """float64: the square norm of each row, if it is known."""
    n_columns: int | None = None
    """One more than the highest column, if it is known."""
    named_columns: NamedColumns | None = None
    """The names of hashed features, if they are kept."""
    skipped: np.ndarray = field(default_factory=_no_lines)
    """For each bad line of the block: how many rows precede it."""
    places: RowPlaces = field(default_factory=RowPlaces)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def kind(self) -> str:
        """What features are known by: "columns", "ids" or "names"."""
        return "columns" if self.columns is not None else "ids" if self.ids is not None else "names"

    def names(self) -> list[str]:
        """Return the names of the features of all rows."""
        return decode_names(self.letters, self.name_starts)

    def __getitem__(self, rows: slice) -> RowBatch:
        """Return consecutive rows, without copying their features."""
        start, stop, _ = rows.indices(len(self))
        if (start, stop) == (0, len(self)):
            return self
        first, last = int(self.indptr[start]), int(self.indptr[stop])
        features, rows = slice(first, last), slice(start, stop)
        return self._part(
            rows,
            self.indptr[start : stop + 1] - first,
            features,
            self.letters,
            None if self.name_starts is None else self.name_starts[first : last + 1],
        )

    def take(self, kept: np.ndarray) -> RowBatch:
        """Return the rows where a boolean array is true."""
        if kept.all():
            return self
        sizes = np.diff(self.indptr)
        features = np.repeat(kept, sizes)
        letters, starts = self.letters, self.name_starts
        if letters is not None and starts is not None:
            lengths = np.diff(starts)
            letters = letters[starts[0] : starts[-1]][np.repeat(features, lengths)]
            starts = np.concatenate([[0], np.cumsum(lengths[features])])
        indptr = np.concatenate([[0], np.cumsum(sizes[kept])])
        return self._part(kept, indptr, features, letters, starts)

    def _part(
        self,
        rows: np.ndarray | slice,
        indptr: np.ndarray,
        features: np.ndarray | slice,
        letters: np.ndarray | None,
        name_starts: np.ndarray | None,
    ) -> RowBatch:
        return replace(
            self,
            indptr=indptr,
            values=self.values[features],
            codes=self.codes[rows],
            columns=None if self.columns is None else self.columns[features],
            ids=None if self.ids is None else self.ids[features],
            letters=letters,
            name_starts=name_starts,
            weights=None if self.weights is None else self.weights[rows],
            squares=None if self.squares is None else self.squares[rows],
            n_columns=None,
            skipped=_no_lines(),
            places=self.places.take(rows),
        )


def decode_names(letters: np.ndarray | None, starts: np.ndarray | None) -> list[str]:
    """Return names as strings; bytes that are not UTF-8 are escaped.

    >>> decode_names(np.frombuffer(b"freewin", np.uint8), np.array([0, 4, 7]))
    ['free', 'win']
    """
    if letters is None or starts is None:
        return []
    text = letters.tobytes()
    ends: Sequence[int] = starts.tolist()
    return [
        text[start:stop].decode(errors="backslashreplace")
        for start, stop in zip(ends[:-1], ends[1:], strict=True)
    ]
