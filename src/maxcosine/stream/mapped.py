"""Parts of files as the system has them in memory: nothing is copied.

A page that is not there any more, because the file was cut short meanwhile or its disk fails, would end a
process that looks at it, by the signal SIGBUS. Here it becomes a page of zeros, and the part it lies in is
then known not to be sound: an error that can be told.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import sys
import threading
import weakref
from typing import Any

import numpy as np

# Of these processors it is known below where Linux says which address was looked at.
POSSIBLE = (
    sys.platform == "linux" and os.uname().machine in ("x86_64", "aarch64") and sys.maxsize == 2**63 - 1
)

# Of Linux, where words have 64 bits.
_MAP_FIXED = 16
_SI_CODE, _SI_ADDR, _SA_SIGINFO = 8, 16, 4

_READ_AND_WRITE = mmap.PROT_READ | mmap.PROT_WRITE if POSSIBLE else 0
_ZEROS_HERE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED if POSSIBLE else 0

_libc: Any = ctypes.CDLL(None) if POSSIBLE else None
if POSSIBLE:
    _libc.mmap.argtypes = (
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int),
        *(ctypes.c_int, ctypes.c_int, ctypes.c_long),
    )
    _libc.mmap.restype = ctypes.c_void_p


class Part:
    """Some bytes of a file, for as long as this object is kept. Writing to them leaves the file as it is."""

    def __init__(self, file: Any, start: int, size: int) -> None:
        _stand_guard()
        before = start % mmap.ALLOCATIONGRANULARITY
        self._pages = mmap.mmap(
            file.fileno(), before + size, mmap.MAP_PRIVATE, _READ_AND_WRITE, offset=start - before
        )
        pages = np.frombuffer(self._pages, np.uint8)
        self.bytes = pages[before:]
        self._first, self._stop = pages.ctypes.data, pages.ctypes.data + len(pages)
        self._needs = start + size
        self._lost = False
        with _lock:
            for first in [first for first, part in _parts.items() if part() is None]:
                del _parts[first]
            _parts[self._first] = weakref.ref(self)

    def end(self, size: int) -> None:
        """Let the file go behind so many bytes: zeros follow, whatever becomes of it.

        To write zeros would not do. A file that is cut short takes also what was written to its pages.
        """
        stop = self.bytes.ctypes.data + size
        here = stop % mmap.PAGESIZE
        last = self.bytes[max(0, size - here) : size].copy()
        self._put_zeros(stop - here)
        self.bytes[size - len(last) : size] = last

    def is_sound(self) -> bool:
        """Whether the file has these bytes, and all that were looked at could be had."""
        return not self._lost and self._pages.size() >= self._needs

    def lose(self, address: int) -> bool:
        """Put zeros in the place of a page and of all behind it; False if the address is not in this part."""
        if not self._first <= address < self._stop:
            return False
        self._lost = True
        self._put_zeros(address - address % mmap.PAGESIZE)
        return True

    def _put_zeros(self, page: int) -> None:
        _libc.mmap(page, self._stop - page, _READ_AND_WRITE, _ZEROS_HERE, -1, 0)


# Without callbacks, in which Ctrl-C would be lost: those that are gone are thrown out by the next one.
_parts: dict[int, weakref.ref[Part]] = {}


# The guard: a handler of SIGBUS. It runs in the thread that looked at the page, which goes on afterwards as
# if nothing had happened. Python's own handlers run later, when that thread would have to be on already.


class _Action(ctypes.Structure):
    """The C library's `struct sigaction`."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ulong * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


def _on_lost_page(number: int, info: int, context: int) -> None:
    global _standing
    sent = ctypes.c_int.from_address(info + _SI_CODE).value <= 0
    address = ctypes.c_size_t.from_address(info + _SI_ADDR).value
    if not sent and any(part.lose(address) for ref in list(_parts.values()) if (part := ref()) is not None):
        return
    # It is none of ours: it comes once more, and is dealt with as if we were not here.
    _libc.sigaction(signal.SIGBUS, ctypes.byref(_before), None)
    _standing = False
    if sent:
        _libc["raise"](number)


_handler = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(_on_lost_page)
_before = _Action()
_standing = False
_lock = threading.Lock()


def _stand_guard() -> None:
    global _standing
    with _lock:
        if not _standing:
            action = _Action(ctypes.cast(_handler, ctypes.c_void_p), flags=_SA_SIGINFO)
            _libc.sigaction(signal.SIGBUS, ctypes.byref(action), ctypes.byref(_before))
            _standing = True
