"""Blocks of text to rows: svmlight and Vowpal Wabbit formats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from maxcosine import core
from maxcosine.data.batch import NamedColumns, RowBatch, RowPlaces
from maxcosine.data.errors import StreamError
from maxcosine.data.inputs import MAX_LINE_BYTES, Block
from maxcosine.data.options import DEFAULT_BITS, ReadOptions
from maxcosine.data.parsed import BadLine, ParsedBlock, unusable_rows

CACHE_MAGIC = (b"ARROW1", b"PAR1")
"""How Arrow IPC and Parquet files begin."""

_TOO_LONG = f"the line is longer than {MAX_LINE_BYTES >> 20} MB; is this text, and do its lines end?"
_SAMPLE_BYTES = 65536
_ENDINGS = {
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".vw": "vw",
    ".vwdata": "vw",
}


def recognise(name: str, text: bytes) -> str | None:
    """Tell the format of text by the name of its file or by its first line; None if there is no line yet."""
    if text.startswith(CACHE_MAGIC):
        raise StreamError(f"{name}: a cache is not read from a pipe or an archive; name the file itself")
    stem = name.lower().removesuffix(".gz").removesuffix(".zst")
    for ending, format in _ENDINGS.items():
        if stem.endswith(ending):
            return format
    for line in text[:_SAMPLE_BYTES].split(b"\n"):
        content = line.split(b"#")[0]
        if content.strip():
            return "vw" if b"|" in content else "svmlight"
    return None


def resolve(options: ReadOptions, name: str, block: Block) -> ReadOptions:
    """Return options with the format of a block, if it tells its format, and the usual hashing of names."""
    format = options.format
    if format == "auto":
        sample = bytes(block.buffer[block.start : min(block.stop, block.start + _SAMPLE_BYTES)])
        format = recognise(name, sample) or "auto"
    hash_names = format == "vw" and not options.exact and not options.bits
    return replace(options, format=format, bits=DEFAULT_BITS if hash_names else options.bits)


def parse(block: Block, options: ReadOptions) -> ParsedBlock:
    """Parse a block; a block of unknown format has only blank lines and comments."""
    if block.too_long:
        return _long_line(block, options)
    common = {
        "bits": options.bits,
        "exact": options.exact,
        "dtype": options.dtype,
        "log1p": options.log1p,
        "l2": options.l2,
        "stop_at_fault": options.on_bad == "error",
    }
    if options.format == "vw":
        found = core.parse_vw(
            block.buffer, block.start, block.stop, keep_names=options.keep_names and not options.exact, **common
        )
    else:
        found = core.parse_svmlight(block.buffer, block.start, block.stop, **common)
    batch = _batch_of(found, options)
    bad = [
        BadLine(line, core.FAULT_MESSAGES[code], _text(block, start, stop), position - start)
        for line, start, stop, position, code in found.faults
    ]
    unusable = unusable_rows(batch, options)
    if unusable:
        bad += [_bad_row(block, batch, row, message) for row, message in unusable.items()]
        bad.sort(key=lambda one: one.line)
        kept = np.ones(len(batch), bool)
        kept[list(unusable)] = False
        batch = batch.take(kept)
    return ParsedBlock(
        batch,
        found.labels,
        bad,
        block.source,
        found.n_lines,
        block.end - block.offset,
        block.is_last,
        rows_dropped=bool(unusable),
    )


def _batch_of(found: core.ParsedBlock, options: ReadOptions) -> RowBatch:
    hashed_names = None
    letters, starts = found.letters, found.name_starts
    if letters is not None and not options.exact:
        hashed_names = NamedColumns(found.name_columns, letters, starts)
        letters = starts = None
    return RowBatch(
        found.indptr,
        found.values,
        found.codes,
        found.columns,
        found.ids,
        letters,
        starts,
        found.weights,
        found.squares,
        found.n_columns if found.columns is not None else None,
        hashed_names,
        places=RowPlaces(found.row_lines, found.row_starts),
    )


def _bad_row(block: Block, batch: RowBatch, row: int, message: str) -> BadLine:
    start = int(batch.places.offsets[row])  # type: ignore[index]
    newline = block.buffer.find(b"\n", block.start + start, block.stop)
    stop = (block.stop if newline < 0 else newline) - block.start
    return BadLine(int(batch.places.lines[row]), message, _text(block, start, stop).removesuffix(b"\r"))


def _text(block: Block, start: int, stop: int) -> bytes:
    return bytes(block.buffer[block.start + start : block.start + stop])


def _long_line(block: Block, options: ReadOptions) -> ParsedBlock:
    """Make a bad line of a line that is too long; only its beginning is kept."""
    text = _text(block, 0, block.stop - block.start)
    nothing = np.zeros(0, np.int32)
    batch = RowBatch(np.zeros(1, np.int64), np.zeros(0, options.dtype), nothing, np.zeros(0, np.uint32))
    bad = [BadLine(0, _TOO_LONG, text)]
    return ParsedBlock(batch, [], bad, block.source, 1, block.end - block.offset, block.is_last)
