"""Caches: examples that were parsed once, as an Arrow IPC or Parquet file that other programs read, too.

The columns of the file are

- label: utf8, null for a row without a label;
- weight: float64, absent if the data have no weights;
- columns: list<uint32>, or ids: list<uint64>, or names: list<utf8>: the features of each row;
- values: list<float32> or list<float64>, as long.

The metadata of the schema have JSON under "maxcosine": the version of this layout, the options that decide
which features and values the examples have, and the names and sizes of the inputs. Values of columns and ids
are final. Values of names are as in the text: they are added up and transformed when an index knows which
names are equal.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxcosine import files
from maxcosine.core import canonicalize, rows_are_canonical
from maxcosine.data.batch import RowBatch, RowPlaces
from maxcosine.data.errors import StreamError
from maxcosine.data.input_file import STANDARD_INPUT
from maxcosine.data.inputs import Inputs, Place, input_sizes
from maxcosine.data.options import ReadOptions
from maxcosine.data.parsed import BadLine, ParsedBlock, unusable_rows
from maxcosine.data.prefetch import prefetch

if TYPE_CHECKING:
    from maxcosine.data.stream import Stream

ARROW_MAGIC, PARQUET_MAGIC = b"ARROW1", b"PAR1"
KEY = b"maxcosine"
VERSION = 2
KINDS = ("columns", "ids", "names")
GROUP_BYTES = 8 << 20
"""Batches are written together until they have this size."""
MAX_COLUMN_BITS = 28
"""Column numbers of text are below 2^28, too."""

_REWRITE = "write it again with `maxcosine convert`"


def is_cache(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is an Arrow IPC or Parquet file, by its first bytes."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(ARROW_MAGIC)).startswith((ARROW_MAGIC, PARQUET_MAGIC))
    except OSError:  # the reader will say why
        return False


def _import_pyarrow(path: str | os.PathLike[str]) -> Any:
    try:
        import pyarrow
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise StreamError(
            f"{os.fspath(path)}: caches need one more package: pip install 'maxcosine[stream]'"
        ) from None
    return pyarrow


# Reading


class CacheFile:
    """One cache, read group by group: record batches of an Arrow file, row groups of a Parquet file.

    Parameters
    ----------
    path : str
        The file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._pa = pa = _import_pyarrow(path)
        with self.errors():
            self._raw = pa.OSFile(path)
            magic = self._raw.read(len(ARROW_MAGIC))
            self._raw.seek(0)
            if magic == ARROW_MAGIC:
                file = pa.ipc.open_file(self._raw)
                self.schema, self.n_groups = file.schema, file.num_record_batches
                self._read: Callable[[int], list[Any]] = lambda k: [file.get_batch(k)]
            elif magic.startswith(PARQUET_MAGIC):
                table = pa.parquet.ParquetFile(self._raw)
                self.schema, self.n_groups = table.schema_arrow, table.num_row_groups
                self._read = lambda k: table.read_row_group(k, use_threads=False).to_batches()
            else:
                raise StreamError(
                    f"{path}: neither an Arrow nor a Parquet file, and so no cache of examples; write one from "
                    "text with `maxcosine convert`"
                )
            self._size = self._raw.size()
        self.position = 0
        self.kind, self.options = self._check_schema()

    def __enter__(self) -> CacheFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn errors of pyarrow into errors of a stream."""
        try:
            yield
        except (self._pa.ArrowException, OSError) as error:
            raise StreamError(
                f"{self.path}: cannot be read: {str(error).strip()}; it is cut short or damaged: copy it again, "
                f"or {_REWRITE}"
            ) from None

    def damaged(self, what: str) -> StreamError:
        """Return the error of a file that is not as it was written."""
        return StreamError(f"{self.path}: {what}; the file is damaged or was changed: {_REWRITE}")

    def _check_schema(self) -> tuple[str, dict[str, Any]]:
        """Return what features are known by, and the options that the file was written with."""
        stored = (self.schema.metadata or {}).get(KEY)
        if stored is None:
            raise StreamError(
                f"{self.path}: not a file of examples that maxcosine wrote; write one from text with "
                "`maxcosine convert`"
            )
        try:
            header = json.loads(stored)
            version = header["version"]
            options = ReadOptions(**{name: header[name] for name in ReadOptions().feature_options})
        except (KeyError, TypeError, ValueError, RecursionError):
            header = version = options = None
        if type(version) is int and version > VERSION:
            raise StreamError(
                f"{self.path}: the file has version {version}, and this maxcosine reads version {VERSION}; update "
                f"maxcosine, or {_REWRITE}"
            )
        if options is None or version != VERSION:
            raise self.damaged(f"its metadata do not fit version {VERSION}")
        kinds = [kind for kind in KINDS if kind in self.schema.names]
        weighted = "weight" in self.schema.names
        if len(kinds) != 1 or not self.schema.equals(_schema(self._pa, kinds[0], options.dtype, weighted)):
            columns = ", ".join(f"{column.name}: {column.type}" for column in self.schema)
            raise self.damaged(f"its columns are {columns}")
        if options.exact != (kinds[0] != "columns"):
            raise self.damaged(f"its features are {kinds[0]}, and its metadata say exact = {options.exact}")
        return kinds[0], options.feature_options

    def batches(self) -> Iterator[tuple[Any, bool]]:
        """Read all record batches; say of each whether it is the last."""
        for k in range(self.n_groups):
            with self.errors():
                found = self._read(k)
            self.position = self._size * (k + 1) // self.n_groups
            for number, batch in enumerate(found):
                yield batch, k + 1 == self.n_groups and number + 1 == len(found)

    def rows_of(self, batch: Any, first: int) -> tuple[RowBatch, list[str]]:
        """Check a record batch and return its rows and labels; `first` is the number of its first example."""
        with self.errors():
            batch.validate(full=True)
            indptr, keys = self._lists(batch, self.kind)
            value_indptr, values = self._lists(batch, "values")
            labels = batch.column("label").dictionary_encode()
            codes = _numbers(labels.indices.fill_null(-1))
        differs = indptr != value_indptr
        if differs.any():
            row = first + max(0, int(np.argmax(differs)) - 1)
            raise self.damaged(f"example {row + 1:,}: the lists {self.kind} and values differ in length")
        data = _numbers(values)
        self._check(np.isfinite(data), data, "the value {} is not finite", indptr, first)
        rows = RowBatch(indptr, data, codes, weights=self._weights(batch, first))
        if self.kind == "names":
            rows.letters, rows.name_starts = _texts(keys)
        elif self.kind == "ids":
            rows.ids = _numbers(keys)
        else:
            rows.columns = _numbers(keys)
            self._check_columns(rows, first)
        rows.places = RowPlaces(np.arange(len(rows)))
        return rows, labels.dictionary.to_pylist()

    def _lists(self, batch: Any, name: str) -> tuple[np.ndarray, Any]:
        """Return where the lists of a column begin, and their items."""
        column = batch.column(name)
        if column.null_count or column.values.null_count:
            raise self.damaged(f"something is missing (null) in {name}")
        offsets = _numbers(column.offsets).astype(np.int64)
        return offsets - offsets[0], column.values[offsets[0] : offsets[-1]]

    def _weights(self, batch: Any, first: int) -> np.ndarray | None:
        """Return the weights; None if all are 1."""
        if "weight" not in self.schema.names:
            return None
        column = batch.column("weight")
        if column.null_count:
            raise self.damaged("something is missing (null) in weight")
        weights = _numbers(column)
        each = np.arange(len(weights) + 1)
        usable = (weights >= 0.0) & (weights < np.inf)
        self._check(usable, weights, "the weight {} is not a finite number, 0 or more", each, first)
        return None if (weights == 1.0).all() else weights

    def _check_columns(self, rows: RowBatch, first: int) -> None:
        assert rows.columns is not None
        n_columns = 1 << (self.options["bits"] or MAX_COLUMN_BITS)
        rows.n_columns = int(rows.columns.max(initial=0)) + 1 if len(rows.columns) else 0
        if rows.n_columns > n_columns:
            self._check(
                rows.columns < n_columns, rows.columns, f"the column {{}} is not below {n_columns}", rows.indptr, first
            )
        if not rows_are_canonical(rows.indptr, rows.columns, rows.n_columns):
            rows.indptr, rows.columns, rows.values = canonicalize(
                rows.indptr, rows.columns, rows.values, log1p=False, l2=False
            )

    def _check(self, good: np.ndarray, numbers: np.ndarray, what: str, indptr: np.ndarray, first: int) -> None:
        """Refuse the first number that is not good, and say in which example it is."""
        if not good.all():
            k = int(np.argmin(good))
            row = int(np.searchsorted(indptr, k, side="right")) - 1
            raise self.damaged(f"example {first + row + 1:,}: {what.format(numbers[k])}")


def _numbers(array: Any) -> np.ndarray:
    """View an Arrow array of numbers as a NumPy array; `to_numpy` would import pandas."""
    dtype = np.dtype(array.type.to_pandas_dtype())
    if not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)


def _texts(array: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the letters of all texts, and where each text begins."""
    if not len(array):
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    _, offsets, letters = array.buffers()
    starts = np.frombuffer(offsets, np.int32, len(array) + 1, 4 * array.offset).astype(np.int64)
    all_letters = np.frombuffer(letters or b"", np.uint8)
    return all_letters[starts[0] : starts[-1]], starts - starts[0]


