"""From files to a model: passes over a stream, checkpoints, and resuming after an interruption.

A training that resumes from a checkpoint learns the same model, to the bit, as one that was not interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from maxcosine import model_file
from maxcosine.base_model import BaseModel
from maxcosine.data import STANDARD_INPUT, Place, ReadOptions, RowBatch, Stream, StreamError, describe_inputs
from maxcosine.data.inputs import InputNames
from maxcosine.labels import label_text
from maxcosine.training.checkpoint import BadCheckpoint, SideFile, differences, locked
from maxcosine.training.learner import StreamLearner
from maxcosine.training.outcome import Status, refuse_empty
from maxcosine.training.stopping import Stopping


class Training:
    """Learns from a stream, in one pass or several, and saves its state now and then.

    Parameters
    ----------
    inputs : str, path or sequence of those
        Files, globs, or - for standard input.
    read : ReadOptions
        How they are read.
    learner : StreamLearner
        What learns.
    passes : int, default=1
        How many times the data are read.
    checkpoint : Path, optional
        Where the state is saved.
    every : int, default=1,000,000
        Examples between checkpoints.
    options : dict, optional
        What must be the same for a checkpoint to be used; the model remembers it, too.
    side_files : dict of SideFile, optional
        By role: "bad_lines", and "predictions" of each example before it was learnt.
    stopping : Stopping, optional
        When to stop before the end of the data; by default never.
    on_batch : callable, optional
        Called after each batch with this training and the predicted codes.

    Attributes
    ----------
    status : Status
        How far it is.
    stream : Stream
        The stream of the current pass.
    resumed_at : int
        Examples that an earlier run learnt.
    read_bytes : int
        Bytes read in the finished passes of this run.
    """

    def __init__(
        self,
        inputs: InputNames,
        read: ReadOptions,
        learner: StreamLearner,
        *,
        passes: int = 1,
        checkpoint: Path | None = None,
        every: int = 1_000_000,
        options: dict[str, Any] | None = None,
        side_files: Mapping[str, SideFile] | None = None,
        stopping: Stopping = Stopping(),  # noqa: B008, it never changes
        on_batch: Callable[[Training, np.ndarray], None] | None = None,
    ) -> None:
        self.learner, self.passes = learner, passes
        self.checkpoint, self.every = checkpoint, every
        self.options = options or {}
        self.stopping = stopping
        self.status = Status()
        self.resumed_at = self.read_bytes = 0
        self._inputs, self._read, self.on_batch = inputs, replace(read, purpose="learn"), on_batch
        self._start, self._labels = Place(), list[str]()
        self._side_files, self._lengths = side_files or {}, dict[str, int]()
        self.stream = Stream(inputs, self._read)
        names = self.stream.inputs.names
        if passes > 1 and STANDARD_INPUT in names:
            raise StreamError("standard input can be read once only; write it to a file for several passes")
        self.data = describe_inputs(names)

    @property
    def model(self) -> BaseModel:
        """The model; data without an example or a feature are refused."""
        return refuse_empty(self.learner.model, self.stream)

    def resume(self) -> bool:
        """Continue from the checkpoint; return False if it does not exist."""
        assert self.checkpoint is not None
        if not self.checkpoint.exists():
            return False
        loaded = model_file.load(self.checkpoint, rules=self.learner.settings.own_rules)
        stored = loaded.more or {}
        if "place" not in stored:
            raise BadCheckpoint(f"{self.checkpoint} is a model and no checkpoint; name another file")
        different = differences(stored, self.data, self.options)
        if different:
            raise BadCheckpoint(
                f"{self.checkpoint} is of another training: {'; '.join(different)}. Give the same data and "
                "options, or leave out --resume to start again"
            )
        self.learner.model = loaded.model
        self.status = Status(**stored["status"])
        self.resumed_at = self.status.examples
        self._lengths, self._labels = stored["asides"], stored["labels"]
        self._start = Place(**stored["place"])
        self._read = replace(self._read, format=stored["format"], schema=loaded.model.features.records)
        return True

    def run(self) -> BaseModel:
        """Learn to the end."""
        with locked(self.checkpoint), ExitStack() as stack:
            for role, file in self._side_files.items():
                stack.enter_context(file.opened())
                file.cut(self._lengths.get(role, 0))
            while self.status.passes < self.passes and not self.status.stopped:
                self._run_pass()
            return self.model

    def _run_pass(self) -> None:
        first = self.status.passes == 0  # later passes find the same bad lines
        bad_lines = self._side_files.get("bad_lines") if first else None
        self.stream = stream = Stream(self._inputs, self._read, start=self._start, bad_lines=bad_lines)
        stream.labels.know(self._labels)
        with closing(stream.batches()) as batches:
            for batch in batches:
                self._learn(batch)
                if self.status.stopped:
                    break
        self._count_bad(stream.place)
        self.read_bytes += stream.inputs.read_bytes - stream.inputs.skipped_bytes
        self.status.passes += 1
        self._start, self._labels = Place(), stream.labels.names
        self._read = replace(self._read, format=stream.options.format, schema=stream.options.schema)
        if self.status.passes < self.passes and self.learner.model is not None:
            self._save(Place())

    def _learn(self, batch: RowBatch) -> None:
        """Learn a batch; checkpoints and looks at the error come after every N examples, wherever batches end."""
        done = 0
        intervals = [self.every] * (self.checkpoint is not None) + self.stopping.intervals
        while done < len(batch) and not self.status.stopped:
            part = batch[done : min([len(batch), *(done + n - self.status.examples % n for n in intervals)])]
            before = self._counts()
            predicted = self.learner.learn(self.stream, part)
            done += len(part)
            self.status.examples += len(part)
            judged, wrong = self._counts()
            self.status.judged += judged - before[0]
            self.status.wrong += wrong - before[1]
            if not self.status.passes and "predictions" in self._side_files:
                self._side_files["predictions"].write(self._lines_of(predicted))
            if self.on_batch is not None:
                self.on_batch(self, predicted)
            self.stopping.look(self.status)
            if self.checkpoint and self.status.examples % self.every == 0:
                self._save(part.places.end(len(part) - 1))

    def _counts(self) -> tuple[int, int]:
        model = self.learner.model
        return (0, 0) if model is None else (model.n_judged, model.mistakes)

    def _lines_of(self, predicted: np.ndarray) -> bytes:
        assert self.learner.model is not None
        # The line of code -1, before any class is known, is empty.
        lines = [*(f"{label_text(label)}\n" for label in self.learner.model.classes.tolist()), "\n"]
        return "".join([lines[code] for code in predicted.tolist()]).encode()

    def _count_bad(self, place: Place) -> None:
        if not self.status.passes:
            self.status.bad = place.bad

    def _save(self, place: Place) -> None:
        if self.checkpoint is None:
            return
        assert self.learner.model is not None
        self._count_bad(place)
        lengths = {role: file.length() for role, file in self._side_files.items()}
        if "bad_lines" in lengths and not self.status.passes:
            lengths["bad_lines"] = place.bad_bytes  # the file has those of the whole block already
        model_file.save(
            self.learner.model,
            self.checkpoint,
            more={
                "place": place._asdict(),
                "status": asdict(self.status),
                "labels": self.stream.labels.names,
                "format": self.stream.options.format,
                "options": self.options,
                "data": self.data,
                "asides": lengths,
            },
        )
