"""The figures of an experiment, as Vega-Lite specifications: plain dicts that contain their data.

A specification has two parameters that a page may set: `label`, the index of a label or ALL, and `shown`, the
titles of the rules whose curves are drawn. Their default values give the printed figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from maxcosine import files
from maxcosine.experiments import charts, statistics
from maxcosine.experiments.charts import ALL, ALL_LABELS, FEW, Figure, Spec
from maxcosine.experiments.results import AVERAGED, Results
from maxcosine.experiments.rule_styles import STYLES, title_of
from maxcosine.experiments.statistics import CONFIDENCE, differences, focus, overall_means


def figures(results: Results) -> list[Figure]:
    """Return all figures that the results have numbers for."""
    found = [mistakes(results)]
    if len(results.rules) > 1:
        found.append(paired(results))
    if results.curves.get("rules"):
        found += curve_figures(results)
    return found


def save(results: Results, folder: str | Path) -> list[Path]:
    """Write each figure into a folder, as SVG and as PNG; return the paths."""
    orders = f"mean of {results.permutations} orders" if results.permutations > 1 else "one order"
    return draw(figures(results), folder, f"{results.title}, label against the rest, one pass, {orders}")


def draw(drawn: Sequence[Figure], folder: str | Path, subtitle: str) -> list[Path]:
    """Write figures into a folder, each as SVG and as PNG under its name; return the paths."""
    vl_convert = charts.renderer()
    written = []
    for figure in drawn:
        titled = {**figure.spec, "title": {"text": figure.title, "subtitle": subtitle}}
        svg = vl_convert.vegalite_to_svg(titled)
        for suffix, content in (("svg", svg), ("png", vl_convert.svg_to_png(svg, scale=2.0))):
            path = Path(folder) / f"{figure.name}.{suffix}"
            files.write(path, content)
            written.append(path)
    return written


def default_rules(results: Results) -> list[str]:
    """Return the rules whose curves are drawn at first: at most FEW, with MCP and users' rules preferred."""
    places = {rule: place for place, rule in enumerate(STYLES)}
    priorities = {
        rule: (rule != focus(results), _is_variant(rule, results), places.get(rule, -1)) for rule in results.rules
    }
    chosen = sorted(results.rules, key=priorities.__getitem__)[:FEW]
    return [rule for rule in results.rules if rule in chosen]


def _is_variant(rule: str, results: Results) -> bool:
    """Whether a rule is the averaged variant of another rule in the results."""
    return rule.startswith(AVERAGED) and rule.removeprefix(AVERAGED) in results.rules


def mistakes(results: Results) -> Figure:
    """Draw the paper's figure: mean test mistakes of every rule on every label, with standard deviations."""
    rules, few = results.rules, len(results.rules) <= FEW
    start, end = ("y", "y2") if few else ("x", "x2")
    title = "mean test mistakes"
    tooltip = charts.tooltip(rule="", label="", mean=",.2f", std=",.2f")
    bars = {
        "mark": {"type": "bar", "cornerRadiusEnd": 2},
        "encoding": {
            start: charts.number("mean", title, axis={"tickCount": 7}),
            "color": charts.colour(rules, charts.LEGEND if few else None),
            "tooltip": tooltip,
        },
    }
    whiskers = {
        "mark": {"type": "rule", "strokeWidth": 1.2},
        "encoding": {start: charts.number("low", title), end: {"field": "high"}, "tooltip": tooltip},
    }
    rows = _mistake_rows(results)
    alt = _alt(results, "Mean test mistakes", rows, by_label=not few)
    won = statistics.wins(results)
    best = max(won, key=won.__getitem__)
    alt[ALL] += f" {title_of(best)} makes the fewest on {won[best]:.3g} of {len(results.labels)} labels."
    if few:
        rows = [row for row in rows if row["index"] != ALL]
        angle = -40 if max(map(len, results.labels)) > 3 else 0
        axis = {"labelAngle": angle, "labelLimit": 100, "ticks": False}
        labels = charts.nominal("label", results.labels, title="label", axis=axis)
        layout = {
            "height": 300,
            "encoding": {"x": labels, "xOffset": _side_by_side(rules)},
            "usermeta": {"min_width": 60 + 8 * len(rows)},
        }
    else:
        layout = {
            "height": charts.height(len(rules)),
            "encoding": {"y": _ranked_rows(rules, results)},
            "transform": [charts.CHOSEN_LABEL],
        }
    spec = charts.base(rows) | layout | {"layer": [bars, whiskers]}
    caption = (
        "The mean number of test mistakes over the orders of the examples: shorter bars are better. The line "
        "on a bar shows one standard deviation in both directions."
    )
    return Figure("mistakes", "Mistakes on the test examples", caption, alt, spec)


