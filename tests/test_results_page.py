"""docs/results.md says what the committed results files say."""

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from maxcosine.experiments.results import Results

DOCS = Path(__file__).parents[1] / "docs"
NAMES = ("mnist", "fashion")
PAGE = (DOCS / "results.md").read_text(encoding="utf-8")


def load_generator():
    spec = importlib.util.spec_from_file_location("generate_results", DOCS / "generate_results.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def counts(name):
    """Test mistakes by rule, label and permutation, straight from the JSON."""
    content = json.loads((DOCS / "results" / f"{name}.json").read_text())
    found = {rule: np.full((10, 20), -1) for rule in content["protocol"]["rules"]}
    for run in content["runs"]:
        found[run["rule"]][run["label"], run["permutation"]] = run["test_mistakes"]
    return content, found


def section(name):
    title = {"mnist": "MNIST", "fashion": "Fashion-MNIST"}[name]
    return re.split(r"^## ", PAGE, flags=re.MULTILINE)[1 + NAMES.index(name)].removeprefix(title)


def test_the_page_is_what_the_generator_makes():
    generator = load_generator()
    assert generator.page(Results.load(DOCS / "results" / f"{name}.json") for name in NAMES) == PAGE


@pytest.mark.parametrize("name", NAMES)
def test_the_results_are_whole(name):
    content, found = counts(name)
    assert len(found) == 24
    assert sum(rule.startswith("avg_") for rule in found) == 12
    assert all((of_rule >= 0).all() for of_rule in found.values())
    assert len(content["runs"]) == 24 * 10 * 20


@pytest.mark.parametrize("name", NAMES)
def test_the_tables_hold_the_means_of_the_counts(name):
    _, found = counts(name)
    rows = re.findall(r"^\| `(\w+)` \|((?: [\d.*]+ \|){12})$", section(name), re.MULTILINE)
    assert {rule for rule, _ in rows} == set(found)
    for rule, cells in rows:
        printed = [float(cell.strip(" *")) for cell in cells.split("|")[:-1]]
        means = found[rule].mean(axis=1)
        assert printed[:10] == pytest.approx(means, abs=0.0501)
        assert printed[10] == pytest.approx(means.mean(), abs=0.0501)


@pytest.mark.parametrize("name", NAMES)
def test_the_paper_s_table_holds_means_spreads_and_differences(name):
    content, found = counts(name)
    number = r"([-+]?[\d.]+)"
    row = re.compile(
        rf"^\| (.+?) \| {number} ± {number} \| {number} ± {number} \| {number} ± {number} "
        rf"\| {number} \[{number}, {number}\].*? \| {number} \[{number}, {number}\]",
        re.MULTILINE,
    )
    rows = row.findall(section(name))
    assert [cells[0] for cells in rows] == content["dataset"]["labels"]
    for k, (_, *cells) in enumerate(rows):
        cells = [float(cell) for cell in cells]
        mcp = found["mcp"][k]
        for j, rule in enumerate(("pa", "aggressive_romma", "mcp")):
            assert cells[2 * j] == pytest.approx(found[rule][k].mean(), abs=0.0501)
            assert cells[2 * j + 1] == pytest.approx(found[rule][k].std(ddof=1), abs=0.0501)
        for j, rule in enumerate(("pa", "aggressive_romma")):
            mean, low, high = cells[6 + 3 * j : 9 + 3 * j]
            paired = mcp - found[rule][k]
            assert mean == pytest.approx(paired.mean(), abs=0.0501)
            # The interval is a bootstrap's: near what another bootstrap finds.
            other = stats.bootstrap((paired,), np.mean, n_resamples=4000, method="percentile", rng=1)
            width = other.confidence_interval.high - other.confidence_interval.low
            assert low == pytest.approx(other.confidence_interval.low, abs=0.1 * width)
            assert high == pytest.approx(other.confidence_interval.high, abs=0.1 * width)


def test_the_claim_of_the_paper_is_true_of_mnist_on_every_label():
    _, found = counts("mnist")
    for rule in ("pa", "aggressive_romma"):
        assert (found["mcp"].mean(axis=1) < found[rule].mean(axis=1)).all()
    assert "is true of MNIST on each of the 10 labels: every interval lies below zero" in section("mnist")


@pytest.mark.parametrize("name", NAMES)
def test_naromma_is_aggressive_romma_in_every_run(name):
    content, _ = counts(name)
    runs = {(run["rule"], run["label"], run["permutation"]): run for run in content["runs"]}
    for (rule, *which), run in runs.items():
        if rule == "naromma":
            twin = runs["aggressive_romma", *which]
            for what in ("test_mistakes", "train_mistakes", "updates"):
                assert run[what] == twin[what], (name, which, what)
