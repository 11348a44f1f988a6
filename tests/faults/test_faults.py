"""What can go wrong with files, pipes, disks and users: an error that says where, what and what to do, and
nothing half-written."""

import gzip
import json
import os
import re
import signal
import subprocess
import time

import pytest
import zstandard

from maxcosine import model_file
from tests.commands import command, run

GOOD = b"1 1:1 2:0.5\n-1 2:1 3:2\n1 1:2\n-1 3:1\n"


def train(folder, *arguments, stdin=None, limit=None):
    """Train on arguments; returns what the process did."""
    return run(folder, "train", *arguments, "--model", "model", input=stdin, text=False, largest_file=limit)


def written(folder):
    return sorted(path.name for path in folder.iterdir())


# The name of the file, what is in it, and what the error says; None: it is learnt.
FILES = {
    "binary garbage": ("data.svm", bytes(range(256)) * 40, "data.svm:1:"),
    "a gzip cut short": (
        "data.svm.gz",
        gzip.compress(GOOD * 5000)[:-30],
        "cut short or damaged, fetch it anew",
    ),
    "a gzip that is none": ("data.svm.gz", b"\x1f\x8b" + b"not packed at all" * 9, "cut short or damaged"),
    "a zstd cut short": (
        "data.svm.zst",
        zstandard.ZstdCompressor().compress(GOOD * 5000)[:-5],
        "cut short or damaged, fetch it anew",
    ),
    "a line without end": ("data.svm", b"1 " + b"1" * (17 << 20), "is longer than 16 MB"),
    "CRLF": ("data.svm", GOOD.replace(b"\n", b"\r\n"), None),
    "BOM": ("data.svm", b"\xef\xbb\xbf" + GOOD, None),
    "no newline at the end": ("data.svm", GOOD.rstrip(), None),
    "NUL bytes": ("data.svm", GOOD + b"1 1:1\0 2:1\n", "data.svm:5:6: there is a NUL byte"),
    "ids above 2^63": ("data.svm", GOOD + b"1 9223372036854775809:1\n", "data.svm:5:3: the id is too large"),
    "ids above 2^64": (
        "data.svm",
        GOOD + b"1 18446744073709551616:1\n",
        "data.svm:5:3: the feature's id is too",
    ),
    "negative ids": ("data.svm", GOOD + b"1 -3:1\n", "data.svm:5:3: the feature's id is not a whole number"),
    "unsorted and repeated ids": ("data.svm", GOOD + b"1 5:1 2:1 5:1\n", None),
    "1e999": ("data.svm", GOOD + b"1 2:1e999\n", "data.svm:5:5: the number is too large"),
    "NaN": ("data.svm", GOOD + b"1 2:nan\n", "data.svm:5:5: the number is not finite"),
    "hexadecimal": ("data.svm", GOOD + b"1 2:0x1f\n", "data.svm:5:5: this is not a decimal number"),
    "no value": ("data.svm", GOOD + b"1 2\n", "data.svm:5:3: the feature has no value"),
    "an id that is no column": (
        "data.svm",
        GOOD + b"1 268435456:1\n",
        "data.svm:5:3: the id is too large for a column; hash features (--bits 22), or keep them exactly",
    ),
    "no label": ("data.svm", GOOD + b"2:1\n", "data.svm:5:1: the line has no label"),
    "a negative weight": ("data.vw", b"1 | a\n-1 -2 | b\n", "data.vw:2:4: the weight is negative"),
    "no bar": ("data.vw", b"1 | a\n-1 b\n", "data.vw:2:1: there is no '|' in the line"),
    "an example too long": ("data.svm", GOOD + b"1 2:1e12\n", "data.svm:5:1: the example is too long"),
    "an example too short": ("data.vw", b"1 | a\n1 | a:1e-15\n", "data.vw:2:1: the example is too long, or"),
    "empty file": ("data.svm", b"", "there is no example in data.svm"),
    "only comments": ("data.svm", b"# nothing\n\n# here\n", "there is no example in data.svm"),
}


