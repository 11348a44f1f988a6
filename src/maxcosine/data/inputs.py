"""The inputs of a stream: files, globs and standard input, read in blocks of whole lines."""

from __future__ import annotations

import glob
import os
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from maxcosine.core import PADDING
from maxcosine.data.input_file import STANDARD_INPUT, InputFile, open_binary, size_of, title_of
from maxcosine.data.options import BLOCK_BYTES, MAX_LINE_BYTES, StreamError

# The first block is small: learning and progress start soon, and it shows how long the lines are.
FIRST_BLOCK_BYTES = 1 << 18
# About the most lines of a block: each row takes some memory, however short its line is.
BLOCK_LINES = 1 << 17

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SAMPLE_BYTES = 65536


class Place(NamedTuple):
    """A place in the inputs, where reading can continue."""

    source: int = 0  # number of the input
    offset: int = 0  # bytes of that input before the place, decompressed; 0 in a cache
    line: int = 0  # lines of that input before the place; examples in a cache
    bad: int = 0  # bad lines before the place, in all inputs
    bad_bytes: int = 0  # bytes that these bad lines take in the file of bad lines


START = Place()

InputNames = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class Span(NamedTuple):
    """Whole lines of a plain file, by their first byte and the byte after the last; by default, all."""

    start: int = 0
    stop: int | None = None


@dataclass(frozen=True, eq=False)
class Block:
    """Whole lines of one input; the last line of an input may lack its newline."""

    buffer: bytearray  # the lines are buffer[PADDING:stop]; PADDING bytes after them can be read
    stop: int
    source: int  # number of the input
    offset: int  # bytes of the input before the block, decompressed
    end: int  # bytes of the input up to the end of the block
    is_last: bool  # whether the input ends with the block
    too_long: bool = False  # the block is the beginning of one line, which has more than MAX_LINE_BYTES

    def text(self, start: int = 0, stop: int | None = None) -> bytes:
        """Return a part of the text, or all of it; bytes are counted from the first line."""
        end = self.stop if stop is None else PADDING + stop
        return bytes(self.buffer[PADDING + start : end])

    def line(self, start: int) -> bytes:
        """Return the line that begins at a byte, without its end."""
        newline = self.buffer.find(b"\n", PADDING + start, self.stop)
        return self.text(start, None if newline < 0 else newline - PADDING).removesuffix(b"\r")


def expand(names: InputNames) -> list[str]:
    """Return the inputs that names stand for: files, globs, and ``-`` for standard input.

    The files of a glob are in the order of their names. A name that exists is a file, never a glob.
    """
    found: list[str] = []
    given = [names] if isinstance(names, str | os.PathLike) else names
    for name in [os.fspath(one) for one in given]:
        matches = [name]
        if name != STANDARD_INPUT and not os.path.exists(name):
            matches = sorted(glob.glob(name, recursive=True))
        if not matches:
            raise StreamError(f"{name}: there is no such file; check the name, or quote a pattern such as 'day-*.gz'")
        found += matches
    for name in found:
        if name != STANDARD_INPUT and os.path.isdir(name):
            raise StreamError(f"{name}: this is a folder; name files, for example {os.path.join(name, '*')!r}")
    if not found:
        raise StreamError("there is no input; name files, or - for standard input")
    if found.count(STANDARD_INPUT) > 1:
        raise StreamError("standard input can be read once only; name - once")
    return found


FindEnd = Callable[[bytearray, int, int, int], int]
"""Takes a buffer, where a block starts in it, up to where it was looked at before, and to where it is filled; returns
where the last whole line of the block stops, 0 if there is none."""


def end_of_lines(buffer: bytearray, start: int, seen: int, stop: int) -> int:
    """Return where the last whole line stops, 0 if there is none."""
    return buffer.rfind(b"\n", seen, stop) + 1


