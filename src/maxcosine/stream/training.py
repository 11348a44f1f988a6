"""From files to a model: passes over a stream, checkpoints, and going on after an interruption.

A checkpoint is a model file that also says where in the data it stands, and how. Learning from there gives
the same model, to the bit, as if nothing had happened.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from maxcosine import model_file
from maxcosine.model import Model
from maxcosine.stream.chunks import Rows, Stream
from maxcosine.stream.learner import StreamLearner
from maxcosine.stream.source import STANDARD_INPUT, Place, StreamError, sizes


class BadCheckpoint(ValueError):
    """A checkpoint of another training, or one that cannot be written."""


@dataclass
class Status:
    """How far a training is."""

    passes: int = 0
    """Passes finished."""
    examples: int = 0
    wrong: int = 0
    bad: int = 0


OnRows = Callable[["Training", np.ndarray, np.ndarray], None]


class Training:
    """Learns from a stream, several times if asked, and writes down where it is.

    `options` are what has to be the same for a checkpoint to be of use.
    """

    def __init__(
        self,
        new_stream: Callable[[Place], Stream],
        learner: StreamLearner,
        *,
        passes: int = 1,
        checkpoint: Path | None = None,
        every: int = 1_000_000,
        options: dict[str, Any] | None = None,
        on_rows: OnRows = lambda training, codes, predicted: None,
    ) -> None:
        self._new_stream = new_stream
        self.learner = learner
        self.passes = passes
        self.checkpoint, self._every = checkpoint, every
        self.options = options or {}
        self._on_rows = on_rows
        self.status = Status()
        self._start, self._labels = Place(), list[str]()
        self.stream = new_stream(Place())
        if passes > 1 and STANDARD_INPUT in self.stream.source.names:
            raise StreamError("standard input can be read once only; write it to a file for several passes")
        self.data = sizes(self.stream.source.names)

    @property
    def model(self) -> Model:
        if self.learner.model is None:
            raise StreamError(
                f"there is no example in {', '.join(self.stream.source.names)}; is it the right file?"
            )
        return self.learner.model

    def resume(self) -> bool:
        """Go on from the checkpoint; False if there is none."""
        assert self.checkpoint is not None
        if not self.checkpoint.exists():
            return False
        loaded = model_file.load(self.checkpoint)
        there = loaded.more or {}
        if "place" not in there:
            raise BadCheckpoint(f"{self.checkpoint} is a model and no checkpoint; name another file")
        here = {"data": self.data, **self.options}
        then = {"data": there["data"], **there["options"]}
        different = [
            f"{name} was {then.get(name)!r} and is {here.get(name)!r}"
            for name in sorted({*here, *then})
            if here.get(name) != then.get(name)
        ]
        if different:
            raise BadCheckpoint(
                f"{self.checkpoint} is of another training: {'; '.join(different)}. Give the same data and "
                "options, or leave out --resume to begin anew"
            )
        self.learner.model = loaded.model
        self.status = Status(**there["status"])
        self._start, self._labels = Place(**there["place"]), there["labels"]
        return True

    def run(self) -> Model:
        """Learn to the end."""
        with self._locked():
            for number in range(self.status.passes, self.passes):
                self.stream = self._new_stream(self._start)
                self.stream.know(self._labels)
                self._bad = self.status.bad
                for rows in self.stream.rows():
                    self._learn(rows)
                self.status.bad = self._bad + self.stream.n_bad
                self.status.passes = number + 1
                self._start, self._labels = Place(), self.stream.labels
                if self.status.passes < self.passes:
                    self._save(Place())
        return self.model

    def _learn(self, rows: Rows) -> None:
        """Learn rows, with checkpoints after every so many examples, wherever chunks end."""
        done = 0
        while done < len(rows):
            left = self._every - self.status.examples % self._every if self.checkpoint else len(rows)
            part = rows[done : done + left] if done or left < len(rows) else rows
            predicted = self.learner.learn(self.stream, part)
            codes = self.learner.codes_of(part)
            done += len(part)
            self.status.examples += len(part)
            self.status.wrong += int(np.count_nonzero(predicted != codes))
            self.status.bad = self._bad + self.stream.n_bad
            self._on_rows(self, codes, predicted)
            if self.checkpoint and self.status.examples % self._every == 0:
                self._save(part.ends[len(part) - 1])

    def _save(self, place: Place) -> None:
        if self.checkpoint is None:
            return
        model_file.save(
            self.model,
            self.checkpoint,
            more={
                "place": asdict(place),
                "status": asdict(self.status),
                "labels": self.stream.labels,
                "options": self.options,
                "data": self.data,
            },
        )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Nobody else writes the same checkpoint."""
        if self.checkpoint is None:
            yield
            return
        self.checkpoint.parent.mkdir(parents=True, exist_ok=True)
        path = self.checkpoint.with_name(self.checkpoint.name + ".lock")
        with open(path, "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BadCheckpoint(
                    f"another training writes the checkpoint {self.checkpoint}; wait for its end, "
                    "or name another file"
                ) from None
            try:
                yield
            finally:
                os.unlink(path)
