"""The quantities that bounds and steps are written in, and their units.

Lengths can be measured in any unit. If all examples are multiplied by s, then sq_x is multiplied by s^2, g and norm_w
by s, and ell, x and every cosine bound by 1/s. An expression in which this does not hold throughout has no meaning.
By the same token sq_x = 1 may be assumed in proofs: they are about u = ell norm(x) and c = g / norm(x).
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Iterable
from typing import Any

import sympy as sp
from sympy.core.relational import Relational

# Symbols are real and nothing more: of a symbol that is declared positive, SymPy deletes the condition a > 0.
x, ell, g, sq_x, norm_w = sp.symbols("x ell g sq_x norm_w", real=True)
u, c, z, v = sp.symbols("u c z v", real=True)

LENGTHS = {x: -1, ell: -1, g: 1, sq_x: 2, norm_w: 1}
"""The power of a length in each symbol; all others are numbers without a unit."""

REDUCED = {ell: u, g: c, sq_x: sp.Integer(1), x: z}

IN_CODE = {"abs", "best_step", "inf", "math", "max", "min", "sqrt"}
"""What the function of a rule calls."""

RESERVED = (
    IN_CODE
    | {"argmax", "bound", "coef_sum", "cosine", "margin", "params", "sq_w", "state"}
    | {one.name for one in (x, ell, g, sq_x, norm_w, u, c, z, v)}
)
"""Names that mean something else in a bound, a proof or the function of a rule."""

SPACE = (u > 0, c > -1, c < 1)
"""Every example and every hypothesis. Where c = -1, nothing separates, and rules may do as they like."""


def is_name(text: str) -> bool:
    """Whether a text can name a rule or a symbol: generated code begins or ends names of its own with _."""
    return text.isidentifier() and not keyword.iskeyword(text) and text.strip("_") == text


class UnitError(ValueError):
    """A bound, a step or a condition whose terms have different units."""


class Quantity(sp.Symbol):  # type: ignore[misc]
    """A symbol of the user's, with its value at the start and the interval that it lies in."""

    __slots__ = ("high", "low", "start")

    def __new__(cls, name: str, start: Any, low: Any, high: Any) -> Quantity:
        if not is_name(name) or name in RESERVED:
            taken = ", ".join(sorted(RESERVED))
            raise ValueError(
                f"{name!r} cannot name a parameter; choose a Python name without _ at its ends, other than {taken}"
            )
        self = sp.Symbol.__xnew__(cls, name, real=True)
        self.start, self.low, self.high = exact(start), exact(low), exact(high)
        if not self.low <= self.start <= self.high:
            raise ValueError(f"{name} = {self.start} is not between {self.low} and {self.high}")
        if self.low == self.high:
            raise ValueError(f"{name} is always {self.low}; write the number itself")
        return self  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.start, self.low, self.high)

    def _hashable_content(self) -> tuple[Any, ...]:
        # As SymPy asks of classes with attributes: two parameters of one name may have different intervals.
        return (*super()._hashable_content(), self.start, self.low, self.high)

    @property
    def interval(self) -> tuple[Relational, ...]:
        """The conditions that it lies in its interval."""
        low = (self >= self.low,) if self.low.is_finite else ()
        return (*low, self <= self.high) if self.high.is_finite else low


class Parameter(Quantity):
    """A parameter of a rule."""


class StateSymbol(Quantity):
    """A number that a rule remembers."""


def param(name: str, default: float | str, low: float | str = 0, high: float | str = math.inf) -> Parameter:
    """Return a symbol for a parameter of a rule.

    What is proven of a rule is proven for all values of its parameters in their intervals.

    Parameters
    ----------
    name : str
        Its name in the rule.
    default : float or str
        Its value, unless the user of the rule gives another; the text "1/3" is exact.
    low, high : float or str
        The interval that it lies in, ends included.

    Returns
    -------
    Parameter
        A SymPy symbol.

    Examples
    --------
    >>> from maxcosine.derive import param
    >>> theta = param("theta", 0.5, low=0, high=1)
    >>> theta.start
    1/2
    """
    return Parameter(name, default, low, high)


