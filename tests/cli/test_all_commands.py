"""Errors, help and progress that all commands share."""

import pytest

from maxcosine import __version__, cli
from maxcosine.cli import display
from tests.cli.examples import succeed
from tests.commands import run


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError("8 GiB"), "error: there is not enough memory (8 GiB); features take less with --bits N"),
        (ZeroDivisionError(), "error: a number is out of range; scale the values"),
        (OSError(28, "No space left on device", "m"), "error: m: No space left on device; make room there"),
        (ImportError("pip install more"), "error: pip install more"),
        (ValueError("wrong"), "error: wrong"),
    ],
)
def test_errors_are_one_line(tmp_path, monkeypatch, error, message):
    def fail(**_):
        raise error

    monkeypatch.setattr(cli, "app", lambda *names: fail)
    ran = run(tmp_path)
    assert ran.returncode == 1
    assert ran.stderr.startswith(message)
    assert ran.stderr.count("\n") == 1


def test_help_and_version(tmp_path):
    assert succeed(tmp_path, "--version") == f"maxcosine {__version__}\n"
    commands = run(tmp_path)  # without a command, the list of commands
    for name in cli.COMMANDS:
        assert name in commands.stdout + commands.stderr
        assert "--help" in succeed(tmp_path, name, "--help")
    text = succeed(tmp_path, "reproduce", "-h")
    for word in ("--data", "--rules", "--permutations", "maxcosine reproduce mnist --rules all --average"):
        assert word in text
    for arguments in (
        ["reproduce", "letters"],
        ["train"],
        ["train", "--no-such"],
        ["inspect", "--top", "-1"],
    ):
        assert run(tmp_path, *arguments).returncode == 2


def test_remaining_time_is_estimated_after_the_first_unit(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    unit = {"runs": [{"rule": "mcp", "test_mistakes": 3}]}
    with display.ExperimentProgress(200, ["mcp"]) as watch:
        for moment in (30.0, 30.005, 36.0, 42.0):  # the first unit prepares the data
            now[0] = moment
            watch.add(unit)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "1 of 200; mean mistakes so far: MCP 3.0"
    assert lines[1].startswith("3 of 200, 591 s left; ")
    assert lines[2].startswith("4 of 200, 784 s left; ")
