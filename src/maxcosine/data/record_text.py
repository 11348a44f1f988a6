"""Records in text: blocks of CSV, TSV and JSON lines."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from maxcosine import core
from maxcosine.data.inputs import Block
from maxcosine.data.json_lines import json_fault, read_json_lines
from maxcosine.data.options import MAX_LINE_BYTES, StreamError
from maxcosine.data.parsed import BadLine
from maxcosine.data.raw_block import ReadRecords
from maxcosine.records import RecordSchema, SchemaError

_ENDINGS = {
    (".csv",): "csv",
    (".tsv", ".tab"): "tsv",
    (".jsonl", ".ndjson", ".json"): "jsonl",
}
_DELIMITERS = (",", "\t", ";", "|")


def format_of(name: str, beginning: bytes) -> str:
    """Tell the format of records in text, by the name of their file or by its first bytes."""
    stem = name.lower().removesuffix(".gz").removesuffix(".zst")
    for endings, format in _ENDINGS.items():
        if stem.endswith(endings):
            return format
    text = beginning.lstrip()
    if text.startswith((b"{", b"[")):
        return "jsonl"
    return "tsv" if b"\t" in text.partition(b"\n")[0] else "csv"


class RecordText:
    """One input in CSV, TSV or JSON lines: its format, and the names of its columns."""

    def __init__(self, title: str, name: str, format: str) -> None:
        self.title, self._name, self._format = title, name, format
        self.delimiter = ""
        self.header: list[str] = []

    @property
    def is_csv(self) -> bool:
        """Whether it is CSV or TSV."""
        return bool(self.header)

    def begin(self, beginning: bytes) -> int:
        """Find out the format from the first bytes of the input; return how many bytes the header takes."""
        format = format_of(self._name, beginning) if self._format == "auto" else self._format
        if format == "jsonl":
            if beginning.lstrip().startswith(b"["):
                raise StreamError(
                    f"{self.title}: this is a JSON array, and records are read from JSON lines, one object a line; "
                    f"convert it, for example with: jq -c '.[]'"
                )
            self.delimiter = "\0"
            return 0
        first_line = beginning.partition(b"\n")[0].decode(errors="replace")
        self.delimiter = "\t" if format == "tsv" else max(_DELIMITERS, key=first_line.count)
        return self._read_header(beginning)

    def _read_header(self, beginning: bytes) -> int:
        letters = np.frombuffer(beginning, np.uint8)
        starts, _, whole, _, is_open = core.find_records(letters, 0, len(letters), self.delimiter)
        if not len(starts):
            raise StreamError(f"{self.title}: there is no header; the first row names the columns")
        end = int(starts[1]) if len(starts) > 1 else int(whole) if whole and not is_open else len(beginning)
        try:
            text = beginning[int(starts[0]) : end].decode()
        except UnicodeDecodeError:
            raise StreamError(f"{self.title}: the header is not UTF-8; convert the file to UTF-8") from None
        if "\0" in text:
            raise StreamError(f"{self.title}: there is a NUL byte in the header; convert the file to UTF-8")
        names = next(csv.reader(io.StringIO(text), delimiter=self.delimiter, skipinitialspace=True))
        self.header = [name.strip() for name in names]
        twice = [name for name in self.header if self.header.count(name) > 1]
        if twice:
            raise StreamError(f"{self.title}: two columns are called {twice[0]!r}; rename one of them")
        return end

    def find_end(self, buffer: bytearray, start: int, seen: int, stop: int) -> int:
        """Return where the last whole record of a buffer stops, 0 if there is none."""
        if not self.delimiter and stop > start:
            if b"\n" not in memoryview(buffer)[start:stop].tobytes():
                return 0
            self.begin(bytes(buffer[start:stop]))
        if not self.is_csv:
            return buffer.rfind(b"\n", seen, stop) + 1
        whole = core.find_records(np.frombuffer(buffer, np.uint8), start, stop, self.delimiter)[2]
        return start + whole if whole else 0


@dataclass
class TextBlock:
    """A block of records in text."""

    block: Block
    file: RecordText
    _kept: list[int] = field(default_factory=list)  # the records that were read

    @property
    def source(self) -> int:
        """The number of the input."""
        return self.block.source

    @property
    def offset(self) -> int:
        """Bytes of the input before the block."""
        return self.block.offset

    @property
    def end(self) -> int:
        """Bytes of the input up to the end of the block."""
        return self.block.end

    @property
    def is_first(self) -> bool:
        """Whether the input begins with the block."""
        return self.block.offset == 0

    @property
    def is_last(self) -> bool:
        """Whether the input ends with the block."""
        return self.block.is_last

    @cached_property
    def _records(self) -> tuple[np.ndarray, np.ndarray, int, bool]:
        """Where the records start, on which lines, how many lines there are, and whether a quote is open."""
        letters = np.frombuffer(self.block.buffer, np.uint8)
        starts, lines, _, n_lines, is_open = core.find_records(
            letters, core.PADDING, self.block.stop, self.file.delimiter or "\0"
        )
        return starts, lines, 1 if self.block.too_long else n_lines, is_open

    @property
    def n_lines(self) -> int:
        """Lines of the block."""
        return self._records[2]

    def order_of(self, names: list[str]) -> list[str]:
        """Return names of columns in the order of the data; the reader of JSON gives some of them first."""
        if self.file.is_csv:
            return names
        order = list(json.loads(self.text_of(0)))
        return sorted(names, key=lambda name: order.index(name) if name in order else len(order))

    def text_of(self, row: int) -> bytes:
        """Return a row of what `read` returned, as it is written."""
        return self._record(self._kept[row])

    def _record(self, number: int) -> bytes:
        starts = self._records[0]
        stop = int(starts[number + 1]) if number + 1 < len(starts) else None
        return self.block.text(int(starts[number]), stop).rstrip(b"\r\n")

    def read(self, schema: RecordSchema | None) -> ReadRecords:
        """Parse the block."""
        starts, lines, _, is_open = self._records
        if self.block.too_long:
            what = "the row" if self.file.is_csv else "the line"
            hint = "is a quote never closed?" if self.file.is_csv else "do its lines end?"
            bad = [BadLine(0, f"{what} is longer than {MAX_LINE_BYTES >> 20} MB; {hint}", self.block.text())]
            return ReadRecords([], starts[:0], starts[:0], bad)
        if self.file.is_csv:
            return self._read_csv(starts, lines, is_open)
        return self._read_json(schema, starts, lines)

    # CSV

    def _read_csv(self, starts: np.ndarray, lines: np.ndarray, is_open: bool) -> ReadRecords:
        first = 0
        if self.block.offset == 0 and len(starts):
            first = 1  # the header
        bad: list[BadLine] = []
        rows = list(range(first, len(starts)))
        if is_open and rows:
            bad.append(self._bad(rows.pop(), "a quote that is opened in this row is never closed"))
        begin = int(starts[rows[0]]) if rows else 0
        stop = int(starts[rows[-1] + 1]) if rows and rows[-1] + 1 < len(starts) else None
        table, ragged = self._csv_table(self.block.text(begin, stop) if rows else b"", bool(rows))
        for number, n_fields in ragged:
            message = f"the row has {n_fields} fields, and the header has {len(self.file.header)}"
            bad.append(self._bad(rows[number], message))
        dropped = {number for number, _ in ragged}
        self._kept = kept = [row for number, row in enumerate(rows) if number not in dropped]
        if len(kept) != len(table):
            raise StreamError(f"{self.file.title}: its rows end in several ways; write line ends as LF or CR LF")
        return ReadRecords([table], lines[kept], starts[kept], bad)

    def _bad(self, number: int, message: str) -> BadLine:
        return BadLine(int(self._records[1][number]), message, self._record(number))

    def _csv_table(self, text: bytes, has_rows: bool) -> tuple[Any, list[tuple[int, int]]]:
        """Return the rows as strings, and which of them have the wrong number of fields."""
        types = pa.schema([(name, pa.string()) for name in self.file.header])
        if not has_rows:
            return types.empty_table(), []
        ragged: list[tuple[int, int]] = []

        def note(row: Any) -> str:
            ragged.append((row.number - 1, row.actual_columns))
            return "skip"

        csv_options = pyarrow.csv.ParseOptions(
            delimiter=self.file.delimiter, newlines_in_values=True, invalid_row_handler=note
        )
        reading = pyarrow.csv.ReadOptions(
            use_threads=False, block_size=len(text) + 1, column_names=self.file.header, encoding="utf8"
        )
        converting = pyarrow.csv.ConvertOptions(column_types=types, strings_can_be_null=False, check_utf8=False)
        try:
            with pyarrow.csv.open_csv(io.BytesIO(text), reading, csv_options, converting) as reader:
                return reader.read_all(), ragged
        except pa.ArrowInvalid as error:
            if "Empty CSV" in str(error):  # all rows were skipped
                return types.empty_table(), ragged
            raise StreamError(f"{self.file.title}: cannot be read as CSV: {error}") from None

    # JSON lines

    def _read_json(self, schema: RecordSchema | None, starts: np.ndarray, lines: np.ndarray) -> ReadRecords:
        bad: list[BadLine] = []
        self._kept = kept = list[int]()
        tables = self._json_tables(schema, 0, len(starts), kept, bad)
        return ReadRecords(tables, lines[kept], starts[kept], bad)

    def _json_tables(
        self, schema: RecordSchema | None, first: int, stop: int, kept: list[int], bad: list[BadLine]
    ) -> list[Any]:
        """Read a range of lines; as long as that fails, read its halves."""
        if first == stop:
            return []
        starts = self._records[0]
        text = self.block.text(int(starts[first]), int(starts[stop]) if stop < len(starts) else None)
        try:
            table = read_json_lines(text, schema)
            if len(table) != stop - first:
                raise SchemaError("there is more than one JSON object on the line")
        except (pa.ArrowInvalid, SchemaError) as error:
            if stop - first == 1:
                bad.append(self._bad(first, json_fault(error, text)))
                return []
            middle = (first + stop) // 2
            return [
                *self._json_tables(schema, first, middle, kept, bad),
                *self._json_tables(schema, middle, stop, kept, bad),
            ]
        kept += range(first, stop)
        return [table]
