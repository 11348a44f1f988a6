"""Figures show the numbers of the results, in colours that all readers can tell apart."""

import itertools
import operator
import sys
import xml.etree.ElementTree as ElementTree
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxcosine.experiments import charts, figures
from maxcosine.experiments.charts import ALL, FEW
from maxcosine.experiments.results import CURVES, mean_curves
from maxcosine.experiments.rule_styles import STYLES, colour_of, marker_of, title_of
from maxcosine.experiments.statistics import differences, means, spreads
from tests.experiments.small import EXAMPLES, MANY, PAPER, small_results

# Machado, Oliveira and Fernandes (2009), on linear RGB.
EYES = {
    "normal": np.eye(3),
    "no red": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no green": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "no blue": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
MIN_DISTANCE = 12.0  # in CIELAB; 2 is just noticeable side by side


def linear(colour):
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(to_xyz) @ np.clip(rgb, 0, 1) / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_rules_can_be_told_apart_by_colour_blind_readers():
    for eye, matrix in EYES.items():
        seen = {rule: lab(np.array(matrix) @ linear(colour_of(rule))) for rule in STYLES}
        bars = set(list(seen)[:FEW])  # these meet in bars, which have no markers
        for one, other in itertools.combinations(seen, 2):
            if marker_of(one) == marker_of(other) or {one, other} <= bars:
                assert np.linalg.norm(seen[one] - seen[other]) > MIN_DISTANCE, (eye, one, other)


def test_colours_contrast_with_light_and_dark_backgrounds():
    for rule, background in itertools.product((*STYLES, "mine", "yours"), ("#ffffff", "#14171b")):
        dark, light = sorted(linear(colour) @ [0.2126, 0.7152, 0.0722] for colour in (colour_of(rule), background))
        assert (light + 0.05) / (dark + 0.05) >= 3.0, rule  # WCAG 2.1, 1.4.11


def figure(results, name):
    return next(one for one in figures.figures(results) if one.name == name)


def rows(figure, **where):
    values = figure.spec["data"]["values"]
    return [row for row in values if all(row[name] == value for name, value in where.items())]


@pytest.mark.parametrize("rules", [PAPER, MANY])
def test_bars_and_differences_are_those_of_the_statistics(rules):
    results = small_results(rules)
    mean, spread = means(results), spreads(results)
    mistakes = figure(results, "mistakes")
    for rule, label in itertools.product(rules, range(3)):
        (row,) = rows(mistakes, rule=title_of(rule), index=label)
        assert row["mean"] == pytest.approx(mean[rule][label], abs=1e-4)
        assert row["high"] - row["mean"] == pytest.approx(spread[rule][label], abs=1e-3)
    # A few rules are grouped by label; of many, the mean over all labels is drawn first.
    expected = [] if len(rules) <= FEW else [pytest.approx(mean[rule].mean(), abs=1e-4) for rule in rules]
    assert [row["mean"] for row in rows(mistakes, index=ALL)] == expected
    paired = figure(results, "paired")
    for one in differences(results, "mcp"):
        (row,) = rows(paired, rule=title_of(one.other), index=ALL if one.label is None else one.label)
        found = [row["mean"], row["low"], row["high"]]
        assert found == pytest.approx([one.mean, one.low, one.high], abs=1e-4)


def test_curves_are_those_of_the_results():
    results = small_results()
    for name in ("bound", "cosine"):
        (row,) = rows(figure(results, name), rule="MCP", index=1)
        assert row["examples"] == EXAMPLES
        assert row["value"] == pytest.approx(results.curves["rules"]["mcp"]["1"][name], rel=1e-3)  # four digits
    (mean,) = rows(figure(results, "learning"), rule="PA", index=ALL)
    assert mean["value"] == pytest.approx([10.0, 9.0, 100 * 25 / 300, 100 * 29 / 400], rel=1e-3)
    ceiling = figure(results, "margin_ceiling")  # points without a proof are not drawn
    drawn = [rows(ceiling, rule="PA", index=label)[0]["examples"] for label in (ALL, 0, 1)]
    assert drawn == [EXAMPLES[1:], EXAMPLES[1:], EXAMPLES]


def test_averaged_variants_have_no_learning_curve_of_their_own():
    results = small_results(MANY)
    assert not rows(figure(results, "learning"), rule="averaged MCP")
    assert rows(figure(results, "bound"), rule="averaged MCP")
    assert rows(figure(small_results(("pa", "avg_mcp")), "learning"), rule="averaged MCP")


def test_of_many_rules_a_few_curves_are_shown_first():
    assert figures.default_rules(small_results()) == list(PAPER)
    shown = figures.default_rules(small_results(MANY))
    assert len(shown) == FEW
    assert {"mcp", "mine"} <= set(shown)
    assert not {"avg_mcp", "avg_pa"} & set(shown)


def test_one_order_has_no_spread():
    results = small_results(permutations=1)
    assert {row["std"] for row in rows(figure(results, "mistakes"))} == {0.0}
    assert all(row["low"] == row["mean"] == row["high"] for row in rows(figure(results, "paired")))


def test_alternative_texts_give_numbers_for_each_label():
    results = small_results(MANY)
    for one in figures.figures(results):
        assert set(one.alt) == {ALL, 0, 1, 2}
        for text in one.alt.values():
            assert any(title_of(rule) in text for rule in MANY)
    assert f"MCP {means(results)['mcp'].mean():.4g}" in figure(results, "mistakes").alt[ALL]
    assert "label Bag" in figure(results, "bound").alt[1]


def test_every_figure_is_written_as_svg_and_png(tmp_path):
    written = figures.save(small_results(MANY), tmp_path / "figures")
    names = ("mistakes", "paired", "learning", "bound", "margin_ceiling", "cosine")
    assert [path.name for path in written] == [f"{name}.{kind}" for name in names for kind in ("svg", "png")]
    for path in written:
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG")
        else:
            text = path.read_text(encoding="utf-8")
            ElementTree.fromstring(text)
            assert "Small, label against the rest, one pass, mean of 4 orders" in text
            assert "mark-rect" in text or "mark-symbol" in text


def test_missing_renderer_is_an_error_that_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(ImportError, match=r"pip install 'maxcosine\[report\]'"):
        figures.save(small_results(), tmp_path)
    assert not list(tmp_path.iterdir())


@given(st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=5))
def test_curves_draw_and_describe_bounds_rounded_down_and_ceilings_rounded_up(values):
    exact = [Decimal(value) for value in values]
    for name, is_safe in (("bound", operator.le), ("margin_ceiling", operator.ge)):
        unit = {"label": 0, "curves": {"mcp": dict.fromkeys(CURVES, values)}}
        means = mean_curves([unit], list(range(len(values))))["rules"]["mcp"]["0"][name]
        assert all(map(is_safe, (Decimal(repr(mean)) for mean in means), exact))
        row = charts.curve_row("mcp", name, np.arange(len(values)), np.array(values))
        assert all(is_safe(Decimal(f"{drawn:.4g}"), one) for drawn, one in zip(row["value"], exact, strict=True))
        words = charts.describe({"MCP": values[0]}, name).split()
        assert is_safe(Decimal(words[1]), exact[0])


