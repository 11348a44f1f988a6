"""Parse lines of `label weight base 'tag|namespace:scale feature:value ...`, Vowpal Wabbit's format."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxcosine.compiled import borrow, helper, inline, kernel
from maxcosine.index.native import put_word, word_at
from maxcosine.stream.memory import Memory
from maxcosine.stream.numbers import COLON, U, read_short_number
from maxcosine.stream.parsed import (
    APOSTROPHE,
    AT,
    BAR,
    BARS,
    COLONS,
    FEATURE,
    FINE,
    LETTER,
    LINE,
    MARGIN,
    NEGATIVE_WEIGHT,
    NO_BAR,
    NO_NAME,
    NO_ROOM,
    NOT_TEXT,
    NUL,
    NUL_BYTE,
    SHORT,
    TOO_LARGE,
    TOO_MANY,
    Names,
    Output,
    Parsed,
    add_fault,
    add_row,
    borrow_labels,
    borrow_rows,
    column_of,
    ends_line,
    first_not_utf8,
    has_room,
    is_blank,
    next_line,
    read_token,
    read_value,
    skip_blanks,
)
from maxcosine.stream.scan import after_last_of, first_of

_SEPARATORS = rb"[ \t|]"
_SHORTEST_FEATURE = len("a ")
_CARET = 94

# The tokens before the first '|', of which a fifth is too many.
_LABEL, _WEIGHT, _BASE, _MOST_TOKENS = 0, 1, 2, 5


def parse(
    block: np.ndarray,
    *,
    bits: int,
    dtype: Any,
    stop_at_fault: bool,
    keep_names: bool = False,
    columns: bool = False,
    memory: Memory | None = None,
) -> Parsed:
    """Read a block of lines of `label weight base 'tag|namespace:scale feature:value ... |other ...`.

    All before the first '|' may be missing: a label, which is any token; a weight, 0 or more; a base, which
    is a number and not used; a tag, which touches the '|' or begins with an apostrophe. A namespace begins
    right after a '|', and may have no name. A feature is any text without blanks, ':' and '|'; its value, 1
    if there is none, is multiplied by the scale of its namespace. Blank lines are no rows.

    Without `bits`, features are names: "namespace^feature", or "feature" if the namespace has no name. With
    `bits`, they are columns from 0 to 2^bits - 1, by this hash. With m(x) = (x ^ (x >> 32)) * G modulo 2^64,
    where G = 0x9E3779B97F4A7C15, start from h = 0. The bytes of the namespace's name and then those of the
    feature, a number too, are each cut into words of eight bytes, lowest first, the last word of 0 to 7
    bytes filled up with zeros; each word w makes h = m(h ^ w). The column is the highest bits of
    (h ^ (h >> 29)) * G. With `keep_names`, there are the names beside the columns; only without `bits` are
    they checked to be UTF-8.

    >>> from maxcosine.stream.parsed import padded
    >>> rows = parse(padded(b"spam 2.5 |w:2 free:0.5 win | upper"), bits=0, dtype=float, stop_at_fault=True)
    >>> rows.letters.tobytes(), rows.starts.tolist(), rows.data.tolist(), rows.labels, rows.weights.tolist()
    (b'w^freew^winupper', [0, 6, 11, 16], [1.0, 2.0, 1.0], ['spam'], [2.5])
    """
    most_features = len(block) // _SHORTEST_FEATURE + 1
    output = Output(
        block,
        dtype,
        most_features,
        _SEPARATORS,
        hashed=bits > 0,
        named=bits == 0 or keep_names,
        weighted=True,
        columns=columns,
        memory=memory or Memory(),
    )
    return output.fill(_read_lines, bits, stop_at_fault=stop_at_fault)


def features_of(line: np.ndarray) -> tuple[int, int]:
    """Where the header of a line ends, before which it cannot be cut, and where its features do."""
    return min(first_of(line, b"|", 0, len(line)) + 1, len(line)), len(line)


def read_on(line: np.ndarray, start: int, stop: int, before: bytes) -> bytes:
    """What to put before the features behind line[start:stop] for them to be read as they are in the line:
    the namespace that they are in. If none begins in that part, it is the one that was put before it."""
    space = after_last_of(line, b"|", start, stop)
    if space == start:
        return before
    return b"|" + line[space : first_of(line, b" \t", space, stop)].tobytes() + b" "


@helper
def _read_header(text: Any, p: Any, n: Any, spans: Any) -> tuple[Any, Any, int]:
    """The tokens before the first '|', from p on; where that is, the hash of the first, and their number.

    Of more than _MOST_TOKENS, the last takes the place of others.
    """
    key, count = U(0), 0
    p = skip_blanks(text, p)
    while text[p] != BAR and text[p] != NUL and not ends_line(text, p, n):
        stop, hashed, _ = read_token(text, p, n, BARS, BARS, U(0))
        if count == 0:
            key = hashed
        k = min(count, _MOST_TOKENS - 1)
        spans[k, 0], spans[k, 1] = p, stop
        count += 1
        p = skip_blanks(text, stop)
    return p, key, count


@helper
def _find_tag(text: Any, bar: Any, spans: Any, count: int) -> tuple[Any, Any]:
    """Where the tag begins and ends if the last token is one; otherwise nowhere."""
    if count == 0:
        return U(0), U(0)
    last = min(count, _MOST_TOKENS) - 1
    quoted = text[spans[last, 0]] == APOSTROPHE
    if quoted or spans[last, 1] == bar:
        return spans[last, 0] + U(quoted), spans[last, 1]
    return U(0), U(0)


@helper
def _check_header(text: Any, n: Any, spans: Any, count: int) -> tuple[float, Any, int]:
    """The weight, and what is wrong with the tokens that are no tag, and where."""
    weight = 1.0
    if count > _BASE + 1:
        return weight, spans[_BASE + 1, 0], TOO_MANY
    if count > _LABEL:
        wrong = first_not_utf8(text, spans[_LABEL, 0], spans[_LABEL, 1])
        if wrong < spans[_LABEL, 1]:
            return weight, wrong, NOT_TEXT
    for k in range(_WEIGHT, count):
        number, _, code = read_value(text, spans[k, 0], n, BAR)
        if code == FINE and k == _WEIGHT and number < 0.0:
            code = NEGATIVE_WEIGHT
        if code != FINE:
            return weight, spans[k, 0], code
        weight = number if k == _WEIGHT else weight
    return weight, U(0), FINE


@inline
def _append(letters: Any, end: Any, text: Any, start: Any, stop: Any) -> Any:
    """Copy letters by words: those beyond the last are overwritten, or follow the last name."""
    source, target = U(text.ctypes.data) + start, U(letters.ctypes.data) + end
    for k in range(U(0), stop - start, U(8)):
        put_word(target + k, word_at(source + k))
    return end + (stop - start)


@inline
def _add_name(
    names: Any, letter: Any, text: Any, space: Any, space_stop: Any, name: Any, name_stop: Any
) -> Any:
    """Append `namespace^name`, or `name` if the namespace has none; returns where it ends."""
    end = letter + U(MARGIN)
    if space_stop > space:
        end = _append(names.letters, end, text, space, space_stop)
        names.letters[end] = _CARET
        end += U(1)
    return _append(names.letters, end, text, name, name_stop) - U(MARGIN)


@inline
def _read_features(
    text: Any, p: Any, n: Any, bits: Any, ids: Any, data: Any, names: Any, feature: Any, letter: Any
) -> tuple[Any, Any, Any, int]:
    """Read namespaces and their features up to the end of the line.

    Returns where that is, how many features and letters there are then, and FINE; or else where something
    is wrong.
    """
    named, room = len(names.starts) > 1, U(len(names.letters) - 2 * MARGIN)
    space, space_stop, space_key, scale = p, p, U(0), 1.0
    while True:
        if is_blank(text[p]):
            p += U(1)
            continue
        if text[p] == BAR:
            space, scale = p + U(1), 1.0
            space_stop, space_key, high = read_token(text, space, n, COLONS, BARS, U(0))
            p = space_stop
            if high and bits == U(0):
                p = first_not_utf8(text, space, space_stop)
                if p < space_stop:
                    return p, feature, letter, NOT_TEXT
            if text[p] == COLON:
                scale, stop, code = read_value(text, p + U(1), n, BAR)
                if code != FINE:
                    return p + U(1), feature, letter, code
                p = stop
            continue
        name = p
        name_stop, key, high = read_token(text, name, n, COLONS, BARS, space_key)
        if name_stop == name:
            if ends_line(text, p, n):
                return p, feature, letter, FINE
            return p, feature, letter, NO_NAME if text[p] == COLON else NUL_BYTE
        if high and bits == U(0):
            p = first_not_utf8(text, name, name_stop)
            if p < name_stop:
                return p, feature, letter, NOT_TEXT
        value, p = scale, name_stop
        if text[p] == COLON:
            p += U(1)
            value, stop, short = read_short_number(text, p)
            if not short:
                value, stop, code = read_value(text, p, n, BAR)
                if code != FINE:
                    return p, feature, letter, code
            value, p = value * scale, stop
        data[feature] = value
        if not abs(data[feature]) < np.inf:
            return name, feature, letter, TOO_LARGE
        if bits:
            ids[feature] = column_of(key, bits)
        feature += U(1)
        if named:
            if letter + (space_stop - space) + U(1) + (name_stop - name) > room:
                return p, feature, letter, NO_ROOM
            letter = _add_name(names, letter, text, space, space_stop, name, name_stop)
            names.starts[feature] = letter


@kernel
def _read_lines(
    text: Any,
    n: Any,
    bits: Any,
    stop_at_fault: bool,
    state: Any,
    rows: Any,
    labels: Any,
    faults: Any,
    ids: Any,
    data: Any,
    names: Any,
    marks: Any,
) -> None:
    """Read lines from state[AT] on, for as long as there is room."""
    text, state, ids, data, faults = borrow(text), borrow(state), borrow(ids), borrow(data), borrow(faults)
    rows, labels = borrow_rows(rows), borrow_labels(labels)
    names = Names(borrow(names.letters), borrow(names.starts))
    spans = np.empty((_MOST_TOKENS, 2), np.uint64)
    p, feature, letter, stopped = state[AT], state[FEATURE], state[LETTER], False
    while p < n and has_room(state, rows, labels, faults, feature) and not stopped:
        start, stop, letter_stop, weight, wrong, code = p, feature, letter, 1.0, p, FINE
        p, key, count = _read_header(text, p, n, spans)
        tag, tag_stop = _find_tag(text, p, spans, count)
        is_row = text[p] == BAR
        if is_row:
            count -= tag_stop > U(0)
            weight, wrong, code = _check_header(text, n, spans, count)
        elif count > 0 or not ends_line(text, p, n):
            code = NO_BAR
        if is_row and code == FINE:
            p, stop, letter_stop, code = _read_features(text, p, n, bits, ids, data, names, feature, letter)
            wrong = p
        if code == NO_ROOM:
            p, state[SHORT] = start, U(1)
            break
        if code != FINE:
            p = add_fault(text, n, state, faults, start, wrong, code)
            stopped = stop_at_fault
        elif is_row:
            feature, letter = stop, letter_stop
            label, label_stop = U(0), U(0)
            if count > 0:
                label, label_stop = spans[_LABEL, 0], spans[_LABEL, 1]
            row = add_row(text, state, rows, labels, start, stop, label, label_stop, key)
            rows.weights[row], rows.tags[row, 0], rows.tags[row, 1] = weight, tag, tag_stop
        p = next_line(text, p, n)
        state[LINE] += U(1)
    state[AT], state[FEATURE], state[LETTER] = p, feature, letter
