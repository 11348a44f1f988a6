"""The figures of an experiment, as Vega-Lite specifications: plain dicts with all their data inside.

A specification has two parameters that a page may set: `label`, the index of a label or ALL, and `shown`, the
titles of the rules whose curves are drawn. As they are, they give the figure that is printed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from maxcosine import files
from maxcosine.experiment.results import AVERAGED, Results
from maxcosine.experiment.statistics import CONFIDENCE, differences, focus, means, spreads, wins

Spec = dict[str, Any]

ALL = -1
"""In the place of a label: all of them."""
ALL_LABELS = "all labels"
FEW = 6
"""So many rules fit beside each other at every label, and so many curves into one figure."""

_WIDTH = 640
_PNG_SCALE = 2.0

# Title, colour and shape of each rule, in the order in which they are drawn if not all can be. Colours are
# of a middling lightness, to be seen on white and on black; where a colour-blind eye confuses two, the shapes
# differ.
_LOOKS = {
    "mcp": ("MCP", "#c44300", "circle"),
    "pa": ("PA", "#0072b2", "square"),
    "aggressive_romma": ("A-ROMMA", "#029a5e", "triangle-up"),
    "mcp_exact": ("MCP-exact", "#a9508f", "diamond"),
    "alma": ("ALMA", "#b98e11", "cross"),
    "perceptron": ("Perceptron", "#8c8c8c", "triangle-down"),
    "cmcp": ("CMCP", "#8a63d2", "triangle-right"),
    "romma": ("ROMMA", "#2f97d8", "triangle-left"),
    "norma": ("NORMA", "#a5553a", "square"),
    "naromma": ("NAROMMA", "#6a8f1f", "triangle-left"),
    "pa1": ("PA-I", "#5477d6", "diamond"),
    "pa2": ("PA-II", "#1f8f99", "cross"),
}
_OTHER_LOOKS = (
    ("#b8475f", "triangle-up"),
    ("#4d8a57", "diamond"),
    ("#9a6fb0", "square"),
    ("#8f7a4a", "circle"),
)


def title_of(rule: str) -> str:
    """What a reader calls a rule.

    >>> title_of("pa1"), title_of("avg_mcp"), title_of("mine")
    ('PA-I', 'averaged MCP', 'mine')
    """
    if rule.startswith(AVERAGED):
        return f"averaged {title_of(rule.removeprefix(AVERAGED))}"
    return _LOOKS[rule][0] if rule in _LOOKS else rule


def colour_of(rule: str) -> str:
    """The colour of a rule, the same in every figure; an averaged twin's is lighter."""
    if rule.startswith(AVERAGED):
        colour = colour_of(rule.removeprefix(AVERAGED))
        return "#" + "".join(f"{(3 * int(colour[i : i + 2], 16) + 2 * 255) // 5:02x}" for i in (1, 3, 5))
    return _look(rule)[0]


def shape_of(rule: str) -> str:
    """The mark on the curve of a rule, and on that of its averaged twin."""
    return _look(rule.removeprefix(AVERAGED))[1]


def _look(rule: str) -> tuple[str, str]:
    if rule in _LOOKS:
        return _LOOKS[rule][1:]
    return _OTHER_LOOKS[zlib.crc32(rule.encode()) % len(_OTHER_LOOKS)]


@dataclass(frozen=True)
class Figure:
    """A figure, and what to say about it."""

    name: str
    title: str
    caption: str
    """How to read it."""
    alt: dict[int, str]
    """What there is to see, in words and numbers: for ALL, and for each label that can be chosen."""
    spec: Spec


def figures(results: Results) -> list[Figure]:
    """All figures that these results have the numbers for."""
    found = [mistakes(results)]
    if len(results.rules) > 1:
        found.append(paired(results))
    if results.curves.get("rules"):
        found += [learning(results), bound(results), margin_ceiling(results), cosine(results)]
    return found


