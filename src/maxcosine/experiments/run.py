"""Run an experiment from beginning to end, or from where it was interrupted, and write its results."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maxcosine.experiments.journal import Journal, check_same
from maxcosine.experiments.protocol import Laboratory, Protocol
from maxcosine.experiments.results import BadResults, Results, Run, mean_curves
from maxcosine.experiments.surroundings import processor, versions

if TYPE_CHECKING:
    from maxcosine.experiments.datasets import Dataset

OnUnit = Callable[[dict[str, Any]], None]


def run(
    data: Dataset,
    protocol: Protocol,
    path: str | Path,
    *,
    jobs: int | None = None,
    resume: bool = False,
    command: str = "",
    on_unit: OnUnit = lambda unit: None,
) -> Results:
    """All runs of the protocol on a data set, written to `path`.

    Parameters
    ----------
    data : as `datasets.load` gives it
    protocol : what to run
    path : the results file; it stays as it was until everything is finished, and what is finished by then
        is in a journal beside it
    jobs : how many units at a time; as many as there are processors, by default. The counts do not
        depend on it
    resume : go on from the journal, if there is one
    command : what to write down as the way to find the same again
    on_unit : called with each unit that is finished, those of the journal included
    """
    started, begun = datetime.now(UTC), time.perf_counter()
    laboratory = Laboratory(data, protocol)
    results = Results(
        dataset={
            "name": data.name,
            "title": data.title,
            "train": laboratory.bucket_size * protocol.buckets,
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
            "bucket_size": laboratory.bucket_size,
            "seed": protocol.seed,
        },
        versions=versions(),
        command=command,
        started=started.isoformat(timespec="seconds"),
    )
    jobs = jobs or os.cpu_count() or 1
    results.machine = {"processor": processor(), "processors": os.cpu_count(), "jobs": jobs}
    identity = {
        "data": data.sha256,
        "version": results.versions["maxcosine"],
        **results.protocol,
    }
    if resume and (finished := _finished(path, identity)):
        return finished
    with Journal(path, identity) as journal:
        done = {(unit["label"], unit["permutation"]): unit for unit in (journal.read() if resume else [])}
        journal.start(list(done.values()))
        for unit in done.values():
            on_unit(unit)
        left = [unit for unit in laboratory.units if unit not in done]
        with closing(laboratory.run(left, jobs)) as finished_units:
            for unit in finished_units:
                journal.append(unit)
                done[unit["label"], unit["permutation"]] = unit
                on_unit(unit)
        units = [done[unit] for unit in sorted(done)]
        results.runs = [Run(**one) for unit in units for one in unit["runs"]]
        results.curves = mean_curves(units, laboratory.examples)
        results.seconds = time.perf_counter() - begun
        results.save(path)
    journal.remove()
    return results


def _finished(path: str | Path, identity: dict[str, Any]) -> Results | None:
    """The results at `path`, if there is no journal of a later run and they are of this experiment."""
    if not Path(path).exists() or Journal(path, identity).path.exists():
        return None
    results = Results.load(path)
    there = {
        "data": results.dataset["sha256"],
        "version": results.versions.get("maxcosine"),
        **results.protocol,
    }
    check_same(there, identity, str(path))
    if not results.runs:
        raise BadResults(f"{path} holds no runs; leave out --resume to begin anew")
    return results
