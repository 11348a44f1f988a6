"""Learning from dicts of feature to value, one by one or many at once, with the methods of River.

Features are known by their keys. New features and new classes may appear at any time.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length

from maxcosine.estimators.fitted import lock_of
from maxcosine.estimators.labels import refuse_mixed_types
from maxcosine.estimators.learning import (
    check_unchanged,
    learn_chunk,
    learn_rows,
    learning,
    refuse_balanced,
    refuse_records,
)
from maxcosine.estimators.parameters import check_parameters
from maxcosine.estimators.validation import bad_example, bad_examples, column_keys, dict_rows, is_frame
from maxcosine.estimators.weights import check_class_weights, example_weight
from maxcosine.features import Features, plain_dict
from maxcosine.rows import BadRow


class DictMethods:
    """The methods `learn_one`, `learn_many`, `predict_one` and `predict_many` of every classifier."""

    # River asks a model for these before it evaluates it.
    _supervised = True
    _multiclass = True

    def learn_one(self: Any, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn from one example.

        Parameters
        ----------
        x : dict of feature to value
            The keys are names, or whole numbers from 0 to 2^64 - 1. Missing features have the value 0. If the
            model was fitted with columns, the keys are the names or the numbers of the columns.
        y : label
            The class of the example.
        w : float, default=1.0
            How much the example counts, relative to the mean weight so far.
        """
        with (self.__dict__.get("_lock") or lock_of(self)).learning:
            model: Any = self.__dict__.get("_model")
            code = None if model is None else model.labels.code(y)
            if model is not None and code is not None and _is_prepared(self, model):
                weight = 1.0 if w == 1.0 and not self.class_weight else example_weight(w, y, self.class_weight)
                try:
                    n_features = model.learn_one(x, code, weight)
                except BadRow as error:
                    raise bad_example(x, error) from None
                if n_features != self.n_features_in_:
                    self.n_features_in_ = n_features
                return
        hash(y)  # refuse a list, which would count as the labels of many examples
        self.learn_many([x], [y], None if w == 1.0 else [w])

    def learn_many(self: Any, X: Any, y: Any, w: Any = None) -> None:
        """Learn from many examples, in their order.

        Parameters
        ----------
        X : sequence of dicts, or data frame
            The examples, as `learn_one` takes them.
        y : sequence of labels
            The class of each example.
        w : sequence of float, default=None
            How much each example counts, relative to the mean weight so far.
        """
        X = X if is_frame(X) else list(X)  # before the lock: an iterator may use this classifier
        with learning(self):
            learn_dicts(self, X, y, w)

    def predict_one(self: Any, x: Mapping[Any, Any]) -> Any:
        """Predict the class of one example.

        Parameters
        ----------
        x : dict of feature to value
            The example; unknown features have no weight.

        Returns
        -------
        label or None
            The class; None before the first example was learnt.
        """
        with lock_of(self).reading:
            model: Any = getattr(self, "_model", None)
            if model is None:
                return None
            scores = model.score_one(x) if model.features.takes_dicts else model.scores(dict_rows(model, [x]))
            if not np.isfinite(scores).all():
                raise bad_example(x, BadRow("the scores of an example are not finite"))
            return model.labels.label(int(model.predicted_codes(scores)[0]))

    def predict_many(self: Any, X: Any) -> Any:
        """Predict the class of each example.

        Parameters
        ----------
        X : sequence of dicts, or data frame
            The examples; unknown features have no weight.

        Returns
        -------
        array or Series of shape (n_examples,)
            The classes; a pandas Series if X is a pandas data frame.
        """
        if is_frame(X):
            predicted = self.predict(X)
            if not hasattr(X, "iloc"):
                return predicted
            import pandas

            return pandas.Series(predicted, index=X.index)
        X = list(X)
        with lock_of(self).reading:
            return self.model_.predict(dict_rows(self.model_, X))


def learn_dicts(estimator: Any, X: Any, y: Any, w: Any = None) -> None:
    """Learn from many examples, as `learn_many` does; within `learning`."""
    model: Any = getattr(estimator, "_model", None)
    refuse_records(model)
    if is_frame(X) and model is not None and not model.features.keyed:
        learn_chunk(estimator, X, y, None, w)
        return
    check_parameters(estimator)
    refuse_mixed_types(y, "y")
    X = X if is_frame(X) else [plain_dict(x) for x in X]
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y should be a 1d array, with one label for each example; its shape is {y.shape}")
    check_consistent_length(X, y)
    if len(y) == 0:
        return None
    features = Features.by_key("names") if model is None else model.features
    dtype = np.dtype(estimator.dtype or np.float64) if model is None else model.dtype

    def to_slots(features: Features) -> Any:
        if is_frame(X):
            values = check_array(X, dtype=dtype, estimator=estimator, ensure_all_finite=False)
            rows = features.map(values, column_keys(X), grow=True)
        else:
            rows = features.map_dicts(X, dtype, grow=True)
        try:
            estimator._check_rows(rows)
        except BadRow as error:
            raise bad_examples(X, error) from None
        return rows

    learn_rows(estimator, model, features, to_slots, y, None, w)


def _is_prepared(estimator: Any, model: Any) -> bool:
    """Check the parameters once, and again when one has changed; return whether `learn_one` can call the core."""
    prepared_for, read_settings, settings = estimator.__dict__.get("_prepared_for", (None, None, None))
    if prepared_for is model and read_settings(estimator.__dict__) == settings:
        return True
    if not model.features.takes_dicts or model.may_fail:
        return False
    check_parameters(estimator)
    refuse_balanced(estimator)
    check_unchanged(estimator, model)
    check_class_weights(estimator.class_weight)
    estimator._prepare(model)
    read_settings = itemgetter(*estimator.get_params(deep=False))
    # Dicts are copied, because the user may change them.
    settings = tuple(dict(s) if isinstance(s, dict) else s for s in read_settings(estimator.__dict__))
    estimator._prepared_for = model, read_settings, settings
    return True
