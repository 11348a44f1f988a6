"""Whatever the bytes, the compiled parsers answer as the naive ones do."""

import ctypes
import itertools
import json
import mmap
import os
import random
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from maxcosine.compiled import JIT_ENABLED
from maxcosine.stream import svmlight, vw
from maxcosine.stream.parsed import PADDING, canonical_label, padded
from tests.engine.processes import run_python
from tests.stream import naive

# In plain Python the hash overflows as it should, and NumPy says so.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

PARSERS = {"svmlight": svmlight.parse, "vw": vw.parse}
each_format = pytest.mark.parametrize("form", PARSERS)
MODES = list(itertools.product([0, 3, 18], [np.float32, np.float64], [True, False], [True, False]))


def few(n):
    """Examples of Hypothesis, fewer in plain Python."""
    return settings(max_examples=n if JIT_ENABLED else max(5, n // 20), deadline=None)


def bits_of(values):
    return np.array(values).tobytes()


def check(form, content, mode, block=None):
    """Compare both parsers on a block."""
    bits, dtype, stop_at_fault, keep_names = mode
    block = padded(content) if block is None else block
    result = PARSERS[form](block, bits=bits, dtype=dtype, stop_at_fault=stop_at_fault, keep_names=keep_names)
    expected = naive.read(naive.FORMATS[form], content, bits=bits, dtype=dtype, stop_at_fault=stop_at_fault)
    found = naive.as_read(block, result)
    assert found.faults == expected.faults
    assert found.labels == expected.labels
    assert found.n_lines == expected.n_lines
    assert len(found.rows) == len(expected.rows)
    names_kept = form == "vw" and (keep_names or bits == 0)
    for row, other in zip(found.rows, expected.rows, strict=True):
        assert bits_of(row.values) == bits_of(other.values)
        assert row._replace(values=[]) == other._replace(values=[], names=other.names if names_kept else [])
    assert result.data.dtype == dtype
    assert (result.letters is None) == (not names_kept)
    dtypes = {result.indptr.dtype, result.row_starts.dtype, result.codes.dtype, result.row_lines.dtype}
    assert dtypes == {np.dtype(np.int64), np.dtype(np.int32)}
    assert result.ids.dtype == np.uint64
    return result


# Lines that are right, written in many ways

BLANKS = st.text(" \t", min_size=1, max_size=3)
FLOATS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1000, 1000).flatmap(lambda x: st.integers(0, 30).map(lambda n: f"{x:.{n}f}")),
    st.floats(-1, 1).flatmap(lambda x: st.integers(0, 30).map(lambda n: f"{x:+.{n}E}")),
    st.integers(0, 10**40).map(str),
    st.builds("{}.{}e{}".format, st.integers(0, 10**25), st.integers(0, 10**25), st.integers(-400, 300)),
    st.sampled_from(
        ["0", "1", "-0", "1.", ".5", "00.50", "1e0", "1E+05", "1e-00007", "0e999", "9007199254740993"]
    ),
)
IDS = st.one_of(
    st.integers(0, 2**20).map(str),
    st.integers(0, 2**64 - 1).map(str),
    st.builds("{:0>{}}".format, st.integers(0, 2**64 - 1), st.integers(1, 40)),
)
LABELS = st.one_of(
    st.sampled_from(
        ["+1", "1", "1.0", "-1", "0", "-0", "1e0", "1e30", "spam", "ham", "日本", "a,b", "C", "1e"]
    ),
    st.integers(-(10**30), 10**30).map(str),
    FLOATS,
)
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0 \t\n\r:|"), min_size=1, max_size=20)
ENDS = st.sampled_from(["\n", "\r\n"])


@st.composite
def svmlight_line(draw):
    parts = [draw(LABELS)] if draw(st.booleans()) else []
    if draw(st.booleans()):
        parts.append(f"qid:{draw(st.integers(0, 9))}")
    parts += [f"{draw(IDS)}:{draw(FLOATS)}" for _ in range(draw(st.integers(0, 6)))]
    line = draw(st.sampled_from(["", " ", "\t"])) + draw(BLANKS).join(parts)
    return line + draw(st.sampled_from(["", "", " ", "\t ", "# a comment", " #1:2"])) + draw(ENDS)


@st.composite
def vw_line(draw):
    parts = [draw(LABELS)] if draw(st.booleans()) else []
    if parts and draw(st.booleans()):
        parts.append(draw(st.sampled_from(["1", "0", "2.5", "1e-3", "1"])))
        parts += ["0.5"] if draw(st.booleans()) else []
    line = draw(BLANKS).join(parts) + (draw(BLANKS) if parts else "")
    line += draw(st.sampled_from(["", "'tag", "'tag ", "tag", "' "]))
    for _ in range(draw(st.integers(1, 3))):
        line += "|" + draw(st.one_of(st.just(""), WORDS)) + draw(st.sampled_from(["", ":2", ":0.25"])) + " "
        line += "".join(
            draw(WORDS) + draw(st.sampled_from(["", ":1", ":0.123 ", ":-2e3"])) + draw(BLANKS)
            for _ in range(draw(st.integers(0, 5)))
        )
    return line + draw(ENDS)


