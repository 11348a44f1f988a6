"""The two text formats read by plain Python (split, int, float), to compare the parsers of the core with."""

import itertools
import math
import re
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from maxcosine import core

GOLDEN = 0x9E3779B97F4A7C15
MASK = 2**64 - 1


class Row(NamedTuple):
    line: int
    start: int
    label: str | None
    weight: float
    keys: list  # ids, columns or names
    values: list


class Read(NamedTuple):
    rows: list
    labels: list
    faults: list  # (line, start, stop, position, code)
    n_lines: int
    hashed: list  # names and columns of all features, if the names of hashed features are kept


class Options(NamedTuple):
    bits: int = 0
    exact: bool = False
    dtype: str = "float64"
    log1p: bool = False
    l2: bool = False
    stop_at_fault: bool = False
    keep_names: bool = False


class Bad(Exception):
    """Something is wrong at a byte."""

    def __init__(self, position, fault):
        self.position, self.code = position, core.FAULT_CODES[fault]


# Parts of lines


def numbered_lines(content):
    """Number, first byte and content of each line."""
    start, lines = 0, content.split(b"\n")
    if not lines[-1]:
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
        raise Bad(position + error.start, "NOT_TEXT") from None


def number(token, position):
    if not token:
        raise Bad(position, "NO_VALUE")
    if re.fullmatch(rb"(?i)[+-]?(nan|inf|infinity)", token):
        raise Bad(position, "NOT_FINITE")
    if set(token) - set(b"0123456789+-.eE"):
        raise Bad(position, "NOT_A_NUMBER")
    try:
        value = float(token)
    except ValueError:
        raise Bad(position, "NOT_A_NUMBER") from None
    if math.isinf(value):
        raise Bad(position, "TOO_LARGE")
    return value


def cast(value, dtype, position):
    with np.errstate(over="ignore"):
        value = np.dtype(dtype).type(value)
    if np.isinf(value):
        raise Bad(position, "TOO_LARGE")
    return value


def label_of(token):
    """A decimal number in its shortest form; any other text unchanged."""
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
    digits = mantissa.replace(".", "")
    power += len(digits) - len(digits.rstrip("0"))
    digits = digits.strip("0")
    if not digits:
        return "0"
    if -20 - len(digits) <= power <= 20:
        return format(Decimal((int(negative), tuple(map(int, digits)), power)), "f")
    point = "." if digits[1:] else ""
    return f"{'-' * negative}{digits[0]}{point}{digits[1:]}e{power + len(digits) - 1}"


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


def svmlight_row(line, start, options):
    """Label, weight, names, keys and values of a line; None if it is not a row."""
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
            raise Bad(position, "BAD_ID")
        if not rest:
            raise Bad(position, "NO_COLON")
        if int(digits.lstrip(b"0")[:30] or b"0") > MASK:
            raise Bad(position, "LARGE_ID")
        if not options.exact and not options.bits and int(digits) >= 2**28:
            raise Bad(position, "NO_COLUMN")
        position += len(digits) + 1
        keys.append(column_of_id(int(digits), options.bits))
        values.append(cast(number(rest[1:], position), options.dtype, position))
    return label, 1.0, [], keys, values


def vw_row(line, start, options):
    if not line.strip(b" \t"):
        return None
    header, bar, rest = line.partition(b"|")
    if not bar:
        raise Bad(start, "NO_BAR")
    found = tokens(header, start)
    if found and (not header.endswith((b" ", b"\t")) or found[-1][1].startswith(b"'")):
        found.pop()  # a tag
    if len(found) > 3:
        raise Bad(found[3][0], "TOO_MANY")
    label = text(found[0][1], found[0][0]) if found else None
    weight = number(found[1][1], found[1][0]) if len(found) > 1 else 1.0
    if weight < 0:
        raise Bad(found[1][0], "NEGATIVE_WEIGHT")
    if len(found) > 2:
        number(found[2][1], found[2][0])
    keys, names, values = [], [], []
    position = start + len(header) + 1
    for section in rest.split(b"|"):
        first = re.match(rb"[^ \t]*", section)[0]
        namespace, colon, scale = first.partition(b":")
        if options.exact:
            text(namespace, position)
        scale = number(scale, position + len(namespace) + 1) if colon else 1.0
        for at, token in tokens(section[len(first) :], position + len(first)):
            name, colon, value = token.partition(b":")
            if not name:
                raise Bad(at, "NO_NAME")
            if options.exact:
                text(name, at)
            value = number(value, at + len(name) + 1) if colon else 1.0
            values.append(cast(value * scale, options.dtype, at))
            names.append(namespace + b"^" + name if namespace else name)
            keys.append(names[-1] if options.exact else column_of_name(namespace, name, options.bits))
        position += len(section) + 1
    return label, weight, names, keys, values


