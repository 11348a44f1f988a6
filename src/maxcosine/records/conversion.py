"""Columns of any Arrow type to the one type that their kind has; values that do not fit are bad rows.

- number: float64; boolean: bool; date: timestamp[us], in UTC if the value says its zone;
- category, text: string; set: list<string>.

Missing are nulls, NaN and empty strings; where numbers are strings, also the words of `NO_NUMBER`. A file of strings,
such as CSV, gives the same as one with types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from maxcosine.labels import label_text
from maxcosine.records.schema import Column, RecordSchema, SchemaError

NO_NUMBER = ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None"]
LARGEST_WHOLE = 2.0**53  # float64 has every whole number up to it
_LARGEST_TEXTS = pa.array([f"{LARGEST_WHOLE:.0f}", f"-{LARGEST_WHOLE:.0f}"])

NUMBER = r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_DIGITS = r"^-?[0-9]+$"
_ZONE = r"[0-9](Z|[+-][0-9]{2}:?[0-9]{2})$"
_QUOTED = 40  # letters of a value in a message


TYPES = {
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "category": pa.string(),
    "date": pa.timestamp("us"),
    "text": pa.string(),
    "set": pa.list_(pa.string()),
    None: pa.string(),
}


class Converted(NamedTuple):
    """A column in the type of its kind, and the rows whose values do not fit, with the reasons."""

    values: Any
    bad: dict[int, str]


def convert(values: Any, column: Column, largest: float = np.finfo(np.float64).max) -> Converted:
    """Convert one column, an Arrow array of any type; refuse a type that its kind cannot have.

    Numbers beyond `largest` are bad, too.
    """
    values, bad = valid(values, f"the text of {column.name!r} is not UTF-8; convert the file to UTF-8")
    if pa.types.is_null(values.type):
        return Converted(pa.nulls(len(values), TYPES[column.kind]), bad)
    if column.kind is None:
        return Converted(pa.nulls(len(values), TYPES[None]), bad)
    made = CONVERSIONS[column.kind](values, bad, column)
    if column.kind == "number" and pc.any(outside := pc.greater(pc.abs(made), largest)).as_py():
        message = f"of {column.name!r} is not finite, or too large for its type; leave it out, or scale the column down"
        _add_bad(bad, outside, values, lambda found: f"the value {found} {message}")
    return Converted(made, bad)


def valid(values: Any, message: str = "") -> tuple[Any, dict[int, str]]:
    """Return values in their plain form, without strings that are not UTF-8, and the rows of these.

    Readers do not look.
    """
    values = plain(values)
    try:
        values.validate(full=True)
        return values, {}
    except pa.ArrowInvalid:
        pass
    bad = {}
    for row, value in enumerate(values):
        try:
            value.as_py()
        except UnicodeDecodeError:
            bad[row] = message
    rows = np.arange(len(values))
    return values.take(pa.array(rows, mask=np.isin(rows, list(bad)))), bad


def convert_table(
    table: Any, schema: RecordSchema, largest: float, any_types: bool = False
) -> tuple[dict[str, Any], dict[int, str]]:
    """Convert the columns of a schema, by name; return them, and the bad rows with the reasons.

    A column that the table does not have is missing in each row. With `any_types`, values of a type that the kind of
    their column cannot have are in bad rows, too.
    """
    found, bad = dict(flat_columns(table)), dict[int, str]()
    columns = {}
    for column in schema.all_columns:
        values = found.get(column.name)
        if values is None:
            values = pa.nulls(len(table))
            if any_types:
                _add_other_nesting(bad, found, column, schema)
        try:
            columns[column.name], wrong = convert(values, column, largest)
        except SchemaError as error:
            if not any_types:
                raise
            columns[column.name] = pa.nulls(len(table), TYPES[column.kind])
            wrong = dict.fromkeys(rows_with_values(values), str(error))
        for row, message in wrong.items():
            bad.setdefault(row, message)
    return columns, bad


def check_types(table: Any, schema: RecordSchema) -> None:
    """Refuse a table with a column of a type that its kind cannot have."""
    found = dict(flat_columns(table.slice(0, 0)))
    for column in schema.all_columns:
        if column.name in found:
            convert(found[column.name], column)
        else:
            inside = [name for name in found if name.startswith(f"{column.name}.")]
            if inside and not any(one.name in inside for one in schema.all_columns):
                raise SchemaError(f"the column {column.name!r} holds objects; leave it out, or train again")


def rows_with_values(values: Any) -> list[int]:
    """Return the rows where a value is not missing; a list without items, and of nulls only, says nothing."""
    values = valid(values)[0]
    known = np.asarray(pc.is_valid(values))
    if is_string(values.type):
        known &= np.asarray(pc.fill_null(pc.not_equal(values, ""), False))
    if is_list(values.type):
        rows = np.repeat(np.arange(len(values)), np.asarray(pc.fill_null(pc.list_value_length(values), 0)))
        known = np.isin(np.arange(len(values)), rows[np.asarray(pc.is_valid(values.flatten()))])
    return [int(row) for row in np.flatnonzero(known)]


def _add_other_nesting(bad: dict[int, str], found: dict[str, Any], column: Column, schema: RecordSchema) -> None:
    """Note the rows that hold an object instead of a value, or a value instead of an object."""
    known = schema.known_names
    for name, values in found.items():
        if name in known:
            continue
        if name.startswith(f"{column.name}."):
            message = f"the column {column.name!r} holds an object here, and a value or nothing in the first rows"
        elif column.name.startswith(f"{name}."):
            message = f"the column {name!r} holds a value here, and an object in the first rows"
        else:
            continue
        for row in rows_with_values(values):
            bad.setdefault(row, f"{message}; give it the same form everywhere, or leave it out with --drop")


def flat_columns(table: Any) -> Iterator[tuple[str, Any]]:
    """Give the columns of a table by name, nested objects as "a.b"; refuse names that occur twice."""
    seen: set[str] = set()
    for name, values in _flat(zip(table.column_names, table.columns, strict=True)):
        if name in seen:
            raise SchemaError(f"two columns are called {name!r}; rename one of them")
        seen.add(name)
        yield name, values


def _flat(columns: Any) -> Iterator[tuple[str, Any]]:
    for name, values in columns:
        if pa.types.is_struct(values.type):
            values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
            fields = [field.name for field in values.type]
            yield from _flat(zip((f"{name}.{field}" for field in fields), values.flatten(), strict=True))
        else:
            yield name, values


def plain(values: Any) -> Any:
    """Return an array without dictionaries and without views, in one piece."""
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays([plain(chunk) for chunk in values.chunks]) if values.num_chunks else _empty(values)
    if pa.types.is_dictionary(values.type):
        return plain(values.dictionary).take(values.indices)
    if is_string(values.type) and values.type != pa.string():
        return values.cast(pa.string())
    if is_list(values.type) and pa.types.is_null(values.type.value_type):
        return _list_of(pa.nulls, values)  # of JSON, pyarrow's own has no items
    return values


def _list_of(items: Callable[[int], Any], lists: Any) -> Any:
    """Return lists of the same lengths, with the items that a function gives for their number."""
    ends = np.cumsum([0, *np.asarray(pc.fill_null(pc.list_value_length(lists), 0)).tolist()])
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), items(int(ends[-1])), mask=pc.is_null(lists))


def _empty(values: Any) -> Any:
    return plain(pa.array([], values.type))


def is_string(kind: Any) -> bool:
    """Return whether an Arrow type is one of strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_number(kind: Any) -> bool:
    """Return whether an Arrow type is one of numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_date(kind: Any) -> bool:
    """Return whether an Arrow type is one of dates or timestamps."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def is_list(kind: Any) -> bool:
    """Return whether an Arrow type is one of lists."""
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def missing_as_null(strings: Any) -> Any:
    """Return strings, empty ones replaced by null."""
    return pc.if_else(pc.equal(strings, ""), pa.scalar(None, pa.string()), strings)


