"""Rows as the kernels trust them: sorted, without duplicates, within bounds, finite, of sane norm."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from maxcosine.compiled import jit
from maxcosine.engine.heads import LIMITS
from maxcosine.engine.sweep import is_zero, square_norm

CANONICAL, NOT_CANONICAL, OUT_OF_BOUNDS = 0, 1, 2


class BadRow(ValueError):
    """An example that cannot be learnt from: not finite, or of a norm beyond the weights' type."""


@jit
def _inspect(indptr: Any, indices: Any, n_columns: int) -> int:
    """Whether indices rise strictly within each row, and lie within the columns."""
    if indptr[0] != 0 or indptr[-1] > len(indices):
        return OUT_OF_BOUNDS
    for row in range(len(indptr) - 1):
        start, stop = indptr[row], indptr[row + 1]
        if stop < start:
            return OUT_OF_BOUNDS
        slots = indices[start:stop]
        falls = 0
        for k in range(1, len(slots)):
            falls += slots[k] <= slots[k - 1]
        if falls > 0:
            return NOT_CANONICAL
        if len(slots) > 0 and (slots[0] < 0 or slots[-1] >= n_columns):
            return OUT_OF_BOUNDS
    return CANONICAL


def canonical(X: Any) -> Any:
    """The same rows with sorted, unique indices; a copy if they were not so, duplicates summed."""
    found = _inspect(X.indptr, X.indices, X.shape[1])
    if found == NOT_CANONICAL:
        X = X.copy()
        # The flags may be stale: what was found counts.
        X.has_sorted_indices = False
        X.has_canonical_format = False
        if len(X.indices) and not 0 <= X.indices.min() <= X.indices.max() < X.shape[1]:
            found = OUT_OF_BOUNDS
        else:
            X.sum_duplicates()
    if found == OUT_OF_BOUNDS:
        raise ValueError(
            f"X is not a valid CSR matrix: its index arrays point outside its {X.shape[0]} rows and "
            f"{X.shape[1]} columns; build it with scipy.sparse.csr_array and call check_format()"
        )
    return X


@jit
def _first_bad_row(indptr: Any, data: Any, low: float, high: float) -> int:
    for row in range(len(indptr) - 1):
        x = data[indptr[row] : indptr[row + 1]]
        sq_x = square_norm(x)
        if not (low <= sq_x <= high or (sq_x == 0.0 and is_zero(x))):
            return row
    return -1


def check_rows(X: Any) -> None:
    """Raise BadRow for the first row that cannot be learnt from."""
    limits = LIMITS[X.dtype]
    if scipy.sparse.issparse(X):
        indptr, data = X.indptr, X.data
    else:
        indptr, data = np.arange(X.shape[0] + 1) * X.shape[1], X.reshape(-1)
    row = _first_bad_row(indptr, data, limits.low_sq_x, limits.high_sq_x)
    if row >= 0:
        raise bad_row(X, row)


def bad_row(X: Any, row: int) -> BadRow:
    """The error that says what is wrong with a row."""
    values = X.data[X.indptr[row] : X.indptr[row + 1]] if scipy.sparse.issparse(X) else X[row]
    if np.isnan(values).any():
        return BadRow(f"Input X contains NaN in row {row}; impute it or drop the row.")
    if np.isinf(values).any():
        return BadRow(f"Input X contains infinity in row {row}; drop the row or clip the value.")
    norm = np.linalg.norm(values.astype(np.longdouble))
    limits = LIMITS[X.dtype]
    return BadRow(
        f"Row {row} of X has the norm {norm:.3g}; {X.dtype} weights can learn from norms between "
        f"{limits.low_sq_x**0.5:.0e} and {limits.high_sq_x**0.5:.0e}. "
        "Rescale the features, for example with sklearn.preprocessing.StandardScaler or Normalizer."
    )