def save(results: Results, folder: str | Path) -> list[Path]:
    """Write each figure into a folder, as SVG and as PNG."""
    vl_convert = renderer()
    written = []
    for figure in figures(results):
        titled = {**figure.spec, "title": {"text": figure.title, "subtitle": what_was_run(results)}}
        drawn = vl_convert.vegalite_to_svg(titled)
        contents = {"svg": drawn, "png": vl_convert.svg_to_png(drawn, scale=_PNG_SCALE)}
        for kind, content in contents.items():
            path = Path(folder) / f"{figure.name}.{kind}"
            files.write(path, content)
            written.append(path)
    return written


def renderer() -> Any:
    """The package that draws specifications."""
    try:
        import vl_convert
    except ImportError:
        raise ImportError(
            "figures are drawn by the package vl-convert-python, which is missing: "
            "pip install 'maxcosine[report]'"
        ) from None
    return vl_convert


def what_was_run(results: Results) -> str:
    """The experiment in half a sentence."""
    n = results.protocol["permutations"]
    orders = f"mean of {n} orders" if n > 1 else "one order"
    return (
        f"{results.dataset.get('title', results.dataset['name'])}, label against the rest, one pass, {orders}"
    )


def default_rules(results: Results) -> list[str]:
    """The rules whose curves are drawn at first: FEW at most, the one in focus and own ones before others."""
    order = list(_LOOKS)

    def importance(rule: str) -> tuple[bool, bool, int]:
        return rule != focus(results), _is_twin(rule, results), order.index(rule) if rule in _LOOKS else -1

    chosen = sorted(results.rules, key=importance)[:FEW]
    return [rule for rule in results.rules if rule in chosen]


def _is_twin(rule: str, results: Results) -> bool:
    """Whether a rule is the averaged twin of another one here."""
    return rule.startswith(AVERAGED) and rule.removeprefix(AVERAGED) in results.rules


# --- counts: for few rules by label, for many by rule -----------------------------------------


def mistakes(results: Results) -> Figure:
    """The paper's figure: mean test mistakes of every rule on every label, and their spread."""
    rules, spread = results.rules, _has_spread(results)
    few = len(rules) <= FEW
    along, end = ("y", "y2") if few else ("x", "x2")
    title = "mean test mistakes"
    tooltip = _tooltip(",.2f", "mean", *(["std"] if spread else []))
    bars = {
        "mark": {"type": "bar", "cornerRadiusEnd": 2},
        "encoding": {
            along: _number("mean", title, axis={"tickCount": 7}),
            "color": _colour(rules, _LEGEND if few else None),
            "tooltip": tooltip,
        },
    }
    whiskers = {
        "mark": {"type": "rule", "strokeWidth": 1.2},
        "encoding": {along: _number("low", title), end: {"field": "high"}, "tooltip": tooltip},
    }
    rows = _mistake_rows(results)
    if few:
        rows = [row for row in rows if row["index"] != ALL]
        spec = _base(results, rows) | {
            "height": 300,
            "encoding": {"x": _labels_across(results.labels), "xOffset": _beside(rules)},
            "usermeta": {"least_width": 60 + 8 * len(rows)},
        }
    else:
        spec = _base(results, rows) | {
            "height": _height(len(rules)),
            "encoding": {"y": _rules_down(rules, results)},
            "transform": [_CHOSEN_LABEL],
        }
    spec["layer"] = [bars, whiskers] if spread else [bars]
    caption = "The mean number of test mistakes over the orders of the examples: shorter bars are better."
    if spread:
        caption += " The line on a bar reaches one standard deviation to both sides."
    alt = _mistakes_alt(results, _indices(results) if not few else [ALL])
    return Figure("mistakes", "Mistakes on the test examples", caption, alt, spec)


