"""Training on the workers of a cluster, for ``maxcosine train --on``."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxcosine.cli.merge import How
from maxcosine.cli.options import command_line
from maxcosine.cli.rules import file_of

if TYPE_CHECKING:
    from maxcosine.data import ReadOptions
    from maxcosine.training import OnePassSettings, Settings


@dataclass
class Cluster:
    """Where many workers learn, and how their models become one."""

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
    how: Annotated[How, typer.Option(help="With --on: merge for the largest bound, or to the plain mean.")] = (
        "certified"
    )


def train_on(
    cluster: Cluster,
    data: Sequence[str],
    path: Path,
    settings: "Settings | OnePassSettings",
    params: dict[str, float],
    rounds: int,
    read: "ReadOptions",
) -> tuple[Any, dict[str, Any]]:
    """Learn files on a cluster and write the model; return it, and the figures of the training."""
    from maxcosine import OnePassClassifier, OnlineClassifier, model_file
    from maxcosine.data import describe_inputs, expand
    from maxcosine.distributed import train_files
    from maxcosine.onepass_model import ONEPASS
    from maxcosine.training import OnePassSettings, Status, outcome, provenance

    assert cluster.on is not None
    started = time.perf_counter()
    estimator: Any
    rule: dict[str, Any]
    if isinstance(settings, OnePassSettings):
        learner: dict[str, Any] = {}
        estimator, rule = OnePassClassifier(dtype=read.dtype), {"rule": ONEPASS, "rule_file": None}
    else:
        learner = {
            "rule": settings.rule.name if settings.rule.builtin else settings.rule,
            "rule_params": params,
            "average": settings.average,
            "fit_intercept": settings.fit_intercept,
            "multiclass": settings.multiclass,
        }
        estimator = OnlineClassifier(**learner, dtype=read.dtype)
        rule = {"rule": settings.rule.name, "rule_file": file_of(settings.rule)}
    merging: dict[str, Any] = {"how": cluster.how, "rounds": rounds, "n_shards": cluster.shards}
    options = {"format": read.format, **read.feature_options, "on_bad": read.on_bad, "any_labels": read.any_labels}
    records: dict[str, Any] = {"records": read.records, "keep_names": read.records is not None}
    estimator = train_files(data, estimator, cluster.on, **merging, **options, **records)
    seconds = time.perf_counter() - started
    first, model = estimator.rounds_[0], estimator.model_
    examples = sum(tally.examples for tally in estimator.rounds_)
    status = Status(rounds, examples, model.n_judged, model.mistakes, first.bad)
    inputs = describe_inputs(expand(data))
    recorded = {**options, **learner, **rule, "on": cluster.on, **merging}
    model_file.save(model, path, provenance=provenance(status, inputs, recorded, command_line(), seconds))
    read_bytes = rounds * sum(one["bytes"] or 0 for one in inputs)
    return model, outcome(model, status, seconds, bad_messages=first.first_bad, read_bytes=read_bytes)
