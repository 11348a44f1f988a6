"""Regions of inequalities: split into branches, and signs read off from ranges.

A region is the set of points at which all conditions are defined and hold. Symbols are real and not declared
positive, since SymPy deletes a condition that it can derive from a declaration.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import sympy as sp

Relation = Literal[">", ">=", "==", "!="]


@dataclass(frozen=True)
class Condition:
    """`expression` compared with 0.

    Attributes
    ----------
    expression : Expr
        Free of Max, Min, Abs and Piecewise.
    relation : {">", ">=", "==", "!="}
        How it compares with 0.
    """

    expression: sp.Expr
    relation: Relation

    @property
    def symbols(self) -> set[sp.Symbol]:
        """The symbols that the condition is about."""
        symbols: set[sp.Symbol] = self.expression.free_symbols
        return symbols

    def admits(self, sign: int) -> bool:
        """Whether the condition holds where the expression has this sign."""
        return {">": sign > 0, ">=": sign >= 0, "==": sign == 0, "!=": sign != 0}[self.relation]


Conjunction = tuple[Condition, ...]


def check_symbols(expressions: Iterable[sp.Basic]) -> None:
    """Refuse symbols that are not plainly real.

    Parameters
    ----------
    expressions : iterable of Basic
        Claims and conditions.

    Raises
    ------
    ValueError
        If a symbol is not declared real, or is declared to have a sign.
    """
    for symbol in sorted(set().union(*(e.free_symbols for e in expressions)), key=str):
        if not symbol.is_real or any(
            known is not None
            for known in (symbol.is_positive, symbol.is_negative, symbol.is_nonnegative, symbol.is_nonpositive)
        ):
            raise ValueError(
                f"symbol {symbol} must be declared with real=True and nothing else; give its range as a condition"
            )


# --- branches --------------------------------------------------------------------------------


def split_region(region: Iterable[Any]) -> list[Conjunction]:
    """A region as a union of regions whose conditions are free of Max, Min, Abs, Piecewise, And and Or.

    Parameters
    ----------
    region : iterable of relational or Boolean
        All of them hold.

    Returns
    -------
    list of tuple of Condition
        Regions that cover it; none if a condition is False.
    """
    parts: list[Conjunction] = [()]
    for condition in region:
        alternatives = _alternatives(condition)
        parts = [joined for part in parts for more in alternatives if not _excludes(joined := (*part, *more))]
    return parts


def _excludes(conditions: Conjunction) -> bool:
    """Whether conditions on one symbol alone exclude each other."""
    return any(one.is_empty for one in ranges(conditions).values())


def _alternatives(condition: Any) -> list[Conjunction]:
    """One condition as a union of conjunctions."""
    condition = sp.sympify(condition, strict=True)
    if condition in (sp.true, sp.false):
        return [()] if condition == sp.true else []
    if isinstance(condition, sp.And):
        return split_region(condition.args)
    if isinstance(condition, sp.Or):
        return list(itertools.chain.from_iterable(_alternatives(argument) for argument in condition.args))
    if isinstance(condition, sp.Not):
        negated = sp.to_nnf(condition)
        if not isinstance(negated, sp.Not):
            return _alternatives(negated)
    relations: dict[type, Relation] = {sp.Gt: ">", sp.Ge: ">=", sp.Lt: ">", sp.Le: ">=", sp.Eq: "==", sp.Ne: "!="}
    if type(condition) not in relations:
        raise ValueError(f"{condition} is no condition; use <, <=, >, >=, Eq, Ne, And, Or")
    sign = -1 if isinstance(condition, (sp.Lt, sp.Le)) else 1
    difference = sign * (condition.lhs - condition.rhs)
    return [
        (*part, Condition(value, relations[type(condition)]))
        for part, value in split_expression(difference, (sp.Max, sp.Min, sp.Abs, sp.Piecewise))
    ]


def split_expression(
    expression: sp.Expr, kinds: tuple[type, ...], given: Conjunction = ()
) -> list[tuple[Conjunction, sp.Expr]]:
    """Where an expression with branches equals which expression without them.

    Parameters
    ----------
    expression : Expr
        Contains functions of these kinds.
    kinds : tuple of type
        Of Max, Min, Abs and Piecewise those to be resolved.
    given : tuple of Condition
        Conditions that hold; branches that contradict them are left out.

    Returns
    -------
    list of (tuple of Condition, Expr)
        The branches. They cover every point of what is given at which the expression is defined.
    """
    for node in sp.postorder_traversal(expression):
        if isinstance(node, kinds):
            return [
                ((*part, *more), value)
                for conditions, replacement in _branches(node)
                for part in split_region(conditions)
                if not _excludes((*given, *part))
                for more, value in split_expression(expression.xreplace({node: replacement}), kinds, (*given, *part))
            ]
    return [((), expression)]


def _branches(node: sp.Expr) -> list[tuple[list[Any], sp.Expr]]:
    """Conditions and value of each branch of Max, Min, Abs or Piecewise."""
    if isinstance(node, sp.Abs):
        argument = node.args[0]
        return [([argument >= 0], argument), ([argument <= 0], -argument)]
    if isinstance(node, (sp.Max, sp.Min)):
        compare = sp.Ge if isinstance(node, sp.Max) else sp.Le
        return [([compare(a, b) for b in node.args if b != a], a) for a in node.args]
    found: list[tuple[list[Any], sp.Expr]] = []
    before: list[Any] = []
    for value, condition in node.args:
        found.append(([*before, condition], value))
        before.append(sp.Not(condition))
    return found


# --- rational expressions --------------------------------------------------------------------


@functools.lru_cache(maxsize=2048)
def as_fraction(expression: sp.Expr) -> tuple[sp.Poly, sp.Poly] | None:
    """Numerator and denominator, cancelled.

    Parameters
    ----------
    expression : Expr
        Any expression.

    Returns
    -------
    (Poly, Poly) or None
        In all symbols of the expression, with rational coefficients; None if there are none such.
    """
    symbols = sorted(expression.free_symbols, key=str)
    if not expression.is_rational_function(*symbols):
        return None
    exact = expression.replace(lambda e: isinstance(e, sp.Float), lambda e: sp.Rational(e))
    # Constants need a generator to be polynomials; it stands for no symbol.
    generators = symbols or [sp.Dummy("one")]
    parts = (exact, sp.Integer(1)) if exact.is_polynomial() else sp.fraction(sp.cancel(sp.together(exact)))
    numerator, denominator = (sp.Poly(part, *generators) for part in parts)
    if not all(p.domain in (sp.ZZ, sp.QQ) for p in (numerator, denominator)):
        return None
    return numerator, denominator


# --- signs -----------------------------------------------------------------------------------


@dataclass
class Range:
    """The values that conditions on one symbol alone allow.

    Attributes
    ----------
    low, high : Rational or None
        The ends, None without one.
    low_open, high_open : bool
        Whether the end itself is excluded.
    """

    low: sp.Rational | None = None
    high: sp.Rational | None = None
    low_open: bool = False
    high_open: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether no value is allowed."""
        if self.low is None or self.high is None:
            return False
        return bool(self.low > self.high or (self.low == self.high and (self.low_open or self.high_open)))

    def narrow(self, end: sp.Rational, is_low: bool, is_open: bool) -> None:
        """Take one more end into account."""
        if is_low and (self.low is None or end > self.low or (end == self.low and is_open)):
            self.low, self.low_open = end, is_open
        if not is_low and (self.high is None or end < self.high or (end == self.high and is_open)):
            self.high, self.high_open = end, is_open


