"""Caches: what is read is what was parsed, the models are the same to the bit, and damage is noticed."""

import builtins
import gzip
import itertools
import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest
from typer.testing import CliRunner

from maxcosine import MCPClassifier, model_file
from maxcosine.cli import app
from maxcosine.compiled import JIT_ENABLED
from maxcosine.index import FeatureIndex
from maxcosine.rules import RULES
from maxcosine.stream import long_lines, source
from maxcosine.stream.cache import is_cache, reader, writing
from maxcosine.stream.cache.header import KEY
from maxcosine.stream.cache.reader import CacheReader
from maxcosine.stream.cache.writing import write
from maxcosine.stream.chunks import Stream
from maxcosine.stream.learner import Settings, StreamLearner
from maxcosine.stream.source import Place, StreamError

N = 400 if JIT_ENABLED else 60

WAYS = {
    "columns": ("svmlight", {}),
    "double": ("svmlight", {"dtype": "float64", "log1p": True}),
    "hashed ids": ("svmlight", {"bits": 12, "normalize": "l2"}),
    "ids": ("svmlight", {"exact": True, "normalize": "l2", "log1p": True}),
    "hashed names": ("vw", {"bits": 12, "log1p": True}),
    "names": ("vw", {"exact": True, "normalize": "l2"}),
}
"""Of each kind of features: a format, and options of a stream."""