LINES = {"svmlight": svmlight_line(), "vw": vw_line()}


# Features as most are written, which are read eight at a time, and what is nearly one of them

PLAIN_IDS = st.integers(1, 8).flatmap(lambda n: st.integers(0, 10**n - 1).map(lambda k: f"{k:0{n}}"))
PLAIN_NUMBERS = st.one_of(
    st.from_regex(r"-?[0-9]{1,7}", fullmatch=True),
    st.from_regex(r"-?[0-9]{0,5}\.[0-9]{1,2}", fullmatch=True),
    st.from_regex(r"-?[0-9]\.[0-9]{1,7}", fullmatch=True),
    st.from_regex(r"-?[0-9]{1,6}\.", fullmatch=True),
)
NEARLY_PLAIN = st.one_of(
    st.builds("{}:{}".format, IDS, FLOATS),
    st.builds("{}:{}".format, PLAIN_IDS, st.from_regex(r"[-+]?[0-9.]{0,10}", fullmatch=True)),
    st.builds("{}:{}".format, PLAIN_IDS, st.from_regex(r"-?[0-9][.][0-9.]{5,7}", fullmatch=True)),
    st.builds("{}:{}".format, PLAIN_IDS, st.text("0123456789.-+eE:#x\t\r", max_size=10)),
    st.builds("{}:{}".format, st.text("0123456789.-:/", max_size=9), PLAIN_NUMBERS),
    st.sampled_from(["1:.", "1:-", "1:-.", "1:", ":1", "1", ":", "123456789:1", "1:1.2.3", "1:0.1234567\t"]),
)


@st.composite
def many_features(draw):
    parts = draw(st.lists(st.builds("{}:{}".format, PLAIN_IDS, PLAIN_NUMBERS), min_size=8, max_size=30))
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), draw(NEARLY_PLAIN))
    line = f"{draw(st.sampled_from(['-1', '+1', 'a label']))} " + " ".join(parts)
    return line + draw(st.sampled_from(["", " ", "\t", " # a comment"])) + draw(ENDS)


@few(100)
@given(lines=st.lists(many_features(), min_size=2, max_size=3), mode=st.sampled_from(MODES))
def test_features_that_are_read_eight_at_a_time(lines, mode):
    check("svmlight", "".join(lines).encode(), mode)


def any_feature(dice):
    """A feature that is plain, or nearly."""
    value = dice.choices("0123456789", k=dice.randint(1, 9))
    for chance in (0.7, 0.02):
        if dice.random() < chance:
            value.insert(dice.randint(0, len(value)), ".")
    if dice.random() < 0.01:
        value[dice.randrange(len(value))] = dice.choice("+-.:eEx/\t")
    return f"{dice.randrange(10 ** dice.randint(1, 9))}:{'-' * (dice.random() < 0.3)}{''.join(value)}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_many_features_that_are_read_eight_at_a_time(seed):
    dice = random.Random(seed)
    for _ in range(100):
        lines = [" ".join(["1", *(any_feature(dice) for _ in range(dice.randint(1, 40)))]) for _ in range(50)]
        check("svmlight", "\n".join(lines).encode(), dice.choice(MODES))


@each_format
@few(150)
@given(data=st.data())
def test_lines_written_in_many_ways(form, data):
    content = "".join(data.draw(st.lists(LINES[form], max_size=5))).encode()
    check(form, content, data.draw(st.sampled_from(MODES)))


@each_format
@few(150)
@given(
    content=st.one_of(st.binary(max_size=120), st.text(max_size=60).map(str.encode)),
    mode=st.sampled_from(MODES),
)
def test_any_bytes(form, content, mode):
    check(form, content, mode)


@each_format
@few(150)
@given(
    content=st.lists(st.sampled_from(list(b"01.e+-:|# \t\n\r'an\0\xc3\xa9")), max_size=60),
    mode=st.sampled_from(MODES),
)
def test_bytes_that_mean_something(form, content, mode):
    check(form, bytes(content), mode)


@few(300)
@example(token="1" + "0" * 24)
@given(token=st.one_of(FLOATS, LABELS, st.text("0123456789.e+-", max_size=12)))
def test_labels_in_their_shortest_form(token):
    label = canonical_label(token)
    assert label == naive.label_of(token)
    assert label == canonical_label(label)


@each_format
@few(60)
@given(data=st.data())
def test_any_split_into_blocks_gives_the_same_rows(form, data):
    lines = [line.encode() for line in data.draw(st.lists(LINES[form], min_size=1, max_size=8))]
    bad = data.draw(
        st.lists(st.sampled_from([b"1 2:x\n", b"\0\n", b"\n", b"x |a:b\n", b"1 |a :2\n"]), max_size=3)
    )
    lines = data.draw(st.permutations(lines + bad))
    whole = check(form, b"".join(lines), (0, np.float64, False, False))
    rows, faults, n_lines, n_bytes = [], [], 0, 0
    cut = data.draw(st.integers(0, len(lines)))
    for part in (b"".join(lines[:cut]), b"".join(lines[cut:])):
        block = padded(part)
        read = naive.as_read(block, PARSERS[form](block, bits=0, dtype=np.float64, stop_at_fault=False))
        rows += [row._replace(line=row.line + n_lines, start=row.start + n_bytes) for row in read.rows]
        faults += [
            fault._replace(
                line=fault.line + n_lines,
                start=fault.start + n_bytes,
                stop=fault.stop + n_bytes,
                position=fault.position + n_bytes,
            )
            for fault in read.faults
        ]
        n_lines += read.n_lines
        n_bytes += len(part)
    expected = naive.as_read(padded(b"".join(lines)), whole)
    assert repr(rows) == repr(expected.rows)
    assert faults == expected.faults


