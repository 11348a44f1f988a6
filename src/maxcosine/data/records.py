"""From blocks of records to rows: the schema of the first rows, then the same for each block."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from maxcosine.core import canonical_label
from maxcosine.data.batch import Names, RowBatch, RowPlaces
from maxcosine.data.options import ReadOptions, StreamError
from maxcosine.data.parsed import BadLine, ParsedBlock
from maxcosine.data.raw_block import RawBlock, ReadRecords
from maxcosine.data.record_text import TextBlock
from maxcosine.records import RecordOptions, RecordSchema, SchemaError
from maxcosine.records.conversion import LARGEST_WHOLE, convert_table, flat_columns, plain, too_large
from maxcosine.records.encoding import HowEncoded, encode
from maxcosine.records.inference import SAMPLE_ROWS, column_of, infer_schema

SAMPLE_BYTES = 64 << 20
"""Fewer rows are looked at first if they take more than this."""

_WHOLE_NUMBER = re.compile(rb"[:\[,\s](-?[0-9]{16,})\s*[,}\]]")
"""A whole number in JSON that float64 may not have."""

Title = Callable[[int], str]
"""Names an input, given its number."""


def with_schema(
    blocks: Iterable[RawBlock], options: ReadOptions, title: Title
) -> Generator[tuple[RawBlock, ReadOptions], None, None]:
    """Give each block with options that have the schema.

    The first rows are looked at before any block is given. A column without any value there gets its kind with its
    first value.
    """
    waiting: list[RawBlock] = []
    n_rows = n_bytes = 0
    blocks = iter(blocks)
    if options.schema is None:
        for block in blocks:
            waiting.append(block)
            found = block.read(None)
            n_rows += len(found.lines)
            n_bytes += sum(table.nbytes for table in found.tables)
            if n_rows >= SAMPLE_ROWS or n_bytes >= SAMPLE_BYTES:
                break
        options = replace(options, schema=_infer(waiting, options, title))
    assert options.schema is not None
    for block in _chained(waiting, blocks):
        if options.schema.unknown:
            options = replace(options, schema=_with_first_values(options.schema, block))
        assert options.schema is not None
        _check_columns(block, options.schema, title)
        yield block, options


def _chained(waiting: list[RawBlock], blocks: Iterable[RawBlock]) -> Generator[RawBlock, None, None]:
    while waiting:
        yield waiting.pop(0)
    yield from blocks


def _infer(blocks: list[RawBlock], options: ReadOptions, title: Title) -> RecordSchema:
    """Infer the schema from the first rows."""
    sample = pa.table({})
    for block in blocks:
        for table in block.read(None).tables:
            sample = _joined(sample, table)
    if not sample.num_columns:
        raise StreamError(f"there is no record in {title(blocks[0].source if blocks else 0)}; is it the right file?")
    try:
        schema = infer_schema(sample, options.records or RecordOptions())
    except SchemaError as error:
        raise StreamError(f"{title(blocks[0].source)}: {error}") from None
    return replace(schema, normalize=options.normalize, log1p=options.log1p)


def _joined(sample: Any, table: Any) -> Any:
    """Join tables; one whose types contradict those before it is left out, and its lines are bad lines later."""
    try:
        return pa.concat_tables([sample, table], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return sample


def _with_first_values(schema: RecordSchema, block: RawBlock) -> RecordSchema:
    """Find the kind of columns whose first value is in a block."""
    for table in block.read(schema).tables:
        found = dict(flat_columns(table))
        for name in schema.unknown:
            values = plain(found[name]).drop_null() if name in found else pa.nulls(0)
            if pa.types.is_string(values.type):
                values = values.filter(pc.not_equal(values, ""))
            if len(values):
                schema = schema.with_column(column_of(name, values[:1]))
    return schema


def _check_columns(block: RawBlock, schema: RecordSchema, title: Title) -> None:
    """Refuse an input that lacks a column; the first block of an input tells."""
    if not block.is_first:
        return
    names = _names_in(block, schema)
    if names is None:
        return
    for column in schema.columns:
        if column.name not in names and (column.required or not _is_json(block)):
            raise StreamError(
                f"{title(block.source)}: there is no column {column.name!r}, which is needed; add it, empty if need be"
            )


def _is_json(block: RawBlock) -> bool:
    return isinstance(block, TextBlock) and not block.file.is_csv


def _names_in(block: RawBlock, schema: RecordSchema) -> set[str] | None:
    """Return the columns of which a block has values, or that its header names; None if it has no rows."""
    if isinstance(block, TextBlock) and block.file.is_csv:
        return set(block.file.header)
    tables = block.read(schema).tables
    if not any(len(table) for table in tables):
        return None
    columns = [one for table in tables for one in flat_columns(table)]
    return {name for name, values in columns if not _is_json(block) or values.null_count < len(values)}


# Rows


def parse(block: RawBlock, options: ReadOptions) -> ParsedBlock:
    """Parse a block into rows."""
    schema = options.schema
    assert schema is not None
    read = block.read(schema)
    columns, bad = _converted(block, read, schema, float(np.finfo(options.dtype).max))
    n_rows = len(read.lines)
    kept = np.isin(np.arange(n_rows), list(bad), invert=True)
    lines, offsets = read.lines[kept], None if read.offsets is None else read.offsets[kept]
    kept_rows = np.flatnonzero(kept)
    if bad:
        columns = {name: values.take(pa.array(kept_rows)) for name, values in columns.items()}
    codes, labels = _labels(columns.pop(schema.label.name) if schema.label else None, len(kept_rows))
    weights = None if schema.weight is None else np.asarray(columns.pop(schema.weight.name))
    batch = _rows(columns, schema, len(kept_rows), options)
    batch.codes, batch.weights = codes, weights
    batch.places = RowPlaces(lines, offsets)
    batch.kept_columns = _kept_columns(block, read, kept_rows, options.keep_columns)
    bad_lines = [BadLine(int(read.lines[row]), message, block.text_of(row)) for row, message in bad.items()]
    parsed = ParsedBlock(
        batch,
        labels,
        block.source,
        block.n_lines,
        block.offset,
        block.end,
        block.is_last,
        sorted([*read.bad, *bad_lines]),
        is_partial=bool(bad),
        new_columns=_new_columns(read, schema),
    )
    parsed.leave_out_unusable(options, lambda row: block.text_of(int(kept_rows[row])))
    return parsed


def _kept_columns(block: RawBlock, read: ReadRecords, rows: np.ndarray, names: tuple[str, ...] | None) -> Any:
    """Return the columns that are kept as they are, of these rows; None if none are kept."""
    if not names:
        return None
    parts, first = [], 0
    for table in read.tables:
        own = rows[(rows >= first) & (rows < first + len(table))] - first
        parts += [table.take(pa.array(own))] if len(own) else []
        first += len(table)
    try:
        table = pa.concat_tables([pa.table({"": pa.nulls(0)}), *parts], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise StreamError(f"a column that is kept has values of several types: {error}; keep others (--keep)") from None
    found = [name for name in table.column_names if name]
    if names == ("*",):
        return table.select(block.order_of(found) if len(rows) else found)
    missing = [name for name in names if name not in found]
    if missing and len(rows):
        raise StreamError(f"there is no column {missing[0]!r} to keep; the columns are {', '.join(found)}")
    return table.select([name for name in names if name in found])


def _new_columns(read: ReadRecords, schema: RecordSchema) -> list[str]:
    """Return the columns that the schema does not mention, not even as a part of a nested object."""
    known = schema.known_names | {name.partition(".")[0] for name in schema.known_names}
    return [name for table in read.tables for name in table.column_names if name and name not in known]


def _rows(columns: dict[str, Any], schema: RecordSchema, n_rows: int, options: ReadOptions) -> RowBatch:
    bits, l2 = 0 if options.exact else options.bits, schema.normalize == "l2"
    how = HowEncoded(bits, options.dtype, schema.log1p, l2, options.keep_names and not options.exact)
    rows = encode(columns, schema, n_rows, how)
    names = None if rows.names is None else Names(*rows.names)
    keys: Any = names if rows.columns is None else rows.columns
    return RowBatch(
        rows.indptr,
        keys,
        rows.values,
        np.zeros(n_rows, np.int64),
        squares=rows.squares,
        hashed_names=None if rows.columns is None else names,
        hashed_columns=rows.name_columns,
    )


def _converted(
    block: RawBlock, read: ReadRecords, schema: RecordSchema, largest: float
) -> tuple[dict[str, Any], dict[int, str]]:
    """Convert the tables of a block; return its columns, and the bad rows with the reasons."""
    parts, bad, first = [], dict[int, str](), 0
    for table in read.tables:
        columns, wrong = convert_table(table, schema, largest)
        if _is_json(block):
            wrong = {**_large_whole_numbers(block, columns, schema, first), **wrong}
        bad |= {first + row: message for row, message in wrong.items()}
        parts.append(columns)
        first += len(table)
    if not parts:
        parts = [convert_table(pa.table({"": pa.nulls(0)}), schema, largest)[0]]
    if schema.weight is not None:
        weights = [part[schema.weight.name] for part in parts]
        bad |= _bad_weights(pa.concat_arrays(weights), schema.weight.name)
    joined = {name: pa.concat_arrays([part[name] for part in parts]) for name in parts[0]}
    return joined, dict(sorted(bad.items()))


def _large_whole_numbers(block: RawBlock, columns: dict[str, Any], schema: RecordSchema, first: int) -> dict[int, str]:
    """Return the rows of JSON with a whole number beyond 2^53 that was read as a float."""
    found = {}
    for column in schema.all_columns:
        if column.kind == "number":
            large = pc.greater(pc.abs(columns[column.name]), LARGEST_WHOLE)
            for row in np.flatnonzero(np.asarray(pc.fill_null(large, False))).tolist():
                written = _WHOLE_NUMBER.search(block.text_of(first + row))
                if written:
                    found[row] = too_large(written[1].decode(), column.name)
    return found


def _bad_weights(weights: Any, name: str) -> dict[int, str]:
    """Return the rows whose weight is missing or negative."""
    wrong = pc.fill_null(pc.less(weights, 0.0), True)
    rows = np.flatnonzero(np.asarray(wrong)).tolist()
    return dict.fromkeys(rows, f"the weight {name!r} is missing or negative; weights are 0 or more")


def _labels(values: Any, n_rows: int) -> tuple[np.ndarray, list[str]]:
    """Return the code of the label of each row, -1 for none, and the labels in the order of their first rows."""
    if values is None:
        return np.full(n_rows, -1), []
    found = pc.dictionary_encode(values)
    codes = np.asarray(pc.fill_null(found.indices, -1)).astype(np.int64)
    labels: dict[str, int] = {}
    table = [labels.setdefault(canonical_label(text), len(labels)) for text in found.dictionary.to_pylist()]
    return np.array([*table, -1])[codes], list(labels)