def quoted(value: Any) -> str:
    """Return a value for a message, cut if it is long."""
    text = str(value)
    return repr(text if len(text) <= _QUOTED else text[: _QUOTED - 3] + "...")


def _add_bad(bad: dict[int, str], wrong: Any, values: Any, message: Callable[[str], str]) -> None:
    """Note the rows where a boolean Arrow array is true."""
    for row in np.flatnonzero(np.asarray(pc.fill_null(wrong, False))).tolist():
        bad.setdefault(row, message(quoted(values[row].as_py())))


def _refuse_type(values: Any, column: Column) -> SchemaError:
    article = "sets" if column.kind == "set" else f"a {column.kind}"
    return SchemaError(
        f"the column {column.name!r} holds values of type {values.type}, and it is {article}; give the same type, or "
        "say what it is (--numeric, --categorical, --text, --drop)"
    )


# Numbers


def _to_number(values: Any, bad: dict[int, str], column: Column) -> Any:
    if is_string(values.type):
        made = _parse_numbers(values, bad, column)
    elif pa.types.is_integer(values.type) or (pa.types.is_decimal(values.type) and values.type.scale <= 0):
        made = values.cast(pa.float64(), safe=False)
        _refuse_large(values, made, bad, column)
    elif is_number(values.type) or pa.types.is_boolean(values.type):
        made = values.cast(pa.float64(), safe=False)
    else:
        raise _refuse_type(values, column)
    return pc.if_else(pc.is_nan(made), pa.scalar(None, pa.float64()), made)


