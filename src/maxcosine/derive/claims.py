"""What is claimed of a derived rule, and what is proven of that.

Lengths are measured in norm(x): u = ell norm(x), c = g / norm(x), z = x norm(x). A step then raises ell^2 norm(x)^2
from u^2 to (u + z)^2 / (1 + z^2 + 2 c z) by Lemma 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from math import floor
from typing import TYPE_CHECKING, Any

import sympy as sp
from sympy.core.relational import Relational

from maxcosine.derive.band import Piece, pieces_of
from maxcosine.derive.cells import Budget
from maxcosine.derive.lemma3 import NUMERIC, Case, branches, recognise, region
from maxcosine.derive.numeric_points import steps_at_points
from maxcosine.derive.proving import Verdict, all_of, best_constant, feasible, prove, prove_defined, prove_positive
from maxcosine.derive.symbols import c, g, norm_w, reduced, u

if TYPE_CHECKING:
    from maxcosine.derive.derivation import Derivation

MAX_SECONDS = 12.0
"""For all proofs about one rule. Tests, and the step that is being taken at the deadline, come on top."""
IDENTITY = Verdict("proved", "identity")
NEVER = Verdict("false")
"""No step is ever taken on a mistake."""


@dataclass(frozen=True)
class Claim:
    """A statement about a rule, and what was found out about it.

    Parameters
    ----------
    name : str
        What the statement is called in code.
    statement : str
        The statement in words.
    verdict : Verdict
        Whether it is proved, tested or false.
    m : Fraction or None
        For the gain of mistakes: the largest constant of which the statement is proved.
    """

    name: str
    statement: str
    verdict: Verdict
    m: Fraction | None = None


@dataclass(frozen=True)
class MistakeBound:
    """The mistake bound that follows from the claims, or the claim that failed.

    Parameters
    ----------
    m : Fraction or None
        There are at most (1/m) (R / gamma)^2 mistakes on examples that are separable with margin gamma.
    failed : Claim or None
        The first claim that is not proved.
    """

    m: Fraction | None
    failed: Claim | None = None

    def __str__(self) -> str:
        if self.m is None:
            assert self.failed is not None
            return f"no mistake bound: not proved that {self.failed.statement}"
        return f"mistakes <= {'' if self.m == 1 else f'{1 / self.m} '}(R / gamma)^2"


def mistake_bound(claims: Sequence[Claim]) -> MistakeBound:
    """Return the mistake bound that the claims prove together."""
    needed = [one for one in claims if one.name in ("forward", "moves", "state", "sound", "rises", "gain")]
    failed = [one for one in needed if not one.verdict]
    return MistakeBound(None, failed[0]) if failed else MistakeBound(needed[-1].m)


def claims_of(derivation: Derivation) -> tuple[Claim, ...]:
    """Find out what is true of a rule."""
    prover = _prover(derivation)
    forward, rises = prover.forward(), prover.rises()
    m, gain = prover.gain
    state = [Claim("state", "the state stays in its interval", prover.state())] if derivation.next_state else []
    return (
        Claim("forward", "the step is never negative", forward),
        Claim("moves", "every mistake moves", prover.moves()),
        *state,
        Claim("sound", "the bound never exceeds that of Lemma 1", prover.sound()),
        Claim("rises", "ell never falls", rises),
        Claim("gain", f"a mistake raises ell^2 by {'some m > 0' if m is None else f'at least {m}'} / sq_x", gain, m),
        Claim("conservative", "it moves on mistakes only", prover.conservative()),
        Claim("scale_free", "the length of w means nothing", prover.scale_free()),
        Claim("scale_invariant", "the unit of length means nothing", IDENTITY),  # `derive` has checked the units
    )


def _prover(derivation: Derivation) -> _ClosedForm:
    if any(case.step == NUMERIC for case in derivation.cases):
        return _Numeric(derivation)
    budget = Budget(MAX_SECONDS)
    pieces = pieces_of(derivation, budget)
    return _ClosedForm(derivation, budget) if pieces is None else _Curve(derivation, budget, pieces)


class _ClosedForm:
    """Claims about a rule whose steps are expressions.

    All proofs share one budget, and each may take half of what is left: what is not decided in time is tested.
    """

    def __init__(self, derivation: Derivation, budget: Budget) -> None:
        self.derivation = derivation
        self.budget = budget
        self.moving = [case for case in derivation.cases if case.step != 0]

    def _region(self, case: Case, *more: Relational) -> dict[str, Any]:
        """Where a case applies, as `prove` takes it.

        Cases that maximise a bound are a partition: the maximiser of Lemma 3, which may be infinite, is continuous
        wherever it is positive, and so is what a step does to the bound. A curve may jump from case to case.
        """
        after = [*self.derivation.next_state, *self.derivation.next_state.values()]
        used = (case.step, *case.conditions, self.derivation.next_sq(case), *after)
        seconds = self.budget.share()
        if self.derivation.bound is None:
            return {"region": region((*self._where(case), *more), *used), "seconds": seconds}
        conditions = tuple(reduced(one) for one in case.conditions)
        return {
            "region": region((*self.derivation.when, *more), *used),
            "partition": conditions,
            "seconds": seconds,
        }

    def _is_empty(self, case: Case, *more: Relational) -> bool:
        """Whether a case has no interior."""
        where = region((*self._where(case), *more), case.step)
        return feasible(where, seconds=self.budget.share()) is False

    def forward(self) -> Verdict:
        """The step is never negative, and always defined: Lemma 1 needs it."""
        finite = [case for case in self.moving if case.step != sp.oo]
        signs = [prove(reduced(case.step), **self._region(case)) for case in finite]
        defined = [self._is_defined(case.step, self._where(case)) for case in finite]
        return all_of([*signs, *self._conditions_are_defined(), *defined])

    def _is_defined(self, expression: sp.Basic, where: Sequence[Relational]) -> Verdict:
        return prove_defined(reduced(expression), region(where, expression), seconds=self.budget.share())

    def _where(self, case: Case) -> tuple[Relational, ...]:
        return (*self.derivation.when, *case.conditions)

    def _conditions_are_defined(self) -> Iterable[Verdict]:
        return [self._is_defined(one, ()) for one in self.derivation.when]

    def moves(self) -> Verdict:
        """Every mistake moves, also where a condition or the step is just 0."""
        return all_of([self._may_move(), *self._steps_are_positive()])

    def _may_move(self) -> Verdict:
        """Mistakes satisfy `when`."""
        verdicts = []
        for condition in self.derivation.when:
            decide = prove_positive if isinstance(condition, sp.StrictLessThan | sp.StrictGreaterThan) else prove
            claim = reduced(condition.gts - condition.lts)
            verdicts.append(decide(claim, region((g <= 0,), condition), seconds=self.budget.share()))
        return all_of(verdicts)

    def _steps_are_positive(self) -> Iterable[Verdict]:
        mistakes = (*self.derivation.when, g <= 0)
        if self.derivation.bound is None:
            for case in self.derivation.cases:
                if not self._is_empty(case, g <= 0):
                    yield prove_positive(reduced(case.step), **self._region(case, g <= 0))
            return
        for conditions, branch in branches(self.derivation.bound):
            phi = recognise(branch)
            assert phi is not None  # else the step would be found numerically
            # By Lemma 3, the bound rises at x = 0 where e > 0.
            where = region((*mistakes, *conditions), phi.e)
            yield prove_positive(reduced(phi.e), where, seconds=self.budget.share())

    def state(self) -> Verdict:
        """A step takes each number that the rule remembers to one of its interval: all else is proven for that."""
        changes = self.derivation.next_state
        return all_of(
            prove(reduced((limit.gts - limit.lts).xreplace(changes)), **self._region(case))
            for case in self.moving
            for symbol in changes
            for limit in symbol.interval
        )

    def sound(self) -> Verdict:
        """The bound that the rule accounts for is at most that of Lemma 1, at the step that is taken."""
        if not self.derivation.recursive:
            return IDENTITY  # Lambda / norm(w) is Lemma 1 with equality
        return all_of(prove(self._excess(case), **self._region(case)) for case in self.moving)

    def _excess(self, case: Case) -> sp.Expr:
        """Lemma 1's bound minus the rule's, both squared, times the radicand of Lemma 1, which is positive."""
        claimed = reduced(self.derivation.next_sq(case))
        if case.step == sp.oo:
            return 1 - claimed
        z = reduced(case.step)
        return (u + z) ** 2 - claimed * (1 + z**2 + 2 * c * z)

    def rises(self) -> Verdict:
        """The bound never falls."""
        return all_of(prove(self._gain_above(case, 0), **self._region(case)) for case in self.moving)

    @cached_property
    def gain(self) -> tuple[Fraction | None, Verdict]:
        """The largest m of which it is proved that every mistake gains it, and the proof."""
        return self._best_gain()

    def _best_gain(self) -> tuple[Fraction | None, Verdict]:
        """The largest m such that every mistake raises the squared bound by m / norm(x)^2.

        A case that mistakes only border on is left out: what a step gains is continuous there.
        """
        cases = [case for case in self.moving if not self._is_empty(case, g <= 0)]
        return _smallest(best_constant(partial(self._prove_gain, case), seconds=self.budget.share()) for case in cases)

    def _prove_gain(self, case: Case, m: sp.Rational) -> Verdict:
        return prove(self._gain_above(case, m), **self._region(case, g <= 0))

    def _gain_above(self, case: Case, m: Any) -> sp.Expr:
        """u'^2 - u^2 - m, times the radicand of Lemma 1 where the bound is that of Lemma 1."""
        if case.step == sp.oo or self.derivation.recursive:
            return reduced(self.derivation.next_sq(case)) - u**2 - m
        z = reduced(case.step)
        return (u + z) ** 2 - (u**2 + m) * (1 + z**2 + 2 * c * z)

    def conservative(self) -> Verdict:
        """The rule moves on mistakes only."""
        return all_of(prove(-c, **self._region(case)) for case in self.moving)

    def scale_free(self) -> Verdict:
        """The rule does not depend on norm(w)."""
        if not any(one.has(norm_w) for one in self.derivation.expressions):
            return IDENTITY
        return Verdict("false", counterexample=self._lengths_that_matter())

    def _lengths_that_matter(self) -> dict[str, Fraction]:
        """A point, and a length of w, at which a w of twice that length would move differently, or not at all."""
        tried = [
            prove(sign * reduced(case.step.subs(norm_w, 2 * norm_w) - case.step), **self._region(case))
            for case in self.moving
            for sign in (1, -1)
            if case.step.has(norm_w)
        ]
        conditions = [*self.derivation.when, *(one for case in self.moving for one in case.conditions)]
        for one in conditions:
            longer = one.subs(norm_w, 2 * norm_w)
            for holds, fails in ((one, longer), (longer, one)):
                where = region((holds,), fails)
                tried.append(prove(reduced(fails.gts - fails.lts), where, seconds=self.budget.share()))
        return dict(next((one.counterexample for one in tried if one.status == "false"), {}))


