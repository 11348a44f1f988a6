"""Faults of records, in every format: an error says where, what and what to do, and skipping loses nothing else."""

import gzip
import json
import math

import pyarrow as pa
import pytest
import zstandard

from maxcosine import OnePassClassifier
from maxcosine.data import ReadOptions, Stream, StreamError
from maxcosine.data.options import MAX_LINE_BYTES
from maxcosine.records import RecordOptions
from tests.cli.examples import outcome as command_outcome
from tests.cli.examples import refuse
from tests.records.reading import as_arrow, as_csv, as_parquet, json_lines, outcome, read, stream_of

GOOD = [{"n": 1.5, "c": "red", "y": "a"}, {"n": 2.5, "c": "blue", "y": "b"}] * 4
TABLE = pa.Table.from_pylist(GOOD)
CONTENTS = {
    "csv": as_csv(TABLE),
    "tsv": as_csv(TABLE, "\t"),
    "jsonl": json_lines(GOOD),
    "parquet": as_parquet(TABLE),
    "arrow": as_arrow(TABLE),
}


def with_row(**values):
    """The table with one more row, whose values are other ones; types follow them."""
    columns = {name: [*TABLE[name].to_pylist(), values.get(name, GOOD[0][name])] for name in TABLE.column_names}
    return pa.table({name: pa.array(column) for name, column in columns.items()})


def in_binary(name):
    """The table with one more row, whose text is not UTF-8."""
    texts = [one.encode() for one in TABLE[name].to_pylist()] + [b"caf\xe9"]
    table = with_row()
    return table.set_column(table.column_names.index(name), name, pa.array(texts, pa.binary()).view(pa.string()))


