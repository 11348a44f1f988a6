"""The figures of an experiment, as Vega-Lite specifications: plain dicts with all their data inside.

A specification has two parameters that a page may set: `label`, the index of a label or ALL, and `shown`, the
titles of the rules whose curves are drawn. As they are, they give the figure that is printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from maxcosine import files
from maxcosine.experiments.charts import (
    ALL,
    CHOSEN_LABEL,
    FEW,
    LEGEND,
    Figure,
    Spec,
    base,
    bold,
    colour,
    curve,
    curves,
    height,
    listing,
    number,
    renderer,
    rules_down,
)
from maxcosine.experiments.looks import LOOKS, title_of
from maxcosine.experiments.results import AVERAGED, Results
from maxcosine.experiments.statistics import CONFIDENCE, differences, focus, means, spreads, wins

ALL_LABELS = "all labels"

_PNG_SCALE = 2.0


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


def what_was_run(results: Results) -> str:
    """The experiment in half a sentence."""
    n = results.protocol["permutations"]
    orders = f"mean of {n} orders" if n > 1 else "one order"
    return (
        f"{results.dataset.get('title', results.dataset['name'])}, label against the rest, one pass, {orders}"
    )


def default_rules(results: Results) -> list[str]:
    """The rules whose curves are drawn at first: FEW at most, the one in focus and own ones before others."""
    order = list(LOOKS)

    def importance(rule: str) -> tuple[bool, bool, int]:
        return rule != focus(results), _is_twin(rule, results), order.index(rule) if rule in LOOKS else -1

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
            along: number("mean", title, axis={"tickCount": 7}),
            "color": colour(rules, LEGEND if few else None),
            "tooltip": tooltip,
        },
    }
    whiskers = {
        "mark": {"type": "rule", "strokeWidth": 1.2},
        "encoding": {along: number("low", title), end: {"field": "high"}, "tooltip": tooltip},
    }
    rows = _mistake_rows(results)
    if few:
        rows = [row for row in rows if row["index"] != ALL]
        spec = base(rows, default_rules(results)) | {
            "height": 300,
            "encoding": {"x": _labels_across(results.labels), "xOffset": _beside(rules)},
            "usermeta": {"least_width": 60 + 8 * len(rows)},
        }
    else:
        spec = base(rows, default_rules(results)) | {
            "height": height(len(rules)),
            "encoding": {"y": _rules_down(rules, results)},
            "transform": [CHOSEN_LABEL],
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
        f"{listing({rule: values[index + 1] for rule, values in table.items()})}."
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
        marks = [each_label, *(mark | {"transform": [CHOSEN_LABEL]} for mark in marks)]
    rows = _difference_rows(results)
    spec = base(rows, default_rules(results)) | {
        "height": height(len(results.labels) + 1, len(others)) if few else height(len(others)),
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
    x = number("mean", x_title, scale={"padding": 12}, axis={"tickCount": 7})
    tooltip = _tooltip("+,.2f", "mean", *(["low", "high"] if spread else []))
    encoding = {"x": x, "color": colour(others, LEGEND if few else None), "tooltip": tooltip}
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
        f"{listing({rule: tables[rule][index + 1, told] for rule in shown})}."
        for index in _indices(results)
    }
    rows = _curve_rows(results, tables, positive=log)
    spec = curves(rows, rules, shown, examples, y_title, log=log, from_zero=from_zero)
    return Figure(name, title, caption, alt, spec)


def _followed(results: Results, rule: str, curve: str) -> np.ndarray:
    """A curve over all labels, then of each; what is not proven for every label is not a number over all."""
    of_labels = results.curves["rules"][rule]
    table = np.array([of_labels[str(label)][curve] for label in range(len(results.labels))], dtype=float)
    return np.vstack([table.mean(axis=0), table])


def _curve_rows(results: Results, tables: dict[str, np.ndarray], *, positive: bool) -> list[Spec]:
    examples = np.array(results.curves["examples"])
    rows = []
    for rule, table in tables.items():
        for index, values in zip(_indices(results), table, strict=True):
            there = np.isfinite(values) & (values > 0.0) if positive else np.isfinite(values)
            rows.append(curve(rule, examples[there], values[there], index))
    return rows


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


# --- parts of specifications -------------------------------------------------------------------


def _row(results: Results, rule: str, index: int, numbers: dict[str, float]) -> Spec:
    label = ALL_LABELS if index == ALL else results.labels[index]
    rounded = {name: round(float(value), 4) for name, value in numbers.items()}
    return {"rule": title_of(rule), "index": index, "label": label, **rounded}


def _tooltip(number: str, *fields: str) -> list[Spec]:
    words = [{"field": field, "title": field} for field in ("rule", "label")]
    return words + [{"field": field, "title": field, "format": number} for field in fields]


def _beside(rules: Sequence[str]) -> Spec:
    """Rules beside each other at one label."""
    return {"field": "rule", "type": "nominal", "sort": [title_of(rule) for rule in rules]}


def _labels_across(labels: list[str]) -> Spec:
    slanted = max(map(len, labels)) > 3
    axis = {"labelAngle": -40 if slanted else 0, "labelLimit": 100, "ticks": False}
    return {"field": "label", "type": "nominal", "sort": labels, "title": "label", "axis": axis}


def _labels_down(labels: list[str]) -> Spec:
    axis = {"labelFontWeight": bold(ALL_LABELS), "grid": True, "ticks": False}
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
    return rules_down(sorted(rules, key=lambda rule: float(mean[rule].mean())), focus(results))


def _has_spread(results: Results) -> bool:
    return bool(results.protocol["permutations"] > 1)
