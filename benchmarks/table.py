"""Results of benchmarks: a table to read, and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass
class Result:
    """One measurement of maxcosine, beside one of another library or alone.

    Parameters
    ----------
    work : str
        What was done.
    ours, peer : float
        What it took, in `unit`; less is better.
    least : float, optional
        The smallest acceptable ratio peer / ours.
    aim : float, optional
        The ratio to hope for.
    most : float, optional
        The largest acceptable value of `ours`.
    error, peer_error : float, optional
        The share of wrong predictions on test examples, where speed is what is compared.
    detail : str, optional
        What else was measured.
    """

    work: str
    ours: float
    unit: str
    peer: float | None = None
    least: float | None = None
    aim: float | None = None
    most: float | None = None
    error: float | None = None
    peer_error: float | None = None
    detail: str = ""

    @property
    def ratio(self) -> float | None:
        return None if self.peer is None else self.peer / self.ours

    @property
    def target(self) -> str:
        wanted = [f">= {self.least:g}"] if self.least is not None else []
        wanted += [f"aim {self.aim:g}"] if self.aim is not None else []
        wanted += [f"<= {self.most:g} {self.unit}"] if self.most is not None else []
        return ", ".join(wanted)

    @property
    def reached(self) -> bool | None:
        """Whether the targets are reached; None without targets."""
        if self.least is None and self.most is None:
            return None
        fast_enough = self.least is None or (self.ratio or 0.0) >= self.least
        return fast_enough and (self.most is None or self.ours <= self.most)

    @property
    def errors(self) -> str:
        shown = ["" if error is None else f"{100 * error:.2f} %" for error in (self.error, self.peer_error)]
        return f"errors {' / '.join(shown)}" if any(shown) else ""

    def as_dict(self) -> dict[str, Any]:
        """Return all values, for JSON."""
        return {**asdict(self), "ratio": self.ratio, "target": self.target, "reached": self.reached}


@dataclass
class Section:
    """Results of one kind.

    Parameters
    ----------
    title : str
        What was measured.
    notes : sequence of str
        The data, the commands, and the peer with its version.
    results : list of Result
        The measurements.
    missing : sequence of str
        Why some measurements were not made.
    """

    title: str
    notes: Sequence[str]
    results: list[Result]
    missing: Sequence[str] = ()

    def show(self) -> None:
        """Print the section."""
        print(f"\n{self.title}")
        for note in self.notes:
            print(f"  {note}")
        _print_row("", "ours", "peer", "ratio", "target", "reached")
        for one in self.results:
            _print_row(
                one.work,
                f"{one.ours:.4g} {one.unit}",
                "" if one.peer is None else f"{one.peer:.4g} {one.unit}",
                "" if one.ratio is None else f"{one.ratio:.2f}",
                one.target,
                " ".join([{None: "", True: "yes", False: "NO"}[one.reached], one.errors, one.detail]),
            )
        for reason in self.missing:
            print(f"  not measured: {reason}")


def _print_row(work: str, ours: str, peer: str, ratio: str, target: str, reached: str) -> None:
    print(f"  {work:42}{ours:>12}{peer:>12}{ratio:>8}  {target:22}{reached}".rstrip())


def write_json(path: Path, name: str, environment: dict[str, Any], sections: Sequence[Section]) -> None:
    """Write sections under a name; what the file has under other names stays."""
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    found[name] = {
        "environment": environment,
        "sections": [{**vars(section), "results": [one.as_dict() for one in section.results]} for section in sections],
    }
    path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
