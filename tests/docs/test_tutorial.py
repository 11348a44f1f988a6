"""The commands in the tutorial run, and print what the page shows."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "first_file.md"

# A command begins with "$ " and goes on to the end of its line, or to the closing quote of python -c "...".
COMMAND = re.compile(r'^\$ (python -c "\n.*?\n"|.*?)\n', re.DOTALL | re.MULTILINE)
PROGRAMS = {"python": f'"{sys.executable}"', "maxcosine": f'"{sys.executable}" -m maxcosine'}
SHOWN = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def commands():
    """Pairs of a command and the output that the page shows for it."""
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        before, *parts = COMMAND.split(block)
        assert not before
        yield from zip(parts[::2], parts[1::2], strict=True)


def test_commands_print_what_the_page_shows(tmp_path):
    pairs = list(commands())
    assert len(pairs) == 6
    for command, shown in pairs:
        command = re.sub(r"^(python|maxcosine)", lambda name: PROGRAMS[name[0]], command)
        run = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True)
        assert run.returncode == 0, (command, run.stderr)
        assert not shown or doctest.OutputChecker().check_output(shown, run.stdout, SHOWN), run.stdout