def lines_of(format, n=N):
    """Lines with features that come twice and cancel out, zeros, rows of nothing, labels that come late."""
    rng = np.random.default_rng(len(format))
    for k in range(n):
        label = ["spam", "eggs", "-1.50", "日本"][rng.integers(0, 2 + (k > n // 3) + (k > n // 2))]
        ids, values = rng.integers(0, 300, k % 13), rng.integers(-3, 4, k % 13) / 2
        if format == "svmlight":
            yield label + "".join(f" {i}:{v}" for i, v in zip(ids, values, strict=True))
        else:
            weight = f" {rng.integers(1, 3)}" if k > n // 4 else ""
            yield f"{label}{weight} |ä" + "".join(f" n{i}:{v}" for i, v in zip(ids, values, strict=True))


def written(name, folder, n=N):
    """A file of text, and options of a stream."""
    format, options = WAYS[name]
    path = folder / f"text.{format}"
    path.write_text("".join(f"{line}\n" for line in lines_of(format, n)))
    return path, options


@pytest.fixture(params=WAYS)
def way(request, tmp_path):
    return written(request.param, tmp_path)


def content(stream):
    """Every example of a stream, to the bit."""
    found = []
    for rows in stream.rows():
        for k in range(len(rows)):
            parts = [rows[k : k + 1].features] if rows.pieces is None else rows.pieces
            features, values = [], b""
            for letters, starts, columns, data in parts:
                names = [letters[i:j].tobytes() for i, j in itertools.pairwise(starts.tolist())]
                features += columns.tolist() if rows.names is None else names
                values += data.tobytes()
            label = stream.labels[rows.codes[k]] if rows.codes[k] >= 0 else None
            weight = 1.0 if rows.weights is None else rows.weights[k]
            found.append((label, weight, features, values))
    return found


def scored(stream):
    """The rows over an index that knows half of the features, and may not learn."""
    index, found = None, []
    for rows in stream.rows():
        if index is None:
            names = [f"ä^n{k}" for k in range(0, 300, 2)]
            index = FeatureIndex.of(*((range(150), "ids") if rows.names is None else (names, "names")))
        if not len(rows):
            continue
        rows = stream.mapped(rows, index, grow=False)
        ends = rows.indptr.tolist()
        found += [(rows.columns[i:j].tolist(), rows.data[i:j].tobytes()) for i, j in itertools.pairwise(ends)]
    return found


def learnt(streams, path, **settings):
    """The file of the model that learns from these streams, one after another."""
    learner = StreamLearner(Settings(RULES["pa1"], (1.0,), fit_intercept=True, **settings))
    for stream in streams:
        for rows in stream.rows():
            learner.learn(stream, rows)
    model_file.save(learner.model, path)
    return path.read_bytes()


def test_what_is_read_is_what_was_parsed(way, tmp_path, monkeypatch):
    path, options = way
    monkeypatch.setattr(writing, "VALUES_A_BATCH", 300 if JIT_ENABLED else 60)
    told = []
    text = Stream(path, block_bytes=2000, **options)
    n = write(Stream(path, block_bytes=2000, **options), tmp_path / "cache", told.append)
    assert is_cache(tmp_path / "cache")
    assert not is_cache(path)
    stream = Stream(tmp_path / "cache")
    assert content(stream) == content(text)
    assert n == stream.n_examples == told[-1] == N
    assert told == sorted(told)
    assert stream.labels == text.labels
    assert stream.format == "cache"
    assert stream.options == text.options
    assert stream.source.read_bytes == stream.source.total_bytes
    assert stream.place == text.place == Place(1)
    with CacheReader(tmp_path / "cache") as reader:
        assert reader.n_batches > 1
        kind = "names" if text.exact and text.format == "vw" else "ids" if text.exact else "columns"
        assert reader.header.kind == kind
        assert reader.header.applied == (kind != "names")
        assert reader.header.options == text.options


def test_arrays_are_as_those_of_text(way, tmp_path):
    """The same types, so that no kernel is compiled again, and memory of their own."""
    path, options = way
    write(Stream(path, **options), tmp_path / "cache")
    text = next(Stream(path, **options).rows())
    cached = next(Stream(tmp_path / "cache").rows())
    for name in ("indptr", "columns", "data", "codes"):
        one, other = getattr(text, name), getattr(cached, name)
        assert one.dtype == other.dtype, name
        assert other.flags.c_contiguous
        assert other.flags.behaved, name  # aligned, and can be written to
    cached.data[:] = 7
    np.testing.assert_array_equal(next(Stream(tmp_path / "cache").rows()).data, text.data)


@pytest.mark.parametrize("block_bytes", [64, 1000, 1 << 20])
def test_the_size_of_blocks_changes_nothing(way, tmp_path, block_bytes):
    path, options = way
    write(Stream(path, block_bytes=block_bytes, **options), tmp_path / "cache")
    assert content(Stream(tmp_path / "cache")) == content(Stream(path, **options))


@pytest.mark.parametrize("multiclass", ["ovr", "joint"])
def test_models_are_the_same_to_the_bit(way, tmp_path, multiclass):
    path, options = way
    write(Stream(path, block_bytes=1000, **options), tmp_path / "cache")
    settings = {"multiclass": multiclass, "average": True, "dtype": options.get("dtype", "float32")}
    text = learnt((Stream(path, **options) for _ in range(2)), tmp_path / "model", **settings)
    cached = learnt((Stream(tmp_path / "cache") for _ in range(2)), tmp_path / "model", **settings)
    assert text == cached


def test_chunks_are_as_those_of_text(way, tmp_path):
    path, options = way
    write(Stream(path, **options), tmp_path / "cache")
    text, cached = next(iter(Stream(path, **options))), next(iter(Stream(tmp_path / "cache")))
    assert (text.X != cached.X).nnz == 0
    assert text.labels.tolist() == cached.labels.tolist()


def test_goes_on_at_any_example(way, tmp_path, monkeypatch):
    path, options = way
    monkeypatch.setattr(writing, "VALUES_A_BATCH", 100)
    write(Stream(path, block_bytes=500, **options), tmp_path / "cache")
    everything = content(Stream(tmp_path / "cache"))
    for line in range(0, N + 1, 7 if JIT_ENABLED else 20):
        stream = Stream(tmp_path / "cache", start=Place(line=line, bad=3))
        assert content(stream) == everything[line:]
        assert stream.place == Place(1, bad=3)
        assert line < 50 or 0 < stream.source.skipped_bytes <= stream.source.read_bytes
    n = 0
    for rows in Stream([tmp_path / "cache"] * 2, start=Place(1)).rows():
        for k in range(len(rows)):
            assert rows.ends.start(k) == Place(1, line=n)
            n += 1
            assert rows.ends[k] == Place(1, line=n)
            assert rows[k : k + 1].ends[0] == Place(1, line=n)
    assert n == N


def test_several_caches_are_as_one_text(way, tmp_path):
    path, options = way
    text = path.read_text()
    (tmp_path / "both").write_text(text + text)
    write(Stream(path, **options), tmp_path / "cache")
    expected = content(Stream(tmp_path / "both", **options))
    assert content(Stream([tmp_path / "cache"] * 2, threads=1)) == expected
    write(Stream([tmp_path / "cache"] * 2), tmp_path / "joined")
    assert content(Stream(tmp_path / "joined")) == expected


def test_labels_are_known_by_the_rows_that_are_read(tmp_path):
    (tmp_path / "text").write_text("a 1:1\nb 1:1e30\nc 1:1\nb 1:1\n")
    write(Stream(tmp_path / "text"), tmp_path / "cache")
    middle = Stream(tmp_path / "cache", start=Place(line=2))
    assert next(middle.rows()).codes.tolist() == [0, 1]
    assert middle.labels == ["c", "b"]
    limited = Stream(tmp_path / "cache", limits=(1e-9, 1e9), on_bad="skip")
    assert next(limited.rows()).codes.tolist() == [0, 1, 2]
    assert limited.labels == ["a", "c", "b"]


@pytest.mark.parametrize("options", [{"bits": 5}, {"exact": True}])
def test_bad_examples(tmp_path, options):
    """Those without a label, and those that no model can learn from, are bad as lines of text are."""
    (tmp_path / "text").write_text("a 2 | x y\n| z zz\nb | x\nb | y:1e30\n| y\n")
    write(Stream(tmp_path / "text", **options), tmp_path / "cache")
    everything = content(Stream(tmp_path / "cache"))
    assert [label for label, *_ in everything] == ["a", None, "b", "b", None]
    strict = {"labelled": True, "limits": (1e-9, 1e9)}
    with pytest.raises(StreamError, match=r"cache: example 2: the line has no label.*--on-bad skip"):
        list(Stream(tmp_path / "cache", **strict).rows())
    with pytest.raises(StreamError, match="example 4: the example is too long"):
        list(Stream(tmp_path / "cache", **strict, start=Place(line=2)).rows())
    skipping = Stream(tmp_path / "cache", **strict, on_bad="skip")
    (rows,) = skipping.rows()
    assert skipping.n_bad == 3
    assert [message.split(": ")[1] for message in skipping.first_bad] == [f"example {k}" for k in (2, 4, 5)]
    assert rows.codes.tolist() == [0, 1]
    assert rows.weights.tolist() == [2, 1]
    assert rows.indptr.tolist() == [0, 2, 3]
    assert rows.skipped.tolist() == [1, 2, 2]
    assert [rows.ends[0], rows.ends[1]] == [Place(line=2, bad=1), Place(line=5, bad=3)]
    again = Stream(tmp_path / "cache", **strict, on_bad="skip")
    text = Stream(tmp_path / "text", **strict, on_bad="skip", **options)
    assert content(again) == content(text) == [everything[0], everything[2]]
    assert again.n_bad == text.n_bad


def test_weights_are_there_if_the_data_may_have_them(tmp_path):
    (tmp_path / "plain.vw").write_text("a | x\nb | y\n")
    (tmp_path / "plain.svm").write_text("1 1:1\n")
    write(Stream(tmp_path / "plain.vw"), tmp_path / "cache")
    assert pa.ipc.open_file(tmp_path / "cache").read_all()["weight"].to_pylist() == [1, 1]
    assert next(Stream(tmp_path / "cache").rows()).weights is None
    write(Stream(tmp_path / "plain.svm"), tmp_path / "cache")
    assert pa.ipc.open_file(tmp_path / "cache").schema.names == ["label", "columns", "values", "goes_on"]


def test_others_read_it_too(tmp_path):
    (tmp_path / "a.svm").write_text("1 3:1 18446744073709551615:2\n-1 5:0.5\n")
    write(Stream(tmp_path / "a.svm", exact=True), tmp_path / "ids.arrow")
    (tmp_path / "a.vw").write_text("spam 2 |w:2 free win:3\n| ä\n")
    write(Stream(tmp_path / "a.vw", exact=True), tmp_path / "names.arrow")
    with pa.ipc.open_file(tmp_path / "ids.arrow") as file:
        assert file.read_all().to_pylist() == [
            {"label": "1", "ids": [3, 2**64 - 1], "values": [1, 2], "goes_on": False},
            {"label": "-1", "ids": [5], "values": [0.5], "goes_on": False},
        ]
        assert json.loads(file.schema.metadata[KEY]) == {
            "version": 1,
            "kind": "ids",
            "bits": 0,
            "dtype": "float32",
            "normalize": None,
            "log1p": False,
            "applied": True,
            "weighted": False,
            "data": {"a.svm": 38},
        }
    polars = pytest.importorskip("polars")
    assert polars.read_ipc(tmp_path / "names.arrow").to_dicts() == [
        {"label": "spam", "weight": 2, "names": ["w^free", "w^win"], "values": [2, 6], "goes_on": False},
        {"label": None, "weight": 1, "names": ["ä"], "values": [1], "goes_on": False},
    ]


# Examples in parts


FEW = 50


@pytest.fixture(params=WAYS)
def few(request, tmp_path):
    return written(request.param, tmp_path, FEW)


@pytest.fixture
def in_parts(monkeypatch):
    """Lines of more than 20 bytes are long ones, and an example of more than 5 values has parts."""
    monkeypatch.setattr(source, "LONG_LINE", 20)
    monkeypatch.setattr(long_lines, "PIECE_BYTES", 11)
    monkeypatch.setattr(writing, "VALUES_A_BATCH", 5)
    monkeypatch.setattr(writing, "LETTERS_A_BATCH", 12)
    monkeypatch.setattr(writing, "LETTERS_A_ROW", 25)


@pytest.mark.parametrize("block_bytes", [100, 1 << 20])
@pytest.mark.parametrize("threads", [1, 2])
def test_examples_in_parts_are_those_of_text(few, tmp_path, request, block_bytes, threads):
    path, options = few
    expected = content(Stream(path, **options))
    request.getfixturevalue("in_parts")
    n = write(Stream(path, block_bytes=block_bytes, threads=threads, **options), tmp_path / "cache")
    assert n == FEW
    stream = Stream(tmp_path / "cache", threads=threads)
    assert content(stream) == expected
    assert (stream.n_examples, stream.place) == (FEW, Place(1))
    assert stream.source.read_bytes == stream.source.total_bytes
    with pa.ipc.open_file(tmp_path / "cache") as file:
        batches = [file.get_batch(k) for k in range(file.num_record_batches)]
    assert all(len(batch.column("values").values) <= 5 for batch in batches)
    parts = [batch for batch in batches if any(batch.column("goes_on").to_pylist())]
    assert len(parts) > FEW / 2
    assert all(len(part) == 1 for part in parts)
    assert len(batches[-1]) == 0
    write(Stream([tmp_path / "cache"] * 2), tmp_path / "joined")
    assert content(Stream(tmp_path / "joined")) == expected + expected


def test_models_from_examples_in_parts_are_the_same_to_the_bit(few, in_parts, tmp_path):
    path, options = few
    write(Stream(path, **options), tmp_path / "cache")
    settings = {"dtype": options.get("dtype", "float32"), "average": True}
    text = learnt((Stream(path, **options) for _ in range(2)), tmp_path / "model", **settings)
    cached = learnt((Stream(tmp_path / "cache") for _ in range(2)), tmp_path / "model", **settings)
    assert text == cached


@pytest.mark.parametrize("name", ["ids", "names"])
def test_scores_of_examples_in_parts_are_the_same_to_the_bit(in_parts, tmp_path, name):
    path, options = written(name, tmp_path, FEW)
    write(Stream(path, **options), tmp_path / "cache")
    text = scored(Stream(path, **options))
    assert scored(Stream(tmp_path / "cache")) == text
    assert len(text) == FEW
    assert any(columns for columns, _ in text)


def test_goes_on_between_examples_in_parts(few, in_parts, tmp_path):
    path, options = few
    write(Stream(path, **options), tmp_path / "cache")
    everything = content(Stream(tmp_path / "cache"))
    for line in range(0, FEW + 1, 7):
        stream = Stream(tmp_path / "cache", start=Place(line=line))
        assert content(stream) == everything[line:]
    n = 0
    for rows in Stream(tmp_path / "cache").rows():
        for k in range(len(rows)):
            assert rows.ends.start(k) == Place(line=n)
            n += 1
    assert n == FEW


def test_bad_examples_in_parts(in_parts, tmp_path):
    text = "a | x y z xx yy zz xxx\n| z zz x xx y yy zz\nb | x y z xx y:1e30 z zz\nb | x\n"
    (tmp_path / "text.vw").write_text(text)
    for options in ({"exact": True}, {"bits": 9}):
        write(Stream(tmp_path / "text.vw", **options), tmp_path / "cache")
        skipping = Stream(tmp_path / "cache", labelled=True, limits=(1e-9, 1e9), on_bad="skip", threads=1)
        assert [label for label, *_ in content(skipping)] == ["a", "b"]
        assert [message.split(": ")[1] for message in skipping.first_bad] == ["example 2", "example 3"]


def test_names_of_more_letters_than_a_batch(in_parts, tmp_path):
    (tmp_path / "text.vw").write_text(f"a | b {'c' * 99}:2 {'d' * 12} e:3 {'f' * 13}:-1\nb |{'g' * 50} h\n")
    expected = content(Stream(tmp_path / "text.vw", exact=True, threads=1))
    write(Stream(tmp_path / "text.vw", exact=True), tmp_path / "cache")
    assert content(Stream(tmp_path / "cache")) == expected
    names = [b"b", b"c" * 99, b"d" * 12, b"e", b"f" * 13], [b"g" * 50 + b"^h"]
    assert [features for _, _, features, _ in expected] == list(names)


def test_rows_of_more_letters_than_a_batch(tmp_path, monkeypatch):
    """They are whole, with nothing else in their batch, wherever blocks end."""
    monkeypatch.setattr(writing, "LETTERS_A_BATCH", 12)
    monkeypatch.setattr(writing, "LETTERS_A_ROW", 25)
    lines = ["a |nnnn a b", "b |nnnn c d e", "a | f", "b |", "a |nnnn g h i", "b | j k"]
    (tmp_path / "text.vw").write_text("".join(f"{line}\n" for line in lines))
    expected = content(Stream(tmp_path / "text.vw", exact=True))
    for block_bytes in (1, 20, 1 << 20):
        write(Stream(tmp_path / "text.vw", exact=True, block_bytes=block_bytes), tmp_path / "cache")
        write(Stream(tmp_path / "cache"), tmp_path / "again")
        for name in ("cache", "again"):
            assert content(Stream(tmp_path / name)) == expected
            assert not any(pa.ipc.open_file(tmp_path / name).read_all()["goes_on"].to_pylist())


def test_parts_that_make_no_sense(in_parts, tmp_path, monkeypatch):
    (tmp_path / "text.vw").write_text("a | a b c d e f g h i j k l m\nb | x\n")
    cache = tmp_path / "cache"
    write(Stream(tmp_path / "text.vw", exact=True), cache)
    with pa.ipc.open_file(cache) as file:
        schema, batches = file.schema, [file.get_batch(k) for k in range(file.num_record_batches)]
    assert [batch.column("goes_on").to_pylist() for batch in batches] == [[True]] * 3 + [[False], [False], []]

    def refuses_all(message, *found):
        with pa.ipc.new_file(cache, schema) as file:
            for batch in found:
                file.write_batch(batch)
        refuses(cache, message)

    *parts, last, other, end = batches
    refuses_all("example 1: the example goes on, and there is nothing more", *parts)
    refuses_all("example 2: the example goes on, and there is nothing more", other, *parts)
    refuses_all("example 1: the example goes on, and what follows is not one part of it", *parts, end)
    refuses_all("example 1: the last part of the example has features", *parts, other)
    both = pa.Table.from_batches([parts[0], last]).combine_chunks().to_batches()[0]
    refuses_all("example 1: an example that goes on is not alone in its batch", both, *batches)
    nothing = last.set_column(4, schema.field(4), pa.array([None], pa.bool_()))
    refuses_all(r"example 1: something is missing \(null\) in goes_on", nothing)
    monkeypatch.setattr(reader, "MOST_VALUES", 12)
    refuses_all("example 1: the example has more than 12 values", *batches)


def test_parts_that_change_before_they_are_read(in_parts, tmp_path):
    for name, letter in (("one", "a"), ("other", "b")):
        (tmp_path / "text.vw").write_text(f"1 | {' '.join(f'{letter}{k}' for k in range(20))}\n")
        write(Stream(tmp_path / "text.vw", exact=True), tmp_path / name)
    (rows,) = Stream(tmp_path / "one").rows()
    assert sum(len(piece.data) for piece in rows.pieces) == 20
    whole = (tmp_path / "one").read_bytes()
    at = whole.index(b"a7")
    (tmp_path / "one").write_bytes(whole[:at] + b"b" + whole[at + 1 :])
    with pytest.raises(StreamError, match=r"one: the checksum of batch .* is not as written"):
        list(rows.pieces)
    (tmp_path / "one").unlink()
    with pytest.raises(StreamError, match="No such file"):
        list(rows.pieces)


# What goes wrong


@pytest.mark.parametrize("text", ["", "# nothing\n", "a 1:1\n" * 200 + "b 1:x\n"])
def test_nothing_is_left_of_a_file_that_cannot_be_written(tmp_path, text):
    (tmp_path / "text").write_text(text)
    (tmp_path / "cache").write_text("as it was")
    with pytest.raises(StreamError, match=r"there is no example|not a decimal number"):
        write(Stream(tmp_path / "text", block_bytes=100), tmp_path / "cache")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "text"]
    assert (tmp_path / "cache").read_text() == "as it was"


@pytest.fixture
def small(tmp_path):
    """A cache of hashed columns and weights."""
    (tmp_path / "text.vw").write_text("a 2 | x y\nb | z\n|\n")
    write(Stream(tmp_path / "text.vw", bits=5), tmp_path / "cache")
    return tmp_path / "cache"


def changed(path, metadata=None, **columns):
    """Write a cache anew, with some columns replaced and some metadata."""
    with pa.ipc.open_file(path) as file:
        table = file.read_all()
    found = {**json.loads(table.schema.metadata[KEY]), **(metadata or {})}
    for name, values in columns.items():
        given = values if isinstance(values, pa.Array) else pa.array(values, table.schema.field(name).type)
        table = table.set_column(table.schema.names.index(name), name, given)
    table = table.replace_schema_metadata({KEY: json.dumps(found)})
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table)
    return path


def refuses(path, message, start=0):
    with pytest.raises(StreamError, match=message) as caught, CacheReader(path) as reader:
        list(reader.batches(start))
    assert str(caught.value).startswith(f"{path}: ")


def test_a_file_that_was_changed_and_is_sound_is_read(small):
    before = content(Stream(small))
    assert content(Stream(changed(small))) == before


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"columns": [[1, 2], [3, 4], []]}, "example 2: the lists columns and values differ in length.*anew"),
        ({"columns": [[1, 2], [32], []]}, "example 2: the column 32 is not below 32"),
        ({"columns": [[1, None], [3], []]}, r"missing \(null\) in columns"),
        ({"columns": [[1, 2], [3], None]}, r"missing \(null\) in columns"),
        ({"values": [[1, 2], [np.nan], []]}, "example 2: the value nan is not finite"),
        ({"values": [[1, -np.inf], [3], []]}, "example 1: the value -inf is not finite"),
        ({"weight": [1, None, 1]}, r"missing \(null\) in weight"),
        ({"weight": [1, 1, -0.5]}, "example 3: the weight -0.5 is not a number from 0 on"),
        ({"weight": [1, np.inf, 1]}, "example 2: the weight inf"),
        ({"weight": pa.array([1, 2, 3])}, "its columns are label: string, weight: int64"),
    ],
)
def test_examples_that_make_no_sense(small, columns, message):
    refuses(changed(small, **columns), message)


