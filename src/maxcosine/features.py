"""What the slots of the weights stand for: columns of X, hashed columns, or exact keys.

- columns: column j of X has slot j; hashed features are columns, too;
- sparse columns: a column gets the next slot when it first occurs, found through an index of column numbers;
- keys: an id or name gets the next slot when it first occurs, found through an index.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from maxcosine import core
from maxcosine.core import FeatureIndex
from maxcosine.records import RecordSchema, united_schema
from maxcosine.rows import SlotRows, csr_array

if TYPE_CHECKING:
    import scipy.sparse

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]
"""CSR arrays: indptr, slots and values."""

NO_SLOT = np.iinfo(np.uint32).max
"""Marks a feature that has no slot."""


@dataclass(eq=False)
class Features:
    """The features of one model."""

    n_columns: int | None
    """The number of columns; None if features are known by key."""
    names: np.ndarray | None = None
    """The names of the columns, if X had names."""
    index: FeatureIndex | None = None
    """The slots of column numbers, ids or names; without an index, slots are column numbers."""
    bits: int | None = None
    """The columns are hashed: there are 2^bits of them."""
    kept_names: dict[int, str] | None = None
    """Names of hashed columns by column number, as far as they are known."""
    hashed: str | None = None
    """What was hashed: the "ids" of svmlight's format or the "names" of Vowpal Wabbit's; None if it is not known."""
    records: RecordSchema | None = None
    """What the columns are, if the examples are records: tables with named columns."""
    _column_of_name: dict[str, int] | None = field(default=None, init=False, repr=False)

    @classmethod
    def by_key(cls, kind: str) -> Features:
        """Return features known by key, none so far; `kind` is "ids" or "names"."""
        return cls(None, index=FeatureIndex(kind))

    @classmethod
    def of_records(cls, schema: RecordSchema, bits: int) -> Features:
        """Return features of records, none so far, hashed to 2^bits columns or, with 0 bits, known by name.

        Only columns that occur get a slot, so that a model is as large as what it has seen.
        """
        features = cls(1 << bits, index=FeatureIndex("ids")) if bits else cls.by_key("names")
        features.set_hashing(bits, "records")
        features.records = schema
        return features

    @property
    def keyed(self) -> bool:
        """Whether features are known by id or name."""
        return self.n_columns is None

    @property
    def takes_dicts(self) -> bool:
        """Whether a dict of feature to value is an example as it is."""
        return self.keyed and self.records is None

    @property
    def sparse(self) -> bool:
        """Whether features are columns, of which only those that occurred have a slot."""
        return self.n_columns is not None and self.index is not None

    @property
    def undecided(self) -> bool:
        """Whether features are known by key, but none has occurred that shows if keys are ids or names."""
        return self.keyed and self.n_slots == 0

    @property
    def by_name(self) -> bool:
        """Whether features have names."""
        return self.names is not None or (self.keyed and self.index is not None and self.index.named)

    @property
    def n_slots(self) -> int:
        """The number of slots in use."""
        if self.index is not None:
            return len(self.index)
        assert self.n_columns is not None
        return self.n_columns

    @property
    def n_features(self) -> int:
        """The number of features, with or without a slot."""
        return self.n_slots if self.n_columns is None else self.n_columns

    def copy(self) -> Features:
        """Return a copy that can change on its own."""
        index = None if self.index is None else self.index.copy()
        kept = None if self.kept_names is None else dict(self.kept_names)
        return replace(self, index=index, kept_names=kept)

    def set_hashing(self, bits: int, text_format: str | None) -> None:
        """Remember that columns are hashed to so many bits, from text in this format; 0 bits are no hashing."""
        self.bits = bits or None
        self.hashed = {"svmlight": "ids", "vw": "names", "records": "names"}.get(text_format or "") if bits else None

    def widen(self, n_columns: int, names: np.ndarray | None) -> None:
        """Take over the columns of a new X, which may be more than before."""
        assert self.n_columns is not None
        if self.bits is not None and n_columns > self.n_columns:
            raise ValueError(
                f"the features of this model are hashed to {self.n_columns:,} columns, and X has {n_columns:,}; "
                "hash X to as many bits"
            )
        self.n_columns = max(n_columns, self.n_columns)
        self.names = names
        self._column_of_name = None

    def keys(self) -> np.ndarray:
        """Return the name, id or column number of each feature, in the order of `coef_`."""
        if self.n_columns is None:
            assert self.index is not None
            return self.index.keys()
        return np.arange(self.n_columns) if self.names is None else self.names

    def slot_keys(self) -> np.ndarray:
        """Return the name, id or column number of the feature of each slot."""
        if not self.sparse:
            return self.keys()
        columns = self.slot_columns()
        return columns if self.names is None else self.names[columns]

    def names_of(self, slots: np.ndarray) -> list[Any]:
        """Return the keys of slots; of a hashed column, the name that was kept, if one was."""
        keys = self.slot_keys()[slots].tolist()
        return keys if self.kept_names is None else [self.kept_names.get(key, key) for key in keys]

    def slot_columns(self) -> np.ndarray:
        """Return the column of each slot of sparse features."""
        assert self.index is not None
        return self.index.keys().astype(np.int64)

    # Rows

    def map(self, X: Any, keys: np.ndarray | None = None, *, grow: bool) -> Any:
        """Return rows of slots for canonical rows of columns; X itself if column numbers are slots.

        `keys` are the names (object) or ids of the columns; without them, a column is known by its number. Features
        without a slot get one if `grow`; else they are left out.
        """
        if self.index is None:
            return X
        X = csr_array(X)
        by_name = keys is not None and keys.dtype == object
        index = self._index_of("names" if by_name else "ids", grow=grow) if self.undecided else self.index
        if self.keyed and by_name != index.named:
            known_by, columns_have = ("name", "no names") if index.named else ("number", "names")
            raise ValueError(
                f"this model knows its features by {known_by}, and the columns of X have {columns_have}; "
                "pass a data frame with the features as column names, or dicts to learn_many and predict_many"
            )
        indptr, columns = X.indptr.astype(np.int64, copy=False), X.indices.view(f"u{X.indices.itemsize}")
        if not self.keyed or keys is None:
            rows = index.map_ids(indptr, columns, X.data, grow=grow)
        elif by_name:
            slots = _slots_of_columns(index, keys, columns[X.data != 0], grow=grow)[columns]
            rows = _take((slots != NO_SLOT) & (X.data != 0), indptr, slots, X.data)
        else:
            rows = index.map_ids(indptr, keys[columns].astype(np.uint64), X.data, grow=grow)
        return SlotRows(*rows, self.n_slots)

    def map_dicts(self, examples: Sequence[Mapping[Any, Any]], dtype: np.dtype, *, grow: bool) -> Any:
        """Return rows of slots for dicts; unknown features are left out unless `grow` is set."""
        if not self.keyed:
            return self.map(self._rows_of_columns(examples, dtype, grow=grow), grow=grow)
        index = self.index_for(next((x for x in examples if x), {}), grow=grow)
        return SlotRows(*index.map_dicts(list(examples), dtype, grow=grow), self.n_slots)

    def index_for(self, x: Mapping[Any, Any], *, grow: bool) -> FeatureIndex:
        """Return the index for the keys of an example; an empty index can become one of either kind."""
        assert self.index is not None
        return self._index_of(kind_of(x), grow=grow) if x and self.undecided else self.index

    def _index_of(self, kind: str, *, grow: bool) -> FeatureIndex:
        """Return the index, which is empty, as one of this kind; only learning changes the kind for good."""
        assert self.index is not None
        index = self.index if self.index.kind == kind else FeatureIndex(kind)
        if grow:
            self.index = index
        return index

    def _rows_of_columns(
        self, examples: Sequence[Mapping[Any, Any]], dtype: np.dtype, *, grow: bool
    ) -> scipy.sparse.csr_array:
        """Return a CSR array for examples whose keys are names or numbers of columns."""
        assert self.n_columns is not None
        columns, values, indptr = [], [], [0]
        for x in examples:
            for key, value in x.items():
                column = self._column(key)
                if column is not None:
                    columns.append(column)
                    values.append(_number(key, value))
                elif grow:
                    raise ValueError(
                        f"the feature {key!r} is none of the {self.n_columns} columns that this model was "
                        "fitted with; learn from dicts from the start if features may appear late"
                    )
            indptr.append(len(columns))
        shape = (len(examples), self.n_columns)
        X = csr_array((np.array(values, dtype), np.array(columns, np.int64), indptr), shape=shape)
        X.sum_duplicates()  # hashed names may collide
        X.eliminate_zeros()
        return X

    def _column(self, key: Any) -> int | None:
        """Return the column of this name or number."""
        assert self.n_columns is not None
        if self.bits is not None:
            by_name = self.hashed == "names" if self.hashed else isinstance(key, str)
            return self._hashed_name(key) if by_name else core.column_of_id(_id(key), self.bits)
        if self.names is None:
            return int(key) if key in range(self.n_columns) else None
        if self._column_of_name is None:
            self._column_of_name = {name: column for column, name in enumerate(self.names.tolist())}
        return self._column_of_name.get(key)

    def _hashed_name(self, name: Any) -> int:
        """Return the column of "namespace^feature", or of "feature" without a namespace.

        The namespace ends at the first caret, unless the name is known to be one that is read in another way.
        """
        assert self.bits is not None
        letters = _letters(name)
        carets = [at for at, letter in enumerate(letters) if letter == ord("^")]
        readings = [*((letters[:at], letters[at + 1 :]) for at in carets), (b"", letters)]
        columns = [core.column_of_name(space, feature, self.bits) for space, feature in readings]
        kept = self.kept_names or {}
        return next((column for column in columns if kept.get(column) == name), columns[0])


def kind_of(x: Mapping[Any, Any]) -> str:
    """Return the kind of index that the keys of an example need: "names" or "ids"."""
    return "names" if any(isinstance(key, str) for key in x) else "ids"


def _id(key: Any) -> int:
    """Return a key that must be an id."""
    try:
        number = operator.index(key)
    except TypeError:
        number = -1
    if not 0 <= number < 2**64:
        raise TypeError(
            f"the feature {key!r} is not a whole number from 0 to 2^64 - 1, as the features that this model has hashed"
        )
    return number


def _letters(key: Any) -> bytes:
    """Return a key that must be a name in UTF-8."""
    if not isinstance(key, str):
        raise TypeError(f"the feature {key!r} is not a str, as the names that this model has hashed")
    try:
        return key.encode()
    except UnicodeEncodeError:
        raise TypeError(
            f"the feature {key!r} is not a valid name: it has a surrogate, which UTF-8 cannot encode; rename it"
        ) from None


def plain_dict(x: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return the items as a dict; refuse what is not a mapping."""
    if type(x) is dict:
        return x
    if not isinstance(x, Mapping):
        raise TypeError(
            f"an example is a dict of feature to value, and this one is a {type(x).__name__}; pass arrays "
            "and sparse matrices to partial_fit and predict"
        )
    return dict(x)


