"""A training that is killed at any moment resumes to the same bits."""

import random
import signal
import subprocess
import time

import numpy as np
import pytest

from maxcosine import model_file
from tests.commands import command

WAYS = {
    "columns, one pass": ("data.svm", []),
    "names, two passes of a rule": ("data.vw", ["--rule", "mcp", "--exact", "--passes", 2, "--average"]),
}
OUTPUTS = ("model", "predictions", "bad-lines")


def write_data(folder, n=50_000):
    """Examples of four classes, two of which come late, and some bad lines."""
    rng = np.random.default_rng(0)
    classes, ids, values = rng.integers(0, 4, n), rng.integers(0, 2000, (n, 4)), rng.normal(size=(n, 4))
    with open(folder / "data.svm", "w") as svm, open(folder / "data.vw", "w") as vw:
        for k in range(n):
            label = f"c{classes[k] if k > n // 2 else classes[k] // 2}"
            features = [f"{i}:{v:g}" for i, v in zip(ids[k], values[k], strict=True)]
            svm.write(f"{label} {' '.join(features)}\n")
            vw.write(f"{label} {k % 3} |a {' '.join(features[:2])} |b {' '.join(features[2:])}\n")
            if k % 997 == 5:
                svm.write("c0 this is no feature\n")
                vw.write("c0 | x:nothing\n")


def training(way, *more):
    data, options = WAYS[way]
    outputs = [text for name in OUTPUTS for text in (f"--{name}", name)]
    return command("train", data, *options, *outputs, "--on-bad", "skip", *more)


def take_outcome(folder):
    """Return the digest of the model and the other files, and remove them all."""
    found = [model_file.digest(folder / "model"), *((folder / name).read_bytes() for name in OUTPUTS[1:])]
    for name in OUTPUTS:
        (folder / name).unlink()
    return found


def wait_for_checkpoint(path, process):
    """Wait until a checkpoint is written, or the process ends."""

    def stamp():
        return path.stat().st_mtime_ns if path.exists() else 0

    before, begun = stamp(), time.monotonic()
    while stamp() == before and process.poll() is None:
        assert time.monotonic() - begun < 120
        time.sleep(0.001)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_killed_training_resumes_to_the_same_bits(tmp_path, way):
    write_data(tmp_path)
    subprocess.run(training(way), cwd=tmp_path, check=True, capture_output=True, timeout=300)
    expected = take_outcome(tmp_path)
    resuming = training(way, "--checkpoint", "checkpoint", "--checkpoint-every", 500, "--resume")
    moments, kills, n_resumed = random.Random(1), 25, 0
    while kills:
        process = subprocess.Popen(resuming, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if moments.random() < 0.2:
            time.sleep(moments.random())
        else:
            wait_for_checkpoint(tmp_path / "checkpoint", process)
            time.sleep(moments.random() * 0.2)
        killed = process.poll() is None
        process.send_signal(signal.SIGKILL)
        _, errors = process.communicate(timeout=60)
        n_resumed += b"resuming from checkpoint" in errors
        if killed:
            kills -= 1
        else:
            assert process.returncode == 0, errors
            assert take_outcome(tmp_path) == expected
            (tmp_path / "checkpoint").unlink()
    subprocess.run(resuming, cwd=tmp_path, check=True, capture_output=True, timeout=300)
    assert take_outcome(tmp_path) == expected
    assert n_resumed > 5
    left = {path.name for path in tmp_path.iterdir()} - {"data.svm", "data.vw"}
    assert left == {"checkpoint", "checkpoint.predictions", "checkpoint.bad_lines"}
