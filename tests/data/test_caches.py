"""Caches: reading gives the examples that were parsed, models are the same to the bit, damage is noticed."""

import builtins
import gzip
import itertools
import json
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest

from maxcosine import MCPClassifier, model_file
from maxcosine.data import Place, ReadOptions, Stream, StreamError, caches, is_cache, open_stream, write_cache
from maxcosine.data.batch import Names
from maxcosine.data.cache_file import KEY
from maxcosine.rules import RULES
from maxcosine.training import Settings, StreamLearner

N = 400

WAYS = {
    "columns": ("svmlight", {}),
    "double": ("svmlight", {"dtype": "float64", "log1p": True}),
    "hashed ids": ("svmlight", {"bits": 12, "normalize": "l2"}),
    "ids": ("svmlight", {"exact": True, "normalize": "l2", "log1p": True}),
    "hashed names": ("vw", {"bits": 12, "log1p": True}),
    "names": ("vw", {"exact": True, "normalize": "l2"}),
}
"""For each kind of features: a format, and options."""


def lines_of(format, n=N):
    """Write lines with repeated features, sums and values of 0, empty rows, and labels that appear late."""
    rng = np.random.default_rng(len(format))
    for k in range(n):
        label = ["spam", "eggs", "-1.50", "日本"][rng.integers(0, 2 + (k > n // 3) + (k > n // 2))]
        ids, values = rng.integers(0, 300, k % 13), rng.integers(-3, 4, k % 13) / 2
        if format == "svmlight":
            yield label + "".join(f" {i}:{v}" for i, v in zip(ids, values, strict=True))
        else:
            weight = f" {rng.integers(1, 3)}" if k > n // 4 else ""
            yield f"{label}{weight} |ä" + "".join(f" n{i}:{v}" for i, v in zip(ids, values, strict=True))


@pytest.fixture(params=WAYS)
def way(request, tmp_path):
    """A file of text, and options."""
    format, options = WAYS[request.param]
    path = tmp_path / f"text.{format}"
    path.write_text("".join(f"{line}\n" for line in lines_of(format)))
    return path, options


def content(stream):
    """Return every example of a stream, to the bit."""
    found = []
    for batch in stream.batches():
        if isinstance(batch.keys, Names):
            letters, starts = batch.keys
            keys = [letters[i:j].tobytes() for i, j in itertools.pairwise(starts.tolist())]
        else:
            keys = batch.keys.tolist()
        for k, (i, j) in enumerate(itertools.pairwise(batch.indptr.tolist())):
            label = stream.labels.names[batch.codes[k]] if batch.codes[k] >= 0 else None
            weight = 1.0 if batch.weights is None else batch.weights[k]
            found.append((label, weight, keys[i:j], batch.values[i:j].tobytes()))
    return found


def learnt(streams, path, **settings):
    """Return the file of the model that learns from streams, one after another."""
    learner = StreamLearner(Settings(RULES["pa1"], (1.0,), fit_intercept=True, **settings))
    for stream in streams:
        for batch in stream.batches():
            learner.learn(stream, batch)
    model_file.save(learner.model, path)
    return path.read_bytes()


@pytest.mark.parametrize("name", ["cache.arrow", "cache.parquet"])
def test_a_cache_has_the_examples_of_the_text(way, tmp_path, monkeypatch, name):
    path, options = way
    monkeypatch.setattr(caches, "GROUP_BYTES", 5000)
    progress, text = [], open_stream(path, block_bytes=2000, **options)
    n = write_cache(open_stream(path, block_bytes=2000, **options), tmp_path / name, progress.append)
    assert is_cache(tmp_path / name)
    assert not is_cache(path)
    stream = Stream(tmp_path / name)
    assert content(stream) == content(text)
    assert n == stream.n_examples == progress[-1] == N
    assert progress == sorted(progress)
    assert stream.labels.names == text.labels.names
    assert stream.options.format == "cache"
    assert stream.options.feature_options == text.options.feature_options
    assert stream.inputs.read_bytes == stream.inputs.total_bytes
    assert stream.place == text.place == Place(1)
    # A cache can be converted again, and several are read as one text.
    write_cache(Stream([tmp_path / name] * 2, ReadOptions(threads=1)), tmp_path / "both.arrow")
    assert content(Stream(tmp_path / "both.arrow")) == content(Stream([path, path], ReadOptions(**options)))


def test_the_name_tells_how_a_cache_is_written(way, tmp_path):
    path, options = way
    for name, magic in (("a.arrow", b"ARROW1"), ("a", b"ARROW1"), ("a.PARQUET", b"PAR1")):
        write_cache(open_stream(path, **options), tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(magic)


@pytest.mark.parametrize("multiclass", ["ovr", "joint"])
def test_models_are_the_same_to_the_bit(way, tmp_path, multiclass):
    path, options = way
    write_cache(open_stream(path, block_bytes=1000, **options), tmp_path / "cache")
    settings = {"multiclass": multiclass, "average": True, "dtype": options.get("dtype", "float32")}
    text = learnt((open_stream(path, **options) for _ in range(2)), tmp_path / "model", **settings)
    cached = learnt((Stream(tmp_path / "cache") for _ in range(2)), tmp_path / "model", **settings)
    assert text == cached


@pytest.mark.parametrize("name", ["cache.arrow", "cache.parquet"])
def test_reading_continues_at_any_example(way, tmp_path, monkeypatch, name):
    path, options = way
    monkeypatch.setattr(caches, "GROUP_BYTES", 2000)
    write_cache(open_stream(path, block_bytes=500, **options), tmp_path / name)
    everything = content(Stream(tmp_path / name))
    for line in range(0, N + 1, 19):
        stream = Stream(tmp_path / name, start=Place(line=line, bad=3))
        assert content(stream) == everything[line:]
        assert stream.place == Place(1, bad=3)
        assert line < 100 or 0 < stream.inputs.skipped_bytes <= stream.inputs.read_bytes
    n = 0
    for batch in Stream([tmp_path / name] * 2, start=Place(1)).batches():
        for k in range(len(batch)):
            assert batch.places.start(k) == Place(1, line=n)
            n += 1
            after = batch.places.after if k + 1 == len(batch) else Place(1, line=n)
            assert batch[k : k + 1].places.end(0) == batch.places.end(k) == after
    assert n == N


def test_labels_are_known_by_the_rows_that_are_read(tmp_path):
    (tmp_path / "text").write_text("a 1:1\nb 1:1e30\nc 1:1\nb 1:1\n")
    write_cache(Stream(tmp_path / "text"), tmp_path / "cache")
    middle = Stream(tmp_path / "cache", start=Place(line=2))
    assert next(middle.batches()).codes.tolist() == [0, 1]
    assert middle.labels.names == ["c", "b"]
    learnable = open_stream(tmp_path / "cache", purpose="learn", on_bad="skip")
    assert next(learnable.batches()).codes.tolist() == [0, 1, 2]
    assert learnable.labels.names == ["a", "c", "b"]


@pytest.mark.parametrize("options", [{"bits": 5}, {"exact": True}])
def test_bad_examples_are_skipped_as_lines_of_text_are(tmp_path, options):
    (tmp_path / "text").write_text("a 2 | x y\n| z zz\nb | x\nb | y:1e30\n| y\n")
    write_cache(open_stream(tmp_path / "text", **options), tmp_path / "cache")
    everything = content(Stream(tmp_path / "cache"))
    assert [label for label, *_ in everything] == ["a", None, "b", "b", None]
    with pytest.raises(StreamError, match=r"cache: example 2: the line has no label.*--on-bad skip"):
        content(open_stream(tmp_path / "cache", purpose="learn"))
    with pytest.raises(StreamError, match="example 4: the example is too long"):
        content(Stream(tmp_path / "cache", ReadOptions(purpose="learn"), start=Place(line=2)))
    skipping = open_stream(tmp_path / "cache", purpose="learn", on_bad="skip")
    (batch,) = skipping.batches()
    assert skipping.n_bad == 3
    messages = [message.split(": ")[1] for message in skipping.bad.messages]
    assert messages == [f"example {k}" for k in (2, 4, 5)]
    assert (batch.codes.tolist(), batch.weights.tolist()) == ([0, 1], [2, 1])
    assert (batch.indptr.tolist(), batch.skipped.tolist()) == ([0, 2, 3], [1, 2, 2])
    assert [(place.line, place.bad) for place in map(batch.places.end, (0, 1))] == [(2, 1), (0, 3)]
    text = open_stream(tmp_path / "text", purpose="learn", on_bad="skip", **options)
    again = open_stream(tmp_path / "cache", purpose="learn", on_bad="skip")
    assert content(again) == content(text) == [everything[0], everything[2]]
    assert again.n_bad == text.n_bad


def test_a_cache_has_weights_if_the_format_has_them(tmp_path):
    (tmp_path / "plain.vw").write_text("a | x\nb | y\n")
    (tmp_path / "plain.svm").write_text("1 1:1\n")
    write_cache(Stream(tmp_path / "plain.vw"), tmp_path / "cache")
    assert pa.ipc.open_file(tmp_path / "cache").read_all()["weight"].to_pylist() == [1, 1]
    assert next(Stream(tmp_path / "cache").batches()).weights is None
    write_cache(Stream(tmp_path / "plain.svm"), tmp_path / "cache")
    assert pa.ipc.open_file(tmp_path / "cache").schema.names == ["label", "columns", "values"]


def test_other_programs_read_caches(tmp_path):
    (tmp_path / "a.svm").write_text("1 3:1 18446744073709551615:2\n-1 5:0.5\n")
    write_cache(open_stream(tmp_path / "a.svm", exact=True), tmp_path / "ids.parquet")
    (tmp_path / "a.vw").write_text("spam 2 |w:2 free win:3\n| ä\n")
    write_cache(open_stream(tmp_path / "a.vw", exact=True), tmp_path / "names.arrow")
    table = pa.parquet.read_table(tmp_path / "ids.parquet")
    assert table.to_pylist() == [
        {"label": "1", "ids": [3, 2**64 - 1], "values": [1, 2]},
        {"label": "-1", "ids": [5], "values": [0.5]},
    ]
    assert json.loads(table.schema.metadata[KEY]) == {
        "version": 2,
        "text": "svmlight",
        "bits": 0,
        "exact": True,
        "dtype": "float32",
        "normalize": None,
        "log1p": False,
        "data": {"a.svm": 38},
    }
    polars = pytest.importorskip("polars")
    assert polars.read_ipc(tmp_path / "names.arrow").to_dicts() == [
        {"label": "spam", "weight": 2, "names": ["w^free", "w^win"], "values": [2, 6]},
        {"label": None, "weight": 1, "names": ["ä"], "values": [1]},
    ]


# Damage


@pytest.mark.parametrize("text", ["", "# nothing\n", "a 1:1\n" * 200 + "b 1:x\n"])
def test_a_conversion_that_fails_leaves_the_old_file(tmp_path, text):
    (tmp_path / "text").write_text(text)
    (tmp_path / "cache").write_text("old")
    with pytest.raises(StreamError, match=r"there is no example|not a decimal number"):
        write_cache(open_stream(tmp_path / "text", block_bytes=100), tmp_path / "cache")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "text"]
    assert (tmp_path / "cache").read_text() == "old"


@pytest.fixture
def small(tmp_path):
    """A cache of hashed columns and weights."""
    (tmp_path / "text.vw").write_text("a 2 | x y\nb | z\n|\n")
    write_cache(open_stream(tmp_path / "text.vw", bits=5), tmp_path / "cache")
    return tmp_path / "cache"


def changed(path, metadata=None, **columns):
    """Write a cache again, with other columns and metadata."""
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
    with pytest.raises(StreamError, match=message) as caught:
        content(Stream(path, ReadOptions(format="cache"), start=Place(line=start)))
    assert str(caught.value).startswith(f"{path}: ")


def test_a_file_that_was_changed_correctly_is_read(small):
    before = content(Stream(small))
    assert content(Stream(changed(small))) == before
    changed(small, columns=[[7, 7], [3], []])
    ((_, _, first, values), *_) = content(Stream(small))
    assert (first, np.frombuffer(values, np.float32).tolist()) == ([7], [2])  # equal columns are added up


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"columns": [[1, 2], [3, 4], []]}, "example 2: the lists columns and values differ in length"),
        ({"columns": [[1, 2], [32], []]}, "example 2: the column 32 is not below 32"),
        ({"columns": [[1, None], [3], []]}, r"missing \(null\) in columns"),
        ({"columns": [[1, 2], [3], None]}, r"missing \(null\) in columns"),
        ({"values": [[1, 2], [np.nan], []]}, "example 2: the value nan is not finite"),
        ({"values": [[1, -np.inf], [3], []]}, "example 1: the value -inf is not finite"),
        ({"weight": [1, None, 1]}, r"missing \(null\) in weight"),
        ({"weight": [1, 1, -0.5]}, "example 3: the weight -0.5 is not a finite number, 0 or more"),
        ({"weight": [1, np.inf, 1]}, "example 2: the weight inf"),
        ({"weight": pa.array([1, 2, 3])}, "its columns are label: string, weight: int64"),
    ],
)
def test_columns_that_are_wrong_are_refused(small, columns, message):
    refuses(changed(small, **columns), message)


