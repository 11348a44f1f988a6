"""What a rule is: a pure scalar function, its parameters, its state, and what is known of it.

A rule decides one step, w <- keep * w + add * y * x, from scalars alone. It never sees w: the
engine owns the weights, tracks norm(w)^2 and Lambda for every rule, and so certifies each of them.
"""

from __future__ import annotations

import math
import sys
from collections import namedtuple
from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from maxcosine.compiled import JIT_ENABLED, Callback, compile_callback, helper
from maxcosine.record import Record

# One machine signature for every rule, so that one compiled engine serves them all:
# (margin, sq_w, sq_x, coef_sum, state, params, move); state and move are written.
STEP_SIGNATURE = {"doubles": 4, "pointers": 3}

Step = Callable[..., tuple[float, float, tuple[float, ...]]]


# Numbers that scale steps: beyond these, squares of weights leave the range of float64.
SMALLEST_FACTOR, LARGEST_FACTOR = 1e-12, 1e12


class Param(Record, frozen=True):
    """A parameter of a rule: its default, its meaning and the interval it must lie in."""

    default: float | Callable[[Mapping[str, float]], float]
    """A number, or a function of the parameters before it."""
    doc: str = ""
    low: float = -math.inf
    high: float = math.inf
    closed: str = "neither"
    """Which ends belong to the interval: "neither", "left", "right" or "both"."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Param) and self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        return hash(tuple(self.as_dict().values()))

    def __contains__(self, value: float) -> bool:
        above = value >= self.low if self.closed in ("left", "both") else value > self.low
        below = value <= self.high if self.closed in ("right", "both") else value < self.high
        return bool(above and below)

    @classmethod
    def factor(cls, default: float | Callable[[Mapping[str, float]], float], doc: str) -> Param:
        """A positive number that steps or margins are multiplied by."""
        return cls(default, doc, SMALLEST_FACTOR, LARGEST_FACTOR, closed="both")

    @property
    def interval(self) -> str:
        left = "[" if self.closed in ("left", "both") else "("
        right = "]" if self.closed in ("right", "both") else ")"
        return f"{left}{self.low:g}, {self.high:g}{right}"


class Rule(Record, frozen=True):
    """A perceptron-like rule; make one with the decorator :func:`rule`.

    Call it as the plain Python function it was written as:
    ``rule(margin, sq_w, sq_x, coef_sum, state, params) -> (keep, add, state)``.
    """

    name: str
    function: Step
    params: Mapping[str, Param]
    state: Mapping[str, float]
    conservative: bool = False
    """It moves on mistakes only."""
    scale_free: bool = False
    """The length of w means nothing: from c w and c Lambda it moves to the same direction, and to the
    same Lambda / norm(w), as from w and Lambda."""
    scale_invariant: bool = False
    """Scaling all examples by one constant changes no prediction."""
    restarts: bool = False
    """It may return keep = 0 after its start; the engine then remembers what it wrote."""
    own_bound: Callable[[Any, float, float], float] | None = None
    """``(state, sq_w, coef_sum) -> ell``, the bound that the rule's mistake budget rests on."""
    restart_state: Callable[[float, float], tuple[float, ...]] | None = None
    """``(sq_w, coef_sum) -> state`` for a hypothesis that was merged; else the mean of the states."""
    restart_norm: Callable[[float], float] | None = None
    """``ell -> norm(w)``, where the rule ties the length of a merged hypothesis to its bound."""
    check: Callable[[Any], str | None] | None = None
    """``params -> problem or None``, for conditions on several parameters."""
    reference: str = ""
    """Where the rule is from."""

    def __post_init__(self) -> None:
        vars(self).update(__doc__=self.function.__doc__, __module__=self.function.__module__)

    def __call__(
        self,
        margin: float,
        sq_w: float,
        sq_x: float,
        coef_sum: float,
        state: tuple[float, ...],
        params: tuple[float, ...],
    ) -> tuple[float, float, tuple[float, ...]]:
        return self.function(margin, sq_w, sq_x, coef_sum, state, params)

    def __repr__(self) -> str:
        return f"<rule {self.name!r}>"

    # A rule is a value: copies are itself, and a pickle names it where it was defined.
    def __copy__(self) -> Rule:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Rule:
        return self

    def __reduce__(self) -> Any:
        if self.function.__module__ != "__main__":
            return self.name
        # A worker process has another __main__: there the rule travels by value, where the pickler
        # (cloudpickle, as joblib uses it) can send functions.
        traits = {**self.as_dict(), "params": dict(self.params), "state": dict(self.state)}
        return _arrived, (traits,)

    @cached_property
    def Params(self) -> Any:
        return namedtuple("Params", tuple(self.params))

    def make_params(self, values: Mapping[str, float] | None = None) -> Any:
        """The parameters with `values` in place of their defaults, each checked."""
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

    def initial_state(self) -> tuple[float, ...]:
        return tuple(self.state.values())

    def restart(
        self, sq_w: float, coef_sum: float, mean_state: tuple[float, ...] | None = None
    ) -> tuple[float, ...]:
        """The rule's own state for a hypothesis that it did not learn itself, after a merge.

        Rules that do not say how go on with the mean of the states, or, without one, from the start.
        """
        if self.restart_state is not None:
            return self.restart_state(sq_w, coef_sum)
        return self.initial_state() if mean_state is None else mean_state

    @cached_property
    def entry(self) -> Any:
        """What the engine calls: the machine address of the compiled step, or plain Python."""
        adapter = self._adapter(helper(self.function))
        if not JIT_ENABLED:
            return adapter
        # What the machine code depends on beside the function: how its arguments are put together.
        key = f"{self._adapter_source}, {list(self.params)}" if self.builtin else None
        try:
            callback = compile_callback(adapter, key=key, **STEP_SIGNATURE)
        except Exception as error:  # Numba has many, not all of one family
            raise TypeError(
                f"rule {self.name!r} could not be compiled. A rule may use numbers, its state and "
                "parameters, the math module and NumPy's scalar functions, and returns the same "
                f"kinds of values in every branch.\n{error}"
            ) from error
        self._callbacks.append(callback)  # the machine code lives as long as this object
        return callback.address

    @cached_property
    def _callbacks(self) -> list[Callback]:
        return []

    @property
    def builtin(self) -> bool:
        return self.function.__module__.startswith("maxcosine.rules.")

    @property
    def _adapter_source(self) -> str:
        """Written as source, as namedtuple does it, because its length depends on the fields."""
        state = "".join(f"state[{i}], " for i in range(len(self.state)))
        params = "".join(f"params[{i}], " for i in range(len(self.params)))
        names = [f"s{i}" for i in range(len(self.state))]
        unpack = f"    ({', '.join(names)},) = after\n" if names else ""
        store = "".join(f"    state[{i}] = {name}\n" for i, name in enumerate(names))
        # No NaN may enter a model by way of the state: refused as a step that is none.
        finite = " and ".join([f"abs({name}) < inf" for name in names] or ["True"])
        return (
            f"def {self.function.__name__}_adapter(margin, sq_w, sq_x, coef_sum, state, params, move):\n"
            f"    keep, add, after = step(margin, sq_w, sq_x, coef_sum,"
            f" ({state}), {f'Params({params})' if params else '()'})\n"
            f"{unpack}"
            f"    if {finite}:\n"
            f"        move[0] = keep\n"
            f"        move[1] = add\n"
            f"{store}"
        )

    def _adapter(self, step: Step) -> Callable[..., None]:
        """A function of STEP_SIGNATURE that calls `step` with its tuples.

        It claims the rule's own file, where errors are then looked for.
        """
        namespace: dict[str, Any] = {
            "step": step,
            "Params": self.Params,
            "inf": math.inf,
            "__name__": self.function.__module__,
        }
        exec(compile(self._adapter_source, self.function.__code__.co_filename, "exec"), namespace)
        adapter: Callable[..., None] = namespace[f"{self.function.__name__}_adapter"]
        return adapter


