"""What the parsers have in common: what they return, faults, tokens, labels.

A block is an array of bytes that holds whole lines; the last one may lack its newline. PADDING zero bytes
follow it in memory, see `padded`. So a zero byte ends every scan, and eight bytes can be read from wherever
there is one. Lines end in LF or CR LF; a CR elsewhere is a letter like any other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from maxcosine.compiled import borrow, helper, inline, kernel, lengthened
from maxcosine.index.native import leading_zeros, trailing_zeros
from maxcosine.record import Record
from maxcosine.stream.marks import room_for_marks
from maxcosine.stream.memory import Memory
from maxcosine.stream.numbers import COLON, SPACE, U, read_number, word_of
from maxcosine.stream.rows import Named

PADDING = 64
"""How many zero bytes follow a block in memory."""

NUL, TAB, NEWLINE, RETURN, HASH, APOSTROPHE, BAR = 0, 9, 10, 13, 35, 39, 124

FINE = 0
(
    NUL_BYTE,
    NOT_TEXT,
    BAD_ID,
    LARGE_ID,
    NO_COLON,
    NO_VALUE,
    NOT_A_NUMBER,
    NOT_FINITE,
    TOO_LARGE,
    NO_BAR,
    TOO_MANY,
    NEGATIVE_WEIGHT,
    NO_NAME,
    NO_LABEL,
    NO_COLUMN,
    MANY_FEATURES,
    LONG_NAMES,
) = range(1, 18)

MOST_FEATURES = 3_500_000
"""Different ones that a line may have; all, if each is written with five bytes or more. In double
precision, it is two thirds of that."""
MOST_LETTERS = 1 << 28
"""That the names of a line may have together, each with its namespace."""

MESSAGES = {
    NUL_BYTE: "there is a NUL byte in the line; is the file compressed, or not in UTF-8?",
    NOT_TEXT: "the text is not UTF-8; convert the file to UTF-8",
    BAD_ID: "the feature's id is not a whole number; ids are 0, 1, 2, ..., written in decimal digits",
    LARGE_ID: "the feature's id is too large; the largest is 18446744073709551615 (2^64 - 1)",
    NO_COLON: "the feature has no value; write id:value",
    NO_VALUE: "nothing follows the colon; write a number there",
    NOT_A_NUMBER: "this is not a decimal number; write it as 12, 0.5 or -1.5e-3",
    NOT_FINITE: "the number is not finite; drop the feature, or put a number in its place",
    TOO_LARGE: "the number is too large for its type; scale the feature down",
    NO_BAR: "there is no '|' in the line; features come after one",
    TOO_MANY: "too much stands before the '|'; at most a label, a weight, a base and a tag",
    NEGATIVE_WEIGHT: "the weight is negative; weights are 0 or more",
    NO_NAME: "the feature has no name; write name:value",
    NO_COLUMN: "the id is too large for a column; hash features (--bits 22), or keep them exactly (--exact)",
    NO_LABEL: "the line has no label; there is nothing to learn from it",
    MANY_FEATURES: f"the line has more than {MOST_FEATURES:,} different features by here, or two thirds of "
    "that in double precision; make several examples of it, or hash features to fewer columns (--bits 20)",
    LONG_NAMES: f"the names of the line, each with its namespace, take more than {MOST_LETTERS >> 20} MB by "
    "here; give the namespace a shorter name",
}
"""What is wrong, by the code of a fault, and what to do."""


class Fault(NamedTuple):
    """A line that could not be read. All but `line` and `code` are bytes, counted from the block's first."""

    line: int
    """Number of the line within the block, from 0."""
    start: int
    stop: int
    """Where the line ends, without its newline."""
    position: int
    """Where the number, name or id begins that is at fault."""
    code: int
    """What is wrong: see MESSAGES."""


