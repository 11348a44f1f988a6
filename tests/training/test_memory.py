"""Memory does not grow with the data: beside weights and index, training stays below 150 MB."""

import random
import subprocess
import sys

import pytest

MAX_MB = 150

# Trains in another process, and prints the peak of memory beside imports, weights and index.
TRAIN = """
import resource, sys
import pyarrow.ipc, pyarrow.parquet
from maxcosine.data import ReadOptions
from maxcosine.rules import RULES
from maxcosine.training import Settings, StreamLearner, Training

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6

path, options, rule = sys.argv[1], eval(sys.argv[2]), RULES["pa1"]
before = peak()
training = Training(path, ReadOptions(**options), StreamLearner(Settings(rule, rule.make_params())))
model = training.run()
index = model.features.index
model_bytes = model.heads.arrays.v.nbytes + (0 if index is None else index.nbytes)
print(training.status.examples, peak() - before - model_bytes / 1e6)
"""

DICE = random.Random(0)


def numbers(n):
    return " ".join(f"{DICE.randrange(1, 10**6)}:{DICE.random():.4f}" for _ in range(n))


def words(n):
    return "|a " + " ".join(f"word{DICE.randrange(10**5)}" for _ in range(n))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems count memory in other units")
@pytest.mark.parametrize(
    ("features", "options"),
    [
        (numbers, {}),
        (numbers, {"exact": True}),
        (words, {"bits": 18}),
        (words, {"exact": True}),
    ],
    ids=lambda one: one.__name__ if callable(one) else str(one),
)
@pytest.mark.parametrize("length", [2, 80, 20_000])
def test_memory_is_bounded_whatever_the_size_of_the_data(tmp_path, features, options, length):
    path = tmp_path / ("data.svm" if features is numbers else "data.vw")
    lines = "".join(f"{k % 2} {features(length)}\n" for k in range(max(20, 200_000 // length)))
    n_times = 100_000_000 // len(lines)
    with path.open("w") as file:
        for _ in range(n_times):
            file.write(lines)
    subprocess.run(
        [sys.executable, "-m", "maxcosine", "convert", path, "-o", tmp_path / "data.arrow"]
        + [f"--{name}" if value is True else f"--{name}={value}" for name, value in options.items()],
        check=True,
        capture_output=True,
    )
    for data in (path, tmp_path / "data.arrow"):
        command = [sys.executable, "-c", TRAIN, data, repr({**options, "threads": 4})]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        n_examples, megabytes = ran.stdout.split()
        assert int(n_examples) == n_times * lines.count("\n")
        assert float(megabytes) < MAX_MB