def texts(offsets, letters):
    """Texts whose parts nobody has checked."""
    buffers = [pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(letters)]
    return pa.StringArray.from_buffers(len(offsets) - 1, *buffers)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"label": texts([0, 3, 2, 3], b"abc")}, "example 2: something in label ends before it begins"),
        ({"label": texts([0, 1, 2, 3], b"a\xffc")}, "'utf-8' codec can't decode"),
        ({"names": texts([0, 3, 2, 3], b"abc")}, "example 1: something in names ends before it begins"),
        ({"names": texts([0, 1, 3, 2], b"abc")}, "example 2: something in names ends before it begins"),
        ({"names": texts([0, 1, 2, 3], b"ac\xff")}, "'utf-8' codec can't decode"),
        ({"names": texts([0, 1, 2, 3], "aä".encode())}, "begins in the middle of a letter"),
    ],
)
def test_texts_that_are_none(tmp_path, columns, message):
    (tmp_path / "text.vw").write_text("a | x y\nb | z\nc |\n")
    write(Stream(tmp_path / "text.vw", exact=True), tmp_path / "cache")
    if "names" in columns:
        columns = {"names": pa.ListArray.from_arrays(pa.array([0, 2, 3, 3], pa.int32()), columns["names"])}
    refuses(changed(tmp_path / "cache", **columns), message)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"version": 2}, "of version 2, and this maxcosine reads versions up to 1; update"),
        ({"version": "new", "kind": None}, "what it says of itself makes no sense"),
        ({"kind": "ids"}, "makes no sense"),
        ({"kind": "ids", "bits": 0}, "its columns are .*columns: list<item: uint32>"),
        ({"weighted": False}, "its columns are"),
        *[({name: bad}, "makes no sense") for name, bad in
          [("bits", 32), ("bits", True), ("dtype", "int8"), ("normalize", "l1"), ("log1p", 0), ("kind", [])]],
    ],
)  # fmt: skip
def test_metadata_that_makes_no_sense(small, metadata, message):
    refuses(changed(small, metadata), message)


