"""Examples of files larger than memory, in the order of the data."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from maxcosine.core import FeatureIndex
from maxcosine.data import text
from maxcosine.data.batch import Names, RowBatch
from maxcosine.data.cache_file import import_pyarrow
from maxcosine.data.caches import are_caches, read_caches, stored_options, text_format_of
from maxcosine.data.input_file import is_table_file
from maxcosine.data.inputs import START, Block, InputNames, Inputs, Place, Span
from maxcosine.data.options import ReadOptions, StreamError
from maxcosine.data.parsed import BadLine, BadLines, ParsedBlock, StreamLabels, SupportsWrite
from maxcosine.data.prefetch import prefetch
from maxcosine.features import map_names

if TYPE_CHECKING:
    import scipy.sparse

    from maxcosine.data.raw_block import RawBlock
    from maxcosine.data.tables import Tables
    from maxcosine.records import RecordSchema


class Chunk(NamedTuple):
    """Examples: rows, their labels, and the weights of their steps (None: all are 1)."""

    X: scipy.sparse.csr_array
    labels: np.ndarray
    weights: np.ndarray | None


class Stream:
    """The examples of one file or many; iterating gives chunks of (CSR, labels, weights).

    Parameters
    ----------
    inputs : str, path or sequence of those
        Files, globs, - for standard input; plain, gzip or zstd. Or `Tables`, which are in memory.
    options : ReadOptions
        How they are read.
    start : Place
        Where to begin: a place that an earlier stream of the same inputs has reached.
    spans : sequence of Span, optional
        The part of each input to read; by default, all of it.
    bad_lines : binary file, optional
        Where bad lines that are skipped are written.

    Attributes
    ----------
    options : ReadOptions
        The format and the hashing are known once the first lines have been read; all options of caches are
        known from the start.
    inputs : Inputs
        The files, and how far they have been read.
    labels : StreamLabels
        The labels so far.
    bad : BadLines
        The bad lines so far.
    place : Place
        Where the next batch begins.
    n_examples : int
        Examples so far.
    new_columns : list of str
        Columns of records so far that the schema does not have, and that are ignored.
    """

    def __init__(
        self,
        inputs: InputNames | Tables,
        options: ReadOptions = ReadOptions(),  # noqa: B008, it never changes
        *,
        start: Place = START,
        spans: Sequence[Span] | None = None,
        bad_lines: SupportsWrite | None = None,
    ) -> None:
        self.inputs: Any = inputs  # those of `Tables` have the attributes of `Inputs`
        if not hasattr(inputs, "raw_blocks"):
            self.inputs = Inputs(inputs, spans, options.block_bytes)
        self.options = options
        self._guess_format = options.format == "auto"
        if options.are_records:
            _check_records(options)
        elif are_caches(self.inputs, options.format):
            self.options = stored_options(self.inputs, options)
            if bad_lines is not None:
                raise StreamError(
                    f"{self.inputs.names[0]}: there are no lines to write to --bad-lines in a cache; give "
                    "it to `maxcosine convert`, and leave it out here"
                )
        self.labels = StreamLabels()
        self.bad = BadLines(options.on_bad, bad_lines)
        self.start = self.place = start
        self.n_examples = 0
        self.new_columns: list[str] = []
        self._index: FeatureIndex | None = None

    @property
    def n_bad(self) -> int:
        """Bad lines so far, including those before the start."""
        return self.place.bad

    @property
    def text_format(self) -> str | None:
        """The format of the text that the examples are from, which a cache tells, too; "records" for tables."""
        if self.options.are_records:
            return "records"
        return text_format_of(self.inputs) if self.options.format == "cache" else self.options.format

    def like(self, inputs: InputNames, **changes: Any) -> Stream:
        """Open other inputs that are read in the same way."""
        kept = {name: getattr(self.options, name) for name in ("on_bad", "any_labels", "records", "schema")}
        options = {**kept, **self.options.feature_options, "strict": True, **changes}
        return Stream(inputs, ReadOptions(**options))

    def recognise(self) -> str:
        """Read until the format is known, and return it; "auto" if no line tells it."""
        if self.options.are_records:
            return "records"
        with closing(self.inputs.blocks(self.start)) as blocks:
            while self.options.format == "auto" and (block := next(blocks, None)) is not None:
                self._resolve(block)
        return self.options.format

    def find_schema(self) -> RecordSchema:
        """Read the first records until their schema is known, and return it."""
        if self.options.schema is None:
            with closing(self._records()) as blocks:
                next(blocks, None)
        assert self.options.schema is not None
        return self.options.schema

    def batches(self) -> Generator[RowBatch]:
        """Read all examples in order, one block after another.

        A batch without rows is given if it has bad lines: `predict` answers each of them by an empty line.
        """
        self.place, self.n_examples = self.start, 0
        if self.options.are_records:
            from maxcosine.data import records

            blocks = prefetch(self._records(), lambda found: records.parse(*found), self.options.n_threads)
        elif self.options.format == "cache":
            blocks = read_caches(self.inputs, self.options, self.start)
        else:
            blocks = prefetch(self._blocks(), lambda found: text.parse(*found), self.options.n_threads)
        for parsed in blocks:
            batch = self._finish(parsed)
            self.n_examples += len(batch)
            if len(batch) or len(batch.skipped):
                yield batch

    def _records(self) -> Generator[tuple[RawBlock, ReadOptions], None, None]:
        from maxcosine.data import record_formats, records

        in_files = isinstance(self.inputs, Inputs)
        raw: Any = record_formats.raw_blocks(self.inputs, self.options.format, self.start) if in_files else None
        with closing(raw or self.inputs.raw_blocks(self.start)) as raw:
            for block, options in records.with_schema(raw, self.options, self.inputs.title):
                self.options = options
                yield block, options

    def _blocks(self) -> Generator[tuple[Block, ReadOptions], None, None]:
        for block in self.inputs.blocks(self.start):
            self._resolve(block)
            yield block, self.options

    def _resolve(self, block: Block) -> None:
        title = self.inputs.title(block.source)
        self.options = text.resolve(self.options, title, block, guess=self._guess_format)

    def _finish(self, parsed: ParsedBlock) -> RowBatch:
        """Give rows the codes of the stream and their places; deal with bad lines."""
        line = self.place.line if parsed.source == self.place.source else 0
        before = self.place._replace(source=parsed.source, offset=parsed.offset, line=line)
        for one in parsed.bad:
            self.bad.add(self._message(parsed.source, before.line, one), one.text)
        bad_bytes = np.array([len(one.text) + 1 for one in parsed.bad], np.int64)
        after = Place(
            parsed.source,
            parsed.end,
            before.line + parsed.n_lines,
            before.bad + len(parsed.bad),
            before.bad_bytes + int(bad_bytes.sum()),
        )
        if parsed.is_last:
            after = after._replace(source=parsed.source + 1, offset=0, line=0)
        self.place = after
        self.new_columns += [name for name in parsed.new_columns if name not in self.new_columns]
        batch = parsed.batch
        bad_lines = np.array([one.line for one in parsed.bad], np.int64)
        places = replace(batch.places, bad_lines=bad_lines, bad_bytes=bad_bytes, before=before, after=after)
        n_known = len(self.labels)
        codes = self.labels.encode(parsed.labels, batch.codes, only_used=parsed.is_partial)
        batch = replace(batch, codes=codes, skipped=np.searchsorted(places.lines, bad_lines), places=places)
        if self.options.purpose == "learn" and not self.options.any_labels:
            self._refuse_doubtful_labels(batch, n_known)
        return batch

    def _refuse_doubtful_labels(self, batch: RowBatch, n_known: int) -> None:
        """Refuse labels that are hardly classes, among those that came after the first `n_known` ones."""
        for code in range(n_known, len(self.labels)):
            row = int(np.argmax(batch.codes == code))
            # A stream that continues at a place does not know how many examples are before it.
            example = self.n_examples + row + 1 if self.start == START else StreamLabels.EARLY_EXAMPLES
            if doubt := self.labels.doubt(code, example):
                place = batch.places.start(row)
                where = self._where(place.source, place.line)
                raise StreamError(f"{where}: {doubt}; if it is a class, insist with any_labels=True (--any-labels)")

    def _message(self, source: int, line: int, bad: BadLine) -> str:
        where = self._where(source, line + bad.line)
        if self.options.format == "cache" or self.options.are_records:
            return f"{where}: {bad.message}"
        return f"{where}:{bad.position + 1}: {bad.message} (found {bad.quote()!r})"

    def _where(self, source: int, line: int) -> str:
        """Name a line of text, an example of a cache or a row of a table, given how many precede it."""
        if self.options.are_records and is_table_file(self.inputs.names[source]):
            return f"{self.inputs.title(source)}: row {line + 1:,}"
        if self.options.format == "cache":
            return f"{self.inputs.title(source)}: example {line + 1:,}"
        where: str = self.inputs.where(source, line)
        return where

    def __iter__(self) -> Iterator[Chunk]:
        for batch in self.batches():
            if len(batch):
                labels = np.array([*self.labels.names, ""])[batch.codes]
                yield Chunk(self._matrix(batch), labels, batch.weights)

    def chunks_to_learn(self) -> Iterator[Chunk]:
        """Give the chunks to a learner, after the checks that `purpose="learn"` stands for.

        Inputs without an example or without a feature are refused in the end.
        """
        self.options = replace(self.options, purpose="learn")
        n_values = 0
        for chunk in self:
            n_values += chunk.X.nnz
            yield chunk
        self.refuse_empty(self.n_examples, n_values)

    def refuse_empty(self, n_examples: int, n_features: int) -> None:
        """Refuse inputs in which no example, or no feature, was found."""
        names = ", ".join(self.inputs.names)
        if not n_examples:
            raise StreamError(f"there is no example in {names}; is it the right file?")
        if not n_features:
            raise StreamError(
                f"no example in {names} has a feature; is it text in another format? Inputs are {text.FORMATS}"
            )

    def feature_keys(self) -> np.ndarray:
        """Return the id or name of each column of the chunks so far, if features are exact."""
        if self._index is None:
            raise ValueError("there are no keys yet; read a chunk with exact=True first")
        return self._index.keys()

    def _matrix(self, batch: RowBatch) -> scipy.sparse.csr_array:
        import scipy.sparse

        indptr, values, bits = batch.indptr, batch.values, self.options.bits
        if batch.kind == "columns":
            columns = cast(np.ndarray, batch.keys)
            width = 1 << bits if bits else max(1, int(columns.max(initial=0)) + 1)
        else:
            self._index = self._index or FeatureIndex(batch.kind)
            indptr, columns, values = slots_of(batch, self._index, self.options, grow=True)
            width = len(self._index)
        X = scipy.sparse.csr_array((values, columns.astype(np.int32), indptr), (len(batch), width), copy=True)
        X.sort_indices()
        return X


def _check_records(options: ReadOptions) -> None:
    """Refuse options that make no sense for records, and a Python without pyarrow."""
    if options.format in ("svmlight", "vw", "cache"):
        raise StreamError(f"{options.format} has no named columns; leave out the label (--label), or the format")
    label = options.schema.label if options.schema is not None else options.records and options.records.label
    if options.purpose != "read" and label is None:
        raise StreamError("records need the name of the column of the labels: label=NAME (--label NAME)")
    import_pyarrow("records")


def slots_of(
    batch: RowBatch, index: FeatureIndex, options: ReadOptions, *, grow: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Map the features of a batch to the slots of an index; return indptr, slots and values.

    New features get a slot if the index may `grow`, otherwise they are left out. Names are transformed here.
    """
    if not isinstance(batch.keys, Names):
        return index.map_ids(batch.indptr, batch.keys, batch.values, grow=grow)
    letters, starts = batch.keys
    transform = {"log1p": options.log1p, "l2": options.l2}
    return map_names(index, batch.indptr, letters, starts, batch.values, grow=grow, **transform)


def open_stream(inputs: InputNames, **options: Any) -> Stream:
    """Open the examples of files larger than memory.

    Parameters
    ----------
    inputs : str, path or sequence of those
        Files, globs, - for standard input; plain, gzip or zstd; or what `maxcosine convert` wrote.
    **options : dict
        How they are read: the parameters of `ReadOptions`.

    Returns
    -------
    Stream
        Iterating gives chunks: rows as a CSR array, their labels, and their weights.

    Examples
    --------
    >>> import maxcosine.data, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "few.svm"
    >>> _ = path.write_text("+1 1:0.5 3:1\\n-1 2:2\\n")
    >>> for X, labels, weights in maxcosine.data.open_stream(path):
    ...     print(X.shape, labels.tolist(), weights)
    (2, 4) ['1', '-1'] None
    """
    return Stream(inputs, ReadOptions(**options))
