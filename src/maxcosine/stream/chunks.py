"""Examples out of files, in their order: parsed by several threads, in memory that stays the same.

A reader gives blocks of whole lines, threads make rows of them, and whoever asks gets the rows in the
order of the data, whatever the number of threads and the size of the blocks.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

import numpy as np
import scipy.sparse

from maxcosine.index import FeatureIndex
from maxcosine.stream import svmlight, vw
from maxcosine.stream.parsed import MESSAGES, NO_LABEL, Fault, Parsed
from maxcosine.stream.source import BLOCK_BYTES, Block, Place, Source, StreamError
from maxcosine.stream.tidy import tidied

FORMATS: dict[str, Callable[..., Parsed]] = {"svmlight": svmlight.parse, "vw": vw.parse}
ON_BAD = ("error", "skip")
NORMALIZE = (None, "l2")
DEFAULT_BITS = 20
"""Hashed columns of text features, where nothing else is asked for."""
LONGEST_QUOTE = 40


class Chunk(NamedTuple):
    """Examples: rows, their labels, and the weights of their steps (None: all are 1)."""

    X: scipy.sparse.csr_array
    labels: np.ndarray
    weights: np.ndarray | None


@dataclass
class Rows:
    """Examples as the engine takes them."""

    indptr: np.ndarray
    columns: np.ndarray
    """uint32: column numbers or hashed columns; uint64: ids for an index. Each once in a row, in any
    order."""
    names: tuple[np.ndarray, np.ndarray] | None
    """Instead of columns: the letters of all names, and where each begins."""
    data: np.ndarray
    codes: np.ndarray
    """Positions in the stream's labels; -1 for a row without one."""
    weights: np.ndarray | None
    ends: Any
    """Of each row: the place where the next one begins."""
    named: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    """If names are kept: hashed columns as they came, and the letters and beginnings of their names."""

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, span: slice) -> Rows:
        """Some of the rows, one after another."""
        start, stop, _ = span.indices(len(self))
        values = slice(self.indptr[start], self.indptr[stop])
        names = None
        if self.names is not None:
            letters, starts = self.names
            names = letters, starts[values.start : values.stop + 1]
        return Rows(
            self.indptr[start : stop + 1] - self.indptr[start],
            self.columns[values],
            names,
            self.data[values],
            self.codes[start:stop],
            None if self.weights is None else self.weights[start:stop],
            self.ends[start:],
            self.named,
        )


