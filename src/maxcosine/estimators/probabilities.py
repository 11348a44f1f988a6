"""Probabilities of the classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from maxcosine.estimators.fitted import lock_of
from maxcosine.estimators.validation import bad_example, dict_rows, rows_to_score
from maxcosine.rows import BadRow


def _has_probabilities(estimator: Any) -> bool:
    """Return whether a classifier has probabilities: always, if it has no parameter for them."""
    if getattr(estimator, "probability", True):
        return True
    raise AttributeError("there are no probabilities with probability=False; set probability=True and fit again")


class ProbabilityMethods:
    """The methods `predict_proba`, `predict_log_proba` and `predict_proba_one` of every classifier."""

    @available_if(_has_probabilities)
    def predict_proba(self: Any, X: Any) -> np.ndarray:
        """Compute the probabilities of the classes.

        They are fitted to the scores that examples had before they were learnt, so nothing is held out.

        Parameters
        ----------
        X : array-like, sparse matrix or list of dicts, of n_samples rows
            The rows; dicts are as `learn_one` takes them.

        Returns
        -------
        array of shape (n_samples, n_classes)
            One column for each class, in the order of `classes_`.
        """
        with lock_of(self).reading:
            check_is_fitted(self)
            model = self.model_
            found: np.ndarray = model.probabilities(
                model.margins(rows_to_score(self, X), effective_n_jobs(self.n_jobs))
            )
            return found

    @available_if(_has_probabilities)
    def predict_log_proba(self: Any, X: Any) -> np.ndarray:
        """Compute the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array-like, sparse matrix or list of dicts, of n_samples rows
            The rows; dicts are as `learn_one` takes them.

        Returns
        -------
        array of shape (n_samples, n_classes)
            One column for each class, in the order of `classes_`.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    @available_if(_has_probabilities)
    def predict_proba_one(self: Any, x: Mapping[Any, Any]) -> dict[Any, float]:
        """Compute the probabilities of the classes for one example.

        Parameters
        ----------
        x : dict of feature to value
            The example; features that were never learnt count nothing.

        Returns
        -------
        dict of label to float
            The probability of each class; empty before the first example was learnt.
        """
        with lock_of(self).reading:
            model: Any = getattr(self, "_model", None)
            if model is None:
                return {}
            margins = model.margins_of_one(x) if model.features.takes_dicts else model.margins(dict_rows(model, [x]))
            if not np.isfinite(margins).all():
                raise bad_example(x, BadRow("the scores of an example are not finite"))
            return dict(zip(model.classes.tolist(), model.probabilities(margins)[0].tolist(), strict=True))
