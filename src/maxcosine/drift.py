"""Has the stream changed? An alarm on the progressive errors, and the trial of a fresh learner beside the old one.

Both are heuristics with few false alarms; nothing about them is proven.

The alarm looks at blocks of 32, 64, 128, ... rows, each at the end of such a block. It goes off if the rate p of wrong
predictions in the block of n rows is above the rate q of all rows before the block, and n KL(p, q) > 3 ln t for t rows
in all, where KL(p, q) = p ln(p / q) + (1 - p) ln((1 - p) / (1 - q)). One more row, predicted wrongly, counts towards q:
else the first error after a good start would be an alarm.

The trial counts the errors of both learners on the rows since the alarm. The one with fewer errors predicts. After 64,
128, 256, ... rows, the latter half of them is judged: a learner is beaten if the rows on which it alone was wrong
outnumber those on which the other alone was wrong by more than three standard deviations. The fresh learner has also
lost if it has not won after as many rows as the old one had learnt.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from maxcosine.onepass import OnePassState
from maxcosine.score_sketch import ScoreSketch

OnDrift = Literal["restart", "warn", "ignore"]
ON_DRIFT = ("restart", "warn", "ignore")

SMALLEST_BLOCK = 32
SENSITIVITY = 3.0
"""Of the alarm: its level is this many times the logarithm of the number of rows."""
FIRST_VERDICT = 64
DEVIATIONS = 3.0


class DriftWarning(UserWarning):
    """The errors of a classifier have risen, so the stream may have changed."""


class Drift(NamedTuple):
    """An alarm and what came of it.

    Parameters
    ----------
    alarm : int
        How many examples had been seen when the alarm went off. The alarm is a heuristic.
    ended : int or None
        How many had been seen when the trial of a fresh learner ended; None while it goes on, or if there is none.
    outcome : {"warned", "trial", "restarted", "kept"}
        Whether there was only a warning, both learners are still on trial, the fresh one has replaced the old one, or
        the old one was kept.

    Examples
    --------
    >>> from maxcosine import Drift
    >>> print(Drift(alarm=5040, ended=5104, outcome="restarted"))
    alarm after 5,040 examples; a fresh learner replaced the old one after 5,104
    """

    alarm: int
    ended: int | None
    outcome: str

    def __str__(self) -> str:
        endings = {
            "warned": "",
            "trial": "; a fresh learner is on trial beside the old one",
            "restarted": "; a fresh learner replaced the old one after {:,}",
            "kept": "; the old learner was kept after {:,}",
        }
        return f"alarm after {self.alarm:,} examples" + endings[self.outcome].format(self.ended or 0)


@dataclass
class DriftAlarm:
    """The errors so far, at the starts of the blocks that are not complete."""

    rows: int = 0
    errors: int = 0
    starts: list[int] = field(default_factory=list)
    """The errors before the current block of 32, 64, 128, ... rows."""

    @property
    def n_sizes(self) -> int:
        """How many sizes of blocks there have been."""
        return (self.rows // SMALLEST_BLOCK).bit_length()

    def watch(self, wrong: np.ndarray) -> int | None:
        """Take predictions into account, up to an alarm; return how many it took if it went off, else None."""
        cumulated = self.errors + np.cumsum(wrong)
        first = SMALLEST_BLOCK - self.rows % SMALLEST_BLOCK
        before = self.rows
        for end in range(first, len(wrong) + 1, SMALLEST_BLOCK):
            self.rows, self.errors = before + end, int(cumulated[end - 1])
            if self._at_end_of_block():
                return end
        if len(wrong):
            self.rows, self.errors = before + len(wrong), int(cumulated[-1])
        return None

    def _at_end_of_block(self) -> bool:
        alarm, level, size = False, 0, SMALLEST_BLOCK
        while self.rows % size == 0 and size <= self.rows:
            if level == len(self.starts):
                self.starts.append(0)
            start = self.starts[level]
            if self.rows >= 2 * size:
                alarm |= self._rises(self.errors - start, size, start)
            self.starts[level] = self.errors
            level, size = level + 1, 2 * size
        return alarm

    def _rises(self, errors: int, size: int, errors_before: int) -> bool:
        p, q = errors / size, (errors_before + 1) / (self.rows - size + 1)
        if p <= q:
            return False
        divergence = p * math.log(p / q) + ((1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if p < 1.0 else 0.0)
        return size * divergence > SENSITIVITY * math.log(self.rows)


@dataclass
class Trial:
    """A fresh learner beside the old one, and their errors since the alarm."""

    state: OnePassState
    sketch: ScoreSketch | None
    limit: int
    """Rows after which the fresh learner has lost if it has not won: those that the old one had learnt."""
    age: int = 0
    errors_of_old: int = 0
    errors_of_fresh: int = 0
    only_old: int = 0
    """Rows since the last verdict on which the old learner alone was wrong."""
    only_fresh: int = 0

    @property
    def fresh_predicts(self) -> bool:
        """Whether the fresh learner has made fewer errors."""
        return self.errors_of_fresh < self.errors_of_old

    def judge(self, old_wrong: np.ndarray, fresh_wrong: np.ndarray) -> tuple[np.ndarray, str | None]:
        """Go through rows up to a verdict; return which rows the fresh learner predicted, and the outcome."""
        chosen, done = [np.zeros(0, bool)], 0
        while done < len(old_wrong):
            stretch = max(FIRST_VERDICT, 1 << self.age.bit_length()) - self.age
            part = slice(done, min(done + stretch, len(old_wrong)))
            chosen.append(self._count(old_wrong[part], fresh_wrong[part]))
            done = part.stop
            if outcome := self._outcome():
                return np.concatenate(chosen), outcome
        return np.concatenate(chosen), None

    def _count(self, old_wrong: np.ndarray, fresh_wrong: np.ndarray) -> np.ndarray:
        """Count the errors on rows; return on which of them the fresh learner predicted."""
        lead = np.cumsum(old_wrong.astype(np.int64) - fresh_wrong)
        lead_before = self.errors_of_old - self.errors_of_fresh + np.concatenate([[0], lead[:-1]])
        self.age += len(old_wrong)
        self.errors_of_old += int(old_wrong.sum())
        self.errors_of_fresh += int(fresh_wrong.sum())
        self.only_old += int((old_wrong & ~fresh_wrong).sum())
        self.only_fresh += int((fresh_wrong & ~old_wrong).sum())
        return np.asarray(lead_before > 0)

    def _outcome(self) -> str | None:
        if self.age < FIRST_VERDICT or self.age & (self.age - 1):
            return None
        lead = self.only_old - self.only_fresh
        beaten = abs(lead) > DEVIATIONS * math.sqrt(self.only_old + self.only_fresh)
        self.only_old = self.only_fresh = 0
        if beaten:
            return "restarted" if lead > 0 else "kept"
        return "kept" if self.age >= self.limit else None

    def copy(self) -> Trial:
        """An independent trial of the same values."""
        sketch = None if self.sketch is None else self.sketch.copy()
        return replace(self, state=self.state.copy(), sketch=sketch)


@dataclass
class DriftWatch:
    """What a model knows of changes of its stream."""

    alarm: DriftAlarm = field(default_factory=DriftAlarm)
    trial: Trial | None = None
    history: list[Drift] = field(default_factory=list)

    def goes_off(self, wrong: np.ndarray, seen: int, outcome: str) -> int | None:
        """Watch predictions after `seen` rows; if the alarm goes off, record it and return how many it took."""
        taken = self.alarm.watch(wrong)
        if taken is not None:
            self.history = [*self.history, Drift(seen + taken, None, outcome)]
            self.alarm = DriftAlarm()
        return taken

    def end_trial(self, seen: int, outcome: str) -> None:
        """End the trial after `seen` rows; the alarm watches what comes from now on."""
        self.trial = None
        self.history = [*self.history[:-1], self.history[-1]._replace(ended=seen, outcome=outcome)]

    def copy(self) -> DriftWatch:
        """An independent watch of the same values."""
        alarm = replace(self.alarm, starts=list(self.alarm.starts))
        return DriftWatch(alarm, None if self.trial is None else self.trial.copy(), list(self.history))
