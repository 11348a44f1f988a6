"""Blocks that are read and parsed ahead."""

import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from maxcosine.stream.ahead import Ahead
from maxcosine.stream.source import Block

SIZE = 10


class Blocks:
    """So many blocks, and what becomes of them."""

    def __init__(self, n, fails_at=None):
        self.n, self.fails_at, self.n_read, self.closed = n, fails_at, 0, False

    def __iter__(self):
        try:
            for k in range(self.n):
                if k == self.fails_at:
                    raise OSError("the disk is gone")
                self.n_read += 1
                yield Block(np.zeros(SIZE, np.uint8), SIZE, 0, k, k == self.n - 1, False), "svmlight"
        finally:
            self.closed = True


def parse(block, format):
    time.sleep(0.002 * (block.offset % 3))
    return block, None


def offsets(found):
    return [block.offset for block, _ in found]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_what_comes_is_in_order(threads):
    blocks = Blocks(50)
    with Ahead(iter(blocks), parse, threads, 3 * SIZE) as ahead:
        assert offsets(ahead) == list(range(50))
    assert blocks.closed


def test_an_error_comes_behind_what_was_before_it():
    def parse_some(block, format):
        if block.offset == 7:
            raise ValueError("block 7")
        return parse(block, format)

    for blocks, parse_one, error in ((Blocks(20, 7), parse, OSError), (Blocks(20), parse_some, ValueError)):
        found = []
        with pytest.raises(error), Ahead(iter(blocks), parse_one, 3, 5 * SIZE) as ahead:
            found.extend(offsets([one]) for one in ahead)
        assert found == [[k] for k in range(7)]
        assert blocks.closed


@pytest.mark.parametrize("most_bytes", [3 * SIZE, 2**30], ids=["bytes", "blocks"])
def test_no_more_is_read_than_there_is_room_for(most_bytes):
    blocks = Blocks(100)
    with Ahead(iter(blocks), parse, 2, most_bytes) as ahead:
        given = iter(ahead)
        for asked in (1, 2, 3):
            next(given)
            time.sleep(0.1)
            assert blocks.n_read == asked + 3
    assert blocks.closed


def test_whoever_leaves_early_does_not_wait_for_a_pipe():
    waiting, before = threading.Event(), threading.active_count()

    def blocks():
        yield Block(np.zeros(SIZE, np.uint8), SIZE, 0, 0, False, False), "svmlight"
        waiting.wait(60)

    with Ahead(blocks(), parse, 2, 3 * SIZE) as ahead:
        assert offsets([next(iter(ahead))]) == [0]
        begun = time.monotonic()
    assert time.monotonic() - begun < 30
    waiting.set()
    while threading.active_count() > before:
        assert time.monotonic() - begun < 60
        time.sleep(0.01)


LEFT_OPEN = """
import numpy as np
from maxcosine.stream.ahead import Ahead
from maxcosine.stream.source import Block

def blocks():
    while True:
        yield Block(np.zeros(10, np.uint8), 10, 0, 0, False, False), "svmlight"

def results():
    with Ahead(blocks(), lambda block, format: (block, None), 2, 30) as ahead:
        yield from ahead

left_open = results()
next(left_open)
"""


def test_python_ends_while_blocks_are_left():
    ran = subprocess.run([sys.executable, "-c", LEFT_OPEN], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
