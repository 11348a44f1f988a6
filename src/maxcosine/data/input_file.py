"""One input: a file or a pipe, decompressed while it is read."""

from __future__ import annotations

import io
import os
import select
import stat
import sys
import zlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from maxcosine.data.errors import StreamError

STANDARD_INPUT = "-"
CHANGED = "the file has changed since then; start again when it is complete"

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
    with open_raw(name) as file:
        beginning: bytes = file.read(len(_ZSTD))
    return beginning.startswith((_GZIP, _ZSTD))


def open_raw(name: str) -> Any:
    """Open a file or standard input, unbuffered, without decompressing it."""
    if name == STANDARD_INPUT:
        if sys.stdin is None:
            raise StreamError("standard input is closed; name a file")
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)
    try:
        return open(name, "rb", buffering=0)
    except OSError as error:
        raise StreamError(
            f"{name}: {error.strerror or error}; check the name and the file's permissions"
        ) from None


class InputFile:
    """One input, without its compression, which its first bytes tell.

    Attributes
    ----------
    position : int
        Bytes that have been read, as they are on disk; 0 for a pipe.
    """

    def __init__(self, name: str, stop: int | None = None) -> None:
        self._title, self._stop, self.position = title_of(name), stop, 0
        self._raw = open_raw(name)
        status = os.fstat(self._raw.fileno())
        self._is_file = name != STANDARD_INPUT and stat.S_ISREG(status.st_mode)
        # A file that grows while it is read may be longer in the end, but not shorter.
        self._end = stop if stop is not None else status.st_size if self._is_file else 0
        self._text = self._decompressed()

    def __enter__(self) -> InputFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    def _decompressed(self) -> Any:
        beginning = self._beginning()
        if self._is_file:
            self._raw.seek(0)
            whole = self._raw
        else:
            whole = _Rejoined(beginning, self._raw)
        if beginning.startswith(_GZIP):
            return _Decompressed(whole, _gzip_decompressor, _GZIP_BYTES)
        if beginning == _ZSTD:
            if find_spec("zstandard") is None:
                raise StreamError(
                    f"{self._title}: zstd needs one more package: pip install 'maxcosine[stream]'"
                )
            return _Decompressed(whole, _zstd_decompressor, _ZSTD_BYTES)
        return whole

    def _beginning(self) -> bytes:
        """Read the first bytes, as far as they may be those of a compressed file."""
        beginning = b""
        while any(magic.startswith(beginning) and magic != beginning for magic in (_GZIP, _ZSTD)):
            try:
                more = self._raw.read(len(_ZSTD) - len(beginning))
            except OSError as error:
                raise StreamError(f"{self._title}: {error.strerror or error}; is this a file?") from None
            if not more:
                break
            beginning += more
        return beginning

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
            except Exception as error:  # each decompressor has errors of its own
                raise StreamError(
                    f"{self._title}: cannot be read to its end: {error}; it is cut short or damaged, "
                    "fetch it again"
                ) from None
            if not n:
                return filled, True
            filled += n
            if not self._is_file and not _is_ready(self._raw):
                break
        return filled, False

    def _readinto(self, buffer: memoryview) -> int:
        left = len(buffer) if self._stop is None else self._stop - self.position
        n: int = self._text.readinto(buffer[:left]) or 0
        if self._is_file:
            self.position = self._raw.tell()
            if not n and left and self.position < self._end:
                raise StreamError(f"{self._title}: ends before byte {self._end:,}; {CHANGED}")
        return n

    def skip(self, offset: int) -> None:
        """Continue at this byte of the decompressed text."""
        if self._text is self._raw:
            self.position = self._raw.seek(offset)
            return
        buffer = memoryview(bytearray(min(offset, _SKIP_BYTES)))
        while offset:
            n, ended = self.fill(buffer[:offset])
            offset -= n
            if ended and offset:
                raise StreamError(f"{self._title}: ends before the place to continue from; {CHANGED}")


def _is_ready(raw: Any) -> bool:
    """Return whether reading returns at once; False where the system cannot tell."""
    try:
        return bool(select.select([raw], [], [], 0)[0])
    except (OSError, ValueError):
        return False


class _Decompressed(io.RawIOBase):
    """A compressed file as text: one compressed part after another, as `cat a.gz b.gz` writes them.

    Unlike the readers of most libraries, it takes no more from a pipe than it needs, and it notices a part
    without an end. `new` makes the decompressor of a part.
    """

    def __init__(self, raw: Any, new: Callable[[], Any], step: int) -> None:
        self._raw, self._new, self._step = raw, new, step
        self._decompressor: Any = None
        self._compressed = b""
        self._text = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._text:
            compressed = self._compressed or self._raw.read(self._step)
            if not compressed:
                if self._decompressor is not None:
                    raise EOFError("it has no end")
                return 0
            if self._decompressor is None:
                compressed = compressed.lstrip(b"\0")  # tapes fill their last block with zeros
                self._decompressor = self._new() if compressed else None
            self._compressed = b""
            if self._decompressor is not None:
                self._text = memoryview(self._decompressor.decompress(compressed))
                if self._decompressor.eof:
                    self._compressed, self._decompressor = self._decompressor.unused_data, None
        n = min(len(buffer), len(self._text))
        buffer[:n], self._text = self._text[:n], self._text[n:]
        return n


def _gzip_decompressor() -> Any:
    with_header = 16 + zlib.MAX_WBITS
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib.decompressobj(with_header)
    return isal_zlib.decompressobj(with_header)


def _zstd_decompressor() -> Any:
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