FORMATS = {"svmlight": svmlight_row, "vw": vw_row}


def canonical_row(keys, values, options):
    """Add up equal keys in the order of their first appearance, drop zeros, and transform."""
    sums = {}
    with np.errstate(over="ignore", invalid="ignore"):
        for key, value in zip(keys, values, strict=True):
            sums[key] = sums[key] + value if key in sums else value
        sums = {key: value for key, value in sums.items() if value != 0}
        kind = np.dtype(options.dtype).type
        if options.log1p:
            sums = {key: kind(math.copysign(math.log1p(abs(float(x))), x)) for key, x in sums.items()}
        square = 0.0
        for value in sums.values():
            square += float(value) * float(value)
        if options.l2 and square > 0:
            sums = {key: kind(np.float64(value) / math.sqrt(square)) for key, value in sums.items()}
    return list(sums), list(sums.values())


def read(form, content, options=Options()):  # noqa: B008, a constant
    """All rows, labels and faults of a block."""
    rows, faults, hashed, n_lines = [], [], [], 0
    named = form == "vw" and options.exact
    for k, start, line in numbered_lines(content):
        n_lines += 1
        try:
            if b"\0" in line:
                raise Bad(start + line.index(b"\0"), "NUL_BYTE")
            row = FORMATS[form](line, start, options)
        except Bad as bad:
            faults.append((k, start, start + len(line), bad.position, bad.code))
            if options.stop_at_fault:
                break
            continue
        if row is not None:
            label, weight, names, keys, values = row
            if form == "vw" and options.bits and options.keep_names:
                hashed += zip(names, keys, strict=True)
            if not named:
                keys, values = canonical_row(keys, values, options)
            rows.append(Row(k, start, None if label is None else label_of(label), weight, keys, values))
    labels = list(dict.fromkeys(row.label for row in rows if row.label is not None))
    return Read(rows, labels, faults, n_lines, hashed)


# The parsers of the core


def padded(content, padding=b"7"):
    """A buffer with a block, and the block's start and stop."""
    return (
        padding * core.PADDING + content + padding * core.PADDING,
        core.PADDING,
        core.PADDING + len(content),
    )


def parse(form, content, options=Options(), padding=b"7"):  # noqa: B008, a constant
    """What the core returns for a block."""
    arguments = options._asdict()
    if form == "svmlight":
        del arguments["keep_names"]
    function = {"svmlight": core.parse_svmlight, "vw": core.parse_vw}[form]
    return function(*padded(content, padding), **arguments)


def names_of(block):
    if block.letters is None:
        return []
    letters = block.letters.tobytes()
    assert block.name_starts[-1] == len(letters)
    return [letters[a:b] for a, b in itertools.pairwise(block.name_starts.tolist())]


def as_read(block):
    """What a parser of the core returned, in the form of `read`."""
    names = names_of(block)
    keys = [array.tolist() for array in (block.columns, block.ids) if array is not None]
    keys = keys[0] if keys else names
    assert len(keys) == len(block.values) == block.indptr[-1]
    weights = np.ones(len(block.codes)) if block.weights is None else block.weights
    rows = [
        Row(
            int(block.row_lines[k]),
            int(block.row_starts[k]),
            None if block.codes[k] < 0 else block.labels[block.codes[k]],
            float(weights[k]),
            keys[a:b],
            list(block.values[a:b]),
        )
        for k, (a, b) in enumerate(itertools.pairwise(block.indptr.tolist()))
    ]
    hashed = [] if block.name_columns is None else list(zip(names, block.name_columns.tolist(), strict=True))
    return Read(rows, block.labels, block.faults, block.n_lines, hashed)