class Parsed(Record):
    """The rows of a block. Its arrays may be parts of longer ones; their owners are nobody else's."""

    indptr: np.ndarray
    """int64, one more than rows: where the features of each row begin, and where the last ends."""
    ids: np.ndarray
    """uint64, or uint32 if columns are asked for: ids, or hashed columns; empty if features are names."""
    letters: np.ndarray | None
    """uint8: the names of the features one after another, with eight readable bytes before the first."""
    starts: np.ndarray | None
    """int32, one more than features: where each name begins."""
    data: np.ndarray
    """The values of the features."""
    codes: np.ndarray
    """int32: the position of each row's label in `labels`; -1 if it has none."""
    labels: list[str]
    """Different labels in the order of their first row; numbers in their shortest form."""
    weights: np.ndarray | None
    """float64: the weight of each row; None if all are 1."""
    row_starts: np.ndarray
    """int64: the byte where the line of each row begins."""
    row_lines: np.ndarray
    """int32: the number of that line within the block, from 0."""
    tags: np.ndarray | None
    """int64: the bytes where each row's tag begins and ends, the same if it has none; None if no row has."""
    n_lines: int
    """How many lines were read, blank ones and those at fault included."""
    n_bytes: int
    """How many bytes they take: those of all lines, unless there was no room for more features or letters."""
    faults: list[Fault]
    pieces: Iterable[Named] | None = None
    """Instead of names: those of one row, a long one, which are read when somebody asks for them."""
    named: Iterable[Named] | None = None
    """Hashed features with their names, if those are kept."""
    squares: np.ndarray | None = None
    """The square norm of each row, if it was found."""
    n_columns: int | None = None
    """One more than the highest column, if it was found."""
    tidy: bool = False
    """Whether it was found that `tidied` leaves all rows as they are."""


def bytes_that_fit(parsed: Parsed, size: int) -> int:
    """How long a block may be to be parsed as a whole, if its lines are like those of one of this size."""
    filled = [len(parsed.data) / int(MANY), 0.0 if parsed.letters is None else len(parsed.letters) / LETTERS]
    return int(0.9 * size / max(*filled, 1e-3))


def padded(content: bytes) -> np.ndarray:
    """A block with PADDING zero bytes after it."""
    block = np.zeros(len(content) + PADDING, np.uint8)
    block[: len(content)] = np.frombuffer(content, np.uint8)
    return block[: len(content)]


# Labels as they are compared: numbers in their shortest form

_DECIMAL = re.compile(r"([+-]?)([0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]{1,18}))?", re.ASCII)
_MOST_ZEROS = 20  # that a number is written with for want of digits


def canonical_label(token: str) -> str:
    """A decimal number in its shortest form, with all its digits; any other text as it is.

    >>> [canonical_label(token) for token in ("+1", "1.0", "1e0", "-1.50", "-0", "1e100", "spam", "1_0")]
    ['1', '1', '1', '-1.5', '0', '1e100', 'spam', '1_0']
    """
    if token.isalpha() or (token.isdecimal() and token[0] != "0" and len(token) <= _MOST_ZEROS):
        return token  # as most are
    parts = _DECIMAL.fullmatch(token)
    if parts is None or not (parts[2] or parts[3]):
        return token
    digits = (parts[2] + parts[3]).lstrip("0")
    exponent = int(parts[4] or 0) - len(parts[3]) + len(digits)
    digits = digits.rstrip("0")
    exponent -= len(digits)
    if not digits:
        return "0"
    sign = "-" if parts[1] == "-" else ""
    if 0 <= exponent <= _MOST_ZEROS:
        return f"{sign}{digits}{'0' * exponent}"
    if -_MOST_ZEROS - len(digits) <= exponent < 0:
        digits = digits.rjust(1 - exponent, "0")
        return f"{sign}{digits[:exponent]}.{digits[exponent:]}"
    point = "." if digits[1:] else ""
    return f"{sign}{digits[0]}{point}{digits[1:]}e{exponent + len(digits) - 1}"


# Tokens

_LEAST_OF_LENGTH = np.array([0, 0x80, 0x800, 0x10000], np.uint64)  # that needs so many bytes and one

_LOW_BITS = U(0x7F7F7F7F7F7F7F7F)
_HIGHEST = U(0x8080808080808080)
_BEYOND_SPACE = U(0x5F5F5F5F5F5F5F5F)  # added to the low bits of a byte above a space, it sets the highest


