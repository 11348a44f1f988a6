"""The rows of a DataFrame, as Spark sends them to tasks in Arrow format, checked one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse

from maxcosine.data import MAX_REPORTED
from maxcosine.rows import LARGEST_WEIGHT, SMALLEST_WEIGHT, BadRow, bad_rows, row_values

DENSE = 1
"""The value of the field `type` of Spark's dense vectors; sparse ones have 0."""


class RowReader:
    """Reads the rows of one partition; bad rows raise an error, or are skipped and counted."""

    def __init__(self, partition: int, n_features: int, dtype: str | None, *, skip_bad: bool) -> None:
        self._partition, self._n_features, self._dtype = partition, n_features, dtype
        self._skip_bad = skip_bad
        self._n_read = 0
        self.n_bad = 0
        self.first_bad: tuple[str, ...] = ()

    def chunks(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, np.ndarray, Any]]:
        """Read columns of features, labels and, optionally, weights as chunks (X, y, weights)."""
        for batch in batches:
            features, labels, *weights = batch.columns
            faults = _label_faults(labels)
            if weights:
                faults |= _weight_faults(weights[0])
            X, kept = self.read(features, faults)
            yield X, _to_numpy(labels)[kept], _to_numpy(weights[0])[kept] if weights else None

    def read(self, features: pa.Array, faults: dict[int, str] | None = None) -> tuple[Any, np.ndarray]:
        """Read a column of vectors or lists; return the good rows as a matrix, and their positions.

        `faults` has messages about rows that are bad for other reasons, by position.
        """
        faults = _length_faults(features, self._n_features) | (faults or {})
        kept = np.setdiff1d(np.arange(len(features)), list(faults))
        X = to_matrix(features.take(pa.array(kept)) if faults else features, self._n_features)
        if self._dtype is not None:
            with np.errstate(over="ignore"):  # a value that overflows makes a bad row
                X = X.astype(self._dtype, copy=False)
        bad = list(bad_rows(X))
        faults |= {int(kept[row]): _value_fault(row_values(X, row)) for row in bad}
        if faults:
            self._report(faults)
        self._n_read += len(features)
        if bad:
            good = np.setdiff1d(np.arange(len(kept)), bad)
            X, kept = X[good], kept[good]
        return X, kept

    def _report(self, faults: dict[int, str]) -> None:
        messages = [
            f"partition {self._partition}, row {self._n_read + row}: {faults[row]}"
            for row in sorted(faults)[:MAX_REPORTED]
        ]
        if not self._skip_bad:
            raise BadRow(f"{messages[0]}; remove such rows, or skip them with onBad='skip'")
        self.n_bad += len(faults)
        self.first_bad = (*self.first_bad, *messages)[:MAX_REPORTED]


def to_matrix(features: pa.Array, n_features: int) -> Any:
    """Convert vectors, or lists of one length, to a dense array, or to CSR if there are sparse vectors."""
    if not isinstance(features, pa.StructArray):
        return _to_numpy(features.flatten()).reshape(len(features), n_features)
    kinds, _, indices, values = features.flatten()
    data, dense = _to_numpy(values.flatten()), kinds.to_numpy() == DENSE
    if dense.all():
        return data.reshape(len(features), n_features)
    counts = pc.list_value_length(values).to_numpy()
    in_dense = np.repeat(dense, counts)
    columns = np.empty(len(data), np.int32)
    columns[~in_dense] = indices.flatten().to_numpy()
    columns[in_dense] = np.tile(np.arange(n_features, dtype=np.int32), np.count_nonzero(dense))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    X = scipy.sparse.csr_array((data, columns, indptr), shape=(len(features), n_features))
    # A row must give the same bits whether its batch is dense or sparse, and dense rows have no zeros.
    X.eliminate_zeros()
    return X


def _to_numpy(column: pa.Array) -> np.ndarray:
    """Convert numbers, with NaN for null, or strings."""
    if not pa.types.is_floating(column.type):
        return np.array(column.fill_null("").to_pylist(), np.str_)
    numbers: np.ndarray = column.fill_null(np.nan).to_numpy(zero_copy_only=False, writable=True)
    return numbers


# Messages for bad rows, by the number of the row.


def _length_faults(features: pa.Array, n_features: int) -> dict[int, str]:
    if isinstance(features, pa.StructArray):
        kinds, sizes, _, values = features.flatten()
        lengths = pc.if_else(pc.equal(kinds, DENSE), pc.list_value_length(values), sizes)
    else:
        lengths = pc.list_value_length(features)
    found = lengths.fill_null(0).to_numpy()
    faults = {row: f"it has {found[row]:,} features instead of {n_features:,}" for row in _where(found != n_features)}
    return faults | dict.fromkeys(_where(features.is_null()), "its features are null")


def _value_fault(values: np.ndarray) -> str:
    if np.isnan(values).any():
        return "its features contain NaN or null"
    if np.isinf(values).any():
        return f"its features contain infinity, or a value too large for {values.dtype}"
    norm = np.linalg.norm(values.astype(np.longdouble))
    return f"its norm is {norm:.3g}, out of range for weights of type {values.dtype}; scale the features"


def _label_faults(labels: pa.Array) -> dict[int, str]:
    faults: dict[int, str] = {}
    if pa.types.is_floating(labels.type):
        numbers = _to_numpy(labels)
        whole = np.isfinite(numbers) & (numbers == np.floor(numbers))
        faults = {row: f"its label is {numbers[row]:g}, not a whole number" for row in _where(~whole)}
    return faults | dict.fromkeys(_where(labels.is_null()), "its label is null")


def _weight_faults(weights: pa.Array) -> dict[int, str]:
    numbers = _to_numpy(weights)
    good = (numbers == 0.0) | ((numbers >= SMALLEST_WEIGHT) & (numbers <= LARGEST_WEIGHT))
    allowed = f"weights are 0, or between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}"
    return {row: f"its weight is {numbers[row]:g}; {allowed}" for row in _where(~good)}


def _where(mask: Any) -> list[int]:
    rows: list[int] = np.flatnonzero(np.asarray(mask)).tolist()
    return rows
