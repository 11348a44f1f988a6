"""Open addressing, compiled: which slot a key has, and how a new key gets one.

A key is looked for from the place that its hash names, place after place; at most three quarters of
the places are taken. A place holds a slot only, and the keys lie in the order of their slots: features that
come often come early, and so their keys are neighbours in memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxcosine.compiled import borrow, inline, jit, jit_holding_lock
from maxcosine.index.native import (
    KEY,
    SIZE,
    VALUE,
    byte_at,
    failed,
    fetch_ahead,
    half_word_at,
    id_of,
    next_item,
    number_of,
    text_of,
    word_at,
)

EMPTY, NO_ROOM = -1, -2
# Ids that are looked for together.
BLOCK = 1024
FULLEST = 0.75

# What ended the mapping of a dict.
FINISHED, FULL, BAD_KEY, BAD_VALUE = 0, 1, 2, 3

# 2^64 divided by the golden ratio: multiplying by it spreads the bits upwards (Knuth, volume 3, 6.4).
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_WORD, _HALF = 8, 4


class Table(NamedTuple):
    """An index as the kernels see it; one of ids has no starts and letters, one of names no ids."""

    slots: Any  # int32, by place: EMPTY, or the slot
    shift: Any  # one number: 64 less the logarithm of the number of places
    ids: Any  # uint64, by slot
    starts: Any  # int64, by slot: where a name begins, and the one before ends
    letters: Any  # uint8


@inline
def borrow_all(table: Any) -> Any:
    return Table(
        borrow(table.slots),
        borrow(table.shift),
        borrow(table.ids),
        borrow(table.starts),
        borrow(table.letters),
    )


@inline
def fold(key: Any) -> Any:
    """The high half of the bits, spread over the low half too."""
    return (key ^ (key >> np.uint64(32))) * _GOLDEN


@inline
def first_place(table: Any, key: Any) -> Any:
    """Where an id, or the hash of a name, is looked for first: the highest bits of a product."""
    return (key * _GOLDEN) >> np.uint64(table.shift[0])


@inline
def hash_name(address: int, size: int) -> Any:
    """The hash of the bytes of a name, eight at a time; the last eight may overlap those before."""
    key = np.uint64(size) * _GOLDEN
    if size >= _WORD:
        for k in range(0, size - _WORD, _WORD):
            key = fold(key ^ word_at(address + k))
        key = fold(key ^ word_at(address + size - _WORD))
    elif size >= _HALF:
        key = fold(key ^ half_word_at(address) ^ (half_word_at(address + size - _HALF) << np.uint64(32)))
    else:
        for k in range(size):
            key = key * np.uint64(257) + byte_at(address + k)
        key = fold(key)
    return key ^ (key >> np.uint64(29))


@inline
def same_bytes(one: int, other: int, size: int) -> Any:
    same, k = True, 0
    if size >= _WORD:
        while same and k < size - _WORD:
            same = word_at(one + k) == word_at(other + k)
            k += _WORD
        return same and word_at(one + size - _WORD) == word_at(other + size - _WORD)
    if size >= _HALF:
        last = size - _HALF
        same = half_word_at(one + last) == half_word_at(other + last)
        return same and half_word_at(one) == half_word_at(other)
    while same and k < size:
        same = byte_at(one + k) == byte_at(other + k)
        k += 1
    return same


@inline
def is_name(table: Any, slot: Any, address: int, size: int) -> Any:
    """Whether the name of a slot, without a sign, is the one of so many bytes at an address."""
    start = table.starts[slot]
    if table.starts[slot + np.uint64(1)] - start != size:
        return False
    return same_bytes(table.letters.ctypes.data + start, address, size)


@inline
def place_of_id(table: Any, key: Any) -> Any:
    """The place of an id, or the empty one where it belongs."""
    # Places and slots without a sign: an index that may be negative is checked, which takes longer
    # than all the rest.
    mask = np.uint64(len(table.slots) - 1)
    place = first_place(table, key)
    slot = table.slots[place]
    while slot != EMPTY and table.ids[np.uint64(slot)] != key:
        place = (place + np.uint64(1)) & mask
        slot = table.slots[place]
    return place


@inline
def place_of_name(table: Any, key: Any, address: int, size: int) -> Any:
    """The place of a name of this hash, or the empty one where it belongs."""
    mask = np.uint64(len(table.slots) - 1)
    place = first_place(table, key)
    slot = table.slots[place]
    while slot != EMPTY and not is_name(table, np.uint64(slot), address, size):
        place = (place + np.uint64(1)) & mask
        slot = table.slots[place]
    return place


@inline
def slot_of_id(table: Any, count: int, key: Any, grow: bool) -> tuple[Any, int]:
    """The slot of an id, EMPTY or NO_ROOM, and how many keys there are then."""
    place = place_of_id(table, key)
    slot = table.slots[place]
    if slot == EMPTY and grow:
        if count >= FULLEST * len(table.slots) or count == len(table.ids):
            return np.int32(NO_ROOM), count
        slot = np.int32(count)
        table.ids[np.uint64(count)] = key
        table.slots[place] = slot
        count += 1
    return slot, count


@inline
def slot_of_name(table: Any, count: int, address: int, size: int, grow: bool) -> tuple[Any, int]:
    """The slot of a name, EMPTY or NO_ROOM, and how many keys there are then."""
    key = hash_name(address, size)
    place = place_of_name(table, key, address, size)
    slot = table.slots[place]
    if slot == EMPTY and grow:
        start = table.starts[count]
        full = count >= FULLEST * len(table.slots) or count + 1 == len(table.starts)
        if full or start + size > len(table.letters):
            return np.int32(NO_ROOM), count
        for k in range(size):
            table.letters[start + k] = np.uint8(byte_at(address + k))
        slot = np.int32(count)
        table.starts[count + 1] = start + size
        table.slots[place] = slot
        count += 1
    return slot, count


@jit
def find_ids(table: Any, count: int, grow: bool, first: int, ids: Any, slots: Any) -> tuple[Any, int]:
    """The slots of the ids from `first` on, EMPTY where unknown; ends before one for which there is no room.

    Most ids are where they are looked for first. Those are found without a branch that could be
    mispredicted, a block at a time; then the others, in order. Returns how many are found, and how many
    keys there are.
    """
    table, ids, slots = borrow_all(table), borrow(ids), borrow(slots)
    elsewhere = np.empty(BLOCK, np.uint32)
    n = np.uint64(len(ids))
    start = np.uint64(first)
    while start < n:
        stop = min(start + np.uint64(BLOCK), n)
        n_elsewhere = np.uint64(0)
        for j in range(start, stop):
            key = np.uint64(ids[j])
            slot = table.slots[first_place(table, key)]
            found = (table.ids[np.uint64(max(slot, 0))] == key) & (slot != EMPTY)
            slots[j] = slot
            elsewhere[n_elsewhere] = np.uint32(j - start)
            n_elsewhere += np.uint64(not found)
        for i in range(n_elsewhere):
            k = start + np.uint64(elsewhere[i])
            slot, count = slot_of_id(table, count, np.uint64(ids[k]), grow)
            if slot == NO_ROOM:
                return np.int64(k), count
            slots[k] = slot
        start = stop
    return len(ids), count


@jit
def find_names(
    table: Any, count: int, grow: bool, first: int, letters: int, starts: Any, slots: Any
) -> tuple[int, int]:
    """`find_ids` for names that lie one after another from address `letters` on."""
    table, starts, slots = borrow_all(table), borrow(starts), borrow(slots)
    for k in range(first, len(slots)):
        size = starts[k + 1] - starts[k]
        slot, count = slot_of_name(table, count, letters + starts[k], size, grow)
        if slot == NO_ROOM:
            return k, count
        slots[k] = slot
    return len(slots), count


@jit_holding_lock
def map_dict(
    table: Any,
    named: bool,
    count: int,
    grow: bool,
    mapping: int,
    slots: Any,
    data: Any,
    cursor: Any,
    weights: int,
    stride: int,
) -> tuple[int, int, int]:
    """The dict at address `mapping` as slots and values, without zeros and unknown keys.

    The memory is asked for the weights of each slot, `stride` bytes from one to the next. Returns what
    ended it, how many values were written (or which item is at fault), and how many keys there are.
    """
    table, slots, data, cursor = borrow_all(table), borrow(slots), borrow(data), borrow(cursor)
    cursor[:] = 0
    end, item = 0, 0
    while next_item(mapping, cursor):
        value = number_of(cursor[VALUE])
        if value == -1.0 and failed():
            return BAD_VALUE, item, count
        item += 1
        if named:
            address = text_of(cursor[KEY], cursor)
            if address == 0:
                failed()
                return BAD_KEY, item - 1, count
            if value == 0.0:
                continue
            slot, count = slot_of_name(table, count, address, cursor[SIZE], grow)
        else:
            key = id_of(cursor[KEY])
            if key == np.uint64(0xFFFFFFFFFFFFFFFF) and failed():
                return BAD_KEY, item - 1, count
            if value == 0.0:
                continue
            slot, count = slot_of_id(table, count, key, grow)
        if slot == NO_ROOM:
            return FULL, 0, count
        if end + 1 >= len(slots):
            return BAD_VALUE, item - 1, count  # a value that changes the dict when it is asked for its number
        fetch_ahead(weights + slot * stride)
        slots[end] = slot
        data[end] = value
        end += slot != EMPTY
    return FINISHED, end, count


@jit
def place_ids(table: Any, count: int) -> None:
    """Put the first `count` ids into empty places, in the order of their slots: the first ones, which come
    often, get the best places."""
    table = borrow_all(table)
    for slot in range(count):
        table.slots[place_of_id(table, table.ids[slot])] = slot


@jit
def place_names(table: Any, count: int) -> None:
    """Put the first `count` names into empty places."""
    table = borrow_all(table)
    for slot in range(count):
        start = table.starts[slot]
        address, size = table.letters.ctypes.data + start, table.starts[slot + 1] - start
        table.slots[place_of_name(table, hash_name(address, size), address, size)] = slot
