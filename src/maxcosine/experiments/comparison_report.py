"""Report a comparison of rules on a stream as one HTML page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from maxcosine import files
from maxcosine.certificate_text import rounded_down, rounded_up
from maxcosine.experiments import charts, html_page
from maxcosine.experiments.charts import ALL, FEW, Figure, Spec
from maxcosine.experiments.environment import processor, versions
from maxcosine.experiments.html_page import MISTAKE_BOUND, Cell, duration, mistake_bound_cell, table_html
from maxcosine.experiments.results import AVERAGED
from maxcosine.experiments.rule_styles import title_of, titles_of

PROGRESSIVE, TEST = "progressive", "test"
MAX_NAMES = 20
"""The number of classes or files that are listed by name."""
OPTIONS = ("format", "bits", "exact", "normalize", "log1p")
"""The options of a stream that the report mentions."""
DECADES = 3
"""Curves show this many powers of ten of examples; before that they are noisy."""


def write(comparison: Mapping[str, Any], path: str | Path) -> None:
    """Write the report of a comparison.

    Besides the entries of `Comparison.as_dict`, the comparison has these: `data` and `test_data`, the name
    and the bytes of each input; `held_out`, n if every n-th example was held out for the test, or None;
    `options`, how the data were read, each of OPTIONS; `command`; `started`; `seconds`.
    """
    files.write(path, page(comparison))


def page(comparison: Mapping[str, Any]) -> str:
    """Return the report as HTML."""
    results = ComparedRules(comparison)
    return html_page.page(
        [errors(results), learning(results)],
        [table(results)],
        kind="maxcosine comparison",
        title=_capitalise(f"{titles_of(results.rules)} on {_names(comparison['data'], 1)}"),
        method=_method(results),
        summary=summary(results),
        numbers=_key_numbers(results),
        rules=results.rules,
        shown=results.rules[:FEW],
        repeat="The same command on the same data gives exactly the same counts; only times differ.",
        command=comparison["command"],
        facts=_facts(results),
    )


class ComparedRules:
    """The outcome of a comparison by rule, the best rule first."""

    def __init__(self, comparison: Mapping[str, Any]) -> None:
        self.comparison = comparison
        self.examples: int = comparison["examples"]
        self.test_examples: int = comparison["test_examples"]
        self.classes: list[str] = comparison["classes"]
        self.features: int = comparison["features"]
        self.rows = {(AVERAGED if row["average"] else "") + row["rule"]: row for row in comparison["rules"]}
        self.rules = list(self.rows)
        self.kinds = [PROGRESSIVE, TEST] if self.test_examples else [PROGRESSIVE]

    def errors(self, kind: str) -> dict[str, float]:
        """Return an error of every rule in percent, by the titles of the rules."""
        return {title_of(rule): 100.0 * row[f"{kind}_error"] for rule, row in self.rows.items()}


def _method(results: ComparedRules) -> str:
    text = (
        f"All rules learn from the same {results.examples:,} examples in the same order, in one pass. Each "
        "example is predicted before it is learnt: the progressive error counts these mistakes."
    )
    if any(rule.startswith(AVERAGED) for rule in results.rules):
        text += " The last hypothesis makes these predictions; the test uses the mean of all hypotheses."
    if not results.test_examples:
        return text
    held_out, test_data = results.comparison["held_out"], results.comparison["test_data"]
    source = f"one in {held_out}, held out" if held_out else _names(test_data, 3)
    return f"{text} Then the rules are tested on {results.test_examples:,} examples: {source}."


def summary(results: ComparedRules) -> list[str]:
    """Return the outcome in paragraphs."""
    kind = results.kinds[-1]
    error = results.errors(kind)
    best, *others = error
    text = f"{best} has a {kind} error of {_percent(error[best])}."
    if others:
        text = (
            f"{best} has the lowest {kind} error, {_percent(error[best])}, followed by {others[0]} with "
            f"{_percent(error[others[0]])}."
        )
    if len(others) > 1:
        text += f" The highest is that of {others[-1]}, {_percent(error[others[-1]])}."
    return [_capitalise(text), chance(results.comparison)]


def chance(comparison: Mapping[str, Any]) -> str:
    """Say how accurate the errors of a comparison are, and how many rules came that close to the best one."""
    results = ComparedRules(comparison)
    lowest, *others = results.errors(results.kinds[-1]).values()
    n = results.test_examples or results.examples
    points = _upper_end(lowest / 100.0, n) * 100.0 - lowest
    text = f"With {n:,} examples, an error is accurate to {points:.2g} percentage points in 19 cases out of 20"
    near = sum(error - lowest <= points for error in others)
    if len(others) == 1:
        text += f"; the other rule {'came' if near else 'did not come'} that close to the lowest"
    elif others:
        text += f"; {near or 'none'} of the {len(others)} other rules came that close to the lowest"
    return f"{text}."


def _upper_end(share: float, n: int) -> float:
    """Return the upper end of Wilson's 95 % interval for a share of n examples; it is above 0 for a share of 0."""
    z = 1.96
    half = z * math.sqrt(share * (1.0 - share) / n + (z / (2 * n)) ** 2)
    return (share + z * z / (2 * n) + half) / (1.0 + z * z / n)