def texts(offsets, letters):
    """Return an array of texts that has not been checked."""
    buffers = [pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(letters)]
    return pa.StringArray.from_buffers(len(offsets) - 1, *buffers)


@pytest.mark.parametrize(
    "columns",
    [
        {"label": texts([0, 3, 2, 3], b"abc")},
        {"label": texts([0, 1, 2, 3], b"a\xffc")},
        {"names": texts([0, 3, 2, 3], b"abc")},
        {"names": texts([0, 1, 2, 3], b"ac\xff")},
    ],
)
def test_texts_that_are_wrong_are_refused(tmp_path, columns):
    (tmp_path / "text.vw").write_text("a | x y\nb | z\nc |\n")
    write_cache(open_stream(tmp_path / "text.vw", exact=True), tmp_path / "cache")
    if "names" in columns:
        columns = {"names": pa.ListArray.from_arrays(pa.array([0, 2, 3, 3], pa.int32()), columns["names"])}
    refuses(changed(tmp_path / "cache", **columns), "cannot be read: .*; it is cut short or damaged")


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"version": 3}, "it has version 3, and this maxcosine reads version 2; update maxcosine, or write"),
        ({"version": 1}, "it has version 1, and this maxcosine reads version 2"),
        ({"exact": True, "bits": 0}, "its columns are .*columns: list<item: uint32>"),
        ({"bits": 32}, "its metadata cannot be understood"),
        ({"dtype": "int8"}, "its metadata cannot be understood"),
        ({"dtype": "float64"}, "its columns are"),
        ({"normalize": "l1"}, "its metadata cannot be understood"),
    ],
)
def test_metadata_that_are_wrong_are_refused(small, metadata, message):
    refuses(changed(small, metadata), message)


