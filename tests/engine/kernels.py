"""Small functions to compile, for the tests of how that is done."""

from typing import Any, NamedTuple

import numpy as np

from maxcosine.compiled import helper, inline, kernel


class Pair(NamedTuple):
    first: Any
    second: Any


@inline
def twice(x):
    return 2.0 * x


@helper
def total(values):
    found = 0.0
    for value in values:
        found += value
    return found


@kernel
def weighted(pair, table, factor, count, flag, top):
    """Every kind of argument, and every kind of result."""
    pair.second[0] = twice(total(pair.first)) * factor
    table[1]["n"] = count
    return table.shape[0] * pair.first.shape[0], np.float64(pair.second[0]), flag, top + np.uint64(1)


@kernel
def fill(matrix):
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            matrix[i, j] = 10 * i + j


@kernel
def is_positive(x):
    return x > 0


@kernel
def sum_by_a_copy(values, n):
    """Needs memory of its own, n numbers of it."""
    copy = np.zeros(n)
    for k in range(len(values)):
        copy[k] = values[k]
    return total(copy)
