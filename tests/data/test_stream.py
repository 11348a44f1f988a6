"""Rows of text: the same for every size of blocks and any number of threads."""

import gzip
import io
import itertools
import re

import numpy as np
import pytest
import zstandard

from maxcosine.core import FeatureIndex
from maxcosine.data import Place, ReadOptions, Stream, StreamError, inputs, open_stream, write_cache
from maxcosine.data.batch import Names
from maxcosine.data.options import DEFAULT_BITS
from maxcosine.data.stream import slots_of
from maxcosine.data.text import recognise

SVM = (
    b"\xef\xbb\xbf+1 3:0.5 1:2\n"
    b"-1 7:1 7:2 7:-1 # seven, three times\n"
    b"\n"
    b"1\n"
    b"late 2:0 4:-0 5:1e-3\r\n"
    b"# only a comment\n"
    b"1.0 900000:1\n"
    b"-1 1:1 1:-1 2:3\n"
    b"   \n"
    b"1 6:1"
)
ROWS = [
    ("1", {1: 2.0, 3: 0.5}),
    ("-1", {7: 2.0}),
    ("1", {}),
    ("late", {5: 0.001}),
    ("1", {900000: 1.0}),
    ("-1", {2: 3.0}),
    ("1", {6: 1.0}),
]
VW = b"a 2 'tag|w free:2 win |u free\nb 0 |w\n\nlate |w:3 free:1 free:2 win:0\n1.50 | x y\r\na |w free"
NAMES = [
    ("a", {"w^free": 2.0, "w^win": 1.0, "u^free": 1.0}),
    ("b", {}),
    ("late", {"w^free": 9.0}),
    ("1.5", {"x": 1.0, "y": 1.0}),
    ("a", {"w^free": 1.0}),
]


def write(tmp_path, content, name="data.svm"):
    path = tmp_path / name
    path.write_bytes(content)
    return path


def read(*names, start=inputs.START, bad_lines=None, **options):
    """Return labels, rows as dicts and weights of all chunks; and the stream."""
    stream = Stream(names, ReadOptions(dtype="float64", **options), start=start, bad_lines=bad_lines)
    found = []
    for X, labels, weights in stream:
        weights = np.ones(len(labels)) if weights is None else weights
        keys = stream.feature_keys() if stream.options.exact else None
        for row, label in enumerate(labels.tolist()):
            values = slice(X.indptr[row], X.indptr[row + 1])
            columns = X.indices[values].tolist()
            named = [keys[c] if keys is not None else c for c in columns]
            found.append((label, dict(zip(named, X.data[values].tolist(), strict=True)), float(weights[row])))
    return found, stream


cuttings = pytest.mark.parametrize(("block_bytes", "threads"), [(1, 1), (13, 3), (40, 2), (1 << 20, 2)])


@cuttings
@pytest.mark.parametrize("exact", [False, True])
def test_rows_of_svmlight(tmp_path, threads, block_bytes, exact):
    found, stream = read(write(tmp_path, SVM), exact=exact, threads=threads, block_bytes=block_bytes)
    assert [(label, x) for label, x, _ in found] == ROWS
    assert {weight for *_, weight in found} == {1.0}
    assert stream.labels.names == ["1", "-1", "late"]
    assert (stream.n_examples, stream.options.format) == (len(ROWS), "svmlight")


@cuttings
def test_rows_of_vw(tmp_path, threads, block_bytes):
    path = write(tmp_path, VW, "data.vw")
    found, _ = read(path, exact=True, threads=threads, block_bytes=block_bytes)
    assert [(label, x) for label, x, _ in found] == NAMES
    assert [weight for *_, weight in found] == [2.0, 0.0, 1.0, 1.0, 1.0]
    hashed, _ = read(path, bits=18, threads=threads, block_bytes=block_bytes)
    assert hashed == read(path, bits=18, threads=1)[0]
    assert [sorted(x.values()) for _, x, _ in hashed] == [sorted(x.values()) for _, x in NAMES]


# Formats


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.ZstdCompressor().compress])
@pytest.mark.parametrize(("content", "format"), [(SVM, "svmlight"), (VW, "vw")])
def test_the_content_tells_the_format_compressed_or_not(tmp_path, compress, content, format):
    plain, packed = write(tmp_path, content, "plain"), write(tmp_path, compress(content), "packed")
    assert read(plain)[0] == read(packed)[0]
    assert read(plain)[1].options.format == Stream(packed).recognise() == format


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("a.svm", b"1 |w x", "svmlight"),
        ("a.libsvm.gz", b"", "svmlight"),
        ("a.VW.zst", b"", "vw"),
        ("a", b"1 |w x", "vw"),
        ("a", b"\n# a | b\n1 2:3 # c | d\n", "svmlight"),
        ("a", b"\n\n# nothing\n", None),
    ],
)
def test_the_name_or_the_first_line_tells_the_format(name, text, format):
    assert recognise(name, text) == format


