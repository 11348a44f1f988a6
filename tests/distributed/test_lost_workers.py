"""Workers that are killed in the middle of a job: the same bits, or an error; never a hang."""

import os
import signal
import subprocess
import sys
import threading
import time

import dask
import pytest
from distributed import Client, LocalCluster

from maxcosine import MCPExactClassifier
from maxcosine.distributed import fit as fit_here
from maxcosine.distributed.dask import WorkersLost, fit
from tests.distributed.test_dask import assert_same, chunks

LEARNER = MCPExactClassifier()
SECONDS = 60.0


@pytest.fixture(scope="module")
def client():
    cluster = LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0")
    with cluster, Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture
def new_worker(client):
    """Starts worker processes that nobody starts again."""
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
def slow(pair, path, seconds):
    """A partition that takes its time, and says who is at it."""
    path.write_text(str(os.getpid()))
    time.sleep(seconds)
    return pair


def partitions(folder, seconds):
    return [slow(pair, folder / str(k), seconds) for k, pair in enumerate(chunks())]


def kill_who_works_on(path):
    """As soon as somebody does."""
    for _ in range(int(SECONDS / 0.05)):
        if path.exists() and path.read_text():
            break
        time.sleep(0.05)
    os.kill(int(path.read_text()), signal.SIGKILL)


@pytest.fixture(scope="module")
def expected():
    return fit_here([[pair] for pair in chunks()], LEARNER, rounds=2, fan_in=2)


@pytest.mark.slow
def test_one_worker_two_workers_and_a_killed_one_give_the_same_bits(client, new_worker, expected, tmp_path):
    options = {"rounds": 2, "fan_in": 2, "patience": SECONDS, "client": client}
    new_worker()
    assert_same(fit(partitions(tmp_path, 0.0), LEARNER, **options), expected)
    new_worker()
    folder = tmp_path / "again"
    folder.mkdir()
    # The fourth partition of six is somebody's second or later: what the killed one had learnt is lost, too.
    killer = threading.Thread(target=kill_who_works_on, args=[folder / "3"])
    killer.start()
    assert_same(fit(partitions(folder, 0.2), LEARNER, **options), expected)
    killer.join()
    assert len(client.nthreads()) == 1


@pytest.mark.slow
def test_without_any_worker_a_job_is_given_up(client, new_worker, tmp_path):
    new_worker()
    killer = threading.Thread(target=kill_who_works_on, args=[tmp_path / "1"])
    killer.start()
    began = time.monotonic()
    with pytest.raises(WorkersLost, match="no worker for 1 seconds"):
        fit(partitions(tmp_path, 0.2), LEARNER, patience=1.0, client=client)
    assert time.monotonic() - began < SECONDS
    killer.join()


def test_no_client():
    with pytest.raises(ValueError, match="there is no Dask client"):
        fit(["some.svm"], LEARNER)


def test_a_scheduler_that_is_gone():
    cluster = LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0")
    with Client(cluster, set_as_default=False) as client:
        closing = threading.Timer(0.5, cluster.close)
        closing.start()
        with pytest.raises(WorkersLost, match=r"scheduler is gone|no worker for 3 seconds"):
            fit([dask.delayed(pair) for pair in chunks()], LEARNER, patience=3.0, client=client)
        closing.join()
