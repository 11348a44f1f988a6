"""Examples of a stream into a cache."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from maxcosine import files
from maxcosine.stream.cache.arrow import array_of, checksum_of, pyarrow_for, strings_of
from maxcosine.stream.cache.header import CHECKSUM, KEY, Header
from maxcosine.stream.rows import Rows
from maxcosine.stream.source import StreamError

if TYPE_CHECKING:
    from maxcosine.stream.chunks import Stream

VALUES_A_BATCH = 1 << 19
"""Rows are written together until they have so many: with their columns, 4 MB."""


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
    with files.writing(os.fspath(path)) as file, pa.ipc.new_file(file, batches.schema) as writer:
        beginning = batches.schema.metadata[KEY]
        for number, batch, is_last in _with_last(batches.of(chain([first], all_rows))):
            checksum = checksum_of(batch, beginning, number, is_last)
            writer.write_batch(batch, custom_metadata={CHECKSUM: str(checksum)})
    return batches.n_examples


def _with_last(batches: Iterable[Any]) -> Iterator[tuple[int, Any, bool]]:
    """Batches with their numbers, and whether each is the last."""
    before = None
    number = -1
    for number, batch in enumerate(batches):
        if before is not None:
            yield number - 1, before, False
        before = batch
    if before is not None:
        yield number, before, True


class _Batches:
    """Rows as record batches."""

    def __init__(
        self, pa: Any, stream: Stream, header: Header, progress: Callable[[int], None] | None
    ) -> None:
        self._pa, self._stream, self._header, self._progress = pa, stream, header, progress
        self.schema = header.schema(pa)
        self._labels = strings_of(pa, np.empty(0, np.uint8), np.zeros(1, np.int64))
        self.n_examples = 0

    def of(self, all_rows: Iterable[Rows]) -> Iterator[Any]:
        """Batches of enough values, however little comes at a time."""
        waiting, n_values = list[Any](), 0
        for rows in all_rows:
            self.n_examples += len(rows)
            if self._progress is not None:
                self._progress(self.n_examples)
            if not len(rows):  # bad lines only
                continue
            rows = _in_one_piece(rows)
            waiting.append(self._batch(rows))
            n_values += len(rows.data)
            if n_values >= VALUES_A_BATCH:
                yield self._joined(waiting)
                waiting, n_values = [], 0
        if waiting:
            yield self._joined(waiting)

    def _joined(self, batches: list[Any]) -> Any:
        table = self._pa.Table.from_batches(batches)
        return table.combine_chunks().to_batches()[0]

    def _batch(self, rows: Rows) -> Any:
        pa = self._pa
        offsets = array_of(pa, rows.indptr).cast(pa.int32())  # refuses what does not fit
        features = strings_of(pa, *rows.names) if rows.names else array_of(pa, rows.columns)
        lists = [pa.ListArray.from_arrays(offsets, child) for child in (features, array_of(pa, rows.data))]
        weights = [array_of(pa, np.ones(len(rows)) if rows.weights is None else rows.weights)]
        columns = [self._labels_of(rows.codes), *(weights if self._header.weighted else []), *lists]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _labels_of(self, codes: np.ndarray) -> Any:
        pa = self._pa
        new = [label.encode() for label in self._stream.labels[len(self._labels) :]]
        if new:
            letters, starts = np.frombuffer(b"".join(new), np.uint8), np.cumsum([0, *map(len, new)])
            self._labels = pa.concat_arrays([self._labels, strings_of(pa, letters, starts)])
        return self._labels.take(array_of(pa, codes, missing=codes < 0))


def _in_one_piece(rows: Rows) -> Rows:
    """Rows with all of their names: in an Arrow file, a row is all in one batch."""
    if rows.names is None or isinstance(rows.names, tuple):
        return rows
    # Copies, as pieces are read into the same memory.
    pieces = [(piece.letters.copy(), np.diff(piece.starts), piece.data.copy()) for piece in rows.names]
    letters, sizes, data = (np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
    starts = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=starts[1:])
    return rows.replace(indptr=np.array([0, len(data)]), names=(letters, starts), data=data)