def _number(key: Any, value: Any) -> float:
    """Return the value of a feature as a float."""
    # float(...) would parse text, too.
    if not isinstance(value, (str, bytes)):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    raise TypeError(
        f"the value of feature {key!r} is {value!r}, which is not a number; use a number, for example "
        f"{{'{key}={value}': 1.0}}"
    )


# Names


def map_names(
    index: FeatureIndex,
    indptr: np.ndarray,
    letters: np.ndarray,
    starts: np.ndarray,
    values: np.ndarray,
    *,
    grow: bool,
    log1p: bool,
    l2: bool,
) -> Rows:
    """Map rows of names to canonical rows of slots: log1p and l2 are applied, each slot occurs once in a row.

    Name k is letters[starts[k] : starts[k + 1]] in UTF-8. Only the index knows which names are equal, so their values
    are added up here, and then transformed. Unknown names get a slot if `grow`; else they are left out, but count in
    the length of their row.
    """
    if grow or not l2:
        rows = index.map_names(indptr, letters, starts, values, grow=grow)
        return core.canonicalize(*rows, log1p=log1p, l2=l2)
    # An index of this batch alone tells which unknown names are equal.
    batch_index = FeatureIndex("names")
    indptr, numbers, values = batch_index.map_names(indptr, letters, starts, values, grow=True)
    slots = _slots_of_names(index, *batch_index.letters(), grow=False)[numbers]
    known = slots != NO_SLOT
    if known.all():
        return core.canonicalize(indptr, slots, values, log1p=log1p, l2=True)
    unknown = core.canonicalize(*_take(~known, indptr, numbers, values), log1p=log1p, l2=False)
    squares = core.square_norms(unknown[0], unknown[2])
    rows = _take(known, indptr, slots, values)
    return core.canonicalize(*rows, log1p=log1p, l2=True, extra_squares=squares)


