"""What a rule is: a pure scalar function, its parameters, its state, and what is known of it.

A rule decides one step, w <- keep * w + add * y * x, from scalars alone. It never sees w: the engine owns the
weights, tracks norm(w)^2 and Lambda for every rule, and so certifies each of them.
"""

from __future__ import annotations

import math
import sys
from collections import namedtuple
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from numbers import Real
from types import MappingProxyType
from typing import Any

from maxcosine import core
from maxcosine.framework import ell

Step = Callable[..., tuple[float, float, tuple[float, ...]]]

# The range of numbers that scale steps: outside, squares of weights leave the range of float64.
SMALLEST_FACTOR, LARGEST_FACTOR = 1e-12, 1e12


@dataclass(frozen=True)
class Param:
    """A parameter of a rule: its default, its meaning and the interval it must lie in.

    Parameters
    ----------
    default : float or callable
        A number, or a function of the parameters before it.
    doc : str
        What the parameter means.
    low, high : float
        The ends of its interval.
    closed : {"neither", "left", "right", "both"}
        Which ends belong to the interval.

    Examples
    --------
    >>> from maxcosine import Param
    >>> 0.5 in Param(1.0, low=0.0, high=1.0, closed="right")
    True
    """

    default: float | Callable[[Mapping[str, float]], float]
    doc: str = ""
    low: float = -math.inf
    high: float = math.inf
    closed: str = "neither"

    def __contains__(self, value: float) -> bool:
        above = value >= self.low if self.closed in ("left", "both") else value > self.low
        below = value <= self.high if self.closed in ("right", "both") else value < self.high
        return above and below

    @classmethod
    def factor(cls, default: float | Callable[[Mapping[str, float]], float], doc: str) -> Param:
        """A positive number that multiplies steps or margins."""
        return cls(default, doc, SMALLEST_FACTOR, LARGEST_FACTOR, closed="both")

    @property
    def interval(self) -> str:
        """The interval as it is written in messages."""
        left = "[" if self.closed in ("left", "both") else "("
        right = "]" if self.closed in ("right", "both") else ")"
        return f"{left}{self.low:g}, {self.high:g}{right}"


