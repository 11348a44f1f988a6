"""What slots stand for: columns, the columns that occurred, or keys; and how models share them."""

import collections
import itertools

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from maxcosine import core
from maxcosine.core import FeatureIndex
from maxcosine.features import Features, kind_of, map_names, plain_dict, union
from maxcosine.rows import SlotRows

FLOAT = np.dtype(np.float64)


def rows(mapped):
    """The non-zeros of each row, as (slot, value) in the order in which they are stored."""
    if isinstance(mapped, SlotRows):
        assert (mapped.indptr.dtype, mapped.slots.dtype) == (np.int64, np.uint32)
        pairs = list(zip(mapped.slots.tolist(), mapped.values.tolist(), strict=True))
    else:
        pairs = list(zip(mapped.indices.tolist(), mapped.data.tolist(), strict=True))
    return [pairs[start:stop] for start, stop in itertools.pairwise(mapped.indptr.tolist())]


def csr(*given_rows):
    return scipy.sparse.csr_array(np.array(given_rows, np.float64))


def columns(n=4, names=None):
    return Features(n, None if names is None else np.array(list(names), object))


def written(n, *used, names=None):
    """Sparse columns: only those used have slots."""
    features = columns(n, names)
    features.index = FeatureIndex("ids", np.array(used))
    return features


def by_key(*keys):
    kind = "names" if any(isinstance(key, str) for key in keys) else "ids"
    return Features(None, index=FeatureIndex(kind, keys))


# Columns


def test_columns_are_their_own_slots():
    features, X = columns(4), csr([0, 1, 0, 2], [3, 0, 0, 0])
    assert features.map(X, grow=True) is X
    assert (features.n_slots, features.n_features) == (4, 4)
    assert features.keys().tolist() == features.slot_keys().tolist() == [0, 1, 2, 3]
    assert (features.keyed, features.sparse, features.by_name) == (False, False, False)


def test_columns_are_known_by_their_names_if_they_have_any():
    features = columns(3, "abc")
    assert features.keys().tolist() == ["a", "b", "c"]
    assert features.by_name


def test_columns_become_more_and_never_fewer():
    features = columns(2, "ab")
    features.widen(3, np.array(["a", "b", "c"], object))
    assert rows(features.map_dicts([{"c": 1.0}], FLOAT, grow=True)) == [[(2, 1.0)]]
    features.widen(2, features.names)
    assert features.n_features == 3


@pytest.mark.parametrize("names", [None, "abcd"])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_dicts_of_columns_are_rows(names, data):
    X = np.array(data.draw(st.lists(st.lists(st.sampled_from([0, 0, 1, -2.5]), min_size=4, max_size=4))))
    X = X.reshape(-1, 4).astype(float)
    keys = range(4) if names is None else names
    order = data.draw(st.permutations(range(4)))
    examples = [{keys[column]: row[column] for column in order} for row in X.tolist()]
    mapped = columns(4, names).map_dicts(examples, FLOAT, grow=True)
    assert mapped.shape == X.shape
    assert rows(mapped) == rows(csr(*X)) if len(X) else rows(mapped) == []


@pytest.mark.parametrize("features", [columns(3, "abc"), columns(3), written(3, 1), written(3, names="abc")])
@pytest.mark.parametrize("key", ["d", 3, -1, None, 1.5, ("a",)])
def test_unknown_column_is_left_out_or_refused(features, key):
    known = "b" if features.by_name else 1
    mapped = features.map_dicts([{known: 0.0, key: 1.0}], FLOAT, grow=False)
    assert rows(mapped) == [[]]
    with pytest.raises(ValueError, match=r"the feature .* is none of the 3 columns that this model was fitted"):
        features.map_dicts([{known: 2.0}, {known: 1.0, key: 1.0}], FLOAT, grow=True)


@pytest.mark.parametrize("value", [None, "red", "1", b"1", [1.0], 1j, 10**400], ids=lambda value: repr(value)[:9])
def test_value_of_a_column_that_is_not_a_number_is_refused(value):
    with pytest.raises(TypeError, match=r"value of feature 2 is .*, which is not a number"):
        columns(3).map_dicts([{1: 1.0, 2: value}], FLOAT, grow=True)