LONG = "x" * (16 << 20)
BIG = 2**53 + 1
# Fault: for each format, the content after the good rows (text) or the whole file (tables), and a part of the message;
# None if there is no fault.
ROWS = {
    "too few fields": {
        "csv": (b"1,red\n", "the row has 2 fields, and the header has 3"),
        "tsv": (b"1\tred\n", "the row has 2 fields, and the header has 3"),
        "jsonl": (b'{"n":1,"y":"a"}\n', None),
    },
    "too many fields": {
        "csv": (b"1,red,a,b\n", "the row has 4 fields, and the header has 3"),
        "tsv": (b"1\tred\ta\t\n", "the row has 4 fields, and the header has 3"),
        "jsonl": (b'{"n":1,"c":"red","y":"a","z":5}\n', None),
    },
    "cut short": {
        "csv": (b'1,"re', "a quote that is opened in this row is never closed"),
        "tsv": (b"1\tre", "the row has 2 fields"),
        "jsonl": (b'{"n":1,"c":"re', "the JSON object does not end on its line; write one object a line"),
    },
    "wrong encoding": {
        "csv": (b"1,caf\xe9,a\n", "the text of 'c' is not UTF-8; convert the file to UTF-8"),
        "tsv": (b"1\tcaf\xe9\ta\n", "the text of 'c' is not UTF-8"),
        "jsonl": (b'{"n":1,"c":"caf\xe9","y":"a"}\n', "UTF-8"),
        "parquet": (as_parquet(in_binary("c")), "the text of 'c' is not UTF-8; convert the file to UTF-8"),
        "arrow": (as_arrow(in_binary("c")), "the text of 'c' is not UTF-8"),
    },
    "no number": {
        "csv": (b"one,red,a\n", "the value 'one' of 'n' is not a number; if the column is no number, say so with"),
        "tsv": (b"one\tred\ta\n", "the value 'one' of 'n' is not a number"),
        "jsonl": (b'{"n":"one","c":"red","y":"a"}\n', "the value 'one' of 'n' is not a number"),
    },
    "integer beyond 2^53": {
        "csv": (
            b"9007199254740993,red,a\n",
            "if it is an id, say so with --categorical n",
        ),
        "tsv": (b"-9007199254740993\tred\ta\n", "'-9007199254740993' of 'n' is beyond 2^53"),
        "jsonl": (b'{"n":9007199254740993,"c":"red","y":"a"}\n', "'9007199254740993' of 'n' is beyond 2^53"),
        "parquet": (
            as_parquet(with_row().set_column(0, "n", pa.array([1] * 8 + [BIG]))),
            "'9007199254740993' of 'n' is beyond 2^53",
        ),
        "arrow": (
            as_arrow(with_row().set_column(0, "n", pa.array([1] * 8 + [2**64 - 1], pa.uint64()))),
            "'18446744073709551615' of 'n' is beyond 2^53",
        ),
    },
    "beyond float32": {
        "csv": (b"1e39,red,a\n", "the value '1e39' of 'n' is not finite, or too large for its type"),
        "tsv": (b"1e999\tred\ta\n", "the value '1e999' of 'n' is not finite"),
        "jsonl": (b'{"n":-1e39,"c":"red","y":"a"}\n', "is not finite, or too large for its type"),
        "parquet": (as_parquet(with_row(n=math.inf)), "the value 'inf' of 'n' is not finite"),
        "arrow": (as_arrow(with_row(n=-1e300)), "the value '-1e+300' of 'n' is not finite, or too large"),
    },
    "NaN": {
        "csv": (b"nan,red,a\n", None),
        "jsonl": (b'{"n":NaN,"c":"red","y":"a"}\n', None),
        "parquet": (as_parquet(with_row(n=math.nan)), None),
        "arrow": (as_arrow(with_row(n=math.nan)), None),
    },
    "NUL byte": {
        "csv": (b"1,re\0d,a\n", "there is a NUL byte in 'c'; is the file in another encoding than UTF-8?"),
        "tsv": (b"1\tre\0d\ta\n", "there is a NUL byte in 'c'"),
        "jsonl": (b'{"n":1,"c":"re\\u0000d","y":"a"}\n', "there is a NUL byte in 'c'"),
        "parquet": (as_parquet(with_row(c="re\0d")), "there is a NUL byte in 'c'"),
        "arrow": (as_arrow(with_row(c="re\0d")), "there is a NUL byte in 'c'"),
    },
    "CR in a row": {
        "csv": (b"1,red,a\r2,blue,b\n", "the row has a CR outside of quotes; write line ends as LF or CR LF"),
        "tsv": (b"1\tred\r\ta\n", "the row has a CR outside of quotes"),
    },
    "no object": {
        "jsonl": (b"[1, 2]\n", 'the line is not a JSON object, {"name": value, ...}'),
    },
    "nothing like JSON": {"jsonl": (b"red\n", "the line is not a JSON object")},
    "two objects on a line": {"jsonl": (b'{"n":1}{"n":2}\n', "there is more than one JSON object on the line")},
    "a key twice": {"jsonl": (b'{"n":1,"c":"red","n":2,"y":"a"}\n', "twice")},
    "a key without quotes": {"jsonl": (b'{n:1,"y":"a"}\n', "cannot be read as JSON")},
    "deep nesting": {
        "jsonl": (b'{"z":' + b'{"z":' * 10**5 + b"1" + b"}" * (10**5 + 1) + b"\n", "is nested more than 100 deep"),
    },
    "deep lists": {"jsonl": (b'{"z":' + b"[" * 10**5 + b"]" * 10**5 + b"}\n", "is nested more than 100 deep")},
    "an object for a number": {"jsonl": (b'{"n":{"m":1},"c":"red","y":"a"}\n', "'n' holds an object here")},
    "a list for a number": {"jsonl": (b'{"n":[1],"c":"red","y":"a"}\n', "'n' holds values of type list")},
    "a list for a category": {"jsonl": (b'{"n":1,"c":["red"],"y":"a"}\n', "'c' holds values of type list")},
    "a list that begins with nulls": {"jsonl": (b'{"n":1,"c":[null,null,"x"],"y":"a"}\n', "'c' holds values of type")},
    "junk in a new column": {"jsonl": (b'{"n":1,"c":"red","y":"a","z":[1,"x",{}]}\n', None)},
    "nested junk in a new column": {
        "jsonl": (b'{"n":1,"c":"red","y":"a","z":[{"a":[null,1]},{"a":"x"}]}\n', None),
    },
    "no label": {
        "csv": (b"1,red,\n", "has no label"),
        "tsv": (b"1\tred\t\n", "has no label"),
        "jsonl": (b'{"n":1,"c":"red","y":null}\n', "has no label"),
        "parquet": (as_parquet(with_row(y=None)), "has no label"),
        "arrow": (as_arrow(with_row(y=None)), "has no label"),
    },
    "empty object": {"jsonl": (b"{}\n", "has no label")},
}
KINDS = {"numeric": "n", "categorical": "c"}
TEXTS = ("csv", "tsv", "jsonl")
CASES = [(fault, format) for fault, formats in ROWS.items() for format in formats]


