"""Bytes out of files, pipes and archives: the same lines, however they are packed and cut."""

import gzip
import io
import os
import sys
import threading
import time

import numpy as np
import pytest
import zstandard

from maxcosine.stream import source as source_module
from maxcosine.stream.parsed import PADDING
from maxcosine.stream.source import Place, Source, StreamError, described

TEXT = b"1 1:1\n\n-1 2:2\r\n" + b"1 " + b"7:0.5 " * 40 + b"\n" + b"# nothing\n" * 9 + b"1 3:1"


def packed(content, how):
    if how == "gzip":
        return gzip.compress(content[:30]) + gzip.compress(content[30:])
    if how == "zstd":
        pack = zstandard.ZstdCompressor(write_checksum=True).compress
        return pack(content[:30]) + pack(content[30:])
    return content


def blocks_of(names, block_bytes=1 << 20, start=Place()):  # noqa: B008, it never changes
    return list(Source(names, block_bytes).blocks(start))


def text_of(block):
    assert not block.text[block.size : block.size + PADDING].any()
    return block.text[: block.size].tobytes()


@pytest.mark.parametrize("how", ["plain", "gzip"])
def test_the_first_block_is_small_and_none_has_too_many_lines(tmp_path, monkeypatch, how):
    monkeypatch.setattr(source_module, "MOST_LINES", 20_000)
    short, usual = b"1 1:1\n" * 200_000, b"1 " + b"7:0.5 " * 200 + b"\n"
    (tmp_path / "data").write_bytes(packed(short + usual * 2000, how))
    texts = [text_of(block) for block in blocks_of([tmp_path / "data"])]
    assert b"".join(texts) == short + usual * 2000
    assert 0 < len(texts[0]) <= 1 << 18
    assert max(text.count(b"\n") for text in texts[1:]) <= 20_010
    assert max(map(len, texts)) > 1_000_000


@pytest.mark.parametrize("how", ["plain", "gzip", "zstd"])
@pytest.mark.parametrize("block_bytes", [1, 2, 7, 64, 1 << 20])
def test_blocks_are_whole_lines_in_order(tmp_path, how, block_bytes):
    path = tmp_path / "data"
    path.write_bytes(packed(TEXT, how))
    blocks = blocks_of([path], block_bytes)
    assert b"".join(map(text_of, blocks)) == TEXT
    assert all(text_of(block).endswith(b"\n") for block in blocks[:-1])
    assert [block.ends for block in blocks] == [False] * (len(blocks) - 1) + [True]
    offsets = np.cumsum([0, *(block.size for block in blocks)])[:-1]
    assert [block.offset for block in blocks] == offsets.tolist()


@pytest.mark.parametrize("how", ["plain", "gzip", "zstd"])
def test_reading_goes_on_from_every_line(tmp_path, how):
    path = tmp_path / "data"
    path.write_bytes(packed(TEXT, how))
    for offset in [0, *(k + 1 for k, byte in enumerate(TEXT) if byte == ord("\n"))]:
        assert b"".join(map(text_of, blocks_of([path], 16, Place(0, offset)))) == TEXT[offset:]


def test_a_place_beyond_the_end_is_of_another_file(tmp_path):
    path = tmp_path / "data.gz"
    path.write_bytes(gzip.compress(TEXT))
    with pytest.raises(StreamError, match="ends before the place to go on from; it is not the file it was"):
        blocks_of([path], 16, Place(0, len(TEXT) + 1))


def test_the_last_line_of_a_file_is_not_joined_with_the_first_of_the_next(tmp_path):
    (tmp_path / "a").write_bytes(b"1 1:1\n1 2:1")
    (tmp_path / "b").write_bytes(b"1 3:1")
    blocks = blocks_of([tmp_path / "a", tmp_path / "b"])
    assert [(block.source, text_of(block)) for block in blocks] == [(0, b"1 1:1\n1 2:1"), (1, b"1 3:1")]
    assert [text_of(b) for b in blocks_of([tmp_path / "a", tmp_path / "b"], start=Place(1))] == [b"1 3:1"]


