"""How a classifier learns: from all rows at once, or from one chunk after another."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from sklearn.utils import check_random_state

from maxcosine.estimators.fitted import lock_of, set_model, set_trace
from maxcosine.estimators.labels import known_codes, named_classes, new_classes, unknown_labels, warn_if_sorted
from maxcosine.estimators.parameters import check_parameters
from maxcosine.estimators.validation import check_training_data, column_keys
from maxcosine.estimators.weights import row_weights
from maxcosine.features import Features
from maxcosine.rows import canonical
from maxcosine.trace import Trace

if TYPE_CHECKING:
    from maxcosine.estimators.base import StreamClassifier

# The attributes that learning sets.
LEARNT = ("_model", "trace_", "n_features_in_", "feature_names_in_")

# A progress report comes about once a second, between two blocks of rows.
BLOCK_ROWS, SECONDS_PER_REPORT = 2**14, 1.0


@contextmanager
def learning(estimator: StreamClassifier) -> Iterator[None]:
    """Let this thread alone use a classifier; if the block raises, the classifier keeps its model."""
    with lock_of(estimator).learning:
        attributes = estimator.__dict__
        before = {name: attributes[name] for name in LEARNT if name in attributes}
        try:
            yield
        except BaseException:
            for name in LEARNT:
                attributes.pop(name, None)
            attributes.update(before)
            raise


def weight_types(estimator: StreamClassifier) -> list[Any]:
    """Return the types that weights may have; X of another type is converted to the first."""
    return [np.float64, np.float32] if estimator.dtype is None else [np.dtype(estimator.dtype)]


def new_model(estimator: StreamClassifier, classes: np.ndarray, features: Features, dtype: Any, *, closed: bool) -> Any:
    """Return a model that has learnt nothing; `closed` refuses other classes."""
    try:
        return estimator._new_model(classes, features, np.dtype(dtype), closed=closed)
    except MemoryError as error:
        raise MemoryError(
            f"not enough memory for the weights of {features.n_features:,} features and {len(classes)} "
            "classes; reduce the columns, for example by hashing, or use float32"
        ) from error


def learn_chunk(
    estimator: StreamClassifier, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, *, trace: bool = False
) -> None:
    """Go on learning from an array, a sparse matrix or a data frame, as `partial_fit` does; within `learning`."""
    check_parameters(estimator)
    model: Any = getattr(estimator, "_model", None)
    refuse_records(model)
    keys = None if model is None or not model.features.keyed else column_keys(X)
    dtypes = weight_types(estimator) if model is None else [model.dtype]
    X, y = check_training_data(estimator, X, y, dtype=dtypes, reset=model is None)
    X = canonical(X) if scipy.sparse.issparse(X) else X
    estimator._check_rows(X)

    def to_slots(features: Features) -> Any:
        if not features.keyed:
            features.widen(X.shape[1], getattr(estimator, "feature_names_in_", None))
        return features.map(X, keys, grow=True)

    features = Features(X.shape[1]) if model is None else model.features
    learn_rows(estimator, model, features, to_slots, y, classes, sample_weight, trace)


def learn_rows(
    estimator: StreamClassifier,
    model: Any,
    features: Features,
    to_slots: Callable[[Features], Any],
    y: np.ndarray,
    classes: Any,
    sample_weight: Any,
    trace: bool = False,
) -> None:
    """Learn from rows that were checked; everything else is checked before the model changes.

    `features` are those of the model, or of the model to come. `to_slots` returns the rows over their slots,
    and may add features.
    """
    refuse_balanced(estimator)
    named = None if classes is None else named_classes(classes)
    if model is not None:
        check_unchanged(estimator, model)
    labels = new_classes(y, named, None if model is None else model.classes)
    if model is not None and model.closed and named is None and len(labels):
        raise unknown_labels(labels, model.classes)
    weights = row_weights(y, sample_weight, estimator.class_weight, labels)
    if model is not None and model.may_fail:
        # A user's rule may fail in the middle of the rows: then the model must stay as it was.
        model = model.copied()
        features = model.features
    is_new = model is None
    with nullcontext() if model is None else model.unchanged_on_error():
        rows = to_slots(features)
        if model is None:
            # These classes begin at once; the others are added below.
            n_first = len(labels) if named is not None else estimator._n_first(labels)
            model = new_model(estimator, labels[:n_first], features, rows.dtype, closed=named is not None)
            labels = labels[n_first:]
            if named is None:
                model.await_classes()
        if len(labels):
            # A class that was not named begins with its first row.
            model.add_classes(labels, waiting=named is None)
        model.closed = model.closed or named is not None
        codes = known_codes(y, model.classes)
        model.make_room()
    if is_new and not estimator.shuffle and len(model.classes) > 1:
        warn_if_sorted(codes, len(model.classes), stacklevel=4)
    estimator._prepare(model)
    learn_passes(estimator, model, rows, codes, weights, trace=trace)
    set_model(estimator, model)
    # learn_one has to check the parameters again: those of the rule may have changed.
    estimator.__dict__.pop("_prepared_for", None)


def learn_passes(
    estimator: StreamClassifier,
    model: Any,
    rows: Any,
    codes: np.ndarray,
    weights: np.ndarray | None,
    *,
    passes: int = 1,
    trace: bool = False,
) -> None:
    """Learn all rows, once in each pass; `trace` makes the steps of all passes the attribute `trace_`."""
    steps = Trace(passes * len(codes) * len(model.heads.table)) if trace else None
    traced = {} if steps is None else {"trace": steps}
    random = check_random_state(estimator.random_state)
    for number in range(1, passes + 1):
        order = random.permutation(len(codes)) if estimator.shuffle else np.arange(len(codes))
        blocks: Iterable[np.ndarray] = [order]
        if estimator.verbose:
            title = f"pass {number} of {passes}" if passes > 1 else "learning"
            blocks = _report_blocks(order, f"[{type(estimator).__name__}] {title}", model)
        for block in blocks:
            model.learn(rows, codes, block, weights, **traced)
    set_trace(estimator, steps)


def _report_blocks(order: np.ndarray, title: str, model: Any) -> Iterator[np.ndarray]:
    """Yield the rows in blocks, and report progress about once a second."""
    started = reported = time.perf_counter()
    for start in range(0, len(order), BLOCK_ROWS):
        yield order[start : start + BLOCK_ROWS]
        done = min(start + BLOCK_ROWS, len(order))
        now = time.perf_counter()
        if done < len(order) and now - reported < SECONDS_PER_REPORT:
            continue
        reported = now
        seconds = max(now - started, 1e-9)
        print(
            f"{title}: {done:,} of {len(order):,} rows ({done / len(order):.0%}), "
            f"{done / seconds:,.0f} rows/s, {model.mistakes:,} mistakes, {seconds:.1f} s",
            file=sys.stderr,
        )


def refuse_records(model: Any) -> None:
    """Refuse to go on learning other examples than records."""
    if model is not None and model.features.records is not None:
        raise ValueError(
            "this classifier was learnt from records; go on with partial_fit_records, or start again with fit"
        )


def refuse_balanced(estimator: StreamClassifier) -> None:
    """Refuse class weights that need all labels at once."""
    if isinstance(estimator.class_weight, str):
        raise ValueError(
            "class_weight='balanced' needs all labels at once, as fit has them; for a stream give "
            "the weights themselves, class_weight={label: weight}, or sample_weight"
        )


def changed_settings(estimator: StreamClassifier, model: Any) -> list[tuple[str, Any, Any]]:
    """Return the parameters that contradict the model: name, value in the model, value now.

    The parameters of the rule itself may change at any time.
    """

    def plain(value: Any) -> Any:
        return getattr(value, "name", value)  # of a rule or a type

    return [(name, plain(then), plain(now)) for name, then, now in estimator._settings(model) if now != then]


def check_unchanged(estimator: StreamClassifier, model: Any) -> None:
    """Refuse parameters that contradict the model."""
    for name, then, now in changed_settings(estimator, model):
        raise ValueError(
            f"{name} was {then!r} when learning began and is {now!r} now; "
            "start again with fit, or with another estimator"
        )
