"""`OnlineClassifier`: any rule as a scikit-learn classifier."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import (
    _get_feature_names,
    check_array,
    check_consistent_length,
    check_is_fitted,
    check_X_y,
    validate_data,
)

from maxcosine.certificate import Certificate
from maxcosine.engine import canonical, check_indices, check_rows, learn, norms
from maxcosine.estimator.labels import (
    classes_and_codes,
    given_classes,
    known_codes,
    refuse_few_classes,
    refuse_mixed_types,
    warn_if_sorted,
)
from maxcosine.estimator.progress import reported
from maxcosine.model import Model
from maxcosine.rule import Rule
from maxcosine.rules import RULES

FLOATS = [np.float64, np.float32]


class OnlineBase(ClassifierMixin, BaseEstimator):
    """What all classifiers here share; a subclass says by which rule."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "average": ["boolean"],
        "fit_intercept": ["boolean"],
        "multiclass": [StrOptions({"ovr"})],
        "passes": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
        "grow_features": ["boolean"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        average: bool = False,
        fit_intercept: bool = True,
        multiclass: str = "ovr",
        passes: int = 1,
        shuffle: bool = False,
        random_state: Any = None,
        grow_features: bool = False,
        verbose: int = 0,
    ) -> None:
        self.average = average
        self.fit_intercept = fit_intercept
        self.multiclass = multiclass
        self.passes = passes
        self.shuffle = shuffle
        self.random_state = random_state
        self.grow_features = grow_features
        self.verbose = verbose

    def _rule(self) -> tuple[Rule, Mapping[str, float]]:
        """The rule and the parameters given to it."""
        raise NotImplementedError("abstract: a subclass says by which rule it learns")

    # Learning

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> OnlineBase:
        """Learn from scratch, in `passes` passes over the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), the class of each row

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            X, y = self._validate(X, y, dtype=FLOATS, reset=True)
            classes, codes = classes_and_codes(y)
            refuse_few_classes(classes)
            if not self.shuffle and self.passes == 1:
                warn_if_sorted(codes, len(classes))
            model = self._new_model(classes, X)
            self._learn(model, X, codes, passes=self.passes)
            self._model = model
            self.classes_ = classes
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> OnlineBase:
        """Go on learning, with one pass over these rows.

        Any cutting of a stream into chunks gives the same model, to the bit.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), the class of each row
        classes : all classes that will come; needed in the first call only

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            model: Model | None = getattr(self, "_model", None)
            started = model is not None
            dtype = [model.heads.dtype] if model is not None else FLOATS
            X, y = self._validate(X, y, dtype=dtype, reset=not started)
            X = canonical(X) if scipy.sparse.issparse(X) else X
            check_rows(X)
            if model is None:
                if classes is None:
                    raise ValueError(
                        "classes must be passed on the first call to partial_fit: "
                        "partial_fit(X, y, classes=[...]) with every class that will come"
                    )
                known = given_classes(classes)
                refuse_few_classes(known)
                model = self._new_model(known, X)
            else:
                self._refuse_changes(model, classes)
            codes = known_codes(y, model.classes)
            if not started and not self.shuffle:
                warn_if_sorted(codes, len(model.classes))
            params = model.rule.make_params(self._rule()[1])
            if not model.rule.builtin:
                # An unproven rule may fail in the middle; then the model must be as it was.
                model = Model(model.rule, model.classes, model.heads.copy())
            if X.shape[1] > model.heads.n_features:
                model.heads.grow(X.shape[1])
            model.heads.set_params(params)
            self._learn(model, X, codes, passes=1)
            self._model = model
            self.classes_ = model.classes
            self.n_features_in_ = model.heads.n_features
        return self

    def _refuse_changes(self, model: Model, classes: Any) -> None:
        """What cannot change between calls of partial_fit; the rule's parameters can."""
        if classes is not None and not np.array_equal(given_classes(classes), model.classes):
            raise ValueError(
                f"classes={classes!r} is not what the first call to partial_fit was given: {model.classes!r}"
            )
        rule, _ = self._rule()
        now = {"rule": rule, "average": self.average, "fit_intercept": self.fit_intercept}
        heads = model.heads
        then = {"rule": heads.rule, "average": heads.average, "fit_intercept": heads.fit_intercept}
        for name, value in now.items():
            if value is not then[name] and value != then[name]:
                raise ValueError(
                    f"{name} was {then[name]!r} when learning began and is {value!r} now; "
                    "start anew with fit, or with another estimator"
                )

    def _new_model(self, classes: np.ndarray, X: Any) -> Model:
        rule, given = self._rule()
        try:
            return Model.create(
                rule,
                rule.make_params(given),
                classes,
                X.shape[1],
                X.dtype,
                fit_intercept=self.fit_intercept,
                average=self.average,
            )
        except MemoryError as error:
            raise MemoryError(
                f"no memory for the weights of {X.shape[1]:,} features and {len(classes)} classes; "
                "reduce the columns, for example by hashing, or use float32"
            ) from error

    def _learn(self, model: Model, X: Any, codes: np.ndarray, *, passes: int) -> None:
        random = check_random_state(self.random_state)
        model.changed()
        for number in range(1, passes + 1):
            order = random.permutation(len(codes)) if self.shuffle else np.arange(len(codes))
            if not self.verbose:
                learn(model.heads, X, codes, order)
                continue
            title = f"pass {number} of {passes}" if passes > 1 else "learning"
            for rows in reported(order, f"[{type(self).__name__}] {title}", model):
                learn(model.heads, X, codes, rows)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """A refused call leaves the estimator exactly as it was."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _validate(self, X: Any, y: Any, *, dtype: Any, reset: bool) -> tuple[Any, Any]:
        refuse_mixed_types(y, "y")
        # Whether values are finite is checked where they are read anyway, in the kernels.
        checks: dict[str, Any] = {
            "accept_sparse": "csr",
            "accept_large_sparse": True,
            "dtype": dtype,
            "order": "C",
            "ensure_all_finite": False,
        }
        if self.grow_features and not reset:
            names = self._check_grown_names(X)
            if names is not None:
                self.feature_names_in_ = names
            X, y = check_X_y(X, y, estimator=self, **checks)
        else:
            X, y = validate_data(self, X, y, reset=reset, **checks)
        return X, y

    def _check_grown_names(self, X: Any) -> np.ndarray | None:
        """Column names may become more, but those there were must stay where they are."""
        names: np.ndarray | None = _get_feature_names(X)
        known: np.ndarray | None = getattr(self, "feature_names_in_", None)
        if names is None or known is None:
            return known
        common = min(len(names), len(known))
        moved = np.flatnonzero(names[:common] != known[:common])
        if len(moved):
            column = int(moved[0])
            raise ValueError(
                f"column {column} of X is named {names[column]!r} and was {known[column]!r}; with "
                "grow_features=True new columns go behind the ones there were"
            )
        return names if len(names) > len(known) else known

    # Predicting

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores, ``X @ coef_.T + intercept_``: one a row for two classes, else one a class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        w, constant = self._model.hypothesis()
        if self.grow_features:
            # Columns never seen have no weight, and columns left out have no value.
            self._check_grown_names(X)
            X = check_array(X, accept_sparse="csr", dtype=FLOATS, estimator=self)
            common = min(X.shape[1], w.shape[1])
            X, w = X[:, :common], w[:, :common]
        else:
            X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        if scipy.sparse.issparse(X):
            check_indices(X)
        scores: np.ndarray = safe_sparse_dot(X, w.T, dense_output=True) + constant
        return scores.ravel() if self._model.binary else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row; a score of 0 predicts ``classes_[0]``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        """
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        predicted: np.ndarray = self.classes_[codes]
        return predicted

    def attained_margin(self, X: Any, y: Any) -> Any:
        """The margin that the hypothesis attains on these examples, zero rows skipped.

        If X, y are all examples it was learnt from, the largest margin of any separator lies
        between this and ``certificate_.margin_ceiling``.

        Returns
        -------
        a number for two classes, else one a class
        """
        check_consistent_length(X, y)
        scores = np.atleast_2d(self.decision_function(X).T)
        rows = X if scipy.sparse.issparse(X) else np.asarray(X)
        used = np.asarray((rows != 0).sum(axis=1)).ravel() > 0
        certificate = self.certificate_
        if not used.any() or not np.all(certificate.norm):
            raise ValueError("no margin is attained: X has only zero rows, or the hypothesis is 0")
        codes = known_codes(np.asarray(y), self.classes_)
        signs = np.where(codes == self._model.heads.table["positive"][:, None], 1.0, -1.0)
        w, constant = self._model.hypothesis()
        margins = (signs * scores)[:, used].min(axis=1) / norms(w, constant)
        return float(margins[0]) if self._model.binary else margins

    # What was learnt

    @property
    def coef_(self) -> np.ndarray:
        """Weights, of shape (1, n_features) for two classes, else (n_classes, n_features).

        For two classes w itself; for more, and rules to which the length of w means nothing, w / Lambda.
        """
        check_is_fitted(self)
        return self._model.hypothesis()[0]

    @property
    def intercept_(self) -> np.ndarray:
        """The weights of the constant feature, of shape (1,) or (n_classes,)."""
        check_is_fitted(self)
        return self._model.hypothesis()[1]

    @property
    def certificate_(self) -> Certificate:
        """What is proven of the hypothesis and of the examples seen."""
        check_is_fitted(self)
        return self._model.certificate()

    @property
    def mistakes_(self) -> Any:
        """Examples that were mistaken when they came: a number, or one a class."""
        return self.certificate_.mistakes

    @property
    def updates_(self) -> Any:
        """Examples that moved the hypothesis: a number, or one a class."""
        return self.certificate_.updates

    @property
    def n_seen_(self) -> int:
        """Examples seen, zero rows included."""
        check_is_fitted(self)
        return int(self._model.heads.table["seen"].max())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class OnlineClassifier(OnlineBase):
    """Any rule as a classifier: one pass, time linear in the non-zeros, with a certificate.

    Parameters
    ----------
    rule : str or Rule, default="mcp"
        A name in :data:`maxcosine.RULES`, or a rule of your own made with :func:`maxcosine.rule`.
    rule_params : dict, default=None
        Values for the rule's parameters, in place of their defaults.
    average : bool, default=False
        Predict with the average of the hypotheses after each example.
    fit_intercept : bool, default=True
        Add a constant feature 1; it counts in the norm of each example.
    multiclass : {"ovr"}, default="ovr"
        How more than two classes are learnt: each against the rest.
    passes : int, default=1
        Passes over the rows that `fit` makes.
    shuffle : bool, default=False
        Visit the rows in random order, anew in each pass.
    random_state : int, RandomState instance or None, default=None
        The seed of `shuffle`.
    grow_features : bool, default=False
        Let later calls of `partial_fit` bring more columns; rows may then have fewer, too.
    verbose : int, default=0
        Report progress on standard error.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,), if X had names that are strings

    Examples
    --------
    >>> from maxcosine import OnlineClassifier
    >>> X = [[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [1.0, 3.0]]
    >>> y = ["right", "up", "right", "up"]
    >>> learner = OnlineClassifier("mcp", fit_intercept=False).fit(X, y)
    >>> learner.predict([[3.0, 1.0], [1.0, 3.0]]).tolist()
    ['right', 'up']
    >>> learner.mistakes_ <= learner.updates_
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OnlineBase._parameter_constraints,
        "rule": [str, Rule],
        "rule_params": [dict, None],
    }

    def __init__(
        self,
        rule: str | Rule = "mcp",
        *,
        rule_params: Mapping[str, float] | None = None,
        average: bool = False,
        fit_intercept: bool = True,
        multiclass: str = "ovr",
        passes: int = 1,
        shuffle: bool = False,
        random_state: Any = None,
        grow_features: bool = False,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            average=average,
            fit_intercept=fit_intercept,
            multiclass=multiclass,
            passes=passes,
            shuffle=shuffle,
            random_state=random_state,
            grow_features=grow_features,
            verbose=verbose,
        )
        self.rule = rule
        self.rule_params = rule_params

    def _rule(self) -> tuple[Rule, Mapping[str, float]]:
        if isinstance(self.rule, Rule):
            return self.rule, self.rule_params or {}
        if self.rule not in RULES:
            near = difflib.get_close_matches(self.rule, RULES, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ValueError(f"there is no rule {self.rule!r}; {hint}The rules are: {', '.join(RULES)}")
        return RULES[self.rule], self.rule_params or {}
