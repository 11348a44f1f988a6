"""One cache: examples that were parsed once, as an Arrow IPC or Parquet file that other programs read, too.

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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from maxcosine.core import canonicalize, rows_are_canonical, square_norms
from maxcosine.data.batch import Names, RowBatch, RowPlaces
from maxcosine.data.input_file import ARROW_MAGIC, PARQUET_MAGIC, is_table_file
from maxcosine.data.options import ReadOptions, StreamError

KEY = b"maxcosine"
VERSION = 2
KINDS = ("columns", "ids", "names")
REWRITE = "write it again with `maxcosine convert`"
MAX_COLUMNS_SHOWN = 10  # in the message about a file of another program
MAX_COLUMN_BITS = 28  # column numbers are below 2^28, as those of text are


def is_cache(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is an Arrow IPC or Parquet file, by its first bytes."""
    return is_table_file(os.fspath(path))


def import_pyarrow(path: str | os.PathLike[str]) -> Any:
    """Import pyarrow, which only caches and records need."""
    try:
        import pyarrow
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise StreamError(
            f"{os.fspath(path)}: reading needs one more package: pip install 'maxcosine[stream]'"
        ) from None
    return pyarrow


def schema_of(pa: Any, kind: str, dtype: str, weighted: bool) -> Any:
    """Return the columns of a cache."""
    feature = {"columns": pa.uint32(), "ids": pa.uint64(), "names": pa.utf8()}[kind]
    value = {"float32": pa.float32(), "float64": pa.float64()}[dtype]
    weight = [("weight", pa.float64())] if weighted else []
    return pa.schema([("label", pa.utf8()), *weight, (kind, pa.list_(feature)), ("values", pa.list_(value))])


