"""Examples out of caches."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from maxcosine.record import Record
from maxcosine.stream.ahead import Ahead
from maxcosine.stream.cache import MAGIC
from maxcosine.stream.cache.arrow import checksum_of, encoded, numbers_of, present, pyarrow_for
from maxcosine.stream.cache.batches import Wrong, check_structure, rows_of
from maxcosine.stream.cache.header import CHECKSUM, DTYPES, KEY, KINDS, MOST_BITS, VERSION, Header
from maxcosine.stream.parsed import MESSAGES, NO_LABEL
from maxcosine.stream.rows import Rows, taken
from maxcosine.stream.source import Place, Source, StreamError
from maxcosine.stream.tidy import NORMALIZE, OUTSIDE, rows_outside

if TYPE_CHECKING:
    from maxcosine.stream.chunks import Stream

MOST_BYTES = 12 << 20
"""Of batches that have been read, and not been learnt from."""

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


def _labelled(stream: Stream, reader: CacheReader, batch: _Batch, before: Place) -> Rows:
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


class _Batch(Record):
    """A record batch as it was read, and checked."""

    rows: Rows
    """Without ends; codes are positions in the labels below."""
    labels: Sequence[str]
    """Different ones, in the order in which they come, those of rows that were cut, too."""
    outside: np.ndarray | None
    """Which rows are too long or too short."""
    cut: bool = False
    """Whether the first rows were left out."""

    def __getitem__(self, span: slice) -> _Batch:
        outside = None if self.outside is None else self.outside[span]
        return _Batch(self.rows[span], self.labels, outside, cut=True)


def _size_of(batch: _Batch) -> int:
    """About how many bytes a batch takes."""
    rows = batch.rows
    return sum(array.nbytes for array in (rows.columns, rows.data, *(rows.names or ())))


class CacheReader:
    """One cache: how it was made, and its batches.

    >>> with CacheReader("clicks.arrow") as reader:  # doctest: +SKIP
    ...     print(reader.header.kind, reader.header.bits, reader.n_batches)
    columns 20 57
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._pa = pyarrow_for(path)
        _check_beginning(self.path)
        # Read, and not mapped: memory stays the same however long the file is, and a disk that fails, or a
        # file that is cut short meanwhile, is an error and not the end of the process.
        with self._damage():
            self._raw = self._pa.OSFile(self.path)
            self._file = self._pa.ipc.open_file(self._raw, memory_pool=self._pa.system_memory_pool())
            self.n_batches: int = self._file.num_record_batches
            self.header = self._header()
        if not self.n_batches:
            self._refuse("there is no example in it")
        self._nbytes = os.path.getsize(self.path)
        self._done = 0

    def __enter__(self) -> CacheReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    @property
    def position(self) -> int:
        """About how many bytes have been read."""
        return self._nbytes * self._done // self.n_batches

    def batches(
        self,
        start: int = 0,
        threads: int = 1,
        outside: Callable[[Rows], np.ndarray | None] = lambda rows: None,
    ) -> Generator[_Batch]:
        """The examples from one on, a batch at a time; their arrays are the caller's own.

        With more than one thread, batches are read ahead. It is also found out which rows are `outside`.
        """
        self._done, before = self._find(start)
        return self._batches(start, before, threads, outside)

    def _batches(
        self, start: int, before: int, threads: int, outside: Callable[[Rows], np.ndarray | None]
    ) -> Generator[_Batch]:
        def checked(read: tuple[int, Any, Any]) -> _Batch:
            return self._checked(*read, outside)

        batches = (self._read(k) for k in range(self._done, self.n_batches))
        with Ahead(batches, checked, threads, MOST_BYTES, size=_size_of, helps=True) as ahead:
            try:
                for batch in ahead:
                    self._done += 1
                    left_out = max(0, start - before)
                    before += len(batch.rows)
                    yield batch[left_out:] if left_out else batch
                    del batch  # before the next one comes
            except Wrong as wrong:
                self._refuse(wrong.what, before + wrong.row)

    def _find(self, example: int) -> tuple[int, int]:
        """The batch that an example is in, and how many examples are before that."""
        before = 0
        if not example:
            return 0, 0
        # Mapped, to look at how batches begin without reading all of them.
        with self._damage(), self._pa.memory_map(self.path) as mapped:
            look = self._pa.ipc.open_file(mapped)
            for k in range(self.n_batches):
                length = look.get_batch(k).num_rows
                if example < before + length:
                    return k, before
                before += length
        if example > before:
            raise StreamError(
                f"{self.path}: ends before the place to go on from, example {example + 1:,}; "
                "it is not the file it was"
            )
        return self.n_batches, before

    def _read(self, k: int) -> tuple[tuple[int, Any, Any], int]:
        """A batch as it is, with its number and its metadata; and its size."""
        with self._damage():
            found, metadata = self._file.get_batch_with_custom_metadata(k)
            return (k, found, metadata), found.nbytes

    def _checked(
        self, k: int, found: Any, metadata: Any, outside: Callable[[Rows], np.ndarray | None]
    ) -> _Batch:
        """A batch, once all is checked that kernels trust."""
        with self._damage():
            check_structure(found, self.header)
            expected = (metadata or {}).get(CHECKSUM)
            if expected is not None:
                is_last = k == self.n_batches - 1
                checksum = checksum_of(found, self._file.schema.metadata[KEY], k, is_last)
                if expected != str(checksum).encode():
                    raise Wrong(f"the checksum of batch {k + 1:,}, which begins here, is not as written")
            rows = rows_of(found, self.header)
            labels = encoded(found.column("label"))
            rows.codes = np.where(present(labels.indices), numbers_of(labels.indices), -1)
            return _Batch(rows, labels.dictionary.to_pylist(), outside(rows))

    def _header(self) -> Header:
        schema = self._file.schema
        found = (schema.metadata or {}).get(KEY)
        if found is None:
            raise StreamError(
                f"{self.path}: an Arrow file, but not one of examples that maxcosine wrote; write one from "
                "text with `maxcosine convert`"
            )
        try:
            given = json.loads(found)
            version = given["version"]
            if type(version) is int and version > VERSION:
                raise StreamError(
                    f"{self.path}: of version {version}, and this maxcosine reads versions up to {VERSION}; "
                    "update maxcosine, or write it anew with `maxcosine convert`"
                )
            header = Header(**{name: given[name] for name in Header._fields})
        except (KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError):
            self._refuse("what it says of itself cannot be understood")
        sound = (
            header.kind in KINDS
            and header.dtype in DTYPES
            and header.normalize in NORMALIZE
            and type(header.bits) is int
            and 0 <= header.bits <= (MOST_BITS if header.kind == "columns" else 0)
            and all(type(flag) is bool for flag in (header.log1p, header.applied, header.weighted))
        )
        if not sound:
            self._refuse(f"what it says of itself makes no sense: {found.decode()}")
        wanted = header.schema(self._pa)
        if not schema.equals(wanted):
            columns = ", ".join(f"{column.name}: {column.type}" for column in schema)
            self._refuse(f"its columns are {columns}, and not as they are written")
        return header

    @contextmanager
    def _damage(self) -> Iterator[None]:
        """Errors of pyarrow as errors of a stream."""
        try:
            yield
        except (self._pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise StreamError(
                f"{self.path}: cannot be read: {str(error).strip()}; it is cut short or damaged, copy it "
                "again, or write it anew with `maxcosine convert`"
            ) from None

    def _refuse(self, what: str, example: int | None = None) -> NoReturn:
        where = "" if example is None else f"example {example + 1:,}: "
        raise StreamError(
            f"{self.path}: {where}{what}; the file is damaged or changed, write it anew with "
            "`maxcosine convert`"
        )


def _check_beginning(path: str) -> None:
    try:
        with open(path, "rb") as file:
            beginning = file.read(len(MAGIC))
    except OSError as error:
        raise StreamError(f"{path}: {error.strerror or error}; check the name and who may read it") from None
    if beginning != MAGIC:
        raise StreamError(
            f"{path}: not an Arrow file, and so no cache of examples; write one from text with "
            "`maxcosine convert`"
        )
