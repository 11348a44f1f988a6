"""Features of records, compared with plain Python."""

import itertools
import math
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from maxcosine import core
from maxcosine.records import Column, RecordSchema
from maxcosine.records.conversion import convert_table
from maxcosine.records.encoding import HowEncoded, encode
from tests.records import naive
from tests.records.reading import read
from tests.records.test_tokens import TEXTS

KINDS = {"n": "number", "b": "boolean", "c": "category", "d": "date", "t": "text", "s": "set"}
TYPES = {
    "n": pa.float64(),
    "b": pa.bool_(),
    "c": pa.string(),
    "d": pa.timestamp("us"),
    "t": pa.string(),
    "s": pa.list_(pa.string()),
}
BITS = 16
WORDS = TEXTS.filter(lambda text: "\0" not in text)
NUMBERS = st.floats(allow_nan=True, allow_infinity=False).filter(lambda x: not 0 < abs(x) < 1e-300)
VALUES = {
    "n": NUMBERS,
    "b": st.booleans(),
    "c": WORDS,
    "d": st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)),
    "t": WORDS,
    "s": st.lists(st.none() | st.sampled_from(["x", "y", "", "é"]), max_size=5),
}
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}), max_size=5)


def encoded(rows, bits=0, ngrams=1, chars=None, dtype="float64", **more):
    columns = tuple(Column(name, kind) for name, kind in KINDS.items())
    schema = RecordSchema(columns, ngrams=ngrams, chars=chars)
    table = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in TYPES.items()})
    converted, bad = convert_table(table, schema, np.finfo(dtype).max)
    assert not bad
    return encode(converted, schema, len(rows), HowEncoded(bits, dtype, **more))


def rows_by_name(found):
    """Name to sum of values, for each row."""
    letters, starts = found.names
    names = [letters[a:b].tobytes().decode() for a, b in itertools.pairwise(starts)]
    rows = []
    for a, b in zip(found.indptr, found.indptr[1:], strict=False):
        sums = {}
        for name, value in zip(names[a:b], found.values[a:b].tolist(), strict=True):
            sums[name] = sums.get(name, 0.0) + value
        rows.append({name: value for name, value in sums.items() if value})
    return rows


@settings(max_examples=60)
@given(rows=ROWS, ngrams=st.integers(1, 2), chars=st.none() | st.just((2, 3)))
@example(rows=[{"n": -0.0, "b": None, "c": "", "d": None, "t": "", "s": []}], ngrams=1, chars=None)
@example(
    rows=[
        {"n": 1.2, "b": True, "c": "é", "d": datetime(2024, 2, 29, 23, 59), "t": "a A", "s": ["x", "x", None]},
        {"n": -1.7e308, "b": False, "c": "a=b", "d": datetime(1969, 12, 31), "t": "東京", "s": [None]},
    ],
    ngrams=2,
    chars=(2, 3),
)
def test_features_are_those_of_plain_python(rows, ngrams, chars):
    expected = [naive.row_features(row, KINDS, ngrams=ngrams, chars=chars) for row in rows]
    assert rows_by_name(encoded(rows, ngrams=ngrams, chars=chars)) == expected
    found = encoded(rows, BITS, ngrams=ngrams, chars=chars)
    hashed = [
        dict(zip(found.columns[a:b].tolist(), found.values[a:b].tolist(), strict=True))
        for a, b in zip(found.indptr, found.indptr[1:], strict=False)
    ]
    wanted = [naive.hashed_features(row, KINDS, BITS, ngrams=ngrams, chars=chars) for row in rows]
    assert hashed == [pytest.approx(row) for row in wanted]
    squares = [sum(value * value for value in row.values()) for row in hashed]
    assert found.squares is None or found.squares == pytest.approx(squares)


@given(st.floats(1e-300, 1e300), st.booleans())
@example(1.2, False)
@example(1e-300, True)
@example(math.nextafter(1.5, 0), False)
def test_ranges_are_those_of_plain_python(number, negative):
    number = -number if negative else number
    (row,), _ = read([{"x": number}])
    assert row == {"x": number, f"x={naive.range_of(number)}": 1.0}


