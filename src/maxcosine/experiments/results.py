"""The results of an experiment: every count, and everything needed to repeat the experiment.

A results file is one JSON object; `docs/results.md` is generated from such files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from maxcosine import files
from maxcosine.certificate_text import rounded_down, rounded_up

FORMAT = "maxcosine experiment 1"
AVERAGED = "avg_"
"""Prefix of the name of an averaged rule."""
CURVES = ("mistakes", "bound", "margin_ceiling", "cosine")
"""Recorded while a rule learns: mistakes so far, bound, ceiling, and cosine to the final hypothesis."""


class BadResults(ValueError):
    """A file holds no results, or those of a different experiment."""


@dataclass(frozen=True)
class Run:
    """One rule learns one label against the rest, in one order of the training examples."""

    rule: str
    label: int
    permutation: int
    test_mistakes: int
    train_mistakes: int
    """Mistakes made while learning: each example is predicted, then learnt."""
    updates: int
    bound: float
    """Lambda / norm(w) of the hypothesis that is tested."""
    margin_ceiling: float | None
    """No hyperplane through the origin separates the training examples with a larger margin, if not None."""
    seconds: float
    """An equal share of the time, because rules learn side by side."""


Unit = dict[str, Any]
"""All runs with one label and one permutation, as JSON has them: label, permutation, runs, and curves, which
has for each rule each of CURVES after every bucket."""


@dataclass
class Results:
    """All runs of an experiment, ordered by label, permutation and rule."""

    dataset: dict[str, Any]
    """name, title, train, test, features, labels (names), sha256, source."""
    protocol: dict[str, Any]
    """rules, params (of each rule that has any), gains (of all rules), permutations, buckets, bucket_size, seed;
    focus, the rule that the others are compared with, if it is not the usual one."""
    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    command: str = ""
    started: str = ""
    seconds: float = 0.0
    curves: dict[str, Any] = field(default_factory=dict)
    """examples: the number learnt after each bucket; rules: by rule and label, the mean of each of CURVES."""
    runs: list[Run] = field(default_factory=list)

    @property
    def rules(self) -> list[str]:
        return list(self.protocol["rules"])

    @property
    def gains(self) -> dict[str, float | None] | None:
        """The `gain` of each rule of `rules`; None if the file is from before gains were recorded."""
        found = self.protocol.get("gains")
        return found and {rule: found[rule.removeprefix(AVERAGED)] for rule in self.rules}

    @property
    def labels(self) -> list[str]:
        return list(self.dataset["labels"])

    @property
    def permutations(self) -> int:
        return int(self.protocol["permutations"])

    @property
    def title(self) -> str:
        """The title of the data set."""
        return str(self.dataset.get("title", self.dataset["name"]))

    def counts(self, name: str = "test_mistakes") -> dict[str, np.ndarray]:
        """Return one number of every run: for each rule an array of shape (labels, permutations)."""
        found = {rule: np.full((len(self.labels), self.permutations), np.nan) for rule in self.rules}
        for run in self.runs:
            found[run.rule][run.label, run.permutation] = getattr(run, name)
        return found

    def save(self, path: str | Path) -> None:
        """Write the results file in one step: a failure leaves the old file unchanged."""
        content = {"format": FORMAT, **asdict(self)}
        files.write(path, _to_json(content, depth=4) + "\n")  # four levels: a line for each run and curve

    @classmethod
    def load(cls, path: str | Path) -> Results:
        """Read a results file; raise `BadResults` if it is not one."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise BadResults(f"{path} is not a results file: {error}; give one that `reproduce` wrote") from None
        found = content.pop("format", None) if isinstance(content, dict) else type(content).__name__
        if found != FORMAT:
            raise BadResults(f"{path} is not a results file: format {found!r} instead of {FORMAT!r}")
        try:
            content["runs"] = [Run(**run) for run in content["runs"]]
            for name in ("name", "labels", "sha256"):
                content["dataset"][name]
            for name in ("rules", "permutations"):
                content["protocol"][name]
            return cls(**content)
        except (KeyError, TypeError) as error:
            raise BadResults(f"{path} is an incomplete results file: {error}; run the experiment again") from None


def mean_curves(units: Iterable[Unit], examples: list[int]) -> dict[str, Any]:
    """Average the curves of every rule and label over permutations; labels keep their order."""
    rules: dict[str, dict[str, Any]] = {}
    for unit in units:
        for rule, curves in unit["curves"].items():
            rules.setdefault(rule, {}).setdefault(str(unit["label"]), []).append(curves)
    for by_label in rules.values():
        for label, found in by_label.items():
            by_label[label] = {name: _mean(name, [one[name] for one in found]) for name in CURVES}
    return {"examples": examples, "rules": rules}


def rounded(name: str, value: float, digits: int) -> str:
    """Write a number of a curve: a bound is rounded down, a ceiling up, all else to the nearest decimal."""
    if name == "bound":
        return rounded_down(value, digits)
    return rounded_up(value, digits) if name == "margin_ceiling" else f"{value:.{digits}g}"


def _mean(name: str, curves: list[list[float | None]]) -> list[float | None]:
    """Average curves point by point, to six digits; a point that one of them lacks has no mean."""
    means = np.mean(np.array(curves, np.float64), axis=0)  # None becomes NaN
    return [None if np.isnan(value) else float(rounded(name, value, 6)) for value in means]


def _to_json(value: Any, depth: int) -> str:
    """Format JSON with a line for each item of dicts, and of lists of dicts, down to a depth."""
    if depth > 0 and isinstance(value, dict):
        parts = [f"{json.dumps(name)}: {_to_json(one, depth - 1)}" for name, one in value.items()]
        return "{\n" + ",\n".join(parts) + "\n}"
    if depth > 0 and isinstance(value, list) and isinstance(next(iter(value), None), dict):
        return "[\n" + ",\n".join(_to_json(one, 0) for one in value) + "\n]"
    return json.dumps(value, ensure_ascii=False)
