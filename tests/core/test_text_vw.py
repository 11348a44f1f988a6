"""Vowpal Wabbit's format: rows, and what is wrong with a line and where."""

import numpy as np
import pytest

from maxcosine import core
from tests.core import naive_text
from tests.core.naive_text import Options, names_of, parse

EXACT = Options(exact=True)

LINES = [
    (b"1 | a b:2", "1", 1, {"a": 1, "b": 2}),
    (b"| a", None, 1, {"a": 1}),
    (b"1 |", "1", 1, {}),
    (b"|", None, 1, {}),
    (b"+1 2.5 |f a\r\n", "1", 2.5, {"f^a": 1}),
    (b"1 0 0.5 |f a", "1", 0, {"f^a": 1}),
    (b"1 2 3 'tag|f a", "1", 2, {"f^a": 1}),
    (b"1 'tag |f a", "1", 1, {"f^a": 1}),
    (b"1 tag|f a", "1", 1, {"f^a": 1}),
    (b"1|f a", None, 1, {"f^a": 1}),
    (b"'tag |f a", None, 1, {"f^a": 1}),
    (b"1 ' |f a", "1", 1, {"f^a": 1}),
    (b"1 '\xff |f a", "1", 1, {"f^a": 1}),
    (b"\xff|f a", None, 1, {"f^a": 1}),
    (b"\t1\t2\t|f\ta\t", "1", 2, {"f^a": 1}),
    (b"spam |f:0.5 a b:4 |g c|h d:2|e", "spam", 1, {"f^a": 0.5, "f^b": 2, "g^c": 1, "h^d": 2}),
    (b"1 |:2 a", "1", 1, {"a": 2}),
    (b"1 |f 12:0.25 13", "1", 1, {"f^12": 0.25, "f^13": 1}),
    ("日本 |größe ä:1.5 🦊".encode(), "日本", 1, {"größe^ä": 1.5, "größe^🦊": 1}),
    (b"1:2:3 |f a^b", "1:2:3", 1, {"f^a^b": 1}),
    (b"1 |f a#b \x01:2 c\rd", "1", 1, {"f^a#b": 1, "f^\x01": 2, "f^c\rd": 1}),
    (b"1 |a_namespace_of_some_length a_feature_of_some_length:3 b", "1", 1,
     {"a_namespace_of_some_length^a_feature_of_some_length": 3, "a_namespace_of_some_length^b": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("line", "label", "weight", "features"), LINES)
def test_lines(line, label, weight, features):
    for options in (EXACT, Options(bits=18, keep_names=True)):
        block = parse("vw", line, options)
        assert block.faults == []
        assert dict(zip(map(bytes.decode, names_of(block)), block.values.tolist(), strict=True)) == features
        assert block.labels == ([] if label is None else [label])
        assert (1 if block.weights is None else block.weights.tolist()[0]) == weight
        assert (block.weights is None) == (weight == 1)
        assert (block.columns is None, block.squares is None) == (options.exact, options.exact)


def test_names_of_hashed_features_stand_beside_their_columns():
    content = b"1 |f b a:2 b:-1 a\n1 |f c:x\n1 |g c"
    block = parse("vw", content, Options(bits=18, keep_names=True))
    pairs = [(b"f", b"b"), (b"f", b"a"), (b"f", b"b"), (b"f", b"a"), (b"g", b"c")]
    columns = [naive_text.column_of_name(*pair, 18) for pair in pairs]
    assert names_of(block) == [b"^".join(pair) for pair in pairs]
    assert block.name_columns.tolist() == columns
    assert (block.columns.tolist(), block.values.tolist()) == ([columns[1], columns[4]], [3, 1])
    assert parse("vw", content, Options(bits=18)).letters is None


def test_blank_lines_are_not_rows():
    block = parse("vw", b"\n \t\r\n1 | a\n\n", EXACT)
    assert (block.faults, block.row_lines.tolist(), block.n_lines) == ([], [2], 4)


FAULTS = {
    "NO_BAR": [(b"1 2 3", 0), (b"a", 0)],
    "TOO_MANY": [(b"1 2 3 4 | a", 6), (b"1 2 3 4 5 6 'tag | a", 6)],
    "NEGATIVE_WEIGHT": [(b"1 -0.5 | a", 2)],
    "NO_VALUE": [(b"1 |f: a", 5), (b"1 |f a: b", 7), (b"1 |f a:", 7), (b"1 |f a:|", 7)],
    "NOT_A_NUMBER": [
        (b"1 x | a", 2), (b"1 1 base | a", 4), (b"1 |f:x a", 5), (b"1 |f:1:2 a", 5), (b"1 |f a:b", 7),
        (b"1 |f a:1:2", 7), (b"1 |f a::2", 7), (b"1 |f a:nan#", 7),
    ],
    "NOT_FINITE": [(b"1 inf | a", 2), (b"1 1 nan | a", 4), (b"1 |f:nan|a", 5)],
    "TOO_LARGE": [(b"1 1e999 | a", 2), (b"1 |f a:1e400", 7), (b"1 |f:1e200 b a:1e200", 13)],
    "NO_NAME": [(b"1 |f :2", 5)],
    "NOT_TEXT": [(b"\xff | a", 0)],
    "NUL_BYTE": [(b"1 |f a\0", 6), (b"1 |f\0 :", 4), (b"\0", 0), (b"1 '\0 |a", 3)],
}  # fmt: skip
NAMES_THAT_ARE_NOT_TEXT = [
    (b"1 |f\xc3 a", 4), (b"1 |f a\xe2\x82:1", 6), (b"1 |f \xc0\x80", 5), (b"1 |f a_long_name\xf5", 16),
]  # fmt: skip


@pytest.mark.parametrize("options", [EXACT, Options(bits=18)])
@pytest.mark.parametrize("fault", FAULTS)
def test_faults(fault, options):
    before = b"1 |f g\n"
    for line, position in FAULTS[fault]:
        for end in (b"", b"\n", b"\r\n"):
            block = parse("vw", before + line + end, options)
            start, code = len(before), core.FAULT_CODES[fault]
            assert block.faults == [(1, start, start + len(line), start + position, code)], line
            assert (len(block.values), block.n_lines) == (1, 2)
    assert core.FAULT_MESSAGES[core.FAULT_CODES[fault]]


def test_only_exact_names_must_be_utf8():
    for line, position in NAMES_THAT_ARE_NOT_TEXT:
        faults = parse("vw", line, EXACT).faults
        assert faults == [(0, 0, len(line), position, core.FAULT_CODES["NOT_TEXT"])]
        assert parse("vw", line, Options(bits=18)).faults == []


def test_scaled_values_beyond_single_precision():
    line = b"1 |f:1e30 a:1e9"
    assert parse("vw", line, EXACT).faults == []
    faults = parse("vw", line, EXACT._replace(dtype="float32")).faults
    assert [fault[-1] for fault in faults] == [core.FAULT_CODES["TOO_LARGE"]]
    block = parse("vw", b"1 |f:1e39 a:1e-9", EXACT._replace(dtype="float32"))
    assert block.values.tolist() == [np.float32(1e39 * 1e-9)]


def test_bad_lines_are_left_out_or_end_the_block():
    content = b"1 |f a\nx |f a:y\n2 3 |f b\nz\n1.0 't|f c d"
    block = parse("vw", content, EXACT)
    assert (block.labels, block.codes.tolist()) == (["1", "2"], [0, 1, 0])
    assert block.row_lines.tolist() == [0, 2, 4]
    assert names_of(block) == [b"f^a", b"f^b", b"f^c", b"f^d"]
    assert ([fault[0] for fault in block.faults], block.n_lines) == ([1, 3], 5)
    assert block.weights.tolist() == [1, 3, 1]
    block = parse("vw", content, EXACT._replace(stop_at_fault=True))
    assert (block.labels, names_of(block), block.n_lines) == (["1"], [b"f^a"], 2)


def test_hash_is_the_documented_one():
    names = [(b"", b"a"), (b"a", b"b"), (b"user", b"age"), (b"", b"12345678"), (b"longer_than_8", b"x" * 30)]
    line = b"1 " + b" ".join(b"|%s %s" % pair for pair in names)
    for bits in (18, 31):
        expected = [naive_text.column_of_name(*pair, bits) for pair in names]
        assert parse("vw", line, Options(bits=bits)).columns.tolist() == expected
    # Models depend on this hash: these columns must never change.
    pinned = [(b"", b"a"), (b"user", b"age"), (b"", b"12345678")]
    assert [naive_text.column_of_name(*pair, 18) for pair in pinned] == [131720, 71630, 59598]


@pytest.mark.parametrize("pattern", [b"%d", b"f%d", b"feature_%d", b"%d_of_many_more", b"%08x", b"a=%d^b=7"])
def test_hash_collides_no_more_than_random_columns(pattern):
    n, bits = 100_000, 20
    line = b"1 |s " + b" ".join(pattern % k for k in range(n))
    taken = len(parse("vw", line, Options(bits=bits)).columns)
    expected = 2**bits * -np.expm1(n * np.log1p(-(2.0**-bits)))
    assert abs(taken - expected) < 6 * np.sqrt(n * n / 2**bits / 2 + 1)


def test_names_may_be_longer_than_the_block():
    space = b"n" * 3_000
    block = parse("vw", b"1 |a b\n2 |" + space + b" a" * 3_000 + b"\n3 |c d", EXACT)
    assert block.faults == []
    assert names_of(block) == [b"a^b", *[space + b"^a"] * 3_000, b"c^d"]
    assert block.indptr.tolist() == [0, 1, 3001, 3002]


def test_many_rows_labels_and_faults():
    lines = [b"%d %d '%d|f a%d" % (k // 2, k, k, k) if k % 3 else b"%d 1" % k for k in range(20_000)]
    block = parse("vw", b"\n".join(lines), EXACT)
    good = [k for k in range(20_000) if k % 3]
    assert names_of(block) == [b"f^a%d" % k for k in good]
    assert [block.labels[code] for code in block.codes] == [str(k // 2) for k in good]
    assert block.weights.tolist() == good
    assert [fault[0] for fault in block.faults] == list(range(0, 20_000, 3))


def test_names_need_bits_or_an_index():
    with pytest.raises(ValueError, match="bits > 0"):
        parse("vw", b"1 | a", Options())
