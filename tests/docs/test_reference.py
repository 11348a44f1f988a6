"""The reference covers every public name and every command."""

import re
import subprocess
import sys

import pytest

import maxcosine
import maxcosine.derive
from tests.docs.generators import DOCS

REFERENCE = DOCS / "reference"


@pytest.mark.parametrize("name", maxcosine.__all__)
def test_public_names_are_in_the_reference(name):
    pages = "".join((REFERENCE / page).read_text() for page in ("index.md", "functions.md"))
    assert re.search(rf"^(   |.. \w+:: |.. py:data:: ){name}$", pages, re.MULTILINE)


@pytest.mark.parametrize("name", maxcosine.derive.__all__)
def test_names_of_derive_are_in_the_reference(name):
    objects = (REFERENCE / "index.md").read_text()
    section = (REFERENCE / "functions.md").read_text().partition("## Derive rules\n")[2].partition("\n## ")[0]
    assert re.search(rf"^   derive\.{name}$", objects, re.MULTILINE) or re.search(
        rf"^.. (autofunction|py:data):: {name}$", section, re.MULTILINE
    )


def test_commands_are_in_the_reference():
    shown = subprocess.run(
        [sys.executable, "-m", "maxcosine", "--help"], check=True, capture_output=True, text=True
    ).stdout
    commands = re.findall(r"^  (\w+)  ", shown.partition("Commands:")[2], re.MULTILINE)
    assert commands
    sections = re.findall(r"^## (\w+)$", (REFERENCE / "commands.md").read_text(), re.MULTILINE)
    assert set(sections) == set(commands)
