"""From a bound, a step or a curve to a rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import sympy as sp
from sympy.core.relational import Relational

from maxcosine.derive import source, text
from maxcosine.derive.claims import Claim, MistakeBound, claims_of, mistake_bound
from maxcosine.derive.lemma3 import NUMERIC, BadBound, Case, maximise_bound, region, tidy
from maxcosine.derive.proving import prove_defined
from maxcosine.derive.symbols import (
    IN_CODE,
    Parameter,
    StateSymbol,
    UnitError,
    ell,
    exact,
    expression,
    g,
    is_name,
    norm_w,
    quantities,
    reduced,
    require_unit,
    sq_x,
    unit,
    v,
    x,
)
from maxcosine.rules.derived import rule_of
from maxcosine.rules.rule import Rule

NEVER_TRUE = "when is never true: the rule would never move"


@dataclass(frozen=True, eq=False, repr=False)
class Derivation:
    """A rule, how it came about, and what is proven of it; made by `derive` and `curve`.

    Parameters
    ----------
    name : str
        The name of the rule.
    cases : tuple of Case
        Its steps, and when each is taken.
    when : tuple of relations
        When it may move at all.
    bound : expression or None
        The bound that was maximised.
    next_bound : expression or None
        The bound after a step, where it is not that of Lemma 1.
    paper : bool
        Whether the bound after a step is the maximum of `bound`.
    next_state : mapping of symbol to expression
        How the rule's state changes with a step.

    Examples
    --------
    >>> from maxcosine.derive import derive, ell, g, sq_x, sqrt, x
    >>> mcp_exact = derive((ell + x) / sqrt(1 + sq_x * x**2), when=g <= 1 / (2 * ell))
    >>> mcp_exact.cases[0].step
    1/(ell*sq_x)
    >>> print(mcp_exact.mistake_bound())
    mistakes <= (R / gamma)^2
    """

    name: str
    cases: tuple[Case, ...]
    when: tuple[Relational, ...]
    bound: sp.Expr | None = None
    next_bound: sp.Expr | None = None
    paper: bool = False
    next_state: Mapping[StateSymbol, sp.Expr] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not is_name(self.name) or self.name in IN_CODE or self.name.startswith("best_step_"):
            raise ValueError(f"name={self.name!r} is not a Python name that a rule can have; choose another")

    def __repr__(self) -> str:
        return f"<derivation of {self.name!r}>"

    @property
    def recursive(self) -> bool:
        """Whether the rule keeps a bound of its own, instead of Lambda / norm(w)."""
        return self.paper or self.next_bound is not None

    @property
    def expressions(self) -> list[sp.Basic]:
        """Every expression that the rule is made of."""
        of_cases = [one for case in self.cases for one in (case.step, *case.conditions)]
        given = [one for one in (self.bound, self.next_bound) if one is not None]
        return [*of_cases, *self.when, *given, *self.next_state, *self.next_state.values()]

    @property
    def parameters(self) -> list[Parameter]:
        """Its parameters, in the order of their names."""
        return quantities(self.expressions, Parameter)

    @property
    def state_symbols(self) -> list[StateSymbol]:
        """What it remembers, in the order of their names."""
        return quantities(self.expressions, StateSymbol)

    @property
    def origin(self) -> str:
        """What the rule was derived from, in one line."""
        given = f"the bound {self.bound}" if self.bound is not None else "a step in closed form"
        return f"{given}, when {text.condition(self.when)}"

    def next_sq(self, case: Case) -> sp.Expr:
        """The square of the bound after a step: what the rule accounts for."""
        if case.step == 0:
            return ell**2
        if self.next_bound is not None:
            return sp.expand(self.next_bound**2)
        if self.paper:
            assert case.maximum_sq is not None
            return ell**2 + tidy(case.maximum_sq - ell**2)
        return lemma_1_sq(case.step)

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What is proven of the rule, in real arithmetic."""
        return claims_of(self)

    def claim(self, name: str) -> Claim:
        """Return the claim of this name."""
        return next(one for one in self.claims if one.name == name)

    def has(self, trait: str) -> bool:
        """Whether a property of rules is proven of this one."""
        return bool(self.claim(trait).verdict)

    def mistake_bound(self) -> MistakeBound:
        """Return m, such that there are at most (1/m) (R / gamma)^2 mistakes, or the claim that failed."""
        return mistake_bound(self.claims)

    @cached_property
    def rule(self) -> Rule:
        """The rule, usable wherever a rule is."""
        return rule_of(self.name, self.to_python())

    def to_python(self) -> str:
        """Return the rule as the text of a Python file, which needs maxcosine but no SymPy."""
        return source.python_source(self)

    def explain(self) -> str:
        """Describe the rule, and what is proven of it, in plain text."""
        return text.explain(self)

    def _repr_latex_(self) -> str:
        return text.latex(self)

    def _repr_html_(self) -> str:
        return text.html(self)

    def at(self, *, name: str | None = None, **values: float | str) -> Derivation:
        """Return the derivation with numbers in place of some parameters, which are proven of on their own."""
        known = {one.name: one for one in self.parameters}
        unknown = sorted(set(values) - set(known))
        if unknown:
            names = ", ".join(known) or "none"
            raise ValueError(f"{self.name} has no parameter {unknown[0]!r}; its parameters: {names}")
        numbers = {known[key]: exact(value) for key, value in values.items()}
        for symbol, value in numbers.items():
            if not symbol.low <= value <= symbol.high:
                raise ValueError(f"{symbol.name} = {value} is not between {symbol.low} and {symbol.high}")

        def put(one: Any) -> Any:
            return None if one is None else one.subs(numbers)

        shared: dict[str, Any] = {"next_state": {key: put(one) for key, one in self.next_state.items()}}
        shared["name"] = name or self.name
        when = tuple(put(one) for one in self.when)
        if self.bound is not None:
            account = "paper" if self.paper else "exact"
            return derive(put(self.bound), when=when, account=account, next_bound=put(self.next_bound), **shared)
        conditions = [tuple(put(condition) for condition in case.conditions) for case in self.cases]
        cases = tuple(
            Case(_conditions(kept), expression(put(case.step), "the step"))
            for case, kept in zip(self.cases, conditions, strict=True)
            if sp.false not in kept
        )
        if not cases:
            raise ValueError(NEVER_TRUE)
        return Derivation(cases=cases, when=_conditions(when), next_bound=put(self.next_bound), **shared)