# Sparse columns


def test_sparse_columns_have_slots_only_if_they_occurred():
    features = written(5, 3, 1)
    assert (features.n_slots, features.n_features) == (2, 5)
    assert features.slot_keys().tolist() == [3, 1]
    assert features.keys().tolist() == list(range(5))
    assert features.sparse
    X = csr([1, 2, 0, 4, 0], [0, 0, 0, 0, 5])
    assert rows(features.map(X, grow=False)) == [[(1, 2.0), (0, 4.0)], []]
    assert features.n_slots == 2
    assert rows(features.map(X, grow=True)) == [[(2, 1.0), (1, 2.0), (0, 4.0)], [(3, 5.0)]]
    assert features.slot_keys().tolist() == [3, 1, 0, 4]
    features.index.truncate(2)
    assert features.slot_keys().tolist() == [3, 1]


def test_sparse_columns_keep_their_names():
    features = written(4, 2, names="abcd")
    assert features.slot_keys().tolist() == ["c"]
    assert rows(features.map_dicts([{"d": 1.0, "c": 2.0}], FLOAT, grow=True)) == [[(0, 2.0), (1, 1.0)]]
    assert features.slot_keys().tolist() == ["c", "d"]


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("storage", [np.asarray, scipy.sparse.csr_array])
def test_rows_of_any_storage_are_mapped_alike(index, storage):
    features = written(5, 3, 1)
    X = csr([1, 2, 0, 4, 0])
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    X = X if storage is scipy.sparse.csr_array else X.toarray()
    assert rows(features.map(X, grow=True)) == [[(2, 1.0), (1, 2.0), (0, 4.0)]]


# Keys


def test_keys_get_slots_in_order_of_first_appearance():
    features = Features.by_key("names")
    assert features.keyed
    assert features.n_columns is None
    assert rows(features.map_dicts([{"b": 1.0, "a": 0.0}, {}, {"a": 2.0, "b": 3.0}], FLOAT, grow=True)) == [
        [(0, 1.0)],
        [],
        [(1, 2.0), (0, 3.0)],
    ]
    assert features.keys().tolist() == features.slot_keys().tolist() == ["b", "a"]
    assert features.n_slots == features.n_features == 2
    assert rows(features.map_dicts([{"c": 1.0, "a": 1.0}], FLOAT, grow=False)) == [[(1, 1.0)]]
    assert features.n_slots == 2


def test_rows_and_dicts_of_the_same_keys_get_the_same_slots():
    names = np.array(["x", "y", "z"], object)
    X = csr([0, 1, 2], [3, 0, 0])
    frame, dicts = Features.by_key("names"), Features.by_key("names")
    examples = [{"y": 1.0, "z": 2.0}, {"x": 3.0}]
    assert rows(frame.map(X, names, grow=True)) == rows(dicts.map_dicts(examples, FLOAT, grow=True))
    assert frame.keys().tolist() == dicts.keys().tolist()
    numbers, ids = Features.by_key("ids"), Features.by_key("ids")
    examples = [{1: 1.0, 2: 2.0}, {0: 3.0}]
    assert rows(numbers.map(X, grow=True)) == rows(ids.map_dicts(examples, FLOAT, grow=True))


def test_columns_without_names_are_refused_where_features_have_names():
    with pytest.raises(ValueError, match="knows its features by name, and the columns of X have no names"):
        by_key("a").map(csr([1.0, 2.0]), grow=True)


def test_duplicate_column_names_share_a_slot():
    X = csr([1, 0, 2, 4], [0, 3, 0, 0])
    keys = np.array(["a", "b", "a", "c"], object)
    mapped = by_key("c").map(X, keys, grow=True)
    assert rows(mapped) == [[(1, 1.0), (1, 2.0), (0, 4.0)], [(2, 3.0)]]


