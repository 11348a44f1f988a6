"""Memory that is used again when nobody refers to it."""

import os
import random
import subprocess
import sys

import numpy as np
import pytest

from maxcosine.stream import Stream
from maxcosine.stream.memory import Memory
from maxcosine.stream.source import LONGEST_LINE


def address(array):
    return array.__array_interface__["data"][0]


def test_memory_is_used_again_from_its_beginning():
    memory = Memory()
    first = memory.empty(10_000, np.float64)
    place = address(first)
    del first
    second = memory.empty(19_000, np.float32)
    assert (address(second), len(second), second.dtype) == (place, 19_000, np.float32)


@pytest.mark.parametrize("view", [lambda a: a, lambda a: a[5:9], lambda a: a.view(np.uint8)[3:4]])
def test_memory_that_somebody_refers_to_is_left_alone(view):
    memory = Memory()
    first = memory.empty(10_000, np.int64)
    first[:] = 7
    kept, place = view(first), address(first)
    before = kept.copy()
    del first
    second = memory.empty(10_000, np.int64)
    second[:] = 8
    assert address(second) != place
    assert np.array_equal(kept, before)
    del kept
    assert address(memory.empty(10_000, np.int64)) == place


def test_much_that_is_free_is_given_back():
    memory = Memory()
    for n in range(20, 60):
        memory.empty(n << 20, np.uint8)
        assert sum(map(len, memory._pieces)) < 2**28


def test_what_somebody_refers_to_stays_when_much_is_given_back():
    memory, kept = Memory(), []
    for n in range(20, 60):
        kept = [*kept[-2:], memory.empty(n << 20, np.uint8)]
        kept[-1][[0, -1]] = n
        memory.empty(n << 19, np.uint8)
    assert [array[[0, -1]].tolist() for array in kept] == [[n, n] for n in range(57, 60)]
    assert [len(array) for array in kept] == [n << 20 for n in range(57, 60)]


def test_chunks_that_are_kept_stay_as_they_are(tmp_path):
    lines = [f"{k % 2} " + " ".join(f"{j}:{k + j / 10:.1f}" for j in range(1, 40)) for k in range(3000)]
    (tmp_path / "a.svm").write_text("\n".join(lines))
    kept = list(Stream(tmp_path / "a.svm", block_bytes=100_000))
    assert len(kept) > 3
    row = 0
    for X, labels, _ in kept:
        for values, label in zip(X.toarray(), labels, strict=True):
            assert label == str(row % 2)
            assert np.allclose(values[1:40], row + np.arange(1, 40) / 10)
            row += 1
    assert row == 3000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="about processes that are forked off")
def test_a_process_that_is_forked_off_has_its_memory_for_itself():
    memory = Memory()
    kept = memory.empty(10_000, np.int64)
    kept[:] = 7
    told, tell = os.pipe()
    asked, ask = os.pipe()
    child = os.fork()
    if not child:
        os.read(asked, 1)  # until the other one has used it again
        os.write(tell, b"same" if (kept == 7).all() else b"changed")
        os._exit(0)
    del kept
    memory.empty(10_000, np.int64)[:] = 8
    os.write(ask, b"!")
    assert os.read(told, 10) == b"same"
    os.waitpid(child, 0)
    for end in (told, tell, asked, ask):
        os.close(end)


MOST_MB = 60

# What a training does with the rows of a stream, but for learning; what it took, without the index.
READ = """
import sys
from maxcosine.index import FeatureIndex
from maxcosine.stream import Stream

def megabytes(what):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(what))

path, exact = sys.argv[1], sys.argv[2] == "exact"
stream = Stream(path, exact=exact, labelled=True, limits=(0.0, 1e30), threads=2)
before, index, n = megabytes("VmRSS"), None, 0
for rows in stream.rows():
    n += len(rows)
    if exact:
        index = index or FeatureIndex("ids" if rows.names is None else "names")
        stream.mapped(rows, index)
    del rows
print(n, megabytes("VmHWM") - before - (index.nbytes / 1e6 if index else 0.0))
"""


def numbers(n_bytes):
    dice = random.Random(0)
    return joined((f"{k}:{dice.random():.4f}" for k in range(1, n_bytes)), n_bytes)


def ones(n_bytes):
    return joined((f"{k}:1" for k in range(1, n_bytes)), n_bytes)


def words(n_bytes):
    dice = random.Random(0)
    features = (f"word{dice.randrange(10**6)}:{dice.random():.3f}" for _ in range(n_bytes))
    return "| " + joined(features, n_bytes)


def joined(features, n_bytes):
    taken = []
    for feature in features:
        n_bytes -= len(feature) + 1
        if n_bytes < 0:
            return " ".join(taken)
        taken.append(feature)
    raise AssertionError("there are not enough features")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="about how Linux counts memory")
@pytest.mark.parametrize("exact", ["columns", "exact"])
@pytest.mark.parametrize("features", [numbers, ones, words])
@pytest.mark.parametrize(
    ("length", "n_lines"), [(LONGEST_LINE - 100, 4), (1000, 60_000)], ids=["long", "short"]
)
def test_buffers_are_bounded_whatever_the_lines(tmp_path, features, exact, length, n_lines):
    def took(name, line, n):
        path = tmp_path / f"{name}{'.vw' if features is words else '.svm'}"
        path.write_text("".join(f"{k % 2} {line}\n" for k in range(n)))
        ran = subprocess.run(
            [sys.executable, "-c", READ, path, exact], capture_output=True, text=True, check=True
        )
        n_read, megabytes = ran.stdout.split()
        assert int(n_read) == n
        return float(megabytes)

    took("first", features(100), 1)  # so that nothing has to be compiled
    assert took("data", features(length), n_lines) <= MOST_MB
