"""Report the results of an experiment as one HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from maxcosine import files
from maxcosine.experiments import html_page, statistics
from maxcosine.experiments.figures import default_rules, figures
from maxcosine.experiments.html_page import MISTAKE_BOUND, Cell, duration, mistake_bound_cell, table_html
from maxcosine.experiments.results import Results
from maxcosine.experiments.rule_styles import title_of, titles_of
from maxcosine.experiments.statistics import CONFIDENCE, Difference, differences, focus
from maxcosine.experiments.summary import summarise


def write(results: Results, path: str | Path) -> None:
    """Write the report in one step: a failure leaves an old file unchanged."""
    files.write(path, page(results))


def page(results: Results) -> str:
    """Return the report as HTML."""
    return html_page.page(
        figures(results),
        tables(results),
        kind="maxcosine experiment",
        title=f"{titles_of(results.rules)} on {results.title}",
        method=_method(results),
        summary=summarise(results),
        numbers=_key_numbers(results),
        rules=results.rules,
        shown=default_rules(results),
        labels=results.labels,
        repeat="The same command on the same data gives exactly the same counts.",
        command=results.command or "not recorded",
        facts=_facts(results),
    )


def _method(results: Results) -> str:
    data, n = results.dataset, results.permutations
    orders = f"{n} random orders" if n > 1 else "one random order"
    return (
        f"Each of {len(results.labels)} labels is learnt against the rest, in one pass over "
        f"{data['train']:,} examples with {data['features']:,} features, in {orders}. "
        f"Then the mistakes on {data['test']:,} test examples are counted."
    )


def _key_numbers(results: Results) -> Iterable[tuple[str, str, str]]:
    rule = focus(results)
    title, overall = title_of(rule), statistics.overall_means(results)
    yield "Mean test mistakes", f"{overall[rule]:,.1f}", title
    others = [other for other in results.rules if other != rule]
    if others:
        best = min(others, key=overall.__getitem__)
        won = statistics.wins(results)[rule]
        yield "Best of the others", f"{overall[best]:,.1f}", title_of(best)
        yield "Fewest mistakes", f"{won:.3g} of {len(results.labels)}", f"labels, by {title}"
        rank = statistics.mean_ranks(results)[rule]
        yield "Mean rank", f"{rank:.3g}", f"{title}, of {len(results.rules)} rules"
    yield "Runs", f"{len(results.runs):,}", f"in {duration(results.seconds)}"


def _facts(results: Results) -> Iterable[tuple[str, str]]:
    data, protocol = results.dataset, results.protocol
    yield "Data", f"{results.title}, from {data['source']}"
    yield "SHA-256", data["sha256"]
    yield "Labels", ", ".join(results.labels)
    yield "Rules", ", ".join(title_of(rule) for rule in results.rules)
    buckets = f"{protocol['buckets']} buckets of {protocol['bucket_size']} examples"
    yield "Orders", f"{results.permutations} for each label, of {buckets}"
    yield "Seed", str(protocol["seed"])
    for name, found in ("Versions", results.versions), ("Machine", results.machine):
        yield name, ", ".join(f"{key} {value}" for key, value in found.items())
    yield "Started", results.started


def tables(results: Results) -> list[str]:
    """Return the tables of the counts, as HTML."""
    made = [_rules_table(results), _mistakes_table(results)]
    found = differences(results, focus(results))
    if found:
        title = f"{title_of(focus(results))} compared with the other rules"
        overall = [one for one in found if one.label is None]
        made.append(_differences_table(results, f"{title}, all labels", overall))
        by_label = [one for one in found if one.label is not None]
        table = _differences_table(results, f"{title}, label by label", by_label)
        made.append(f"<details><summary>Label by label: {len(by_label)} comparisons</summary>{table}</details>")
    return made


def _rules_table(results: Results) -> str:
    overall, won = statistics.overall_means(results), statistics.wins(results)
    ranks = statistics.mean_ranks(results)
    train_mistakes, updates = results.counts("train_mistakes"), results.counts("updates")
    gains = results.gains
    rows = [
        [
            Cell(title_of(rule)),
            _number(overall[rule], ",.1f", min(overall.values())),
            _number(won[rule], ".3g", max(won.values())),
            _number(ranks[rule], ".2f", min(ranks.values())),
            _number(train_mistakes[rule].mean(), ",.0f"),
            _number(updates[rule].mean(), ",.0f"),
            *([] if gains is None else [mistake_bound_cell(gains[rule])]),
        ]
        for rule in sorted(results.rules, key=overall.__getitem__)
    ]
    return table_html(
        "The rules",
        "Means over labels and orders. The winner of a label has the lowest mean; rank 1 is best."
        + ("" if gains is None else f" {MISTAKE_BOUND}"),
        ["rule", "test mistakes", "wins", "mean rank", "mistakes while learning", "updates"]
        + ([] if gains is None else ["mistake bound"]),
        rows,
    )


def _number(value: float, form: str, best: float | None = None, detail: str = "") -> Cell:
    return Cell(format(value, form), float(value), detail, best=bool(value == best))


def _mistakes_table(results: Results) -> str:
    """Return a table of labels by rules, or of rules by labels if there are more rules than labels."""
    mean, spread = statistics.means(results), statistics.spreads(results)
    overall = statistics.overall_means(results)
    labels, rules, n = results.labels, results.rules, results.permutations
    best = np.min(list(mean.values()), axis=0)
    totals = {rule: _number(overall[rule], ",.1f", min(overall.values())) for rule in rules}

    def cell(rule: str, k: int) -> Cell:
        return _number(mean[rule][k], ",.1f", best[k], f"± {spread[rule][k]:,.1f}" if n > 1 else "")

    note = "The fewest mistakes on each label are bold."
    if n > 1:
        note = f"Mean ± standard deviation over {n} orders. {note}"
    if len(rules) <= len(labels):
        columns = ["label", *map(title_of, rules)]
        rows = [[Cell(label, k), *(cell(rule, k) for rule in rules)] for k, label in enumerate(labels)]
        return table_html("Test mistakes", note, columns, rows, [Cell("mean"), *totals.values()])
    ranked = sorted(rules, key=overall.__getitem__)
    rows = [[Cell(title_of(rule)), totals[rule], *(cell(rule, k) for k in range(len(labels)))] for rule in ranked]
    return table_html("Test mistakes", note, ["rule", "mean", *labels], rows)


def _differences_table(results: Results, title: str, found: Sequence[Difference]) -> str:
    several = results.permutations > 1
    rows = [
        [
            _name(results, one, k),
            Cell(_signed(one.mean), one.mean),
            *([Cell(f"{_signed(one.low)} to {_signed(one.high)}", one.low)] * several),
            *([Cell(f"{one.p:.3f}" if one.p >= 0.001 else "< 0.001", one.p)] * several),
            Cell(f"{one.better:,} / {one.worse:,}", one.better, f"of {one.pairs:,}"),
        ]
        for k, one in enumerate(found)
    ]
    rule, interval = title_of(focus(results)), f"{100 * CONFIDENCE:.0f} % interval"
    note = f"Mean difference of test mistakes, {rule} minus the other rule: below zero {rule} is better. "
    if several:
        note += (
            "The interval and p are those of the mean over orders (Student's t-test). p is corrected for the "
            f"{len(found)} comparisons of this table (Holm), the intervals are not: beside an interval around zero, p "
            f"is above {1 - CONFIDENCE:.2f}; beside any other, p may be above it because of the correction."
        )
    else:
        note += "One order gives no interval."
    columns = ["other rule", "difference", *([interval, "p"] * several), f"{rule} better / worse"]
    return table_html(title, note, columns, rows)


def _name(results: Results, one: Difference, place: int) -> Cell:
    """Name the rule and the label in one cell, which stays in view; it is sorted by the order of the rules."""
    return Cell(title_of(one.other), place, "" if one.label is None else f"label {results.labels[one.label]}")


def _signed(value: float) -> str:
    """Format a difference with its sign, and with a minus instead of a hyphen."""
    return f"{value:+,.2f}".replace("-", "\N{MINUS SIGN}")
