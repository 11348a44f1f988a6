"""Blocks of text to rows: svmlight's and Vowpal Wabbit's formats."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from maxcosine import core
from maxcosine.data.batch import Names, RowBatch, RowPlaces
from maxcosine.data.cache_file import ARROW_MAGIC, PARQUET_MAGIC
from maxcosine.data.inputs import Block
from maxcosine.data.options import DEFAULT_BITS, MAX_LINE_BYTES, ReadOptions, StreamError
from maxcosine.data.parsed import BadLine, ParsedBlock

_TOO_LONG = f"the line is longer than {MAX_LINE_BYTES >> 20} MB; is this text, and do its lines end?"
_SAMPLE_BYTES = 65536
_ENDINGS = {(".svm", ".svmlight", ".libsvm"): "svmlight", (".vw", ".vwdata"): "vw"}


def recognise(name: str, text: bytes) -> str | None:
    """Tell the format of text by the name of its file or by its first line; None if there is no line yet."""
    if text.startswith((ARROW_MAGIC, PARQUET_MAGIC)):
        raise StreamError(f"{name}: a cache is not read from a pipe or an archive; name the file itself")
    stem = name.lower().removesuffix(".gz").removesuffix(".zst")
    for endings, format in _ENDINGS.items():
        if stem.endswith(endings):
            return format
    for line in text.split(b"\n"):
        content = line.split(b"#")[0]
        if content.strip():
            return "vw" if b"|" in content else "svmlight"
    return None


def resolve(options: ReadOptions, name: str, block: Block) -> ReadOptions:
    """Return options with the format of a block, if it tells its format, and the usual hashing of names."""
    format = options.format
    if format == "auto":
        format = recognise(name, block.text()[:_SAMPLE_BYTES]) or "auto"
    hash_names = format == "vw" and not options.exact and not options.bits
    return replace(options, format=format, bits=DEFAULT_BITS if hash_names else options.bits)


def parse(block: Block, options: ReadOptions) -> ParsedBlock:
    """Parse a block; a block of unknown format has only blank lines and comments."""
    found = _parse(block, options)
    names = None if found.letters is None else Names(found.letters, found.name_starts)
    numbers = found.columns if found.columns is not None else found.ids
    batch = RowBatch(
        found.indptr,
        cast(Any, names if numbers is None else numbers),
        found.values,
        found.codes,
        found.weights,
        found.squares,
        found.n_columns,
        hashed_names=None if numbers is None else names,
        hashed_columns=found.name_columns,
        places=RowPlaces(found.row_lines, found.row_starts),
    )
    bad = [
        BadLine(line, core.FAULT_MESSAGES[code], block.text(start, stop), position - start)
        for line, start, stop, position, code in found.faults
    ]
    n_lines = found.n_lines
    if block.too_long:
        bad, n_lines = [BadLine(0, _TOO_LONG, block.text())], 1
    parsed = ParsedBlock(batch, found.labels, block.source, n_lines, block.offset, block.end, block.is_last, bad)
    parsed.leave_out_unusable(options, lambda row: block.line(int(found.row_starts[row])))
    return parsed


def _parse(block: Block, options: ReadOptions) -> Any:
    """Call the parser of the format; it does not see a line that is too long."""
    common: dict[str, Any] = {
        "bits": options.bits,
        "exact": options.exact,
        "dtype": options.dtype,
        "log1p": options.log1p,
        "l2": options.l2,
        "stop_at_fault": options.on_bad == "error",
    }
    where = block.buffer, core.PADDING, core.PADDING if block.too_long else block.stop
    if options.format == "vw":
        return core.parse_vw(*where, **common, keep_names=options.keep_names and not options.exact)
    return core.parse_svmlight(*where, **common)
