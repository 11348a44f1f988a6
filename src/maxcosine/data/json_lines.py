"""Lines of JSON as Arrow tables."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.json

from maxcosine.records import STORED, RecordSchema, SchemaError
from maxcosine.records.conversion import flat_columns


def read_json_lines(text: bytes, schema: RecordSchema | None) -> Any:
    """Read lines of JSON.

    If a column that the schema does not mention has values of several types, only those of the schema are read.
    """
    if schema is None:
        table = _read_json(text, None)
        strings = _timestamps_as_strings(table.schema)
        return table if strings is None else _read_json(text, strings)
    try:
        table = _read_json(text, _explicit_types(schema, ("string", "strings")))
        list(flat_columns(table))
        return table
    except (pa.ArrowInvalid, SchemaError):
        return _read_json(text, _explicit_types(schema, STORED), "ignore")


def _read_json(text: bytes, types: Any, unexpected: str = "infer") -> Any:
    parsing = pyarrow.json.ParseOptions(explicit_schema=types, unexpected_field_behavior=unexpected)
    reading = pyarrow.json.ReadOptions(use_threads=False, block_size=len(text) + 1)
    return pyarrow.json.read_json(io.BytesIO(text), reading, parsing)


def _timestamps_as_strings(schema: Any) -> Any:
    """Return the fields that the reader took for timestamps as strings; None if there are none."""

    def mended(kind: Any) -> Any:
        if pa.types.is_timestamp(kind):
            return pa.string()
        if pa.types.is_struct(kind):
            return pa.struct([(one.name, mended(one.type)) for one in kind])
        return pa.list_(mended(kind.value_type)) if pa.types.is_list(kind) else kind

    fields = [(one.name, mended(one.type)) for one in schema if mended(one.type) != one.type]
    return pa.schema(fields) if fields else None


_STORED_TYPES = {
    "string": pa.string(),
    "integer": pa.int64(),
    "float": pa.float64(),
    "boolean": pa.bool_(),
    "strings": pa.list_(pa.string()),
}


def _explicit_types(schema: RecordSchema, stored: Sequence[str]) -> Any:
    """Return the types of columns that are stored in these ways, nested as in the data."""
    fields: dict[str, Any] = {}
    for column in schema.all_columns:
        if column.stored is not None and column.stored in stored:
            is_number = column.kind == "number" and column.stored == "integer"
            _put(fields, column.name.split("."), pa.float64() if is_number else _STORED_TYPES[column.stored])
    return pa.schema(_fields_of(fields))


def _put(fields: dict[str, Any], path: list[str], kind: Any) -> None:
    for name in path[:-1]:
        fields = fields.setdefault(name, {})
    fields[path[-1]] = kind


def _fields_of(fields: dict[str, Any]) -> list[Any]:
    return [
        pa.field(name, pa.struct(_fields_of(kind)) if isinstance(kind, dict) else kind) for name, kind in fields.items()
    ]


def json_fault(error: Exception, text: bytes) -> str:
    """Return in words what is wrong with a line of JSON."""
    message = re.sub(r"^JSON parse error: |\.? in row 0$", "", str(error).strip())
    changed = re.match(r"Column\(/(.*)\) changed from (.*) to (.*)", message)
    if not text.lstrip().startswith(b"{"):
        return 'the line is not a JSON object, {"name": value, ...}'
    if changed and changed[1]:
        return f"the column {changed[1].replace('/', '.')!r} holds a {changed[3]} here, and a {changed[2]} elsewhere"
    return f"the line is not JSON: {message}"
