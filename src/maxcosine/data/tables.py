"""Records in memory: data frames, Arrow tables, whatever exports Arrow data, and dicts, as inputs of a stream."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from itertools import islice
from typing import Any

import pyarrow as pa

from maxcosine.data.inputs import Place
from maxcosine.data.options import StreamError
from maxcosine.data.table_files import TableBlock

_DICTS_AT_ONCE = 1000


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

    def raw_blocks(self, start: Place) -> Generator[TableBlock, None, None]:
        """Give the rows in blocks; the last one is empty.

        Yields
        ------
        TableBlock
            Some rows.
        """
        first = 0
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
        elif isinstance(source, Iterable) and not isinstance(source, str | bytes | Mapping):
            yield from self._tables_of_dicts(iter(source))
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
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise StreamError(f"{self.names[0]} cannot be read: {error}; give each column one type") from None

    def _tables_of_dicts(self, dicts: Any) -> Generator[Any, None, None]:
        first = 0
        while rows := list(islice(dicts, _DICTS_AT_ONCE)):
            for number, row in enumerate(rows):
                if not isinstance(row, Mapping):
                    raise TypeError(
                        f"row {first + number} of the data is a {type(row).__name__}, and no dict of column to value"
                    )
            names = dict.fromkeys(name for row in rows for name in row)
            yield pa.table({str(name): self._column(name, rows, first) for name in names})
            first += len(rows)

    def _column(self, name: Any, rows: list[Any], first: int) -> Any:
        values = [row.get(name) for row in rows]
        try:
            return pa.array(values, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            pass
        for number in range(len(values)):
            try:
                pa.array(values[: number + 1], from_pandas=True)
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
                raise StreamError(
                    f"row {first + number} of the data: the column {name!r} cannot be read: {error}"
                ) from None
        raise AssertionError("some prefix of the values cannot be read")
