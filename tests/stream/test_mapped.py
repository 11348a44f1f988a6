"""Files that are not copied, and what happens if they get shorter meanwhile."""

import io
import mmap
import os
import re
import signal
import subprocess
import sys
import threading

import pytest

from maxcosine.stream import Stream, StreamError, mapped
from maxcosine.stream.chunks import Stream as Reading

pytestmark = pytest.mark.skipif(not mapped.POSSIBLE, reason="files are read on this system")

LINE = b"1 1:0.5 7:2.25 11:1\n-1 2:1 7:3\n"
BLOCK = 4096


@pytest.fixture
def path(tmp_path):
    (tmp_path / "data.svm").write_bytes(LINE * 2000)
    return tmp_path / "data.svm"


def rows(path):
    """Each as its label, columns and values."""
    return [
        (label, X.indices[start:stop].tolist(), X.data[start:stop].tolist())
        for X, labels, _ in Stream(path, block_bytes=BLOCK)
        for label, start, stop in zip(labels.tolist(), X.indptr[:-1], X.indptr[1:], strict=True)
    ]


@pytest.mark.parametrize("start", [0, 1, mmap.PAGESIZE - 1, mmap.PAGESIZE, 10_000])
def test_a_part_is_what_is_in_the_file_and_no_way_to_change_it(path, start):
    with open(path, "rb") as file:
        part = mapped.Part(file, start, 5000)
        assert part.bytes.tobytes() == path.read_bytes()[start : start + 5000]
        part.bytes[:] = 0
        assert part.is_sound()
    assert path.read_bytes() == LINE * 2000


@pytest.mark.parametrize(
    "content",
    [
        LINE * 2000,
        b"\xef\xbb\xbf" + LINE * 2000,
        (LINE * 2000).rstrip(),
        LINE * 300 + b"1 " + b" ".join(b"%d:1" % k for k in range(1, 3000)) + b"\n" + LINE * 600,
        (LINE * 400)[: 3 * BLOCK],
        LINE[:-1] + b" " * (BLOCK - len(LINE)) + b"\n" + LINE,
    ],
    ids=["lines", "a mark", "no last end", "a long line", "whole pages", "a line as long as a block"],
)
def test_rows_are_the_same_mapped_or_read(tmp_path, monkeypatch, content):
    (tmp_path / "data.svm").write_bytes(content)
    found = rows(tmp_path / "data.svm")
    monkeypatch.setattr(mapped, "POSSIBLE", False)
    assert found == rows(tmp_path / "data.svm")


def test_blocks_are_mapped(path):
    blocks = list(Reading(path, block_bytes=BLOCK).source.blocks())
    assert len(blocks) > 10
    assert all(block.part is not None for block in blocks[:-2])


@pytest.mark.parametrize("left", [0, 100, mmap.PAGESIZE])
@pytest.mark.parametrize("in_thread", [False, True])
def test_a_block_whose_file_was_cut_short_is_refused(path, left, in_thread):
    stream = Reading(path, block_bytes=1 << 15)
    block = next(stream.source.blocks())
    os.truncate(path, left)
    errors = []

    def parse():
        with pytest.raises(StreamError) as caught:
            stream._parse((block, "svmlight"))
        errors.append(str(caught.value))

    if in_thread:
        thread = threading.Thread(target=parse)
        thread.start()
        thread.join()
    else:
        parse()
    (error,) = errors
    assert re.search(r"data\.svm: was cut short while it was read, .*, begin anew when it is whole$", error)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("left", [0, 30_000, len(LINE) * 2000 - 1])
def test_a_file_that_is_cut_short_while_it_is_read_is_an_error(path, threads, left):
    chunks = iter(Stream(path, block_bytes=BLOCK, threads=threads))
    next(chunks)
    os.truncate(path, left)
    with pytest.raises(StreamError, match=r"data\.svm: .*it is not the file it was, begin anew"):
        list(chunks)


@pytest.mark.parametrize("possible", [True, False])
def test_what_is_added_while_a_file_is_read_is_read_too(path, monkeypatch, possible):
    monkeypatch.setattr(mapped, "POSSIBLE", possible)
    stream, n = Stream(path, block_bytes=BLOCK, threads=1), 0
    for X, _, _ in stream:
        if not n:
            with open(path, "ab") as file:
                file.write(LINE * 500)
        n += X.shape[0]
    assert n == 2 * 2500


@pytest.mark.parametrize("size", [1, 100, mmap.PAGESIZE - 7, mmap.PAGESIZE, 5000])
@pytest.mark.parametrize("start", [0, 7, mmap.PAGESIZE - 50])
def test_zeros_follow_a_part_even_if_its_file_is_written_anew(path, start, size):
    content = path.read_bytes()
    with open(path, "rb") as file:
        part = mapped.Part(file, start, 2 * mmap.PAGESIZE)
        part.end(size)
        assert part.bytes.tobytes() == content[start : start + size].ljust(2 * mmap.PAGESIZE, b"\0")
        path.write_bytes(b"9" * len(content))
        assert part.is_sound()
        assert not part.bytes[size:].any()


def test_what_is_told_of_bad_lines_is_what_was_read(path):
    content = path.read_bytes()
    path.write_bytes(LINE * 3 + b"1 x:1\n" + content)
    kept = io.BytesIO()
    stream = Reading(path, block_bytes=1 << 15, on_bad="skip", bad_lines=kept)
    result = stream._parse((next(stream.source.blocks()), "svmlight"))
    os.truncate(path, 0)
    stream._report(result.block, result.parsed)
    assert kept.getvalue() == b"1 x:1\n"
    assert re.search(
        r"data\.svm:7:3: the feature's id is not a whole number.*found 'x:1'", stream.first_bad[0]
    )


def test_how_far_reading_has_come(path, monkeypatch):
    def places():
        stream = Stream(path, block_bytes=BLOCK, threads=1)
        return [stream.source.read_bytes >= stream.place.offset > 0 for _ in stream][:-1]

    assert all(places())
    monkeypatch.setattr(mapped, "POSSIBLE", False)
    assert all(places())


def ended(program, path):
    """How a program ends that is given a file."""
    head = "import mmap, os, signal, sys\nfrom maxcosine.stream.mapped import Part\n"
    return subprocess.run(
        [sys.executable, "-c", head + program, path], capture_output=True, text=True, timeout=60
    )


def test_who_else_looks_at_pages_that_are_lost_ends_as_without_us(path):
    ran = ended(
        """
with open(sys.argv[1], "r+b") as file:
    part = Part(file, 0, 8192)
    theirs = mmap.mmap(file.fileno(), 8192)
    file.truncate(0)
    print(sum(part.bytes.tolist()), part.is_sound(), flush=True)
    print(theirs[5000])
""",
        path,
    )
    assert ran.stdout == "0 False\n"
    assert ran.returncode == -signal.SIGBUS


def test_a_signal_that_is_sent_is_left_to_others(path):
    send = """
with open(sys.argv[1], "r+b") as file:
    part = Part(file, 0, 8192)
    os.kill(os.getpid(), signal.SIGBUS)
    print("alive", flush=True)
    part = Part(file, 0, 8192)
    file.truncate(0)
    print(sum(part.bytes.tolist()), part.is_sound(), flush=True)
"""
    ran = ended(send, path)
    assert (ran.stdout, ran.returncode) == ("", -signal.SIGBUS)
    ran = ended("signal.signal(signal.SIGBUS, signal.SIG_IGN)" + send, path)
    assert (ran.stdout, ran.returncode) == ("alive\n0 False\n", 0)