def content_of(fault, format):
    """The content of a file with one fault in its ninth row, and the bad line."""
    more, message = ROWS[fault][format]
    if format not in TEXTS:
        return more, message, None
    _, _, rows = CONTENTS[format].partition(b"\n")
    rows = rows if format != "jsonl" else CONTENTS[format]
    return CONTENTS[format] + more + (rows if fault != "cut short" else b""), message, more


@pytest.mark.parametrize(("fault", "format"), CASES)
def test_a_bad_row_is_an_error_that_says_where(tmp_path, fault, format):
    content, message, _ = content_of(fault, format)
    path = tmp_path / f"data.{format}"
    path.write_bytes(content)
    stream = stream_of(path, label="y", purpose="learn", any_norm=True, **KINDS)
    if message is None:
        assert sum(map(len, stream.batches())) == (17 if format in TEXTS else 9)
        return
    line = 9 + (format in ("csv", "tsv"))
    where = f"{path}:{line}: " if format in TEXTS else f"{path}: row 9: "
    with pytest.raises(StreamError) as error:
        list(stream.batches())
    assert str(error.value).startswith(where)
    assert message in str(error.value)
    assert str(error.value).endswith("or skip such lines with on_bad='skip' (--on-bad skip)")


@pytest.mark.parametrize(("fault", "format"), CASES)
@pytest.mark.parametrize("block_bytes", [1, 50, 2 << 20])
def test_skipping_a_bad_row_loses_nothing_else(tmp_path, fault, format, block_bytes):
    content, message, row = content_of(fault, format)
    path = tmp_path / f"data.{format}"
    path.write_bytes(content)
    options = {"label": "y", "purpose": "learn", "any_norm": True, "on_bad": "skip", "block_bytes": block_bytes}
    options |= KINDS
    rows, labels, _, _, bad, n_bad, messages, schema, place, _ = outcome(path, **options)
    n_good = 16 if format in TEXTS and fault != "cut short" else 8
    assert len(rows) == len(labels) == n_good + (message is None)
    assert n_bad == place.bad == (message is not None)
    assert [(one.name, one.kind) for one in schema.columns][:2] == [("n", "number"), ("c", schema.columns[1].kind)]
    if message is not None:
        assert message in messages[0]
        assert bad == row.rstrip(b"\r\n") + b"\n" if row is not None else set(json.loads(bad)) == {"n", "c", "y"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "there is no record in"),
        ("a.jsonl", b"\n \n", "there is no record in"),
        ("a.csv", b"\n\n", "there is no header; the first row names the columns"),
        ("a.csv", b"a,y,a\n1,x,2\n", "two columns are called 'a'; rename one of them"),
        ("a.tsv", b"a\ty\ta \n1\tx\t2\n", "two columns are called 'a'"),
        ("a.jsonl", b'{"a":{"b":1},"a.b":2,"y":"x"}\n', "two columns are called 'a.b'; rename one of them"),
        ("a.csv", b"caf\xe9,y\n1,x\n", "the header is not UTF-8; convert the file to UTF-8"),
        ("a.csv", b"a\0,y\n1,x\n", "there is a NUL byte in the header"),
        ("a.csv", "a,y\n1,x\n".encode("utf-16"), "there is a NUL byte in the header"),
        ("a.csv", b"a,y\r1,x\r2,z\r", "the header cannot be read"),
        ("a.csv", b'"a,y\n1,x\n', "a quote that is opened in the header is never closed"),
        ("a.csv", b"x" * 200_000, "the header cannot be read"),
        ("a.json", b'[\n{"a":1}]', "this is a JSON array"),
        ("a.json", b'{\n"a":1\n}\n', "there is no record in"),
        ("a.csv", b"a,b\n1,2\n", "there is no column 'y'; the columns are a, b"),
        ("a.csv", b"y\nx\n", "no column is left to learn from beside the label"),
        ("a.parquet", as_parquet(pa.table({"a": [b"x"], "y": ["x"]})), "the column 'a' holds bytes"),
        ("a.parquet", as_parquet(TABLE)[:-20], "cut short or damaged"),
        ("a.parquet", b"PAR1", "cut short or damaged"),
        ("a.arrow", as_arrow(TABLE)[:-20], "cut short or damaged"),
        ("a.arrow", as_arrow(TABLE)[:60], "cut short or damaged"),
        ("a.csv.gz", gzip.compress(CONTENTS["csv"], mtime=0)[:-9], "it is cut short or damaged, fetch it again"),
        ("a.jsonl.gz", gzip.compress(CONTENTS["jsonl"], mtime=0)[:40], "it is cut short or damaged"),
        ("a.jsonl.zst", zstandard.compress(CONTENTS["jsonl"])[:-3], "it is cut short or damaged"),
        ("a.csv.zst", zstandard.compress(CONTENTS["csv"])[:30] + b"?" * 30, "it is cut short or damaged"),
    ],
)
@pytest.mark.parametrize("on_bad", ["error", "skip"])
def test_inputs_that_cannot_be_read_are_errors_that_name_them(tmp_path, name, content, message, on_bad):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(StreamError) as error:
        list(stream_of(tmp_path / name, label="y", on_bad=on_bad).batches())
    assert message in str(error.value)
    assert str(tmp_path / name) in str(error.value)


