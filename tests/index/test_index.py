"""The feature index beside a plain dict: the same slots, whatever the keys and however they come."""

import copy
import itertools
import pickle
import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxcosine import FeatureIndex
from maxcosine.compiled import JIT_ENABLED
from maxcosine.index import KINDS, kind_of

# In plain Python the hash overflows as it should, and NumPy says so.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

MOST_BYTES = 40  # a feature
LARGEST_ID = 2**64 - 1


def many(n):
    """n keys when compiled, fewer in plain Python."""
    return n if JIT_ENABLED else max(1_000, n // 100)


def few(n):
    """Examples of Hypothesis, fewer in plain Python."""
    return settings(max_examples=n if JIT_ENABLED else max(5, n // 5), deadline=None)


class Oracle:
    """What an index does, by a plain dict."""

    def __init__(self):
        self.slots = {}

    def map(self, x, *, grow):
        found = []
        for key, value in x.items():
            if value == 0.0:
                continue
            if grow:
                self.slots.setdefault(key, len(self.slots))
            if key in self.slots:
                found.append((self.slots[key], float(value)))
        return found


def map_dict(index, x, *, grow):
    """Slots and values of an example."""
    slots, data = np.empty(len(x) + 1, np.uint32), np.empty(len(x) + 1)
    n = index.map_dict(x, slots, data, grow=grow)
    return list(zip(slots[:n].tolist(), data[:n].tolist(), strict=True))


def map_rows(index, examples, *, grow):
    """Slots and values of each of several examples, all of them in one call."""
    keys = [key for x in examples for key in x]
    data = np.array([value for x in examples for value in x.values()], np.float64)
    ends = np.cumsum([0, *map(len, examples)])
    given_keys = keys if index.named else np.array(keys, np.uint64)
    indptr, slots, data = index.map_rows(ends, given_keys, data, grow=grow)
    assert len(slots) == len(data) == indptr[-1]
    pairs = list(zip(slots.tolist(), data.tolist(), strict=True))
    return [pairs[start:stop] for start, stop in itertools.pairwise(indptr.tolist())]


def state(index):
    return index.kind, len(index), index.keys().tolist()


def looked_up(index, keys):
    """The slot of each key, None if it is unknown; the index stays as it is."""
    found = (map_dict(index, {key: 1.0}, grow=False) for key in keys)
    return [pairs[0][0] if pairs else None for pairs in found]


LONG_NAME = "long" * (25_000 if JIT_ENABLED else 50)

IDS = st.one_of(
    st.integers(0, LARGEST_ID),
    st.integers(0, 40),
    st.integers(0, 2**10 - 1).map(lambda k: k << 54),  # all low bits alike
    st.sampled_from([0, 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, LARGEST_ID - 1, LARGEST_ID]),
)
NAMES = st.one_of(
    st.text(max_size=12),
    st.text("ab\0", max_size=3),
    st.text("xyz", max_size=2).map(lambda end: "a common beginning, and then " + end),
    st.sampled_from(["", "\0", "\0\0", "é", "e\u0301", "日本", "🦊", "\U0010ffff", "nan", "1", LONG_NAME]),
)
VALUES = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 5e-324, 1.7e308, np.nan, np.inf, -np.inf, True, False, 0, 7, -1]),
    st.floats(),
    st.integers(-(2**70), 2**70),
    st.floats(width=32).map(np.float32),
)


def examples(kind, *, most=12):
    """Examples of one kind of keys."""
    keys = NAMES if kind == "names" else IDS
    return st.lists(st.dictionaries(keys, VALUES, max_size=8), max_size=most)


def same(a, b):
    """Equal slots and values; NaN is itself."""
    return repr(a) == repr(b)


each_kind = pytest.mark.parametrize("kind", KINDS)


# Beside the oracle


