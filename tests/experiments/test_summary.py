"""The summary follows from the counts."""

import pytest

from maxcosine.experiments.summary import summarise
from tests.experiments.small import results_of

FEW, SOME, MANY = [10, 11, 10, 11], [20, 21, 22, 20], [30, 31, 33, 30]


@pytest.mark.parametrize(
    ("pa", "mcp", "outcome"),
    [
        ([SOME, SOME], [FEW, FEW], "holds for Small on each of the 2 labels: every interval lies below zero"),
        ([SOME, [10, 12, 10, 12]], [FEW, [12, 9, 12, 9]], "2 labels on average; it is uncertain on 1, where"),
        ([SOME, FEW], [FEW, SOME], "holds for Small on 1 of 2 labels; it fails on 1."),
        ([FEW, FEW], [MANY, MANY], "does not hold for Small: it fails on each of the 2 labels"),
    ],
)
def test_the_papers_claim(pa, mcp, outcome):
    (text,) = summarise(results_of({"pa": pa, "aggressive_romma": [MANY, MANY], "mcp": mcp}))
    assert "that MCP makes fewer test mistakes than PA and A-ROMMA in a single pass" in text
    assert outcome in text
    if mcp == [FEW, FEW]:
        assert "MCP makes 10.2 fewer mistakes than PA" in text
        assert "better in 8 of 8 pairs, worse in 0" in text


def test_other_rules_get_their_own_paragraph():
    counts = {"pa": [SOME], "aggressive_romma": [MANY], "mcp": [SOME], "avg_pa": [FEW]}
    first, second = summarise(results_of(counts))
    assert "The paper's claim" in first
    assert "Of all 4 learners, averaged PA makes the fewest mistakes, 10.5 per label" in second
    assert "MCP makes 20.8 and is number 2 of 4" in second


def test_single_rule():
    (text,) = summarise(results_of({"pa": [FEW]}))
    assert text == "PA makes 10.5 test mistakes per label on average on Small."


def test_one_order_is_not_certain():
    (text,) = summarise(results_of({"pa": [[20], [30]], "aggressive_romma": [[20], [30]], "mcp": [[10], [10]]}))
    assert "holds for Small on each of the 2 labels in one order, which does not show how certain that is" in text
    assert "MCP makes 15.0 fewer mistakes than PA (better in 2 of 2 pairs, worse in 0)" in text
    assert "interval" not in text
