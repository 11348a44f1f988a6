"""How certificates and the numbers in them are shown.

Printed digits are fewer than those of a float. What is printed must be proven as well, so upper limits are
rounded up and lower limits down.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from maxcosine.certificate import Certificate

DIGITS = 6
"""Significant digits of the numbers in a text."""
TABLE_DIGITS = 5
FACTOR_DIGITS = 3


def rounded_up(value: float, digits: int) -> str:
    """Write a number with this many significant digits, and not below its exact value.

    Parameters
    ----------
    value : float
        The number; it may be infinite.
    digits : int
        The largest number of significant digits.

    Returns
    -------
    str
        The smallest decimal of so many digits that is at least `value`.

    Examples
    --------
    >>> rounded_up(2 / 3, 4), rounded_up(1e-9 / 3, 2), rounded_up(1234.5, 3), rounded_up(0.5, 6)
    ('0.6667', '3.4e-10', '1.24e+3', '0.5')
    """
    return _decimal_text(value, digits, ROUND_CEILING)


def rounded_down(value: float, digits: int) -> str:
    """Write a number with this many significant digits, and not above its exact value.

    Parameters
    ----------
    value : float
        The number; it may be infinite.
    digits : int
        The largest number of significant digits.

    Returns
    -------
    str
        The largest decimal of so many digits that is at most `value`.

    Examples
    --------
    >>> rounded_down(2 / 3, 4), rounded_down(-2 / 3, 4), rounded_down(0.0, 4)
    ('0.6666', '-0.6667', '0')
    """
    return _decimal_text(value, digits, ROUND_FLOOR)


def _decimal_text(value: float, digits: int, rounding: str) -> str:
    value = float(value) + 0.0  # -0.0 becomes 0.0
    if not math.isfinite(value):
        return f"{value:g}"
    context = Context(prec=digits, rounding=rounding)
    rounded = context.create_decimal_from_float(value).normalize(context)
    return f"{rounded:f}" if -5 <= rounded.adjusted() < digits else f"{rounded:e}"


def mistake_bound(gain: float | Fraction | None, ratio: str = "(R/γ)²") -> str:
    """Write the number of mistakes that is proven for a rule of this gain.

    Parameters
    ----------
    gain : float, Fraction or None
        The `gain` of a rule.
    ratio : str
        How to write the square of the largest norm divided by the margin.

    Returns
    -------
    str
        The ratio times 1 / gain, which is rounded up.

    Examples
    --------
    >>> mistake_bound(1.0), mistake_bound(0.5), mistake_bound(0.75, "(R / g)^2"), mistake_bound(None)
    ('(R/γ)²', '2 (R/γ)²', '1.34 (R / g)^2', 'none proven')
    """
    if gain is None:
        return "none proven"
    exact = 1 / Fraction(gain)
    factor = float(exact)
    if Fraction(factor) < exact:
        factor = math.nextafter(factor, math.inf)
    return ratio if gain == 1 else f"{rounded_up(factor, FACTOR_DIGITS)} {ratio}"


def describe(c: Certificate) -> str:
    """Describe a certificate in lines of text."""
    kinds = f"{'averaged ' if c.averaged else ''}{'joint ' if c.joint else ''}"
    title = f"Certificate of the {kinds}{c.rule} hypothesis"
    lines = _table(c, title) if np.ndim(c.bound) else _text(c, title)
    if c.merge is not None:
        lines.append(
            f"  merged from {c.merge.models:,} models by {c.merge.how!r}; bounds at the merge: "
            f"certified {_range(c.merge.certified)}, mean {_range(c.merge.mean)}"
        )
    if c.weighted:
        lines.append("  steps were weighted: Lambda includes the weights; there is no mistake budget")
    return "\n".join(lines)


def _text(c: Certificate, title: str) -> list[str]:
    """The lines that describe one hypothesis."""
    coef_sum, bound, best = (rounded_down(one, DIGITS) for one in (c.coef_sum, c.bound, c.best_bound))
    return [
        title,
        f"  proven: {_statement(c)}",
        f"  its cosine to a separator of margin g is at least {bound} g - {rounded_up(c.rounding, 1)}",
        f"  space: {c.space}, through the origin",
        *_mistakes(c),
        f"  Lambda {coef_sum}, norm {rounded_up(c.norm, DIGITS)}, bound {bound}, best bound {best}",
        f"  seen {c.seen:,}{_since(c)}, mistakes {c.mistakes:,}, updates {c.updates:,}",
    ]


def _statement(c: Certificate) -> str:
    if c.margin_ceiling == np.inf:
        return "nothing yet"
    ceiling, examples = rounded_up(c.margin_ceiling, DIGITS), f"the {c.seen:,} examples seen"
    if c.joint:
        return f"no weights tell the classes of {examples} apart with a margin above {ceiling}"
    return f"no separator of {examples} has a margin above {ceiling}"


def _mistakes(c: Certificate) -> list[str]:
    """The line about the mistakes of the rule; a merged hypothesis did not begin at the rule's start."""
    if c.gain is None or c.merge is not None:
        return []
    most, which = mistake_bound(c.gain, "(R / g)^2"), "examples of norm <= R that a separator of margin g separates"
    return [f"  mistakes on {which}: at most {most}, in real arithmetic"]


def _since(c: Certificate) -> str:
    """Which examples are counted, if not all."""
    if not c.since:
        return ""
    if c.merge is not None:
        return f" of {c.since + c.seen:,}"
    return f" from example {c.since + 1:,} on"


def _table(c: Certificate, title: str) -> list[str]:
    """The lines that describe one hypothesis for each class."""
    late = np.any(c.since)
    counted = "from example" if c.merge is None else "seen"
    lines = [
        f"{title}, one for each class against the rest",
        f"  proven of the {np.max(c.seen):,} examples seen: no separator of a class from the rest "
        "has a margin above its ceiling",
        f"  space: {c.space}, through the origin; "
        f"the cosine to a separator of margin g is at least bound * g - {rounded_up(np.max(c.rounding), 1)}",
        *_mistakes(c),
        f"{'class':>16}{'ceiling':>12}{'bound':>12}{'best bound':>12}{'Lambda':>12}{'norm':>12}"
        f"{'mistakes':>12}{'updates':>12}{counted if late else '':>14}".rstrip(),
    ]
    if late:
        which = "of the models that know it" if c.merge else "from its first one on"
        lines.insert(2, f"  for a class that came late: of the examples {which}")
    columns = (
        (c.margin_ceiling, rounded_up),
        (c.bound, rounded_down),
        (c.best_bound, rounded_down),
        (c.coef_sum, rounded_down),
        (c.norm, rounded_up),
    )
    counts = (c.mistakes, c.updates, c.seen if c.merge else c.since + 1)
    for k, label in enumerate(c.classes):
        cells = "".join(f"{rounded(values[k], TABLE_DIGITS):>12}" for values, rounded in columns)
        mistakes, updates, start = (values[k] for values in counts)
        lines.append(f"{label!s:>16}{cells}{mistakes:12,d}{updates:12,d}" + (f"{start:14,d}" if late else ""))
    return lines


def _range(bounds: Any) -> str:
    low, high = (rounded_down(one, DIGITS) for one in (np.min(bounds), np.max(bounds)))
    return low if np.ndim(bounds) == 0 else f"{low} to {high}"
