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
        bitmap = _bits(pa, ~missing)
    buffers = [bitmap, pa.py_buffer(np.ascontiguousarray(numbers))]
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), buffers)


def flags_for(pa: Any, flags: np.ndarray) -> Any:
    """Truth values for Arrow."""
    return pa.Array.from_buffers(pa.bool_(), len(flags), [None, _bits(pa, flags)])


def _bits(pa: Any, flags: np.ndarray) -> Any:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def strings_of(pa: Any, letters: np.ndarray, starts: np.ndarray) -> Any:
    """Texts for Arrow, without a copy: the letters of all, and, int32, where each begins, the first at 0."""
    buffers = [pa.py_buffer(np.ascontiguousarray(array)) for array in (starts, letters)]
    return pa.StringArray.from_buffers(len(starts) - 1, *buffers)


def lists_for(pa: Any, indptr: np.ndarray, entries: Any) -> Any:
    """Lists for Arrow, without a copy: where each begins, int32, and what is in them."""
    return pa.ListArray.from_arrays(array_of(pa, indptr), entries)


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
    return _flags(array, 0) if array.null_count else np.ones(len(array), bool)


def flags_of(array: Any) -> np.ndarray:
    """What is in an array of truth values."""
    return _flags(array, 1) if len(array) else np.empty(0, bool)


def _flags(array: Any, k: int) -> np.ndarray:
    """One of the buffers of an array, which has a bit for each entry."""
    bits = np.frombuffer(array.buffers()[k], np.uint8)
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


def has_room(buffer: Any, n: int) -> bool:
    """Whether there are so many bytes before and behind a buffer, of which nothing else is known."""
    if buffer is None:
        return False
    whole = buffer
    while whole.parent is not None:
        whole = whole.parent
    before = buffer.address - whole.address
    return n <= before <= whole.size - buffer.size - n  # type: ignore[no-any-return]


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
    elif column.type == "bool":
        yield flags_of(column)
    else:
        yield numbers_of(column)


def _fastest_crc32() -> Callable[[Any, int], int]:
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib.crc32
    faster: Callable[[Any, int], int] = isal_zlib.crc32
    return faster
