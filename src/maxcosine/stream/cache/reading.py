"""Examples out of caches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from maxcosine.stream.cache.reader import Batch, CacheReader
from maxcosine.stream.parsed import MESSAGES, NO_LABEL
from maxcosine.stream.rows import Rows, taken
from maxcosine.stream.source import Place, Source, StreamError
from maxcosine.stream.tidy import OUTSIDE, rows_outside

if TYPE_CHECKING:
    from maxcosine.stream.chunks import Stream

USUAL = {"bits": 0, "exact": False, "dtype": "float32", "normalize": None, "log1p": False}
"""Options of a stream that a cache has already, as they are where nobody asks for them."""


class Caches:
    """The inputs of a stream, all of them caches: how they were made, and their rows."""

    def __init__(self, source: Source, wanted: dict[str, Any], *, strict: bool) -> None:
        self._source = source
        headers = []
        for name in source.names:
            with CacheReader(name) as reader:
                headers.append(reader.header)
        first = headers[0]
        self.options = first.options
        for name, header in zip(source.names, headers, strict=True):
            others = {"kind": first.kind, **first.options}
            _refuse_other(name, {"kind": header.kind, **header.options}, others, source.names[0])
            asked = {key: value for key, value in wanted.items() if strict or value != USUAL[key]}
            _refuse_other(name, header.options, asked, "an option or the model")

    def rows(self, stream: Stream) -> Iterator[Rows]:
        """The rows of a stream from its start on, a batch at a time, and its place after them."""
        self._check_keeps(stream)
        start = stream.start
        for number, reader in self._source.opened(start, self._reader):
            first = start.line if number == start.source else 0
            before = stream.place._replace(source=number, offset=0, line=first)
            batches = reader.batches(first, stream.threads, lambda rows: _outside(stream, rows))
            if first:
                self._source.skipped_bytes = self._source.read_bytes
            with closing(batches):  # before the file is
                for batch in batches:
                    rows = _labelled(stream, reader, batch, before)
                    stream.place = before = rows.ends.last
                    del batch
                    yield rows
                    del rows  # before the next ones come
            stream.place = before._replace(source=number + 1, line=0)

    def _reader(self, number: int) -> CacheReader:
        return CacheReader(self._source.names[number])

    def _check_keeps(self, stream: Stream) -> None:
        """Refuse what only text has."""
        name = self._source.names[0]
        if stream.keep_names and stream.bits:
            raise StreamError(
                f"{name}: the names of hashed features are not in a cache; leave out --keep-names, or give "
                "the text"
            )
        if stream.bad_lines is not None:
            raise StreamError(
                f"{name}: a cache has no lines to write to --bad-lines; leave that out here, and give it to "
                "`maxcosine convert`"
            )


def _refuse_other(name: str, found: dict[str, Any], wanted: dict[str, Any], whose: str) -> None:
    """Refuse a cache that was not made as it is wanted."""
    for key, value in wanted.items():
        if found[key] != value:
            raise StreamError(
                f"{name}: this cache was written with {key} = {found[key]}, and {whose} says {value}; "
                "give the same, or write it anew with `maxcosine convert`"
            )


def _outside(stream: Stream, rows: Rows) -> np.ndarray | None:
    """Which rows are too long or too short for a stream; of names that are yet to be added up, none is."""
    known = rows.names is None or not (stream.normalize or stream.log1p)
    if not known or stream.limits is None or rows.squares is None:
        return None
    return rows_outside(rows.indptr, rows.squares, stream.limits)


def _labelled(stream: Stream, reader: CacheReader, batch: Batch, before: Place) -> Rows:
    """The rows of a batch with positions in the labels of a stream, without those that it refuses."""
    rows = batch.rows
    messages = dict[int, str]()
    if batch.outside is not None:
        messages.update(dict.fromkeys(np.flatnonzero(batch.outside).tolist(), OUTSIDE))
    if stream.labelled and rows.codes.min(initial=0) < 0:
        messages.update(dict.fromkeys(np.flatnonzero(rows.codes < 0).tolist(), MESSAGES[NO_LABEL]))
    bad = np.array(sorted(messages), np.int64)
    for row in bad.tolist():
        stream.refuse(f"{reader.path}: example {before.line + row + 1:,}: {messages[row]}")
    end = before._replace(line=before.line + len(rows), bad=before.bad + len(bad))
    skipped = bad - np.arange(len(bad))
    ends = _Ends(before, end, skipped)
    if len(bad):
        kept = np.ones(len(rows), bool)
        kept[bad] = False
        rows = taken(rows, kept)
    codes = np.full(len(batch.labels) + 1, -1)
    # A label is known by the rows that are left, in their order.
    here = dict.fromkeys(rows.codes.tolist()) if batch.cut or len(bad) else range(len(batch.labels))
    for k in here:
        if k >= 0:
            codes[k] = stream.code_of(batch.labels[k])
    return rows.replace(codes=codes.take(rows.codes, mode="wrap"), ends=ends, skipped=skipped)


class _Ends:
    """Where each row of a batch begins and ends."""

    def __init__(self, before: Place, last: Place, skipped: np.ndarray, first: int = 0) -> None:
        self._before, self.last, self._skipped, self._first = before, last, skipped, first

    def start(self, row: int) -> Place:
        """Where a row begins."""
        row += self._first
        bad = int(np.searchsorted(self._skipped, row, side="right"))
        return self._before._replace(line=self._before.line + row + bad, bad=self._before.bad + bad)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return _Ends(self._before, self.last, self._skipped, self._first + row.start)
        return self.start(row + 1)
