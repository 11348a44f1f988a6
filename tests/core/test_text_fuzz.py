"""Whatever the bytes, the parsers of the core agree with plain Python."""

import hashlib
import itertools
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from maxcosine import core
from tests.core import naive_text
from tests.core.naive_text import Options, parse

each_format = pytest.mark.parametrize("form", ["svmlight", "vw"])
MODES = [
    Options(bits, exact, dtype, log1p, l2, stop, keep)
    for (bits, exact), dtype, (log1p, l2), stop, keep in itertools.product(
        [(0, False), (0, True), (3, False), (18, False)],
        ["float32", "float64"],
        [(False, False), (True, False), (True, True)],
        [False, True],
        [False, True],
    )
]


def check(form, content, options):
    """Compare the core and plain Python on a block."""
    if form == "vw" and not options.bits:
        options = options._replace(exact=True)
    block = parse(form, content, options)
    found, expected = naive_text.as_read(block), naive_text.read(form, content, options)
    assert found.faults == expected.faults
    assert found.hashed == expected.hashed
    assert (found.labels, found.n_lines) == (expected.labels, expected.n_lines)
    assert len(found.rows) == len(expected.rows)
    for row, other in zip(found.rows, expected.rows, strict=True):
        np.testing.assert_array_equal(np.array(row.values), np.array(other.values))
        assert row._replace(values=[]) == other._replace(values=[])
    assert block.values.dtype == options.dtype
    for padding in (b"\n", b":", b" "):
        other = parse(form, content, options, padding)
        assert (other.values.tobytes(), other.faults) == (block.values.tobytes(), block.faults)


FLOATS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1000, 1000).flatmap(lambda x: st.integers(0, 30).map(lambda n: f"{x:.{n}f}")),
    st.floats(-1, 1).flatmap(lambda x: st.integers(0, 30).map(lambda n: f"{x:+.{n}E}")),
    st.integers(0, 10**40).map(str),
    st.builds("{}.{}e{}".format, st.integers(0, 10**25), st.integers(0, 10**25), st.integers(-400, 300)),
    st.from_regex(r"-?[0-9]{0,8}\.?[0-9]{1,8}", fullmatch=True),
)


@settings(max_examples=500)
@example(token="9007199254740993")
@example(token="2.2250738585072011e-308")
@example(token="2.4703282292062328e-324")
@example(token="1.7976931348623158e308")
@given(token=FLOATS)
def test_numbers_are_rounded_as_python_rounds_them(token):
    for form, content in (("svmlight", f"1 1:{token} 2:1 3:1 4:1 5:1 6:1\n"), ("vw", f"1 |f a:{token} b\n")):
        value = float(token)
        block = parse(form, content.encode(), Options(bits=18))
        if np.isinf(value):
            assert [fault[-1] for fault in block.faults] == [core.FAULT_CODES["TOO_LARGE"]]
        elif value != 0:
            assert block.values[0] == value


@settings(max_examples=300)
@example(token="1" + "0" * 24)
@example(token="1e1000000000000000000")
@given(
    token=st.one_of(FLOATS, st.integers(-(10**30), 10**30).map(str), st.text("0123456789.e+-", max_size=12), st.text())
)
def test_labels_in_their_shortest_form(token):
    try:
        token.encode()
    except UnicodeEncodeError:
        return
    label = core.canonical_label(token)
    assert label == naive_text.label_of(token)
    assert label == core.canonical_label(label)


@pytest.mark.parametrize(
    ("tokens", "label"),
    [("+1 1.0 1e0 01 1. 10e-1", "1"), ("-1.50 -1.5 -15e-1", "-1.5"), ("-0 0.0 .0e9", "0"), ("spam", "spam")]
    + [(token, token) for token in ("1e100", "1_0", "0x1", "nan", "1e", ".", "", "\u0661")],
)
def test_labels_that_are_equal(tokens, label):
    assert {core.canonical_label(token) for token in tokens.split(" ")} == {label}


@each_format
@settings(max_examples=150)
@given(
    content=st.one_of(
        st.binary(max_size=120),
        st.lists(st.sampled_from(list(b"01.e+-:|# \t\n\r'an\0\xc3\xa9")), max_size=60).map(bytes),
    ),
    options=st.sampled_from(MODES),
)
def test_any_bytes(form, content, options):
    check(form, content, options)