def _smallest(found: Iterable[tuple[Fraction | None, Verdict]]) -> tuple[Fraction | None, Verdict]:
    """The constant that holds in all cases; None, and what went wrong, if there is none."""
    constants, verdicts = zip(*found, strict=True) if (found := list(found)) else ((None,), (NEVER,))
    return (None if None in constants else min(constants)), all_of(verdicts)


class _Curve(_ClosedForm):
    """Claims about a rule that is a curve in the band: statements about v alone."""

    def __init__(self, derivation: Derivation, budget: Budget, pieces: Sequence[Piece]) -> None:
        super().__init__(derivation, budget)
        self.pieces = pieces

    def forward(self) -> Verdict:
        return all_of([*(piece.prove_forward() for piece in self.pieces), *self._conditions_are_defined()])

    def _steps_are_positive(self) -> Iterable[Verdict]:
        m, verdict = self.gain
        # A gain above 0 needs a step above 0.
        return [verdict] if m else super()._steps_are_positive()

    def rises(self) -> Verdict:
        return all_of(piece.prove_gain(0) for piece in self.pieces)

    def _best_gain(self) -> tuple[Fraction | None, Verdict]:
        parts = [piece.on_mistakes() for piece in self.pieces]
        return _smallest(part.best_gain() for part in parts if part is not None)


