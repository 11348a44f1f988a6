"""From converted columns to features, in the order of the columns.

The features of a column `age`, `color` and so on:

- number: `age`, and the range that it is in, `age=30..40`; category and set: `color=red`; boolean: `open=true`;
- date: `when.year=2024`, `when.month=12`, `when.day=31`, `when.weekday=Tue` and, unless it is midnight, `when.hour=23`;
- text: `body:word`, `body:two words`, and `body~cha` for characters;
- any missing value: `age (missing)`.

Values are 1, of numbers the numbers, and of texts how often a word occurs. A name has two parts, such as `color=` and
`red`, where the first one may be empty. The column of a hashed feature is `core.column_of_name` of the two.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from maxcosine import core
from maxcosine.records.conversion import texts_of
from maxcosine.records.schema import Column, RecordSchema, missing_feature

NO_FEATURE = core.NO_FEATURE
DIGITS_OF_RANGES = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
WEEKDAYS = pa.array(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
RANGE_STARTS = np.array([float(f"{digits}e{power}") for power in range(-307, 309) for digits in DIGITS_OF_RANGES])
DATE_PARTS = ("year", "month", "day", "weekday", "hour")


class HowEncoded(NamedTuple):
    """How features are known, and what is done to their values."""

    bits: int  # 0: by name
    dtype: str
    log1p: bool = False
    l2: bool = False
    keep_names: bool = False


class EncodedRows(NamedTuple):
    """Rows of features; `columns` if they are hashed, else names, which may occur several times in a row."""

    indptr: np.ndarray
    values: np.ndarray
    columns: np.ndarray | None
    squares: np.ndarray | None
    names: tuple[np.ndarray, np.ndarray] | None  # letters and starts: of the features, or those that are kept
    name_columns: np.ndarray | None  # the column of each kept name


class _Piece(NamedTuple):
    """Some features of each row."""

    prefix: str
    names: Any  # Arrow strings: what follows the prefix
    keys: np.ndarray  # numbers of names, NO_FEATURE for none
    indptr: np.ndarray | None = None  # None: one for each row
    values: np.ndarray | None = None  # None: all are 1


def encode(columns: dict[str, Any], schema: RecordSchema, n_rows: int, how: HowEncoded) -> EncodedRows:
    """Make rows of converted columns, given by name."""
    joined: list[tuple[Any, ...]] = []
    kept: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for column in schema.columns:
        values = columns[column.name]
        if column.kind == "text":
            joined.append(_tokenized(column.name, values, schema, how, kept))
        joined += [_keyed(piece, how, kept) for piece in _pieces(column, values)]
    float32 = how.dtype == "float32"
    if not how.bits:
        indptr, letters, starts, found = core.join_names(n_rows, joined, float32=float32)
        return EncodedRows(indptr, found, None, None, (letters, starts), None)
    indptr, keys, found, squares = core.join_columns(n_rows, joined, float32=float32, log1p=how.log1p, l2=how.l2)
    names, name_columns = _all_names(kept) if how.keep_names else (None, None)
    return EncodedRows(indptr, found, keys, squares, names, name_columns)


def _all_names(kept: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> tuple[Any, np.ndarray]:
    """Join the names of several pieces: letters and starts, and their columns."""
    parts = [(letters[starts[0] : starts[-1]], np.diff(starts), columns) for letters, starts, columns in kept]
    letters, sizes, columns = (np.concatenate([np.zeros(0), *(part[k] for part in parts)]) for k in range(3))
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return (letters.astype(np.uint8), starts), columns.astype(np.uint32)


def _keyed(piece: _Piece, how: HowEncoded, kept: list[Any]) -> tuple[Any, ...]:
    """Return a piece as the core joins it: with hashed columns, or with whole names."""
    whole_starts, whole_letters = texts_of(pc.binary_join_element_wise(pa.scalar(piece.prefix), piece.names, ""))
    if not how.bits:
        return piece.indptr, piece.keys, piece.values, whole_letters, whole_starts
    starts, letters = texts_of(piece.names)
    columns = core.columns_of_names(piece.prefix.encode(), starts, letters, how.bits)
    kept.append((whole_letters, whole_starts, columns))
    keys = np.append(columns, np.uint32(NO_FEATURE))[np.minimum(piece.keys, len(columns))]
    return piece.indptr, keys, piece.values


# Texts


def normalized(texts: Any) -> Any:
    """Return texts in Unicode's form NFKC and in lower case; those in ASCII are left to the core."""
    other = pc.fill_null(pc.invert(pc.string_is_ascii(texts)), False)
    if not pc.any(other).as_py():
        return texts
    found = [unicodedata.normalize("NFKC", text).lower() for text in texts.filter(other).to_pylist()]
    return pc.replace_with_mask(texts, other, pa.array(found, pa.string()))


