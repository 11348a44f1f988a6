"""Executors that are killed, all executors lost, no Java."""

import os
import signal
import threading
import time

import pytest
from pyspark import TaskContext

from maxcosine import OnlineClassifier, distributed
from maxcosine.distributed.spark import ExecutorsLost, JavaMissing, MaxCosineClassifier, session
from maxcosine.distributed.spark.watch import n_executors
from tests.distributed.spark.data import examples, frame, same_bits, shards

pytestmark = pytest.mark.spark


def test_a_killed_executor_changes_no_bit(spark, tmp_path):
    X, y = examples()
    df, killed = frame(spark, X, y), str(tmp_path / "killed")

    def deadly(batches):
        """Once, in the middle of a partition, the executor that this task runs in is killed."""
        for number, batch in enumerate(batches):
            if number == 1 and TaskContext.get().partitionId() == 2 and not os.path.exists(killed):
                with open(f"/proc/{os.getppid()}/stat") as file:  # of the process that forks the tasks
                    executor = int(file.read().rpartition(")")[2].split()[1])
                with open(killed, "w") as file:
                    file.write(str(executor))
                os.kill(executor, signal.SIGKILL)
                time.sleep(60)
            yield batch

    model = MaxCosineClassifier(rounds=2, fanIn=2).fit(df.mapInArrow(deadly, df.schema))
    with open(killed) as file:
        assert not os.path.exists(f"/proc/{file.read()}")
    assert same_bits(model, distributed.fit(shards(X, y * 1.0), OnlineClassifier(), rounds=2, fan_in=2))


def test_all_executors_lost_for_good_are_an_error_in_bounded_time(spark, tmp_path):
    java, started = spark.sparkContext._jsc.sc(), tmp_path / "started"
    df = frame(spark, *examples())
    path = str(started)

    def endless(batches):
        open(path, "w").close()
        time.sleep(60)
        yield from batches

    given_up = threading.Event()

    def lose():
        while not started.exists():
            time.sleep(0.1)
        # Also those that were on their way to take the place of one that was killed before.
        while not given_up.wait(0.2):
            java.killExecutors(java.getExecutorIds())

    loser = threading.Thread(target=lose)
    loser.start()
    begun = time.monotonic()
    try:
        with pytest.raises(
            ExecutorsLost, match="all executors are lost, and none came back within 2 seconds"
        ):
            MaxCosineClassifier(executorTimeout=2.0).fit(df.mapInArrow(endless, df.schema))
    finally:
        given_up.set()
        loser.join()
    assert time.monotonic() - begun < 60
    assert n_executors(java) == 0
    assert java.requestExecutors(2)  # for whoever comes next


def test_without_java_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(JavaMissing, match=r"none in JAVA_HOME=/nowhere; install Java 17 or newer"):
        session()
    monkeypatch.delenv("JAVA_HOME")
    with pytest.raises(JavaMissing, match="none on the PATH, and JAVA_HOME is not set"):
        session()
