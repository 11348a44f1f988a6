"""Examples parsed once and read many times: an Arrow IPC file, which other programs read, too.

A record batch holds rows in their order. Its columns are

- label: utf8, null for none; not a dictionary, as one that grows while it is written few can read;
- weight: float64, not there for data that have no weights;
- columns: list<uint32>, or ids: list<uint64>, or names: list<utf8>: the features, by what they are known by;
- values: list<float32> or list<float64>, as long.

What else there is to know is JSON in the schema's metadata, under "maxcosine": see `Header`. Columns and ids
come once in a row, their values not 0 and transformed as asked for. Names are as they came: which of them are
the same is seen by the index of whoever reads them, and only then can values be added up and transformed.
The metadata of each batch have a checksum, under "crc32": see `_checksum`.
"""

from __future__ import annotations

import json
import os
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from maxcosine import files
from maxcosine.stream.parsed import MARGIN, MESSAGES, NO_LABEL
from maxcosine.stream.rows import Rows, taken
from maxcosine.stream.source import STANDARD_INPUT, Place, Source, StreamError, sizes
from maxcosine.stream.tidy import NORMALIZE, OUTSIDE, rows_outside, square_norms

if TYPE_CHECKING:
    from maxcosine.stream.chunks import Stream

MAGIC = b"ARROW1"
KEY, CHECKSUM = b"maxcosine", b"crc32"
VERSION = 1
KINDS = ("columns", "ids", "names")
DTYPES = ("float32", "float64")
MOST_BITS = 31
VALUES_A_BATCH = 1 << 19
"""Rows are written together until they have so many: with their columns, 4 MB."""
BATCHES_AHEAD = 2
"""So many are read while one is learnt from."""

USUAL = {"bits": 0, "exact": False, "dtype": "float32", "normalize": None, "log1p": False}
"""Options of a stream that a cache has already, as they are where nobody asks for them."""


@dataclass(frozen=True)
class Header:
    """How the examples of a cache were read."""

    kind: str
    """What features are known by: "columns" (hashed if there are bits), "ids" or "names"."""
    bits: int
    dtype: str
    normalize: str | None
    log1p: bool
    applied: bool
    """Whether values are transformed already; those of names are not."""
    weighted: bool
    data: dict[str, int | None] = field(default_factory=dict)
    """Where the examples are from: file names and sizes."""
    version: int = VERSION

    @classmethod
    def of(cls, stream: Stream, rows: Rows) -> Header:
        kind = "names" if rows.names is not None else "ids" if stream.exact else "columns"
        return cls(
            kind,
            stream.bits,
            stream.dtype.name,
            stream.normalize,
            stream.log1p,
            applied=kind != "names",
            weighted=stream.format != "svmlight",
            data=sizes(stream.source.names),
        )

    @property
    def options(self) -> dict[str, Any]:
        """How a stream reads text in the same way."""
        return {
            "bits": self.bits,
            "exact": self.kind != "columns",
            "dtype": self.dtype,
            "normalize": self.normalize,
            "log1p": self.log1p,
        }

    def schema(self, pa: Any) -> Any:
        """The columns of the Arrow file, and this as its metadata."""
        feature = {"columns": pa.uint32(), "ids": pa.uint64(), "names": pa.utf8()}[self.kind]
        columns = {
            "label": pa.utf8(),
            "weight": pa.float64(),
            self.kind: pa.list_(feature),
            "values": pa.list_(pa.from_numpy_dtype(np.dtype(self.dtype))),
        }
        if not self.weighted:
            del columns["weight"]
        return pa.schema(columns, metadata={KEY: json.dumps(asdict(self))})


# Writing