def _take(kept: np.ndarray, indptr: np.ndarray, slots: np.ndarray, values: np.ndarray) -> Rows:
    """Return the rows with some of their values."""
    ends = np.concatenate([[0], np.cumsum(kept)])
    return ends[indptr], slots[kept], values[kept]


def _slots_of_names(index: FeatureIndex, letters: np.ndarray, starts: np.ndarray, *, grow: bool) -> np.ndarray:
    """Return the slot of each name, NO_SLOT if it has none."""
    n = len(starts) - 1
    # One name in each row: a row is empty afterwards if its name is unknown.
    indptr, found, _ = index.map_names(np.arange(n + 1), letters, starts, np.ones(n, np.float32), grow=grow)
    slots = np.full(n, NO_SLOT, np.uint32)
    slots[np.diff(indptr) == 1] = found
    return slots


def _slots_of_columns(index: FeatureIndex, names: np.ndarray, columns: np.ndarray, *, grow: bool) -> np.ndarray:
    """Return the slot of each column, NO_SLOT if it has none or is not among `columns`.

    New names get slots in the order in which `columns` first mentions them.
    """
    used, first = np.unique(columns, return_index=True)
    used = used[np.argsort(first)]
    slots = np.full(len(names), NO_SLOT, np.uint32)
    encoded = [name.encode() for name in names[used]]
    starts = np.cumsum([0, *map(len, encoded)])
    slots[used] = _slots_of_names(index, np.frombuffer(b"".join(encoded), np.uint8), starts, grow=grow)
    return slots


