"""A Spark cluster on this machine whose executors are processes."""

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

# Without Spark, these tests are not collected; `make test-spark` installs it.
collect_ignore_glob = [] if find_spec("pyspark") else ["test_*.py"]

CLUSTER = "local-cluster[2,1,1024]"
SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    # Small batches, so that a partition has several.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
}


@pytest.fixture(scope="session")
def spark():
    import pyspark
    from pyspark.sql import SparkSession

    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    session = SparkSession.builder.master(CLUSTER).config(map=SETTINGS).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    work = Path(pyspark.__file__).parent / "work" / session.sparkContext.applicationId
    yield session
    session.stop()
    shutil.rmtree(work, ignore_errors=True)
