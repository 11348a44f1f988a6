"""What an experiment found: every single count, and what it takes to find them again.

A results file is one JSON object; `docs/results.md` is made from such files.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from maxcosine import files

FORMAT = "maxcosine experiment 1"
AVERAGED = "avg_"
"""What the name of a rule begins with whose hypotheses are averaged."""


class BadResults(ValueError):
    """A file that is no results file, or one of another experiment."""


@dataclass(frozen=True)
class Run:
    """One rule learns one label against the rest in one order of the training examples."""

    rule: str
    label: int
    permutation: int
    test_mistakes: int
    train_mistakes: int
    """Mistakes made while learning: predict, then learn."""
    updates: int
    bound: float
    """Lambda / norm(w) of the hypothesis that is tested."""
    margin_ceiling: float | None
    """No hyperplane through the origin separates the training examples with a larger margin; None if nothing
    is proven."""
    seconds: float
    """Its share of the time: rules that are compared learn side by side."""


CURVES = ("mistakes", "bound", "margin_ceiling", "cosine")
"""What is followed while a rule learns: mistakes so far, what is proven, cosine to the last hypothesis."""


@dataclass
class Results:
    """All runs of an experiment, in the order of labels, permutations and rules."""

    dataset: dict[str, Any]
    """name, title, train, test, features, labels (names), sha256, source."""
    protocol: dict[str, Any]
    """rules, permutations, buckets, bucket_size, seed."""
    runs: list[Run] = field(default_factory=list)
    curves: dict[str, Any] = field(default_factory=dict)
    """examples: how many had come; rules: for each rule and label, the mean of each of CURVES."""
    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    command: str = ""
    started: str = ""
    seconds: float = 0.0

    @property
    def rules(self) -> list[str]:
        return list(self.protocol["rules"])

    @property
    def labels(self) -> list[str]:
        return list(self.dataset["labels"])

    def counts(self, name: str = "test_mistakes") -> dict[str, np.ndarray]:
        """One number of every run: for each rule an array of shape (labels, permutations)."""
        shape = len(self.labels), self.protocol["permutations"]
        found = {rule: np.full(shape, np.nan) for rule in self.rules}
        for run in self.runs:
            found[run.rule][run.label, run.permutation] = getattr(run, name)
        return found

    def save(self, path: str | Path) -> None:
        """Write the results; the file is there whole or as it was."""
        content = {"format": FORMAT, **asdict(self)}
        content["runs"] = [asdict(run) for run in self.runs]
        files.write(path, _pretty(content))

    @classmethod
    def load(cls, path: str | Path) -> Results:
        """Read results; a file that holds none is a `BadResults`."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
            raise BadResults(
                f"{path} is not a results file: {error}; give one that `reproduce` wrote"
            ) from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            found = content.get("format") if isinstance(content, dict) else type(content).__name__
            raise BadResults(f"{path} is not a results file of the format {FORMAT!r}: found {found!r}")
        try:
            known = {f.name for f in fields(cls)}
            results = cls(**{name: value for name, value in content.items() if name in known})
            results.runs = [Run(**run) for run in content["runs"]]
            results._check()
        except (KeyError, TypeError) as error:
            raise BadResults(f"{path} lacks something that results have: {error}") from None
        return results

    def _check(self) -> None:
        for what, names in (
            ("dataset", ("name", "labels", "sha256")),
            ("protocol", ("rules", "permutations")),
        ):
            for name in names:
                getattr(self, what)[name]


def mean_curves(units: Iterable[dict[str, Any]], examples: list[int]) -> dict[str, Any]:
    """The means over permutations of the curves of units, each with its label and its rules' curves."""
    gathered: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for unit in units:
        for rule, curves in unit["curves"].items():
            gathered.setdefault(rule, {}).setdefault(unit["label"], []).append(curves)
    return {
        "examples": examples,
        "rules": {
            rule: {
                str(label): {name: _mean([one[name] for one in many]) for name in CURVES}
                for label, many in sorted(by_label.items())
            }
            for rule, by_label in gathered.items()
        },
    }


def _mean(curves: list[list[float | None]]) -> list[float | None]:
    """To six digits: curves are looked at, and counts are kept whole. What one lacks has no mean."""
    means = np.mean(np.array(curves, np.float64), axis=0)  # None becomes NaN
    return [None if np.isnan(value) else float(f"{value:.6g}") for value in means]


def _pretty(content: dict[str, Any]) -> str:
    """JSON with a line for each run, so that two files can be compared by eye and by diff."""
    runs = ",\n".join("  " + json.dumps(run) for run in content["runs"])
    curves = content["curves"]
    rules = ",\n".join(
        f"    {json.dumps(rule)}: {{\n"
        + ",\n".join(f"      {json.dumps(label)}: {json.dumps(found)}" for label, found in by_label.items())
        + "\n    }"
        for rule, by_label in curves.get("rules", {}).items()
    )
    parts = {
        name: json.dumps(value, ensure_ascii=False)
        for name, value in content.items()
        if name not in ("runs", "curves")
    }
    parts["curves"] = (
        f'{{"examples": {json.dumps(curves.get("examples", []))},\n  "rules": {{\n{rules}\n  }}}}'
    )
    parts["runs"] = f"[\n{runs}\n ]"
    return "{\n" + ",\n".join(f' "{name}": {value}' for name, value in parts.items()) + "\n}\n"


def finite(value: float) -> float | None:
    """JSON knows no infinity: a ceiling that nothing proves is null."""
    return value if math.isfinite(value) else None
