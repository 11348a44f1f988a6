"""Rows that the core can trust: sorted or mapped to slots, within bounds, finite, of a sane norm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maxcosine import core
from maxcosine.heads import LIMITS

if TYPE_CHECKING:
    import scipy.sparse


# Weights are relative, so their unit is the user's; squares and sums of these stay within float64.
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-100, 1e100


class BadRow(ValueError):
    """An example that cannot be learnt from: not finite, or of a norm outside the weights' type."""

    def __init__(self, message: str, row: int = 0) -> None:
        super().__init__(message)
        self.row = row


@dataclass(frozen=True)
class SlotRows:
    """Sparse rows over slots, laid out as CSR: each slot once in a row, in any order."""

    indptr: np.ndarray
    """int64"""
    slots: np.ndarray
    """uint32"""
    values: np.ndarray
    n_features: int
    squares: np.ndarray | None = None
    """The square norm of each row, if it is known."""

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def dtype(self) -> np.dtype:
        """The type of the values."""
        return self.values.dtype


def csr_array(*arguments: Any, **options: Any) -> scipy.sparse.csr_array:
    """SciPy's CSR array; commands that need none do not import SciPy."""
    import scipy.sparse

    return scipy.sparse.csr_array(*arguments, **options)


def csr_of_slots(rows: Any, n_slots: int, dtype: Any = np.float64) -> scipy.sparse.csr_array:
    """A CSR array of rows of slots: of `SlotRows`, an array or a CSR matrix."""
    if isinstance(rows, SlotRows):
        start, stop = rows.indptr[0], rows.indptr[-1]
        index = np.int64 if max(stop - start, n_slots) > np.iinfo(np.int32).max else np.int32
        parts = (rows.values[start:stop], rows.slots[start:stop].astype(index), (rows.indptr - start).astype(index))
        return csr_array(parts, shape=(len(rows), n_slots), dtype=dtype, copy=True)
    return csr_array(rows, dtype=dtype, copy=True)


def slot_rows_of(X: Any) -> SlotRows:
    """A CSR matrix of SciPy as `SlotRows`, without a copy where its types fit; refuses one that is malformed."""
    _check_pointers(X)
    indices = X.indices
    if indices.dtype.itemsize > 4:
        if len(indices) and not 0 <= indices.min() <= indices.max() < X.shape[1]:
            raise _malformed(X)
        indices = indices.astype(np.uint32)
    # A negative index becomes a very large one, which the core refuses.
    return SlotRows(X.indptr.astype(np.int64, copy=False), indices.view(np.uint32), X.data, X.shape[1])


def canonical(X: Any) -> Any:
    """The same CSR matrix with sorted, unique indices; a copy with duplicates summed if they were not."""
    if check_indices(X):
        return X
    X = X.copy()
    X.has_sorted_indices = X.has_canonical_format = False  # the flags may be stale
    X.sum_duplicates()
    return X


def check_indices(X: Any) -> bool:
    """Refuse indices outside the matrix; returns whether they are sorted and unique."""
    rows = slot_rows_of(X)
    if core.rows_are_canonical(rows.indptr, rows.slots, rows.n_features):
        return True
    if rows.slots[: rows.indptr[-1]].max() >= rows.n_features:
        raise _malformed(X)
    return False


def _check_pointers(X: Any) -> None:
    """Refuse row pointers that point outside the index and value arrays."""
    pointers, n_values = X.indptr, min(len(X.indices), len(X.data))
    wrong = len(pointers) != X.shape[0] + 1 or pointers[0] != 0 or pointers[-1] > n_values
    if wrong or np.any(pointers[1:] < pointers[:-1]):
        raise _malformed(X)


def _malformed(X: Any) -> ValueError:
    return ValueError(
        f"X is not a valid CSR matrix: its index arrays point outside its {X.shape[0]} rows and "
        f"{X.shape[1]} columns; build it with scipy.sparse.csr_array and call check_format()"
    )


def check_rows(X: Any) -> None:
    """Raise BadRow for the first row that cannot be learnt from."""
    for row in bad_rows(X):
        raise bad_row(row_values(X, row), row)


def check_finite(X: Any) -> None:
    """Raise BadRow for the first row with a value that is not finite."""
    values = X if isinstance(X, np.ndarray) else (X.values if isinstance(X, SlotRows) else X.data)
    if np.isfinite(values).all():
        return
    for row in bad_rows(X):
        if not np.isfinite(row_values(X, row)).all():
            raise bad_row(row_values(X, row), row)


def bad_rows(X: Any) -> Iterator[int]:
    """The rows that cannot be learnt from."""
    if isinstance(X, np.ndarray):
        indptr, values = np.arange(X.shape[0] + 1) * X.shape[1], np.ascontiguousarray(X).reshape(-1)
    else:
        rows = X if isinstance(X, SlotRows) else slot_rows_of(X)
        indptr, values = rows.indptr, rows.values
    row = 0
    while (step := core.first_bad_row(indptr[row:], values)) >= 0:
        yield row + step
        row += step + 1


def row_values(X: Any, row: int) -> np.ndarray:
    """The values of a row; of a sparse row, those that are stored."""
    if isinstance(X, np.ndarray):
        return np.asarray(X[row])
    values = X.values if isinstance(X, SlotRows) else X.data
    return np.asarray(values[X.indptr[row] : X.indptr[row + 1]])


def row_sizes(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """How many values each row has, and their square norms in float64."""
    if isinstance(X, np.ndarray):
        return np.full(len(X), X.shape[1]), np.einsum("ij,ij->i", X, X, dtype=np.float64)
    rows = X if isinstance(X, SlotRows) else slot_rows_of(X)
    return np.diff(rows.indptr), core.square_norms(rows.indptr, rows.values)


def bad_row(values: np.ndarray, row: int) -> BadRow:
    """The error that says what is wrong with the values of a row."""
    if np.isnan(values).any():
        return BadRow(f"Input X contains NaN in row {row}; impute it or drop the row.", row)
    if np.isinf(values).any():
        return BadRow(
            f"Input X contains infinity or a value too large for {values.dtype} in row {row}; "
            "drop the row or clip the value.",
            row,
        )
    norm = np.linalg.norm(values.astype(np.longdouble))
    limits = LIMITS[values.dtype]
    return BadRow(
        f"Row {row} of X has the norm {norm:.3g}; {values.dtype} weights can learn from norms between "
        f"{limits.low_sq_x**0.5:.0e} and {limits.high_sq_x**0.5:.0e}. "
        "Rescale the features, for example with sklearn.preprocessing.StandardScaler or Normalizer.",
        row,
    )