class _Group(NamedTuple):
    """A record batch, and where it is."""

    file: CacheFile
    batch: Any
    source: int
    first: int
    """Number of its first example."""
    is_cut: bool
    """Whether examples before it were left out."""
    is_last: bool


class Caches:
    """The inputs of a stream, all of them caches.

    Parameters
    ----------
    inputs : Inputs
        The files.
    options : ReadOptions
        How the caller wants to read them.

    Attributes
    ----------
    options : ReadOptions
        The same, with the options that the files were written with.
    """

    def __init__(self, inputs: Inputs, options: ReadOptions) -> None:
        wanted, defaults = options.feature_options, ReadOptions().feature_options
        if not options.strict:
            wanted = {name: value for name, value in wanted.items() if value != defaults[name]}
        first: dict[str, Any] = {}
        for name in inputs.names:
            with CacheFile(name) as file:
                found = {"kind": file.kind, **file.options}
            first = first or found
            _refuse_others(name, found, first, inputs.names[0])
            _refuse_others(name, found, wanted, "an option or the model")
        del first["kind"]
        self.options = replace(options, format="cache", **first)
        self._inputs = inputs

    def parsed(self, start: Place, *, keeps_bad_lines: bool) -> Iterator[ParsedBlock]:
        """Read all examples from a place on."""
        name = self._inputs.names[0]
        if self.options.keep_names and self.options.bits:
            raise StreamError(
                f"{name}: a cache does not have the names of hashed features; leave out --keep-names, or give "
                "the text"
            )
        if keeps_bad_lines:
            raise StreamError(
                f"{name}: a cache has no lines to write to --bad-lines; leave it out here, and give it to "
                "`maxcosine convert`"
            )
        return prefetch(self._groups(start), partial(_parse, options=self.options), self.options.n_threads)

    def _groups(self, start: Place) -> Generator[_Group, None, None]:
        open_cache = lambda number: CacheFile(self._inputs.names[number])  # noqa: E731
        for number, file in self._inputs.opened(start, open_cache):
            first, left_out = 0, start.line if number == start.source else 0
            for batch, is_last in file.batches():
                cut = min(len(batch), max(0, left_out - first))
                self._inputs.skipped_bytes = self._inputs.read_bytes if cut else self._inputs.skipped_bytes
                if cut < len(batch) or is_last:
                    yield _Group(file, batch.slice(cut), number, first + cut, cut > 0, is_last)
                first += len(batch)
            if first < left_out:
                raise StreamError(
                    f"{file.path}: ends before the place to continue from, example {left_out + 1:,}; the file "
                    "has changed since then"
                )