def test_patterns_stand_for_files_in_order_of_their_names(tmp_path):
    for name in ("day-2", "day-1", "day-10", "other"):
        (tmp_path / name).write_text(name)
    names = [os.path.basename(name) for name in Source([tmp_path / "day-*", tmp_path / "other"]).names]
    assert names == ["day-1", "day-10", "day-2", "other"]


def test_a_name_that_looks_like_a_pattern_is_first_of_all_a_name(tmp_path):
    (tmp_path / "a[1]").write_text("1")
    assert Source([tmp_path / "a[1]"]).names == [str(tmp_path / "a[1]")]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["nowhere.svm"], "nowhere.svm: there is no such file; check the name, or quote a pattern"),
        (["*.nothing"], "there is no such file"),
        ([], "there is no input; name files, or - for standard input"),
        (["-", "-"], "standard input can be read once only"),
        (["."], "this is a folder; name files, for example"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, monkeypatch, names, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StreamError, match=message.replace("*", r"\*")):
        Source(names)


@pytest.mark.parametrize("how", ["gzip", "zstd"])
@pytest.mark.parametrize("keep", [0.3, 0.9, 0.999])
def test_an_archive_cut_short_is_an_error(tmp_path, how, keep):
    content = np.random.default_rng(0).integers(0, 10, 300_000).astype(np.uint8) + ord("0")
    whole = packed(content.tobytes(), how)
    path = tmp_path / "data"
    path.write_bytes(whole[: int(len(whole) * keep)])
    with pytest.raises(StreamError, match=r"data: cannot be read to its end: .*; it is cut short or damaged"):
        blocks_of([path])


