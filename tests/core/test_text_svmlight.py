"""SVMlight's format: rows, and what is wrong with a line and where."""

import concurrent.futures

import numpy as np
import pytest

from maxcosine import core
from tests.core import naive_text
from tests.core.naive_text import Options, padded, parse

LARGEST = 2**64 - 1
EXACT = Options(exact=True)

LINES = [
    (b"1 2:3", "1", [(2, 3)]),
    (b"+1 2:3 \r\n", "1", [(2, 3)]),
    (b"1.0 2:3\r", "1", [(2, 3)]),
    (b"1e0\t2:3\t\t4:-5.5e-1 ", "1", [(2, 3), (4, -0.55)]),
    (b"  -1.50 0:0", "-1.5", []),
    (b"-0 9:1. 8:.5 7:+7 6:1E2", "0", [(9, 1), (8, 0.5), (7, 7), (6, 100)]),
    (b"1 9:1 8:2 9:-1 7:1 8:3", "1", [(8, 5), (7, 1)]),
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
    (b"1 2:1e-400 3:-1e-400", "1", []),
    (b"1 2:0.30000000000000004 3:9007199254740993 4:1e23", "1", [(2, 0.1 + 0.2), (3, 2.0**53), (4, 1e23)]),
    (b"1 2:" + b"0" * 50 + b"1." + b"0" * 50 + b"1", "1", [(2, 1)]),
    (b"1 2:1e" + b"0" * 50 + b"1", "1", [(2, 10)]),
    (b"1 2:0." + b"0" * 500 + b"1e501", "1", [(2, 1)]),
    (b"1 2:0." + b"0" * 500 + b"1e100 3:1" + b"0" * 500 + b"e-500", "1", [(3, 1)]),
]


@pytest.mark.parametrize(("line", "label", "features"), LINES)
def test_lines(line, label, features):
    block = parse("svmlight", line, EXACT)
    assert block.faults == []
    assert list(zip(block.ids.tolist(), block.values.tolist(), strict=True)) == features
    assert block.indptr.tolist() == [0, len(features)]
    assert block.labels == ([] if label is None else [label])
    assert block.codes.tolist() == [-1 if label is None else 0]
    assert (block.columns, block.weights, block.letters, block.name_starts) == (None,) * 4


@pytest.mark.parametrize("line", [b"", b"\n", b" \t\r\n", b"# 1 2:3\n", b"  #\xff"])
def test_blank_lines_and_comments_are_not_rows(line):
    block = parse("svmlight", line + b"1 2:3" if line.endswith(b"\n") else line)
    assert block.faults == []
    assert len(block.codes) == line.endswith(b"\n")
    assert block.indptr[0] == 0