@pytest.mark.parametrize(
    "metadata",
    [
        b"[]",
        b"{",
        b"\xff",
        b"{}",
        b"1",
        b'{"version": 1}',
        b"[" * 200_000,
        b'{"version": %s}' % (b"1" * 5000),
    ],
    ids=lambda metadata: metadata[:16],
)
def test_metadata_that_cannot_be_understood(small, metadata):
    with pa.ipc.open_file(small) as file:
        table = file.read_all().replace_schema_metadata({KEY: metadata})
    with pa.ipc.new_file(small, table.schema) as file:
        file.write_table(table)
    refuses(small, "what it says of itself cannot be understood")


def test_a_batch_of_nothing_may_lack_what_says_where_rows_begin(tmp_path, small):
    """Arrow allows it. It ends a process that asks pyarrow for the size of such a batch."""
    expected = content(Stream(small))
    with pa.ipc.open_file(small) as file:
        schema, batch = file.schema, file.get_batch(0)
    nothing = [
        pa.Array.from_buffers(
            column.type, 0, [None, pa.py_buffer(b"")], children=[pa.nulls(0, column.type.value_type)]
        )
        if pa.types.is_list(column.type)
        else pa.nulls(0, column.type)
        for column in schema
    ]
    empty = pa.RecordBatch.from_arrays(nothing, schema=schema)
    with pa.ipc.new_file(small, schema) as file:
        for given in (empty, batch, empty):
            file.write_batch(given)
    assert content(Stream(small)) == expected
    assert content(Stream(small, start=Place(line=1))) == expected[1:]


