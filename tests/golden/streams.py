"""Small streams that are hard on the engine and on the parsers, the same on every machine.

They hold zero rows, near-duplicates with different labels, norms of many magnitudes, features that appear
twice in a row, late classes and weights. Every number is spelled out as decimal text first, so that arrays,
dicts and text files hold the same values.
"""

import random
from dataclasses import dataclass

import numpy as np
import scipy.sparse

# The spellings of each class in text files. All spellings of a number are the same label.
LABELS = (
    ("1", "+1", "1.0", "1e0", "01"),
    ("-1", "-1.0", "-10e-1"),
    ("2.5", "+25e-1", "2.500"),
    ("spam",),
)

WEIGHTS = ("1", "0.5", "2", "0", "3.75e-1", "1.0", "7.25")

# Decimals that lie on or next to the middle between two floats, of 64 or of 32 bits.
HARD_NUMBERS = (
    "9007199254740993e-16",
    "0.1000000000000000055511151231257827021181583404541015625",
    "1.00000005960464477539062500000000000000000000001",
    "1.000000059604644775390625",
    "-0.333333343267440795898437500000000000001",
    "8.5e-1",
    "2.2250738585072011e-3",
)


@dataclass
class Example:
    code: int
    weight: str
    columns: list[int]
    values: list[str]


def examples(
    seed: int,
    n_rows: int,
    n_features: int,
    n_classes: int,
    *,
    density: float = 0.6,
    magnitudes: int = 4,
    twins: float = 1e-6,
) -> list[Example]:
    """A stream in which a class can be told from the largest values, most of the time.

    Norms range from 10^-magnitudes to 10^magnitudes; near-duplicates differ by a factor of 1 + twins.
    """
    random_numbers = random.Random(seed)
    stream: list[Example] = []
    for k in range(n_rows):
        # Classes 0 and 1 are there from the start, the others appear one after another.
        n_started = min(n_classes, 2 + k * n_classes // (n_rows // 2 + 1))
        weight = random_numbers.choice(WEIGHTS)
        if k % 17 == 5:
            stream.append(Example(k % n_started, weight, [], []))
        elif k % 11 in (1, 7) and stream[-1].values:
            twin, values = stream[-1], stream[-1].values
            if twins:
                values = [_spelled(float(value) * (1 + twins), random_numbers) for value in values]
            stream.append(Example((twin.code + 1) % n_started, weight, twin.columns, values))
        else:
            stream.append(_new_example(random_numbers, k, n_features, n_started, weight, density, magnitudes))
    return stream


def _new_example(
    random_numbers: random.Random,
    k: int,
    n_features: int,
    n_started: int,
    weight: str,
    density: float,
    magnitudes: int,
) -> Example:
    scale = float(f"1e{k * 7 % (2 * magnitudes + 1) - magnitudes}") if k % 5 == 3 else 1.0
    columns = [j for j in range(n_features) if random_numbers.random() < density]
    random_numbers.shuffle(columns)
    numbers = [scale * (4.0 * random_numbers.random() - 2.0) for _ in columns]
    best = max(range(len(columns)), key=numbers.__getitem__, default=0)
    code = columns[best] % n_started if columns and random_numbers.random() < 0.8 else k % n_started
    values = [_spelled(number, random_numbers) for number in numbers]
    if columns and k % 6 == 2:
        values[-1] = HARD_NUMBERS[k // 6 % len(HARD_NUMBERS)]
    if columns and k % 9 == 4:
        values[0] = random_numbers.choice(("0", "-0.0", "0e5"))
    return Example(code, weight, columns, values)


def _spelled(number: float, random_numbers: random.Random) -> str:
    """Decimal text of about this number."""
    form = random_numbers.choice(("{!r}", "{:.25g}", "{:.17e}", "{:+.4E}", "{:.9f}", "{:.3f}", "{:.0f}"))
    text = form.format(number)
    return text.replace("0.", ".", 1) if text.startswith("0.") else text


def columns_and_values(example: Example) -> tuple[list[int], list[str]]:
    """The features as text files have them: every seventh row has one of its features twice."""
    if len(example.columns) % 7 == 6:
        return [*example.columns, example.columns[0]], [*example.values, "0.0625"]
    return example.columns, example.values


def dense(stream: list[Example], n_features: int, dtype: str) -> np.ndarray:
    rows = np.zeros((len(stream), n_features), dtype)
    for row, example in zip(rows, stream, strict=True):
        row[example.columns] = [float(value) for value in example.values]
    return rows


def csr(stream: list[Example], n_features: int, dtype: str) -> scipy.sparse.csr_array:
    """CSR rows that are not canonical: columns in any order, one of them twice now and then."""
    rows = [columns_and_values(example) for example in stream]
    indptr = np.cumsum([0, *(len(columns) for columns, _ in rows)])
    indices = np.array([column for columns, _ in rows for column in columns], np.int32)
    data = np.array([float(value) for _, values in rows for value in values], dtype)
    return scipy.sparse.csr_array((data, indices, indptr), shape=(len(stream), n_features))


def dicts(stream: list[Example]) -> list[dict[str, float]]:
    return [
        {f"f{column}": float(value) for column, value in zip(example.columns, example.values, strict=True)}
        for example in stream
    ]


def svmlight(stream: list[Example], *, spread: int = 1) -> str:
    """Text with comments, query ids, tabs and Windows line ends; ids are multiples of `spread`."""
    lines = ["# a comment", ""]
    for k, example in enumerate(stream):
        blank = "\t" if k % 10 == 9 else " "
        columns, values = columns_and_values(example)
        features = [f"{1 + column * spread}:{value}" for column, value in zip(columns, values, strict=True)]
        query = ["qid:7"] if k % 8 == 0 else []
        comment = ["# 3:4 not a feature"] if k % 12 == 1 else []
        line_end = "\r" if k % 7 == 3 else ""
        lines.append(blank.join([_label(example, k), *query, *features, *comment]) + line_end)
    return "\n".join(lines)


def vw(stream: list[Example], *, weighted: bool) -> str:
    """Text with weights, tags, several namespaces with and without a scale, and features without a value."""
    lines = []
    for k, example in enumerate(stream):
        columns, values = columns_and_values(example)
        features = [
            _vw_name(column) if value in ("1", "-0.0") else f"{_vw_name(column)}:{value}"
            for column, value in zip(columns, values, strict=True)
        ]
        half = len(features) // 2
        header = f"{_label(example, k)} {example.weight}" if weighted else _label(example, k)
        tag = f" 'row{k}" if k % 3 == 0 else " "
        second = "|user:0.5 " if k % 4 == 2 else "|user "
        lines.append(f"{header}{tag}|word {' '.join(features[:half])} {second}{' '.join(features[half:])}")
    return "\n".join(lines) + "\n"


def _vw_name(column: int) -> str:
    """Short, long and non-ASCII names."""
    return (str(column), f"straße_{column}", f"a-long-name-of-a-feature-{column}")[column % 3]


def _label(example: Example, k: int) -> str:
    spellings = LABELS[example.code]
    return spellings[k % len(spellings)]
