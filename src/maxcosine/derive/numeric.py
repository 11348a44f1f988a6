"""Maximise a bound that is not of Lemma 3's form, inside the compiled rule.

The step z = x norm(x) runs from 0 to infinity. Two charts cover that: z = t and z = 1 / t, t from 0 to 1. In the
second, powers of t are taken out of the bound, so that it can be evaluated at t = 0, which is z = infinity. In each
chart a scan over t finds the cells in which the slope changes from + to -, and a safeguarded Newton iteration finds the
peak in each. Slopes keep their signs where differences of values are lost in rounding: for large u.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from string import Template

import sympy as sp

from maxcosine.derive.symbols import c, u, z

_t = sp.Symbol("t", nonnegative=True)

# Halving finds peaks of any scale, and even steps tell the peaks around z = 1 apart.
_SCAN = [*(2.0**-i for i in range(24, 4, -1)), *(i / 16 for i in range(1, 17))]

_TEMPLATE = Template('''\
import math

_SCAN = $scan


def _square(number):
    return number * number


def _root(radicand):
    return math.sqrt(radicand) if radicand >= 0.0 else math.nan


def _nth_root(radicand, n):
    return float(radicand) ** (1.0 / n) if radicand >= 0.0 else math.nan


def _reciprocal(number):
    return 1.0 / number if number != 0.0 else math.inf


def _choose(difference, first, second):
    if difference >= 0.0:
        return float(first)
    return float(second) if difference < 0.0 else first + second + 0.0  # NaN where one of them is


def _is_above(value, height):
    """By more than rounding."""
    return value > (height + 1e-12 * abs(height) if height > -math.inf else height)


def ${name}_near(t$inputs):
    """The bound at z = t, and its first two derivatives by t."""
$near


def ${name}_far(t$inputs):
    """The bound at z = 1 / t, and its first two derivatives by t."""
$far


def ${name}_bound(t, far$inputs):
    return ${name}_far(t$inputs) if far else ${name}_near(t$inputs)


def ${name}_peak(low, high, low_value, high_value, far$inputs):
    """Where the bound is largest between low, where it rises, and high, where it falls: Newton, or else bisection.

    One of the ends may be outside of where the bound is defined; then the peak may be the border.
    """
    t, move_before = 0.5 * (low + high), high - low
    for _ in range(100):
        value, slope, curvature = ${name}_bound(t, far$inputs)
        if math.isnan(value):
            peak_is_above = math.isnan(low_value)
        elif slope != 0.0:
            peak_is_above = slope > 0.0
        elif value < low_value or value < high_value:  # flat, but not the top
            peak_is_above = not value < low_value
        else:  # of a flat top, the end that is nearer to z = 0
            peak_is_above = far
        if peak_is_above:
            low = t
        else:
            high = t
        middle = 0.5 * (low + high)
        following = middle
        if curvature < 0.0 and 2.0 * abs(slope) <= -curvature * move_before:
            newton = t - slope / curvature
            if abs(newton - t) <= 1e-9 * t:
                return min(max(newton, low), high)
            if low < newton < high:
                following = newton
        move_before = abs(following - t)
        t = following
        if high - low <= 1e-12 * high:
            break
    return high if math.isnan(low_value) else low


def $name(u, c$parameters):
    """The z >= 0 that maximises the bound; inf if the limit exceeds all values."""
    best, height = 0.0, -math.inf
    scanned, scanned_height = 0.0, -math.inf
    value, slope, _ = ${name}_near(0.0$inputs)
    if value > height:
        scanned_height = value
        if not slope > 0.0:
            height = value
    for far in (False, True):
        low = 0.0
        low_value, low_slope, _ = ${name}_bound(low, far$inputs)
        for high in _SCAN:
            high_value, high_slope, _ = ${name}_bound(high, far$inputs)
            if high_value > scanned_height:
                scanned, scanned_height = 1.0 / high if far else high, high_value
            # A slope that is 0 or NaN counts as either, but a cell that is flat at both ends has no peak.
            has_peak = not low_slope < 0.0 and not high_slope > 0.0 and not low_slope == high_slope == 0.0
            if has_peak and not (math.isnan(low_value) and math.isnan(high_value)):
                t = ${name}_peak(low, high, low_value, high_value, far$inputs)
                value = ${name}_bound(t, far$inputs)[0]
                step = _reciprocal(t) if far else t
                if _is_above(value, height) or (step < best and not _is_above(height, value)):
                    best, height = step, value
            low, low_value, low_slope = high, high_value, high_slope
    limit, slope, _ = ${name}_far(0.0$inputs)
    if _is_above(limit, height) and not slope > 0.0:
        best, height = math.inf, limit
    if _is_above(scanned_height, height):  # a cell has several peaks, and not the highest was found
        best = scanned
    return best if best < 2.0**53 else math.inf  # beyond it, w + z x is z x
''')
_HELPERS = ("_square", "_root", "_nth_root", "_reciprocal")
_NAMES = frozenset(re.findall(r"[A-Za-z_]\w*", _TEMPLATE.template))


def maximiser_source(bound: sp.Expr, parameters: Sequence[sp.Symbol], name: str = "best_step") -> str:
    """Python source of a function that maximises a bound over z >= 0.

    The source imports `math` and nothing else, and Numba compiles it. Its function ``name(u, c, *parameters)`` returns
    the maximiser: 0.0 where not moving is best, and `math.inf` where the bound approaches its supremum at infinity.
    Where the bound is not real, it counts as lower than everything.

    Parameters
    ----------
    bound : Expr
        The bound in the reduced variables u, c and z, and the parameters.
    parameters : sequence of Symbol
        The other symbols of the bound, in the order of the function's arguments.
    name : str
        The name of the function, and the beginning of the names of its helpers.

    Returns
    -------
    str
        The source.

    Raises
    ------
    ValueError
        If the bound has symbols that are not given as parameters.

    Examples
    --------
    >>> import sympy as sp
    >>> from maxcosine.derive.symbols import c, u, z
    >>> source = {}
    >>> exec(maximiser_source((u + z) / sp.sqrt(1 + z**2), ()), source)
    >>> round(source["best_step"](4.0, 0.0), 12)
    0.25
    """
    unknown = bound.free_symbols - {u, c, z, *parameters}
    if unknown:
        raise ValueError(f"the bound has the symbol {min(map(str, unknown))}, which is none of u, c, z and parameters")
    # A parameter may be called like a variable of the source. No variable ends with an underscore.
    renamed = {each: sp.Symbol(f"{each}_", real=True) for each in parameters if each.name in _NAMES}
    bound, inputs = bound.xreplace(renamed), [renamed.get(each, each) for each in parameters]
    given = "".join(f", {symbol}" for symbol in inputs)
    return _TEMPLATE.substitute(
        name=name,
        scan=f"({', '.join(map(repr, _SCAN))})",
        inputs=", u, c" + given,
        parameters=given,
        near=_body(bound.subs(z, _t), inputs),
        far=_body(_from_infinity(bound), inputs),
    )


def _from_infinity(bound: sp.Expr) -> sp.Expr:
    """The bound at z = 1 / t, in a form that can be evaluated at t = 0."""
    if isinstance(bound, sp.Max | sp.Min):  # each for itself: one may be bounded and another not
        return bound.func(*map(_from_infinity, bound.args))
    degree, rest = _growth(bound)
    return rest * _t**-degree


def _growth(expression: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """The degree d and the rest r in expression = t**-d r, z = 1 / t, so that r has no negative powers of t itself."""
    if not expression.has(z):
        return sp.Integer(0), expression
    if expression == z:
        return sp.Integer(1), sp.Integer(1)
    parts = [_growth(part) for part in expression.args]
    if expression.is_Mul:
        return sp.Add(*(degree for degree, _ in parts)), sp.Mul(*(rest for _, rest in parts))
    if expression.is_Pow and expression.exp.is_Rational:
        degree, rest = parts[0]
        return degree * expression.exp, rest**expression.exp
    if isinstance(expression, sp.Add | sp.Max | sp.Min | sp.Abs):
        # A minimum grows as slowly as the slowest of its terms; the powers of t in the others are never seen at t = 0.
        which = min if isinstance(expression, sp.Min) else max
        common = which(degree for degree, _ in parts)
        return common, expression.func(*(rest * _t ** (common - degree) for degree, rest in parts))
    return sp.Integer(0), expression.subs(z, 1 / _t)


def _body(bound: sp.Expr, inputs: Sequence[sp.Symbol]) -> str:
    """Statements that return a function of t and its first two derivatives."""
    value = _with_choices(bound)
    slope = sp.diff(value, _t)
    wanted = [_without_powers(each) for each in (value, slope, sp.diff(slope, _t))]
    taken = [sp.Symbol(symbol.name) for symbol in inputs]
    shared, results = sp.cse(wanted, symbols=sp.numbered_symbols("part", exclude=taken))
    statements = [f"{symbol} = {_printed(part)}" for symbol, part in shared]
    statements.append(f"return {', '.join(_printed(each) for each in results)}")
    return "\n".join(f"    {statement}" for statement in statements)


class _Choice(sp.Function):  # type: ignore[misc]
    """``_Choice(difference, first, second)``: first where the difference is >= 0, else second.

    SymPy's Piecewise would try to decide its conditions, at length.
    """

    is_real = True

    def _eval_derivative(self, symbol: sp.Symbol) -> sp.Expr:
        difference, first, second = self.args
        return _Choice(difference, sp.diff(first, symbol), sp.diff(second, symbol))


def _with_choices(expression: sp.Expr) -> sp.Expr:
    """The same without Max, Min and Abs, whose derivatives SymPy does not write as code."""
    if not expression.args:
        return expression
    parts = [_with_choices(part) for part in expression.args]
    if isinstance(expression, sp.Max):
        return reduce(lambda first, second: _Choice(first - second, first, second), parts)
    if isinstance(expression, sp.Min):
        return reduce(lambda first, second: _Choice(second - first, first, second), parts)
    if isinstance(expression, sp.Abs):
        return _Choice(parts[0], parts[0], -parts[0])
    return expression.func(*parts)


def _without_powers(expression: sp.Expr) -> sp.Expr:
    """The same by functions that are NaN or infinite where Python's operators raise errors."""
    square, root, nth_root, reciprocal = (sp.Function(name) for name in _HELPERS)

    def power(base: sp.Expr, exponent: int) -> sp.Expr:
        if exponent == 1:
            return base
        return square(power(base, exponent // 2)) * (base if exponent % 2 else 1)

    def by_functions(base: sp.Expr, exponent: sp.Expr) -> sp.Expr:
        if not exponent.is_Rational:
            return base**exponent
        if exponent.q == 2:
            base = root(base)
        elif exponent.q > 2:
            base = nth_root(base, exponent.q)
        raised = power(base, abs(exponent.p))
        return reciprocal(raised) if exponent < 0 else raised

    return expression.replace(sp.Pow, by_functions)


def _printed(expression: sp.Expr) -> str:
    functions = {"_Choice": "_choose"} | {name: name for name in _HELPERS}
    return str(sp.pycode(expression, user_functions=functions))
