"""Report the results of an experiment as one HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

import numpy as np

from maxcosine import files
from maxcosine.experiments import statistics
from maxcosine.experiments.charts import ALL, Figure
from maxcosine.experiments.figures import ALL_LABELS, default_rules, figures
from maxcosine.experiments.html_page import Cell, Page, duration, figure_html, rule_checkboxes, table_html
from maxcosine.experiments.results import Results
from maxcosine.experiments.rule_styles import title_of, titles_of
from maxcosine.experiments.statistics import CONFIDENCE, Difference, differences, focus
from maxcosine.experiments.summary import summarise

COUNT_FIGURES = ("mistakes", "paired")
"""These come before the checkboxes that choose curves."""


def write(results: Results, path: str | Path) -> None:
    """Write the report in one step: a failure leaves an old file unchanged."""
    files.write(path, page(results))


def page(results: Results) -> str:
    """Return the report as HTML."""
    drawn = figures(results)
    return Page(
        kind="maxcosine experiment",
        title=f"{titles_of(results.rules)} on {results.title}",
        method=_method(results),
        summary=summarise(results),
        numbers=_key_numbers(results),
        figures=drawn,
        figures_html=_figures_html(results, drawn),
        shown=default_rules(results),
        tables=_tables(results),
        repeat="The same command on the same data gives exactly the same counts.",
        command=results.command or "not recorded",
        facts=_facts(results),
    ).html()


# --- words and numbers -----------------------------------------------------------------------


def _method(results: Results) -> str:
    data, n = results.dataset, results.permutations
    orders = f"{n} random orders" if n > 1 else "one random order"
    return (
        f"Each of {len(results.labels)} labels is learnt against the rest, in one pass over "
        f"{data.get('train', 0):,} examples with {data.get('features', 0):,} features, in {orders}. "
        f"Then the mistakes on {data.get('test', 0):,} test examples are counted."
    )


def _key_numbers(results: Results) -> Iterable[tuple[str, str, str]]:
    rule = focus(results)
    title, overall = title_of(rule), _overall(results)
    yield "Mean test mistakes", f"{overall[rule]:,.1f}", title
    others = [other for other in results.rules if other != rule]
    if others:
        best = min(others, key=overall.__getitem__)
        won = statistics.wins(results)[rule]
        yield "Best of the others", f"{overall[best]:,.1f}", title_of(best)
        yield "Fewest mistakes", f"{won:.3g} of {len(results.labels)}", f"labels, by {title}"
        yield (
            "Mean rank",
            f"{statistics.mean_ranks(results)[rule]:.3g}",
            f"{title}, of {len(results.rules)} rules",
        )
    yield "Runs", f"{len(results.runs):,}", f"in {duration(results.seconds)}"


def _overall(results: Results) -> dict[str, float]:
    """Return for each rule the mean test mistakes over all labels."""
    return {rule: float(values.mean()) for rule, values in statistics.means(results).items()}


def _facts(results: Results) -> Iterable[tuple[str, str]]:
    data, protocol = results.dataset, results.protocol
    yield "Data", f"{results.title}, from {data.get('source', 'an unknown source')}"
    yield "SHA-256", data["sha256"]
    yield "Labels", ", ".join(results.labels)
    yield "Rules", ", ".join(title_of(rule) for rule in results.rules)
    buckets = f"{protocol.get('buckets')} buckets of {protocol.get('bucket_size')} examples"
    yield "Orders", f"{results.permutations} for each label, of {buckets}"
    yield "Seed", str(protocol.get("seed"))
    for name, found in ("Versions", results.versions), ("Machine", results.machine):
        yield name, ", ".join(f"{key} {value}" for key, value in found.items())
    yield "Started", results.started


# --- figures ---------------------------------------------------------------------------------


def _figures_html(results: Results, drawn: Sequence[Figure]) -> str:
    """Return the figures of counts, then checkboxes for the curves, then the curves."""
    html = {one.name: figure_html(one, _label_select(results) if len(one.alt) > 1 else "") for one in drawn}
    counts = [text for name, text in html.items() if name in COUNT_FIGURES]
    curves = [text for name, text in html.items() if name not in COUNT_FIGURES]
    if curves:
        boxes = rule_checkboxes(results.rules, default_rules(results))
        curves = [boxes, '<div class="curves">', *curves, "</div>"]
    return "\n".join(counts + curves)


def _label_select(results: Results) -> str:
    options = [(ALL, ALL_LABELS), *enumerate(results.labels)]
    return (
        '<label class="scripted-only">label <select autocomplete="off">'
        + "".join(f'<option value="{index}">{escape(label)}</option>' for index, label in options)
        + "</select></label>"
    )


# --- tables ----------------------------------------------------------------------------------


def _tables(results: Results) -> Iterable[str]:
    yield _rules_table(results)
    yield _mistakes_table(results)
    found = differences(results, focus(results))
    if found:
        title = f"{title_of(focus(results))} compared with the other rules"
        overall = [one for one in found if one.label is None]
        yield _differences_table(results, f"{title}, all labels", overall)
        by_label = [one for one in found if one.label is not None]
        table = _differences_table(results, f"{title}, label by label", by_label)
        yield f"<details><summary>Label by label: {len(by_label)} comparisons</summary>{table}</details>"


def _rules_table(results: Results) -> str:
    """Return a table with one row per rule: its mistakes and its updates."""
    overall, won, ranks = _overall(results), statistics.wins(results), statistics.mean_ranks(results)
    train_mistakes, updates = results.counts("train_mistakes"), results.counts("updates")
    rows = []
    for rule in sorted(results.rules, key=overall.__getitem__):
        numbers = [
            (overall[rule], ",.1f", overall[rule] == min(overall.values())),
            (won[rule], ".3g", won[rule] == max(won.values())),
            (ranks[rule], ".2f", ranks[rule] == min(ranks.values())),
            (float(train_mistakes[rule].mean()), ",.0f", False),
            (float(updates[rule].mean()), ",.0f", False),
        ]
        cells = [Cell(f"{value:{form}}", value, best=best) for value, form, best in numbers]
        rows.append([Cell(title_of(rule), title_of(rule)), *cells])
    return table_html(
        "The rules",
        "Means over labels and orders. The winner of a label has the lowest mean; rank 1 is best.",
        ["rule", "test mistakes", "wins", "mean rank", "mistakes while learning", "updates"],
        rows,
    )


def _mistakes_table(results: Results) -> str:
    """Return a table of labels by rules, or of rules by labels if there are more rules than labels."""
    mean, spread, overall = statistics.means(results), statistics.spreads(results), _overall(results)
    n = results.permutations
    best = np.min(list(mean.values()), axis=0)

    def cell(rule: str, k: int) -> Cell:
        detail = f"± {spread[rule][k]:,.1f}" if n > 1 else ""
        return Cell(
            f"{mean[rule][k]:,.1f}", float(mean[rule][k]), detail, best=bool(mean[rule][k] == best[k])
        )

    def total(rule: str) -> Cell:
        return Cell(f"{overall[rule]:,.1f}", overall[rule], best=overall[rule] == min(overall.values()))

    labels, rules = list(enumerate(results.labels)), results.rules
    note = "The fewest mistakes on each label are bold."
    if n > 1:
        note = f"Mean ± standard deviation over {n} orders. {note}"
    if len(rules) <= len(labels):
        columns = ["label", *map(title_of, rules)]
        rows = [[Cell(label, k), *(cell(rule, k) for rule in rules)] for k, label in labels]
        return table_html("Test mistakes", note, columns, rows, [Cell("mean", ""), *map(total, rules)])
    columns = ["rule", "mean", *results.labels]
    ranked = sorted(rules, key=overall.__getitem__)
    rows = [
        [Cell(title_of(rule), title_of(rule)), total(rule), *(cell(rule, k) for k, _ in labels)]
        for rule in ranked
    ]
    return table_html("Test mistakes", note, columns, rows)


def _differences_table(results: Results, title: str, found: Sequence[Difference]) -> str:
    by_label = any(one.label is not None for one in found)
    rows = []
    for one in found:
        rows.append(
            [
                Cell(title_of(one.other), title_of(one.other)),
                *([] if one.label is None else [Cell(results.labels[one.label], one.label)]),
                Cell(_signed(one.mean), one.mean),
                Cell(f"{_signed(one.low)} to {_signed(one.high)}", one.low),
                Cell(f"{one.p:.3f}" if one.p >= 0.001 else "< 0.001", one.p),
                Cell(f"{one.better:,} / {one.worse:,}", one.better, f"of {one.pairs:,}"),
            ]
        )
    rule, interval = title_of(focus(results)), f"{100 * CONFIDENCE:.0f} % interval"
    return table_html(
        title,
        f"Mean difference of test mistakes, {rule} minus the other rule: below zero {rule} is better. "
        "p is the p-value of Wilcoxon's signed-rank test with Holm's correction.",
        ["other rule", *(["label"] * by_label), "difference", interval, "p", f"{rule} better / worse"],
        rows,
    )


def _signed(value: float) -> str:
    """Format a difference with its sign, and with a minus instead of a hyphen."""
    return f"{value:+,.2f}".replace("-", "\N{MINUS SIGN}")
