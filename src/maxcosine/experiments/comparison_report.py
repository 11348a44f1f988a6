"""A comparison of rules on a stream as one page of HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from maxcosine import files
from maxcosine.experiments.charts import (
    ALL,
    FEW,
    LEGEND,
    Figure,
    Spec,
    base,
    colour,
    curve,
    curves,
    height,
    listing,
    number,
    rules_down,
)
from maxcosine.experiments.looks import named, title_of
from maxcosine.experiments.page import Cell, Page, chooser, duration, figure_of, table
from maxcosine.experiments.results import AVERAGED

PROGRESSIVE, TEST = "progressive", "test"
MOST_NAMED = 20
"""So many classes or files are told by their names."""
OPTIONS = ("format", "bits", "exact", "normalize", "log1p")
"""Of a stream, what is told of how it was read."""
DECADES = 3
"""Curves show so many powers of ten of examples; before that they jump."""


@dataclass(frozen=True)
class Circumstances:
    """How a comparison came about."""

    data: Sequence[Mapping[str, Any]]
    """Name and bytes of each input."""
    test_data: Sequence[Mapping[str, Any]]
    """Of the test's inputs, if it has its own."""
    held_out: int | None
    """Every so many-th example was held out for the test."""
    options: Mapping[str, Any]
    """How the data were read: each of OPTIONS."""
    command: str
    versions: Mapping[str, str]
    processor: str
    started: str
    seconds: float


def write(found: Mapping[str, Any], how: Circumstances, path: str | Path) -> None:
    """Write the report of a comparison, as `Comparison.as_dict` has it."""
    files.write(path, page(found, how))


def page(found: Mapping[str, Any], how: Circumstances) -> str:
    """The report as HTML."""
    results = _Ranked(found)
    drawn = [errors(results), learning(results)]
    shown = results.rules[:FEW]
    one_rule = len(results.rules) == 1
    return Page(
        kind="maxcosine comparison",
        title=_sentence(f"{named(results.rules)} on {_names(how.data, most=1)}"),
        run=_run(results, how),
        verdict=_verdict(results),
        numbers=_numbers(results, how),
        figures=drawn,
        laid_out="\n".join(
            [figure_of(drawn[0]), "" if one_rule else chooser(results.rules, shown), figure_of(drawn[1])]
        ),
        shown=shown,
        tables=[_table(results)],
        again="The same command on the same data finds the same counts, to the last; only times differ.",
        command=how.command,
        facts=_facts(results, how),
    ).html()


