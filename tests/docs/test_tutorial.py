"""The commands in the tutorial run, and print what the pages show."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

LESSONS = Path(__file__).parents[2] / "docs" / "tutorial"

# A command begins with "$ " and goes on to the end of its line, or to the closing quote of python -c "...".
COMMAND = re.compile(r'^\$ (python -c "\n.*?\n"|.*?)\n', re.DOTALL | re.MULTILINE)
PROGRAMS = {"python": f'"{sys.executable}"', "maxcosine": f'"{sys.executable}" -m maxcosine'}
SHOWN = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def commands(page):
    """Pairs of a command and the output that the page shows for it."""
    for block in re.findall(r"^```console\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE):
        before, *parts = COMMAND.split(block)
        assert not before
        yield from zip(parts[::2], parts[1::2], strict=True)


@pytest.mark.parametrize(
    ("lesson", "n_commands"),
    [("first_file", 7), ("raw_text", 8), pytest.param("derive", 5, marks=pytest.mark.slow)],
)
def test_commands_print_what_the_page_shows(tmp_path, lesson, n_commands):
    pairs = list(commands(LESSONS / f"{lesson}.md"))
    assert len(pairs) == n_commands
    for command, shown in pairs:
        command = re.sub(r"^(python|maxcosine)", lambda name: PROGRAMS[name[0]], command)
        run = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True)
        assert run.returncode == 0, (command, run.stderr)
        assert not shown or doctest.OutputChecker().check_output(shown, run.stdout, SHOWN), run.stdout
