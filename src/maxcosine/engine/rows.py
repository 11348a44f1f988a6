"""Rows as the kernels trust them: sorted, without duplicates, within bounds, finite, of sane norm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxcosine.compiled import kernel, readable
from maxcosine.engine.arithmetic import is_canonical, is_zero, pack, square_norm
from maxcosine.engine.heads import LIMITS

if TYPE_CHECKING:
    import scipy.sparse

UNKNOWN = np.empty(0)
"""Instead of square norms: none is known."""


class SlotRows(NamedTuple):
    """Sparse rows over slots, laid out as CSR: each slot once in a row, in any order."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    shape: tuple[int, int]
    squares: np.ndarray = UNKNOWN
    """The square norm of each row, as `square_norm` gives it, if whoever made the rows knows it."""

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype


def csr_array(*arguments: Any, **options: Any) -> scipy.sparse.csr_array:
    """SciPy's, which is imported with the first: commands do without it."""
    import scipy.sparse

    return scipy.sparse.csr_array(*arguments, **options)


def is_sparse(X: Any) -> bool:
    """Whether the rows are CSR, SciPy's or `SlotRows`; else they are dense."""
    return not isinstance(X, np.ndarray)


class BadRow(ValueError):
    """An example that cannot be learnt from: not finite, or of a norm beyond the weights' type."""


def csr_arrays(X: Any) -> tuple[Any, Any, Any]:
    """Row pointers, slots and values as the kernels read them.

    Row pointers of 64 bits, and the slots unsigned: a negative one becomes a very large one.
    """
    indices = readable(X.indices)
    slots = indices.view(np.dtype(f"u{indices.itemsize}"))
    return readable(X.indptr.astype(np.int64, copy=False)), slots, readable(X.data)


@kernel
def _pack(x: Any, indptr: Any, indices: Any, data: Any) -> None:
    pack(x, np.arange(len(x)), indptr, indices, data)


def packed(X: np.ndarray, dtype: np.dtype) -> scipy.sparse.csr_array:
    """The rows of a dense array as sparse ones of this type."""
    n = np.count_nonzero(X)
    # One more than there are values: what is written and not kept may come last.
    indptr, indices, data = np.zeros(len(X) + 1, np.int32), np.empty(n + 1, np.int32), np.empty(n + 1, dtype)
    _pack(np.ascontiguousarray(X), indptr, indices, data)
    return csr_array((data[:n], indices[:n], indptr), shape=X.shape)


@kernel
def _is_canonical(indptr: Any, slots: Any, n_columns: int) -> bool:
    for row in range(len(indptr) - 1):  # noqa: SIM110, Numba knows no generators
        if not is_canonical(slots[indptr[row] : indptr[row + 1]], n_columns):
            return False
    return True


def canonical(X: Any) -> Any:
    """The same rows with sorted, unique indices; a copy if they were not so, duplicates summed."""
    if check_indices(X):
        return X
    X = X.copy()
    X.has_sorted_indices = X.has_canonical_format = False  # the flags may be stale
    X.sum_duplicates()
    return X


def check_indices(X: Any) -> bool:
    """Refuse indices outside the matrix; returns whether they are sorted and unique."""
    check_index_arrays(X)
    indptr, slots, _ = csr_arrays(X)
    if _is_canonical(indptr, slots, X.shape[1]):
        return True
    if slots[: indptr[-1]].max() >= X.shape[1]:
        raise _not_csr(X)
    return False


def check_index_arrays(X: Any) -> None:
    """Refuse row pointers that lead outside the index and value arrays."""
    pointers, n_values = X.indptr, min(len(X.indices), len(X.data))
    ends = len(pointers) != X.shape[0] + 1 or pointers[0] != 0 or pointers[-1] > n_values
    if ends or np.any(pointers[1:] < pointers[:-1]):
        raise _not_csr(X)


def _not_csr(X: Any) -> ValueError:
    return ValueError(
        f"X is not a valid CSR matrix: its index arrays point outside its {X.shape[0]} rows and "
        f"{X.shape[1]} columns; build it with scipy.sparse.csr_array and call check_format()"
    )


@kernel
def _first_bad_row(indptr: Any, data: Any, low: float, high: float) -> int:
    for row in range(len(indptr) - 1):
        x = data[indptr[row] : indptr[row + 1]]
        sq_x = square_norm(x)
        if not (low <= sq_x <= high or (sq_x == 0.0 and is_zero(x))):
            return row
    return -1


def check_rows(X: Any) -> None:
    """Raise BadRow for the first row that cannot be learnt from."""
    for row in bad_rows(X):
        raise bad_row(row_values(X, row), row)


def bad_rows(X: Any) -> Iterator[int]:
    """The rows that cannot be learnt from."""
    limits = LIMITS[X.dtype]
    if is_sparse(X):
        indptr, _, data = csr_arrays(X)
    else:
        indptr, data = np.arange(X.shape[0] + 1) * X.shape[1], readable(X.reshape(-1))
    row = 0
    while (step := _first_bad_row(indptr[row:], data, limits.low_sq_x, limits.high_sq_x)) >= 0:
        yield row + step
        row += step + 1


def row_values(X: Any, row: int) -> np.ndarray:
    """The values of a row, without the zeros that a sparse matrix leaves out."""
    values: np.ndarray = X.data[X.indptr[row] : X.indptr[row + 1]] if is_sparse(X) else X[row]
    return values


def bad_row(values: np.ndarray, row: int) -> BadRow:
    """The error that says what is wrong with the values of a row."""
    if np.isnan(values).any():
        return BadRow(f"Input X contains NaN in row {row}; impute it or drop the row.")
    if np.isinf(values).any():
        return BadRow(
            f"Input X contains infinity or a value too large for {values.dtype} in row {row}; "
            "drop the row or clip the value."
        )
    norm = np.linalg.norm(values.astype(np.longdouble))
    limits = LIMITS[values.dtype]
    return BadRow(
        f"Row {row} of X has the norm {norm:.3g}; {values.dtype} weights can learn from norms between "
        f"{limits.low_sq_x**0.5:.0e} and {limits.high_sq_x**0.5:.0e}. "
        "Rescale the features, for example with sklearn.preprocessing.StandardScaler or Normalizer."
    )
