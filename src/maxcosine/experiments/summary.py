"""Summarise an experiment in words: whether the paper's claim holds, and which rule is best."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from maxcosine.experiments.results import Results
from maxcosine.experiments.rule_styles import join_words, title_of
from maxcosine.experiments.statistics import Difference, differences, focus, mean_ranks, overall_means, wins

PAPER_RIVALS = ("pa", "aggressive_romma")
"""The rules that MCP is compared with in the paper."""


def summarise(results: Results) -> list[str]:
    """Return paragraphs: on the paper's claim, if its rules were run, and on all rules, if there are more.

    If the results name a rule to focus on, the first paragraph compares it with each other rule instead.
    """
    rules = results.rules
    if "focus" in results.protocol:
        return [_comparisons(results), _ranking(results)]
    rivals = [rule for rule in PAPER_RIVALS if rule in rules]
    paragraphs = []
    if "mcp" in rules and rivals:
        paragraphs.append(_claim(results, rivals))
    if len(rules) > 1 and not {*rules} <= {"mcp", *PAPER_RIVALS}:
        paragraphs.append(_ranking(results))
    if not paragraphs:
        parts = [f"{title_of(rule)} makes {mean:.1f}" for rule, mean in overall_means(results).items()]
        paragraphs.append(f"{', '.join(parts)} test mistakes per label on average on {results.title}.")
    return paragraphs


def _claim(results: Results, rivals: Sequence[str]) -> str:
    found = [one for one in differences(results, "mcp") if one.other in rivals]
    labels = range(len(results.labels))
    by_label = {k: [one for one in found if one.label == k] for k in labels}
    holds = [k for k in labels if all(one.mean < 0.0 for one in by_label[k])]
    certain = [k for k in holds if all(one.high < 0.0 for one in by_label[k])]

    def names(chosen: Sequence[int]) -> str:
        return join_words([results.labels[k] for k in labels if k not in chosen])

    n, title = len(labels), results.title
    if len(certain) == n:
        outcome = f"holds for {title} on each of the {n} labels: every interval lies below zero."
    elif len(holds) == n and results.permutations == 1:
        outcome = f"holds for {title} on each of the {n} labels in one order, which does not show how certain that is."
    elif len(holds) == n:
        outcome = (
            f"holds for {title} on each of the {n} labels on average; it is uncertain on {names(certain)}, "
            "where an interval includes zero."
        )
    elif holds:
        outcome = f"holds for {title} on {len(holds)} of {n} labels; it fails on {names(holds)}."
    else:
        outcome = f"does not hold for {title}: it fails on each of the {n} labels."
    rival_titles = join_words([title_of(rule) for rule in rivals])
    overall = "; ".join(_comparison(one) for one in found if one.label is None)
    return (
        f"The paper's claim, that MCP makes fewer test mistakes than {rival_titles} in a single pass, "
        f"{outcome} Over all labels, {overall}."
    )


def _comparisons(results: Results) -> str:
    """Compare the rule in focus with each other rule, over all labels."""
    parts = []
    for one in differences(results, focus(results)):
        if one.label is not None:
            continue
        if one.better == one.worse == 0:
            parts.append(f"exactly as many as {title_of(one.other)}")
            continue
        interval = f" (95 % interval {one.low:+.1f} to {one.high:+.1f})" if isfinite(one.low) else ""
        more = "fewer" if one.mean <= 0.0 else "more"
        parts.append(f"{abs(one.mean):.1f} {more} than {title_of(one.other)}{interval}")
    return f"Mean test mistakes of {title_of(focus(results))} on {results.title}: {join_words(parts)}."


def _comparison(one: Difference) -> str:
    more = "fewer" if one.mean <= 0.0 else "more"
    interval = f"95 % interval of the difference {one.low:+.1f} to {one.high:+.1f}; " if isfinite(one.low) else ""
    return (
        f"MCP makes {abs(one.mean):.1f} {more} mistakes than {title_of(one.other)} "
        f"({interval}better in {one.better} of {one.pairs} pairs, worse in {one.worse})"
    )


def _ranking(results: Results) -> str:
    ranks, mistakes = mean_ranks(results), overall_means(results)
    best, first = min(mistakes, key=mistakes.__getitem__), min(ranks, key=ranks.__getitem__)
    text = (
        f"Of all {len(results.rules)} learners, {title_of(best)} makes the fewest mistakes, "
        f"{mistakes[best]:.1f} per label on average, and is the best on {wins(results)[best]:.3g} of "
        f"{len(results.labels)} labels."
    )
    if first != best:
        text += f" By mean rank, {title_of(first)} comes first ({ranks[first]:.2f})."
    rule = focus(results)
    if rule not in (best, first):
        place = 1 + sum(rank < ranks[rule] for rank in ranks.values())
        text += (
            f" {title_of(rule)} makes {mistakes[rule]:.1f} and is number {place} of {len(ranks)} "
            f"by mean rank ({ranks[rule]:.2f})."
        )
    return text
