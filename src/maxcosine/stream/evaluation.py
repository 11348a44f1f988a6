"""What a model says of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxcosine.model import Model
from maxcosine.stream.chunks import Stream
from maxcosine.stream.learner import matrix, text_of


@dataclass(eq=False)
class Scored:
    """Rows of a stream as a model sees them."""

    scores: np.ndarray
    predicted: np.ndarray
    """Positions among the classes of the model."""
    codes: np.ndarray
    """What is right: positions among those classes; -1 for a row without a label, -2 for a label unknown to
    the model."""
    labels: list[str]
    """All labels of the stream so far."""
    stream_codes: np.ndarray
    skipped: np.ndarray
    """For each bad line: how many rows were before it."""


def scored(model: Model, stream: Stream) -> Iterator[Scored]:
    """The scores of all rows of a stream, some at a time, in their order."""
    position = {text_of(label): k for k, label in enumerate(model.classes.tolist())}
    for rows in stream.rows():
        scores = model.scores(matrix(stream, model, rows, grow=False))
        codes = np.array([*(position.get(label, -2) for label in stream.labels), -1])[rows.codes]
        predicted = model.predicted_codes(scores)
        yield Scored(scores, predicted, codes, stream.labels, rows.codes, rows.skipped)


def count_mistakes(
    model: Model, like: Stream, inputs: Sequence[str], threads: int | None
) -> tuple[int, int, int]:
    """Mistakes, examples and bad lines of files that are read as another stream is."""
    stream, mistakes, examples = like.like(inputs, threads=threads, labelled=True), 0, 0
    for part in scored(model, stream):
        mistakes += int(np.count_nonzero(part.predicted != part.codes))
        examples += len(part.codes)
    return mistakes, examples, stream.n_bad


def stream_for(
    model: Model, provenance: dict[str, Any] | None, inputs: Sequence[str], **options: Any
) -> Stream:
    """A stream read as the one that the model was learnt from."""
    strict = "normalize" in (provenance or {}).get("options", {})
    return Stream(inputs, **read_as(model, provenance), strict=strict, **options)


def read_as(model: Model, provenance: dict[str, Any] | None) -> dict[str, Any]:
    """How the data of a model were read, as far as it is known, for more of them."""
    features, then = model.features, (provenance or {}).get("options", {})
    return {
        "bits": features.bits or 0,
        "exact": features.keyed,
        "dtype": str(model.heads.dtype),
        **{name: then[name] for name in ("normalize", "log1p") if name in then},
    }


@dataclass
class Evaluation:
    """Counts of what was right and what was predicted."""

    labels: list[str]
    """The classes of the model, and then labels that it does not know."""
    confusion: np.ndarray
    """Examples by their label, and by what was predicted."""
    ranking: Ranking | None
    """For two classes: the scores."""
    n_bad: int

    @classmethod
    def of(cls, model: Model, stream: Stream) -> Evaluation:
        """Count over a whole stream."""
        known = [text_of(label) for label in model.classes.tolist()]
        counts: dict[str, np.ndarray] = {label: np.zeros(len(known), np.int64) for label in known}
        ranking = Ranking() if model.one_score and len(known) == 2 else None
        for part in scored(model, stream):
            for code in np.unique(part.stream_codes):
                label = part.labels[code]
                rows = part.stream_codes == code
                counts.setdefault(label, np.zeros(len(known), np.int64))
                counts[label] += np.bincount(part.predicted[rows], minlength=len(known))
            if ranking is not None:
                ranking.add(part.scores, part.codes == 1)
        return cls(list(counts), np.array(list(counts.values())), ranking, stream.n_bad)

    def as_dict(self) -> dict[str, Any]:
        """All figures, for JSON."""
        n, k = int(self.confusion.sum()), self.confusion.shape[1]
        right = np.diag(self.confusion[:k])
        of_label, of_prediction = self.confusion.sum(axis=1), self.confusion.sum(axis=0)
        return {
            "examples": n,
            "error": 1.0 - int(right.sum()) / n if n else None,
            "auc": None if self.ranking is None else self.ranking.auc(),
            "classes": self.labels,
            "confusion": self.confusion.tolist(),
            "precision": [_share(a, b) for a, b in zip(right, of_prediction, strict=True)],
            "recall": [_share(a, b) for a, b in zip(right, of_label[:k], strict=True)],
            "bad_lines": self.n_bad,
        }


MOST_SCORES = 2**21
_BINS = 2**20
_BIN_SHIFT = 12


class Ranking:
    """Scores, and which of them are of positive examples.

    Memory stays the same: of more than `MOST_SCORES`, only the 20 leading bits of each score are counted.
    """

    def __init__(self) -> None:
        self._scores: list[np.ndarray] = []
        self._positive: list[np.ndarray] = []
        self._kept = 0
        self._counts: np.ndarray | None = None

    def add(self, scores: np.ndarray, positive: np.ndarray) -> None:
        self._scores.append(scores.astype(np.float64))
        self._positive.append(positive)
        self._kept += len(scores)
        if self._kept > MOST_SCORES:
            self._count()

    def _count(self) -> None:
        """Scores into bins, in their order."""
        if self._counts is None:
            self._counts = np.zeros((2, _BINS), np.int64)
        bits = np.concatenate(self._scores).astype(np.float32).view(np.int32)
        # As whole numbers, floats are in order once the negative ones are turned round.
        ordered = np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)
        bins = (ordered >> _BIN_SHIFT) + _BINS // 2
        positive = np.concatenate(self._positive)
        for k in range(2):
            self._counts[k] += np.bincount(bins[positive == bool(k)], minlength=_BINS)
        self._scores, self._positive, self._kept = [], [], 0

    def auc(self) -> float | None:
        """The chance that a positive example has a higher score than a negative one; ties count half."""
        if self._counts is None:
            if not self._kept:
                return None
            _, inverse = np.unique(np.concatenate(self._scores), return_inverse=True)
            positive = np.concatenate(self._positive)
            negatives, positives = (np.bincount(inverse[positive == bool(k)]) for k in range(2))
            n = max(len(negatives), len(positives))
            negatives, positives = (np.pad(c, (0, n - len(c))) for c in (negatives, positives))
        else:
            self._count()
            negatives, positives = self._counts
        pairs = int(negatives.sum()) * int(positives.sum())
        if not pairs:
            return None
        below = np.cumsum(negatives) - negatives / 2.0
        return float((positives * below).sum() / pairs)


def _share(part: int, whole: int) -> float | None:
    return int(part) / int(whole) if whole else None
