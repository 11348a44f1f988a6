"""A line that is parsed piece by piece is what it is as a whole."""

import io
import itertools
import random
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from maxcosine.compiled import JIT_ENABLED
from maxcosine.index import FeatureIndex
from maxcosine.stream import Stream, StreamError, long_lines, parsed, source
from maxcosine.stream.chunks import FORMATS
from maxcosine.stream.long_lines import LongLine
from maxcosine.stream.memory import Memory
from maxcosine.stream.parsed import padded
from maxcosine.stream.tidy import LONG_ROW, LongRow, tidied
from tests.stream.test_parser_fuzz import LINES, SOUND, each_format, few, mutated
from tests.stream.test_same_bits import MODES, svmlight_lines, vw_lines

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

# Bits, whether names are kept.
WAYS = [(0, False), (5, False), (31, True)]


def in_pieces(length):
    return mock.patch.object(long_lines, "PIECE_BYTES", length)


def check(form, content, way, length):
    """Compare a line in pieces of about this length with the whole of it."""
    bits, keep_names = way
    options = {
        "bits": bits,
        "dtype": np.float64,
        "keep_names": keep_names,
        "columns": False,
        "memory": Memory(),
    }
    whole = FORMATS[form].parse(padded(content), stop_at_fault=True, **options)
    line = LongLine(padded(content), FORMATS[form], **options)
    with in_pieces(length):
        head = line.names()[0] if form == "vw" and not bits else line.features()
        pieces = [] if head.faults else [piece.replace(ids=piece.ids.copy()) for _, piece in line.pieces()]
    assert head.faults == whole.faults
    assert head.n_lines == (whole.n_lines or 1)
    assert (head.codes.tolist(), head.labels) == (whole.codes.tolist(), whole.labels)
    assert (head.weights is None) == (whole.weights is None)
    if whole.weights is not None:
        assert head.weights.tolist() == whole.weights.tolist()
    if not head.faults:
        assert [k for piece in pieces for k in piece.ids.tolist()] == whole.ids.tolist()
        assert b"".join(piece.data.tobytes() for piece in pieces) == whole.data.tobytes()
        names = [name for piece in pieces for name in names_of(piece)]
        assert names == names_of(whole)
    return head


def names_of(found):
    if found.letters is None:
        return []
    letters, starts = found.letters.tobytes(), found.starts.tolist()
    return [letters[start:stop] for start, stop in itertools.pairwise(starts)]


@each_format
@few(300)
@given(data=st.data())
def test_lines_in_pieces(form, data):
    content = data.draw(LINES[form]).encode().replace(b"\n", b"") + data.draw(st.sampled_from([b"", b"\n"]))
    check(form, content, data.draw(st.sampled_from(WAYS)), data.draw(st.integers(1, 40)))


@each_format
@few(300)
@example(content=list(b"|a\r b"))
@example(content=list(b"  a#\0"))
@example(content=list(b"1 |a |b:0 c |:n"))
@given(content=st.lists(st.sampled_from(list(b"01.e+-:|# \t\r'an\0\xc3\xa9")), max_size=60))
def test_bytes_that_mean_something_in_pieces(form, content):
    for length in (1, 4, 20):
        for way in WAYS:
            check(form, bytes(content), way, length)
            check(form, bytes(content) + b"\r\n", way, length)