# Lines that were right once

SOUND = {
    "svmlight": [
        b"+1 qid:3 1:1 17:0.5 123456:0.123456 1048575:6.2699720e-02 # a comment",
        b"-1 1:1 2:-2.5e3 18446744073709551615:0.1234567890123456789 7:3",
        b"5:0.25 6:1e-320 7:12345678901234567890",
        b"spam 3:1\t4:2  5:.5 6:1. ",
        "日本 00012:1e22 13:1e23 14:9007199254740993".encode(),
    ],
    "vw": [
        b"1 2.5 0.5 'tag|user:0.5 age:0.3 male|item id_1234567890 price:1e3 | plain",
        b"-1 |f 12:0.25 13:1 14:-2.5e-3 word another_word:2 yet_another_long_word",
        b"spam 'x |a b c d e:1.5",
        "日本 |größe ä:1 ö:0.123456789 ü".encode(),
        b"| a b:3",
    ],
}
MEANT = b"0159.eE+-:|# \t\r\n'\0\x80\xc3naif_x"


def mutated(line, rng):
    """The line with a few bytes flipped, deleted, inserted or doubled, or cut."""
    line = bytearray(line)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3, 6))):
        at, kind = rng.randrange(len(line) + 1), rng.randrange(6)
        if kind == 0 and at < len(line):
            line[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del line[at : at + rng.choice((1, 1, 2, 5))]
        elif kind == 2:
            line.insert(at, rng.choice(MEANT))
        elif kind == 3:
            line[at:at] = line[max(0, at - rng.randrange(12)) : at]
        elif kind == 4 and at < len(line):
            line[at] = rng.choice(MEANT)
        elif kind == 5 and rng.random() < 0.2:
            del line[at:]
    return bytes(line)


def mutated_block(form, rng, n_lines):
    lines = [mutated(rng.choice(SOUND[form]), rng) for _ in range(n_lines)]
    ends = (b"\n", b"\n", b"\n", b"\r\n")
    content = b"".join(line + rng.choice(ends) for line in lines)
    return content.rstrip(b"\n") if rng.random() < 0.2 else content


def check_mutated(form, seed, n_lines, n_blocks):
    rng = random.Random(seed)
    for _ in range(n_blocks):
        check(form, mutated_block(form, rng, n_lines), rng.choice(MODES))


@each_format
def test_mutated_lines(form):
    check_mutated(form, 0, *((20, 200) if JIT_ENABLED else (5, 10)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
@each_format
def test_a_million_mutated_lines(form, seed):
    check_mutated(form, seed, 500, 100)


# Run as plain Python, with bounds checked, and with nothing behind the padding


def guarded(content):
    """A block whose padding is followed by memory that must not be touched."""
    page = mmap.PAGESIZE
    size = -(-(len(content) + PADDING) // page) * page
    memory = mmap.mmap(-1, size + page)
    block = np.frombuffer(memory, np.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(block.ctypes.data + size), ctypes.c_size_t(page), 0) == 0
    start = size - PADDING - len(content)
    block[start : start + len(content)] = np.frombuffer(content, np.uint8)
    return block[start : start + len(content)]


def check_in_a_process(guard):
    rng = random.Random(2)
    for form in PARSERS:
        for mode in MODES[::5]:
            for n_lines in (1, 1, 2, 5) * (10 if JIT_ENABLED else 1):
                content = mutated_block(form, rng, n_lines)
                for cut in {len(content), rng.randrange(len(content) + 1)}:
                    part = content[:cut]
                    check(form, part, mode, guarded(part) if guard else None)


@pytest.mark.parametrize(
    "setting",
    [
        pytest.param({"NUMBA_DISABLE_JIT": "1"}, id="plain"),
        pytest.param({"NUMBA_BOUNDSCHECK": "1"}, id="bounds", marks=pytest.mark.slow),
        pytest.param({}, id="guard"),
    ],
)
def test_in_a_process_of_its_own(setting, tmp_path):
    # Code with its bounds checked must not come from the cache, nor go there.
    env = {**setting, **({"NUMBA_CACHE_DIR": str(tmp_path)} if "NUMBA_BOUNDSCHECK" in setting else {})}
    guard = not setting and os.name == "posix"
    assert (
        run_python("-W", "ignore", "-m", "tests.stream.test_parser_fuzz", str(int(guard)), env=env) == "fine"
    )


if __name__ == "__main__":
    check_in_a_process(guard=sys.argv[1] == "1")
    print(json.dumps("fine"))
