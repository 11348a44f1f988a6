"""Rows out of text: the same for every cutting into blocks and any number of threads."""

import gzip
import io
import itertools
import re

import numpy as np
import pytest
import zstandard

from maxcosine import FeatureIndex
from maxcosine.stream import source as source_module
from maxcosine.stream.chunks import DEFAULT_BITS, Stream, recognised
from maxcosine.stream.source import Place, StreamError

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


def read(*inputs, **options):
    """Labels, rows as dicts, and weights, of all chunks; and the stream."""
    stream = Stream(list(inputs), dtype=np.float64, **options)
    found = []
    for X, labels, weights in stream:
        weights = np.ones(len(labels)) if weights is None else weights
        keys = stream.index.keys() if stream.exact else None
        for row, label in enumerate(labels.tolist()):
            values = slice(X.indptr[row], X.indptr[row + 1])
            columns = X.indices[values].tolist()
            named = [keys[c] if keys is not None else c for c in columns]
            found.append((label, dict(zip(named, X.data[values].tolist(), strict=True)), float(weights[row])))
    return found, stream


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("block_bytes", [1, 13, 40, 1 << 20])
@pytest.mark.parametrize("exact", [False, True])
def test_rows_of_svmlight(tmp_path, threads, block_bytes, exact):
    path = write(tmp_path, SVM)
    found, stream = read(path, exact=exact, threads=threads, block_bytes=block_bytes)
    assert [(label, x) for label, x, _ in found] == ROWS
    assert {weight for *_, weight in found} == {1.0}
    assert stream.labels == ["1", "-1", "late"]
    assert stream.n_examples == len(ROWS)
    assert stream.format == "svmlight"


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("block_bytes", [1, 13, 40, 1 << 20])
def test_rows_of_vw(tmp_path, threads, block_bytes):
    path = write(tmp_path, VW, "data.vw")
    found, _ = read(path, exact=True, threads=threads, block_bytes=block_bytes)
    assert [(label, x) for label, x, _ in found] == NAMES
    assert [weight for *_, weight in found] == [2.0, 0.0, 1.0, 1.0, 1.0]
    hashed, _ = read(path, bits=18, threads=threads, block_bytes=block_bytes)
    whole, _ = read(path, bits=18, threads=1)
    assert hashed == whole
    assert [sorted(x.values()) for _, x, _ in hashed] == [sorted(x.values()) for _, x in NAMES]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress])
@pytest.mark.parametrize("content", [SVM, VW], ids=["svmlight", "vw"])
def test_the_format_is_known_by_what_is_in_the_file_packed_or_not(tmp_path, pack, content):
    plain, packed = write(tmp_path, content, "plain"), write(tmp_path, pack(content), "packed")
    assert read(plain)[0] == read(packed)[0]
    assert read(plain)[1].format == ("vw" if content == VW else "svmlight")


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
def test_the_format_is_known_by_the_name_or_the_first_line(name, text, format):
    assert recognised(name, np.frombuffer(text, np.uint8)) == format


def test_a_file_without_a_line_does_not_tell_the_format_of_the_others(tmp_path):
    empty, comments = write(tmp_path, b"", "empty"), write(tmp_path, b"# |\n", "comments")
    found, stream = read(empty, comments, write(tmp_path, VW, "data"), exact=True)
    assert [(label, x) for label, x, _ in found] == NAMES
    assert stream.format == "vw"


def test_lines_of_two_files_are_not_joined(tmp_path):
    a, b = write(tmp_path, b"1 1:1\n1 2:1", "a"), write(tmp_path, b"1 3:1", "b")
    assert [x for _, x, _ in read(a, b)[0]] == [{1: 1.0}, {2: 1.0}, {3: 1.0}]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("options", [{}, {"exact": True}, {"bits": 20}], ids=str)