def _mistake_rows(results: Results) -> list[Spec]:
    rows = []
    mean, spread, counts = means(results), spreads(results), results.counts()
    for rule in results.rules:
        # Over all labels, the spread is that of the mean from order to order.
        overall = counts[rule].mean(axis=0).std(ddof=1) if _has_spread(results) else 0.0
        values, stds = [mean[rule].mean(), *mean[rule]], [overall, *spread[rule]]
        for index, value, std in zip(_indices(results), values, stds, strict=True):
            # A count is never negative, nor is it drawn so.
            numbers = {"mean": value, "std": std, "low": max(0.0, value - std), "high": value + std}
            rows.append(_row(results, rule, index, numbers))
    return rows


def _mistakes_alt(results: Results, indices: Sequence[int]) -> dict[int, str]:
    table = {rule: [values.mean(), *values] for rule, values in means(results).items()}
    won = wins(results)
    best = max(won, key=won.__getitem__)
    alt = {
        index: f"Mean test mistakes, {_of_label(results, index)}: "
        f"{_listing({rule: values[index + 1] for rule, values in table.items()})}."
        for index in indices
    }
    alt[ALL] += f" {title_of(best)} makes the fewest on {won[best]:.3g} of {len(results.labels)} labels."
    return alt


def paired(results: Results) -> Figure:
    """The rule in focus beside each other rule: the mean difference of test mistakes, and its interval."""
    title, spread = title_of(focus(results)), _has_spread(results)
    others = [rule for rule in results.rules if rule != focus(results)]
    few = len(others) < FEW
    points, intervals, each_label, zero = _paired_marks(title, others, few, spread)
    marks = [intervals, points] if spread else [points]
    if few:
        rows_of = {"y": _labels_down(results.labels), "yOffset": _beside(others)}
    else:
        rows_of = {"y": _rules_down(others, results)}
        marks = [each_label, *(mark | {"transform": [_CHOSEN_LABEL]} for mark in marks)]
    rows = _difference_rows(results)
    spec = _base(results, rows) | {
        "height": _height(len(results.labels) + 1, len(others)) if few else _height(len(others)),
        # The zero line is in no row.
        "layer": [zero, *(mark | {"encoding": rows_of | mark["encoding"]} for mark in marks)],
    }
    caption = (
        "Every rule learns from the same orders, so counts are compared in pairs: left of the zero line "
        f"{title} makes fewer mistakes than the other rule."
    )
    if spread:
        caption += (
            f" The line through a point is the {100 * CONFIDENCE:.0f} % bootstrap interval of the mean."
        )
    if not few:
        caption += " Thin ticks are the single labels."
    alt = _paired_alt(results, rows, _indices(results) if not few else [ALL])
    return Figure("paired", f"{title} beside the other rules", caption, alt, spec)


def _paired_marks(
    title: str, others: Sequence[str], few: bool, spread: bool
) -> tuple[Spec, Spec, Spec, Spec]:
    x_title = ["difference in mean test mistakes", f"left of 0: {title} makes fewer"]
    x = _number("mean", x_title, scale={"padding": 12}, axis={"tickCount": 7})
    tooltip = _tooltip("+,.2f", "mean", *(["low", "high"] if spread else []))
    encoding = {"x": x, "color": _colour(others, _LEGEND if few else None), "tooltip": tooltip}
    points = {
        "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
        "encoding": encoding,
    }
    intervals = {
        "mark": {"type": "rule", "strokeWidth": 2},
        "encoding": encoding | {"x": x | {"field": "low"}, "x2": {"field": "high"}},
    }
    each_label = {
        "transform": [{"filter": f"datum.index !== {ALL}"}],
        "mark": {"type": "tick", "thickness": 1, "height": 9, "opacity": 0.7},
        "encoding": {"x": x, "tooltip": tooltip},
    }
    zero = {
        "data": {"values": [{}]},
        "mark": {"type": "rule", "strokeDash": [4, 3]},
        "encoding": {"x": {"datum": 0, "type": "quantitative"}},
    }
    return points, intervals, each_label, zero


def _difference_rows(results: Results) -> list[Spec]:
    return [
        _row(
            results,
            one.other,
            ALL if one.label is None else one.label,
            {"mean": one.mean, "low": one.low, "high": one.high},
        )
        for one in differences(results, focus(results))
    ]


