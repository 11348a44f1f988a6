"""Blocks of files, pipes and archives: the same lines, however they are compressed and cut."""

import gzip
import io
import os
import sys
import threading
import time

import numpy as np
import pytest
import zstandard

from maxcosine.data import Place, Span, StreamError, describe_inputs, inputs, next_line_start
from maxcosine.data.inputs import Inputs

TEXT = b"1 1:1\n\n-1 2:2\r\n" + b"1 " + b"7:0.5 " * 40 + b"\n" + b"# nothing\n" * 9 + b"1 3:1"


def compressed(content, how):
    """Compress the content in two parts, as `cat a.gz b.gz` does."""
    if how == "gzip":
        return gzip.compress(content[:30]) + gzip.compress(content[30:])
    if how == "zstd":
        compress = zstandard.ZstdCompressor(write_checksum=True).compress
        return compress(content[:30]) + compress(content[30:])
    return content


@pytest.fixture(params=["plain", "gzip", "zstd"])
def how(request):
    return request.param


def blocks_of(names, block_bytes=1 << 20, start=inputs.START, spans=None):
    return list(Inputs(names, spans, block_bytes).blocks(start))


def joined(blocks):
    return b"".join(block.text() for block in blocks)


@pytest.mark.parametrize("block_bytes", [1, 7, 64, 1 << 20])
def test_blocks_are_whole_lines_in_order(tmp_path, how, block_bytes):
    path = tmp_path / "data"
    path.write_bytes(compressed(TEXT, how))
    blocks = blocks_of([path], block_bytes)
    assert joined(blocks) == TEXT
    assert all(block.text().endswith(b"\n") for block in blocks[:-1])
    assert [block.is_last for block in blocks] == [False] * (len(blocks) - 1) + [True]
    ends = np.cumsum([len(block.text()) for block in blocks]).tolist()
    assert [(block.offset, block.end) for block in blocks] == list(zip([0, *ends], ends, strict=False))


def test_the_first_block_is_small_and_no_block_has_too_many_lines(tmp_path, monkeypatch, how):
    monkeypatch.setattr(inputs, "BLOCK_LINES", 20_000)
    short, usual = b"1 1:1\n" * 100_000, b"1 " + b"7:0.5 " * 200 + b"\n"
    (tmp_path / "data").write_bytes(compressed(short + usual * 2000, how))
    texts = [block.text() for block in blocks_of([tmp_path / "data"])]
    assert b"".join(texts) == short + usual * 2000
    assert 0 < len(texts[0]) <= 1 << 18
    assert max(text.count(b"\n") for text in texts[1:]) <= 20_010
    assert max(map(len, texts)) > 1_000_000


def test_reading_continues_at_every_line(tmp_path, how):
    path = tmp_path / "data"
    path.write_bytes(compressed(TEXT, how))
    for offset in [0, *(k + 1 for k, byte in enumerate(TEXT) if byte == ord("\n"))]:
        assert joined(blocks_of([path], 16, Place(0, offset))) == TEXT[offset:]


def test_a_place_after_the_end_belongs_to_another_file(tmp_path):
    path = tmp_path / "data.gz"
    path.write_bytes(gzip.compress(TEXT))
    with pytest.raises(StreamError, match="ends before the place to continue from; the file has changed"):
        blocks_of([path], 16, Place(0, len(TEXT) + 1))


