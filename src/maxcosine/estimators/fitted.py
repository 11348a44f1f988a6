"""What a fitted classifier has learnt."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from maxcosine.base_model import BaseModel
from maxcosine.core import ModelLock
from maxcosine.model import Model
from maxcosine.progressive_error import ProgressiveError
from maxcosine.trace import Trace

E = TypeVar("E", bound="FittedAttributes")


class FittedAttributes:
    """The attributes of a classifier that are read off its model."""

    _model: BaseModel

    @property
    def model_(self) -> BaseModel:
        """What was learnt, as a value that can be copied, merged and written to a file."""
        check_is_fitted(self)
        return self._model

    @property
    def classes_(self) -> np.ndarray:
        """The classes, sorted."""
        return self.model_.classes

    @property
    def features_(self) -> np.ndarray:
        """The name, the id or the column number of each feature."""
        with lock_of(self).reading:
            return self.model_.features.keys()

    @property
    def certificate_(self) -> Any:
        """What is proven of the hypothesis and of the examples seen."""
        with lock_of(self).reading:
            return self.model_.certificate()

    @property
    def mistakes_(self) -> int:
        """How many examples were predicted wrongly before they were learnt; one of weight 0 does not count."""
        return self.model_.mistakes

    @property
    def error_(self) -> ProgressiveError:
        """The progressive error, `mistakes_` of all examples, and what it proves.

        Its interval covers the mean true error of the hypotheses that predicted, at all times at once, if the examples
        come independently. It exists after one pass only: predictions of examples that were learnt before prove
        nothing.
        """
        # Rounds on a cluster are passes, too.
        passes = max(getattr(self, "passes", 1), len(getattr(self, "rounds_", ())))
        if passes > 1:
            raise AttributeError(
                f"error_ is about examples that were not learnt before; after passes={passes} see mistakes_, or score "
                "other examples"
            )
        return self.model_.error

    @property
    def n_seen_(self) -> int:
        """How many examples were seen, zero rows included."""
        with lock_of(self).reading:
            return self.model_.n_seen

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in dict(vars(self)).items() if name not in DERIVED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: value for name, value in state.items() if name not in DERIVED})
        if "_model" in state:
            set_model(self, state["_model"])


class LinearAttributes(FittedAttributes):
    """The attributes of classifiers that are hyperplanes in the features."""

    @property
    def model_(self) -> Model:
        """What was learnt, as a value that can be copied, merged and written to a file."""
        return cast(Model, super().model_)

    @property
    def coef_(self) -> Any:
        """The weights, of shape (1, n_features) for two classes, else (n_classes, n_features).

        For two classes they are w. For more classes, and rules to which the length of w has no meaning, they
        are w / Lambda. They are a sparse array after `sparsify`.
        """
        with lock_of(self).reading:
            return self.model_.hypothesis()[0]

    @property
    def intercept_(self) -> np.ndarray:
        """The weights of the constant feature, of shape (1,) or (n_classes,)."""
        with lock_of(self).reading:
            return self.model_.hypothesis()[1]

    @property
    def mistakes_(self) -> int:
        """How many examples the last hypothesis predicted wrongly before they were learnt, in all passes.

        An example before any class is known counts as wrong, one of weight 0 does not count.
        `certificate_.mistakes` counts something else: the margins <= 0 of each hypothesis.
        """
        return self.model_.mistakes

    @property
    def updates_(self) -> Any:
        """How many examples changed the hypothesis: one number, or one per class."""
        return self.certificate_.updates


DERIVED = ("_lock", "_prepared_for", "classes_", "n_features_in_", "feature_names_in_")
"""Attributes that are not pickled: they belong to one process, or follow from the model."""


def lock_of(estimator: Any) -> ModelLock:
    """Return the lock of a classifier, which all its models share. There is one before the first of them."""
    lock: ModelLock | None = estimator.__dict__.get("_lock")
    # setdefault does not let another thread in between.
    return estimator.__dict__.setdefault("_lock", ModelLock()) if lock is None else lock


def set_model(estimator: Any, model: BaseModel) -> None:
    """Make a model the one that a classifier has learnt; the caller holds the lock, or has the only reference."""
    model.lock = estimator.__dict__.setdefault("_lock", model.lock)
    estimator._model = model
    estimator.n_features_in_ = model.features.n_features
    if model.features.names is not None:
        estimator.feature_names_in_ = model.features.names


def set_trace(estimator: Any, trace: Trace | None) -> None:
    """Make these the steps that a classifier has taken last; None if they were not traced."""
    if trace is None:
        estimator.__dict__.pop("trace_", None)
    else:
        estimator.trace_ = trace.steps


def with_model(estimator: E, model: BaseModel) -> E:
    """Return a new classifier with the parameters of another one, and with this model."""
    twin: E = clone(estimator)
    set_model(twin, model)
    return twin
