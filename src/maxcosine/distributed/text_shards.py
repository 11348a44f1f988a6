"""Shards of text files: ranges of whole lines, which the workers read themselves."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from maxcosine.data import ReadOptions, Span, Stream, StreamError, expand, is_cache, is_compressed, next_line_start
from maxcosine.data.input_file import open_binary
from maxcosine.data.inputs import InputNames

SHARD_BYTES = 128 << 20
_SAMPLE_BYTES = 65536


@dataclass(frozen=True)
class TextShard:
    """Consecutive lines of one or more files.

    Parameters
    ----------
    spans : tuple of (str, Span)
        Absolute names of files, and the bytes of each that belong to the shard.
    options : ReadOptions
        How the files are read.
    """

    spans: tuple[tuple[str, Span], ...]
    options: ReadOptions


def plan(
    files: InputNames, *, n_shards: int | None = None, shard_bytes: int = SHARD_BYTES, **options: Any
) -> list[TextShard]:
    """Divide files into shards of about the same size, at the ends of lines.

    Shards follow each other in the order of the files. Files that are compressed, CSV, Parquet and Arrow files are
    not divided.

    Parameters
    ----------
    files : str, path or sequence of them
        Names of files or globs.
    n_shards : int, default=None
        The largest number of shards; by default it follows from `shard_bytes`.
    shard_bytes : int, default=128 MB
        The approximate size of a shard.
    **options : dict
        How the files are read: the parameters of `maxcosine.data.ReadOptions`.

    Returns
    -------
    list of TextShard
        The shards; at least one.

    Examples
    --------
    >>> import tempfile, pathlib, maxcosine.distributed
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "few.svm"
    >>> _ = path.write_text("+1 1:0.5 3:1\\n-1 2:2\\n+1 1:2\\n")
    >>> [shard.spans[0][1] for shard in maxcosine.distributed.plan(path, n_shards=2)]
    [Span(start=0, stop=13), Span(start=13, stop=27)]
    """
    names = expand(files)
    for name in names:
        if not os.path.isfile(name):
            raise StreamError(f"{name}: only regular files can be divided into shards; copy it to one")
    # Workers may have another working directory.
    names = [os.path.abspath(name) for name in names]
    read_options = ReadOptions(**{"threads": 1, **options})
    stream = Stream(names, read_options)
    if read_options.are_records:
        read_options = replace(read_options, schema=stream.find_schema())
    else:
        read_options = replace(read_options, format=stream.recognise())
    edges = [0, *itertools.accumulate(os.path.getsize(name) for name in names)]
    total = edges[-1]
    if not total:
        return [TextShard(((names[0], Span()),), read_options)]
    n_shards = -(-total // shard_bytes) if n_shards is None else n_shards
    if n_shards < 1:
        raise ValueError(f"n_shards={n_shards}; choose at least 1")
    cuts = [_next_cut(names, edges, total * k // n_shards, read_options) for k in range(n_shards)] + [total]
    return [
        TextShard(_spans(names, edges, start, stop), read_options)
        for start, stop in itertools.pairwise(cuts)
        if start < stop
    ]


# Positions are those in the concatenation of all files; file k lies between edges[k] and edges[k + 1].


def _next_cut(names: Sequence[str], edges: Sequence[int], position: int, options: ReadOptions) -> int:
    """Return the first position at or after this one where a shard may begin."""
    for name, (start, stop) in zip(names, itertools.pairwise(edges), strict=True):
        if start < position < stop:
            if is_compressed(name) or is_cache(name) or not _lines_are_records(name, options):
                return stop
            return start + next_line_start(name, position - start)
    return position


def _lines_are_records(name: str, options: ReadOptions) -> bool:
    """Return whether each line is a record of its own; in CSV, a row may have several lines, and needs the header."""
    if not options.are_records:
        return True
    from maxcosine.data.record_text import format_of

    with open_binary(name) as file:
        format = format_of(name, file.read(_SAMPLE_BYTES)) if options.format == "auto" else options.format
    return format == "jsonl"


def _spans(names: Sequence[str], edges: Sequence[int], start: int, stop: int) -> tuple[tuple[str, Span], ...]:
    """Return the parts of files between two positions."""
    spans = []
    for name, (first, last) in zip(names, itertools.pairwise(edges), strict=True):
        if first < stop and start < last:
            is_whole = start <= first and last <= stop
            span = Span() if is_whole else Span(max(start, first) - first, min(stop, last) - first)
            spans.append((name, span))
    return tuple(spans)
