"""Probabilities of scores, fitted online to the scores that rows have before they are learnt; core/calibration.hpp.

Probabilities are sigmoid(slope m + offset) of one margin m for two classes, or softmax(slope m) of one margin for each
class. The margins of a rule's model are its scores in units of their mean size so far.
"""

from __future__ import annotations

import numpy as np

# As in core/calibration.hpp.
MOST_MARGIN = 1e100
LARGEST_EXPONENT = 30.0

# The calibration of a model of a rule, laid out as `struct Calibration` there.
CALIBRATION = np.dtype(
    [
        ("slope", np.float64),
        ("offset", np.float64),
        ("curvature", np.float64, 3),
        ("size", np.float64),
        ("rows", np.int64),
    ],
    align=True,
)


def new_calibration(*, wanted: bool) -> np.ndarray:
    """One record that has seen nothing, or none if no probabilities are wanted."""
    record = np.zeros(int(wanted), CALIBRATION)
    record["slope"], record["curvature"] = 1.0, (1.0, 0.0, 1.0)
    return record


def probabilities(slope: float, offset: float, margins: np.ndarray) -> np.ndarray:
    """Probabilities of shape (rows, classes), for margins of shape (rows, 1) or (rows, classes)."""
    if margins.shape[1] == 1:
        p = 1.0 / (1.0 + np.exp(-np.clip(slope * margins[:, 0] + offset, -LARGEST_EXPONENT, LARGEST_EXPONENT)))
        return np.column_stack([1.0 - p, p])
    e = np.exp(slope * (margins - margins.max(axis=1, keepdims=True)))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def calibrated(calibration: np.void, scores: np.ndarray) -> np.ndarray:
    """Probabilities of at least two classes, given their scores, of shape (rows, classes)."""
    usual = calibration["size"] / max(calibration["rows"], 1)
    with np.errstate(over="ignore"):  # clipped
        margins = np.clip(scores / usual, -MOST_MARGIN, MOST_MARGIN) if usual > 0.0 else np.zeros_like(scores)
    if margins.shape[1] == 2:
        margins = margins[:, 1:] - margins[:, :1]
    return probabilities(calibration["slope"], calibration["offset"], margins)
