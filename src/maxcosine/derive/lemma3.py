"""Lemma 3 by machine: where a bound of the form Phi is largest, as a table of cases without redundant conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp
from sympy.core.relational import Relational

from maxcosine.derive.proving import Verdict, feasible, prove
from maxcosine.derive.regions import split_expression
from maxcosine.derive.symbols import SPACE, Quantity, ell, g, norm_w, quantities, reduced, sq_x, x

NUMERIC = sp.Symbol("argmax", real=True)
"""Stands for a step that is found numerically."""


class BadBound(ValueError):
    """A bound that cannot be maximised, or that is not a bound at all."""


@dataclass(frozen=True)
class Case:
    """One row of the table of a rule: under all conditions, take this step.

    Parameters
    ----------
    conditions : tuple of relations
        When the case applies, provided that the rule moves at all.
    step : expression
        The relative step x; 0 means no step, infinity that w becomes the example.
    maximum_sq : expression or None
        The square of what the bound promises at this step; None if the step was not found by maximising.
    """

    conditions: tuple[Relational, ...]
    step: sp.Expr
    maximum_sq: sp.Expr | None = None


@dataclass(frozen=True)
class Phi:
    """Phi(x) = (r + p x) / sqrt(s + q x^2 + 2 t q x)."""

    r: sp.Expr
    p: sp.Expr
    s: sp.Expr
    q: sp.Expr
    t: sp.Expr

    @property
    def d(self) -> sp.Expr:
        """Phi rises towards infinity where d < 0."""
        return sp.factor(self.r - self.p * self.t)

    @property
    def e(self) -> sp.Expr:
        """Phi rises at 0 where e > 0."""
        return sp.factor(self.p * self.s - self.r * self.t * self.q)


def branches(expression: sp.Expr) -> list[tuple[tuple[Relational, ...], sp.Expr]]:
    """Return what an expression with Max, Min and Abs is without them, and under which conditions."""
    relations = {">": sp.Gt, ">=": sp.Ge}
    return [
        (tuple(relations[one.relation](one.expression, 0) for one in conditions), branch)
        for conditions, branch in split_expression(expression, (sp.Max, sp.Min, sp.Abs))
    ]


def recognise(bound: sp.Expr) -> Phi | None:
    """Return the coefficients of a bound of the form Phi; None if it has another form."""
    radicand = numerator = sp.Integer(1)
    for factor in sp.Mul.make_args(sp.factor_terms(sp.together(bound))):
        base, exponent = factor.as_base_exp()
        if base.has(x) and exponent == -sp.Rational(1, 2):
            radicand *= base
        else:
            numerator *= factor
    # SymPy moves numbers out of the root, as sqrt(2): back into it.
    constant = sp.Mul(*(factor for factor in sp.Mul.make_args(numerator) if factor.is_positive))
    numerator, radicand = numerator / constant, radicand / constant**2
    try:
        below, above = sp.Poly(sp.expand(radicand), x), sp.Poly(sp.expand(numerator), x)
    except sp.PolynomialError:
        return None
    if below.degree() != 2 or above.degree() > 1:
        return None
    q, two_t_q, s = below.all_coeffs()
    return Phi(above.coeff_monomial(1), above.coeff_monomial(x), s, q, sp.cancel(two_t_q / (2 * q)))


def maximise_bound(bound: sp.Expr, when: Sequence[Relational]) -> tuple[Case, ...] | None:
    """Return the cases of the maximiser over x >= 0 where the rule may move; None if the bound has not the form Phi."""
    cases = []
    for branch_conditions, branch in branches(bound):
        phi = recognise(branch)
        if phi is None or any(one.has(x) for one in branch_conditions):
            return None
        if feasible(region((*branch_conditions, *when))) is False:
            continue  # a border of other branches
        _require_radicand(phi, (*when, *branch_conditions))
        for conditions, step, maximum_sq in _lemma_3(phi):
            # The step divides by d: where d = 0, be it on a border only, the case of the infinite step is needed.
            needed = _needed((*branch_conditions, *conditions), when, border={phi.d <= 0, phi.e > 0})
            if needed is not None:
                cases.append(Case(tuple(map(_solved, needed)), step, maximum_sq))
    order = {sp.Integer(0): 0, sp.oo: 1}
    return tuple(sorted(cases, key=lambda case: order.get(case.step, 2)))


def _lemma_3(phi: Phi) -> list[tuple[tuple[Any, ...], sp.Expr, sp.Expr]]:
    """Return the conditions, the maximiser and the squared maximum of each case of Lemma 3.

    Where d = 0 the maximiser is that of the neighbours: infinity, as in case 5, if e > 0 (case 1), else 0 (case 2).
    Where e = 0 and d > 0, the step of case 3 is 0.
    """
    r, p, s, q, t, d, e = phi.r, phi.p, phi.s, phi.q, phi.t, phi.d, phi.e
    at_zero, at_infinity = r**2 / s, p**2 / q
    inside = d**2 / (s - q * t**2) + at_infinity
    # Case 6 compares r / sqrt(s) with p / sqrt(q); with their signs, the squares decide.
    zero_is_best = _signed_square(r) * q >= _signed_square(p) * s
    return [
        ((d <= 0, e > 0), sp.oo, at_infinity),  # cases 1 and 5
        ((d > 0, e > 0), tidy(e / (q * d)), inside),  # case 3
        ((d > 0, e <= 0), sp.Integer(0), at_zero),  # case 4
        ((d <= 0, e <= 0, zero_is_best), sp.Integer(0), at_zero),  # cases 2 and 6
        ((d <= 0, e <= 0, sp.Not(zero_is_best)), sp.oo, at_infinity),  # case 6
    ]


def tidy(expression: sp.Expr) -> sp.Expr:
    """Return an expression as one factored fraction; factors of its denominator are positive for most examples."""
    above, below = sp.fraction(sp.factor(expression))
    usual = {ell: 2, g: sp.Rational(1, 7), sq_x: 1, norm_w: 1, **{one: one.start for one in quantities([below])}}
    sums = [factor for factor in sp.Mul.make_args(below) if factor.is_Add and factor.subs(usual).is_negative]
    flipped = below.xreplace({factor: -factor for factor in sums})
    return (above if len(sums) % 2 == 0 else -above) / flipped


def _signed_square(value: sp.Expr) -> sp.Expr:
    return value**2 if _sign(value) == 1 else value * sp.Abs(value)


def _require_radicand(phi: Phi, conditions: Sequence[Relational]) -> None:
    """Refuse a radicand that Lemma 3 does not cover: it must be positive for every x."""
    for value in (phi.q, phi.s - phi.q * phi.t**2):
        verdict: Verdict = prove(reduced(value), region(conditions, value))
        if verdict.status == "false":
            raise BadBound(
                f"the radicand of the bound is not positive everywhere: {sp.factor(value)} is negative "
                f"{str(verdict).removeprefix('false ')}, in units of norm(x); narrow `when`, or repair the bound"
            )


def region(conditions: Sequence[Relational], *expressions: sp.Basic) -> tuple[Relational, ...]:
    """Return conditions in reduced variables, with the ranges of all symbols in them and in `expressions`."""
    used = [one for one in (*conditions, *expressions) if one not in (sp.true, sp.false)]
    ranges = [limit for symbol in quantities(used, Quantity) for limit in symbol.interval]
    if any(one.has(norm_w) for one in used):
        ranges.append(norm_w > 0)
    return (*SPACE, *ranges, *(reduced(one) for one in conditions if one is not sp.true))


def _needed(
    conditions: Sequence[Any], when: Sequence[Relational], border: set[Relational]
) -> tuple[Relational, ...] | None:
    """Return the conditions that the others and `when` do not imply; None if they never hold together.

    What holds on a border only does not count, except for the conditions in `border` together.
    """

    def never(together: Sequence[Any]) -> bool:
        where = region((*together, *when))
        return feasible(where) is False and (not border <= set(together) or bool(prove(sp.Integer(-1), where)))

    kept = [one for one in conditions if one is not sp.true]
    if sp.false in kept or never(kept):
        return None
    for condition in tuple(kept):
        others = [one for one in kept if one is not condition]
        if never([*others, sp.Not(condition)]):
            kept = others
    return tuple(kept)


def _solved(condition: Relational) -> Relational:
    """Solve a condition for g, where it is linear in g with a factor of known sign; else write it without fractions."""
    difference, below = sp.fraction(sp.together(condition.lhs - condition.rhs))
    if _sign(below) == 0:
        return condition
    relation = condition if _sign(below) > 0 else condition.reversedsign
    if difference.is_polynomial(g) and sp.degree(difference, g) == 1:
        slope, rest = sp.Poly(difference, g).all_coeffs()
        if _sign(slope):
            return (relation if _sign(slope) > 0 else relation.reversedsign).func(g, sp.factor(-rest / slope))
    terms = sp.Add.make_args(sp.expand(difference))
    negative = [term for term in terms if term.could_extract_minus_sign()]
    return relation.func(sp.Add(*(term for term in terms if term not in negative)), -sp.Add(*negative))


def _sign(value: sp.Expr) -> int:
    """Return the sign of an expression in ell, sq_x and positive parameters; 0 if it is not known."""
    positive = {one: sp.Symbol(one.name, positive=True) for one in (ell, sq_x, norm_w)}
    positive |= {one: sp.Symbol(one.name, positive=True) for one in quantities([value]) if one.low > 0}
    sign = sp.sign(value.subs(positive))
    return int(sign) if sign in (1, -1) else 0
