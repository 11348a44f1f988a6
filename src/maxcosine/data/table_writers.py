"""Files of records, written batch by batch: Parquet, CSV and JSON lines."""

from __future__ import annotations

import json
import math
from datetime import date
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from maxcosine.data.options import StreamError

WRITTEN_FORMATS = ("parquet", "csv", "jsonl")


class TableWriter:
    """Writes tables to one file; all of them have the columns of the first.

    Parameters
    ----------
    file : binary file
        Where they are written.
    format : {"parquet", "csv", "jsonl"}
        The format.
    """

    def __init__(self, file: IO[bytes], format: str) -> None:
        self._file, self._format = file, format
        self._writer: Any = None
        self._schema: Any = None

    def write(self, table: Any) -> None:
        """Write the rows of a table."""
        if self._format == "jsonl":
            lines = [json.dumps(_plain(row), ensure_ascii=False) + "\n" for row in table.to_pylist()]
            self._file.write("".join(lines).encode())
            return
        if self._writer is None:
            self._schema = table.schema
            open_writer = pa.parquet.ParquetWriter if self._format == "parquet" else pa.csv.CSVWriter
            self._writer = open_writer(self._file, table.schema)
        try:
            self._writer.write_table(table.cast(self._schema))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            raise StreamError(
                f"a column that is kept cannot be written as {self._format}: {error}; keep other columns (--keep), or "
                "write JSON lines (--to jsonl)"
            ) from None

    def close(self) -> None:
        """Complete the file."""
        if self._writer is not None:
            self._writer.close()


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return value.isoformat() if isinstance(value, date) else str(value)