def _tokenized(name: str, texts: Any, schema: RecordSchema, how: HowEncoded, kept: list[Any]) -> tuple[Any, ...]:
    starts, letters = texts_of(normalized(texts))
    least, most = schema.chars or (0, 0)
    indptr, columns, names, name_starts, name_columns = core.tokenize(
        starts,
        letters,
        f"{name}:".encode(),
        f"{name}~".encode(),
        bits=how.bits,
        ngrams=schema.ngrams,
        min_chars=least,
        max_chars=most,
        keep_names=how.keep_names,
    )
    if not how.bits:
        return indptr, np.arange(len(name_starts) - 1, dtype=np.uint32), None, names, name_starts
    kept.append((names, name_starts, name_columns))
    return indptr, columns, None


# Other kinds


def _pieces(column: Column, values: Any) -> Iterator[_Piece]:
    """Give the features of a column, except the words of a text."""
    is_missing = np.asarray(pc.is_null(values))
    if column.kind == "number":
        numbers = np.asarray(pc.fill_null(values, 1.0))
        if not is_missing.all():
            names = np.where(is_missing, NO_FEATURE, 0).astype(np.uint32)
            yield _Piece("", _names(column.name), names, values=numbers)
        yield _ranges(f"{column.name}=", numbers, is_missing)
    elif column.kind == "boolean":
        yield _categories(f"{column.name}=", values.cast(pa.string()))
    elif column.kind == "category":
        yield _categories(f"{column.name}=", values)
    elif column.kind == "date":
        for part in DATE_PARTS:
            yield _categories(f"{column.name}.{part}=", _date_part(part, values))
    elif column.kind == "set":
        yield _set(f"{column.name}=", values)
    if is_missing.any():
        yield _Piece("", _names(missing_feature(column.name)), np.where(is_missing, 0, NO_FEATURE).astype(np.uint32))


def _ranges(prefix: str, numbers: np.ndarray, is_missing: np.ndarray) -> _Piece:
    """Return in which range each number is: ten a decade, the same for all data."""
    places = np.searchsorted(RANGE_STARTS, np.abs(numbers), side="right")  # 0 for zero
    found, places_found = np.unique(np.where(numbers < 0, -places, places)[~is_missing], return_inverse=True)
    keys = np.full(len(numbers), NO_FEATURE, np.uint32)
    keys[~is_missing] = places_found
    return _Piece(prefix, _names(*map(_range_name, found.tolist())), keys)


def _range_name(place: int) -> str:
    if place == 0:
        return "0"
    stop = RANGE_STARTS[abs(place)] if abs(place) < len(RANGE_STARTS) else np.inf
    ends = f"{RANGE_STARTS[abs(place) - 1]:g}", f"{stop:g}"
    return f"{ends[0]}..{ends[1]}" if place > 0 else f"-{ends[1]}..-{ends[0]}"


def _names(*names: str) -> Any:
    return pa.array(names, pa.string())


def _categories(prefix: str, strings: Any) -> _Piece:
    found = pc.dictionary_encode(strings)
    keys = np.asarray(pc.fill_null(found.indices.cast(pa.uint32()), NO_FEATURE))
    return _Piece(prefix, found.dictionary, keys)


def _date_part(part: str, dates: Any) -> Any:
    """Return a part of dates as strings; the hour of midnight is missing, because dates without a time have none."""
    if part == "weekday":
        return WEEKDAYS.take(pc.day_of_week(dates))
    if part != "hour":
        return getattr(pc, part)(dates).cast(pa.string())
    is_midnight = pc.equal(dates, pc.floor_temporal(dates, unit="day"))
    return pc.if_else(is_midnight, pa.scalar(None, pa.string()), pc.hour(dates).cast(pa.string()))


def _set(prefix: str, lists: Any) -> _Piece:
    """Return each different string of each list, in the order of the list."""
    rows = np.repeat(np.arange(len(lists)), np.asarray(pc.fill_null(pc.list_value_length(lists), 0)))
    found = pc.dictionary_encode(pc.list_flatten(lists))
    codes = np.asarray(pc.fill_null(found.indices, -1)).astype(np.int64)
    _, first = np.unique(rows * (len(found.dictionary) + 1) + codes, return_index=True)
    kept = np.sort(first)
    kept = kept[codes[kept] >= 0]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=len(lists)))]).astype(np.int64)
    return _Piece(prefix, found.dictionary, codes[kept].astype(np.uint32), indptr)
