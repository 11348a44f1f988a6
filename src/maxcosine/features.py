"""What the slots of the weights stand for: columns of X, or keys that come as they come.

- columns: column j of X has slot j;
- columns, sparse: only columns that were written have a slot, found through an index of their numbers;
- keys: ids or names, each with the next slot when it first comes, found through an index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxcosine.engine import UNKNOWN, SlotRows, csr_array
from maxcosine.index import FeatureIndex, bad_value, kind_of

if TYPE_CHECKING:
    import scipy.sparse


class Features:
    """The features of one model; `n_columns` is None where features come by key."""

    def __init__(
        self, n_columns: int | None, names: np.ndarray | None = None, index: FeatureIndex | None = None
    ) -> None:
        self.n_columns = n_columns
        self.names = names
        """The names of the columns, if X had names."""
        self.index = index
        self.bits: int | None = None
        """The columns are hashed: there are 2^bits of them."""
        self.kept_names: dict[int, str] | None = None
        """Names of hashed columns, as far as they are known."""
        self._read: dict[str, Any] = {}

    @classmethod
    def by_key(cls, kind: str) -> Features:
        return cls(None, index=FeatureIndex(kind))

    @property
    def keyed(self) -> bool:
        return self.n_columns is None

    @property
    def sparse(self) -> bool:
        """Columns, but only those that were written have a slot."""
        return self.n_columns is not None and self.index is not None

    @property
    def n_slots(self) -> int:
        if self.index is not None:
            return len(self.index)
        assert self.n_columns is not None
        return self.n_columns

    @property
    def n_features(self) -> int:
        return self.n_slots if self.n_columns is None else self.n_columns

    def copy(self) -> Features:
        twin = Features(self.n_columns, self.names, None if self.index is None else self.index.copy())
        twin.bits = self.bits
        twin.kept_names = None if self.kept_names is None else dict(self.kept_names)
        return twin

    def widen(self, n_columns: int, names: np.ndarray | None) -> None:
        """X has so many columns now, of these names."""
        assert self.n_columns is not None
        self.n_columns = max(n_columns, self.n_columns)
        self.names = names
        self._read.clear()

    def make_sparse(self, columns: np.ndarray) -> None:
        """Only these columns have a slot from now on, in this order."""
        self.index = FeatureIndex.of(columns, "ids")

    def keys(self) -> np.ndarray:
        """What each feature is known by, in the order of `coef_`: names, ids or column numbers."""
        if self.n_columns is None:
            assert self.index is not None
            return self.index.keys()
        return np.arange(self.n_columns) if self.names is None else self.names

    @property
    def undecided(self) -> bool:
        """No key has come yet that says whether features have names or ids."""
        return self.keyed and self.n_slots == 0

    @property
    def by_name(self) -> bool:
        return self.names is not None or (self.keyed and self.index is not None and self.index.named)

    def slot_keys(self) -> np.ndarray:
        """What the feature of each slot is known by."""
        if self.sparse:
            assert self.index is not None
            return self.keys()[self.index.keys().astype(np.int64)]
        return self.keys()

    def restore(self, index: FeatureIndex | None, n_slots: int) -> None:
        """Forget the keys that came since the index was this one, with so many; columns stay."""
        self.index = index
        if index is not None:
            index.truncate(n_slots)

    # Rows

    def map(self, X: Any, keys: np.ndarray | None = None, *, grow: bool) -> Any:
        """Rows of columns as rows of slots; unknown features are left out unless there may be more.

        X, canonical CSR or dense, has columns that are called by these names or ids, or that are known by
        their numbers.
        """
        if self.index is None:
            return X
        X = csr_array(X)
        by_name = keys is not None and keys.dtype == object
        index = self._index_of("names" if by_name else "ids", grow=grow) if self.undecided else self.index
        if self.keyed and by_name != index.named:
            here, there = ("name", "none") if self.index.named else ("number", "names")
            raise ValueError(
                f"this model knows its features by {here}, and the columns of X have {there}; give a data "
                "frame whose columns are called as the features are, or dicts to learn_many and predict_many"
            )
        if self.keyed and keys is not None:
            given: Any = keys[X.indices]
            given = given.tolist() if by_name else given
        else:
            given = np.ascontiguousarray(X.indices).view(np.dtype(f"u{X.indices.itemsize}"))
        return self.slot_rows(*index.map_rows(X.indptr, given, X.data, grow=grow))

    def map_dicts(self, examples: Sequence[Mapping[Any, Any]], dtype: np.dtype, *, grow: bool) -> Any:
        """Examples as rows of slots; unknown features are left out unless there may be more."""
        if not self.keyed:
            return self.map(self._rows_of_columns(examples, dtype, grow=grow), grow=grow)
        room = sum(map(len, examples)) + 1
        slots, data, ends, end = np.empty(room, np.uint32), np.empty(room), [0], 0
        for x in examples:
            end += self.map_dict(x, slots[end:], data[end:], grow=grow)
            ends.append(end)
        return self.slot_rows(np.array(ends), slots[:end], data[:end].astype(dtype))

    def map_dict(self, x: Mapping[Any, Any], slots: np.ndarray, data: np.ndarray, *, grow: bool) -> int:
        """Slots and values of an example of keys, into arrays that are long enough; returns how many."""
        return self.index_for(x, grow=grow).map_dict(plain_dict(x), slots, data, grow=grow)

    def index_for(self, x: Mapping[Any, Any], *, grow: bool) -> FeatureIndex:
        """The index that the keys of an example are in; as long as it is empty, it is of any kind."""
        assert self.index is not None
        return self._index_of(kind_of(x), grow=grow) if self.index.count == 0 and x else self.index

    def _index_of(self, kind: str, *, grow: bool) -> FeatureIndex:
        """The index, which is still empty, as one of this kind; only learning makes it so for good."""
        assert self.index is not None
        index = self.index if self.index.kind == kind else FeatureIndex(kind)
        if grow:
            self.index = index
        return index

    def _rows_of_columns(
        self, examples: Sequence[Mapping[Any, Any]], dtype: np.dtype, *, grow: bool
    ) -> scipy.sparse.csr_array:
        """Examples whose keys are names or numbers of columns."""
        assert self.n_columns is not None
        places = range(self.n_columns) if self.names is None else self._places()
        columns, values, ends = [], [], [0]
        for x in examples:
            for key, value in x.items():
                if key in places:
                    columns.append(key if self.names is None else places[key])
                    values.append(_number(key, value))
                elif grow:
                    raise ValueError(
                        f"the feature {key!r} is none of the {self.n_columns} columns that this model was "
                        "fitted with; learn from dicts from the start, where features may come late"
                    )
            ends.append(len(columns))
        shape = (len(examples), self.n_columns)
        X = csr_array((np.array(values, dtype), np.array(columns, np.int64), ends), shape=shape)
        X.sort_indices()
        X.eliminate_zeros()
        return X

    def slot_rows(
        self, indptr: np.ndarray, slots: np.ndarray, data: np.ndarray, squares: np.ndarray | None = None
    ) -> SlotRows:
        """Rows of slots of these features; their square norms, if they are known."""
        shape = len(indptr) - 1, self.n_slots
        return SlotRows(indptr, slots, data, shape, UNKNOWN if squares is None else squares)

    def _places(self) -> dict[str, int]:
        assert self.names is not None
        if "places" not in self._read:
            self._read["places"] = {name: column for column, name in enumerate(self.names.tolist())}
        return self._read["places"]  # type: ignore[no-any-return]


def plain_dict(x: Mapping[Any, Any]) -> dict[Any, Any]:
    """The same items in a dict that is nothing else: others may have an order of their own."""
    if type(x) is dict:
        return x
    if not isinstance(x, Mapping):
        raise TypeError(
            f"an example is a dict of feature to value, and this one is a {type(x).__name__}; arrays and "
            "sparse matrices go to partial_fit and predict"
        )
    return dict(x)


def union(all_features: Sequence[Features]) -> tuple[Features, list[np.ndarray]]:
    """The features of several models, and for each model where its slots are among them."""
    kinds = [None if features.undecided else features.by_name for features in all_features]
    named = True in kinds
    _refuse_other_hashes(all_features)
    if named and False in kinds:
        a, b = kinds.index(True), kinds.index(False)
        raise ValueError(
            f"model {a} knows its features by name and model {b} by number; name the columns in both, or "
            "in neither"
        )
    _refuse_other_hashes(all_features)
    if any(features.keyed for features in all_features):
        index = FeatureIndex("names" if named else "ids")
        return Features(None, index=index), [
            index.slots_of(features.slot_keys()) for features in all_features
        ]
    if not named:
        columns = Features(max(features.n_features for features in all_features))
        columns.bits = all_features[0].bits
        columns.kept_names = _kept_names(all_features)
        return columns, [features.slot_keys() for features in all_features]
    index = FeatureIndex("names")
    for features in all_features:
        index.slots_of(features.keys())
    slots = [index.slots_of(features.slot_keys()) for features in all_features]
    return Features(len(index), names=index.keys()), slots


def _refuse_other_hashes(all_features: Sequence[Features]) -> None:
    """Columns of the same number mean the same only if they were hashed alike, or all of them not."""

    def told(features: Features) -> str:
        return (
            f"hashes its features to {features.bits} bits" if features.bits else "does not hash its features"
        )

    first = all_features[0]
    for number, features in enumerate(all_features):
        if features.bits != first.bits:
            raise ValueError(
                f"model 0 {told(first)} and model {number} {told(features)}; merge models that were learnt "
                "with the same bits"
            )


def _kept_names(all_features: Sequence[Features]) -> dict[int, str] | None:
    """The names of hashed columns, each as the first model that knows it has it."""
    kept: dict[int, str] = {}
    for features in reversed(all_features):
        kept |= features.kept_names or {}
    return kept or None


def _number(key: Any, value: Any) -> float:
    if isinstance(value, (str, bytes)):
        raise bad_value(key, value)
    try:
        return float(value)
    except (TypeError, OverflowError):
        raise bad_value(key, value) from None