def test_a_file_without_a_line_does_not_tell_the_format_of_the_others(tmp_path):
    empty, comments = write(tmp_path, b"", "empty"), write(tmp_path, b"# |\n", "comments")
    found, stream = read(empty, comments, write(tmp_path, VW, "data"), exact=True)
    assert [(label, x) for label, x, _ in found] == NAMES
    assert stream.options.format == "vw"


# Places


@pytest.mark.parametrize("options", [{}, {"exact": True}, {"bits": 20}], ids=str)
@pytest.mark.parametrize(("content", "format"), [(SVM, "svmlight"), (VW, "vw")])
def test_reading_continues_after_every_row(tmp_path, content, format, options):
    path = write(tmp_path, content, "data")
    whole, _ = read(path, **options)
    batches = open_stream(path, block_bytes=30, threads=2, **options).batches()
    places = [batch.places.end(k) for batch in batches for k in range(len(batch))]
    assert len(places) == len(whole)
    for k, place in enumerate(places):
        assert read(path, start=place, format=format, **options)[0] == whole[k + 1 :]


def test_parts_of_a_batch(tmp_path):
    (batch,) = open_stream(write(tmp_path, VW, "data.vw"), exact=True).batches()
    for part in (batch[1:4][1:], batch.take(np.array([False, False, True, True, False]))):
        letters, starts = part.keys
        names = [letters[i:j].tobytes() for i, j in itertools.pairwise(starts)]
        assert names == [b"w^free", b"w^free", b"w^win", b"x", b"y"]
        assert part.indptr.tolist() == [0, 3, 5]
        assert part.weights.tolist() == [1.0, 1.0]
        assert part.places.start(1) == batch.places.start(3)
        assert part.kind == "names"
    assert batch[1:4][1:].places.end(0) == batch.places.end(2)


def test_kept_chunks_stay_the_same(tmp_path):
    lines = [f"{k % 2} " + " ".join(f"{j}:{k + j / 10:.1f}" for j in range(1, 40)) for k in range(3000)]
    chunks = list(open_stream(write(tmp_path, "\n".join(lines).encode()), block_bytes=100_000))
    assert len(chunks) > 3
    rows = np.concatenate([X.toarray() for X, _, _ in chunks])
    assert np.allclose(rows[:, 1:], np.arange(3000)[:, None] + np.arange(1, 40) / 10)


# Values


def test_logarithms_and_unit_length(tmp_path):
    path = write(tmp_path, b"1 1:3 2:-4 2:1\n1 5:0\n1 9:7")
    logarithms = [{1: np.log(4), 2: -np.log(4)}, {}, {9: np.log(8)}]
    assert [x for _, x, _ in read(path, log1p=True)[0]] == [pytest.approx(x) for x in logarithms]
    found, _ = read(path, normalize="l2")
    assert [sum(v * v for v in x.values()) for _, x, _ in found] == [pytest.approx(1), 0, pytest.approx(1)]


def test_unknown_names_count_in_the_length(tmp_path):
    path = write(tmp_path, b"1 |a x:3 y:2 y:2\n", "data.vw")
    stream = open_stream(path, exact=True, normalize="l2", dtype="float64")
    (batch,) = stream.batches()
    index = FeatureIndex("names", ["z", "a^x"])
    _, slots, values = slots_of(batch, index, stream.options, grow=False)
    assert (slots.tolist(), values.tolist()) == ([1], [pytest.approx(0.6)])
    assert len(index) == 2


def test_ids_are_hashed_from_two_to_the_bits_on(tmp_path):
    found, _ = read(write(tmp_path, b"1 3:1 255:2 256:4 18446744073709551615:8"), bits=8)
    ((_, x, _),) = found
    assert (sum(x.values()), max(x) < 256) == (15.0, True)
    assert x[3] in (1.0, 5.0, 9.0, 13.0)


def test_names_of_hashed_features_are_kept_as_they_are_written(tmp_path):
    path = write(tmp_path, b"1 |a x:0 y y\n", "data.vw")
    (batch,) = open_stream(path, bits=10, keep_names=True).batches()
    assert isinstance(batch.hashed_names, Names)
    assert batch.hashed_names.letters.tobytes() == b"a^xa^ya^y"
    assert batch.keys.tolist() == batch.hashed_columns[1:2].tolist()


# Bad lines


