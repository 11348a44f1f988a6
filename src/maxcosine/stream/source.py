"""Bytes out of files: one or many, plain, gzip or zstd, or standard input; in blocks of whole lines."""

from __future__ import annotations

import glob
import io
import os
import select
import stat
import sys
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxcosine.record import Record
from maxcosine.stream import mapped
from maxcosine.stream.memory import Memory, own_pages
from maxcosine.stream.parsed import PADDING
from maxcosine.stream.scan import after_last_of, first_of

STANDARD_INPUT = "-"
BLOCK_BYTES = 4 << 20
MOST_LINES = 1 << 17
"""In a block, about: an example takes some memory however short it is."""
LONGEST_LINE = 16 << 20
LONG_LINE = 1 << 20
"""A line that is longer is a block of its own."""

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# Packed bytes at a time: in the worst case, each is 1 KB, or 32 KB, unpacked.
_GZIP_BYTES, _ZSTD_BYTES = 4096, 1024
_MARK = b"\xef\xbb\xbf"  # of the byte order, which some editors write at the beginning
_CHECKED_BYTES = 65536
_SCANNED_BYTES = 65536
_FIRST_BYTES = 1 << 18  # of all blocks the first: it tells how long lines are, and learning begins soon
_FEW_BYTES = 1 << 18  # rather read than mapped, at the end of a file; or read at a time
_BEGIN_ANEW = "it is not the file it was, begin anew when it is whole"


class StreamError(ValueError):
    """Input that cannot be read; says where, what was found, and what to do."""


class Place(NamedTuple):
    """Where in the inputs something begins."""

    source: int = 0
    """Which of the inputs."""
    offset: int = 0
    """Bytes of that input before it, unpacked; 0 in a cache."""
    line: int = 0
    """Lines of that input before it; examples of a cache."""
    bad: int = 0
    """Lines left out before it, of all inputs."""
    bad_bytes: int = 0
    """What these take in the file that they are written to."""


class Span(NamedTuple):
    """Whole lines of a plain file, by their bytes; by default, all of an input."""

    start: int = 0
    stop: int | None = None


class Block(Record, frozen=True):
    """Whole lines of one input, of which the last may lack its end; or one long line; or a piece of one that
    is too long."""

    text: np.ndarray
    """uint8, with PADDING zeros after the end; nothing once nobody needs it."""
    size: int
    source: int
    offset: int
    ends: bool
    """Whether the input ends with it."""
    alone: bool = False
    """Whether it is one line, and a long one."""
    too_long: bool = False
    """Whether it is a piece of a line that is too long."""
    begins: bool = True
    """Whether a line begins with it."""
    part: mapped.Part | None = None
    """What the text is, if it was not read but lies in the file."""


def expand(names: Sequence[str | os.PathLike[str]]) -> list[str]:
    """The inputs that these names stand for: files, globs, and ``-`` for standard input."""
    found: list[str] = []
    for name in [os.fspath(name) for name in names]:
        if name == STANDARD_INPUT or os.path.exists(name):
            found.append(name)
            continue
        matches = sorted(glob.glob(name, recursive=True))
        if not matches:
            raise StreamError(
                f"{name}: there is no such file; check the name, or quote a pattern such as 'day-*.gz'"
            )
        found += matches
    for name in found:
        if name != STANDARD_INPUT and os.path.isdir(name):
            raise StreamError(
                f"{name}: this is a folder; name files, for example {os.path.join(name, '*')!r}"
            )
    if not found:
        raise StreamError("there is no input; name files, or - for standard input")
    if found.count(STANDARD_INPUT) > 1:
        raise StreamError("standard input can be read once only; name - once")
    return found