def test_damaged_parquet_is_an_error(tmp_path):
    content = bytearray(as_parquet(pa.table({"a": [f"word{k}" for k in range(5000)], "y": ["x", "z"] * 2500})))
    content[100:160] = b"\xff" * 60
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(StreamError, match=r"a.parquet: cannot be read"):
        list(stream_of(tmp_path / "a.parquet", label="y").batches())


def test_only_a_header_is_no_example(tmp_path):
    (tmp_path / "a.csv").write_text("a,y\n")
    assert read(tmp_path / "a.csv", label="y")[0] == []
    with pytest.raises(StreamError, match="there is no example in"):
        OnePassClassifier().fit_records(tmp_path / "a.csv", label="y")
    assert "there is no example in" in refuse(tmp_path, "train", "a.csv", "--label", "y", "--model", "m")


CHANGED = {
    "a column less": ({"n": 1.0, "y": "a"}, "there is no column 'c', which is needed; add it, empty if need be"),
    "no label": ({"n": 1.0, "c": "red"}, "there is no column 'y', which is needed"),
    "another type": ({"n": ["x"], "c": "red", "y": "a"}, "the column 'n' holds values of type list"),
}


@pytest.mark.parametrize(
    ("change", "format"),
    [
        (change, format)
        for change in CHANGED
        for format in ("csv", "jsonl", "parquet", "arrow")
        if (change, format) != ("another type", "csv")  # CSV has strings only
    ],
)
def test_the_next_file_may_not_lack_columns(tmp_path, change, format):
    row, message = CHANGED[change]
    (tmp_path / "a.csv").write_bytes(CONTENTS["csv"])
    table = pa.Table.from_pylist([row] * 3)
    write = {"csv": as_csv, "jsonl": lambda table: json_lines(table.to_pylist()), "parquet": as_parquet}
    path = tmp_path / f"b.{format}"
    path.write_bytes(write.get(format, as_arrow)(table))
    with pytest.raises(StreamError) as error:
        list(stream_of([str(tmp_path / "a.csv"), str(path)], label="y", purpose="learn").batches())
    if change == "no label" and format == "jsonl":
        message = "has no label"
    assert message in str(error.value)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet", "arrow"])