BAD = b"1 1:1\n1 x:1\n-1 2:2\n1 3:nan\n2 3:1 | 4\nnew 5:1e999\n1 4:1"


@cuttings
def test_bad_lines_are_counted_and_kept_and_good_ones_are_not_lost(tmp_path, block_bytes, threads):
    path, kept = write(tmp_path, BAD), io.BytesIO()
    found, stream = read(path, on_bad="skip", bad_lines=kept, block_bytes=block_bytes, threads=threads)
    assert [x for _, x, _ in found] == [{1: 1.0}, {2: 2.0}, {4: 1.0}]
    assert stream.n_bad == 4
    assert kept.getvalue() == b"1 x:1\n1 3:nan\n2 3:1 | 4\nnew 5:1e999\n"
    assert stream.labels.names == ["1", "-1"]
    where = [re.search(r":(\d+:\d+): ", message)[1] for message in stream.bad.messages]
    assert where == ["2:3", "4:5", "5:7", "6:7"]
    with pytest.raises(StreamError) as error:
        read(path, block_bytes=block_bytes)
    assert str(error.value).startswith(f"{path}:2:3: the feature's id is not a whole number; ids are 0, 1")
    assert "(found 'x:1')" in str(error.value)
    assert "--on-bad skip" in str(error.value)


def test_places_know_the_bad_lines_before_them(tmp_path):
    path = write(tmp_path, BAD)
    (batch,) = open_stream(path, on_bad="skip").batches()
    places = [batch.places.end(k) for k in range(3)]
    assert [(place.bad, place.bad_bytes) for place in places] == [(1, 6), (4, 36), (4, 36)]
    assert batch.skipped.tolist() == [1, 2, 2, 2]
    rest = Stream(path, ReadOptions(on_bad="skip"), start=places[0])
    assert sum(map(len, rest.batches())) == 2
    assert rest.n_bad == 4


@pytest.mark.parametrize("content", [b"1 1:1\n2:2\n-1 3:1\n4:1\n", b"1 |a x\n|a y z\n-1 |a z\n |\n"])
@pytest.mark.parametrize("options", [{}, {"exact": True}, {"bits": 20, "keep_names": True}], ids=str)
def test_lines_without_a_label_are_bad_if_labels_are_needed(tmp_path, content, options):
    path, kept = write(tmp_path, content, "data"), io.BytesIO()
    found, stream = read(path, purpose="evaluate", on_bad="skip", bad_lines=kept, **options)
    assert stream.n_bad == 2
    assert kept.getvalue().splitlines() == [content.splitlines()[1], content.splitlines()[3]]
    good = write(tmp_path, b"".join(content.splitlines(True)[::2]), "good")
    assert found == read(good, **options)[0]
    with pytest.raises(StreamError, match="data:2:1: the line has no label; there is nothing to learn"):
        read(path, purpose="learn", **options)


@pytest.mark.parametrize(
    ("line", "options"),
    [
        (b"900:1", {}),
        (b"900:1", {"log1p": True}),
        (b"1 900:x", {}),
        (b"1 900:x", {"normalize": "l2"}),
        (b"1 900:1e30", {}),
    ],
)
def test_bad_lines_add_no_columns_and_no_labels(tmp_path, line, options):
    path = write(tmp_path, b"1 2:1 7:1\n" + line + b"\nonly 900:x\n-1 3:2\n")
    stream = open_stream(path, purpose="learn", on_bad="skip", **options)
    (batch,) = stream.batches()
    assert len(batch) == 2
    assert max(batch.keys.tolist()) == 7
    assert stream.labels.names == ["1", "-1"]
    squares = [float(np.square(batch.values[:2]).sum()), batch.values[2] ** 2]
    assert batch.squares.tolist() == pytest.approx(squares)


def test_ids_that_are_no_column_numbers_are_bad(tmp_path):
    path = write(tmp_path, b"1 1:1\n1 2:1 0018446744073709551615:2\nonly 4000000000:1\n1 3:1\n")
    with pytest.raises(StreamError, match=r"data.svm:2:7: the id is too large for a column; hash features"):
        read(path)
    found, stream = read(path, on_bad="skip")
    assert [x for _, x, _ in found] == [{1: 1.0}, {3: 1.0}]
    assert (stream.n_bad, stream.labels.names) == (2, ["1"])
    assert [max(x) for _, x, _ in read(path, exact=True)[0]] == [1, 2**64 - 1, 4_000_000_000, 3]