def eight_times(byte: int) -> np.uint64:
    """A word of eight times the same byte."""
    return U(byte * 0x0101010101010101)


COLONS, HASHES, BARS = eight_times(COLON), eight_times(HASH), eight_times(BAR)

# 2^64 divided by the golden ratio, as in Knuth, volume 3, 6.4.
_GOLDEN = U(0x9E3779B97F4A7C15)


@inline
def mix(key: Any) -> Any:
    """The high half of the bits xored into the low half, and all times an odd number, modulo 2^64."""
    return (key ^ (key >> U(32))) * _GOLDEN


@inline
def column_of(key: Any, bits: Any) -> Any:
    """The column of a hash, 0 to 2^bits - 1: the highest bits of what is mixed once more."""
    return ((key ^ (key >> U(29))) * _GOLDEN) >> (U(64) - bits)


@inline
def ends_line(text: Any, p: Any, n: Any) -> Any:
    """Whether a line ends here: at LF, CR LF or the end of the text; or CR and then the end."""
    byte = text[p]
    if byte == RETURN:
        return text[p + U(1)] == NEWLINE or p + U(1) == n
    return byte == NEWLINE or p == n


@inline
def is_blank(byte: Any) -> Any:
    return byte in (SPACE, TAB)


@inline
def skip_blanks(text: Any, p: Any) -> Any:
    while is_blank(text[p]):
        p += U(1)
    return p


@inline
def is_separator(text: Any, p: Any, n: Any, mark: int) -> Any:
    """Whether a number ends here: at a blank, the end of the line, or a byte given."""
    return is_blank(text[p]) or text[p] == mark or ends_line(text, p, n)


@inline
def read_value(text: Any, p: Any, n: Any, mark: int) -> tuple[float, Any, int]:
    """A number up to the next separator, where it ends, and what is wrong with it."""
    value, stop = read_number(text, p)
    code = FINE
    if not is_separator(text, stop, n, mark):
        code = NOT_A_NUMBER
    elif stop == p:
        code = NO_VALUE
    elif not abs(value) < np.inf:
        code = TOO_LARGE
    return value, stop, code


@inline
def next_line(text: Any, p: Any, n: Any) -> Any:
    """Where the next line begins, from the end of one."""
    p += U(text[p] == RETURN)
    return p + U(p < n)


@inline
def ends(word: Any, one: Any, other: Any) -> Any:
    """The highest bit of each byte that is a space, below it, or one of two given ones."""
    a, b = word ^ one, word ^ other
    above = ((word & _LOW_BITS) + _BEYOND_SPACE) | word
    return ~(above & (((a & _LOW_BITS) + _LOW_BITS) | a) & (((b & _LOW_BITS) + _LOW_BITS) | b)) & _HIGHEST


@inline
def is_letter(text: Any, p: Any, n: Any) -> Any:
    """Whether a byte that was found by `ends` is part of the token all the same."""
    byte = text[p]
    if byte >= SPACE or byte in (TAB, NEWLINE, NUL):
        return False
    return byte != RETURN or not ends_line(text, p, n)


@inline
def read_token(text: Any, p: Any, n: Any, one: Any, other: Any, key: Any) -> tuple[Any, Any, Any]:
    """Where a token ends, its hash, and the highest bits of its bytes: 0 if all are ASCII.

    It ends at a blank, the end of the line, a NUL or one of two given bytes. The hash: its bytes are cut into
    words of eight, the first byte lowest. The last word has 0 to 7 bytes, and zeros above them. Each word in
    turn is xored to the key, and the result mixed. As no token contains a NUL, the words tell where it ends.
    """
    high = U(0)
    while True:
        word = word_of(text, p)
        found = ends(word, one, other)
        while found != U(0) and is_letter(text, p + (trailing_zeros(found) >> U(3)), n):
            found &= found - U(1)
        if found != U(0):
            break
        key = mix(key ^ word)
        high |= word
        p += U(8)
    bit = trailing_zeros(found) & U(0x38)  # of the byte that ends it, the lowest
    word &= (U(1) << bit) - U(1)
    return p + (bit >> U(3)), mix(key ^ word), (high | word) & _HIGHEST


