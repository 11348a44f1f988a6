"""Blocks that are read and parsed ahead come in order, and errors and interruptions end it."""

import subprocess
import sys
import threading
import time

import pytest

from maxcosine.data.prefetch import prefetch


class Blocks:
    """Blocks that are numbers; records how many were read, and whether reading has ended."""

    def __init__(self, n, fails_at=None):
        self.n, self.fails_at, self.n_read, self.closed = n, fails_at, 0, threading.Event()

    def __iter__(self):
        try:
            for k in range(self.n):
                if k == self.fails_at:
                    raise OSError("the disk is gone")
                self.n_read += 1
                yield k
        finally:
            self.closed.set()


def parse(block):
    time.sleep(0.002 * (block % 3))
    return f"block {block}"


def expected(n):
    return [f"block {block}" for block in range(n)]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_the_order_of_blocks(threads):
    blocks = Blocks(50)
    assert list(prefetch(iter(blocks), parse, threads)) == expected(50)
    assert blocks.closed.is_set()


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_comes_after_the_results_before_it(threads):
    def fail_at_7(block):
        if block == 7:
            raise ValueError("block 7")
        return parse(block)

    for blocks, function, error in ((Blocks(20, 7), parse, OSError), (Blocks(20), fail_at_7, ValueError)):
        found = []
        with pytest.raises(error):
            found.extend(prefetch(iter(blocks), function, threads))
        assert found == expected(7)
        assert blocks.closed.wait(10) or threads == 1


def test_few_blocks_are_in_memory():
    blocks = Blocks(100)
    results = prefetch(iter(blocks), parse, 2)
    for asked in (1, 2, 3):
        next(results)
        time.sleep(0.1)
        assert blocks.n_read == asked + 2
    results.close()
    assert blocks.closed.wait(10)


def test_one_thread_starts_no_other():
    before, threads = threading.active_count(), set()
    for _ in prefetch(iter(Blocks(5)), lambda block: threads.add(threading.current_thread()), 1):
        assert threading.active_count() == before
    assert threads == {threading.current_thread()}


def test_results_do_not_wait_for_the_next_block():
    """The other end of a pipe may wait for an answer before it writes more."""
    answered = threading.Event()

    def blocks():
        yield 0
        assert answered.wait(60)
        yield 1

    results = prefetch(blocks(), parse, 2)
    assert next(results) == "block 0"
    answered.set()
    assert list(results) == ["block 1"]


def test_leaving_early_does_not_wait_for_a_pipe():
    arrives, started = threading.Event(), time.monotonic()

    def blocks():
        yield 0
        arrives.wait(60)

    results = prefetch(blocks(), parse, 2)
    assert next(results) == "block 0"
    results.close()
    assert time.monotonic() - started < 30
    arrives.set()


ABANDONED = """
from maxcosine.data.prefetch import prefetch

def blocks():
    while True:
        yield 0

results = prefetch(blocks(), str, 2)
next(results)
"""

WAITING = """
import sys, time
from maxcosine.data.prefetch import prefetch

def blocks():
    print("waiting", flush=True)
    time.sleep(1000)
    yield 0

try:
    next(prefetch(blocks(), str, 2))
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_python_exits_while_blocks_are_left():
    ran = subprocess.run([sys.executable, "-c", ABANDONED], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_ctrl_c_ends_a_process_that_waits_for_a_block():
    with subprocess.Popen([sys.executable, "-c", WAITING], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(subprocess.signal.SIGINT)
        assert process.wait(60) == 130
