"""The two formats read by plain Python, to compare the compiled parsers with: split, int and float."""

import itertools
import math
import re
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from maxcosine.stream import parsed
from maxcosine.stream.parsed import Fault

GOLDEN = 0x9E3779B97F4A7C15
MASK = 2**64 - 1


class Row(NamedTuple):
    line: int
    start: int
    label: str | None
    weight: float
    tag: bytes
    keys: list  # ids or columns, or names
    names: list  # if they are kept
    values: list


class Bad(Exception):
    """Something wrong at a byte."""

    def __init__(self, position, code):
        self.position, self.code = position, code


class Read(NamedTuple):
    rows: list
    labels: list
    faults: list
    n_lines: int


# Parts


def numbered_lines(content):
    """Number, first byte and content of each line."""
    if not content:
        return
    start, lines = 0, content.split(b"\n")
    if content.endswith(b"\n"):
        lines.pop()
    for k, line in enumerate(lines):
        yield k, start, line.removesuffix(b"\r")
        start += len(line) + 1


def tokens(line, start):
    return [(start + found.start(), found[0]) for found in re.finditer(rb"[^ \t]+", line)]


def text(token, position):
    try:
        return token.decode()
    except UnicodeDecodeError as error:
        raise Bad(position + error.start, parsed.NOT_TEXT) from None


def number(token, position):
    if not token:
        raise Bad(position, parsed.NO_VALUE)
    if (
        token.lower().lstrip(b"+-") in (b"nan", b"inf", b"infinity")
        and len(token.lstrip(b"+-")) >= len(token) - 1
    ):
        raise Bad(position, parsed.NOT_FINITE)
    if set(token) - set(b"0123456789+-.eE"):
        raise Bad(position, parsed.NOT_A_NUMBER)
    try:
        value = float(token)
    except ValueError:
        raise Bad(position, parsed.NOT_A_NUMBER) from None
    if math.isinf(value):
        raise Bad(position, parsed.TOO_LARGE)
    return value


def cast(value, dtype, position):
    with np.errstate(over="ignore"):
        value = np.dtype(dtype).type(value)
    if np.isinf(value):
        raise Bad(position, parsed.TOO_LARGE)
    return value


def label_of(token):
    """A decimal number in its shortest form; any other text as it is."""
    if set(token) - set("0123456789+-.eE"):
        return token
    mantissa, e, power = token.lower().partition("e")
    try:
        float(token)
        power = int(power) if e else 0
    except ValueError:
        return token
    if len(token.lower().partition("e")[2].lstrip("+-")) > 18:
        return token
    negative, mantissa = mantissa.startswith("-"), mantissa.lstrip("+-")
    power -= len(mantissa.partition(".")[2])
    digits = list(mantissa.replace(".", ""))
    while digits and digits[-1] == "0":
        power += 1
        digits.pop()
    while digits and digits[0] == "0":
        digits.pop(0)
    if not digits:
        return "0"
    if -20 - len(digits) <= power <= 20:
        return format(Decimal((int(negative), tuple(map(int, digits)), power)), "f")
    digits.insert(1, "." if len(digits) > 1 else "")
    return f"{'-' * negative}{''.join(digits)}e{power + len([d for d in digits if d.isdigit()]) - 1}"


# Hashes, as documented


def mix(x):
    return (x ^ (x >> 32)) * GOLDEN & MASK


def column(h, bits):
    return ((h ^ (h >> 29)) * GOLDEN & MASK) >> (64 - bits)


def hash_bytes(h, content):
    for k in range(0, len(content) + 1, 8):
        h = mix(h ^ int.from_bytes(content[k : k + 8], "little"))
    return h


def column_of_id(number, bits):
    return number if bits == 0 or number < 2**bits else column(mix(number), bits)


def column_of_name(namespace, feature, bits):
    return column(hash_bytes(hash_bytes(0, namespace), feature), bits)


# Formats


