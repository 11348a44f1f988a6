"""Vowpal Wabbit's format: lines and what they say, or what is wrong with them and where."""

import itertools

import numpy as np
import pytest

from maxcosine.compiled import JIT_ENABLED
from maxcosine.stream import parsed
from maxcosine.stream.parsed import MESSAGES, Fault, padded
from maxcosine.stream.vw import parse
from tests.stream import naive

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")


def read(content, *, bits=0, dtype=np.float64, stop_at_fault=False, keep_names=False):
    return parse(padded(content), bits=bits, dtype=dtype, stop_at_fault=stop_at_fault, keep_names=keep_names)


def names_of(rows):
    letters = rows.letters.tobytes()
    return [letters[a:b].decode() for a, b in itertools.pairwise(rows.starts.tolist())]


def many(n):
    """n lines when compiled, fewer in plain Python."""
    return n if JIT_ENABLED else max(300, n // 500)


LINES = [
    (b"1 | a b:2", "1", 1, b"", {"a": 1, "b": 2}),
    (b"| a", None, 1, b"", {"a": 1}),
    (b"1 |", "1", 1, b"", {}),
    (b"|", None, 1, b"", {}),
    (b"+1 2.5 |f a\r\n", "1", 2.5, b"", {"f^a": 1}),
    (b"1 0 0.5 |f a", "1", 0, b"", {"f^a": 1}),
    (b"1 2 3 'tag|f a", "1", 2, b"tag", {"f^a": 1}),
    (b"1 'tag |f a", "1", 1, b"tag", {"f^a": 1}),
    (b"1 tag|f a", "1", 1, b"tag", {"f^a": 1}),
    (b"1|f a", None, 1, b"1", {"f^a": 1}),
    (b"'tag |f a", None, 1, b"tag", {"f^a": 1}),
    (b"1 ' |f a", "1", 1, b"", {"f^a": 1}),
    (b"\t1\t2\t|f\ta\t", "1", 2, b"", {"f^a": 1}),
    (b"spam |f:0.5 a b:4 |g c|h d:2|e", "spam", 1, b"", {"f^a": 0.5, "f^b": 2, "g^c": 1, "h^d": 2}),
    (b"1 |:2 a", "1", 1, b"", {"a": 2}),
    (b"1 |f 12:0.25 13", "1", 1, b"", {"f^12": 0.25, "f^13": 1}),
    ("日本 |größe ä:1.5 🦊".encode(), "日本", 1, b"", {"größe^ä": 1.5, "größe^🦊": 1}),
    (b"1:2:3 |f a^b", "1:2:3", 1, b"", {"f^a^b": 1}),
    (b"1 |f a#b \x01:2 c\rd", "1", 1, b"", {"f^a#b": 1, "f^\x01": 2, "f^c\rd": 1}),
    (b"1 |a_namespace_of_some_length a_feature_of_some_length:3 b", "1", 1, b"",
     {"a_namespace_of_some_length^a_feature_of_some_length": 3, "a_namespace_of_some_length^b": 1}),
]  # fmt: skip


@pytest.mark.parametrize("bits", [0, 18])
@pytest.mark.parametrize(("line", "label", "weight", "tag", "features"), LINES)
def test_lines(line, label, weight, tag, features, bits):
    rows = read(line, bits=bits, keep_names=True)
    assert rows.faults == []
    assert dict(zip(names_of(rows), rows.data.tolist(), strict=True)) == features
    assert rows.labels == ([] if label is None else [label])
    assert (1 if rows.weights is None else rows.weights.tolist()[0]) == weight
    assert (rows.weights is None) == (weight == 1)
    assert (b"" if rows.tags is None else line[slice(*rows.tags[0])]) == tag
    assert len(rows.ids) == (len(features) if bits else 0)


def test_blank_lines_are_no_rows():
    rows = read(b"\n \t\r\n1 | a\n\n")
    assert (rows.faults, rows.row_lines.tolist(), rows.n_lines) == ([], [2], 4)


FAULTS = [
    (b"1 2 3", parsed.NO_BAR, 0),
    (b"a", parsed.NO_BAR, 0),
    (b"1 2 3 4 | a", parsed.TOO_MANY, 6),
    (b"1 2 3 4 5 6 'tag | a", parsed.TOO_MANY, 6),
    (b"1 x | a", parsed.NOT_A_NUMBER, 2),
    (b"1 inf | a", parsed.NOT_FINITE, 2),
    (b"1 1e999 | a", parsed.TOO_LARGE, 2),
    (b"1 -0.5 | a", parsed.NEGATIVE_WEIGHT, 2),
    (b"1 1 base | a", parsed.NOT_A_NUMBER, 4),
    (b"1 1 nan | a", parsed.NOT_FINITE, 4),
    (b"1 |f: a", parsed.NO_VALUE, 5),
    (b"1 |f:x a", parsed.NOT_A_NUMBER, 5),
    (b"1 |f:nan|a", parsed.NOT_FINITE, 5),
    (b"1 |f:1:2 a", parsed.NOT_A_NUMBER, 5),
    (b"1 |f a: b", parsed.NO_VALUE, 7),
    (b"1 |f a:", parsed.NO_VALUE, 7),
    (b"1 |f a:|", parsed.NO_VALUE, 7),
    (b"1 |f a:b", parsed.NOT_A_NUMBER, 7),
    (b"1 |f a:1:2", parsed.NOT_A_NUMBER, 7),
    (b"1 |f a::2", parsed.NOT_A_NUMBER, 7),
    (b"1 |f a:nan#", parsed.NOT_A_NUMBER, 7),
    (b"1 |f a:1e400", parsed.TOO_LARGE, 7),
    (b"1 |f:1e200 b a:1e200", parsed.TOO_LARGE, 13),
    (b"1 |f :2", parsed.NO_NAME, 5),
    (b"\xff | a", parsed.NOT_TEXT, 0),
    (b"1 |f a\0", parsed.NUL_BYTE, 6),
    (b"1 |f\0 :", parsed.NUL_BYTE, 4),
    (b"\0", parsed.NUL_BYTE, 0),
    (b"1 '\0 |a", parsed.NUL_BYTE, 3),
]
NAMES_AT_FAULT = [
    (b"1 |f\xc3 a", parsed.NOT_TEXT, 4),
    (b"1 |f a\xe2\x82:1", parsed.NOT_TEXT, 6),
    (b"1 |f \xc0\x80", parsed.NOT_TEXT, 5),
    (b"1 |f a_long_name\xf5", parsed.NOT_TEXT, 16),
]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize("bits", [0, 18])
@pytest.mark.parametrize(("line", "code", "position"), FAULTS + NAMES_AT_FAULT)
def test_faults(line, code, position, bits, end):
    before = b"1 |f g\n"
    rows = read(before + line + end, bits=bits)
    start = len(before)
    fault = Fault(1, start, start + len(line), start + position, code)
    checked = bits == 0 or (line, code, position) not in NAMES_AT_FAULT
    assert rows.faults == [fault] * checked
    assert code in MESSAGES
    assert rows.n_lines == 2


def test_scaled_values_beyond_single_precision():
    assert read(b"1 |f:1e30 a:1e9").faults == []
    assert [fault.code for fault in read(b"1 |f:1e30 a:1e9", dtype=np.float32).faults] == [parsed.TOO_LARGE]
    assert read(b"1 |f:1e39 a:1e-9", dtype=np.float32).data.tolist() == [np.float32(1e39 * 1e-9)]


def test_policies():
    content = b"1 |f a\nx |f a:y\n2 3 |f b\nz\n1.0 't|f c d"
    rows = read(content)
    assert (rows.labels, rows.codes.tolist(), rows.row_lines.tolist()) == (["1", "2"], [0, 1, 0], [0, 2, 4])
    assert names_of(rows) == ["f^a", "f^b", "f^c", "f^d"]
    assert ([fault.line for fault in rows.faults], rows.n_lines) == ([1, 3], 5)
    assert rows.weights.tolist() == [1, 3, 1]
    assert [content[slice(*tag)] for tag in rows.tags] == [b"", b"", b"t"]
    rows = read(content, stop_at_fault=True)
    assert (rows.labels, names_of(rows), rows.n_lines) == (["1"], ["f^a"], 2)


def test_hash_is_the_one_documented():
    names = [(b"", b"a"), (b"a", b"b"), (b"user", b"age"), (b"", b"12345678"), (b"longer_than_8", b"x" * 30)]
    line = b"1 " + b" ".join(b"|%s %s" % pair for pair in names)
    for bits in (1, 18, 32, 63):
        assert read(line, bits=bits).ids.tolist() == [naive.column_of_name(*pair, bits) for pair in names]
    # Part of the format of models: these stay.
    pinned = [(b"", b"a"), (b"user", b"age"), (b"", b"12345678")]
    assert [naive.column_of_name(*pair, 18) for pair in pinned] == [131720, 71630, 59598]


@pytest.mark.parametrize("pattern", [b"%d", b"f%d", b"feature_%d", b"%d_of_many_more", b"%08x", b"a=%d^b=7"])
def test_hash_collides_as_chance_does(pattern):
    n, bits = many(100_000), 20
    rows = read(b"1 |s " + b" ".join(pattern % k for k in range(n)), bits=bits)
    taken = len(np.unique(rows.ids))
    expected = 2**bits * -np.expm1(n * np.log1p(-(2.0**-bits)))
    assert abs(taken - expected) < 6 * np.sqrt(n * n / 2**bits / 2 + 1)


def test_names_that_are_longer_than_the_block():
    space = b"n" * 3_000
    rows = read(b"1 |a b\n" + b"2 |" + space + b" a" * 500 + b"\n3 |c d")
    assert rows.faults == []
    assert names_of(rows) == ["a^b", *[space.decode() + "^a"] * 500, "c^d"]
    assert rows.indptr.tolist() == [0, 1, 501, 502]
    assert rows.letters.ctypes.data - rows.letters.base.ctypes.data >= 8


def test_lines_for_whose_names_there_is_no_room_are_left_for_later():
    short, long = b"1 |a b\n", b"2 |" + b"n" * 3_000 + b" a" * 3_000 + b"\n"
    rows = read(short + long + short)
    assert (rows.n_bytes, rows.n_lines, names_of(rows)) == (len(short), 1, ["a^b"])
    assert read(long).n_bytes == 0


def test_more_of_everything_than_there_is_room_for_at_first():
    n = many(50_000)
    lines = [b"%d %d '%d|f a%d" % (k // 2, k, k, k) if k % 3 else b"%d 1" % k for k in range(n)]
    content = b"\n".join(lines)
    rows = read(content)
    good = [k for k in range(n) if k % 3]
    assert names_of(rows) == [f"f^a{k}" for k in good]
    assert [rows.labels[code] for code in rows.codes] == [str(k // 2) for k in good]
    assert rows.weights.tolist() == good
    assert [content[a:b] for a, b in rows.tags.tolist()] == [b"%d" % k for k in good]
    assert [fault.line for fault in rows.faults] == list(range(0, n, 3))
