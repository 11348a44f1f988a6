"""How a classifier learns: from all rows at once, or from one chunk after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from sklearn.utils import check_random_state

from maxcosine.estimators.fitted import set_model
from maxcosine.estimators.labels import (
    known_codes,
    named_classes,
    new_classes,
    unknown_labels,
    warn_if_sorted,
)
from maxcosine.estimators.parameters import check_parameters, rule_of
from maxcosine.estimators.progress import report_blocks
from maxcosine.estimators.validation import check_training_data, column_keys
from maxcosine.estimators.weights import row_weights
from maxcosine.features import Features
from maxcosine.model import Model
from maxcosine.rows import canonical, check_rows

if TYPE_CHECKING:
    from maxcosine.estimators.base import OnlineBase

Predictions = tuple[np.ndarray, np.ndarray]
"""The codes of rows, and the codes that were predicted before the rows were learnt."""


@contextmanager
def unchanged_on_error(estimator: OnlineBase) -> Iterator[None]:
    """Give a classifier back its attributes if the block raises."""
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def weight_types(estimator: OnlineBase) -> list[Any]:
    """Return the types that weights may have; X of another type is converted to the first."""
    return [np.float64, np.float32] if estimator.dtype is None else [np.dtype(estimator.dtype)]


def new_model(estimator: OnlineBase, classes: np.ndarray, features: Features, dtype: Any, *, closed: bool) -> Model:
    """Return a model that has learnt nothing; `closed` refuses other classes."""
    rule, params = rule_of(estimator)
    try:
        return Model.create(
            rule,
            params,
            classes,
            features,
            np.dtype(dtype),
            fit_intercept=estimator.fit_intercept,
            average=estimator.average,
            multiclass=estimator.multiclass,
            closed=closed,
        )
    except MemoryError as error:
        raise MemoryError(
            f"not enough memory for the weights of {features.n_features:,} features and {len(classes)} "
            "classes; reduce the columns, for example by hashing, or use float32"
        ) from error


def learn_chunk(
    estimator: OnlineBase,
    X: Any,
    y: Any,
    classes: Any = None,
    sample_weight: Any = None,
    *,
    predict: bool = False,
) -> Predictions | None:
    """Go on learning from an array, a sparse matrix or a data frame, as `partial_fit` does.

    If `predict`, return the codes of the rows, and the codes predicted before the rows were learnt.
    """
    with unchanged_on_error(estimator):
        check_parameters(estimator)
        model: Model | None = getattr(estimator, "_model", None)
        keys = None if model is None or not model.features.keyed else column_keys(X)
        dtypes = weight_types(estimator) if model is None else [model.heads.dtype]
        X, y = check_training_data(estimator, X, y, dtype=dtypes, reset=model is None)
        X = canonical(X) if scipy.sparse.issparse(X) else X
        check_rows(X)

        def to_slots(features: Features) -> Any:
            if not features.keyed:
                features.widen(X.shape[1], getattr(estimator, "feature_names_in_", None))
            return features.map(X, keys, grow=True)

        features = Features(X.shape[1]) if model is None else model.features
        return learn_rows(estimator, model, features, to_slots, y, classes, sample_weight, predict=predict)


def learn_rows(
    estimator: OnlineBase,
    model: Model | None,
    features: Features,
    to_slots: Callable[[Features], Any],
    y: np.ndarray,
    classes: Any,
    sample_weight: Any,
    *,
    predict: bool = False,
) -> Predictions | None:
    """Learn from rows that were checked; everything else is checked before the model changes.

    `features` are those of the model, or of the model to come. `to_slots` returns the rows over their slots,
    and may add features. If `predict`, return the codes of the rows, and the codes predicted before the rows
    were learnt.
    """
    refuse_balanced(estimator)
    named = None if classes is None else named_classes(classes)
    if model is not None:
        check_unchanged(estimator, model)
    labels = new_classes(y, named, None if model is None else model.classes)
    if model is not None and model.closed and named is None and len(labels):
        raise unknown_labels(labels, model.classes)
    weights = row_weights(y, sample_weight, estimator.class_weight, labels)
    if model is not None and not model.rule.builtin:
        # A user's rule may fail in the middle of the rows: then the model must stay as it was.
        model = model.copy()
        features = model.features
    rows = to_slots(features)
    is_new = model is None
    if model is None:
        model, labels = _start_model(estimator, labels, features, rows.dtype, named=named is not None)
    if len(labels):
        # A class that was not named begins with its first row.
        model.add_classes(labels, waiting=named is None)
    model.closed = model.closed or named is not None
    codes = known_codes(y, model.classes)
    if is_new and not estimator.shuffle and len(model.classes) > 1:
        warn_if_sorted(codes, len(model.classes), stacklevel=4)
    model.heads.set_params(rule_of(estimator)[1])
    predicted = np.empty(len(codes), np.int64) if predict else None
    learn_passes(estimator, model, rows, codes, weights, predicted=predicted)
    set_model(estimator, model)
    # learn_one has to check the parameters again: those of the rule may have changed.
    estimator.__dict__.pop("_prepared_for", None)
    return None if predicted is None else (codes, predicted)


def _start_model(
    estimator: OnlineBase, labels: np.ndarray, features: Features, dtype: np.dtype, *, named: bool
) -> tuple[Model, np.ndarray]:
    """Return a model of the classes that begin at once, and the classes that are still to be added."""
    n_first = len(labels) if named else 1 if estimator.multiclass == "joint" else 2
    model = new_model(estimator, np.sort(labels[:n_first]), features, dtype, closed=named)
    return model, labels[n_first:]


def learn_passes(
    estimator: OnlineBase,
    model: Model,
    rows: Any,
    codes: np.ndarray,
    weights: np.ndarray | None,
    *,
    passes: int = 1,
    predicted: np.ndarray | None = None,
) -> None:
    """Learn all rows, once in each pass."""
    random = check_random_state(estimator.random_state)
    for number in range(1, passes + 1):
        order = random.permutation(len(codes)) if estimator.shuffle else np.arange(len(codes))
        blocks: Iterable[np.ndarray] = [order]
        if estimator.verbose:
            title = f"pass {number} of {passes}" if passes > 1 else "learning"
            blocks = report_blocks(order, f"[{type(estimator).__name__}] {title}", model)
        for block in blocks:
            model.learn(rows, codes, block, weights, predicted=predicted)


def refuse_balanced(estimator: OnlineBase) -> None:
    """Refuse class weights that need all labels at once."""
    if isinstance(estimator.class_weight, str):
        raise ValueError(
            "class_weight='balanced' needs all labels at once, as fit has them; for a stream give "
            "the weights themselves, class_weight={label: weight}, or sample_weight"
        )


def check_unchanged(estimator: OnlineBase, model: Model) -> None:
    """Refuse parameters that differ from those of the model; the rule's own parameters may change."""
    heads = model.heads
    now = {
        "rule": rule_of(estimator)[0],
        "average": estimator.average,
        "fit_intercept": estimator.fit_intercept,
        "multiclass": estimator.multiclass,
        "dtype": heads.dtype if estimator.dtype is None else np.dtype(estimator.dtype),
    }
    then = {
        "rule": heads.rule,
        "average": heads.average,
        "fit_intercept": heads.fit_intercept,
        "multiclass": model.multiclass,
        "dtype": heads.dtype,
    }
    for name, value in now.items():
        if value is not then[name] and value != then[name]:
            raise ValueError(
                f"{name} was {then[name]!r} when learning began and is {value!r} now; "
                "start again with fit, or with another estimator"
            )
