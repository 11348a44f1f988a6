"""Rows as the engine trusts them: no zeros, no feature twice."""

import itertools

import numpy as np
import pytest

from maxcosine.stream.tidy import LONG_ROW, tidied


@pytest.mark.parametrize("n", [1, 2, 1000, LONG_ROW, LONG_ROW + 1, 2 * LONG_ROW, 4 * LONG_ROW + 7])
def test_values_of_a_feature_are_added_up(n):
    random = np.random.default_rng(n)
    lengths = [3, n, 5]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    columns = random.integers(0, n // 2 + 1, indptr[-1]).astype(np.uint32)
    data = random.integers(-2, 3, indptr[-1]).astype(np.float32)
    expected = []
    for start, stop in itertools.pairwise(indptr):
        sums = np.bincount(columns[start:stop], weights=data[start:stop])
        expected.append({k: sums[k] for k in np.flatnonzero(sums).tolist()})
    indptr, columns, data = tidied(indptr, columns, data, log1p=False, l2=False)
    found = [
        dict(zip(columns[start:stop].tolist(), data[start:stop].tolist(), strict=True))
        for start, stop in itertools.pairwise(indptr)
    ]
    assert found == expected
    assert np.diff(indptr).tolist() == [len(row) for row in found]