# Several models


def union(all_features: Sequence[Features]) -> tuple[Features, list[np.ndarray]]:
    """Return the features of several models together, and where the slots of each model are among them."""
    kinds = [None if features.undecided else features.by_name for features in all_features]
    named = True in kinds
    first = all_features[0]
    for number, features in enumerate(all_features):
        if features.bits != first.bits:
            here, there = (f"to {f.bits} bits" if f.bits else "not at all" for f in (first, features))
            raise ValueError(
                f"model 0 hashes its features {here} and model {number} {there}; merge models that were learnt with "
                "the same bits"
            )
    if named and False in kinds:
        raise ValueError(
            f"model {kinds.index(True)} knows its features by name and model {kinds.index(False)} by number; "
            "name the columns in both, or in neither"
        )
    united, slots = _union(all_features, named=named)
    united.records = united_schema([features.records for features in all_features])
    return united, slots


def _union(all_features: Sequence[Features], *, named: bool) -> tuple[Features, list[np.ndarray]]:
    first, keyed = all_features[0], any(features.keyed for features in all_features)
    if not keyed and not named:
        n_columns = max(features.n_features for features in all_features)
        # Where models differ in the name of a column, the first one that knows a name decides.
        kept = {k: name for features in reversed(all_features) for k, name in (features.kept_names or {}).items()}
        hashed = first.hashed if len({features.hashed for features in all_features}) == 1 else None
        columns = Features(n_columns, bits=first.bits, kept_names=kept or None, hashed=hashed)
        slots = [features.slot_keys() for features in all_features]
        if all(features.sparse and features.records for features in all_features):
            columns.index = FeatureIndex("ids")
            slots = [columns.index.slots_of(keys) for keys in slots]
        return columns, slots
    index = FeatureIndex("names" if named else "ids")
    if not keyed:
        for features in all_features:
            index.slots_of(features.keys())
    slots = [index.slots_of(features.slot_keys()) for features in all_features]
    return Features(None, index=index) if keyed else Features(len(index), names=index.keys()), slots
