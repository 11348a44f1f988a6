"""Fitted classifiers in files: a model file that also says which class it is of, and its parameters."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maxcosine import model_file
from maxcosine.model import Model
from maxcosine.model_file import Checker, rule_called, shown
from maxcosine.rules.rule import Rule


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to a file: what it has learnt, its class and its parameters.

    Parameters
    ----------
    estimator : a fitted classifier of maxcosine
    path : the file; one that is there is replaced in one moment, at the end

    Examples
    --------
    >>> import tempfile, maxcosine
    >>> learner = maxcosine.MCPClassifier().fit([[2.0, 0.0], [0.0, 1.0]], ["right", "up"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     maxcosine.save(learner, f"{folder}/model.safetensors")
    ...     maxcosine.load(f"{folder}/model.safetensors").predict([[1.0, 0.0]]).tolist()
    ['right']
    """
    kind = type(estimator)
    if _estimators().get(kind.__name__) is not kind:
        raise TypeError(
            f"a {kind.__name__} is no classifier of maxcosine; save its model with maxcosine.model_file.save"
        )
    model = estimator._model_or_error()
    estimator._validate_params()
    params = {name: _kept(value, name) for name, value in estimator.get_params(deep=False).items()}
    model_file.save(model, path, estimator={"class": kind.__name__, "params": params})


def load(path: str | os.PathLike[str], *, rules: Sequence[Rule] = ()) -> Any:
    """Read a fitted classifier, of the class that it was; of a file without one, an `OnlineClassifier`.

    Parameters
    ----------
    path : the file
    rules : rules of your own, one of which the model was learnt by
    """
    loaded = model_file.load(path, rules=rules)
    checker, classes = Checker(path), _estimators()
    if loaded.estimator is None:
        name, params = "OnlineClassifier", _params_of(loaded.model)
    else:
        name = checker.choice(loaded.estimator, "class", list(classes))
        said = checker.get(loaded.estimator, "params", dict)
        params = {key: _restored(checker, value, rules) for key, value in said.items()}
    unknown = sorted(set(params) - set(classes[name]._get_param_names()))
    if unknown:
        raise checker.bad(f"{name} has no parameter {shown(unknown[0])} in this version", "upgrade maxcosine")
    estimator = classes[name](**params)
    try:
        estimator._validate_params()
    except ValueError as error:
        raise checker.bad(str(error)) from None
    estimator._set_model(loaded.model)
    if loaded.model.features.names is not None:
        estimator.feature_names_in_ = loaded.model.features.names
    return estimator


def _estimators() -> dict[str, Any]:
    """The classes that a file may name."""
    from maxcosine import estimators

    return {name: getattr(estimators, name) for name in estimators.__all__ if name.endswith("Classifier")}


def _params_of(model: Model) -> dict[str, Any]:
    """The parameters of an `OnlineClassifier` that learns as this model was learnt."""
    rule, heads = model.rule, model.heads
    values = heads.arrays.params[0, : len(rule.params)].tolist()
    return {
        "rule": rule.name if rule.builtin else rule,
        "rule_params": dict(zip(rule.params, values, strict=True)) or None,
        "average": heads.average,
        "fit_intercept": heads.fit_intercept,
        "multiclass": model.multiclass,
    }


def _kept(value: Any, name: str) -> Any:
    """A parameter as JSON; a dict as pairs, for its keys may be numbers, and a rule by its name."""
    if isinstance(value, Rule):
        return {"rule": value.name, "own": not value.builtin}
    if isinstance(value, Mapping):
        return {"pairs": [[_plain(key, name), _plain(item, name)] for key, item in value.items()]}
    return _plain(value, name)


def _plain(value: Any, name: str) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"the parameter {name} holds {value}, which a model file cannot keep")
    if _is_plain(value):
        return value
    raise TypeError(
        f"the parameter {name} holds {shown(value)}, a {type(value).__name__}, which a model file cannot "
        f"keep; choose a number, a str or None with set_params({name}=...)"
    )


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float))


def _restored(checker: Checker, value: Any, rules: Sequence[Rule]) -> Any:
    if type(value) is dict and "rule" in value:
        own = checker.get(value, "own", bool)
        return rule_called(checker, checker.get(value, "rule", str), own, rules)
    pairs = checker.get(value, "pairs", list) if type(value) is dict else [[0, value]]
    if not all(type(pair) is list and len(pair) == 2 and all(map(_is_plain, pair)) for pair in pairs):
        raise checker.bad(f"a parameter of its estimator is kept as {shown(value)}")
    return dict(pairs) if type(value) is dict else value