@pytest.mark.parametrize("content", [SVM, VW], ids=["svmlight", "vw"])
def test_reading_goes_on_after_every_row(tmp_path, content, options, threads):
    path = write(tmp_path, content, "data")
    whole, _ = read(path, **options)
    ends = [
        rows.ends[k]
        for rows in Stream(path, block_bytes=30, threads=threads, **options).rows()
        for k in range(len(rows))
    ]
    assert len(ends) == len(whole)
    for k, place in enumerate(ends):
        rest, _ = read(path, start=place, format="vw" if content == VW else "svmlight", **options)
        assert rest == whole[k + 1 :]


def test_parts_of_rows_are_rows(tmp_path):
    (rows,) = Stream(write(tmp_path, VW, "data.vw"), exact=True).rows()
    part = rows[1:4][1:]
    letters, starts = part.names
    names = [letters[start:stop].tobytes() for start, stop in itertools.pairwise(starts)]
    assert names == [b"w^free", b"w^free", b"w^win", b"x", b"y"]
    assert part.indptr.tolist() == [0, 3, 5]
    assert part.weights.tolist() == [1.0, 1.0]
    assert [part.ends[0], part.ends[1]] == [rows.ends[2], rows.ends[3]]


# Values


def test_logarithms_and_unit_length(tmp_path):
    path = write(tmp_path, b"1 1:3 2:-4 2:1\n1 5:0\n1 9:7")
    found, _ = read(path, log1p=True)
    assert [x for _, x, _ in found] == [
        {1: pytest.approx(np.log(4)), 2: pytest.approx(-np.log(4))},
        {},
        {9: pytest.approx(np.log(8))},
    ]
    found, _ = read(path, normalize="l2")
    assert [sum(v * v for v in x.values()) for _, x, _ in found] == [pytest.approx(1), 0, pytest.approx(1)]


def test_names_that_an_index_does_not_know_count_for_the_length_all_the_same(tmp_path):
    path = write(tmp_path, b"1 |a x:3 y:2 y:2\n", "data.vw")
    stream = Stream(path, exact=True, normalize="l2", dtype=np.float64)
    (rows,) = stream.rows()
    index = FeatureIndex.of(["z", "a^x"], "names")
    mapped = stream.mapped(rows, index, grow=False)
    assert (mapped.columns.tolist(), mapped.data.tolist()) == ([1], [pytest.approx(0.6)])
    assert len(index) == 2


def test_ids_are_hashed_from_two_to_the_bits_on(tmp_path):
    found, _ = read(write(tmp_path, b"1 3:1 255:2 256:4 18446744073709551615:8"), bits=8)
    (_, x, _) = found[0]
    assert sum(x.values()) == 15.0
    assert max(x) < 256
    assert x[3] in (1.0, 5.0, 9.0, 13.0)


# Bad lines


BAD = b"1 1:1\n1 x:1\n-1 2:2\n1 3:nan\n2 3:1 | 4\nnew 5:1e999\n1 4:1"
GOOD = [{1: 1.0}, {2: 2.0}, {4: 1.0}]


@pytest.mark.parametrize("block_bytes", [1, 10, 20, 1 << 20])
@pytest.mark.parametrize("threads", [1, 2])
def test_bad_lines_are_counted_and_kept_and_good_ones_are_not_lost(tmp_path, block_bytes, threads):
    kept = io.BytesIO()
    path = write(tmp_path, BAD)
    found, stream = read(path, on_bad="skip", bad_lines=kept, block_bytes=block_bytes, threads=threads)
    assert [x for _, x, _ in found] == GOOD
    assert stream.n_bad == 4
    assert kept.getvalue() == b"1 x:1\n1 3:nan\n2 3:1 | 4\nnew 5:1e999\n"
    assert stream.labels == ["1", "-1"]
    where = [re.search(r":(\d+:\d+): ", message)[1] for message in stream.first_bad]
    assert where == ["2:3", "4:5", "5:7", "6:7"]


@pytest.mark.parametrize("block_bytes", [1, 10, 20, 1 << 20])
def test_the_first_bad_line_is_the_error(tmp_path, block_bytes):
    path = write(tmp_path, BAD)
    with pytest.raises(StreamError) as error:
        read(path, block_bytes=block_bytes)
    assert str(error.value).startswith(f"{path}:2:3: the feature's id is not a whole number; ids are 0, 1")
    assert "(found 'x:1')" in str(error.value)
    assert "--on-bad skip" in str(error.value)


