"""Scored records: the label, score and probabilities of each, beside the columns that are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maxcosine.base_model import BaseModel
from maxcosine.data import RowBatch, Stream, StreamError
from maxcosine.labels import label_text
from maxcosine.training.evaluation import probabilities, score

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class RecordScorer:
    """Scores the records of a stream.

    Parameters
    ----------
    model : BaseModel
        What predicts.
    of_class : int or None, default=None
        The code of the class whose score and probability are given; None: those of the predicted class, and of two
        classes the score of the second one.
    least : float or None, default=None
        Of two classes, predict the second one where its score is at least this one.
    top : int, default=1
        How many labels are given, the most probable first.
    """

    model: BaseModel
    of_class: int | None = None
    least: float | None = None
    top: int = 1

    def __post_init__(self) -> None:
        self.labels = np.array([label_text(label) for label in self.model.classes.tolist()], object)
        self.top = min(self.top, len(self.labels))
        if self.least is not None and len(self.labels) != 2:
            raise ValueError(f"a threshold tells two classes apart, and the model has {len(self.labels)}")

    def ranking(self, stream: Stream) -> Iterator[np.ndarray]:
        """Give the scores by which records are ranked, batch by batch."""
        for batch in stream.batches():
            scores, predicted, _ = score(self.model, stream, batch)
            yield self._score(scores, predicted)

    def table(self, stream: Stream, batch: RowBatch) -> tuple[pa.Table, np.ndarray]:
        """Return the scored records of a batch, and the scores by which they are ranked."""
        import pyarrow as pa

        scores, predicted, _ = score(self.model, stream, batch)
        if self.least is not None:
            predicted = (scores >= self.least).astype(np.intp)
        ranked = self._score(scores, predicted)
        columns: dict[str, Any] = {"predicted": self.labels[predicted].tolist(), "score": ranked}
        if self.model.has_probabilities:
            columns |= self._probabilities(probabilities(self.model, stream, batch), predicted)
        kept = batch.kept_columns
        if kept is None or not kept.num_columns:
            return pa.table(columns), ranked
        for name, values in columns.items():
            if name in kept.column_names:
                raise StreamError(f"the data have a column {name!r}, too; keep others with --keep, or rename it")
            kept = kept.append_column(name, pa.array(values))
        return kept, ranked

    def _score(self, scores: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """Return one score a row."""
        if scores.ndim == 1:
            return -scores if self.of_class == 0 else scores
        ranked: np.ndarray = scores[np.arange(len(scores)), predicted if self.of_class is None else self.of_class]
        return ranked

    def _probabilities(self, found: np.ndarray, predicted: np.ndarray) -> dict[str, Any]:
        rows = np.arange(len(found))
        columns: dict[str, Any] = {"probability": found[rows, predicted if self.of_class is None else self.of_class]}
        if self.top > 1:
            others = found.copy()
            others[rows, predicted] = np.inf  # the predicted label comes first, whatever the threshold
            order = np.argsort(-others, axis=1, kind="stable")[:, : self.top]
            for k in range(1, self.top):
                columns[f"predicted_{k + 1}"] = self.labels[order[:, k]].tolist()
                columns[f"probability_{k + 1}"] = found[rows, order[:, k]]
        return columns


class TopShare:
    """Chooses the records of the highest scores, exactly: of equal scores, the first ones.

    Parameters
    ----------
    scores : sequence of arrays
        The scores of all records, in their order.
    share : float
        The share of the records that is kept, rounded to a whole number of them.
    """

    def __init__(self, scores: Sequence[np.ndarray], share: float) -> None:
        every = np.concatenate([np.zeros(0), *scores])
        n_kept = round(share * len(every))
        self.n_kept = n_kept
        self.least = float(np.partition(every, -n_kept)[-n_kept]) if n_kept else np.inf
        self._equal_left = n_kept - int((every > self.least).sum())

    def choose(self, scores: np.ndarray) -> np.ndarray:
        """Return which records of the next batch are kept."""
        equal = np.flatnonzero(scores == self.least)[: self._equal_left]
        self._equal_left -= len(equal)
        kept: np.ndarray = scores > self.least
        kept[equal] = True
        return kept
