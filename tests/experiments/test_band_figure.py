"""Rules as curves in the band, computed from the rules themselves."""

import math
from dataclasses import replace

import pytest

from maxcosine import RULES, rule
from maxcosine.derive import curve, v
from maxcosine.experiments.band_figure import band, has_curve, k_of
from maxcosine.experiments.charts import ALL, renderer

MISTAKES = [-3.5, -1.0, -0.25, 0.0]


@pytest.mark.parametrize("at", MISTAKES)
def test_curves_of_built_in_rules_on_mistakes(at):
    expected = {"cmcp": 1.0, "mcp": 1.0, "mcp_exact": 1.0, "soft_mcp": 1.0, "damped_mcp": 1.0 / (1.0 - at)}
    for name, k in expected.items():
        assert k_of(RULES[name], at) == pytest.approx(k, rel=1e-12)
    for name in ("naromma", "romma", "aggressive_romma"):
        assert k_of(RULES[name], at) == pytest.approx(1.0 - at, rel=1e-3)


def test_curves_end_where_the_rules_no_longer_move():
    ends = {"cmcp": 0.0, "mcp": 0.5, "mcp_exact": 0.5, "damped_mcp": 0.7, "soft_mcp": 1.0, "aggressive_romma": 1.0}
    for name, end in ends.items():
        assert k_of(RULES[name], end - 1e-9) > 0.0
        assert k_of(RULES[name], end + 1e-9) == 0.0
    assert k_of(RULES["soft_mcp"], 0.75) == pytest.approx(0.25)


def test_the_curve_of_naromma_approaches_its_limit_as_u_grows():
    gaps = [abs(k_of(RULES["naromma"], -2.0, u) - 3.0) for u in (10.0, 100.0, 1000.0)]
    assert gaps[0] > 10.0 * gaps[1] > 100.0 * gaps[2]


def test_a_derived_rule_has_the_curve_that_it_was_made_of():
    made = curve(1 / (1 + v**2), theta=0.25, name="bell").rule
    assert [k_of(made, at) for at in (-2.0, 0.0, 0.2, 0.3)] == pytest.approx([0.2, 1.0, 1.0 / 1.04, 0.0])


def test_a_step_that_makes_w_the_example_is_infinite():

    @rule(scale_free=True, restarts=True)
    def restarting(margin, sq_w, sq_x, coef_sum, state, params):
        return 0.0, 1.0, state

    assert k_of(restarting, 0.0) == math.inf


def test_rules_whose_steps_depend_on_the_length_of_w_have_no_curve():
    for name in ("perceptron", "pa", "pa1", "pa2", "alma", "norma"):
        assert not has_curve(RULES[name])
    with pytest.raises(ValueError, match=r"'pa' depend on the length of w"):
        k_of(RULES["pa"], 0.0)
    with pytest.raises(ValueError, match="not between -u and u"):
        k_of(RULES["mcp"], -5.0, u=4.0)


def test_figure_names_what_it_leaves_out_and_what_coincides():
    figure = band([RULES[name] for name in ("mcp", "mcp_exact", "damped_mcp", "pa", "perceptron")])
    assert "the same curve belongs to MCP and MCP-exact" in figure.caption
    assert figure.caption.endswith("Not drawn, because their steps depend on the length of w: PA and Perceptron.")
    assert "Damped MCP 0.25 at v = -3, 0.50 at v = -1, 1.00 at v = 0, up to v = 0.70" in figure.alt[ALL]
    curves = {row["rule"]: row for row in figure.spec["data"]["values"]}
    assert list(curves) == ["MCP", "MCP-exact", "Damped MCP"]
    assert curves["MCP"]["v"][-1] == 0.5


def test_figure_can_be_drawn_and_shows_each_rule():
    own = curve(1 - v / 2, theta=0.5, name="halfway").rule
    image = renderer().vegalite_to_svg(band([RULES["mcp"], RULES["naromma"], own]).spec)
    for text in ("MCP", "NAROMMA", "halfway", "m = 1", "m = 1/2", "mistakes", "margins"):
        assert text in image


def test_rules_of_ones_own_have_different_colours():
    own = [replace(RULES["damped_mcp"], name=f"rule_{n}") for n in range(4)]
    colours = band(own).spec["layer"][-1]["encoding"]["color"]["scale"]["range"]
    assert len(set(colours)) == 4
