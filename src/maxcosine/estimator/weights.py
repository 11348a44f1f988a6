"""How much each row counts: what its step is multiplied by."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from maxcosine.engine.learn import UNWEIGHTED
from maxcosine.rule import LARGEST_FACTOR, SMALLEST_FACTOR


def row_weights(y: np.ndarray, sample_weight: Any, class_weight: Any, classes: np.ndarray) -> np.ndarray:
    """The weight of each row; empty if there are none."""
    if sample_weight is None and class_weight is None:
        return UNWEIGHTED
    weights: np.ndarray = _check_sample_weight(
        sample_weight, y, dtype=np.float64, copy=True, ensure_non_negative=True
    )
    if isinstance(class_weight, str):
        balanced = compute_class_weight(class_weight, classes=classes, y=y)
        class_weight = dict(zip(classes.tolist(), balanced.tolist(), strict=True))
    for label, weight in (class_weight or {}).items():
        weights[y == label] *= check_class_weight(label, weight)
    outside = (weights != 0.0) & ~((weights >= SMALLEST_FACTOR) & (weights <= LARGEST_FACTOR))
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise ValueError(f"the weight of row {row} is {weights[row]:g}; {IN_RANGE}")
    return weights


IN_RANGE = f"weights are 0, or between {SMALLEST_FACTOR:g} and {LARGEST_FACTOR:g}"


def check_class_weight(label: Any, weight: Any) -> float:
    try:
        number = float(weight)
    except (TypeError, ValueError):
        number = np.nan
    if not (number == 0.0 or SMALLEST_FACTOR <= number <= LARGEST_FACTOR):
        raise ValueError(f"class_weight gives class {label!r} the weight {weight!r}; {IN_RANGE}")
    return number


def one_weight(weight: Any, label: Any, class_weight: Any) -> float:
    """The weight of one example."""
    number = float(weight)
    if class_weight:
        number *= check_class_weight(label, class_weight.get(label, 1.0))
    if not (number == 0.0 or SMALLEST_FACTOR <= number <= LARGEST_FACTOR):
        raise ValueError(
            f"the weight w={weight!r} of an example of class {label!r} is {number:g}; {IN_RANGE}"
        )
    return number
