"""What the columns of records are, found out from the first rows.

Strings are looked at: if all are numbers, booleans or dates, that is what they are, so that a file of strings, such as
CSV, gives the same columns as one with types. Numbers with leading zeros, such as post codes, are categories. Other
strings are texts if they have more than three words on average, and else categories.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from maxcosine.records.conversion import (
    NO_NUMBER,
    NUMBER,
    convert,
    flat_columns,
    is_date,
    is_list,
    is_number,
    is_string,
    missing_as_null,
    parse_dates,
    plain_type,
    to_strings,
    valid,
)
from maxcosine.records.schema import Column, RecordOptions, RecordSchema, SchemaError

SAMPLE_ROWS = 1000
"""Rows that the kinds of columns are inferred from."""

TEXT_WORDS = 3.0  # strings with more words than this on average are texts
LONG_STRING = 200  # and so are those with a longer one
_LEADING_ZERO = r"^-?0[0-9]"


def infer_schema(table: Any, options: RecordOptions) -> RecordSchema:
    """Return the schema of records whose first rows are in a table."""
    found = dict(flat_columns(table))
    missing = [name for name in options.named if name not in found]
    if missing:
        names = ", ".join(list(found)[:20])
        raise SchemaError(f"there is no column {missing[0]!r}; the columns are {names}")
    roles = {options.label: "category", options.weight: "number"}
    columns = {
        name: column_of(name, _first_rows(values), roles.get(name) or options.kind_of(name))
        for name, values in found.items()
        if name not in options.drop
    }
    label, weight = (columns.pop(name, None) if name else None for name in (options.label, options.weight))
    if not columns:
        raise SchemaError("no column is left to learn from beside the label")
    label_type = "text" if label is None else _label_type(_first_rows(found[label.name]), label)
    return RecordSchema(tuple(columns.values()), label, weight, label_type, options.drop, options.ngrams, options.chars)


def column_of(name: str, values: Any, wanted: str | None = None) -> Column:
    """Return what a column is, given values of it."""
    kind = infer_kind(name, values, wanted)
    column = Column(name, kind, _stored(values.type))
    is_missing = kind is None or convert(values, column).values.null_count > 0
    return replace(column, required=bool(len(values)) and not is_missing)


def _stored(kind: Any) -> str | None:
    """Return what a type is called in a schema."""
    if is_list(kind):
        return "strings"
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind):
        return "float"
    if pa.types.is_boolean(kind):
        return "boolean"
    return "string" if is_string(kind) else None


def _first_rows(values: Any) -> Any:
    return valid(values.slice(0, SAMPLE_ROWS))[0]


def infer_kind(name: str, values: Any, wanted: str | None = None) -> str | None:
    """Return the kind of a column, given values of it; None if all are missing."""
    kind = values.type
    if is_list(kind):
        return _kind_of_lists(name, kind)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        raise SchemaError(f"the column {name!r} holds bytes; leave it out with --drop {name}")
    if wanted is not None:
        return wanted
    if pa.types.is_null(kind) or values.null_count == len(values):
        return None
    if is_number(kind):
        return "number"
    if pa.types.is_boolean(kind):
        return "boolean"
    if is_date(kind):
        return "date"
    if is_string(kind):
        return _kind_of_strings(values)
    raise SchemaError(
        f"the column {name!r} holds values of type {kind}, which are not read; leave it out with --drop {name}"
    )


def _kind_of_lists(name: str, kind: Any) -> str | None:
    items = plain_type(kind.value_type)
    if pa.types.is_null(items):
        return None
    if is_string(items):
        return "set"
    raise SchemaError(
        f"the column {name!r} holds lists of {items}, and only lists of strings are read; leave it out: --drop {name}"
    )


def _kind_of_strings(strings: Any) -> str | None:
    strings = missing_as_null(strings).drop_null()
    if not len(strings):
        return None
    trimmed = pc.utf8_trim_whitespace(strings)
    words = trimmed.filter(pc.invert(pc.is_in(trimmed, value_set=pa.array(NO_NUMBER))))
    if not len(words):
        return "category"
    if _all(pc.match_substring_regex(words, NUMBER)):
        return "category" if pc.any(pc.match_substring_regex(words, _LEADING_ZERO)).as_py() else "number"
    if _all(pc.is_in(pc.utf8_lower(strings), value_set=pa.array(["true", "false"]))):
        return "boolean"
    if (
        _all(pc.match_substring_regex(trimmed, r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"))
        and parse_dates(trimmed)[0].null_count == 0
    ):
        return "date"
    n_words = np.asarray(pc.list_value_length(pc.utf8_split_whitespace(trimmed)))
    is_long = pc.max(pc.utf8_length(strings)).as_py() > LONG_STRING
    return "text" if is_long or float(n_words.mean()) > TEXT_WORDS else "category"


def _all(flags: Any) -> bool:
    return bool(pc.all(flags).as_py())


def _label_type(values: Any, column: Column) -> str:
    """Return what labels are, for Python: whole numbers, booleans or texts."""
    kind = infer_kind(column.name, values)
    if kind == "boolean":
        return "boolean"
    texts = missing_as_null(to_strings(values, column)).drop_null()
    return "integer" if kind == "number" and _all(pc.match_substring_regex(texts, r"^-?[0-9]+$")) else "text"
