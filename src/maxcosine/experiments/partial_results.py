"""The finished units of an experiment on disk, so that it can resume after an interruption.

The file `PATH.partial` beside the results: its first line identifies the experiment, and each further line is
a unit as JSON. An incomplete line is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from maxcosine import files
from maxcosine.experiments.results import BadResults, Unit

Identity = dict[str, Any]
"""What must be the same for units to be reused: the data, the version and the protocol."""


def partial_path(results_path: str | Path) -> Path:
    """Return the path of the partial results."""
    path = Path(results_path)
    files.refuse_folder(path)
    return path.with_name(path.name + ".partial")


def read_units(path: Path, identity: Identity) -> list[Unit]:
    """Return the finished units; raise `BadResults` if they are from a different experiment."""
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    header, *units = [_parse(line) for line in lines] or [None]
    if header is None or "identity" not in header:
        raise BadResults(f"{path} holds no partial results; remove it, or leave out --resume to start again")
    check_same(header["identity"], identity, path)
    return [unit for unit in units if unit is not None]


def write_units(path: Path, identity: Identity, units: Iterable[Unit]) -> None:
    """Replace the file by one with these units."""
    files.write(path, "".join(json.dumps(one) + "\n" for one in ({"identity": identity}, *units)))


def _parse(line: bytes) -> Any:
    """Parse a line; None if it is incomplete or not a JSON object."""
    try:
        found = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def check_same(found: Identity, wanted: Identity, path: str | Path) -> None:
    """Refuse the results of a different experiment, and name the differences."""
    differences = [
        f"{name} was {found.get(name)!r} and is {wanted.get(name)!r}"
        for name in sorted({*found, *wanted})
        if found.get(name) != wanted.get(name)
    ]
    if differences:
        raise BadResults(
            f"{path} is from a different experiment: {'; '.join(differences)}. Give the same options to "
            "resume it, leave out --resume to start again, or name another file with --json"
        )
