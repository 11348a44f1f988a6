"""Parse lines of `label id:value id:value ... # comment`, the format of SVMlight and LIBSVM."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxcosine.compiled import borrow, helper, inline, kernel
from maxcosine.engine.arithmetic import square_norm
from maxcosine.stream.marks import borrow_marks, find_marks
from maxcosine.stream.memory import Memory
from maxcosine.stream.native import read_eight
from maxcosine.stream.numbers import (
    COLON,
    MINUS,
    POINT,
    SPACE,
    U,
    digit_at,
    digit_values,
    first_digits,
    last_digits,
    no_digits,
    read_id,
    read_short_number,
    shifted,
    word_of,
)
from maxcosine.stream.parsed import (
    AT,
    BAD_ID,
    COLONS,
    COLUMNS,
    FEATURE,
    FINE,
    HASH,
    HASHES,
    LARGE_ID,
    LINE,
    NEWLINE,
    NO_COLON,
    NO_COLUMN,
    NOT_TEXT,
    NUL,
    NUL_BYTE,
    TAB,
    TOO_LARGE,
    UNTIDY,
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
    is_separator,
    mix,
    next_line,
    read_token,
    read_value,
    skip_blanks,
)
from maxcosine.stream.scan import first_of, first_other_than
from maxcosine.stream.tidy import ascends, has_zeros

_SEPARATORS = rb"[ \t#]"
_SHORTEST_FEATURE = len("1:1 ")
_FIRST_BYTE = U(0xFF)
_QUERY = U(int.from_bytes(b"qid:", "little"))
_FOUR_BYTES = U(2**32 - 1)
_COLUMN_SIZE, _MOST_COLUMNS = 4, U(2**28)
_AT_ONCE, _MOST_ALONE = 8, 256


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
    """Read a block of lines of `label id:value id:value ... # comment`.

    Ids are 0 to 2^64 - 1, in any order; `qid:...` is skipped; what follows a '#' is a comment. The label is
    any text without blanks, ':' and '#', and may be missing. Lines that are blank or only a comment are
    no rows. With `bits`, ids from 2^bits on are hashed: with x = (id ^ (id >> 32)) * G modulo 2^64, where
    G = 0x9E3779B97F4A7C15, the column is the highest bits of (x ^ (x >> 29)) * G. Ends at the first line at
    fault if `stop_at_fault`; otherwise such lines are left out. Ids have no names to keep. With `columns`,
    ids are numbers of columns, in 32 bits: one of 2^28 or more that is not hashed is a fault.

    >>> from maxcosine.stream.parsed import padded
    >>> rows = parse(padded(b"+1 7:0.5 9:2\\n-1 7:1 # a comment"), bits=0, dtype=float, stop_at_fault=True)
    >>> rows.ids.tolist(), rows.data.tolist(), rows.indptr.tolist(), rows.codes.tolist(), rows.labels
    ([7, 9, 7], [0.5, 2.0, 1.0], [0, 2, 3], [0, 1], ['1', '-1'])
    """
    # Eight are written at a time, and some of them may then be none.
    most_features = len(block) // _SHORTEST_FEATURE + 1 + _AT_ONCE
    output = Output(
        block,
        dtype,
        most_features,
        _SEPARATORS,
        hashed=True,
        named=False,
        weighted=False,
        columns=columns,
        memory=memory or Memory(),
    )
    parsed = output.fill(_read_lines, bits, stop_at_fault=stop_at_fault)
    if not output.state[UNTIDY]:
        parsed.tidy, parsed.squares = True, output.rows.squares[: len(parsed.codes)]
        parsed.n_columns = int(output.state[COLUMNS]) if columns else None
    return parsed


def features_of(line: np.ndarray) -> tuple[int, int]:
    """Where the first token of a line ends, before which it cannot be cut, and where a comment has begun, or
    the line ends."""
    stop = min(first_of(line, b"#", 0, len(line)) + 1, len(line))
    return first_of(line, b" \t", first_other_than(line, b" \t", 0, stop), stop), stop


def read_on(line: np.ndarray, start: int, stop: int, before: bytes) -> bytes:
    """What to put before the features behind line[start:stop] for them to be read as they are in the line:
    any label, as that comes first."""
    return b"0 "


@helper
def _skip_comment(text: Any, p: Any) -> Any:
    """The end of the line, or a NUL."""
    while text[p] != NEWLINE and text[p] != NUL:
        p += U(1)
    return p


@helper
def _skip_query(text: Any, p: Any, n: Any) -> Any:
    """The end of the token, or a NUL."""
    while not is_separator(text, p, n, HASH) and text[p] != NUL:
        p += U(1)
    return p


@inline
def _read_other_number(text: Any, p: Any, stop: Any) -> tuple[float, bool]:
    """A whole number of up to eight digits, or `d.ddd`, with or without a minus; and whether it is one."""
    negative = text[p] == MINUS
    first = p + U(negative)
    number, fine = last_digits(text, stop, stop - first)
    value: Any = np.float64(number)
    if not fine:
        n_decimals, digit = stop - first - U(2), digit_at(text, first)
        decimals, fine = last_digits(text, stop, n_decimals)
        fine &= (digit <= U(9)) & (text[first + U(1)] == POINT)
        value = shifted(digit, decimals, n_decimals) if fine else 0.0
    return -value if negative else value, fine


@inline
def _read_plain_features(
    text: Any, p: Any, n: Any, bits: Any, ids: Any, data: Any, feature: Any, marks: Any
) -> tuple[Any, Any]:
    """Read features as most are written: a blank, up to eight digits, a colon and a number.

    Stops at the end of the line, or before the first one that is anything else; returns where, and how many
    features there are then.
    """
    hashed_from = U(1) << bits
    at, k, count, alone, patience = marks.at, marks.state[0], marks.state[1], marks.state[2], marks.state[3]
    while k < count and at[k] < p:
        k += U(1)
    while p >= U(8) and is_blank(text[p]):
        if k + U(2) >= count or at[k] != p:
            k, count = U(0), find_marks(text, p, n, at)
            if count < U(3) or at[0] != p:
                break
        if alone > U(0):
            alone -= U(1)
        elif k + U(2 * _AT_ONCE) < count:
            read = read_eight(text, at, k, ids, data, feature)
            if read > U(0):
                if bits:
                    for i in range(feature, feature + read):
                        if U(ids[i]) >= hashed_from:
                            ids[i] = column_of(mix(U(ids[i])), bits)
                feature += read
                k += U(2) * read
                p, patience = at[k], U(_AT_ONCE)
                continue
            alone, patience = patience, min(U(2) * patience, U(_MOST_ALONE))
        colon, stop = at[k + U(1)], at[k + U(2)]
        n_digits, n_decimals = colon - p - U(1), stop - colon - U(3)
        number, is_number = last_digits(text, colon, n_digits)
        digit, end = digit_at(text, colon + U(1)), text[stop]
        decimals, is_decimal = last_digits(text, stop, n_decimals)
        # Bits, not `and`: what is mostly true is not worth asking one by one.
        plain = is_number & (text[colon] == COLON) & ((end == SPACE) | (end == NEWLINE) | (end == TAB))
        if not plain:
            break
        if is_decimal & (digit <= U(9)) & (text[colon + U(2)] == POINT):
            value = shifted(digit, decimals, n_decimals)
        elif n_decimals == U(2**64 - 1) and digit <= U(9):
            value = np.float64(digit)
        else:
            value, is_value = _read_other_number(text, colon + U(1), stop)
            if not is_value:
                value, value_stop, code = read_value(text, colon + U(1), n, HASH)
                data[feature] = value
                if code != FINE or value_stop != stop or not abs(data[feature]) < np.inf:
                    break
        ids[feature] = column_of(mix(number), bits) if bits and number >= hashed_from else number
        data[feature] = value
        feature += U(1)
        p, k = stop, k + U(2)
    marks.state[0], marks.state[1], marks.state[2], marks.state[3] = k, count, alone, patience
    return p, feature


@inline
def _read_features(
    text: Any, p: Any, n: Any, bits: Any, ids: Any, data: Any, feature: Any, marks: Any
) -> tuple[Any, Any, int]:
    """Read features up to the end of the line.

    Returns where that is, how many features there are then, and FINE; or else where something is wrong.
    """
    hashed_from = U(1) << bits
    p, feature = _read_plain_features(text, p, n, bits, ids, data, feature, marks)
    while True:
        values = digit_values(word_of(text, p))
        others = no_digits(values)
        if others & _FIRST_BYTE:
            if is_blank(text[p]):
                p += U(1)
            elif ends_line(text, p, n):
                return p, feature, FINE
            elif text[p] == HASH:
                p = _skip_comment(text, p)
                return p, feature, FINE if text[p] == NEWLINE or p == n else NUL_BYTE
            elif word_of(text, p) & _FOUR_BYTES == _QUERY:
                p = _skip_query(text, p, n)
            else:
                return p, feature, BAD_ID
            continue
        if others != U(0):
            number, n_digits = first_digits(values, others)
            colon, fits = p + n_digits, True
        else:
            number, colon, fits = read_id(text, p)
        if text[colon] != COLON:
            return p, feature, NO_COLON if is_separator(text, colon, n, HASH) else BAD_ID
        if not fits:
            return p, feature, LARGE_ID
        if ids.itemsize == _COLUMN_SIZE and not bits and number >= _MOST_COLUMNS:
            return p, feature, NO_COLUMN
        p = colon + U(1)
        value, stop, short = read_short_number(text, p)
        if not short:
            value, stop, code = read_value(text, p, n, HASH)
            if code != FINE:
                return p, feature, code
        ids[feature] = column_of(mix(number), bits) if bits and number >= hashed_from else number
        data[feature] = value
        if not abs(data[feature]) < np.inf:
            return p, feature, TOO_LARGE
        feature += U(1)
        p = stop + U(1) if short else stop


@inline
def _measure(ids: Any, data: Any, start: Any, stop: Any, state: Any) -> Any:
    """The square norm of a row, found here, where it is in the cache; and whether it is a tidy one."""
    if ascends(ids, start, stop) and not has_zeros(data, start, stop):
        if stop > start:
            state[COLUMNS] = max(state[COLUMNS], U(ids[stop - U(1)]) + U(1))
    else:
        state[UNTIDY] = U(1)
    return square_norm(data[start:stop])


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
    rows, labels, marks = borrow_rows(rows), borrow_labels(labels), borrow_marks(marks)
    p, feature, stopped = state[AT], state[FEATURE], False
    while p < n and has_room(state, rows, labels, faults, feature) and not stopped:
        start, label = p, skip_blanks(text, p)
        label_stop, key, high = read_token(text, label, n, COLONS, HASHES, U(0))
        is_row = label_stop > label or text[label_stop] == COLON
        if text[label_stop] == COLON:  # it is a feature
            label_stop = label
        stop, code = feature, FINE
        if high and label_stop > label:
            p = first_not_utf8(text, label, label_stop)
            code = FINE if p == label_stop else NOT_TEXT
        if code == FINE:
            p, stop, code = _read_features(text, label_stop, n, bits, ids, data, feature, marks)
        if code != FINE:
            p = add_fault(text, n, state, faults, start, p, code)
            stopped = stop_at_fault
        elif is_row:
            row = add_row(text, state, rows, labels, start, stop, label, label_stop, key)
            rows.squares[row] = _measure(ids, data, feature, stop, state)
            feature = stop
        p = next_line(text, p, n)
        state[LINE] += U(1)
    state[AT], state[FEATURE] = p, feature
