"""Clusters by name, as the command line has them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from maxcosine.estimators import OnlineBase


def train_files(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    estimator: OnlineBase,
    on: str,
    **options: Any,
) -> OnlineBase:
    """Learn files on a cluster; its workers read them, by the same names as here.

    Parameters
    ----------
    files : names of files or globs
    estimator : a classifier, which stays as it is
    on : "dask://HOST:PORT" for a scheduler, "dask-local:N" for N processes on this machine; "spark" for the
        cluster that Spark is configured for, "spark://HOST:PORT" for another
    **options : `how`, `rounds` and `fan_in` as `maxcosine.distributed.fit` takes them, the others as
        `maxcosine.distributed.plan` does

    Returns
    -------
    a fitted classifier, as `maxcosine.distributed.fit` returns it
    """
    engine = on.partition(":")[0].partition("-")[0]
    if engine == "dask":
        try:
            from maxcosine.distributed import dask
        except ImportError as error:
            raise ImportError(
                f"{error.name} is missing; install it with: pip install 'maxcosine[dask]'"
            ) from None
        with dask.connected(on) as client:
            return dask.fit(files, estimator, client=client, **options)
    if engine == "spark":
        from maxcosine.distributed import spark

        return spark.train_files(files, estimator, on, **options)
    raise ValueError(
        f"{on!r} names no cluster; write dask://HOST:PORT, dask-local:N for N processes, spark for the "
        "configured cluster, or spark://HOST:PORT"
    )
