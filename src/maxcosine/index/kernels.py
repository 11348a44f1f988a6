"""Open addressing, compiled: which slot a key has, and how a new key gets one.

The places of a table hold slots, and are at most 70 % full; a key is looked for from the place that its
hash names, place after place. The keys themselves lie in the order of their slots: ids as they are,
names as letters one after another.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxcosine.compiled import helper, inline, jit, jit_holding_lock
from maxcosine.index.native import KEY, SIZE, VALUE, byte_at, failed, id_of, next_item, number_of, text_of

EMPTY = -1
FULLEST = 0.7

# What ended a mapping.
FINISHED, FULL, BAD_KEY, BAD_VALUE = 0, 1, 2, 3

_FNV_START, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


class Table(NamedTuple):
    """An index as the kernels see it; of ids, or of hashes, stops and letters, one kind is empty."""

    places: Any  # int32, a power of two of them
    ids: Any  # uint64, by slot
    hashes: Any  # uint32, by slot: half of a name's hash
    stops: Any  # int64, by slot: where a name ends, and the next begins
    letters: Any  # uint8


@inline
def spread(key: Any) -> Any:
    """Mix the bits of a key: the finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


@inline
def hash_of(address: int, size: int) -> Any:
    """The hash of a name: FNV-1a (Fowler, Noll and Vo), spread."""
    key = _FNV_START
    for k in range(size):
        key = (key ^ np.uint64(byte_at(address, k))) * _FNV_PRIME
    return spread(key)


@inline
def start_of(table: Any, slot: int) -> int:
    return table.stops[slot - 1] if slot > 0 else 0


@inline
def is_name(table: Any, slot: Any, key: Any, address: int, size: int) -> Any:
    """Whether the name of a slot is the one at `address`, whose hash is `key`."""
    start = start_of(table, slot)
    same = table.hashes[slot] == np.uint32(key >> np.uint64(32)) and table.stops[slot] - start == size
    k = 0
    while same and k < size:
        same = table.letters[start + k] == byte_at(address, k)
        k += 1
    return same


@inline
def place_of(table: Any, named: bool, key: Any, address: int, size: int) -> Any:
    """The place of a key, or the empty one where it belongs. `key` is the id, or the name's hash."""
    mask = np.uint64(len(table.places) - 1)
    place = (key if named else spread(key)) & mask
    while True:
        slot = table.places[place]
        if slot == EMPTY:
            return place
        if is_name(table, slot, key, address, size) if named else table.ids[slot] == key:
            return place
        place = (place + np.uint64(1)) & mask


@inline
def has_room(table: Any, named: bool, count: int, size: int) -> bool:
    """Whether a key more fits."""
    if count >= FULLEST * len(table.places):
        return False
    if named:
        return count < len(table.stops) and start_of(table, count) + size <= len(table.letters)
    return count < len(table.ids)


@inline
def store(table: Any, named: bool, place: Any, slot: int, key: Any, address: int, size: int) -> None:
    if named:
        start = start_of(table, slot)
        for k in range(size):
            table.letters[start + k] = byte_at(address, k)
        table.stops[slot] = start + size
        table.hashes[slot] = np.uint32(key >> np.uint64(32))
    else:
        table.ids[slot] = key
    table.places[place] = slot


@helper
def slot_of(
    table: Any, named: bool, count: int, key: Any, address: int, size: int, grow: bool
) -> tuple[Any, int]:
    """The slot of a key and how many keys there are then; slot -1: unknown, -2: no room."""
    place = place_of(table, named, key, address, size)
    slot = np.int64(table.places[place])
    if slot != EMPTY or not grow:
        return slot, count
    if not has_room(table, named, count, size):
        return -2, count
    store(table, named, place, count, key, address, size)
    return count, count + 1


@jit
def map_rows(
    table: Any,
    count: int,
    grow: bool,
    first: int,
    indptr: Any,
    ids: Any,
    letters: int,
    stops: Any,
    data: Any,
    out_indptr: Any,
    out_slots: Any,
    out_data: Any,
) -> tuple[int, int]:
    """The rows from `first` on, with slots in place of keys: of ids, or of names ending at `stops`.

    Zeros are left out, and so are keys that are unknown, unless the index may grow. Ends before a row
    for which there is no room; returns how many rows are done, and how many keys there are.
    """
    named = len(table.hashes) > 0
    for row in range(first, len(indptr) - 1):
        end = out_indptr[row]
        for k in range(indptr[row], indptr[row + 1]):
            if data[k] == 0.0:
                continue
            address, size, key = 0, 0, np.uint64(0)
            if named:
                start = stops[k - 1] if k > 0 else 0
                address, size = letters + start, stops[k] - start
                key = hash_of(address, size)
            else:
                key = np.uint64(ids[k])
            slot, count = slot_of(table, named, count, key, address, size, grow)
            if slot == -2:
                return row, count
            if slot >= 0:
                out_slots[end] = slot
                out_data[end] = data[k]
                end += 1
        out_indptr[row + 1] = end
    return len(indptr) - 1, count


@jit_holding_lock
def map_dict(
    table: Any, named: bool, count: int, grow: bool, mapping: int, slots: Any, data: Any, cursor: Any
) -> tuple[int, int, int]:
    """The dict at address `mapping` as slots and values; zeros and unknown keys as in `map_rows`.

    Returns what ended it, how many values were written (or which item is at fault), and how many keys
    there are.
    """
    cursor[:] = 0
    end, item = 0, 0
    while next_item(mapping, cursor):
        value = number_of(cursor[VALUE])
        if value == -1.0 and failed():
            return BAD_VALUE, item, count
        address, key = 0, np.uint64(0)
        if named:
            address = text_of(cursor[KEY], cursor)
            if address == 0:
                failed()
                return BAD_KEY, item, count
            key = hash_of(address, cursor[SIZE])
        else:
            key = id_of(cursor[KEY])
            if key == np.uint64(0xFFFFFFFFFFFFFFFF) and failed():
                return BAD_KEY, item, count
        item += 1
        if value == 0.0:
            continue
        slot, count = slot_of(table, named, count, key, address, cursor[SIZE], grow)
        if slot == -2:
            return FULL, 0, count
        if slot >= 0:
            slots[end] = slot
            data[end] = value
            end += 1
    return FINISHED, end, count


@jit
def rebuild(table: Any, count: int, letters: int) -> None:
    """Find the first `count` keys their places in an empty table; `letters` is where they lie."""
    named = len(table.hashes) > 0
    for slot in range(count):
        address, size, key = 0, 0, np.uint64(0)
        if named:
            address, size = letters + start_of(table, slot), table.stops[slot] - start_of(table, slot)
            key = hash_of(address, size)
        else:
            key = table.ids[slot]
        table.places[place_of(table, named, key, address, size)] = slot
