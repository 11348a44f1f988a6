"""From blocks of records to rows: the schema of the first rows, then the same for each block."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from maxcosine.core import canonical_label
from maxcosine.data.batch import Names, RowBatch, RowPlaces
from maxcosine.data.json_lines import read_json_lines, written_integer
from maxcosine.data.options import ReadOptions, StreamError
from maxcosine.data.parsed import BadLine, ParsedBlock
from maxcosine.data.raw_block import RawBlock, ReadRecords
from maxcosine.data.record_text import TextBlock
from maxcosine.records import RecordOptions, RecordSchema, SchemaError
from maxcosine.records.conversion import (
    LARGEST_WHOLE,
    check_types,
    convert_table,
    flat_columns,
    rows_with_values,
    too_large,
    valid,
)
from maxcosine.records.encoding import HowEncoded, encode
from maxcosine.records.inference import SAMPLE_ROWS, column_of, infer_schema

SAMPLE_BYTES = 64 << 20
"""Fewer rows are looked at first if they take more than this."""

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
    blocks = iter(blocks)
    if options.schema is None:
        sample = _Sample()
        for block in blocks:
            waiting.append(block)
            if sample.add(block):
                break
        options = replace(options, schema=_infer(sample, options, title))
    assert options.schema is not None
    columns_of = _ColumnsOfInput(title, options.purpose)
    for block in _chained(waiting, blocks):
        if options.schema.unknown:
            options = replace(options, schema=_with_first_values(options.schema, block, title))
        assert options.schema is not None
        columns_of.check(block, options.schema)
        yield block, options


def _chained(waiting: list[RawBlock], blocks: Iterable[RawBlock]) -> Generator[RawBlock, None, None]:
    while waiting:
        yield waiting.pop(0)
    yield from blocks


class _Sample:
    """The first rows, which are the same however the inputs are cut into blocks."""

    def __init__(self) -> None:
        self.source = 0
        self.bad: list[BadLine] = []
        self._n_rows = self._n_bytes = 0
        self._parts: list[RawBlock] = []
        self._text = b""  # more of the last part

    def add(self, block: RawBlock) -> bool:
        """Take the first rows of a block; return whether that is enough."""
        if isinstance(block, TextBlock):
            text, n_rows = block.head(SAMPLE_ROWS - self._n_rows, SAMPLE_BYTES - self._n_bytes)
            if not self._parts or self._parts[-1].source != block.source:
                self._end_part()
                self._parts.append(block)
            self._text += text
            self._n_bytes += len(text)
        else:
            self._end_part()
            self._parts.append(block)
            n_rows = block.n_lines
            self._n_bytes += sum(table.nbytes for table in block.read(None).tables)
        self._n_rows += n_rows
        return self._n_rows >= SAMPLE_ROWS or self._n_bytes >= SAMPLE_BYTES

    def _end_part(self) -> None:
        if self._parts and isinstance(last := self._parts[-1], TextBlock) and last.block.offset != 1:
            self._parts[-1] = last.with_text(self._text)
        self._text = b""

    def table(self) -> Any:
        """Return the rows; those whose types contradict the rows before are left out, and are bad lines later."""
        self._end_part()
        sample, is_complete = pa.table({}), False
        for part in self._parts:
            read = part.read(None)
            self.source = self._parts[0].source
            self.bad += read.bad
            for table in read.tables:
                if is_complete:  # what the next files have beside it is new
                    table = table.select([name for name in table.column_names if name in sample.column_names])
                sample = _joined(sample, table)
            is_complete = is_complete or (sample.num_columns > 0 and not part.lacks_keys)
        return sample


def _infer(sample: _Sample, options: ReadOptions, title: Title) -> RecordSchema:
    """Infer the schema from the first rows."""
    table = sample.table()
    name = title(sample.source)
    if not table.num_columns:
        reason = f": {sample.bad[0].message}" if sample.bad else ""
        raise StreamError(f"there is no record in {name}{reason}; is it the right file?")
    try:
        schema = infer_schema(table, options.records or RecordOptions())
    except SchemaError as error:
        raise StreamError(f"{name}: {error}") from None
    return replace(schema, normalize=options.normalize, log1p=options.log1p)


def _joined(sample: Any, table: Any) -> Any:
    try:
        return pa.concat_tables([sample, table], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return sample


def _with_first_values(schema: RecordSchema, block: RawBlock, title: Title) -> RecordSchema:
    """Find the kind of columns whose first value is in a block, by this value alone."""
    first = 0
    for table in block.read(schema).tables:
        for name in schema.unknown:
            if name not in (found := dict(_flat(table))):
                continue
            values = valid(found[name])[0]
            rows = rows_with_values(values)
            if rows:
                alone = values.slice(rows[0], 1)
                if isinstance(block, TextBlock) and not block.file.is_csv:  # its type may be that of later values
                    line = block.text_of(first + rows[0]) + b"\n"
                    alone = valid(dict(_flat(read_json_lines(line, schema)[0]))[name])[0]
                try:
                    schema = schema.with_column(replace(column_of(name, alone), required=False))
                except SchemaError as error:
                    raise StreamError(f"{title(block.source)}: {error}") from None
        first += len(table)
    return schema


def _flat(table: Any) -> list[tuple[str, Any]]:
    """Return the columns of a table; a table with a name twice is refused elsewhere."""
    try:
        return list(flat_columns(table))
    except SchemaError:
        return []


class _ColumnsOfInput:
    """Refuses an input that lacks a column, or has one of another type.

    An object of JSON may lack a column, but not the first 1,000 ones all, if no value was missing before.
    """

    def __init__(self, title: Title, purpose: str) -> None:
        self._title, self._purpose = title, purpose
        self._source, self._n_rows, self._names, self._is_checked = -1, 0, set[str](), False

    def check(self, block: RawBlock, schema: RecordSchema) -> None:
        """Look at the columns of a block."""
        if block.source != self._source:
            self._source, self._n_rows, self._names = block.source, 0, set()
            self._is_checked = not block.is_first
        if self._is_checked:
            return
        if isinstance(block, TextBlock) and block.file.is_csv:
            self._refuse_missing(set(block.file.header), schema)
            return
        read = block.read(schema)
        if not block.lacks_keys and any(table.num_columns for table in read.tables):
            self._refuse_types(read.tables[0], schema)
            self._refuse_missing({name for name, _ in flat_columns(read.tables[0])}, schema)
            return
        for table in read.tables:
            for name, values in flat_columns(table.slice(0, SAMPLE_ROWS - self._n_rows)):
                if values.null_count < len(values):
                    self._names.add(name)
            self._n_rows = min(SAMPLE_ROWS, self._n_rows + len(table))
        if self._n_rows == SAMPLE_ROWS or (block.is_last and self._n_rows):
            self._refuse_missing(self._names, schema, only_required=True)

    def _refuse_types(self, table: Any, schema: RecordSchema) -> None:
        try:
            check_types(table, schema)
        except SchemaError as error:
            raise StreamError(f"{self._title(self._source)}: {error}") from None

    def _refuse_missing(self, names: set[str], schema: RecordSchema, only_required: bool = False) -> None:
        self._is_checked = True
        needed = [*schema.columns]
        if self._purpose != "read":
            needed += [one for one in (schema.label, schema.weight) if one is not None and not only_required]
        for column in needed:
            if column.name not in names and (column.required or not only_required):
                title = self._title(self._source)
                raise StreamError(
                    f"{title}: there is no column {column.name!r}, which is needed; add it, empty if need be"
                )


# Rows


def parse(block: RawBlock, options: ReadOptions) -> ParsedBlock:
    """Parse a block into rows."""
    schema = options.schema
    assert schema is not None
    read = block.read(schema)
    columns, bad = _converted(block, read, schema, options)
    n_rows = len(read.lines)
    kept = np.isin(np.arange(n_rows), list(bad), invert=True)
    lines, offsets = read.lines[kept], None if read.offsets is None else read.offsets[kept]
    kept_rows = np.flatnonzero(kept)
    if bad:
        columns = {name: values.take(pa.array(kept_rows)) for name, values in columns.items()}
    labels_of = columns.pop(schema.label.name) if schema.label else None
    codes, labels = _labels(labels_of, len(kept_rows), schema.label_type)
    weights = None if schema.weight is None else np.asarray(pc.fill_null(columns.pop(schema.weight.name), 1.0))
    batch = _rows(columns, schema, len(kept_rows), options)
    batch.codes, batch.weights = codes, weights
    batch.places = RowPlaces(lines, offsets)
    batch.kept_columns = _kept_columns(read, kept_rows, options.keep_columns)
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
        new_columns=_new_columns(read, schema, block.lacks_keys),
    )
    parsed.leave_out_unusable(options, lambda row: block.text_of(int(kept_rows[row])))
    return parsed


def _kept_columns(read: ReadRecords, rows: np.ndarray, names: tuple[str, ...] | None) -> Any:
    """Return the columns that are kept as they are, of these rows; None if none are kept."""
    if not names:
        return None
    parts, first = [], 0
    for part in read.tables:  # only the rows that are kept decide about types
        own = rows[(rows >= first) & (rows < first + len(part))] - first
        # Taking rows of no columns gives no rows.
        part_of = part.take(pa.array(own, pa.int64())) if part.num_columns else pa.table({"": pa.nulls(len(own))})
        parts += [part_of] if len(own) else []
        first += len(part)
    table = _one_table(parts)
    found = [name for name in table.column_names if name]
    if names == ("*",):
        return table.select(found)
    missing = [name for name in names if name not in found]
    if missing and len(rows):
        raise StreamError(f"there is no column {missing[0]!r} to keep; the columns are {', '.join(found)}")
    return table.select([name for name in names if name in found])


def _one_table(tables: list[Any]) -> Any:
    """Join tables; columns whose types contradict each other become texts."""
    try:
        return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})
    except pa.ArrowException:
        pass
    names = dict.fromkeys(name for table in tables for name in table.column_names)
    columns = {}
    for name in names:
        parts = [table.select([name] if name in table.column_names else []) for table in tables]
        missing = [pa.table({name: pa.nulls(len(table))}) for table in tables]
        parts = [part if part.num_columns else nulls for part, nulls in zip(parts, missing, strict=True)]
        try:
            columns[name] = pa.concat_tables(parts, promote_options="permissive")[name]
        except pa.ArrowException:
            values = [value for part in parts for value in part[name].to_pylist()]
            columns[name] = pa.array([_as_text(value) for value in values], pa.string())
    return pa.table(columns)


def _as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


def _new_columns(read: ReadRecords, schema: RecordSchema, lacks_keys: bool) -> list[str]:
    """Return the columns that the schema does not mention; in JSON, those with a value."""
    known = schema.known_names | {""}
    parts = {name[:k] for name in known for k, letter in enumerate(name) if letter == "."}
    found = dict.fromkeys(name for name in read.left_out if name not in known)
    for table in read.tables:
        for name, values in zip(table.column_names, table.columns, strict=True):
            if lacks_keys and values.null_count == len(values):
                continue
            inside = dict(flat_columns(table.select([name])))
            if name in known or name in parts or any(one in known for one in inside):
                has_value = [one for one, items in inside.items() if not lacks_keys or items.null_count < len(items)]
                found |= dict.fromkeys(one for one in has_value if one not in known and one not in parts)
            else:
                found[name] = None
    return list(found)


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
    block: RawBlock, read: ReadRecords, schema: RecordSchema, options: ReadOptions
) -> tuple[dict[str, Any], dict[int, str]]:
    """Convert the tables of a block; return its columns, and the bad rows with the reasons."""
    parts, bad, first = [], dict[int, str](), 0
    largest = float(np.finfo(options.dtype).max)
    for table in read.tables:
        columns, wrong = convert_table(table, schema, largest, any_types=block.lacks_keys)
        if isinstance(block, TextBlock) and not block.file.is_csv:
            wrong = {**_large_whole_numbers(block, table, columns, schema, first), **wrong}
        bad |= {first + row: message for row, message in wrong.items()}
        parts.append(columns)
        first += len(table)
    if not parts:
        parts = [convert_table(pa.table({"": pa.nulls(0)}), schema, largest)[0]]
    if schema.weight is not None:
        weights = pa.concat_arrays([part[schema.weight.name] for part in parts])
        for row, message in _bad_weights(weights, schema.weight.name, options.purpose).items():
            bad.setdefault(row, message)
    joined = {name: pa.concat_arrays([part[name] for part in parts]) for name in parts[0]}
    return joined, dict(sorted(bad.items()))


def _large_whole_numbers(
    block: TextBlock, table: Any, columns: dict[str, Any], schema: RecordSchema, first: int
) -> dict[int, str]:
    """Find whole numbers of JSON that lost digits when they were read as floats.

    Categories get them as they are written; return the rows where they are numbers.
    """
    bad = dict[int, str]()
    kinds = {column.name: column.kind for column in schema.all_columns}
    for name, values in flat_columns(table):
        if kinds.get(name) not in ("number", "category") or not pa.types.is_floating(values.type):
            continue
        large = pc.fill_null(pc.greater_equal(pc.abs(values), LARGEST_WHOLE), False)
        lines = {row: block.text_of(first + row) for row in np.flatnonzero(np.asarray(large)).tolist()}
        found = {row: written for row, line in lines.items() if (written := written_integer(line, name)) is not None}
        if kinds[name] == "category" and found:
            is_exact = pa.array(np.isin(np.arange(len(table)), list(found)))
            columns[name] = pc.replace_with_mask(columns[name], is_exact, pa.array(map(str, found.values())))
        elif kinds[name] == "number":
            bad |= {row: too_large(repr(str(one)), name) for row, one in found.items() if abs(one) > LARGEST_WHOLE}
    return bad


def _bad_weights(weights: Any, name: str, purpose: str) -> dict[int, str]:
    """Return the rows whose weight is negative, or missing; to predict, a missing one is 1."""
    wrong = pc.fill_null(pc.less(weights, 0.0), purpose != "read")
    rows = np.flatnonzero(np.asarray(wrong)).tolist()
    return dict.fromkeys(rows, f"the weight {name!r} is missing or negative; weights are 0 or more")


def _labels(values: Any, n_rows: int, label_type: str) -> tuple[np.ndarray, list[str]]:
    """Return the code of the label of each row, -1 for none, and the labels in the order of their first rows."""
    if values is None:
        return np.full(n_rows, -1), []
    if label_type == "boolean":
        values = pc.utf8_lower(values)
    found = pc.dictionary_encode(values)
    codes = np.asarray(pc.fill_null(found.indices, -1)).astype(np.int64)
    labels: dict[str, int] = {}
    table = [labels.setdefault(canonical_label(text), len(labels)) for text in found.dictionary.to_pylist()]
    return np.array([*table, -1])[codes], list(labels)