def _parse(group: _Group, options: ReadOptions) -> ParsedBlock:
    rows, labels = group.file.rows_of(group.batch, group.first)
    unusable = unusable_rows(rows, options)
    n_rows = len(rows)
    if unusable:
        kept = np.ones(n_rows, bool)
        kept[list(unusable)] = False
        rows = rows.take(kept)
    bad = [BadLine(row, message) for row, message in sorted(unusable.items())]
    cut = group.is_cut or bool(unusable)
    return ParsedBlock(rows, labels, bad, group.source, n_rows, 0, group.is_last, rows_dropped=cut)


def _refuse_others(name: str, found: dict[str, Any], wanted: dict[str, Any], whose: str) -> None:
    for option, value in wanted.items():
        if found[option] != value:
            raise StreamError(
                f"{name}: this cache was written with {option} = {found[option]}, and {whose} says {value}; "
                f"give the same, or {_REWRITE}"
            )


def open_caches(inputs: Inputs, options: ReadOptions) -> Caches | None:
    """Return the inputs as caches; None if they are text. Some of each are refused."""
    if options.format not in ("auto", "cache"):
        return None
    if options.format == "cache":
        if STANDARD_INPUT in inputs.names:
            raise StreamError("standard input is not a cache, which is read by the name of its file; name the file")
        return Caches(inputs, options)
    found = [is_cache(name) for name in inputs.names]
    if any(found) and not all(found):
        cache, other = inputs.title(found.index(True)), inputs.title(found.index(False))
        raise StreamError(
            f"{cache} is a cache, and {other} is not; give caches only, or text only: `maxcosine convert` "
            "makes a cache of text"
        )
    return Caches(inputs, options) if all(found) else None