def ranges(conditions: Iterable[Condition]) -> dict[sp.Symbol, Range]:
    """The ranges that conditions linear in one symbol alone give.

    Parameters
    ----------
    conditions : iterable of Condition
        All of them hold.

    Returns
    -------
    dict of Symbol to Range
        Symbols without a range are left out.
    """
    found: dict[sp.Symbol, Range] = {}
    for condition in conditions:
        if len(condition.symbols) != 1 or condition.relation not in (">", ">="):
            continue
        (symbol,) = condition.symbols
        fraction = as_fraction(condition.expression)
        if fraction is None or fraction[0].degree() != 1 or fraction[1].degree() != 0:
            continue
        slope, constant = (coefficient / fraction[1].LC() for coefficient in fraction[0].all_coeffs())
        found.setdefault(symbol, Range()).narrow(-constant / slope, bool(slope > 0), condition.relation == ">")
    return found


def sign_from_ranges(polynomial: sp.Poly, known: dict[sp.Symbol, Range]) -> tuple[int, bool] | None:
    """The sign of a polynomial where its symbols are within their ranges.

    Its factors are looked at one by one. Measured from an end of their ranges all symbols are non-negative; if then
    all coefficients of a factor have one sign, so has the factor. It is nowhere zero if one of its monomials is not.

    Parameters
    ----------
    polynomial : Poly
        With rational coefficients.
    known : dict of Symbol to Range
        From :func:`ranges`.

    Returns
    -------
    (int, bool) or None
        A sign s such that s * polynomial >= 0, and whether it is > 0 everywhere; None if the signs do not tell.
    """
    if polynomial.is_zero:
        return 1, False
    leading, factors = polynomial.factor_list()
    sign, strict = (1 if leading > 0 else -1), True
    for factor, multiplicity in factors:
        found = _sign_of_factor(factor, known)
        if found is None and multiplicity % 2:
            return None
        if multiplicity % 2 and found is not None:
            sign *= found[0]
        strict &= found is not None and found[1]
    return sign, strict


def _sign_of_factor(factor: sp.Poly, known: dict[sp.Symbol, Range]) -> tuple[int, bool] | None:
    used = [s for s in factor.gens if factor.degree(s) > 0]
    if any(s not in known for s in used):
        return None
    ends = []
    for s in used:
        low = [] if known[s].low is None else [(known[s].low + s, known[s].low_open)]
        high = [] if known[s].high is None else [(known[s].high - s, known[s].high_open)]
        ends.append(low + high)
    for choice in itertools.product(*ends):
        shifted = sp.Poly(
            factor.as_expr().subs(dict(zip(used, (e for e, _ in choice), strict=True)), simultaneous=True), *used
        )
        positive = dict(zip(used, (is_open for _, is_open in choice), strict=True))
        coefficients = shifted.coeffs()
        for sign in (1, -1):
            if all(sign * k >= 0 for k in coefficients):
                strict = any(
                    all(positive[s] for s, power in zip(used, monomial, strict=True) if power)
                    for monomial in shifted.monoms()
                )
                return sign, strict
    return None
