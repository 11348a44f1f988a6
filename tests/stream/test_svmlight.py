"""SVMlight's format: lines and what they say, or what is wrong with them and where."""

import concurrent.futures

import numpy as np
import pytest

from maxcosine.compiled import JIT_ENABLED
from maxcosine.stream import parsed
from maxcosine.stream.parsed import MESSAGES, Fault, padded
from maxcosine.stream.svmlight import parse
from maxcosine.stream.tidy import square_norms
from tests.stream import naive

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

LARGEST = 2**64 - 1


def read(content, *, bits=0, dtype=np.float64, stop_at_fault=False):
    return parse(padded(content), bits=bits, dtype=dtype, stop_at_fault=stop_at_fault)


def many(n):
    """n lines when compiled, fewer in plain Python."""
    return n if JIT_ENABLED else max(300, n // 500)


LINES = [
    (b"1 2:3", "1", [(2, 3)]),
    (b"+1 2:3 \r\n", "1", [(2, 3)]),
    (b"1.0 2:3\r", "1", [(2, 3)]),
    (b"1e0\t2:3\t\t4:-5.5e-1 ", "1", [(2, 3), (4, -0.55)]),
    (b"  -1.50 0:0", "-1.5", [(0, 0)]),
    (b"-0 9:1. 8:.5 9:+7 8:1E2", "0", [(9, 1), (8, 0.5), (9, 7), (8, 100)]),
    (b"spam", "spam", []),
    (b"1 # 2:3", "1", []),
    (b"1#2:3", "1", []),
    (b"1 2:3#4:5", "1", [(2, 3)]),
    (b"1 2:3 # \xff:x", "1", [(2, 3)]),
    (b"1 qid:7 2:3", "1", [(2, 3)]),
    (b"qid:7 2:3", None, [(2, 3)]),
    (b"2:3", None, [(2, 3)]),
    (b"1,2 2:3", "1,2", [(2, 3)]),
    ("größe 2:3".encode(), "größe", [(2, 3)]),
    (b"label-of-more-than-eight-bytes 2:3", "label-of-more-than-eight-bytes", [(2, 3)]),
    (b"a\rb 2:3", "a\rb", [(2, 3)]),
    (b"nan 2:3", "nan", [(2, 3)]),
    (b"1 18446744073709551615:1 00000000000000000000000000012:1", "1", [(LARGEST, 1), (12, 1)]),
    (b"1 12345678:1 123456789:1 1234567:1", "1", [(12345678, 1), (123456789, 1), (1234567, 1)]),
    (b"1 2:1e-400 3:-1e-400", "1", [(2, 0), (3, 0)]),
    (b"1 2:0.30000000000000004 3:9007199254740993 4:1e23", "1", [(2, 0.1 + 0.2), (3, 2.0**53), (4, 1e23)]),
    (b"1 2:" + b"0" * 50 + b"1." + b"0" * 50 + b"1", "1", [(2, 1)]),
    (b"1 2:1e" + b"0" * 50 + b"1", "1", [(2, 10)]),
    (b"1 2:0." + b"0" * 500 + b"1e501", "1", [(2, 1)]),
]


@pytest.mark.parametrize(("line", "label", "features"), LINES)
def test_lines(line, label, features):
    rows = read(line)
    assert rows.faults == []
    assert list(zip(rows.ids.tolist(), rows.data.tolist(), strict=True)) == features
    assert rows.indptr.tolist() == [0, len(features)]
    assert rows.labels == ([] if label is None else [label])
    assert rows.codes.tolist() == [-1 if label is None else 0]
    assert (rows.weights, rows.tags, rows.letters, rows.starts) == (None,) * 4


@pytest.mark.parametrize("line", [b"", b"\n", b" \t\r\n", b"# 1 2:3\n", b"  #\xff"])
def test_lines_that_are_no_rows(line):
    rows = read(line + b"1 2:3" if line.endswith(b"\n") else line)
    assert rows.faults == []
    assert len(rows.codes) == line.endswith(b"\n")
    assert rows.indptr[0] == 0


FAULTS = [
    (b"1 -2:3", parsed.BAD_ID, 2),
    (b"1 :3", parsed.BAD_ID, 2),
    (b"1 0x1F:3", parsed.BAD_ID, 2),
    (b"1 1.5:3", parsed.BAD_ID, 2),
    (b"1 +2:3", parsed.BAD_ID, 2),
    (b"1 a:3", parsed.BAD_ID, 2),
    (b"1 2:3 spam", parsed.BAD_ID, 6),
    (b"1\r2:3 4", parsed.BAD_ID, 0),  # one token with a colon, and so a feature
    (b"a:3", parsed.BAD_ID, 0),
    (b"1 2:3 18446744073709551616:3", parsed.LARGE_ID, 6),
    (b"1 20000000000000000000:3", parsed.LARGE_ID, 2),
    (b"1 99999999999999999999999:3", parsed.LARGE_ID, 2),
    (b"1 2", parsed.NO_COLON, 2),
    (b"1 2:3 1234567890 5:6", parsed.NO_COLON, 6),
    (b"1 2#:3", parsed.NO_COLON, 2),
    (b"1 2:", parsed.NO_VALUE, 4),
    (b"1 2: 3:4", parsed.NO_VALUE, 4),
    (b"1 2:#", parsed.NO_VALUE, 4),
    (b"1 2:x", parsed.NOT_A_NUMBER, 4),
    (b"1 2:3:4", parsed.NOT_A_NUMBER, 4),
    (b"1 2:1_0", parsed.NOT_A_NUMBER, 4),
    (b"1 2:0x10", parsed.NOT_A_NUMBER, 4),
    (b"1 2:1e", parsed.NOT_A_NUMBER, 4),
    (b"1 2:1e+", parsed.NOT_A_NUMBER, 4),
    (b"1 2:.", parsed.NOT_A_NUMBER, 4),
    (b"1 2:-", parsed.NOT_A_NUMBER, 4),
    (b"1 2:--1", parsed.NOT_A_NUMBER, 4),
    (b"1 2:1.2.3", parsed.NOT_A_NUMBER, 4),
    (b"1 2:1,5", parsed.NOT_A_NUMBER, 4),
    (b"1 2:1\r 3:4", parsed.NOT_A_NUMBER, 4),
    (b"1 2:nanx", parsed.NOT_A_NUMBER, 4),
    (b"1 2:nan|", parsed.NOT_A_NUMBER, 4),
    (b"1 2:\xd9\xa1", parsed.NOT_A_NUMBER, 4),  # a digit, but not of ours
    (b"1 2:nan", parsed.NOT_FINITE, 4),
    (b"1 2:-Inf 3:1", parsed.NOT_FINITE, 4),
    (b"1 2:+INFINITY#", parsed.NOT_FINITE, 4),
    (b"1 2:1e999", parsed.TOO_LARGE, 4),
    (b"1 2:-1.7976931348623159e308", parsed.TOO_LARGE, 4),
    (b"1 2:1e99999999999999999999999", parsed.TOO_LARGE, 4),
    (b"a\xffb 2:3", parsed.NOT_TEXT, 1),
    (b"\xed\xa0\x80 2:3", parsed.NOT_TEXT, 0),  # a surrogate
    (b"1 2:3\0", parsed.NUL_BYTE, 5),
    (b"1 x:3 # \0", parsed.NUL_BYTE, 8),
    (b"\0", parsed.NUL_BYTE, 0),
    (b"a\0b 2:3", parsed.NUL_BYTE, 1),
    (b"1 qid:\0 2:3", parsed.NUL_BYTE, 6),
]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize(("line", "code", "position"), FAULTS)
def test_faults(line, code, position, end):
    before = b"1 7:8\n"
    rows = read(before + line + end)
    start = len(before)
    assert rows.faults == [Fault(1, start, start + len(line), start + position, code)]
    assert code in MESSAGES
    assert (rows.ids.tolist(), rows.labels, rows.n_lines) == ([7], ["1"], 2)


@pytest.mark.parametrize(
    ("token", "fits"),
    [(b"3.4028235e38", True), (b"3.4028236e38", False), (b"-1e39", False), (b"1e-50", True)],
)
def test_values_beyond_single_precision(token, fits):
    assert read(b"1 2:" + token).faults == []
    assert [fault.code for fault in read(b"1 2:" + token, dtype=np.float32).faults] == [parsed.TOO_LARGE] * (
        not fits
    )


def test_policies():
    content = b"1 1:1\nx 1:y\n2 2:2\nz 2:\n1 3:3"
    rows = read(content)
    assert (rows.labels, rows.codes.tolist(), rows.row_lines.tolist()) == (["1", "2"], [0, 1, 0], [0, 2, 4])
    assert ([fault.line for fault in rows.faults], rows.n_lines) == ([1, 3], 5)
    assert rows.row_starts.tolist() == [0, 12, content.index(b"1 3")]
    rows = read(content, stop_at_fault=True)
    assert (rows.labels, rows.codes.tolist(), rows.row_lines.tolist()) == (["1"], [0], [0])
    assert ([fault.line for fault in rows.faults], rows.n_lines) == ([1], 2)


def test_tokens_that_are_one_label():
    rows = read(b"+1\n-1\n1\n:1\n 2:3\n1.0\n-1.0\nspam")
    assert rows.labels == ["1", "-1", "spam"]
    assert rows.codes.tolist() == [0, 1, 0, -1, 0, 1, 2]


def test_hashed_ids():
    rows = read(b"1 1023:1 1024:1 18446744073709551615:1", bits=10)
    assert rows.ids.tolist() == [1023, *(naive.column_of_id(k, 10) for k in (1024, LARGEST))]
    assert rows.ids.max() < 1024
    # Part of the format of models: these stay.
    assert [naive.column_of_id(k, 10) for k in (1024, 1025, LARGEST)] == [810, 1005, 711]
    ids = np.arange(2**20, 2**20 + many(100_000))
    columns = read(b"1 " + b" ".join(b"%d:1" % k for k in ids), bits=10).ids
    counts = np.bincount(columns.astype(int), minlength=1024)
    assert len(ids) < 10_000 or counts.std() < 2 * np.sqrt(counts.mean())


@pytest.mark.parametrize("end", [b"\n", b" \n", b"\r\n", b"\t\n", b" # 9:9 9:9\n", b"\n\n", b"\n 1 \n"])
@pytest.mark.parametrize("bits", [0, 3])
def test_lines_end_after_any_number_of_features(end, bits):
    lines = [b" ".join([b"-1", *(b"%d:0.%d" % (k + 1, k + n) for k in range(n))]) for n in range(40)]
    content = end.join([*lines, *lines[::-1], b"1 5:5"])
    found = naive.as_read(padded(content), read(content, bits=bits))
    assert found == naive.read(naive.svmlight_row, content, bits=bits)
    assert not found.faults


def test_more_of_everything_than_there_is_room_for_at_first():
    n = many(150_000)
    lines = [b"%d 1:%d" % (k // 2, k) if k % 3 else b"%d 1:x" % k for k in range(n)]
    rows = read(b"\n".join(lines))
    good = [k for k in range(n) if k % 3]
    assert rows.data.tolist() == good
    assert [rows.labels[code] for code in rows.codes] == [str(k // 2) for k in good]
    assert [fault.line for fault in rows.faults] == list(range(0, n, 3))
    assert {fault.code for fault in rows.faults} == {parsed.NOT_A_NUMBER}


def test_one_letter_lines():
    n = many(50_000)
    rows = read(b"a\n" * n)
    assert (len(rows.codes), rows.labels, rows.n_lines) == (n, ["a"], n)


VALUES = (
    b"1",
    b"0.5",
    b"0.12345678",
    b"0.123456789",
    b"12.5",
    b"-3",
    b"1e-3",
    b".5",
    b"1.",
    b"007",
    b"1e999",
    b"x",
)
LINE_ENDS = (b"", b" ", b"\r", b" # 1:1", b" 5:" + VALUES[-1], b" 5:" + VALUES[-2])
BLANKS = (b" ", b"\t", b"  ", b" \t ")


@pytest.mark.parametrize("bits", [0, 10])
@pytest.mark.parametrize("features", [0, 3, 40, 1500])
def test_features_of_every_kind_wherever_they_lie(features, bits):
    """Some are read by the ends of their tokens, which are found for some thousand bytes at a time."""
    random = np.random.default_rng(features)
    lines = []
    for number in range(12 + 400 // (features + 1)):
        kinds = random.integers(len(VALUES) - 2, size=features)  # the last two are faults
        digits = random.integers(1, 20, size=features)
        blanks = random.choice(len(BLANKS), size=features, p=[0.9, 0.05, 0.03, 0.02])
        line = b"1" + b"".join(
            b"%s%d:%s" % (BLANKS[blank], 10 ** int(n) // 7, VALUES[kind])
            for blank, n, kind in zip(blanks, digits, kinds, strict=True)
        )
        lines.append(line + LINE_ENDS[number % len(LINE_ENDS)])
    content = b"\n".join(lines)
    block = padded(content)
    found = naive.as_read(block, read(content, bits=bits))
    assert found == naive.read(naive.svmlight_row, content, bits=bits)
    assert len(found.rows) + len(found.faults) == len(lines)
    assert found.faults


SEVEN = b" ".join(b"%d:0.5" % k for k in range(7))


@pytest.mark.parametrize("minus", [b"", b"-"])
@pytest.mark.parametrize(
    "token",
    b"1..234567 1.2.34567 1.234.567 1.234567. 1..23456 1.234.56 1.23456. 1..2 ..1 1.2. .1.2 12.3.4".split(),
)
def test_a_second_point_is_no_number(token, minus):
    """Among eight features that are read at once."""
    found = read(b"the-first 1:1\n1 " + SEVEN + b" 9:" + minus + token + b" " + SEVEN + b"\n")
    assert [fault.code for fault in found.faults] == [parsed.NOT_A_NUMBER]


@pytest.mark.parametrize(
    "content",
    [b"12345678" + b" " * 17, b"abcdefgh" + b" 1:1" * 8 + b" " * 17 + b"\n", b"abcdefgh" + b" :" * 9 + b" "],
)
def test_eight_that_are_none_fit_into_what_is_there_for_features(content, monkeypatch):
    """Nothing is written behind the arrays, though so few letters can be no eight features."""
    guarded = []

    def with_guards(shape, dtype=float):
        longer = np.full(int(np.prod(shape)) + 64, 77, dtype)
        guarded.append((longer, int(np.prod(shape))))
        return longer[: guarded[-1][1]].reshape(shape)

    block = padded(content)
    monkeypatch.setattr(np, "empty", with_guards)
    parse(block, bits=0, dtype=np.float32, stop_at_fault=False, columns=True)
    assert len(guarded) > 5
    assert all((array[n:] == 77).all() for array, n in guarded)


def test_blocks_side_by_side():
    blocks = [padded(b"".join(b"%d %d:%d\n" % (j, k, j) for k in range(many(5_000)))) for j in range(8)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(
            pool.map(lambda block: parse(block, bits=0, dtype=np.float64, stop_at_fault=True), blocks)
        )
    for j, rows in enumerate(found):
        assert rows.labels == [str(j)]
        assert rows.ids.tolist() == list(range(many(5_000)))
        assert set(rows.data) == {j}


def test_a_block_that_is_none():
    with pytest.raises(TypeError, match="padded"):
        parse(np.zeros(10), bits=0, dtype=float, stop_at_fault=True)
    with pytest.raises(ValueError, match="0 to 63"):
        parse(padded(b""), bits=64, dtype=float, stop_at_fault=True)


ROWS = {
    "tidy": (b"1 2:3 5:-4\n0 1:1\n-1\n", True),
    "not ascending": (b"1 5:3 2:-4\n", False),
    "twice": (b"1 2:3 2:-4\n", False),
    "a zero": (b"1 2:3 5:0.0\n", False),
    "a zero behind others": (b"1 1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1 9:-0\n", False),
    "none": (b"# nothing\n", True),
    "a bad line": (b"1 2:3\n1 5:x 4:0\n", True),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_measured_where_they_are_read(name, dtype):
    content, is_tidy = ROWS[name]
    rows = parse(padded(content), bits=0, dtype=dtype, stop_at_fault=False, columns=True)
    assert rows.tidy is is_tidy
    if is_tidy:
        assert rows.squares.tolist() == square_norms(rows.indptr, rows.data).tolist()
        assert rows.n_columns == max(rows.ids.tolist(), default=-1) + 1