def test_new_columns_of_the_next_file_are_ignored_with_a_notice(tmp_path, format):
    table = pa.Table.from_pylist([{**row, "z": "new"} for row in GOOD])
    write = {"csv": as_csv, "jsonl": lambda table: json_lines(table.to_pylist()), "parquet": as_parquet}
    (tmp_path / "a.csv").write_bytes(CONTENTS["csv"])
    (tmp_path / f"b.{format}").write_bytes(write.get(format, as_arrow)(table))
    rows, stream = read([str(tmp_path / "a.csv"), str(tmp_path / f"b.{format}")], label="y")
    assert rows[:8] == rows[8:]
    assert stream.new_columns == ["z"]


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl", "parquet", "arrow"])
def test_long_strings_are_read(tmp_path, format):
    table = pa.Table.from_pylist([*GOOD[:2], {"n": 1.0, "c": LONG, "y": "a"}, *GOOD[2:]])
    write = {
        "csv": as_csv,
        "tsv": lambda table: as_csv(table, "\t"),
        "jsonl": lambda table: json_lines(table.to_pylist()),
        "parquet": as_parquet,
        "arrow": as_arrow,
    }
    path = tmp_path / f"data.{format}"
    path.write_bytes(write[format](table))
    rows, _ = read(path, label="y", block_bytes=1000)
    assert len(rows) == 9
    assert rows[2].keys() == {"n", "n=1..1.2", f"c:{LONG}"}


@pytest.mark.slow
@pytest.mark.parametrize("format", ["csv", "jsonl"])
@pytest.mark.parametrize("block_bytes", [1000, 1 << 20, 3_000_000])
def test_lines_that_are_too_long_are_bad(tmp_path, format, block_bytes):
    content = CONTENTS[format]
    long = b"x" * (MAX_LINE_BYTES + 5)
    long = b'1,"' + long + b'",a\n' if format == "csv" else b'{"n":1,"c":"' + long + b'","y":"a"}\n'
    path = tmp_path / f"data.{format}"
    path.write_bytes(content + long + content.partition(b"\n")[2])
    rows, *_, n_bad, messages, _, _, _ = outcome(path, label="y", on_bad="skip", block_bytes=block_bytes)
    assert len(rows) == 15 + (format == "csv")
    assert n_bad == 1
    assert f"is longer than {MAX_LINE_BYTES >> 20} MB" in messages[0]