def test_files_that_are_no_caches(tmp_path, small):
    refuses(tmp_path / "none", "No such file")
    refuses(tmp_path / "text.vw", "not an Arrow file.*`maxcosine convert`")
    refuses(tmp_path, "Is a directory")
    (tmp_path / "empty").touch()
    refuses(tmp_path / "empty", "not an Arrow file")
    with pa.ipc.new_file(tmp_path / "foreign", pa.schema({"x": pa.int64()})):
        pass
    refuses(tmp_path / "foreign", "not one of examples that maxcosine wrote; write one")
    refuses(small, "ends before the place to go on from, example 5; it is not the file it was", start=4)


def test_every_cut_is_noticed(small):
    whole = small.read_bytes()
    for size in range(len(whole) - 1, 0, -97):
        small.write_bytes(whole[:size])
        refuses(small, "cut short or damaged|not an Arrow file")


@pytest.mark.parametrize("options", [{"bits": 8}, {"exact": True}])
@pytest.mark.parametrize("parts", [False, True])
def test_no_damage_ends_the_process(tmp_path, options, parts, request):
    """A bit that is wrong is an error that says so, unless it is one that nobody reads."""
    if parts:
        request.getfixturevalue("in_parts")
    n_lines, n_times = (12, 150) if parts else (30, 600)
    (tmp_path / "text.vw").write_text("".join(f"{line}\n" for line in lines_of("vw", n_lines)))
    write(Stream(tmp_path / "text.vw", **options), tmp_path / "cache")
    expected = content(Stream(tmp_path / "cache"))
    whole, rng = (tmp_path / "cache").read_bytes(), np.random.default_rng(0)
    found = 0
    for _ in range(n_times):
        broken = bytearray(whole)
        broken[rng.integers(len(whole))] ^= 1 << rng.integers(0, 8)
        (tmp_path / "cache").write_bytes(broken)
        try:
            assert content(Stream(tmp_path / "cache", format="cache", threads=1)) == expected
        except StreamError:
            found += 1
    assert found > n_times / 2


