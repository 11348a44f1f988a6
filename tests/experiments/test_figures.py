from __future__ import annotations

import itertools
import json
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from maxcosine.experiments import figures, looks
from maxcosine.experiments.charts import ALL, FEW, Figure
from maxcosine.experiments.looks import colour_of, shape_of, title_of
from maxcosine.experiments.results import Results, Run
from maxcosine.experiments.statistics import differences, means, spreads

PAPER = ("pa", "aggressive_romma", "mcp")
MANY = ("mcp", "pa", "alma", "norma", "mine", "romma", "avg_mcp", "avg_pa")
EXAMPLES = [100, 200, 300, 400]


def small_results(
    rules: tuple[str, ...] = PAPER,
    labels: tuple[str, ...] = ("T-shirt", "Bag", "Ankle boot"),
    permutations: int = 4,
) -> Results:
    """Results as an experiment would find them, of counts that are drawn."""
    random = np.random.default_rng(1)
    units = list(itertools.product(range(len(labels)), range(permutations), enumerate(rules)))
    runs = [
        Run(
            rule,
            label,
            permutation,
            int(random.integers(50, 950)),
            80 + k,
            90 + k,
            0.02,
            50.0,
            0.1,
        )
        for label, permutation, (k, rule) in units
    ]
    return Results(
        dataset={
            "name": "fashion",
            "title": "Fashion",
            "train": 400,
            "test": 1000,
            "features": 5,
            "labels": list(labels),
            "sha256": "ab" * 32,
            "source": "a folder",
        },
        protocol={
            "rules": list(rules),
            "permutations": permutations,
            "buckets": 4,
            "bucket_size": 100,
            "seed": 7,
        },
        runs=runs,
        curves={
            "examples": EXAMPLES,
            "rules": {
                rule: {str(label): _curves(k, label) for label in range(len(labels))}
                for k, rule in enumerate(rules)
            },
        },
        versions={"maxcosine": "0.1.0"},
        machine={"processors": 2},
        command="maxcosine reproduce fashion",
        started="2026-01-01T00:00:00+00:00",
        seconds=1.5,
    )


def _curves(k: int, label: int) -> dict[str, list[float | None]]:
    """Of the first label nothing is proven at first."""
    return {
        "mistakes": [10.0 + k, 18.0 + k, 24.0 + k + label, 28.0 + k + label],
        "bound": [0.01, 0.02, 0.03, 0.04 + k / 100],
        "margin_ceiling": [None if label == 0 else 100.0, 50.0, 33.0, 25.0 - k],
        "cosine": [0.4, 0.6, 0.8 + k / 100, 1.0],
    }


def rows(figure: Figure, **where: object) -> list[dict[str, object]]:
    values = figure.spec["data"]["values"]
    return [row for row in values if all(row[name] == value for name, value in where.items())]


def test_titles():
    assert [
        title_of(rule) for rule in ("pa", "pa1", "pa2", "aggressive_romma", "mcp_exact", "perceptron")
    ] == [
        "PA",
        "PA-I",
        "PA-II",
        "A-ROMMA",
        "MCP-exact",
        "Perceptron",
    ]
    assert title_of("avg_norma") == "averaged NORMA"
    assert title_of("avg_mine") == "averaged mine"


