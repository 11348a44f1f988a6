"""Parts of Vega-Lite specifications, which are plain dicts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxcosine.experiments.results import AVERAGED, rounded
from maxcosine.experiments.rule_styles import colour_of, marker_of, title_of

Spec = dict[str, Any]

ALL = -1
"""The index that stands for all labels."""
ALL_LABELS = "all labels"
DIGITS = 4
"""Significant digits of the values in figures."""
FEW = 6
"""The number of rules that fit side by side at every label, and of curves that fit in one figure."""

CHOSEN_LABEL = {"filter": "datum.index === label"}
LEGEND: Spec = {"title": None, "orient": "top", "labelLimit": 200}
LEGEND_OF_SHOWN: Spec = {**LEGEND, "values": {"expr": "shown"}, "symbolStrokeWidth": 0}
POINT: Spec = {"type": "point", "filled": True, "size": 55, "opacity": 1}
LOG_SCALE = {"type": "log", "nice": False}
CONFIG: Spec = {
    "font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif",
    "aria": False,  # the text beside the figure says more than a description of each mark
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
}


@dataclass(frozen=True)
class Figure:
    """A figure and the text around it."""

    name: str
    title: str
    caption: str
    """How to read the figure."""
    alt: dict[int, str]
    """What the figure shows, in words and numbers: for ALL, and for each label that can be chosen."""
    spec: Spec
    has_curves: bool = False


def renderer() -> Any:
    """Return the package that draws specifications."""
    try:
        import vl_convert
    except ImportError:
        raise ImportError("figures need the package vl-convert-python: pip install 'maxcosine[report]'") from None
    return vl_convert


def describe(values: dict[str, float], name: str = "") -> str:
    """List titles of rules with values, the smallest first; of many rules, the first few and the last.

    `name` is that of the curve which the values are on, if any.
    """
    ranked = sorted((value, title) for title, value in values.items() if np.isfinite(value))
    words = [f"{title} {rounded(name, value, DIGITS)}" for value, title in ranked]
    if len(words) > FEW + 1:
        words = [*words[:FEW], f"and so on up to {words[-1]}"]
    return ", ".join(words) or "nothing is proven"


def base(rows: list[Spec], shown: Iterable[str] = ()) -> Spec:
    """Return the common part of all specifications; `shown` are the rules whose curves are drawn at first."""
    return {
        "width": 640,
        # A reader's font may be wider than the renderer's.
        "padding": {"left": 12, "right": 5, "top": 5, "bottom": 5},
        "autosize": {"type": "fit-x", "contains": "padding"},
        "params": [
            {"name": "label", "value": ALL},
            {"name": "shown", "value": [title_of(rule) for rule in shown]},
        ],
        "data": {"values": rows},
        "config": CONFIG,
    }


def curve_chart(rows: list[Spec], rules: Sequence[str], shown: Iterable[str], x: Spec, y: Spec) -> Spec:
    """Draw curves over examples; `rows` are made by `curve_row`, `x` and `y` are the axes."""
    examples = max((row["examples"] for row in rows), key=len)
    marked = examples[:: -max(1, len(examples) // 6)]  # the last, and about six before it
    dashes = [[5, 3] if rule.startswith(AVERAGED) else [1, 0] for rule in rules]
    markers = [marker_of(rule) for rule in rules]
    value = {"field": "value", "title": y["title"], "format": f".{DIGITS}~g"}
    lines = {
        "mark": {"type": "line", "strokeWidth": 1.8},
        "encoding": {"strokeDash": by_rule(rules, dashes, LEGEND_OF_SHOWN)},
    }
    points = {
        "transform": [{"filter": f"indexof({marked}, datum.examples) >= 0"}],
        "mark": POINT,
        "encoding": {
            "shape": by_rule(rules, markers, LEGEND_OF_SHOWN),
            "tooltip": [*tooltip(rule="", examples=",d"), value],
        },
    }
    shown_rules = {"filter": "indexof(shown, datum.rule) >= 0"}
    return base(rows, shown) | {
        "height": 260,
        "transform": [CHOSEN_LABEL, shown_rules, {"flatten": ["examples", "value"]}],
        "encoding": {"x": x, "y": y, "color": colour(rules, LEGEND_OF_SHOWN)},
        "layer": [lines, points],
    }


def curve_row(rule: str, name: str, examples: np.ndarray, values: np.ndarray, index: int = ALL) -> Spec:
    """Return one row for a whole curve: a row for each point would make the file much larger."""
    points = [float(rounded(name, value, DIGITS)) for value in values]
    return {"rule": title_of(rule), "index": index, "examples": examples.tolist(), "value": points}


def number(field: str, title: str | list[str], **options: Any) -> Spec:
    """Encode a numeric field."""
    return {"field": field, "type": "quantitative", "title": title, **options}


def log_number(field: str, title: str) -> Spec:
    """Encode a numeric field on a logarithmic vertical axis."""
    return number(field, title, axis=_log_axis("y", "~g"), scale=LOG_SCALE)


def examples_axis(*, log: bool = False) -> Spec:
    """Encode the number of examples."""
    axis: Spec = {"format": ",d", "tickCount": 6, "tickMinStep": 1}
    options: Spec = {"axis": _log_axis("x", "~s"), "scale": LOG_SCALE} if log else {"axis": axis}
    options["axis"]["grid"] = False
    return number("examples", "examples so far", **options)


def _log_axis(channel: str, form: str) -> Spec:
    """Return an axis with short and long ticks; long ones have a label, if there is room for it.

    Vega places ticks at 1, 2, ..., 9 times each power of ten, or evenly over a range that holds few of these.
    Long ticks are powers of ten over a range of at least three powers, 1, 2 and 5 times these over one of at
    least one power, and all ticks over a shorter range.
    """
    low, high = (f"domain('{channel}')[{end}]" for end in (0, 1))
    digit = "round(datum.value / pow(10, floor(log(datum.value) / LN10 + 1e-9)))"
    is_long = f"({high} < 10 * {low} || indexof({high} < 1000 * {low} ? [1, 2, 5] : [1], {digit}) >= 0)"
    if channel == "x":  # whole examples
        is_long = f"({is_long} && datum.value % 1 === 0)"
    return {
        "tickCount": 14,
        "tickSize": _if(is_long, 6, 3),
        "gridOpacity": _if(is_long, 1, 0),
        "labelExpr": f"{is_long} ? format(datum.value, '{form}') : ''",
        "labelOverlap": "greedy",
    }


def nominal(field: str, order: Sequence[str], **options: Any) -> Spec:
    """Encode names in a fixed order."""
    return {"field": field, "type": "nominal", "sort": list(order), **options}


def by_rule(rules: Sequence[str], styles: Sequence[Any], legend: Spec | None) -> Spec:
    """Encode rules by styles that do not depend on which rules are drawn."""
    scale = {"domain": [title_of(rule) for rule in rules], "range": styles}
    return {"field": "rule", "type": "nominal", "scale": scale, "legend": legend}


def colour(rules: Sequence[str], legend: Spec | None) -> Spec:
    """Encode rules by colour."""
    return by_rule(rules, [colour_of(rule) for rule in rules], legend)


def rule_rows(rules: Sequence[str], highlighted: str) -> Spec:
    """Encode rules as rows in the given order, with one of them in bold."""
    axis = {"labelFontWeight": bold(title_of(highlighted)), "labelLimit": 150, "ticks": False}
    return nominal("rule", [title_of(rule) for rule in rules], title=None, axis=axis)


def tooltip(**formats: str) -> list[Spec]:
    """Show fields, each with its number format, or "" for text."""
    return [{"field": field, "title": field, **({"format": form} if form else {})} for field, form in formats.items()]


def bold(value: str) -> Spec:
    """Set one label of an axis in bold."""
    return _if(f"datum.value === {json.dumps(value)}", "bold", "normal")


def _if(test: str, value: Any, otherwise: Any) -> Spec:
    return {"condition": {"test": test, "value": value}, "value": otherwise}


def height(rows: int, marks: int = 1) -> int:
    """Return the height of a figure from its number of rows, and of marks per row."""
    return rows * max(20, 11 * marks + 6)
