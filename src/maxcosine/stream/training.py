"""From files to a model: passes over a stream, checkpoints, and going on after an interruption.

A checkpoint is a model file that also says where in the data it stands, and how. Learning from there gives
the same model, to the bit, as if nothing had happened.
"""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from maxcosine import __version__, files, model_file
from maxcosine.engine.heads import LIMITS
from maxcosine.model import Model
from maxcosine.record import Record
from maxcosine.stream.chunks import Stream
from maxcosine.stream.learner import StreamLearner, plain, text_of
from maxcosine.stream.rows import Rows
from maxcosine.stream.source import STANDARD_INPUT, Place, StreamError, described


class BadCheckpoint(ValueError):
    """A checkpoint of another training, or one that cannot be written."""


class Status(Record):
    """How far a training is."""

    passes: int = 0
    """Passes finished."""
    examples: int = 0
    """Of all passes."""
    judged: int = 0
    """Of the first pass: each was predicted before anything was learnt from it."""
    wrong: int = 0
    """Of these."""
    bad: int = 0
    """Lines of the data that were left out."""


class Aside:
    """A file that is written along the way, and in its place when the training is finished.

    If there is a checkpoint, all of it lies beside that, too, and is cut to what the checkpoint knows of.
    """

    def __init__(self, path: Path, checkpoint: Path | None, role: str) -> None:
        files.refuse_folder(path)
        self._path, self._checkpoint = path, checkpoint
        self._beside = None if checkpoint is None else checkpoint.with_name(f"{checkpoint.name}.{role}")
        self._file: Any = None

    @contextmanager
    def opened(self) -> Iterator[None]:
        if self._beside is None or self._checkpoint is None:
            with files.writing(self._path) as self._file:
                yield
            return
        try:
            with open(self._beside, "a+b") as self._file:
                yield
                self._file.seek(0)
                with files.writing(self._path) as whole:
                    shutil.copyfileobj(self._file, whole)
        except BaseException:
            if not self._checkpoint.exists():
                self._beside.unlink(missing_ok=True)
            raise

    def write(self, content: bytes) -> None:
        self._file.write(content)

    def length(self) -> int:
        """How long it is, on disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return os.fstat(self._file.fileno()).st_size

    def cut(self, length: int) -> None:
        """Take away what is beyond this length."""
        if self.length() < length:
            raise BadCheckpoint(
                f"{self._beside} is shorter than the checkpoint {self._checkpoint} says; "
                "leave out --resume to begin anew"
            )
        self._file.truncate(length)


OnRows = Callable[["Training", np.ndarray, np.ndarray], None]


class Training:
    """Learns from a stream, several times if asked, and writes down where it is.

    `options` are what has to be the same for a checkpoint to be of use. `on_rows` is told the classes of
    rows and what was predicted of them.
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
        asides: dict[str, Aside] | None = None,
        on_rows: OnRows = lambda training, codes, predicted: None,
    ) -> None:
        self._new_stream = new_stream
        self.learner = learner
        self.passes = passes
        self.checkpoint, self._every = checkpoint, every
        self.options = options or {}
        self._on_rows = on_rows
        self.status = Status()
        self._start, self._labels, self._format = Place(), list[str](), ""
        self.resumed_at = 0
        """Examples that were learnt before this run."""
        self.read_bytes = 0
        """In the passes of this run that are finished."""
        self.asides = asides or {}
        """By their role: "bad_lines", and "predictions", of each example before it was learnt."""
        self._lengths: dict[str, int] = {}
        self.stream = new_stream(Place())
        if passes > 1 and STANDARD_INPUT in self.stream.source.names:
            raise StreamError("standard input can be read once only; write it to a file for several passes")
        self.data = described(self.stream.source.names)

    @property
    def model(self) -> Model:
        if self.learner.model is None:
            raise no_example(self.stream)
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
        different = [*_other_data(there["data"], self.data), *_other_options(there["options"], self.options)]
        if different:
            raise BadCheckpoint(
                f"{self.checkpoint} is of another training: {'; '.join(different)}. Give the same data and "
                "options, or leave out --resume to begin anew"
            )
        self._lengths = there["asides"]
        self.learner.model = loaded.model
        self.status = Status(**there["status"])
        self.resumed_at = self.status.examples
        self._start, self._labels, self._format = Place(**there["place"]), there["labels"], there["format"]
        return True

    def run(self) -> Model:
        """Learn to the end."""
        with self._locked(), ExitStack() as stack:
            for role, aside in self.asides.items():
                stack.enter_context(aside.opened())
                aside.cut(self._lengths.get(role, 0))
            for number in range(self.status.passes, self.passes):
                self._open_stream()
                for rows in self.stream.rows():
                    self._learn(rows)
                    del rows  # before the next ones come
                self._count_bad(self.stream.place)
                self.read_bytes += self.stream.source.read_bytes - self.stream.source.skipped_bytes
                self.status.passes = number + 1
                self._start, self._labels = Place(), self.stream.labels
                if self.status.passes < self.passes and self.learner.model is not None:
                    self._save(Place())
            refuse_without_features(self.model, self.stream)
            return self.model

    def _open_stream(self) -> None:
        self.stream = self._new_stream(self._start)
        self.stream.know(self._labels)
        self.stream.format = self._format or self.stream.format
        if not self.status.passes:  # in later passes they are known
            self.stream.bad_lines = self.asides.get("bad_lines")

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
            if not self.status.passes:
                self.status.judged += len(part)
                self.status.wrong += int(np.count_nonzero(predicted != codes))
                if "predictions" in self.asides:
                    self.asides["predictions"].write(self._lines(predicted))
            self._on_rows(self, codes, predicted)
            if self.checkpoint and self.status.examples % self._every == 0:
                self._save(part.ends[len(part) - 1])

    def _lines(self, predicted: np.ndarray) -> bytes:
        labels = [f"{text_of(label)}\n" for label in self.model.classes.tolist()]
        return "".join([labels[code] for code in predicted.tolist()]).encode()

    def _count_bad(self, place: Place) -> None:
        if not self.status.passes:
            self.status.bad = place.bad

    def _save(self, place: Place) -> None:
        if self.checkpoint is None:
            return
        self._count_bad(place)
        lengths = {role: aside.length() for role, aside in self.asides.items()}
        if "bad_lines" in lengths and not self.status.passes:
            lengths["bad_lines"] = place.bad_bytes  # those of the whole block are written already
        model_file.save(
            self.model,
            self.checkpoint,
            more={
                "place": place._asdict(),
                "status": self.status.as_dict(),
                "labels": self.stream.labels,
                "format": self.stream.format,
                "options": self.options,
                "data": self.data,
                "asides": lengths,
            },
        )

    def provenance(self, command: str, seconds: float) -> dict[str, Any]:
        """What the model remembers of how it came about."""
        return provenance_of(self.status, self.data, self.options, command, seconds)

    def as_dict(self, seconds: float) -> dict[str, Any]:
        """What it came to, for JSON."""
        return outcome_of(
            self.model,
            self.status,
            seconds,
            first_bad=self.stream.first_bad,
            read_bytes=self.read_bytes,
            resumed_at=self.resumed_at,
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
                # Whoever had the lock may have taken the file away between the two lines above.
                held = path.exists() and os.path.samestat(os.stat(path), os.fstat(file.fileno()))
            except BlockingIOError:
                held = False
            if not held:
                raise BadCheckpoint(
                    f"another training writes the checkpoint {self.checkpoint}; wait for its end, "
                    "or name another file"
                )
            try:
                clear_remains(self.checkpoint)
                yield
            finally:
                path.unlink(missing_ok=True)


def streams(inputs: Sequence[str], *, dtype: str, **options: Any) -> Callable[[Place], Stream]:
    """Streams of the same data from a place on, for models whose weights are of this type."""
    limits = LIMITS[np.dtype(dtype)]

    def new_stream(start: Place) -> Stream:
        return Stream(
            inputs,
            dtype=dtype,
            labelled=True,
            limits=(limits.low_sq_x, limits.high_sq_x),
            start=start,
            **options,
        )

    return new_stream


def provenance_of(
    status: Status, data: list[dict[str, Any]], options: dict[str, Any], command: str, seconds: float
) -> dict[str, Any]:
    """What a model remembers of how it came about."""
    return {
        "command": command,
        "data": data,
        "versions": {"maxcosine": __version__},
        "examples": status.examples,
        "progressive_mistakes": status.wrong,
        "bad_lines": status.bad,
        "passes": status.passes,
        "seconds": seconds,
        "options": options,
    }


def outcome_of(
    model: Model,
    status: Status,
    seconds: float,
    *,
    first_bad: Sequence[str],
    read_bytes: int,
    resumed_at: int = 0,
) -> dict[str, Any]:
    """What a training came to, for JSON."""
    certificate = model.certificate()
    return {
        "examples": status.examples,
        "resumed_at": resumed_at,
        "classes": [text_of(label) for label in model.classes.tolist()],
        "features": model.features.n_features,
        "rule": model.rule.name,
        "progressive_error": status.wrong / max(1, status.judged),
        "bad_lines": status.bad,
        "first_bad_lines": list(first_bad),
        "updates": plain(certificate.updates),
        "bound": plain(certificate.bound),
        "margin_ceiling": plain(certificate.margin_ceiling),
        "seconds": seconds,
        "examples_per_second": (status.examples - resumed_at) / seconds,
        "megabytes_per_second": read_bytes / seconds / 1e6 if read_bytes else None,
    }


def no_example(stream: Stream) -> StreamError:
    """What there is to say when a stream has ended and nothing came."""
    return StreamError(f"there is no example in {', '.join(stream.source.names)}; is it the right file?")


def refuse_without_features(model: Model, stream: Stream) -> None:
    """Refuse data of which nothing was learnt but labels: text of another kind looks like that."""
    if not model.features.n_features:
        raise StreamError(
            f"no example in {', '.join(stream.source.names)} has a feature; is it text in another format? "
            "svmlight's is 'label id:value ...', Vowpal Wabbit's 'label |namespace feature:value ...'"
        )


def clear_remains(path: Path) -> None:
    """Take away what a process that was killed has left while it wrote a file."""
    path = Path(os.path.realpath(path))  # a link stays, and the file that it leads to is written
    for remains in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        remains.unlink(missing_ok=True)


def _other_data(then: list[dict[str, Any]], now: list[dict[str, Any]]) -> list[str]:
    """In what the data of a checkpoint were others."""
    if len(then) != len(now):
        return [f"there were {len(then)} inputs and are {len(now)}"]
    return [
        f"input {k} was {_shown(a)} and is {_shown(b, a)}"
        for k, (a, b) in enumerate(zip(then, now, strict=True), 1)
        if a != b
    ]


def _shown(data: dict[str, Any], other: dict[str, Any] | None = None) -> str:
    size = "" if data["bytes"] is None else f" of {data['bytes']:,} bytes"
    same = other is not None and (data["name"], data["bytes"]) == (other["name"], other["bytes"])
    return f"{data['name']}{size}" + (" with another content" if same else "")


def _other_options(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """In what the options of a checkpoint were others."""
    return [
        f"{name} was {then.get(name)!r} and is {now.get(name)!r}"
        for name in sorted({*then, *now})
        if then.get(name) != now.get(name)
    ]
