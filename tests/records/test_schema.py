"""What the columns of records are, as models store it."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxcosine.records import KINDS, STORED, Column, RecordOptions, RecordSchema, SchemaError, united_schema

NAMES = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6, unique=True)
SCHEMA = RecordSchema(
    (Column("age", "number", "integer", True), Column("body", "text", "string"), Column("later", None)),
    Column("spam", "category", "string", True),
    Column("w", "number", "float"),
    "boolean",
    ("id",),
    2,
    (3, 5),
    "l2",
    True,
)


@given(names=NAMES, data=st.data())
def test_schemas_survive_json(names, data):
    columns = [
        Column(
            name,
            data.draw(st.sampled_from([None, *KINDS])),
            data.draw(st.sampled_from([None, *STORED])),
            data.draw(st.booleans()),
        )
        for name in names
    ]
    schema = replace(SCHEMA, columns=tuple(columns), label=None, weight=None, drop=())
    assert RecordSchema.from_json(json.loads(json.dumps(schema.to_json()))) == schema
    assert RecordSchema.from_json(json.loads(json.dumps(SCHEMA.to_json()))) == SCHEMA


COLUMN = {"name": "x", "kind": "number", "stored": None, "required": False}
TAMPERED = {
    "no object": [],
    "text": "schema",
    "a field is missing": {name: value for name, value in SCHEMA.to_json().items() if name != "columns"},
    "another field": {**SCHEMA.to_json(), "more": 1},
    "columns of another type": {**SCHEMA.to_json(), "columns": 5},
    "a column that is text": {**SCHEMA.to_json(), "columns": ["x"]},
    "another kind": {**SCHEMA.to_json(), "columns": [{**COLUMN, "kind": "picture"}]},
    "another type": {**SCHEMA.to_json(), "columns": [{**COLUMN, "stored": "int128"}]},
    "a name that is a number": {**SCHEMA.to_json(), "columns": [{**COLUMN, "name": 5}]},
    "required is no boolean": {**SCHEMA.to_json(), "columns": [{**COLUMN, "required": 1}]},
    "a column twice": {**SCHEMA.to_json(), "columns": [COLUMN, COLUMN]},
    "the label is a column": {**SCHEMA.to_json(), "columns": [{**COLUMN, "name": "spam"}]},
    "another type of labels": {**SCHEMA.to_json(), "label_type": "float"},
    "n-grams that are text": {**SCHEMA.to_json(), "ngrams": "2"},
    "n-grams without end": {**SCHEMA.to_json(), "ngrams": 10**9},
    "n-grams that are true": {**SCHEMA.to_json(), "ngrams": True},
    "too many characters": {**SCHEMA.to_json(), "chars": [1, 10**6]},
    "one number of characters": {**SCHEMA.to_json(), "chars": [3]},
    "three numbers of characters": {**SCHEMA.to_json(), "chars": [1, 2, 3]},
    "another norm": {**SCHEMA.to_json(), "normalize": "l7"},
    "log1p is text": {**SCHEMA.to_json(), "log1p": "yes"},
    "left out is a number": {**SCHEMA.to_json(), "drop": [5]},
}


@pytest.mark.parametrize("fault", TAMPERED)
def test_schemas_that_were_tampered_with_are_refused(fault):
    with pytest.raises(SchemaError):
        RecordSchema.from_json(TAMPERED[fault])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "y", "text": "y"}, "'y' is label and text; choose one"),
        ({"weight": "w", "drop": ("w",)}, "'w' is weight and drop"),
        ({"numeric": ["a"], "categorical": ["b", "a"]}, "'a' is numeric and categorical"),
        ({"ngrams": -1}, "ngrams is -1"),
        ({"ngrams": 11}, "from 0 to 10"),
        ({"ngrams": 0}, "texts would have no features"),
        ({"chars": (5, 3)}, "chars is"),
        ({"chars": (0, 3)}, "chars is"),
        ({"chars": (1, 21)}, "up to 20"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options, message):
    with pytest.raises(SchemaError, match=message):
        RecordOptions(**options)


def test_one_column_need_not_be_in_a_tuple():
    assert RecordOptions(text="body", drop="id").named == ["body", "id"]


def test_schemas_are_united_column_by_column():
    empty = replace(SCHEMA, columns=tuple(replace(one, kind=None) for one in SCHEMA.columns))
    assert united_schema([empty, SCHEMA]).columns[0] == SCHEMA.columns[0]
    assert united_schema([SCHEMA, empty]) == SCHEMA
    assert united_schema([None, None]) is None


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (None, "only one of model 0 and model 1"),
        (replace(SCHEMA, columns=SCHEMA.columns[:2]), "with other columns"),
        (SCHEMA.with_column(Column("age", "category")), "is a number in model 0 and a category in model 1"),
        (replace(SCHEMA, ngrams=1), "differ in ngrams"),
        (replace(SCHEMA, chars=None), "differ in chars"),
        (replace(SCHEMA, normalize=None), "differ in normalize"),
    ],
)
def test_schemas_that_contradict_each_other_are_not_united(other, message):
    with pytest.raises(SchemaError, match=message):
        united_schema([SCHEMA, other])


def test_people_see_the_columns_by_kind():
    assert SCHEMA.describe().splitlines() == [
        "label         spam",
        "weight        w",
        "number        age",
        "text          body",
        "empty so far  later",
        "left out      id",
    ]
