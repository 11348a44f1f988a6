"""Learning and scoring: calls the core for any storage of rows, and explains what it refuses."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from maxcosine.core import NO_ROOM, FeatureIndex
from maxcosine.heads import Heads
from maxcosine.rows import SlotRows, bad_row, canonical, row_values, slot_rows_of
from maxcosine.trace import Trace

# Why the core ended a sweep: `enum class Refusal` in core/sweep.hpp.
_FINISHED, _NOT_CANONICAL, _BAD_ROW = 0, 1, 2

# Fewer rows than this are not worth another thread.
ROWS_PER_THREAD = 256


class BadStep(ArithmeticError):
    """A rule asked for a step that is not a finite, non-negative keep and add."""

    def __init__(self, message: str, row: int = 0) -> None:
        super().__init__(message)
        self.row = row


def learn(
    heads: Heads,
    X: Any,
    codes: np.ndarray,
    order: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    *,
    mapped: bool = False,
    predicted: np.ndarray | None = None,
    trace: Trace | None = None,
) -> None:
    """Learn, in place, from the rows of X: an array, a CSR matrix or SlotRows, of the heads' type.

    `codes` holds the class of each row, `weights` the factor of its step; `order` lists the rows to visit. `mapped`
    says that the columns of X are slots of an index, each once in a row and in any order. `predicted` receives the
    class that was predicted of each row before it was learnt, and `trace` every step. Rows before a refused one have
    been learnt: to keep the heads untouched, call `check_rows` first or learn on a copy.
    """
    steps = None if trace is None else trace.free
    if isinstance(X, np.ndarray):
        X = np.ascontiguousarray(X)
        done, fault, head, n_steps = heads.engine.learn_dense(X, codes, weights, order, predicted, steps)
    else:
        rows = X if isinstance(X, SlotRows) else slot_rows_of(X)
        done, fault, head, n_steps = heads.engine.learn_rows(
            rows.indptr, rows.slots, rows.values, rows.squares, mapped, codes, weights, order, predicted, steps
        )
    if trace is not None:
        trace.extend(n_steps)
    if fault == _FINISHED:
        return
    order = np.arange(len(codes)) if order is None else order
    if fault == _NOT_CANONICAL:
        return learn(heads, canonical(X), codes, order[done:], weights, predicted=predicted, trace=trace)
    row = int(order[done])
    raise refusal(heads, fault, head, row_values(X, row), row)


def learn_dict(heads: Heads, index: FeatureIndex, x: dict[Any, Any], code: int, weight: float) -> None:
    """Learn from one dict; the index and the heads grow with its features. A refused one changes nothing."""
    fault, detail = heads.engine.learn_dict(index, x, code, weight)
    if fault == NO_ROOM:
        heads.reserve(detail)
        fault, detail = heads.engine.learn_dict(index, x, code, weight)
    if fault != _FINISHED:
        with np.errstate(over="ignore"):  # the refusal says which values are too large
            values = np.array([float(value) for value in x.values() if value], heads.dtype)
        raise refusal(heads, fault, detail, values, 0)


def refusal(heads: Heads, fault: int, head: int, values: np.ndarray, row: int) -> Exception:
    """The error that says why a sweep ended at a row with these values."""
    if fault == _BAD_ROW:
        return bad_row(values, row)
    rule = heads.rules[head]
    where = f"rule {rule.name!r} asked in row {row}, head {head}, for a step that"
    if rule.builtin:
        return BadStep(
            f"{where} makes the weights overflow; rescale the features, for example with "
            "sklearn.preprocessing.StandardScaler",
            row,
        )
    return BadStep(
        f"{where} is negative, not finite, or makes the weights overflow; keep and add must be "
        "finite and at least 0, and so must the rule's state",
        row,
    )


def score(heads: Heads, X: Any, *, as_points: bool = False, n_threads: int = 1) -> np.ndarray:
    """Scores of rows of the heads' type, one a column of the weights; the columns of X are slots within the heads.

    `as_points` scores by w / Lambda, the hypotheses as points of the hull.
    """
    engine, n_rows = heads.engine, X.shape[0] if hasattr(X, "shape") else len(X)
    scores = np.empty((n_rows, heads.n_columns))
    work: Callable[[int, int], None]
    if isinstance(X, np.ndarray):
        dense = np.ascontiguousarray(X)

        def work(start: int, stop: int) -> None:
            engine.score_dense(dense[start:stop], as_points, scores[start:stop])

    else:
        rows = X if isinstance(X, SlotRows) else slot_rows_of(X)

        def work(start: int, stop: int) -> None:
            engine.score_rows(rows.indptr[start : stop + 1], rows.slots, rows.values, as_points, scores[start:stop])

    in_threads(work, n_rows, n_threads)
    return scores


def in_threads(work: Callable[[int, int], None], n_rows: int, n_threads: int) -> None:
    """Call `work` for the rows from a start to a stop, in several threads if there are many rows."""
    n_threads = max(1, min(n_threads, n_rows // ROWS_PER_THREAD))
    bounds = np.linspace(0, n_rows, n_threads + 1).astype(int).tolist()
    if n_threads == 1:
        work(0, n_rows)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(lambda span: work(*span), itertools.pairwise(bounds)))