class _Ranked:
    """What was found, by rule, the best first."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self.examples: int = found["examples"]
        self.test_examples: int = found["test_examples"]
        self.classes: list[str] = found["classes"]
        self.features: int = found["features"]
        self.marks = np.array(found["marks"])
        self._rows = {(AVERAGED if row["average"] else "") + row["rule"]: row for row in found["rules"]}
        self.rules = list(self._rows)

    def column(self, name: str) -> dict[str, Any]:
        return {rule: row[name] for rule, row in self._rows.items()}

    def errors(self, kind: str) -> dict[str, float]:
        """In percent."""
        return {rule: 100.0 * error for rule, error in self.column(f"{kind}_error").items()}

    @property
    def kinds(self) -> list[str]:
        return [PROGRESSIVE, TEST] if self.test_examples else [PROGRESSIVE]

    @property
    def judged_by(self) -> str:
        """The error that rules are ranked by."""
        return self.kinds[-1]

    @property
    def judged(self) -> int:
        """Examples that this error is of."""
        return self.test_examples or self.examples


# --- words and numbers -------------------------------------------------------------------------


def _run(results: _Ranked, how: Circumstances) -> str:
    text = (
        f"Every rule learns the same {results.examples:,} examples in the same order, in one pass, and "
        "predicts each of them before it learns it: the progressive error counts these mistakes."
    )
    if any(rule.startswith(AVERAGED) for rule in results.rules):
        text += " They are those of the last hypothesis; the mean of all hypotheses is what is tested."
    if not results.test_examples:
        return text
    which = f"one in {how.held_out}, which was held out" if how.held_out else _names(how.test_data, 3)
    return f"{text} Then it is tested on {results.test_examples:,} examples: {which}."


def _verdict(results: _Ranked) -> Iterable[str]:
    error = results.errors(results.judged_by)
    best, *others = results.rules
    lowest = [rule for rule in results.rules if error[rule] == error[best]]
    if not others:
        text = f"{title_of(best)} has a {results.judged_by} error of {_percent(error[best])}."
    elif len(lowest) > 1:
        text = f"{named(lowest)} share the lowest {results.judged_by} error, {_percent(error[best])}."
    else:
        text = (
            f"{title_of(best)} has the lowest {results.judged_by} error, {_percent(error[best])}, before "
            f"{title_of(others[0])} with {_percent(error[others[0]])}."
        )
    if len(others) > 1:
        text += f" The highest is that of {title_of(others[-1])}, {_percent(error[others[-1]])}."
    yield _sentence(text)
    chance = _two_deviations(error[best], results.judged)
    near = sum(error[rule] - error[best] <= chance for rule in others)
    text = (
        f"By chance alone, an error counted on {results.judged:,} examples is off by up to {chance:.2g} "
        "points, 19 times in 20"
    )
    if len(others) > 1:
        text += f"; {near or 'none'} of the {len(others)} other rules came that near to the lowest"
    yield f"{text}."


def _two_deviations(percent: float, n: int) -> float:
    """How far a share that is counted on n examples may be off, 19 times in 20."""
    share = percent / 100.0
    return 196.0 * math.sqrt(share * (1.0 - share) / n)


def _percent(value: float) -> str:
    return f"{value:.2f}\N{NO-BREAK SPACE}%"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _numbers(results: _Ranked, how: Circumstances) -> Iterable[tuple[str, str, str]]:
    for kind in reversed(results.kinds):
        error = results.errors(kind)
        best = min(error, key=error.__getitem__)
        yield f"Lowest {kind} error", f"{_percent(error[best])}", title_of(best)
    yield "Examples", f"{results.examples:,}", f"{results.features:,} features"
    yield "Classes", f"{len(results.classes):,}", _some(results.classes, 3)
    yield "Rules", f"{len(results.rules)}", f"in {duration(how.seconds)}"


def _facts(results: _Ranked, how: Circumstances) -> Iterable[tuple[str, str]]:
    yield "Data", _names(how.data, MOST_NAMED, sizes=True)
    if how.test_data:
        yield "Test", _names(how.test_data, MOST_NAMED, sizes=True)
    yield "Read as", ", ".join(_reading(how.options))
    yield "Examples", f"{results.examples:,} to learn, {results.test_examples:,} to test"
    yield "Features", f"{results.features:,}"
    yield "Classes", f"{len(results.classes):,}: {_some(results.classes, MOST_NAMED)}"
    yield "Rules", ", ".join(title_of(rule) for rule in results.rules)
    yield "Versions", ", ".join(f"{what} {value}" for what, value in how.versions.items())
    yield "Machine", how.processor
    yield "Started", how.started


def _reading(options: Mapping[str, Any]) -> Iterable[str]:
    yield f"{options['format']} text"
    if options["exact"]:
        yield "features by their own id or name"
    else:
        yield f"features hashed to {options['bits']} bits" if options["bits"] else "features by column number"
    if options["log1p"]:
        yield "values x as sign(x) log(1 + |x|)"
    if options["normalize"]:
        yield "examples scaled to length 1"


def _names(data: Sequence[Mapping[str, Any]], most: int, *, sizes: bool = False) -> str:
    return _some([_named(one, sizes) for one in data], most)


def _named(data: Mapping[str, Any], size: bool) -> str:
    return f"{data['name']} ({data['bytes']:,} bytes)" if size and data["bytes"] is not None else data["name"]


def _some(words: Sequence[str], most: int) -> str:
    more = len(words) - most
    return ", ".join(words[:most]) + (f" and {more:,} more" if more > 0 else "")


# --- figures -----------------------------------------------------------------------------------


def errors(results: _Ranked) -> Figure:
    """Progressive and test error of each rule, the best on top."""
    tested = TEST in results.kinds
    rows: list[Spec] = [
        {"rule": title_of(rule), "index": ALL, "kind": kind, "error": round(error, 4)}
        for kind in results.kinds
        for rule, error in results.errors(kind).items()
    ]
    encoding = {
        "x": number("error", "error in %", scale={"zero": False, "padding": 14}, axis={"tickCount": 7}),
        "y": rules_down(results.rules, results.rules[0]),
    }
    grey_legend = {**LEGEND, "symbolStrokeColor": "#888888", "symbolFillColor": "#888888"}
    shapes = {"domain": results.kinds, "range": ["circle", "diamond"][: len(results.kinds)]}
    points = {
        "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
        "encoding": {
            "color": colour(results.rules, None),
            "shape": {
                "field": "kind",
                "type": "nominal",
                "scale": shapes,
                "legend": grey_legend if tested else None,
            },
            "tooltip": [
                {"field": "rule", "title": "rule"},
                {"field": "kind", "title": "error"},
                {"field": "error", "title": "in %", "format": ".3f"},
            ],
        },
    }
    between = {
        "mark": {"type": "line", "strokeWidth": 1.5, "opacity": 0.5},
        "encoding": {"detail": {"field": "rule"}, "color": colour(results.rules, None)},
    }
    spec = base(rows, results.rules) | {
        "height": height(len(results.rules)),
        "encoding": encoding,
        "layer": [between, points] if tested else [points],
    }
    caption = "Further left is better; the axis need not begin at zero."
    if tested:
        caption += (
            " Circles are progressive errors, of a rule still learning; diamonds are those of the test."
        )
    told = "; ".join(f"{kind} error in %: {listing(results.errors(kind))}" for kind in results.kinds)
    title = "Progressive error and test error" if tested else "Progressive error"
    return Figure("errors", title, caption, {ALL: f"{told}."}, spec)


def learning(results: _Ranked) -> Figure:
    """The progressive error so far, against examples."""
    begun = results.marks >= results.examples / 10**DECADES
    marks = results.marks[begun]
    wrong = results.column("progressive_mistakes")
    rows = [curve(rule, marks, 100.0 * np.array(wrong[rule])[begun] / marks) for rule in results.rules]
    title, y_title = "Progressive error while learning", "mistakes in 100 examples so far"
    spec = curves(rows, results.rules, results.rules[:FEW], marks, y_title, log_examples=True, from_zero=True)
    last = {rule: error for rule, error in results.errors(PROGRESSIVE).items() if rule in results.rules[:FEW]}
    return Figure(
        "learning",
        title,
        "How many of a hundred examples so far were predicted wrongly, each before it was learnt: a curve "
        "that still falls at its end has more to learn. The axis of examples is logarithmic.",
        {ALL: f"{title}, after {results.examples:,} examples: {listing(last)}."},
        spec,
    )


# --- table -------------------------------------------------------------------------------------


def _table(results: _Ranked) -> str:
    rows = []
    lowest = {kind: min(results.errors(kind).values()) for kind in results.kinds}
    errors_of = {kind: results.errors(kind) for kind in results.kinds}
    updates, seconds = results.column("updates"), results.column("seconds")
    bounds, ceilings = results.column("bounds"), results.column("margin_ceilings")
    for rule in results.rules:
        rows.append(
            [
                Cell(title_of(rule), title_of(rule)),
                *(
                    Cell(f"{error[rule]:.3f} %", error[rule], best=error[rule] == lowest[kind])
                    for kind, error in errors_of.items()
                ),
                Cell(f"{updates[rule]:,}", updates[rule]),
                _proven(max(_known(bounds[rule]), default=None), 0.0),
                _proven(min(_known(ceilings[rule]), default=None), math.inf),
                Cell(f"{seconds[rule]:.2f}", seconds[rule]),
            ]
        )
    several = (
        " Of the scores of several classes, the one that proves most." if len(results.classes) > 2 else ""
    )
    return table(
        "The rules",
        "The lowest errors are bold. Times the margin of any separator of the examples, the bound is a "
        "proven lower bound on the cosine between that separator and the hypothesis; no hyperplane separates "
        f"the examples with a margin above the ceiling.{several} Seconds are those of learning alone, "
        "compiling included if a rule is new to the machine.",
        [
            "rule",
            *(f"{kind} error" for kind in results.kinds),
            "updates",
            "bound",
            "margin ceiling",
            "seconds",
        ],
        rows,
    )


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _proven(value: float | None, nothing: float) -> Cell:
    return Cell("-", nothing) if value is None else Cell(f"{value:.4g}", value)