def _percent(value: float) -> str:
    return f"{value:.2f}\N{NO-BREAK SPACE}%"


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


def _key_numbers(results: ComparedRules) -> Iterable[tuple[str, str, str]]:
    for kind in reversed(results.kinds):
        error = results.errors(kind)
        best = min(error, key=error.__getitem__)
        yield f"Lowest {kind} error", _percent(error[best]), best
    yield "Examples", f"{results.examples:,}", f"{results.features:,} features"
    yield "Classes", f"{len(results.classes):,}", _first(results.classes, 3)
    yield "Rules", f"{len(results.rules)}", f"in {duration(results.comparison['seconds'])}"


def _facts(results: ComparedRules) -> Iterable[tuple[str, str]]:
    found = results.comparison
    yield "Data", _names(found["data"], MAX_NAMES, sizes=True)
    if found["test_data"]:
        yield "Test", _names(found["test_data"], MAX_NAMES, sizes=True)
    yield "Read as", ", ".join(f"{name} {value}" for name, value in found["options"].items() if value)
    yield "Examples", f"{results.examples:,} to learn, {results.test_examples:,} to test"
    yield "Features", f"{results.features:,}"
    yield "Classes", f"{len(results.classes):,}: {_first(results.classes, MAX_NAMES)}"
    yield "Rules", ", ".join(title_of(rule) for rule in results.rules)
    yield "Versions", ", ".join(f"{name} {value}" for name, value in versions().items())
    yield "Machine", processor()
    yield "Started", found["started"]


def _names(data: Sequence[Mapping[str, Any]], count: int, *, sizes: bool = False) -> str:
    names = []
    for one in data:
        size = f" ({one['bytes']:,} bytes)" if sizes and one["bytes"] is not None else ""
        names.append(f"{one['name']}{size}")
    return _first(names, count)


def _first(words: Sequence[str], count: int) -> str:
    more = len(words) - count
    return ", ".join(words[:count]) + (f" and {more:,} more" if more > 0 else "")