FAULTS = {
    "BAD_ID": [
        (b"1 -2:3", 2), (b"1 :3", 2), (b"1 0x1F:3", 2), (b"1 1.5:3", 2), (b"1 +2:3", 2), (b"1 a:3", 2),
        (b"1 2:3 spam", 6), (b"1\r2:3 4", 0), (b"a:3", 0),
    ],
    "LARGE_ID": [
        (b"1 2:3 18446744073709551616:3", 6), (b"1 20000000000000000000:3", 2),
        (b"1 99999999999999999999999:3", 2),
    ],
    "NO_COLON": [(b"1 2", 2), (b"1 2:3 1234567890 5:6", 6), (b"1 2#:3", 2)],
    "NO_VALUE": [(b"1 2:", 4), (b"1 2: 3:4", 4), (b"1 2:#", 4)],
    "NOT_A_NUMBER": [
        (b"1 2:" + token, 4)
        for token in (
            b"x", b"3:4", b"1_0", b"0x10", b"1e", b"1e+", b".", b"-", b"--1", b"-+1", b"1.2.3", b"1,5",
            b"1\r 3:4", b"nanx", b"nan|", b"\xd9\xa1",
        )
    ],
    "NOT_FINITE": [(b"1 2:nan", 4), (b"1 2:-Inf 3:1", 4), (b"1 2:+INFINITY#", 4)],
    "TOO_LARGE": [(b"1 2:1e999", 4), (b"1 2:-1.7976931348623159e308", 4), (b"1 2:1e" + b"9" * 25, 4)],
    "NOT_TEXT": [(b"a\xffb 2:3", 1), (b"\xed\xa0\x80 2:3", 0)],
    "NUL_BYTE": [(b"1 2:3\0", 5), (b"1 x:3 # \0", 8), (b"\0", 0), (b"a\0b 2:3", 1), (b"1 qid:\0 2:3", 6)],
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(fault):
    before = b"1 7:8\n"
    for line, position in FAULTS[fault]:
        for end in (b"", b"\n", b"\r\n"):
            block = parse("svmlight", before + line + end, EXACT)
            start, code = len(before), core.FAULT_CODES[fault]
            assert block.faults == [(1, start, start + len(line), start + position, code)], line
            assert (block.ids.tolist(), block.labels, block.n_lines) == ([7], ["1"], 2)
    assert core.FAULT_MESSAGES[core.FAULT_CODES[fault]]


def test_large_ids_are_not_columns():
    content = b"1 268435455:1\n1 268435456:1\n"
    block = parse("svmlight", content)
    assert (block.columns.tolist(), block.n_columns) == ([2**28 - 1], 2**28)
    assert block.faults == [(1, 14, 27, 16, core.FAULT_CODES["NO_COLUMN"])]


@pytest.mark.parametrize(
    ("token", "fits"),
    [(b"3.4028235e38", True), (b"3.4028236e38", False), (b"-1e39", False), (b"1e-50", True)],
)
def test_values_beyond_single_precision(token, fits):
    assert parse("svmlight", b"1 2:" + token).faults == []
    faults = parse("svmlight", b"1 2:" + token, Options(dtype="float32")).faults
    assert [fault[-1] for fault in faults] == [core.FAULT_CODES["TOO_LARGE"]] * (not fits)


def test_bad_lines_are_left_out_or_end_the_block():
    content = b"1 1:1\nx 1:y\n2 2:2\nz 2:\n1 3:3"
    block = parse("svmlight", content)
    assert (block.labels, block.codes.tolist()) == (["1", "2"], [0, 1, 0])
    assert block.row_lines.tolist() == [0, 2, 4]
    assert ([fault[0] for fault in block.faults], block.n_lines) == ([1, 3], 5)
    assert block.row_starts.tolist() == [0, 12, content.index(b"1 3")]
    block = parse("svmlight", content, Options(stop_at_fault=True))
    assert (block.labels, block.codes.tolist(), block.row_lines.tolist()) == (["1"], [0], [0])
    assert ([fault[0] for fault in block.faults], block.n_lines) == ([1], 2)


def test_equal_numbers_are_one_label():
    block = parse("svmlight", b"+1\n-1\n1\n:1\n 2:3\n1.0\n-1.0\nspam")
    assert block.labels == ["1", "-1", "spam"]
    assert block.codes.tolist() == [0, 1, 0, -1, 0, 1, 2]


def test_hashed_ids():
    block = parse("svmlight", b"1 1023:1 1024:1 18446744073709551615:1", Options(bits=10))
    assert block.columns.tolist() == [1023, *(naive_text.column_of_id(k, 10) for k in (1024, LARGEST))]
    assert block.n_columns == 1024
    # Models depend on this hash: these columns must never change.
    assert [naive_text.column_of_id(k, 10) for k in (1024, 1025, LARGEST)] == [810, 1005, 711]
    ids = range(2**20, 2**20 + 100_000)
    counts = parse("svmlight", b"1 " + b" ".join(b"%d:1" % k for k in ids), Options(bits=10)).values
    assert len(counts) == 1024
    assert counts.std() < 2 * np.sqrt(counts.mean())


@pytest.mark.parametrize("end", [b"\n", b" \n", b"\r\n", b"\t\n", b" # 9:9 9:9\n", b"\n\n", b"\n 1 \n"])
def test_lines_end_after_any_number_of_features(end):
    lines = [b" ".join([b"-1", *(b"%d:0.%d" % (k + 1, k + n) for k in range(n))]) for n in range(40)]
    content = end.join([*lines, *lines[::-1], b"1 5:5"])
    for options in (Options(), Options(bits=3)):
        found = naive_text.as_read(parse("svmlight", content, options))
        assert found == naive_text.read("svmlight", content, options)
        assert not found.faults


def test_many_rows_labels_and_faults():
    lines = [b"%d 1:%d" % (k // 2, k) if k % 3 else b"%d 1:x" % k for k in range(30_000)]
    block = parse("svmlight", b"\n".join(lines))
    good = [k for k in range(30_000) if k % 3]
    assert block.values.tolist() == good
    assert [block.labels[code] for code in block.codes] == [str(k // 2) for k in good]
    assert [fault[0] for fault in block.faults] == list(range(0, 30_000, 3))


VALUES = b"1 0.5 0.12345678 0.123456789 12.5 -3 1e-3 .5 1. 007 1e999 x".split()
LINE_ENDS = (b"", b" ", b"\r", b" # 1:1", b" 5:x", b" 5:1e999")
BLANKS = (b" ", b"\t", b"  ", b" \t ")


@pytest.mark.parametrize("features", [0, 3, 40, 1500])
def test_features_in_any_notation_and_position(features):
    """Plain features are read between boundaries that were found in advance, segment by segment."""
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
    for options in (EXACT, Options(bits=10)):
        found = naive_text.as_read(parse("svmlight", content, options))
        assert found == naive_text.read("svmlight", content, options)
        assert len(found.rows) + len(found.faults) == len(lines)
        assert found.faults


@pytest.mark.parametrize("minus", [b"", b"-"])
def test_a_second_point_is_an_error_among_plain_features(minus):
    others = b" ".join(b"%d:0.5" % k for k in range(7))
    for token in b"1..234567 1.2.34567 1.234567. 1..23456 1.23456. 1..2 ..1 1.2. .1.2 12.3.4 .".split():
        line = b"1 " + others + b" 9:" + minus + token + b" " + others + b"\n"
        faults = parse("svmlight", b"first 1:1\n" + line).faults
        assert [fault[-1] for fault in faults] == [core.FAULT_CODES["NOT_A_NUMBER"]], token


def test_threads_parse_blocks_at_the_same_time():
    contents = [b"".join(b"%d %d:%d\n" % (j, k, j + 1) for k in range(5_000)) for j in range(8)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        blocks = list(pool.map(lambda content: parse("svmlight", content), contents))
    for j, block in enumerate(blocks):
        assert block.labels == [str(j)]
        assert block.columns.tolist() == list(range(5_000))
        assert set(block.values) == {j + 1}


def test_any_buffer_is_a_block():
    buffer, start, stop = padded(b"1 2:3\n")
    options = Options(dtype="float32")._asdict()
    del options["keep_names"]
    for given in (buffer, bytearray(buffer), memoryview(buffer), np.frombuffer(buffer, np.uint8)):
        block = core.parse_svmlight(given, start, stop, **options)
        assert (block.columns.tolist(), block.values.tolist()) == ([2], [3])
        assert block.values.dtype == np.float32


def test_refused_arguments():
    buffer, start, stop = padded(b"1 2:3\n")
    options = Options()._asdict()
    del options["keep_names"]
    for place in ((start - 1, stop), (start, stop + 1), (stop, start), (start, 10**12)):
        with pytest.raises(ValueError, match="PADDING"):
            core.parse_svmlight(buffer, *place, **options)
    for options, message in (
        (Options(bits=32), "1 to 31"),
        (Options(bits=3, exact=True), "not both"),
    ):
        with pytest.raises(ValueError, match=message):
            parse("svmlight", b"", options)
    with pytest.raises(TypeError, match="float32 or float64"):
        parse("svmlight", b"", Options(dtype="int32"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_are_measured(dtype):
    content = b"1 2:3 5:-4\n0 9:1 3:0.3 4:2 9:0.1\n-1\n1 2:0\n1 70:x\n1 1:1 2:1 3:1 4:1 5:1 6:0.7 8:1 9:-0\n"
    block = parse("svmlight", content, Options(dtype=dtype))
    assert block.squares.tolist() == core.square_norms(block.indptr, block.values).tolist()
    assert (block.n_columns, block.squares[0]) == (10, 25)
