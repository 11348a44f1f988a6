"""A training that is killed at any moment, and goes on as if nothing had happened."""

import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from maxcosine import model_file

WAYS = {
    "columns": ("data.svm", []),
    "names, two passes": ("data.vw", ["--exact", "--passes", "2", "--average"]),
}
OUTPUTS = ("model", "predictions", "bad-lines")


def write_data(folder, n=50_000):
    """Examples of four classes, of which two come late, and a bad line now and then."""
    generator = np.random.default_rng(0)
    ids, values = generator.integers(0, 500, (n, 5)), generator.integers(1, 99, (n, 5)) / 8
    classes = generator.integers(0, 4, n)
    with open(folder / "data.svm", "w") as svm, open(folder / "data.vw", "w") as vw:
        for k in range(n):
            label = f"c{classes[k] if k > n // 2 else classes[k] // 2}"
            features = [f"{i}:{v:g}" for i, v in zip(ids[k], values[k], strict=True)]
            svm.write(f"{label} {' '.join(features)}\n")
            vw.write(f"{label} {k % 3} |a {' '.join(features[:2])} |b {' '.join(features[2:])}\n")
            if k % 997 == 5:
                svm.write("c0 this is no feature\n")
                vw.write("c0 | x:nothing\n")


def command(data, options, *more):
    outputs = [text for name in OUTPUTS for text in (f"--{name}", name)]
    arguments = [data, *options, *outputs, "--on-bad", "skip", *more]
    return [sys.executable, "-m", "maxcosine", "train", *arguments]


def outcome(folder):
    """What is left at the end: the bits of the model, and the other files."""
    found = [model_file.digest(folder / "model"), *((folder / name).read_bytes() for name in OUTPUTS[1:])]
    for name in OUTPUTS:
        (folder / name).unlink()
    return found


def wait_for_another(path, process):
    """Wait until a file is written anew, or the process ends."""

    def stamp():
        return path.stat().st_mtime_ns if path.exists() else 0

    before, begun = stamp(), time.monotonic()
    while stamp() == before and process.poll() is None:
        assert time.monotonic() - begun < 120
        time.sleep(0.001)


def kill_and_go_on(folder, way, kills, seed):
    data, options = WAYS[way]
    subprocess.run(command(data, options), cwd=folder, check=True, capture_output=True, timeout=300)
    expected = outcome(folder)
    moments = random.Random(seed)
    resuming = command(data, options, "--checkpoint", "checkpoint", "--checkpoint-every", "500", "--resume")
    gone_on = 0
    while kills:
        process = subprocess.Popen(resuming, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if moments.random() < 0.2:
            time.sleep(moments.random() * 1.5)
        else:  # the most time is spent before it learns: most moments are after that
            wait_for_another(folder / "checkpoint", process)
            time.sleep(moments.random() * 0.2)
        killed = process.poll() is None
        process.send_signal(signal.SIGKILL)
        _, errors = process.communicate(timeout=60)
        gone_on += b"starting afresh" not in errors
        if killed:
            kills -= 1
        else:
            assert process.returncode == 0, errors
            assert outcome(folder) == expected
            (folder / "checkpoint").unlink()
    subprocess.run(resuming, cwd=folder, check=True, capture_output=True, timeout=300)
    assert outcome(folder) == expected
    assert gone_on > 0
    left = {path.name for path in folder.iterdir()} - {"data.svm", "data.vw"}
    assert left == {"checkpoint", "checkpoint.predictions", "checkpoint.bad_lines"}


@pytest.mark.parametrize("way", WAYS)
def test_a_training_that_is_killed_goes_on_to_the_same_bits(tmp_path, way):
    write_data(tmp_path)
    kill_and_go_on(tmp_path, way, kills=3, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_at_fifty_moments(tmp_path, way):
    write_data(tmp_path)
    kill_and_go_on(tmp_path, way, kills=50, seed=2)
