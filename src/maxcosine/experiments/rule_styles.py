"""The title, colour and marker of each rule, the same in all tables and figures."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from maxcosine.experiments.results import AVERAGED

# Title, colour and marker, the most important rules first. All colours have a medium lightness, visible on
# white and on black. Two rules that a colour-blind reader could confuse have different markers.
STYLES = {
    "mcp": ("MCP", "#c44300", "circle"),
    "pa": ("PA", "#0072b2", "square"),
    "aggressive_romma": ("A-ROMMA", "#029a5e", "triangle-up"),
    "mcp_exact": ("MCP-exact", "#a9508f", "diamond"),
    "alma": ("ALMA", "#b98e11", "cross"),
    "perceptron": ("Perceptron", "#8c8c8c", "triangle-down"),
    "cmcp": ("CMCP", "#8a63d2", "triangle-right"),
    "damped_mcp": ("Damped MCP", "#d1477a", "square"),
    "soft_mcp": ("Soft MCP", "#d0741b", "diamond"),
    "romma": ("ROMMA", "#2f97d8", "triangle-left"),
    "norma": ("NORMA", "#a5553a", "square"),
    "naromma": ("NAROMMA", "#6a8f1f", "triangle-left"),
    "pa1": ("PA-I", "#5477d6", "diamond"),
    "pa2": ("PA-II", "#1f8f99", "cross"),
    "onepass": ("OnePass", "#3a8c9e", "circle"),
    # The winners of an exploration.
    "best_proven": ("Best proven", "#b8475f", "triangle-down"),
    "best_unproven": ("Best unproven", "#3f6fd0", "triangle-up"),
}
USER_STYLES = (
    *(("#b8475f", "triangle-up"), ("#4d8a57", "diamond")),
    *(("#9a6fb0", "square"), ("#8f7a4a", "circle")),
)
"""Colours and markers of users' rules."""


def title_of(rule: str) -> str:
    """Return the title of a rule.

    >>> title_of("pa1"), title_of("avg_mcp"), title_of("mine")
    ('PA-I', 'averaged MCP', 'mine')
    """
    if rule.startswith(AVERAGED):
        return f"averaged {title_of(rule.removeprefix(AVERAGED))}"
    return STYLES[rule][0] if rule in STYLES else rule


def titles_of(rules: Sequence[str]) -> str:
    """Return the titles of up to three rules, or the number of rules."""
    return f"{len(rules)} rules" if len(rules) > 3 else join_words([title_of(rule) for rule in rules])


def join_words(words: Sequence[str]) -> str:
    """Join words: a, b and c."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def colour_of(rule: str) -> str:
    """Return the colour of a rule; that of an averaged rule is lighter."""
    colour = _style(rule)[0]
    if not rule.startswith(AVERAGED):
        return colour
    return "#" + "".join(f"{(3 * int(colour[i : i + 2], 16) + 2 * 255) // 5:02x}" for i in (1, 3, 5))


def marker_of(rule: str) -> str:
    """Return the marker on the curve of a rule; an averaged rule has the same."""
    return _style(rule)[1]


def _style(rule: str) -> tuple[str, str]:
    rule = rule.removeprefix(AVERAGED)
    return STYLES[rule][1:] if rule in STYLES else USER_STYLES[zlib.crc32(rule.encode()) % len(USER_STYLES)]
