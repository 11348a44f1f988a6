"""Files learnt on a Spark cluster that is named as the command line does it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from maxcosine.distributed.parts import Job, fitted
from maxcosine.distributed.shards import plan
from maxcosine.distributed.spark.engine import fit_shards
from maxcosine.distributed.spark.session import session
from maxcosine.distributed.spark.watch import PATIENCE
from maxcosine.estimators import OnlineBase
from maxcosine.stream.source import expand


def train_files(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    estimator: OnlineBase,
    on: str = "spark",
    *,
    how: str = "certified",
    rounds: int = 1,
    fan_in: int = 0,
    patience: float = PATIENCE,
    **options: Any,
) -> OnlineBase:
    """Learn files, which the executors read themselves, by the same names as here.

    Parameters
    ----------
    files : names of files or globs
    estimator : a classifier, which stays as it is
    on : "spark" for the cluster that Spark is configured for, or a master's URL, "spark://HOST:PORT"
    how, rounds, fan_in : as `maxcosine.distributed.fit` takes them
    patience : after so many seconds without any executor the job is given up
    **options : `n_shards` or `shard_bytes`, and how files are read: `maxcosine.distributed.plan`
    """
    job = Job(estimator, how, rounds, fan_in)
    names = expand([files] if isinstance(files, str | os.PathLike) else files)
    shards = plan([os.path.abspath(name) for name in names], **options)
    spark = session() if on == "spark" else session({"spark.master": on})
    try:
        return fitted(job, fit_shards(spark.sparkContext, shards, job, patience=patience))
    finally:
        spark.stop()
