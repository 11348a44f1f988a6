"""The feature index beside a plain dict: the same slots for any keys, in any calls."""

import collections
import copy
import itertools
import pickle
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxcosine.core import FeatureIndex

MAX_BYTES = 40  # a feature with a name of eight letters
LARGEST_ID = 2**64 - 1
LONG_NAME = "long" * 25_000


class Oracle:
    """An index made of a dict."""

    def __init__(self, keys=()):
        self.slots = {key: slot for slot, key in enumerate(keys)}

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


def pairs(indptr, slots, values):
    """The slots and values of each row."""
    assert (indptr.dtype, slots.dtype) == (np.int64, np.uint32)
    assert len(slots) == len(values) == indptr[-1]
    items = list(zip(slots.tolist(), values.tolist(), strict=True))
    return [items[start:stop] for start, stop in itertools.pairwise(indptr.tolist())]


def map_dicts(index, examples, *, grow):
    return pairs(*index.map_dicts(list(examples), np.float64, grow=grow))


def map_dict(index, x, *, grow):
    return map_dicts(index, [x], grow=grow)[0]


def joined(names):
    """Names as `map_names` takes them."""
    encoded = [name.encode() for name in names]
    starts = np.cumsum([0, *map(len, encoded)])
    return np.frombuffer(b"".join(encoded), np.uint8), starts


def map_rows(index, examples, *, grow):
    """As map_dicts, by arrays."""
    keys = [key for x in examples for key in x]
    values = np.array([value for x in examples for value in x.values()], np.float64)
    indptr = np.cumsum([0, *map(len, examples)])
    if index.named:
        return pairs(*index.map_names(indptr, *joined(keys), values, grow=grow))
    return pairs(*index.map_ids(indptr, np.array(keys, np.uint64), values, grow=grow))


def state(index):
    return index.kind, len(index), index.keys().tolist()


def look_up(index, keys):
    """The slot of each key, None if it is unknown."""
    found = (map_dict(index, {key: 1.0}, grow=False) for key in keys)
    return [items[0][0] if items else None for items in found]


