"""What an experiment has finished so far, on disk, so that it can go on after an interruption.

A text file beside the results, `PATH.partial`: first a line that says which experiment it is, then a line of
JSON for each unit. A line that was cut short counts as not written.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any

from maxcosine import files
from maxcosine.experiments.results import BadResults


class Journal:
    """The units of one experiment; `identity` is what has to be the same for them to be of use."""

    def __init__(self, results_path: str | Path, identity: dict[str, Any]) -> None:
        results_path = Path(results_path)
        files.refuse_folder(results_path)
        self.path = results_path.with_name(results_path.name + ".partial")
        self.identity = identity
        self._file: Any = None

    def read(self) -> list[dict[str, Any]]:
        """The units that are finished; none if there is no journal. One of another experiment is an error."""
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        except FileNotFoundError:
            return []
        except UnicodeDecodeError as error:
            raise BadResults(f"{self.path} is not a journal of an experiment: {error}; remove it") from None
        found = [_parsed(line) for line in lines]
        if not found or found[0] is None or "identity" not in found[0]:
            raise BadResults(
                f"{self.path} is not a journal of an experiment; remove it, or leave out --resume"
            )
        check_same(found[0]["identity"], self.identity, str(self.path))
        return [unit for unit in found[1:] if unit is not None]

    def start(self, units: list[dict[str, Any]]) -> None:
        """Begin anew with these units."""
        lines = [{"identity": self.identity}, *units]
        files.write(self.path, "".join(json.dumps(line) + "\n" for line in lines))
        self._file = open(self.path, "a", encoding="utf-8")  # noqa: SIM115, closed by __exit__

    def append(self, unit: dict[str, Any]) -> None:
        """Write down that a unit is finished."""
        self._file.write(json.dumps(unit) + "\n")
        self._file.flush()

    def remove(self) -> None:
        """The results are written: the journal is of no more use."""
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            try:
                file.flush()
                os.fsync(file.fileno())
            finally:
                file.close()


def check_same(there: dict[str, Any], here: dict[str, Any], where: str) -> None:
    """Refuse to go on with what another experiment found, and name the differences."""
    different = [
        f"{name} was {there.get(name)!r} and is {here.get(name)!r}"
        for name in sorted({*there, *here})
        if there.get(name) != here.get(name)
    ]
    if different:
        raise BadResults(
            f"{where} is of another experiment: {'; '.join(different)}. Give the same options to go on, "
            "leave out --resume to begin anew, or name another file by --json"
        )


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line) if line.endswith("\n") else None
    except json.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None
