"""`maxcosine compare`: the same examples for every rule, and a report that anybody can open."""

from __future__ import annotations

import json

import numpy as np
import pytest

from maxcosine.experiments import comparison_report
from maxcosine.rules import RULES
from maxcosine.stream.chunks import Stream
from maxcosine.stream.comparison import Comparison
from maxcosine.stream.learner import Settings
from tests.cli.test_train import svm
from tests.commands import run
from tests.experiments.test_report import HOSTILE, Page, table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")
    (folder / "a.svm").write_text(svm(500, classes=3))
    return folder


def compared(folder, names=("mcp", "pa1"), held_out=5, **options):
    rules = [RULES[name] for name in names]
    comparison = Comparison.of(rules, Settings(rules[0], rules[0].make_params(), **options))
    comparison.learn(Stream(folder / "a.svm", labelled=True), held_out)
    if held_out:
        comparison.test(Stream(folder / "a.svm", labelled=True), held_out)
    return comparison.as_dict()


def circumstances(**changes):
    told = {
        "data": [{"name": "a.svm", "bytes": 1234}],
        "test_data": [],
        "held_out": 5,
        "options": {"format": "svmlight", "bits": 0, "exact": False, "log1p": True, "normalize": "l2"},
        "command": "maxcosine compare a.svm",
        "versions": {"maxcosine": "0.1.0"},
        "processor": "a processor",
        "started": "2020-01-01",
        "seconds": 1.5,
    }
    return comparison_report.Circumstances(**{**told, **changes})


def test_the_command_writes_table_json_and_report(folder):
    ran = run(
        folder, "compare", "a.svm", "--split", "0.2", "--rules", "mcp,pa1", "--report", "r.html", "--json"
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert (found["examples"], found["test_examples"]) == (400, 100)
    page = Page((folder / "r.html").read_text(encoding="utf-8"))
    for fact in ("a.svm", "maxcosine compare a.svm --split 0.2", "svmlight text", "c0, c1, c2", "numba"):
        assert fact in page.words
    assert len(page.all("img")) == 2
    assert "report   r.html" in ran.stderr


@pytest.mark.parametrize(("tested", "n_bad"), [(["--split", "0.2"], 7), (["--test", "bad.svm"], 14)])
def test_bad_lines_are_counted_and_told(folder, tested, n_bad):
    (folder / "bad.svm").write_text("c0 no feature\n" * 7 + (folder / "a.svm").read_text())
    asked = ["compare", "bad.svm", *tested, "--on-bad", "skip", "--rules", "pa1"]
    found = json.loads(run(folder, *asked, "--json").stdout)
    assert found["bad_lines"] == n_bad
    assert len(found["first_bad_lines"]) == 5
    ran = run(folder, *asked)
    assert f"{n_bad} bad lines skipped" in ran.stdout
    assert ran.stderr.splitlines()[-1] == f"skipped {n_bad - 5} more"


def test_mistakes_by_mark_are_those_of_the_curve(folder):
    found = compared(folder, held_out=None)
    marks = np.array(found["marks"])
    assert marks[0] == 1
    assert marks[-1] == found["examples"] == 500
    assert (np.diff(marks) > 0).all()
    for rule in found["rules"]:
        mistakes = np.array(rule["progressive_mistakes"])
        steps = np.diff(mistakes, prepend=0)
        assert (steps >= 0).all()
        assert (steps <= np.diff(marks, prepend=0)).all()
        assert mistakes[-1] == round(rule["progressive_error"] * 500)


def test_marks_do_not_depend_on_how_the_data_are_cut(folder):
    rule = RULES["mcp"]
    curves = []
    for block_bytes in (1 << 20, 500):
        comparison = Comparison.of([rule], Settings(rule, rule.make_params()))
        comparison.learn(Stream(folder / "a.svm", labelled=True, block_bytes=block_bytes))
        curves.append((comparison.marks, comparison.contestants[0].wrong_at))
    assert curves[0] == curves[1]


def test_the_table_of_the_report(folder):
    found = compared(folder)
    head, *rows = table(comparison_report.page(found, circumstances()), "The rules")
    assert head == [
        "rule",
        "progressive error",
        "test error",
        "updates",
        "bound",
        "margin ceiling",
        "seconds",
    ]
    for row, rule in zip(rows, found["rules"], strict=True):
        assert row[1:4] == [
            f"{rule['progressive_error']:.3%}".replace("%", " %"),
            f"{rule['test_error']:.3%}".replace("%", " %"),
            f"{rule['updates']:,}",
        ]
        assert row[4] == f"{max(rule['bounds']):.4g}"
        assert row[5] == f"{min(rule['margin_ceilings']):.4g}"


@pytest.mark.parametrize("names", [("mcp",), ("pa", "pa1"), tuple(RULES)])
@pytest.mark.parametrize("held_out", [None, 5])
def test_few_and_many_rules_with_and_without_a_test(folder, names, held_out):
    found = compared(folder, names, held_out, average=True)
    page = Page(comparison_report.page(found, circumstances(held_out=held_out)))
    assert len(page.all("img")) == 2
    assert len(page.all("input")) == (len(names) if len(names) > 1 else 0)
    assert ("test error" in page.words) == (held_out is not None)
    assert "They are those of the last hypothesis" in page.words


def test_hostile_names_stay_words(folder):
    found = compared(folder)
    found["classes"] = [HOSTILE]
    found["rules"][0]["rule"] = HOSTILE
    how = circumstances(data=[{"name": HOSTILE, "bytes": None}], command=HOSTILE)
    page = Page(comparison_report.page(found, how))
    assert [tag for tag, _ in page.elements].count("script") == 3
    assert len(page.all("img")) == 2
    assert not [a for _, attributes in page.elements for a in attributes if a.startswith("on")]
    assert page.words.count(HOSTILE) > 3


def test_no_example_is_an_error(tmp_path):
    (tmp_path / "a.svm").write_text("# nothing\n")
    with pytest.raises(ValueError, match=r"there is no example in .*a.svm"):
        compared(tmp_path)