IDS = st.one_of(
    st.integers(0, LARGEST_ID),
    st.integers(0, 40),
    st.integers(0, 2**10 - 1).map(lambda k: k << 54),  # equal low bits
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


def examples_of(kind):
    keys = NAMES if kind == "names" else IDS
    return st.lists(st.dictionaries(keys, VALUES, max_size=8), max_size=12)


def same(a, b):
    """Whether slots and values are equal; NaN equals itself."""
    return repr(a) == repr(b)


each_kind = pytest.mark.parametrize("kind", ["ids", "names"])


# Beside the oracle


@each_kind
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_slots_are_given_in_order_of_first_appearance(kind, data):
    stream = data.draw(examples_of(kind))
    dicts, rows, oracle = FeatureIndex(kind), FeatureIndex(kind), Oracle()
    for cut in (slice(0, len(stream) // 2), slice(len(stream) // 2, None), slice(None)):
        grow = data.draw(st.booleans())
        expected = [oracle.map(x, grow=grow) for x in stream[cut]]
        assert same(map_dicts(dicts, stream[cut], grow=grow), expected)
        assert same(map_rows(rows, stream[cut], grow=grow), expected)
        assert state(dicts) == state(rows) == (kind, len(oracle.slots), list(oracle.slots))


@each_kind
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_truncate_forgets_exactly_the_later_keys(kind, data):
    before, after = data.draw(examples_of(kind)), data.draw(examples_of(kind))
    index = FeatureIndex(kind)
    map_rows(index, before, grow=True)
    keys = index.keys().tolist()
    count = data.draw(st.integers(0, len(keys) + 2))
    index.truncate(count)
    oracle = Oracle(keys[:count])
    assert index.keys().tolist() == keys[:count]
    assert look_up(index, keys) == [slot if slot < count else None for slot in range(len(keys))]
    assert same(map_dicts(index, after, grow=True), [oracle.map(x, grow=True) for x in after])


@each_kind
@pytest.mark.parametrize(
    "duplicate",
    [FeatureIndex.copy, copy.copy, copy.deepcopy, lambda index: pickle.loads(pickle.dumps(index))],
    ids=["method", "copy", "deepcopy", "pickle"],
)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_copies_are_equal_and_independent(kind, duplicate, data):
    before, after = data.draw(examples_of(kind)), data.draw(examples_of(kind))
    index = FeatureIndex(kind)
    map_rows(index, before, grow=True)
    copied, known = duplicate(index), state(index)
    assert state(copied) == known
    rows = map_rows(copied, after, grow=True)
    assert state(index) == known
    assert same(map_rows(index, after, grow=True), rows)
    assert state(copied) == state(index)


def test_pickles_name_no_instruction_set():
    assert b"maxcosine.core" in pickle.dumps(FeatureIndex("ids"))


@each_kind
def test_zeros_get_no_slot(kind):
    index = FeatureIndex(kind)
    a, b, c = ("a", "b", "c") if index.named else (10, 20, 30)
    assert map_dict(index, {a: 0.0, b: 2.0, c: -0.0}, grow=True) == [(0, 2.0)]
    assert map_rows(index, [{a: 0.0}, {c: 1.0, b: 0.0}, {}], grow=True) == [[], [(1, 1.0)], []]
    assert index.keys().tolist() == [b, c]


def test_keys_are_unsigned_numbers_or_strings():
    ids, names = FeatureIndex("ids", [LARGEST_ID, 0]), FeatureIndex("names", ["", "日本\0"])
    assert (ids.named, names.named) == (False, True)
    assert ids.keys().dtype == np.uint64
    assert ids.keys().tolist() == [LARGEST_ID, 0]
    assert [type(name) for name in names.keys()] == [str, str]  # noqa: SIM118, it is an array
    assert names.keys().tolist() == ["", "日本\0"]
    assert FeatureIndex("ids").keys().tolist() == FeatureIndex("names").keys().tolist() == []


@each_kind
def test_slots_of_finds_or_adds_keys(kind):
    keys = ["b", "a", "c"] if kind == "names" else [7, 3, LARGEST_ID]
    index = FeatureIndex(kind, keys[:2])
    found = index.slots_of(iter(keys[::-1]) if kind == "names" else keys[::-1])
    assert (found.dtype, found.tolist()) == (np.int64, [2, 1, 0])
    assert index.slots_of([]).tolist() == []
    assert index.keys().tolist() == keys


def test_letters_of_one_index_can_be_looked_up_in_another():
    names = ["a" * n + "日" * (n % 3) for n in [5, 0, 8, 16, 17, 3, 7, 1, 40]]
    index, other = FeatureIndex("names", names), FeatureIndex("names", names[::-2])
    letters, starts = index.letters()
    assert letters.tobytes() == "".join(names).encode()
    indptr, slots, _ = other.map_names(np.arange(10), letters, starts, np.ones(9, np.float32), grow=False)
    assert np.diff(indptr).tolist() == [1, 0] * 4 + [1]
    assert slots.tolist() == [4, 3, 2, 1, 0]
    assert [array.tolist() for array in FeatureIndex("names").letters()] == [[], [0]]


@pytest.mark.parametrize("id_type", [np.uint32, np.uint64])
@pytest.mark.parametrize("value_type", [np.float32, np.float64])
def test_rows_keep_the_type_of_their_values(id_type, value_type):
    index = FeatureIndex("ids")
    ids = np.array([9, 0, 2, 0, 9, 0], id_type)[::2]  # not contiguous
    values = np.array([0.1, 0.2, 0.3], value_type)
    indptr, slots, mapped = index.map_ids(np.array([0, 2, 3]), ids, values, grow=True)
    assert (indptr.tolist(), slots.tolist()) == ([0, 2, 3], [0, 1, 0])
    assert mapped.dtype == value_type
    assert np.array_equal(mapped, values)
    assert index.map_dicts([{9: 0.1}], value_type, grow=False)[2].tolist() == [value_type(0.1)]


# Many keys


def random_ids():
    return np.random.default_rng(0).integers(0, LARGEST_ID, 200_000, np.uint64, endpoint=True)


ID_STREAMS = {
    "random": random_ids,
    "in order": lambda: np.arange(200_000, dtype=np.uint64),
    "equal low bits": lambda: np.arange(50_000, dtype=np.uint64) << np.uint64(40),
    "few": lambda: np.random.default_rng(0).zipf(1.2, 200_000).astype(np.uint64),
    "equal halves": lambda: (np.arange(50_000) * (2**32 + 1)).astype(np.uint64),
    "descending": lambda: np.arange(50_000, dtype=np.uint64)[::-1].copy(),
    "bits of floats": lambda: np.arange(50_000).astype(np.float64).view(np.uint64),
}


@pytest.mark.parametrize("ids", ID_STREAMS.values(), ids=ID_STREAMS.keys())
def test_many_ids(ids):
    ids = ids()
    index = FeatureIndex("ids")
    slots = np.concatenate([index.slots_of(part) for part in np.array_split(ids, 7)])
    different, first = np.unique(ids, return_index=True)
    assert np.array_equal(index.keys(), ids[np.sort(first)])
    assert np.array_equal(index.keys()[slots], ids)
    unknown = np.setdiff1d(different + np.uint64(1), different)[:1000]
    _, found, _ = index.map_ids(np.array([0, len(unknown)]), unknown, np.ones(len(unknown)), grow=False)
    assert len(found) == 0


def test_many_names():
    names = [f"{'country' if k % 3 else 'città'}={k}" for k in range(50_000)]
    index = FeatureIndex("names")
    for part in np.array_split(np.arange(len(names)), 7):
        assert index.slots_of(names[k] for k in part).tolist() == part.tolist()
    assert index.keys().tolist() == names
    assert index.slots_of(names[::-1]).tolist() == list(range(len(names)))[::-1]
    found = map_dict(index, dict.fromkeys(names, 2.0), grow=False)
    assert found == [(slot, 2.0) for slot in range(len(names))]


def test_names_that_differ_in_one_byte_are_different():
    names = ["x" * size for size in range(40)]
    names += [f"{'x' * at}y{'x' * (size - at - 1)}" for size in range(1, 40) for at in range(size)]
    index = FeatureIndex("names", names)
    assert look_up(index, names) == list(range(len(names)))
    assert look_up(index, [name + "\0" for name in names]) == [None] * len(names)


@each_kind
def test_memory_of_a_feature_is_bounded_at_any_size(kind):
    index, size = FeatureIndex(kind), 1000
    while size <= 300_000:
        if kind == "names":
            index.slots_of(f"{k:08x}" for k in range(len(index), size))
        else:
            index.slots_of(np.arange(len(index), size, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
        assert index.nbytes <= MAX_BYTES * size
        size += max(100, size // 20)


# What is refused

BAD_IDS = [-1, 2**64, 2**100, 1.5, float("nan"), None, (1,), "1", b"1"]
BAD_NAMES = [1, True, 1.5, None, ("a",), b"a", "\ud800", "a\udfff"]
NOT_NUMBERS = [None, "red", "1.0", b"1", [1.0], {}, 1j, 10**400, object()]

GOOD = {"ids": {3: 1.0, 5: -1.0, LARGEST_ID: -1.0}, "names": {"a": 1.0, "b": -1.0, "ü": 2.0}}
NEW = {"ids": {5: 1.0, 8: -1.0, 0: -1.0}, "names": {"b": 1.0, "new": -1.0, "neu": 3.0}}


def check_refused(kind, key, value, message):
    """An example with a bad item at any position is refused in these words, and changes nothing."""
    items = list(NEW[kind].items())
    for position in range(len(items) + 1):
        x = dict([*items[:position], (key, value), *items[position:]])
        index = FeatureIndex(kind, [*GOOD[kind]])
        for grow in (True, False):
            with pytest.raises(TypeError, match=message):
                index.map_dicts([NEW[kind], x], np.float32, grow=grow)
            assert index.keys().tolist() == list(GOOD[kind])
        assert map_dict(index, NEW[kind], grow=True) == Oracle(GOOD[kind]).map(NEW[kind], grow=True)


@pytest.mark.parametrize(
    ("kind", "key"),
    [*itertools.product(["ids"], BAD_IDS), *itertools.product(["names"], BAD_NAMES)],
    ids=repr,
)
def test_key_of_another_kind_is_refused_by_name(kind, key):
    check_refused(kind, key, -1.0, f"the feature {re.escape(repr(key))} is not a")


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=lambda value: repr(value)[:20])
@each_kind
def test_value_that_is_not_a_number_is_refused_by_name(kind, value):
    key = "colour" if kind == "names" else 77
    check_refused(kind, key, value, rf"value of feature {key!r} is .*, which is not a number; use a number")


def test_errors_of_a_value_reach_the_caller():
    class Broken:
        def __float__(self):
            raise KeyError("broken")

    index = FeatureIndex("names")
    with pytest.raises(KeyError, match="broken"):
        index.map_dicts([{"a": 1.0, "b": Broken()}], np.float64, grow=True)
    assert len(index) == 0


@pytest.mark.parametrize("x", [[1.0], "a", 3, None, np.ones(2)])
def test_example_that_is_not_a_mapping_is_refused(x):
    with pytest.raises(TypeError, match="an example is a dict of feature to value, and this one is a"):
        FeatureIndex("ids").map_dicts([x], np.float64, grow=True)


def test_numbers_of_any_type_are_values():
    values = [True, 7, -1, np.float32(0.5), np.int8(-1), np.bool_(True), np.uint64(2**63), Fraction(1, 4)]
    expected = [(slot, float(value)) for slot, value in enumerate(values)]
    assert map_dict(FeatureIndex("ids"), dict(enumerate(values)), grow=True) == expected


def test_whole_numbers_of_any_type_are_ids():
    index = FeatureIndex("ids")
    assert map_dict(index, {True: 1.0, False: 2.0}, grow=True) == [(0, 1.0), (1, 2.0)]
    for slot, key in enumerate([np.int32(5), np.uint64(LARGEST_ID), np.int64(7), np.uint8(9)], start=2):
        assert map_dict(index, {key: 1.0}, grow=True) == [(slot, 1.0)]
        assert look_up(index, [int(key)]) == [slot]


def test_strings_and_mappings_of_any_type():
    class Name(str):
        __slots__ = ()

    index = FeatureIndex("names")
    names = {np.str_("a"): 1.0, Name("b"): 2.0, "c": 3.0}
    assert map_dict(index, names, grow=True) == [(0, 1.0), (1, 2.0), (2, 3.0)]
    ordered = collections.OrderedDict(names)
    ordered.move_to_end("a")
    assert map_dict(index, ordered, grow=False) == [(1, 2.0), (2, 3.0), (0, 1.0)]
    assert map_dict(index, collections.ChainMap(names), grow=False) == map_dict(index, names, grow=False)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda ids, names: FeatureIndex("words"), ValueError, "kind must be 'ids' or 'names', not 'words'"),
        (lambda ids, names: names.slots_of(["a", 1]), TypeError, "the feature 1 is not a str"),
        (lambda ids, names: names.slots_of(["\ud800"]), TypeError, "surrogate"),
        (lambda ids, names: ids.letters(), TypeError, "this index maps ids"),
        (lambda ids, names: ids.map_dicts([{}], np.int64, grow=True), TypeError, "float32 or float64"),
        (
            lambda ids, names: ids.map_ids(np.array([0, 1]), np.array([1]), np.ones(1), grow=True),
            TypeError,
            "ids must be an array of uint32 or uint64",
        ),
        (
            lambda ids, names: ids.map_ids(np.array([0, 2]), np.ones(1, np.uint64), np.ones(1), grow=True),
            ValueError,
            "indptr must rise from 0 to the number of values",
        ),
        (
            lambda ids, names: ids.map_ids(np.array([0, 2]), np.ones(1, np.uint64), np.ones(2), grow=True),
            ValueError,
            "the same length",
        ),
        (
            lambda ids, names: names.map_names(
                np.array([0, 1]), np.ones(1, np.uint8), np.array([0, 2]), np.ones(1), grow=True
            ),
            ValueError,
            "starts must rise within the letters",
        ),
    ],
)
def test_bad_arguments_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call(FeatureIndex("ids"), FeatureIndex("names"))