def axis_of(x, y, examples, values):
    """The labels that a reader sees on the axes of a chart with one curve, and the number of ticks, by axis."""
    row = charts.curve_row("mcp", "", np.array(examples), np.array(values))
    svg = charts.renderer().vegalite_to_svg(charts.curve_chart([row], ["mcp"], ["mcp"], x, y))
    found = {}
    for axis in ElementTree.fromstring(svg).findall(".//*[@class='mark-group role-axis']"):
        labels, titles = (axis.findall(f".//*[@class='mark-text role-axis-{kind}']/*") for kind in ("label", "title"))
        if titles:
            seen = [one.text for one in labels if one.text and one.get("opacity") == "1"]
            found[titles[0].text] = seen, len(axis.findall(".//*[@class='mark-rule role-axis-tick']/*"))
    return found


@pytest.mark.parametrize("low", [3e-12, 0.0102, 0.05, 0.08, 0.0921, 1.0, 3.0, 7e8])
@pytest.mark.parametrize("ratio", [1.02, 1.05, 1.4, 2.5, 8.0, 12.0, 80.0, 2e3, 1e7])
def test_logarithmic_axes_have_labelled_ticks_over_any_range(low, ratio):
    y = charts.log_number("value", "a bound")
    labels, n_ticks = axis_of(charts.examples_axis(), y, [1, 9], [low, low * ratio])["a bound"]
    numbers = [float(label) for label in labels]
    assert 3 <= len(numbers) <= 15
    assert numbers == sorted(set(numbers))
    assert n_ticks >= len(labels)
    if 10.0 < ratio < 1e6:  # shorter ticks between the labelled ones
        assert n_ticks >= 2 * len(labels)
    longest = max(b / a for a, b in itertools.pairwise([low, *numbers, low * ratio]))
    assert longest < max(3.0, ratio**0.6)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("n", [7, 45, 400, 123_456, 80_000_000])
def test_axis_of_examples_counts_in_whole_examples(log, n):
    first = max(1, n // 1000)
    axis = axis_of(charts.examples_axis(log=log), charts.number("value", "a share"), [first, n], [1.0, 2.0])
    labels, _ = axis["examples so far"]
    assert len(labels) >= (2 if n < 10 else 3)
    units = {"k": 1e3, "M": 1e6}
    numbers = [float(label.rstrip("kM").replace(",", "")) * units.get(label[-1], 1.0) for label in labels]
    assert numbers == sorted({round(number) for number in numbers})
