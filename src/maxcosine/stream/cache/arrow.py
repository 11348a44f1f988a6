"""Arrays of Arrow and of NumPy, without copies."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from maxcosine.stream.source import StreamError


def pyarrow_for(path: Any) -> Any:
    """pyarrow, which few need."""
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError:
        raise StreamError(
            f"{os.fspath(path)}: caches need one more package: pip install 'maxcosine[stream]'"
        ) from None
    return pyarrow


# To Arrow


def array_of(pa: Any, numbers: np.ndarray, missing: np.ndarray | None = None) -> Any:
    """Numbers for Arrow, without a copy; `pa.array` would import pandas, if it is there."""
    bitmap = None
    if missing is not None and missing.any():
        bitmap = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    buffers = [bitmap, pa.py_buffer(np.ascontiguousarray(numbers))]
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), buffers)


def strings_of(pa: Any, letters: np.ndarray, starts: np.ndarray) -> Any:
    """Texts for Arrow: the letters of all, and where each begins."""
    offsets = array_of(pa, starts - starts[0]).cast(pa.int32())
    letters = np.ascontiguousarray(letters[starts[0] : starts[-1]])
    return pa.StringArray.from_buffers(len(starts) - 1, offsets.buffers()[1], pa.py_buffer(letters))


# From Arrow


def numbers_of(array: Any) -> np.ndarray:
    """What is in an array of numbers; its own `to_numpy` would import pandas, if it is there."""
    dtype = np.dtype(array.type.to_pandas_dtype())
    if not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)


def own_numbers(array: Any) -> np.ndarray:
    """The numbers of an array just read, without a copy if they lie as they should.

    Rows may be sorted in place: the memory of a batch just read is nobody else's, whatever pyarrow says.
    """
    numbers = numbers_of(array)
    return numbers if numbers.flags.writeable else np.asarray(_Writable(numbers))


class _Writable:
    """The memory of an array, without the word that it is not to be written to."""

    def __init__(self, array: np.ndarray) -> None:
        self.owner = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def present(array: Any) -> np.ndarray:
    """Of each entry of an array, whether it is there."""
    if not array.null_count:
        return np.ones(len(array), bool)
    bits = np.frombuffer(array.buffers()[0], np.uint8)
    return np.unpackbits(bits, bitorder="little")[array.offset :][: len(array)].astype(bool)


def lists_of(column: Any) -> tuple[np.ndarray, Any]:
    """Where lists begin, and what is in them."""
    offsets = numbers_of(column.offsets)
    return offsets.astype(np.int64) - int(offsets[0]), column.values[offsets[0] : offsets[-1]]


def encoded(column: Any) -> Any:
    """Texts as positions among the different ones, in their order."""
    try:
        # What `dictionary_encode` calls, once pyarrow has spent 50 ms on writing its documentation.
        from pyarrow._compute import call_function
    except ImportError:
        return column.dictionary_encode()
    return call_function("dictionary_encode", [column])


def texts_of(texts: Any) -> tuple[np.ndarray, np.ndarray]:
    """Where each text begins in memory, and the last ends; and the letters of all."""
    offsets = offsets_of(texts)
    letters = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    return offsets, letters[offsets[0] : offsets[-1]]


def offsets_of(texts: Any) -> np.ndarray:
    """Where each text begins in memory, and the last ends."""
    if not len(texts):
        return np.zeros(1, np.int32)
    return np.frombuffer(texts.buffers()[1], np.int32, len(texts) + 1, 4 * texts.offset)


# Checksums


def checksum_of(batch: Any, beginning: bytes, number: int, is_last: bool) -> int:
    """The CRC-32 of what a file says of itself, of a batch's number, of whether it is the last, and of all
    that is in it; so it is noticed, too, if batches are missing or change places."""
    crc32 = _fastest_crc32()
    checksum = crc32(beginning + f" {number} {is_last}".encode(), 0)
    for column in batch.columns:
        for part in _parts(column):
            checksum = crc32(np.ascontiguousarray(part), checksum)
    return checksum


def _parts(column: Any) -> Iterator[np.ndarray]:
    """All that is in a column, as it lies in any memory."""
    if hasattr(column, "offsets"):
        offsets = numbers_of(column.offsets)
        yield offsets - offsets[0]
        yield from _parts(column.values[offsets[0] : offsets[-1]])
    elif column.type == "string":
        offsets, letters = texts_of(column)
        yield present(column)
        yield offsets - offsets[0]
        yield letters
    else:
        yield numbers_of(column)


def _fastest_crc32() -> Callable[[Any, int], int]:
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib.crc32
    faster: Callable[[Any, int], int] = isal_zlib.crc32
    return faster