# Writing


def write_cache(
    stream: Stream, path: str | os.PathLike[str], progress: Callable[[int], None] | None = None
) -> int:
    """Write all examples of a stream; the file appears when it is complete.

    Parameters
    ----------
    stream : Stream
        The examples.
    path : str or path
        Where to write them: a Parquet file if the name ends in .parquet, else an Arrow IPC file.
    progress : callable, optional
        Called with the number of examples after each block.

    Returns
    -------
    int
        The number of examples.
    """
    pa = _import_pyarrow(path)
    batches = (batch for batch in stream.batches() if len(batch))
    batch = next(batches, None)
    if batch is None:
        raise StreamError(f"there is no example in {', '.join(stream.inputs.names)}; is it the right file?")
    weighted = stream.options.format != "svmlight"
    header = {"version": VERSION, **stream.options.feature_options, "data": input_sizes(stream.inputs.names)}
    schema = _schema(pa, batch.kind, stream.options.dtype, weighted).with_metadata({KEY: json.dumps(header)})
    with files.writing(os.fspath(path)) as file, _writer(pa, path, file, schema) as writer:
        waiting: list[Any] = []
        while batch is not None:
            waiting.append(_record_batch(pa, batch, stream.labels.names, schema))
            if progress is not None:
                progress(stream.n_examples)
            batch = next(batches, None)
            if batch is None or sum(one.nbytes for one in waiting) >= GROUP_BYTES:
                table = pa.Table.from_batches(waiting).combine_chunks()
                writer.write_table(table, len(table))
                waiting = []
    return stream.n_examples


def _writer(pa: Any, path: str | os.PathLike[str], file: Any, schema: Any) -> Any:
    if os.fspath(path).lower().endswith(".parquet"):
        return pa.parquet.ParquetWriter(file, schema, use_dictionary=["label"])
    return pa.ipc.new_file(file, schema)


def _schema(pa: Any, kind: str, dtype: str, weighted: bool) -> Any:
    feature = {"columns": pa.uint32(), "ids": pa.uint64(), "names": pa.utf8()}[kind]
    value = {"float32": pa.float32(), "float64": pa.float64()}[dtype]
    weight = [("weight", pa.float64())] if weighted else []
    return pa.schema([("label", pa.utf8()), *weight, (kind, pa.list_(feature)), ("values", pa.list_(value))])


def _record_batch(pa: Any, batch: RowBatch, labels: Sequence[str], schema: Any) -> Any:
    """Make a record batch of a row batch."""

    def array(numbers: np.ndarray) -> Any:
        buffers = [None, pa.py_buffer(np.ascontiguousarray(numbers))]
        return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), buffers)

    def lists(items: Any) -> Any:
        return pa.ListArray.from_arrays(array(batch.indptr.astype(np.int32)), items)

    if batch.letters is not None and batch.name_starts is not None:
        starts = pa.py_buffer(batch.name_starts.astype(np.int32))
        keys = pa.StringArray.from_buffers(len(batch.values), starts, pa.py_buffer(batch.letters))
    else:
        keys = array(batch.columns if batch.columns is not None else batch.ids)
    # A row without a label has code -1, the last position.
    label = pa.array([*labels, None], pa.utf8()).take(array(batch.codes % (len(labels) + 1)))
    columns = {"label": label, batch.kind: lists(keys), "values": lists(array(batch.values))}
    if "weight" in schema.names:
        columns["weight"] = array(np.ones(len(batch)) if batch.weights is None else batch.weights)
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
