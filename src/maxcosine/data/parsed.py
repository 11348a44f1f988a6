"""One parsed block, its labels and its bad lines: shared by the readers of text and of caches."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from maxcosine.core import FAULT_CODES, FAULT_MESSAGES, square_norms
from maxcosine.data.batch import RowBatch
from maxcosine.data.options import ReadOptions, StreamError
from maxcosine.heads import LIMITS

NO_LABEL = FAULT_MESSAGES[FAULT_CODES["NO_LABEL"]]
BAD_NORM = (
    "the example is too long, or too short, to be learnt from; scale the values, for example with "
    "--normalize l2 or --log1p"
)
MAX_REPORTED = 5  # a stream remembers the messages of this many bad lines
_MAX_QUOTED = 40
# Labels that are numbers are in their shortest form.
_NOT_WHOLE = re.compile(r"-?[0-9]+(\.[0-9]+|(\.[0-9]+)?e-[0-9]+)")


class BadLine(NamedTuple):
    """A line that cannot be used."""

    line: int  # its number, counted from the first line of the block
    message: str
    text: bytes = b""  # the line, without its newline; empty in a cache
    position: int = 0  # byte of the line where the fault is

    def quote(self) -> str:
        """Return the word at the fault; the beginning of the line if the whole line is at fault."""
        text = self.text[self.position :][:_MAX_QUOTED]
        found = text if self.position == 0 else (text.split() or [b""])[0]
        return found.decode(errors="backslashreplace") or "the end of the line"


@dataclass(eq=False)
class ParsedBlock:
    """The rows of a block or of a record batch, before their labels have codes of the stream."""

    batch: RowBatch  # codes are positions in `labels`; of the places, only lines and offsets are known
    labels: Sequence[str]  # in the order of their first rows
    source: int
    n_lines: int
    offset: int = 0  # bytes of the input before the block, decompressed; 0 in a cache
    end: int = 0  # bytes of the input up to the end of the block; 0 in a cache
    is_last: bool = False  # whether the input ends with the block
    bad: Sequence[BadLine] = ()  # in the order of their lines
    is_partial: bool = False  # whether rows were left out: some of the labels may belong to no row
    new_columns: Sequence[str] = ()  # columns of records that the schema does not have

    def leave_out_unusable(self, options: ReadOptions, text_of: Callable[[int], bytes] = lambda row: b"") -> None:
        """Make bad lines of the rows that do not serve the purpose for which they are read."""
        unusable = _unusable_rows(self.batch, options)
        if unusable:
            lines = self.batch.places.lines
            bad = [BadLine(int(lines[row]), message, text_of(row)) for row, message in unusable.items()]
            self.bad = sorted([*self.bad, *bad])
            self.batch = self.batch.take(np.isin(np.arange(len(self.batch)), list(unusable), invert=True))
            self.is_partial = True


def _unusable_rows(batch: RowBatch, options: ReadOptions) -> dict[int, str]:
    """Return the rows that do not serve the purpose for which they are read, and the reasons."""
    found: dict[int, str] = {}
    # Only an index knows which names are equal, and so how long rows are in the end.
    norms_are_final = batch.kind != "names" or not (options.l2 or options.log1p)
    if options.purpose == "learn" and norms_are_final and not options.any_norm:
        limits = LIMITS[batch.values.dtype]
        squares = square_norms(batch.indptr, batch.values) if batch.squares is None else batch.squares
        outside = ~((limits.low_sq_x <= squares) & (squares <= limits.high_sq_x))
        # An example of zeros can be learnt; in rows of names, the zeros of the text are still there.
        for row in np.flatnonzero(outside).tolist():
            if batch.values[batch.indptr[row] : batch.indptr[row + 1]].any():
                found[row] = BAD_NORM
    if options.purpose != "read" and batch.codes.min(initial=0) < 0:
        found |= dict.fromkeys(np.flatnonzero(batch.codes < 0).tolist(), NO_LABEL)
    return found


class SupportsWrite(Protocol):
    """A binary file to write to."""

    def write(self, content: bytes, /) -> Any:
        """Write bytes."""


class BadLines:
    """The bad lines of a stream: the first one is an error, or all are skipped.

    `messages` describes the first ones; `file` receives the lines that are skipped.
    """

    def __init__(self, on_bad: str, file: SupportsWrite | None) -> None:
        self.on_bad, self.file = on_bad, file
        self.messages: list[str] = []

    def add(self, message: str, text: bytes) -> None:
        """Skip a bad line, or raise an error."""
        if self.on_bad == "error":
            raise StreamError(f"{message}; or skip such lines with on_bad='skip' (--on-bad skip)")
        if len(self.messages) < MAX_REPORTED:
            self.messages.append(message)
        if self.file is not None:
            self.file.write(text + b"\n")


class StreamLabels:
    """The labels of a stream, in the order in which they appear: the position of a label is its code."""

    MAX_EARLY, EARLY_EXAMPLES = 1000, 20_000
    """More classes before this example are hardly classes."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._codes: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.names)

    def code_of(self, label: str) -> int:
        """Return the code of a label; a new label gets the next code."""
        code = self._codes.setdefault(label, len(self.names))
        if code == len(self.names):
            self.names.append(label)
        return code

    def know(self, labels: Sequence[str]) -> None:
        """Give codes to labels that appeared before this stream."""
        for label in labels:
            self.code_of(label)

    def doubt(self, code: int, example: int) -> str | None:
        """Return why a label that is new at this example is hardly a class, or None."""
        if _NOT_WHOLE.fullmatch(self.names[code]):
            return f"the label {self.names[code]} is a number that is not whole, and labels are classes"
        if code == self.MAX_EARLY and example < self.EARLY_EXAMPLES:
            number = f"{code + 1:,}st class after {example:,} examples"
            return f"the label {self.names[code]!r} is the {number}, as if it were an id"
        return None

    def encode(self, labels: Sequence[str], codes: np.ndarray, *, only_used: bool) -> np.ndarray:
        """Translate positions in `labels` into codes of the stream; -1 stays -1.

        If `only_used`, labels without a row stay unknown, as if they had never been in the data.
        """
        used = dict.fromkeys(codes[codes >= 0].tolist()) if only_used else range(len(labels))
        table = np.full(len(labels) + 1, -1)
        for position in used:
            table[position] = self.code_of(labels[position])
        translated: np.ndarray = table[codes]
        return translated