@each_format
@pytest.mark.parametrize(
    "n", [1000 if JIT_ENABLED else 20, pytest.param(50_000, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_mutated_lines_in_pieces(form, n):
    dice = random.Random(0)
    for _ in range(n):
        line = mutated(dice.choice(SOUND[form]), dice).replace(b"\n", b"")
        check(form, line + dice.choice((b"", b"\n", b"\r\n")), dice.choice(WAYS), dice.choice((1, 5, 30)))


@pytest.mark.parametrize("room", [16, 100])
def test_pieces_whose_names_there_is_no_room_for_are_shorter(room):
    line = b"1 |" + b"n" * 40 + b" a b c d e f g h i j k l m n o p |m q r s t u" * 5
    with mock.patch.object(parsed, "LETTERS", room):
        n_pieces = len(list(LongLine(padded(line), FORMATS["vw"], bits=0, dtype=float).pieces()))
        assert n_pieces > 10
        with mock.patch.object(parsed, "LETTERS", 10_000):
            whole = FORMATS["vw"].parse(padded(line), bits=0, dtype=float, stop_at_fault=True)
        pieces = LongLine(padded(line), FORMATS["vw"], bits=0, dtype=float).pieces()
        assert [name for _, piece in pieces for name in names_of(piece)] == names_of(whole)


# Rows in pieces


@pytest.mark.parametrize("n", [0, 1, LONG_ROW, LONG_ROW + 1, 3 * LONG_ROW, 5 * LONG_ROW + 3])
@pytest.mark.parametrize("ascending", [False, True])
def test_a_row_in_pieces_is_the_same_to_the_bit(n, ascending):
    dice = np.random.default_rng(n)
    columns = np.arange(n, dtype=np.uint32) if ascending else dice.integers(0, n // 2 + 1, n, np.uint32)
    data = dice.normal(size=n).astype(np.float32)
    row, at = LongRow(n + 1, np.uint32, np.float32), 0
    while at < n:
        length = int(dice.integers(1, LONG_ROW))
        assert row.add(columns[at : at + length], data[at : at + length])
        at += length
    found = tidied(np.array([0, len(row.taken()[0])]), *row.taken(), log1p=True, l2=True)
    expected = tidied(np.array([0, n]), columns.copy(), data.copy(), log1p=True, l2=True)
    assert [array.tobytes() for array in found] == [array.tobytes() for array in expected]


def test_a_row_of_too_many_features():
    row = LongRow(2 * LONG_ROW, np.uint32, np.float32)
    ones = np.ones(LONG_ROW, np.float32)
    for _ in range(5):
        for k in range(2):
            assert row.add(np.arange(k * LONG_ROW, (k + 1) * LONG_ROW, dtype=np.uint32), ones)
    assert len(row.taken()[0]) == 2 * LONG_ROW
    row.add(np.array([2 * LONG_ROW], np.uint32), ones[:1])
    assert row.taken() is None


# Streams


def read(path, mode, **options):
    """All that a stream gives, and what it says of bad lines."""
    kept = io.BytesIO()
    stream = Stream(path, **MODES[mode], **options, on_bad="skip", bad_lines=kept, limits=(1e-3, 1e9))
    index, found, places = FeatureIndex("names"), [], []
    for rows in stream.rows():
        places += [tuple(rows.ends.start(k)) for k in range(len(rows))]
        named = [
            (column, part.letters[part.starts[k] : part.starts[k + 1]].tobytes())
            for part in rows.named or ()
            for k, column in enumerate(part.columns.tolist())
        ]
        codes, weights = rows.codes, np.ones(len(rows)) if rows.weights is None else rows.weights
        if len(rows) and rows.names is not None:
            rows = stream.mapped(rows, index)
        for k in range(len(rows)):
            here = slice(rows.indptr[k], rows.indptr[k + 1])
            values = rows.columns[here].tolist(), rows.data[here].tobytes()
            found.append((stream.labels[codes[k]] if codes[k] >= 0 else None, weights[k], *values))
        found += named
    features = [row for row in found if len(row) == 4], [row for row in found if len(row) == 2]
    return *features, places, stream.place, stream.n_bad, stream.first_bad, kept.getvalue()


BAD = ["1 2:x 3:4", "1 7:1 |", "\0", "", "# nothing", "1 3:1e-9 |a b:1e-9", "2 |a b:1e12", "1 9:1e12"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("kind", "lines"), [("svm", svmlight_lines), ("vw", vw_lines)])
@pytest.mark.parametrize("options", [{}, {"normalize": "l2", "log1p": True}, {"keep_names": True}], ids=str)
@pytest.mark.parametrize("block_bytes", [100, 1 << 20])
def test_any_line_may_be_a_long_one(tmp_path, monkeypatch, mode, kind, lines, options, block_bytes):
    content = lines(60)
    for k, bad in enumerate(BAD):
        content.insert(7 * k, bad)
    path = tmp_path / f"data.{kind}"
    path.write_text("\n".join(content))
    expected = read(path, mode, **options)
    assert len(expected[0]) > 50
    assert expected[4] >= 3
    monkeypatch.setattr(source, "LONG_LINE", 20)
    monkeypatch.setattr(long_lines, "PIECE_BYTES", 11)
    assert read(path, mode, **options, block_bytes=block_bytes) == expected


@pytest.mark.parametrize("n_bytes", [1 << 19, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_a_long_line_is_a_block_of_its_own(tmp_path, n_bytes):
    path = tmp_path / "data.svm"
    line = b"1 " + b"1:1 " * (n_bytes // 4)
    line = line[: n_bytes - 1] + b"\n"
    path.write_bytes((b"0 2:1\n" * 1000 + line) * 3 + b"1 1:1\n")
    sizes = [(block.alone, block.size) for block in source.Source([path]).blocks()]
    assert [size for alone, size in sizes if alone] == ([n_bytes] * 3 if n_bytes > 1 << 20 else [])
    assert sum(size for _, size in sizes) == path.stat().st_size


@pytest.mark.parametrize("content", ["\n" * 1000, "", "0" * 90, "0" * 90 + "\n" + "1" * 90])
def test_all_lines_are_in_some_block(tmp_path, monkeypatch, content):
    monkeypatch.setattr(source, "LONG_LINE", 10)
    path = tmp_path / "data.svm"
    path.write_text(content)
    blocks = list(source.Source([path], block_bytes=50).blocks())
    assert b"".join(block.text[: block.size].tobytes() for block in blocks) == content.encode()
    assert [block.ends for block in blocks] == [False] * (len(blocks) - 1) + [True]


def test_the_number_of_different_features_of_a_line_has_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "LONG_LINE", 100)
    monkeypatch.setattr(long_lines, "PIECE_BYTES", 1 << 16)
    monkeypatch.setattr(long_lines, "MOST_FEATURES", LONG_ROW)
    few_different = " ".join(f"{k % 1000}:1" for k in range(3 * LONG_ROW))
    many_different = " ".join(f"{k}:1" for k in range(2 * LONG_ROW))
    for name, bar in (("data.svm", ""), ("data.vw", "|f ")):
        path = tmp_path / name
        path.write_text(f"0 {bar}1:1\n1 {bar}{few_different}\n0 {bar}{many_different}\n1 {bar}2:1\n")
        for mode in MODES:
            options = MODES[mode] if mode != "hashed" else {"bits": 31}
            stream = Stream(path, **options, on_bad="skip")
            chunks = list(stream)
            assert sum(len(chunk.labels) for chunk in chunks) == 3
            assert stream.n_bad == 1
            assert f"{name}:3:" in stream.first_bad[0]
            assert "different features" in stream.first_bad[0]
        with pytest.raises(StreamError, match=r"different features by here.*; make several examples"):
            list(Stream(path, exact=True))


def test_the_names_of_a_line_have_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(long_lines, "MOST_LETTERS", 10 << 20)
    path = tmp_path / "data.vw"
    space = "n" * 50_000
    for n, n_bad in ((200, 0), (300, 1)):
        path.write_text("0 |a b\n" + f"1 |{space} " + " ".join(f"a{k}" for k in range(n)) + "\n0 |a c\n")
        for options in ({"exact": True}, {"bits": 20, "keep_names": True}):
            stream = Stream(path, **options, on_bad="skip")
            index = FeatureIndex("names")
            for rows in stream.rows():
                if rows.names is not None:
                    stream.mapped(rows, index)
            assert stream.n_bad == n_bad
            assert len(index) == (2 + n * (not n_bad)) * ("exact" in options)
        stream = Stream(path, bits=20, on_bad="skip")
        assert [len(chunk.labels) for chunk in stream] == [3]
    with pytest.raises(StreamError, match=r"data\.vw:2:.* take more than .* MB by here; give the namespace"):
        list(Stream(path, exact=True))