def _paired_alt(results: Results, rows: Sequence[Spec], indices: Sequence[int]) -> dict[int, str]:
    alt = {}
    for index in indices:
        here = sorted((row for row in rows if row["index"] == index), key=lambda row: float(row["mean"]))
        words = [_difference_words(row) for row in here]
        if len(words) > FEW:
            words = [*words[:3], f"and so on up to {words[-1]}"]
        fewer = sum(row["mean"] < 0.0 for row in here)
        alt[index] = (
            f"{title_of(focus(results))} makes fewer test mistakes than {fewer} of {len(here)} other rules, "
            f"{_of_label(results, index)}: {'; '.join(words)}."
        )
    return alt


def _difference_words(row: Spec) -> str:
    mean, low, high = (signed(row[name], 1) for name in ("mean", "low", "high"))
    return f"{mean} ({low} to {high}) beside {row['rule']}" if low != high else f"{mean} beside {row['rule']}"


# --- curves ----------------------------------------------------------------------------------


def learning(results: Results) -> Figure:
    """Mistakes while learning; an averaged twin learns as its rule does, and is left out."""
    return _curves(
        results,
        "learning",
        "Mistakes while learning",
        "How many of a hundred examples so far were predicted wrongly, each before it was learnt: "
        "lower is better.",
        "mistakes in 100 examples",
        {
            rule: 100.0 * _followed(results, rule, "mistakes") / np.array(results.curves["examples"])
            for rule in results.rules
            if not _is_twin(rule, results)
        },
        from_zero=True,
    )


def bound(results: Results) -> Figure:
    """Lambda / norm(w) of the hypothesis."""
    return _curves(
        results,
        "bound",
        "The bound",
        "Times the margin of any separator of the examples so far, this is a proven lower bound on the "
        "cosine between that separator and the hypothesis. The axis is logarithmic.",
        "Λ / ‖w‖",
        {rule: _followed(results, rule, "bound") for rule in results.rules},
        log=True,
    )


def margin_ceiling(results: Results) -> Figure:
    """What no margin can exceed."""
    return _curves(
        results,
        "margin_ceiling",
        "The margin ceiling",
        "No hyperplane through the origin separates the examples so far with a larger margin: "
        "the lower, the more is proven. The axis is logarithmic.",
        "margin ceiling",
        {rule: _followed(results, rule, "margin_ceiling") for rule in results.rules},
        log=True,
    )


def cosine(results: Results) -> Figure:
    """How near the hypothesis is to the last one."""
    return _curves(
        results,
        "cosine",
        "Cosine to the final hypothesis",
        "How near the direction already is to where it ends: a curve that is high early has settled early.",
        "cosine",
        {rule: _followed(results, rule, "cosine") for rule in results.rules},
        told_at=0.25,
    )


