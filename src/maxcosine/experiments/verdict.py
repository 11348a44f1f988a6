"""What an experiment says of the paper's claim, in words."""

from __future__ import annotations

from collections.abc import Sequence

from maxcosine.experiments.looks import title_of
from maxcosine.experiments.results import Results
from maxcosine.experiments.statistics import Difference, differences, focus, mean_ranks, means, wins

CLAIMED = "mcp"
CLAIMED_BETTER_THAN = ("pa", "aggressive_romma")


def verdict(results: Results) -> list[str]:
    """Paragraphs: the paper's claim, if its rules were run; then the others."""
    rules = results.rules
    paragraphs = []
    rivals = [rule for rule in CLAIMED_BETTER_THAN if rule in rules]
    if CLAIMED in rules and rivals:
        paragraphs.append(_on_the_claim(results, rivals))
    if len(rules) > 1 and not {*rules} <= {CLAIMED, *CLAIMED_BETTER_THAN}:
        paragraphs.append(_on_all(results))
    return paragraphs or [_alone(results)]


def _on_the_claim(results: Results, rivals: Sequence[str]) -> str:
    found = [d for d in differences(results, CLAIMED) if d.other in rivals]
    by_label = [d for d in found if d.label is not None]
    n = len(results.labels)
    holds = [k for k in range(n) if all(d.mean < 0.0 for d in by_label if d.label == k)]
    certain = [k for k in holds if all(d.high < 0.0 for d in by_label if d.label == k)]
    names = " and ".join(title_of(rule) for rule in rivals)
    claim = f"The paper's claim, that MCP makes fewer test mistakes than {names} in a single pass,"
    title = results.dataset["title"]
    if len(certain) == n:
        opening = f"{claim} is true of {title} on each of the {n} labels: every interval lies below zero."
    elif len(holds) == n:
        doubt = _listed(results, [k for k in range(n) if k not in certain])
        means_only = f"{claim} is true of {title} on each of the {n} labels in the mean"
        opening = f"{means_only}; on {doubt} an interval reaches zero, so that it is not beyond doubt there."
    elif holds:
        fails = _listed(results, [k for k in range(n) if k not in holds])
        opening = f"{claim} is true of {title} on {len(holds)} of {n} labels; it fails on {fails}."
    else:
        opening = f"{claim} is not true of {title}: it fails on each of the {n} labels."
    overall = "; ".join(_compared(d) for d in found if d.label is None)
    return f"{opening} Over all labels, {overall}."


def _compared(d: Difference) -> str:
    more = "fewer" if d.mean <= 0.0 else "more"
    return (
        f"MCP makes {abs(d.mean):.1f} {more} mistakes than {title_of(d.other)} "
        f"(95 % interval of the difference {d.low:+.1f} to {d.high:+.1f}; "
        f"{d.better} of {d.pairs} pairs better, {d.worse} worse)"
    )


def _on_all(results: Results) -> str:
    ranks, totals, won = mean_ranks(results), means(results), wins(results)
    best = min(results.rules, key=lambda rule: float(totals[rule].mean()))
    first = min(results.rules, key=lambda rule: ranks[rule])
    text = (
        f"Of all {len(results.rules)} learners {title_of(best)} makes the fewest mistakes, "
        f"{totals[best].mean():.1f} a label in the mean, and is the best on {won[best]:.3g} of "
        f"{len(results.labels)} labels."
    )
    if first != best:
        text += f" By mean rank {title_of(first)} comes first ({ranks[first]:.2f})."
    rule = focus(results)
    if rule not in (best, first):
        place = 1 + sum(ranks[other] < ranks[rule] for other in results.rules)
        text += (
            f" {title_of(rule)} makes {totals[rule].mean():.1f} and takes place {place} of {len(ranks)} "
            f"by mean rank ({ranks[rule]:.2f})."
        )
    return text


def _alone(results: Results) -> str:
    parts = [f"{title_of(rule)} makes {found.mean():.1f}" for rule, found in means(results).items()]
    return f"{', '.join(parts)} test mistakes a label in the mean on {results.dataset['title']}."


def _listed(results: Results, labels: Sequence[int]) -> str:
    *others, last = [results.labels[k] for k in labels]
    return f"{', '.join(others)} and {last}" if others else last
