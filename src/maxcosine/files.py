"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def writing(path: str | Path) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of `path` at the end, on disk and in one moment.

    If anything goes wrong before that, `path` stays as it was and nothing is left behind. A link stays, and
    the file that it leads to is written. A device or a pipe is no file to be replaced: it is written to.
    """
    path = Path(path)
    refuse_folder(path)
    if is_special(path):
        with open(path, "wb") as special:
            yield special
        return
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}.part")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def user_cache() -> Path:
    """The user's folder for what can be had again."""
    if own := os.environ.get("MAXCOSINE_CACHE"):
        return Path(own).expanduser()
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # A relative path there is to be ignored, says the XDG specification.
    return (shared if shared.is_absolute() else Path.home() / ".cache") / "maxcosine"


def is_special(path: Path) -> bool:
    """Whether it is there and neither a file nor a folder: a device, a pipe, a socket."""
    return path.exists() and not path.is_file() and not path.is_dir()


def refuse_folder(path: Path) -> None:
    """A folder cannot be written to."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")


def write(path: str | Path, content: bytes | str) -> None:
    """Write a whole file, text in UTF-8."""
    with writing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
