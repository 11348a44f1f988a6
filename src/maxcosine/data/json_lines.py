"""Lines of JSON as Arrow tables."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pyarrow as pa
import pyarrow.json

from maxcosine import core
from maxcosine.records import RecordSchema, SchemaError
from maxcosine.records.conversion import flat_columns

UNREADABLE = (pa.ArrowException, SchemaError, UnicodeDecodeError)
"""The errors of lines that cannot be read."""

BRACKETS = (
    "",
    'the line is not a JSON object, {"name": value, ...}',
    "the JSON object does not end on its line; write one object a line",
    "there is more than one JSON object on the line; write one object a line",
    f"the JSON object is nested more than {core.MAX_JSON_DEPTH} deep; leave out what is so deep",
)
"""What is wrong with a line, by the numbers of `core.check_json_lines`."""


def read_json_lines(text: bytes, schema: RecordSchema | None) -> tuple[Any, list[str]]:
    """Read lines of JSON; return a table, and the columns that were left out.

    Strings that look like dates stay strings. Columns that the schema does not mention are left out if their values
    have several types.
    """
    try:
        return _read_inferred(text, schema), []
    except UNREADABLE as error:
        if schema is None or _is_about_known(str(error), schema):
            raise
    mended, left_out = _without_unknown(text, schema)
    return _read_inferred(mended, schema), left_out


def _read_inferred(text: bytes, schema: RecordSchema | None) -> Any:
    """Read all columns, whose types are those of the text, but dates are strings."""
    # This saves reading the text twice.
    dates = [] if schema is None else [one.name for one in schema.columns if one.kind == "date" and "." not in one.name]
    types = pa.schema([(name, pa.string()) for name in dates])
    table = _read_json(text, types)
    known = None if schema is None else schema.known_names
    columns = list(flat_columns(table))  # refuses names that occur twice
    has_dates = any(_has_dates(one.type) and (known is None or name in known) for name, one in columns)
    if has_dates or _lacks_nulls(table):
        # All fields, because those that are given come first.
        table = _read_json(text, pa.schema([(one.name, _readable(one.type)) for one in table.schema]))
    return table


def _lacks_nulls(table: Any) -> bool:
    """Return whether pyarrow 26 left out nulls at the start of lists, whose type it did not know yet."""
    try:
        table.validate()
    except pa.ArrowInvalid:
        return True
    return False


def _read_json(text: bytes, types: Any) -> Any:
    parsing = pyarrow.json.ParseOptions(explicit_schema=types)
    reading = pyarrow.json.ReadOptions(use_threads=False, block_size=len(text) + 1)
    return pyarrow.json.read_json(io.BytesIO(text), reading, parsing)


def _has_dates(kind: Any) -> bool:
    """Return whether the reader took strings of a column for dates."""
    if pa.types.is_struct(kind):
        return any(_has_dates(one.type) for one in kind)
    return _has_dates(kind.value_type) if pa.types.is_list(kind) else bool(pa.types.is_timestamp(kind))


def _readable(kind: Any) -> Any:
    """Return the type in which values are read: dates as strings, and lists of known type."""
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([(one.name, _readable(one.type)) for one in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.string() if pa.types.is_null(kind.value_type) else _readable(kind.value_type))
    return kind


# Columns that the schema does not mention


def _is_about_known(message: str, schema: RecordSchema) -> bool:
    """Return whether an error of the reader is about a column that the schema mentions, or a part of it."""
    found = re.search(r"Column\(/([^/)]*)", message)
    return found is not None and found[1] in _known_keys(schema)


def _known_keys(schema: RecordSchema) -> set[str]:
    """Return the keys of lines that may hold columns of the schema, whose names may have points."""
    names = [column.name for column in schema.all_columns]
    return {name[:stop] for name in names for stop in [*_points(name), len(name)]}


def _points(name: str) -> list[int]:
    return [place for place, letter in enumerate(name) if letter == "."]


def _without_unknown(text: bytes, schema: RecordSchema) -> tuple[bytes, list[str]]:
    """Return lines without the keys that the schema does not mention, and these keys."""
    known = _known_keys(schema)
    left_out: dict[str, None] = {}
    lines = []
    for line in text.split(b"\n"):
        if line.strip():
            found = _parsed(line)
            left_out |= dict.fromkeys(name for name, value in found.items() if name not in known and value is not None)
            lines.append(json.dumps({name: value for name, value in found.items() if name in known}))
    return "\n".join(lines).encode() + b"\n", list(left_out)


# Exact values and messages


def _parsed(line: bytes) -> dict[str, Any]:
    """Return a line as Python's json reads it; refuse keys that occur twice, because one value would be lost."""
    try:
        found: dict[str, Any] = json.loads(line, object_pairs_hook=_all_different)
    except ValueError as error:
        raise SchemaError(str(error)) from None
    return found


def _all_different(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise SchemaError("a key occurs twice")
    return found


def written_integer(line: bytes, column: str) -> int | None:
    """Return the exact value of a column if the line has a whole number there, written without a point."""
    try:
        found = _at(_parsed(line), column)
    except SchemaError:
        return None
    return found if type(found) is int else None


def _at(value: Any, name: str) -> Any:
    """Return the value of a column in nested objects, whose keys may have points."""
    if not isinstance(value, dict):
        return None
    for key, item in value.items():
        if key == name:
            return item
        if name.startswith(key + ".") and (found := _at(item, name[len(key) + 1 :])) is not None:
            return found
    return None


def json_fault(error: Exception) -> str:
    """Return in words what is wrong with a line of JSON."""
    if isinstance(error, UnicodeDecodeError):
        return "the line is not UTF-8; convert the file to UTF-8"
    message = re.sub(r"^JSON parse error: |\.? in row 0$", "", str(error).strip())
    changed = re.match(r"Column\(/(.*)\) changed from (.*) to (.*)", message)
    if changed and changed[1]:
        return f"the column {changed[1].replace('/', '.')!r} holds a {changed[3]} here, and a {changed[2]} elsewhere"
    return f"the line cannot be read as JSON: {message}"