@helper
def first_not_utf8(text: Any, p: Any, stop: Any) -> Any:
    """Where the first letter begins that is not UTF-8 (RFC 3629); `stop` if all are.

    What ends a token is no byte that continues a letter, so that none is looked for beyond it.
    """
    while p < stop:
        lead = U(text[p])
        if U(0x80) <= lead < U(0xC0) or lead >= U(0xF8):
            return p
        n = U(lead >= U(0xC0)) + U(lead >= U(0xE0)) + U(lead >= U(0xF0))
        point = lead & (U(0x7F) if n == U(0) else U(0x3F) >> n)
        for k in range(U(1), n + U(1)):
            byte = U(text[p + k])
            if byte & U(0xC0) != U(0x80):
                return p
            point = (point << U(6)) | (byte & U(0x3F))
        if point < _LEAST_OF_LENGTH[n] or point > U(0x10FFFF) or U(0xD800) <= point < U(0xE000):
            return p
        p += U(1) + n
    return stop


# What the kernels write

# The numbers that a kernel begins with, and leaves.
AT, LINE, ROW, FEATURE, LABEL, FAULT, LETTER, SHORT, UNTIDY, COLUMNS = range(10)

# What ended a line for which there are not enough letters: it is left for later.
NO_ROOM = -1

MANY = U(2**19)
"""Features after which no more lines are read."""
LETTERS = 4 << 20
"""Of names, that there is room for; or for as many as a block has, if it has more."""


class Rows(NamedTuple):
    """One of each for a row; of indptr one more."""

    indptr: Any
    codes: Any
    starts: Any
    lines: Any
    weights: Any
    tags: Any
    squares: Any


class Names(NamedTuple):
    """The names of features, if they are kept."""

    letters: Any
    starts: Any


class Labels(NamedTuple):
    """A table of tokens with open addressing, at most half full."""

    places: Any
    """int32: the code of a token, or EMPTY."""
    hashes: Any
    starts: Any
    stops: Any


EMPTY = -1
_FEWEST_LABELS = 64
_FAULTS_AT_ONCE = 256
_BYTES_A_ROW = 64  # a guess; more rows are made room for when they come
MARGIN = 8
"""Bytes before the first name and after the last, so that they can be read and written by words."""
_FAULT_WIDTH = len(Fault._fields)


@inline
def borrow_rows(rows: Any) -> Any:
    return Rows(
        borrow(rows.indptr),
        borrow(rows.codes),
        borrow(rows.starts),
        borrow(rows.lines),
        borrow(rows.weights),
        borrow(rows.tags),
        borrow(rows.squares),
    )


@inline
def borrow_labels(labels: Any) -> Any:
    return Labels(borrow(labels.places), borrow(labels.hashes), borrow(labels.starts), borrow(labels.stops))


@inline
def has_room(state: Any, rows: Any, labels: Any, faults: Any, feature: Any) -> Any:
    """Whether one more line is to be read, after so many features, whatever is in it."""
    return (
        state[ROW] < U(len(rows.codes))
        and feature < MANY
        and state[LABEL] < U(len(labels.hashes))
        and state[FAULT] < U(len(faults))
    )


@inline
def _code_of(labels: Any, count: Any, text: Any, start: Any, stop: Any, key: Any) -> Any:
    """The code of the token with this hash; `count` if it is new, and then it is known from now on."""
    mask = U(len(labels.places) - 1)
    place = column_of(key, U(64) - leading_zeros(mask))
    code = labels.places[place]
    while code != EMPTY:
        known = U(code)
        same = labels.hashes[known] == key and labels.stops[known] - labels.starts[known] == stop - start
        if same:
            other = labels.starts[known]
            for k in range(stop - start):
                same = same and text[start + k] == text[other + k]
        if same:
            return known
        place = (place + U(1)) & mask
        code = labels.places[place]
    labels.places[place] = np.int32(count)
    labels.hashes[count], labels.starts[count], labels.stops[count] = key, start, stop
    return count