def lemma_1_sq(step: sp.Expr) -> sp.Expr:
    """Lemma 1 squared: the bound after a step; 1 / norm(x) if w becomes the example."""
    if step == sp.oo:
        return 1 / sq_x
    return ell**2 + tidy((ell + step) ** 2 / (1 + sq_x * step**2 + 2 * g * step) - ell**2)


def derive(
    bound: Any = None,
    *,
    step: Any = None,
    when: Any = True,
    account: str = "exact",
    next_bound: Any = None,
    next_state: Mapping[StateSymbol, Any] | None = None,
    name: str = "derived",
) -> Derivation:
    """Derive a rule from a cosine bound: the step maximises the bound.

    Parameters
    ----------
    bound : expression, optional
        A function of the relative step `x`, of `ell`, `g` and `sq_x`, and of symbols made by `param` and `state`. If
        it has the form of Lemma 3, the step is found in closed form, else numerically when the rule runs.
    step : expression, optional
        A step in closed form, instead of a bound.
    when : relation or sequence of relations
        When the rule may move.
    account : {"exact", "paper"}
        The bound after a step: Lemma 1 at the step that was taken, which is Lambda / norm(w); or the maximum of
        `bound`, as in the paper. The latter has to be proven.
    next_bound : expression, optional
        The bound after a step, as an expression in `ell`, `g` and `sq_x`. It has to be proven.
    next_state : mapping of symbol to expression, optional
        How symbols made by `state` change with each step.
    name : str
        The name of the rule.

    Returns
    -------
    Derivation
        The rule, and what is proven of it.

    Examples
    --------
    >>> from maxcosine.derive import derive, ell, g, sq_x, sqrt, x
    >>> cmcp = derive((ell + x) / sqrt(1 + sq_x * x**2), when=g <= 0, account="paper", name="cmcp")
    >>> print(cmcp.mistake_bound())
    mistakes <= (R / gamma)^2
    """
    if (bound is None) == (step is None):
        raise ValueError("give either a bound to maximise or step=, a step in closed form")
    if account not in ("exact", "paper"):
        raise ValueError(f"account={account!r} is neither 'exact' nor 'paper'; for another bound give next_bound=")
    paper = account == "paper"
    if paper and (bound is None or next_bound is not None):
        raise ValueError("account='paper' is the maximum of the bound: it needs a bound, and no step= or next_bound=")
    bound, step, next_bound = (
        None if value is None else expression(value, what)
        for what, value in (("bound", bound), ("step", step), ("next_bound", next_bound))
    )
    conditions = _conditions(when)
    after = {symbol: expression(value, "next_state") for symbol, value in (next_state or {}).items()}
    _check(bound, step, next_bound, after)
    _check_symbols(one for one in (bound, step, next_bound, *conditions, *after, *after.values()) if one is not None)
    if next_bound is not None:
        _check_next_bound(next_bound, conditions)
    shared: dict[str, Any] = {"name": name, "when": conditions, "next_bound": next_bound, "next_state": after}
    if bound is None:
        return Derivation(cases=(Case((), step),), **shared)
    found = maximise_bound(bound, conditions)
    if found is None:
        _check_numeric(bound, paper, next_bound)
        found = (Case((), NUMERIC),)
    if not found:
        raise ValueError(NEVER_TRUE)
    return Derivation(cases=found, bound=bound, paper=paper, **shared)


