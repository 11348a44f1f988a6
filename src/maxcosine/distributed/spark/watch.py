"""Jobs that end even if nobody is left to run them: Spark itself would wait forever."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

PATIENCE = 300.0
"""Seconds without any executor after which a job is given up."""
SECONDS_BETWEEN_LOOKS = 1.0


class ExecutorsLost(RuntimeError):
    """There is no executor left, and none has come in its place."""


@contextmanager
def watched(context: SparkContext, patience: float) -> Iterator[None]:
    """Jobs started in here are given up once there was no executor for so many seconds."""
    java = context._jsc.sc()
    if java.isLocal() or not patience:  # the driver is the executor
        yield
        return
    tag, ended, lost = f"maxcosine-{uuid.uuid4().hex}", threading.Event(), threading.Event()

    def watch() -> None:
        last_seen = time.monotonic()
        while not ended.wait(SECONDS_BETWEEN_LOOKS):
            if n_executors(java):
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > patience:
                lost.set()
                context.cancelJobsWithTag(tag)
                return

    watcher = threading.Thread(target=watch, name="maxcosine-watch", daemon=True)
    context.addJobTag(tag)
    watcher.start()
    try:
        yield
    except Exception as error:
        if lost.is_set():
            raise ExecutorsLost(
                f"all executors are lost, and none came back within {patience:g} seconds; look into their "
                "logs, or wait for longer with executorTimeout"
            ) from error
        if _stopped(java):
            raise ExecutorsLost(
                "Spark has given up: all executors are lost, or the application was ended; look into the "
                "logs of the executors"
            ) from error
        raise
    finally:
        ended.set()
        watcher.join()
        if not _stopped(java):
            context.removeJobTag(tag)


def n_executors(java: Any) -> int:
    """How many executors are alive, the driver not counted."""
    try:
        return int(java.getExecutorMemoryStatus().size()) - 1
    except Py4JError:  # of a context that has stopped
        return 0


def _stopped(java: Any) -> bool:
    try:
        return bool(java.isStopped())
    except Py4JError:
        return True