@kernel
def _place_labels(places: Any, hashes: Any, count: int) -> None:
    """Put the first tokens, which are all different, into empty places."""
    mask = U(len(places) - 1)
    for code in range(count):
        place = column_of(hashes[code], U(64) - leading_zeros(mask))
        while places[place] != EMPTY:
            place = (place + U(1)) & mask
        places[place] = code


@inline
def add_row(
    text: Any,
    state: Any,
    rows: Any,
    labels: Any,
    start: Any,
    stop: Any,
    label: Any,
    label_stop: Any,
    key: Any,
) -> Any:
    """Write down a row of the line at `start`, whose features are those before `stop`; returns which."""
    row = state[ROW]
    rows.codes[row] = EMPTY
    if label_stop > label:
        code = _code_of(labels, state[LABEL], text, label, label_stop, key)
        state[LABEL] += U(code == state[LABEL])
        rows.codes[row] = code
    rows.starts[row], rows.lines[row] = start, state[LINE]
    rows.indptr[row + U(1)] = stop
    state[ROW] = row + U(1)
    return row


@helper
def add_fault(text: Any, n: Any, state: Any, faults: Any, start: Any, position: Any, code: int) -> Any:
    """Write down a fault; returns where the line ends. If there is a NUL, that is the fault."""
    stop = start
    while stop < n and text[stop] != NEWLINE:
        if text[stop] == NUL and code != NUL_BYTE:
            position, code = stop, NUL_BYTE
        stop += U(1)
    if stop > start and text[stop - U(1)] == RETURN:
        stop -= U(1)
    k = state[FAULT]
    faults[k, 0], faults[k, 1], faults[k, 2], faults[k, 3] = state[LINE], start, stop, position
    faults[k, 4] = code
    state[FAULT] = k + U(1)
    return stop


_NOT_FINITE = rb"(?i)[+-]?(?:nan|inf(?:inity)?)"


