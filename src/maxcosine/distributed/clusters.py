"""Clusters by name, for the command line."""

from __future__ import annotations

from typing import Any

from maxcosine.data.inputs import InputNames
from maxcosine.distributed.jobs import Job
from maxcosine.distributed.text_shards import plan
from maxcosine.estimators.base import StreamClassifier


def train_files(
    files: InputNames,
    estimator: StreamClassifier,
    on: str,
    *,
    how: str = "certified",
    rounds: int = 1,
    fan_in: int = 0,
    **options: Any,
) -> Any:
    """Learn files on a cluster. Its workers read the files, so they need access to them by the same names.

    Parameters
    ----------
    files : str, path or sequence of them
        Names of files or globs.
    estimator : OnlineBase or OnePassClassifier
        A classifier; it stays unchanged.
    on : str
        "dask://HOST:PORT" for a Dask scheduler, "dask-local:N" for N processes on this machine, "spark" for
        the cluster that Spark is configured for, "spark://HOST:PORT" for another Spark cluster.
    how, rounds, fan_in : str, int, int
        As in `maxcosine.distributed.fit`.
    **options : dict
        As in `maxcosine.distributed.plan`.

    Returns
    -------
    OnlineBase or OnePassClassifier
        A fitted classifier, as `maxcosine.distributed.fit` returns it.
    """
    job = Job(estimator, how, rounds, fan_in)
    engine = on.partition(":")[0].partition("-")[0]
    if engine == "dask":
        from maxcosine.distributed.dask.cluster import run_on
    elif engine == "spark":
        from maxcosine.distributed.spark.rounds import run_on
    else:
        raise ValueError(
            f"{on!r} names no cluster; write dask://HOST:PORT, dask-local:N for N processes, spark for the "
            "configured cluster, or spark://HOST:PORT"
        )
    return job.to_estimator(run_on(on, job, plan(files, **options)))
