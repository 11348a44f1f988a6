"""Run jobs on the workers of a Dask cluster, and notice when no worker is left."""

from __future__ import annotations

import re
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from dask.delayed import delayed
from distributed import Client, Future, KilledWorker, LocalCluster, default_client

from maxcosine.distributed.jobs import Job, PartialModel, run_job

PATIENCE = 30.0  # seconds without any worker after which a job fails
POLL_SECONDS = 0.25


class WorkersLost(RuntimeError):
    """The workers of a job were lost, and there are no others."""


@contextmanager
def connected(on: str) -> Iterator[Client]:
    """Connect a client to "dask://HOST:PORT", or to "dask-local:N": N processes that end with the context."""
    if match := re.fullmatch(r"dask://(.+:\d+)", on):
        with Client(f"tcp://{match[1]}", set_as_default=False) as client:
            yield client
    elif match := re.fullmatch(r"dask-local:([1-9]\d*)", on):
        # One thread per process: a shard is learnt in order, by one core.
        options = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
        with (
            LocalCluster(n_workers=int(match[1]), **options) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            yield client
    else:
        raise ValueError(f"{on!r} names no cluster; write dask://HOST:PORT, or dask-local:N for N processes")


def run_on(on: str, job: Job, shards: Sequence[Any]) -> PartialModel:
    """Run a job on the cluster of this name."""
    with connected(on) as client:
        return run_with(client, job, shards)


def run_with(
    client: Client | None, job: Job, shards: Sequence[Any], patience: float = PATIENCE, progress: bool | None = None
) -> PartialModel:
    """Run a job with the workers of a client, or of the current one."""
    try:
        client = client or default_client()
    except ValueError:
        raise ValueError(
            "there is no Dask client; create one, such as client = distributed.Client(), or pass client="
        ) from None
    with _progress_bar(job.rounds * len(shards), progress) as show_progress:
        run = _Run(client, patience, show_progress)
        try:
            return run.result(run_job(job, shards, run.call_each))
        except BaseException:
            run.cancel()
            raise


@contextmanager
def _progress_bar(total: int, wanted: bool | None) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error, if it is wanted or, by default, if this is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    shown = sys.stderr.isatty() if wanted is None else wanted
    columns = TextColumn("learning"), BarColumn(), MofNCompleteColumn(), TextColumn("shards,")
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), disable=not shown) as bar:
        task = bar.add_task("learning", total=total)
        yield lambda learnt: bar.update(task, completed=learnt)
        bar.update(task, completed=total)


class _Run:
    """One run of a job; `show_progress` is called with the number of shards learnt so far."""

    def __init__(self, client: Client, patience: float, show_progress: Callable[[int], None]) -> None:
        self._client, self._patience, self._show_progress = client, patience, show_progress
        self._name = uuid.uuid4().hex[:12]
        self._n_calls = 0
        self._learning: list[Future] = []
        self._n_learnt = 0

    def call_each(self, step: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Future]:
        """Call a step once for each tuple of arguments, on any workers."""
        # Unique names: otherwise Dask would run equal calls of two rounds only once.
        self._n_calls += 1
        name = f"{step.__name__}-{self._name}-{self._n_calls}"
        call = delayed(step, pure=False)
        calls = [call(*given, dask_key_name=f"{name}-{k}") for k, given in enumerate(arguments)]
        futures: list[Future] = self._client.compute(calls)
        if step.__name__ == "learn":
            self._learning = futures
        elif step.__name__ == "finish_round":
            # If the next round were submitted now, Dask would keep the data in memory for it.
            self._wait(futures[0])
            self._n_learnt += len(self._learning)
            self._learning = []
        return futures

    def result(self, future: Future) -> PartialModel:
        """Wait for the result of a call and fetch it."""
        timeout = self._patience
        while True:
            self._wait(future)
            try:
                result: PartialModel = future.result(timeout=timeout)
                return result
            except TimeoutError:  # its worker was lost meanwhile, or it is large
                timeout *= 2.0

    def cancel(self) -> None:
        """Stop the workers' tasks."""
        if self._client.status == "running":
            self._client.cancel(self._learning, force=True)

    def _wait(self, future: Future) -> None:
        """Wait until a call is done; raise its error, or `WorkersLost`."""
        last_seen = time.monotonic()
        while not future.done():
            with suppress(TimeoutError):
                future.exception(timeout=POLL_SECONDS)
            finished = sum(learning.status == "finished" for learning in self._learning)
            self._show_progress(self._n_learnt + finished)
            if self._has_workers():
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > self._patience:
                raise WorkersLost(
                    f"the job has had no worker for {self._patience:g} seconds; see the logs of the workers "
                    "for the reason (often a lack of memory), and start new ones"
                )
        if future.status == "cancelled":
            raise WorkersLost("the job was cancelled, or the Dask scheduler is gone; start the job again")
        if future.status == "error":
            self._raise(future.exception())

    def _has_workers(self) -> bool:
        try:
            return self._client.status == "running" and bool(self._client.nthreads())
        except (OSError, RuntimeError):  # the scheduler does not answer, or the connection is closed
            return False

    def _raise(self, error: Exception) -> None:
        if isinstance(error, KilledWorker):
            raise WorkersLost(
                f"{error.allowed_failures + 1} workers ended while they ran {error.task}; see their logs "
                "(often a lack of memory: make shards smaller), or raise Dask's setting "
                "distributed.scheduler.allowed-failures"
            ) from error
        failed = [number for number, future in enumerate(self._learning) if future.status == "error"]
        if failed:
            error.add_note(f"in shard {failed[0]} of {len(self._learning)}, counted from 0")
        raise error
