"""The exact feature index: 64-bit ids, or names, to slots, for a feature space not known in advance.

It grows with the features seen and never with the largest id. See `FeatureIndex.nbytes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from maxcosine.index.kernels import (
    BAD_KEY,
    EMPTY,
    FINISHED,
    FULL,
    FULLEST,
    Table,
    map_dict,
    map_rows,
    rebuild,
)
from maxcosine.index.native import CURSOR_LENGTH

SMALLEST_TABLE = 64
# Arrays by slot grow by this factor, in place: amortised, and little is wasted.
GROWTH = 1.125
MOST_FEATURES = 2**31 - 1

KINDS = ("ids", "names")


class FeatureIndex:
    """Slots 0, 1, 2, ... for features in the order in which they come.

    `kind` is "ids" (whole numbers from 0 to 2^64 - 1) or "names" (str). Memory: for ids at most 21 bytes
    a feature; for names at most 25 bytes and 1.125 times their letters, in UTF-8.
    """

    def __init__(self, kind: str) -> None:
        if kind not in KINDS:
            raise ValueError(f"an index is of ids or of names, not of {kind!r}")
        self.kind = kind
        self._count = 0
        named = kind == "names"
        self._table = Table(
            places=np.full(SMALLEST_TABLE, EMPTY, np.int32),
            ids=np.zeros(0 if named else SMALLEST_TABLE, np.uint64),
            hashes=np.zeros(SMALLEST_TABLE if named else 0, np.uint32),
            stops=np.zeros(SMALLEST_TABLE if named else 0, np.int64),
            letters=np.zeros(8 * SMALLEST_TABLE if named else 0, np.uint8),
        )

    @classmethod
    def of(cls, keys: Iterable[Any], kind: str) -> FeatureIndex:
        """An index in which the k-th of these different keys has slot k."""
        index = cls(kind)
        index.slots_of(keys)
        return index

    def slots_of(self, keys: Iterable[Any]) -> np.ndarray:
        """The slots of these different keys; those that are new get one."""
        given = list(keys) if self.named else np.asarray(keys, np.uint64)
        _, slots, _ = self.map_rows(np.array([0, len(given)]), given, np.ones(len(given)), grow=True)
        return slots.astype(np.int64)

    def __len__(self) -> int:
        return self._count

    @property
    def named(self) -> bool:
        return self.kind == "names"

    @property
    def nbytes(self) -> int:
        """Bytes that the index takes."""
        return sum(part.nbytes for part in self._table)

    def keys(self) -> np.ndarray:
        """The features in the order of their slots: uint64, or str objects."""
        if not self.named:
            ids: np.ndarray = self._table.ids[: self._count].copy()
            return ids
        stops = self._table.stops[: self._count].tolist()
        letters = self._table.letters.tobytes()
        names = np.empty(self._count, object)
        names[:] = [letters[start:stop].decode() for start, stop in zip([0, *stops[:-1]], stops, strict=True)]
        return names

    def copy(self) -> FeatureIndex:
        twin = FeatureIndex(self.kind)
        twin._count, twin._table = self._count, Table(*(part.copy() for part in self._table))
        return twin

    def __getstate__(self) -> dict[str, Any]:
        # The places follow from the keys.
        return {"kind": self.kind, "count": self._count, "keys": self._table._replace(places=None)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.kind, self._count = state["kind"], state["count"]
        parts = [part if part is None else np.array(part) for part in state["keys"]]
        self._table = Table(*parts)._replace(places=np.zeros(0, np.int32))
        self._place(self._count)

    def map_rows(
        self, indptr: np.ndarray, keys: Any, data: np.ndarray, *, grow: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """CSR arrays with slots in place of the keys (an array of ids, or a list of names).

        Zeros are left out, and so are unknown keys, unless the index may grow.
        """
        ids, letters, stops = np.zeros(0, np.uint64), np.zeros(1, np.uint8), np.zeros(0, np.int64)
        if self.named:
            letters, stops = _letters(keys)
        else:
            ids = np.ascontiguousarray(keys)
        rows = len(indptr) - 1
        out_indptr = np.zeros(rows + 1, np.int64)
        out_slots, out_data = np.empty(len(data), np.uint32), np.empty_like(data)
        done = 0
        while True:
            done, self._count = map_rows(
                self._table,
                self._count,
                grow,
                done,
                indptr,
                ids,
                letters.ctypes.data,
                stops,
                data,
                out_indptr,
                out_slots,
                out_data,
            )
            if done == rows:
                end = out_indptr[-1]
                return out_indptr, out_slots[:end], out_data[:end]
            self._make_room()

    def map_dict(self, x: dict[Any, Any], slots: np.ndarray, data: np.ndarray, *, grow: bool) -> int:
        """Write slots and values of a dict; returns how many. Both arrays are as long as the dict."""
        cursor = np.empty(CURSOR_LENGTH, np.int64)
        before = self._count
        while True:
            fault, n, self._count = map_dict(
                self._table, self.named, self._count, grow, id(x), slots, data, cursor
            )
            if fault == FINISHED:
                return n
            if fault == FULL:
                self._make_room()
                continue
            self.truncate(before)
            raise self._bad_item(fault, *list(x.items())[n])

    def _bad_item(self, fault: int, key: Any, value: Any) -> Exception:
        if fault != BAD_KEY:
            return bad_value(key, value)
        wanted = "a str" if self.named else "a whole number from 0 to 2^64 - 1"
        return TypeError(
            f"the feature {key!r} is not {wanted}, as the features so far are; "
            "name all features in one way, for example by str(...)"
        )

    def truncate(self, count: int) -> None:
        """Forget the features that came after the first `count`."""
        if count < self._count:
            self._place(count, len(self._table.places))
            self._count = count

    def _make_room(self) -> None:
        """Lengthen what is full: the places, the arrays by slot, or else the letters."""
        table, count = self._table, self._count
        if count >= MOST_FEATURES:
            raise OverflowError(f"an index holds at most {MOST_FEATURES:,} features")
        by_slot = (table.hashes, table.stops) if self.named else (table.ids,)
        if count >= FULLEST * len(table.places):
            self._place(count, 2 * len(table.places))
        elif count == len(by_slot[0]):
            for part in by_slot:
                part.resize(int(GROWTH * count), refcheck=False)
        else:
            table.letters.resize(int(GROWTH * len(table.letters)), refcheck=False)

    def _place(self, count: int, size: int = SMALLEST_TABLE) -> None:
        while count >= FULLEST * size:
            size *= 2
        self._table = self._table._replace(places=None)  # the old places go before the new ones come
        self._table = self._table._replace(places=np.full(size, EMPTY, np.int32))
        rebuild(self._table, count, self._table.letters.ctypes.data)


def _letters(names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """All names as UTF-8, one after another, and where each ends."""
    text = "".join(names)
    if text.isascii():
        sizes: Iterable[int] = map(len, names)
        raw = text.encode()
    else:
        parts = [name.encode() for name in names]
        sizes, raw = map(len, parts), b"".join(parts)
    # One byte more, so that even no letters have an address.
    letters = np.frombuffer(raw + b"\0", np.uint8)
    return letters, np.cumsum(np.fromiter(sizes, np.int64, len(names)))


def kind_of(x: Mapping[Any, Any]) -> str:
    """The kind of index that the keys of an example ask for."""
    return "names" if any(isinstance(key, str) for key in x) else "ids"


def bad_value(key: Any, value: Any) -> TypeError:
    """The error about a value that is no number."""
    return TypeError(
        f"the value of feature {key!r} is {value!r}, which is no number; "
        f"make it one, for example {{'{key}={value}': 1.0}}"
    )
