"""The band: every rule whose step depends on v = ell g alone is a curve k(v) in one figure.

A rule steps by x = k / (ell sq_x), relative to norm(w). Where 2 k (1 - v) - k^2 >= m, a mistake (v <= 0) raises ell^2
by at least m / norm(x)^2, which gives at most (1/m) (R / gamma)^2 mistakes. Where 0 <= k <= 2 (1 - v), ell never falls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from maxcosine.experiments import charts
from maxcosine.experiments.charts import ALL, Figure, Spec
from maxcosine.experiments.rule_styles import STYLES, USER_STYLES, colour_of, join_words, marker_of, title_of
from maxcosine.rules.rule import Rule

LARGE_U = 100.0
"""ell norm(x) in the figure: the curves of NAROMMA and of the ROMMAs depend on it, and come to rest as it grows."""
LEFT, RIGHT, STEP = -4.0, 1.2, 0.02
TOP = 5.5
"""The largest k in the figure."""
SAME = 0.02
"""Curves that differ by less, everywhere, look the same."""
BISECTIONS = 40
GREY = "#808080"


def has_curve(rule: Rule) -> bool:
    """Whether the relative step of a rule does not depend on the length of w, or depends on ell alone."""
    return rule.scale_free or rule.restart_norm is not None


def k_of(rule: Rule, v: float, u: float = LARGE_U) -> float:
    """Return k = x ell norm(x)^2 of the step that a rule takes at v = ell g.

    Parameters
    ----------
    rule : Rule
        A rule that `has_curve`; its parameters have their default values.
    v : float
        ell g, between -u and u.
    u : float
        ell norm(x). Only the rules of the band do not depend on it.

    Returns
    -------
    float
        0 if the rule does not move, infinite if w becomes the example.
    """
    if not has_curve(rule):
        raise ValueError(f"the steps of {rule.name!r} depend on the length of w: it has no curve k(v)")
    if not -u < v < u:
        raise ValueError(f"v={v:g} is not between -u and u, u={u:g}: no example has such a projection")
    norm_w = rule.restart_norm(u) if rule.restart_norm else 1.0  # norm(x) = 1, so u is ell
    sq_w, coef_sum = norm_w**2, u * norm_w
    keep, add, _ = rule(v / u * norm_w, sq_w, 1.0, coef_sum, rule.restart(sq_w, coef_sum), rule.make_params())
    if add == 0.0:
        return 0.0
    return add / (keep * norm_w) * u if keep > 0.0 else math.inf


def band(rules: Sequence[Rule], u: float = LARGE_U) -> Figure:
    """Draw rules as curves in the band; those that have no curve are left out, and named in the caption."""
    drawn = list({rule.name: rule for rule in rules if has_curve(rule)}.values())
    curves = {rule.name: _curve(rule, u) for rule in drawn}
    names = list(curves)
    rows = [
        {"rule": title_of(name), "part": part, "v": found[:, 0].tolist(), "k": found[:, 1].tolist()}
        for name, parts in curves.items()
        for part, found in enumerate(parts)
    ]
    spec = charts.base(rows, names) | {
        "height": 330,
        "encoding": {"x": _axis("v", "v = ell g", LEFT, RIGHT), "y": _axis("k", "k = x ell ‖x‖²", 0.0, TOP)},
        "layer": [*_region_layers(), *_curve_layers(names)],
    }
    left_out = [title_of(rule.name) for rule in rules if not has_curve(rule)]
    caption = _caption(curves, left_out, u)
    return Figure("band", "The band", caption, {ALL: _alt(drawn, u)}, spec)


def _curve(rule: Rule, u: float) -> list[np.ndarray]:
    """Return the parts of a curve where the rule moves, each as points (v, k); their ends are found by bisection."""
    grid = np.linspace(LEFT, RIGHT, round((RIGHT - LEFT) / STEP) + 1)
    ks = [k_of(rule, v, u) for v in grid]
    parts: list[list[tuple[float, float]]] = []
    for place, (v, k) in enumerate(zip(grid, ks, strict=True)):
        if not _moves(k):
            continue
        before = place > 0 and _moves(ks[place - 1])
        if not before:
            parts.append([] if place == 0 else [_end(rule, v, grid[place - 1], u)])
        parts[-1].append((v, k))
        if place + 1 < len(grid) and not _moves(ks[place + 1]):
            parts[-1].append(_end(rule, v, grid[place + 1], u))
    return [np.round(part, charts.DIGITS) for part in parts]


def _moves(k: float) -> bool:
    return 0.0 < k < math.inf


def _end(rule: Rule, moving: float, still: float, u: float) -> tuple[float, float]:
    """Return the last point between two at which a rule moves."""
    for _ in range(BISECTIONS):
        middle = (moving + still) / 2.0
        if _moves(k_of(rule, middle, u)):
            moving = middle
        else:
            still = middle
    return moving, k_of(rule, moving, u)


def _axis(field: str, title: str, low: float, high: float) -> Spec:
    scale = {"domain": [low, high], "nice": False, "zero": False}
    return charts.number(field, title, scale=scale, axis={"tickCount": 6, "grid": False})


def _edges(m: float) -> list[Spec]:
    """Return the lower and the upper edge of the region of m, on mistakes."""
    # The edges meet v = 0 vertically: points that are evenly spaced in the root are denser there.
    grid = -np.square(np.linspace(math.sqrt(-LEFT), 0.0, 60))
    root = np.sqrt(np.square(1.0 - grid) - m)
    return [
        {"v": round(float(v), 4), "low": round(float(1 - v - r), 4), "high": round(float(1 - v + r), 4)}
        for v, r in zip(grid, root, strict=True)
    ]


def _region_layers() -> list[Spec]:
    """Return the two regions on mistakes, that on margins, and their names; edges differ without colour, too."""
    regions = [
        (_edges(0.5), 0.16, [5, 3]),
        (_edges(1.0), 0.22, [1, 0]),
        ([{"v": 0.0, "low": 0.0, "high": 2.0}, {"v": 1.0, "low": 0.0, "high": 0.0}], 0.22, [1, 0]),
    ]
    layers: list[Spec] = []
    for rows, opacity, dash in regions:
        mark = {"type": "area", "clip": True, "color": GREY, "opacity": opacity}
        layers.append({"data": {"values": rows}, "mark": mark, "encoding": _y("low") | {"y2": {"field": "high"}}})
        line = {"type": "line", "clip": True, "color": GREY, "strokeWidth": 1, "strokeDash": dash}
        for edge in ("low", "high"):
            layers.append({"data": {"values": rows}, "mark": line, "encoding": _y(edge)})
    zero = {"type": "rule", "color": GREY, "strokeWidth": 1}
    layers.append({"data": {"values": [{"v": 0.0}]}, "mark": zero, "encoding": {"y": None}})
    names = [
        {"v": -2.9, "k": 3.0, "name": "m = 1"},
        {"v": -0.06, "k": 0.36, "name": "m = 1/2"},
        {"v": 0.06, "k": 0.12, "name": "ell never falls"},
        {"v": -0.06, "k": 5.25, "name": "← mistakes"},
        {"v": 0.06, "k": 5.25, "name": "margins →"},
    ]
    for align, sign in ("right", "<"), ("left", ">"):
        mark = {"type": "text", "align": align, "fontSize": 12}
        chosen = [{"filter": f"datum.v {sign} 0"}]
        text = {"text": {"field": "name"}}
        layers.append({"data": {"values": names}, "transform": chosen, "mark": mark, "encoding": text})
    return layers


def _y(field: str) -> Spec:
    return {"y": {"field": field, "type": "quantitative"}}


def _styles(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return colours and markers; rules of one's own get different ones as long as there are any."""
    own = [name for name in names if name not in STYLES]
    chosen = {name: USER_STYLES[place % len(USER_STYLES)] for place, name in enumerate(own)}
    styles = [chosen.get(name) or (colour_of(name), marker_of(name)) for name in names]
    return [colour for colour, _ in styles], [marker for _, marker in styles]


