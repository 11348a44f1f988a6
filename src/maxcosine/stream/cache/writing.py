"""Examples of a stream into a cache."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from maxcosine import files
from maxcosine.stream.cache.arrow import (
    array_of,
    checksum_of,
    flags_for,
    lists_for,
    pyarrow_for,
    strings_of,
)
from maxcosine.stream.cache.header import CHECKSUM, KEY, Header
from maxcosine.stream.memory import own_pages
from maxcosine.stream.rows import NO_NAMES, Named, Rows
from maxcosine.stream.source import StreamError

if TYPE_CHECKING:
    from maxcosine.stream.chunks import Stream

VALUES_A_BATCH, LETTERS_A_BATCH, ROWS_A_BATCH = 1 << 19, 1 << 21, 1 << 17
"""Rows are written together until there is no room for one more. A value with its feature counts for eight
bytes; of those that take more there are fewer."""
LETTERS_A_ROW = 1 << 23
"""A row may have so many letters of names, and no more values than a batch; else it is written in parts."""


def write(stream: Stream, path: str | os.PathLike[str], progress: Callable[[int], None] | None = None) -> int:
    """Write all examples of a stream; returns how many. `progress` is told after every block.

    The file is there when it is whole, and not before.
    """
    pa = pyarrow_for(path)
    all_rows = stream.rows()
    first = next((rows for rows in all_rows if len(rows)), None)
    if first is None:
        raise StreamError(f"there is no example in {', '.join(stream.source.names)}; is it the right file?")
    batches = _Batches(pa, stream, Header.of(stream, first), progress)
    given = [first]
    del first
    with files.writing(os.fspath(path)) as file, pa.ipc.new_file(file, batches.schema) as writer:
        beginning = batches.schema.metadata[KEY]
        for number, batch in enumerate(batches.of(chain(_emptied(given), all_rows))):
            checksum = checksum_of(batch, beginning, number, is_last=not len(batch))
            writer.write_batch(batch, custom_metadata={CHECKSUM: str(checksum)})
    return batches.n_examples


def _emptied(rows: list[Rows]) -> Iterator[Rows]:
    """What is in a list, which does not keep it."""
    while rows:
        yield rows.pop(0)


class _Batches:
    """Rows as record batches. Each has to be written before the next is asked for."""

    def __init__(
        self, pa: Any, stream: Stream, header: Header, progress: Callable[[int], None] | None
    ) -> None:
        self._pa, self._stream, self._header, self._progress = pa, stream, header, progress
        self.schema = header.schema(pa)
        self._labels = strings_of(pa, *NO_NAMES)
        self._waiting = _Waiting(header)
        self.n_examples = 0

    def of(self, all_rows: Iterator[Rows]) -> Iterator[Any]:
        """Batches of enough values, however little comes at a time, and at last an empty one."""
        for rows in all_rows:
            self.n_examples += len(rows)
            if self._progress is not None:
                self._progress(self.n_examples)
            yield from self._filled(rows)
            del rows  # before the next ones come
        if self._waiting.n_rows:
            yield self._batch(self._waiting.taken())
        yield self._batch(self._waiting.taken())

    def _filled(self, rows: Rows) -> Iterator[Any]:
        """Batches that are full, once these rows are added to what is waiting."""
        at = 0
        while at < len(rows):
            n = 0 if rows.pieces is not None else self._waiting.add(rows, at)
            at += n
            if at < len(rows) and self._waiting.n_rows:
                yield self._batch(self._waiting.taken())
            elif at < len(rows):
                yield from self._parts(rows[at : at + 1])
                at += 1

    def _parts(self, row: Rows) -> Iterator[Any]:
        """One row, which is too long for a batch, in several."""
        for piece in [row.features] if row.pieces is None else row.pieces:
            at = 0
            while at < len(piece.data):
                n = self._waiting.add_values(piece, at)
                at += n
                if at < len(piece.data) and self._waiting.n_values:
                    yield self._batch(self._waiting.taken(row), goes_on=True)
                elif not n:  # a name of more letters than a batch
                    yield self._batch(_with_one_name(row, piece, at), goes_on=True)
                    at += 1
            del piece  # before the next one comes
        if self._waiting.n_values:
            yield self._batch(self._waiting.taken(row), goes_on=True)
        yield self._batch(self._waiting.taken(row))

    def _batch(self, rows: Rows, *, goes_on: bool = False) -> Any:
        """Whole rows, or one that goes on; without a copy."""
        pa = self._pa
        features = strings_of(pa, *rows.names) if rows.names is not None else array_of(pa, rows.columns)
        lists = [lists_for(pa, rows.indptr, entries) for entries in (features, array_of(pa, rows.data))]
        weights = [array_of(pa, _weights(rows))] if self._header.weighted else []
        flags = flags_for(pa, np.full(len(rows), goes_on))
        columns = [self._labels_of(rows.codes), *weights, *lists, flags]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _labels_of(self, codes: np.ndarray) -> Any:
        pa = self._pa
        new = [label.encode() for label in self._stream.labels[len(self._labels) :]]
        if new:
            letters = np.frombuffer(b"".join(new), np.uint8)
            starts = np.cumsum([0, *map(len, new)], dtype=np.int32)
            self._labels = pa.concat_arrays([self._labels, strings_of(pa, letters, starts)])
        return self._labels.take(array_of(pa, codes, missing=codes < 0))


def _weights(rows: Rows) -> np.ndarray:
    return np.ones(len(rows)) if rows.weights is None else rows.weights


def _with_one_name(row: Rows, piece: Named, k: int) -> Rows:
    """A row of one of the features of a piece."""
    start, stop = piece.starts[k : k + 2].tolist()
    return row.replace(
        indptr=np.array([0, 1], np.int32),
        names=(piece.letters[start:stop], np.array([0, stop - start], np.int32)),
        data=piece.data[k : k + 1],
    )


class _Waiting:
    """The rows of the next batch. They are copied, so that nothing is kept of the blocks they came in."""

    def __init__(self, header: Header) -> None:
        named = self._named = header.kind == "names"
        id_type, dtype = np.dtype(np.uint64 if header.kind == "ids" else np.uint32), np.dtype(header.dtype)
        most = self._most_values = VALUES_A_BATCH * 8 // (id_type.itemsize + dtype.itemsize)
        self.n_rows = self.n_values = 0
        self._indptr = own_pages(ROWS_A_BATCH + 1, np.int32)
        self._codes, self._weights = own_pages(ROWS_A_BATCH, np.int64), own_pages(ROWS_A_BATCH, np.float64)
        self._columns, self._data = own_pages(0 if named else most, id_type), own_pages(most, dtype)
        self._starts = own_pages(most + 1 if named else 1, np.int32)
        self._letters = own_pages(LETTERS_A_ROW if named else 0, np.uint8)

    def add(self, rows: Rows, first: int) -> int:
        """Copy rows from one on, as many as there is room for; returns how many."""
        n = min(len(rows) - first, ROWS_A_BATCH - self.n_rows)
        ends = rows.indptr[first : first + n + 1] - rows.indptr[first]
        n = int(np.searchsorted(ends, self._most_values - self.n_values, side="right")) - 1
        if rows.names is not None:
            starts = rows.names[1]
            letters = starts[rows.indptr[first : first + n + 1]]
            # If there is nothing yet, one row may have more.
            most = max(0, LETTERS_A_BATCH - self._n_letters)
            fit = int(np.searchsorted(letters - letters[0], most, side="right")) - 1
            if not fit and not self.n_rows and n and letters[1] - letters[0] <= LETTERS_A_ROW:
                fit = 1
            n = min(n, fit)
        if n:
            begin, end = int(rows.indptr[first]), int(rows.indptr[first + n])
            here = slice(self.n_rows, self.n_rows + n)
            self._indptr[here.start + 1 : here.stop + 1] = ends[1 : n + 1] + self.n_values
            self._codes[here] = rows.codes[first : first + n]
            self._weights[here] = 1.0 if rows.weights is None else rows.weights[first : first + n]
            self._copy(rows.features, begin, end)
            self.n_rows += n
        return n

    def add_values(self, piece: Named, first: int) -> int:
        """Copy features of a row in parts from one on, as many as there is room for; returns how many."""
        last = min(first + self._most_values - self.n_values, len(piece.data))
        if self._named:
            most = int(piece.starts[first]) + LETTERS_A_BATCH - self._n_letters
            last = min(last, int(np.searchsorted(piece.starts, most, side="right")) - 1)
        self._copy(piece, first, last)
        return last - first

    def taken(self, row: Rows | None = None) -> Rows:
        """What was added, until something more is: all the rows, or the features that belong to a row."""
        n_rows, n_values = self.n_rows, self.n_values
        starts = self._starts[: n_values + 1]
        found = Rows(
            self._indptr[: n_rows + 1],
            self._columns[:n_values],
            (self._letters[: starts[-1]], starts) if self._named else None,
            self._data[:n_values],
            self._codes[:n_rows],
            self._weights[:n_rows],
            ends=(),
        )
        self.n_rows = self.n_values = 0
        if row is not None:
            indptr = np.array([0, n_values], np.int32)
            found = found.replace(indptr=indptr, codes=row.codes, weights=row.weights)
        return found

    @property
    def _n_letters(self) -> int:
        return int(self._starts[self.n_values])

    def _copy(self, features: Named, begin: int, end: int) -> None:
        """Append some of these features."""
        here = slice(self.n_values, self.n_values + end - begin)
        self._data[here] = features.data[begin:end]
        if self._named:
            starts, n_letters = features.starts[begin : end + 1], self._n_letters
            letters = features.letters[starts[0] : starts[-1]]
            self._letters[n_letters : n_letters + len(letters)] = letters
            self._starts[here.start + 1 : here.stop + 1] = starts[1:] + (n_letters - int(starts[0]))
        else:
            self._columns[here] = features.columns[begin:end]
        self.n_values = here.stop
