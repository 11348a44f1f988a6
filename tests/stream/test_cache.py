"""Caches: what is read is what was parsed, the models are the same to the bit, and damage is noticed."""

import builtins
import itertools
import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest
import typer
from typer.testing import CliRunner

from maxcosine import model_file
from maxcosine.cli.convert import convert
from maxcosine.compiled import JIT_ENABLED
from maxcosine.rules import RULES
from maxcosine.stream.cache import KEY, CacheReader, is_cache, write
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


@pytest.fixture(params=WAYS)
def way(request, tmp_path):
    """A file of text, and options of a stream."""
    format, options = WAYS[request.param]
    path = tmp_path / f"text.{format}"
    path.write_text("".join(f"{line}\n" for line in lines_of(format)))
    return path, options


class Cached(Stream):
    """A stream that reads a cache."""

    def __init__(self, path, start=0, **options):
        self.reader = CacheReader(path)
        super().__init__(path, **{**self.reader.options, **options})
        self.begin = start

    def rows(self):
        yield from self.reader.rows(self.begin, code_of=self.code_of)

    def code_of(self, label):
        if label not in self._codes:
            self.know([label])
        return self._codes[label]


def content(stream):
    """Every example of a stream, to the bit."""
    found = []
    for rows in stream.rows():
        for k in range(len(rows)):
            a, b = rows.indptr[k], rows.indptr[k + 1]
            if rows.names is None:
                features = rows.columns[a:b].tolist()
            else:
                letters, starts = rows.names
                features = [letters[i:j].tobytes() for i, j in itertools.pairwise(starts[a : b + 1].tolist())]
            label = stream.labels[rows.codes[k]] if rows.codes[k] >= 0 else None
            weight = 1.0 if rows.weights is None else rows.weights[k]
            found.append((label, weight, features, rows.data[a:b].tobytes()))
    return found


def learnt(streams, path, **settings):
    """The file of the model that learns from these streams, one after another."""
    learner = StreamLearner(Settings(RULES["pa1"], (1.0,), fit_intercept=True, **settings))
    for stream in streams:
        for rows in stream.rows():
            learner.learn(stream, rows)
    model_file.save(learner.model, path)
    return path.read_bytes()


def test_what_is_read_is_what_was_parsed(way, tmp_path):
    path, options = way
    told = []
    text = Stream(path, block_bytes=2000, **options)
    n = write(Stream(path, block_bytes=2000, **options), tmp_path / "cache", told.append)
    assert is_cache(tmp_path / "cache")
    assert not is_cache(path)
    stream = Cached(tmp_path / "cache")
    reader = stream.reader
    assert content(stream) == content(text)
    assert n == reader.n_examples == told[-1] == N
    assert told == sorted(told)
    assert stream.labels == text.labels
    assert reader.n_batches > 1
    assert reader.nbytes == reader.read_bytes
    assert reader.options == {
        "bits": text.bits,
        "exact": text.exact,
        "dtype": text.dtype,
        "normalize": text.normalize,
        "log1p": text.log1p,
    }
    kind = "names" if text.exact and text.format == "vw" else "ids" if text.exact else "columns"
    assert reader.kind == kind
    assert reader.applied == (kind != "names")


def test_arrays_are_as_those_of_text(way, tmp_path):
    """The same types, so that no kernel is compiled again, and memory of their own."""
    path, options = way
    write(Stream(path, **options), tmp_path / "cache")
    text = next(Stream(path, **options).rows())
    reader = CacheReader(tmp_path / "cache")
    cached = next(reader.rows())
    for name in ("indptr", "columns", "data", "codes"):
        one, other = getattr(text, name), getattr(cached, name)
        assert one.dtype == other.dtype, name
        assert other.flags.c_contiguous
        assert other.flags.behaved, name  # aligned, and can be written to
    cached.data[:] = 7
    np.testing.assert_array_equal(next(reader.rows()).data, text.data)


@pytest.mark.parametrize("block_bytes", [64, 1000, 1 << 20])
def test_the_size_of_blocks_changes_nothing(way, tmp_path, block_bytes):
    path, options = way
    write(Stream(path, block_bytes=block_bytes, **options), tmp_path / "cache")
    assert content(Cached(tmp_path / "cache")) == content(Stream(path, **options))


@pytest.mark.parametrize("multiclass", ["ovr", "joint"])
def test_models_are_the_same_to_the_bit(way, tmp_path, multiclass):
    path, options = way
    write(Stream(path, block_bytes=1000, **options), tmp_path / "cache")
    settings = {"multiclass": multiclass, "average": True, "dtype": options.get("dtype", "float32")}
    text = learnt((Stream(path, **options) for _ in range(2)), tmp_path / "model", **settings)
    cached = learnt((Cached(tmp_path / "cache") for _ in range(2)), tmp_path / "model", **settings)
    assert text == cached