def _parse_numbers(strings: Any, bad: dict[int, str], column: Column) -> Any:
    strings = pc.utf8_trim_whitespace(strings)
    nothing = pc.is_in(strings, value_set=pa.array(NO_NUMBER))
    strings = pc.if_else(nothing, pa.scalar(None, pa.string()), strings)
    wrong = pc.invert(pc.match_substring_regex(strings, NUMBER))
    if pc.any(wrong).as_py():
        advice = f"if the column is no number, say so with --categorical {column.name} or --text {column.name}"
        _add_bad(bad, wrong, strings, lambda found: f"the value {found} of {column.name!r} is not a number; {advice}")
        strings = pc.if_else(wrong, pa.scalar(None, pa.string()), strings)
    made = strings.cast(pa.float64())
    _refuse_large(strings, made, bad, column)
    return made


def _refuse_large(values: Any, made: Any, bad: dict[int, str], column: Column) -> None:
    """Note whole numbers that float64 may not have."""
    large = pc.greater_equal(pc.abs(made), LARGEST_WHOLE)
    if not pc.any(large).as_py():
        return
    if is_string(values.type):
        large = pc.and_(large, pc.match_substring_regex(values, _DIGITS))
    large = pc.and_(large, pc.invert(pc.is_in(values.cast(pa.string()), value_set=_LARGEST_TEXTS)))
    _add_bad(bad, large, values, lambda found: too_large(found, column.name))


def too_large(found: str, column: str) -> str:
    """Return the message about a whole number beyond 2^53."""
    return (
        f"the whole number {found} of {column!r} is beyond 2^53, where numbers lose digits; if it is an id, say so "
        f"with --categorical {column}"
    )


# Other kinds


def _to_boolean(values: Any, bad: dict[int, str], column: Column) -> Any:
    if pa.types.is_boolean(values.type):
        return values
    if not is_string(values.type):
        raise _refuse_type(values, column)
    words = pc.utf8_lower(missing_as_null(values))
    wrong = pc.invert(pc.is_in(words, value_set=pa.array(["true", "false"])))
    wrong = pc.and_(wrong, pc.is_valid(words))
    _add_bad(bad, wrong, values, lambda found: f"the value {found} of {column.name!r} is neither true nor false")
    return pc.if_else(pc.is_valid(words), pc.equal(words, "true"), pa.scalar(None, pa.bool_()))


def _to_category(values: Any, bad: dict[int, str], column: Column) -> Any:
    return _checked(missing_as_null(to_strings(values, column)), bad, column)


def _checked(strings: Any, bad: dict[int, str], column: Column) -> Any:
    """Return strings; note those with a NUL, which text never has."""
    starts, letters = texts_of(strings)
    if (letters[starts[0] : starts[-1]] == 0).any():
        nul = pc.match_substring(strings, "\0")
        _add_bad(bad, nul, strings, lambda _: _nul_message(column))
    return strings


