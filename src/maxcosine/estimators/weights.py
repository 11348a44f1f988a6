"""How much each row counts: what its step is multiplied by."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from maxcosine.engine.learn import UNWEIGHTED
from maxcosine.rules.rule import LARGEST_FACTOR, SMALLEST_FACTOR


def row_weights(
    y: np.ndarray, sample_weight: Any, class_weight: Any, classes: np.ndarray, *, some: bool = False
) -> np.ndarray:
    """The weight of each row, empty if there are none; `some`: not all of them may be 0."""
    if sample_weight is None and class_weight is None:
        return UNWEIGHTED
    _refuse_bad_weights(sample_weight)
    weights: np.ndarray = _check_sample_weight(
        sample_weight, y, dtype=np.float64, copy=True, allow_all_zero_weights=not some
    )
    if isinstance(class_weight, str):
        balanced = compute_class_weight(class_weight, classes=classes, y=y)
        class_weight = dict(zip(classes.tolist(), balanced.tolist(), strict=True))
    check_class_weights(class_weight)
    for label, weight in (class_weight or {}).items():
        weights[y == label] *= float(weight)
    _refuse_bad_weights(weights)
    return weights


IN_RANGE = f"weights are 0, or between {SMALLEST_FACTOR:g} and {LARGEST_FACTOR:g}"


def _in_range(weights: Any) -> Any:
    return (weights == 0.0) | ((weights >= SMALLEST_FACTOR) & (weights <= LARGEST_FACTOR))


def _refuse_bad_weights(weights: Any) -> None:
    """Say which row has a weight that cannot be; other faults of the array are scikit-learn's to name."""
    try:
        numbers = np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        return
    if numbers.ndim == 1 and not _in_range(numbers).all():
        row = int(np.flatnonzero(~_in_range(numbers))[0])
        raise ValueError(f"the weight of row {row} is {numbers[row]:g}; {IN_RANGE}")


def check_class_weights(class_weight: Any) -> None:
    for label, weight in (class_weight or {}).items():
        try:
            good = bool(_in_range(float(weight)))
        except (TypeError, ValueError):
            good = False
        if not good:
            raise ValueError(f"class_weight gives class {label!r} the weight {weight!r}; {IN_RANGE}")


def one_weight(weight: Any, label: Any, class_weight: Any) -> float:
    """The weight of one example; `class_weight` was checked."""
    try:
        number = float(weight) * float((class_weight or {}).get(label, 1.0))
    except (TypeError, ValueError):
        number = np.nan
    if not _in_range(number):
        raise ValueError(f"an example of class {label!r} has the weight {weight!r}; {IN_RANGE}")
    return number
