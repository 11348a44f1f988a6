"""What can go wrong with files, pipes, disks and users: an error that says where, what and what to do, and
nothing half-written."""

import functools
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


def train(folder, *arguments, stdin=None, limit=None):
    """Train on arguments; returns what the process did."""
    return run(folder, "train", *arguments, "--model", "model", input=stdin, text=False, largest_file=limit)


def written(folder):
    return sorted(path.name for path in folder.iterdir())


# Files, each with what is in it, and what the error says; None: it is learnt.
FILES = {
    "binary garbage": ("data.svm", bytes(range(256)) * 40, "data.svm:1:"),
    "a gzip cut short": (
        "data.svm.gz",
        gzip.compress(GOOD * 5000)[:-30],
        "cut short or damaged, fetch it again",
    ),
    "a gzip that is none": ("data.svm.gz", b"\x1f\x8b" + b"not packed at all" * 9, "cut short or damaged"),
    "a zstd cut short": (
        "data.svm.zst",
        zstandard.ZstdCompressor().compress(GOOD * 5000)[:-5],
        "cut short or damaged, fetch it again",
    ),
    "a line without end": ("data.svm", b"1 " + b"1" * (65 << 20), "is longer than 64 MB"),
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


def a_file(folder, name, content, message):
    (folder / name).write_bytes(content)
    ran = train(folder, name)
    errors = ran.stderr.decode()
    if message is None:
        assert ran.returncode == 0, errors
        assert written(folder) == sorted([name, "model"])
    else:
        assert ran.returncode == 1
        assert message in errors
        assert written(folder) == [name]
    return errors


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
    long = b"1 " + b"1:1 " * (65 << 18)
    (tmp_path / "data.svm").write_bytes(GOOD + long + b"\n" + GOOD)
    ran = train(tmp_path, "data.svm", "--on-bad", "skip", "--bad-lines", "bad.txt", "--json")
    assert ran.returncode == 0, ran.stderr
    outcome = json.loads(ran.stdout)
    assert (outcome["bad_lines"], outcome["examples"]) == (1, 8)
    assert b"data.svm:5:1: the line is longer than 64 MB" in outcome["first_bad_lines"][0].encode()
    assert (tmp_path / "bad.txt").read_bytes() == long[: 64 << 20] + b"\n"


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


def test_ctrl_c_without_a_checkpoint_leaves_nothing(tmp_path):
    process = slow_training(tmp_path, "--checkpoint-every", 1000, "--predictions", "predictions")
    process.stdin.write(GOOD)
    process.stdin.flush()
    waiting_for(tmp_path / "checkpoint.lock", process, size=0)
    process.send_signal(signal.SIGINT)
    process.stdin.close()
    errors = process.stderr.read().decode()
    assert process.wait(timeout=60) == 130
    assert "start again" in errors
    assert written(tmp_path) == []


# Each is done to a folder of its own, and gives what was said on standard error.


def a_folder_where_a_file_should_be(folder):
    (folder / "data.svm").mkdir()
    ran = train(folder, "data.svm")
    assert ran.returncode == 1
    assert b"data.svm: this is a folder; name files, for example 'data.svm/*'" in ran.stderr
    assert written(folder) == ["data.svm"]
    return ran.stderr.decode()


def no_permission(folder):
    path = folder / "secret.svm"
    path.write_bytes(GOOD)
    path.chmod(0)
    if os.access(path, os.R_OK):  # root may read everything; but not a file that nobody can open
        path = "/proc/self/mem"
    ran = train(folder, path)
    assert ran.returncode == 1
    assert ran.stderr.startswith(b"error: ")
    assert written(folder) == ["secret.svm"]
    return ran.stderr.decode()


IN_A_SMALL_TMPFS = """
set -e
mount -t tmpfs -o size=64k tmpfs full
status=0
"$@" || status=$?
ls -A full
exit $status
"""
# A user may mount what nobody else sees, if the system allows it.
NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount")


def can_mount(folder):
    if shutil.which("unshare") is None:
        return False
    mount = [*NAMESPACE, "mount", "-t", "tmpfs", "tmpfs", folder]
    return subprocess.run(mount, capture_output=True, check=False).returncode == 0


def disk_full(folder):
    """In a file system of its own, of 64 KB; else no file can become that long, as with a quota."""
    lines = (b"%d %d:1 %d:2\n" % (k % 2, k, k + 9) for k in range(50_000))
    (folder / "data.svm").write_bytes(b"".join(lines))
    (folder / "full").mkdir()
    arguments = ["train", "data.svm", "--model", "full/model"]
    if not can_mount(folder / "full"):
        ran = run(folder, *arguments, text=False, largest_file=2**16)
        assert b"File too large" in ran.stderr
    else:
        shell = [*NAMESPACE, "sh", "-c", IN_A_SMALL_TMPFS, "sh", *command(*arguments)]
        ran = subprocess.run(shell, cwd=folder, capture_output=True, timeout=120, check=False)
        assert b"error: full/model: No space left on device; make room there, or name a file" in ran.stderr
    assert ran.returncode == 1
    assert ran.stdout == b""  # nothing is left in it
    assert written(folder) == ["data.svm", "full"]
    return ran.stderr.decode()


def a_closed_pipe(folder):
    (folder / "data.svm").write_bytes(GOOD * 200_000)
    assert train(folder, "data.svm").returncode == 0
    process = subprocess.Popen(
        command("predict", "model", "data.svm"), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() in (b"1\n", b"-1\n")
    process.stdout.close()
    errors = process.stderr.read()
    assert process.wait(timeout=60) == 1
    assert errors == b""
    return errors.decode()


def ctrl_c(folder):
    process = slow_training(folder)
    process.stdin.write(GOOD)
    process.stdin.flush()
    waiting_for(folder / "checkpoint", process)
    process.send_signal(signal.SIGINT)
    process.stdin.close()
    errors = process.stderr.read().decode()
    assert process.wait(timeout=60) == 130
    assert re.search(r"^interrupted after 4 examples; the same command with --resume continues", errors)
    assert len(errors.splitlines()) == 1
    assert written(folder) == ["checkpoint"]
    return errors


def two_trainings_writing_the_same_checkpoint(folder):
    first = slow_training(folder)
    try:
        first.stdin.write(GOOD)
        first.stdin.flush()
        waiting_for(folder / "checkpoint", first)
        ran = train(folder, "-", "--checkpoint", "checkpoint", stdin=GOOD)
        assert ran.returncode == 1
        assert b"another training writes the checkpoint checkpoint" in ran.stderr
    finally:
        first.stdin.close()
    assert first.wait(timeout=60) == 0
    assert written(folder) == ["checkpoint", "model"]
    return ran.stderr.decode()


FAULTS = {
    **{
        name: functools.partial(a_file, name=file, content=c, message=m)
        for name, (file, c, m) in FILES.items()
    },
    "a folder where a file should be": a_folder_where_a_file_should_be,
    "no permission": no_permission,
    "disk full": disk_full,
    "a closed pipe": a_closed_pipe,
    "Ctrl-C": ctrl_c,
    "two trainings writing the same checkpoint": two_trainings_writing_the_same_checkpoint,
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_what_can_go_wrong(tmp_path, fault):
    assert "Traceback" not in fault(tmp_path)
