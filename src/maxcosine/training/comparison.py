"""Several rules on one stream: the data are read and parsed once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maxcosine.data import RowBatch, Stream
from maxcosine.labels import label_text
from maxcosine.model import Model
from maxcosine.training.evaluation import score
from maxcosine.training.learner import Settings, StreamLearner
from maxcosine.training.outcome import json_value, refuse_empty

# About ten marks for each power of ten.
_MARKS = np.unique(np.round(10.0 ** np.arange(0.0, 15.0, 0.1)).astype(np.int64))


@dataclass
class Contender:
    """One of the rules, and its mistakes."""

    learner: StreamLearner
    wrong: int = 0
    wrong_at: list[int] = field(default_factory=list)
    """Mistakes up to each mark of the comparison."""
    test_wrong: int = 0
    seconds: float = 0.0

    def learn(self, stream: Stream, batch: RowBatch, marks: np.ndarray) -> None:
        """Learn rows and count mistakes; `marks` are rows after which the count is recorded."""
        started = time.perf_counter()
        predicted = self.learner.learn(stream, batch)
        self.seconds += time.perf_counter() - started
        counted = True if batch.weights is None else batch.weights > 0.0
        wrong = self.wrong + np.cumsum((predicted != self.learner.codes_of(batch)) & counted)
        self.wrong_at += wrong[marks].tolist()
        self.wrong = int(wrong[-1])

    def test(self, stream: Stream, batch: RowBatch) -> None:
        """Count mistakes on rows that are not learnt."""
        _, predicted, codes = score(self.model, stream, batch)
        self.test_wrong += int(np.count_nonzero(predicted != codes))

    @property
    def model(self) -> Model:
        """What was learnt."""
        model: Model = self.learner.model
        return model

    def as_dict(self, examples: int, test_examples: int) -> dict[str, Any]:
        """Return the figures of the rule, for JSON."""
        certificate = self.model.certificate()
        return {
            "rule": self.model.rule.name,
            "average": self.model.heads.average,
            "progressive_error": self.wrong / max(1, examples),
            "test_error": self.test_wrong / test_examples if test_examples else None,
            "updates": int(np.sum(certificate.updates)),
            "gain": certificate.gain,
            "bounds": json_value(np.ravel(certificate.bound)),
            "margin_ceilings": json_value(np.ravel(certificate.margin_ceiling)),
            "seconds": self.seconds,
            "progressive_mistakes": self.wrong_at,
        }


class Comparison:
    """Rules side by side, over the same examples in the same order."""

    def __init__(self, settings: Sequence[Settings]) -> None:
        self.contenders = [Contender(StreamLearner(one)) for one in settings]
        self.examples = self.test_examples = 0
        self.marks: list[int] = []
        """Numbers of examples after which mistakes are recorded: ever further apart, and the last example."""

    def learn(self, stream: Stream, hold_out: int | None = None) -> None:
        """Let every rule learn the stream; every `hold_out`-th example is left for the test."""
        for batch in _batches(stream, hold_out, held_out=False):
            marks = _MARKS[(self.examples < _MARKS) & (self.examples + len(batch) >= _MARKS)]
            for contender in self.contenders:
                contender.learn(stream, batch, marks - self.examples - 1)
            self.marks += marks.tolist()
            self.examples += len(batch)
        refuse_empty(self.contenders[0].learner.model, stream)
        if self.examples not in self.marks:
            self.marks.append(self.examples)
            for contender in self.contenders:
                contender.wrong_at.append(contender.wrong)

    def test(self, stream: Stream, hold_out: int | None = None) -> None:
        """Test every rule on the stream, or on every `hold_out`-th of its examples."""
        for batch in _batches(stream, hold_out, held_out=True):
            self.test_examples += len(batch)
            for contender in self.contenders:
                contender.test(stream, batch)

    def as_dict(self) -> dict[str, Any]:
        """Return all figures, for JSON; the best rule is first."""
        rules = [one.as_dict(self.examples, self.test_examples) for one in self.contenders]
        by = "test_error" if self.test_examples else "progressive_error"
        model = self.contenders[0].model  # all have the same classes and features
        return {
            "examples": self.examples,
            "test_examples": self.test_examples,
            "classes": [label_text(label) for label in model.classes.tolist()],
            "features": model.features.n_features,
            "marks": self.marks,
            "rules": sorted(rules, key=lambda one: one[by]),
        }


def _batches(stream: Stream, every: int | None, *, held_out: bool) -> Iterator[RowBatch]:
    """Read only every N-th example, which is held out, or only the others; without a number, read all."""
    first = 0
    for batch in stream.batches():
        numbers = np.arange(first, first + len(batch))
        first += len(batch)
        if every is not None:
            batch = batch.take((numbers % every == every - 1) == held_out)
        if len(batch):
            yield batch
