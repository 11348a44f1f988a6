"""What a model says of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxcosine.model import Model
from maxcosine.stream.chunks import Stream
from maxcosine.stream.learner import matrix, text_of


@dataclass
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


def scored(model: Model, stream: Stream) -> Iterator[Scored]:
    """The scores of all rows of a stream, some at a time, in their order."""
    position = {text_of(label): k for k, label in enumerate(model.classes.tolist())}
    for rows in stream.rows():
        scores = model.scores(matrix(stream, model, rows, grow=False))
        codes = np.array([*(position.get(label, -2) for label in stream.labels), -1])[rows.codes]
        yield Scored(scores, model.predicted_codes(scores), codes, stream.labels, rows.codes)


def count_mistakes(model: Model, like: Stream, inputs: Sequence[str], threads: int | None) -> tuple[int, int]:
    """Mistakes, and examples, of files that are read as another stream is."""
    mistakes = examples = 0
    for part in scored(model, like.like(inputs, threads=threads, labelled=True)):
        mistakes += int(np.count_nonzero(part.predicted != part.codes))
        examples += len(part.codes)
    return mistakes, examples


def stream_for(
    model: Model, provenance: dict[str, Any] | None, inputs: Sequence[str], **options: Any
) -> Stream:
    """A stream read as the one that the model was learnt from."""
    then = (provenance or {}).get("options", {})
    features = model.features
    return Stream(
        inputs,
        bits=features.bits or 0,
        exact=features.keyed,
        dtype=model.heads.dtype,
        normalize=then.get("normalize"),
        log1p=bool(then.get("log1p", False)),
        **options,
    )


@dataclass
class Evaluation:
    """Counts of what was right and what was predicted."""

    labels: list[str]
    """The classes of the model, and then labels that it does not know."""
    confusion: np.ndarray
    """Examples by their label, and by what was predicted."""
    scores: np.ndarray | None
    """For two classes: all scores, and whether each example is of the second."""
    positive: np.ndarray | None
    n_bad: int

    @classmethod
    def of(cls, model: Model, stream: Stream) -> Evaluation:
        """Count over a whole stream."""
        known = [text_of(label) for label in model.classes.tolist()]
        counts: dict[str, np.ndarray] = {label: np.zeros(len(known), np.int64) for label in known}
        scores, positive = [], []
        for part in scored(model, stream):
            for code in np.unique(part.stream_codes):
                label = part.labels[code]
                rows = part.stream_codes == code
                counts.setdefault(label, np.zeros(len(known), np.int64))
                counts[label] += np.bincount(part.predicted[rows], minlength=len(known))
            if model.one_score and len(known) == 2:
                scores.append(part.scores.astype(np.float64))
                positive.append(part.codes == 1)
        together = bool(scores)
        return cls(
            list(counts),
            np.array(list(counts.values())),
            np.concatenate(scores) if together else None,
            np.concatenate(positive) if together else None,
            stream.n_bad,
        )

    def as_dict(self) -> dict[str, Any]:
        """All figures, for JSON."""
        n, k = int(self.confusion.sum()), self.confusion.shape[1]
        right = np.diag(self.confusion[:k])
        of_label, of_prediction = self.confusion.sum(axis=1), self.confusion.sum(axis=0)
        return {
            "examples": n,
            "error": 1.0 - int(right.sum()) / n if n else None,
            "auc": None if self.scores is None or self.positive is None else auc(self.scores, self.positive),
            "classes": self.labels,
            "confusion": self.confusion.tolist(),
            "precision": [_share(a, b) for a, b in zip(right, of_prediction, strict=True)],
            "recall": [_share(a, b) for a, b in zip(right, of_label[:k], strict=True)],
            "bad_lines": self.n_bad,
        }


def auc(scores: np.ndarray, positive: np.ndarray) -> float | None:
    """The chance that a positive example has a higher score than a negative one; ties count half."""
    n_positive = int(positive.sum())
    n_negative = len(positive) - n_positive
    if not n_positive or not n_negative:
        return None
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2.0)[inverse]
    above = ranks[positive].sum() - n_positive * (n_positive + 1) / 2.0
    return float(above / (n_positive * n_negative))


def _share(part: int, whole: int) -> float | None:
    return int(part) / int(whole) if whole else None
