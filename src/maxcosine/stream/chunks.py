"""Examples out of files, in their order: parsed by several threads, in memory that stays the same.

A reader gives blocks of whole lines, threads make rows of them, and whoever asks gets the rows in the
order of the data, whatever the number of threads and the size of the blocks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from maxcosine.engine import csr_array
from maxcosine.index import FeatureIndex
from maxcosine.stream import svmlight, vw
from maxcosine.stream.ahead import Ahead
from maxcosine.stream.cache import MAGIC, are_caches
from maxcosine.stream.long_lines import Format, LongLine
from maxcosine.stream.memory import own_pages
from maxcosine.stream.parsed import (
    MESSAGES,
    NEWLINE,
    NO_LABEL,
    PADDING,
    RETURN,
    Fault,
    Parsed,
    bytes_that_fit,
)
from maxcosine.stream.rows import NO_NAMES, Named, Rows, n_columns
from maxcosine.stream.scan import first_of
from maxcosine.stream.slots import mapped
from maxcosine.stream.source import BLOCK_BYTES, LONGEST_LINE, Block, Place, Source, Span, StreamError
from maxcosine.stream.tidy import NORMALIZE, OUTSIDE, rows_outside, square_norms, tidied

if TYPE_CHECKING:
    import scipy.sparse

FORMATS = {
    "svmlight": Format(svmlight.parse, svmlight.features_of, svmlight.read_on, named=False),
    "vw": Format(vw.parse, vw.features_of, vw.read_on, named=True),
}
ON_BAD = ("error", "skip")
DEFAULT_BITS = 20
"""Hashed columns of text features, where nothing else is asked for."""
MOST_THREADS = 4
"""More are not used unless they are asked for: learning takes as long as parsing in a few."""
_MOST_BLOCKS = 3  # that may wait when one more is read, if they are full
LONGEST_QUOTE = 40
MOST_TOLD = 5
"""Of so many bad lines it is remembered what was wrong."""

# Faults that only show once a line is parsed, beside those of the parsers.
_NORM, _TOO_LONG = 101, 102
_MESSAGES = {
    **MESSAGES,
    _NORM: OUTSIDE,
    _TOO_LONG: f"the line is longer than {LONGEST_LINE >> 20} MB; is this text, and do its lines end?",
}


class Result(NamedTuple):
    """A block, and what is in it."""

    block: Block
    format: str
    parsed: Parsed | None
    """None for a long line, which is parsed when its turn has come, and for a piece of one too long."""
    rest: Block | None = None
    """What there was no room for: it is parsed when its turn has come."""

    @property
    def size(self) -> int:
        """About how many bytes all of this takes."""
        parsed, text = self.parsed, self.block if self.parsed is None else self.rest
        arrays: list[np.ndarray | None] = []
        if parsed is not None:
            arrays = [parsed.ids, parsed.data, parsed.letters, parsed.starts]
            arrays += [array for part in parsed.named or () for array in part]
        return sum(array.nbytes for array in arrays if array is not None) + (text.size if text else 0)


class SupportsWrite(Protocol):
    def write(self, content: bytes, /) -> Any: ...


class Chunk(NamedTuple):
    """Examples: rows, their labels, and the weights of their steps (None: all are 1)."""

    X: scipy.sparse.csr_array
    labels: np.ndarray
    weights: np.ndarray | None


class Stream:
    """The examples of one or many files; iterating gives chunks of (CSR, labels, weights).

    Parameters
    ----------
    inputs : a name or several: files, globs, - for standard input; plain, gzip or zstd
    format : "svmlight", "vw", "cache" (as `maxcosine convert` writes), or "auto": by the first bytes, the
        names and the first line
    bits : hash features to 2^bits columns; 0: as they are, svmlight ids by their number
    exact : features by their own id or name, through an index that grows with them
    dtype : of the values
    normalize : "l2" to scale each row to length 1
    log1p : replace each value x by sign(x) log(1 + abs(x)), before that
    strict : refuse a cache for which any of these five was another; without it, where they are left as they
        are, those of the cache hold
    threads : that parse; by default, as many as there are processors, and at most 4
    on_bad : "error" to stop at a line that cannot be read, "skip" to count it and go on
    bad_lines : a binary file that lines skipped are written to
    labelled : a line without a label is a bad one
    limits : a line is a bad one if the square of its norm is not between these two
    keep_names : give the names of hashed features, too
    start : where to begin
    spans : of each input, the part that is read; by default, all
    """

    def __init__(
        self,
        inputs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        format: str = "auto",
        bits: int = 0,
        exact: bool = False,
        dtype: Any = np.float32,
        normalize: str | None = None,
        log1p: bool = False,
        strict: bool = False,
        threads: int | None = None,
        on_bad: str = "error",
        bad_lines: SupportsWrite | None = None,
        labelled: bool = False,
        limits: tuple[float, float] | None = None,
        keep_names: bool = False,
        start: Place = Place(),  # noqa: B008, it never changes
        block_bytes: int = BLOCK_BYTES,
        spans: Sequence[Span] | None = None,
    ) -> None:
        names = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
        self.source = Source(names, block_bytes, spans)
        _check("format", format, ("auto", *FORMATS, "cache"))
        _check("on_bad", on_bad, ON_BAD)
        _check("normalize", normalize, NORMALIZE)
        if bits and exact:
            raise ValueError("features are hashed, bits > 0, or exact, but not both; choose one")
        if not 0 <= bits <= 31:
            raise ValueError(f"bits is {bits}; it is from 1 to 31, or 0 for features as they are")
        self.format, self.bits, self.exact = format, bits, exact
        self.dtype = np.dtype(dtype)
        self.normalize, self.log1p = normalize, log1p
        self._read: Callable[[], Iterator[Rows]] = self._text
        if are_caches(self.source, format):
            self._read = self._open_caches(strict)
        self.threads = threads or min(os.cpu_count() or 1, MOST_THREADS)
        self.on_bad, self.bad_lines, self.labelled, self.limits = on_bad, bad_lines, labelled, limits
        self.keep_names = keep_names
        self.start = start
        self.labels: list[str] = []
        """All labels so far, in the order in which they came."""
        self._codes: dict[str, int] = {}
        self._memory = self.source.memory
        self.index: FeatureIndex | None = None
        """The features so far, if they are exact and chunks were asked for."""
        self.n_examples = 0
        self.first_bad: list[str] = []
        """What was wrong with the first few lines skipped."""
        self.place = start
        """Where the next rows begin."""

    @property
    def n_bad(self) -> int:
        """Lines left out so far, those before the start included."""
        return self.place.bad

    @property
    def options(self) -> dict[str, Any]:
        """What decides which features and values the examples have."""
        return {
            "bits": self.bits,
            "exact": self.exact,
            "dtype": self.dtype.name,
            "normalize": self.normalize,
            "log1p": self.log1p,
        }

    def _open_caches(self, strict: bool) -> Callable[[], Iterator[Rows]]:
        """Read caches, in the way in which they were written."""
        from maxcosine.stream.cache.reading import Caches  # which readers of text need not wait for

        caches = Caches(self.source, self.options, strict=strict)
        found = caches.options
        self.format, self.bits, self.exact = "cache", found["bits"], found["exact"]
        self.dtype = np.dtype(found["dtype"])
        self.normalize, self.log1p = found["normalize"], found["log1p"]
        return lambda: caches.rows(self)

    def like(self, inputs: Sequence[str], **options: Any) -> Stream:
        """A stream of other inputs that are read in the same way."""
        return Stream(inputs, **{"on_bad": self.on_bad, **self.options, "strict": True, **options})

    def recognise(self) -> str:
        """The format of the inputs; "auto" if no line tells it."""
        for _ in self._recognising(self.source.blocks(self.start)):
            if self.format != "auto":
                break
        return self.format

    def know(self, labels: Sequence[str]) -> None:
        """Labels that have come before: they keep their positions."""
        for label in labels:
            self.code_of(label)

    def code_of(self, label: str) -> int:
        """The position of a label; the next one if it is new."""
        if label not in self._codes:
            self._codes[label] = len(self.labels)
            self.labels.append(label)
        return self._codes[label]

    def __iter__(self) -> Iterator[Chunk]:
        for rows in self.rows():
            if not len(rows):
                continue
            X = self._matrix(rows)
            labels = np.array([*self.labels, ""])[rows.codes]
            yield Chunk(X, labels, rows.weights)

    def _matrix(self, rows: Rows) -> scipy.sparse.csr_array:
        if not self.exact:
            columns = rows.columns
            width = 1 << self.bits if self.bits else max(n_columns(columns), 1)
        else:
            if self.index is None:
                self.index = FeatureIndex("names" if rows.names is not None else "ids")
            rows = self.mapped(rows, self.index)
            columns, width = rows.columns, len(self.index)
        X = csr_array((len(rows), width), dtype=rows.data.dtype)
        X.indptr, X.indices, X.data = rows.indptr.astype(np.int32), columns.view(np.int32), rows.data
        X.has_canonical_format = X.has_sorted_indices = False
        X.sort_indices()
        return X

    def mapped(self, rows: Rows, index: FeatureIndex, *, grow: bool = True) -> Rows:
        """The rows with slots of an index for columns."""
        return mapped(rows, index, grow=grow, log1p=self.log1p, l2=self.normalize == "l2")

    def rows(self) -> Iterator[Rows]:
        """All examples in order, as many at a time as a block holds."""
        for rows in self._read():
            self.n_examples += len(rows)
            if len(rows) or len(rows.skipped):
                yield rows
            del rows  # before the next ones come

    def _text(self) -> Iterator[Rows]:
        """The rows of text, block by block."""
        for first in self._results():
            result: Result | None = first
            del first
            while result is not None:
                block, format, parsed, rest = result
                del result
                if block.source != self.place.source:
                    self.place = self.place._replace(source=block.source, offset=0, line=0)
                if block.too_long:
                    rows = self._pass_over(block)
                else:
                    if parsed is None:
                        block = self._own(block)
                        parsed = self._parse_long(block, format)
                    self._report(block, parsed)
                    rows = self._numbered(block, parsed)
                    self.place = rows.ends.last
                del block, parsed  # before the next ones are read
                yield rows
                del rows
                result = None if rest is None else self._parse((rest, format))
                del rest

    def _results(self) -> Iterator[Result]:
        """Blocks and what is in them, in order; several are parsed at a time."""
        blocks = self._recognising(self.source.blocks(self.start))
        most_bytes = min(self.threads + 1, _MOST_BLOCKS) * self.source.block_bytes
        helps = self.threads == 1 or self.source.total_bytes is not None  # nothing has to be waited for
        with Ahead(
            blocks, self._parse, self.threads, most_bytes, size=lambda result: result.size, helps=helps
        ) as ahead:
            yield from ahead

    def _recognising(self, blocks: Iterator[Block]) -> Generator[tuple[tuple[Block, str], int]]:
        """The blocks and their format, and their sizes; the first one that has a line tells the format, if
        nobody has."""
        for block in blocks:
            if self.format == "auto":
                found = recognised(self.source.title(block.source), block.text[: block.size])
                if found is not None:
                    self.format = found
            if self.format == "vw" and not self.exact and not self.bits:
                self.bits = DEFAULT_BITS
            yield (block, "svmlight" if self.format == "auto" else self.format), block.size
            del block

    def _parse(self, one: tuple[Block, str]) -> Result:
        """In one of the threads: parse a block of a format, unless it is a long line.

        Its text is kept if there is more to say of it, or more to parse.
        """
        block, format = one
        if block.alone or block.too_long:
            return Result(block, format, None)
        try:
            parsed = FORMATS[format].parse(
                block.text[: block.size], stop_at_fault=self.on_bad == "error", **self._parser_options
            )
            stopped = self.on_bad == "error" and parsed.faults
            size = block.size if stopped else parsed.n_bytes
            if not size:  # There is no room for all names of the first line.
                size = min(first_of(block.text, b"\n", 0, block.size) + 1, block.size)
                line, rest = _cut(block, size)
                return Result(line.replace(alone=True), format, None, rest)
            block, rest = _cut(block, size)
            self.source.fitting = bytes_that_fit(parsed, size)
            self._finish(parsed, block)
            kept = block.text[: block.size if parsed.faults else 0]
            return Result(block.replace(text=kept.copy(), part=None), format, parsed, rest)
        finally:
            self.source.check(block)

    @property
    def _parser_options(self) -> dict[str, Any]:
        return {
            "bits": self.bits,
            "dtype": self.dtype,
            "keep_names": self.keep_names,
            "columns": not self.exact,
            "memory": self._memory,
        }

    def _own(self, block: Block) -> Block:
        """A block that lies nowhere in a file, which may change, while the block may be parsed twice."""
        if block.part is None:
            return block
        text = own_pages(block.size + PADDING, np.uint8)
        text[: block.size] = block.text[: block.size]
        block = block.replace(text=text)
        self.source.check(block)
        return block.replace(part=None)

    def _parse_long(self, block: Block, format: str) -> Parsed:
        """Parse a long line, piece by piece, in the memory that all others have left."""
        self._memory.give_back()
        line = LongLine(block.text[: block.size], FORMATS[format], **self._parser_options)
        if FORMATS[format].named and not self.bits:
            parsed, n_features = line.names()
            if self.labelled:
                self._leave_out_unlabelled(parsed, block)
            if not self.normalize and not self.log1p:
                self._leave_out_outside(parsed, block, np.array([0, n_features]))
            parsed.pieces = line if len(parsed.codes) else None
        else:
            parsed = line.features()
            self._finish(parsed, block)
            if self.keep_names and FORMATS[format].named and len(parsed.codes):
                parsed.named = line
        return parsed

    def _finish(self, parsed: Parsed, block: Block) -> None:
        """Tidy what was parsed, and leave out what nothing can be learnt from."""
        if self.labelled:
            self._leave_out_unlabelled(parsed, block)
        if not self.bits and parsed.letters is not None:
            if not self.normalize and not self.log1p:
                self._leave_out_outside(parsed, block)
            return
        if parsed.letters is not None and parsed.starts is not None:
            parsed.named = [Named(parsed.letters, parsed.starts, parsed.ids.copy(), parsed.data[:0])]
            parsed.letters = parsed.starts = None
        if not parsed.tidy or self.normalize or self.log1p:
            parsed.indptr, parsed.ids, parsed.data = self._tidied(parsed.indptr, parsed.ids, parsed.data)
            parsed.squares = parsed.n_columns = None
        self._leave_out_outside(parsed, block)
        if self.bits:
            parsed.n_columns = 1 << self.bits
        elif not self.exact and parsed.n_columns is None:
            parsed.n_columns = n_columns(parsed.ids)

    def _leave_out_unlabelled(self, parsed: Parsed, block: Block) -> None:
        if len(parsed.codes) and parsed.codes.min() < 0:
            _leave_out(parsed, block, parsed.codes < 0, NO_LABEL)

    def _leave_out_outside(self, parsed: Parsed, block: Block, indptr: np.ndarray | None = None) -> None:
        """`indptr`: of features that are not there yet."""
        if self.limits is None:
            return
        if parsed.squares is None:
            parsed.squares = square_norms(parsed.indptr, parsed.data)
        outside = rows_outside(parsed.indptr if indptr is None else indptr, parsed.squares, self.limits)
        if outside is not None:
            _leave_out(parsed, block, outside, _NORM)

    def _tidied(self, *arrays: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return tidied(*arrays, log1p=self.log1p, l2=self.normalize == "l2")

    def _numbered(self, block: Block, parsed: Parsed) -> Rows:
        """The rows with positions in the labels of the whole stream."""
        here = np.array([*map(self.code_of, parsed.labels), -1], np.int64)
        names = None
        if parsed.letters is not None and parsed.starts is not None:
            names = parsed.letters, parsed.starts
        elif parsed.pieces is not None:
            names = NO_NAMES
        ends = Ends(block.replace(text=block.text[:0].copy()), parsed, self.place)
        codes = here[parsed.codes]
        skipped = np.searchsorted(parsed.row_lines, [fault.line for fault in parsed.faults])
        return Rows(
            parsed.indptr,
            parsed.ids,
            names,
            parsed.data,
            codes,
            parsed.weights,
            ends,
            skipped,
            parsed.named,
            parsed.squares,
            parsed.n_columns,
            parsed.pieces,
        )

    def _pass_over(self, block: Block) -> Rows:
        """A piece of a line that is too long is a bad line; there are no rows in it."""
        text = block.text[: block.size]
        if block.begins:
            self.refuse(self._message(block, Fault(0, 0, block.size, 0, _TOO_LONG)))
        has_end = bool(text[-1] == NEWLINE)
        added = b"\n" if block.ends and not has_end else b""
        self._keep_bad(text, added)
        at = self.place
        at = at._replace(bad=at.bad + block.begins, bad_bytes=at.bad_bytes + block.size + len(added))
        if block.ends:
            self.place = at._replace(source=block.source + 1, offset=0, line=0)
        else:
            line = at.line + has_end
            self.place = at._replace(offset=block.offset + block.size, line=line)
        nothing, no_columns = np.zeros(1, np.int64), np.empty(0, np.uint32)
        skipped = nothing if block.begins else nothing[:0]
        no_data, no_codes = np.empty(0, self.dtype), np.empty(0, np.int64)
        return Rows(nothing, no_columns, None, no_data, no_codes, None, None, skipped)

    def _report(self, block: Block, parsed: Parsed) -> None:
        """Refuse bad lines, or keep them."""
        for fault in parsed.faults:
            self.refuse(self._message(block, fault))
            self._keep_bad(block.text[fault.start : fault.stop], b"\n")

    def _keep_bad(self, text: np.ndarray, end: bytes) -> None:
        """Write a bad line, or a piece of it, where such lines are kept; not all of a long one at a time."""
        if self.bad_lines is not None:
            for start in range(0, len(text), BLOCK_BYTES):
                self.bad_lines.write(text[start : start + BLOCK_BYTES].tobytes())
            self.bad_lines.write(end)

    def refuse(self, message: str) -> None:
        """Stop at a bad line, unless such lines are left out."""
        if self.on_bad == "error":
            raise StreamError(f"{message}; or leave such lines out with on_bad='skip' (--on-bad skip)")
        if len(self.first_bad) < MOST_TOLD:
            self.first_bad.append(message)

    def _message(self, block: Block, fault: Fault) -> str:
        text = block.text[fault.position : fault.stop][:LONGEST_QUOTE].tobytes()
        token = text if fault.code in (_NORM, _TOO_LONG) else (text.split() or [b""])[0]
        found = token.decode(errors="backslashreplace") or "the end of the line"
        where, column = (
            self.where(block.source, self.place.line + fault.line),
            fault.position - fault.start + 1,
        )
        return f"{where}:{column}: {_MESSAGES[fault.code]} (found {found!r})"

    def where(self, source: int, line: int) -> str:
        """An input and the number of a line, as messages have it; `line`: how many were read before it."""
        return f"{self.source.title(source)}:{self.source.lines_before(source) + line + 1}"


class Ends:
    """Where each row of a block begins and ends, worked out when it is asked for."""

    def __init__(self, block: Block, parsed: Parsed, before: Place) -> None:
        self._block, self._faults, self._before = block, parsed.faults, before
        self._starts, self._lines, self._n_lines = parsed.row_starts, parsed.row_lines, parsed.n_lines

    @property
    def last(self) -> Place:
        """The end of the block."""
        end = self._at(self._block.size, self._n_lines)
        return end._replace(source=end.source + 1, offset=0, line=0) if self._block.ends else end

    def start(self, row: int) -> Place:
        """Where a row begins."""
        return self._at(int(self._starts[row]), int(self._lines[row]))

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            rest = copy(self)
            rest._starts, rest._lines = self._starts[row], self._lines[row]
            return rest
        return self.start(row + 1) if row + 1 < len(self._starts) else self.last

    def _at(self, position: int, line: int) -> Place:
        before, faults = self._before, [fault for fault in self._faults if fault.line < line]
        return Place(
            self._block.source,
            self._block.offset + position,
            before.line + line,
            before.bad + len(faults),
            before.bad_bytes + sum(fault.stop - fault.start + 1 for fault in faults),
        )


def _cut(block: Block, size: int) -> tuple[Block, Block | None]:
    """So many bytes of a block, and the rest, if there is one."""
    if size == block.size:
        return block, None
    rest = block.replace(text=block.text[size:], size=block.size - size, offset=block.offset + size)
    return block.replace(size=size, ends=False), rest


def _leave_out(parsed: Parsed, block: Block, rows: np.ndarray, code: int) -> None:
    """Make faults of some rows."""
    text, kept = block.text, ~rows
    for row in np.flatnonzero(rows).tolist():
        start = int(parsed.row_starts[row])
        stop = first_of(text, b"\n", start, block.size)
        stop -= stop > start and text[stop - 1] == RETURN
        parsed.faults.append(Fault(int(parsed.row_lines[row]), start, int(stop), start, code))
    parsed.faults.sort(key=lambda fault: fault.line)
    by_value = np.repeat(kept, np.diff(parsed.indptr))
    if parsed.letters is not None and parsed.starts is not None:
        spans = zip(parsed.starts[:-1][by_value], parsed.starts[1:][by_value], strict=True)
        parts = [parsed.letters[start:stop] for start, stop in spans]
        parsed.letters = np.concatenate([np.zeros(8, np.uint8), *parts, np.zeros(8, np.uint8)])[8:]
        parsed.starts = np.cumsum([0, *map(len, parts)])
    if len(parsed.ids):
        parsed.ids = parsed.ids[by_value]
    parsed.data = parsed.data[by_value]
    parsed.indptr = np.concatenate([[0], np.cumsum(np.diff(parsed.indptr)[kept])])
    parsed.row_lines, parsed.row_starts = parsed.row_lines[kept], parsed.row_starts[kept]
    parsed.weights = None if parsed.weights is None else parsed.weights[kept]
    parsed.squares = None if parsed.squares is None else parsed.squares[kept]
    parsed.n_columns = None  # the highest column may have been theirs
    # No label is known by a bad line only.
    codes = parsed.codes[kept].tolist()
    known = {code: k for k, code in enumerate(dict.fromkeys(code for code in codes if code >= 0))}
    parsed.labels = [parsed.labels[code] for code in known]
    parsed.codes = np.array([known.get(code, -1) for code in codes], np.int32)


def recognised(name: str, text: np.ndarray) -> str | None:
    """The format of a file, by its name or by its first line; None if there is no line yet that tells."""
    if text[: len(MAGIC)].tobytes() == MAGIC:
        raise StreamError(f"{name}: a cache is read as it lies on disk; name the file itself, unpacked")
    stem = name.lower()
    for ending in (".gz", ".zst"):
        stem = stem.removesuffix(ending)
    if stem.endswith((".svm", ".svmlight", ".libsvm")):
        return "svmlight"
    if stem.endswith((".vw", ".vwdata")):
        return "vw"
    for line in text[:65536].tobytes().split(b"\n"):
        line = line.split(b"#")[0]
        if line.strip():
            return "vw" if b"|" in line else "svmlight"
    return None


def _check(what: str, given: Any, known: Sequence[Any]) -> None:
    if given not in known:
        raise ValueError(f"{what} is {given!r}; it is one of {', '.join(map(repr, known))}")
