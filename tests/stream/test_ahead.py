"""Blocks that are read and parsed ahead."""

import subprocess
import sys
import threading
import time

import pytest

from maxcosine.stream.ahead import Ahead

SIZE = 10


class Blocks:
    """So many blocks, which are their numbers, and what becomes of them."""

    def __init__(self, n, fails_at=None):
        self.n, self.fails_at, self.n_read, self.closed = n, fails_at, 0, False

    def __iter__(self):
        try:
            for k in range(self.n):
                if k == self.fails_at:
                    raise OSError("the disk is gone")
                self.n_read += 1
                yield k, SIZE
        finally:
            self.closed = True


def parse(block):
    time.sleep(0.002 * (block % 3))
    return f"block {block}"


def size(found):
    return SIZE


def parsed(*blocks):
    return [f"block {block}" for block in blocks]


@pytest.fixture(params=[False, True], ids=["waits", "helps"])
def helps(request):
    """Whether whoever asks reads and parses, too."""
    return request.param


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_what_comes_is_in_order(threads, helps):
    blocks = Blocks(50)
    with Ahead(iter(blocks), parse, threads, 3 * SIZE, size=size, helps=helps) as ahead:
        assert list(ahead) == parsed(*range(50))
    assert blocks.closed


def test_an_error_comes_behind_what_was_before_it(helps):
    def parse_some(block):
        if block == 7:
            raise ValueError("block 7")
        return parse(block)

    for blocks, parse_one, error in ((Blocks(20, 7), parse, OSError), (Blocks(20), parse_some, ValueError)):
        found = []
        with (
            pytest.raises(error),
            Ahead(iter(blocks), parse_one, 3, 5 * SIZE, size=size, helps=helps) as ahead,
        ):
            found.extend(ahead)
        assert found == parsed(*range(7))
        assert blocks.closed


@pytest.mark.parametrize("most_bytes", [3 * SIZE, 2**30], ids=["bytes", "blocks"])
def test_no_more_is_read_than_there_is_room_for(most_bytes, helps):
    blocks = Blocks(100)
    with Ahead(iter(blocks), parse, 2, most_bytes, size=size, helps=helps) as ahead:
        given = iter(ahead)
        for asked in (1, 2, 3):
            next(given)
            time.sleep(0.1)
            assert blocks.n_read == asked + 3
    assert blocks.closed


def test_what_was_found_counts_as_it_is(helps):
    blocks = Blocks(100)
    with Ahead(iter(blocks), parse, 3, 3 * SIZE, size=lambda found: 4 * SIZE, helps=helps) as ahead:
        given, before = iter(ahead), 0
        for _ in range(20):
            next(given)
            time.sleep(0.02)
            # As one counts until the next is asked for, there is no room for others.
            assert blocks.n_read <= before + 4
            before = blocks.n_read
        time.sleep(0.1)
        assert blocks.n_read < 30
    assert blocks.closed


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_whoever_asks_is_one_of_the_threads(threads):
    """So many are at work at a time, and no more: those that parse, and the one that deals with it."""
    at_work, most, lock, parsers = 0, 0, threading.Lock(), set()

    def work():
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        time.sleep(0.004)
        with lock:
            at_work -= 1

    def parse_slowly(block):
        parsers.add(threading.current_thread())
        work()
        return parse(block)

    with Ahead(iter(Blocks(60)), parse_slowly, threads, 10 * SIZE, size=size, helps=True) as ahead:
        for _ in ahead:
            work()
    assert most == threads
    assert threading.current_thread() in parsers
    assert len(parsers) == threads


def test_whoever_waits_is_given_what_is_there():
    """Whoever asks does not read what may have to be waited for: the other end may wait for an answer."""
    answered = threading.Event()

    def blocks():
        yield 0, SIZE
        assert answered.wait(60)
        yield 1, SIZE

    with Ahead(blocks(), parse, 2, 3 * SIZE, size=size, helps=False) as ahead:
        given = iter(ahead)
        assert next(given) == "block 0"
        answered.set()
        assert list(given) == parsed(1)


def test_an_interruption_while_one_helps_ends_it():
    blocks = Blocks(100)

    def parse_until(block):
        if threading.current_thread() is threading.main_thread() and block > 20:
            raise KeyboardInterrupt
        return parse(block)

    found = []
    with (
        pytest.raises(KeyboardInterrupt),
        Ahead(iter(blocks), parse_until, 2, 5 * SIZE, size=size, helps=True) as ahead,
    ):
        found.extend(ahead)
    assert found == parsed(*range(len(found)))
    assert blocks.closed
    assert blocks.n_read < 100


@pytest.mark.parametrize("interrupted", ["reading", "parsing"])
def test_whoever_is_interrupted_is_told_at_once(interrupted):
    """Also if blocks before the one at hand have not been asked for, and may never be."""
    closed, others = threading.Event(), threading.Event()

    def interrupt(what):
        if what == interrupted and threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt

    def blocks():
        try:
            for k in range(20):
                interrupt("reading")
                yield k, SIZE
        finally:
            closed.set()

    def parse_slowly(block):
        interrupt("parsing")
        others.wait(0.2)  # so that whoever asks has to help
        return parse(block)

    with (
        pytest.raises(KeyboardInterrupt),
        Ahead(blocks(), parse_slowly, 2, 10 * SIZE, size=size, helps=True) as ahead,
    ):
        next(iter(ahead))
    others.set()
    assert closed.is_set() or interrupted == "reading"  # a generator that raises is closed by that


INTERRUPTED = """
import random, signal, sys
from maxcosine.stream.ahead import Ahead

def interrupt(*_):
    raise KeyboardInterrupt

def work(block):
    return sum(range(random.randrange(2000)))

def turn():
    blocks = ((k, 1) for k in range(10_000))
    with Ahead(blocks, work, 2, 100, size=lambda found: 1, helps=True) as ahead:
        signal.setitimer(signal.ITIMER_REAL, random.random() * 0.01 + 1e-4)
        for _ in ahead:
            pass

signal.signal(signal.SIGALRM, interrupt)
random.seed(0)
for _ in range(int(sys.argv[1])):
    try:
        turn()
    except (KeyboardInterrupt, RuntimeError):  # `Condition.wait` may be left without its lock
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
print("done")
"""


@pytest.mark.parametrize("turns", [100, pytest.param(3000, marks=pytest.mark.slow)])
def test_nobody_hangs_whenever_it_is_interrupted(turns):
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(turns)], capture_output=True, text=True, timeout=300
    )
    assert ran.stdout == "done\n", ran.stderr


def test_whoever_leaves_early_does_not_wait_for_a_pipe():
    waiting, before = threading.Event(), threading.active_count()

    def blocks():
        yield 0, SIZE
        waiting.wait(60)

    with Ahead(blocks(), parse, 2, 3 * SIZE, size=size, helps=False) as ahead:
        assert next(iter(ahead)) == "block 0"
        begun = time.monotonic()
    assert time.monotonic() - begun < 30
    waiting.set()
    while threading.active_count() > before:
        assert time.monotonic() - begun < 60
        time.sleep(0.01)


LEFT_OPEN = """
from maxcosine.stream.ahead import Ahead

def blocks():
    while True:
        yield 0, 10

def results():
    with Ahead(blocks(), str, 2, 30, size=len, helps=False) as ahead:
        yield from ahead

left_open = results()
next(left_open)
"""


def test_python_ends_while_blocks_are_left():
    ran = subprocess.run([sys.executable, "-c", LEFT_OPEN], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
