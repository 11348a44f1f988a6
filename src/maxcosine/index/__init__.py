"""The exact feature index: 64-bit ids, or names, to slots, for a feature space not known in advance.

It grows with the features seen and never with the largest id. See `FeatureIndex.nbytes`.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from maxcosine.compiled import SMALL, entry_of, lengthened, readable
from maxcosine.index.kernels import (
    BAD_VALUE,
    EMPTY,
    FINISHED,
    FULL,
    FULLEST,
    OWN,
    SCRATCH_LENGTH,
    SHIFT,
    TAKEN,
    Table,
    find_ids,
    find_names,
    join_names,
    map_dict,
    name_keys,
    place_ids,
    place_names,
)

SMALLEST_TABLE = 64
MOST_FEATURES = OWN - 1
MOST_WORDS = 2**31 - 1

KINDS = ("ids", "names")


class FeatureIndex:
    """Slots 0, 1, 2, ... for features in the order in which they come.

    `kind` is "ids" (whole numbers from 0 to 2^64 - 1) or "names" (str). Memory: at most 20 bytes a
    feature for ids, and for names besides 1.125 times their letters, in UTF-8 and rounded up to a multiple
    of 8; with fewer than 2^18 features, at most 27 bytes for ids, and 23 and 1.5 times the letters for names.
    """

    def __init__(self, kind: str) -> None:
        if kind not in KINDS:
            raise ValueError(f"an index is of ids or of names, not of {kind!r}")
        self.kind = kind
        self.count = 0
        """How many features there are."""
        self.table = Table(
            places=np.full(SMALLEST_TABLE, EMPTY, np.int32),
            numbers=_numbers(SMALLEST_TABLE),
            words=np.zeros(SMALLEST_TABLE, np.uint64),
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
        return self._find(given, np.ones(len(given), np.float32), grow=True).astype(np.int64)

    def __len__(self) -> int:
        return self.count

    @property
    def named(self) -> bool:
        return self.kind == "names"

    @property
    def nbytes(self) -> int:
        """Bytes that the index takes."""
        return sum(part.nbytes for part in self.table)

    def keys(self) -> np.ndarray:
        """The features in the order of their slots: uint64, or str objects."""
        if not self.named:
            ids: np.ndarray = self.table.words[: self.count].copy()
            return ids
        joined, starts = self.letters()
        letters = joined.tobytes()
        names = np.empty(self.count, object)
        names[:] = [letters[start:stop].decode() for start, stop in itertools.pairwise(starts.tolist())]
        return names

    def letters(self) -> tuple[np.ndarray, np.ndarray]:
        """The names in the order of their slots, as `map_rows` takes them: their letters one after another,
        and where each begins, and the last ends."""
        starts = np.zeros(self.count + 1, np.int64)
        # Names are read by words of eight bytes, which may begin before one.
        letters = np.zeros(8 + 8 * int(self.table.numbers[TAKEN]) + 8, np.uint8)[8:]
        join_names(self.table, letters, starts)
        return letters[: starts[-1]], starts

    def copy(self) -> FeatureIndex:
        twin = FeatureIndex(self.kind)
        twin.count, twin.table = self.count, Table(*(part.copy() for part in self.table))
        return twin

    def __getstate__(self) -> dict[str, Any]:
        # The places follow from the keys.
        return {"kind": self.kind, "count": self.count, "words": self.table.words}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.kind, self.count = state["kind"], state["count"]
        self.table = Table(None, None, np.array(state["words"]))
        self._place(self.count)

    def map_rows(
        self, indptr: np.ndarray, keys: Any, data: np.ndarray, *, grow: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """CSR arrays with slots in place of the keys: an array of ids, a list of names, or the letters of all
        names one after another and where each begins, and the last ends.

        Zeros are left out, and so are unknown keys, unless the index may grow.
        """
        slots = self._find(keys, data, grow=grow)
        if slots.min(initial=0) == EMPTY:
            indptr, slots, data = some_values(slots != EMPTY, indptr, slots, data)
        return indptr, slots.view(np.uint32), data

    def map_all(
        self, indptr: np.ndarray, names: tuple[np.ndarray, np.ndarray], data: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As `map_rows` for an index that does not grow, with 64 bits for a slot; and with the unknown names,
        by a hash of 63 bits and UNKNOWN.

        Two names of one hash are taken for one: among a million, the chance of that is 1 in 20 million.
        """
        letters, starts = names
        slots = self._find(names, data, grow=False)
        keys = np.empty(len(slots), np.uint64)
        name_keys(letters.ctypes.data, starts, slots, keys)
        kept = data != 0.0
        return (indptr, keys, data) if kept.all() else some_values(kept, indptr, keys, data)

    def _find(self, keys: Any, data: np.ndarray, *, grow: bool) -> np.ndarray:
        """The slots of the keys of these values, EMPTY where unknown, and where the value is 0."""
        kernel: Any = find_ids
        given: tuple[Any, ...] = () if self.named else (readable(keys),)
        if self.named:
            letters, starts = keys if isinstance(keys, tuple) else _letters(keys)
            kernel, given = find_names, (letters.ctypes.data, starts)
        data, slots, done = readable(data), np.empty(len(data), np.int32), 0
        while True:
            done, self.count = kernel(self.table, self.count, grow, done, *given, data, slots)
            if done == len(slots):
                return slots
            self.make_room()

    def map_dict(self, x: dict[Any, Any], slots: np.ndarray, data: np.ndarray, *, grow: bool) -> int:
        """Write slots and values of a dict; returns how many. Both arrays are longer than the dict."""
        before, scratch = self.count, np.empty(SCRATCH_LENGTH, np.int64)
        while True:
            given = (self.table, self.named, self.count, grow, id(x), slots, data, scratch, 0, 0)
            fault, n, self.count = _entry(data.dtype, given)(*given)
            if fault == FINISHED:
                return n  # type: ignore[no-any-return]
            if fault == FULL:
                self.make_room()
                continue
            self.truncate(before)
            x = self.mended(fault, x, n)

    def mended(self, fault: int, x: dict[Any, Any], item: int) -> dict[Any, Any]:
        """The dict with values that are float and ids that are int, if an item had others of their kind; else
        an error that says what is wrong with it."""
        if fault == BAD_VALUE:
            return {k: _float(k, v) for k, v in x.items()}
        key = list(x)[item]
        if not self.named and type(key) is not int and hasattr(key, "__index__"):
            return {operator.index(k) if hasattr(k, "__index__") else k: v for k, v in x.items()}
        wanted = "a str" if self.named else "a whole number from 0 to 2^64 - 1"
        raise TypeError(
            f"the feature {key!r} is not {wanted}, as the features so far are; "
            "name all features in one way, for example by str(...)"
        )

    def truncate(self, count: int) -> None:
        """Forget the features that came after the first `count`."""
        if count < self.count:
            self._place(count)
            self.count = count

    def make_room(self) -> None:
        """Lengthen what is full: the places, or the words."""
        if self.count >= MOST_FEATURES:
            raise OverflowError(f"an index holds at most {MOST_FEATURES:,} features")
        if self.count >= FULLEST * len(self.table.places):
            self._place(self.count)
            return
        self._lengthen(lengthened(len(self.table.words)))

    def _lengthen(self, n_words: int) -> None:
        if self.named and n_words > MOST_WORDS:
            raise OverflowError(f"the names of an index take at most {MOST_WORDS * 8:,} bytes")
        self.table.words.resize(n_words, refcheck=False)
        # Arrays that moved are in a new tuple, so that whoever remembers where they lay will notice.
        self.table = Table(*self.table)

    def _place(self, count: int) -> None:
        """Places for the first `count` keys, and for more."""
        n_places = SMALLEST_TABLE
        while count >= FULLEST * n_places:
            n_places *= 2
        self.table = self.table._replace(places=None)  # the old places go before the new ones come
        self.table = self.table._replace(
            places=np.full(n_places, EMPTY, np.int32), numbers=_numbers(n_places)
        )
        (place_names if self.named else place_ids)(self.table, count)
        # As many ids as there are places for them, while that is little memory.
        most = int(FULLEST * n_places)
        if not self.named and len(self.table.words) < most < SMALL:
            self._lengthen(most)