class Source:
    """The bytes of one input after another."""

    def __init__(
        self,
        names: Sequence[str | os.PathLike[str]],
        block_bytes: int = BLOCK_BYTES,
        spans: Sequence[Span] | None = None,
    ) -> None:
        if not 1 <= block_bytes <= LONGEST_LINE // 2:
            raise ValueError(f"block_bytes is {block_bytes:,}; it is from 1 to {LONGEST_LINE // 2:,}")
        self.names = expand(names)
        self.spans = [Span()] * len(self.names) if spans is None else list(spans)
        """Of each input, the part that is read."""
        if len(self.spans) != len(self.names):
            raise ValueError(f"there are {len(self.spans)} spans for {len(self.names)} inputs")
        self.block_bytes = block_bytes
        self._wanted = min(block_bytes, _FIRST_BYTES)
        """Bytes that the next block is to have."""
        self.fitting = block_bytes
        """Bytes that it should not exceed: whoever parses blocks says so."""
        self.memory = Memory()
        """For blocks, and for what is found in them."""
        self._reader: Any = None
        self._lines_before: dict[int, int] = {}
        self._before = 0
        self.skipped_bytes = 0
        """Of these, what was read, or passed by, before the place to begin at."""

    @property
    def total_bytes(self) -> int | None:
        """The size of all inputs as they lie on disk; None if one has no size, such as a pipe."""
        found = [_size(name) for name in self.names]
        return None if None in found else sum(size or 0 for size in found)

    @property
    def read_bytes(self) -> int:
        """How far into that reading has come."""
        before, reader = self._before, self._reader  # others read meanwhile
        return before + (reader.position if reader is not None else 0)

    def title(self, number: int) -> str:
        """What an input is called in messages."""
        return "standard input" if self.names[number] == STANDARD_INPUT else self.names[number]

    def lines_before(self, number: int) -> int:
        """Lines of an input before the part that is read; counted once, when somebody asks."""
        if number not in self._lines_before:
            left, lines = self.spans[number].start, 0
            if left:
                with open(self.names[number], "rb") as file:
                    while left and (text := file.read(min(left, BLOCK_BYTES))):
                        lines += text.count(b"\n")
                        left -= len(text)
            self._lines_before[number] = lines
        return self._lines_before[number]

    def blocks(self, start: Place = Place()) -> Iterator[Block]:  # noqa: B008, it never changes
        """All lines from a place on, in blocks."""
        for number, reader in self.opened(start, self._text_reader):
            offset = start.offset if number == start.source else 0
            yield from self._blocks_of(number, reader, max(self.spans[number].start, offset))

    def _text_reader(self, number: int) -> _Reader:
        return _Reader(self.names[number], self.title(number), self.spans[number].stop)

    def opened(self, start: Place, reader_of: Callable[[int], Any]) -> Iterator[tuple[int, Any]]:
        """Each input from a place on, and what reads it: `reader_of` its number.

        A reader is a context manager, and its `position` is how many bytes of the file it has read.
        """
        self._before = 0
        for number, name in enumerate(self.names):
            if number < start.source:
                self.skipped_bytes += _size(name) or 0
            else:
                with reader_of(number) as reader:
                    self._reader = reader
                    try:
                        yield number, reader
                    finally:
                        self._reader = None
            self._before += _size(name) or 0

    def _blocks_of(self, number: int, reader: _Reader, offset: int) -> Iterator[Block]:
        reader.skip(offset)
        if offset:
            self.skipped_bytes = self.read_bytes
        offset = yield from self._mapped(number, reader, offset)
        yield from self._read(number, reader, offset)

    def _mapped(self, number: int, reader: _Reader, offset: int) -> Generator[Block, None, int]:
        """Blocks as they lie in the file, as far as that can be done; returns where they end."""
        while (part := reader.part(offset, self._wanted + PADDING)) is not None:
            size = after_last_of(part.bytes, b"\n", 0, len(part.bytes) - PADDING)
            if not size and self._wanted < self.block_bytes:
                self._wanted = self.block_bytes
                continue
            if not size:  # a long line: it has to be put together
                break
            part.end(size)
            self._look_at(part.bytes, size, offset)
            reader.skip(offset + size)
            for start, stop, alone in _cut(part.bytes, size):
                text = part.bytes[start:]
                yield Block(text, stop - start, number, offset + start, ends=False, alone=alone, part=part)
            offset += size
            del part, text  # before there is another one
        return offset

    def _read(self, number: int, reader: _Reader, offset: int) -> Iterator[Block]:
        """Blocks of what is read, up to the end."""
        text, kept = self.memory.empty(self._wanted + PADDING, np.uint8), 0
        scanned = 0  # bytes of a line that goes on
        long = lines_left = is_over = False
        while True:
            # Of a long line little at a time, so that not much is read of what follows it.
            wanted = min(_FEW_BYTES, self.block_bytes) if scanned >= LONG_LINE else self.block_bytes
            n = 0
            if not lines_left and not is_over:
                n, is_over = reader.fill(text.data[kept:-PADDING][:wanted])
            ends, filled, begins = is_over, kept + n, not long
            size = filled
            if scanned >= LONG_LINE:  # it is the last of its block, with nothing behind it
                size = first_of(text, b"\n", scanned, filled) + 1
                size = size if size <= filled else filled if ends else 0
            elif not ends:
                size = after_last_of(text, b"\n", scanned, filled)
                size = 0 if size == scanned else size
            long = long or filled > LONGEST_LINE
            if long:
                # Only the first line can be too long: two blocks are no longer than a line may be, and what
                # is kept of one is at most that, or a part of a line.
                first = first_of(text, b"\n", kept, filled)
                is_piece = not begins or min(first + 1, filled) > LONGEST_LINE
                long = is_piece and first == filled
                if is_piece:
                    size = min(first + 1, filled)
            else:
                is_piece = False
            if not size and not ends:
                kept = scanned = filled
                if kept + self.block_bytes + PADDING > len(text):
                    # Room up to where a line is too long.
                    longer = own_pages(LONGEST_LINE + 2 * self.block_bytes + PADDING, np.uint8)
                    longer[:kept] = text[:kept]
                    text = longer
                    del longer
                    self.memory.give_back()
                continue
            rest = text[size:filled].copy()
            text[size : size + PADDING] = 0
            self._look_at(text, size, offset)
            ends = ends and not len(rest)
            for start, stop, alone in [(0, size, False)] if is_piece else _cut(text, size):
                yield Block(
                    text[start:],
                    stop - start,
                    number,
                    offset + start,
                    ends=ends and stop == size,
                    alone=alone,
                    too_long=is_piece,
                    begins=begins,
                )
            if ends:
                return
            offset += size
            del text  # before there is another one
            kept = len(rest)
            lines_left = first_of(rest, b"\n", 0, kept) < kept  # behind a long line: they need not wait
            scanned = 0 if lines_left else kept
            text = self.memory.empty(kept + self._wanted + PADDING, np.uint8)
            text[:kept] = rest

    def _look_at(self, text: np.ndarray, size: int, offset: int) -> None:
        """Put blanks in the place of a mark of the byte order, and look how long lines are."""
        beginning = text[:size][:_SCANNED_BYTES].tobytes()
        if offset == 0 and beginning.startswith(_MARK):
            text[: len(_MARK)] = ord(" ")
        if lines := beginning.count(b"\n"):
            # The next one is as long as it may be, if its lines are as long as here.
            most = max(self.fitting, _FIRST_BYTES)
            self._wanted = min(self.block_bytes, most, MOST_LINES * len(beginning) // lines)

    def check(self, block: Block) -> None:
        """Refuse what was found in a block if the file did not stay as it was meanwhile."""
        if block.part is not None and not block.part.is_sound():
            raise StreamError(
                f"{self.title(block.source)}: was cut short while it was read, or its disk fails; "
                f"{_BEGIN_ANEW}"
            )


class _Reader:
    """One input, without its compression, which is known by its first bytes."""

    def __init__(self, name: str, title: str, stop: int | None = None) -> None:
        self._title, self._stop, self._position = title, stop, 0
        self._raw = _opened(name)
        found = os.fstat(self._raw.fileno())
        self._regular = name != STANDARD_INPUT and stat.S_ISREG(found.st_mode)
        self._size = found.st_size if self._regular else 0
        self._file = self._unpacked()

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    @property
    def position(self) -> int:
        """Bytes read, as they lie on disk; 0 if they do not."""
        if self._regular:
            with suppress(ValueError):  # it is closed: as it was last
                self._position = int(self._raw.tell())
        return self._position

    def _unpacked(self) -> Any:
        beginning = b""
        while any(magic.startswith(beginning) and magic != beginning for magic in (_GZIP, _ZSTD)):
            more = self._read(len(_ZSTD) - len(beginning))
            if not more:
                break
            beginning += more
        if self._regular:
            self._raw.seek(0)
            whole = self._raw
        else:
            whole = _Rejoined(beginning, self._raw)
        if beginning.startswith(_GZIP):
            return _Unpacked(whole, _gzip, _GZIP_BYTES)
        if beginning == _ZSTD:
            if find_spec("zstandard") is None:
                raise StreamError(
                    f"{self._title}: zstd needs one more package: pip install 'maxcosine[stream]'"
                )
            return _Unpacked(whole, _zstd, _ZSTD_BYTES)
        return whole

    def _read(self, n: int) -> bytes:
        try:
            return self._raw.read(n) or b""
        except OSError as error:
            raise StreamError(f"{self._title}: {error.strerror or error}; is this a file?") from None

    def fill(self, buffer: memoryview) -> tuple[int, bool]:
        """Read until the buffer is full or the input ends; of a pipe, only what has come.

        Returns how many bytes there were, and whether the input ends.
        """
        filled = 0
        while filled < len(buffer):
            try:
                n = self._readinto(buffer[filled:])
            except (MemoryError, StreamError):
                raise
            except Exception as error:  # each kind of compression has errors of its own
                raise StreamError(
                    f"{self._title}: cannot be read to its end: {error}; it is cut short or damaged, "
                    "fetch it anew"
                ) from None
            if not n:
                return filled, True
            filled += n
            if not self._regular and not _has_more(self._raw):
                break
        return filled, False

    def _readinto(self, buffer: memoryview) -> int:
        """Read what there is, at most up to where reading has to stop."""
        left = len(buffer) if self._stop is None else self._stop - self.position
        n: int = self._file.readinto(buffer[:left]) or 0
        if not n and left and self.position < self._end:
            raise StreamError(f"{self._title}: ends before byte {self._end:,}; {_BEGIN_ANEW}")
        return n

    @property
    def _end(self) -> int:
        """Where reading ends, or later, if a file grows meanwhile."""
        return self._size if self._stop is None else self._stop

    def part(self, start: int, most: int) -> mapped.Part | None:
        """Up to so many bytes of a plain file from one on, without a copy; None if they cannot be had like
        that, or are few."""
        left = self._end - start
        if (
            not mapped.POSSIBLE
            or not self._regular
            or self._file is not self._raw
            or left < min(most, _FEW_BYTES)
        ):
            return None
        try:
            return mapped.Part(self._raw, start, min(most, left))
        except (OSError, ValueError):  # not all systems of files can do this; or it is shorter now
            return None

    def skip(self, offset: int) -> None:
        """Go on to so many bytes from the beginning, unpacked."""
        if self._file is self._raw:
            self._raw.seek(offset)
            return
        buffer = memoryview(bytearray(min(offset, BLOCK_BYTES)))
        while offset:
            n, ends = self.fill(buffer[: min(offset, len(buffer))])
            offset -= n
            if ends and offset:
                raise StreamError(f"{self._title}: ends before the place to go on from; {_BEGIN_ANEW}")


def _opened(name: str) -> Any:
    """The file as it is on disk, or standard input."""
    if name == STANDARD_INPUT:
        if sys.stdin is None:
            raise StreamError("standard input is closed; name a file")
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)
    try:
        return open(name, "rb", buffering=0)
    except OSError as error:
        raise StreamError(f"{name}: {error.strerror or error}; check the name and who may read it") from None