# Machado, Oliveira and Fernandes (2009), on linear RGB.
EYES = {
    "all colours": np.eye(3),
    "no red": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no green": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "no blue": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
TELLS_APART = 12.0  # distance in CIELAB; 2 is just noticeable side by side


def _linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def _lab(linear: np.ndarray) -> np.ndarray:
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(to_xyz) @ np.clip(linear, 0, 1) / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("eye", EYES)
def test_rules_are_told_apart_by_every_eye(eye):
    seen = {rule: _lab(np.array(EYES[eye]) @ _linear(colour_of(rule))) for rule in looks.LOOKS}
    first = list(seen)[:FEW]  # these meet in bars, which have no shape
    for one, other in itertools.combinations(seen, 2):
        if shape_of(one) == shape_of(other) or {one, other} <= set(first):
            assert np.linalg.norm(seen[one] - seen[other]) > TELLS_APART, (one, other)


@pytest.mark.parametrize("background", ["#ffffff", "#14171b"])
@pytest.mark.parametrize("rule", [*looks.LOOKS, "mine", "yours"])
def test_colours_are_seen_on_light_and_on_dark(rule, background):
    dark, light = sorted(_linear(c) @ [0.2126, 0.7152, 0.0722] for c in (colour_of(rule), background))
    assert (light + 0.05) / (dark + 0.05) >= 3.0  # WCAG 2.1, 1.4.11


def test_a_rule_looks_the_same_whatever_it_is_beside():
    def looks(results: Results) -> dict[str, str]:
        scale = figures.learning(results).spec["encoding"]["color"]["scale"]
        return dict(zip(scale["domain"], scale["range"], strict=True))

    few, many = looks(small_results()), looks(small_results(MANY))
    assert few["MCP"] == many["MCP"] == colour_of("mcp") != colour_of("avg_mcp")
    assert few["PA"] == many["PA"]


@pytest.mark.parametrize("rules", [PAPER, MANY])
def test_bars_are_means_and_spreads(rules):
    results = small_results(rules)
    figure = figures.mistakes(results)
    mean, spread = means(results), spreads(results)
    for rule in rules:
        for label in range(3):
            (row,) = rows(figure, rule=title_of(rule), index=label)
            assert row["mean"] == pytest.approx(mean[rule][label], abs=1e-4)
            assert row["high"] - row["mean"] == pytest.approx(spread[rule][label], abs=1e-3)
    over_all = rows(figure, index=ALL)
    if len(rules) <= FEW:
        assert not over_all  # every label has its group of bars
    else:
        assert [row["mean"] for row in over_all] == [pytest.approx(mean[r].mean(), abs=1e-4) for r in rules]


@pytest.mark.parametrize("rules", [PAPER, MANY])
def test_differences_are_those_of_the_statistics(rules):
    results = small_results(rules)
    figure = figures.paired(results)
    found = differences(results, "mcp")
    assert len(found) == len(figure.spec["data"]["values"])
    for one in found:
        (row,) = rows(figure, rule=title_of(one.other), index=ALL if one.label is None else one.label)
        assert [row["mean"], row["low"], row["high"]] == pytest.approx(
            [one.mean, one.low, one.high], abs=1e-4
        )


def test_curves_are_those_of_the_results():
    results = small_results()
    for curve in ("bound", "cosine"):
        (row,) = rows(getattr(figures, curve)(results), rule="MCP", index=1)
        assert row["examples"] == EXAMPLES
        assert row["value"] == pytest.approx(results.curves["rules"]["mcp"]["1"][curve])
    (mean,) = rows(figures.learning(results), rule="PA", index=ALL)
    assert mean["value"] == pytest.approx([10.0, 9.0, 100 * 25 / 300, 100 * 29 / 400], rel=1e-5)


def test_what_is_not_proven_is_not_drawn():
    figure = figures.margin_ceiling(small_results())
    assert [rows(figure, rule="PA", index=label)[0]["examples"] for label in (ALL, 0, 1)] == [
        EXAMPLES[1:],
        EXAMPLES[1:],
        EXAMPLES,
    ]


def test_an_averaged_twin_learns_as_its_rule_does():
    learning, bound = figures.learning(small_results(MANY)), figures.bound(small_results(MANY))
    assert not rows(learning, rule="averaged MCP")
    assert rows(bound, rule="averaged MCP")
    with_twins = figures.learning(small_results(("pa", "mcp", "avg_mcp")))
    assert with_twins.spec["params"][1] == {"name": "shown", "value": ["PA", "MCP"]}  # so says the legend
    alone = small_results(("pa", "avg_mcp"))
    assert rows(figures.learning(alone), rule="averaged MCP")  # the rule is not there


def test_of_many_rules_few_curves_are_drawn_first():
    assert figures.default_rules(small_results()) == list(PAPER)
    shown = figures.default_rules(small_results(MANY))
    assert len(shown) == FEW
    assert {"mcp", "mine"} <= set(shown)
    assert not [rule for rule in shown if rule.startswith("avg_")]


def test_one_order_has_no_spread():
    for figure in figures.figures(small_results(permutations=1)):
        assert "high" not in json.dumps(figure.spec["layer"])
        assert "standard deviation" not in figure.caption
        assert "interval" not in figure.caption


def test_figures_that_there_are_numbers_for():
    assert len(figures.figures(small_results())) == 6
    alone = small_results(("mcp",))
    alone.curves = {}
    assert [figure.name for figure in figures.figures(alone)] == ["mistakes"]


@pytest.mark.parametrize("rules", [PAPER, MANY])
def test_texts_say_what_is_to_be_seen(rules):
    results = small_results(rules)
    for figure in figures.figures(results):
        assert figure.caption
        assert set(figure.alt) in ({ALL}, {ALL, 0, 1, 2})
        assert all("MCP" in text and any(map(str.isdigit, text)) for text in figure.alt.values())
    assert f"MCP {means(results)['mcp'].mean():.4g}" in figures.mistakes(results).alt[ALL]
    assert "label Bag" in figures.bound(results).alt[1]


@pytest.mark.parametrize("rules", [PAPER, MANY])
def test_every_figure_is_written_as_svg_and_png(tmp_path, rules):
    written = figures.save(small_results(rules), tmp_path / "figures")
    names = ("mistakes", "paired", "learning", "bound", "margin_ceiling", "cosine")
    assert [path.name for path in written] == [f"{name}.{kind}" for name in names for kind in ("svg", "png")]
    for path in written:
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG")
        else:
            text = path.read_text(encoding="utf-8")
            ElementTree.fromstring(text)
            assert "Fashion, label against the rest" in text
            assert "mark-rect" in text or "mark-symbol" in text


def test_without_the_renderer_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(ImportError, match=r"pip install 'maxcosine\[report\]'"):
        figures.save(small_results(), tmp_path)
    assert not list(tmp_path.iterdir())
