"""`maxcosine compare` and its report."""

import re

import numpy as np
import pytest
from scipy import stats

from maxcosine.certificate_text import rounded_down, rounded_up
from maxcosine.data import ReadOptions, Stream
from maxcosine.experiments import comparison_report
from maxcosine.rules import RULES
from maxcosine.training import Settings
from maxcosine.training.comparison import Comparison
from tests.cli.examples import outcome, refuse, svm
from tests.commands import run
from tests.experiments.small import HOSTILE, Page, table

DETAILS = {
    "data": [{"name": "a.svm", "bytes": 1234}],
    "test_data": [],
    "held_out": 5,
    "options": {"format": "svmlight", "bits": 0, "exact": False, "log1p": True, "normalize": "l2"},
    "command": "maxcosine compare a.svm",
    "started": "2020-01-01",
    "seconds": 1.5,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")
    (folder / "a.svm").write_text(svm(500, classes=3))
    return folder


def compared(folder, names=("mcp", "pa1"), hold_out=5, block_bytes=1 << 20, **settings):
    comparison = Comparison([Settings(RULES[name], RULES[name].make_params(), **settings) for name in names])
    options = ReadOptions(purpose="learn", block_bytes=block_bytes)
    comparison.learn(Stream(folder / "a.svm", options), hold_out)
    if hold_out:
        comparison.test(Stream(folder / "a.svm", options), hold_out)
    return comparison.as_dict()


def page_of(found, **changes):
    return comparison_report.page({**found, **DETAILS, **changes})


def test_command_prints_json_and_writes_a_report(folder):
    options = ["--split", 0.2, "--rules", "mcp,pa1", "--report", "r.html"]
    found = outcome(folder, "compare", "a.svm", *options)
    assert (found["examples"], found["test_examples"]) == (400, 100)
    assert {row["rule"] for row in found["rules"]} == {"mcp", "pa1"}
    page = Page((folder / "r.html").read_text(encoding="utf-8"))
    for fact in ("a.svm", "maxcosine compare a.svm --split 0.2", "format svmlight", "c0, c1, c2", "numpy"):
        assert fact in page.words
    assert len(page.all("img")) == 2
    ran = run(folder, "compare", "a.svm", *options)
    assert "500 examples" not in ran.stdout
    assert "400 examples, tested on 100" in ran.stdout
    assert "report   r.html" in ran.stderr


@pytest.mark.parametrize(("test", "n_bad"), [(["--split", 0.2], 7), (["--test", "bad.svm"], 14)])
def test_bad_lines_are_counted_and_reported(folder, test, n_bad):
    (folder / "bad.svm").write_text("c0 no feature\n" * 7 + (folder / "a.svm").read_text())
    arguments = ["compare", "bad.svm", *test, "--on-bad", "skip", "--rules", "pa1"]
    found = outcome(folder, *arguments)
    assert (found["bad_lines"], len(found["first_bad_lines"])) == (n_bad, 5)
    ran = run(folder, *arguments)
    assert f"{n_bad} bad lines skipped" in ran.stdout
    assert ran.stderr.splitlines()[-1] == f"skipped {n_bad - 5} more"


def test_mistakes_of_the_user(folder):
    (folder / "empty.svm").write_text("# nothing\n")
    for arguments, message in [
        (["empty.svm"], "there is no example in empty.svm"),
        (["a.svm", "--rules", "mpc"], "there is no rule 'mpc'; the rules are"),
        (["a.svm", "--rules", ","], "no rule is given"),
        (["a.svm", "--split", 0.2, "--test", "a.svm"], "--test and --split are two ways to test"),
        (["-", "--split", 0.2], "--split reads the data twice"),
        (["a.svm", "--report", "a.svm"], "--report a.svm is an input, too"),
    ]:
        assert message in refuse(folder, "compare", *arguments)


def test_curves_do_not_depend_on_the_size_of_blocks(folder):
    found, in_small_blocks = (compared(folder, hold_out=None, block_bytes=n) for n in (1 << 20, 500))
    marks = np.array(found["marks"])
    assert (marks[0], marks[-1], found["examples"]) == (1, 500, 500)
    assert marks.tolist() == in_small_blocks["marks"]
    for rule, other in zip(found["rules"], in_small_blocks["rules"], strict=True):
        assert rule["progressive_mistakes"] == other["progressive_mistakes"]
        mistakes = np.array(rule["progressive_mistakes"])
        assert mistakes[-1] == round(rule["progressive_error"] * 500)
        new = np.diff(mistakes, prepend=0)
        assert ((new >= 0) & (new <= np.diff(marks, prepend=0))).all()


def test_table_of_the_report(folder):
    found = compared(folder)
    _, *rows = table(page_of(found), "The rules")
    for row, rule in zip(rows, found["rules"], strict=True):
        errors = [f"{100 * rule[f'{kind}_error']:.3f} %" for kind in ("progressive", "test")]
        bound, ceiling = rounded_down(max(rule["bounds"]), 4), rounded_up(min(rule["margin_ceilings"]), 4)
        proven = "none proven" if rule["rule"] == "pa1" else "(R/γ)²"
        assert row[1:7] == [*errors, f"{rule['updates']:,}", bound, ceiling, proven]


@pytest.mark.parametrize("split", [[], ["--split", 0.2]])
@pytest.mark.parametrize("rules", ["mcp", "mcp,pa1", "all"])
def test_terminal_and_report_say_how_much_of_a_difference_is_chance(folder, rules, split):
    ran = run(folder, "compare", "a.svm", "--rules", rules, *split, "--report", "chance.html")
    (sentence,) = re.findall(r"With \d+ examples, an error is accurate to .*?\.(?=\s*$)", ran.stdout, re.DOTALL)
    assert " ".join(sentence.split()) in Page((folder / "chance.html").read_text(encoding="utf-8")).words
    assert ("that close to the lowest" in sentence) == (rules != "mcp")


def test_no_mistake_is_not_accurate_to_zero():
    row = {"rule": "mcp", "average": False, "progressive_error": 0.0}
    found = {"examples": 300, "test_examples": 0, "classes": [], "features": 1, "rules": [row]}
    points = float(re.search(r"accurate to (\S+) percentage points", comparison_report.chance(found))[1])
    assert points == pytest.approx(100 * 1.96**2 / (300 + 1.96**2), rel=0.05)  # about four in 300


def test_chance_is_the_distance_to_the_upper_end_of_wilsons_interval():
    for wrong, n in ((3, 100), (50, 100), (20, 10_000)):
        rows = [{"rule": rule, "average": False, "progressive_error": wrong / n} for rule in ("mcp", "pa1")]
        found = {"examples": n, "test_examples": 0, "classes": [], "features": 1, "rules": rows}
        high = stats.binomtest(wrong, n).proportion_ci(method="wilson").high
        text = comparison_report.chance(found)
        points = float(re.search(r"accurate to (\S+) percentage points", text)[1])
        assert points == pytest.approx(100 * (high - wrong / n), rel=0.05)
        assert text.endswith("; the other rule came that close to the lowest.")


@pytest.mark.parametrize(("names", "hold_out"), [(("mcp",), None), (tuple(RULES), 5)])
def test_report_of_one_rule_and_of_all(folder, names, hold_out):
    page = Page(page_of(compared(folder, names, hold_out, average=True), held_out=hold_out))
    assert len(page.all("img")) == 2
    assert len(page.all("input")) == (len(names) if len(names) > 1 else 0)
    assert ("test error" in page.words) == (hold_out is not None)


def test_names_cannot_inject_html(folder):
    found = compared(folder)
    found["classes"] = [HOSTILE]
    found["rules"][0]["rule"] = HOSTILE
    page = Page(page_of(found, data=[{"name": HOSTILE, "bytes": None}], command=HOSTILE))
    assert [tag for tag, _ in page.elements].count("script") == 3
    assert len(page.all("img")) == 2
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert page.words.count(HOSTILE) > 3