def test_rows_that_cannot_be_learnt_from_are_bad(tmp_path):
    content = b"1 1:1\n1 2:1e160\n1 2:1e-160\n1 3:1\n1\n"
    path = write(tmp_path, content)
    with pytest.raises(StreamError, match=r"data.svm:2:1: the example is too long, or too short.*'1 2:1e160'"):
        read(path, purpose="learn")
    found, stream = read(path, purpose="learn", on_bad="skip")
    assert [x for _, x, _ in found] == [{1: 1.0}, {3: 1.0}, {}]
    assert stream.n_bad == 2
    assert read(path, purpose="learn", on_bad="skip", normalize="l2")[1].n_bad < 2
    assert read(path, purpose="evaluate")[1].n_bad == 0
    names = write(tmp_path, content.replace(b"1\n1\n", b"1\n1 |\n").replace(b" ", b" |a x", 4), "data.vw")
    assert read(names, purpose="learn", on_bad="skip", exact=True)[1].n_bad == 2


@pytest.mark.parametrize("options", [{}, {"exact": True}, {"exact": True, "normalize": "l2"}], ids=str)
@pytest.mark.parametrize("kind", ["text", "a.arrow", "a.parquet"])
def test_an_example_of_zeros_is_an_example_but_a_short_one_is_not(tmp_path, options, kind):
    zeros = b"a 1 |n w3:0\nb |n\na |n w1:0 w2:3\nb |n w1:0 w1:-0\na |n:0 w4 w5\n"
    path = write(tmp_path, zeros, "text")
    tiny = write(tmp_path, zeros + b"a |n w1:1e-180 w2:0\n", "tiny")
    if kind != "text":
        for text in (path, tiny):
            write_cache(open_stream(text, dtype="float64", **options), tmp_path / f"{text.name}.{kind}")
        path, tiny = (tmp_path / f"{text.name}.{kind}" for text in (path, tiny))
    found, _ = read(path, purpose="learn", **options)
    expected = [("a", 0), ("b", 0), ("a", 1), ("b", 0), ("a", 0)]
    assert [(label, len(x)) for label, x, _ in found] == expected
    if "normalize" not in options:
        with pytest.raises(StreamError, match="the example is too long, or too short, to be learnt from"):
            read(tiny, purpose="learn", **options)


@pytest.mark.parametrize(("block_bytes", "threads"), [(7, 1), (25, 2)])
@pytest.mark.parametrize("end", [b"\n1 9:1\n", b""])
def test_a_line_that_is_too_long_is_one_bad_line(tmp_path, monkeypatch, block_bytes, threads, end):
    monkeypatch.setattr(inputs, "MAX_LINE_BYTES", 50)
    long = b"1 " + b"1:1 " * 60
    path = write(tmp_path, b"1 1:1\n1 2:1\n" + long + end)
    with pytest.raises(StreamError, match=r"data.svm:3:1: the line is longer than 64 MB"):
        read(path, block_bytes=block_bytes, threads=threads)
    kept = io.BytesIO()
    found, stream = read(path, on_bad="skip", bad_lines=kept, block_bytes=block_bytes, threads=threads)
    assert [x for _, x, _ in found] == [{1: 1.0}, {2: 1.0}, *([{9: 1.0}] if end else [])]
    assert kept.getvalue() == long[:50] + b"\n"
    assert stream.place == Place(1, 0, 0, 1, 51)


def test_a_stream_can_be_read_twice(tmp_path):
    stream = open_stream(write(tmp_path, BAD), on_bad="skip", exact=True)
    for _ in range(2):
        assert [labels.tolist() for _, labels, _ in stream] == [["1", "-1", "1"]]
        assert (stream.n_examples, stream.n_bad, stream.place.source) == (3, 4, 1)


# Options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "xml"}, "format is 'xml'; it is one of 'auto', 'svmlight', 'vw'"),
        ({"on_bad": "ignore"}, "on_bad is 'ignore'; it is one of 'error', 'skip'"),
        ({"normalize": "l1"}, "normalize is 'l1'"),
        ({"purpose": "fun"}, "purpose is 'fun'"),
        ({"dtype": "int8"}, "dtype is 'int8'"),
        ({"bits": 32}, "bits is 32; it is from 1 to 31"),
        ({"bits": 4, "exact": True}, "features are hashed, bits > 0, or exact, but not both"),
        ({"block_bytes": 0}, "block_bytes is 0; it is from 1 to"),
        ({"threads": 0}, "threads is 0; it is at least 1"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        ReadOptions(**options)


def test_a_stream_like_another_reads_in_the_same_way(tmp_path):
    stream = open_stream(write(tmp_path, VW, "a.vw"), normalize="l2", log1p=True)
    list(stream)
    other = stream.like([write(tmp_path, VW, "b.vw")], threads=1)
    assert (other.options.bits, other.options.normalize, other.options.log1p) == (DEFAULT_BITS, "l2", True)
