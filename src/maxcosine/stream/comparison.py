"""All rules on one stream, in one parse."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxcosine.rule import Rule
from maxcosine.stream.chunks import Stream
from maxcosine.stream.learner import Settings, StreamLearner, matrix, text_of
from maxcosine.stream.rows import taken


@dataclass
class Contestant:
    """A rule at work on the stream."""

    learner: StreamLearner
    wrong: int = 0
    test_wrong: int = 0
    seconds: float = 0.0

    def as_dict(self, examples: int, test_examples: int) -> dict[str, Any]:
        """What it came to, for JSON."""
        model = self.learner.model
        assert model is not None
        certificate = model.certificate()
        ceilings = np.ravel(certificate.margin_ceiling).tolist()
        return {
            "rule": model.rule.name,
            "average": model.heads.average,
            "progressive_error": self.wrong / max(1, examples),
            "test_error": self.test_wrong / test_examples if test_examples else None,
            "updates": int(np.sum(certificate.updates)),
            "margin_ceilings": [one if math.isfinite(one) else None for one in ceilings],
            "seconds": self.seconds,
        }


@dataclass
class Comparison:
    """Rules beside each other, over the same examples in the same order."""

    contestants: Sequence[Contestant]
    examples: int = 0
    test_examples: int = 0

    @classmethod
    def of(cls, rules: Sequence[Rule], settings: Settings) -> Comparison:
        """A contestant for each rule, with its usual parameters."""
        return cls(
            [
                Contestant(StreamLearner(replace(settings, rule=rule, params=rule.make_params())))
                for rule in rules
            ]
        )

    def learn(
        self,
        stream: Stream,
        held_out: int | None = None,
        on_rows: Callable[[int], None] = lambda examples: None,
    ) -> None:
        """Every rule learns the stream; with `held_out`, all but every so many-th example."""
        number = 0
        for rows in stream.rows():
            learnt = taken(rows, _held_out(number, len(rows), held_out, wanted=False))
            number += len(rows)
            for contestant in self.contestants:
                started = time.perf_counter()
                predicted = contestant.learner.learn(stream, learnt)
                contestant.seconds += time.perf_counter() - started
                contestant.wrong += int(np.count_nonzero(predicted != contestant.learner.codes_of(learnt)))
            self.examples += len(learnt)
            on_rows(self.examples)

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
            "rules": sorted(rules, key=lambda one: one[by]),
        }


def _held_out(first: int, n: int, every: int | None, *, wanted: bool) -> np.ndarray:
    """Which of n rows, the first of them with this number, are held out, or are not."""
    if every is None:
        return np.ones(n, bool)
    last_of_each: np.ndarray = (first + np.arange(n)) % every == every - 1
    return last_of_each if wanted else ~last_of_each