def _curves(
    results: Results,
    name: str,
    title: str,
    caption: str,
    y_title: str,
    tables: dict[str, np.ndarray],
    *,
    log: bool = False,
    from_zero: bool = False,
    told_at: float = 1.0,
) -> Figure:
    """Curves against examples, each table as of `_followed`; the text tells of a point of them."""
    rules, examples = list(tables), np.array(results.curves["examples"])
    told = max(0, round(told_at * len(examples)) - 1)
    shown = [rule for rule in default_rules(results) if rule in tables]
    alt = {
        index: f"{title} after {examples[told]:,} examples, {_of_label(results, index)}: "
        f"{_listing({rule: tables[rule][index + 1, told] for rule in shown})}."
        for index in _indices(results)
    }
    lines = {
        "mark": {"type": "line", "strokeWidth": 1.8},
        "encoding": {"strokeDash": _by_rule(rules, [_dash(rule) for rule in rules], _LEGEND_OF_SHOWN)},
    }
    points = {
        "transform": [{"filter": f"indexof({_some(examples)}, datum.examples) >= 0"}],
        "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1},
        "encoding": {
            "shape": _by_rule(rules, [shape_of(rule) for rule in rules], _LEGEND_OF_SHOWN),
            "tooltip": [
                {"field": "rule", "title": "rule"},
                {"field": "examples", "title": "examples", "format": ",d"},
                {"field": "value", "title": y_title, "format": ".4~g"},
            ],
        },
    }
    scale: Spec = {"type": "log", "nice": False} if log else {"zero": from_zero}
    axis: Spec = {"values": _ONE_TWO_FIVE, "format": "~g"} if log else {"tickCount": 5}
    spec = _base(results, _curve_rows(results, tables, positive=log)) | {
        "height": 260,
        "transform": [
            _CHOSEN_LABEL,
            {"filter": "indexof(shown, datum.rule) >= 0"},
            {"flatten": ["examples", "value"]},
        ],
        "encoding": {
            "x": _number("examples", "examples so far", axis={"format": ",d", "grid": False, "tickCount": 6}),
            "y": _number("value", y_title, axis=axis, scale=scale),
            "color": _colour(rules, _LEGEND_OF_SHOWN),
        },
        "layer": [lines, points],
    }
    return Figure(name, title, caption, alt, spec)


def _followed(results: Results, rule: str, curve: str) -> np.ndarray:
    """A curve over all labels, then of each; what is not proven for every label is not a number over all."""
    of_labels = results.curves["rules"][rule]
    table = np.array([of_labels[str(label)][curve] for label in range(len(results.labels))], dtype=float)
    return np.vstack([table.mean(axis=0), table])


def _curve_rows(results: Results, tables: dict[str, np.ndarray], *, positive: bool) -> list[Spec]:
    """A row for each curve, to be flattened: a name for each of its points would make a large file."""
    examples = np.array(results.curves["examples"])
    rows = []
    for rule, table in tables.items():
        for index, values in zip(_indices(results), table, strict=True):
            there = np.isfinite(values) & (values > 0.0) if positive else np.isfinite(values)
            points = [float(f"{value:.6g}") for value in values[there]]
            rows.append(
                {
                    "rule": title_of(rule),
                    "index": index,
                    "examples": examples[there].tolist(),
                    "value": points,
                }
            )
    return rows


# The ticks of a logarithmic axis, of which a figure has those that it has room for.
_ONE_TWO_FIVE = [digit * 10.0**power for power in range(-9, 10) for digit in (1, 2, 5)]


