"""Examples in, better heads out: picks the kernel for the storage and reports what it refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxcosine.compiled import readable
from maxcosine.engine.heads import LIMITS, Heads
from maxcosine.engine.rows import (
    UNKNOWN,
    SlotRows,
    bad_row,
    canonical,
    check_index_arrays,
    csr_arrays,
    is_sparse,
    row_values,
)
from maxcosine.engine.sweep import BAD_ROW, FINISHED, NOT_CANONICAL, sweep, sweep_dense


class BadStep(ArithmeticError):
    """A rule asked for a step that is not a finite, non-negative keep and add."""


UNWEIGHTED = np.empty(0)
NOT_PREDICTED = np.empty(0, np.int64)


def learn(
    heads: Heads,
    X: Any,
    codes: np.ndarray,
    order: np.ndarray | None = None,
    weights: np.ndarray = UNWEIGHTED,
    *,
    mapped: bool = False,
    predicted: np.ndarray = NOT_PREDICTED,
) -> None:
    """Learn, in place, from the rows of X (CSR or C-ordered dense, of the heads' type).

    `codes` holds the class of each row, `weights` what its step is multiplied by; `order` names the
    rows to visit; `predicted`, if it is as long, takes the class of each row as it is predicted before it is
    learnt from. `mapped`: the columns of X, CSR, are slots of an index, each once in a row and in any
    order. Rows before a refused one have been learnt from: whoever needs the heads untouched calls
    `check_rows` first, or learns on a copy.
    """
    if order is None:
        order = np.arange(X.shape[0])
    codes = readable(codes)
    constant = 1.0 if heads.fit_intercept else 0.0
    limits = LIMITS[heads.dtype]
    if is_sparse(X):
        check_index_arrays(X)
        indptr, slots, data = csr_arrays(X)
        squares = X.squares if isinstance(X, SlotRows) else UNKNOWN
        done, fault, head = sweep(
            indptr,
            slots,
            data,
            squares,
            order,
            codes,
            weights,
            predicted,
            mapped,
            constant,
            limits,
            heads.arrays,
        )
    else:
        done, fault, head = sweep_dense(
            readable(X), order, codes, weights, predicted, constant, limits, heads.arrays
        )
    if fault == FINISHED:
        return
    if fault == NOT_CANONICAL:
        return learn(heads, canonical(X), codes, order[done:], weights, predicted=predicted)
    row = int(order[done])
    raise refused(heads, fault, row_values(X, row), row, head)


def refused(heads: Heads, fault: int, values: np.ndarray, row: int, head: int) -> Exception:
    """The error that says why a sweep ended at a row with these values."""
    if fault == BAD_ROW:
        return bad_row(values, row)
    rule = heads.rules[head]
    where = f"rule {rule.name!r} asked in row {row}, head {head}, for a step that"
    if rule.builtin:
        return BadStep(
            f"{where} makes the weights overflow; rescale the features, for example with "
            "sklearn.preprocessing.StandardScaler"
        )
    return BadStep(
        f"{where} is negative, not finite, or makes the weights overflow; keep and add must be "
        "finite and at least 0, and so must the rule's state"
    )
