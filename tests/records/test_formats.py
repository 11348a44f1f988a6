"""The same table gives the same features and the same model, whatever its format, blocks and threads are."""

import random
from datetime import datetime, timedelta

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from maxcosine import OnePassClassifier
from maxcosine.data import ReadOptions, Stream
from maxcosine.estimators.record_streams import open_records
from maxcosine.records import RecordOptions
from tests.cli.examples import outcome as command_outcome
from tests.records.reading import WRAPPED, as_arrow, as_csv, as_parquet, json_lines, outcome, read, read_hashed


def make_rows(n=320):
    """Rows of every kind, with missing values, Unicode, quotes and line ends."""
    at = random.Random(3)
    words = ["one", "Two", 'q"uote', "com,ma", "line\nend", "東京タワー", "Ärger", "ﬁn", "semi;colon", "tab\there"]
    rows = []
    for k in range(n):
        rows.append(
            {
                "number": round(at.gauss(0, 100), 3),
                "whole": at.choice([0, -7, 12345, None]),
                "open": at.choice([True, False]),
                "color": at.choice(["red", "light blue", 'big "one"', None]),
                "when": datetime(2024, 1, 1) + timedelta(minutes=at.randrange(10**6)),
                "body": " ".join(at.choices(words, k=at.randrange(4, 9))),
                "late": None if k < 200 else at.choice([0.5, 2.5]),
                "weight": at.choice([0.5, 1.0, 2.0]),
                "label": at.choice(["spam", "ham", "other"][: 2 + (k > 100)]),
            }
        )
    return rows


ROWS = make_rows(240)
TABLE = pa.Table.from_pylist(ROWS)
JSON_ROWS = [{**row, "when": row["when"].isoformat(sep=" ")} for row in ROWS]
CONTENTS = {
    ".csv": as_csv(TABLE),
    ".tsv": as_csv(TABLE, "\t"),
    ".jsonl": json_lines(JSON_ROWS),
    ".parquet": as_parquet(TABLE),
    ".arrow": as_arrow(TABLE),
}
FILES = [f"{ending}{wrap}" for ending in (".csv", ".jsonl") for wrap in WRAPPED] + [".tsv", ".parquet", ".arrow"]
IN_MEMORY = {
    "pandas": lambda: pd.DataFrame(ROWS),
    "polars": lambda: pl.from_arrow(TABLE),
    "table": lambda: TABLE,
    "dictionaries": lambda: TABLE.set_column(3, "color", TABLE["color"].dictionary_encode()),
    "chunks": lambda: pa.concat_tables([TABLE.slice(0, 17), TABLE.slice(17, 200), TABLE.slice(217)]),
    "views": lambda: TABLE.set_column(3, "color", TABLE["color"].cast(pa.string_view())),
    "large strings": lambda: TABLE.set_column(5, "body", TABLE["body"].cast(pa.large_string())),
    "batches": lambda: TABLE.to_reader(max_chunksize=33),
    "dicts": lambda: iter(ROWS),
    "list of dicts": lambda: ROWS,
}
WAYS = {"exact": {"exact": True}, "hashed": {"bits": 12}}
OPTIONS = {"label": "label", "weight": "weight", "ngrams": 2}


def source_of(folder, name):
    """A source of the table: a file with this ending, or data in memory."""
    if name in IN_MEMORY:
        return IN_MEMORY[name]()
    ending = name.removesuffix(".gz").removesuffix(".zst")
    path = folder / f"data{name}"
    path.write_bytes(WRAPPED[name[len(ending) :]](CONTENTS[ending]))
    return path


def bits_of(folder, name, **options):
    """The weights and the classes of a model that learnt the table."""
    learner = OnePassClassifier().fit_records(source_of(folder, name), **OPTIONS, **options)
    predicted = learner.decision_function(TABLE.slice(0, 50))
    return predicted.tobytes(), learner.classes_.tolist(), learner.model_.features.n_features


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("expected")
    return {way: bits_of(folder, "table", **options, threads=1) for way, options in WAYS.items()}


@pytest.mark.parametrize("name", [*FILES, *IN_MEMORY])
@pytest.mark.parametrize("way", WAYS)
def test_every_format_gives_the_same_model(tmp_path, expected, name, way):
    assert bits_of(tmp_path, name, **WAYS[way], threads=3) == expected[way]


@pytest.mark.parametrize("name", [*FILES, *IN_MEMORY])
def test_every_format_gives_the_same_features(tmp_path, name):
    wanted, _ = read(TABLE, **OPTIONS)
    found, stream = read(source_of(tmp_path, name), **OPTIONS)
    assert found == wanted
    assert stream.labels.names == list(dict.fromkeys(row["label"] for row in ROWS))
    assert [one.kind for one in stream.options.schema.columns] == [
        *("number", "number", "boolean", "category", "date", "text", "number")
    ]


