"""Read IDX files, the format of MNIST: arrays of unsigned bytes, plain or compressed by gzip.

An IDX file starts with two zero bytes, a type code, the number of dimensions, and the length of each
dimension as a big-endian uint32. The data follow.
"""

from __future__ import annotations

import gzip
import io
import math
import zlib
from pathlib import Path

import numpy as np

MAX_BYTES = 1 << 26
"""Upper limit for the size of a file; the largest of MNIST has 47 MB."""

GZIP_MAGIC = b"\x1f\x8b"
IDX_MAGIC = b"\0\0\x08"  # 0x08 is the type code of unsigned bytes


class BadFile(ValueError):
    """A file exists, but its content is wrong."""


def read_file(path: Path) -> bytes:
    """Return the content of a file, decompressed if it is gzip."""
    try:
        return decompress(path.read_bytes(), str(path))
    except OSError as error:
        raise BadFile(f"{path} cannot be read: {error.strerror}; give a readable file") from None


def decompress(raw: bytes, name: str) -> bytes:
    """Decompress gzip data, up to MAX_BYTES; return other data unchanged."""
    # The suffix of a name says nothing: browsers decompress files and keep their .gz.
    if not raw.startswith(GZIP_MAGIC):
        return raw
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
            return file.read(MAX_BYTES)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadFile(f"{name}: the gzip data are damaged ({error}); download the file again") from None


def parse_idx(content: bytes, name: str) -> np.ndarray:
    """Parse the content of an IDX file into a writable array of uint8."""
    if len(content) < 4 or not content.startswith(IDX_MAGIC):
        raise BadFile(
            f"{name} starts with {content[:4]!r}, an IDX file of unsigned bytes with {IDX_MAGIC!r}; "
            "download the file again"
        )
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise BadFile(f"{name} ends within its header, after {len(content)} bytes; download the file again")
    shape = tuple(np.frombuffer(content[4:start], ">u4").tolist())
    expected, found = math.prod(shape), len(content) - start
    if found != expected:
        raise BadFile(
            f"{name} has {found:,} bytes of data, but its header says {' x '.join(map(str, shape))} = "
            f"{expected:,}; download the file again"
        )
    return np.frombuffer(bytearray(content[start:]), np.uint8).reshape(shape)
