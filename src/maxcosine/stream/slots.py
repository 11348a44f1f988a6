"""Rows over the slots of an index: ids and names as numbers, in rows of any length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from maxcosine.index import FeatureIndex, some_values
from maxcosine.index.kernels import UNKNOWN
from maxcosine.stream.rows import Named, Rows
from maxcosine.stream.source import LONGEST_LINE
from maxcosine.stream.tidy import Appended, LongRow, square_norms, tidied

MOST_VALUES = LONGEST_LINE // 2
"""Of a row: as many as a line can have."""
UNKNOWN_AT_ONCE = 1 << 20
"""Different names without a slot, of a long row, that are added up together."""

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


def mapped(rows: Rows, index: FeatureIndex, *, grow: bool, log1p: bool, l2: bool) -> Rows:
    """The rows with slots for columns, without features that an index does not know and may not learn.

    Only here is it seen which names are the same: they are added up, and transformed as asked for.
    """
    if rows.names is None:
        arrays = _of_ids(rows, index, grow)
    elif l2 and not grow:
        arrays = _normalized(rows, index, log1p)
    else:
        indptr, slots, data = _of_names(rows, index, grow)
        arrays = tidied(np.array(indptr), slots, data, log1p=log1p, l2=l2)
    indptr, slots, data = arrays
    return Rows(indptr, slots, None, data, rows.codes, rows.weights, rows.ends)


def _of_ids(rows: Rows, index: FeatureIndex, grow: bool) -> Arrays:
    if rows.pieces is None:
        return index.map_rows(rows.indptr, rows.columns, rows.data, grow=grow)
    row = Appended(MOST_VALUES, np.uint32, rows.data.dtype)
    for piece in rows.pieces:
        row.add(*index.map_rows(_whole(piece), piece.columns, piece.data, grow=grow)[1:])
    return _alone(row.taken())


def _of_names(rows: Rows, index: FeatureIndex, grow: bool) -> Arrays:
    if rows.pieces is None:
        return index.map_rows(rows.indptr, rows.names, rows.data, grow=grow)
    # Room for all that a line can have: how many are different was only estimated when it was checked.
    row = LongRow(MOST_VALUES, np.uint32, rows.data.dtype)
    for piece in rows.pieces:
        row.add(*index.map_rows(_whole(piece), _names(piece), piece.data, grow=grow)[1:])
    return _alone(row.taken())


def _normalized(rows: Rows, index: FeatureIndex, log1p: bool) -> Arrays:
    """Rows of unit length, and then without the names that an index does not know."""
    if rows.pieces is not None:
        return _long_normalized(rows.pieces, index, rows.data.dtype, log1p)
    assert rows.names is not None
    arrays = index.map_all(rows.indptr, rows.names, rows.data)
    known = arrays[1] < UNKNOWN
    indptr, _, data = tidied(*some_values(~known, *arrays), log1p=log1p, l2=False)
    beside = square_norms(indptr, data)
    indptr, slots, data = some_values(known, *arrays)
    return tidied(indptr, slots.astype(np.uint32), data, log1p=log1p, l2=True, beside=beside)


def _long_normalized(pieces: Iterable[Named], index: FeatureIndex, dtype: np.dtype, log1p: bool) -> Arrays:
    """The same for a row in pieces, to the bit. Unknown names take more memory than others: only their square
    norm is kept."""
    row, any_unknown = LongRow(MOST_VALUES, np.uint32, dtype), False
    for keys, data in _slots_and_hashes(pieces, index):
        known = keys < UNKNOWN
        row.add(keys[known].astype(np.uint32), data[known])
        any_unknown = any_unknown or not known.all()
    n_turns, square = 1, None if any_unknown else 0.0
    while square is None:
        square = _square_of_unknown(pieces, index, dtype, log1p, n_turns)
        n_turns *= 2
    return tidied(*_alone(row.taken()), log1p=log1p, l2=True, beside=np.array([square]))


def _square_of_unknown(
    pieces: Iterable[Named], index: FeatureIndex, dtype: np.dtype, log1p: bool, n_turns: int
) -> float | None:
    """The square norm of the names that an index does not know, found in so many turns, each for some of the
    hashes; None if there are too many for that."""
    square = 0.0
    for turn in range(n_turns):
        row = LongRow(UNKNOWN_AT_ONCE, np.uint64, dtype)
        for keys, data in _slots_and_hashes(pieces, index):
            here = (keys >= UNKNOWN) & (keys % np.uint64(n_turns) == np.uint64(turn))
            if not row.add(keys[here], data[here]):
                return None
        taken = row.taken()
        if taken is None:
            return None
        indptr, _, data = tidied(*_alone(taken), log1p=log1p, l2=False)
        square += float(square_norms(indptr, data)[0])
        del row, taken, data  # before the next ones come
    return square


def _slots_and_hashes(
    pieces: Iterable[Named], index: FeatureIndex
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The keys of all features, piece by piece, and their values; no piece is kept."""
    for piece in pieces:
        yield index.map_all(_whole(piece), _names(piece), piece.data)[1:]


def _names(piece: Named) -> tuple[np.ndarray, np.ndarray]:
    return piece.letters, piece.starts


def _whole(piece: Named) -> np.ndarray:
    """Where a piece begins and ends, as a row."""
    return np.array([0, len(piece.data)])


def _alone(row: tuple[np.ndarray, np.ndarray] | None) -> Arrays:
    """One row."""
    assert row is not None, "a row has no more values than there is room for"
    return np.array([0, len(row[0])]), *row
