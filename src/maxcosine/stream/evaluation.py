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


MOST_SCORES = 2**20
_BINS = 2**20
_BIN_SHIFT = 12
_AT_ONCE = 2**16


class Ranking:
    """Scores of negative and of positive examples.

    Memory stays the same: of more than `MOST_SCORES`, only the 20 leading bits of each score are counted.
    """

    def __init__(self) -> None:
        self._scores: tuple[list[np.ndarray], list[np.ndarray]] = [], []
        self._n_kept = 0
        self._counts: np.ndarray | None = None

    def add(self, scores: np.ndarray, positive: np.ndarray) -> None:
        for k, kept in enumerate(self._scores):
            kept.append(scores[positive == bool(k)].astype(np.float64))
        self._n_kept += len(scores)
        if self._counts is None and self._n_kept > MOST_SCORES:
            self._counts = np.zeros((2, _BINS), np.int64)
        if self._counts is not None:
            for counts, kept in zip(self._counts, self._scores, strict=True):
                while kept:
                    np.add.at(counts, _bins(kept.pop()), 1)

    def auc(self) -> float | None:
        """The chance that a positive example has a higher score than a negative one; ties count half."""
        if self._counts is not None:
            return self._auc_of_counts(*self._counts)
        if not self._n_kept:
            return None
        negative, positive = (np.concatenate(kept) for kept in self._scores)
        negative.sort()
        below, ties, pairs = 0, 0, len(negative) * len(positive)
        for start in range(0, len(positive), _AT_ONCE):
            some = positive[start : start + _AT_ONCE]
            first = np.searchsorted(negative, some)
            below += int(first.sum())
            ties += int((np.searchsorted(negative, some, side="right") - first).sum())
        return (below + ties / 2) / pairs if pairs else None

    def _auc_of_counts(self, negatives: np.ndarray, positives: np.ndarray) -> float | None:
        pairs, before, higher = int(negatives.sum()) * int(positives.sum()), 0, 0.0
        for start in range(0, _BINS, _AT_ONCE):
            some = negatives[start : start + _AT_ONCE]
            below = before + np.cumsum(some) - some / 2.0
            higher += float((positives[start : start + _AT_ONCE] * below).sum())
            before += int(some.sum())
        return higher / pairs if pairs else None


def _bins(scores: np.ndarray) -> np.ndarray:
    """The bins of scores, in their order."""
    bits = scores.astype(np.float32).view(np.int32)
    # As whole numbers, floats are in order once the negative ones are turned round.
    ordered = np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)
    return (ordered >> _BIN_SHIFT) + _BINS // 2


def _share(part: int, whole: int) -> float | None:
    return int(part) / int(whole) if whole else None
