"""How well a model predicts the examples of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxcosine.data import ReadOptions, Stream
from maxcosine.data.parsed import SupportsWrite
from maxcosine.labels import label_text
from maxcosine.model import Model
from maxcosine.training.learner import rows_of
from maxcosine.training.ranking import Ranking


@dataclass(eq=False)
class ScoredBatch:
    """The rows of a batch as a model scores them."""

    scores: np.ndarray
    predicted: np.ndarray
    """Codes of the predicted classes."""
    codes: np.ndarray
    """Codes of the right classes; -1 if a row has no label, or one that the model does not know."""
    label_codes: np.ndarray
    """Codes of the labels in the stream; -1 for a row without a label."""
    skipped: np.ndarray
    """For each bad line: how many rows precede it."""


def score_stream(model: Model, stream: Stream) -> Iterator[ScoredBatch]:
    """Score all rows of a stream in their order, one batch after another."""
    for batch in stream.batches():
        scores = model.scores(rows_of(stream, model, batch, grow=False))
        codes = np.append(model.labels.text_codes(stream.labels.names), -1)[batch.codes]
        yield ScoredBatch(scores, model.predicted_codes(scores), codes, batch.codes, batch.skipped)


def count_mistakes(model: Model, like: Stream, inputs: Sequence[str], threads: int | None) -> tuple[int, int, int]:
    """Count mistakes, examples and bad lines of files that are read as another stream is."""
    stream, mistakes = like.like(inputs, threads=threads, purpose="evaluate"), 0
    for part in score_stream(model, stream):
        mistakes += int(np.count_nonzero(part.predicted != part.codes))
    return mistakes, stream.n_examples, stream.n_bad


def open_for_model(
    model: Model,
    provenance: dict[str, Any] | None,
    inputs: Sequence[str],
    *,
    bad_lines: SupportsWrite | None = None,
    **options: Any,
) -> Stream:
    """Open files that are read as the data of a model were; `options` are other fields of `ReadOptions`."""
    strict = "normalize" in (provenance or {}).get("options", {})
    read = ReadOptions(**read_options_of(model, provenance), strict=strict, **options)
    return Stream(inputs, read, bad_lines=bad_lines)


def read_options_of(model: Model, provenance: dict[str, Any] | None) -> dict[str, Any]:
    """Return the known options that the data of a model were read with."""
    features, recorded = model.features, (provenance or {}).get("options", {})
    return {
        "bits": features.bits or 0,
        "exact": features.keyed,
        "dtype": str(model.heads.dtype),
        **{name: recorded[name] for name in ("normalize", "log1p") if name in recorded},
    }


@dataclass
class Evaluation:
    """Counts of labels and predictions."""

    labels: list[str]
    """The classes of the model, and then labels that it does not know."""
    confusion: np.ndarray
    """Examples by label and by predicted class."""
    ranking: Ranking | None
    """For two classes: the scores."""
    n_bad: int
    """Bad lines that were skipped."""

    @classmethod
    def of(cls, model: Model, stream: Stream) -> Evaluation:
        """Evaluate a model on all examples of a stream."""
        known = [label_text(label) for label in model.classes.tolist()]
        counts = {label: np.zeros(len(known), np.int64) for label in known}
        ranking = Ranking() if model.one_score and len(known) == 2 else None
        for part in score_stream(model, stream):
            for code in np.unique(part.label_codes).tolist():
                of_label = counts.setdefault(stream.labels.names[code], np.zeros(len(known), np.int64))
                predicted = part.predicted[part.label_codes == code]
                of_label += np.bincount(predicted, minlength=len(known))
            if ranking is not None:
                ranking.add(part.scores, part.codes == 1)
        return cls(list(counts), np.array(list(counts.values())), ranking, stream.n_bad)

    def as_dict(self) -> dict[str, Any]:
        """Return all figures, for JSON."""
        n, n_classes = int(self.confusion.sum()), self.confusion.shape[1]
        right = np.diag(self.confusion[:n_classes])
        of_label, of_prediction = self.confusion.sum(axis=1), self.confusion.sum(axis=0)
        return {
            "examples": n,
            "error": 1.0 - int(right.sum()) / n if n else None,
            "auc": None if self.ranking is None else self.ranking.auc(),
            "classes": self.labels,
            "confusion": self.confusion.tolist(),
            "precision": [_share(a, b) for a, b in zip(right, of_prediction, strict=True)],
            "recall": [_share(a, b) for a, b in zip(right, of_label[:n_classes], strict=True)],
            "bad_lines": self.n_bad,
        }


def _share(part: int, whole: int) -> float | None:
    return int(part) / int(whole) if whole else None