def test_columns_of_a_frame_without_a_slot_are_left_out():
    X, keys = csr([1, 2, 3], [0, 2, 0]), np.array(["a", "b", "c"], object)
    X.data[0] = 0.0  # stored, and yet a zero
    features = by_key("c", "z", "a")
    assert rows(features.map(X, keys, grow=False)) == [[(0, 3.0)], []]
    assert rows(by_key(9, 7).map(X, np.array([7, 8, 9]), grow=True)) == [[(2, 2.0), (0, 3.0)], [(2, 2.0)]]
    assert features.n_slots == 3


def test_one_name_makes_all_keys_names():
    assert kind_of({"a": 1.0}) == kind_of({1: 1.0, "a": 1.0}) == "names"
    assert kind_of({1: 1.0}) == kind_of({}) == kind_of({None: 1.0}) == "ids"


def test_examples_are_dicts():
    x = {"a": 1.0}
    assert plain_dict(x) is x
    assert type(plain_dict(collections.Counter("aab"))) is dict
    with pytest.raises(TypeError, match=r"an example is a dict .* and this one is a list; pass arrays"):
        plain_dict([1.0])


@pytest.mark.parametrize("first", ["ids", "names"])
def test_first_key_decides_between_ids_and_names(first):
    for x, kind in (({"a": 1.0}, "names"), ({7: 1.0}, "ids")):
        features = Features.by_key(first)
        features.map_dicts([{}], FLOAT, grow=True)
        assert features.keys().tolist() == []
        features.map_dicts([{}, x], FLOAT, grow=True)
        assert features.index.kind == kind
        assert features.keys().tolist() == list(x)


@pytest.mark.parametrize("features", [Features.by_key("names"), Features.by_key("ids"), by_key("a"), by_key(7)])
def test_looking_up_keys_changes_nothing(features):
    before = features.index.kind, features.keys().tolist()
    for x in ({}, {"a": 1.0, "b": 1.0}, {7: 1.0, 8: 1.0}):
        if not before[1] or type(before[1][0]) in map(type, x):
            mapped = features.map_dicts([x], FLOAT, grow=False)
            assert rows(mapped) == [[(0, 1.0)] if before[1] else []]
            assert (features.index.kind, features.keys().tolist()) == before


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_have_the_type_of_the_weights(dtype):
    for features in (Features.by_key("ids"), columns(3), written(3, 1)):
        mapped = features.map_dicts([{1: 0.1, 2: True}], np.dtype(dtype), grow=True)
        assert mapped.dtype == dtype
        assert [value for _, value in rows(mapped)[0]] == [dtype(0.1), 1.0]


@pytest.mark.parametrize("make", [lambda: by_key("a", "b"), lambda: by_key(5, 0), lambda: written(9, 5, 0)])
def test_copy_is_independent(make):
    features = make()
    copied, key = features.copy(), "c" if features.by_name else 8
    copied.map_dicts([{key: 1.0}], FLOAT, grow=True)
    assert copied.slot_keys().tolist() == [*features.slot_keys().tolist(), key]
    assert features.n_slots == 2


# The features of several models


NUMBERED = {
    "columns": lambda keys: columns(12),
    "sparse columns": lambda keys: written(12, *keys),
    "ids": lambda keys: by_key(*keys),
}
NAMED = {
    "columns": lambda keys: columns(len(keys), keys),
    "sparse columns": lambda keys: written(len(keys), *range(len(keys))[::2], names=keys),
    "names": lambda keys: by_key(*keys),
}
some_numbers = st.lists(st.integers(0, 11), min_size=1, max_size=6, unique=True)
some_names = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6, unique=True)


@pytest.mark.parametrize(("kinds", "some_keys"), [(NUMBERED, some_numbers), (NAMED, some_names)])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_union_knows_every_feature_by_its_own_key(kinds, some_keys, data):
    models = [
        kinds[kind](data.draw(some_keys))
        for kind in data.draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=4))
    ]
    before = [features.slot_keys().tolist() for features in models]
    together, slots = union(models)
    assert together.by_name == (kinds is NAMED)
    assert together.keyed == any(features.keyed for features in models)
    for features, places, keys in zip(models, slots, before, strict=True):
        assert together.slot_keys()[places].tolist() == features.slot_keys().tolist() == keys
    known = {key for features in models for key in (features.slot_keys() if together.keyed else features.keys())}
    assert set(together.keys().tolist()) == known
    assert len(together.keys()) == len(known)