class _Unpacked(io.RawIOBase):
    """An archive without its compression, part after part, as many as there are.

    Unlike the readers of most libraries, it takes from a pipe only what it needs, and notices a part without
    an end. `new` makes what unpacks a part.
    """

    def __init__(self, raw: Any, new: Callable[[], Any], packed_bytes: int) -> None:
        self._raw, self._new, self._packed_bytes = raw, new, packed_bytes
        self._part: Any = None
        self._packed = b""
        self._unpacked = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._unpacked:
            packed = self._packed or self._raw.read(self._packed_bytes)
            if not packed:
                if self._part is not None:
                    raise EOFError("it has no end")
                return 0
            if self._part is None:
                packed = packed.lstrip(b"\0")  # tapes fill up the last block
                self._part = self._new() if packed else None
            self._packed = b""
            if self._part is not None:
                self._unpacked = memoryview(self._part.decompress(packed))
                if self._part.eof:
                    self._packed, self._part = self._part.unused_data, None
        n = min(len(buffer), len(self._unpacked))
        buffer[:n], self._unpacked = self._unpacked[:n], self._unpacked[n:]
        return n


def _gzip() -> Any:
    with_header = 16 + zlib.MAX_WBITS
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib.decompressobj(with_header)
    return isal_zlib.decompressobj(with_header)