def _curve_layers(names: Sequence[str]) -> list[Spec]:
    """Return the curves, with markers at places that differ from rule to rule: curves may lie on one another."""
    colours, markers = _styles(names)
    colour = charts.by_rule(names, colours, charts.LEGEND_OF_SHOWN)
    shape = charts.by_rule(names, markers, charts.LEGEND_OF_SHOWN)
    flatten = [{"filter": "indexof(shown, datum.rule) >= 0"}, {"flatten": ["v", "k"]}]
    tooltip = charts.tooltip(rule="", v=".2f", k=".3~g")
    line = {
        "transform": flatten,
        "mark": {"type": "line", "clip": True, "strokeWidth": 2.2},
        "encoding": {"color": colour, "detail": {"field": "part"}, "tooltip": tooltip},
    }
    titles = [title_of(name) for name in names]
    place = f"floor((datum.v - {LEFT}) / {STEP} + 0.5)"
    marked = f"{place} % 48 === floor(48 * (indexof({titles}, datum.rule) + 0.5) / {max(1, len(names))})"
    points = {
        "transform": [*flatten, {"filter": marked}],
        "mark": {**charts.POINT, "clip": True},
        "encoding": {"color": colour, "shape": shape, "tooltip": tooltip},
    }
    return [line, points]


def _caption(curves: dict[str, list[np.ndarray]], left_out: Sequence[str], u: float) -> str:
    text = (
        "Each rule is a curve: its step is x = k / (ell ‖x‖²), relative to ‖w‖, at v = ell g, the bound times the "
        "projection of the example on w; a curve ends where the rule no longer moves. A rule whose curve stays in the "
        "dark region m = 1 on mistakes (v ≤ 0) and in the triangle on margins makes at most (R/γ)² mistakes; within "
        "the dashed edges, m = 1/2, at most twice as many. The curves are computed from the rules "
        f"at ell ‖x‖ = {u:g}; those of NAROMMA and the ROMMAs depend on it a little."
    )
    same = _coinciding(curves)
    if same:
        text += f" On mistakes the same curve belongs to {', and one to '.join(map(join_words, same))}."
    if left_out:
        text += f" Not drawn, because their steps depend on the length of w: {join_words(left_out)}."
    return text


def _coinciding(curves: dict[str, list[np.ndarray]]) -> list[list[str]]:
    """Return groups of rules whose curves lie on one another on mistakes."""
    groups: list[list[str]] = []
    for name in curves:
        group = next((one for one in groups if _same(curves[one[0]], curves[name])), None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    return [[title_of(name) for name in group] for group in groups if len(group) > 1]


def _same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    first, second = ({v: k for part in parts for v, k in part if v < 0.0} for parts in (one, other))
    return first.keys() == second.keys() and max(abs(first[v] - second[v]) for v in first) < SAME


def _alt(rules: Sequence[Rule], u: float) -> str:
    """Describe each curve by three values and its end."""
    parts = []
    for rule in rules:
        ends = [part[-1, 0] for part in _curve(rule, u)]
        values = ", ".join(f"{k_of(rule, v, u):.2f} at v = {v:g}" for v in (-3.0, -1.0, 0.0))
        end = f", up to v = {max(ends):.2f}" if ends and max(ends) < RIGHT else ""
        parts.append(f"{title_of(rule.name)} {values}{end}")
    return f"The step k of each rule over v: {'; '.join(parts) or 'no rule has a curve'}."