@pytest.mark.parametrize(("name", "content", "message"), FILES.values(), ids=FILES)
def test_files(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    ran = train(tmp_path, name)
    errors = ran.stderr.decode()
    assert "Traceback" not in errors
    if message is None:
        assert ran.returncode == 0, errors
        assert written(tmp_path) == sorted([name, "model"])
    else:
        assert ran.returncode == 1
        assert message in errors
        assert written(tmp_path) == [name]


SKIPPED = (
    "NUL bytes",
    "ids above 2^63",
    "negative ids",
    "1e999",
    "NaN",
    "hexadecimal",
    "no value",
    "no label",
    "an example too long",
)


def test_bad_lines_are_skipped_counted_and_kept_and_good_ones_are_learnt(tmp_path):
    bad = [FILES[name][1][len(GOOD) :] for name in SKIPPED]
    (tmp_path / "data.svm").write_bytes(GOOD + GOOD.join(bad) + GOOD)
    ran = train(tmp_path, "data.svm", "--on-bad", "skip", "--bad-lines", "bad.txt", "--json")
    assert ran.returncode == 0, ran.stderr
    outcome = json.loads(ran.stdout)
    assert outcome["bad_lines"] == len(bad)
    assert outcome["examples"] == 4 * (len(bad) + 1)
    assert (tmp_path / "bad.txt").read_bytes() == b"".join(bad)
    (tmp_path / "good.svm").write_bytes(GOOD * (len(bad) + 1))
    digests = [model_file.digest(tmp_path / "model")]
    train(tmp_path, "good.svm")
    assert [model_file.digest(tmp_path / "model")] == digests


def test_a_line_without_end_is_skipped_and_kept(tmp_path):
    long = b"1 " + b"1:1 " * (17 << 18)
    (tmp_path / "data.svm").write_bytes(GOOD + long + b"\n" + GOOD)
    ran = train(tmp_path, "data.svm", "--on-bad", "skip", "--bad-lines", "bad.txt", "--json")
    assert ran.returncode == 0, ran.stderr
    outcome = json.loads(ran.stdout)
    assert (outcome["bad_lines"], outcome["examples"]) == (1, 8)
    assert b"data.svm:5:1: the line is longer than 16 MB" in outcome["first_bad_lines"][0].encode()
    assert (tmp_path / "bad.txt").read_bytes() == long + b"\n"


def test_a_value_that_comes_twice_is_added_up(tmp_path):
    digests = []
    for line in (b"1 5:1 2:1 5:1\n", b"1 5:2 2:1\n"):
        (tmp_path / "data.svm").write_bytes(GOOD + line)
        assert train(tmp_path, "data.svm").returncode == 0
        digests.append(model_file.digest(tmp_path / "model"))
    assert digests[0] == digests[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["folder"], "folder: this is a folder; name files, for example 'folder/*'"),
        (["missing.svm"], "missing.svm: there is no such file; check the name"),
        (["day-*.svm"], "day-*.svm: there is no such file"),
        (["-", "-"], "standard input can be read once only"),
        (["-", "--passes", "2"], "standard input can be read once only"),
        (["good.svm", "--rule", "mpc"], "there is no rule 'mpc'; the rules are"),
        (["good.svm", "--param", "C"], "write NAME=VALUE, for example C=0.1"),
        (["good.svm", "--resume"], "--resume needs --checkpoint PATH"),
        (["good.svm", "--bits", "5", "--exact"], "hashed, bits > 0, or exact, but not both"),
        (["good.svm", "--init", "good.svm"], "good.svm"),
        (["good.svm", "--model", "folder"], "folder is a folder; name a file in it"),
    ],
)
def test_mistakes_of_the_user(tmp_path, arguments, message):
    (tmp_path / "folder").mkdir()
    (tmp_path / "good.svm").write_bytes(GOOD)
    ran = train(tmp_path, *arguments, stdin=GOOD)
    errors = ran.stderr.decode()
    if "--model" in arguments:  # the last one counts
        ran = run(tmp_path, "train", *arguments, text=False)
        errors = ran.stderr.decode()
        (tmp_path / "model").unlink()
    assert ran.returncode == 1
    assert message in errors
    assert "Traceback" not in errors
    assert written(tmp_path) == ["folder", "good.svm"]


def test_no_permission(tmp_path):
    path = tmp_path / "secret.svm"
    path.write_bytes(GOOD)
    path.chmod(0)
    if os.access(path, os.R_OK):  # root may read everything; but not a file that nobody can open
        path = "/proc/self/mem"
    ran = train(tmp_path, path)
    assert ran.returncode == 1
    assert b"Traceback" not in ran.stderr
    assert written(tmp_path) == ["secret.svm"]


