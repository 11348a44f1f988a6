"""Bounds, curves, conditions and their parameters, as options give them; nothing in them is ever evaluated."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from maxcosine.derive import Derivation

Bound = Annotated[
    str | None,
    typer.Argument(
        metavar="BOUND",
        help="The bound to maximise over x, for example '(ell + x)/sqrt(1 + sq_x*x**2)'.",
        show_default=False,
    ),
]
Step = Annotated[str | None, typer.Option(metavar="X", help="A step in closed form, instead of a bound.")]
Curve = Annotated[
    str | None,
    typer.Option(metavar="K", help="A curve k(v) in the band, instead of a bound: the step is k / (ell*sq_x)."),
]
Margins = Annotated[str | None, typer.Option(metavar="K", help="The curve on margins, 0 < v <= theta, if another.")]
Theta = Annotated[
    str | None, typer.Option(metavar="V", help="The largest v = ell*g at which a rule with --curve moves. (default: 0)")
]
When = Annotated[
    str | None, typer.Option(metavar="CONDITION", help="When the rule may move, for example 'g <= 1/(2*ell)'.")
]
Account = Annotated[
    Literal["exact", "paper"],
    typer.Option(
        help="ell after a step: Lemma 1 at the step that is taken, or the maximum of the bound as in the paper."
    ),
]
NextBound = Annotated[str | None, typer.Option(metavar="ELL", help="ell after a step, by a formula.")]
RuleName = Annotated[str, typer.Option(help="The name of the rule.")]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="NAME=DEFAULT[:LOW:HIGH]",
        help="A parameter in the expressions, and the interval for which claims are proven. (default: 0 to infinity)",
    ),
]

# Numbers are short: their powers are computed exactly.
_NUMBER = r"[-+]?(?:[0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})(?:[eE][-+]?[0-9]{1,2})?"
_VALUE = re.compile(rf"{_NUMBER}(?:/[1-9][0-9]{{0,17}})?")
MAX_VALUES = 500
_INFINITE = {"inf": math.inf, "+inf": math.inf, "-inf": -math.inf}


def derivation_of(
    bound: str | None = None,
    curve: str | None = None,
    margins: str | None = None,
    theta: str | None = None,
    step: str | None = None,
    when: str | None = None,
    account: str = "exact",
    next_bound: str | None = None,
    params: Sequence[str] = (),
    name: str = "derived",
) -> Derivation:
    """Return the derivation that texts ask for; a ValueError names the option that is wrong.

    Parameters
    ----------
    bound, step, curve : str, optional
        What the rule is made of; exactly one of them.
    margins, theta : str, optional
        With `curve`: the curve on margins, and the largest v at which the rule moves.
    when, next_bound : str, optional
        Without `curve`: when the rule may move, and the bound after a step.
    account : {"exact", "paper"}
        As for `derive`.
    params : sequence of str
        Parameters, each as NAME=DEFAULT or NAME=DEFAULT:LOW:HIGH.
    name : str
        The name of the rule.

    Returns
    -------
    Derivation
        The rule, and what is proven of it.
    """
    _check_options(bound=bound, step=step, curve=curve, given={"margins": margins, "theta": theta}, needs_curve=True)
    in_lengths = {"when": when, "next-bound": next_bound, "account": None if account == "exact" else account}
    _check_options(bound=bound, step=step, curve=curve, given=in_lengths, needs_curve=False)
    from maxcosine import derive as package

    symbols = parameters_of(params)
    made: Derivation
    if curve is not None:
        read = _reader({"v": package.v, **symbols})
        found = {"on_mistakes": read("--curve", curve), "on_margins": read("--margins", margins)}
        if theta is not None:
            found["theta"] = read("--theta", theta)
        made = _naming("--curve", package.curve, **found, name=name)
    else:
        lengths = {one.name: one for one in (package.x, package.ell, package.g, package.sq_x, package.norm_w)}
        read = _reader({**lengths, **symbols})
        given = {"bound": read("BOUND", bound), "step": read("--step", step), "account": account, "name": name}
        given["next_bound"] = read("--next-bound", next_bound)
        if when is not None:
            given["when"] = list(read("--when", when, package.parse_conditions))
        made = _naming("BOUND" if step is None else "--step", package.derive, **given)
    _refuse_unused(symbols, made)
    return made


def parameters_of(texts: Sequence[str]) -> dict[str, Any]:
    """Return the symbols of parameters, by name, from NAME=DEFAULT or NAME=DEFAULT:LOW:HIGH."""
    from maxcosine.derive import param

    found: dict[str, Any] = {}
    for text in texts:
        name, _, interval = text.partition("=")
        numbers = [_number(one) for one in interval.split(":")]
        if not name or None in numbers or len(numbers) not in (1, 3):
            raise ValueError(
                f"--param {_shortened(text)}: write NAME=DEFAULT or NAME=DEFAULT:LOW:HIGH, for example a=1:0:4"
            )
        if name in found:
            raise ValueError(f"--param {text}: {name} is given twice; leave out one of them")
        found[name] = _naming(f"--param {_shortened(text)}", param, name, *numbers)
    return found


def grid_of(texts: Sequence[str]) -> dict[str, list[Any]]:
    """Return the values of each parameter to try, from NAME=V,V,... or NAME=LOW:HIGH:COUNT."""
    from maxcosine.derive.symbols import exact

    found: dict[str, list[Any]] = {}
    for text in texts:
        name, _, values = text.partition("=")
        low, _, rest = values.partition(":")
        high, _, count = rest.partition(":")
        numbers = [_number(one) for one in ([low, high] if rest else values.split(","))]
        wrong = not name or any(not isinstance(one, str) for one in numbers)
        if wrong or (rest and not (count.isdecimal() and 2 <= int(count) <= MAX_VALUES)):
            raise ValueError(
                f"--grid {_shortened(text)}: write NAME=VALUE,VALUE,... or NAME=LOW:HIGH:COUNT, for example a=0:4:9"
            )
        if name in found:
            raise ValueError(f"--grid {text}: {name} is given twice; leave out one of them")
        found[name] = [exact(one) for one in numbers]
        if rest:
            (first, last), steps = found[name], int(count) - 1
            found[name] = [first + (last - first) * k / steps for k in range(steps + 1)]
    return found


def _number(text: str) -> str | float | None:
    text = text.strip()
    return text if _VALUE.fullmatch(text) else _INFINITE.get(text)


def _check_options(
    *, bound: str | None, step: str | None, curve: str | None, given: Mapping[str, str | None], needs_curve: bool
) -> None:
    """Refuse options that contradict one another."""
    if sum(one is not None for one in (bound, step, curve)) != 1:
        raise ValueError("give one of BOUND, --step and --curve, for example '(ell + x)/sqrt(1 + sq_x*x**2)'")
    wrong = [option for option, text in given.items() if text is not None and needs_curve != (curve is not None)]
    if wrong:
        advice = "goes with --curve only; a bound or a step has --when" if needs_curve else "does not go with --curve"
        raise ValueError(f"--{wrong[0]} {advice}")


def _reader(names: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a function that parses the text of an option; an error names the option."""
    from maxcosine.derive import parse_expression

    def read(option: str, text: str | None, parse: Callable[..., Any] = parse_expression) -> Any:
        return None if text is None else _naming(f"{option} {_shortened(text)!r}", parse, text, names)

    return read


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


def _naming(option: str, make: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """Call a function whose errors are about an option."""
    try:
        return make(*given, **named)
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from None


def _refuse_unused(symbols: Mapping[str, Any], made: Derivation) -> None:
    used = {one.name for one in made.parameters}
    unused = [name for name in symbols if name not in used]
    if unused:
        raise ValueError(f"--param {unused[0]}: no expression contains {unused[0]}; leave it out")
