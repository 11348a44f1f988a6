"""What ends a command: one line, an exit code, and no traceback."""

import re

import pytest

from maxcosine import cli
from maxcosine.cli import display


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "error: there is not enough memory; features take less with --bits N"),
        (MemoryError("8 GiB"), "error: there is not enough memory (8 GiB); features take less"),
        (OverflowError("too large"), "error: a number is out of range (too large); scale the values"),
        (ZeroDivisionError(), "error: a number is out of range; scale the values"),
        (ImportError("pip install more"), "error: pip install more"),
        (ValueError("wrong"), "error: wrong"),
    ],
)
def test_errors_are_one_line(monkeypatch, capsys, error, message):
    def fail():
        raise error

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as left:
        cli.run()
    assert left.value.code == 1
    told = capsys.readouterr().err
    assert told.startswith(message)
    assert told.count("\n") == 1


def test_what_is_left_is_told_once_it_has_been_measured(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    watch = display.Watch(200, ["mcp"])
    unit = {"runs": [{"rule": "mcp", "test_mistakes": 3}]}
    with watch:
        for moment in (30.0, 30.005, 36.0, 42.0):  # two at once, after half a minute of compiling
            now[0] = moment
            watch.add(unit)
    told = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"1 of 200; mean mistakes so far: MCP 3\.0", told[0])
    assert told[1].startswith("3 of 200, 591 s left; ")
    assert told[2].startswith("4 of 200, 784 s left; ")