def svmlight_row(line, start, bits, dtype):
    """Label, weight, tag, keys, names and values of a line; None if it is no row."""
    found = tokens(line.split(b"#")[0], start)
    if not found:
        return None
    label, keys, values = None, [], []
    if b":" not in found[0][1]:
        label = text(found[0][1], found[0][0])
        found.pop(0)
    for position, token in found:
        if token.startswith(b"qid:"):
            continue
        digits = re.match(rb"[0-9]*", token)[0]
        rest = token[len(digits) :]
        if not digits or (rest and not rest.startswith(b":")):
            raise Bad(position, parsed.BAD_ID)
        if not rest:
            raise Bad(position, parsed.NO_COLON)
        if len(digits.lstrip(b"0")) > 20 or int(digits) > MASK:
            raise Bad(position, parsed.LARGE_ID)
        position += len(digits) + 1
        keys.append(column_of_id(int(digits), bits))
        values.append(cast(number(rest[1:], position), dtype, position))
    return label, 1.0, b"", keys, [], values


def vw_row(line, start, bits, dtype):
    if not line.strip(b" \t"):
        return None
    header, bar, rest = line.partition(b"|")
    if not bar:
        raise Bad(start, parsed.NO_BAR)
    found, tag = tokens(header, start), b""
    if found and (not header.endswith((b" ", b"\t")) or found[-1][1].startswith(b"'")):
        tag = found.pop()[1].removeprefix(b"'")
    if len(found) > 3:
        raise Bad(found[3][0], parsed.TOO_MANY)
    label = text(found[0][1], found[0][0]) if found else None
    weight = number(found[1][1], found[1][0]) if len(found) > 1 else 1.0
    if weight < 0:
        raise Bad(found[1][0], parsed.NEGATIVE_WEIGHT)
    if len(found) > 2:
        number(found[2][1], found[2][0])
    keys, names, values = [], [], []
    position = start + len(header) + 1
    for section in rest.split(b"|"):
        first = re.match(rb"[^ \t]*", section)[0]
        namespace, colon, scale = first.partition(b":")
        if bits == 0:
            text(namespace, position)
        scale = number(scale, position + len(namespace) + 1) if colon else 1.0
        for at, token in tokens(section[len(first) :], position + len(first)):
            name, colon, value = token.partition(b":")
            if not name:
                raise Bad(at, parsed.NO_NAME)
            if bits == 0:
                text(name, at)
            value = number(value, at + len(name) + 1) if colon else 1.0
            values.append(cast(value * scale, dtype, at))
            names.append(namespace + b"^" + name if namespace else name)
            keys.append(column_of_name(namespace, name, bits) if bits else names[-1])
        position += len(section) + 1
    return label, weight, tag, keys, names, values


def read(read_row, content, *, bits=0, dtype=np.float64, stop_at_fault=False):
    """All rows, labels and faults of a block."""
    rows, faults, n_lines = [], [], 0
    for k, start, line in numbered_lines(content):
        n_lines += 1
        try:
            if b"\0" in line:
                raise Bad(start + line.index(b"\0"), parsed.NUL_BYTE)
            row = read_row(line, start, bits, dtype)
        except Bad as bad:
            faults.append(Fault(k, start, start + len(line), bad.position, bad.code))
            if stop_at_fault:
                break
            continue
        if row is not None:
            label, *others = row
            rows.append(Row(k, start, None if label is None else label_of(label), *others))
    labels = list(dict.fromkeys(row.label for row in rows if row.label is not None))
    return Read(rows, labels, faults, n_lines)


FORMATS = {"svmlight": svmlight_row, "vw": vw_row}


def as_read(block, result):
    """What a compiled parser returned, in the form of the naive one."""
    content = block.tobytes()
    keys = result.ids.tolist()
    names = []
    if result.letters is not None:
        letters = result.letters.tobytes()
        ends = result.starts.tolist()
        assert len(ends) == len(result.data) + 1
        assert ends[-1] == len(letters)
        names = [letters[a:b] for a, b in itertools.pairwise(ends)]
    keys = keys or names
    weights = np.ones(len(result.codes)) if result.weights is None else result.weights
    tags = np.zeros((len(result.codes), 2), int) if result.tags is None else result.tags
    rows = []
    for k, (a, b) in enumerate(zip(result.indptr[:-1].tolist(), result.indptr[1:].tolist(), strict=True)):
        code = int(result.codes[k])
        rows.append(
            Row(
                int(result.row_lines[k]),
                int(result.row_starts[k]),
                None if code < 0 else result.labels[code],
                float(weights[k]),
                content[tags[k, 0] : tags[k, 1]],
                keys[a:b],
                names[a:b],
                list(result.data[a:b]),
            )
        )
    assert len(result.data) == result.indptr[-1]
    return Read(rows, result.labels, result.faults, result.n_lines)