class _Numeric(_ClosedForm):
    """Claims about a rule whose step is found numerically: they are tested at many points, and never proved.

    The step at a counterexample is part of it: with that z, the claim is false in exact arithmetic.
    """

    def __init__(self, derivation: Derivation) -> None:
        super().__init__(derivation, Budget())
        self.points = steps_at_points(derivation)

    def forward(self) -> Verdict:
        return IDENTITY  # the bound is maximised over x >= 0

    def _steps_are_positive(self) -> Iterable[Verdict]:
        return [self._test(point for point in self.points if point["c"] <= 0 and point["z"] == 0)]

    def rises(self) -> Verdict:
        return self._test(point for point in self.points if _falls(point))

    def _best_gain(self) -> tuple[Fraction | None, Verdict]:
        mistakes = [point for point in self.points if point["c"] <= 0]
        smallest = min([Fraction(1), *map(_gain_at, mistakes)])
        found = self._test(point for point in mistakes if _gain_at(point) == 0 or _falls(point))
        return (Fraction(floor(100 * smallest), 100) if smallest >= Fraction(1, 100) else None), found

    def conservative(self) -> Verdict:
        return self._test(point for point in self.points if point["c"] > 0 and point["z"] > 0)

    def _test(self, violations: Iterable[dict[str, Fraction]]) -> Verdict:
        found = next(iter(violations), None)
        return Verdict("tested", points=len(self.points)) if found is None else Verdict("false", counterexample=found)


ROUNDING = Fraction(1, 10**9)
"""A maximiser is known to about half of the digits of a float, and what it gains to nearly all."""


def _gain_at(point: dict[str, Fraction]) -> Fraction:
    """What a step raises u^2 by."""
    u, c, z = point["u"], point["c"], point["z"]
    return (u + z) ** 2 / (1 + z**2 + 2 * c * z) - u**2


def _falls(point: dict[str, Fraction]) -> bool:
    """Whether a step lets u^2 fall by more than rounding."""
    return _gain_at(point) < -ROUNDING * (1 + point["u"] ** 2)
