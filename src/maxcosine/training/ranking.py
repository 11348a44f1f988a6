"""The area under the ROC curve, in memory that does not grow with the data."""

from __future__ import annotations

import numpy as np

MAX_SCORES = 1 << 20
"""Up to this many scores are kept, and the area is exact."""

_BINS = 1 << 20
_BIN_SHIFT = 12


class Ranking:
    """The scores of negative and positive examples.

    Beyond `MAX_SCORES` scores, only their 20 leading bits count.
    """

    def __init__(self) -> None:
        self._scores: list[np.ndarray] = []
        self._positive: list[np.ndarray] = []
        self._n_scores = 0
        self._counts: np.ndarray | None = None  # of negative and positive scores in each bin

    def add(self, scores: np.ndarray, positive: np.ndarray) -> None:
        """Add examples, and which of them are positive."""
        self._scores.append(scores.astype(np.float64))
        self._positive.append(positive.astype(np.int64))
        self._n_scores += len(scores)
        if self._counts is None and self._n_scores > MAX_SCORES:
            self._counts = np.zeros((2, _BINS), np.int64)
        while self._counts is not None and self._scores:
            np.add.at(self._counts, (self._positive.pop(), _bins(self._scores.pop())), 1)

    def auc(self) -> float | None:
        """Return the chance that a positive score is above a negative one; ties count half."""
        counts = self._counts
        if counts is None:
            if not self._n_scores:
                return None
            values, bins = np.unique(np.concatenate(self._scores), return_inverse=True)
            counts = np.zeros((2, len(values)), np.int64)
            np.add.at(counts, (np.concatenate(self._positive), bins), 1)
        negatives, positives = counts
        below = np.cumsum(negatives) - negatives / 2.0
        pairs = int(negatives.sum()) * int(positives.sum())
        return float((positives * below).sum()) / pairs if pairs else None


def _bins(scores: np.ndarray) -> np.ndarray:
    """Return the bins of scores, which are in the order of the scores."""
    bits = scores.astype(np.float32).view(np.int32)
    # As integers, floats are in order once the negative ones are reversed.
    ordered = np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)
    return (ordered >> _BIN_SHIFT) + _BINS // 2
