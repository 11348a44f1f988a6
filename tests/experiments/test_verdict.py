"""What the verdict says follows from the counts, whichever way they go."""

import pytest

from maxcosine.experiments.verdict import verdict
from tests.experiments.small import results_of

FEW, SOME, MANY = [10, 11, 10, 11], [20, 21, 22, 20], [30, 31, 33, 30]


def claim(**counts):
    return verdict(
        results_of({"pa": counts["pa"], "aggressive_romma": counts["romma"], "mcp": counts["mcp"]})
    )


def test_a_claim_that_holds_everywhere():
    (text,) = claim(pa=[SOME, SOME], romma=[MANY, MANY], mcp=[FEW, FEW])
    assert "that MCP makes fewer test mistakes than PA and A-ROMMA in a single pass, is true of Small" in text
    assert "on each of the 2 labels" in text
    assert "every interval lies below zero" in text
    assert "MCP makes 10.2 fewer mistakes than PA" in text
    assert "8 of 8 pairs better, 0 worse" in text


def test_a_claim_that_holds_but_not_beyond_doubt():
    (text,) = claim(pa=[SOME, [10, 12, 10, 12]], romma=[MANY, MANY], mcp=[FEW, [12, 9, 12, 9]])
    assert "on each of the 2 labels in the mean; on 1 an interval reaches zero" in text


def test_a_claim_that_fails_somewhere_says_where():
    (text,) = claim(pa=[SOME, FEW], romma=[MANY, MANY], mcp=[FEW, SOME])
    assert "is true of Small on 1 of 2 labels; it fails on 1." in text


def test_a_claim_that_fails_everywhere():
    (text,) = claim(pa=[FEW, FEW], romma=[SOME, SOME], mcp=[MANY, MANY])
    assert "is not true of Small: it fails on each of the 2 labels" in text
    assert "MCP makes 20.5 more mistakes than PA" in text


def test_other_rules_get_a_paragraph_of_their_own():
    counts = {"pa": [SOME], "aggressive_romma": [MANY], "mcp": [SOME], "avg_pa": [FEW]}
    first, second = verdict(results_of(counts))
    assert "The paper's claim" in first
    assert "Of all 4 learners averaged PA makes the fewest mistakes, 10.5 a label in the mean" in second
    assert "MCP makes 20.8 and takes place 2 of 4" in second


@pytest.mark.parametrize("rules", [["mcp"], ["pa"]])
def test_one_rule_alone(rules):
    (text,) = verdict(results_of({rule: [FEW] for rule in rules}))
    assert "10.5 test mistakes a label in the mean on Small" in text