@pytest.mark.parametrize("metadata", [b"[]", b"{", b"\xff", b"{}", b"1", b'{"version": 2}', b"[" * 200_000])
def test_metadata_that_are_no_json_are_refused(small, metadata):
    with pa.ipc.open_file(small) as file:
        table = file.read_all().replace_schema_metadata({KEY: metadata})
    with pa.ipc.new_file(small, table.schema) as file:
        file.write_table(table)
    refuses(small, "its metadata cannot be understood")


def test_an_empty_batch_may_lack_its_offsets(small):
    """Arrow allows it, and pyarrow crashes when it is asked for the size of such a batch."""
    expected = content(Stream(small))
    with pa.ipc.open_file(small) as file:
        schema, batch = file.schema, file.get_batch(0)
    nothing = [
        pa.Array.from_buffers(column.type, 0, [None, pa.py_buffer(b"")], children=[pa.nulls(0, column.type.value_type)])
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


def test_files_that_are_no_caches_are_refused(tmp_path, small):
    refuses(tmp_path / "text.vw", "neither an Arrow nor a Parquet file.*`maxcosine convert`")
    (tmp_path / "empty").touch()
    refuses(tmp_path / "empty", "neither an Arrow nor a Parquet file")
    with pa.ipc.new_file(tmp_path / "foreign", pa.schema({"x": pa.int64()})):
        pass
    refuses(tmp_path / "foreign", "this is an Arrow file of records, with the columns x; name the column of the labels")
    refuses(small, "ends before the place to continue from, example 5; it has changed", start=4)


@pytest.mark.parametrize("name", ["cache.arrow", "cache.parquet"])
@pytest.mark.parametrize("options", [{"bits": 8}, {"exact": True}])
def test_damage_is_an_error_or_harmless(tmp_path, options, name):
    """No cut goes unnoticed, and no wrong bit ends the process."""
    (tmp_path / "text.vw").write_text("".join(f"{line}\n" for line in lines_of("vw", 30)))
    path = tmp_path / name
    write_cache(open_stream(tmp_path / "text.vw", **options), path)
    whole, rng = path.read_bytes(), np.random.default_rng(1)
    for size in range(len(whole) - 1, 0, -197):
        path.write_bytes(whole[:size])
        refuses(path, "cut short or damaged|neither an Arrow nor a Parquet file")
    for _ in range(150):
        broken = bytearray(whole)
        broken[rng.integers(len(whole))] ^= 1 << rng.integers(0, 8)
        path.write_bytes(broken)
        with suppress(StreamError):
            content(open_stream(path, format="cache", threads=1))


def test_a_missing_pyarrow_is_an_error_that_names_it(tmp_path, small, monkeypatch):
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
        Stream(small)
    with pytest.raises(StreamError, match=r"pip install 'maxcosine\[stream\]'"):
        write_cache(Stream(tmp_path / "text.vw"), tmp_path / "other")


# Options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"bits": 6},
            "this cache was written with bits = 5, and an option or the model says 6; give",
        ),
        ({"dtype": "float64"}, "written with dtype = float32, .* says float64"),
        ({"normalize": "l2"}, "written with normalize = None, .* says l2"),
        ({"log1p": True}, "written with log1p = False, .* says True"),
        ({"exact": True}, "written with exact = False"),
        ({"strict": True}, "written with bits = 5, .* says 0"),
    ],
)
def test_options_that_contradict_a_cache_are_refused(small, options, message):
    with pytest.raises(StreamError, match=message) as caught:
        open_stream(small, **options)
    assert str(caught.value).startswith(f"{small}: ")


