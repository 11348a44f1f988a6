"""The command as a user meets it: a process of its own, real files, real signals."""

import json
import os
import re
import signal
import subprocess
import time

import numpy as np
import pytest

from maxcosine.experiments.results import Results
from tests import commands
from tests.cli.terminal import on_terminal
from tests.commands import command

# Nothing of this machine or of the internet: no cache, no npm, no apt, and a proxy that is not there.
NOWHERE = "http://127.0.0.1:9"


def environment(tmp_path, **more):
    return {
        **os.environ,
        "MAXCOSINE_CACHE": str(tmp_path / "cache"),
        "PATH": str(tmp_path / "bin"),
        "http_proxy": NOWHERE,
        "https_proxy": NOWHERE,
        "no_proxy": "",
        "COLUMNS": "100",
        **more,
    }


def run(tmp_path, *arguments):
    return commands.run(tmp_path, *arguments, env=environment(tmp_path))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Two orders of the digits, and their folder."""
    folder = tmp_path_factory.mktemp("digits")
    ran = run(folder, "reproduce", "digits", "--permutations", "2", "--figures", "drawn")
    assert ran.returncode == 0, ran.stderr
    return folder, ran


def test_the_table_holds_the_means_of_the_results_file(finished):
    folder, ran = finished
    counts = Results.load(folder / "maxcosine-digits.json").counts()
    means = np.array([counts[rule].mean(axis=1) for rule in ("pa", "aggressive_romma", "mcp")])
    rows = re.findall(r"^ +(\d)((?: +[\d.]+ ± [\d.]+[* ])+) *$", ran.stdout, re.MULTILINE)
    assert [label for label, _ in rows] == list("0123456789")
    for k, (_, cells) in enumerate(rows):
        printed = re.findall(r"([\d.]+) ± [\d.]+([* ])", cells)
        assert [float(value) for value, _ in printed] == [round(mean, 1) for mean in means[:, k]]
        assert [mark == "*" for _, mark in printed] == (means[:, k] == means[:, k].min()).tolist()
    assert re.search(r"label +PA +A-ROMMA +MCP", ran.stdout)
    assert "The paper's claim, that MCP makes fewer test mistakes than PA and A-ROMMA" in ran.stdout
    assert "95 % interval" in ran.stdout


def test_what_is_found_goes_to_one_stream_and_what_is_done_to_the_other(finished):
    _, ran = finished
    assert "report   maxcosine-digits.html" in ran.stderr
    assert "results  maxcosine-digits.json" in ran.stderr
    assert "maxcosine-digits" not in ran.stdout
    assert "\x1b" not in ran.stdout + ran.stderr


def test_it_writes_a_report_and_figures(finished):
    folder, _ = finished
    assert (folder / "maxcosine-digits.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    kinds = sorted(path.suffix for path in (folder / "drawn").iterdir())
    assert kinds.count(".svg") == kinds.count(".png") >= 5
    assert not list(folder.glob("*.partial"))


def test_the_command_in_the_results_finds_the_same_again(finished, tmp_path):
    folder, _ = finished
    first = Results.load(folder / "maxcosine-digits.json")
    words = first.command.split()
    assert words[:3] == ["maxcosine", "reproduce", "digits"]
    assert run(tmp_path, *words[1:], "--jobs", "1").returncode == 0
    again = Results.load(tmp_path / "maxcosine-digits.json")
    for name in ("test_mistakes", "train_mistakes", "updates", "bound"):
        for rule, found in first.counts(name).items():
            assert np.array_equal(found, again.counts(name)[rule])


def test_mnist_that_cannot_be_had_is_an_error_that_says_what_was_tried(tmp_path):
    ran = run(tmp_path, "reproduce", "mnist")
    assert ran.returncode == 1
    assert ran.stderr.startswith("error: ")
    assert "--data DIR" in ran.stderr
    assert "npm" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not list(tmp_path.glob("maxcosine-*"))


def test_without_a_name_and_without_mnist_it_takes_the_digits_and_says_so(tmp_path):
    ran = run(tmp_path, "reproduce", "--permutations", "1")
    assert ran.returncode == 0
    assert "NOTICE: MNIST cannot be had here: these are scikit-learn's small digits instead" in ran.stderr
    assert (tmp_path / "maxcosine-digits.json").exists()


OWN = '''
from maxcosine import rule

@rule
def timid(margin, sq_w, sq_x, coef_sum, state, params):
    """A perceptron that takes short steps."""
    return 1.0, (0.01 if margin <= 0.0 else 0.0), state
'''


def test_a_rule_of_ones_own_beside_the_others(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    ran = run(
        tmp_path, "reproduce", "digits", "--permutations", "1", "--rules", "mcp,own.py:timid", "--average"
    )
    assert ran.returncode == 0, ran.stderr
    rules = json.loads((tmp_path / "maxcosine-digits.json").read_text())["protocol"]["rules"]
    assert rules == ["mcp", "timid", "avg_mcp", "avg_timid"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rules", "mpc"], "there is no rule 'mpc'; the rules are aggressive_romma, alma"),
        (["--rules", ","], "no rule is given; name some, for example pa,aggressive_romma,mcp"),
        (["--rules", "nowhere.py:mine"], "there is no file nowhere.py; write FILE.py:NAME"),
        (["--rules", "own.py:other"], "own.py has no rule 'other'; its rules are: timid"),
        (["--json", "."], "is a folder; name a file in it"),
        (["--seed", "1", "--resume", "--json", "other.json"], "other.json is not a results file"),
    ],
)
def test_mistakes_of_the_user_end_in_one_line(tmp_path, arguments, message):
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "other.json").write_text("{}")
    ran = run(tmp_path, "reproduce", "digits", "--permutations", "1", *arguments)
    assert ran.returncode == 1
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == [
        "other.json",
        "own.py",
    ]


@pytest.mark.parametrize("arguments", [["letters"], ["--permutations", "0"], ["--jobs", "0"], ["--no-such"]])
def test_options_that_do_not_exist_are_usage_errors(tmp_path, arguments):
    assert run(tmp_path, "reproduce", *arguments).returncode == 2


def test_help_teaches_and_the_version_is_told(tmp_path):
    text = run(tmp_path, "reproduce", "--help").stdout
    for word in (
        "--data",
        "--rules",
        "--average",
        "--permutations",
        "--seed",
        "--jobs",
        "--json",
        "--report",
    ):
        assert word in text
    assert "maxcosine reproduce mnist --rules all --average" in text
    from maxcosine import __version__

    assert run(tmp_path, "--version").stdout == f"maxcosine {__version__}\n"
    assert "reproduce" in run(tmp_path).stderr  # without a command, what commands there are


@pytest.mark.slow
def test_ctrl_c_saves_what_is_finished_and_resume_goes_on(tmp_path):
    options = ["reproduce", "digits", "--permutations", "120", "--rules", "pa,mcp"]
    process = subprocess.Popen(
        command(*options), cwd=tmp_path, env=environment(tmp_path), stderr=subprocess.PIPE, text=True
    )
    journal = tmp_path / "maxcosine-digits.json.partial"
    begun = time.monotonic()
    while not journal.exists() or journal.stat().st_size < 20_000:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() - begun < 120
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    saved = int(re.search(r"interrupted: (\d+) of 1200 are finished and saved", errors)[1])
    assert 0 < saved <= len(journal.read_text().splitlines()) - 1
    assert not (tmp_path / "maxcosine-digits.json").exists()
    ran = run(tmp_path, *options, "--resume")
    assert ran.returncode == 0, ran.stderr
    assert len(Results.load(tmp_path / "maxcosine-digits.json").runs) == 2400
    assert not journal.exists()


@pytest.mark.slow
def test_on_a_terminal_it_shows_how_far_it_is_and_the_means_so_far(tmp_path):
    shown, text = on_terminal(
        command("reproduce", "digits", "--permutations", "50"),
        cwd=tmp_path,
        env=environment(tmp_path, TERM="xterm-256color"),
    )
    assert re.search(r"learning .* \d+/500 orders", text)
    assert re.search(r"PA \d+\.\d +A-ROMMA \d+\.\d +MCP \d+\.\d", text)
    assert b"\x1b[1m" in shown  # the best of each label is bold
