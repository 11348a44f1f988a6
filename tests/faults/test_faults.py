"""Faults of data, disks, pipes and users: one line says where and what to do, and nothing is half-written."""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest
import zstandard

from maxcosine import model_file
from tests.commands import command, run

GOOD = b"1 1:1 2:0.5\n-1 2:1 3:2\n1 1:2\n-1 3:1\n"


def train(folder, *arguments, **options):
    """Train a model; return what the command did."""
    return run(folder, "train", *arguments, "--rule", "mcp", "--model", "model", text=False, **options)


def written(folder):
    return sorted(path.name for path in folder.iterdir())


# Data: the name of a file, its content, and the error; None if it is good.
FILES = {
    "binary garbage": ("data.svm", bytes(range(256)) * 40, "data.svm:1:"),
    "truncated gzip": ("data.svm.gz", gzip.compress(GOOD * 5000)[:-30], "data.svm.gz"),
    "not gzip": ("data.svm.gz", b"\x1f\x8b" + b"not compressed at all" * 9, "data.svm.gz"),
    "truncated zstd": (
        "data.svm.zst",
        zstandard.ZstdCompressor().compress(GOOD * 5000)[:-5],
        "data.svm.zst",
    ),
    "CRLF": ("data.svm", GOOD.replace(b"\n", b"\r\n"), None),
    "byte order mark": ("data.svm", b"\xef\xbb\xbf" + GOOD, None),
    "no newline at the end": ("data.svm", GOOD.rstrip(), None),
    "unsorted and repeated ids": ("data.svm", GOOD + b"1 5:1 2:1 5:1\n", None),
    "NUL byte": ("data.svm", GOOD + b"1 1:1\0 2:1\n", "data.svm:5:6: "),
    "id above 2^64": ("data.svm", GOOD + b"1 18446744073709551616:1\n", "data.svm:5:3: "),
    "negative id": ("data.svm", GOOD + b"1 -3:1\n", "data.svm:5:3: "),
    "id that cannot be a column": ("data.svm", GOOD + b"1 268435456:1\n", "--bits 22"),
    "1e999": ("data.svm", GOOD + b"1 2:1e999\n", "data.svm:5:5: "),
    "NaN": ("data.svm", GOOD + b"1 2:nan\n", "data.svm:5:5: "),
    "hexadecimal": ("data.svm", GOOD + b"1 2:0x1f\n", "data.svm:5:5: "),
    "no value": ("data.svm", GOOD + b"1 2\n", "data.svm:5:3: "),
    "no label": ("data.svm", GOOD + b"2:1\n", "data.svm:5:1: "),
    "too long an example": ("data.svm", GOOD + b"1 2:1e12\n", "data.svm:5:1: "),
    "negative weight": ("data.vw", b"1 | a\n-1 -2 | b\n", "data.vw:2:4: "),
    "no bar": ("data.vw", b"1 | a\n-1 b\n", "data.vw:2:1: "),
    "empty file": ("data.svm", b"", "data.svm"),
    "only comments": ("data.svm", b"# nothing\n\n# here\n", "data.svm"),
}
BAD_LINES = [content[len(GOOD) :] for _, content, error in FILES.values() if error and content[:4] == GOOD[:4]]


@pytest.mark.parametrize("fault", FILES)
def test_faults_of_data(tmp_path, fault):
    name, content, error = FILES[fault]
    (tmp_path / name).write_bytes(content)
    ran = train(tmp_path, name)
    errors = ran.stderr.decode()
    assert "Traceback" not in errors
    if error is None:
        assert ran.returncode == 0, errors
        assert written(tmp_path) == sorted([name, "model"])
    else:
        assert ran.returncode == 1
        assert errors.startswith("error: ")
        assert error in errors
        assert written(tmp_path) == [name]


def test_bad_lines_are_skipped_counted_and_kept(tmp_path):
    (tmp_path / "data.svm").write_bytes(GOOD + GOOD.join(BAD_LINES) + GOOD)
    ran = train(tmp_path, "data.svm", "--on-bad", "skip", "--bad-lines", "bad.txt", "--json")
    assert ran.returncode == 0, ran.stderr
    outcome = json.loads(ran.stdout)
    assert outcome["bad_lines"] == len(BAD_LINES) > 8
    assert outcome["examples"] == 4 * (len(BAD_LINES) + 1)
    assert (tmp_path / "bad.txt").read_bytes() == b"".join(BAD_LINES)
    digest = model_file.digest(tmp_path / "model")
    (tmp_path / "good.svm").write_bytes(GOOD * (len(BAD_LINES) + 1))
    train(tmp_path, "good.svm")
    assert model_file.digest(tmp_path / "model") == digest


