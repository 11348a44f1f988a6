"""docs/results.md agrees with the committed results files."""

import json
import re

import numpy as np
import pytest

from maxcosine.experiments.results import Results
from tests.docs.generators import DOCS, load_generator

NAMES = ("mnist", "fashion")
PAGE = (DOCS / "results.md").read_text(encoding="utf-8")
SECTIONS = dict(zip(NAMES, re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:], strict=False))


def counts(name):
    """Test mistakes by rule, label and permutation, read from the JSON file."""
    runs = json.loads((DOCS / "results" / f"{name}.json").read_text())["runs"]
    found = {run["rule"]: np.full((10, 20), -1) for run in runs}
    for run in runs:
        found[run["rule"]][run["label"], run["permutation"]] = run["test_mistakes"]
    return found


def test_page_is_the_output_of_the_generator():
    results = [Results.load(DOCS / "results" / f"{name}.json") for name in NAMES]
    assert load_generator("generate_results").page(results) == PAGE


@pytest.mark.parametrize("name", NAMES)
def test_results_files_are_complete(name):
    found = counts(name)
    assert len(found) == 24
    assert sum(rule.startswith("avg_") for rule in found) == 12
    assert all((of_rule >= 0).all() for of_rule in found.values())


@pytest.mark.parametrize("name", NAMES)
def test_tables_hold_the_means_of_the_counts(name):
    found = counts(name)
    rows = re.findall(r"^\| `(\w+)` \|((?: [\d.*]+ \|){12})$", SECTIONS[name], re.MULTILINE)
    assert {rule for rule, _ in rows} == set(found)
    for rule, cells in rows:
        printed = [float(cell.strip(" *")) for cell in cells.split("|")[:-1]]
        means = found[rule].mean(axis=1)
        assert printed[:11] == pytest.approx([*means, means.mean()], abs=0.0501)


def test_mcp_makes_the_fewest_mistakes_on_every_label_of_mnist():
    found = counts("mnist")
    for rule in ("pa", "aggressive_romma"):
        assert (found["mcp"].mean(axis=1) < found[rule].mean(axis=1)).all()


@pytest.mark.parametrize("name", NAMES)
def test_naromma_and_aggressive_romma_make_the_same_mistakes(name):  # Theorem 7
    found = counts(name)
    assert np.array_equal(found["naromma"], found["aggressive_romma"])
