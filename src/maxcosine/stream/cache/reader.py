"""One cache: its batches, read ahead and checked."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

import numpy as np

from maxcosine.record import Record
from maxcosine.stream.ahead import Ahead
from maxcosine.stream.cache import MAGIC
from maxcosine.stream.cache.arrow import checksum_of, encoded, flags_of, numbers_of, present, pyarrow_for
from maxcosine.stream.cache.batches import Wrong, check_structure, rows_of
from maxcosine.stream.cache.file import InputFile
from maxcosine.stream.cache.header import CHECKSUM, DTYPES, KEY, KINDS, MOST_BITS, VERSION, Header
from maxcosine.stream.rows import Named, Rows, n_columns
from maxcosine.stream.slots import MOST_VALUES
from maxcosine.stream.source import StreamError
from maxcosine.stream.tidy import NORMALIZE, Appended, square_norms

MOST_BYTES = 12 << 20
"""Of batches that have been read, and not been learnt from."""


class _Read(NamedTuple):
    """A record batch as it was read."""

    number: int
    batch: Any
    metadata: Any


class Batch(Record):
    """A record batch as it was read, and checked."""

    rows: Rows
    """Without ends; codes are positions in the labels below."""
    labels: Sequence[str]
    """Different ones, in the order in which they come, those of rows that were cut, too."""
    outside: np.ndarray | None
    """Which rows are too long or too short."""
    size: int
    """About how many bytes it takes."""
    n_batches: int = 1
    """In the file."""
    cut: bool = False
    """Whether the first rows were left out."""

    def __getitem__(self, span: slice) -> Batch:
        outside = None if self.outside is None else self.outside[span]
        return self.replace(rows=self.rows[span], outside=outside, cut=True)


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
            self._raw = self._pa.PythonFile(InputFile(self.path), mode="r")
            self._file = self._pa.ipc.open_file(self._raw)
            self.n_batches: int = self._file.num_record_batches
            self.header = self._header()
        if not self.n_batches:
            self.refuse("there is no example in it")
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
    ) -> Generator[Batch]:
        """The examples from one on, a batch at a time; their arrays are the caller's own.

        With more than one thread, batches are read ahead. It is also found out which rows are `outside`.
        """
        self._done, before = self._find(start)
        return self._batches(start, before, threads, outside)

    def _batches(
        self, start: int, before: int, threads: int, outside: Callable[[Rows], np.ndarray | None]
    ) -> Generator[Batch]:
        def checked(read: _Read | _LongExample) -> Batch | _LongExample:
            if isinstance(read, _LongExample):
                return read
            batch = self._checked(read)
            return batch.replace(outside=outside(batch.rows))

        with Ahead(
            self._read_on(), checked, threads, MOST_BYTES, size=lambda found: found.size, helps=True
        ) as ahead:
            try:
                for found in ahead:
                    self._done += found.n_batches
                    batch = found if isinstance(found, Batch) else found.batch(outside)
                    del found
                    left_out = max(0, start - before)
                    before += len(batch.rows)
                    yield batch[left_out:] if left_out else batch
                    del batch  # before the next one comes
            except Wrong as wrong:
                self.refuse(wrong.what, before + wrong.row)

    def _read_on(self) -> Generator[tuple[_Read | _LongExample, int]]:
        """What there is from a batch on, and how many bytes it takes."""
        k = self._done
        while k < self.n_batches:
            read = self._read(k)
            if _goes_on(read.batch):
                del read
                example = _LongExample(self, k)
                k += example.n_batches
                yield example, example.size
            else:
                k += 1
                yield read, read.batch.nbytes
                del read

    def _find(self, example: int) -> tuple[int, int]:
        """The batch that an example is in, and how many examples are before that."""
        before = 0
        if not example:
            return 0, 0
        # Mapped, to look at how batches begin without reading all of them.
        with self._damage(), self._pa.memory_map(self.path) as mapped:
            look, is_part = self._pa.ipc.open_file(mapped), False
            for k in range(self.n_batches):
                batch = look.get_batch(k)
                length = 0 if is_part else len(batch)
                if example < before + length:
                    return k, before
                before, is_part = before + length, _goes_on(batch)
        if example > before:
            raise StreamError(
                f"{self.path}: ends before the place to go on from, example {example + 1:,}; "
                "it is not the file it was"
            )
        return self.n_batches, before

    def part(self, k: int) -> tuple[Batch, bool]:
        """A part of an example, and whether it goes on."""
        if k == self.n_batches:
            raise Wrong("the example goes on, and there is nothing more")
        read = self._read(k)
        batch = self._checked(read)
        if len(batch.rows) != 1:
            raise Wrong("the example goes on, and what follows is not one part of it")
        return batch, _goes_on(read.batch)

    def _read(self, k: int) -> _Read:
        with self._damage():
            batch, metadata = self._file.get_batch_with_custom_metadata(k)
            if not len(batch):  # it may lack what pyarrow itself relies on
                schema = self._file.schema
                nothing = [self._pa.nulls(0, column.type) for column in schema]
                batch = self._pa.RecordBatch.from_arrays(nothing, schema=schema)
            batch.validate()  # of offsets it looks at the first and the last
            return _Read(k, batch, metadata)

    def _checked(self, read: _Read) -> Batch:
        """A batch, once all is checked that kernels trust."""
        k, found, metadata = read
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
            return Batch(rows, labels.dictionary.to_pylist(), None, found.nbytes)

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
        except (KeyError, TypeError, ValueError, RecursionError):
            self.refuse("what it says of itself cannot be understood")
        if type(version) is int and version > VERSION:
            raise StreamError(
                f"{self.path}: of version {version}, and this maxcosine reads versions up to {VERSION}; "
                "update maxcosine, or write it anew with `maxcosine convert`"
            )
        try:
            header = Header(**{name: given[name] for name in Header._fields})
        except KeyError:
            self.refuse("what it says of itself cannot be understood")
        sound = (
            header.kind in KINDS
            and header.dtype in DTYPES
            and header.normalize in NORMALIZE
            and type(header.bits) is int
            and 0 <= header.bits <= (MOST_BITS if header.kind == "columns" else 0)
            and all(type(flag) is bool for flag in (header.log1p, header.applied, header.weighted))
        )
        if not sound:
            self.refuse(f"what it says of itself makes no sense: {found.decode()}")
        wanted = header.schema(self._pa)
        if not schema.equals(wanted):
            columns = ", ".join(f"{column.name}: {column.type}" for column in schema)
            self.refuse(f"its columns are {columns}, and not as they are written")
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

    def refuse(self, what: str, example: int | None = None) -> NoReturn:
        """Say what is wrong with the file, or with one of its examples."""
        where = "" if example is None else f"example {example + 1:,}: "
        raise StreamError(
            f"{self.path}: {where}{what}; the file is damaged or changed, write it anew with "
            "`maxcosine convert`"
        )


class _LongExample:
    """An example in several batches, all of which were checked; iterating reads them anew."""

    size = MOST_BYTES + 1
    """So that nothing more is read before it is dealt with."""

    def __init__(self, reader: CacheReader, first: int) -> None:
        self._path, self._kind, self._first = reader.path, reader.header.kind, first
        self.n_batches, self._n_values, self._square = 0, 0, 0.0
        goes_on = True
        while goes_on:
            part, goes_on = reader.part(first + self.n_batches)
            self.n_batches, self._n_values = self.n_batches + 1, self._n_values + len(part.rows.data)
            if self._n_values > MOST_VALUES:
                raise Wrong(f"the example has more than {MOST_VALUES:,} values")
            assert part.rows.squares is not None
            self._square += float(part.rows.squares[0])
            if goes_on:
                del part  # before the next one comes
        if len(part.rows.data):
            raise Wrong("the last part of the example has features, and should have none")
        self._last = part.replace(n_batches=self.n_batches)

    def __iter__(self) -> Iterator[Named]:
        with CacheReader(self._path) as reader:
            for k in range(self._first, self._first + self.n_batches):
                try:
                    part, _ = reader.part(k)
                except Wrong as wrong:
                    reader.refuse(wrong.what)
                yield part.rows.features
                del part  # before the next one comes

    def batch(self, outside: Callable[[Rows], np.ndarray | None]) -> Batch:
        """The example as the only one of a batch: columns as a whole, ids and names in pieces."""
        row, whole = self._last.rows, np.array([0, self._n_values])
        if self._kind == "columns":
            found = Appended(self._n_values, np.uint32, row.data.dtype)
            for piece in self:
                found.add(piece.columns, piece.data)
            columns, data = found.taken()
            squares, width = square_norms(whole, data), n_columns(columns)
            row = row.replace(indptr=whole, columns=columns, data=data, squares=squares, n_columns=width)
            return self._last.replace(rows=row, outside=outside(row))
        refused = outside(row.replace(indptr=whole, squares=np.array([self._square])))
        return self._last.replace(rows=row.replace(pieces=self, squares=None), outside=refused)


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


def _goes_on(batch: Any) -> bool:
    """Whether a batch is a part of an example, and more parts follow."""
    if len(batch) != 1:
        return False
    batch.column("goes_on").validate()
    return bool(flags_of(batch.column("goes_on"))[0])
