"""Records in text: blocks of CSV, TSV and JSON lines."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv

from maxcosine import core
from maxcosine.data.inputs import Block
from maxcosine.data.json_lines import BRACKETS, UNREADABLE, json_fault, read_json_lines
from maxcosine.data.options import MAX_LINE_BYTES, StreamError
from maxcosine.data.parsed import BadLine
from maxcosine.data.raw_block import ReadRecords
from maxcosine.records import RecordSchema

_ENDINGS = {
    (".csv",): "csv",
    (".tsv", ".tab"): "tsv",
    (".jsonl", ".ndjson", ".json"): "jsonl",
}
_DELIMITERS = (",", "\t", ";", "|")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_RETURN = re.compile(rb"\r(?!\n|$)")
_MAX_OPEN_QUOTES = 100
"""After so many quotes in a block that are never closed, the rest of the block is one bad row."""


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
        self.has_quotes = False
        """Whether fields may be quoted: in CSV, and in TSV if the header is."""
        self.mark_bytes = 0
        """Bytes of the byte order mark that the input begins with."""

    @property
    def is_csv(self) -> bool:
        """Whether it is CSV or TSV."""
        return bool(self.header)

    def begin(self, beginning: bytes, *, is_all: bool = True) -> bool:
        """Find out the format from the first bytes of the input; return False if the header goes on behind them."""
        text = beginning.removeprefix(_BYTE_ORDER_MARK)
        format = format_of(self._name, text) if self._format == "auto" else self._format
        self.mark_bytes = len(beginning) - len(text)
        if format == "jsonl":
            if text.lstrip().startswith(b"["):
                raise StreamError(
                    f"{self.title}: this is a JSON array, and records are read from JSON lines, one object a line; "
                    f"convert it, for example with: jq -c '.[]'"
                )
            self.delimiter = "\0"
            return True
        first_line = text.lstrip(b"\r\n").partition(b"\n")[0].decode(errors="replace")
        delimiter = "\t" if format == "tsv" else max(_DELIMITERS, key=first_line.count)
        self.has_quotes = delimiter != "\t" or first_line.startswith('"')
        letters = np.frombuffer(text, np.uint8)
        starts, _, whole, _, is_open = core.find_records(letters, 0, len(letters), delimiter, self.has_quotes)
        if len(starts) < 2 and not (len(starts) and whole > starts[0]) and not is_all:
            return False
        if not len(starts):
            raise StreamError(f"{self.title}: there is no header; the first row names the columns")
        if is_open and len(starts) == 1:
            raise StreamError(f"{self.title}: a quote that is opened in the header is never closed")
        end = int(starts[1]) if len(starts) > 1 else len(text)
        self.delimiter, self.header = delimiter, self._read_header(text[int(starts[0]) : end], delimiter)
        return True

    def _read_header(self, header: bytes, delimiter: str) -> list[str]:
        """Return the names of the columns."""
        if b"\0" in header:
            raise StreamError(f"{self.title}: there is a NUL byte in the header; convert the file to UTF-8")
        try:
            text = header.decode()
        except UnicodeDecodeError:
            raise StreamError(f"{self.title}: the header is not UTF-8; convert the file to UTF-8") from None
        try:
            quoting: Any = csv.QUOTE_MINIMAL if self.has_quotes else csv.QUOTE_NONE
            names = next(csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True, quoting=quoting))
        except csv.Error as error:
            raise StreamError(
                f"{self.title}: the header cannot be read: {error}; is this CSV, with line ends as LF or CR LF?"
            ) from None
        names = [name.strip() for name in names]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise StreamError(f"{self.title}: two columns are called {twice[0]!r}; rename one of them")
        return names

    def find_end(self, buffer: bytearray, start: int, seen: int, stop: int) -> int:
        """Return where the last whole record of a buffer stops, 0 if there is none."""
        if not self.delimiter and stop > start:
            with memoryview(buffer) as view:
                text = view[start:stop].tobytes()
            if b"\n" not in text or not self.begin(text, is_all=False):
                return 0
        if not self.is_csv:
            return buffer.rfind(b"\n", seen, stop) + 1
        start += len(_BYTE_ORDER_MARK) if buffer.startswith(_BYTE_ORDER_MARK, start, stop) else 0
        whole = core.find_records(np.frombuffer(buffer, np.uint8), start, stop, self.delimiter, self.has_quotes)[2]
        return start + whole if whole else 0


class _Found(NamedTuple):
    """The records of a block."""

    starts: np.ndarray  # bytes from the start of the block
    lines: np.ndarray
    n_lines: int
    open_quotes: list[int]  # the records whose quote is never closed; their lines end them


@dataclass
class _Tables:
    """What was read, and the columns that were left out."""

    tables: list[Any]
    left_out: list[str] = field(default_factory=list)


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
    def _records(self) -> _Found:
        """Find the records; one whose quote is never closed is its first line only."""
        letters, n_before = np.frombuffer(self.block.buffer, np.uint8), 0
        begin = core.PADDING + (self.file.mark_bytes if self.block.offset == 0 else 0)
        starts, lines, open_quotes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], list[int]()
        while True:
            found, on_lines, _, n_lines, is_open = core.find_records(
                letters, begin, self.block.stop, self.file.delimiter or "\0", self.file.has_quotes
            )
            starts.append(found + (begin - core.PADDING))
            lines.append(on_lines + np.int64(n_before))
            end = -1
            if is_open:
                open_quotes.append(sum(map(len, starts)) - 1)
                if len(open_quotes) < _MAX_OPEN_QUOTES:
                    end = self.block.buffer.find(b"\n", begin + int(found[-1]), self.block.stop)
            if end < 0:
                break
            begin, n_before = end + 1, n_before + int(on_lines[-1]) + 1
        n_lines = 1 if self.block.too_long else n_before + n_lines
        return _Found(np.concatenate(starts), np.concatenate(lines), n_lines, open_quotes)

    @property
    def n_lines(self) -> int:
        """Lines of the block."""
        return self._records.n_lines

    @property
    def lacks_keys(self) -> bool:
        """Whether a row may lack columns: an object of JSON may."""
        return not self.file.is_csv

    def text_of(self, row: int) -> bytes:
        """Return a row of what `read` returned, as it is written."""
        return self._record(self._kept[row])

    def _record(self, number: int) -> bytes:
        found = self._records
        start, stop = self._span(number, number + 1)
        text = self.block.text(start, stop)
        if not self.file.is_csv or number in found.open_quotes[: _MAX_OPEN_QUOTES - 1]:
            text = text.partition(b"\n")[0]
        return text.rstrip(b"\r\n")

    def _span(self, first: int, stop: int) -> tuple[int, int | None]:
        """Return where some records start and stop."""
        starts = self._records.starts
        return int(starts[first]), int(starts[stop]) if stop < len(starts) else None

    def _text(self, numbers: np.ndarray) -> bytes:
        """Return the text of some records."""
        if not len(numbers):
            return b""
        ends = np.flatnonzero(np.diff(numbers) != 1) + 1
        runs = np.split(numbers, ends)
        return b"".join(self.block.text(*self._span(int(run[0]), int(run[-1]) + 1)) for run in runs)

    def head(self, n_rows: int, n_bytes: int) -> tuple[bytes, int]:
        """Return the text of the first rows, and how many; no more once they have so many bytes."""
        first = self._n_header_rows
        starts = self._records.starts[first:]
        if self.block.too_long or not len(starts):
            return b"", 0
        n_rows = min(n_rows, len(starts), int(np.searchsorted(starts, starts[0] + n_bytes)))
        return self.block.text(*self._span(first, first + n_rows)), n_rows

    def with_text(self, text: bytes) -> TextBlock:
        """Return a block of other rows of the input."""
        padding = bytes(core.PADDING)
        buffer = bytearray(padding + text + padding)
        stop = core.PADDING + len(text)
        block = replace(self.block, buffer=buffer, stop=stop, offset=1, end=1 + len(text), too_long=False)
        return TextBlock(block, self.file)

    @property
    def _n_header_rows(self) -> int:
        return int(self.file.is_csv and self.block.offset == 0 and len(self._records.starts) > 0)

    def read(self, schema: RecordSchema | None) -> ReadRecords:
        """Parse the block."""
        found = self._records
        if self.block.too_long:
            what = "the row" if self.file.is_csv else "the line"
            hint = "is a quote never closed?" if self.file.is_csv else "do its lines end?"
            bad = [BadLine(0, f"{what} is longer than {MAX_LINE_BYTES >> 20} MB; {hint}", self.block.line(0))]
            return ReadRecords([], found.starts[:0], found.starts[:0], bad)
        bad = []
        if self.file.is_csv:
            tables, kept = self._read_csv(bad)
        else:
            tables, kept = self._read_json(schema, bad)
        self._kept = kept
        return ReadRecords(tables.tables, found.lines[kept], found.starts[kept], bad, tables.left_out)

    def _bad(self, number: int, message: str) -> BadLine:
        return BadLine(int(self._records.lines[number]), message, self._record(number))

    # CSV

    def _read_csv(self, bad: list[BadLine]) -> tuple[_Tables, list[int]]:
        found = self._records
        wrong = dict.fromkeys(found.open_quotes, "a quote that is opened in this row is never closed")
        message = "the row has a CR outside of quotes; write line ends as LF or CR LF, or quote the field"
        wrong |= dict.fromkeys(self._with_returns(), message)
        numbers = np.arange(self._n_header_rows, len(found.starts))
        rows = numbers[np.isin(numbers, list(wrong), invert=True)]
        table, ragged = self._csv_table(self._text(rows), bool(len(rows)))
        for number, n_fields in ragged:
            wrong[int(rows[number])] = f"the row has {n_fields} fields, and the header has {len(self.file.header)}"
        bad += [self._bad(number, message) for number, message in sorted(wrong.items())]
        kept = rows[np.isin(rows, list(wrong), invert=True)].tolist()
        if len(kept) != len(table):
            raise StreamError(f"{self.file.title}: its rows end in several ways; write line ends as LF or CR LF")
        return _Tables([table]), kept

    def _with_returns(self) -> list[int]:
        """Return the rows with a CR that is neither quoted nor part of a line end."""
        text = self.block.text()
        places = [one.start() for one in _RETURN.finditer(text)]
        starts, first = self._records.starts, self._n_header_rows
        doubtful = set((np.searchsorted(starts, places, side="right") - 1).tolist()) if places else set[int]()
        delimiter = re.escape(self.file.delimiter.encode())
        if not self.file.has_quotes:
            return [number for number in sorted(doubtful) if number >= first]
        quoted = re.compile(rb'(^|%b)"(?:[^"]|"")*(?:"|$)' % delimiter)
        return [
            number
            for number in sorted(doubtful)
            if number >= first and _RETURN.search(quoted.sub(rb"\1", self._record(number)) or b"\r.")
        ]

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
            delimiter=self.file.delimiter,
            quote_char='"' if self.file.has_quotes else False,
            newlines_in_values=True,
            invalid_row_handler=note,
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

    def _read_json(self, schema: RecordSchema | None, bad: list[BadLine]) -> tuple[_Tables, list[int]]:
        starts = self._records.starts
        letters = np.frombuffer(self.block.buffer, np.uint8)
        kinds = core.check_json_lines(letters, starts + core.PADDING, self.block.stop)
        bad += [self._bad(number, BRACKETS[kinds[number]]) for number in np.flatnonzero(kinds).tolist()]
        kept, tables = list[int](), _Tables([])
        self._json_tables(schema, np.flatnonzero(kinds == 0), tables, kept, bad)
        bad.sort()
        return tables, kept

    def _json_tables(
        self, schema: RecordSchema | None, numbers: np.ndarray, tables: _Tables, kept: list[int], bad: list[BadLine]
    ) -> None:
        """Read some lines; as long as that fails, read their halves."""
        if not len(numbers):
            return
        try:
            table, left_out = read_json_lines(self._text(numbers), schema)
        except UNREADABLE as error:
            if len(numbers) == 1:
                bad.append(self._bad(int(numbers[0]), json_fault(error)))
                return
            for half in np.array_split(numbers, 2):
                self._json_tables(schema, half, tables, kept, bad)
            return
        if len(table) != len(numbers):
            raise StreamError(f"{self.file.title}: {len(numbers)} lines of JSON were read as {len(table)} objects")
        tables.tables.append(table)
        tables.left_out += left_out
        kept += numbers.tolist()