def rule(
    function: Step | None = None,
    *,
    params: Mapping[str, float | Param] | None = None,
    state: Mapping[str, float] | None = None,
    **traits: Any,
) -> Any:
    """Make a rule of a function ``(margin, sq_w, sq_x, coef_sum, state, params)``.

    The function returns ``(keep, add, state)``, for the step w <- keep * w + add * y * x, with
    keep >= 0 and add >= 0. It is compiled when it is first used, so it may use numbers, `math`
    and NumPy's scalar functions. `coef_sum` is Lambda; 0 means that nothing has been learnt yet.

    Parameters
    ----------
    params : the parameters by name, each a default value or a :class:`Param`
    state : the numbers the rule remembers, by name, with their values at the start
    traits : what is known of the rule, as :class:`Rule` names it: `conservative`, `scale_free`,
        `scale_invariant`, `restarts`, `own_bound`, `restart_state`, `restart_norm`,
        `check`, `reference`

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
        # Where pickle finds the function once its own name means the rule.
        function.__qualname__ += ".function"
    described = {k: p if isinstance(p, Param) else Param(float(p)) for k, p in (params or {}).items()}
    return Rule(
        name=function.__name__,
        function=function,
        params=MappingProxyType(described),
        state=MappingProxyType(dict(state or {})),
        **traits,
    )


def _arrived(traits: dict[str, Any]) -> Rule:
    """A rule that came by value; the same one again, if it was here already."""
    here = getattr(sys.modules[traits["function"].__module__], traits["name"], None)
    if isinstance(here, Rule) and here.function is traits["function"]:
        return here
    params, state = MappingProxyType(traits["params"]), MappingProxyType(traits["state"])
    return Rule(**{**traits, "params": params, "state": state})


def hull_bound(state: Any, sq_w: float, coef_sum: float) -> float:
    """ell = Lambda / norm(w): the own bound of the rules whose recursion is exact."""
    return float(coef_sum / np.sqrt(sq_w)) if sq_w > 0.0 else 0.0