SOUND = {
    "svmlight": [
        b"+1 qid:3 1:1 17:0.5 123456:0.123456 1048575:6.2699720e-02 # a comment",
        b"-1 1:1 2:-2.5e3 18446744073709551615:0.1234567890123456789 7:3 2:2.5e3",
        b"5:0.25 6:1e-320 7:12345678901234567890 268435456:1",
        b"spam 3:1\t4:2  5:.5 6:1. ",
        b"-1 1:0.47 3:0.1463 4:12 7:-0.29 13:.8711 15:-7 34:5. 38:1.2345678 41:1.234567 99999999:0",
        "日本 00012:1e22 13:1e23 14:9007199254740993".encode(),
    ],
    "vw": [
        b"1 2.5 0.5 'tag|user:0.5 age:0.3 male|item id_1234567890 price:1e3 | plain",
        b"-1 |f 12:0.25 13:1 14:-2.5e-3 word another_word:2 yet_another_long_word word:-1",
        b"spam 'x |a b c d e:1.5",
        "日本 |größe ä:1 ö:0.123456789 ü".encode(),
        b"| a b:3",
    ],
}
MEANINGFUL = b"0159.eE+-:|# \t\r\n'\0\x80\xc3naif_x"


def mutated(line, dice):
    """The line with a few bytes flipped, deleted, inserted or doubled, or cut."""
    line = bytearray(line)
    for _ in range(dice.choice((0, 1, 1, 1, 2, 3, 6))):
        at, kind = dice.randrange(len(line) + 1), dice.randrange(6)
        if kind == 0 and at < len(line):
            line[at] ^= 1 << dice.randrange(8)
        elif kind == 1:
            del line[at : at + dice.choice((1, 1, 2, 5))]
        elif kind == 2:
            line.insert(at, dice.choice(MEANINGFUL))
        elif kind == 3:
            line[at:at] = line[max(0, at - dice.randrange(12)) : at]
        elif kind == 4 and at < len(line):
            line[at] = dice.choice(MEANINGFUL)
        elif kind == 5 and dice.random() < 0.2:
            del line[at:]
    return bytes(line)


def mutated_block(form, dice, n_lines):
    lines = [mutated(dice.choice(SOUND[form]), dice) for _ in range(n_lines)]
    content = b"".join(line + dice.choice((b"\n", b"\n", b"\n", b"\r\n")) for line in lines)
    return content.rstrip(b"\n") if dice.random() < 0.2 else content


@each_format
@pytest.mark.parametrize(("n_lines", "n_blocks"), [(20, 200), pytest.param(500, 200, marks=pytest.mark.slow)])
def test_mutated_lines(form, n_lines, n_blocks):
    dice = random.Random(n_lines)
    for _ in range(n_blocks):
        check(form, mutated_block(form, dice, n_lines), dice.choice(MODES))


@each_format
def test_any_split_into_blocks_gives_the_same_rows(form):
    dice, options = random.Random(3), Options(exact=True)
    for _ in range(30):
        lines = mutated_block(form, dice, 8).splitlines(keepends=True)
        content = b"".join(lines)
        cut = len(b"".join(lines[: dice.randrange(len(lines) + 1)]))
        if cut and content[cut - 1 : cut] != b"\n":
            continue  # splitlines() also splits at a lone CR
        whole = naive_text.as_read(parse(form, content, options))
        head = naive_text.as_read(parse(form, content[:cut], options))
        tail = naive_text.as_read(parse(form, content[cut:], options))
        rows = [row._replace(line=row.line + head.n_lines, start=row.start + cut) for row in tail.rows]
        assert repr(whole.rows) == repr(head.rows + rows)
        assert len(whole.faults) == len(head.faults) + len(tail.faults)
        assert whole.n_lines == head.n_lines + tail.n_lines


def digest():
    """A hash of all that the parsers return for some mutated blocks."""
    dice, total = random.Random(5), hashlib.sha256()
    for form, options in itertools.product(SOUND, MODES):
        if form == "vw" and not options.bits:
            options = options._replace(exact=True)
        block = parse(form, mutated_block(form, dice, 40), options)
        for name in ("indptr", "columns", "ids", "letters", "values", "codes", "squares"):
            array = getattr(block, name)
            total.update(b"" if array is None else array.tobytes())
        total.update(repr((block.labels, block.faults)).encode())
    return total.hexdigest()


def test_every_instruction_set_gives_the_same_bits():
    if core.LEVEL != "v3":
        pytest.skip("needs a processor with more than one instruction set")
    command = [sys.executable, "-c", "from tests.core.test_text_fuzz import digest; print(digest())"]
    environment = {**os.environ, "MAXCOSINE_CPU": "v2"}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == digest()