def curve(on_mistakes: Any, on_margins: Any = None, theta: Any = 0, *, name: str = "curve") -> Derivation:
    """Derive a rule from its curve in the band: the step is x = k(v) / (ell sq_x), with v = ell g.

    Mistakes gain at least m if 2 k (1 - v) - k^2 >= m, and no margin loses if 0 <= k <= 2 (1 - v).

    Parameters
    ----------
    on_mistakes : expression
        k as a function of `v`, for v <= 0.
    on_margins : expression, optional
        k for 0 < v <= theta; the same function by default.
    theta : float or expression
        The largest v at which the rule moves.
    name : str
        The name of the rule.

    Returns
    -------
    Derivation
        The rule, and what is proven of it.

    Examples
    --------
    >>> from maxcosine.derive import Abs, curve, v
    >>> print(curve(1 / (1 + Abs(v)), theta=0.7).mistake_bound())
    mistakes <= (R / gamma)^2
    """
    theta, k = expression(theta, "theta"), expression(on_mistakes, "the curve")
    sides = {g <= 0: k, g > 0: k if on_margins is None else expression(on_margins, "the curve")}
    for k in sides.values():
        if k.free_symbols & {x, ell, g, sq_x, norm_w}:
            raise UnitError(f"the curve {k} must be a function of v alone, and of symbols made by param()")
    steps = {side: k.subs(v, ell * g) / (ell * sq_x) for side, k in sides.items()}
    _check(None, steps[g <= 0] + steps[g > 0], None, {})
    _check_symbols([theta, *sides.values()])
    cases = tuple(Case((side,), step) for side, step in steps.items())
    if on_margins is None:
        cases = (Case((), steps[g <= 0]),)
    elif theta == 0:
        cases = cases[:1]
    return Derivation(name=name, cases=cases, when=(g <= theta / ell,))


def _conditions(when: Any) -> tuple[Relational, ...]:
    given = when if isinstance(when, Sequence) and not isinstance(when, str) else [when]
    given = [sp.sympify(one, strict=True) if isinstance(one, bool) else expression(one, "when") for one in given]
    parts = [part for one in given for part in sp.And.make_args(one)]
    for part in parts:
        if part is sp.false:
            raise ValueError(NEVER_TRUE)
        if part is not sp.true and not isinstance(part, sp.Lt | sp.Le | sp.Gt | sp.Ge):
            raise ValueError(f"when: {part} is not an inequality; use <, <=, > and >=, several of them in a list")
        if part.has(x):
            raise ValueError(f"when: {part} depends on the step x, which is not known yet")
        if part is not sp.true:
            unit(part)
    return tuple(part for part in parts if part is not sp.true)


def _check_symbols(expressions: Iterable[sp.Basic]) -> None:
    """Refuse different symbols of one name."""
    for one, other in pairwise(quantities(expressions)):
        if one.name == other.name:
            raise ValueError(f"two different symbols are called {one.name}; give each a name of its own")


def _check_numeric(bound: sp.Expr, paper: bool, next_bound: sp.Expr | None) -> None:
    """Refuse what a rule that maximises its bound numerically cannot do."""
    if paper:
        raise BadBound("the maximum of this bound has no closed form; use account='exact'")
    if next_bound is not None:
        raise BadBound("the step that maximises this bound has no closed form to prove next_bound= of; leave it out")
    if bound.has(norm_w):
        raise BadBound("this bound is maximised numerically, from ell, g and sq_x alone; write it without norm_w")


def _check_next_bound(next_bound: sp.Expr, conditions: Sequence[Relational]) -> None:
    """Refuse a next bound that is the root of a negative number for some example."""
    verdict = prove_defined(reduced(next_bound), region(conditions, next_bound))
    if verdict.status == "false":
        where = str(verdict).removeprefix("false ")
        raise BadBound(
            f"next_bound {next_bound} is not defined {where}, in units of norm(x); narrow `when`, or repair it"
        )


def _check(bound: Any, step: Any, next_bound: Any, next_state: Mapping[Any, Any]) -> None:
    """Refuse symbols and units that make no sense."""
    for what, value in ("bound", bound), ("step", step), ("next_bound", next_bound):
        if value is not None:
            require_unit(value, what)
            if (what == "bound") != value.has(x):
                raise ValueError(f"{what} {value} {'does not depend' if what == 'bound' else 'depends'} on the step x")
    for symbol, value in next_state.items():
        if not isinstance(symbol, StateSymbol) or unit(value) not in (None, 0) or value.has(x):
            raise UnitError(f"next_state: {symbol} must be made by state(), and {value} must be a number without x")