def test_places_know_of_the_bad_lines_before_them(tmp_path):
    path = write(tmp_path, BAD)
    (rows,) = Stream(path, on_bad="skip").rows()
    assert [(rows.ends[k].bad, rows.ends[k].bad_bytes) for k in range(3)] == [(1, 6), (4, 36), (4, 36)]
    assert rows.skipped.tolist() == [1, 2, 2, 2]
    rest = Stream(path, on_bad="skip", start=rows.ends[0])
    assert sum(map(len, rest.rows())) == 2
    assert rest.n_bad == 4


@pytest.mark.parametrize("content", [b"1 1:1\n2:2\n-1 3:1\n4:1\n", b"1 |a x\n|a y z\n-1 |a z\n |\n"])
@pytest.mark.parametrize("options", [{}, {"exact": True}, {"bits": 20, "keep_names": True}], ids=str)
def test_lines_without_a_label_are_bad_ones_where_labels_are_needed(tmp_path, content, options):
    path = write(tmp_path, content, "data")
    kept = io.BytesIO()
    found, stream = read(path, labelled=True, on_bad="skip", bad_lines=kept, **options)
    assert [label for label, _, _ in found] == ["1", "-1"]
    assert stream.n_bad == 2
    assert kept.getvalue().splitlines() == [content.splitlines()[1], content.splitlines()[3]]
    without, _ = read(write(tmp_path, b"".join(content.splitlines(True)[::2]), "good"), **options)
    assert found == without
    with pytest.raises(StreamError, match="data:2:1: the line has no label; there is nothing to learn"):
        read(path, labelled=True, **options)


def test_many_lines_without_a_label_take_no_longer_than_others(tmp_path):
    path = write(tmp_path, b"1:1\n" * 100_000)
    assert read(path, labelled=True, on_bad="skip")[1].n_bad == 100_000


@pytest.mark.parametrize(
    ("left_out", "options"),
    [
        (b"900:1", {}),
        (b"900:1", {"log1p": True}),
        (b"1 900:x", {}),
        (b"1 900:x", {"normalize": "l2"}),
        (b"1 900:1e30", {}),
        (b"1 900:1e30 2:1", {}),
    ],
)
def test_lines_that_are_left_out_add_no_columns(tmp_path, left_out, options):
    path = write(tmp_path, b"1 2:1 7:1\n" + left_out + b"\n-1 3:2\n")
    skipping = {"labelled": True, "on_bad": "skip", "limits": (1e-30, 1e30)}
    (rows,) = Stream(path, **skipping, **options).rows()
    assert len(rows) == 2
    assert rows.n_columns == 8
    assert rows.squares.tolist() == pytest.approx([float(np.square(rows.data[:2]).sum()), rows.data[2] ** 2])


def test_ids_that_are_no_column_numbers_are_refused_by_their_place(tmp_path):
    path = write(tmp_path, b"1 1:1\n1 2:1 0018446744073709551615:2\nonly 4000000000:1\n1 3:1\n")
    with pytest.raises(StreamError, match=r"data.svm:2:7: the id is too large for a column; hash features"):
        read(path)
    found, stream = read(path, on_bad="skip")
    assert [x for _, x, _ in found] == [{1: 1.0}, {3: 1.0}]
    assert (stream.n_bad, stream.labels) == (2, ["1"])
    assert [max(x) for _, x, _ in read(path, exact=True)[0]] == [1, 2**64 - 1, 4_000_000_000, 3]


