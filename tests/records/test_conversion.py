"""Each kind of column, given as each type of Arrow; values that do not fit are bad rows."""

from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxcosine.records import Column, SchemaError
from maxcosine.records.conversion import convert

STRING_TYPES = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int16(), pa.string())]


def converted(values, kind, **options):
    found = convert(values, Column("x", kind), **options)
    return found.values.to_pylist(), found.bad


NUMBER_TYPES = [pa.int8(), pa.uint8(), pa.int64(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()]
NUMBER_TYPES += [pa.decimal128(30, 2), pa.decimal256(40, 0)]


@pytest.mark.parametrize("kind", NUMBER_TYPES, ids=str)
def test_numbers_of_any_type(kind):
    values = pa.array([1, None, 100]).cast(kind)
    assert converted(values, "number") == ([1.0, None, 100.0], {})
    assert converted(values.dictionary_encode(), "number") == ([1.0, None, 100.0], {})
    assert converted(values.slice(2), "number") == ([100.0], {})


@pytest.mark.parametrize("kind", STRING_TYPES, ids=str)
def test_numbers_in_strings(kind):
    values = pa.array(["1", " 2.5 ", "-3e2", "", "NA", None, "nan", ".5", "7.", "-0"]).cast(kind)
    assert converted(values, "number") == ([1.0, 2.5, -300.0, None, None, None, None, 0.5, 7.0, 0.0], {})


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53))
def test_numbers_in_strings_are_those_of_python(number):
    assert converted(pa.array([repr(number)]), "number") == ([float(number)], {})


@given(st.from_regex(r"\A-?([0-9]{1,15}(\.[0-9]{0,5})?|\.[0-9]{1,5})([eE][+-]?[0-9]{1,2})?\Z"))
def test_what_looks_like_a_number_is_read_as_python_reads_it(text):
    assert converted(pa.array([text]), "number") == ([float(text)], {})


@pytest.mark.parametrize(
    "text", ["1_000", "0x10", "1,5", "--1", "1e", "one", "1 2", "inf", "-Infinity", "+1", "\u0661", "."]
)
def test_words_are_no_numbers(text):
    values, bad = converted(pa.array(["1", text, "2"]), "number")
    assert values == [1.0, None, 2.0]
    assert list(bad) == [1]
    assert f"the value {text!r} of 'x' is not a number" in bad[1]
    assert "--categorical x or --text x" in bad[1]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([2**53, 2**53 + 1, -(2**53), -(2**53) - 1]),
        pa.array([2**53, 2**53 + 1, 2**53, 2**63 + 7], pa.uint64()),
        pa.array([str(one) for one in (2**53, 2**53 + 1, -(2**53), -(2**53) - 1)]),
        pa.array([Decimal(one) for one in (2**53, 2**53 + 1, -(2**53), -(2**53) - 1)]),
        pa.array([2**53, 2**63 - 1, -(2**53), -(2**63)]),
        pa.array(["1", "9" * 300, "0" * 20 + "1", "-" + "9" * 17]),
    ],
    ids=lambda values: str(values.type),
)
def test_whole_numbers_that_lose_digits_are_bad(values):
    _, bad = converted(values, "number")
    assert list(bad) == [1, 3]
    for message in bad.values():
        assert "is beyond 2^53, where numbers lose digits" in message
        assert "--categorical x" in message


def test_large_numbers_that_are_not_written_as_whole_are_good():
    assert converted(pa.array([1e300, -1e17]), "number") == ([1e300, -1e17], {})
    assert converted(pa.array(["1e300", "100000000000000000.0"]), "number") == ([1e300, 1e17], {})


@pytest.mark.parametrize(
    "values",
    [pa.array([1.0, np.inf, -np.inf, 1e39, np.nan]), pa.array(["1", "1e999", "-1e999", "1e39", "nan"])],
    ids=str,
)
def test_numbers_beyond_the_type_are_bad(values):
    found, bad = converted(values, "number", largest=float(np.finfo(np.float32).max))
    assert list(bad) == [1, 2, 3]
    assert "is not finite, or too large for its type" in bad[3]
    assert found[4] is None


@pytest.mark.parametrize("kind", [pa.bool_(), *STRING_TYPES], ids=str)
def test_booleans(kind):
    values = (
        pa.array([True, False, None]).cast(kind) if kind == pa.bool_() else pa.array(["True", "false", ""]).cast(kind)
    )
    assert converted(values, "boolean") == ([True, False, None], {})


def test_words_that_are_neither_true_nor_false_are_bad():
    values, bad = converted(pa.array(["true", "maybe"]), "boolean")
    assert bad == {1: "the value 'maybe' of 'x' is neither true nor false"}
    assert values[0] is True


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (pa.array([5, -3], pa.int8()), ["5", "-3"]),
        (pa.array([2**64 - 1], pa.uint64()), [str(2**64 - 1)]),
        (pa.array([5.0, 0.5, float("nan"), 1e10]), ["5", "0.5", None, "10000000000"]),
        (pa.array([Decimal("1.50")]), ["1.50"]),
        (pa.array([True, None]), ["true", None]),
        (pa.array([date(2024, 1, 2)]), ["2024-01-02"]),
        (pa.array(["", "a", "01"]).dictionary_encode(), [None, "a", "01"]),
        (pa.array(["", "é"], pa.string_view()), [None, "é"]),
        (pa.chunked_array([["a"], [], ["b"]]), ["a", "b"]),
        (pa.chunked_array([], pa.large_string()), []),
        (pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["x", None])), ["x", None, None]),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["category", "text"])
def test_strings_of_any_type(values, words, kind):
    assert converted(values, kind) == (words, {})


TIME = datetime(2024, 3, 1, 12, 30, 15)