def test_a_file_that_becomes_shorter_is_an_error(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(TEXT * 100)
    blocks = Inputs([path], block_bytes=1000).blocks()
    next(blocks)
    path.write_bytes(TEXT * 50)
    with pytest.raises(StreamError, match=r"ends before byte .*; the file has changed since then"):
        list(blocks)


def test_the_last_line_of_a_file_is_not_joined_with_the_first_line_of_the_next(tmp_path):
    (tmp_path / "a").write_bytes(b"1 1:1\n1 2:1")
    (tmp_path / "b").write_bytes(b"1 3:1")
    names = [tmp_path / "a", tmp_path / "b"]
    found = [(block.source, block.text()) for block in blocks_of(names)]
    assert found == [(0, b"1 1:1\n1 2:1"), (1, b"1 3:1")]
    assert joined(blocks_of(names, start=Place(1))) == b"1 3:1"


def test_a_byte_order_mark_at_the_beginning_of_a_file_is_blanked(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(b"\xef\xbb\xbf1 1:1\n\xef\xbb\xbf1 1:1\n")
    for block_bytes in (1, 8, 1000):
        assert joined(blocks_of([path], block_bytes)) == b"   1 1:1\n\xef\xbb\xbf1 1:1\n"


def test_spans_divide_a_file_at_the_ends_of_lines(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(TEXT)
    cuts = [next_line_start(str(path), offset) for offset in range(len(TEXT) + 1)]
    assert all(cut == 0 or cut == len(TEXT) or TEXT[cut - 1 : cut] == b"\n" for cut in cuts)
    for cut in sorted(set(cuts)):
        spans = [Span(0, cut), Span(cut, len(TEXT))]
        assert [joined(blocks_of([path], 16, spans=[span])) for span in spans] == [TEXT[:cut], TEXT[cut:]]
    assert Inputs([path], [Span(cuts[20])]).where(0, 0) == f"{path}:{TEXT[: cuts[20]].count(10) + 1}"


# Names


def test_patterns_stand_for_files_in_the_order_of_their_names(tmp_path):
    for name in ("day-2", "day-1", "day-10", "other"):
        (tmp_path / name).write_text(name)
    names = [os.path.basename(name) for name in Inputs([tmp_path / "day-*", tmp_path / "other"]).names]
    assert names == ["day-1", "day-10", "day-2", "other"]


def test_a_file_whose_name_looks_like_a_pattern(tmp_path):
    (tmp_path / "a[1]").write_text("1")
    assert Inputs(tmp_path / "a[1]").names == [str(tmp_path / "a[1]")]


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
def test_inputs_that_do_not_exist_are_refused(tmp_path, monkeypatch, names, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StreamError, match=message):
        Inputs(names)


# Archives


@pytest.mark.parametrize("how", ["gzip", "zstd"])
@pytest.mark.parametrize("damage", [0.3, 0.999, "inside"])
def test_a_damaged_archive_is_an_error(tmp_path, how, damage):
    content = bytearray(compressed(np.random.default_rng(0).bytes(100_000), how))
    if damage == "inside":
        content[len(content) // 2] ^= 255
        content[-10:] = bytes(10)
    else:
        content = content[: int(len(content) * damage)]
    path = tmp_path / "data"
    path.write_bytes(content)
    with pytest.raises(StreamError, match=r"data: cannot be read to its end: .*; it is cut short or damaged"):
        blocks_of([path])


def test_zeros_after_an_archive_are_ignored(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(gzip.compress(TEXT) + bytes(5000))
    assert joined(blocks_of([path])) == TEXT


def test_zstd_without_its_package_is_an_error_that_names_it(tmp_path, monkeypatch):
    path = tmp_path / "data"
    path.write_bytes(compressed(TEXT, "zstd"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(StreamError, match=r"zstd needs one more package: pip install 'maxcosine\[stream\]'"):
        blocks_of([path])


# Long lines


@pytest.mark.parametrize("block_bytes", [1, 33, 50, 100])
@pytest.mark.parametrize("length", [99, 100, 101, 150, 1000])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_that_is_too_long_is_cut_whatever_the_size_of_blocks(tmp_path, monkeypatch, block_bytes, length, end):
    monkeypatch.setattr(inputs, "MAX_LINE_BYTES", 100)
    long, after = b"x" * (length - len(end)) + end, b"ab\ncd\n" if end else b""
    path = tmp_path / "data"
    path.write_bytes(b"short\n" + long + after)
    blocks = blocks_of([path], block_bytes)
    assert [block.text() for block in blocks if block.too_long] == [long[:100]] * (length > 100)
    rest = b"" if length > 100 else long
    assert joined(block for block in blocks if not block.too_long) == b"short\n" + rest + after
    assert [(block.offset, block.end) for block in blocks if block.too_long] == [(6, 6 + length)] * (length > 100)
    assert blocks[-1].is_last
    assert blocks[-1].end == 6 + length + len(after)


# Pipes


class Pipe:
    """Standard input that another process writes."""

    def __init__(self, monkeypatch):
        reading, self._writing = os.pipe()
        self._stdin = os.fdopen(reading)
        monkeypatch.setattr(sys, "stdin", self._stdin)

    def send(self, content):
        os.write(self._writing, content)

    def close(self):
        os.close(self._writing)


def test_lines_of_a_pipe_are_given_before_more_arrive(monkeypatch, how):
    pipe, stream = Pipe(monkeypatch), io.BytesIO()
    writer = {
        "plain": lambda: stream,
        "gzip": lambda: gzip.GzipFile(fileobj=stream, mode="wb"),
        "zstd": lambda: zstandard.ZstdCompressor().stream_writer(stream),
    }[how]()
    blocks = Inputs("-").blocks()
    for line in (b"1 1:1\n", b"1 2:1\n1 3:1\n"):
        writer.write(line)
        writer.flush() if how != "zstd" else writer.flush(zstandard.FLUSH_BLOCK)
        pipe.send(stream.getvalue())
        stream.seek(0)
        stream.truncate()
        block = next(blocks)
        assert block.text() == line
        assert not block.is_last
    pipe.close()
    if how == "plain":
        assert next(blocks).is_last


def test_half_a_line_waits_for_its_end(monkeypatch):
    pipe = Pipe(monkeypatch)
    pipe.send(b"1 1:1\n1 2")
    blocks = Inputs("-").blocks()
    assert next(blocks).text() == b"1 1:1\n"

    def send_later():
        time.sleep(0.1)
        pipe.send(b":5\n")
        pipe.close()

    threading.Thread(target=send_later).start()
    rest = list(blocks)
    assert joined(rest) == b"1 2:5\n"
    assert rest[-1].is_last


def test_a_pipe_has_no_size(monkeypatch):
    Pipe(monkeypatch).close()
    assert Inputs("-").total_bytes is None


def test_standard_input_that_is_closed_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(StreamError, match="standard input is closed; name a file"):
        blocks_of("-")


# Descriptions and progress


def test_data_are_distinguished_by_name_size_order_and_content(tmp_path):
    (tmp_path / "sub").mkdir()
    for name, content in (("a", b"1 1:1\n"), ("b", b"1 1:1\n"), ("c", b"1 1:2\n"), ("sub/c", b"1 1:3\n")):
        (tmp_path / name).write_bytes(content)
    a, b, c, other = (str(tmp_path / name) for name in ("a", "b", "c", "sub/c"))
    assert describe_inputs([a, b]) == describe_inputs([a, b])
    assert describe_inputs([a, b]) != describe_inputs([b, a])
    assert describe_inputs([c]) != describe_inputs([other])
    assert describe_inputs(["-"]) == [{"name": "-", "bytes": None, "crc32": None}]


def test_progress_counts_bytes_on_disk(tmp_path):
    for name in "ab":
        (tmp_path / name).write_bytes(TEXT * 100)
    names = [tmp_path / "a", tmp_path / "b"]
    reading = Inputs(names, block_bytes=1000)
    assert reading.total_bytes == 200 * len(TEXT)
    progress = [reading.read_bytes for _ in reading.blocks()]
    assert progress == sorted(progress)
    assert reading.read_bytes == reading.total_bytes
    later, start = Inputs(names, block_bytes=1000), Place(1, TEXT.index(b"\n") + 1)
    next(later.blocks(start))
    assert later.skipped_bytes == 100 * len(TEXT) + start.offset
