"""Blocks of text to rows: svmlight's and Vowpal Wabbit's formats."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, cast

from maxcosine import core
from maxcosine.data.batch import Names, RowBatch, RowPlaces
from maxcosine.data.input_file import ARROW_MAGIC, PARQUET_MAGIC
from maxcosine.data.inputs import Block
from maxcosine.data.options import DEFAULT_BITS, MAX_LINE_BYTES, ReadOptions, StreamError
from maxcosine.data.parsed import BadLine, ParsedBlock

_TOO_LONG = f"the line is longer than {MAX_LINE_BYTES >> 20} MB; is this text, and do its lines end?"
_SAMPLE_BYTES = 65536
_ENDINGS = {(".svm", ".svmlight", ".libsvm"): "svmlight", (".vw", ".vwdata"): "vw"}
_OTHER_MAGIC = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"PK\x03\x04": "a zip archive", b"7z\xbc\xaf": "a 7z archive"}
_JSON = re.compile(rb'\s*(\[\s*)?\{\s*"')
_FEATURE = re.compile(rb"(^|\s)[0-9]+:[0-9.eE+-]+(\s|$)")
FORMATS = "svmlight text, 'label id:value ...', or Vowpal Wabbit text, 'label |namespace feature:value ...'"


def recognise(name: str, text: bytes) -> str | None:
    """Tell the format of text by the name of its file or by its first line; None if there is no line yet.

    Other formats are refused: most of their lines would be taken for examples that have only a label.
    """
    if text.startswith((ARROW_MAGIC, PARQUET_MAGIC)):
        raise StreamError(f"{name}: a cache is not read from a pipe or an archive; name the file itself")
    stem = name.lower().removesuffix(".gz").removesuffix(".zst")
    for endings, format in _ENDINGS.items():
        if stem.endswith(endings):
            return format
    lines = (line.split(b"#")[0].strip() for line in text.split(b"\n"))
    first = next(filter(None, lines), b"")
    if other := _other_format(stem, text, first):
        raise StreamError(
            f"{name}: this looks like {other}. {_advice(other)}; if it is {FORMATS} after all, say so with "
            "format='svmlight' or format='vw' (--format)"
        )
    return "vw" if b"|" in first else "svmlight" if first else None


def _advice(format: str) -> str:
    """Return what to do about text in another format."""
    if format in ("JSON", "CSV", "TSV"):
        return "Name the column of the labels: --label NAME (in Python: fit_records)"
    return "Convert it to a format that is read, or load it in Python and call fit"


def _other_format(stem: str, text: bytes, first_line: bytes) -> str | None:
    """Return the name of another format that text is in; None if nothing speaks for one."""
    for magic, format in _OTHER_MAGIC.items():
        if text.startswith(magic):
            return format
    if _JSON.match(text):
        return "JSON"
    if b"|" in first_line or _FEATURE.search(first_line):
        return None
    if b"," in first_line or (b";" in first_line and stem.endswith(".csv")):
        return "CSV"
    return "TSV" if b"\t" in first_line else None


def resolve(options: ReadOptions, name: str, block: Block, *, guess: bool) -> ReadOptions:
    """Return options with the format of a block, if it tells its format, and the usual hashing of names.

    The first block of each input is looked at if the user left its format open (`guess`).
    """
    format = options.format
    if format == "auto" or (guess and block.offset == 0):
        found = recognise(name, block.text()[:_SAMPLE_BYTES]) or "auto"
        format = found if format == "auto" else format
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
