"""Open addressing, compiled: which slot a key has, and how a new key gets one.

Keys lie in the order of their slots, and so those that come often are neighbours in memory. A table of
places, at most three quarters taken, says where to find them:

- an id that is the number of a place has that place for its own, and is found by it alone: whoever is
  there gives way;
- any other id has the first free of the places that its hash names, one after another, and is found
  by comparing it with the key of the slot there;
- a name has the first free place from the one that its hash names on, and is found by comparing it with
  the record there: slot, length and letters together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxcosine.compiled import borrow, inline, jit_holding_lock, kernel
from maxcosine.index.native import (
    CURSOR_LENGTH,
    KEY,
    POSITION,
    SIZE,
    VALUE,
    byte_at,
    failed,
    fetch_ahead,
    id_of,
    next_item,
    number_of,
    put_word,
    text_of,
    word_at,
)

EMPTY, NO_ROOM = -1, -2
# What is added to the slot of an id that lies in its own place.
OWN = 2**30
# Ids that are looked for together.
BLOCK = 1024
FULLEST = 0.75

# The least of the keys by which names are known that have no slot.
UNKNOWN = np.uint64(2**63)

# What ended the mapping of a dict.
FINISHED, FULL, BAD_KEY, BAD_VALUE = 0, 1, 2, 3

# 2^64 divided by the golden ratio: multiplying by it spreads the bits upwards (Knuth, volume 3, 6.4).
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_WORD, _PLACE_SIZE, _LINE = 8, 4, 64
_NEIGHBOURS = np.uint64(8)
_SIZE_BITS = np.uint64(32)
_SIZE = np.uint64(2**32 - 1)

# Items of a dict that are looked for together, and where they are written down, after the cursor.
ITEMS = np.uint64(32)
_KEYS, _VALUES, _SIZES, _HASHES = (np.uint64(CURSOR_LENGTH) + k * ITEMS for k in range(4))
SCRATCH_LENGTH = int(_HASHES + ITEMS)

# The numbers of a table: 64 less the logarithm of the number of places, and how many words are taken.
SHIFT, TAKEN = 0, 1


class Table(NamedTuple):
    """An index as the kernels see it."""

    places: Any
    """int32: EMPTY; or the slot of an id, with OWN if it is at home; or the first word of a name."""
    numbers: Any
    words: Any
    """uint64: the ids, by slot; or of each name its slot and size, and then its letters."""


@inline
def borrow_all(table: Any) -> Any:
    return Table(borrow(table.places), borrow(table.numbers), borrow(table.words))


@inline
def fold(key: Any) -> Any:
    """The high half of the bits, spread over the low half too."""
    return (key ^ (key >> np.uint64(32))) * _GOLDEN


@inline
def first_place(table: Any, key: Any) -> Any:
    """Where an id, or the hash of a name, is looked for first: the highest bits of a product."""
    return (key * _GOLDEN) >> np.uint64(table.numbers[SHIFT])


@inline
def first_and_last(address: int, size: Any) -> tuple[Any, Any]:
    """The first and the last eight of some bytes; or what there is, twice.

    Sizes vary from word to word, so that a branch would often be mispredicted. If there are fewer than eight,
    those before them are read too and shifted out: a text is nowhere the first thing in memory.
    """
    present = min(size, _WORD)
    half = np.uint64(4 * (_WORD - present))  # of the bits to lose: a shift by 64 means nothing
    first, last = word_at(address + present - _WORD), word_at(address + size - _WORD)
    return (first >> half) >> half, (last >> half) >> half


@inline
def hash_name(address: int, size: Any) -> Any:
    """The hash of the bytes of a name."""
    first, last = first_and_last(address, size)
    key = fold(fold(np.uint64(size) * _GOLDEN ^ first) ^ last)
    for k in range(_WORD, size - _WORD, _WORD):
        key = fold(key ^ word_at(address + k))
    return key ^ (key >> np.uint64(29))


@inline
def is_name(table: Any, record: Any, address: int, size: int) -> Any:
    """Whether the name of a record, given without a sign, is the one of so many bytes at an address."""
    letters = table.words.ctypes.data + np.int64(record + np.uint64(1)) * _WORD
    size_there = np.int64(table.words[record] & _SIZE)
    there, here = first_and_last(letters, size_there), first_and_last(address, size)
    same = (size_there == size) & (there[0] == here[0]) & (there[1] == here[1])
    if same and size > 2 * _WORD:
        for k in range(_WORD, size - _WORD, _WORD):
            same &= word_at(letters + k) == word_at(address + k)
    return same


@inline
def next_place(table: Any, key: Any, place: Any, turn: Any) -> Any:
    """Where an id is looked for after so many turns: at the neighbours, which are in the cache already, and
    then far away, so that ids at home, which lie side by side, are not in the way for long."""
    within = _NEIGHBOURS - np.uint64(1)
    if turn & within:
        return (place & ~within) | ((place + np.uint64(1)) & within)
    step = (fold(key) >> np.uint64(20)) | np.uint64(1)
    return (place + step * _NEIGHBOURS) & np.uint64(len(table.places) - 1)


@inline
def place_of_id(table: Any, key: Any) -> Any:
    """The place of an id, or the empty one where it belongs; not for one that has its own."""
    # Places and slots without a sign: an index that may be negative is checked, which takes longer
    # than all the rest.
    place, turn = first_place(table, key), np.uint64(0)
    slot = table.places[place]
    while slot != EMPTY and (slot >= OWN or table.words[np.uint64(slot)] != key):
        turn += np.uint64(1)
        place = next_place(table, key, place, turn)
        slot = table.places[place]
    return place


@inline
def place_of_name(table: Any, key: Any, address: int, size: Any) -> Any:
    """The place of a name of this hash, or the empty one where it belongs."""
    mask = np.uint64(len(table.places) - 1)
    place = first_place(table, key)
    record = table.places[place]
    while record != EMPTY and not is_name(table, np.uint64(record), address, size):
        place = (place + np.uint64(1)) & mask
        record = table.places[place]
    return place


@inline
def move_in(table: Any, key: Any, slot: Any) -> None:
    """Give an id its own place; whoever is there moves."""
    stranger = table.places[key]
    table.places[key] = slot + OWN
    if stranger != EMPTY:
        table.places[place_of_id(table, table.words[np.uint64(stranger)])] = stranger


@inline
def slot_of_id(table: Any, count: int, key: Any, grow: bool) -> tuple[Any, int]:
    """The slot of an id, EMPTY or NO_ROOM, and how many keys there are then."""
    has_own = key < np.uint64(len(table.places))
    place = key if has_own else place_of_id(table, key)
    slot = table.places[place]
    if has_own and slot >= OWN:
        return np.int32(slot - OWN), count
    if slot != EMPTY and not has_own:
        return np.int32(slot), count
    if not grow:
        return np.int32(EMPTY), count
    if count >= FULLEST * len(table.places) or count == len(table.words):
        return np.int32(NO_ROOM), count
    table.words[np.uint64(count)] = key
    if has_own:
        move_in(table, key, np.int32(count))
    else:
        table.places[place] = np.int32(count)
    return np.int32(count), count + 1


@inline
def slot_of_name(table: Any, count: int, key: Any, address: int, size: int, grow: bool) -> tuple[Any, int]:
    """The slot of a name of this hash, EMPTY or NO_ROOM, and how many keys there are then."""
    place = place_of_name(table, key, address, size)
    record = table.places[place]
    if record != EMPTY:
        return np.int32(table.words[np.uint64(record)] >> _SIZE_BITS), count
    if not grow:
        return np.int32(EMPTY), count
    start = table.numbers[TAKEN]
    stop = start + 1 + (size + _WORD - 1) // _WORD
    if count >= FULLEST * len(table.places) or stop > len(table.words):
        return np.int32(NO_ROOM), count
    table.words[start] = (np.uint64(count) << _SIZE_BITS) | np.uint64(size)
    for word in range(start + 1, stop):
        letters = np.uint64(0)
        first = (word - start - 1) * _WORD
        for k in range(min(_WORD, size - first)):
            letters |= byte_at(address + first + k) << np.uint64(8 * k)
        table.words[word] = letters
    table.places[place] = np.int32(start)
    table.numbers[TAKEN] = stop
    return np.int32(count), count + 1


@inline
def slot_if_first(table: Any, key: Any) -> Any:
    """The slot of an id that is where it is looked for first; else something negative. Without a branch
    that could be mispredicted."""
    if key < np.uint64(len(table.places)):
        return np.int32(table.places[key] - np.int32(OWN))
    slot = table.places[first_place(table, key)]
    found = (table.words[np.uint64(max(slot, 0) & (OWN - 1))] == key) & (np.uint32(slot) < OWN)
    return np.int32(slot | (np.int32(found) - np.int32(1)))


@kernel
def find_ids(
    table: Any, count: int, grow: bool, first: int, ids: Any, data: Any, slots: Any
) -> tuple[Any, int]:
    """The slots of the ids from `first` on, EMPTY where unknown, or where the value is 0.

    Most ids are where they are looked for first. So a block of them is looked for there, four at a time;
    what was missing is picked out of the fours in which something was, and looked for again, in order.
    Ends before an id for which there is no room. Returns how many are found, and how many keys there are.
    """
    table, ids, data, slots = borrow_all(table), borrow(ids), borrow(data), borrow(slots)
    fours, missing = np.empty(BLOCK // 4 + 1, np.uint32), np.empty(BLOCK + 1, np.uint32)
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    n, start = np.uint64(len(ids)), np.uint64(first)
    while start < n:
        stop = min(start + np.uint64(BLOCK), n)
        zeros = False
        for j in range(start, stop):
            zeros |= data[j] == 0.0
        n_fours, n_missing = np.uint64(0), np.uint64(0)
        last = start + (stop - start) // four * four
        for j in range(start, last, four):
            a = slot_if_first(table, np.uint64(ids[j]))
            b = slot_if_first(table, np.uint64(ids[j + one]))
            c = slot_if_first(table, np.uint64(ids[j + two]))
            d = slot_if_first(table, np.uint64(ids[j + three]))
            slots[j], slots[j + one], slots[j + two], slots[j + three] = a, b, c, d
            fours[n_fours] = np.uint32(j - start)
            n_fours += np.uint64((a | b | c | d) < 0)
        for i in range(n_fours):
            for k in range(fours[i], fours[i] + four):
                missing[n_missing] = np.uint32(k)
                n_missing += np.uint64(slots[start + np.uint64(k)] < 0)
        for k in range(last - start, stop - start):
            missing[n_missing] = np.uint32(k)
            n_missing += one
        if zeros:
            for j in range(start, stop):
                if data[j] == 0.0:
                    slots[j] = EMPTY
        for i in range(n_missing):
            at = start + np.uint64(missing[i])
            if data[at] == 0.0:
                continue
            slot, count = slot_of_id(table, count, np.uint64(ids[at]), grow)
            if slot == NO_ROOM:
                return np.int64(at), count
            slots[at] = slot
        start = stop
    return len(ids), count


@kernel
def find_names(
    table: Any, count: int, grow: bool, first: int, letters: int, starts: Any, data: Any, slots: Any
) -> tuple[Any, int]:
    """`find_ids` for names that lie one after another from address `letters` on."""
    table, starts, data, slots = borrow_all(table), borrow(starts), borrow(data), borrow(slots)
    for k in range(first, len(slots)):
        if data[k] == 0.0:
            slots[k] = EMPTY
            continue
        size = starts[k + 1] - starts[k]
        address = letters + starts[k]
        slot, count = slot_of_name(table, count, hash_name(address, size), address, size, grow)
        if slot == NO_ROOM:
            return k, count
        slots[k] = slot
    return len(slots), count


@kernel
def name_keys(letters: int, starts: Any, slots: Any, keys: Any) -> None:
    """The slots of names; of those that have none, their hashes, from UNKNOWN on."""
    starts, slots, keys = borrow(starts), borrow(slots), borrow(keys)
    for k in range(len(slots)):
        if slots[k] == EMPTY:
            keys[k] = hash_name(letters + starts[k], starts[k + 1] - starts[k]) | UNKNOWN
        else:
            keys[k] = np.uint64(slots[k])


@inline
def next_items(mapping: int, scratch: Any) -> Any:
    """Write down the next items of a dict, at most ITEMS, and ask the memory for them; returns how many."""
    n = np.uint64(0)
    while n < ITEMS and next_item(mapping, scratch):
        scratch[_KEYS + n], scratch[_VALUES + n] = scratch[KEY], scratch[VALUE]
        # A text may begin in one line of memory and end in the next.
        fetch_ahead(scratch[KEY])
        fetch_ahead(scratch[KEY] + _LINE - 1)
        fetch_ahead(scratch[VALUE])
        n += np.uint64(1)
    return n


@inline
def read_key(scratch: Any, named: bool, item: Any) -> bool:
    """Put hash, address and size of a name, or an id, in the place of an item's key; whether there is one."""
    if named:
        address = text_of(scratch[_KEYS + item], scratch)
        if address == 0:
            failed()
            return False
        scratch[_KEYS + item], scratch[_SIZES + item] = address, scratch[SIZE]
        scratch[_HASHES + item] = np.int64(hash_name(address, scratch[SIZE]))
        return True
    key = id_of(scratch[_KEYS + item])
    scratch[_HASHES + item] = np.int64(key)
    return not (key == np.uint64(0xFFFFFFFFFFFFFFFF) and failed())


