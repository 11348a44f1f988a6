"""Every rule learns the same bits as recorded: on every storage, and with every instruction set."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from maxcosine import core
from tests.golden.cases import RULES, STORAGES
from tests.golden.compare import differences


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("rule", RULES)
def test_rule_learns_the_recorded_bits(rule, storage):
    assert not list(differences(storage, rule))


@pytest.mark.slow
def test_baseline_instruction_set_gives_the_recorded_bits():
    if core.LEVEL != "v3":
        pytest.skip(f"this process has compared the only instruction set here, {core.LEVEL}")
    compared = subprocess.run(
        [sys.executable, "-m", "tests.golden.compare"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "MAXCOSINE_CPU": "v2"},
        capture_output=True,
        text=True,
    )
    assert compared.returncode == 0, compared.stdout + compared.stderr