@each_kind
@few(40)
@given(data=st.data())
def test_index_is_a_dict_of_slots_in_order_of_first_appearance(kind, data):
    stream = data.draw(examples(kind))
    index, oracle = FeatureIndex(kind), Oracle()
    for x in stream:
        grow = data.draw(st.booleans())
        before = state(index)
        assert same(map_dict(index, x, grow=grow), oracle.map(x, grow=grow))
        assert grow or state(index) == before
        assert index.keys().tolist() == list(oracle.slots)
        assert len(index) == len(oracle.slots)


@each_kind
@few(25)
@given(data=st.data())
def test_rows_get_the_slots_that_dicts_get(kind, data):
    stream, grow = data.draw(examples(kind)), data.draw(st.booleans())
    rows, dicts = FeatureIndex(kind), FeatureIndex(kind)
    for part in (stream[: len(stream) // 2], stream):  # some keys are known the second time
        expected = [map_dict(dicts, x, grow=grow) for x in part]
        assert same(map_rows(rows, part, grow=grow), expected)
        assert state(rows) == state(dicts)
        grow = not grow


@each_kind
@few(25)
@given(data=st.data())
def test_any_cutting_into_calls_gives_the_same_slots(kind, data):
    stream = data.draw(examples(kind, most=30))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    whole, cut = FeatureIndex(kind), FeatureIndex(kind)
    parts = [stream[start:stop] for start, stop in itertools.pairwise([0, *cuts, len(stream)])]
    pieces = [row for part in parts for row in map_rows(cut, part, grow=True)]
    assert same(pieces, map_rows(whole, stream, grow=True))
    assert state(cut) == state(whole)


@each_kind
@few(25)
@given(data=st.data())
def test_truncating_forgets_exactly_the_later_keys(kind, data):
    before, after = data.draw(examples(kind)), data.draw(examples(kind))
    index, oracle = FeatureIndex(kind), Oracle()
    map_rows(index, before, grow=True)
    keys = index.keys().tolist()
    count = data.draw(st.integers(0, len(keys) + 2))
    index.truncate(count)
    assert index.keys().tolist() == keys[:count]
    assert looked_up(index, keys) == [slot if slot < count else None for slot in range(len(keys))]
    oracle.slots = {key: slot for slot, key in enumerate(keys[:count])}
    for x in after:
        assert same(map_dict(index, x, grow=True), oracle.map(x, grow=True))


@each_kind
@pytest.mark.parametrize(
    "duplicate",
    [FeatureIndex.copy, copy.deepcopy, lambda index: pickle.loads(pickle.dumps(index))],
    ids=["copy", "deepcopy", "pickle"],
)
@few(12)
@given(data=st.data())
def test_copies_are_equal_and_go_on_by_themselves(kind, duplicate, data):
    before, after = data.draw(examples(kind)), data.draw(examples(kind))
    index = FeatureIndex(kind)
    map_rows(index, before, grow=True)
    copied, known = duplicate(index), state(index)
    assert state(copied) == known
    rows = map_rows(copied, after, grow=True)
    assert state(index) == known
    assert same(map_rows(index, after, grow=True), rows)
    assert state(copied) == state(index)


@each_kind
def test_zeros_among_many_keys_while_the_table_grows(kind):
    dice = np.random.default_rng(3)
    keys = dice.integers(0, 2000, (30, 100)).tolist()
    values = dice.integers(0, 3, (30, 100)).astype(float).tolist()
    stream = [
        {f"name {key}" if kind == "names" else key: value for key, value in zip(row, of_row, strict=True)}
        for row, of_row in zip(keys, values, strict=True)
    ]
    index, oracle = FeatureIndex(kind), Oracle()
    assert map_rows(index, stream, grow=True) == [oracle.map(x, grow=True) for x in stream]
    assert index.keys().tolist() == list(oracle.slots)


@each_kind
def test_zeros_get_no_slot_and_take_none(kind):
    index = FeatureIndex(kind)
    a, b, c = ("a", "b", "c") if index.named else (10, 20, 30)
    assert map_dict(index, {a: 0.0, b: 2.0, c: -0.0}, grow=True) == [(0, 2.0)]
    assert map_rows(index, [{a: 0.0}, {c: 1.0, b: 0.0}, {}], grow=True) == [[], [(1, 1.0)], []]
    assert index.keys().tolist() == [b, c]


def test_keys_are_numbers_of_64_bits_or_strings():
    ids, names = FeatureIndex.of([LARGEST_ID, 0], "ids"), FeatureIndex.of(["", "日本\0"], "names")
    assert ids.keys().dtype == np.uint64
    assert ids.keys().tolist() == [LARGEST_ID, 0]
    assert [type(name) for name in names.keys()] == [str, str]  # noqa: SIM118, it is an array
    assert names.keys().tolist() == ["", "日本\0"]
    assert FeatureIndex("ids").keys().tolist() == FeatureIndex("names").keys().tolist() == []


@each_kind
def test_slots_of_keys_are_found_or_given(kind):
    keys = ["b", "a", "c"] if kind == "names" else [7, 3, LARGEST_ID]
    index = FeatureIndex.of(keys[:2], kind)
    assert index.slots_of(reversed(keys) if kind == "names" else keys[::-1]).tolist() == [2, 1, 0]
    assert index.slots_of([]).tolist() == []
    assert index.keys().tolist() == keys


def test_the_names_of_one_index_are_looked_up_in_another():
    names = ["a" * n + "日" * (n % 3) for n in [5, 0, 8, 16, 17, 3, 7, 1, 40]]
    index, other = FeatureIndex.of(names, "names"), FeatureIndex.of(names[::-2], "names")
    letters, starts = index.letters()
    assert letters.tobytes() == "".join(names).encode()
    data = np.ones(len(names), np.float32)
    indptr, slots, _ = other.map_rows(np.arange(len(names) + 1), (letters, starts), data, grow=False)
    assert np.diff(indptr).tolist() == [1, 0] * 4 + [1]
    assert slots.tolist() == [4, 3, 2, 1, 0]
    empty = FeatureIndex("names").letters()
    assert [array.tolist() for array in empty] == [[], [0]]


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize("value_type", [np.float32, np.float64])
def test_rows_keep_the_type_of_their_values(dtype, value_type):
    index = FeatureIndex("ids")
    keys = np.array([9, 0, 2, 0, 9, 0], dtype)[::2]  # every other one
    data = np.array([0.1, 0.2, 0.3], value_type)
    indptr, slots, values = index.map_rows(np.array([0, 2, 3]), keys, data, grow=True)
    assert (indptr.tolist(), slots.tolist()) == ([0, 2, 3], [0, 1, 0])
    assert values.dtype == value_type
    assert np.array_equal(values, data)


def test_what_is_no_kind_of_key_is_refused():
    with pytest.raises(ValueError, match="of ids or of names, not of 'words'"):
        FeatureIndex("words")


def test_one_name_makes_all_keys_names():
    assert kind_of({"a": 1.0}) == kind_of({1: 1.0, "a": 1.0}) == "names"
    assert kind_of({1: 1.0}) == kind_of({}) == kind_of({None: 1.0}) == "ids"


# Many keys


def random_ids():
    return np.random.default_rng(0).integers(0, LARGEST_ID, many(200_000), np.uint64, endpoint=True)


ID_STREAMS = {
    "random": random_ids,
    "in order": lambda: np.arange(many(200_000), dtype=np.uint64),
    "all low bits alike": lambda: np.arange(many(50_000), dtype=np.uint64) << np.uint64(40),
    "few, again and again": lambda: np.random.default_rng(0).zipf(1.2, many(200_000)).astype(np.uint64),
    "two halves": lambda: (np.arange(many(50_000)) * (2**32 + 1)).astype(np.uint64),
    "the largest first": lambda: np.arange(many(50_000), dtype=np.uint64)[::-1].copy(),
    "small ones among large ones": lambda: np.where(
        np.arange(many(200_000)) % 3 == 0, random_ids(), np.arange(many(200_000), dtype=np.uint64)
    ),
    "numbers as bits": lambda: np.arange(many(50_000)).astype(np.float64).view(np.uint64),
}


@pytest.mark.parametrize("ids", ID_STREAMS.values(), ids=ID_STREAMS.keys())
def test_many_ids_get_slots_in_order_of_first_appearance(ids):
    ids = ids()
    index = FeatureIndex("ids")
    slots = np.concatenate([index.slots_of(part) for part in np.array_split(ids, 7)])
    different, first = np.unique(ids, return_index=True)
    assert np.array_equal(index.keys(), ids[np.sort(first)])
    assert np.array_equal(index.keys()[slots], ids)
    assert len(index) == len(different)
    unknown = np.setdiff1d(different + np.uint64(1), different)[:1000]
    _, found, _ = index.map_rows(np.array([0, len(unknown)]), unknown, np.ones(len(unknown)), grow=False)
    assert len(found) == 0


def test_many_names_get_slots_in_order_of_first_appearance():
    n = many(50_000)
    names = [f"{'country' if k % 3 else 'città'}={k}" for k in range(n)]
    index = FeatureIndex("names")
    for part in np.array_split(np.arange(n), 7):
        assert index.slots_of(names[k] for k in part).tolist() == part.tolist()
    assert index.keys().tolist() == names
    assert index.slots_of(names[::-1]).tolist() == list(range(n))[::-1]


def test_names_that_differ_in_one_byte_are_different():
    names = ["x" * size for size in range(40)]
    names += [f"{'x' * at}y{'x' * (size - at - 1)}" for size in range(1, 40) for at in range(size)]
    index = FeatureIndex.of(names, "names")
    assert len(index) == len(set(names)) == len(names)
    assert looked_up(index, names) == list(range(len(names)))
    assert looked_up(index, [name + "\0" for name in names]) == [None] * len(names)


@each_kind
def test_one_example_of_many_features_is_as_many_of_one(kind):
    keys = range(many(20_000)) if kind == "ids" else [f"word {k}" for k in range(many(20_000))]
    x = dict.fromkeys(keys, 2.0)
    index = FeatureIndex(kind)
    expected = [(slot, 2.0) for slot in range(len(x))]
    assert map_dict(index, x, grow=True) == map_dict(index, x, grow=False) == expected
    assert index.keys().tolist() == list(keys)


# Memory


def keys_of(kind, start, stop):
    if kind == "names":
        return [f"{k:08x}" for k in range(start, stop)]
    return np.arange(start, stop, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


@each_kind
def test_a_feature_takes_at_most_40_bytes_at_any_size(kind):
    index = FeatureIndex(kind)
    size = 1000
    while size <= many(1_000_000 if kind == "ids" else 300_000):
        index.slots_of(keys_of(kind, len(index), size))
        assert len(index) == size
        assert index.nbytes <= MOST_BYTES * size
        size += max(100, size // 20)


@each_kind
def test_growing_never_takes_more_than_it_may_hold(kind):
    n, chunk = many(100_000), 500
    tracemalloc.start()
    try:
        index = FeatureIndex(kind)
        for start in range(0, n, chunk):
            index.slots_of(keys_of(kind, start, start + chunk))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert index.nbytes <= peak <= MOST_BYTES * n + 1000 * chunk  # and what a call needs for its rows


def test_ids_cost_the_same_however_large_they_are():
    small, large = FeatureIndex("ids"), FeatureIndex("ids")
    ids = np.arange(2000, dtype=np.uint64)
    small.slots_of(ids)
    large.slots_of(np.uint64(LARGEST_ID) - ids)
    assert large.nbytes == small.nbytes


def test_lookups_take_no_memory():
    index = FeatureIndex.of(["a", "b"], "names")
    before = index.nbytes
    map_rows(index, [{f"unknown {k}": 1.0 for k in range(1000)}], grow=False)
    map_dict(index, {LONG_NAME: 1.0}, grow=False)
    assert index.nbytes == before


# Keys and values that are none


NO_IDS = [-1, 2**64, 2**100, 1.5, float("nan"), None, (1,), "1", b"1", frozenset()]
NO_NAMES = [1, True, 1.5, None, ("a",), b"a", "\ud800", "a\udfff"]
NO_NUMBERS = [None, "red", "1.0", b"1", [1.0], (), {}, 1j, 10**400, object()]

GOOD = {"ids": {3: 1.0, 5: -1.0, LARGEST_ID: -1.0}, "names": {"a": 1.0, "b": -1.0, "ü": 2.0}}
NEW = {"ids": {5: 1.0, 8: -1.0, 0: -1.0}, "names": {"b": 1.0, "new": -1.0, "neu": 3.0}}


def refused(index, x, message):
    """Whether x is refused in these words, and the index is and goes on as if it had never come."""
    twin = index.copy()
    for grow in (True, False):
        with pytest.raises(TypeError, match=message):
            map_dict(index, x, grow=grow)
        assert state(index) == state(twin)
    assert looked_up(index, GOOD[index.kind]) == [0, 1, 2]
    return map_dict(index, NEW[index.kind], grow=True) == map_dict(twin, NEW[index.kind], grow=True)


def around(kind, key, value):
    """An example with a bad item before, between and after keys that are new."""
    items = list(NEW[kind].items())
    for place in range(len(items) + 1):
        yield dict([*items[:place], (key, value), *items[place:]])


@pytest.mark.parametrize(
    ("kind", "key"), [*itertools.product(["ids"], NO_IDS), *itertools.product(["names"], NO_NAMES)], ids=repr
)
def test_key_of_another_kind_is_named_and_leaves_no_trace(kind, key):
    for x in around(kind, key, -1.0):
        index = FeatureIndex(kind)
        map_dict(index, GOOD[kind], grow=True)
        assert refused(index, x, f"the feature {re.escape(repr(key))} is not a")


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: repr(value)[:20])
@each_kind
def test_value_that_is_no_number_is_named_and_leaves_no_trace(kind, value):
    key = "colour" if kind == "names" else 77
    for x in around(kind, key, value):
        index = FeatureIndex(kind)
        map_dict(index, GOOD[kind], grow=True)
        assert refused(index, x, rf"value of feature {key!r} is .*, which is no number; make it one")


def test_numbers_of_any_type_are_values():
    values = [True, 7, -1, np.float32(0.5), np.int8(-1), np.bool_(True), np.uint64(2**63), np.float64(-1.0)]
    index = FeatureIndex("ids")
    assert map_dict(index, dict(enumerate(values)), grow=True) == [
        (slot, float(value)) for slot, value in enumerate(values)
    ]


def test_whole_numbers_of_any_type_are_ids():
    index = FeatureIndex("ids")
    assert map_dict(index, {True: 1.0, False: 2.0}, grow=True) == [(0, 1.0), (1, 2.0)]
    assert index.keys().tolist() == [1, 0]
    for slot, key in enumerate([np.int32(5), np.uint64(LARGEST_ID), np.int64(7), np.uint8(9)], start=2):
        assert map_dict(index, {key: 1.0}, grow=True) == [(slot, 1.0)]
        assert looked_up(index, [int(key)]) == [slot]


def test_strings_of_any_type_are_names():
    class Name(str):
        __slots__ = ()

    index = FeatureIndex("names")
    assert map_dict(index, {np.str_("a"): 1.0, Name("b"): 2.0, "c": 3.0}, grow=True) == [
        (0, 1.0),
        (1, 2.0),
        (2, 3.0),
    ]
    assert looked_up(index, "abc") == [0, 1, 2]