def write(stream: Stream, path: str | os.PathLike[str], progress: Callable[[int], None] | None = None) -> int:
    """Write all examples of a stream; returns how many. `progress` is told after every block.

    The file is there when it is whole, and not before.
    """
    pa = _pyarrow(path)
    all_rows = stream.rows()
    first = next((rows for rows in all_rows if len(rows)), None)
    if first is None:
        raise StreamError(f"there is no example in {', '.join(stream.source.names)}; is it the right file?")
    batches = _Batches(pa, stream, Header.of(stream, first), progress)
    with files.writing(os.fspath(path)) as file, pa.ipc.new_file(file, batches.schema) as writer:
        beginning = batches.schema.metadata[KEY]
        for number, batch, is_last in _with_last(batches.of(chain([first], all_rows))):
            checksum = _checksum(batch, beginning, number, is_last)
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
        self._labels = _strings(pa, np.empty(0, np.uint8), np.zeros(1, np.int64))
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
        offsets = _array(pa, rows.indptr).cast(pa.int32())  # refuses what does not fit
        features = _array(pa, rows.columns) if rows.names is None else _strings(pa, *rows.names)
        lists = [pa.ListArray.from_arrays(offsets, child) for child in (features, _array(pa, rows.data))]
        weights = [_array(pa, np.ones(len(rows)) if rows.weights is None else rows.weights)]
        columns = [self._labels_of(rows.codes), *(weights if self._header.weighted else []), *lists]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _labels_of(self, codes: np.ndarray) -> Any:
        pa = self._pa
        new = [label.encode() for label in self._stream.labels[len(self._labels) :]]
        if new:
            letters, starts = np.frombuffer(b"".join(new), np.uint8), np.cumsum([0, *map(len, new)])
            self._labels = pa.concat_arrays([self._labels, _strings(pa, letters, starts)])
        return self._labels.take(_array(pa, codes, missing=codes < 0))


def _array(pa: Any, numbers: np.ndarray, missing: np.ndarray | None = None) -> Any:
    """Numbers for Arrow, without a copy; `pa.array` would import pandas, if it is there."""
    bitmap = None
    if missing is not None and missing.any():
        bitmap = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    buffers = [bitmap, pa.py_buffer(np.ascontiguousarray(numbers))]
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), buffers)


def _strings(pa: Any, letters: np.ndarray, starts: np.ndarray) -> Any:
    """Texts for Arrow: the letters of all, and where each begins."""
    offsets = _array(pa, starts - starts[0]).cast(pa.int32())
    letters = np.ascontiguousarray(letters[starts[0] : starts[-1]])
    return pa.StringArray.from_buffers(len(starts) - 1, offsets.buffers()[1], pa.py_buffer(letters))


# Reading