@pytest.mark.parametrize(
    ("values", "dates"),
    [
        (pa.array([TIME, None], pa.timestamp("s")), [TIME, None]),
        (pa.array([TIME], pa.timestamp("ms")), [TIME]),
        (pa.array([1709296215123456789], pa.timestamp("ns")), [TIME.replace(microsecond=123456)]),
        (pa.array([TIME], pa.timestamp("ns", "UTC")), [TIME]),
        (pa.array([1709296215], pa.timestamp("s", "America/New_York")), [TIME]),
        (pa.array([TIME.date()], pa.date32()), [datetime(2024, 3, 1)]),
        (pa.array([TIME.date()], pa.date64()), [datetime(2024, 3, 1)]),
        (pa.array(["2024-03-01 12:30:15"]), [TIME]),
        (pa.array(["2024-03-01T12:30:15Z", "2024-03-01T14:30:15+02:00", "", None]), [TIME, TIME, None, None]),
        (pa.array([" 2024-03-01 ", "2024-03-01 12:30"]), [datetime(2024, 3, 1), datetime(2024, 3, 1, 12, 30)]),
        (pa.array(["2024-03-01 12:30:15.123456789"]), [TIME.replace(microsecond=123456)]),
        (
            pa.array(["2024-03-01 12:30:15.123456789Z", "2024-03-01"]),
            [TIME.replace(microsecond=123456), datetime(2024, 3, 1)],
        ),
        (pa.array(["1969-12-31 23:59:59.999999999"]), [datetime(1969, 12, 31, 23, 59, 59, 999999)]),
        (pa.array(["2024-03-01"], pa.string_view()), [datetime(2024, 3, 1)]),
    ],
    ids=str,
)
def test_dates_of_any_type(values, dates):
    assert converted(values, "date") == (dates, {})


def test_words_that_are_no_dates_are_bad():
    values, bad = converted(pa.array(["2024-03-01", "2024-02-30", "soon"]), "date")
    assert values == [datetime(2024, 3, 1), None, None]
    assert "the value '2024-02-30' of 'x' is not a date such as 2024-12-31" in bad[1]
    assert list(bad) == [1, 2]


@pytest.mark.parametrize("items", STRING_TYPES, ids=str)
@pytest.mark.parametrize("make", [pa.ListArray, pa.LargeListArray])
def test_sets_of_any_type(make, items):
    strings = pa.array(["a", "b", "c", None])
    strings = strings.dictionary_encode() if pa.types.is_dictionary(items) else strings.cast(items)
    offsets = pa.array([0, 2, None, 2, 4], pa.int32() if make is pa.ListArray else pa.int64())
    values = make.from_arrays(offsets, strings)
    assert converted(values, "set") == ([["a", "b"], [], None, ["c", None]], {})
    assert converted(values.slice(3), "set") == ([["c", None]], {})


def test_lists_of_nulls_are_sets_without_items():
    assert converted(pa.array([[None], [], None]), "set") == ([[None], [], None], {})


@pytest.mark.parametrize("kind", ["category", "text", "set"])
def test_nul_bytes_are_bad(kind):
    words = ["a", "b\0c", "\0"]
    _, bad = converted(pa.array([[word] for word in words] if kind == "set" else words), kind)
    assert list(bad) == [1, 2]
    assert "there is a NUL byte in 'x'; is the file in another encoding than UTF-8?" in bad[1]


@pytest.mark.parametrize("kind", ["number", "boolean", "category", "date", "text"])
@pytest.mark.parametrize("view", [pa.string(), pa.large_string()], ids=str)
def test_strings_that_are_not_utf8_are_bad(kind, view):
    good = {"number": b"5", "boolean": b"true", "date": b"2024-01-01"}.get(kind, b"word")
    binary = pa.binary() if view == pa.string() else pa.large_binary()
    values = pa.array([good, b"caf\xe9", good], binary).view(view)
    found, bad = converted(values, kind)
    assert bad == {1: "the text of 'x' is not UTF-8; convert the file to UTF-8"}
    assert found[0] == found[2] is not None
    assert found[1] is None


@pytest.mark.parametrize("kind", ["number", "boolean", "category", "date", "text", "set", None])
def test_columns_of_nulls_have_the_type_of_their_kind(kind):
    found, bad = convert(pa.nulls(3), Column("x", kind))
    assert found.null_count == 3
    assert not bad
    assert found.type == convert(pa.nulls(0), Column("x", kind)).values.type


WRONG = [
    ("number", pa.array([["a"]])),
    ("number", pa.array([date(2024, 1, 1)])),
    ("boolean", pa.array([1])),
    ("boolean", pa.array([["a"]])),
    ("category", pa.array([["a"]])),
    ("text", pa.array([{"a": 1}])),
    ("date", pa.array([5])),
    ("date", pa.array([True])),
    ("set", pa.array(["a"])),
    ("set", pa.array([[1]])),
]


@pytest.mark.parametrize(("kind", "values"), WRONG, ids=str)
def test_types_that_a_kind_cannot_have_are_refused(kind, values):
    with pytest.raises(
        SchemaError, match=r"the column 'x' holds values of type .*; give the same type, or say what it is"
    ):
        convert(values, Column("x", kind))


@given(st.lists(st.none() | st.text(max_size=5), max_size=8), st.integers(0, 3))
def test_slices_are_converted_as_a_whole_is(texts, start):
    values = pa.array(texts, pa.string())
    whole = convert(values, Column("x", "category"))
    part = convert(values.slice(start), Column("x", "category"))
    assert part.values.to_pylist() == whole.values.to_pylist()[start:]
    assert {row + start for row in part.bad} == {row for row in whole.bad if row >= start}
    assert pc.sum(pc.equal(whole.values, "")).as_py() in (0, None)
