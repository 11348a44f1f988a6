"""Learning from dicts, one by one or many at once, as River's users do.

Features are known by their keys and come as they come, and so do classes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.utils.validation import _get_feature_names, check_array, check_consistent_length

from maxcosine.engine import BadRow, BadStep, check_rows
from maxcosine.estimators.labels import refuse_mixed_types
from maxcosine.estimators.weights import check_class_weights, one_weight
from maxcosine.features import Features, plain_dict
from maxcosine.index import kind_of
from maxcosine.model import Model


class DictLearner:
    """`learn_one`, `learn_many`, `predict_one` and `predict_many`; a part of every classifier here."""

    # What River asks of a model before it evaluates it.
    _supervised = True
    _multiclass = True

    _model: Model
    _prepared_for: Any
    _settings_of: Any

    def learn_one(self: Any, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn from one example.

        Parameters
        ----------
        x : dict of feature to value
            The keys are names, or whole numbers from 0 to 2^64 - 1; those left out have the value 0. For
            a model that was fitted with columns, they are the names or the numbers of the columns.
        y : the class of the example
        w : what the step is multiplied by
        """
        model: Model | None = self.__dict__.get("_model")
        code = None if model is None else model.code_of(y)
        if model is None or code is None or not self._prepared(model):
            hash(y)  # a label that is a list would be taken for the labels of many examples
            self.learn_many([x], [y], None if w == 1.0 else [w])
            return
        weight = 1.0 if w == 1.0 and not self.class_weight else one_weight(w, y, self.class_weight)
        try:
            n_features = model.learn_one(x, code, weight)
        except BadRow as error:
            raise _bad_example(x, error) from None
        if n_features != self.n_features_in_:
            self.n_features_in_ = n_features

    def _prepared(self: Any, model: Model) -> bool:
        """Whether `learn_one` may go straight to the kernel; what it relies on is checked once."""
        settings = self._settings_of(self.__dict__)
        prepared = self.__dict__.get("_prepared_for")
        if prepared is not None and prepared[0] is model and prepared[1] == settings:
            return True
        if not model.features.keyed or not model.rule.builtin:
            return False
        self._validate_params()
        self._refuse_balanced()
        self._refuse_changes(model)
        check_class_weights(self.class_weight)
        model.heads.set_params(model.rule.make_params(self._rule()[1]))
        # Copies of dicts: they may be changed in place.
        self._prepared_for = model, tuple(dict(s) if isinstance(s, dict) else s for s in settings)
        return True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # What reads all parameters of an estimator of this class off its attributes.
        names = cls._get_param_names() if hasattr(cls, "_get_param_names") else []
        cls._settings_of = staticmethod(itemgetter(*names)) if len(names) > 1 else None

    def learn_many(self: Any, X: Any, y: Any, w: Any = None) -> None:
        """Learn from many examples, in their order.

        Parameters
        ----------
        X : sequence of dicts, as `learn_one` takes them, or a data frame
        y : sequence of classes
        w : sequence of what the steps are multiplied by, default=None
        """
        model: Model | None = getattr(self, "_model", None)
        if _is_frame(X) and model is not None and not model.features.keyed:
            self.partial_fit(X, y, sample_weight=w)
            return
        self._validate_params()
        refuse_mixed_types(y, "y")
        X = X if _is_frame(X) else [plain_dict(x) for x in X]
        y = np.asarray(y)
        if y.ndim != 1:
            raise ValueError(f"y should be a 1d array, one label an example; its shape is {y.shape}")
        check_consistent_length(X, y)
        if len(y) == 0:
            return
        features = Features.by_key(_kind(X)) if model is None else model.features
        dtype = self._dict_dtype(model)
        before = features.index, features.n_slots

        def rows(features: Features) -> Any:
            mapped = self._map(features, X, dtype, grow=True)
            try:
                check_rows(mapped)
            except BadRow as error:
                raise _bad_examples(X, error) from None
            return mapped

        with self._all_or_nothing():
            try:
                self._go_on(model, features, rows, y, None, w)
            except BadStep:
                raise  # rows before it have been learnt: their features are there for good
            except BaseException:
                features.restore(*before)
                raise

    def predict_one(self: Any, x: Mapping[Any, Any]) -> Any:
        """The class of one example; None if nothing was learnt yet. Features never seen have no weight.

        Parameters
        ----------
        x : dict of feature to value
        """
        model: Model | None = getattr(self, "_model", None)
        if model is None:
            return None
        if not model.features.keyed:
            return self.predict_many([x]).tolist()[0]
        scores = model.score_one(x)
        if not np.isfinite(scores).all():
            raise _bad_example(x, BadRow("the scores of an example are not finite"))
        return model.label_of(scores)

    def predict_many(self: Any, X: Any) -> Any:
        """The class of each example, as an array; for a pandas frame, as a series.

        Parameters
        ----------
        X : sequence of dicts, or a data frame
        """
        if _is_frame(X):
            predicted = self.predict(X)
            if not hasattr(X, "iloc"):
                return predicted
            import pandas

            return pandas.Series(predicted, index=X.index)
        model: Model = self._model_or_error()
        rows = self._map(model.features, [plain_dict(x) for x in X], model.heads.dtype, grow=False)
        if not np.isfinite(rows.data).all():
            raise _bad_examples(X, BadRow("the values of an example are not finite"))
        return self.classes_[model.predicted_codes(model.scores(rows))]

    def _map(self: Any, features: Features, X: Any, dtype: np.dtype, *, grow: bool) -> Any:
        """Examples as rows of slots."""
        if not _is_frame(X):
            return features.map_dicts(X, dtype, grow=grow)
        values = check_array(X, dtype=dtype, estimator=self, ensure_all_finite=False)
        return features.map(values, column_keys(X), grow=grow)

    def _dict_dtype(self: Any, model: Model | None) -> np.dtype:
        if model is not None:
            return model.heads.dtype
        return np.dtype("float64" if self.dtype is None else self.dtype)


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "shape")


def column_keys(X: Any) -> np.ndarray | None:
    """What the columns of a frame are called, names or numbers that are ids; None if X is no frame."""
    names: np.ndarray | None = _get_feature_names(X)
    if names is None and _is_frame(X):
        try:
            return np.asarray(X.columns, np.uint64)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(
                f"the columns are called {list(X.columns)[:5]}; call them all by str, or all by whole numbers"
            ) from None
    return names


def _kind(X: Any) -> str:
    """What the first examples say about how features are known."""
    if _is_frame(X):
        return "ids" if _get_feature_names(X) is None else "names"
    return next((kind_of(x) for x in X if x), "names")


def _bad_example(x: Mapping[Any, Any], error: BadRow, where: str = "") -> BadRow:
    """The error about an example that cannot be learnt from; names the feature, if it is one."""
    for key, value in x.items():
        if not math.isfinite(value):
            return BadRow(f"the value of feature {key!r}{where} is {value!r}; impute it, or leave it out")
    return error


def _bad_examples(X: Any, error: BadRow) -> BadRow:
    if _is_frame(X):
        return error
    for number, x in enumerate(X):
        found = _bad_example(x, error, f" in example {number}")
        if found is not error:
            return found
    return error