def to_strings(values: Any, column: Column) -> Any:
    """Return values as strings: whole numbers without a decimal point, booleans as true and false."""
    kind = values.type
    if is_string(kind):
        return values
    if pa.types.is_floating(kind):
        kinds = pc.dictionary_encode(pc.if_else(pc.is_nan(values), pa.scalar(None, kind), values))
        words = pa.array([label_text(value) for value in kinds.dictionary.to_pylist()], pa.string())
        return words.take(kinds.indices)
    if is_number(kind) or pa.types.is_boolean(kind) or is_date(kind):
        return values.cast(pa.string())
    raise _refuse_type(values, column)


def _to_date(values: Any, bad: dict[int, str], column: Column) -> Any:
    if is_date(values.type):
        return _microseconds(values)
    if not is_string(values.type):
        raise _refuse_type(values, column)
    strings = missing_as_null(pc.utf8_trim_whitespace(values))
    made, wrong = parse_dates(strings)
    _add_bad(bad, wrong, values, lambda found: f"the value {found} of {column.name!r} is not a date such as 2024-12-31")
    return made


def _microseconds(dates: Any) -> Any:
    if pa.types.is_timestamp(dates.type):
        # Without its zone, a timestamp is in UTC.
        dates = dates.cast(pa.timestamp(dates.type.unit))
        if dates.type.unit == "ns":  # casts round towards 1970
            dates = pc.floor_temporal(dates, unit="microsecond")
    return dates.cast(pa.timestamp("us"), safe=False)


def parse_dates(strings: Any) -> tuple[Any, Any]:
    """Return the dates that strings in ISO 8601 stand for, and where there is a string that is no date."""
    for unit in ("us", "ns"):
        try:
            return _microseconds(strings.cast(pa.timestamp(unit))), pa.scalar(False)
        except pa.ArrowInvalid:
            pass
    kinds = pc.dictionary_encode(strings)
    dates = pa.array([_parse_date(text) for text in kinds.dictionary.to_pylist()], pa.timestamp("us"))
    made = dates.take(kinds.indices)
    return made, pc.and_(pc.is_null(made), pc.is_valid(strings))


def _parse_date(text: str) -> Any:
    zone = "UTC" if ":" in text and pc.match_substring_regex(pa.scalar(text), _ZONE).as_py() else None
    for unit in ("us", "ns"):
        try:
            return _microseconds(pa.array([text]).cast(pa.timestamp(unit, zone)))[0]
        except pa.ArrowInvalid:
            pass
    return None


def _to_set(values: Any, bad: dict[int, str], column: Column) -> Any:
    if not is_list(values.type):
        raise _refuse_type(values, column)
    items = plain(values.flatten())
    if pa.types.is_null(items.type):
        items = items.cast(pa.string())
    if not is_string(items.type):
        raise _refuse_type(values, column)
    made = _list_of(lambda _: items, values)
    starts, letters = texts_of(items)
    if (letters[starts[0] : starts[-1]] == 0).any():
        places = np.flatnonzero(np.asarray(pc.fill_null(pc.match_substring(items, "\0"), False)))
        rows = np.searchsorted(made.offsets, places, side="right") - 1
        bad |= dict.fromkeys(rows.tolist(), _nul_message(column))
    return made


def _nul_message(column: Column) -> str:
    return f"there is a NUL byte in {column.name!r}; is the file in another encoding than UTF-8?"


def plain_type(kind: Any) -> Any:
    """Return the type of the values, for a type of dictionaries."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def texts_of(strings: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return strings as starts and letters; a null has no letters."""
    buffers = strings.buffers()
    n = len(strings)
    starts = np.zeros(n + 1, np.int32)
    if n and buffers[1] is not None:
        starts = np.frombuffer(buffers[1], np.int32)[strings.offset : strings.offset + n + 1]
    letters = np.zeros(0, np.uint8) if buffers[2] is None else np.frombuffer(buffers[2], np.uint8)
    return starts.astype(np.int64), letters


CONVERSIONS: dict[str, Callable[[Any, dict[int, str], Column], Any]] = {
    "number": _to_number,
    "boolean": _to_boolean,
    "category": _to_category,
    "date": _to_date,
    "text": _to_category,
    "set": _to_set,
}