def test_without_pyarrow(tmp_path, small, monkeypatch):
    for name in list(sys.modules):
        if name.split(".")[0] == "pyarrow":
            monkeypatch.delitem(sys.modules, name)
    original = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] == "pyarrow":
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(StreamError, match=r"pip install 'maxcosine\[stream\]'"):
        CacheReader(small)
    with pytest.raises(StreamError, match=r"pip install 'maxcosine\[stream\]'"):
        write(Stream(tmp_path / "text.vw"), tmp_path / "other")


# Streams and caches


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"bits": 6},
            "this cache was written with bits = 5, and an option or the model says 6; give the same",
        ),
        ({"dtype": "float64"}, "written with dtype = float32, .* says float64"),
        ({"normalize": "l2"}, "written with normalize = None, .* says l2"),
        ({"log1p": True}, "written with log1p = False, .* says True"),
        ({"exact": True}, "written with bits = 5|written with exact = False"),
        ({"strict": True}, "written with bits = 5, .* says 0"),
    ],
)
def test_options_that_a_cache_has_otherwise(small, options, message):
    with pytest.raises(StreamError, match=message) as caught:
        Stream(small, **options)
    assert str(caught.value).startswith(f"{small}: ")


def test_options_that_a_cache_has_just_so(small):
    for options in ({}, {"bits": 5}, {"bits": 5, "strict": True, "dtype": "float32"}, {"format": "cache"}):
        assert Stream(small, **options).options == Stream(small).options
    assert content(Stream(small.with_name("text.vw")).like([small], bits=5)) == content(Stream(small))