@pytest.mark.parametrize("name", FILES)
def test_blocks_and_threads_change_nothing(tmp_path, name):
    path = source_of(tmp_path, name)
    wanted = outcome(path, **OPTIONS, threads=1)
    for threads, block_bytes in ((3, 1000), (1, 4096), (3, 2 << 20)):
        assert outcome(path, **OPTIONS, threads=threads, block_bytes=block_bytes) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_blocks_of_any_size_change_nothing(tmp_path, name):
    path = source_of(tmp_path, name)
    wanted = outcome(path, **OPTIONS)
    for block_bytes in (1, 2, 3, 5, 16, 64, 255, 1000, 10**4, 10**5, 10**6):
        assert outcome(path, **OPTIONS, block_bytes=block_bytes) == wanted


def digest(folder, *arguments):
    return command_outcome(folder, "train", *arguments, "--model", "model", "--label", "label")["examples"], _tensors(
        folder / "model"
    )


def _tensors(path):
    from safetensors.numpy import load_file

    return {name: array.tobytes() for name, array in load_file(path).items()}


@pytest.mark.parametrize("more", [["--bits", "12"], ["--exact"]])
def test_the_command_learns_the_same_tensors_from_every_format(tmp_path, more):
    found = []
    for name in (".csv", ".csv.gz", ".tsv", ".jsonl.zst", ".parquet", ".arrow"):
        path = source_of(tmp_path, name)
        found.append(digest(tmp_path, path.name, "--threads", len(found) % 3 + 1, *more))
    assert found[0][0] == len(ROWS)
    assert all(one == found[0] for one in found[1:])


def test_a_model_from_one_format_predicts_another(tmp_path):
    for trained in (".csv", ".jsonl", ".parquet", "dicts"):
        _, stream = read(source_of(tmp_path, trained), **OPTIONS)
        wanted, _ = read(TABLE, schema=stream.options.schema)
        for name in (".csv", ".jsonl", ".parquet", "pandas", "polars", "dicts"):
            found, other = read(source_of(tmp_path, name), schema=stream.options.schema)
            assert found == wanted, (trained, name)
            assert other.new_columns == []


def test_several_files_of_several_formats_are_one_stream(tmp_path):
    paths = []
    for number, (ending, write) in enumerate([(".csv", as_csv), (".parquet", as_parquet), (".arrow", as_arrow)]):
        paths.append(tmp_path / f"{number}{ending}")
        paths[-1].write_bytes(write(TABLE.slice(70 * number, 70)))
    paths.append(tmp_path / "3.jsonl")
    paths[-1].write_bytes(json_lines(JSON_ROWS[210:]))
    options = {**OPTIONS, "numeric": "late"}
    wanted, _ = read(TABLE, **options)
    assert read([str(path) for path in paths], **options)[0] == wanted
    assert read(str(tmp_path / "[0-3].*"), **options)[0] == wanted


def test_columns_may_be_in_another_order_in_the_next_file(tmp_path):
    (tmp_path / "a.csv").write_text("x,y,label\n1,red,a\n2,blue,b\n")
    (tmp_path / "b.csv").write_text("label;y;x\na;red;3\n")
    rows, _ = read([str(tmp_path / "a.csv"), str(tmp_path / "b.csv")], label="label")
    assert rows[2] == {"x": 3.0, "x=3..4": 1.0, "y=red": 1.0}


CSV = {
    "LF": "a,y\n1,x\n2,z\n",
    "CR LF": "a,y\r\n1,x\r\n2,z\r\n",
    "byte order mark": "\ufeffa,y\n1,x\n2,z\n",
    "byte order mark and quotes": '\ufeff"a","y"\n1,x\n2,z\n',
    "no end of line": "a,y\n1,x\n2,z",
    "no end of line, CR": "a,y\n1,x\n2,z\r",
    "blank lines": "\n\na,y\n\n1,x\n\r\n\n2,z\n\n",
    "semicolons": "a;y\n1;x\n2;z\n",
    "bars": "a|y\n1|x\n2|z\n",
    "tabs": "a\ty\n1\tx\n2\tz\n",
    "quotes": '"a","y"\n"1","x"\n"2","z"\n',
    "blanks in the header": 'a, "y"\n1,x\n2,z\n',
}