@dataclass(frozen=True, eq=False, repr=False)
class Rule:
    """A perceptron-like rule; make one with the decorator :func:`rule`.

    Call it as the plain function that it was written as:
    ``rule(margin, sq_w, sq_x, coef_sum, state, params) -> (keep, add, state)``.

    Parameters
    ----------
    name : str
        The name of the function.
    function : callable
        The rule as a plain function.
    params : mapping of str to Param
        Its parameters.
    state : mapping of str to float
        What it remembers, with the values at the start.
    conservative : bool
        It moves on mistakes only.
    scale_free : bool
        The length of w means nothing: from c w and c Lambda it moves to the same direction, and to the same
        Lambda / norm(w), as from w and Lambda.
    scale_invariant : bool
        Scaling all examples by one constant changes no prediction.
    restarts : bool
        It may return keep = 0 after its start; the engine then logs which weights it wrote.
    own_bound : callable, optional
        ``(state, sq_w, coef_sum) -> ell``, the bound that the rule's mistake budget rests on: it never falls, and a
        mistake raises its square by at least gain / norm(x)^2.
    gain : float, optional
        On examples of norm at most R that a separator of margin gamma separates, the rule makes at most
        (1 / gain) (R / gamma)^2 mistakes from its start on, in real arithmetic. None if no such bound is proven;
        with `own_bound` it is 1 unless given.
    restart_state : callable, optional
        ``(sq_w, coef_sum) -> state`` for a merged hypothesis; without it, the mean of the states.
    restart_norm : callable, optional
        ``ell -> norm(w)``, where the rule ties the length of a merged hypothesis to its bound.
    check : callable, optional
        ``params -> problem or None``, for conditions on several parameters.
    reference : str
        Where the rule is from.
    builtin : bool
        Whether the core has it.

    Examples
    --------
    >>> from maxcosine import RULES
    >>> perceptron = RULES["perceptron"]
    >>> perceptron(-0.5, 1.0, 2.0, 1.0, (), ())
    (1.0, 1.0, ())
    """

    name: str
    function: Step
    params: Mapping[str, Param]
    state: Mapping[str, float]
    conservative: bool = False
    scale_free: bool = False
    scale_invariant: bool = False
    restarts: bool = False
    own_bound: Callable[[Any, float, float], float] | None = None
    gain: float | None = None
    restart_state: Callable[[float, float], tuple[float, ...]] | None = None
    restart_norm: Callable[[float], float] | None = None
    check: Callable[[Any], str | None] | None = None
    reference: str = ""
    builtin: bool = False

    def __post_init__(self) -> None:
        # A rule is documented, and found by pickle, as its function is.
        vars(self).update(__doc__=self.function.__doc__, __module__=self.function.__module__)
        if self.gain is None:
            vars(self).update(gain=1.0 if self.own_bound else None)
        elif not (isinstance(self.gain, Real) and 0.0 < self.gain <= 1.0):
            raise ValueError(
                f"gain={self.gain!r} of rule {self.name!r} must be above 0 and at most 1; give the m of its proven "
                "mistake bound (1 / m) (R / gamma)^2, or leave it out if there is none"
            )

    def __call__(self, *given: Any) -> tuple[float, float, tuple[float, ...]]:
        return self.function(*given)

    def __repr__(self) -> str:
        return f"<rule {self.name!r}>"

    # A rule is a value: copies are the rule itself, and a pickle refers to it by name.
    def __copy__(self) -> Rule:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Rule:
        return self

    def __reduce__(self) -> Any:
        module = self.function.__module__
        if module in sys.modules and module != "__main__":
            return self.name
        # A worker process has another __main__, and cannot import a file that was run by its path, so the rule travels
        # by value. That needs a pickler that can send functions, such as the cloudpickle of joblib, Dask and Spark.
        traits = {field.name: getattr(self, field.name) for field in fields(self)}
        return _unpickle, ({**traits, "params": dict(self.params), "state": dict(self.state)},)

    @cached_property
    def Params(self) -> Any:
        """The named tuple of its parameters."""
        return namedtuple("Params", tuple(self.params))

    @cached_property
    def compiled(self) -> core.RuleFunction:
        """What the core calls for each step."""
        if self.builtin:
            return core.builtin_rule(self.name)
        from maxcosine.rules.compiling import compile_rule  # Numba takes half a second

        return compile_rule(self)

    def make_params(self, values: Mapping[str, float] | None = None) -> Any:
        """The parameters, checked, with `values` replacing their defaults."""
        values = dict(values or {})
        unknown = sorted(set(values) - set(self.params))
        if unknown:
            known = ", ".join(self.params) or "none"
            raise ValueError(f"rule {self.name!r} has no parameter {unknown[0]!r}; its parameters: {known}")
        numbers: dict[str, float] = {}
        for name, param in self.params.items():
            default = param.default(numbers) if callable(param.default) else param.default
            try:
                numbers[name] = float(values.get(name, default))
            except (TypeError, ValueError):
                raise ValueError(
                    f"parameter {name}={values[name]!r} of rule {self.name!r} is not a number; "
                    f"choose it in {param.interval}"
                ) from None
            if numbers[name] not in param:
                raise ValueError(
                    f"parameter {name}={numbers[name]:g} of rule {self.name!r} is out of range; "
                    f"choose it in {param.interval}"
                )
        chosen = self.Params(**numbers)
        problem = self.check(chosen) if self.check else None
        if problem:
            raise ValueError(f"parameters of rule {self.name!r}: {problem}")
        return chosen

    def with_params(self, values: Mapping[str, float]) -> Rule:
        """The same rule with other defaults of its parameters; the rule itself if there are none."""
        if not values:
            return self
        self.make_params(values)
        changed = {name: replace(self.params[name], default=float(value)) for name, value in values.items()}
        return replace(self, params=MappingProxyType({**self.params, **changed}))

    def initial_state(self) -> tuple[float, ...]:
        """The state before the first step."""
        return tuple(self.state.values())

    def restart(self, sq_w: float, coef_sum: float, mean_state: tuple[float, ...] | None = None) -> tuple[float, ...]:
        """The state for a merged hypothesis: from `restart_state`, or the mean of the states, or that at the start."""
        if self.restart_state is not None:
            return self.restart_state(sq_w, coef_sum)
        return self.initial_state() if mean_state is None else mean_state


