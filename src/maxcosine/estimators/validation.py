"""Checks of the rows and labels that users pass to a classifier."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_array, check_X_y, validate_data

from maxcosine.base_model import BaseModel
from maxcosine.estimators.labels import refuse_mixed_types
from maxcosine.estimators.record_streams import record_rows
from maxcosine.features import plain_dict
from maxcosine.rows import BadRow, SlotRows, check_indices

if TYPE_CHECKING:
    from maxcosine.estimators.base import StreamClassifier


def is_frame(X: Any) -> bool:
    """Return whether X is a data frame."""
    return hasattr(X, "columns") and hasattr(X, "shape")


def _column_labels(X: Any) -> list[Any]:
    """Return the labels of the columns of a data frame, none for other data."""
    if not is_frame(X):
        return []
    return list(X.column_names if hasattr(X, "column_names") else X.columns)  # pyarrow, else pandas or Polars


def column_names(X: Any) -> np.ndarray | None:
    """Return the names of the columns of a data frame; None if they are not strings, or X is not a frame."""
    labels = _column_labels(X)
    named = [isinstance(label, str) for label in labels]
    if any(named) and not all(named):
        raise TypeError(f"the columns are called {labels[:5]}; name them all by strings, or all by numbers")
    return np.array(labels, object) if labels and all(named) else None


def column_keys(X: Any) -> np.ndarray | None:
    """Return the names or the ids of the columns of a data frame; None if X is not a frame."""
    names, labels = column_names(X), _column_labels(X)
    if names is not None or not labels:
        return names
    try:
        return np.asarray(labels, np.uint64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"the columns are called {labels[:5]}; name all by strings, or all by whole numbers") from None


def check_training_data(
    estimator: StreamClassifier, X: Any, y: Any, *, dtype: Any, reset: bool
) -> tuple[Any, np.ndarray]:
    """Return X as a C-ordered array or CSR matrix of this type, and y as an array.

    If `reset`, X defines the columns; otherwise its columns must fit those that the classifier knows.
    """
    if are_dicts(X):
        raise TypeError("X is a list of dicts; learn from dicts with learn_many, or learn_one")
    refuse_mixed_types(y, "y")
    checks: dict[str, Any] = {
        "accept_sparse": "csr",
        "accept_large_sparse": True,
        "dtype": dtype,
        "order": "C",
        "ensure_all_finite": False,  # the core checks values when it reads them
    }
    if reset or not (estimator._model.features.keyed or estimator.grow_features):
        return validate_data(estimator, X, y, reset=reset, **checks)  # type: ignore[no-any-return]
    if not estimator._model.features.keyed:
        names = _check_grown_names(estimator, X)
        if names is not None:
            estimator.feature_names_in_ = names
    return check_X_y(X, y, estimator=estimator, **checks)  # type: ignore[no-any-return]


def _check_grown_names(estimator: StreamClassifier, X: Any) -> np.ndarray | None:
    """Return the names of the known and the new columns; refuse X if known columns moved."""
    names = column_names(X)
    known: np.ndarray | None = getattr(estimator, "feature_names_in_", None)
    if names is None or known is None:
        return known
    common = min(len(names), len(known))
    moved = np.flatnonzero(names[:common] != known[:common])
    if len(moved):
        column = int(moved[0])
        raise ValueError(
            f"column {column} of X is named {names[column]!r} and was {known[column]!r}; with "
            "grow_features=True new columns come after the known ones"
        )
    return names if len(names) > len(known) else known


def are_dicts(X: Any) -> bool:
    """Return whether X is a list or tuple of dicts."""
    return isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], Mapping)


def dict_rows(model: BaseModel, X: Sequence[Any]) -> Any:
    """Return dicts as rows of slots, to score; features that the model does not know are left out."""
    if model.features.records is not None:
        return record_rows(model, X)
    rows = model.features.map_dicts([plain_dict(x) for x in X], model.dtype, grow=False)
    if not np.isfinite(rows.values if isinstance(rows, SlotRows) else rows.data).all():
        raise bad_examples(X, BadRow("the values of an example are not finite"))
    return rows


def bad_example(x: Mapping[Any, Any], error: BadRow, where: str = "") -> BadRow:
    """Return an error that names the feature, if one value is not finite; else the given error."""
    for key, value in x.items():
        if not math.isfinite(value):
            return BadRow(f"the value of feature {key!r}{where} is {value!r}; impute it, or leave it out")
    return error


def bad_examples(X: Any, error: BadRow) -> BadRow:
    """Return an error as `bad_example` does, which also says which of many examples it is."""
    found = [] if is_frame(X) else [bad_example(x, error, f" in example {k}") for k, x in enumerate(X)]
    return next((one for one in found if one is not error), error)


def rows_to_score(estimator: StreamClassifier, X: Any) -> Any:
    """Return X as rows of slots."""
    if estimator._model.features.records is not None and not isinstance(X, np.ndarray) and not scipy.sparse.issparse(X):
        if is_frame(X) or hasattr(X, "__arrow_c_stream__") or are_dicts(X):
            return record_rows(estimator._model, X)
        raise TypeError(
            "this classifier was learnt from records; give a data frame, an Arrow table or a list of dicts of column "
            f"to value, and not a {type(X).__name__}"
        )
    if are_dicts(X):
        return dict_rows(estimator._model, X)
    features, dtype = estimator._model.features, estimator._model.dtype
    keys = column_keys(X) if features.keyed else None
    checks: dict[str, Any] = {"accept_sparse": "csr", "dtype": [dtype], "order": "C"}
    if features.keyed:
        X = check_array(X, estimator=estimator, **checks)
    elif estimator.grow_features:
        # Unknown columns have no weight, and missing columns have no value.
        _check_grown_names(estimator, X)
        X = check_array(X, estimator=estimator, **checks)[:, : features.n_features]
        X = X if scipy.sparse.issparse(X) else np.ascontiguousarray(X)
    else:
        X = validate_data(estimator, X, reset=False, **checks)
    if scipy.sparse.issparse(X):
        check_indices(X)
    return features.map(X, keys, grow=False)