def _zstd() -> Any:
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj()


class _Rejoined(io.RawIOBase):
    """A pipe whose first bytes have been read already."""

    def __init__(self, beginning: bytes, rest: Any) -> None:
        self._beginning, self._rest = beginning, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._beginning:
            n = min(len(buffer), len(self._beginning))
            buffer[:n], self._beginning = self._beginning[:n], self._beginning[n:]
            return n
        return self._rest.readinto(buffer) or 0


def _has_more(raw: Any) -> bool:
    """Whether reading would not wait."""
    poll = select.poll()
    poll.register(raw.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _cut(text: np.ndarray, size: int) -> Iterator[tuple[int, int, bool]]:
    """Whole lines as blocks: where each begins and ends, and whether it is a long line; an empty one if there
    is nothing.

    A long line has no end in one or more steps of half its length: most steps have one soon.
    """
    start, step = 0, LONG_LINE // 2
    for begin in range(0, size - step + 1, step):
        if begin < start or first_of(text, b"\n", begin, begin + step) < begin + step:
            continue
        first = after_last_of(text, b"\n", start, begin)
        stop = min(first_of(text, b"\n", begin + step, size) + 1, size)
        if stop - first > LONG_LINE:
            if first > start:
                yield start, first, False
            yield first, stop, True
            start = stop
    if start < size or not size:
        yield start, size, False


def _size(name: str) -> int | None:
    return os.path.getsize(name) if name != STANDARD_INPUT and os.path.isfile(name) else None


def is_packed(name: str) -> bool:
    """Whether a file is compressed: then it can only be read from its beginning."""
    with _opened(name) as file:
        beginning: bytes = file.read(len(_ZSTD))
    return beginning.startswith(_GZIP) or beginning == _ZSTD


def line_start(name: str, offset: int) -> int:
    """Where the first line of a plain file begins, at a byte or behind it; else, where the file ends."""
    with _opened(name) as file:
        at = max(0, offset - 1)
        file.seek(at)
        while offset and (text := file.read(_SCANNED_BYTES)):
            end: int = text.find(b"\n")
            if end >= 0:
                return at + end + 1
            at += len(text)
    return at


def sizes(names: Sequence[str]) -> dict[str, int | None]:
    """The inputs by their file names, with their sizes."""
    return {Path(name).name: _size(name) for name in names}


def described(names: Sequence[str]) -> list[dict[str, Any]]:
    """The inputs by name, size, and a checksum of both ends: what a model remembers of its data."""
    return [{"name": Path(name).name, "bytes": _size(name), "crc32": _checksum(name)} for name in names]


def _checksum(name: str) -> int | None:
    size = _size(name)
    if size is None:
        return None
    try:
        with open(name, "rb") as file:
            first = file.read(_CHECKED_BYTES)
            file.seek(max(0, size - _CHECKED_BYTES))
            return zlib.crc32(file.read(_CHECKED_BYTES), zlib.crc32(first))
    except OSError as error:
        raise StreamError(f"{name}: {error.strerror or error}; check the name and who may read it") from None