def errors(results: ComparedRules) -> Figure:
    """Draw the progressive and the test error of each rule, the best rule on top."""
    tested = TEST in results.kinds
    rows: list[Spec] = [
        {"rule": title, "index": ALL, "kind": kind, "error": round(error, 4)}
        for kind in results.kinds
        for title, error in results.errors(kind).items()
    ]
    grey = "#888888"
    legend = {**charts.LEGEND, "symbolStrokeColor": grey, "symbolFillColor": grey} if tested else None
    shapes = {"domain": results.kinds, "range": ["circle", "diamond"][: len(results.kinds)]}
    points = {
        "mark": charts.POINT,
        "encoding": {
            "color": charts.colour(results.rules, None),
            "shape": {"field": "kind", "type": "nominal", "scale": shapes, "legend": legend},
            "tooltip": charts.tooltip(rule="", kind="", error=".3f"),
        },
    }
    lines = {
        "mark": {"type": "line", "strokeWidth": 1.5, "opacity": 0.5},
        "encoding": {"detail": {"field": "rule"}, "color": charts.colour(results.rules, None)},
    }
    x = charts.number("error", "error in %", scale={"zero": False, "padding": 14}, axis={"tickCount": 7})
    spec = charts.base(rows) | {
        "height": charts.height(len(results.rules)),
        "encoding": {"x": x, "y": charts.rule_rows(results.rules, results.rules[0])},
        "layer": [lines, points] if tested else [points],
    }
    caption = "Further left is better; the axis need not start at zero."
    if tested:
        caption += " Circles are progressive errors, made while learning; diamonds are test errors."
    alt = "; ".join(f"{kind} error in %: {charts.describe(results.errors(kind))}" for kind in results.kinds)
    title = "Progressive error and test error" if tested else "Progressive error"
    return Figure("errors", title, caption, {ALL: f"{alt}."}, spec)


def learning(results: ComparedRules) -> Figure:
    """Draw the progressive error so far against the examples."""
    marks, shown = np.array(results.comparison["marks"]), results.rules[:FEW]
    drawn = marks >= results.examples / 10**DECADES
    rows = []
    for rule, row in results.rows.items():
        shares = 100.0 * np.array(row["progressive_mistakes"]) / marks
        rows.append(charts.curve_row(rule, "mistakes", marks[drawn], shares[drawn]))
    y = charts.number("value", "mistakes in 100 examples so far", axis={"tickCount": 5}, scale={"zero": True})
    last = dict(list(results.errors(PROGRESSIVE).items())[:FEW])
    title = "Progressive error while learning"
    return Figure(
        "learning",
        title,
        "The share of the examples so far that were predicted wrongly, each before it was learnt. A curve "
        "that still falls at its end would improve with more examples. The axis of examples is logarithmic.",
        {ALL: f"{title}, after {results.examples:,} examples: {charts.describe(last)}."},
        charts.curve_chart(rows, results.rules, shown, charts.examples_axis(log=True), y),
        has_curves=True,
    )


def table(results: ComparedRules) -> str:
    """Return the table of the rules, as HTML."""
    rows = []
    for rule, row in results.rows.items():
        title = title_of(rule)
        bound = max((one for one in row["bounds"] if one is not None), default=None)
        ceiling = min((one for one in row["margin_ceilings"] if one is not None), default=None)
        rows.append(
            [
                Cell(title),
                *(
                    Cell(f"{error[title]:.3f} %", error[title], best=error[title] == min(error.values()))
                    for error in map(results.errors, results.kinds)
                ),
                Cell("-", math.inf) if row["updates"] is None else Cell(f"{row['updates']:,}", row["updates"]),
                Cell("-", 0.0) if bound is None else Cell(rounded_down(bound, 4), bound),
                Cell("-", math.inf) if ceiling is None else Cell(rounded_up(ceiling, 4), ceiling),
                mistake_bound_cell(row["gain"]),
                Cell(f"{row['seconds']:.3f}", row["seconds"]),
            ]
        )
    several = len(results.classes) > 2
    columns = ("updates", "bound", "margin ceiling", "mistake bound", "seconds")
    return table_html(
        "The rules",
        "The lowest errors are bold. The bound times the margin of any separator of the examples is a proven "
        "lower bound on the cosine between that separator and the hypothesis. No hyperplane separates the "
        "examples with a margin above the ceiling. What is proven of OnePass is about a space of its own. "
        + ("With several classes, these are the values of the class with the strongest proof. " * several)
        + f"{MISTAKE_BOUND} Seconds are the time spent learning.",
        ["rule", *(f"{kind} error" for kind in results.kinds), *columns],
        rows,
    )