def some_values(
    kept: np.ndarray, indptr: np.ndarray, features: np.ndarray, data: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """CSR arrays with some of their values."""
    return np.searchsorted(np.flatnonzero(kept), indptr), features[kept], data[kept]


_ENTRIES: dict[np.dtype, Any] = {}


def _entry(dtype: np.dtype, given: tuple[Any, ...]) -> Any:
    """`map_dict` compiled for values of this type; the other types are always the same."""
    if dtype not in _ENTRIES:
        _ENTRIES[dtype] = entry_of(map_dict, *given)
    return _ENTRIES[dtype]


def _numbers(n_places: int) -> np.ndarray:
    """The numbers of a table without names."""
    numbers = np.zeros(2, np.int64)
    numbers[SHIFT] = 64 - (n_places.bit_length() - 1)
    return numbers


def _letters(names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """All names as UTF-8, one after another, and where each begins, and the last ends."""
    text = "".join(names)
    if text.isascii():
        sizes: Iterable[int] = map(len, names)
        raw = text.encode()
    else:
        parts = [name.encode() for name in names]
        sizes, raw = map(len, parts), b"".join(parts)
    # One byte more, so that even no letters have an address.
    letters = np.frombuffer(raw + b"\0", np.uint8)
    starts = np.zeros(len(names) + 1, np.int64)
    np.cumsum(np.fromiter(sizes, np.int64, len(names)), out=starts[1:])
    return letters, starts


def kind_of(x: Mapping[Any, Any]) -> str:
    """The kind of index that the keys of an example ask for."""
    return "names" if any(isinstance(key, str) for key in x) else "ids"


def _float(key: Any, value: Any) -> float:
    # float(...) would take a text, too.
    if hasattr(value, "__float__") or hasattr(value, "__index__"):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    raise bad_value(key, value)


def bad_value(key: Any, value: Any) -> TypeError:
    """The error about a value that is no number."""
    return TypeError(
        f"the value of feature {key!r} is {value!r}, which is no number; "
        f"make it one, for example {{'{key}={value}': 1.0}}"
    )