class Stream:
    """The examples of one or many files; iterating gives chunks of (CSR, labels, weights).

    Parameters
    ----------
    inputs : a name or several: files, globs, - for standard input; plain, gzip or zstd
    format : "svmlight", "vw", or "auto": by the names and the first line
    bits : hash features to 2^bits columns; 0: as they are, svmlight ids by their number
    exact : features by their own id or name, through an index that grows with them
    dtype : of the values
    normalize : "l2" to scale each row to length 1
    log1p : replace each value x by sign(x) log(1 + |x|), before that
    threads : that parse; by default, as many as there are processors
    on_bad : "error" to stop at a line that cannot be read, "skip" to count it and go on
    bad_lines : a binary file that lines skipped are written to
    labelled : a line without a label is a bad one
    keep_names : give the names of hashed features, too
    start : where to begin
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
        threads: int | None = None,
        on_bad: str = "error",
        bad_lines: IO[bytes] | None = None,
        labelled: bool = False,
        keep_names: bool = False,
        start: Place = Place(),  # noqa: B008, it never changes
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        names = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
        self.source = Source(names, block_bytes)
        _check("format", format, ("auto", *FORMATS))
        _check("on_bad", on_bad, ON_BAD)
        _check("normalize", normalize, NORMALIZE)
        if bits and exact:
            raise ValueError("features are hashed, bits > 0, or exact, but not both; choose one")
        if not 0 <= bits <= 31:
            raise ValueError(f"bits is {bits}; it is from 1 to 31, or 0 for features as they are")
        self.format, self.bits, self.exact = format, bits, exact
        self.dtype = np.dtype(dtype)
        self.normalize, self.log1p = normalize, log1p
        self.threads = threads or os.cpu_count() or 1
        self.on_bad, self._bad_lines, self.labelled = on_bad, bad_lines, labelled
        self.keep_names = keep_names
        self.start = start
        self.labels: list[str] = []
        """All labels so far, in the order in which they came."""
        self._codes: dict[str, int] = {}
        self.index: FeatureIndex | None = None
        """The features so far, if they are exact and chunks were asked for."""
        self.n_examples = 0
        self.n_bad = 0
        self.first_bad: list[str] = []
        """What was wrong with the first few lines skipped."""
        self.place = start
        """Where the next rows begin."""

    def like(self, inputs: Sequence[str], **options: Any) -> Stream:
        """A stream of other inputs that are read in the same way."""
        given = {
            "format": "auto",
            "bits": self.bits,
            "exact": self.exact,
            "dtype": self.dtype,
            "normalize": self.normalize,
            "log1p": self.log1p,
            "on_bad": self.on_bad,
        }
        return Stream(inputs, **{**given, **options})

    def know(self, labels: Sequence[str]) -> None:
        """Labels that have come before: they keep their positions."""
        for label in labels:
            self._codes[label] = len(self.labels)
            self.labels.append(label)

    def __iter__(self) -> Iterator[Chunk]:
        for rows in self.rows():
            X = self._matrix(rows)
            labels = np.array([*self.labels, ""])[rows.codes]
            yield Chunk(X, labels, rows.weights)

    def _matrix(self, rows: Rows) -> scipy.sparse.csr_array:
        if not self.exact:
            n_columns = 1 << self.bits if self.bits else int(rows.columns.max(initial=0)) + 1
            columns = rows.columns
        else:
            if self.index is None:
                self.index = FeatureIndex("names" if rows.names is not None else "ids")
            rows = self.mapped(rows, self.index)
            columns, n_columns = rows.columns, len(self.index)
        X = scipy.sparse.csr_array((len(rows), n_columns), dtype=rows.data.dtype)
        X.indptr, X.indices, X.data = rows.indptr.astype(np.int32), columns.view(np.int32), rows.data
        X.has_canonical_format = X.has_sorted_indices = False
        X.sort_indices()
        return X

    def mapped(self, rows: Rows, index: FeatureIndex, *, grow: bool = True) -> Rows:
        """The rows with slots of an index for columns."""
        keys: Any = rows.columns if rows.names is None else rows.names
        indptr, slots, data = index.map_rows(rows.indptr, keys, rows.data, grow=grow)
        if rows.names is not None:
            # Only now is it seen which names are the same.
            indptr, slots, data = self._tidied(np.array(indptr), slots, data)
        return Rows(indptr, slots, None, data, rows.codes, rows.weights, rows.ends)

    def rows(self) -> Iterator[Rows]:
        """All examples in order, as many at a time as a block holds."""
        lines = self.place.line
        for block, parsed in self._parsed():
            if block.source != self.place.source:
                lines = 0
            self._report(block, parsed, lines)
            rows = self._numbered(block, parsed, lines)
            lines += parsed.n_lines
            if block.ends:
                self.place = Place(block.source + 1)
            else:
                self.place = Place(block.source, block.offset + block.size, lines)
            self.n_examples += len(rows)
            if len(rows):
                yield rows

    def _parsed(self) -> Iterator[tuple[Block, Parsed]]:
        """Blocks and what is in them, in order; several are parsed at a time."""
        blocks = self._recognising(self.source.blocks(self.start))
        if self.threads == 1 or self.source.total_bytes is None:
            # One after another, too, where somebody may wait for an answer before there is more.
            for block in blocks:
                yield block, self._parse(block)
            return
        waiting: deque[tuple[Block, Future[Parsed]]] = deque()
        with ThreadPoolExecutor(self.threads) as pool:
            try:
                for block in blocks:
                    waiting.append((block, pool.submit(self._parse, block)))
                    if len(waiting) > self.threads + 1:
                        first, future = waiting.popleft()
                        yield first, future.result()
                while waiting:
                    first, future = waiting.popleft()
                    yield first, future.result()
            finally:
                for _, future in waiting:
                    future.cancel()

    def _recognising(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """The blocks; the first one tells the format, if nobody has."""
        for block in blocks:
            if self.format == "auto":
                self.format = recognised(self.source.title(block.source), block.text[: block.size])
            if self.format == "vw" and not self.exact and not self.bits:
                self.bits = DEFAULT_BITS
            yield block

    def _parse(self, block: Block) -> Parsed:
        """In one of the threads: parse and tidy a block."""
        parsed = FORMATS[self.format](
            block.text[: block.size],
            bits=self.bits,
            dtype=self.dtype,
            stop_at_fault=self.on_bad == "error",
            keep_names=self.keep_names,
            columns=not self.exact,
        )
        if self.labelled and len(parsed.codes) and parsed.codes.min() < 0:
            _leave_out_unlabelled(parsed, block)
        if self.bits or parsed.letters is None:
            if parsed.letters is not None and parsed.starts is not None:
                parsed.named = parsed.ids.copy(), parsed.letters, parsed.starts
            parsed.indptr, parsed.ids, parsed.data = self._tidied(parsed.indptr, parsed.ids, parsed.data)
        return parsed

    def _tidied(self, *arrays: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return tidied(*arrays, log1p=self.log1p, l2=self.normalize == "l2")

    def _numbered(self, block: Block, parsed: Parsed, lines: int) -> Rows:
        """The rows with positions in the labels of the whole stream."""
        here = np.empty(len(parsed.labels) + 1, np.int64)
        for k, label in enumerate(parsed.labels):
            if label not in self._codes:
                self._codes[label] = len(self.labels)
                self.labels.append(label)
            here[k] = self._codes[label]
        here[-1] = -1
        names = None
        if parsed.letters is not None and parsed.starts is not None and not self.bits:
            names = parsed.letters, parsed.starts
        ends = _Ends(block, parsed, lines)
        codes = here[parsed.codes]
        return Rows(parsed.indptr, parsed.ids, names, parsed.data, codes, parsed.weights, ends, parsed.named)

    def _report(self, block: Block, parsed: Parsed, lines: int) -> None:
        """Refuse bad lines, or count and keep them."""
        for fault in parsed.faults:
            message = self._message(block, fault, lines)
            if self.on_bad == "error":
                raise StreamError(f"{message}; or leave such lines out with on_bad='skip' (--on-bad skip)")
            self.n_bad += 1
            if len(self.first_bad) < 5:
                self.first_bad.append(message)
            if self._bad_lines is not None:
                self._bad_lines.write(block.text[fault.start : fault.stop].tobytes() + b"\n")

    def _message(self, block: Block, fault: Fault, lines: int) -> str:
        text = block.text[fault.position : fault.stop][:LONGEST_QUOTE].tobytes()
        found = text.split(b" ")[0].decode(errors="backslashreplace") or "the end of the line"
        where = (
            f"{self.source.title(block.source)}:{lines + fault.line + 1}:{fault.position - fault.start + 1}"
        )
        return f"{where}: {MESSAGES[fault.code]} (found {found!r})"


class _Ends:
    """Where each row of a block ends, worked out when it is asked for."""

    def __init__(self, block: Block, parsed: Parsed, lines: int) -> None:
        self._block, self._starts, self._lines = block, parsed.row_starts, parsed.row_lines + lines
        self._last = lines + parsed.n_lines

    def __getitem__(self, row: Any) -> Any:
        block = self._block
        if isinstance(row, slice):
            rest = copy(self)
            rest._starts, rest._lines = self._starts[row], self._lines[row]
            return rest
        if row + 1 < len(self._starts):
            return Place(block.source, block.offset + int(self._starts[row + 1]), int(self._lines[row + 1]))
        if block.ends:
            return Place(block.source + 1)
        return Place(block.source, block.offset + block.size, self._last)


def _leave_out_unlabelled(parsed: Parsed, block: Block) -> None:
    """Lines without a label are faults, and no rows."""
    kept = parsed.codes >= 0
    for row in np.flatnonzero(~kept).tolist():
        start = int(parsed.row_starts[row])
        stop = start + len(block.text[start : block.size].tobytes().split(b"\n", 1)[0])
        parsed.faults.append(Fault(int(parsed.row_lines[row]), start, stop, start, NO_LABEL))
    parsed.faults.sort(key=lambda fault: fault.line)
    by_value = np.repeat(kept, np.diff(parsed.indptr))
    if parsed.letters is not None and parsed.starts is not None:
        spans = zip(parsed.starts[:-1][by_value], parsed.starts[1:][by_value], strict=True)
        parts = [parsed.letters[start:stop] for start, stop in spans]
        parsed.letters = np.concatenate([np.zeros(8, np.uint8), *parts])[8:]
        parsed.starts = np.cumsum([0, *map(len, parts)])
    if len(parsed.ids):
        parsed.ids = parsed.ids[by_value]
    parsed.data = parsed.data[by_value]
    parsed.indptr = np.concatenate([[0], np.cumsum(np.diff(parsed.indptr)[kept])])
    parsed.codes, parsed.row_lines = parsed.codes[kept], parsed.row_lines[kept]
    parsed.row_starts = parsed.row_starts[kept]
    parsed.weights = None if parsed.weights is None else parsed.weights[kept]


def recognised(name: str, text: np.ndarray) -> str:
    """The format of a file, by its name or by its first line."""
    stem = name.lower()
    for ending in (".gz", ".zst"):
        stem = stem.removesuffix(ending)
    if stem.endswith((".svm", ".svmlight", ".libsvm")):
        return "svmlight"
    if stem.endswith((".vw", ".vwdata")):
        return "vw"
    for line in text[:65536].tobytes().split(b"\n"):
        if line.strip() and not line.lstrip().startswith(b"#"):
            return "vw" if b"|" in line else "svmlight"
    return "svmlight"


def _check(what: str, given: Any, known: Sequence[Any]) -> None:
    if given not in known:
        raise ValueError(f"{what} is {given!r}; it is one of {', '.join(map(repr, known))}")