def _mistake_rows(results: Results) -> list[Spec]:
    rows = []
    for rule, counts in results.counts().items():
        # Over all labels, the spread is that of the mean from order to order.
        for index, of_label in enumerate([counts.mean(axis=0), *counts], start=ALL):
            mean, std = of_label.mean(), statistics.spread(of_label)
            # A count is not negative, so the line of a bar does not go below zero.
            numbers = {"mean": mean, "std": std, "low": max(0.0, mean - std), "high": mean + std}
            rows.append(_row(results, rule, index, numbers))
    return rows


def paired(results: Results) -> Figure:
    """Draw the mean differences between the rule in focus and each other rule, with intervals."""
    title = title_of(focus(results))
    others = [rule for rule in results.rules if rule != focus(results)]
    few = len(others) < FEW
    zero, each_label, intervals, points = _paired_marks(results, others)
    marks = [intervals, points]
    if few:
        axis = {"labelFontWeight": charts.bold(ALL_LABELS), "grid": True, "ticks": False}
        labels = charts.nominal("label", [ALL_LABELS, *results.labels], title="label", axis=axis)
        places = {"y": labels, "yOffset": _side_by_side(others)}
        height = charts.height(len(results.labels) + 1, len(others))
    else:
        places = {"y": _ranked_rows(others, results)}
        height = charts.height(len(others))
        marks = [each_label, *(mark | {"transform": [charts.CHOSEN_LABEL]} for mark in marks)]
    rows = []
    for one in differences(results, focus(results)):
        low, high = (one.low, one.high) if results.permutations > 1 else (one.mean, one.mean)
        numbers = {"mean": one.mean, "low": low, "high": high}
        rows.append(_row(results, one.other, ALL if one.label is None else one.label, numbers))
    # The zero line spans all rows.
    layers = [zero, *(mark | {"encoding": places | mark["encoding"]} for mark in marks)]
    spec = charts.base(rows) | {"height": height, "layer": layers}
    caption = (
        "All rules learn from the same orders, so their counts are compared in pairs: left of the zero line "
        f"{title} makes fewer mistakes than the other rule. "
    )
    caption += (
        f"The line through a point is the {100 * CONFIDENCE:.0f} % interval of the mean over orders."
        if results.permutations > 1
        else "One order gives no interval."
    )
    if not few:
        caption += " Thin ticks are the single labels."
    alt = _alt(results, f"Test mistakes of {title} minus those of the other rule", rows, by_label=not few)
    return Figure("paired", f"{title} compared with the other rules", caption, alt, spec)


def _paired_marks(results: Results, others: Sequence[str]) -> tuple[Spec, Spec, Spec, Spec]:
    """Return the zero line, the ticks of single labels, the intervals and the points."""
    x_title = ["difference in mean test mistakes", f"left of 0: {title_of(focus(results))} makes fewer"]
    x = charts.number("mean", x_title, scale={"padding": 12}, axis={"tickCount": 7})
    tooltip = charts.tooltip(rule="", label="", mean="+,.2f", low="+,.2f", high="+,.2f")
    legend = charts.LEGEND if len(others) < FEW else None
    encoding = {"x": x, "color": charts.colour(others, legend), "tooltip": tooltip}
    zero = {
        "data": {"values": [{}]},
        "mark": {"type": "rule", "strokeDash": [4, 3]},
        "encoding": {"x": {"datum": 0, "type": "quantitative"}},
    }
    each_label = {
        "transform": [{"filter": f"datum.index !== {ALL}"}],
        "mark": {"type": "tick", "thickness": 1, "height": 9, "opacity": 0.7},
        "encoding": {"x": x, "tooltip": tooltip},
    }
    intervals = {
        "mark": {"type": "rule", "strokeWidth": 2},
        "encoding": encoding | {"x": x | {"field": "low"}, "x2": {"field": "high"}},
    }
    return zero, each_label, intervals, {"mark": charts.POINT, "encoding": encoding}