def state(name: str, start: float | str, low: float | str = 0, high: float | str = math.inf) -> StateSymbol:
    """Return a symbol for a number that a rule remembers; `derive` is told by `next_state` how it changes.

    Parameters
    ----------
    name : str
        Its name in the rule.
    start : float or str
        Its value before the first example.
    low, high : float or str
        The interval that it never leaves. What is proven is proven for the whole interval.

    Returns
    -------
    StateSymbol
        A SymPy symbol.

    Examples
    --------
    >>> from maxcosine.derive import state
    >>> updates = state("updates", 0)
    """
    return StateSymbol(name, start, low, high)


def exact(value: Any) -> sp.Expr:
    """Return a number, the text of one, or an expression with rational numbers: 0.7 becomes 7/10."""
    if isinstance(value, sp.Basic):
        return value.xreplace({number: sp.Rational(str(number)) for number in value.atoms(sp.Float)})
    infinite = {math.inf: sp.oo, -math.inf: -sp.oo}
    return infinite[value] if value in infinite else sp.Rational(str(value))


def expression(value: Any, what: str) -> sp.Expr:
    """Return what a user wrote, with rational numbers. Text is refused: SymPy would execute it."""
    if isinstance(value, str):
        raise TypeError(
            f"{what} is the text {value[:40]!r}; write it with the symbols, or read it with parse_expression"
        )
    if isinstance(value, complex) or (isinstance(value, sp.Basic) and value.has(sp.I, sp.zoo, sp.nan)):
        raise ValueError(f"{what} {value} is not real; use real numbers only, and do not divide by 0")
    return exact(value)


def quantities(expressions: Iterable[sp.Basic], kind: type[Quantity] = Quantity) -> list[Any]:
    """Return the user's symbols in these expressions, in the order of their names."""
    free = {symbol for one in expressions for symbol in one.free_symbols if isinstance(symbol, kind)}
    return sorted(free, key=lambda symbol: symbol.name)


def reduced(expression: Any) -> Any:
    """Return an expression with lengths measured in norm(x)."""
    return expression.subs(REDUCED)


def unit(expression: Any) -> sp.Expr | None:
    """Return the power of a length in an expression; None for 0, which has every unit."""
    if expression == 0:
        return None
    if expression.is_number:
        return sp.Integer(0)
    if expression.is_Symbol:
        if not isinstance(expression, Quantity) and expression not in LENGTHS:
            known = ", ".join(symbol.name for symbol in LENGTHS)
            raise UnitError(f"{expression} is unknown; write in {known}, and in symbols made by param() and state()")
        return sp.Integer(LENGTHS.get(expression, 0))
    if expression.is_Mul:
        powers = [unit(factor) for factor in expression.args]
        return None if None in powers else sp.Add(*powers)
    if expression.is_Pow:
        if not expression.exp.is_number:
            raise UnitError(f"the exponent of {expression} is not a number")
        base = unit(expression.base)
        return None if base is None else base * expression.exp
    if isinstance(expression, sp.Add | sp.Max | sp.Min | sp.Abs | Relational):
        return _common_unit(expression)
    raise UnitError(
        f"{expression.func.__name__} in {expression} is not allowed; use + - * / **, sqrt, Max, Min and Abs"
    )


def _common_unit(expression: Any) -> sp.Expr | None:
    powers = [(term, unit(term)) for term in expression.args]
    known = [(term, power) for term, power in powers if power is not None]
    for term, power in known:
        first, wanted = known[0]
        if power != wanted:
            raise UnitError(
                f"{expression} adds or compares unlike things: {first} is {_described(wanted)}, "
                f"{term} is {_described(power)}"
            )
    return known[0][1] if known else None


def require_unit(expression: sp.Expr, what: str) -> None:
    """Refuse a bound or a step that is not one over a length."""
    power = unit(expression)
    if power not in (None, -1):
        raise UnitError(
            f"{what} {expression} is {_described(power)}, but must be a length^-1, as ell, x and 1 / norm(x) are"
        )


def _described(power: Any) -> str:
    return "a number" if power == 0 else "a length" if power == 1 else f"a length^{power}"
