"""Real roots of polynomials in one variable, and the cells that they cut the line into, exactly.

On a line the roots themselves are cells too, so that statements in one variable are decided at every point.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import sympy as sp


@dataclass(frozen=True)
class LineCell:
    """An open interval or a root: the signs of the polynomials there.

    Attributes
    ----------
    sample : Fraction or None
        A rational point of the cell; None for an irrational root.
    signs : tuple of int
        The sign of each polynomial on the cell.
    is_open : bool
        Whether the cell is an interval and not a root.
    """

    sample: Fraction | None
    signs: tuple[int, ...]
    is_open: bool


def line_cells(polynomials: Sequence[sp.Poly]) -> list[LineCell]:
    """Cut the line at all real roots, from left to right.

    Parameters
    ----------
    polynomials : sequence of Poly
        In one variable, with rational coefficients; constants are allowed.

    Returns
    -------
    list of LineCell
        Intervals and roots in turn, an interval first and last.
    """
    square_free = [p.sqf_part() for p in polynomials]
    roots = isolate_roots(square_free)
    gaps = [_sign_cell(polynomials, point) for point in points_between(roots)]
    at_roots = [_sign_root(polynomials, square_free, a, b) for a, b in roots]
    return [gaps[0], *itertools.chain.from_iterable(zip(at_roots, gaps[1:], strict=True))]


def _sign_cell(polynomials: Sequence[sp.Poly], point: Fraction) -> LineCell:
    return LineCell(point, tuple(_sign(_value(p, point)) for p in polynomials), is_open=True)


def _sign_root(polynomials: Sequence[sp.Poly], square_free: Sequence[sp.Poly], a: Fraction, b: Fraction) -> LineCell:
    """Signs at the only root in [a, b]: a polynomial vanishes there, or has no root in [a, b] at all."""
    signs = []
    for p, reduced in zip(polynomials, square_free, strict=True):
        vanishes = _value(reduced, a) * _value(reduced, b) < 0 if a < b else _value(p, a) == 0
        signs.append(0 if vanishes else _sign(_value(p, a)))
    return LineCell(a if a == b else None, tuple(signs), is_open=False)


def isolate_roots(
    polynomials: Sequence[sp.Poly], width: Fraction | float = math.inf, check: Callable[[], None] = lambda: None
) -> list[tuple[Fraction, Fraction]]:
    """Intervals around the real roots of polynomials in one variable, one a root.

    Parameters
    ----------
    polynomials : sequence of Poly
        In one variable, square-free, with rational coefficients.
    width : Fraction or float
        No interval is wider.
    check : callable
        Called now and then; it may raise an exception to end the search.

    Returns
    -------
    list of (Fraction, Fraction)
        Closed intervals from left to right that have no point in common. A root of several polynomials appears
        once. An interval of length 0 is a rational root.
    """
    roots = []
    # Each polynomial once: two intervals of one polynomial are around different roots.
    for polynomial in dict.fromkeys(p.clear_denoms(convert=True)[1] for p in polynomials if p.degree() > 0):
        check()
        slope = polynomial.diff()
        found = [_Root(to_fraction(a), to_fraction(b), polynomial, slope) for a, b in polynomial.intervals(sqf=True)]
        for root in found:
            while root.high - root.low > width:
                root.halve()
        roots += found
    return [(root.low, root.high) for root in _separate(roots, check)]


def _separate(roots: list[_Root], check: Callable[[], None]) -> list[_Root]:
    """Narrow intervals until none touches another; of those around one and the same root keep one.

    SymPy isolates the roots of one polynomial. Its intervals may touch, the end of one may be the root beside it, and
    those of different polynomials overlap. A sample point between two roots exists only if they are apart.
    """
    for attempt in itertools.count():
        check()
        roots.sort(key=lambda root: (root.low, root.high))
        touching = [i for i, (left, right) in enumerate(itertools.pairwise(roots)) if left.high >= right.low]
        if not touching:
            return roots
        if attempt % 8 == 7:
            doubles = {i + 1 for i in touching if roots[i].is_same(roots[i + 1])}
            roots = [root for i, root in enumerate(roots) if i not in doubles]
        else:
            for i in sorted({*touching, *(i + 1 for i in touching)}):
                roots[i].halve()
    raise AssertionError("unreachable")


@dataclass
class _Root:
    """The only root of a square-free polynomial in the open interval from low to high, or low itself if they agree."""

    low: Fraction
    high: Fraction
    polynomial: sp.Poly
    slope: sp.Poly

    def halve(self) -> None:
        """Halve the interval."""
        if self.low == self.high:
            return
        middle = (self.low + self.high) / 2
        at_middle = _sign(_value(self.polynomial, middle))
        # If the low end is another root, the sign just right of it is that of the slope.
        right_of_low = _sign(_value(self.polynomial, self.low)) or _sign(_value(self.slope, self.low))
        if at_middle == 0:
            self.low = self.high = middle
        elif at_middle != right_of_low:
            self.high = middle
        else:
            self.low = middle

    def is_same(self, other: _Root) -> bool:
        """Whether two intervals that overlap are around one root: then it is a common root of both polynomials."""
        if other.polynomial == self.polynomial:
            return False
        common = self.polynomial.gcd(other.polynomial)
        if common.degree() <= 0:
            return False
        low, high = max(self.low, other.low), min(self.high, other.high)
        if low == high:
            both_hold_it = all(root.low == root.high or root.low < low < root.high for root in (self, other))
            return both_hold_it and _value(common, low) == 0
        at_ends = sum(_value(common, end) == 0 for end in (low, high))
        count = common.count_roots(*(sp.Rational(end.numerator, end.denominator) for end in (low, high)))
        return bool(count > at_ends)


def points_between(roots: Sequence[tuple[Fraction, Fraction]]) -> list[Fraction]:
    """One rational point in each open interval that roots leave.

    Parameters
    ----------
    roots : sequence of (Fraction, Fraction)
        From :func:`isolate_roots`.

    Returns
    -------
    list of Fraction
        One more than there are roots, from left to right.
    """
    if not roots:
        return [Fraction(0)]
    first, last = Fraction(math.floor(roots[0][0]) - 1), Fraction(math.ceil(roots[-1][1]) + 1)
    inner = [simplest_between(left[1], right[0]) for left, right in itertools.pairwise(roots)]
    return [first, *inner, last]


def simplest_between(low: Fraction, high: Fraction) -> Fraction:
    """The rational number of smallest denominator strictly between two numbers.

    Parameters
    ----------
    low, high : Fraction
        The ends, low < high.

    Returns
    -------
    Fraction
        Of the numbers of smallest denominator, the one nearest to 0.

    Examples
    --------
    >>> simplest_between(Fraction(3, 10), Fraction(3, 5))
    Fraction(1, 2)
    """
    if low < 0 < high:
        return Fraction(0)
    if high <= 0:
        return -simplest_between(-high, -low)
    whole = math.floor(low)
    if whole + 1 < high:
        return Fraction(whole + 1)
    if low == whole:  # above low there is no integer; 1 / t fits for a large enough t
        return whole + Fraction(1, math.floor(1 / (high - whole)) + 1)
    return whole + 1 / simplest_between(1 / (high - whole), 1 / (low - whole))


def _value(p: sp.Poly, point: Fraction) -> Fraction:
    """Evaluate by Horner's rule in Fractions."""
    total = Fraction(0)
    for coefficient in p.all_coeffs():
        total = total * point + to_fraction(coefficient)
    return total


def to_fraction(number: sp.Rational) -> Fraction:
    """SymPy's rational number as a Fraction.

    Parameters
    ----------
    number : Rational
        The number.

    Returns
    -------
    Fraction
        The same number.
    """
    return Fraction(int(number.p), int(number.q))


def _sign(value: Fraction) -> int:
    return (value > 0) - (value < 0)
