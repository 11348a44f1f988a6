"""What columns are, inferred from their first rows."""

from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from maxcosine.records import RecordOptions, SchemaError
from maxcosine.records.inference import SAMPLE_ROWS, infer_schema
from tests.records.reading import json_lines, outcome, read, stream_of


def kind_of(values, **options):
    (column,) = infer_schema(pa.table({"x": values}), RecordOptions(**options)).columns
    return column.kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], "number"),
        ([0.5, None], "number"),
        ([Decimal("1.50")], "number"),
        (pa.array([2**63], pa.uint64()), "number"),
        (np.array([1.5], np.float16), "number"),
        (["1", "-2.5e3", ".5", "7.", " 8 ", ""], "number"),
        (["1", "NA", "null", "n/a", "nan"], "number"),
        (["NA", "null"], "category"),
        (["01", "12"], "category"),
        (["-012"], "category"),
        (["0", "0.5", "10"], "number"),
        (["+1"], "category"),
        (["1,5"], "category"),
        (["0x1f"], "category"),
        (["inf"], "category"),
        (["١٢"], "category"),
        ([True, None], "boolean"),
        (["true", "False", "TRUE"], "boolean"),
        (["yes", "no"], "category"),
        (["2024-12-31", ""], "date"),
        (["2024-12-31T23:59:59.123456Z", "2024-12-31 10:00:00+02:00"], "date"),
        (["2024-12-31 23:59:59.123456789"], "date"),
        (["2024-13-31"], "category"),
        (["2024-12-31", "soon"], "category"),
        ([date(2024, 1, 1)], "date"),
        (pa.array([datetime(2024, 1, 1)], pa.timestamp("ns", "Europe/Berlin")), "date"),
        (["red", "light blue"], "category"),
        (["one two three four five", "six"], "category"),
        (["one two three four", "one two three four"], "text"),
        (["x" * 201], "text"),
        (["x" * 200], "category"),
        ([["a"], []], "set"),
        (pa.array([["a"]], pa.large_list(pa.large_string())), "set"),
        ([[None]], None),
        ([[]], None),
        ([None, None], None),
        (["", ""], None),
        (pa.array(["x", "y"]).dictionary_encode(), "category"),
        (pa.array(["1", "2"], pa.string_view()), "number"),
    ],
    ids=str,
)
def test_kinds(values, kind):
    assert kind_of(values) == kind


@pytest.mark.parametrize("kind", ["numeric", "categorical", "text"])
def test_users_know_better(kind):
    kinds = {"numeric": "number", "categorical": "category", "text": "text"}
    assert kind_of(["01", "02"], **{kind: "x"}) == kinds[kind]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pa.array([b"x"]), "holds bytes; leave it out with --drop x"),
        (pa.array([b"x"], pa.large_binary()), "holds bytes"),
        (pa.array([b"x"], pa.binary(1)), "holds bytes"),
        ([[1, 2]], "lists of int64, and only lists of strings are read"),
        ([[{"a": 1}]], "and only lists of strings are read; leave it out: --drop x"),
        (pa.array([5], pa.duration("s")), "which are not read; leave it out with --drop x"),
        (pa.array([5], pa.time32("s")), "which are not read"),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "which are not read"),
    ],
    ids=str,
)
def test_types_that_are_not_read_are_refused_unless_they_are_left_out(values, message):
    with pytest.raises(SchemaError, match=message):
        kind_of(values)
    table = pa.table({"x": values, "a": [1]})
    schema = infer_schema(table, RecordOptions(drop="x"))
    assert [column.name for column in schema.columns] == ["a"]
    assert schema.drop == ("x",)


@pytest.mark.parametrize(
    ("labels", "label_type"),
    [
        ([0, 1], "integer"),
        ([1.0, 0.0], "integer"),
        ([0.5, 1.0], "text"),
        (["1", "-1"], "integer"),
        (["01", "1"], "text"),
        ([True, False], "boolean"),
        (["true", "false"], "boolean"),
        (["spam", "ham"], "text"),
        ([date(2024, 1, 1), None], "text"),
    ],
    ids=str,
)
def test_types_of_labels(labels, label_type):
    schema = infer_schema(pa.table({"x": [1, 2], "y": labels}), RecordOptions(label="y"))
    assert schema.label_type == label_type
    assert schema.label.kind == "category"


def test_columns_that_are_named_must_exist():
    with pytest.raises(SchemaError, match="there is no column 'z'; the columns are x"):
        kind_of([1], drop="z")
    with pytest.raises(SchemaError, match="no column is left to learn from"):
        kind_of([1], label="x")


def test_nested_objects_have_points_in_their_names():
    rows = [{"a": {"b": {"c": 1}, "d": "x"}, "e.f": 2}]
    assert [one.name for one in stream_schema(rows).columns] == ["a.b.c", "a.d", "e.f"]
    with pytest.raises(SchemaError, match=r"two columns are called 'a\.b'"):
        infer_schema(pa.table({"a": [{"b": 1}], "a.b": [2]}), RecordOptions())


def stream_schema(source, **options):
    stream = stream_of(source, **options)
    list(stream.batches())
    return stream.options.schema


def test_only_the_first_rows_count(tmp_path):
    rows = [{"x": "5", "y": 1}] * SAMPLE_ROWS + [{"x": "six", "y": 0.5}]
    assert stream_schema(pa.Table.from_pylist(rows), on_bad="skip").columns[0].kind == "number"
    path = tmp_path / "data.jsonl"
    path.write_bytes(json_lines(rows))
    schemas = {stream_schema(path, on_bad="skip", block_bytes=size) for size in (200, 5000, 1 << 20)}
    assert len(schemas) == 1
    assert [(one.kind, one.stored) for one in schemas.pop().columns] == [("number", "string"), ("number", "integer")]


@pytest.mark.parametrize(
    ("value", "kind"),
    [(5, "number"), ("x", "category"), (True, "boolean"), (["a"], "set"), ("2024-01-01", "date"), ("9", "number")],
)
@pytest.mark.parametrize("later", [None, 7, "seven", False, ["b"], "2024-02-02 03:04:05", {"z": 1}])
def test_an_empty_column_is_what_its_first_value_is(tmp_path, value, kind, later):
    rows = [{"a": 1, "x": None}] * 1100 + [{"a": 1, "x": value}] + [{"a": 1, "x": None}] * 5 + [{"a": 1, "x": later}]
    path = tmp_path / "data.jsonl"
    path.write_bytes(json_lines(rows))
    found = [outcome(path, on_bad="skip", block_bytes=size) for size in (2500, 1 << 20)]
    assert found[1] == found[0]
    schema, rows = found[0][-3], found[0][0]
    assert schema.columns[1].kind == kind
    assert not any(b"x (missing)" in names for names, *_, line, _ in rows if line == 1100)
    assert len(rows) + found[0][5] == 1107


def test_columns_of_csv_and_of_types_are_the_same():
    table = pa.table({"n": [1, 2], "b": [True, False], "d": [date(2024, 1, 1)] * 2, "c": ["x", "y"]})
    texts = pa.table({name: table[name].cast(pa.string()) for name in table.column_names})
    kinds = [[one.kind for one in stream_schema(source).columns] for source in (table, texts)]
    assert kinds[0] == kinds[1] == ["number", "boolean", "date", "category"]
    assert read(table)[0] == read(texts)[0]


def test_columns_are_required_if_no_value_is_missing():
    table = pa.table({"a": [1, 2], "b": ["x", ""], "c": ["5", "NA"], "d": [0.5, float("nan")]})
    assert [one.required for one in stream_schema(table).columns] == [True, False, False, False]
