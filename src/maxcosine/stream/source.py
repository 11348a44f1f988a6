"""Bytes out of files: one or many, plain, gzip or zstd, or standard input; in blocks of whole lines."""

from __future__ import annotations

import glob
import gzip
import io
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from maxcosine.stream.parsed import PADDING

STANDARD_INPUT = "-"
BLOCK_BYTES = 2 << 20
LONGEST_LINE = 16 << 20

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class StreamError(ValueError):
    """Input that cannot be read; says where, what was found, and what to do."""


@dataclass(frozen=True)
class Place:
    """Where in the inputs something begins."""

    source: int = 0
    """Which of the inputs."""
    offset: int = 0
    """Bytes of that input before it, unpacked."""
    line: int = 0
    """Lines of that input before it."""


@dataclass(frozen=True)
class Block:
    """Whole lines of one input; the last one may lack its end."""

    text: np.ndarray
    """uint8, with PADDING zeros after the end."""
    size: int
    source: int
    offset: int
    ends: bool
    """Whether the input ends with it."""


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

    def __init__(self, names: Sequence[str | os.PathLike[str]], block_bytes: int = BLOCK_BYTES) -> None:
        self.names = expand(names)
        self.block_bytes = block_bytes
        self._raw: IO[bytes] | None = None
        self._before = 0

    @property
    def total_bytes(self) -> int | None:
        """The size of all inputs as they lie on disk; None if one has no size, such as a pipe."""
        total = 0
        for name in self.names:
            if name == STANDARD_INPUT or not os.path.isfile(name):
                return None
            total += os.path.getsize(name)
        return total

    @property
    def read_bytes(self) -> int:
        """How much of that has been read."""
        here = self._raw.tell() if self._raw is not None and self._raw.seekable() else 0
        return self._before + here

    def title(self, number: int) -> str:
        """What an input is called in messages."""
        return "standard input" if self.names[number] == STANDARD_INPUT else self.names[number]

    def blocks(self, start: Place = Place()) -> Iterator[Block]:  # noqa: B008, it never changes
        """All lines from a place on, in blocks."""
        for number in range(start.source, len(self.names)):
            name = self.names[number]
            offset = start.offset if number == start.source else 0
            with _opened(name) as raw:
                self._raw = raw if raw.seekable() else None
                yield from self._blocks_of(number, _unpacked(raw, self.title(number)), offset)
            self._raw = None
            if name != STANDARD_INPUT and os.path.isfile(name):
                self._before += os.path.getsize(name)

    def _blocks_of(self, number: int, file: Any, offset: int) -> Iterator[Block]:
        # Who feeds a pipe may wait for answers: what has come is given away at once.
        patient = self.names[number] != STANDARD_INPUT and os.path.isfile(self.names[number])
        _skip(file, offset, self.title(number))
        kept = np.empty(0, np.uint8)
        while True:
            text = np.empty(len(kept) + self.block_bytes + PADDING, np.uint8)
            text[: len(kept)] = kept
            room = memoryview(text.data)[len(kept) : -PADDING]
            n = _fill(file, room, self.title(number), patient=patient)
            filled = len(kept) + n
            ends = n == 0 or (patient and n < len(room))
            whole = _last_line_end(text, filled)
            if filled - whole > LONGEST_LINE:
                raise StreamError(
                    f"{self.title(number)}: the line that begins at byte {offset + whole:,} is longer than "
                    f"{LONGEST_LINE >> 20} MB; is this text, and do its lines end?"
                )
            size = filled if ends else whole
            if size == 0 and not ends:
                kept = text[:filled]
                continue
            kept = text[size:filled].copy()
            text[size : size + PADDING] = 0
            if size or ends:
                yield Block(text, size, number, offset, ends)
            offset += size
            if ends:
                return


def _opened(name: str) -> Any:
    """The file as it is on disk, or standard input."""
    if name == STANDARD_INPUT:
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)
    try:
        return open(name, "rb", buffering=0)
    except OSError as error:
        raise StreamError(f"{name}: {error.strerror or error}; check the name and who may read it") from None


def _unpacked(raw: Any, title: str) -> Any:
    """The file without its compression, which is known by its first bytes."""
    beginning = raw.read(4) or b""
    if raw.seekable():
        raw.seek(0)
        whole = raw
    else:
        whole = _Rejoined(beginning, raw)
    if beginning[:2] == _GZIP:
        return _gzip(whole)
    if beginning == _ZSTD:
        try:
            import zstandard
        except ImportError:
            raise StreamError(
                f"{title}: zstd needs one more package: pip install 'maxcosine[stream]'"
            ) from None
        return zstandard.ZstdDecompressor().stream_reader(whole, read_across_frames=True)
    return whole


def _gzip(raw: Any) -> Any:
    try:
        from isal import igzip
    except ImportError:
        return gzip.GzipFile(fileobj=raw, mode="rb")
    unpacked: Any = igzip.IGzipFile
    return unpacked(fileobj=raw, mode="rb")


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
        return int(self._rest.readinto(buffer) or 0)


def _fill(file: Any, buffer: memoryview, title: str, *, patient: bool = True) -> int:
    """Read until the buffer is full or the file ends; or, not patient, what there is."""
    filled = 0
    while filled < len(buffer):
        try:
            n = file.readinto(buffer[filled:])
        except Exception as error:  # each kind of compression has errors of its own
            if isinstance(error, MemoryError | KeyboardInterrupt):
                raise
            raise StreamError(
                f"{title}: cannot be read to its end: {error}; it is cut short or damaged, fetch it anew"
            ) from None
        filled += n or 0
        if not n or not patient:
            break
    return filled


def _skip(file: Any, offset: int, title: str) -> None:
    """Go on to so many bytes from the beginning, unpacked."""
    if offset and isinstance(file, io.FileIO) and file.seekable():
        file.seek(offset)
        return
    buffer = memoryview(bytearray(min(offset, BLOCK_BYTES) or 1))
    while offset:
        n = _fill(file, buffer[: min(offset, len(buffer))], title)
        if n == 0:
            raise StreamError(f"{title}: ends before the place to go on from; it is not the file it was")
        offset -= n


def _last_line_end(text: np.ndarray, filled: int) -> int:
    """Where the last whole line ends; 0 if none does."""
    stop = filled
    while stop > 0:
        start = max(0, stop - 65536)
        at = text[start:stop].tobytes().rfind(b"\n")
        if at >= 0:
            return start + at + 1
        stop = start
    return 0


def sizes(names: Sequence[str]) -> dict[str, int | None]:
    """The inputs by their file names, with their sizes: what a model remembers of its data."""
    return {
        Path(name).name: os.path.getsize(name) if name != STANDARD_INPUT and os.path.isfile(name) else None
        for name in names
    }