@pytest.mark.parametrize("way", CSV)
@pytest.mark.parametrize("block_bytes", [1, 7, 1 << 20])
def test_csv_in_any_way_it_is_written(tmp_path, way, block_bytes):
    (tmp_path / "data").write_bytes(CSV[way].encode())
    rows, stream = read(tmp_path / "data", label="y", block_bytes=block_bytes)
    assert rows == [{"a": 1.0, "a=1..1.2": 1.0}, {"a": 2.0, "a=2..2.5": 1.0}]
    assert stream.labels.names == ["x", "z"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"a":1,"y":"x"}\n', ["a"]),
        ('\ufeff{"a":1,"y":"x"}\n', ["a"]),
        ('\n  \n {"a":1,"y":"x"} \r\n\n', ["a"]),
        ('{"a.b":"q","a":{"c":"r"},"y":"x"}\n', ["a.b", "a.c"]),
        ('{"a":{"b.c":"2024-01-01 10:00:00"},"y":"x"}\n{"a":{"b.c":"2024-01-01"},"y":"x"}\n', ["a.b.c"]),
        ('{"a":"s","a.b":"q","y":"x"}\n', ["a", "a.b"]),
    ],
)
@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_json_in_any_way_it_is_written(tmp_path, text, names, block_bytes):
    (tmp_path / "data").write_text(text)
    rows, stream = read(tmp_path / "data", label="y", block_bytes=block_bytes)
    assert [one.name for one in stream.options.schema.columns] == names
    assert all(any(one.startswith(name) and "missing" not in one for one in rows[0]) for name in names)


def test_quoted_headers_may_have_line_ends(tmp_path):
    (tmp_path / "data.csv").write_text('"a\nb",y\n1,x\n2,z\n')
    for block_bytes in (1, 3, 5, 1 << 20):
        rows, stream = read(tmp_path / "data.csv", label="y", block_bytes=block_bytes)
        assert [one.name for one in stream.options.schema.columns] == ["a\nb"]
        assert len(rows) == 2


@pytest.mark.parametrize("words", [("True", "False"), ("true", "false"), ("TRUE", "false")])
def test_labels_that_are_booleans_are_so_in_every_format(tmp_path, words):
    (tmp_path / "data.csv").write_text("x,y\n" + f"a,{words[0]}\nb,{words[1]}\n" * 5)
    learner = OnePassClassifier().fit_records(tmp_path / "data.csv", label="y")
    assert learner.classes_.tolist() == [False, True]
    assert learner.predict([{"x": "a"}, {"x": "b"}]).tolist() == [True, False]


def test_columns_that_are_kept_may_change_their_type(tmp_path):
    (tmp_path / "data.jsonl").write_text('{"a":1,"z":[1]}\n{"a":"5","z":"t"}\n{"z":null}\n')
    kept = []
    for block_bytes in (1, 1 << 20):
        stream = Stream(
            tmp_path / "data.jsonl",
            ReadOptions(records=RecordOptions(drop="z"), keep_columns=("*",), block_bytes=block_bytes),
        )
        kept.append([row for batch in stream.batches() for row in batch.kept_columns.to_pylist()])
    assert kept[1] == [{"a": "1", "z": "[1]"}, {"a": "5", "z": "t"}, {"a": None, "z": None}]
    assert len(kept[0]) == 3


def test_hashed_features_are_the_same_as_named_ones(tmp_path):
    from tests.core.naive_text import column_of_name

    rows, _ = read_hashed([{"a": 2.5, "c": "x"}], bits=20)
    names = [("", "a", 2.5), ("a=", "2.5..3", 1.0), ("c=", "x", 1.0)]
    assert rows == [{column_of_name(p.encode(), rest.encode(), 20): value for p, rest, value in names}]


def test_inputs_are_named_or_in_memory():
    with pytest.raises(TypeError, match="records are a data frame, Arrow data, dicts"):
        list(open_records({"a": 1}, ReadOptions(records=RecordOptions())).batches())
    with pytest.raises(TypeError, match="row 1 of the data is a int, and no dict"):
        list(open_records([{"a": 1}, 5], ReadOptions(records=RecordOptions())).batches())


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_lists_of_json_may_begin_with_nulls(tmp_path, block_bytes):
    (tmp_path / "data.jsonl").write_text('{"s":[null,null,"q","r"]}\n{"s":[]}\n{"s":[null]}\n{"s":["q"]}\n')
    rows, _ = read(tmp_path / "data.jsonl", block_bytes=block_bytes)
    assert rows == [{"s=q": 1.0, "s=r": 1.0}, {}, {}, {"s=q": 1.0}]


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_large_ids_are_exact(tmp_path, block_bytes):
    ids = [2**53 + 1, 2**53, 0.5, -(2**53) - 1, 12345678901234567890, 2**70 + 1, None, "9"]
    (tmp_path / "data.jsonl").write_bytes(json_lines([{"id": one} for one in ids]))
    rows, _ = read(tmp_path / "data.jsonl", categorical="id", block_bytes=block_bytes)
    assert [*rows[:6], rows[7]] == [{f"id={one}": 1.0} for one in ids if one is not None]