def test_a_file_without_permission(tmp_path):
    path = tmp_path / "secret.svm"
    path.write_bytes(GOOD)
    path.chmod(0)
    if os.access(path, os.R_OK):  # root may read every file, but not this one
        path = "/proc/self/mem"
    ran = train(tmp_path, path)
    assert ran.returncode == 1
    assert ran.stderr.startswith(b"error: ")
    assert b"Traceback" not in ran.stderr
    assert written(tmp_path) == ["secret.svm"]


# Disks


def many_features(path, n=9000):
    path.write_bytes(b"".join(b"%d %d:1 %d:2\n" % (k % 2, k, k + 9) for k in range(n)))


def test_a_full_disk_leaves_the_old_model(tmp_path):
    many_features(tmp_path / "data.svm")
    (tmp_path / "model").write_bytes(b"an earlier model")
    ran = train(tmp_path, "data.svm", largest_file=20_000)
    assert ran.returncode == 1
    assert b"File too large" in ran.stderr
    assert b"Traceback" not in ran.stderr
    assert written(tmp_path) == ["data.svm", "model"]
    assert (tmp_path / "model").read_bytes() == b"an earlier model"


@pytest.mark.parametrize("output", ["checkpoint", "predictions"])
def test_a_full_disk_leaves_nothing_half_written(tmp_path, output):
    many_features(tmp_path / "data.svm")
    ran = train(tmp_path, "data.svm", f"--{output}", output, "--checkpoint-every", 5000, largest_file=10_000)
    assert ran.returncode == 1
    assert b"File too large" in ran.stderr
    assert written(tmp_path) == ["data.svm"]


IN_A_SMALL_TMPFS = """
set -e
mount -t tmpfs -o size=64k tmpfs full
status=0
"$@" || status=$?
ls -A full
exit $status
"""
NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount")


def can_mount(folder):
    """Whether the system lets users mount file systems that only they see."""
    if shutil.which("unshare") is None:
        return False
    mount = [*NAMESPACE, "mount", "-t", "tmpfs", "tmpfs", folder]
    return subprocess.run(mount, capture_output=True, check=False).returncode == 0


def test_a_file_system_without_space(tmp_path):
    many_features(tmp_path / "data.svm", 50_000)
    (tmp_path / "full").mkdir()
    if not can_mount(tmp_path / "full"):
        pytest.skip("users cannot mount file systems here")
    shell = [
        *NAMESPACE,
        "sh",
        "-c",
        IN_A_SMALL_TMPFS,
        "sh",
        *command("train", "data.svm", "--model", "full/model"),
    ]
    ran = subprocess.run(shell, cwd=tmp_path, capture_output=True, timeout=120, check=False)
    assert b"error: full/model: No space left on device" in ran.stderr
    assert (ran.returncode, ran.stdout) == (1, b"")  # nothing is left in it


# Pipes and signals


def test_a_pipe_is_answered_line_by_line(tmp_path):
    (tmp_path / "data.svm").write_bytes(GOOD)
    assert train(tmp_path, "data.svm").returncode == 0
    process = subprocess.Popen(
        command("predict", "model", "-"), cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    for line, answer in ((b"1:1\n", b"1\n"), (b"3:1\n", b"-1\n"), (b"1:5\n2:1 3:9\n", b"1\n-1\n")):
        process.stdin.write(line)
        process.stdin.flush()
        assert b"".join(process.stdout.readline() for _ in answer.splitlines()) == answer
    process.stdin.close()
    assert process.wait(timeout=60) == 0


def slow_training(folder, every):
    """A training that waits for more lines, and so never ends by itself."""
    files = ["--checkpoint", "checkpoint", "--checkpoint-every", every]
    process = subprocess.Popen(
        command("train", "-", "--model", "model", *files),
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdin.write(GOOD)
    process.stdin.flush()
    return process


def wait_for(path, process, size):
    begun = time.monotonic()
    while not path.exists() or path.stat().st_size < size:
        assert process.poll() is None
        assert time.monotonic() - begun < 120
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("every", "file", "message", "left"),
    [
        (2, "checkpoint", "interrupted after [24] examples; .*--resume", ["checkpoint"]),
        (1000, "checkpoint.lock", "checkpoint was not reached", []),
    ],
    ids=["after a checkpoint", "before a checkpoint"],
)
def test_ctrl_c(tmp_path, every, file, message, left):
    process = slow_training(tmp_path, every)
    wait_for(tmp_path / file, process, size=0 if file.endswith("lock") else 1)
    process.send_signal(signal.SIGINT)
    process.stdin.close()
    errors = process.stderr.read().decode()
    assert process.wait(timeout=60) == 130
    assert re.search(message, errors), errors
    assert len(errors.splitlines()) == 1
    assert written(tmp_path) == left
