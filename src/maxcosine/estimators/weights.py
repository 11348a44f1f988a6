"""The weight of each row: relative to the mean weight so far, it multiplies the row's step."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.class_weight import compute_class_weight

from maxcosine.rows import LARGEST_WEIGHT, SMALLEST_WEIGHT

IN_RANGE = f"weights are 0, or between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}"


def row_weights(
    y: np.ndarray, sample_weight: Any, class_weight: Any, classes: np.ndarray, *, allow_all_zero: bool = True
) -> np.ndarray | None:
    """Return the weight of each row, the product of its sample weight and its class weight; None without weights.

    `classes` are needed for "balanced". Unless `allow_all_zero`, one weight must not be 0.
    """
    if sample_weight is None and class_weight is None:
        return None
    weights = _sample_weights(sample_weight, len(y))
    if not allow_all_zero and not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    if isinstance(class_weight, str):
        balanced = compute_class_weight(class_weight, classes=classes, y=y)
        class_weight = dict(zip(classes.tolist(), balanced.tolist(), strict=True))
    check_class_weights(class_weight)
    for label, weight in (class_weight or {}).items():
        weights[y == label] *= float(weight)
    _refuse_out_of_range(weights)
    return weights


def _sample_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    if sample_weight is None or isinstance(sample_weight, Real):
        weights = np.full(n_rows, 1.0 if sample_weight is None else float(sample_weight))
    else:
        weights = check_array(sample_weight, ensure_2d=False, dtype=np.float64, copy=True, ensure_all_finite=False)
        if weights.ndim != 1:
            raise ValueError(f"Sample weights must be 1D array or scalar, got {weights.ndim}D array")
        if weights.shape != (n_rows,):
            raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}")
    _refuse_out_of_range(weights)
    return weights


def _in_range(weights: Any) -> Any:
    return (weights == 0.0) | ((weights >= SMALLEST_WEIGHT) & (weights <= LARGEST_WEIGHT))


def _refuse_out_of_range(weights: np.ndarray) -> None:
    good = _in_range(weights)
    if not good.all():
        row = int(np.flatnonzero(~good)[0])
        raise ValueError(f"the weight of row {row} is {weights[row]:g}; {IN_RANGE}")


def check_class_weights(class_weight: Any) -> None:
    """Refuse weights of classes that are out of range."""
    for label, weight in (class_weight or {}).items():
        try:
            good = bool(_in_range(float(weight)))
        except (TypeError, ValueError):
            good = False
        if not good:
            raise ValueError(f"class_weight gives class {label!r} the weight {weight!r}; {IN_RANGE}")


def example_weight(weight: Any, label: Any, class_weight: Any) -> float:
    """Return the weight of one example; `class_weight` was checked before."""
    try:
        number = float(weight) * float((class_weight or {}).get(label, 1.0))
    except (TypeError, ValueError):
        number = np.nan
    if not _in_range(number):
        raise ValueError(f"an example of class {label!r} has the weight {weight!r}; {IN_RANGE}")
    return number
