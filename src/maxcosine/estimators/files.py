"""Save and load fitted classifiers: model files that also hold the class and the parameters."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from reprlib import repr as short
from typing import Any

import numpy as np

from maxcosine import model_file
from maxcosine.estimators.fitted import set_model
from maxcosine.estimators.learning import changed_settings, check_unchanged
from maxcosine.estimators.parameters import check_parameters
from maxcosine.model import Model
from maxcosine.model_file import Checker, find_rule
from maxcosine.onepass_model import OnePassModel
from maxcosine.rules.rule import Rule


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to a file: what it has learnt, its class and its parameters.

    Parameters
    ----------
    estimator : classifier
        A fitted classifier of maxcosine.
    path : str or path
        The file. An existing file is replaced at the end, when the new one is complete.

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
    if _classifiers().get(kind.__name__) is not kind:
        raise TypeError(
            f"{kind.__name__} is not a classifier of maxcosine; save its model with maxcosine.model_file.save"
        )
    model = estimator.model_
    check_parameters(estimator)
    check_unchanged(estimator, model)
    params = {name: _to_json(value, name) for name, value in estimator.get_params(deep=False).items()}
    model_file.save(model, path, estimator={"class": kind.__name__, "params": params})


def load(path: str | os.PathLike[str], *, rules: Sequence[Rule] = ()) -> Any:
    """Read a fitted classifier from a file.

    Parameters
    ----------
    path : str or path
        The file.
    rules : sequence of Rule, default=()
        Your own rules, if the model was learnt by one of them.

    Returns
    -------
    classifier
        A classifier of the class that was saved; if the file has none, because a command wrote it, an
        :class:`~maxcosine.OnlineClassifier` or :class:`~maxcosine.OnePassClassifier`.

    Examples
    --------
    >>> import tempfile, maxcosine
    >>> learner = maxcosine.MCPClassifier().fit([[2.0, 0.0], [0.0, 1.0]], ["right", "up"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     maxcosine.save(learner, f"{folder}/model.safetensors")
    ...     maxcosine.load(f"{folder}/model.safetensors")
    MCPClassifier()
    """
    loaded = model_file.load(path, rules=rules)
    checker, classes, one_pass = Checker(os.fspath(path)), _classifiers(), isinstance(loaded.model, OnePassModel)
    if loaded.estimator is None:
        name, params = ("OnePassClassifier", {}) if one_pass else ("OnlineClassifier", _params_of(loaded.model))
    else:
        name = checker.choice(loaded.estimator, "class", list(classes))
        entry = checker.get(loaded.estimator, "params", dict)
        params = {key: _from_json(checker, value, rules) for key, value in entry.items()}
    if (name == "OnePassClassifier") is not one_pass:
        raise checker.bad(f"its estimator is {name}, but its model is a {type(loaded.model).__name__}")
    estimator = classes[name]()
    unknown = sorted(set(params) - set(estimator.get_params(deep=False)))
    if unknown:
        raise checker.bad(f"{name} has no parameter {short(unknown[0])} in this version", "upgrade maxcosine")
    try:
        estimator.set_params(**params)
        check_parameters(estimator)
        changed = changed_settings(estimator, loaded.model)
    except ValueError as error:
        raise checker.bad(str(error)) from None
    for parameter, there, here in changed:
        raise checker.bad(f"its estimator has {parameter}={here!r}, but its model has {parameter}={there!r}")
    set_model(estimator, loaded.model)
    return estimator


def _classifiers() -> dict[str, Any]:
    """Return the classes that a file may name."""
    from maxcosine import estimators

    return {name: getattr(estimators, name) for name in estimators.__all__ if name.endswith("Classifier")}


def _params_of(model: Model) -> dict[str, Any]:
    """Return the parameters of an `OnlineClassifier` that goes on as the model was learnt."""
    rule, heads = model.rule, model.heads
    values = heads.arrays.params[0, : len(rule.params)].tolist()
    return {
        "rule": rule.name if rule.builtin else rule,
        "rule_params": dict(zip(rule.params, values, strict=True)) or None,
        "average": heads.average,
        "probability": heads.probability,
        "fit_intercept": heads.fit_intercept,
        "multiclass": model.multiclass,
    }


def _to_json(value: Any, name: str) -> Any:
    """Return a parameter as JSON: a rule by its name, a dict as pairs, because its keys may be numbers."""
    if isinstance(value, Rule):
        return {"rule": value.name, "own": not value.builtin}
    if isinstance(value, Mapping):
        return {"pairs": [[_plain(key, name), _plain(item, name)] for key, item in value.items()]}
    return _plain(value, name)


def _plain(value: Any, name: str) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"the parameter {name} is or contains {value}, which a model file cannot store")
    if _is_plain(value):
        return value
    raise TypeError(
        f"the parameter {name} is or contains {short(value)}, a {type(value).__name__}, which a model file "
        f"cannot store; choose a number, a str or None with set_params({name}=...)"
    )


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float))


def _from_json(checker: Checker, value: Any, rules: Sequence[Rule]) -> Any:
    """Return the parameter that `_to_json` stored."""
    if type(value) is dict and "rule" in value:
        own = checker.get(value, "own", bool)
        return find_rule(checker, checker.get(value, "rule", str), own, rules)
    pairs = checker.get(value, "pairs", list) if type(value) is dict else [[0, value]]
    if not all(type(pair) is list and len(pair) == 2 and all(map(_is_plain, pair)) for pair in pairs):
        raise checker.bad(f"a parameter of its estimator is stored as {short(value)}")
    return dict(pairs) if type(value) is dict else value
