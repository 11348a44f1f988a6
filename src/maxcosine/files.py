"""Write files that are either complete or unchanged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def writing(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file for writing; it replaces `path` when the block ends.

    The content goes to a temporary file beside `path`, which is synced to disk and renamed at the end. If the
    block raises, `path` keeps its old content and the temporary file is removed. If `path` is a symbolic
    link, the link stays and its target is replaced. A device or a pipe is written to directly.
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


def write(path: str | Path, content: bytes | str) -> None:
    """Write a whole file; text is encoded as UTF-8."""
    with writing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def user_cache() -> Path:
    """Return the user's folder for files that can be downloaded or computed again."""
    if own := os.environ.get("MAXCOSINE_CACHE"):
        return Path(own).expanduser()
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification says to ignore a relative path.
    return (shared if shared.is_absolute() else Path.home() / ".cache") / "maxcosine"


def is_special(path: Path) -> bool:
    """Return whether `path` is a device, a pipe or a socket."""
    return path.exists() and not path.is_file() and not path.is_dir()


def refuse_folder(path: Path) -> None:
    """Raise an error if `path` is a folder."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
