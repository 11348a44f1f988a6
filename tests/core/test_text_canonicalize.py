"""Rows as the learning code expects them: no zeros, no feature twice."""

import itertools
import math

import numpy as np
import pytest

from maxcosine import core
from tests.core import naive_text

LONG_ROW = 2**18


def rows_of(indptr, slots, values):
    return [(slots[a:b].tolist(), list(values[a:b])) for a, b in itertools.pairwise(indptr)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("slot_type", ["uint32", "uint64"])
@pytest.mark.parametrize(("log1p", "l2"), [*itertools.product([False, True], repeat=2)])
def test_rows_keep_the_order_of_first_appearance(dtype, slot_type, log1p, l2):
    random = np.random.default_rng(1)
    indptr = np.concatenate([[0], np.cumsum(random.integers(0, 30, 200))])
    slots = random.integers(0, 40, indptr[-1]).astype(slot_type)
    values = (random.integers(-3, 4, indptr[-1]) / 7).astype(dtype)
    given = slots.copy(), values.copy()
    found = core.canonicalize(indptr, slots, values, log1p=log1p, l2=l2)
    options = naive_text.Options(dtype=dtype, log1p=log1p, l2=l2)
    assert rows_of(*found) == [
        naive_text.canonical_row(keys, row, options) for keys, row in rows_of(indptr, slots, values)
    ]
    assert all(np.array_equal(*pair) for pair in zip(given, (slots, values), strict=True))


@pytest.mark.parametrize("n", [LONG_ROW, LONG_ROW + 1, 3 * LONG_ROW])
def test_values_of_a_feature_are_added_up_in_long_rows(n):
    random = np.random.default_rng(n)
    indptr = np.cumsum([0, 3, n, 5])
    slots = random.integers(0, n // 2 + 1, indptr[-1]).astype(np.uint32)
    values = random.integers(-2, 3, indptr[-1]).astype(np.float32)
    found = rows_of(*core.canonicalize(indptr, slots, values, log1p=False, l2=False))
    for (keys, row), (a, b) in zip(found, itertools.pairwise(indptr), strict=True):
        sums = np.bincount(slots[a:b], weights=values[a:b])
        assert dict(zip(keys, row, strict=True)) == {k: sums[k] for k in np.flatnonzero(sums).tolist()}
        assert len(set(keys)) == len(keys)
    assert (found[1][0] == sorted(found[1][0])) == (n > LONG_ROW)


def test_features_that_are_left_out_count_for_the_length():
    arrays = np.array([0, 1, 2]), np.array([4, 4], np.uint32), np.array([3.0, 3.0])
    _, _, values = core.canonicalize(*arrays, log1p=False, l2=True, extra_squares=np.array([16.0, 0.0]))
    assert values.tolist() == [0.6, 1.0]


def test_square_norms():
    values = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    squares = core.square_norms(np.array([0, 6, 6, 6]), values)
    assert squares[0] == pytest.approx(math.fsum(values * values), rel=1e-15)
    assert squares.tolist()[1:] == [0, 0]


def test_refused_arguments():
    slots, values = np.zeros(2, np.uint32), np.zeros(2)
    for indptr in ([0, 3], [0, 2, 1], [-1, 2], []):
        with pytest.raises(ValueError, match="indptr"):
            core.canonicalize(np.array(indptr, np.int64), slots, values, log1p=False, l2=False)
    with pytest.raises(ValueError, match="same length"):
        core.canonicalize(np.array([0, 1]), slots[:1], values, log1p=False, l2=False)
    with pytest.raises(ValueError, match="each row"):
        core.canonicalize(np.array([0, 1]), slots, values, log1p=False, l2=True, extra_squares=np.zeros(2))
    with pytest.raises(TypeError):
        core.canonicalize(np.array([0, 1]), slots.astype(np.int32), values, log1p=False, l2=False)
