"""Merge fitted classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from maxcosine import merging
from maxcosine.estimators.fitted import with_model
from maxcosine.model import Model


def merge(models: Sequence[Any], how: str = "certified", *, weights: Sequence[float] | None = None) -> Any:
    """Merge fitted classifiers of one rule into one that is certified on all their examples.

    The result has the classes and the features of all models. A hypothesis w whose coefficients sum to Lambda
    is the point w / Lambda in the convex hull of its examples; the merged hypothesis is a mean of these
    points, and so lies in the hull of all examples.

    Parameters
    ----------
    models : sequence of fitted classifiers
        Classifiers of one rule, learnt on different data. They stay unchanged. Values of type
        :class:`maxcosine.model.Model` are merged, too.
    how : {"certified", "mean"}, default="certified"
        "certified" is the mean with the largest proven bound, never below the largest bound of the models.
        "mean" is the plain mean of their points, which often predicts a little better on noisy data. The
        certificate of the result shows the bounds of both.
    weights : sequence of float, default=None
        The weight of each model in the plain mean; None weighs all models the same. To merge merged models,
        weigh each by the number of models that it was merged from.

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
        if not isinstance(model, Model) and not hasattr(model, "model_"):
            raise ValueError(f"model {number} is not fitted: {model!r}")
    values = [model if isinstance(model, Model) else model.model_ for model in models]
    with ExitStack() as stack:
        # In one order, and each once: threads that merge the same models then never wait for each other.
        for lock in sorted({model.lock for model in values}, key=id):
            stack.enter_context(lock.reading)
        merged = merging.merge(values, how, weights=weights)
    return merged if isinstance(models[0], Model) else with_model(models[0], merged)