class CacheFile:
    """One cache, read group by group: record batches of an Arrow file, row groups of a Parquet file."""

    def __init__(self, path: str) -> None:
        self.path, self.position = path, 0
        self._pa = pa = import_pyarrow(path)
        with self._errors():
            self._raw = pa.OSFile(path)
            magic = self._raw.read(len(ARROW_MAGIC))
            self._raw.seek(0)
            self._is_arrow = magic == ARROW_MAGIC
            if self._is_arrow:
                file = pa.ipc.open_file(self._raw)
                self._schema, self._n_groups = file.schema, file.num_record_batches
                self._read: Callable[[int], list[Any]] = lambda k: [file.get_batch(k)]
            elif magic.startswith(PARQUET_MAGIC):
                table = pa.parquet.ParquetFile(self._raw)
                self._schema, self._n_groups = table.schema_arrow, table.num_row_groups
                self._read = lambda k: table.read_row_group(k, use_threads=False).to_batches()
            else:
                raise StreamError(
                    f"{path}: neither an Arrow nor a Parquet file, and so no cache; write one from text with "
                    "`maxcosine convert`"
                )
            self._size = self._raw.size()
            self.options = self._read_options()
            self.kind = self._check_columns()

    def __enter__(self) -> CacheFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn errors of pyarrow into errors of a stream."""
        try:
            yield
        except (self._pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise StreamError(
                f"{self.path}: cannot be read: {str(error).strip()}; it is cut short or damaged: copy it "
                f"again, or {REWRITE}"
            ) from None

    def _damaged(self, what: str) -> StreamError:
        return StreamError(f"{self.path}: {what}; the file is damaged or was changed: {REWRITE}")

    def _read_options(self) -> ReadOptions:
        """Return the options that the file was written with."""
        stored = (self._schema.metadata or {}).get(KEY)
        if stored is None:
            kind = "an Arrow" if self._is_arrow else "a Parquet"
            columns = ", ".join(self._schema.names[:MAX_COLUMNS_SHOWN])
            more = ", ..." if len(self._schema.names) > MAX_COLUMNS_SHOWN else ""
            raise StreamError(
                f"{self.path}: this is {kind} file of records, with the columns {columns}{more}; name the column of "
                "the labels: --label NAME (in Python: fit_records)"
            )
        try:
            header = json.loads(stored)
            if header["version"] == VERSION:
                self.text_format: str | None = header.get("text")
                return ReadOptions(**{name: header[name] for name in ReadOptions().feature_options})
            message = f"it has version {header['version']}, and this maxcosine reads version {VERSION}"
        except (KeyError, TypeError, ValueError, RecursionError):
            raise self._damaged("its metadata cannot be understood") from None
        raise StreamError(f"{self.path}: {message}; update maxcosine, or {REWRITE}")

    def _check_columns(self) -> str:
        """Return what features are known by; refuse columns that `convert` does not write."""
        kinds = [kind for kind in KINDS if kind in self._schema.names]
        kind, self._weighted = (kinds or [""])[0], "weight" in self._schema.names
        fits = len(kinds) == 1 and self.options.exact == (kind != "columns")
        if not fits or not self._schema.equals(schema_of(self._pa, kind, self.options.dtype, self._weighted)):
            columns = ", ".join(f"{column.name}: {column.type}" for column in self._schema)
            raise self._damaged(f"its columns are {columns}")
        return kind

    def groups(self) -> Iterator[tuple[Any, int, bool]]:
        """Read record batches; give each with the number of its first example and whether it is the last."""
        first = 0
        for k in range(self._n_groups):
            with self._errors():
                batches = self._read(k)
            self.position = self._size * (k + 1) // self._n_groups
            for number, batch in enumerate(batches):
                yield batch, first, k + 1 == self._n_groups and number + 1 == len(batches)
                first += len(batch)

    def rows_of(self, batch: Any, first: int) -> tuple[RowBatch, list[str]]:
        """Check a record batch whose first example has this number, and return its rows and labels."""
        with self._errors():
            batch.validate(full=True)
            indptr, keys = self._lists(batch, self.kind)
            value_indptr, values = self._lists(batch, "values")
            labels = batch.column("label").dictionary_encode()
            codes = _numbers(labels.indices.fill_null(-1) if labels.null_count else labels.indices)
        same = indptr == value_indptr
        self._check(same[1:], indptr[1:], f"the lists {self.kind} and values differ in length", first)
        self._check(np.isfinite(values), values, "the value {} is not finite", first, indptr)
        rows = RowBatch(indptr, keys, values, codes, self._weights(batch, first))
        if rows.kind != "names":
            self._check_keys(rows, first)
        rows.places = RowPlaces(np.arange(len(rows)))
        return rows, labels.dictionary.to_pylist()

    def _lists(self, batch: Any, name: str) -> tuple[np.ndarray, Any]:
        """Return where the lists of a column begin, and their items: numbers or names."""
        column = batch.column(name)
        if column.null_count or column.values.null_count:
            raise self._damaged(f"something is missing (null) in {name}")
        offsets = _numbers(column.offsets).astype(np.int64) if len(column) else np.zeros(1, np.int64)
        items = column.values[offsets[0] : offsets[-1]]
        return offsets - offsets[0], _names(items) if name == "names" else _numbers(items)

    def _weights(self, batch: Any, first: int) -> np.ndarray | None:
        """Return the weights; None if all are 1."""
        if not self._weighted:
            return None
        column = batch.column("weight")
        if column.null_count:
            raise self._damaged("something is missing (null) in weight")
        weights = _numbers(column)
        usable = (weights >= 0.0) & (weights < np.inf)
        self._check(usable, weights, "the weight {} is not a finite number, 0 or more", first)
        return None if (weights == 1.0).all() else weights

    def _check_keys(self, rows: RowBatch, first: int) -> None:
        """Check that columns are in range, and add up columns and ids that occur twice in a row."""
        keys: Any = rows.keys
        is_canonical = False
        if rows.kind == "columns":
            limit = 1 << (self.options.bits or MAX_COLUMN_BITS)
            rows.n_columns = int(keys.max()) + 1 if len(keys) else 0
            if rows.n_columns > limit:
                self._check(keys < limit, keys, f"the column {{}} is not below {limit}", first, rows.indptr)
            is_canonical = rows_are_canonical(rows.indptr, keys, rows.n_columns)
        if not is_canonical:
            rows.indptr, rows.keys, rows.values = canonicalize(rows.indptr, keys, rows.values, log1p=False, l2=False)
        rows.squares = square_norms(rows.indptr, rows.values)

    def _check(
        self, good: np.ndarray, numbers: np.ndarray, what: str, first: int, indptr: np.ndarray | None = None
    ) -> None:
        """Refuse the first number that is not good; `indptr` tells the row of a number that is in a list."""
        if good.all():
            return
        k = row = int(np.argmin(good))
        if indptr is not None:
            row = int(np.searchsorted(indptr, k, side="right")) - 1
        raise self._damaged(f"example {first + row + 1:,}: {what.format(numbers[k])}")


def _numbers(array: Any) -> np.ndarray:
    """View an Arrow array of numbers as a NumPy array; `to_numpy` would import pandas."""
    dtype = np.dtype(array.type.to_pandas_dtype())
    if not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)


def _names(array: Any) -> Names:
    """View an Arrow array of texts as names."""
    if not len(array):
        return Names(np.empty(0, np.uint8), np.zeros(1, np.int64))
    _, offsets, letters = array.buffers()
    starts = np.frombuffer(offsets, np.int32, len(array) + 1, 4 * array.offset).astype(np.int64)
    return Names(np.frombuffer(letters or b"", np.uint8)[starts[0] : starts[-1]], starts - starts[0])