def is_cache(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as a cache does."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:  # whoever reads it says why it cannot be read
        return False


def are_caches(source: Source, format: str) -> bool:
    """Whether the inputs are caches; it is refused if only some of them are."""
    if format == "cache":
        if STANDARD_INPUT in source.names:
            raise StreamError("standard input is no cache: it is read by its file's name; name the file")
        return True
    if format != "auto":
        return False
    found = [is_cache(name) for name in source.names]
    if any(found) and not all(found):
        cache, other = source.title(found.index(True)), source.title(found.index(False))
        raise StreamError(
            f"{cache} is a cache, and {other} is not; give caches only, or text only: `maxcosine convert` "
            "makes a cache of text"
        )
    return all(found)


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
            for batch in batches:
                rows = _labelled(stream, reader, batch, before)
                stream.place = before = rows.ends.last
                yield rows
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
    return replace(rows, codes=codes.take(rows.codes, mode="wrap"), ends=ends, skipped=skipped)


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


@dataclass
class _Batch:
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


class CacheReader:
    """One cache: how it was made, and its batches.

    >>> with CacheReader("clicks.arrow") as reader:  # doctest: +SKIP
    ...     print(reader.header.kind, reader.header.bits, reader.n_batches)
    columns 20 57
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._pa = _pyarrow(path)
        _check_beginning(self.path)
        # Read, and not mapped: memory stays the same however long the file is, and a disk that fails, or a
        # file that is cut short meanwhile, is an error and not the end of the process.
        with self._damage():
            self._raw = self._pa.OSFile(self.path)
            self._file = self._pa.ipc.open_file(self._raw)
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
    ) -> Iterator[_Batch]:
        """The examples from one on, a batch at a time; their arrays are the caller's own.

        With more than one thread, one reads ahead. It also finds out which rows are `outside`.
        """
        self._done, before = self._find(start)
        return self._batches(start, before, threads, outside)

    def _batches(
        self, start: int, before: int, threads: int, outside: Callable[[Rows], np.ndarray | None]
    ) -> Iterator[_Batch]:
        ahead = _ahead if threads > 1 else map
        for batch in ahead(lambda k: self._checked(k, outside), range(self._done, self.n_batches)):
            if isinstance(batch, _Wrong):
                self._refuse(batch.what, before + batch.row)
            self._done += 1
            left_out = max(0, start - before)
            before += len(batch.rows)
            yield batch[left_out:] if left_out else batch

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

    def _checked(self, k: int, outside: Callable[[Rows], np.ndarray | None]) -> _Batch | _Wrong:
        """Read a batch, and check all that kernels trust."""
        try:
            with self._damage():
                found, metadata = self._file.get_batch_with_custom_metadata(k)
                _check_structure(found, self.header)
                expected = (metadata or {}).get(CHECKSUM)
                if expected is not None:
                    is_last = k == self.n_batches - 1
                    checksum = _checksum(found, self._file.schema.metadata[KEY], k, is_last)
                    if expected != str(checksum).encode():
                        raise _Wrong(f"the checksum of batch {k + 1:,}, which begins here, is not as written")
                rows = _rows(found, self.header)
                labels = _encoded(found.column("label"))
                rows.codes = np.where(_present(labels.indices), _numbers(labels.indices), -1)
                return _Batch(rows, labels.dictionary.to_pylist(), outside(rows))
        except _Wrong as wrong:
            return wrong

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
            header = Header(**{one.name: given[one.name] for one in fields(Header)})
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


def _ahead(read: Callable[[int], Any], numbers: Iterable[int]) -> Iterator[Any]:
    """What is read, in order; a thread reads the next ones meanwhile."""
    from concurrent.futures import Future, ThreadPoolExecutor  # which readers of text need not wait for

    waiting = deque[Future[Any]]()
    with ThreadPoolExecutor(1) as pool:
        try:
            for number in numbers:
                waiting.append(pool.submit(read, number))
                if len(waiting) > BATCHES_AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


# What is in a batch


class _Wrong(Exception):
    """What is wrong with a row of a batch."""

    def __init__(self, what: str, row: int = 0) -> None:
        self.what, self.row = what, row


def _check_structure(batch: Any, header: Header) -> None:
    """Check that lists and texts lie within what was read."""
    batch.validate()  # of offsets it looks at the first and the last
    _check_ascend(_offsets(batch.column("label")), "label")
    for name in (header.kind, "values"):
        column = batch.column(name)
        _check_ascend(_numbers(column.offsets), name)
        if column.null_count or column.values.null_count:
            raise _Wrong(f"something is missing (null) in {name}")
    if header.kind == "names":
        _check_ascend(_offsets(batch.column("names").values), "names")


def _check_ascend(offsets: np.ndarray, name: str) -> None:
    descend = offsets[1:] < offsets[:-1]
    if descend.any():
        raise _Wrong(f"something in {name} ends before it begins", int(np.argmax(descend)))


def _checksum(batch: Any, beginning: bytes, number: int, is_last: bool) -> int:
    """The CRC-32 of what a file says of itself, of a batch's number, of whether it is the last, and of all
    that is in it; so it is noticed, too, if batches are missing or change places."""
    crc32 = _fastest_crc32()
    checksum = crc32(beginning + f" {number} {is_last}".encode(), 0)
    for column in batch.columns:
        for part in _parts(column):
            checksum = crc32(np.ascontiguousarray(part), checksum)
    return checksum


def _parts(column: Any) -> Iterator[np.ndarray]:
    """All that is in a column, as it lies in any memory."""
    if hasattr(column, "offsets"):
        offsets = _numbers(column.offsets)
        yield offsets - offsets[0]
        yield from _parts(column.values[offsets[0] : offsets[-1]])
    elif column.type == "string":
        offsets, letters = _texts(column)
        yield _present(column)
        yield offsets - offsets[0]
        yield letters
    else:
        yield _numbers(column)


def _fastest_crc32() -> Callable[[Any, int], int]:
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib.crc32
    faster: Callable[[Any, int], int] = isal_zlib.crc32
    return faster


def _rows(batch: Any, header: Header) -> Rows:
    """The rows of a batch, but for their codes and ends; all is checked that kernels trust."""
    indptr, features = _lists(batch.column(header.kind))
    value_indptr, values = _lists(batch.column("values"))
    differ = indptr != value_indptr
    if differ.any():
        raise _Wrong(f"the lists {header.kind} and values differ in length", int(np.argmax(differ)) - 1)
    data = _own(values)
    squares = square_norms(indptr, data)
    if not (np.isfinite(squares).all() or np.isfinite(data).all()):
        _refuse_first(~np.isfinite(data), "the value {} is not finite", data, indptr)
    columns, names, highest = np.empty(0, np.uint64), None, -1
    if header.kind == "names":
        names = _letters(features)
    else:
        columns = _own(features)
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


def _lists(column: Any) -> tuple[np.ndarray, Any]:
    """Where lists begin, and what is in them."""
    offsets = _numbers(column.offsets)
    return offsets.astype(np.int64) - int(offsets[0]), column.values[offsets[0] : offsets[-1]]


def _encoded(column: Any) -> Any:
    """Texts as positions among the different ones, in their order."""
    try:
        # What `dictionary_encode` calls, once pyarrow has spent 50 ms on writing its documentation.
        from pyarrow._compute import call_function
    except ImportError:
        return column.dictionary_encode()
    return call_function("dictionary_encode", [column])


def _weights(column: Any) -> np.ndarray | None:
    """Weights; None if all are 1."""
    if column.null_count:
        raise _Wrong("something is missing (null) in weight")
    weights = _own(column)
    bad = ~((weights >= 0.0) & (weights < np.inf))
    if bad.any():
        _refuse_first(bad, "the weight {} is not a number from 0 on", weights, np.arange(len(weights) + 1))
    return None if (weights == 1.0).all() else weights


def _refuse_first(bad: np.ndarray, what: str, numbers: np.ndarray, indptr: np.ndarray) -> NoReturn:
    """Refuse the first number that is bad."""
    k = int(np.argmax(bad))
    raise _Wrong(what.format(numbers[k]), int(np.searchsorted(indptr, k, side="right")) - 1)


def _own(array: Any) -> np.ndarray:
    """The numbers of an array just read, without a copy if they lie as they should.

    Rows may be sorted in place: the memory of a batch just read is nobody else's, whatever pyarrow says.
    """
    numbers = _numbers(array)
    return numbers if numbers.flags.writeable else np.asarray(_Writable(numbers))


class _Writable:
    """The memory of an array, without the word that it is not to be written to."""

    def __init__(self, array: np.ndarray) -> None:
        self.owner = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def _numbers(array: Any) -> np.ndarray:
    """What is in an array of numbers; its own `to_numpy` would import pandas, if it is there."""
    dtype = np.dtype(array.type.to_pandas_dtype())
    if not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)


def _present(array: Any) -> np.ndarray:
    """Of each entry of an array, whether it is there."""
    if not array.null_count:
        return np.ones(len(array), bool)
    bits = np.frombuffer(array.buffers()[0], np.uint8)
    return np.unpackbits(bits, bitorder="little")[array.offset :][: len(array)].astype(bool)


def _letters(names: Any) -> tuple[np.ndarray, np.ndarray]:
    """The letters of names, with room before the first, and where each begins."""
    offsets, letters = _texts(names)
    starts = offsets.astype(np.int64) - int(offsets[0])
    if letters.max(initial=0) >= 0x80:
        letters.tobytes().decode()
        first = letters[starts[:-1][np.diff(starts) > 0]]
        if ((first & 0xC0) == 0x80).any():
            raise _Wrong("a name begins in the middle of a letter")
    room = np.zeros(MARGIN, np.uint8)
    return np.concatenate([room, letters, room])[MARGIN:-MARGIN], starts


def _texts(texts: Any) -> tuple[np.ndarray, np.ndarray]:
    """Where each text begins in memory, and the last ends; and the letters of all."""
    offsets = _offsets(texts)
    letters = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    return offsets, letters[offsets[0] : offsets[-1]]


def _offsets(texts: Any) -> np.ndarray:
    """Where each text begins in memory, and the last ends."""
    if not len(texts):
        return np.zeros(1, np.int32)
    return np.frombuffer(texts.buffers()[1], np.int32, len(texts) + 1, 4 * texts.offset)


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


def _pyarrow(path: Any) -> Any:
    """pyarrow, which few need."""
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError:
        raise StreamError(
            f"{os.fspath(path)}: caches need one more package: pip install 'maxcosine[stream]'"
        ) from None
    return pyarrow
