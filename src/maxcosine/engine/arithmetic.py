"""The arithmetic of one row: its norm, its scores, its addition to the weights.

A sum over the non-zeros of a row runs in four lanes, the k-th non-zero in lane k mod 4 and the last
few apart, in this order for one head and for many: so that dense rows, sparse rows and any cutting
into chunks give the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxcosine.compiled import helper, inline
from maxcosine.engine.native import (
    LANES,
    add_lanes,
    add_squares,
    gather_multiply_add,
    multiply_add,
    store_lanes,
    sum_lanes,
    zero_lanes,
)

# Dense rows are packed into blocks of about this many values, which fit the second-level cache.
BLOCK_VALUES = 2**17


@inline
def square_norm(x: Any) -> Any:
    """The square norm of a contiguous row."""
    stop = len(x) - len(x) % LANES
    lanes, rest = zero_lanes(), 0.0
    for k in range(0, stop, LANES):
        lanes = add_squares(lanes, x, k)
    for k in range(stop, len(x)):
        rest += np.float64(x[k]) * np.float64(x[k])
    return sum_lanes(lanes) + rest


@inline
def is_canonical(slots: Any, n_features: int) -> bool:
    """Whether the slots, unsigned, rise strictly and lie within the features.

    Asked here, where a row is in the cache anyway; so no index can lead outside the weights.
    """
    rising = True
    for k in range(1, len(slots)):
        rising &= slots[k] > slots[k - 1]
    return rising and (len(slots) == 0 or slots[len(slots) - 1] < n_features)


@inline
def highest_slot(slots: Any) -> Any:
    """The highest of the slots, in whatever order; -1 if there are none."""
    if len(slots) == 0:
        return np.int64(-1)
    highest = slots[0]
    for k in range(1, len(slots)):  # by positions: iterating, several at once are not looked at
        highest = max(highest, slots[k])
    return np.int64(highest)


@helper
def is_zero(x: Any) -> bool:
    """All values are zero; a square norm of 0 may also be an underflow."""
    for value in x:  # noqa: SIM110, Numba's `np.any` takes long to load, and it knows no generators
        if value != 0.0:
            return False
    return True


@inline
def score_one_head(slots: Any, x: Any, v: Any) -> Any:
    stop = len(x) - len(x) % LANES
    lanes, rest = zero_lanes(), 0.0
    for k in range(0, stop, LANES):
        lanes = gather_multiply_add(lanes, x, v, slots, k)
    for k in range(stop, len(x)):
        rest += np.float64(x[k]) * v[slots[k], 0]
    return sum_lanes(lanes) + rest


@inline
def score_four_heads(slots: Any, x: Any, v: Any, h: int) -> Any:
    stop = len(x) - len(x) % LANES
    s0, s1, s2, s3, rest = zero_lanes(), zero_lanes(), zero_lanes(), zero_lanes(), zero_lanes()
    for k in range(0, stop, LANES):
        s0 = multiply_add(s0, np.float64(x[k]), v, slots[k], h)
        s1 = multiply_add(s1, np.float64(x[k + 1]), v, slots[k + 1], h)
        s2 = multiply_add(s2, np.float64(x[k + 2]), v, slots[k + 2], h)
        s3 = multiply_add(s3, np.float64(x[k + 3]), v, slots[k + 3], h)
    for k in range(stop, len(x)):
        rest = multiply_add(rest, np.float64(x[k]), v, slots[k], h)
    return add_lanes(add_lanes(add_lanes(s0, s1), add_lanes(s2, s3)), rest)


@inline
def score_all(slots: Any, x: Any, v: Any, out: Any) -> None:
    """Dot products of a row with all columns of the weights."""
    if v.shape[1] == 1:
        out[0] = score_one_head(slots, x, v)
    else:
        for h in range(0, v.shape[1], LANES):
            store_lanes(out, h, score_four_heads(slots, x, v, h))


@inline
def add_row(weights: Any, constants: Any, h: int, slots: Any, x: Any, constant: float, factor: float) -> None:
    """Add factor times a row to one head, in the arithmetic of the weights."""
    typed = x.dtype.type(factor)
    for k in range(len(x)):
        weights[slots[k], h] += typed * x[k]
    constants[h] += constants.dtype.type(factor * constant)


@inline
def add_debt(total: Any, constants: Any, h: int, slots: Any, x: Any, constant: float, factor: float) -> None:
    """`add_row` for a factor that may be beyond the type of the weights; its product with x is not."""
    for k in range(len(x)):
        total[slots[k], h] += total.dtype.type(factor * np.float64(x[k]))
    constants[h] += constants.dtype.type(factor * constant)


@helper
def pack(x: Any, order: Any, indptr: Any, indices: Any, data: Any) -> None:
    """The non-zeros of the dense rows named by `order`, as sparse rows."""
    end = 0
    for position in range(len(order)):
        row = x[order[position]]
        for column in range(len(row)):
            # Written always and kept if not zero: a branch here would be mispredicted.
            indices[end] = column
            data[end] = row[column]
            end += row[column] != 0.0
        indptr[position + 1] = end
