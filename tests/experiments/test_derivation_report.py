"""The report of a derived rule."""

import re

import pytest

from maxcosine.derive import derive, ell, g, sq_x, sqrt, x
from maxcosine.experiments import derivation_report, summary
from tests.experiments.small import results_of

RULES = ("mine", "mcp", "pa")


@pytest.fixture(scope="module")
def mine():
    return derive((ell + x) / sqrt(1 + sq_x * x**2), when=g <= 1 / (2 * ell), name="mine")


def results(counts):
    found = results_of(dict(zip(RULES, counts, strict=True)))
    found.protocol["focus"] = "mine"
    return found


def test_summary_compares_the_rule_in_focus_with_the_others():
    text, _ = summary.summarise(results([[[3, 4], [5, 6]], [[3, 4], [5, 6]], [[13, 14], [15, 17]]]))
    assert text.startswith("Mean test mistakes of mine on Small: exactly as many as MCP and 10.2 fewer than PA (95 % ")


def test_page_of_an_experiment_has_its_counts(mine):
    page = derivation_report.page(mine, "maxcosine derive", results([[[3], [5]], [[3], [6]], [[13], [17]]]))
    assert "MCP, the best of the others: 4.5" in page
    assert "mine minus the other rule" in page


def test_page_without_a_trial_has_no_tables_of_counts_and_says_what_failed():
    wrong = derive((ell + x) / sqrt(1 + sq_x * x**2 / 2), when=g <= 0, account="paper", name="wrong")
    page = derivation_report.page(wrong, "maxcosine derive")
    assert 'href="#tables"' not in page
    assert "It is false that the bound never exceeds that of Lemma 1." in page
    assert '<span class="false">false at c = ' in page
    formulas = page[page.index("The algorithm</h2>") : page.index("Figures</h2>")]
    assert not re.search(r"\b(ell|sq_x|norm)\b", formulas)
