"""Which threshold gives a precision, a recall or a share: read off the scores that rows had before they were learnt.

The sketch counts rows of both classes in bins of their scores. The bins are fixed, so that the counts do not depend on
chunks and those of several models add up. They are evenly spaced in asinh(SHARPNESS score): narrow around 0, and 0.6 %
wide, in relation to the score, far from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

BINS = 4096
SHARPNESS = 10.0
REACH = 12.0
"""Scores beyond sinh(REACH) / SHARPNESS are in the first or the last bin."""


class Threshold(NamedTuple):
    """A threshold on the scores, and what to expect if rows at or above it are kept as the second class.

    Parameters
    ----------
    threshold : float
        For `decision_function`.
    precision : float
        The share of the second class among the rows that are kept.
    recall : float
        The share of its rows that are kept.
    share : float
        The share of all rows that are kept.
    """

    threshold: float
    precision: float
    recall: float
    share: float


def _edges() -> np.ndarray:
    """The lower end of each bin; that of the first is -infinity."""
    edges = np.sinh(np.linspace(-REACH, REACH, BINS + 1)[:-1]) / SHARPNESS
    edges[0] = -np.inf
    return edges


@dataclass
class ScoreSketch:
    """Counts of rows by score and class.

    Parameters
    ----------
    counts : array of shape (2, BINS)
        Of the first and of the second class.
    """

    counts: np.ndarray = field(default_factory=lambda: np.zeros((2, BINS), np.int64))

    def add(self, scores: np.ndarray, is_second: np.ndarray) -> None:
        """Count rows; each score was computed before its row was learnt."""
        places = np.arcsinh(SHARPNESS * scores) * (BINS / (2.0 * REACH)) + BINS / 2
        bins = np.clip(np.floor(places), 0, BINS - 1).astype(np.int64)
        np.add.at(self.counts, (is_second.astype(np.intp), bins), 1)

    def flipped(self) -> ScoreSketch:
        """The counts if the second class were the first, and scores had the other sign."""
        return ScoreSketch(self.counts[::-1, ::-1])

    def compact(self) -> tuple[np.ndarray, np.ndarray]:
        """The bins that have rows, and their counts, of shape (2, bins)."""
        bins = np.flatnonzero(self.counts.any(axis=0))
        return bins, self.counts[:, bins]

    @classmethod
    def from_compact(cls, bins: np.ndarray, counts: np.ndarray) -> ScoreSketch:
        """The sketch of which `compact` returned these arrays."""
        made = cls()
        made.counts[:, bins] = counts
        return made

    def copy(self) -> ScoreSketch:
        """An independent sketch of the same counts."""
        return ScoreSketch(self.counts.copy())

    def threshold(self, **wanted: float | None) -> Threshold:
        """The threshold for a `precision`, `recall`, `share` kept, or `cost` of a false alarm in missed rows."""
        given = {name: value for name, value in wanted.items() if value is not None}
        if len(given) != 1:
            raise ValueError("give one of precision, recall, share and cost, for example precision=0.99")
        ((name, value),) = given.items()
        if not value > 0.0 or (name != "cost" and value > 1.0):
            raise ValueError(f"{name}={value!r} is not {'above 0' if name == 'cost' else 'above 0 and at most 1'}")
        # Rows at or above each bin.
        others, kept = (np.cumsum(one[::-1])[::-1] for one in self.counts)
        if not (others[0] and kept[0]):
            raise ValueError("rows of both classes are needed to choose a threshold; learn more examples")
        precision = kept / np.maximum(1, kept + others)
        recall, share = kept / kept[0], (kept + others) / (kept[0] + others[0])
        place = self._place(name, value, precision, recall, share, others, kept)
        return Threshold(float(_edges()[place]), *(float(one[place]) for one in (precision, recall, share)))

    def _place(self, name: str, value: float, precision: Any, recall: Any, share: Any, others: Any, kept: Any) -> int:
        if name == "recall":
            return int(np.flatnonzero(recall >= value)[-1])
        if name == "cost":
            return int(np.argmin(value * others + (kept[0] - kept)))
        # The lowest threshold that will do keeps the most rows.
        good = precision >= value if name == "precision" else share <= value
        good &= kept + others > 0
        if not good.any():
            most = float(precision.max()) if name == "precision" else float(share[kept + others > 0].min())
            least = "at most" if name == "precision" else "at least"
            raise ValueError(f"no threshold gives {name}={value:g}: the scores so far allow {least} {most:.4g}")
        return int(np.flatnonzero(good)[0])
