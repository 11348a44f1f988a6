"""Run an experiment, or resume an interrupted one, and write its results."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from maxcosine.experiments import partial_results
from maxcosine.experiments.environment import processor, versions
from maxcosine.experiments.partial_results import Identity, check_same, partial_path
from maxcosine.experiments.protocol import Experiment, Protocol
from maxcosine.experiments.results import Results, Run, Unit, mean_curves

if TYPE_CHECKING:
    from maxcosine.experiments.datasets import Dataset


def run(
    data: Dataset,
    protocol: Protocol,
    path: str | Path,
    *,
    jobs: int | None = None,
    resume: bool = False,
    command: str = "",
    on_unit: Callable[[Unit], object] = lambda unit: None,
) -> Results:
    """Run a protocol on a data set, and write the results to `path`.

    Parameters
    ----------
    data : a data set, for example from `datasets.load`
    protocol : what to run
    path : the results file. It is written when everything is finished; until then, finished units are in
        `PATH.partial`
    jobs : the number of threads; all processors by default. The counts do not depend on it
    resume : whether to reuse the finished units in `PATH.partial`
    command : the command that repeats the experiment, for the results file
    on_unit : called with each finished unit, including those that are reused
    """
    start = time.perf_counter()
    experiment = Experiment(data, protocol)
    jobs = jobs or os.cpu_count() or 1
    results = _new_results(experiment, command, jobs)
    identity = _identity(results)
    if resume and (finished := _load_finished(path, identity)):
        return finished
    partial = partial_path(path)
    old = partial_results.read_units(partial, identity) if resume else []
    done = {(unit["label"], unit["permutation"]): unit for unit in old}
    partial_results.write_units(partial, identity, done.values())
    for unit in done.values():
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
            "test": len(data.X_test),
            "features": data.X_test.shape[1],
            "labels": list(data.labels),
            "sha256": data.sha256,
            "source": data.source,
        },
        protocol={
            "rules": [learner.name for learner in protocol.learners],
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


def _identity(results: Results) -> Identity:
    """Return what must be the same for finished units to be reused."""
    version = results.versions.get("maxcosine")
    return {"data": results.dataset["sha256"], "version": version, **results.protocol}


def _load_finished(path: str | Path, identity: Identity) -> Results | None:
    """Load the results at `path`, if they are complete and of this experiment."""
    if not Path(path).exists() or partial_path(path).exists():
        return None
    results = Results.load(path)
    check_same(_identity(results), identity, path)
    return results