def rule(
    function: Step | None = None,
    *,
    params: Mapping[str, float | Param] | None = None,
    state: Mapping[str, float] | None = None,
    **traits: Any,
) -> Any:
    """Make a rule of a function ``(margin, sq_w, sq_x, coef_sum, state, params)``.

    The function returns ``(keep, add, state)`` for the step w <- keep * w + add * y * x, with keep >= 0 and
    add >= 0. Numba compiles it on first use, so it may use numbers, `math`, NumPy's scalar functions and
    :func:`maxcosine.maximise`; without Numba it is called as Python, which is slow.

    Parameters
    ----------
    function : callable
        The step. `margin` is y (w.x), `sq_w` and `sq_x` are squared norms, and `coef_sum` is Lambda, which is 0
        before the first step.
    params : mapping of str to float or Param
        The parameters, each with its default value or as a :class:`Param`.
    state : mapping of str to float
        The numbers that the rule remembers, with their values at the start.
    **traits : Any
        What is known of the rule, as :class:`Rule` names it.

    Returns
    -------
    Rule
        The rule, for example for :class:`maxcosine.OnlineClassifier`.

    Examples
    --------
    >>> from maxcosine import rule
    >>> @rule(params={"target": 0.1})
    ... def hinge(margin, sq_w, sq_x, coef_sum, state, params):
    ...     return 1.0, (1.0 / sq_x if margin <= params.target else 0.0), state
    >>> hinge(0.0, 0.0, 4.0, 0.0, (), hinge.make_params())
    (1.0, 0.25, ())
    """
    if function is None:
        return lambda f: rule(f, params=params, state=state, **traits)
    if not function.__name__.isidentifier():
        raise TypeError(f"a rule needs a name: define it with def, not as {function.__name__}")
    if function.__module__ == "__main__" and not function.__qualname__.endswith(".function"):
        # Where pickle finds the function now that its name means the rule.
        function.__qualname__ += ".function"
    described = {k: p if isinstance(p, Param) else Param(float(p)) for k, p in (params or {}).items()}
    return Rule(function.__name__, function, MappingProxyType(described), MappingProxyType(dict(state or {})), **traits)


def _unpickle(traits: dict[str, Any]) -> Rule:
    """A rule that was pickled by value; the one in this process, if it is here already."""
    here = getattr(sys.modules.get(traits["function"].__module__), traits["name"], None)
    if isinstance(here, Rule) and here.function is traits["function"]:
        return here
    params, state = MappingProxyType(traits["params"]), MappingProxyType(traits["state"])
    return Rule(**{**traits, "params": params, "state": state})


def bound_of(sq_w: float, coef_sum: float) -> float:
    """ell = Lambda / norm(w), and 0 for w = 0."""
    return float(ell(coef_sum, math.sqrt(sq_w)))


def exact_bound(state: Any, sq_w: float, coef_sum: float) -> float:
    """The own bound of rules whose recursion is exact: ell itself."""
    return bound_of(sq_w, coef_sum)


def recursion_bound(state: Any, sq_w: float, coef_sum: float) -> float:
    """The own bound of rules that keep the paper's recursion as the first number of their state (Theorem 10)."""
    return float(state[0])


def restart_recursion(sq_w: float, coef_sum: float) -> tuple[float, ...]:
    """The state of such a rule for a merged hypothesis: the recursion continues from what is proven of it."""
    return (bound_of(sq_w, coef_sum),)
