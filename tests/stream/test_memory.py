"""Memory that is used again when nobody refers to it."""

import itertools
import os
import random
import string
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


@pytest.mark.parametrize("sizes", [range(20, 60), range(60, 20, -1), [5, 50] * 9])
def test_what_is_free_and_serves_no_more_is_given_back(sizes):
    memory = Memory()
    for n in sizes:
        memory.empty(n << 20, np.uint8)
        assert len(memory._pieces) == 1
    memory.give_back()
    assert memory._pieces == []


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

# What commands do with a stream, with memory as theirs is: learn but for the learning, score but for the
# scoring, write a cache. What it took, without the index, once it was done with a small file.
USE = """
import os, sys
import pyarrow, pyarrow.ipc
from maxcosine.__main__ import _keep_memory
from maxcosine.index import FeatureIndex
from maxcosine.stream import Stream
from maxcosine.stream.cache.writing import write

_keep_memory()
small, path, mode, threads, how = *sys.argv[1:4], int(sys.argv[4]), sys.argv[5]
features = {"columns": {}, "hashed": {"bits": 31}, "exact": {"exact": True}}[mode]

def megabytes(what):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(what))

def use(path, bad_lines):
    index, n = None, 0
    options = {**features, "normalize": "l2" if how == "score" else None}
    if path.endswith(".cache"):
        options = {"on_bad": "skip", "threads": threads}
    else:
        options |= {"on_bad": "skip", "threads": threads, "bad_lines": bad_lines}
    if how == "write":
        stream = Stream(path, **options)
        n = write(stream, path + ".cache")
    else:
        stream = Stream(path, **options, labelled=True, limits=(0.0, 1e30))
        for rows in stream.rows():
            n += len(rows)
            if mode == "exact" and len(rows):
                index = index or FeatureIndex("ids" if rows.names is None else "names")
                stream.mapped(rows, index, grow=how == "learn")
            del rows
    return n, stream.n_bad, index.nbytes / 1e6 if index else 0.0

with open(os.devnull, "wb") as bad_lines:
    use(small, bad_lines)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak begins anew
    before = megabytes("VmRSS")
    n, n_bad, of_index = use(path, bad_lines)
print(n, n_bad, megabytes("VmHWM") - before - of_index)
"""

LETTERS = string.ascii_letters + string.digits
DICE = random.Random(0)


def numbers(n_bytes):
    return joined((f"{k}:{DICE.random():.4f}" for k in range(1, n_bytes)), n_bytes)


def ones(n_bytes):
    return joined((f"{k}:1" for k in range(1, n_bytes)), n_bytes)


def scattered(n_bytes):
    return joined((f"{DICE.randrange(10**6)}:1" for _ in range(n_bytes)), n_bytes)


