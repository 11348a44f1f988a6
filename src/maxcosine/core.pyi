"""What the compiled core offers to Python; the code is in core/."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

LEVEL: str
"""The instruction set that the loaded module was built for: "v2", "v3" or "base"."""

# Rules (core/bindings/rules.cpp)

class RuleFunction:
    """A rule as the core calls it."""

    def step(
        self,
        margin: float,
        sq_w: float,
        sq_x: float,
        coef_sum: float,
        state: Sequence[float],
        params: Sequence[float],
    ) -> tuple[float, float, tuple[float, ...]]:
        """Return keep, add and the new state."""

def builtin_rule(name: str) -> RuleFunction: ...
def builtin_rule_names() -> list[str]: ...
def rule_at_address(address: int, owner: Any) -> RuleFunction:
    """Return a rule compiled to machine code, of the type StepFunction in core/rules/step.hpp."""

def python_rule(function: Any, n_state: int, n_params: int) -> RuleFunction: ...
def maximise(r: float, p: float, s: float, q: float, t: float) -> tuple[float, float, int]: ...

# Learning and scoring (core/bindings/learning.cpp)

LIMITS: Mapping[str, tuple[float, float, float, float, float, float, float]]
NO_ROOM: int

class Engine:
    """The core's view of the arrays of `maxcosine.heads.Heads`."""

    def __init__(
        self,
        v: Array,
        bias: Array,
        total: Array,
        total_bias: Array,
        table: Array,
        state: Array,
        params: Array,
        log: Array,
        class_seen: Array,
        scalars: Array,
        calibration: Array,
        rules: list[RuleFunction],
        *,
        fit_intercept: bool,
        average: bool,
    ) -> None: ...
    def learn_rows(
        self,
        indptr: Array,
        slots: Array,
        values: Array,
        squares: Array | None,
        mapped: bool,
        codes: Array,
        weights: Array | None,
        order: Array | None,
        predicted: Array | None,
        steps: Array | None,
    ) -> tuple[int, int, int, int]:
        """Return how many rows were learnt, why the sweep ended, the head at fault, and how many steps were traced."""

    def learn_dense(
        self,
        x: Array,
        codes: Array,
        weights: Array | None,
        order: Array | None,
        predicted: Array | None,
        steps: Array | None,
    ) -> tuple[int, int, int, int]: ...
    def learn_dict(self, index: FeatureIndex, x: dict[Any, Any], code: int, weight: float) -> tuple[int, int]:
        """Return why it ended, and the head at fault or, for NO_ROOM, how many features need weights."""

    def claims(self, averaged: bool) -> list[tuple[float, float, float]]:
        """Return what is proven of each head: its norm, its bound and its slack, see core/claims.hpp."""

    def score_rows(self, indptr: Array, slots: Array, values: Array, as_points: bool, scores: Array) -> None: ...
    def score_dense(self, x: Array, as_points: bool, scores: Array) -> None: ...
    def score_dict(self, index: FeatureIndex, x: dict[Any, Any], as_points: bool, n_columns: int) -> list[float]: ...

class OnePassEngine:
    """The core's view of the arrays of `maxcosine.onepass.OnePassState` (core/bindings/onepass.cpp)."""

    def __init__(self, weights: Array, features: Array, visited: Array, blocks: Array, scalars: Array) -> None: ...
    def learn_rows(
        self,
        indptr: Array,
        slots: Array,
        values: Array,
        mapped: bool,
        codes: Array,
        weights: Array | None,
        order: Array | None,
        predicted: Array | None,
        margins: Array | None,
    ) -> tuple[int, int]:
        """Return how many rows were learnt, and why the sweep ended: `enum class Refusal` in core/sweep.hpp."""

    def learn_dense(
        self,
        x: Array,
        codes: Array,
        weights: Array | None,
        order: Array | None,
        predicted: Array | None,
        margins: Array | None,
    ) -> tuple[int, int]: ...
    def learn_dict(
        self, index: FeatureIndex, x: dict[Any, Any], code: int, weight: float
    ) -> tuple[int, int, list[float]]:
        """Return why it ended, the class predicted or, for NO_ROOM, how many features need weights, and the margins."""

    def score_rows(self, indptr: Array, slots: Array, values: Array, margins: Array) -> None: ...
    def score_dense(self, x: Array, margins: Array) -> None: ...
    def score_dict(self, index: FeatureIndex, x: dict[Any, Any]) -> list[float]: ...
    def refresh(self) -> None:
        """Compute the sums over all features anew, after features or weights were changed from Python."""

    def claim(self) -> tuple[float, float, float]:
        """Return the norm and Lambda of the mixture, and the proven ceiling, see core/onepass_claim.hpp."""

def first_bad_row(indptr: Array, values: Array) -> int:
    """Return the first row that cannot be learnt from, or -1."""

def rows_are_canonical(indptr: Array, slots: Array, n_columns: int) -> bool: ...

# One lock a model (core/bindings/lock.cpp)

class ModelLock:
    """Any number of threads hold `with lock.reading`, or one holds `with lock.learning`; never one inside another."""

    reading: AbstractContextManager[None]
    learning: AbstractContextManager[None]

    def __init__(self) -> None: ...

# The feature index (core/bindings/index.cpp)