def test_caches_that_differ(small, tmp_path):
    write(Stream(tmp_path / "text.vw", bits=6), tmp_path / "other")
    with pytest.raises(StreamError, match=r"other: this cache was written with bits = 6, and .*cache says 5"):
        Stream([small, tmp_path / "other"])
    (tmp_path / "text.svm").write_text("1 1:1\n")
    write(Stream(tmp_path / "text.svm", exact=True), tmp_path / "ids")
    write(Stream(tmp_path / "text.vw", exact=True), tmp_path / "names")
    with pytest.raises(
        StreamError, match=r"names: this cache was written with kind = names, and .*ids says ids"
    ):
        Stream([tmp_path / "ids", tmp_path / "names"])


def test_caches_and_other_inputs(small, tmp_path):
    text = tmp_path / "text.vw"
    for inputs in ([small, text], [text, small], [small, "-"]):
        with pytest.raises(StreamError, match=r"cache is a cache, and .* is not; give caches only, or text"):
            Stream(inputs)
    with pytest.raises(StreamError, match=r"standard input is no cache.*name the file"):
        Stream("-", format="cache")
    with pytest.raises(StreamError, match="not an Arrow file"):
        Stream(text, format="cache")
    (tmp_path / "packed").write_bytes(gzip.compress(small.read_bytes()))
    with pytest.raises(
        StreamError, match="a cache is read as it lies on disk; name the file itself, unpacked"
    ):
        list(Stream(tmp_path / "packed").rows())


def test_what_only_text_has(small, tmp_path):
    with pytest.raises(
        StreamError, match="names of hashed features are not in a cache; leave out --keep-names"
    ):
        list(Stream(small, keep_names=True).rows())
    with (tmp_path / "bad").open("wb") as file, pytest.raises(StreamError, match="no lines to write to"):
        list(Stream(small, bad_lines=file).rows())


# The commands


def run(*arguments, fails=None):
    """Run a command in this process; returns what it printed."""
    ran = CliRunner().invoke(app(), list(map(str, arguments)))
    if fails is None:
        assert ran.exception is None, (ran.output, ran.exception)
    else:
        assert fails in str(ran.exception)
    return ran.stdout