def _some(examples: np.ndarray) -> list[int]:
    """Where curves are marked: the last, and about six before it."""
    found: list[int] = examples[:: -max(1, len(examples) // 6)].tolist()
    return found


def _dash(rule: str) -> list[int]:
    return [5, 3] if rule.startswith(AVERAGED) else [1, 0]


# --- words -----------------------------------------------------------------------------------


def signed(value: float, digits: int) -> str:
    """A difference as it is printed: with its sign, and a minus that is no hyphen.

    >>> signed(1234.56, 1)
    '+1,234.6'
    """
    return f"{value:+,.{digits}f}".replace("-", "\N{MINUS SIGN}")


def _indices(results: Results) -> list[int]:
    return [ALL, *range(len(results.labels))]


def _of_label(results: Results, index: int) -> str:
    return "mean over all labels" if index == ALL else f"label {results.labels[index]}"


def _listing(values: dict[str, float]) -> str:
    """Rules and their numbers, the smallest first; of many, the first few and the last."""
    ranked = sorted((value, title_of(rule)) for rule, value in values.items() if np.isfinite(value))
    words = [f"{title} {value:.4g}" for value, title in ranked]
    if len(words) > FEW + 1:
        words = [*words[:FEW], f"and so on up to {words[-1]}"]
    return ", ".join(words) if words else "nothing is proven"


# --- parts of specifications -------------------------------------------------------------------

_CHOSEN_LABEL = {"filter": "datum.index === label"}
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif"


def _base(results: Results, rows: list[Spec]) -> Spec:
    there = {row["rule"] for row in rows}
    shown = [title_of(rule) for rule in default_rules(results) if title_of(rule) in there]
    return {
        "width": _WIDTH,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "params": [{"name": "label", "value": ALL}, {"name": "shown", "value": shown}],
        "data": {"values": rows},
        "config": {
            "font": _FONT,
            "aria": False,  # the text beside the figure says more than a name for each mark
            "view": {"stroke": None},
            "title": {"anchor": "start", "fontSize": 16, "subtitleFontSize": 12, "offset": 14},
            "tick": {"color": "#888888"},
            "axis": {
                "labelFlush": False,
                "labelSeparation": 8,
                "labelFontSize": 12,
                "titleFontSize": 12,
                "titleFontWeight": "normal",
                "titlePadding": 8,
            },
            "legend": {"columns": 3, "labelFontSize": 12, "symbolSize": 90},
        },
    }


def _row(results: Results, rule: str, index: int, numbers: dict[str, float]) -> Spec:
    label = ALL_LABELS if index == ALL else results.labels[index]
    rounded = {name: round(float(value), 4) for name, value in numbers.items()}
    return {"rule": title_of(rule), "index": index, "label": label, **rounded}


def _number(field: str, title: str | list[str], **more: Any) -> Spec:
    return {"field": field, "type": "quantitative", "title": title, **more}


def _tooltip(number: str, *fields: str) -> list[Spec]:
    words = [{"field": field, "title": field} for field in ("rule", "label")]
    return words + [{"field": field, "title": field, "format": number} for field in fields]


def _by_rule(rules: Sequence[str], looks: Sequence[Any], legend: Spec | None) -> Spec:
    """A look for each rule, the same whichever of them are drawn."""
    domain = [title_of(rule) for rule in rules]
    return {"field": "rule", "type": "nominal", "scale": {"domain": domain, "range": looks}, "legend": legend}


def _colour(rules: Sequence[str], legend: Spec | None) -> Spec:
    return _by_rule(rules, [colour_of(rule) for rule in rules], legend)


_LEGEND: Spec = {"title": None, "orient": "top", "labelLimit": 200}
_LEGEND_OF_SHOWN: Spec = {**_LEGEND, "values": {"expr": "shown"}, "symbolStrokeWidth": 0}


def _beside(rules: Sequence[str]) -> Spec:
    """Rules beside each other at one label."""
    return {"field": "rule", "type": "nominal", "sort": [title_of(rule) for rule in rules]}


def _labels_across(labels: list[str]) -> Spec:
    slanted = max(map(len, labels)) > 3
    axis = {"labelAngle": -40 if slanted else 0, "labelLimit": 100, "ticks": False}
    return {"field": "label", "type": "nominal", "sort": labels, "title": "label", "axis": axis}


def _labels_down(labels: list[str]) -> Spec:
    axis = {"labelFontWeight": _bold(ALL_LABELS), "grid": True, "ticks": False}
    return {
        "field": "label",
        "type": "nominal",
        "sort": [ALL_LABELS, *labels],
        "title": "label",
        "axis": axis,
    }


def _rules_down(rules: Sequence[str], results: Results) -> Spec:
    """A row for each rule, the fewest mistakes over all labels on top."""
    mean = means(results)
    ranked = sorted(rules, key=lambda rule: float(mean[rule].mean()))
    axis = {"labelFontWeight": _bold(title_of(focus(results))), "labelLimit": 150, "ticks": False}
    order = [title_of(rule) for rule in ranked]
    return {"field": "rule", "type": "nominal", "sort": order, "title": None, "axis": axis}


def _bold(value: str) -> Spec:
    return {"condition": {"test": f"datum.value === {json.dumps(value)}", "value": "bold"}, "value": "normal"}


def _height(rows: int, marks: int = 1) -> int:
    """Of a figure with so many rows of so many marks each."""
    return rows * max(20, 11 * marks + 6)


def _has_spread(results: Results) -> bool:
    return bool(results.protocol["permutations"] > 1)
