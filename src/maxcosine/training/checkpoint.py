"""Checkpoints: model files that also say where in the data they are, and the files written beside them."""

from __future__ import annotations

import glob
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from maxcosine import files

if sys.platform != "win32":
    import fcntl


class BadCheckpoint(ValueError):
    """A checkpoint of another training, or one that cannot be written."""


class SideFile:
    """A file that is written during training, such as predictions; it appears when the training is finished.

    Until then it is beside the checkpoint, named after its role, and a resumed training cuts it to the length
    that the checkpoint knows.
    """

    def __init__(self, path: Path, checkpoint: Path | None, role: str) -> None:
        files.refuse_folder(path)
        self._path, self._checkpoint = path, checkpoint
        self._beside = None if checkpoint is None else checkpoint.with_name(f"{checkpoint.name}.{role}")
        self._file: Any = None

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Open the file for a training; an error leaves only what the checkpoint needs."""
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
        """Append bytes."""
        self._file.write(content)

    def length(self) -> int:
        """Return the length on disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return os.fstat(self._file.fileno()).st_size

    def cut(self, length: int) -> None:
        """Remove everything beyond a length."""
        if self.length() < length:
            raise BadCheckpoint(
                f"{self._beside} is shorter than the checkpoint {self._checkpoint} says; "
                "leave out --resume to start again"
            )
        self._file.truncate(length)


@contextmanager
def locked(checkpoint: Path | None) -> Iterator[None]:
    """Keep other trainings from writing the same checkpoint; Windows has no such lock."""
    if checkpoint is None or sys.platform == "win32":
        yield
        return
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    path = checkpoint.with_name(checkpoint.name + ".lock")
    try:
        with open(path, "wb") as file:
            if not _holds_lock(file, path):
                raise BadCheckpoint(
                    f"another training writes the checkpoint {checkpoint}; wait for its end, or name another file"
                )
            clear_partial_files(checkpoint)
            yield
    finally:
        # Opened again: Ctrl-C may have come while it was opened first.
        with suppress(FileNotFoundError), open(path, "rb") as file:
            if _holds_lock(file, path):
                path.unlink()


def _holds_lock(file: IO[bytes], path: Path) -> bool:
    """Lock a file unless another process has; return whether this process has the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    # The last owner may have removed the file after this process opened it.
    return path.exists() and os.path.samestat(os.stat(path), os.fstat(file.fileno()))


def clear_partial_files(path: Path) -> None:
    """Remove what a process that was killed while it wrote a file has left."""
    path = Path(os.path.realpath(path))  # a link stays, and its target is written
    for partial in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        partial.unlink(missing_ok=True)


def differences(stored: dict[str, Any], data: list[dict[str, Any]], options: dict[str, Any]) -> list[str]:
    """Say how the data and options of a checkpoint differ from those of a training."""
    then, before = stored["data"], stored["options"]
    options = json.loads(json.dumps(options))  # as checkpoints have them: tuples are lists
    if len(then) != len(data):
        found = [f"there were {len(then)} inputs and are {len(data)}"]
    else:
        found = [
            f"input {k} was {_describe(a)} and is {_describe(b, a)}"
            for k, (a, b) in enumerate(zip(then, data, strict=True), 1)
            if a != b
        ]
    return found + [
        f"{name} was {before.get(name)!r} and is {options.get(name)!r}"
        for name in sorted({*before, *options})
        if before.get(name) != options.get(name)
    ]


def _describe(data: dict[str, Any], other: dict[str, Any] | None = None) -> str:
    size = "" if data["bytes"] is None else f" of {data['bytes']:,} bytes"
    same = other is not None and (data["name"], data["bytes"]) == (other["name"], other["bytes"])
    return f"{data['name']}{size}" + (" with another content" if same else "")
