"""Spark sessions, and errors for what Spark leaves unsaid: Java is missing, all executors are lost."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

PATIENCE = 300.0  # seconds without any executor after which a job fails
POLL_SECONDS = 1.0


class JavaMissing(RuntimeError):
    """Spark runs on Java, and no Java was found."""


class ExecutorsLost(RuntimeError):
    """All executors were lost, and no others were started."""


def session(settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return the active Spark session, or start one.

    Spark's settings are, for example, ``{"spark.master": "local[4]"}``. Tasks of a new session run in this
    Python interpreter, unless PYSPARK_PYTHON names another. It has no web interface, unless
    ``{"spark.ui.enabled": "true"}`` is given.
    """
    settings = dict(settings or {})
    if SparkSession.getActiveSession() is None:
        _check_java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        settings.setdefault("spark.ui.enabled", "false")
    return SparkSession.builder.config(map=settings).getOrCreate()


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if shutil.which(os.path.join(home, "bin", "java") if home else "java") is None:
        place = f"in JAVA_HOME={home}" if home else "on the PATH, and JAVA_HOME is not set"
        raise JavaMissing(
            f"Spark needs Java, but no Java was found {place}; install Java 17 or newer, for example with: "
            "sudo apt-get install openjdk-17-jre-headless"
        )


@contextmanager
def fail_without_executors(context: SparkContext, patience: float) -> Iterator[None]:
    """Cancel the Spark jobs started inside if there are no executors for `patience` seconds.

    Spark itself waits forever. In local mode the driver is the executor, and `patience` 0 is no limit.
    """
    scala_context = context._jsc.sc()  # PySpark has no public way to ask for the executors
    if scala_context.isLocal() or not patience:
        yield
        return
    tag, finished, lost = f"maxcosine-{uuid.uuid4().hex}", threading.Event(), threading.Event()

    def watch() -> None:
        last_seen = time.monotonic()
        while not finished.wait(POLL_SECONDS):
            if n_executors(scala_context):
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > patience:
                lost.set()
                context.cancelJobsWithTag(tag)
                return

    watcher = threading.Thread(target=watch, name="maxcosine-executors", daemon=True)
    context.addJobTag(tag)
    watcher.start()
    try:
        yield
    except Exception as error:
        if lost.is_set() or _is_stopped(scala_context):
            raise ExecutorsLost(
                "all executors are lost, or the application was stopped; see the logs of the executors, or "
                "wait longer with executorTimeout"
            ) from error
        raise
    finally:
        finished.set()
        watcher.join()
        if not _is_stopped(scala_context):
            context.removeJobTag(tag)


def n_executors(scala_context: Any) -> int:
    """Return the number of executors, without the driver."""
    try:
        return int(scala_context.getExecutorMemoryStatus().size()) - 1
    except Py4JError:  # the context has stopped
        return 0


def _is_stopped(scala_context: Any) -> bool:
    try:
        return bool(scala_context.isStopped())
    except Py4JError:
        return True
