"""Training on the workers of a cluster, for ``maxcosine train --on``."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from maxcosine.cli.merge import How
from maxcosine.cli.options import command_line
from maxcosine.record import Record


class Cluster(Record):
    """Where many workers learn, and how what they learnt becomes one model."""

    on: Annotated[
        str | None,
        typer.Option(
            metavar="CLUSTER",
            help="Learn on a cluster: dask://HOST:PORT, dask-local:N for N processes here, spark for the "
            "configured one, or spark://HOST:PORT. Passes are rounds: after each, shards are merged.",
        ),
    ] = None
    shards: Annotated[
        int | None, typer.Option(min=1, help="With --on: how many; by default, one for 128 MB of text.")
    ] = None
    how: Annotated[
        How, typer.Option(help="With --on: merge for the largest bound, or to the plain mean.")
    ] = How.certified


def refuse_with_cluster(given: Mapping[str, Any]) -> None:
    """Workers learn shards at the same time: there is no one place in the data, and no one order."""
    for name, value in given.items():
        if value and name != "model":
            raise ValueError(f"--{name} is for one machine; leave it out, or leave out --on")


def train_on(
    cluster: Cluster,
    data: Sequence[str],
    path: Path,
    learner: dict[str, Any],
    rounds: int,
    options: dict[str, Any],
) -> tuple[Any, dict[str, Any]]:
    """Learn files on a cluster, and write the model; returns it, and what `train` tells of it.

    `learner` are parameters of `OnlineClassifier`, `options` are how the files are read.
    """
    from maxcosine import OnlineClassifier, model_file
    from maxcosine.distributed import train_files
    from maxcosine.stream.source import described, expand
    from maxcosine.stream.training import Status, outcome_of, provenance_of

    assert cluster.on is not None
    begun = time.perf_counter()
    merging = {"how": cluster.how.value, "rounds": rounds, "n_shards": cluster.shards}
    estimator = OnlineClassifier(**learner, dtype=options["dtype"])
    estimator = train_files(data, estimator, cluster.on, **merging, **options)
    seconds = time.perf_counter() - begun
    first, model = estimator.rounds_[0], estimator._model
    examples = sum(tally.examples for tally in estimator.rounds_)
    status = Status(rounds, examples, first.examples, first.mistakes, first.bad)
    inputs = described(expand(data))
    told = {**options, **learner, "on": cluster.on, **merging}
    provenance = provenance_of(status, inputs, told, command_line(), seconds)
    model_file.save(model, path, provenance=provenance)
    read_bytes = rounds * sum(one["bytes"] or 0 for one in inputs)
    return model, outcome_of(model, status, seconds, first_bad=first.first_bad, read_bytes=read_bytes)
