"""One input: a file or a pipe, decompressed while it is read."""

from __future__ import annotations

import io
import os
import select
import stat
import sys
import zlib
from collections.abc import Callable
from typing import Any

from maxcosine.data.options import StreamError

STANDARD_INPUT = "-"
CHANGED = "the file has changed since then; start again when it is complete"

ARROW_MAGIC, PARQUET_MAGIC = b"ARROW1", b"PAR1"
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_GZIP_BYTES, _ZSTD_BYTES = 1 << 14, 1 << 10
"""Compressed bytes per step: a byte of gzip holds up to 1 KB of text, a byte of zstd up to 32 KB."""
_SKIP_BYTES = 1 << 20


def title_of(name: str) -> str:
    """Return what messages call an input."""
    return "standard input" if name == STANDARD_INPUT else name


def size_of(name: str) -> int | None:
    """Return the size of a file; None for a pipe."""
    return os.path.getsize(name) if name != STANDARD_INPUT and os.path.isfile(name) else None


def is_compressed(name: str) -> bool:
    """Return whether a file is compressed: then it can only be read from its beginning."""
    with open_binary(name) as file:
        return file.read(len(_ZSTD)).startswith((_GZIP, _ZSTD))


def is_table_file(name: str) -> bool:
    """Return whether an input is an Arrow IPC or Parquet file, by its first bytes."""
    if name == STANDARD_INPUT or not os.path.isfile(name):
        return False
    try:
        with open(name, "rb") as file:
            return file.read(len(ARROW_MAGIC)).startswith((ARROW_MAGIC, PARQUET_MAGIC))
    except OSError:  # the reader will say why
        return False


def open_binary(name: str) -> io.BufferedReader:
    """Open a file or standard input, without decompressing it."""
    if name == STANDARD_INPUT:
        if sys.stdin is None:
            raise StreamError("standard input is closed; name a file")
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    try:
        return open(name, "rb")
    except OSError as error:
        raise StreamError(f"{name}: {error.strerror or error}; check the name and the file's permissions") from None


class InputFile:
    """One input, without its compression, which its first bytes tell.

    `position` counts the bytes that have been read from disk; it stays 0 for a pipe.
    """

    def __init__(self, name: str, stop: int | None = None) -> None:
        self._title, self._stop, self.position = title_of(name), stop, 0
        self._file = open_binary(name)
        status = os.fstat(self._file.fileno())
        self._is_regular = name != STANDARD_INPUT and stat.S_ISREG(status.st_mode)
        # A file that grows while it is read may be longer in the end, but not shorter.
        self._end = stop if stop is not None else status.st_size if self._is_regular else 0
        self._text = self._decompressed()

    def __enter__(self) -> InputFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _decompressed(self) -> io.BufferedReader | _Decompressed:
        try:
            beginning = self._file.peek(len(_ZSTD))
        except OSError as error:
            raise StreamError(f"{self._title}: {error.strerror or error}; is this a file?") from None
        if beginning.startswith(_GZIP):
            return _Decompressed(self._file, _gzip_decompressor, _GZIP_BYTES)
        if not beginning.startswith(_ZSTD):
            return self._file
        try:
            import zstandard
        except ImportError:
            message = f"{self._title}: zstd needs one more package: pip install 'maxcosine[stream]'"
            raise StreamError(message) from None
        return _Decompressed(self._file, lambda: zstandard.ZstdDecompressor().decompressobj(), _ZSTD_BYTES)

    def fill(self, buffer: memoryview) -> tuple[int, bool]:
        """Read until the buffer is full or the input ends; from a pipe, read what has arrived.

        Returns the number of bytes, and whether the input ends there.
        """
        filled = 0
        while filled < len(buffer):
            try:
                n = self._readinto(buffer[filled:])
            except (MemoryError, StreamError):
                raise
            except Exception as error:  # each decompressor raises other errors
                raise StreamError(
                    f"{self._title}: cannot be read to its end: {error}; it is cut short or damaged, fetch it again"
                ) from None
            if not n:
                return filled, True
            filled += n
            if not self._is_regular and not _is_ready(self._file):
                break
        return filled, False

    def _readinto(self, buffer: memoryview) -> int:
        left = len(buffer) if self._stop is None else min(len(buffer), self._stop - self.position)
        if self._is_regular and self._text is self._file:
            n = self._file.readinto(buffer[:left])
        else:
            text = self._text.read1(left)
            n = len(text)
            buffer[:n] = text
        if self._is_regular:
            self.position = self._file.tell()
            if not n and left and self.position < self._end:
                raise StreamError(f"{self._title}: ends before byte {self._end:,}; {CHANGED}")
        return n

    def skip(self, offset: int) -> None:
        """Continue at this byte of the decompressed text."""
        if self._text is self._file:
            if offset:
                self.position = self._file.seek(offset)
            return
        buffer = memoryview(bytearray(min(offset, _SKIP_BYTES)))
        while offset:
            n, ended = self.fill(buffer[:offset])
            offset -= n
            if ended and offset:
                raise StreamError(f"{self._title}: ends before the place to continue from; {CHANGED}")


def _is_ready(file: io.BufferedReader) -> bool:
    """Return whether reading returns at once; False where the system cannot tell."""
    try:
        return bool(select.select([file], [], [], 0)[0])
    except (OSError, ValueError):
        return False


class _Decompressed:
    """A compressed file as text: one compressed part after another, as `cat a.gz b.gz` writes them.

    Unlike the readers of most libraries, it takes no more from a pipe than it needs, and it notices a part
    without an end. `new` makes the decompressor of a part.
    """

    def __init__(self, file: io.BufferedReader, new: Callable[[], Any], step: int) -> None:
        self._file, self._new, self._step = file, new, step
        self._decompressor: Any = None
        self._compressed = b""
        self._text = memoryview(b"")

    def read1(self, size: int) -> memoryview:
        """Return some text, at most this many bytes; nothing at the end."""
        while not self._text:
            compressed = self._compressed or self._file.read1(self._step)
            if not compressed:
                if self._decompressor is not None:
                    raise EOFError("it has no end")
                return self._text
            if self._decompressor is None:
                compressed = compressed.lstrip(b"\0")  # tapes fill their last block with zeros
                self._decompressor = self._new() if compressed else None
            self._compressed = b""
            if self._decompressor is not None:
                self._text = memoryview(self._decompressor.decompress(compressed))
                if self._decompressor.eof:
                    self._compressed, self._decompressor = self._decompressor.unused_data, None
        text, self._text = self._text[:size], self._text[size:]
        return text


def _gzip_decompressor() -> Any:
    with_header = 16 + zlib.MAX_WBITS
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib.decompressobj(with_header)
    return isal_zlib.decompressobj(with_header)
