"""A user's rules, compiled by Numba's public `cfunc`; without Numba they are called as Python."""

from __future__ import annotations

import inspect
import math
import re
import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maxcosine import core, framework

if TYPE_CHECKING:
    from maxcosine.rules.rule import Rule


class SlowRuleWarning(UserWarning):
    """A user's rule is called as Python, because Numba is not installed."""


_compiled: dict[tuple[Callable[..., Any], tuple[str, ...], tuple[str, ...]], core.RuleFunction] = {}


def compile_rule(rule: Rule) -> core.RuleFunction:
    """What the core calls for a rule that is written in Python."""
    if find_spec("numba") is None:
        warnings.warn(
            f"rule {rule.name!r} runs as plain Python, which is slow; "
            "install Numba to compile it: pip install 'maxcosine[rules]'",
            SlowRuleWarning,
            stacklevel=3,
        )

        def step(margin: float, sq_w: float, sq_x: float, coef_sum: float, state: Any, params: Any) -> Any:
            return rule.function(margin, sq_w, sq_x, coef_sum, state, rule.Params(*params))

        return core.python_rule(step, len(rule.state), len(rule.params))
    # Rules that differ in the defaults of their parameters share their code.
    key = rule.function, tuple(rule.state), tuple(rule.params)
    if key not in _compiled:
        _compiled[key] = _numba_rule(rule)
    return _compiled[key]


def _numba_rule(rule: Rule) -> core.RuleFunction:
    import numba

    for function in (framework.phi, framework.cosine_bound, framework.maximise, *_helpers(rule.function)):
        _make_callable(function)
    double, pointer = numba.types.float64, numba.types.CPointer(numba.types.float64)
    signature = numba.types.void(double, double, double, double, pointer, pointer, pointer, numba.types.voidptr)
    step = numba.njit(rule.function, error_model="numpy")
    numbers = rule.Params(*[0.0] * len(rule.params))
    try:
        # The step alone first: errors then have their places in the user's file.
        step.compile((double,) * 4 + (numba.types.Tuple([double] * len(rule.state)), numba.typeof(numbers)))
    except Exception as error:  # of Numba, and of whatever it looked at
        raise TypeError(_one_line(rule, error)) from None
    _check_returned(rule, step.nopython_signatures[0].return_type)
    compiled = numba.cfunc(signature, error_model="numpy")(_adapter(rule, step, numba.njit))
    return core.rule_at_address(compiled.address, compiled)


@cache
def _make_callable(function: Callable[..., Any]) -> None:
    """Let compiled functions call a Python function, which is compiled with them."""
    import numba

    numba.extending.register_jitable(function)


def _helpers(function: Callable[..., Any]) -> set[Callable[..., Any]]:
    """The functions of the same module that a function calls, and those that they call."""
    found: set[Callable[..., Any]] = set()
    waiting = [function]
    while waiting:
        used = inspect.getclosurevars(waiting.pop())
        for value in (*used.globals.values(), *used.nonlocals.values()):
            if inspect.isfunction(value) and value.__module__ == function.__module__ and value not in found:
                found.add(value)
                waiting.append(value)
    return found


def _check_returned(rule: Rule, returned: Any) -> None:
    """Refuse a rule that returns something else than (keep, add, state)."""
    from numba import types

    where = f"{_place(rule)}: rule {rule.name!r}"
    is_triple = isinstance(returned, types.BaseTuple) and len(returned) == 3
    if not is_triple or not isinstance(returned[2], types.BaseTuple):
        raise TypeError(
            f"{where} does not return (keep, add, state) in every branch; return two numbers, and a tuple of as many "
            "numbers as its state has"
        )
    if len(returned[2]) != len(rule.state):
        raise TypeError(
            f"{where} declares {len(rule.state)} numbers of state and returns {len(returned[2])}; return one number "
            "for each that it declares"
        )


def _adapter(rule: Rule, step: Any, njit: Any) -> Callable[..., None]:
    """The rule under the signature of the core: its state and parameters are read from memory."""
    Params = rule.Params
    read_state = _reader(len(rule.state), njit)
    read_params = _reader(len(rule.params), njit)
    is_finite = _finiteness(len(rule.state), njit)
    write_state = _writer(len(rule.state), njit)

    def adapter(
        margin: float, sq_w: float, sq_x: float, coef_sum: float, state: Any, params: Any, move: Any, context: Any
    ) -> None:
        keep, add, after = step(margin, sq_w, sq_x, coef_sum, read_state(state), Params(*read_params(params)))
        # No NaN may enter a model by way of the state: without a move, the engine refuses the step.
        if is_finite(after):
            write_state(state, after)
            move[0] = keep
            move[1] = add

    return adapter


# Numba needs the length of a tuple at compile time, so each of these adds one element to a shorter one.


def _reader(n: int, njit: Any) -> Any:
    """A compiled function that reads n numbers into a tuple."""
    if n == 0:
        return njit(lambda numbers: ())
    read_shorter, last = _reader(n - 1, njit), n - 1
    return njit(lambda numbers: read_shorter(numbers) + (numbers[last],))  # noqa: RUF005, Numba needs +


def _finiteness(n: int, njit: Any) -> Any:
    """A compiled function that says whether all n elements of a tuple are finite."""
    if n == 0:
        return njit(lambda values: True)
    shorter_is_finite, last = _finiteness(n - 1, njit), n - 1
    return njit(lambda values: shorter_is_finite(values) and abs(values[last]) < math.inf)


def _writer(n: int, njit: Any) -> Any:
    """A compiled function that writes the n elements of a tuple to memory."""
    if n == 0:
        return njit(lambda numbers, values: None)
    write_shorter, last = _writer(n - 1, njit), n - 1

    def write(numbers: Any, values: Any) -> None:
        write_shorter(numbers, values)
        numbers[last] = values[last]

    return njit(write)


def _one_line(rule: Rule, error: Exception) -> str:
    """Where and why a rule cannot be compiled, without Numba's traceback."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reasons = [line for line in lines if not line.startswith(("Failed in", "During"))] or [type(error).__name__]
    reason = reasons[0].removesuffix("Raised from None").rstrip(". ")
    if reason.endswith(":") and len(reasons) > 1:  # "No implementation of function ... found for signature:"
        reason = f"{reason} {reasons[1].removeprefix('>>> ')}"
    place = re.search(rf'{re.escape(Path(rule.function.__code__.co_filename).name)}", line ([0-9]+)', text)
    line = getattr(getattr(error, "loc", None), "line", int(place[1]) if place else None)
    return (
        f"{_place(rule, line)}: rule {rule.name!r} cannot be compiled: {reason}; a rule may use numbers, its state and "
        "parameters, functions of its own file, the math module and NumPy's scalar functions, and returns the same "
        "kinds of values in every branch"
    )


def _place(rule: Rule, line: int | None = None) -> str:
    """A line of the file that a rule is written in; by default, the one where the rule begins."""
    code = rule.function.__code__
    return f"{code.co_filename}:{code.co_firstlineno if line is None else line}"
