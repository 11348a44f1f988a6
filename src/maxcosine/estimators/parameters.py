"""Checks of the parameters that a classifier was constructed with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from maxcosine.model import MULTICLASS
from maxcosine.rules import RULES
from maxcosine.rules.rule import Param, Rule

if TYPE_CHECKING:
    from maxcosine.estimators.base import OnlineBase, StreamClassifier


class Check(NamedTuple):
    """A condition on a parameter, and how an error describes it."""

    holds: Callable[[Any], bool]
    expected: str


def is_a(*types: type) -> Check:
    """Return the check that a parameter has one of these types."""
    names = " or ".join("None" if kind is type(None) else f"an instance of {kind.__name__!r}" for kind in types)
    return Check(lambda value: isinstance(value, types), names)


def one_of(*options: str | None) -> Check:
    """Return the check that a parameter is one of these strings, or None."""
    return Check(
        lambda value: (value is None or isinstance(value, str)) and value in options,
        f"one of {', '.join(map(repr, options))}",
    )


def within(param: Param, *, optional: bool = False) -> Check:
    """Return the check that a parameter lies in the interval of a rule's parameter."""
    return Check(
        lambda value: (value is None and optional) or (isinstance(value, Real) and float(value) in param),
        f"a float in the range {param.interval}{' or None' if optional else ''}",
    )


def _is_random_state(value: Any) -> bool:
    try:
        check_random_state(value)
    except ValueError:
        return False
    return True


BOOL = Check(lambda value: isinstance(value, (bool, np.bool_)), "a bool")

SHARED: Mapping[str, Check] = {
    "average": BOOL,
    "fit_intercept": BOOL,
    "multiclass": one_of(*MULTICLASS),
    "probability": BOOL,
    "passes": Check(lambda value: isinstance(value, Integral) and int(value) >= 1, "an int in the range [1, inf)"),
    "shuffle": BOOL,
    "random_state": Check(_is_random_state, "an int in the range [0, 2**32), a RandomState or None"),
    "class_weight": Check(
        lambda value: value is None or isinstance(value, dict) or (isinstance(value, str) and value == "balanced"),
        "a dict, 'balanced' or None",
    ),
    "grow_features": BOOL,
    "dtype": one_of("float32", "float64", None),
    "n_jobs": is_a(Integral, type(None)),
    "verbose": Check(lambda value: isinstance(value, Integral) and int(value) >= 0, "an int of at least 0"),
}


def rule_checks(rule: str) -> dict[str, Check]:
    """Return the checks of the parameters of a built-in rule."""
    return {name: within(param) for name, param in RULES[rule].params.items()}


def check_parameters(estimator: StreamClassifier) -> None:
    """Raise ValueError for the first parameter that is not valid."""
    checks = {**SHARED, **estimator._checks}
    for name, value in estimator.get_params(deep=False).items():
        if name in checks and not checks[name].holds(value):
            raise ValueError(
                f"The {name!r} parameter of {type(estimator).__name__} must be {checks[name].expected}. "
                f"Got {value!r} instead."
            )


def rule_of(estimator: OnlineBase) -> tuple[Rule, Any]:
    """Return the rule of a classifier and the rule's parameters, checked."""
    rule, params = estimator._rule()
    return rule, rule.make_params(params)