def the_same(n_bytes):
    return " ".join(["1:1"] * (n_bytes // 4))


def words(n_bytes):
    features = (f"word{DICE.randrange(10**6)}:{DICE.random():.3f}" for _ in range(n_bytes))
    return "| " + joined(features, n_bytes)


def short_words(n_bytes):
    return "| " + joined(("".join(DICE.choices(LETTERS, k=4)) for _ in range(n_bytes)), n_bytes)


def letters(n_bytes):
    return "| " + " ".join(DICE.choices(LETTERS, k=n_bytes // 2 - 1))


def namespace(n_bytes):
    """Names that are far longer than the text."""
    return f"|{'n' * 30} " + " ".join(DICE.choices(LETTERS, k=n_bytes // 2 - 30))


def namespaces(n_bytes):
    """Different features of two bytes each."""
    return joined(
        (f"|{''.join(a)} {' '.join(LETTERS)}" for a in itertools.product(LETTERS, repeat=3)), n_bytes
    )


def joined(features, n_bytes):
    taken = []
    for feature in features:
        n_bytes -= len(feature) + 1
        if n_bytes < 0:
            return " ".join(taken)
        taken.append(feature)
    raise AssertionError("there are not enough features")


SVMLIGHT = [numbers, ones, scattered, the_same]
VW = [words, short_words, letters, namespace, namespaces]
LONGEST = LONGEST_LINE - 100


def took(path, mode, how, threads=2):
    """Rows, bad lines and megabytes of one use of a file."""
    small = path.with_name(f"small{path.name[path.name.index('.') :]}")
    command = [sys.executable, "-c", USE, small, path, mode, str(threads), how]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    n_rows, n_bad, megabytes = ran.stdout.split()
    return int(n_rows), int(n_bad), float(megabytes)


def all_uses(path, mode, threads=2):
    """How a file is used, and then its cache; and what each took."""
    for cached in (False, True):
        for how in ("learn", "score", "write")[: 2 if cached else 3]:
            if how != "score" or (mode == "exact" and ".vw" in path.name):
                yield how, cached, *took(path, mode, how, threads)
        path = path.with_name(f"{path.name}.cache")


@pytest.fixture(params=["columns", "hashed", "exact"])
def mode(request, tmp_path, compiled):
    """How features are known. There are small files beside those of a test."""
    for name, text in SMALL.items():
        (tmp_path / f"small{name}").write_text(text)
        took(tmp_path / f"small{name}", request.param, "write")
    return request.param


SMALL = {".svm": "1 2:1 3:1\n0 3:1\n", ".vw": "1 | x y\n0 | y z\n"}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Nothing has to be compiled any more."""
    folder = tmp_path_factory.mktemp("first")
    for name, features, line in ((".svm", the_same, scattered), (".vw", letters, short_words)):
        for beginning in ("small", "large"):
            (folder / f"{beginning}{name}").write_text(f"1 {features(100)}\n0 {line(4_000_000)}\n")
        for mode in ("columns", "hashed", "exact"):
            for _ in all_uses(folder / f"small{name}", mode):
                pass


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="about how Linux counts memory")


@pytest.mark.slow
@on_linux
@pytest.mark.parametrize("features", [*SVMLIGHT, *VW])
@pytest.mark.parametrize(
    ("length", "n_lines"), [(LONGEST, 2), (3_000_000, 10), (1000, 50_000)], ids=["longest", "long", "short"]
)
def test_buffers_are_bounded_whatever_the_lines(tmp_path, mode, features, length, n_lines):
    path = tmp_path / f"data{'.vw' if features in VW else '.svm'}"
    line = features(length)
    with path.open("w") as file:
        file.write(f"0 {features(200)}\n")
        file.writelines(f"{k % 2} {line}\n" for k in range(n_lines))
    # Eight million different features in one line are too many.
    bad = n_lines if features is namespaces and length == LONGEST and mode != "columns" else 0
    for how, cached, n_rows, n_bad, megabytes in all_uses(path, mode):
        assert (n_rows, n_bad) == (n_lines + 1 - bad, 0 if cached else bad)
        assert megabytes <= MOST_MB, (how, cached)


@pytest.mark.slow
@on_linux
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_buffers_are_bounded_when_lines_change(tmp_path, mode, threads):
    path = tmp_path / "data.vw"
    with path.open("w") as file:
        for _ in range(2):
            file.writelines(f"{k % 2} {letters(1000)}\n" for k in range(9000))
            file.write(f"1 {letters(LONGEST)}\n")
            file.write(f"0 {short_words(LONGEST // 2)} {letters(LONGEST // 2)}\n")
            file.write(f"1 {letters(LONGEST - 10)} :\n")
            file.write(f"0 {letters(LONGEST + LONGEST // 2)}\n")
            file.write(f"0 | {'a' * (LONGEST - 10)}\n")
            file.writelines(f"{k % 2} {namespace(1000)}\n" for k in range(9000))
    for how, cached, n_rows, n_bad, megabytes in all_uses(path, mode, threads):
        assert (n_rows, n_bad) == (2 * 18_003, 0 if cached else 2 * 2)
        assert megabytes <= MOST_MB, (how, cached)
