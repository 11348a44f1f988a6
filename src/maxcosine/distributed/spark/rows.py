"""Columns of a DataFrame, as Arrow brings them to a task, as rows to learn from; each row is checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse

from maxcosine.distributed.tally import MOST_TOLD
from maxcosine.engine import BadRow
from maxcosine.engine.rows import bad_rows, row_values
from maxcosine.rules.rule import LARGEST_FACTOR, SMALLEST_FACTOR

# What the field `type` of a vector says.
DENSE = 1


class CheckedRows:
    """The rows of one partition; bad ones end it with an error, or are left out and counted."""

    def __init__(self, partition: int, n_features: int, dtype: str | None, *, skip: bool) -> None:
        self._partition, self._n_features, self._dtype, self._skip = partition, n_features, dtype, skip
        self._n_before = 0
        self.n_bad = 0
        self.first_bad: tuple[str, ...] = ()

    def chunks(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, np.ndarray, Any]]:
        """Rows, labels and weights of columns in this order; weights may be missing."""
        for batch in batches:
            features, labels, *weights = batch.columns
            faults = _label_faults(labels) | (_weight_faults(weights[0]) if weights else {})
            X, kept = self.read(features, faults)
            yield X, _values(labels)[kept], _values(weights[0])[kept] if weights else None

    def read(self, features: pa.Array, faults: dict[int, str] | None = None) -> tuple[Any, np.ndarray]:
        """The rows that are good, and which rows of the array they are."""
        faults = _feature_faults(features, self._n_features) | (faults or {})
        kept = np.setdiff1d(np.arange(len(features)), list(faults), assume_unique=True)
        X = matrix(features.take(pa.array(kept)) if faults else features, self._n_features)
        if self._dtype is not None:
            with np.errstate(over="ignore"):  # what is too large becomes infinity, and a bad row
                X = X.astype(self._dtype, copy=False)
        bad = list(bad_rows(X))
        faults |= {int(kept[row]): _value_fault(row_values(X, row)) for row in bad}
        self._tell(faults)
        self._n_before += len(features)
        if not bad:
            return X, kept
        good = np.setdiff1d(np.arange(len(kept)), bad, assume_unique=True)
        return X[good], kept[good]

    def _tell(self, faults: dict[int, str]) -> None:
        if not faults:
            return
        told = [
            f"partition {self._partition}, row {self._n_before + row}: {faults[row]}"
            for row in sorted(faults)[:MOST_TOLD]
        ]
        if not self._skip:
            raise BadRow(f"{told[0]}; drop such rows, or leave them out with onBad='skip'")
        self.n_bad += len(faults)
        self.first_bad = (*self.first_bad, *told)[:MOST_TOLD]


def matrix(features: pa.Array, n_features: int) -> Any:
    """Vectors or arrays of one length as a dense matrix; as CSR, if some of them are sparse."""
    if not isinstance(features, pa.StructArray):
        return _flat(features).reshape(len(features), n_features)
    kinds, _, indices, values = features.flatten()
    data, dense = _flat(values), kinds.to_numpy() == DENSE
    if dense.all():
        return data.reshape(len(features), n_features)
    counts = pc.list_value_length(values).to_numpy()
    columns = np.empty(len(data), np.int32)
    of_dense = np.repeat(dense, counts)
    columns[~of_dense] = indices.flatten().to_numpy()
    columns[of_dense] = np.tile(np.arange(n_features, dtype=np.int32), np.count_nonzero(dense))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    X = scipy.sparse.csr_array((data, columns, indptr), shape=(len(features), n_features))
    # As in dense rows, zeros are left out: a row is learnt to the same bits, whatever its neighbours are.
    X.eliminate_zeros()
    return X


def _flat(lists: pa.Array) -> np.ndarray:
    """The elements of all lists, those that are null as NaN."""
    flat = lists.flatten()
    flat = flat.fill_null(float("nan")) if flat.null_count else flat
    # A copy: for arrays that cannot be written, all kernels would be compiled a second time.
    values: np.ndarray = flat.to_numpy(zero_copy_only=False, writable=True)
    return values


def _lengths(features: pa.Array) -> np.ndarray:
    """How many features each row has; 0 where there is no vector."""
    if isinstance(features, pa.StructArray):
        kinds, sizes, _, values = features.flatten()
        lengths = pc.if_else(pc.equal(kinds, DENSE), pc.list_value_length(values), sizes)
    else:
        lengths = pc.list_value_length(features)
    known: np.ndarray = lengths.fill_null(0).to_numpy()
    return known


# What is wrong with rows, by their number


def _feature_faults(features: pa.Array, n_features: int) -> dict[int, str]:
    lengths = _lengths(features)
    return {
        row: f"it has {lengths[row]:,} features, and there are {n_features:,}"
        for row in _where(lengths != n_features)
    } | dict.fromkeys(_where(features.is_null()), "its features are null")


def _value_fault(values: np.ndarray) -> str:
    if np.isnan(values).any():
        return "its features hold NaN or null"
    if np.isinf(values).any():
        return f"its features hold infinity, or a value too large for {values.dtype}"
    norm = np.linalg.norm(values.astype(np.longdouble))
    return (
        f"its norm is {norm:.3g}, which weights of type {values.dtype} cannot learn from; scale the features"
    )


def _label_faults(labels: pa.Array) -> dict[int, str]:
    faults = dict.fromkeys(_where(labels.is_null()), "its label is null")
    if pa.types.is_floating(labels.type):
        numbers = _values(labels)
        fractions = ~(np.isfinite(numbers) & (numbers == np.floor(numbers)))
        faults = {
            row: f"its label is {numbers[row]:g}, no whole number" for row in _where(fractions)
        } | faults
    return faults


def _weight_faults(weights: pa.Array) -> dict[int, str]:
    numbers = _values(weights)
    good = (numbers == 0.0) | ((numbers >= SMALLEST_FACTOR) & (numbers <= LARGEST_FACTOR))
    return {
        row: f"its weight is {numbers[row]:g}; weights are 0, or between {SMALLEST_FACTOR:g} and "
        f"{LARGEST_FACTOR:g}"
        for row in _where(~good)
    }


def _values(column: pa.Array) -> np.ndarray:
    """Numbers, null as NaN; or strings."""
    if pa.types.is_floating(column.type):
        numbers: np.ndarray = column.fill_null(float("nan")).to_numpy()
        return numbers
    return np.array(column.fill_null("").to_pylist(), np.str_)


def _where(mask: Any) -> list[int]:
    rows: list[int] = np.flatnonzero(np.asarray(mask)).tolist()
    return rows
