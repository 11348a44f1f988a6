"""A derived rule as the text of a Python file that needs no SymPy."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy as sp

from maxcosine.derive.lemma3 import NUMERIC, Case, recognise
from maxcosine.derive.numeric import maximiser_source
from maxcosine.derive.symbols import Parameter, StateSymbol, c, quantities, reduced

if TYPE_CHECKING:
    from maxcosine.derive.derivation import Derivation

# As in core/rules/romma.hpp.
PARALLEL_TOLERANCE = "8 * 2.0**-52"
LARGEST_BOUND = "2.0**45"


def python_source(derivation: Derivation) -> str:
    """Return the file of the rule."""
    header = f'"""The rule {derivation.name}, derived from a cosine bound.\n\n{derivation.explain()}\n"""'
    decorated = _decorator(derivation) + "\n" + "\n".join(_function(derivation))
    functions = [decorated]
    if any(case.step == NUMERIC for case in derivation.cases):
        inputs = _symbols(derivation, Parameter) + _symbols(derivation, StateSymbol)
        functions.insert(0, maximiser_source(reduced(derivation.bound), inputs).removeprefix("import math\n").strip())
    return f"{header}\n\n{_imports(functions)}\n\n\n" + "\n\n\n".join(functions) + "\n"


def _imports(functions: list[str]) -> str:
    """Return the imports of the names that are used."""
    words = set(re.findall(r"\w+", "\n".join(functions)))
    of_math = [name for name in ("inf", "sqrt") if name in words]
    of_rules = [
        name for name in ("Param", "exact_bound", "recursion_bound", "restart_recursion", "rule") if name in words
    ]
    lines = ["import math"] * ("math" in words) + [f"from math import {', '.join(of_math)}", ""]
    return "\n".join([*lines, f"from maxcosine.rules.rule import {', '.join(of_rules)}"])


def _symbols(derivation: Derivation, kind: type[Any]) -> list[Any]:
    return quantities(derivation.expressions, kind)


def _decorator(derivation: Derivation) -> str:
    traits: dict[str, str] = {}
    params = _symbols(derivation, Parameter)
    if params:
        traits["params"] = f"{{{', '.join(map(_param, params))}}}"
    memory = {symbol.name: float(symbol.start) for symbol in _symbols(derivation, StateSymbol)}
    if derivation.recursive:
        memory = {"bound": 0.0, **memory}
    if memory:
        traits["state"] = json.dumps(memory)
    traits |= {name: "True" for name in ("conservative", "scale_free", "scale_invariant") if derivation.has(name)}
    if any(case.step in (sp.oo, NUMERIC) for case in derivation.cases):
        traits["restarts"] = "True"
    m = derivation.mistake_bound().m
    if m is not None:
        traits["own_bound"] = "recursion_bound" if derivation.recursive else "exact_bound"
        traits["gain"] = _rounded_down(m)
    if derivation.recursive and len(memory) == 1:
        traits["restart_state"] = "restart_recursion"
    traits["reference"] = json.dumps(f"Derived from {derivation.origin}")
    return "@rule(\n" + "".join(f"    {name}={value},\n" for name, value in traits.items()) + ")"


def _param(symbol: Parameter) -> str:
    start, low, high = (float(one) for one in (symbol.start, symbol.low, symbol.high))
    return f'"{symbol.name}": Param({start!r}, low={low!r}, high={high!r}, closed="both")'


def _rounded_down(m: Fraction) -> str:
    return repr(float(m) if Fraction(float(m)) <= m else math.nextafter(float(m), 0.0))


def _function(derivation: Derivation) -> list[str]:
    params, memory = _symbols(derivation, Parameter), _symbols(derivation, StateSymbol)
    names = (["ell"] if derivation.recursive else []) + [symbol.name for symbol in memory]
    start = (["1.0 / sqrt(sq_x)"] if derivation.recursive else []) + [symbol.name for symbol in memory]
    lines = [f"def {derivation.name}(margin, sq_w, sq_x, coef_sum, state, params):"]
    if names:
        lines.append(f"    {', '.join(names)}{',' if len(names) == 1 else ''} = state")
    lines += ["    if coef_sum == 0.0:  # the first example", f"        return 0.0, 1.0, {_tuple(start)}"]
    lines += [f"    {symbol.name} = params.{symbol.name}" for symbol in params]
    lines += ["    norm_w = sqrt(sq_w)", "    g = margin / norm_w"]
    if not derivation.recursive:
        lines.append("    ell = coef_sum / norm_w")
    lines += _guards(derivation)
    if derivation.when:
        lines += [f"    if not ({_joined(derivation.when)}):", "        return 1.0, 0.0, state"]
    for case in derivation.cases:
        lines += _case(derivation, case, memory)
    if derivation.cases[-1].conditions:
        lines.append("    return 1.0, 0.0, state")
    return lines


def _guards(derivation: Derivation) -> list[str]:
    """Return what a rule needs whose radicand is 0 for parallel examples, as that of Lemma 1 is."""
    phi = recognise(derivation.bound) if derivation.bound is not None else None
    if phi is None or sp.simplify(reduced(phi.s - phi.q * phi.t**2).subs(c, -1)) != 0:
        return []
    return [
        "    cosine = g / sqrt(sq_x)",
        f"    if 1.0 + cosine <= {PARALLEL_TOLERANCE}:  # antiparallel: nothing separates",
        "        return 1.0, 0.0, state",
        f"    ell = min(ell, {LARGEST_BOUND} / sqrt(sq_x))  # beyond it, the margin is below rounding",
    ]


def _case(derivation: Derivation, case: Case, memory: list[StateSymbol]) -> list[str]:
    """Return the lines of one case."""
    after = [_code(derivation.next_state.get(symbol, symbol)) for symbol in memory]
    body: list[str]
    if case.step == 0:
        body = ["return 1.0, 0.0, state"]
    elif case.step == NUMERIC:
        body = _numeric_body(derivation, after)
    else:
        if derivation.recursive:
            after.insert(0, f"sqrt({_code(derivation.next_sq(case))})")
        step = "0.0, 1.0" if case.step == sp.oo else f"1.0, norm_w * {_factor(case.step)}"
        body = [f"return {step}, {_tuple(after)}"]
    if not case.conditions:
        return [f"    {line}" for line in body]
    return [f"    if {_joined(case.conditions)}:", *(f"        {line}" for line in body)]


def _numeric_body(derivation: Derivation, after: list[str]) -> list[str]:
    arguments = [symbol.name for kind in (Parameter, StateSymbol) for symbol in _symbols(derivation, kind)]
    norm_x = "sqrt(sq_x)"
    lines = [f"z = best_step({', '.join([f'ell * {norm_x}', f'g / {norm_x}', *arguments])})"]
    lines += ["if z == 0.0:", "    return 1.0, 0.0, state", "if z == inf:", f"    return 0.0, 1.0, {_tuple(after)}"]
    return [*lines, f"return 1.0, norm_w * z / {norm_x}, {_tuple(after)}"]


def _tuple(values: list[str]) -> str:
    return f"({', '.join(values)}{',' if len(values) == 1 else ''})"


def _joined(conditions: Any) -> str:
    return " and ".join(_code(one).removeprefix("(").removesuffix(")") for one in conditions)


def _factor(expression: sp.Expr) -> str:
    code = _code(expression)
    return f"({code})" if expression.is_Add or expression.is_Mul else code


def _code(expression: Any) -> str:
    return str(sp.pycode(sp.sympify(expression, strict=True), fully_qualified_modules=False))
