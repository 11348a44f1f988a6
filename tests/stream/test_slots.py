"""Rows over the slots of an index, whether they are whole or in pieces."""

import math

import numpy as np
import pytest

from maxcosine.index import FeatureIndex
from maxcosine.index.kernels import UNKNOWN
from maxcosine.stream import Stream, long_lines, slots, source, tidy

KNOWN = [f"a^k{k}" for k in range(30)]


def lines(n):
    """Lines with names that are known and names that are not, some more than once, and zeros."""
    dice = np.random.default_rng(n)
    for _ in range(n):
        names = [f"{'ku'[dice.integers(2)]}{dice.integers(40)}" for _ in range(dice.integers(1, 40))]
        yield [(name, int(dice.integers(-2, 3))) for name in names]


def expected(features, log1p, l2):
    """The values of the known names of a line."""
    sums = {}
    for name, value in features:
        sums[f"a^{name}"] = sums.get(f"a^{name}", 0.0) + value
    if log1p:
        sums = {name: math.copysign(math.log1p(abs(value)), value) for name, value in sums.items()}
    length = math.sqrt(sum(value * value for value in sums.values())) if l2 else 1.0
    return {KNOWN.index(name): value / length for name, value in sums.items() if name in KNOWN and value}


@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize("log1p", [False, True])
@pytest.mark.parametrize("normalize", [None, "l2"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unknown_names_are_left_out_and_count_for_the_length(
    tmp_path, monkeypatch, in_pieces, log1p, normalize, dtype
):
    if in_pieces:  # and so many unknown names that these are added up in several turns
        monkeypatch.setattr(source, "LONG_LINE", 20)
        monkeypatch.setattr(long_lines, "PIECE_BYTES", 11)
        monkeypatch.setattr(slots, "UNKNOWN_AT_ONCE", 3)
        monkeypatch.setattr(tidy, "LONG_ROW", 4)
    given = list(lines(50))
    path = tmp_path / "data.vw"
    path.write_text("".join(f"1 |a {' '.join(f'{name}:{value}' for name, value in x)}\n" for x in given))
    stream = Stream(path, exact=True, normalize=normalize, log1p=log1p, dtype=dtype)
    index, found, n_in_pieces = FeatureIndex.of(KNOWN, "names"), [], 0
    for rows in stream.rows():
        n_in_pieces += rows.pieces is not None
        rows = stream.mapped(rows, index, grow=False)
        for k in range(len(rows)):
            here = slice(rows.indptr[k], rows.indptr[k + 1])
            found.append(dict(zip(rows.columns[here].tolist(), rows.data[here].tolist(), strict=True)))
    assert (n_in_pieces > 40) == in_pieces
    assert len(index) == len(KNOWN)
    assert found == [pytest.approx(expected(x, log1p, normalize == "l2")) for x in given]


def test_what_is_scored_is_what_was_learnt(tmp_path, monkeypatch):
    """If all names are known, rows that are scored are those that were learnt, to the bit."""
    path = tmp_path / "data.vw"
    path.write_text(
        "".join(f"1 |a {' '.join(f'{name}:{value / 7}' for name, value in x)}\n" for x in lines(50))
    )
    for long_line in (20, 1 << 20):
        monkeypatch.setattr(source, "LONG_LINE", long_line)
        index, found = FeatureIndex("names"), []
        for grow in (True, False):
            stream = Stream(path, exact=True, normalize="l2", threads=1)
            rows = [stream.mapped(rows, index, grow=grow) for rows in stream.rows()]
            found.append([(row.columns.tolist(), row.data.tobytes()) for row in rows])
        assert found[0] == found[1]


def test_rows_in_pieces_are_the_same_to_the_bit(tmp_path, monkeypatch):
    path = tmp_path / "data.vw"
    path.write_text(
        "".join(f"1 |a {' '.join(f'{name}:{value / 7}' for name, value in x)}\n" for x in lines(50))
    )
    index, found = FeatureIndex.of(KNOWN, "names"), []
    monkeypatch.setattr(long_lines, "PIECE_BYTES", 11)
    for long_line in (20, 1 << 20):
        monkeypatch.setattr(source, "LONG_LINE", long_line)
        stream, features = Stream(path, exact=True, normalize="l2", log1p=True), []
        for rows in stream.rows():
            rows = stream.mapped(rows, index, grow=False)
            for k in range(len(rows)):
                here = slice(rows.indptr[k], rows.indptr[k + 1])
                features.append((rows.columns[here].tolist(), rows.data[here].tobytes()))
        found.append(features)
    assert found[0] == found[1]
    assert len(found[0]) == 50


def test_names_have_slots_or_hashes():
    index = FeatureIndex.of(["x", "y"], "names")
    names = ["", "y", "zebra", "x", "zebras", "a name of many letters", "a name of many letters!", "y", "x"]
    raw = [name.encode() for name in names]
    letters = np.frombuffer(b"\0" * 8 + b"".join(raw) + b"\0" * 8, np.uint8)[8:]
    starts = np.cumsum([0, *map(len, raw)], dtype=np.int32)
    data = np.arange(9, dtype=np.float32)
    data[7] = 0.0
    indptr, keys, values = index.map_all(np.array([0, 1, 9]), (letters, starts), data)
    assert indptr.tolist() == [0, 0, 7]
    assert values.tolist() == [1, 2, 3, 4, 5, 6, 8]
    assert keys[[0, 2, 6]].tolist() == [1, 0, 0]
    unknown = keys[[1, 3, 4, 5]]
    assert (unknown >= UNKNOWN).all()
    assert len(set(unknown.tolist())) == 4
    assert len(index) == 2


def test_hashes_of_many_names_differ():
    names = [f"{prefix}{k}" for prefix in ("w", "namespace^word", "12345678") for k in range(100_000)]
    raw = [name.encode() for name in names]
    letters = np.frombuffer(b"\0" * 8 + b"".join(raw) + b"\0" * 8, np.uint8)[8:]
    starts = np.cumsum([0, *map(len, raw)], dtype=np.int32)
    ones = np.ones(len(names), np.float32)
    _, keys, _ = FeatureIndex("names").map_all(np.array([0, len(names)]), (letters, starts), ones)
    assert len(np.unique(keys)) == len(names)
