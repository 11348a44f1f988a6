"""Executors are killed, or Java is missing."""

import os
import signal
import threading
import time

import pytest
from pyspark import TaskContext

from maxcosine import OnlineClassifier, distributed
from maxcosine.distributed.spark import ExecutorsLost, JavaMissing, MaxCosineClassifier, session
from maxcosine.distributed.spark.cluster import n_executors
from tests.distributed.digits import assert_same
from tests.distributed.spark.data import examples, frame, shards

pytestmark = pytest.mark.spark


def test_killed_executor_changes_no_bit(spark, tmp_path):
    X, y = examples()
    df, killed = frame(spark, X, y), str(tmp_path / "killed")

    def deadly(batches):
        """Kill the executor of this task once, in the middle of a partition."""
        for number, batch in enumerate(batches):
            if number == 1 and TaskContext.get().partitionId() == 2 and not os.path.exists(killed):
                with open(f"/proc/{os.getppid()}/stat") as file:  # the parent is the daemon that forks the tasks
                    executor = int(file.read().rpartition(")")[2].split()[1])
                with open(killed, "w") as file:
                    file.write(str(executor))
                os.kill(executor, signal.SIGKILL)
                time.sleep(60)
            yield batch

    model = MaxCosineClassifier(rounds=2, fanIn=2).fit(df.mapInArrow(deadly, df.schema))
    with open(killed) as file:
        assert not os.path.exists(f"/proc/{file.read()}")
    expected = distributed.fit(shards(X, y * 1.0), OnlineClassifier(), rounds=2, fan_in=2)
    assert_same(model.estimator, expected)


def test_loss_of_all_executors_is_an_error(spark, tmp_path):
    java, started = spark.sparkContext._jsc.sc(), tmp_path / "started"
    df = frame(spark, *examples())
    path = str(started)

    def endless(batches):
        open(path, "w").close()
        time.sleep(60)
        yield from batches

    stopped = threading.Event()

    def kill_all():
        while not started.exists():
            time.sleep(0.1)
        # Kill replacements of executors, too.
        while not stopped.wait(0.2):
            java.killExecutors(java.getExecutorIds())

    killer = threading.Thread(target=kill_all)
    killer.start()
    started_at = time.monotonic()
    try:
        with pytest.raises(ExecutorsLost, match="all executors are lost"):
            MaxCosineClassifier(executorTimeout=2.0).fit(df.mapInArrow(endless, df.schema))
    finally:
        stopped.set()
        killer.join()
    assert time.monotonic() - started_at < 60
    assert n_executors(java) == 0
    assert java.requestExecutors(2)  # for the tests that follow


def test_error_without_java_says_what_to_install(monkeypatch):
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(JavaMissing, match=r"no Java was found in JAVA_HOME=/nowhere; install Java 17 or newer"):
        session()
    monkeypatch.delenv("JAVA_HOME")
    with pytest.raises(JavaMissing, match="no Java was found on the PATH, and JAVA_HOME is not set"):
        session()