def test_zero_has_a_range_and_no_value():
    rows, _ = read([{"x": 0.0}, {"x": -0.0}, {"x": 1.0}])
    assert rows == [{"x=0": 1.0}, {"x=0": 1.0}, {"x": 1.0, "x=1..1.2": 1.0}]


def test_names_of_each_kind():
    row = {
        "age": 31,
        "open": True,
        "color": "red",
        "when": datetime(2024, 12, 31, 23, 5),
        "day": date(2024, 1, 1),
        "tags": ["a", "b", "a"],
        "at": {"city": {"name": "Bern"}},
        "body": "One two, one TWO three",
        "none": None,
    }
    rows, _ = read([row, row], ngrams=2)
    assert rows[0] == {
        "age": 31.0,
        "age=30..40": 1.0,
        "open=true": 1.0,
        "color=red": 1.0,
        "when.year=2024": 1.0,
        "when.month=12": 1.0,
        "when.day=31": 1.0,
        "when.weekday=Tue": 1.0,
        "when.hour=23": 1.0,
        "day.year=2024": 1.0,
        "day.month=1": 1.0,
        "day.day=1": 1.0,
        "day.weekday=Mon": 1.0,
        "tags=a": 1.0,
        "tags=b": 1.0,
        "at.city.name=Bern": 1.0,
        "body:one": 2.0,
        "body:two": 2.0,
        "body:three": 1.0,
        "body:one two": 2.0,
        "body:two one": 1.0,
        "body:two three": 1.0,
        "none (missing)": 1.0,
    }
    assert rows[0] == rows[1]


def test_dates_with_zones_are_in_utc():
    east = timezone(timedelta(hours=5))
    rows, _ = read([{"d": datetime(2024, 1, 1, 2, tzinfo=east)}, {"d": datetime(2023, 12, 31, 21, tzinfo=UTC)}])
    assert rows[0] == rows[1]
    assert "d.year=2023" in rows[0]
    assert "d.hour=21" in rows[0]


@pytest.mark.parametrize("bits", [1, 18, 31])
def test_names_of_hashed_features_are_kept(bits):
    row = {"n": 2.5, "b": True, "c": "x", "d": datetime(2024, 5, 1, 3), "t": "two words", "s": ["p", "q"]}
    found = encoded([row, {**row, "n": None, "c": "z"}], bits, keep_names=True)
    letters, starts = found.names
    names = [letters[a:b].tobytes().decode() for a, b in itertools.pairwise(starts)]
    columns = {}
    for name, kind in KINDS.items():
        for value in (row[name], None, "z" if name == "c" else row[name]):
            for (prefix, rest), _ in naive.column_features(name, kind, value):
                columns[prefix + rest] = core.columns_of_names(
                    prefix.encode(),
                    np.array([0, len(rest.encode())]),
                    np.frombuffer(rest.encode(), np.uint8),
                    bits,
                )[0]
    for name, column in zip(names, found.name_columns.tolist(), strict=True):
        assert columns[name] == column
    assert set(found.columns.tolist()) <= set(found.name_columns.tolist())


def test_values_are_transformed_as_in_text():
    row = {"n": 3.0, "b": None, "c": "x", "d": None, "t": "w w", "s": None}
    found = encoded([row], 18, log1p=True, l2=True)
    plain = naive.hashed_features(row, KINDS, 18)
    logs = {column: math.log1p(value) for column, value in plain.items()}
    length = math.sqrt(sum(value**2 for value in logs.values()))
    columns = dict(zip(found.columns.tolist(), found.values.tolist(), strict=True))
    assert columns == pytest.approx({column: value / length for column, value in logs.items()})


def test_null_lists_may_have_items_behind_them():
    fixed = pa.array([["a", "b"], None, ["c", None]], pa.list_(pa.string(), 2))
    rows, _ = read(pa.table({"s": fixed}))
    assert rows == [{"s=a": 1.0, "s=b": 1.0}, {"s (missing)": 1.0}, {"s=c": 1.0}]
