"""How well a model predicts the examples of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxcosine.base_model import BaseModel
from maxcosine.data import ReadOptions, RowBatch, Stream
from maxcosine.data.parsed import SupportsWrite
from maxcosine.labels import label_text
from maxcosine.training.learner import rows_of
from maxcosine.training.ranking import Ranking


def score(model: BaseModel, stream: Stream, batch: RowBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the scores of the rows of a stream, the codes of the predicted classes, and those of the right ones.

    The right code is -1 if a row has no label, or one that the model does not know.
    """
    with model.lock.reading:
        scores = model.scores(rows_of(stream, model.features, batch, grow=False))
        codes = np.append(model.labels.text_codes(stream.labels.names), -1)[batch.codes]
        return scores, model.predicted_codes(scores), codes


def probabilities(model: BaseModel, stream: Stream, batch: RowBatch) -> np.ndarray:
    """Return the probabilities of the classes for the rows of a stream."""
    with model.lock.reading:
        return model.probabilities(model.margins(rows_of(stream, model.features, batch, grow=False)))


def open_for_model(
    model: BaseModel,
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


def read_options_of(model: BaseModel, provenance: dict[str, Any] | None) -> dict[str, Any]:
    """Return the known options that the data of a model were read with."""
    features, recorded = model.features, (provenance or {}).get("options", {})
    return {
        "schema": features.records,
        "bits": features.bits or 0,
        "exact": features.keyed,
        "dtype": str(model.dtype),
        **{name: recorded[name] for name in ("normalize", "log1p") if name in recorded},
    }


def evaluate(model: BaseModel, stream: Stream) -> dict[str, Any]:
    """Evaluate a model on all examples of a stream; return the figures, for JSON.

    The classes are those of the model, followed by labels that it does not know. Rows of the confusion matrix
    are labels, its columns are predicted classes.
    """
    known = [label_text(label) for label in model.classes.tolist()]
    counts = {label: np.zeros(len(known), np.int64) for label in known}
    ranking = Ranking() if model.one_score and len(known) == 2 else None
    for batch in stream.batches():
        scores, predicted, codes = score(model, stream, batch)
        for code in np.unique(batch.codes).tolist():
            of_label = counts.setdefault(stream.labels.names[code], np.zeros(len(known), np.int64))
            of_label += np.bincount(predicted[batch.codes == code], minlength=len(known))
        if ranking is not None:
            ranking.add(scores, codes == 1)
    confusion = np.array(list(counts.values()))
    n, right = int(confusion.sum()), np.diag(confusion[: len(known)])
    return {
        "examples": n,
        "error": _share(n - right.sum(), n),
        "auc": None if ranking is None else ranking.auc(),
        "classes": list(counts),
        "confusion": confusion.tolist(),
        "precision": [_share(a, b) for a, b in zip(right, confusion.sum(axis=0), strict=True)],
        "recall": [_share(a, b) for a, b in zip(right, confusion.sum(axis=1)[: len(known)], strict=True)],
        "bad_lines": stream.n_bad,
    }


def _share(part: int, whole: int) -> float | None:
    return int(part) / int(whole) if whole else None
