"""Lines of more than a megabyte, parsed piece by piece.

As a whole, the features of a line of 16 MB would take up to ten times its length. So it is cut at blanks into
pieces, of which each is parsed as a line. A feature that comes again is added up at once. Names are looked up
in the index of whoever learns, and that may only see a line without faults: they are parsed once to see that
there are none, and once more, piece by piece, when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from maxcosine.stream.parsed import (
    LONG_NAMES,
    MANY_FEATURES,
    MOST_FEATURES,
    MOST_LETTERS,
    NEWLINE,
    NUL_BYTE,
    PADDING,
    RETURN,
    Fault,
    Parsed,
)
from maxcosine.stream.rows import Named
from maxcosine.stream.scan import after_last_of, first_of
from maxcosine.stream.tidy import LongRow, square_norms

PIECE_BYTES = 1 << 17
_BLANKS = b" \t"
_COUNTING = {"bits": 31, "columns": True, "keep_names": False}


class Format(NamedTuple):
    """How lines are parsed."""

    parse: Callable[..., Parsed]
    """A block of lines."""
    features_of: Callable[[np.ndarray], tuple[int, int]]
    """Of a line: before which byte it cannot be cut, and where its features end."""
    read_on: Callable[[np.ndarray, int, int, bytes], bytes]
    """What to put before the features behind a part of a line."""
    named: bool
    """Whether features have names."""


class LongLine:
    """A line and how it is parsed; iterating gives its features with their names, piece by piece."""

    def __init__(self, text: np.ndarray, format: Format, **options: Any) -> None:
        """`text`: all of a block, or a part of one."""
        self._text, self._format, self._options = text, format, options

    def __iter__(self) -> Iterator[Named]:
        for _, parsed in self.pieces():
            assert parsed.letters is not None
            assert parsed.starts is not None
            yield Named(parsed.letters, parsed.starts, parsed.ids, parsed.data)

    def pieces(self) -> Iterator[tuple[int, Parsed]]:
        """What is in each piece, and where this is in the line: what to add to the place of a fault."""
        text = self._text
        uncut, stop = self._format.features_of(text)
        start, before, length = 0, b"", PIECE_BYTES
        while start < stop:
            end = _blank_after(text, start, max(start + length, uncut), uncut, stop)
            is_whole = not start and end == stop and _zeros_follow(text)
            piece = text if is_whole else _padded(before, text[start:end])
            parsed = self._format.parse(piece, stop_at_fault=True, **self._options)
            n_bytes = len(piece)
            del piece  # before anything is done with what is in it
            if parsed.n_bytes < n_bytes and not parsed.faults:
                length = max(1, length // 2)  # its names are too long
                continue
            yield start - len(before), parsed
            if parsed.faults:
                return
            del parsed  # before the next one is read
            start, before = end, self._format.read_on(text, start, end, before)
            length = min(2 * length, PIECE_BYTES)

    def features(self) -> Parsed:
        """The row, if it is one, with each feature once; or what is wrong with the line."""
        column_type = np.uint32 if self._options["columns"] else np.uint64
        row, head = LongRow(self._most_features, column_type, self._options["dtype"]), None
        offset, n_letters = 0, 0
        for offset, parsed in self.pieces():
            if parsed.faults:
                return self._at_fault(offset + parsed.faults[0].position, parsed.faults[0].code)
            n_letters += 0 if parsed.letters is None else len(parsed.letters)
            if n_letters > MOST_LETTERS:
                return self._at_fault(max(0, offset), LONG_NAMES)
            if not row.add(parsed.ids, parsed.data):
                return self._at_fault(max(0, offset), MANY_FEATURES)
            head = head or _without_features(parsed)
        taken = row.taken()
        if taken is None:
            return self._at_fault(max(0, offset), MANY_FEATURES)
        found = self._without_nul(head)
        if len(found.codes):
            found.indptr, found.ids, found.data = np.array([0, len(taken[0])]), *taken
        return found

    def names(self) -> tuple[Parsed, int]:
        """The row, if it is one, without its features, which are names; and how many these are. Or what is
        wrong with the line. The square norm is that of features as they come."""
        head, n_features, n_letters, square = None, 0, 0, 0.0
        for offset, parsed in self.pieces():
            if parsed.faults:
                return self._at_fault(offset + parsed.faults[0].position, parsed.faults[0].code), 0
            assert parsed.letters is not None
            n_features, n_letters = n_features + len(parsed.data), n_letters + len(parsed.letters)
            if n_letters > MOST_LETTERS:
                return self._at_fault(max(0, offset), LONG_NAMES), 0
            square += float(square_norms(parsed.indptr, parsed.data).sum())
            head = head or _without_features(parsed)
        found = self._without_nul(head)
        if n_features > self._most_features and not found.faults:
            # Hashed, they can be counted. Then two may be one, and that is no reason to refuse more.
            counted = LongLine(self._text, self._format, **{**self._options, **_COUNTING}).features()
            found = counted if counted.faults else found
        found.squares = np.full(len(found.codes), square)
        return found, n_features

    @property
    def _most_features(self) -> int:
        return MOST_FEATURES if np.dtype(self._options["dtype"]) == np.float32 else MOST_FEATURES * 2 // 3

    def _without_nul(self, head: Parsed | None) -> Parsed:
        """What was found, unless there is a NUL where nobody looked, in a comment."""
        at = first_of(self._text, b"\0", 0, len(self._text))
        if at < len(self._text):
            return self._at_fault(at, NUL_BYTE)
        return _nothing(self._options["dtype"]) if head is None else head

    def _at_fault(self, position: int, code: int) -> Parsed:
        """What is wrong with the line. If there is a NUL, it is that."""
        stop = len(self._text)
        stop -= stop > 0 and self._text[stop - 1] == NEWLINE
        stop -= stop > 0 and self._text[stop - 1] == RETURN
        nul = first_of(self._text, b"\0", 0, stop)
        if nul < stop:
            position, code = nul, NUL_BYTE
        found = _nothing(self._options["dtype"])
        found.faults.append(Fault(0, 0, stop, position, code))
        return found


def _zeros_follow(text: np.ndarray) -> bool:
    """Whether a part of a block has behind it what a block has."""
    behind = np.lib.stride_tricks.as_strided(text, (len(text) + PADDING,), (1,), writeable=False)[len(text) :]
    return not behind.any()


def _padded(before: bytes, text: np.ndarray) -> np.ndarray:
    """A text as a block, with something before it."""
    block = np.zeros(len(before) + len(text) + PADDING, np.uint8)
    block[: len(before)] = np.frombuffer(before, np.uint8)
    block[len(before) : -PADDING] = text
    return block[:-PADDING]


def _blank_after(text: np.ndarray, start: int, wanted: int, uncut: int, stop: int) -> int:
    """Where to end a piece that begins at `start`: behind a blank, about where it is wanted, or further on if
    it would be far shorter: few letters are left together with a name of very many."""
    if wanted >= stop:
        return stop
    end = after_last_of(text, _BLANKS, max(start, uncut), wanted)
    if end > max(start, uncut) and end - start > (wanted - start) // 2:
        return end
    return min(first_of(text, _BLANKS, wanted, stop) + 1, stop)


def _without_features(parsed: Parsed) -> Parsed:
    """The row of a piece, but for its features."""
    none = _nothing(parsed.data.dtype)
    return none.replace(
        indptr=np.zeros(len(parsed.codes) + 1, np.int64),
        codes=parsed.codes,
        labels=parsed.labels,
        weights=parsed.weights,
        row_starts=parsed.row_starts,
        row_lines=parsed.row_lines,
    )


def _nothing(dtype: Any) -> Parsed:
    """A line that is no row."""
    return Parsed(
        indptr=np.zeros(1, np.int64),
        ids=np.empty(0, np.uint32),
        letters=None,
        starts=None,
        data=np.empty(0, dtype),
        codes=np.empty(0, np.int32),
        labels=[],
        weights=None,
        row_starts=np.empty(0, np.int64),
        row_lines=np.empty(0, np.int32),
        tags=None,
        n_lines=1,
        n_bytes=0,
        faults=[],
    )
