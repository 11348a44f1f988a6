"""The classifier that needs no choices: one pass, nothing to tune."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxcosine.drift import ON_DRIFT, Drift, OnDrift
from maxcosine.estimators.base import StreamClassifier
from maxcosine.estimators.fitted import lock_of
from maxcosine.estimators.parameters import Check, one_of
from maxcosine.estimators.validation import dict_rows, rows_to_score
from maxcosine.features import Features
from maxcosine.onepass_hypothesis import Contributions
from maxcosine.onepass_model import OnePassModel
from maxcosine.rows import check_finite
from maxcosine.score_sketch import Threshold


@dataclass(eq=False, repr=False, kw_only=True)
class OnePassClassifier(StreamClassifier):
    """One pass, nothing to tune: no scaling, no learning rate, no choice of a rule; with probabilities and proofs.

    Each value is squashed, ``z = sign(x) log(1 + |x|)``. The stream itself fixes the geometry, without labels: the
    centre and the scale of each feature, and the length of each row. In this geometry two heads learn, logistic
    regression and MCP with exact accounting; each predicts by its last hypothesis and by its average. The four are
    mixed by their progressive errors. More than two classes are learnt jointly. An example costs time linear in its
    non-zeros.

    The hypothesis is a non-negative combination of the rows in today's geometry, whatever the geometry was when they
    came. So its norm divided by the sum of its coefficients is a proven ceiling on the margin of every separator in
    that space; see `certificate_`.

    Parameters
    ----------
    shuffle : bool, default=False
        Visit the rows in random order.
    random_state : int, RandomState instance or None, default=None
        The seed of `shuffle`.
    class_weight : dict, "balanced" or None, default=None
        Factors for the steps of each class. The value "balanced", for `fit` only, makes them inversely
        proportional to the frequencies of the classes.
    on_drift : {"restart", "warn", "ignore"}, default="restart"
        What to do when the share of wrong predictions rises. "restart" lets a fresh learner learn beside the old one:
        the one with fewer errors predicts, until one of them is clearly beaten. "warn" gives a `DriftWarning`. The
        alarm is a heuristic with few false alarms; nothing is proven about it.
    grow_features : bool, default=False
        Allow later calls of `partial_fit` to bring more columns. Rows may then have fewer columns, too.
    dtype : {"float32", "float64"} or None, default=None
        The type of the weights; None takes the type of X, and float64 for dicts.
    n_jobs : int or None, default=None
        The number of threads that predict; None is 1, and -1 is all processors.
    verbose : int, default=0
        Report progress on standard error if it is above 0.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes, sorted.
    weights_ : array of shape (1, n_features) or (n_classes, n_features)
        The weights of the squashed, centred features; one row for two classes.
    intercept_ : array of shape (1,) or (n_classes,)
        The constants of the scores.
    center_ : array of shape (n_features,)
        The centre of each squashed feature.
    scale_ : array of shape (n_features,)
        The scale of each squashed feature, infinite for one that has not come.
    certificate_ : OnePassCertificate
        What is proven of the examples seen, in the geometry as it is now.
    features_ : array of shape (n_features,)
        The name, the id or the column number of each feature.
    mistakes_ : int
        How many examples were predicted wrongly before they were learnt.
    error_ : ProgressiveError
        The share of these examples, with an interval for the true error.
    drift_ : list of Drift
        The alarms so far, and what came of them; usually empty.
    n_seen_ : int
        How many examples were seen.
    model_ : OnePassModel
        What was learnt, as a value that can be copied.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : array of shape (n_features,)
        The names of the columns of X; only if all of them are strings.

    Notes
    -----
    The boundary is not a hyperplane in the features, so there is no `coef_`. With ``z = sign(x) log(1 + |x|)``
    and ``R = sqrt(1 + sum(((z - center_) / scale_)^2))``, a score is ``(z - center_) @ weights_.T / R + intercept_``.

    References
    ----------
    N. H. Bshouty and C. A. Haddad-Zaknoon, "The Maximum Cosine Framework for Deriving Perceptron Based Linear
    Classifiers", 2017, arXiv:1707.00821.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from maxcosine import OnePassClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> learner = OnePassClassifier().fit(X[:400], y[:400])
    >>> learner.score(X[400:], y[400:]) > 0.95
    True
    >>> learner.predict_proba(X[400:402]).round(1).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    on_drift: str = "restart"

    _any_norm: ClassVar[bool] = True
    _checks: ClassVar[Mapping[str, Check]] = {"on_drift": one_of(*ON_DRIFT)}

    def _new_model(self, labels: np.ndarray, features: Features, dtype: np.dtype, *, closed: bool) -> OnePassModel:
        model = OnePassModel.create(np.sort(labels), features, dtype, closed=closed)
        self._prepare(model)
        return model

    def _prepare(self, model: OnePassModel) -> None:
        model.on_drift = cast(OnDrift, self.on_drift)

    def _check_rows(self, rows: Any) -> None:
        check_finite(rows)

    @property
    def model_(self) -> OnePassModel:
        """What was learnt, as a value that can be copied."""
        return cast(OnePassModel, super().model_)

    @property
    def drift_(self) -> list[Drift]:
        """The alarms so far, and what came of them. An alarm is a heuristic."""
        with lock_of(self).reading:
            return self.model_.drifts

    @property
    def features_(self) -> np.ndarray:
        """The name, the id or the column number of each feature, in the order of `weights_`."""
        with lock_of(self).reading:
            features = self.model_.features
            return np.asarray(features.names_of(np.arange(features.n_slots))) if features.sparse else features.keys()

    @property
    def weights_(self) -> np.ndarray:
        """The weights of the squashed, centred features."""
        return self._hypothesis()[0]

    @property
    def intercept_(self) -> np.ndarray:
        """The constants of the scores."""
        return self._hypothesis()[1]

    @property
    def center_(self) -> np.ndarray:
        """The centre of each squashed feature."""
        return self._hypothesis()[2]

    @property
    def scale_(self) -> np.ndarray:
        """The scale of each squashed feature."""
        return self._hypothesis()[3]

    def _hypothesis(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        with lock_of(self).reading:
            return self.model_.hypothesis()

    def contributions(self, X: Any, label: Any = None) -> Contributions:
        """Compute what the features of each row add to a score.

        With ``z = sign(x) log(1 + |x|)`` and the length R of the row, a feature of the row adds ``weight (z - center) /
        R``. All of these and the rest add up to the score of `decision_function`.

        Parameters
        ----------
        X : array-like, sparse matrix or list of dicts, of n_samples rows
            The rows; dicts are as `learn_one` takes them.
        label : label, default=None
            The class whose score is explained. None is for two classes, which have one score: positive numbers
            speak for the second class.

        Returns
        -------
        Contributions
            A sparse array with one column for each of `features_`, and the rest of each score.

        Examples
        --------
        >>> from maxcosine import OnePassClassifier
        >>> learner = OnePassClassifier()
        >>> learner.learn_many([{"free": 1, "money": 2}, {"lunch": 1, "at": 1}, {"free": 1}], ["spam", "ham", "spam"])
        >>> found = learner.contributions_one({"free": 1, "lunch": 1})
        >>> found["free"] > 0 > found["lunch"]  # for "spam", and against it
        True
        """
        with lock_of(self).reading:
            check_is_fitted(self)
            return self.model_.contributions(rows_to_score(self, X), self._score_of(label))

    def contributions_one(self, x: Mapping[Any, Any], label: Any = None) -> dict[Any, float]:
        """Compute what the features of one example add to a score, as `contributions` does.

        Parameters
        ----------
        x : dict of feature to value
            The example; features that were never learnt are left out.
        label : label, default=None
            The class whose score is explained; None is for two classes.

        Returns
        -------
        dict of feature to float
            The largest contributions first.
        """
        with lock_of(self).reading:
            check_is_fitted(self)
            model = self.model_
            found = model.contributions(dict_rows(model, [x]), self._score_of(label)).of_features.tocoo()
            keys = model.features.names_of(found.coords[1])
        return dict(sorted(zip(keys, found.data.tolist(), strict=True), key=lambda one: -abs(one[1])))

    def _score_of(self, label: Any) -> int:
        """Return the number of the score of a class."""
        model = self.model_
        if model.one_score:
            if label is None:
                return 0
            raise ValueError("two classes have one score; leave out label: positive numbers speak for the second class")
        code = None if label is None else model.labels.code(label)
        if code is None:
            names = ", ".join(map(repr, model.classes.tolist()[:20]))
            raise ValueError(f"label={label!r} has no score; name the class to explain, one of {names}")
        return int(code)

    def threshold(
        self,
        *,
        precision: float | None = None,
        recall: float | None = None,
        share: float | None = None,
        cost: float | None = None,
    ) -> Threshold:
        """Choose a threshold for `decision_function`, from the scores that examples had before they were learnt.

        Rows whose score is at or above the threshold are kept as the second class. Nothing is held out. Two classes
        only.

        Parameters
        ----------
        precision : float, optional
            Keep as many rows as possible, such that at least this share of them is of the second class.
        recall : float, optional
            Keep as few rows as possible, such that at least this share of the second class is kept.
        share : float, optional
            Keep at most this share of all rows, those of the highest scores.
        cost : float, optional
            Minimise the cost, if keeping a row of the first class costs this many times as much as missing one of the
            second.

        Returns
        -------
        Threshold
            The threshold, and the precision, recall and share to expect there.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from maxcosine import OnePassClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> learner = OnePassClassifier().fit(X, y)
        >>> chosen = learner.threshold(precision=0.99)
        >>> kept = learner.decision_function(X) >= chosen.threshold
        >>> float(y[kept].mean()) > 0.98
        True
        """
        with lock_of(self).reading:
            return self.model_.threshold(precision=precision, recall=recall, share=share, cost=cost)
