"""Run an experiment, or resume an interrupted one, and write its results.

Finished units are kept in `PATH.partial` beside the results: its first line identifies the experiment, and
each further line is a unit as JSON.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from maxcosine import files
from maxcosine.experiments.datasets import Dataset
from maxcosine.experiments.environment import processor, versions
from maxcosine.experiments.protocol import Experiment, Protocol
from maxcosine.experiments.results import BadResults, Results, Run, Unit, mean_curves


def run(
    data: Dataset,
    protocol: Protocol,
    path: str | Path | None = None,
    *,
    jobs: int | None = None,
    resume: bool = False,
    command: str = "",
    on_unit: Callable[[Unit], object] = lambda unit: None,
) -> Results:
    """Run a protocol on a data set; return the results, and write them to `path`, if one is given.

    Parameters
    ----------
    data : a data set, for example from `datasets.load`
    protocol : what to run
    path : the results file, written when everything is finished
    jobs : the number of threads; all processors by default. The counts do not depend on it
    resume : whether to reuse the finished units in `PATH.partial`
    command : the command that repeats the experiment, for the results file
    on_unit : called with each finished unit, including those that are reused
    """
    if path is None:
        with tempfile.TemporaryDirectory() as scratch:
            return run(data, protocol, Path(scratch) / "results.json", jobs=jobs, command=command, on_unit=on_unit)
    start = time.perf_counter()
    experiment = Experiment(data, protocol)
    jobs = jobs or os.cpu_count() or 1
    results = _new_results(experiment, command, jobs)
    identity = _identity(results)
    path = Path(path)
    files.refuse_folder(path)
    partial = path.with_name(f"{path.name}.partial")
    if resume and path.exists() and not partial.exists():
        finished = Results.load(path)
        _check_same(_identity(finished), identity, path)
        return finished
    old = _read_units(partial, identity) if resume and partial.exists() else []
    done = {(unit["label"], unit["permutation"]): unit for unit in old}
    files.write(partial, "".join(json.dumps(one) + "\n" for one in ({"identity": identity}, *old)))
    for unit in old:
        on_unit(unit)
    left = [unit for unit in experiment.units if unit not in done]
    with open(partial, "a", encoding="utf-8") as file, closing(experiment.run(left, jobs)) as units:
        for unit in units:
            file.write(json.dumps(unit) + "\n")
            file.flush()
            done[unit["label"], unit["permutation"]] = unit
            on_unit(unit)
    ordered = [done[key] for key in sorted(done)]
    results.runs = [Run(**one) for unit in ordered for one in unit["runs"]]
    results.curves = mean_curves(ordered, experiment.examples)
    results.seconds = time.perf_counter() - start
    results.save(path)
    partial.unlink()
    return results


def _new_results(experiment: Experiment, command: str, jobs: int) -> Results:
    """Return results without any runs yet."""
    data, protocol = experiment.data, experiment.protocol
    return Results(
        dataset={
            "name": data.name,
            "title": data.title,
            "train": experiment.bucket_size * protocol.buckets,
            "test": len(data.y_test),
            "features": data.X_test.shape[1],
            "labels": list(data.labels),
            "sha256": data.sha256,
            "source": data.source,
        },
        protocol={
            "rules": [learner.name for learner in protocol.learners],
            "params": {one.rule.name: one.rule.make_params()._asdict() for one in protocol.learners if one.rule.params},
            "gains": {one.rule.name: one.rule.gain for one in protocol.learners},
            "permutations": protocol.permutations,
            "buckets": protocol.buckets,
            "bucket_size": experiment.bucket_size,
            "seed": protocol.seed,
        },
        versions=versions(),
        machine={"processor": processor(), "processors": os.cpu_count(), "jobs": jobs},
        command=command,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _identity(results: Results) -> dict[str, Any]:
    """Return what must be the same for finished units to be reused."""
    counted = {name: value for name, value in results.protocol.items() if name != "gains"}  # theorems change no count
    return {"data": results.dataset["sha256"], "version": results.versions.get("maxcosine"), **counted}


def _check_same(found: dict[str, Any], wanted: dict[str, Any], path: Path) -> None:
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


def _read_units(partial: Path, identity: dict[str, Any]) -> list[Unit]:
    """Return the finished units of an interrupted run; its last line may be incomplete."""
    try:
        *lines, _ = partial.read_text(encoding="utf-8").split("\n")
        header, *units = map(json.loads, lines)
        found = header["identity"]
    except (ValueError, KeyError, TypeError):
        raise BadResults(
            f"{partial} holds no partial results; remove it, or leave out --resume to start again"
        ) from None
    _check_same(found, identity, partial)
    return units
