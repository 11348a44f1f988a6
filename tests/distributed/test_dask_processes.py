"""Worker processes of Dask, and workers that are killed: the same bits or an error, never a hang."""

import os
import signal
import subprocess
import sys
import threading
import time

import dask
import pytest
from distributed import Client, LocalCluster

from maxcosine import MCPExactClassifier, OnlineClassifier
from maxcosine.distributed import fit as fit_here
from maxcosine.distributed import plan, train_files
from maxcosine.distributed.dask import WorkersLost, connected, fit
from tests.distributed.digits import LINES, assert_same, cut
from tests.distributed.test_jobs import own_step

pytestmark = pytest.mark.slow

LEARNER = MCPExactClassifier()
SECONDS = 60.0
N_SHARDS = 6


def test_clusters_by_name(tmp_path):
    path = tmp_path / "digits.svm"
    path.write_text("".join(LINES))
    expected = fit_here(plan(path, n_shards=3), LEARNER, rounds=2)
    assert_same(train_files([path], LEARNER, "dask-local:2", n_shards=3, rounds=2), expected)
    with connected("dask-local:1") as client:
        on = client.scheduler.address.replace("tcp", "dask")
        assert_same(train_files([path], LEARNER, on, n_shards=3, rounds=2), expected)
        # The worker imports the module that defines the rule.
        client.run(lambda: __import__("sys").path.insert(0, os.getcwd()))
        learner = OnlineClassifier(own_step)
        found = fit([dask.delayed(shard) for shard in cut(3)], learner, client=client)
        assert_same(found, fit_here(cut(3), learner))


@pytest.fixture(scope="module")
def client():
    cluster = LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0")
    with cluster, Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture
def new_worker(client):
    """Start worker processes that are not restarted."""
    started = []

    def start():
        command = [sys.executable, "-m", "distributed.cli.dask_worker", client.scheduler.address]
        options = ["--no-nanny", "--nthreads", "1", "--memory-limit", "0", "--no-dashboard"]
        options += ["--host", "127.0.0.1"]
        started.append(subprocess.Popen(command + options, stderr=subprocess.DEVNULL))
        client.wait_for_workers(len(started), timeout=SECONDS)

    yield start
    for worker in started:
        worker.kill()
        worker.wait()


@dask.delayed(pure=False)
def slow(shard, path, seconds):
    """A partition that takes some time and writes down which process works on it."""
    path.write_text(str(os.getpid()))
    time.sleep(seconds)
    return shard


def partitions(folder, seconds):
    return [slow(shard, folder / str(k), seconds) for k, shard in enumerate(cut(N_SHARDS))]


def kill_worker_of(path):
    """Wait until a process works on a partition, and kill it."""
    for _ in range(int(SECONDS / 0.05)):
        if path.exists() and path.read_text():
            break
        time.sleep(0.05)
    os.kill(int(path.read_text()), signal.SIGKILL)


def test_killed_worker_changes_no_bit(client, new_worker, tmp_path):
    expected = fit_here(cut(N_SHARDS), LEARNER, rounds=2, fan_in=2)
    options = {"rounds": 2, "fan_in": 2, "patience": SECONDS, "client": client}
    new_worker()
    assert_same(fit(partitions(tmp_path, 0.0), LEARNER, **options), expected)
    new_worker()
    folder = tmp_path / "again"
    folder.mkdir()
    # Partition 3 is at least the second of its worker: its result of an earlier partition is lost, too.
    killer = threading.Thread(target=kill_worker_of, args=[folder / "3"])
    killer.start()
    assert_same(fit(partitions(folder, 0.2), LEARNER, **options), expected)
    killer.join()
    assert len(client.nthreads()) == 1


def test_no_worker_left_is_an_error(client, new_worker, tmp_path):
    new_worker()
    killer = threading.Thread(target=kill_worker_of, args=[tmp_path / "1"])
    killer.start()
    started = time.monotonic()
    with pytest.raises(WorkersLost, match="no worker for 1 seconds"):
        fit(partitions(tmp_path, 0.2), LEARNER, patience=1.0, client=client)
    assert time.monotonic() - started < SECONDS
    killer.join()


def test_no_client_is_an_error(tmp_path):
    (tmp_path / "rows.svm").write_text("a 1:1\nb 2:1\n")
    with pytest.raises(ValueError, match="there is no Dask client"):
        fit([tmp_path / "rows.svm"], LEARNER)