class Inputs:
    """The inputs of a stream, and how far they have been read."""

    def __init__(self, names: InputNames, spans: Sequence[Span] | None = None, block_bytes: int = BLOCK_BYTES) -> None:
        self.names = expand(names)
        self.spans = [Span()] * len(self.names) if spans is None else list(spans)
        if len(self.spans) != len(self.names):
            raise ValueError(f"there are {len(self.spans)} spans for {len(self.names)} inputs")
        self.skipped_bytes = 0
        """Bytes of the inputs before the place where reading began."""
        self._block_bytes = block_bytes
        self._lines_before: dict[int, int] = {}
        self._file: Any = None
        self._finished_bytes = 0

    @property
    def total_bytes(self) -> int | None:
        """Size of all inputs on disk; None if one has no size, as a pipe has none."""
        sizes = [size_of(name) for name in self.names]
        return None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def read_bytes(self) -> int:
        """Bytes that have been read from disk; compressed ones count as compressed."""
        file, finished = self._file, self._finished_bytes  # another thread may change them meanwhile
        return finished + (0 if file is None else int(file.position))

    def title(self, number: int) -> str:
        """Return what messages call an input."""
        return title_of(self.names[number])

    def where(self, number: int, line: int) -> str:
        """Return the name of an input and the number of a line, given how many lines precede it."""
        return f"{self.title(number)}:{self._lines_before_span(number) + line + 1}"

    def _lines_before_span(self, number: int) -> int:
        """Count the lines before the part of an input that is read; only messages need it."""
        if number not in self._lines_before:
            left, lines = self.spans[number].start, 0
            if left:
                with open(self.names[number], "rb") as file:
                    while left and (text := file.read(min(left, BLOCK_BYTES))):
                        lines += text.count(b"\n")
                        left -= len(text)
            self._lines_before[number] = lines
        return self._lines_before[number]

    def opened(self, start: Place, open_input: Callable[[int], Any]) -> Iterator[tuple[int, Any]]:
        """Open one input after another, from a place on; give its number and the file, and close it.

        `open_input` opens the input of a number; it returns a context manager with a `position`.
        """
        self._finished_bytes = self.skipped_bytes = 0
        for number, name in enumerate(self.names):
            if number < start.source:
                self.skipped_bytes += size_of(name) or 0
            else:
                with open_input(number) as file:
                    self._file = file
                    try:
                        yield number, file
                    finally:
                        self._file = None
            self._finished_bytes += size_of(name) or 0

    def blocks(self, start: Place = START) -> Generator[Block, None, None]:
        """Read all lines from a place on, in blocks."""
        for number, file in self.opened(start, self.open_text):
            yield from self.blocks_of(number, file, start)

    def open_text(self, number: int) -> InputFile:
        """Open an input as text."""
        return InputFile(self.names[number], self.spans[number].stop)

    def blocks_of(
        self, number: int, file: InputFile, start: Place, find_end: FindEnd = end_of_lines
    ) -> Generator[Block, None, None]:
        """Read one input from a place on, in blocks of whole lines, or of what else `find_end` finds the end of."""
        size = min(self._block_bytes, FIRST_BLOCK_BYTES)
        offset = max(self.spans[number].start, start.offset if number == start.source else 0)
        file.skip(offset)
        if offset:
            self.skipped_bytes = self.read_bytes
        rest, ended = b"", False
        while not ended:
            block, rest = self._next_block(file, number, offset, rest, size, find_end)
            yield block
            offset, ended = block.end, block.is_last
            size = self._next_size(block)
            del block

    def _next_block(
        self, file: InputFile, number: int, offset: int, rest: bytes, size: int, find_end: FindEnd
    ) -> tuple[Block, bytes]:
        """Read on until there is a whole line; return the block, and what follows its last line."""
        buffer = bytearray(PADDING + len(rest) + size + PADDING)
        buffer[PADDING : PADDING + len(rest)] = rest
        filled, ended = PADDING + len(rest), False
        stop = find_end(buffer, PADDING, PADDING, filled)
        while not stop and not ended and filled - PADDING <= MAX_LINE_BYTES:
            if filled + PADDING == len(buffer):
                buffer += bytes(min(filled, MAX_LINE_BYTES))  # up to twice the size
            with memoryview(buffer) as view:
                n, ended = file.fill(view[filled:-PADDING])
            stop = find_end(buffer, PADDING, filled, filled + n)
            filled += n
        # Only the first line can be too long: a step reads no more than MAX_LINE_BYTES.
        first_line = (buffer.find(b"\n", PADDING, filled) + 1 or filled) - PADDING
        if first_line > MAX_LINE_BYTES or not (stop or ended):
            length, rest, ended = self._skip_line(file, buffer[PADDING:filled])
            del buffer[PADDING + MAX_LINE_BYTES + PADDING :]
            stop = PADDING + MAX_LINE_BYTES
            return Block(buffer, stop, number, offset, offset + length, ended and not rest, too_long=True), rest
        stop = filled if ended else stop
        if offset == 0 and buffer.startswith(_BYTE_ORDER_MARK, PADDING, stop):
            buffer[PADDING : PADDING + len(_BYTE_ORDER_MARK)] = b" " * len(_BYTE_ORDER_MARK)
        return Block(buffer, stop, number, offset, offset + stop - PADDING, ended), bytes(buffer[stop:filled])

    def _skip_line(self, file: InputFile, part: bytearray) -> tuple[int, bytes, bool]:
        """Read a line to its end; return its length, what follows it, and whether the input has ended."""
        before, ended = 0, False
        while (newline := part.find(b"\n")) < 0 and not ended:
            before += len(part)
            part = bytearray(self._block_bytes)
            with memoryview(part) as view:
                n, ended = file.fill(view)
            del part[n:]
        line_end = len(part) if newline < 0 else newline + 1
        return before + line_end, bytes(part[line_end:]), ended

    def _next_size(self, block: Block) -> int:
        """Choose the size of the next block, if its lines are as long as those of this one."""
        sample = min(block.stop, PADDING + _SAMPLE_BYTES)
        lines = block.buffer.count(b"\n", PADDING, sample)
        fitting = BLOCK_LINES * (sample - PADDING) // max(1, lines)
        return max(1, min(self._block_bytes, fitting))


def next_line_start(name: str, offset: int) -> int:
    """Return where the first line of a plain file begins, at a byte or after it; else the file's end."""
    with open_binary(name) as file:
        at = max(0, offset - 1)
        file.seek(at)
        while offset and (text := file.read(_SAMPLE_BYTES)):
            newline: int = text.find(b"\n")
            if newline >= 0:
                return at + newline + 1
            at += len(text)
    return at


def describe_inputs(names: Sequence[str]) -> list[dict[str, Any]]:
    """Describe inputs by name, size, and a checksum of both ends: what a model remembers of its data."""
    return [{"name": Path(name).name, "bytes": size_of(name), "crc32": _checksum(name)} for name in names]


def _checksum(name: str) -> int | None:
    size = size_of(name)
    if size is None:
        return None
    with open_binary(name) as file:
        first = file.read(_SAMPLE_BYTES)
        file.seek(max(0, size - _SAMPLE_BYTES))
        return zlib.crc32(file.read(_SAMPLE_BYTES), zlib.crc32(first))
