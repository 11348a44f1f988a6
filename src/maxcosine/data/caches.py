"""Streams of caches, and caches of streams; see `cache_file` for the layout."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from maxcosine import files
from maxcosine.data.batch import Names, RowBatch
from maxcosine.data.cache_file import KEY, REWRITE, VERSION, CacheFile, import_pyarrow, is_cache, schema_of
from maxcosine.data.input_file import STANDARD_INPUT, size_of
from maxcosine.data.inputs import Inputs, Place
from maxcosine.data.options import ReadOptions, StreamError
from maxcosine.data.parsed import ParsedBlock
from maxcosine.data.prefetch import prefetch

if TYPE_CHECKING:
    from maxcosine.data.stream import Stream

GROUP_BYTES = 2 << 20  # batches are written together until they have this size


def are_caches(inputs: Inputs, format: str) -> bool:
    """Return whether inputs are caches; a mixture of caches and text is refused."""
    if format == "cache" and STANDARD_INPUT in inputs.names:
        raise StreamError("standard input is not a cache, which is read by the name of its file; name the file")
    if format != "auto":
        return format == "cache"
    found = [is_cache(name) for name in inputs.names]
    if any(found) and not all(found):
        cache, other = inputs.title(found.index(True)), inputs.title(found.index(False))
        raise StreamError(
            f"{cache} is a cache, and {other} is not; give caches only, or text only: `maxcosine convert` "
            "makes a cache of text"
        )
    return all(found)


def stored_options(inputs: Inputs, options: ReadOptions) -> ReadOptions:
    """Return options with those that caches were written with; refuse caches that contradict them."""
    wanted, defaults = options.feature_options, ReadOptions().feature_options
    if not options.strict:
        wanted = {name: value for name, value in wanted.items() if value != defaults[name]}
    first: dict[str, Any] = {}
    for name in inputs.names:
        with CacheFile(name) as file:
            found = {"kind": file.kind, **file.options.feature_options}
        first = first or found
        for others, whose in ((first, inputs.names[0]), (wanted, "an option or the model")):
            for option, value in others.items():
                if found[option] != value:
                    raise StreamError(
                        f"{name}: this cache was written with {option} = {found[option]}, and {whose} says "
                        f"{value}; give the same, or {REWRITE}"
                    )
    del first["kind"]
    return replace(options, format="cache", **first)


def text_format_of(inputs: Inputs) -> str | None:
    """Return the format of the text that the first cache was made of; None if the cache does not tell."""
    with CacheFile(inputs.names[0]) as file:
        return file.text_format


def read_caches(inputs: Inputs, options: ReadOptions, start: Place) -> Iterator[ParsedBlock]:
    """Read all examples from a place on."""
    if options.keep_names and options.bits:
        raise StreamError(
            f"{inputs.names[0]}: a cache does not have the names of hashed features; leave out --keep-names, "
            "or give the text"
        )

    def parse(found: tuple[int, CacheFile, Any, int, bool]) -> ParsedBlock:
        source, file, batch, first, is_last = found
        rows, labels = file.rows_of(batch, first)
        parsed = ParsedBlock(rows, labels, source, len(rows), is_last=is_last)
        parsed.leave_out_unusable(options)
        return parsed

    # More threads would take memory, and save no time: record batches are checked quickly.
    return prefetch(_groups(inputs, start), parse, min(2, options.n_threads))


def _groups(inputs: Inputs, start: Place) -> Generator[tuple[int, CacheFile, Any, int, bool], None, None]:
    """Read record batches from a place on; the first one is cut there."""
    for source, file in inputs.opened(start, lambda number: CacheFile(inputs.names[number])):
        left_out = start.line if source == start.source else 0
        end = 0
        for batch, first, is_last in file.groups():
            end = first + len(batch)
            if end < left_out:
                inputs.skipped_bytes = inputs.read_bytes
                continue
            cut = max(0, left_out - first)
            yield source, file, batch.slice(cut), first + cut, is_last
        if end < left_out:
            raise StreamError(
                f"{file.path}: ends before the place to continue from, example {left_out + 1:,}; it has "
                "changed since then"
            )


def write_cache(stream: Stream, path: str | os.PathLike[str], progress: Callable[[int], None] | None = None) -> int:
    """Write all examples of a stream, and return their number; the file appears when it is complete.

    It is a Parquet file if its name ends in .parquet, else an Arrow IPC file. `progress` is called with the
    number of examples after each block.
    """
    pa = import_pyarrow(path)
    batches = (batch for batch in stream.batches() if len(batch))
    batch = next(batches, None)
    if batch is None:
        raise StreamError(f"there is no example in {', '.join(stream.inputs.names)}; is it the right file?")
    weighted = stream.text_format != "svmlight"
    sizes = {os.path.basename(name): size_of(name) for name in stream.inputs.names}
    header = {"version": VERSION, "text": stream.text_format, **stream.options.feature_options, "data": sizes}
    schema = schema_of(pa, batch.kind, stream.options.dtype, weighted).with_metadata({KEY: json.dumps(header)})
    if os.fspath(path).lower().endswith(".parquet"):
        open_writer = partial(pa.parquet.ParquetWriter, use_dictionary=["label"])
    else:
        open_writer = pa.ipc.new_file
    with files.writing(os.fspath(path)) as file, open_writer(file, schema) as writer:
        waiting: list[Any] = []
        while batch is not None:
            waiting.append(_record_batch(pa, batch, stream.labels.names, schema))
            if progress is not None:
                progress(stream.n_examples)
            batch = next(batches, None)
            if batch is None or sum(one.nbytes for one in waiting) >= GROUP_BYTES:
                table = pa.Table.from_batches(waiting).combine_chunks()
                writer.write_table(table, len(table))
                waiting = []
    return stream.n_examples


def _record_batch(pa: Any, batch: RowBatch, labels: Sequence[str], schema: Any) -> Any:
    """Make a record batch of a row batch."""

    def array(numbers: np.ndarray) -> Any:
        buffers = [None, pa.py_buffer(np.ascontiguousarray(numbers))]
        return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), buffers)

    def lists(items: Any) -> Any:
        return pa.ListArray.from_arrays(array(batch.indptr.astype(np.int32)), items)

    if isinstance(batch.keys, Names):
        letters, starts = batch.keys
        buffers = pa.py_buffer(starts.astype(np.int32)), pa.py_buffer(letters)
        keys = pa.StringArray.from_buffers(len(batch.values), *buffers)
    else:
        keys = array(batch.keys)
    # The code of a row without a label, -1, becomes the last position.
    label = pa.array([*labels, None], pa.utf8()).take(array(batch.codes % (len(labels) + 1)))
    columns = {"label": label, batch.kind: lists(keys), "values": lists(array(batch.values))}
    if "weight" in schema.names:
        columns["weight"] = array(np.ones(len(batch)) if batch.weights is None else batch.weights)
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
