"""Report the exploration of a family of rules as one HTML page: the map, the band, and how the winners were judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from itertools import pairwise
from pathlib import Path

from maxcosine import files
from maxcosine.certificate_text import mistake_bound
from maxcosine.derive.text import written
from maxcosine.experiments import charts, html_page, report
from maxcosine.experiments.band_figure import band
from maxcosine.experiments.charts import ALL, Figure, Spec
from maxcosine.experiments.environment import processor, versions
from maxcosine.experiments.exploring import PROVEN, Exploration, Member
from maxcosine.experiments.figures import draw
from maxcosine.experiments.figures import figures as experiment_figures
from maxcosine.experiments.html_page import MISTAKE_BOUND, Cell, duration, mistake_bound_cell, table_html
from maxcosine.experiments.rule_styles import colour_of, join_words, marker_of, title_of
from maxcosine.experiments.statistics import overall_means
from maxcosine.experiments.summary import summarise
from maxcosine.rules import RULES

WORST_SHOWN = 2.0
"""Members with more than this many times the fewest mistakes have one colour."""
GREY = "#808080"


def write(found: Exploration, path: str | Path) -> None:
    """Write the report in one step: a failure leaves an old file unchanged."""
    files.write(path, page(found))


def page(found: Exploration) -> str:
    """Return the report as HTML."""
    judged = found.judged
    return html_page.page(
        figures(found),
        [*report.tables(judged), _members_table(found)],
        kind="maxcosine exploration",
        title=f"{found.family.name} on {judged.title}",
        method=_method(found),
        summary=summary(found),
        numbers=_numbers(found),
        rules=judged.rules,
        shown=judged.rules,
        labels=judged.labels,
        repeat="The same command on the same data gives exactly the same counts.",
        command=judged.command or "not recorded",
        facts=_facts(found),
    )


def figures(found: Exploration) -> list[Figure]:
    """Return the map, the band, and the figures of the judgement."""
    winners = [replace(member.rule, name=name) for name, member in found.winners.items()]
    compared = [*winners, *(RULES[name] for name in found.rivals)]
    return [exploration_map(found), band(compared), *experiment_figures(found.judged)]


def save_figures(found: Exploration, folder: str | Path) -> list[Path]:
    """Write each figure into a folder, as SVG and as PNG; return the paths."""
    return draw(figures(found), folder, f"{found.family.name}: {len(found.members)} members, {found.judged.title}")


def summary(found: Exploration) -> list[str]:
    """Say in paragraphs what was tried, what won the search, and how the winners were judged."""
    proven = sum(member.proven for member in found.members)
    n = len(found.members)
    tried = f"{n} members of {found.family.name} were tried, {proven} of them with a proven mistake bound."
    won = [
        f"{title_of(name).lower()} is {member} ({_bound(member)}; {member.mistakes:.1f} mistakes in the search)"
        for name, member in found.winners.items()
    ]
    rival = min(found.rivals, key=found.rivals.__getitem__, default=None)
    if rival is not None:
        won.append(f"of the built-in rules, {title_of(rival)} is the best ({found.rivals[rival]:.1f})")
    return [
        f"{tried} In the search, {join_words(won)}.",
        *summarise(found.judged),
        "The winners were chosen on a part of the training examples and are judged on the test examples, which the "
        "search has not seen.",
    ]


def _bound(member: Member) -> str:
    return f"proven: {mistake_bound(member.bound.m)}" if member.proven else "no proven mistake bound"


def _method(found: Exploration) -> str:
    n = found.searched
    where = join_words(
        [f"{len({m.values[name] for m in found.members})} values of {name}" for name in found.parameters]
    )
    return (
        f"Every member of a grid of {where} is derived and proven on its own. All learn {n['train']:,} training "
        f"examples side by side, {n['permutations']} orders for each label, and are tested on {n['test']:,} others. "
        "The best ones then learn all training examples and are judged on the test examples."
    )


def _numbers(found: Exploration) -> Iterable[tuple[str, str, str]]:
    yield "Members tried", f"{len(found.members)}", f"{sum(one.proven for one in found.members)} with a proven bound"
    judged = overall_means(found.judged)
    for name, member in found.winners.items():
        yield title_of(name), f"{judged[name]:,.1f}", f"mean test mistakes; {member}"
    others = {name: judged[name] for name in found.rivals}
    if others:
        best = min(others, key=others.__getitem__)
        yield "Best built-in rule", f"{others[best]:,.1f}", f"mean test mistakes; {title_of(best)}"


def _facts(found: Exploration) -> Iterable[tuple[str, str]]:
    family, judged = found.family, found.judged
    yield "Family", f"{family.name}: {_origin(found)}"
    for name in found.parameters:
        yield (
            f"Values of {name}",
            ", ".join(f"{value}" for value in sorted({one.values[name] for one in found.members})),
        )
    yield "Data", f"{judged.title}, from {judged.dataset['source']}"
    yield "SHA-256", judged.dataset["sha256"]
    yield (
        "Orders",
        f"{found.searched['permutations']} in the search and {judged.permutations} for judging, for each label",
    )
    yield "Seed", str(judged.protocol["seed"])
    yield "Judging", duration(judged.seconds)
    yield "Versions", ", ".join(f"{name} {value}" for name, value in versions().items())
    yield "Machine", processor()


def _origin(found: Exploration) -> str:
    family = found.family
    given = "a step in closed form" if family.bound is None else f"the bound {written(family.bound)}"
    return f"{given}, when {' and '.join(map(written, family.when))}" if family.when else given


def _members_table(found: Exploration) -> str:
    fewest = min(one.mistakes for one in found.members)
    rows = [
        [
            *(Cell(f"{float(value):g}", float(value)) for value in member.values.values()),
            Cell(f"{member.mistakes:,.1f}", member.mistakes, best=member.mistakes == fewest),
            mistake_bound_cell(member.bound.m),
            Cell("" if member.bound.failed is None else member.bound.failed.statement),
        ]
        for member in sorted(found.members, key=lambda one: one.mistakes)
    ]
    note = (
        f"Mean mistakes on the {found.searched['test']:,} examples that the search tests on: compare members with one "
        f"another, and not with the test mistakes above. {MISTAKE_BOUND}"
    )
    columns = [*found.parameters, "mistakes in the search", "mistake bound", "not proved that"]
    table = table_html("The members", note, columns, rows)
    return f"<details><summary>All {len(rows)} members of {escape(found.family.name)}</summary>{table}</details>"


# --- the map ---------------------------------------------------------------------------------


def exploration_map(found: Exploration) -> Figure:
    """Draw the mistakes of the search over the parameters, with the proven region and the winners."""
    one_parameter = len(found.parameters) == 1
    spec = _line_map(found) if one_parameter else _plane_map(found)
    rival = ", ".join(f"{title_of(name)} {mistakes:.1f}" for name, mistakes in found.rivals.items())
    proven = "filled points" if one_parameter else "the outlined region"
    caption = (
        f"Mean mistakes in the search of each of {len(found.members)} members. Members in {proven} have a proven "
        "mistake bound." + (f" In the same search: {rival}." if rival else "")
    )
    if not one_parameter:
        caption += f" More than {WORST_SHOWN:g} times the fewest mistakes have one colour."
    described = "; ".join(
        f"{title_of(name)} at {member}: {member.mistakes:.1f}" for name, member in found.winners.items()
    )
    alt = f"Mistakes over {join_words(found.parameters)}: {described}."
    return Figure("map", "The map", caption, {ALL: alt}, spec)


def _row(found: Exploration, member: Member) -> Spec:
    x, *y = (float(member.values[name]) for name in found.parameters)
    row: Spec = {"x": x, "mistakes": round(member.mistakes, 2), "proven": "proven" if member.proven else "not proven"}
    return row | ({"y": y[0]} if y else {})


def _winner_layers(found: Exploration) -> list[Spec]:
    """Mark the winners, each with its name beside it."""
    layers: list[Spec] = []
    rightmost = max(member.values[found.parameters[0]] for member in found.members)
    for name, member in found.winners.items():
        data = {"values": [{**_row(found, member), "rule": title_of(name)}]}
        to_the_left = member.values[found.parameters[0]] == rightmost
        point = {"type": "point", "filled": True, "opacity": 1, "size": 130, "shape": marker_of(name)}
        point |= {"color": colour_of(name), "stroke": "white", "strokeWidth": 1.5}
        # A white edge keeps the name legible on any colour of the map.
        text = {"type": "text", "dx": -10 if to_the_left else 10, "align": "right" if to_the_left else "left"}
        text |= {"fontSize": 12, "fontWeight": "bold", "dy": -10 if name == PROVEN else 12, "color": "black"}
        edge = text | {"stroke": "white", "strokeWidth": 4, "strokeJoin": "round", "opacity": 0.85}
        label = {"text": {"field": "rule"}}
        layers += [{"data": data, "mark": mark, "encoding": label} for mark in (edge, text)]
        layers.append({"data": data, "mark": point})
    return layers


def _line_map(found: Exploration) -> Spec:
    """One parameter: mistakes as a line, proven members as filled points."""
    rows = [_row(found, member) for member in found.members]
    x = charts.number("x", found.parameters[0], scale={"zero": False}, axis={"grid": False})
    y = charts.number("mistakes", "mean mistakes in the search", scale={"zero": False})
    tooltip = charts.tooltip(x=".4~g", mistakes=",.1f", proven="")
    fill = {"condition": {"test": "datum.proven === 'proven'", "value": GREY}, "value": "white"}
    point = {"type": "point", "size": 50, "color": GREY, "opacity": 1}
    # One level to compare with: those of all rivals would write their names over one another.
    name = next(iter(found.rivals))
    own = {"data": {"values": [{"rule": title_of(name), "mistakes": round(found.rivals[name], 2)}]}}
    dashed = {"type": "rule", "strokeDash": [4, 3], "color": GREY, "opacity": 0.7}
    named = {"type": "text", "align": "right", "dy": -6, "fontSize": 11}
    level = {"y": {"field": "mistakes", "type": "quantitative"}, "x": None}
    right = {"y": level["y"], "x": {"value": "width"}, "text": {"field": "rule"}}
    layers: list[Spec] = [
        own | {"mark": dashed, "encoding": level},
        own | {"mark": named, "encoding": right},
        {"mark": {"type": "line", "color": GREY, "strokeWidth": 1.5}},
        {"mark": point, "encoding": {"fill": fill, "tooltip": tooltip}},
        *_winner_layers(found),
    ]
    return charts.base(rows) | {"height": 300, "encoding": {"x": x, "y": y}, "layer": layers}


def _plane_map(found: Exploration) -> Spec:
    """Two parameters: a cell for each member, the proven region outlined."""
    first, second = found.parameters
    spans_x, spans_y = (_spans(sorted({float(one.values[name]) for one in found.members})) for name in (first, second))
    rows = []
    for member in found.members:
        row = _row(found, member)
        (x, x2), (y, y2) = spans_x[row["x"]], spans_y[row["y"]]
        rows.append({**row, "x1": x, "x2": x2, "y1": y, "y2": y2})
    fewest = min(row["mistakes"] for row in rows)
    most = min(max(row["mistakes"] for row in rows), WORST_SHOWN * fewest)
    scale = {"scheme": "viridis", "reverse": True, "domain": [fewest, max(most, fewest + 1.0)], "clamp": True}
    legend = {"title": "mean mistakes in the search", "orient": "top", "gradientLength": 250, "format": ",.2~f"}
    cells = {
        "mark": {"type": "rect"},
        "encoding": {
            "x": _axis("x1", first, spans_x),
            "x2": {"field": "x2"},
            "y": _axis("y1", second, spans_y),
            "y2": {"field": "y2"},
            "color": charts.number("mistakes", "", scale=scale, legend=legend),
            "tooltip": [
                {"field": "x", "title": first, "format": ".4~g"},
                {"field": "y", "title": second, "format": ".4~g"},
                *charts.tooltip(mistakes=",.1f", proven=""),
            ],
        },
    }
    return charts.base(rows) | {
        "height": 360,
        "layer": [cells, *_outline_layers(rows), {"encoding": _at(spans_x, spans_y), "layer": _winner_layers(found)}],
    }


def _at(spans_x: dict[float, tuple[float, float]], spans_y: dict[float, tuple[float, float]]) -> Spec:
    return {"x": _axis("x", "", spans_x), "y": _axis("y", "", spans_y)}


def _axis(field: str, title: str, spans: dict[float, tuple[float, float]]) -> Spec:
    domain = [next(iter(spans.values()))[0], list(spans.values())[-1][1]]
    scale = {"domain": domain, "nice": False, "zero": False}
    options: Spec = {"axis": {"grid": False, "tickCount": 8, "format": ".3~g"}} if title else {}
    return charts.number(field, title, scale=scale, **options)


def _spans(values: Sequence[float]) -> dict[float, tuple[float, float]]:
    """Return for each value on an axis where its cell begins and ends: halfway to its neighbours."""
    if len(values) == 1:
        return {values[0]: (values[0] - 0.5, values[0] + 0.5)}
    middles = [(low + high) / 2.0 for low, high in pairwise(values)]
    ends = [2.0 * values[0] - middles[0], *middles, 2.0 * values[-1] - middles[-1]]
    return dict(zip(values, pairwise(ends), strict=True))


def _outline_layers(rows: Sequence[Spec]) -> list[Spec]:
    """Draw the edges between cells that are proven and cells that are not, or the border of the map."""
    proven = {(row["x1"], row["y1"]): row for row in rows if row["proven"] == "proven"}
    starts_x, starts_y = ({row["x1"]: row["x2"] for row in rows}, {row["y1"]: row["y2"] for row in rows})
    before_x, before_y = ({end: start for start, end in starts.items()} for starts in (starts_x, starts_y))
    edges = []
    for (x, y), row in proven.items():
        x2, y2 = row["x2"], row["y2"]
        for at, neighbour in (x, (before_x.get(x), y)), (x2, (x2, y)):
            if neighbour not in proven:
                edges.append({"x1": at, "x2": at, "y1": y, "y2": y2})
        for at, neighbour in (y, (x, before_y.get(y))), (y2, (x, y2)):
            if neighbour not in proven:
                edges.append({"x1": x, "x2": x2, "y1": at, "y2": at})
    encoding = {
        "x": {"field": "x1", "type": "quantitative"},
        "x2": {"field": "x2"},
        "y": {"field": "y1", "type": "quantitative"},
        "y2": {"field": "y2"},
    }
    # A dark line on a light one is visible on all colours.
    marks = [
        {"type": "rule", "color": colour, "strokeWidth": width, "strokeCap": "square"}
        for colour, width in (("white", 5), ("black", 2.2))
    ]
    return [{"data": {"values": edges}, "mark": mark, "encoding": encoding} for mark in marks] if edges else []
