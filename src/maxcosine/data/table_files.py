"""Records in files of tables: Parquet and Arrow IPC, in groups of rows."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from maxcosine.data.input_file import ARROW_MAGIC
from maxcosine.data.options import StreamError
from maxcosine.data.raw_block import ReadRecords
from maxcosine.records import RecordSchema
from maxcosine.records.conversion import is_list, is_string, plain

_BATCH_BYTES, _BATCH_ROWS = 4 << 20, 1 << 16
"""Rows of Parquet are read in batches of about so many bytes, and at most so many rows."""


@dataclass
class TableBlock:
    """Some rows of a table."""

    table: Any
    source: int
    first: int  # rows of the input before it
    is_last: bool
    offset: int = 0
    end: int = 0

    @property
    def is_first(self) -> bool:
        """Whether the input begins with the block."""
        return self.first == 0

    @property
    def n_lines(self) -> int:
        """Rows of the block."""
        return len(self.table)

    @property
    def lacks_keys(self) -> bool:
        """No: a table has each column."""
        return False

    def read(self, schema: RecordSchema | None) -> ReadRecords:
        """Check the rows: texts must be UTF-8."""
        return ReadRecords([self.table], np.arange(len(self.table)))

    def text_of(self, row: int) -> bytes:
        """Return a row as JSON."""
        return json.dumps(_values_of(self.table.slice(row, 1)), default=str, ensure_ascii=False).encode()


def _values_of(row: Any) -> dict[str, Any]:
    """Return the values of a table of one row; text that is not UTF-8 as bytes."""
    try:
        found: dict[str, Any] = row.to_pylist()[0]
        return found
    except UnicodeDecodeError:
        pass
    columns = [(name, plain(values)) for name, values in zip(row.column_names, row.columns, strict=True)]
    bare = [(name, values.view(pa.binary()) if is_string(values.type) else values) for name, values in columns]
    return {name: values[0].as_py() for name, values in bare if not is_list(values.type)}


class TableFile:
    """A Parquet or Arrow IPC file, read in groups of rows."""

    def __init__(self, name: str) -> None:
        self.name, self.position = name, 0
        try:
            self._raw = pa.OSFile(name)
            self._size = self._raw.size()
            magic = self._raw.read(len(ARROW_MAGIC))
            self._raw.seek(0)
            self._arrow = pa.ipc.open_file(self._raw) if magic == ARROW_MAGIC else None
            self._parquet = None if self._arrow else pa.parquet.ParquetFile(self._raw)
        except (pa.ArrowException, OSError) as error:
            raise self._error(error) from None

    def __enter__(self) -> TableFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    def _error(self, error: Exception) -> StreamError:
        return StreamError(
            f"{self.name}: cannot be read: {str(error).strip()}; it is cut short or damaged, fetch it again"
        )

    def blocks(self, source: int, skipped: int) -> Generator[TableBlock, None, None]:
        """Read the rows after the first `skipped` ones."""
        first, previous = 0, None
        try:
            for batch in self._batches():
                if first + len(batch) > skipped or not len(batch):
                    cut = max(0, skipped - first)
                    _check(batch)
                    if previous is not None:
                        yield previous
                    previous = TableBlock(pa.Table.from_batches([batch.slice(cut)]), source, first + cut, False)
                first += len(batch)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self._error(error) from None
        if first < skipped:
            raise StreamError(f"{self.name}: ends before the place to continue from; it has changed since then")
        if previous is not None:
            previous.is_last = True
            yield previous

    def _batches(self) -> Generator[Any, None, None]:
        """Give batches of rows."""
        if self._arrow is not None:
            for k in range(self._arrow.num_record_batches):
                yield self._arrow.get_batch(k)
                self.position = self._size * (k + 1) // self._arrow.num_record_batches
            return
        assert self._parquet is not None
        n_groups = self._parquet.num_row_groups
        for k in range(n_groups):
            group = self._parquet.metadata.row_group(k)
            n_rows = _BATCH_BYTES * group.num_rows // max(1, group.total_byte_size)
            size = max(1, min(n_rows, _BATCH_ROWS))
            yield from self._parquet.iter_batches(size, row_groups=[k], use_threads=False)
            self.position = self._size * (k + 1) // n_groups


def _check(batch: Any) -> None:
    """Refuse damaged rows; texts that are not UTF-8 are bad rows later."""
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):
            raise
        for values in batch.columns:
            if not is_list(values.type) and not pa.types.is_struct(values.type):
                values = plain(values)
                (values.view(pa.binary()) if is_string(values.type) else values).validate(full=True)