class Output:
    """What a kernel writes to, lengthened when it is full."""

    def __init__(
        self,
        block: np.ndarray,
        dtype: Any,
        n_features: int,
        separators: bytes,
        *,
        hashed: bool,
        named: bool,
        weighted: bool,
        columns: bool,
        memory: Memory,
    ) -> None:
        if block.dtype != np.uint8 or block.ndim != 1 or not block.flags.c_contiguous:
            raise TypeError("a block is a contiguous array of uint8; make one with padded()")
        self.n = len(block)
        self.text = np.lib.stride_tricks.as_strided(block, (self.n + PADDING,), (1,), writeable=False)
        n_rows = self.n // _BYTES_A_ROW + 2
        self.rows = Rows(
            indptr=memory.empty(n_rows + 1, np.int64),
            codes=memory.empty(n_rows, np.int32),
            starts=memory.empty(n_rows, np.int64),
            lines=memory.empty(n_rows, np.int32),
            weights=memory.empty(n_rows if weighted else 0, np.float64),
            tags=memory.empty(2 * n_rows if weighted else 0, np.int64).reshape(-1, 2),
            squares=memory.empty(n_rows, np.float64),
        )
        self.rows.indptr[0] = 0
        self.labels = Labels(
            places=np.full(2 * _FEWEST_LABELS, EMPTY, np.int32),
            hashes=np.empty(_FEWEST_LABELS, np.uint64),
            starts=np.empty(_FEWEST_LABELS, np.uint64),
            stops=np.empty(_FEWEST_LABELS, np.uint64),
        )
        self.ids = memory.empty(n_features if hashed else 0, np.uint32 if columns else np.uint64)
        self.data = memory.empty(n_features, dtype)
        self.names = Names(
            letters=memory.empty(2 * MARGIN + (max(self.n, LETTERS) if named else 0), np.uint8),
            starts=memory.empty(n_features + 1 if named else 1, np.int32),
        )
        self.names.starts[0] = 0
        self.named, self.weighted = named, weighted
        self.marks = room_for_marks()
        self.separators = separators
        self.faults: list[Fault] = []
        self.new_faults = np.empty((_FAULTS_AT_ONCE, _FAULT_WIDTH), np.int64)
        self.state = np.zeros(COLUMNS + 1, np.uint64)

    def fill(self, kernel: Callable[..., None], bits: int, *, stop_at_fault: bool) -> Parsed:
        """Have a kernel read all lines, or those before the first fault, or as many as there is room for."""
        if not 0 <= bits < 64:
            raise ValueError(
                f"bits is the number of bits of a column, 0 to 63 (0: features as they are), not {bits}"
            )
        while self.state[AT] < self.n and not self._is_full and not (stop_at_fault and self.faults):
            kernel(
                self.text,
                U(self.n),
                U(bits),
                stop_at_fault,
                self.state,
                self.rows,
                self.labels,
                self.new_faults,
                self.ids,
                self.data,
                self.names,
                self.marks,
            )
            self._drain_faults()
            self._make_room()
        return self._parsed()

    @property
    def _is_full(self) -> bool:
        return bool(self.state[FEATURE] >= MANY or self.state[SHORT])

    def _drain_faults(self) -> None:
        for row in self.new_faults[: int(self.state[FAULT])].tolist():
            fault = Fault(*row)
            if fault.code == NOT_A_NUMBER:
                rest = self.text[fault.position : fault.stop].tobytes()
                if re.fullmatch(_NOT_FINITE, re.split(self.separators, rest, maxsplit=1)[0]):
                    fault = fault._replace(code=NOT_FINITE)
            self.faults.append(fault)
        self.state[FAULT] = 0

    def _make_room(self) -> None:
        """Lengthen what is full."""
        if self.state[ROW] == len(self.rows.codes):
            self.rows = Rows(*map(_longer, self.rows))
        if self.state[LABEL] == len(self.labels.hashes):
            hashes, starts, stops = map(_longer, self.labels[1:])
            places = np.full(2 * _power_of_two(len(hashes)), EMPTY, np.int32)
            _place_labels(places, hashes, int(self.state[LABEL]))
            self.labels = Labels(places, hashes, starts, stops)

    def _parsed(self) -> Parsed:
        n_rows, n_features, n_letters = (int(self.state[k]) for k in (ROW, FEATURE, LETTER))
        rows = self.rows
        codes, labels = self._codes_and_labels(n_rows)
        weights: np.ndarray | None = None
        tags: np.ndarray | None = None
        if self.weighted:
            weights, tags = rows.weights[:n_rows], rows.tags[:n_rows]
            weights = None if np.all(weights == 1.0) else weights
            tags = None if np.all(tags[:, 0] == tags[:, 1]) else tags
        return Parsed(
            indptr=rows.indptr[: n_rows + 1],
            ids=self.ids[:n_features],
            letters=self.names.letters[MARGIN : MARGIN + n_letters] if self.named else None,
            starts=self.names.starts[: n_features + 1] if self.named else None,
            data=self.data[:n_features],
            codes=codes,
            labels=labels,
            weights=weights,
            row_starts=rows.starts[:n_rows],
            row_lines=rows.lines[:n_rows],
            tags=tags,
            n_lines=int(self.state[LINE]),
            n_bytes=int(self.state[AT]),
            faults=self.faults,
        )

    def _codes_and_labels(self, n_rows: int) -> tuple[np.ndarray, list[str]]:
        """Codes and labels once tokens are written in their shortest form: two may become one."""
        count = int(self.state[LABEL])
        spans = zip(self.labels.starts[:count].tolist(), self.labels.stops[:count].tolist(), strict=True)
        tokens = [str(self.text.data[start:stop], "utf-8") for start, stop in spans]
        known: dict[str, int] = {}
        merged = [known.setdefault(canonical_label(token), len(known)) for token in tokens]
        codes = self.rows.codes[:n_rows]
        if len(known) < len(tokens):
            codes = np.array([*merged, EMPTY], np.int32)[codes]  # EMPTY is the last one
        return codes, list(known)


def _longer(array: np.ndarray) -> np.ndarray:
    longer = np.empty((lengthened(len(array)) + 16, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def _power_of_two(n: int) -> int:
    """The smallest power of two that is not below n."""
    return 1 << (n - 1).bit_length()