def test_quotes_that_are_never_closed_cost_one_line_each(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text('x,y\n1,a\n"2,a\n3,b\n\n4,"b\n5,a\n')
    for block_bytes in (1, 9, 1 << 20):
        rows, *_, bad, n_bad, messages, _, place, _ = outcome(path, label="y", on_bad="skip", block_bytes=block_bytes)
        # The second quote closes the first one.
        assert bad == b'"2,a\n3,b\n\n4,"b\n'
        assert [row[3] for row in rows] == [1, 6]
        assert n_bad == 1
        assert messages == [f"{path}:3: the row has 1 fields, and the header has 2"]
    path.write_text('x,y\n1,a\n"2,a\n3,b\n\n4,b\n')
    for block_bytes in (1, 9, 1 << 20):
        rows, *_, bad, n_bad, messages, _, place, _ = outcome(path, label="y", on_bad="skip", block_bytes=block_bytes)
        assert bad == b'"2,a\n'
        assert [row[3] for row in rows] == [1, 3, 5]
        assert messages == [f"{path}:3: a quote that is opened in this row is never closed"]
        assert place.source == n_bad == 1


@pytest.mark.parametrize(
    ("weights", "message"),
    [([1.0, None], "is missing or negative"), ([1.0, -1.0], "weights are 0 or more"), ([0.0, math.inf], "not finite")],
)
def test_weights(weights, message):
    rows = [{"x": k, "y": "ab"[k % 2], "w": weight} for k, weight in enumerate(weights)]
    with pytest.raises(StreamError, match="row 1 of the data") as error:
        list(stream_of(rows, label="y", weight="w", purpose="learn").batches())
    assert message in str(error.value)
    stream = stream_of(rows, label="y", weight="w", purpose="learn", on_bad="skip", any_norm=True)
    assert [one.weights.tolist() for one in stream.batches() if len(one)] == [weights[:1]]


def test_labels_and_weights_are_not_needed_to_predict():
    train = [{"x": "a", "y": "p", "w": 1.0}, {"x": "b", "y": "q", "w": 2.0}] * 3
    learner = OnePassClassifier().fit_records(train, label="y", weight="w")
    assert learner.predict([{"x": "a"}, {"x": "b"}]).tolist() == ["p", "q"]
    assert learner.predict(pa.table({"x": ["b"], "y": [None], "w": [None]})).tolist() == ["q"]
    with pytest.raises(StreamError, match="there is no column 'x', which is needed"):
        learner.predict([{"z": 1}])
    with pytest.raises(StreamError, match="there is no column 'x', which is needed"):
        learner.predict(pa.table({"z": [1]}))
    with pytest.warns(UserWarning, match="columns that are not in the schema are ignored: z"):
        learner.predict([{"x": "a", "z": 1}])


@pytest.mark.parametrize("value", [2**63, 2**70, "\ud800", object(), ["a", 1], {"a": {1, 2}}])
def test_dicts_with_values_that_cannot_be_read_are_bad_rows(value):
    rows = [{"a": 1, "z": "x"}, {"a": 1, "z": value}, {"a": 2, "z": "y"}]
    with pytest.raises(StreamError, match="row 1 of the data: "):
        read(rows)
    found, stream = read(rows, on_bad="skip")
    assert [row["a"] for row in found] == [1.0, 2.0]
    assert stream.n_bad == 1


def test_the_command_counts_bad_rows_and_writes_them(tmp_path):
    bad = [ROWS[fault]["csv"][0] for fault in ("too few fields", "no number", "no label", "wrong encoding")]
    (tmp_path / "a.csv").write_bytes(CONTENTS["csv"] + b"".join(bad))
    options = ["--label", "y", "--model", "m", "--numeric", "n", "--on-bad", "skip", "--bad-lines", "bad"]
    assert command_outcome(tmp_path, "train", "a.csv", *options)["bad_lines"] == 4
    assert (tmp_path / "bad").read_bytes() == b"".join(bad)
    error = refuse(tmp_path, "train", "a.csv", *options[:6])
    assert error.startswith("error: a.csv:10: the row has 2 fields, and the header has 3")


def test_options_name_columns_that_exist(tmp_path):
    (tmp_path / "a.csv").write_bytes(CONTENTS["csv"])
    for options in ({"drop": "q"}, {"text": "q"}, {"weight": "q"}, {"numeric": "q"}, {"categorical": "q"}):
        with pytest.raises(StreamError, match="there is no column 'q'; the columns are n, c, y"):
            read(tmp_path / "a.csv", label="y", **options)
    assert RecordOptions(text="c").kind_of("c") == "text"


def test_quotes_in_tsv_are_characters_unless_the_header_is_quoted(tmp_path):
    path = tmp_path / "messages.tsv"
    path.write_text('label\ttext\nham\t"Ok lar...\nspam\tcall "now"\nham\tlater"\n')
    stream = Stream(path, ReadOptions(records=RecordOptions(label="label", text="text"), keep_columns=("*",)))
    texts = [text for batch in stream.batches() for text in batch.kept_columns["text"].to_pylist()]
    assert texts == ['"Ok lar...', 'call "now"', 'later"']
    path.write_text('"label"\t"text"\n"ham"\t"two\nlines"\n"spam"\t"a ""b"""\n')
    stream = Stream(path, ReadOptions(records=RecordOptions(label="label", text="text"), keep_columns=("*",)))
    texts = [text for batch in stream.batches() for text in batch.kept_columns["text"].to_pylist()]
    assert texts == ["two\nlines", 'a "b"']
