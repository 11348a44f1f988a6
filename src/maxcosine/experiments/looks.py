"""What each rule is called and how it is drawn, the same in every table and figure."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from maxcosine.experiments.results import AVERAGED

# Title, colour and shape of each rule, in the order in which they are drawn if not all can be. Colours are
# of a middling lightness, to be seen on white and on black; where a colour-blind eye confuses two, the shapes
# differ.
LOOKS = {
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
    return LOOKS[rule][0] if rule in LOOKS else rule


def named(rules: Sequence[str]) -> str:
    """Some rules in half a line.

    >>> named(["pa", "mcp"]), named(["a", "b", "c", "d"])
    ('PA and MCP', '4 rules')
    """
    if len(rules) > 3:
        return f"{len(rules)} rules"
    *others, last = map(title_of, rules)
    return f"{', '.join(others)} and {last}" if others else last


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
    if rule in LOOKS:
        return LOOKS[rule][1:]
    return _OTHER_LOOKS[zlib.crc32(rule.encode()) % len(_OTHER_LOOKS)]