def test_rows_that_cannot_be_learnt_from_are_bad_ones(tmp_path):
    content, limits = b"1 1:1\n1 2:1e12\n1 2:1e-12\n1 3:1\n1\n", (1e-18, 1e18)
    path = write(tmp_path, content)
    with pytest.raises(StreamError, match=r"data.svm:2:1: the example is too long, or too short.*'1 2:1e12'"):
        read(path, limits=limits)
    found, stream = read(path, limits=limits, on_bad="skip")
    assert [x for _, x, _ in found] == [{1: 1.0}, {3: 1.0}, {}]
    assert stream.n_bad == 2
    assert read(path, limits=limits, normalize="l2")[1].n_bad == 0
    names = write(tmp_path, content.replace(b"1\n1\n", b"1\n1 |\n").replace(b" ", b" |a x", 4), "data.vw")
    assert read(names, limits=limits, on_bad="skip", exact=True)[1].n_bad == 2


@pytest.mark.parametrize("block_bytes", [7, 25])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("end", [b"\n1 9:1\n", b""])
def test_a_line_too_long_is_one_bad_line(tmp_path, monkeypatch, block_bytes, threads, end):
    monkeypatch.setattr(source_module, "LONGEST_LINE", 50)
    long = b"1 " + b"1:1 " * 60
    path = write(tmp_path, b"1 1:1\n1 2:1\n" + long + end)
    with pytest.raises(StreamError, match=r"data.svm:3:1: the line is longer than 16 MB"):
        read(path, block_bytes=block_bytes, threads=threads)
    kept = io.BytesIO()
    found, stream = read(path, on_bad="skip", bad_lines=kept, block_bytes=block_bytes, threads=threads)
    assert [x for _, x, _ in found] == [{1: 1.0}, {2: 1.0}, *([{9: 1.0}] if end else [])]
    assert stream.n_bad == 1
    assert kept.getvalue() == long + b"\n"
    assert stream.place == Place(1, 0, 0, 1, len(long) + 1)


@pytest.mark.parametrize("n", [760, 900, 1400])
def test_short_lines_behind_one_too_long_are_not_too_long(tmp_path, monkeypatch, n):
    monkeypatch.setattr(source_module, "LONGEST_LINE", 3000)
    long, short = b"1 " + b"1:1 " * n + b"\n", b"1 2:1\n" * 100
    path = write(tmp_path, (short + long) * 10 + short)
    kept = io.BytesIO()
    found, stream = read(path, on_bad="skip", bad_lines=kept, block_bytes=1500)
    assert [x for _, x, _ in found] == [{2: 1.0}] * 1100
    assert (stream.n_bad, kept.getvalue()) == (10, long * 10)


def test_a_byte_order_mark_is_no_label(tmp_path):
    a, b = write(tmp_path, SVM, "a"), write(tmp_path, SVM, "b")
    assert read(a, b)[1].labels == ["1", "-1", "late"]


@pytest.mark.parametrize("block_bytes", [1, 8, 1000])
def test_a_byte_order_mark_begins_a_file_only(tmp_path, block_bytes):
    path = write(tmp_path, b"\xef\xbb\xbf1 1:1\n\xef\xbb\xbf1 1:1\n", "marks.svm")
    assert read(path, block_bytes=block_bytes)[1].labels == ["1", "\ufeff1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "csv"}, "format is 'csv'; it is one of 'auto', 'svmlight', 'vw'"),
        ({"on_bad": "ignore"}, "on_bad is 'ignore'; it is one of 'error', 'skip'"),
        ({"normalize": "l1"}, "normalize is 'l1'"),
        ({"bits": 32}, "bits is 32; it is from 1 to 31"),
        ({"bits": 4, "exact": True}, "features are hashed, bits > 0, or exact, but not both"),
        ({"block_bytes": 0}, "block_bytes is 0; it is from 1 to"),
    ],
)
def test_options_are_checked(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        Stream(write(tmp_path, SVM), **options)


def test_a_stream_like_another_reads_in_the_same_way(tmp_path):
    stream = Stream(write(tmp_path, VW, "a.vw"), normalize="l2", log1p=True)
    list(stream)
    other = stream.like([write(tmp_path, VW, "b.vw")], threads=1)
    assert (other.bits, other.normalize, other.log1p) == (DEFAULT_BITS, "l2", True)