def test_options_that_fit_a_cache_are_accepted(small):
    for options in ({}, {"bits": 5}, {"bits": 5, "strict": True}, {"format": "cache"}):
        found = open_stream(small, **options).options
        assert found.feature_options == Stream(small).options.feature_options
    assert content(Stream(small.with_name("text.vw")).like([small], bits=5)) == content(Stream(small))


def test_caches_that_differ_are_refused(small, tmp_path):
    write_cache(open_stream(tmp_path / "text.vw", bits=6), tmp_path / "other")
    with pytest.raises(StreamError, match=r"other: this cache was written with bits = 6, and .*cache says 5"):
        Stream([small, tmp_path / "other"])
    (tmp_path / "text.svm").write_text("1 1:1\n")
    write_cache(open_stream(tmp_path / "text.svm", exact=True), tmp_path / "ids")
    write_cache(open_stream(tmp_path / "text.vw", exact=True), tmp_path / "names")
    with pytest.raises(StreamError, match=r"names: this cache was written with kind = names, .*ids says ids"):
        Stream([tmp_path / "ids", tmp_path / "names"])


def test_caches_and_text_are_not_mixed(small, tmp_path):
    text = tmp_path / "text.vw"
    for inputs in ([small, text], [text, small], [small, "-"]):
        with pytest.raises(StreamError, match=r"cache is a cache, and .* is not; give caches only, or text"):
            Stream(inputs)
    with pytest.raises(StreamError, match=r"standard input is not a cache.*name the file"):
        open_stream("-", format="cache")
    (tmp_path / "packed").write_bytes(gzip.compress(small.read_bytes()))
    with pytest.raises(StreamError, match="a cache is not read from a pipe or an archive"):
        content(Stream(tmp_path / "packed"))


def test_options_that_only_text_has_are_refused(small, tmp_path):
    with pytest.raises(StreamError, match="not have the names of hashed features; leave out --keep-names"):
        content(open_stream(small, keep_names=True))
    with (tmp_path / "bad").open("wb") as file, pytest.raises(StreamError, match="no lines to write to"):
        Stream(small, bad_lines=file)


def test_estimators_take_caches(tmp_path):
    (tmp_path / "text.svm").write_text("".join(f"{line}\n" for line in lines_of("svmlight")))
    write_cache(Stream(tmp_path / "text.svm"), tmp_path / "cache")
    text, cached = (MCPClassifier().fit_stream(tmp_path / name, any_labels=True) for name in ("text.svm", "cache"))
    np.testing.assert_array_equal(text.coef_, cached.coef_)


def test_pyarrow_is_imported_for_caches_only(tmp_path):
    (tmp_path / "text.svm").write_text("a 1:1\nb 2:1\n")
    write_cache(Stream(tmp_path / "text.svm"), tmp_path / "text.arrow")
    code = """
import sys
from maxcosine.data import Stream
assert len(list(Stream("text.svm").batches())) == 1
assert "pyarrow" not in sys.modules
assert len(list(Stream("text.arrow").batches())) == 1
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=300)