@inline
def look_up(table: Any, named: bool, scratch: Any, n: Any) -> Any:
    """Read the keys of the items written down, and ask the memory for what the index knows of them.

    Returns how many are read: as many as there are, unless one is no key.
    """
    for item in range(n):
        if not read_key(scratch, named, item):
            return item
        place = place_to_look(table, named, np.uint64(scratch[_HASHES + item]))
        fetch_ahead(table.places.ctypes.data + np.int64(place) * _PLACE_SIZE)
    for item in range(n):
        found = table.places[place_to_look(table, named, np.uint64(scratch[_HASHES + item]))]
        fetch_ahead(table.words.ctypes.data + (np.int64(found) & (OWN - 1)) * _WORD)
    return n


@inline
def place_to_look(table: Any, named: bool, key: Any) -> Any:
    """The place that an id, or the hash of a name, is looked for first."""
    if not named and key < np.uint64(len(table.places)):
        return key
    return first_place(table, key)


@jit_holding_lock
def map_dict(
    table: Any,
    named: bool,
    count: int,
    grow: bool,
    mapping: int,
    slots: Any,
    data: Any,
    scratch: Any,
    weights: int,
    stride: int,
) -> tuple[int, Any, int]:
    """The dict at address `mapping` as slots and values, without zeros and unknown keys.

    Dicts are scattered over the memory, and the index is too. So items are taken several at a time, and the
    memory is asked for what all of them need before any is looked at; at last for the weights of each slot,
    `stride` bytes from one to the next. Returns what ended it, how many values were written (or which
    item is at fault), and how many keys there are.
    """
    table, slots, data, scratch = borrow_all(table), borrow(slots), borrow(data), borrow(scratch)
    scratch[POSITION] = 0
    end, done, n = 0, np.int64(0), ITEMS
    while n == ITEMS:
        n = next_items(mapping, scratch)
        readable = look_up(table, named, scratch, n)
        if readable < n:
            return BAD_KEY, done + np.int64(readable), count
        for item in range(n):
            value = number_of(scratch[_VALUES + item])
            if value == -1.0 and failed():
                return BAD_VALUE, done + np.int64(item), count
            if value == 0.0:
                continue
            key = np.uint64(scratch[_HASHES + item])
            if named:
                address, size = scratch[_KEYS + item], scratch[_SIZES + item]
                slot, count = slot_of_name(table, count, key, address, size, grow)
            else:
                slot, count = slot_of_id(table, count, key, grow)
            if slot == NO_ROOM:
                return FULL, 0, count
            fetch_ahead(weights + np.int64(slot) * stride)
            slots[end] = slot
            data[end] = value
            end += slot != EMPTY
        done += np.int64(n)
    return FINISHED, end, count


