"""What figures are made of: parts of Vega-Lite specifications, which are plain dicts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxcosine.experiments.looks import colour_of, shape_of, title_of
from maxcosine.experiments.results import AVERAGED

Spec = dict[str, Any]

ALL = -1
"""In the place of a label: all of them."""
FEW = 6
"""So many rules fit beside each other at every label, and so many curves into one figure."""

_WIDTH = 640
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif"


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


def listing(values: dict[str, float]) -> str:
    """Rules and their numbers, the smallest first; of many, the first few and the last."""
    ranked = sorted((value, title_of(rule)) for rule, value in values.items() if np.isfinite(value))
    words = [f"{title} {value:.4g}" for value, title in ranked]
    if len(words) > FEW + 1:
        words = [*words[:FEW], f"and so on up to {words[-1]}"]
    return ", ".join(words) if words else "nothing is proven"


# --- whole specifications ---------------------------------------------------------------------

CHOSEN_LABEL = {"filter": "datum.index === label"}


def base(rows: list[Spec], rules: Iterable[str]) -> Spec:
    """What all specifications begin with; of these rules, those that are there are shown at first."""
    there = {row["rule"] for row in rows}
    shown = [title_of(rule) for rule in rules if title_of(rule) in there]
    return {
        "width": _WIDTH,
        # Bold names may be wider in the reader's font than in the renderer's.
        "padding": {"left": 12, "right": 5, "top": 5, "bottom": 5},
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


def curves(
    rows: list[Spec],
    rules: Sequence[str],
    shown: Iterable[str],
    examples: np.ndarray,
    y_title: str,
    *,
    log: bool = False,
    log_examples: bool = False,
    from_zero: bool = False,
) -> Spec:
    """Curves against examples, of rows as of `curve`."""
    lines = {
        "mark": {"type": "line", "strokeWidth": 1.8},
        "encoding": {"strokeDash": by_rule(rules, [_dash(rule) for rule in rules], _LEGEND_OF_SHOWN)},
    }
    points = {
        "transform": [{"filter": f"indexof({_some(examples)}, datum.examples) >= 0"}],
        "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1},
        "encoding": {
            "shape": by_rule(rules, [shape_of(rule) for rule in rules], _LEGEND_OF_SHOWN),
            "tooltip": [
                {"field": "rule", "title": "rule"},
                {"field": "examples", "title": "examples", "format": ",d"},
                {"field": "value", "title": y_title, "format": ".4~g"},
            ],
        },
    }
    scale: Spec = _LOG if log else {"zero": from_zero}
    axis: Spec = {"values": _ONE_TWO_FIVE, "format": "~g"} if log else {"tickCount": 5}
    x_axis: Spec = {"format": ",d", "grid": False, "tickCount": 6}
    return base(rows, shown) | {
        "height": 260,
        "transform": [
            CHOSEN_LABEL,
            {"filter": "indexof(shown, datum.rule) >= 0"},
            {"flatten": ["examples", "value"]},
        ],
        "encoding": {
            "x": number(
                "examples",
                "examples so far",
                axis=x_axis | ({"values": _POWERS_OF_TEN, "format": "~s"} if log_examples else {}),
                **({"scale": _LOG} if log_examples else {}),
            ),
            "y": number("value", y_title, axis=axis, scale=scale),
            "color": colour(rules, _LEGEND_OF_SHOWN),
        },
        "layer": [lines, points],
    }


def curve(rule: str, examples: np.ndarray, values: np.ndarray, index: int = ALL) -> Spec:
    """A row for a whole curve, to be flattened: a name for each of its points would make a large file."""
    points = [float(f"{value:.6g}") for value in values]
    return {"rule": title_of(rule), "index": index, "examples": examples.tolist(), "value": points}


_LOG: Spec = {"type": "log", "nice": False}

# The ticks of a logarithmic axis, of which a figure has those that it has room for.
_ONE_TWO_FIVE = [digit * 10.0**power for power in range(-9, 10) for digit in (1, 2, 5)]
_POWERS_OF_TEN = [10**power for power in range(13)]


def _some(examples: np.ndarray) -> list[int]:
    """Where curves are marked: the last, and about six before it."""
    found: list[int] = examples[:: -max(1, len(examples) // 6)].tolist()
    return found


def _dash(rule: str) -> list[int]:
    return [5, 3] if rule.startswith(AVERAGED) else [1, 0]


# --- parts -------------------------------------------------------------------------------------


def number(field: str, title: str | list[str] | None, **more: Any) -> Spec:
    return {"field": field, "type": "quantitative", "title": title, **more}


def by_rule(rules: Sequence[str], looks: Sequence[Any], legend: Spec | None) -> Spec:
    """A look for each rule, the same whichever of them are drawn."""
    domain = [title_of(rule) for rule in rules]
    return {"field": "rule", "type": "nominal", "scale": {"domain": domain, "range": looks}, "legend": legend}


def colour(rules: Sequence[str], legend: Spec | None) -> Spec:
    return by_rule(rules, [colour_of(rule) for rule in rules], legend)


LEGEND: Spec = {"title": None, "orient": "top", "labelLimit": 200}
_LEGEND_OF_SHOWN: Spec = {**LEGEND, "values": {"expr": "shown"}, "symbolStrokeWidth": 0}


def rules_down(ranked: Sequence[str], in_focus: str) -> Spec:
    """A row for each rule, in this order, one of them in bold."""
    axis = {"labelFontWeight": bold(title_of(in_focus)), "labelLimit": 150, "ticks": False}
    order = [title_of(rule) for rule in ranked]
    return {"field": "rule", "type": "nominal", "sort": order, "title": None, "axis": axis}


def bold(value: str) -> Spec:
    return {"condition": {"test": f"datum.value === {json.dumps(value)}", "value": "bold"}, "value": "normal"}


def height(rows: int, marks: int = 1) -> int:
    """Of a figure with so many rows of so many marks each."""
    return rows * max(20, 11 * marks + 6)
