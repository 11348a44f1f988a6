"""All rules on one stream, in one parse."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maxcosine.model import Model
from maxcosine.rules.rule import Rule
from maxcosine.stream.chunks import Stream
from maxcosine.stream.learner import Settings, StreamLearner, matrix, plain, text_of
from maxcosine.stream.rows import Rows, taken
from maxcosine.stream.training import no_example, refuse_without_features


@dataclass
class Contestant:
    """A rule at work on the stream."""

    learner: StreamLearner
    wrong: int = 0
    wrong_at: list[int] = field(default_factory=list)
    """Mistakes by each mark of the comparison."""
    test_wrong: int = 0
    seconds: float = 0.0

    def learn(self, stream: Stream, rows: Rows, marks: np.ndarray) -> None:
        """Learn rows, and note how many were wrong, also by those that have these numbers."""
        started = time.perf_counter()
        predicted = self.learner.learn(stream, rows)
        self.seconds += time.perf_counter() - started
        wrong = self.wrong + np.cumsum(predicted != self.learner.codes_of(rows))
        self.wrong_at += wrong[marks].tolist()
        self.wrong = int(wrong[-1])

    def as_dict(self, examples: int, test_examples: int) -> dict[str, Any]:
        """What it came to, for JSON."""
        model = self.learner.model
        assert model is not None
        certificate = model.certificate()
        return {
            "rule": model.rule.name,
            "average": model.heads.average,
            "progressive_error": self.wrong / max(1, examples),
            "test_error": self.test_wrong / test_examples if test_examples else None,
            "updates": int(np.sum(certificate.updates)),
            "bounds": plain(np.ravel(certificate.bound)),
            "margin_ceilings": plain(np.ravel(certificate.margin_ceiling)),
            "seconds": self.seconds,
            "progressive_mistakes": self.wrong_at,
        }


@dataclass
class Comparison:
    """Rules beside each other, over the same examples in the same order."""

    contestants: Sequence[Contestant]
    examples: int = 0
    marks: list[int] = field(default_factory=list)
    """After so many examples mistakes are noted: ever more apart, and the last one."""
    test_examples: int = 0

    @classmethod
    def of(cls, rules: Sequence[Rule], settings: Settings) -> Comparison:
        """A contestant for each rule, with its usual parameters."""
        return cls(
            [
                Contestant(StreamLearner(settings.replace(rule=rule, params=rule.make_params())))
                for rule in rules
            ]
        )

    def learn(
        self,
        stream: Stream,
        held_out: int | None = None,
    ) -> None:
        """Every rule learns the stream; with `held_out`, all but every so many-th example."""
        number = 0
        for rows in stream.rows():
            learnt = taken(rows, _held_out(number, len(rows), held_out, wanted=False))
            number += len(rows)
            if not len(learnt):
                continue
            marks = _MARKS[(self.examples < _MARKS) & (self.examples + len(learnt) >= _MARKS)]
            for contestant in self.contestants:
                contestant.learn(stream, learnt, marks - self.examples - 1)
            self.marks += marks.tolist()
            self.examples += len(learnt)
        if not self.examples:
            raise no_example(stream)
        refuse_without_features(self._model, stream)
        if self.examples not in self.marks:
            self.marks.append(self.examples)
            for contestant in self.contestants:
                contestant.wrong_at.append(contestant.wrong)

    def test(self, stream: Stream, held_out: int | None = None) -> None:
        """Every rule is tested on the stream, or on those of its examples that were held out."""
        number = 0
        for rows in stream.rows():
            tested = taken(rows, _held_out(number, len(rows), held_out, wanted=True))
            number += len(rows)
            self.test_examples += len(tested)
            for contestant in self.contestants:
                model = contestant.learner.model
                assert model is not None
                scores = model.scores(matrix(stream, model, tested, grow=False))
                labels = [text_of(label) for label in model.classes.tolist()]
                codes = np.array([labels.index(one) if one in labels else -1 for one in stream.labels] + [-1])
                wrong = model.predicted_codes(scores) != codes[tested.codes]
                contestant.test_wrong += int(np.count_nonzero(wrong))

    def as_dict(self) -> dict[str, Any]:
        """All figures, for JSON; the best rule first."""
        rules = [one.as_dict(self.examples, self.test_examples) for one in self.contestants]
        by = "test_error" if self.test_examples else "progressive_error"
        return {
            "examples": self.examples,
            "test_examples": self.test_examples,
            "classes": [text_of(label) for label in self._model.classes.tolist()],
            "features": self._model.features.n_features,
            "marks": self.marks,
            "rules": sorted(rules, key=lambda one: one[by]),
        }

    @property
    def _model(self) -> Model:
        """One of the models: all have the same classes and features."""
        model = self.contestants[0].learner.model
        assert model is not None
        return model


# About ten to each power of ten.
_MARKS = np.unique(np.round(10.0 ** np.arange(0.0, 15.0, 0.1)).astype(np.int64))


def _held_out(first: int, n: int, every: int | None, *, wanted: bool) -> np.ndarray:
    """Which of n rows, the first of them with this number, are held out, or are not."""
    if every is None:
        return np.ones(n, bool)
    last_of_each: np.ndarray = (first + np.arange(n)) % every == every - 1
    return last_of_each if wanted else ~last_of_each