@pytest.mark.parametrize("how", ["gzip", "zstd"])
def test_a_damaged_archive_is_an_error(tmp_path, how):
    whole = bytearray(packed(np.random.default_rng(0).bytes(100_000), how))
    whole[len(whole) // 2] ^= 255
    whole[-10:] = bytes(10)
    path = tmp_path / "data"
    path.write_bytes(whole)
    with pytest.raises(StreamError, match="cut short or damaged"):
        blocks_of([path])


# Long lines


@pytest.fixture
def short_lines(monkeypatch):
    """Lines are too long from 101 bytes on, ends included."""
    monkeypatch.setattr(source_module, "LONGEST_LINE", 100)


@pytest.mark.usefixtures("short_lines")
@pytest.mark.parametrize("block_bytes", [1, 10, 33, 49, 50])
@pytest.mark.parametrize("length", [99, 100, 101, 150, 1000])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_too_long_comes_in_pieces_whatever_the_size_of_blocks(tmp_path, block_bytes, length, end):
    long = b"x" * (length - len(end)) + end
    path = tmp_path / "data"
    after = b"ab\ncd\n" if end else b""
    path.write_bytes(b"short\n" + long + after)
    blocks = blocks_of([path], block_bytes)
    assert b"".join(map(text_of, blocks)) == b"short\n" + long + after
    pieces = [block for block in blocks if block.too_long]
    assert b"".join(map(text_of, pieces)) == (long if length > 100 else b"")
    assert [block.begins for block in pieces] == [k == 0 for k in range(len(pieces))]
    assert all(block.begins for block in blocks if not block.too_long)
    assert max(block.size for block in blocks) <= 200


# Pipes


class Pipe:
    """Standard input as another process writes it."""

    def __init__(self, monkeypatch):
        reading, self.writing = os.pipe()
        self.stdin = os.fdopen(reading)
        monkeypatch.setattr(sys, "stdin", self.stdin)

    def send(self, content):
        os.write(self.writing, content)

    def close(self):
        os.close(self.writing)


@pytest.mark.parametrize("how", ["plain", "gzip", "zstd"])
def test_what_has_come_through_a_pipe_is_given_before_more_is_waited_for(monkeypatch, how):
    pipe = Pipe(monkeypatch)
    stream = io.BytesIO()
    writer = {
        "plain": lambda: stream,
        "gzip": lambda: gzip.GzipFile(fileobj=stream, mode="wb"),
        "zstd": lambda: zstandard.ZstdCompressor().stream_writer(stream),
    }[how]()
    blocks = Source(["-"]).blocks()
    for line in (b"1 1:1\n", b"1 2:1\n1 3:1\n"):
        writer.write(line)
        writer.flush() if how != "zstd" else writer.flush(zstandard.FLUSH_BLOCK)
        pipe.send(stream.getvalue())
        stream.seek(0)
        stream.truncate()
        block = next(blocks)
        assert text_of(block) == line
        assert not block.ends
    pipe.close()
    if how == "plain":
        assert next(blocks).ends


def test_half_a_line_is_waited_for(monkeypatch):
    pipe = Pipe(monkeypatch)
    pipe.send(b"1 1:1\n1 2")
    blocks = Source(["-"]).blocks()
    assert text_of(next(blocks)) == b"1 1:1\n"

    def later():
        time.sleep(0.1)
        pipe.send(b":5\n")
        pipe.close()

    threading.Thread(target=later).start()
    rest = list(blocks)
    assert b"".join(map(text_of, rest)) == b"1 2:5\n"
    assert rest[-1].ends


def test_a_tape_fills_up_its_last_block_with_zeros(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(gzip.compress(TEXT) + bytes(5000))
    assert b"".join(map(text_of, blocks_of([path]))) == TEXT


@pytest.mark.parametrize("lines", [b"1 2:1\n0 3:1\n", b"1 4:1\n", b""])
def test_lines_behind_a_long_one_do_not_wait(monkeypatch, lines):
    monkeypatch.setattr(source_module, "LONG_LINE", 1000)
    pipe, found, in_time = Pipe(monkeypatch), threading.Event(), []
    text = b"1 " + b"1:1 " * 500 + b"\n" + lines
    pipe.send(text[:1500])

    def later():
        time.sleep(0.1)
        pipe.send(text[1500:])
        in_time.append(found.wait(5))
        pipe.close()

    thread = threading.Thread(target=later)
    thread.start()
    blocks, read = Source(["-"]).blocks(), b""
    while len(read) < len(text):
        read += text_of(next(blocks))
    found.set()
    thread.join()
    assert in_time == [True]
    assert read == text
    assert [text_of(block) for block in blocks] == [b""]


def test_a_pipe_has_no_size(monkeypatch):
    pipe = Pipe(monkeypatch)
    pipe.close()
    assert Source(["-"]).total_bytes is None


def test_standard_input_that_is_closed_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(StreamError, match="standard input is closed; name a file"):
        blocks_of(["-"])


# What is remembered of the data


def test_data_are_told_apart_by_names_sizes_order_and_content(tmp_path):
    for name, content in (("a", b"1 1:1\n"), ("b", b"1 1:1\n"), ("c", b"1 1:2\n")):
        (tmp_path / name).write_bytes(content)
    a, b, c = (str(tmp_path / name) for name in "abc")
    assert described([a, b]) == described([a, b])
    assert described([a, b]) != described([b, a])
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c").write_bytes(b"1 1:3\n")
    assert described([c]) != described([str(tmp_path / "sub" / "c")])
    assert described(["-"]) == [{"name": "-", "bytes": None, "crc32": None}]


def test_how_far_reading_is(tmp_path):
    for name in "ab":
        (tmp_path / name).write_bytes(TEXT * 100)
    source = Source([tmp_path / "a", tmp_path / "b"], 1000)
    assert source.total_bytes == 200 * len(TEXT)
    far = [source.read_bytes for _ in source.blocks()]
    assert far == sorted(far)
    assert source.read_bytes == source.total_bytes
    later = Source([tmp_path / "a", tmp_path / "b"], 1000)
    start = Place(1, TEXT.index(b"\n") + 1)
    next(later.blocks(start))
    assert later.skipped_bytes == 100 * len(TEXT) + start.offset


def test_how_far_reading_has_come_is_known_also_when_it_has_ended(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text("1 1:1\n" * 1000)
    source = Source([path], block_bytes=100)
    blocks = source.blocks()
    next(blocks)
    assert 0 < source.read_bytes < 6000
    reader = source._reader
    blocks.close()
    assert source.read_bytes == 0
    assert reader.position > 0  # for whoever asked for it before it was closed