def test_union_of_names_and_numbers_is_refused():
    for named, numbered in itertools.product((by_key("a"), columns(2, "ab")), (by_key(1), columns(2), written(2, 1))):
        with pytest.raises(ValueError, match="model 0 knows its features by name and model 2 by number"):
            union([named, named, numbered])
        with pytest.raises(ValueError, match="model 1 knows its features by name and model 0 by number"):
            union([numbered, named])


# Hashed columns


def hashed(bits, **kept):
    kept_names = {int(column[1:]): name for column, name in kept.items()} or None
    return Features(1 << bits, bits=bits, kept_names=kept_names)


def test_union_of_hashed_columns_keeps_the_first_known_names():
    together, slots = union([hashed(4, c3="first", c5="five"), hashed(4), hashed(4, c3="third", c7="seven")])
    assert (together.bits, together.n_features) == (4, 16)
    assert together.kept_names == {3: "first", 5: "five", 7: "seven"}
    assert [s.tolist() for s in slots] == [list(range(16))] * 3
    assert union([hashed(4), hashed(4)])[0].kept_names is None


@pytest.mark.parametrize("other", [hashed(5), columns(16), by_key(1, 2)], ids=["bits", "columns", "keys"])
def test_union_of_differently_hashed_columns_is_refused(other):
    with pytest.raises(ValueError, match=r"model 0 hashes its features to 4 bits and model 1 .* same bits"):
        union([hashed(4), other])


# Names of text


def joined(names):
    encoded = [name.encode() for name in names]
    return np.frombuffer(b"".join(encoded), np.uint8), np.cumsum([0, *map(len, encoded)])


some_rows = st.lists(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from([0.0, 1.0, -1.0, 0.5, 3.0])), max_size=8),
    max_size=4,
)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=60, deadline=None)
@given(given_rows=some_rows, known=some_names, grow=st.booleans(), log1p=st.booleans(), l2=st.booleans())
def test_names_are_added_up_and_transformed_before_unknown_ones_are_left_out(dtype, given_rows, known, grow, log1p, l2):
    index = FeatureIndex("names", known)
    items = [item for row in given_rows for item in row]
    indptr = np.cumsum([0, *map(len, given_rows)])
    values = np.array([value for _, value in items], dtype)
    letters, starts = joined([name for name, _ in items])
    mapped = map_names(index, indptr, letters, starts, values, grow=grow, log1p=log1p, l2=l2)
    assert mapped[2].dtype == dtype
    assert (grow and len(index) >= len(known)) or index.keys().tolist() == known
    keys = index.keys().tolist()
    for row, found in zip(given_rows, rows(SlotRows(*mapped, len(index))), strict=True):
        sums = collections.defaultdict(float)
        for name, value in row:
            sums[name] += value
        if log1p:
            sums = {name: np.copysign(np.log1p(abs(value)), value) for name, value in sums.items()}
        norm = np.sqrt(sum(value**2 for value in sums.values())) if l2 else 1.0
        expected = {name: value / norm for name, value in sums.items() if value and name in keys}
        assert {keys[slot]: value for slot, value in found} == pytest.approx(expected, rel=1e-6)


def test_length_counts_unknown_names_in_a_fixed_order():
    """The unknown names first, in lanes, and then the known ones: always the same bits."""
    dice = np.random.default_rng(0)
    names, values = [f"n{k}" for k in range(23)], dice.normal(size=23)
    index = FeatureIndex("names", names[::2])
    indptr = np.array([0, 23])
    _, _, found = map_names(index, indptr, *joined(names), values, grow=False, log1p=False, l2=True)
    square = core.square_norms(np.array([0, 11]), values[1::2].copy())[0]
    for value in values[::2]:
        square += value * value
    assert np.array_equal(found, values[::2] / np.sqrt(square))
