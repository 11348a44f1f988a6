"""The band: rules as curves k(v), with the step x = k / (ell sq_x), v = ell g, and exact accounting.

With y = 1 / u^2, a step raises ell^2 by (2 k (1 - v) - k^2 + k^2 y) / (1 + k y (k + 2 v)) / norm(x)^2. So, for every u:

- mistakes (v <= 0) gain at least m, 0 <= m <= 1, if and only if 2 k (1 - v) - k^2 >= m. Cleared of its denominator
  the claim is linear in y, with slope k (k (1 - m) - 2 m v) >= 0, and y may be as small as one likes.
- margins (v > 0) never lose if and only if 2 k (1 - v) - k^2 >= 0, that is, 0 <= k <= 2 (1 - v).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy as sp
from sympy.core.relational import Relational

from maxcosine.derive.cells import Budget
from maxcosine.derive.lemma3 import NUMERIC
from maxcosine.derive.proving import Verdict, all_of, best_constant, feasible, prove, prove_defined
from maxcosine.derive.symbols import c, quantities, reduced, u, v

if TYPE_CHECKING:
    from maxcosine.derive.derivation import Derivation


@dataclass(frozen=True)
class Piece:
    """A piece of a curve.

    Parameters
    ----------
    k : expression
        The curve as a function of v, and of parameters.
    conditions : tuple of relations
        Where the piece applies, `when` included, as relations in v and parameters.
    budget : Budget
        What all proofs about the rule may cost together.
    """

    k: sp.Expr
    conditions: tuple[Relational, ...]
    budget: Budget

    @property
    def gain(self) -> sp.Expr:
        """What a step raises ell^2 norm(x)^2 by at least, for every u."""
        return 2 * self.k * (1 - v) - self.k**2

    def on_mistakes(self) -> Piece | None:
        """The part of the piece with v <= 0; None if it has no interior, and so borders on another piece there."""
        part = Piece(self.k, (*self.conditions, v <= 0), self.budget)
        return None if feasible(part.region, seconds=self.budget.share()) is False else part

    @property
    def region(self) -> tuple[Relational, ...]:
        """The conditions, and the intervals of the parameters."""
        return (*(limit for one in quantities([self.k, *self.conditions]) for limit in one.interval), *self.conditions)

    def prove(self, claim: sp.Expr) -> Verdict:
        """Decide whether an expression in v is never negative on the piece."""
        return prove(claim, self.region, seconds=self.budget.share())

    def prove_forward(self) -> Verdict:
        """Decide whether the step is never negative, and always defined; a counterexample is in u and c."""
        verdict = all_of([self.prove(self.k), prove_defined(self.k, self.region, seconds=self.budget.share())])
        if verdict.status != "false":
            return verdict
        point = dict(verdict.counterexample)
        at = point.pop("v", Fraction(0))
        length = 2 * abs(at) + 1
        return replace(verdict, counterexample={"u": length, "c": at / length, **point})

    def prove_gain(self, m: Any) -> Verdict:
        """Decide whether every step raises ell^2 norm(x)^2 by at least m; a counterexample is in u and c."""
        verdict = self.prove(self.gain - m)
        if verdict.status != "false":
            return verdict
        return replace(verdict, counterexample=self._counterexample(dict(verdict.counterexample), m))

    def best_gain(self) -> tuple[Fraction | None, Verdict]:
        """The largest m up to 1 that every step gains."""
        return best_constant(self.prove_gain, seconds=self.budget.share())

    def _counterexample(self, point: dict[str, Fraction], m: Any) -> dict[str, Fraction]:
        """Return u and c at which the gain is below m, from a v at which the curve leaves the band."""
        at = point.pop("v", Fraction(0))
        values = {symbol: sp.Rational(point[symbol.name]) for symbol in quantities([self.k]) if symbol.name in point}
        k = self.k.subs({**values, v: at})
        length = Fraction(2)
        while not (abs(at) < length and _loses(length, at / length, k / length, m)):
            length *= 2  # the gain falls to that of the band as u grows
        return {"u": length, "c": at / length, **point}


def _loses(u: Fraction, c: Fraction, z: sp.Expr, m: Any) -> bool:
    return bool((u + z) ** 2 < (u**2 + m) * (1 + z**2 + 2 * c * z))


def pieces_of(derivation: Derivation, budget: Budget) -> tuple[Piece, ...] | None:
    """Return the curve of a rule; None if its step depends on more than v, or if it keeps a bound of its own."""
    if derivation.recursive:
        return None
    pieces = []
    for case in derivation.cases:
        if case.step in (NUMERIC, sp.oo):
            return None
        k = _in_v(reduced(case.step) * u)
        conditions = [_condition_in_v(one) for one in (*case.conditions, *derivation.when)]
        if k is None or None in conditions:
            return None
        if case.step != 0:
            pieces.append(Piece(k, tuple(one for one in conditions if one is not None), budget))
    return tuple(pieces)


def _in_v(expression: sp.Expr) -> sp.Expr | None:
    """Return an expression in u and c as one in v = u c; None if it is not one."""
    found = expression.subs(c, v / u)
    if found.has(u):
        found = sp.simplify(found)
    return None if found.has(u) else found


def _condition_in_v(condition: Relational) -> Relational | None:
    # Multiplying by u > 0 changes no condition, and makes g <= theta / ell a condition on v.
    for power in (1, 0, 2):
        found = _in_v(reduced(condition.lhs - condition.rhs) * u**power)
        if found is not None:
            return condition.func(found, 0)
    return None
