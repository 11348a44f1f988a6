"""Scores of rows, read off the heads as they are: no copy of the weights, and no lock held."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from maxcosine.compiled import borrow, helper, kernel, readable
from maxcosine.engine.arithmetic import BLOCK_VALUES, pack, score_all
from maxcosine.engine.heads import Heads
from maxcosine.engine.native import prefetch
from maxcosine.engine.rows import csr_arrays, is_sparse
from maxcosine.engine.sweep import PREFETCH_FROM, ROWS_AHEAD, borrow_all

# Fewer rows than this are not worth a thread of their own.
ROWS_A_THREAD = 256


@helper
def factors_of(table: Any, averaging: bool, as_points: bool, factors: Any) -> None:
    """What the dot products with v and with the sums over time are multiplied by, column by column.

    `as_points`: hypotheses count as the points w / Lambda of the hull.
    """
    for h in range(len(table)):
        head = table[h]
        rounds = max(head["learnt"], 1)
        coef_sum = head["sum_coef"] / rounds if averaging else head["scale"] * head["coef_v"]
        unit = coef_sum if as_points and coef_sum > 0.0 else 1.0
        for column in range(head["first"], head["stop"]):
            factors[0, column] = (head["sum_scale"] / rounds if averaging else head["scale"]) / unit
            factors[1, column] = 1.0 / (rounds * unit)


@kernel
def score_rows(
    indptr: Any, indices: Any, data: Any, constant: float, as_points: bool, heads: Any, out: Any
) -> None:
    """Scores of sparse rows by the hypotheses that predict, one a column of the weights."""
    indptr, indices, data = borrow(indptr), borrow(indices), borrow(data)
    heads = borrow_all(heads)
    v, bias, total, total_bias = heads.v, heads.bias, heads.total, heads.total_bias
    averaging = total.shape[0] > 0
    factors = np.empty((2, v.shape[1]))
    factors_of(heads.table, averaging, as_points, factors)
    far = v.size * v.itemsize > PREFETCH_FROM
    last, sums = np.empty(v.shape[1]), np.zeros(v.shape[1])
    n_rows = len(indptr) - 1
    for row in range(n_rows):
        if far and row + ROWS_AHEAD < n_rows:
            for slot in indices[indptr[row + ROWS_AHEAD] : indptr[row + ROWS_AHEAD + 1]]:
                prefetch(v, slot)
                if averaging:
                    prefetch(total, slot)
        slots = indices[indptr[row] : indptr[row + 1]]
        x = data[indptr[row] : indptr[row + 1]]
        score_all(slots, x, v, last)
        if averaging:
            score_all(slots, x, total, sums)
        for column in range(out.shape[1]):
            score = factors[0, column] * (last[column] + constant * bias[column])
            if averaging:
                score += factors[1, column] * (sums[column] + constant * total_bias[column])
            out[row, column] = score


@kernel
def score_dense(x: Any, constant: float, as_points: bool, heads: Any, out: Any) -> None:
    """`score_rows` for a dense array, packed block by block into sparse rows."""
    n_columns = x.shape[1]
    rows = max(1, BLOCK_VALUES // max(1, n_columns))
    indptr = np.zeros(rows + 1, np.int64)
    indices = np.empty(rows * n_columns + 1, np.uint32)
    data = np.empty(rows * n_columns + 1, x.dtype)
    for start in range(0, len(x), rows):
        block = np.arange(start, min(start + rows, len(x)))
        pack(x, block, indptr, indices, data)
        ends, part = indptr[: len(block) + 1], out[start : start + len(block)]
        score_rows(ends, indices, data, constant, as_points, heads, part)


def score(heads: Heads, X: Any, *, as_points: bool = False, n_threads: int = 1) -> np.ndarray:
    """Scores of the rows of X (CSR or C-ordered dense, of the heads' type), one a column of the weights.

    The columns of X are slots, all of them within the heads.
    """
    n_rows = X.shape[0]
    out = np.empty((n_rows, heads.n_columns))
    constant = 1.0 if heads.fit_intercept else 0.0
    given = (constant, as_points, heads.arrays)
    sparse = is_sparse(X)
    if sparse:
        indptr, slots, data = csr_arrays(X)
    else:
        X = readable(X)

    def work(span: tuple[int, int]) -> None:
        start, stop = span
        if sparse:
            score_rows(indptr[start : stop + 1], slots, data, *given, out[start:stop])
        else:
            score_dense(X[start:stop], *given, out[start:stop])

    n_threads = max(1, min(n_threads, n_rows // ROWS_A_THREAD))
    spans = list(itertools.pairwise(np.linspace(0, n_rows, n_threads + 1).astype(int).tolist()))
    if n_threads == 1:
        work(spans[0])
    else:
        from concurrent.futures import ThreadPoolExecutor  # which those who only learn need not wait for

        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(work, spans))
    return out
