"""Merge fitted classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from maxcosine import merging, onepass_merging
from maxcosine.base_model import BaseModel
from maxcosine.estimators.fitted import with_model
from maxcosine.onepass_model import OnePassModel


def merge(models: Sequence[Any], how: str = "certified", *, weights: Sequence[float] | None = None) -> Any:
    """Merge fitted classifiers of one kind into one that is certified on all their examples.

    The result has the classes and the features of all models. A hypothesis w whose coefficients sum to Lambda
    is the point w / Lambda in the convex hull of its examples; the merged hypothesis is a mean of these
    points, and so lies in the hull of all examples. The hypothesis of `OnePassClassifier` is a combination of the rows,
    too; there, what each model has learnt counts by the square root of its share in the rows.

    Parameters
    ----------
    models : sequence of fitted classifiers
        Classifiers of one rule, or of `OnePassClassifier`, learnt on different data. They stay unchanged. Values of
        type :class:`maxcosine.model.Model` or ``OnePassModel`` are merged, too.
    how : {"certified", "mean"}, default="certified"
        "certified" is the mean with the largest proven bound, never below the largest bound of the models.
        "mean" is the plain mean of their points, which often predicts a little better on noisy data. The
        certificate of the result shows the bounds of both. It does not apply to `OnePassClassifier`.
    weights : sequence of float, default=None
        The weight of each model in the plain mean; None weighs all models the same. To merge merged models,
        weigh each by the number of models that it was merged from. It does not apply to `OnePassClassifier`,
        whose models count by their rows.

    Returns
    -------
    classifier
        A new classifier of the type and with the parameters of the first; it can go on learning.

    References
    ----------
    Section 8 of the theory in the documentation.

    Examples
    --------
    >>> import maxcosine
    >>> X, y = [[2.0, 0.0], [0.0, 1.0], [1.0, 0.5], [0.5, 2.0]], [1, 0, 1, 0]
    >>> parts = [maxcosine.MCPClassifier().partial_fit(X[i:i + 2], y[i:i + 2]) for i in (0, 2)]
    >>> merged = maxcosine.merge(parts)
    >>> bounds = [part.certificate_.bound for part in parts]
    >>> merged.certificate_.bound >= max(bounds)
    True
    """
    models = list(models)
    for number, model in enumerate(models):
        if not isinstance(model, BaseModel) and not hasattr(model, "model_"):
            raise ValueError(f"model {number} is not fitted: {model!r}")
    values = [model if isinstance(model, BaseModel) else model.model_ for model in models]
    with ExitStack() as stack:
        # In one order, and each once: threads that merge the same models then never wait for each other.
        for lock in sorted({model.lock for model in values}, key=id):
            stack.enter_context(lock.reading)
        merged = _merge_values(values, how, weights)
    return merged if isinstance(models[0], BaseModel) else with_model(models[0], merged)


def _merge_values(models: Sequence[Any], how: str, weights: Sequence[float] | None) -> BaseModel:
    one_pass = [isinstance(model, OnePassModel) for model in models]
    if not any(one_pass):
        return merging.merge(models, how, weights=weights)
    if not all(one_pass):
        raise ValueError(
            f"model {one_pass.index(True)} is of OnePassClassifier and model {one_pass.index(False)} of a rule; merge "
            "models of one kind"
        )
    refuse_how(how)
    if weights is not None:
        raise ValueError(
            "weights do not apply to models of OnePassClassifier, which count by their rows; leave them out"
        )
    return onepass_merging.merge(models)


def refuse_how(how: str) -> None:
    """Refuse another way of merging one-pass models than the default."""
    if how != "certified":
        raise ValueError(
            f"how={how!r} does not apply to models of OnePassClassifier, which are merged in one way; leave it out"
        )