@pytest.mark.parametrize("earlier", [False, True])
def test_a_full_disk_leaves_what_was_there(tmp_path, earlier):
    (tmp_path / "data.svm").write_bytes(b"".join(b"%d %d:1 %d:2\n" % (k % 2, k, k + 9) for k in range(9000)))
    if earlier:
        (tmp_path / "model").write_bytes(b"an earlier model")
    ran = train(tmp_path, "data.svm", limit=20_000)
    assert ran.returncode == 1
    assert b"File too large" in ran.stderr
    assert b"Traceback" not in ran.stderr
    assert written(tmp_path) == (["data.svm", "model"] if earlier else ["data.svm"])
    if earlier:
        assert (tmp_path / "model").read_bytes() == b"an earlier model"


@pytest.mark.parametrize("output", ["checkpoint", "predictions"])
def test_a_full_disk_leaves_nothing_half_written(tmp_path, output):
    (tmp_path / "data.svm").write_bytes(b"".join(b"%d %d:1 %d:2\n" % (k % 2, k, k + 9) for k in range(9000)))
    ran = train(tmp_path, "data.svm", f"--{output}", output, "--checkpoint-every", 5000, limit=10_000)
    assert ran.returncode == 1
    assert b"File too large" in ran.stderr
    assert b"Traceback" not in ran.stderr
    assert written(tmp_path) == ["data.svm"]


def test_a_closed_pipe_ends_without_a_word(tmp_path):
    (tmp_path / "data.svm").write_bytes(GOOD * 200_000)
    assert train(tmp_path, "data.svm").returncode == 0
    process = subprocess.Popen(
        command("predict", "model", "data.svm"), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() in (b"1\n", b"-1\n")
    process.stdout.close()
    errors = process.stderr.read()
    assert process.wait(timeout=60) == 1
    assert errors == b""


def test_a_pipe_stays_a_pipe(tmp_path):
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


def waiting_for(path, process, size=1):
    begun = time.monotonic()
    while not path.exists() or path.stat().st_size < size:
        assert process.poll() is None
        assert time.monotonic() - begun < 120
        time.sleep(0.01)


def slow_training(folder, *arguments):
    """A training that is fed line by line, and so never ends by itself."""
    return subprocess.Popen(
        command(
            "train",
            "-",
            "--model",
            "model",
            "--checkpoint",
            "checkpoint",
            "--checkpoint-every",
            2,
            *arguments,
        ),
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_ctrl_c(tmp_path):
    process = slow_training(tmp_path)
    process.stdin.write(GOOD)
    process.stdin.flush()
    waiting_for(tmp_path / "checkpoint", process)
    process.send_signal(signal.SIGINT)
    process.stdin.close()
    errors = process.stderr.read().decode()
    assert process.wait(timeout=60) == 130
    assert "Traceback" not in errors
    assert re.search(r"^interrupted after 4 examples; the same command with --resume goes on", errors)
    assert len(errors.splitlines()) == 1
    assert written(tmp_path) == ["checkpoint"]


def test_ctrl_c_without_a_checkpoint_leaves_nothing(tmp_path):
    process = slow_training(tmp_path, "--checkpoint-every", 1000, "--predictions", "predictions")
    process.stdin.write(GOOD)
    process.stdin.flush()
    waiting_for(tmp_path / "checkpoint.lock", process, size=0)
    process.send_signal(signal.SIGINT)
    process.stdin.close()
    errors = process.stderr.read().decode()
    assert process.wait(timeout=60) == 130
    assert "begin anew" in errors
    assert written(tmp_path) == []


def test_two_trainings_do_not_write_the_same_checkpoint(tmp_path):
    first = slow_training(tmp_path)
    try:
        first.stdin.write(GOOD)
        first.stdin.flush()
        waiting_for(tmp_path / "checkpoint", first)
        ran = train(tmp_path, "-", "--checkpoint", "checkpoint", stdin=GOOD)
        assert ran.returncode == 1
        assert b"another training writes the checkpoint checkpoint" in ran.stderr
    finally:
        first.stdin.close()
    assert first.wait(timeout=60) == 0
    assert written(tmp_path) == ["checkpoint", "model"]
