"""A results file as one page of HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

import numpy as np

from maxcosine import files
from maxcosine.experiments.charts import ALL, Figure
from maxcosine.experiments.figures import ALL_LABELS, default_rules, figures, signed
from maxcosine.experiments.looks import named, title_of
from maxcosine.experiments.page import Cell, Page, chooser, duration, figure_of, table
from maxcosine.experiments.results import Results
from maxcosine.experiments.statistics import (
    CONFIDENCE,
    Difference,
    differences,
    focus,
    mean_ranks,
    means,
    spreads,
    wins,
)
from maxcosine.experiments.verdict import verdict


def write(results: Results, path: str | Path) -> None:
    """Write the report of results; the file is there whole or as it was."""
    files.write(path, page(results))


def page(results: Results) -> str:
    """The report as HTML."""
    drawn = figures(results)
    return Page(
        kind="maxcosine experiment",
        title=_title(results),
        run=_run(results),
        verdict=verdict(results),
        numbers=_numbers(results),
        figures=drawn,
        laid_out=_figures(results, drawn),
        shown=default_rules(results),
        tables=_tables(results),
        again="The same command on the same data finds the same counts, to the last.",
        command=results.command or "not written down",
        facts=_facts(results),
    ).html()


# --- words and numbers -----------------------------------------------------------------------


def _title(results: Results) -> str:
    return f"{named(results.rules)} on {_dataset(results)}"


def _dataset(results: Results) -> str:
    return str(results.dataset.get("title", results.dataset["name"]))


def _run(results: Results) -> str:
    data, permutations = results.dataset, results.protocol["permutations"]
    orders = f"{permutations} random orders" if permutations > 1 else "one random order"
    return (
        f"Each of {len(results.labels)} labels is learnt against the rest, in one pass over "
        f"{data.get('train', 0):,} examples of {data.get('features', 0):,} features, in {orders}. "
        f"Then the mistakes on {data.get('test', 0):,} test examples are counted."
    )


def _numbers(results: Results) -> Iterable[tuple[str, str, str]]:
    """Name, value and detail of what matters most."""
    rule, n = focus(results), len(results.labels)
    overall = {name: float(values.mean()) for name, values in means(results).items()}
    yield "Mean test mistakes", f"{overall[rule]:,.1f}", title_of(rule)
    others = [other for other in results.rules if other != rule]
    if others:
        best = min(others, key=overall.__getitem__)
        yield "Best of the others", f"{overall[best]:,.1f}", title_of(best)
        yield "Fewest mistakes", f"{wins(results)[rule]:.3g} of {n}", f"labels, by {title_of(rule)}"
        yield (
            "Mean rank",
            f"{mean_ranks(results)[rule]:.3g}",
            f"{title_of(rule)}, of {len(results.rules)} rules",
        )
    yield "Runs", f"{len(results.runs):,}", f"in {duration(results.seconds)}"


def _facts(results: Results) -> Iterable[tuple[str, str]]:
    data, protocol = results.dataset, results.protocol
    yield "Data", f"{_dataset(results)}, from {data.get('source', 'an unknown source')}"
    yield "SHA-256", data["sha256"]
    yield "Labels", ", ".join(results.labels)
    yield "Rules", ", ".join(title_of(rule) for rule in results.rules)
    orders = f"{protocol['permutations']} for each label, of {protocol.get('buckets')} buckets"
    yield "Orders", f"{orders} of {protocol.get('bucket_size')} examples"
    yield "Seed", str(protocol.get("seed"))
    for name, found in ("Versions", results.versions), ("Machine", results.machine):
        yield name, ", ".join(f"{what} {value}" for what, value in found.items())
    yield "Started", results.started


# --- figures ---------------------------------------------------------------------------------


def _figures(results: Results, drawn: Sequence[Figure]) -> str:
    """The counts, then what to choose for the curves, then the curves."""
    counts = [_figure(results, figure) for figure in drawn if figure.name in _COUNTS]
    curves = [_figure(results, figure) for figure in drawn if figure.name not in _COUNTS]
    if curves:
        curves = [chooser(results.rules, default_rules(results)), '<div class="curves">', *curves, "</div>"]
    return "\n".join(counts + curves)


_COUNTS = ("mistakes", "paired")


def _figure(results: Results, figure: Figure) -> str:
    return figure_of(figure, _select(results) if len(figure.alt) > 1 else "")


def _select(results: Results) -> str:
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
        title = f"{title_of(focus(results))} beside the other rules"
        overall = [one for one in found if one.label is None]
        yield _differences_table(results, f"{title}, all labels", overall)
        rest = [one for one in found if one.label is not None]
        inner = _differences_table(results, f"{title}, label by label", rest)
        yield f"<details><summary>Label by label: {len(rest)} comparisons</summary>{inner}</details>"


def _rules_table(results: Results) -> str:
    """One row a rule: how good, and at what cost."""
    won, ranks, mean = wins(results), mean_ranks(results), means(results)
    learnt, updates = results.counts("train_mistakes"), results.counts("updates")
    overall = {rule: float(values.mean()) for rule, values in mean.items()}
    rows = []
    for rule in sorted(results.rules, key=overall.__getitem__):
        numbers = [
            (overall[rule], ",.1f", overall[rule] == min(overall.values())),
            (won[rule], ".3g", won[rule] == max(won.values())),
            (ranks[rule], ".2f", ranks[rule] == min(ranks.values())),
            (float(learnt[rule].mean()), ",.0f", False),
            (float(updates[rule].mean()), ",.0f", False),
        ]
        title = title_of(rule)
        rows.append([Cell(title, title), *(Cell(f"{x:{form}}", x, best=best) for x, form, best in numbers)])
    return table(
        "The rules",
        "Means over labels and orders; wins: labels with the fewest mistakes in the mean; rank 1 is best.",
        ["rule", "test mistakes", "wins", "mean rank", "mistakes while learning", "updates"],
        rows,
    )


def _mistakes_table(results: Results) -> str:
    """Labels by rules, or rules by labels if there are more of them: what is long goes down."""
    mean, spread = means(results), spreads(results)
    several = results.protocol["permutations"] > 1
    best = np.min(list(mean.values()), axis=0)
    cells = [
        [
            Cell(
                f"{value:,.1f}",
                float(value),
                f"± {std:,.1f}" if several else "",
                best=bool(value == best[label]),
            )
            for label, (value, std) in enumerate(zip(mean[rule], spread[rule], strict=True))
        ]
        for rule in results.rules
    ]
    rules = [Cell(title_of(rule), title_of(rule)) for rule in results.rules]
    labels = [Cell(label, index) for index, label in enumerate(results.labels)]
    overall = [float(mean[rule].mean()) for rule in results.rules]
    totals = [Cell(f"{value:,.1f}", value, best=value == min(overall)) for value in overall]
    note = "The fewest of each label are bold."
    if several:
        note = f"Mean ± standard deviation over {results.protocol['permutations']} orders. {note}"
    if len(rules) <= len(labels):
        columns = ["label", *(rule.text for rule in rules)]
        rows = [[label, *row] for label, row in zip(labels, zip(*cells, strict=True), strict=True)]
        return table("Test mistakes", note, columns, rows, [Cell("mean", ""), *totals])
    columns = ["rule", "mean", *(label.text for label in labels)]
    rows = [[rule, total, *row] for rule, total, row in zip(rules, totals, cells, strict=True)]
    rows.sort(key=lambda row: float(row[1].value))
    return table("Test mistakes", note, columns, rows)


def _differences_table(results: Results, title: str, found: Sequence[Difference]) -> str:
    labels = any(one.label is not None for one in found)
    rows = []
    for one in found:
        row = [Cell(title_of(one.other), title_of(one.other))]
        if one.label is not None:
            row.append(Cell(results.labels[one.label], one.label))
        row += [
            Cell(signed(one.mean, 2), one.mean),
            Cell(f"{signed(one.low, 2)} to {signed(one.high, 2)}", one.low),
            Cell(_p(one.p), one.p),
            Cell(f"{one.better:,} / {one.worse:,}", one.better, f"of {one.pairs:,}"),
        ]
        rows.append(row)
    rule = title_of(focus(results))
    return table(
        title,
        f"Test mistakes of {rule} minus those of the other rule, in the mean; below zero {rule} is better. "
        "p is of Wilcoxon's signed-rank test, corrected after Holm.",
        [
            "other rule",
            *(["label"] if labels else []),
            "difference",
            f"{100 * CONFIDENCE:.0f} % interval",
            "p",
            f"{rule} better / worse",
        ],
        rows,
    )


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"