MAX_FEATURES: int

class FeatureIndex:
    """Slots 0, 1, 2, ... for keys in the order of their first appearance; `kind` is "ids" or "names"."""

    kind: str
    named: bool
    nbytes: int

    def __init__(self, kind: str, keys: Iterable[Any] = ()) -> None: ...
    def __len__(self) -> int: ...
    def keys(self) -> Array: ...
    def letters(self) -> tuple[Array, Array]:
        """Return the UTF-8 letters of all names, and where each name begins."""

    def copy(self) -> FeatureIndex: ...
    def truncate(self, count: int) -> None: ...
    def slots_of(self, keys: Iterable[Any]) -> Array: ...
    def map_ids(self, indptr: Array, ids: Array, values: Array, *, grow: bool) -> tuple[Array, Array, Array]: ...
    def map_names(
        self, indptr: Array, letters: Array, starts: Array, values: Array, *, grow: bool
    ) -> tuple[Array, Array, Array]: ...
    def map_dicts(
        self, examples: Sequence[Mapping[Any, Any]], dtype: Any, *, grow: bool
    ) -> tuple[Array, Array, Array]: ...

# Text (core/bindings/text.cpp)

PADDING: int
"""Bytes that must be readable before and after a block."""
FAULT_MESSAGES: Mapping[int, str]
FAULT_CODES: Mapping[str, int]

class ParsedBlock:
    """The rows of a block of text, as parsed by one of the two functions below."""

    indptr: Array
    columns: Array | None
    ids: Array | None
    letters: Array | None
    name_starts: Array | None
    name_columns: Array | None
    values: Array
    codes: Array
    labels: list[str]
    weights: Array | None
    row_starts: Array
    row_lines: Array
    n_lines: int
    squares: Array | None
    n_columns: int
    faults: list[tuple[int, int, int, int, int]]

def parse_svmlight(
    buffer: Any,
    start: int,
    stop: int,
    *,
    bits: int,
    exact: bool,
    dtype: str,
    log1p: bool,
    l2: bool,
    stop_at_fault: bool,
) -> ParsedBlock: ...
def parse_vw(
    buffer: Any,
    start: int,
    stop: int,
    *,
    bits: int,
    exact: bool,
    dtype: str,
    log1p: bool,
    l2: bool,
    stop_at_fault: bool,
    keep_names: bool,
) -> ParsedBlock: ...
def canonicalize(
    indptr: Array, slots: Array, values: Array, *, log1p: bool, l2: bool, extra_squares: Array | None = None
) -> tuple[Array, Array, Array]:
    """Return new arrays: rows without zeros and duplicates, transformed as asked."""

def column_of_name(space: bytes, name: bytes, bits: int) -> int:
    """Return the column that parse_vw hashes a feature of a namespace to."""

def column_of_id(id: int, bits: int) -> int:
    """Return the column that parse_svmlight hashes an id to."""

def canonical_label(text: str) -> str: ...
def square_norms(indptr: Array, values: Array) -> Array: ...

# Records

NO_FEATURE: int
"""The key of a feature that a row does not have."""

def find_records(
    buffer: Array, start: int, stop: int, delimiter: str, quotes: bool
) -> tuple[Array, Array, int, int, bool]:
    """Find the records of a block of text; `delimiter` is that of CSV, or NUL for lines; fields may have `quotes`.

    Returns where those that are not blank start and on which lines, where the last one with a line end stops, how many
    lines there are, and whether the text ends within quotes.
    """

MAX_JSON_DEPTH: int
"""How deep objects and arrays in a line of JSON may be nested."""

def check_json_lines(buffer: Array, starts: Array, stop: int) -> Array:
    """Look at the brackets of lines of JSON; `stop` is where the text ends.

    Returns for each line 0 if it is one object, 1 if it does not begin with one, 2 if it is cut short, 3 if more
    follows, and 4 if it is nested too deep.
    """

def tokenize(
    starts: Array,
    letters: Array,
    word_prefix: bytes,
    char_prefix: bytes,
    *,
    bits: int,
    ngrams: int,
    min_chars: int,
    max_chars: int,
    keep_names: bool,
) -> tuple[Array, Array, Array, Array, Array]:
    """Return the features of texts: indptr, columns, and letters, starts and columns of names.

    Text k is letters[starts[k] : starts[k + 1]]. With 0 bits, features are names, and there are no columns.
    """

def columns_of_names(prefix: bytes, starts: Array, letters: Array, bits: int) -> Array:
    """Return the column of each name; `prefix` is what `column_of_name` calls a space."""

def join_columns(
    n_rows: int, pieces: list[tuple[Array | None, Array, Array | None]], *, float32: bool, log1p: bool, l2: bool
) -> tuple[Array, Array, Array, Array]:
    """Join pieces (indptr, columns, values) to canonical rows; return indptr, columns, values and square norms.

    Without indptr, a piece has one feature for each row; without values, they are 1.
    """

def join_names(
    n_rows: int, pieces: list[tuple[Array | None, Array, Array | None, Array, Array]], *, float32: bool
) -> tuple[Array, Array, Array, Array]:
    """Join pieces (indptr, numbers of names, values, letters, starts); return indptr, letters, starts and values."""
