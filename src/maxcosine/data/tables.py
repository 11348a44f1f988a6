"""Records in memory: data frames, Arrow tables, whatever exports Arrow data, and dicts, as inputs of a stream."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from maxcosine.data.inputs import Place
from maxcosine.data.options import StreamError
from maxcosine.data.parsed import BadLine
from maxcosine.data.raw_block import ReadRecords
from maxcosine.data.table_files import TableBlock
from maxcosine.records import RecordSchema
from maxcosine.records.conversion import flat_columns

_DICTS_AT_ONCE = 1000


def _is_iterable_of_dicts(source: Any) -> bool:
    if type(source).__module__.partition(".")[0] == "pandas" or isinstance(source, str | bytes | Mapping):
        return False
    is_arrow = hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")
    return isinstance(source, Iterable) and not is_arrow


class Tables:
    """One input that is not a file; it has the attributes of `Inputs` that a stream needs.

    Parameters
    ----------
    source : data frame, Arrow data or iterable of dicts
        pandas, polars and pyarrow, anything with the Arrow PyCapsule interface, or dicts of column to value.
    """

    total_bytes, read_bytes, skipped_bytes = None, 0, 0

    def __init__(self, source: Any) -> None:
        self.names = ["the data"]
        self._source = source

    def title(self, number: int) -> str:
        """Return what messages call the data."""
        return self.names[number]

    def where(self, number: int, line: int) -> str:
        """Name a row, given how many precede it."""
        return f"row {line:,} of {self.names[number]}"

    def raw_blocks(self, start: Place) -> Generator[TableBlock | DictBlock, None, None]:
        """Give the rows in blocks; the last one is empty.

        Yields
        ------
        TableBlock or DictBlock
            Some rows.
        """
        first = 0
        source: Any = self._source
        if _is_iterable_of_dicts(source):
            for block in self._blocks_of_dicts(iter(source)):
                yield block
                first += block.n_lines
        else:
            for table in self._tables():
                yield TableBlock(table, 0, first, is_last=False)
                first += len(table)
        yield TableBlock(pa.table({}), 0, max(1, first), is_last=True)

    def _tables(self) -> Generator[Any, None, None]:
        source = self._source
        if type(source).__module__.partition(".")[0] == "pandas":
            yield self._checked(lambda: pa.Table.from_pandas(source, preserve_index=False))
        elif hasattr(source, "__arrow_c_stream__"):
            for batch in pa.RecordBatchReader.from_stream(source):
                yield pa.Table.from_batches([batch])
        elif hasattr(source, "__arrow_c_array__"):
            yield pa.Table.from_batches([pa.record_batch(source)])
        elif hasattr(source, "collect"):
            raise TypeError("records of a lazy frame are not computed yet; give frame.collect()")
        else:
            raise TypeError(
                "records are a data frame, Arrow data, dicts of column to value, or names of files, and not a "
                f"{type(source).__name__}"
            )

    def _checked(self, make: Any) -> Any:
        try:
            return make()
        except (pa.ArrowException, ValueError, OverflowError) as error:
            raise StreamError(f"{self.names[0]} cannot be read: {error}; give each column one type") from None

    def _blocks_of_dicts(self, dicts: Any) -> Generator[DictBlock, None, None]:
        first = 0
        while rows := list(islice(dicts, _DICTS_AT_ONCE)):
            for number, row in enumerate(rows):
                if not isinstance(row, Mapping):
                    raise TypeError(
                        f"row {first + number} of the data is a {type(row).__name__}, and no dict of column to value"
                    )
            yield DictBlock(rows, first)
            first += len(rows)


@dataclass
class DictBlock:
    """Some rows that are dicts."""

    rows: list[Any]
    first: int
    source: int = 0
    is_last: bool = False
    offset: int = 0
    end: int = 0
    _kept: list[int] = field(default_factory=list)

    @property
    def is_first(self) -> bool:
        """Whether the data begin with the block."""
        return self.first == 0

    @property
    def n_lines(self) -> int:
        """Rows of the block."""
        return len(self.rows)

    @property
    def lacks_keys(self) -> bool:
        """Whether a row may lack columns: a dict may."""
        return True

    @cached_property
    def _read(self) -> ReadRecords:
        read = ReadRecords([], np.zeros(0, np.int64))
        self._make_tables(0, len(self.rows), read)
        read.lines = np.array(self._kept, np.int64)
        return read

    def read(self, schema: RecordSchema | None) -> ReadRecords:
        """Make tables of the rows: one, or several where values of a column have different types."""
        return self._read

    def text_of(self, row: int) -> bytes:
        """Return a row as JSON."""
        return self._text(self._kept[row])

    def _text(self, number: int) -> bytes:
        row = {str(name): value for name, value in self.rows[number].items()}
        return json.dumps(row, default=str, ensure_ascii=False).encode(errors="replace")

    def _make_tables(self, first: int, stop: int, read: ReadRecords) -> None:
        """Make a table of a range of rows; as long as that fails, of its halves."""
        rows = self.rows[first:stop]
        names = dict.fromkeys(name for row in rows for name in row)
        try:
            columns = [pa.array([row.get(name) for row in rows], from_pandas=True) for name in names]
            table = pa.Table.from_arrays(columns, [str(name) for name in names])
            list(flat_columns(table))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            if stop - first == 1:
                read.bad.append(BadLine(first, f"the row cannot be read: {error}", self._text(first)))
                return
            middle = (first + stop) // 2
            self._make_tables(first, middle, read)
            self._make_tables(middle, stop, read)
            return
        self._kept += range(first, stop)
        read.tables.append(table if names else pa.table({"": pa.nulls(len(rows))}).select([]))