def test_goes_on_at_any_example(way, tmp_path):
    path, options = way
    write(Stream(path, block_bytes=500, **options), tmp_path / "cache")
    everything = content(Cached(tmp_path / "cache"))
    for start in range(0, N + 1, 7 if JIT_ENABLED else 20):
        assert content(Cached(tmp_path / "cache", start)) == everything[start:]
    place, n = Place(3), 0
    for rows in CacheReader(tmp_path / "cache").rows(source=3):
        for k in range(len(rows)):
            n += 1
            place = rows.ends[k]
            assert place == (Place(3, n, n) if n < N else Place(4))
            assert rows[k : k + 1].ends[0] == place
    assert n == N


def test_labels_from_the_middle_are_in_the_order_in_which_they_come(tmp_path):
    (tmp_path / "text").write_text("a 1:1\nb 1:1\nc 1:1\nb 1:1\n")
    write(Stream(tmp_path / "text"), tmp_path / "cache")
    reader = CacheReader(tmp_path / "cache")
    assert next(reader.rows(2)).codes.tolist() == [0, 1]
    assert reader.labels == ["c", "b"]
    assert next(reader.rows()).codes.tolist() == [2, 1, 0, 1]


@pytest.mark.parametrize("options", [{"bits": 5}, {"exact": True}])
def test_examples_without_a_label(tmp_path, options):
    (tmp_path / "text").write_text("a 2 | x y\n| z zz\nb | x\n| y\n")
    write(Stream(tmp_path / "text", **options), tmp_path / "cache")
    everything = content(Cached(tmp_path / "cache"))
    assert [label for label, *_ in everything] == ["a", None, "b", None]
    reader = CacheReader(tmp_path / "cache")
    with pytest.raises(StreamError, match=r"example 2 has no label.*--on-bad skip"):
        list(reader.rows(unlabelled="error"))
    with pytest.raises(StreamError, match="example 4 has no label"):
        list(reader.rows(2, unlabelled="error"))
    (rows,) = reader.rows(unlabelled="skip")
    assert reader.n_skipped == 2
    assert rows.codes.tolist() == [0, 1]
    assert rows.weights.tolist() == [2, 1]
    assert rows.indptr.tolist() == [0, 2, 3]
    assert [rows.ends[0], rows.ends[1]] == [Place(0, 1, 1), Place(0, 3, 3)]
    skipping = Cached(tmp_path / "cache")
    skipping.rows = lambda: skipping.reader.rows(unlabelled="skip", code_of=skipping.code_of)
    assert content(skipping) == [one for one in everything if one[0]]


def test_weights_are_there_if_the_data_may_have_them(tmp_path):
    (tmp_path / "plain.vw").write_text("a | x\nb | y\n")
    (tmp_path / "plain.svm").write_text("1 1:1\n")
    write(Stream(tmp_path / "plain.vw"), tmp_path / "cache")
    assert pa.ipc.open_file(tmp_path / "cache").read_all()["weight"].to_pylist() == [1, 1]
    assert next(CacheReader(tmp_path / "cache").rows()).weights is None
    write(Stream(tmp_path / "plain.svm"), tmp_path / "cache")
    assert pa.ipc.open_file(tmp_path / "cache").schema.names == ["label", "columns", "values"]


def test_others_read_it_too(tmp_path):
    (tmp_path / "a.svm").write_text("1 3:1 18446744073709551615:2\n-1 5:0.5\n")
    write(Stream(tmp_path / "a.svm", exact=True), tmp_path / "ids.arrow")
    (tmp_path / "a.vw").write_text("spam 2 |w:2 free win:3\n| ä\n")
    write(Stream(tmp_path / "a.vw", exact=True), tmp_path / "names.arrow")
    with pa.ipc.open_file(tmp_path / "ids.arrow") as file:
        assert file.read_all().to_pylist() == [
            {"label": "1", "ids": [3, 2**64 - 1], "values": [1, 2]},
            {"label": "-1", "ids": [5], "values": [0.5]},
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
        {"label": "spam", "weight": 2, "names": ["w^free", "w^win"], "values": [2, 6]},
        {"label": None, "weight": 1, "names": ["ä"], "values": [1]},
    ]


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
def cache(tmp_path):
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
    with pytest.raises(StreamError, match=message) as caught:
        list(CacheReader(path).rows(start))
    assert str(caught.value).startswith(f"{path}: ")