def curve_figures(results: Results) -> list[Figure]:
    """Draw four curves of every rule against the examples."""
    return [
        _curves(
            results,
            "learning",
            "Mistakes while learning",
            "The share of the examples so far that were predicted wrongly, each before it was learnt: lower is better.",
            charts.number("value", "mistakes in 100 examples", axis={"tickCount": 5}, scale={"zero": True}),
        ),
        _curves(
            results,
            "bound",
            "The bound",
            "The bound times the margin of any separator of the examples so far is a proven lower bound on "
            "the cosine between that separator and the hypothesis. Curves are means over the orders; the axis is "
            "logarithmic.",
            charts.log_number("value", "Λ / ‖w‖"),
        ),
        _curves(
            results,
            "margin_ceiling",
            "The margin ceiling",
            "No hyperplane through the origin separates the examples so far with a larger margin: the lower "
            "the ceiling, the more is proven. Curves are means of such ceilings over the orders; the axis is "
            "logarithmic.",
            charts.log_number("value", "margin ceiling"),
        ),
        _curves(
            results,
            "cosine",
            "Cosine to the final hypothesis",
            "How close the direction is to the final one: a curve that is high early has settled early.",
            charts.number("value", "cosine", axis={"tickCount": 5}, scale={"zero": False}),
            described_at=0.25,
        ),
    ]


def _curves(results: Results, name: str, title: str, caption: str, y: Spec, described_at: float = 1.0) -> Figure:
    """Draw a curve of every rule; the text gives its values after a share `described_at` of the examples."""
    examples = np.array(results.curves["examples"])
    tables = {rule: _curve_table(results, rule, name) for rule in results.rules}
    if name == "learning":  # an averaged variant learns exactly as its rule does
        tables = {rule: table for rule, table in tables.items() if not _is_variant(rule, results)}
    rows = []
    for rule, table in tables.items():
        for index, values in enumerate(table, start=ALL):
            drawn = np.isfinite(values) & ((values > 0.0) | (y["scale"].get("type") != "log"))
            rows.append(charts.curve_row(rule, name, examples[drawn], values[drawn], index))
    shown = [rule for rule in default_rules(results) if rule in tables]
    spec = charts.curve_chart(rows, list(tables), shown, charts.examples_axis(), y)
    point = max(0, round(described_at * len(examples)) - 1)
    described = [
        {"rule": title_of(rule), "index": index, "mean": value}
        for rule in shown
        for index, value in enumerate(tables[rule][:, point], start=ALL)
    ]
    alt = _alt(results, f"{title} after {examples[point]:,} examples", described, by_label=True, curve=name)
    return Figure(name, title, caption, alt, spec, has_curves=True)


def _curve_table(results: Results, rule: str, name: str) -> np.ndarray:
    """Return the curve over all labels, then that of each label; NaN where nothing is proven."""
    by_label = results.curves["rules"][rule]
    key = "mistakes" if name == "learning" else name
    table = np.array([by_label[str(label)][key] for label in range(len(results.labels))], dtype=float)
    if name == "learning":
        table = 100.0 * table / np.array(results.curves["examples"])
    return np.vstack([table.mean(axis=0), table])


def _alt(results: Results, title: str, rows: list[Spec], *, by_label: bool, curve: str = "") -> dict[int, str]:
    """Describe the means of all rules: over all labels and, `by_label`, for each label."""
    names = ["mean over all labels", *(f"label {label}" for label in results.labels)]
    texts = {}
    for index, name in enumerate(names if by_label else names[:1], start=ALL):
        values = {row["rule"]: row["mean"] for row in rows if row["index"] == index}
        texts[index] = f"{title}, {name}: {charts.describe(values, curve)}."
    return texts


def _row(results: Results, rule: str, index: int, numbers: dict[str, float]) -> Spec:
    label = ALL_LABELS if index == ALL else results.labels[index]
    rounded = {name: round(float(value), 4) for name, value in numbers.items()}
    return {"rule": title_of(rule), "index": index, "label": label, **rounded}


def _side_by_side(rules: Sequence[str]) -> Spec:
    return charts.nominal("rule", [title_of(rule) for rule in rules])


def _ranked_rows(rules: Sequence[str], results: Results) -> Spec:
    """Encode rules as rows, the one with the fewest mistakes over all labels on top."""
    return charts.rule_rows(sorted(rules, key=overall_means(results).__getitem__), focus(results))