@kernel
def place_ids(table: Any, count: int) -> None:
    """Put the first `count` ids into empty places."""
    table = borrow_all(table)
    for slot in range(count):
        key = table.words[slot]
        if key < np.uint64(len(table.places)):
            move_in(table, key, np.int32(slot))
        else:
            table.places[place_of_id(table, key)] = slot


@inline
def words_of(header: Any) -> Any:
    """How many words the record takes whose first word this is."""
    return 1 + (np.int64(header & _SIZE) + _WORD - 1) // _WORD


@kernel
def place_names(table: Any, count: int) -> None:
    """Put the first `count` names into empty places; the words of all others are free."""
    table = borrow_all(table)
    record = 0
    for _ in range(count):
        address, size = table.words.ctypes.data + (record + 1) * _WORD, np.int64(table.words[record] & _SIZE)
        table.places[place_of_name(table, hash_name(address, size), address, size)] = record
        record += words_of(table.words[record])
    table.numbers[TAKEN] = record


@kernel
def spans(table: Any, starts: Any, stops: Any) -> None:
    """Where the letters of each name begin and end, in bytes."""
    record = 0
    for slot in range(len(starts)):
        starts[slot] = (record + 1) * _WORD
        stops[slot] = starts[slot] + np.int64(table.words[record] & _SIZE)
        record += words_of(table.words[record])


@kernel
def join_names(table: Any, letters: Any, starts: Any) -> None:
    """Copy the letters of all names, by words, of which the last may have room for more; and write down where
    each begins, and the last ends."""
    table, letters, starts = borrow_all(table), borrow(letters), borrow(starts)
    record = 0
    for slot in range(len(starts) - 1):
        header = table.words[record]
        target = letters.ctypes.data + starts[slot]
        for word in range(1, words_of(header)):
            put_word(np.uint64(target + (word - 1) * _WORD), table.words[record + word])
        starts[slot + 1] = starts[slot] + np.int64(header & _SIZE)
        record += words_of(header)
