"""A file as pyarrow reads it, into memory that is used again."""

from __future__ import annotations

import numpy as np

from maxcosine.stream.memory import Memory


class InputFile:
    """What pyarrow asks of a file. What it reads lies in one array, and pyarrow refers to that.

    The memory of its own files comes from pools, which have some for each thread, and keep it.
    """

    closed = False

    def __init__(self, path: str) -> None:
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115, it is closed by `close`
        self._memory = Memory()

    def read(self, size: int) -> memoryview:
        """So many bytes, or those that are left."""
        array, filled = self._memory.empty(size, np.uint8), 0
        while n := self._file.readinto(array.data[filled:]):
            filled += n
        return array.data[:filled]

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()
        self.closed = True
