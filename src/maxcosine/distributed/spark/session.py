"""A Spark session, or an error that says what Spark lacks."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession


class JavaMissing(RuntimeError):
    """Spark itself runs on Java, and there is none."""


def session(settings: Mapping[str, str] | None = None) -> SparkSession:
    """The Spark session that there is, or a new one.

    Parameters
    ----------
    settings : Spark's own, by their names: ``{"spark.master": "local[4]"}``; the web page of a new session
        is there if it is asked for, by ``{"spark.ui.enabled": "true"}``

    Returns
    -------
    a session; tasks of a new one run in this interpreter, unless PYSPARK_PYTHON names another
    """
    given = dict(settings or {})
    if SparkSession.getActiveSession() is None:
        _require_java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        given.setdefault("spark.ui.enabled", "false")
    return SparkSession.builder.config(map=given).getOrCreate()


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"
    if shutil.which(java) is None:
        place = f"in JAVA_HOME={home}" if home else "on the PATH, and JAVA_HOME is not set"
        raise JavaMissing(
            f"Spark needs Java, and there is none {place}; install Java 17 or newer, for example by: "
            "sudo apt-get install openjdk-17-jre-headless"
        )