def test_a_file_that_was_changed_and_is_sound_is_read(cache):
    before = content(Cached(cache))
    assert content(Cached(changed(cache))) == before


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
def test_examples_that_make_no_sense(cache, columns, message):
    refuses(changed(cache, **columns), message)


def texts(offsets, letters):
    """Texts whose parts nobody has checked."""
    buffers = [pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(letters)]
    return pa.StringArray.from_buffers(len(offsets) - 1, *buffers)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"label": texts([0, 3, 2, 3], b"abc")}, "example 2: something in label ends before it begins"),
        ({"label": texts([0, 1, 2, 3], b"a\xffc")}, "'utf-8' codec can't decode"),
        ({"names": texts([0, 3, 2, 3], b"abc")}, "something in names ends before it begins"),
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
def test_metadata_that_makes_no_sense(cache, metadata, message):
    refuses(changed(cache, metadata), message)


@pytest.mark.parametrize("metadata", [b"[]", b"{", b"\xff", b"{}", b"1"])
def test_metadata_that_cannot_be_understood(cache, metadata):
    with pa.ipc.open_file(cache) as file:
        table = file.read_all().replace_schema_metadata({KEY: metadata})
    with pa.ipc.new_file(cache, table.schema) as file:
        file.write_table(table)
    refuses(cache, "what it says of itself cannot be understood")


def test_files_that_are_no_caches(tmp_path, cache):
    refuses(tmp_path / "none", "No such file")
    refuses(tmp_path / "text.vw", "not an Arrow file.*`maxcosine convert`")
    refuses(tmp_path, "Is a directory")
    (tmp_path / "empty").touch()
    refuses(tmp_path / "empty", "not an Arrow file")
    with pa.ipc.new_file(tmp_path / "foreign", pa.schema({"x": pa.int64()})):
        pass
    refuses(tmp_path / "foreign", "not one of examples that maxcosine wrote; write one")
    refuses(cache, "ends before the place to go on from, example 5; it is not the file it was", start=4)


def test_every_cut_is_noticed(cache):
    whole = cache.read_bytes()
    for size in range(len(whole) - 1, 0, -97):
        cache.write_bytes(whole[:size])
        refuses(cache, "cut short or damaged|not an Arrow file")


@pytest.mark.parametrize("options", [{"bits": 8}, {"exact": True}])
def test_no_damage_ends_the_process(tmp_path, options):
    """Bytes that are wrong make other examples, or an error that says so."""
    (tmp_path / "text.vw").write_text("".join(f"{line}\n" for line in lines_of("vw", 30)))
    write(Stream(tmp_path / "text.vw", **options), tmp_path / "cache")
    whole, rng = (tmp_path / "cache").read_bytes(), np.random.default_rng(0)
    found = 0
    for _ in range(600):
        broken = bytearray(whole)
        for position in rng.integers(0, len(whole), rng.integers(1, 4)):
            broken[position] ^= 1 << rng.integers(0, 8)
        (tmp_path / "cache").write_bytes(broken)
        try:
            content(Cached(tmp_path / "cache"))
        except StreamError:
            found += 1
    assert found > 100


def test_without_pyarrow(tmp_path, cache, monkeypatch):
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
        CacheReader(cache)
    with pytest.raises(StreamError, match=r"pip install 'maxcosine\[stream\]'"):
        write(Stream(tmp_path / "text.vw"), tmp_path / "other")


# The command


def run(*arguments):
    app = typer.Typer()
    app.command()(convert)
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_convert(tmp_path, capfd):
    (tmp_path / "text.vw").write_text("a 2 | x:3 y\nb | z:x\nb | z\n")
    cache, bad = tmp_path / "out" / "text.arrow", tmp_path / "bad"
    arguments = [tmp_path / "text.vw", "--output", cache, "--bits", 9, "--log1p", "--float64", "--threads", 1]
    refused = run(*arguments)
    assert isinstance(refused.exception, StreamError)
    assert not cache.exists()
    ran = run(*arguments, "--on-bad", "skip", "--bad-lines", bad, "--normalize", "l2")
    assert ran.exit_code == 0, ran.output
    told = capfd.readouterr().err + ran.stderr
    assert f"2 examples: 26 bytes read, {cache.stat().st_size / 1000:.1f} kB written to" in told
    assert "1 bad line" in told
    assert bad.read_text() == "b | z:x\n"
    reader = CacheReader(cache)
    assert reader.options == {
        "bits": 9, "exact": False, "dtype": np.float64, "normalize": "l2", "log1p": True
    }  # fmt: skip
    text = Stream(tmp_path / "text.vw", on_bad="skip", **reader.options)
    assert content(Cached(cache)) == content(text)
