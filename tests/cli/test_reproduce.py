"""`maxcosine reproduce`."""

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
from tests.commands import command

RULES = ("pa", "aggressive_romma", "mcp")
OWN_RULE = '''
from maxcosine import rule

@rule
def timid(margin, sq_w, sq_x, coef_sum, state, params):
    """A perceptron that takes short steps."""
    return 1.0, (0.01 if margin <= 0.0 else 0.0), state
'''


def offline(folder):
    """An environment without a cache and without access to the internet."""
    proxy = "http://127.0.0.1:9"
    return {
        "MAXCOSINE_CACHE": str(folder / "cache"),
        "PATH": str(folder / "bin"),
        "http_proxy": proxy,
        "https_proxy": proxy,
        "no_proxy": "",
        "COLUMNS": "100",
    }


def run(folder, *arguments, **options):
    return commands.run(folder, "reproduce", *arguments, env=offline(folder), **options)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished experiment, and its folder."""
    folder = tmp_path_factory.mktemp("digits")
    ran = run(folder, "digits", "--permutations", 2, "--figures", "drawn")
    assert ran.returncode == 0, ran.stderr
    return folder, ran


def test_table_holds_the_means_of_the_results(finished):
    folder, ran = finished
    counts = Results.load(folder / "maxcosine-digits.json").counts()
    means = np.array([counts[rule].mean(axis=1) for rule in RULES])
    rows = re.findall(r"^ +(\d)((?: +[\d.]+ ± [\d.]+[* ])+) *$", ran.stdout, re.MULTILINE)
    assert [label for label, _ in rows] == list("0123456789")
    for k, (_, cells) in enumerate(rows):
        printed = re.findall(r"([\d.]+) ± [\d.]+([* ])", cells)
        assert [float(value) for value, _ in printed] == [round(mean, 1) for mean in means[:, k]]
        assert [mark == "*" for _, mark in printed] == (means[:, k] == means[:, k].min()).tolist()
    assert re.search(r"label +PA +A-ROMMA +MCP", ran.stdout)
    assert "The paper's claim, that MCP makes fewer test mistakes than PA and A-ROMMA" in ran.stdout


def test_table_has_the_mistake_bounds_whether_rules_are_columns_or_rows(finished, tmp_path):
    folder, ran = finished
    assert re.search(r"^ +mistake bound +\(R/γ\)² +\(R/γ\)² +\(R/γ\)² *$", ran.stdout, re.MULTILINE)
    many = run(tmp_path, "digits", "--permutations", 1, "--rules", "mcp,pa1,alma,cmcp", "--average")
    assert "Mistake bound (R/γ)²: MCP, CMCP; none proven: PA-I, ALMA" in " ".join(many.stdout.split())
    results = Results.load(folder / "maxcosine-digits.json")
    del results.protocol["gains"]
    results.save(tmp_path / "old.json")
    old = run(tmp_path, "digits", "--permutations", 2, "--resume", "--json", "old.json")
    assert (old.returncode, "mistake bound" in old.stdout) == (0, False)


def test_files_are_written_and_named_on_standard_error(finished):
    folder, ran = finished
    assert (folder / "maxcosine-digits.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    suffixes = [path.suffix for path in (folder / "drawn").iterdir()]
    assert suffixes.count(".svg") == suffixes.count(".png") >= 5
    assert not list(folder.glob("*.partial"))
    assert "report   maxcosine-digits.html" in ran.stderr
    assert "results  maxcosine-digits.json" in ran.stderr
    assert "maxcosine-digits" not in ran.stdout
    assert "\x1b" not in ran.stdout + ran.stderr


def test_command_in_the_results_repeats_the_experiment(finished, tmp_path):
    first = Results.load(finished[0] / "maxcosine-digits.json")
    words = first.command.split()
    assert words[:3] == ["maxcosine", "reproduce", "digits"]
    assert run(tmp_path, *words[2:], "--jobs", 1).returncode == 0
    again = Results.load(tmp_path / "maxcosine-digits.json")
    for name in ("test_mistakes", "train_mistakes", "updates", "bound"):
        for rule, counts in first.counts(name).items():
            assert np.array_equal(counts, again.counts(name)[rule])


def test_mnist_that_is_not_available(tmp_path):
    ran = run(tmp_path, "mnist")
    assert ran.returncode == 1
    assert ran.stderr.startswith("error: ")
    assert "--data DIR" in ran.stderr
    assert not list(tmp_path.glob("maxcosine-*"))
    ran = run(tmp_path, "--permutations", 1)
    assert ran.returncode == 0
    assert "NOTICE: MNIST is not available: scikit-learn's small digits are used instead" in ran.stderr
    assert (tmp_path / "maxcosine-digits.json").exists()


def test_a_users_rule_takes_part(tmp_path):
    (tmp_path / "own.py").write_text(OWN_RULE)
    ran = run(tmp_path, "digits", "--permutations", 1, "--rules", "mcp,own.py:timid", "--average")
    assert ran.returncode == 0, ran.stderr
    rules = json.loads((tmp_path / "maxcosine-digits.json").read_text())["protocol"]["rules"]
    assert rules == ["mcp", "timid", "avg_mcp", "avg_timid"]


def test_mistakes_of_the_user_end_in_one_line(tmp_path):
    (tmp_path / "own.py").write_text(OWN_RULE)
    (tmp_path / "other.json").write_text("{}")
    for arguments, message in [
        (["--rules", "mpc"], "there is no rule 'mpc'; the rules are aggressive_romma, alma"),
        (["--rules", ","], "no rule is given; name some, for example pa,aggressive_romma,mcp"),
        (["--rules", "nowhere.py:mine"], "there is no file nowhere.py; write FILE.py:NAME"),
        (["--rules", "own.py:other"], "own.py has no rule 'other'; its rules are: timid"),
        (["--json", "."], "is a folder; name a file in it"),
        (["--seed", "1", "--resume", "--json", "other.json"], "other.json is not a results file"),
    ]:
        ran = run(tmp_path, "digits", "--permutations", 1, *arguments)
        assert ran.returncode == 1
        assert message in ran.stderr
        assert ran.stderr.splitlines()[-1].startswith("error: ")
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {"other.json", "own.py"}


def test_progress_on_a_terminal(tmp_path, monkeypatch):
    monkeypatch.setattr("maxcosine.cli.display.SECONDS_BETWEEN_FRAMES", 0.0)
    ran = run(tmp_path, "digits", "--permutations", 3, terminal=True)
    assert re.search(r"\r\d+ of 30.*; mean mistakes so far: (PA|MCP|A-ROMMA) \d+\.\d, ", ran.stderr)
    assert "\x1b[1m" in ran.stdout  # the best of each label is bold


@pytest.mark.slow
def test_ctrl_c_saves_the_finished_part_and_resume_continues(tmp_path):
    options = ["digits", "--permutations", "120", "--rules", "pa,mcp"]
    process = subprocess.Popen(
        command("reproduce", *options),
        cwd=tmp_path,
        env={**os.environ, **offline(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    partial, started = tmp_path / "maxcosine-digits.json.partial", time.monotonic()
    while not partial.exists() or partial.stat().st_size < 20_000:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() - started < 120
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    saved = int(re.search(r"interrupted: (\d+) of 1200 are finished and saved", errors)[1])
    assert 0 < saved <= len(partial.read_text().splitlines()) - 1
    assert not (tmp_path / "maxcosine-digits.json").exists()
    ran = run(tmp_path, *options, "--resume")
    assert ran.returncode == 0, ran.stderr
    assert len(Results.load(tmp_path / "maxcosine-digits.json").runs) == 2400
    assert not partial.exists()