def test_commands_take_caches(way, tmp_path):
    """Whatever they tell of text they tell of its cache, and models are the same to the bit."""
    path, options = way
    arrow = tmp_path / "text.arrow"
    given = []
    for name, value in options.items():
        given += ["--float64"] if name == "dtype" else [f"--{name}", *([] if value is True else [value])]
    run("convert", path, "--output", arrow, *given)
    told = {}
    for data, way_of in ((path, given), (arrow, [])):
        models = tmp_path / f"{data.name}.models"
        run("train", data, *way_of, "--model", models / "one", "--json")
        often = ["--passes", 2, "--checkpoint", models / "c", "--checkpoint-every", N // 3]
        run("train", data, *way_of, "--model", models / "two", *often)
        run("train", data, *way_of, "--model", models / "resumed", *often, "--resume")
        run("train", data, "--model", models / "more", "--init", models / "one")
        run("predict", models / "one", data, "--output", models / "predicted", "--scores")
        trained = run("train", data, *way_of, "--model", models / "tested", "--test", arrow, "--json")
        compared = []
        if "dtype" not in options:
            compared = json.loads(
                run("compare", data, *way_of, "--rules", "mcp,pa", "--split", 0.3, "--json")
            )
            for rule in compared["rules"]:
                del rule["seconds"]
        told[data] = (
            [model_file.digest(models / name) for name in ("one", "two", "resumed", "more", "tested")],
            (models / "predicted").read_text(),
            json.loads(run("evaluate", models / "one", data, "--json")),
            json.loads(trained)["test_error"],
            compared,
        )
    assert told[path] == told[arrow]
    digests = told[path][0]
    assert digests[0] == digests[4]
    assert digests[1] == digests[2]
    # and one may take the place of the other once there is a model
    assert (
        json.loads(run("evaluate", tmp_path / "text.arrow.models" / "one", path, "--json")) == told[path][2]
    )


def test_a_training_that_was_interrupted_goes_on_from_a_cache(way, tmp_path, monkeypatch):
    path, options = way
    monkeypatch.setattr(writing, "VALUES_A_BATCH", 50)
    write(Stream(path, block_bytes=500, **options), tmp_path / "cache")
    run("train", tmp_path / "cache", "--model", tmp_path / "whole")
    again = ["train", tmp_path / "cache", "--model", tmp_path / "model", "--checkpoint", tmp_path / "c"]
    learn, calls = StreamLearner.learn, itertools.count()

    def interrupted(*arguments, **options):
        if next(calls) == 17:
            raise KeyboardInterrupt
        return learn(*arguments, **options)

    monkeypatch.setattr(StreamLearner, "learn", interrupted)
    ran = CliRunner().invoke(app(), [*map(str, again), "--checkpoint-every", "7"])
    assert ran.exit_code
    assert (tmp_path / "c").exists()
    told = json.loads(run(*again, "--checkpoint-every", 7, "--resume", "--json"))
    assert 0 < told["resumed_at"] < told["examples"] == N
    assert model_file.digest(tmp_path / "model") == model_file.digest(tmp_path / "whole")


def test_estimators_take_caches(tmp_path):
    (tmp_path / "text.svm").write_text("".join(f"{line}\n" for line in lines_of("svmlight")))
    write(Stream(tmp_path / "text.svm"), tmp_path / "cache")
    text, cached = (MCPClassifier().fit_stream(tmp_path / name) for name in ("text.svm", "cache"))
    np.testing.assert_array_equal(text.coef_, cached.coef_)


def test_a_model_and_a_cache_that_do_not_fit(tmp_path):
    (tmp_path / "text.svm").write_text("a 1:1\nb 2:1\n")
    run("convert", tmp_path / "text.svm", "-o", tmp_path / "l2", "--normalize", "l2")
    run("train", tmp_path / "text.svm", "--model", tmp_path / "model")
    for command in (["predict"], ["evaluate"]):
        run(*command, tmp_path / "model", tmp_path / "l2", fails="written with normalize = l2, and an option")
    again = ["train", tmp_path / "l2", "--model", tmp_path / "other"]
    run(*again, "--init", tmp_path / "model", fails="written with normalize = l2, and an option or the model")
    run(*again, "--bits", 7, fails="written with bits = 0, and an option or the model says 7")
    run(*again, "--on-bad", "skip", "--bad-lines", tmp_path / "bad", fails="no lines to write to --bad-lines")


def test_convert(tmp_path):
    text, arrow, bad = tmp_path / "text.vw", tmp_path / "out" / "text.arrow", tmp_path / "bad"
    text.write_text("a 2 | x:3 y\nb | z:x\nb | z\n")
    arguments = ["convert", text, "--output", arrow, "--bits", 9, "--log1p", "--float64", "--threads", 1]
    run(*arguments, fails="text.vw:2:7: this is not a decimal number")
    assert not arrow.exists()
    skipping = [*arguments, "--on-bad", "skip", "--bad-lines", bad, "--normalize", "l2"]
    told = json.loads(run(*skipping, "--json"))
    assert told.pop("seconds") > 0
    assert told.pop("first_bad_lines")[0].startswith(f"{text}:2:7: ")
    options = {"bits": 9, "exact": False, "dtype": "float64", "normalize": "l2", "log1p": True}
    assert told == {
        "output": str(arrow),
        "examples": 2,
        "labels": 2,
        **options,
        "bytes_read": 26,
        "bytes_written": arrow.stat().st_size,
        "bad_lines": 1,
    }
    assert bad.read_text() == "b | z:x\n"
    assert content(Stream(arrow)) == content(Stream(text, on_bad="skip", **options))
    shown = run(*skipping)
    assert "26 bytes" in shown
    assert "\x1b" not in shown
    run("convert", text, "-o", text, fails=f"--output {text} is an input, too; name another file")
    run("convert", arrow, "-o", arrow, fails="is an input, too")
    run("convert", text, "-o", tmp_path, fails="is a folder; name a file in it")


def test_pyarrow_is_imported_for_caches_only(tmp_path):
    (tmp_path / "text.svm").write_text("a 1:1\nb 2:1\n")
    code = """
import sys
from typer.testing import CliRunner
from maxcosine.cli import app
def imported(*arguments):
    ran = CliRunner().invoke(app(), arguments)
    assert ran.exception is None, ran.output
    return {name for name in ("pyarrow", "pandas") if name in sys.modules}
assert not imported("convert", "--help")
assert not imported("train", "text.svm", "--model", "model")
assert imported("convert", "text.svm", "-o", "text.arrow") == {"pyarrow"}
assert imported("train", "text.arrow", "--model", "model") == {"pyarrow"}
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=300)
