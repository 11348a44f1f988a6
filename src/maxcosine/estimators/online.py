"""`OnlineClassifier`: any rule as a scikit-learn classifier."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import (
    _get_feature_names,
    check_array,
    check_consistent_length,
    check_is_fitted,
    check_X_y,
    validate_data,
)

from maxcosine.certificate import Certificate
from maxcosine.engine import canonical, check_indices, check_rows
from maxcosine.engine.learn import NOT_PREDICTED
from maxcosine.estimators.dicts import DictLearner, column_keys
from maxcosine.estimators.labels import (
    classes_and_codes,
    given_classes,
    known_codes,
    labels_to_come,
    refuse_few_classes,
    refuse_mixed_types,
    unknown_labels,
    warn_if_sorted,
)
from maxcosine.estimators.progress import reported
from maxcosine.estimators.weights import row_weights
from maxcosine.features import Features
from maxcosine.model import MULTICLASS, Model
from maxcosine.rules import RULES
from maxcosine.rules.rule import Rule

FLOATS = [np.float64, np.float32]


class OnlineBase(DictLearner, ClassifierMixin, BaseEstimator):
    """What all classifiers here share; a subclass says by which rule."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "average": ["boolean"],
        "fit_intercept": ["boolean"],
        "multiclass": [StrOptions(set(MULTICLASS))],
        "passes": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "grow_features": ["boolean"],
        "dtype": [StrOptions({"float32", "float64"}), None],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    # Whoever wants to know is told the classes of rows, and what was predicted before they were learnt.
    _judge: Callable[[np.ndarray, np.ndarray], None] | None = None

    def __init__(
        self,
        *,
        average: bool = False,
        fit_intercept: bool = True,
        multiclass: str = "ovr",
        passes: int = 1,
        shuffle: bool = False,
        random_state: Any = None,
        class_weight: Any = None,
        grow_features: bool = False,
        dtype: str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.average = average
        self.fit_intercept = fit_intercept
        self.multiclass = multiclass
        self.passes = passes
        self.shuffle = shuffle
        self.random_state = random_state
        self.class_weight = class_weight
        self.grow_features = grow_features
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _rule(self) -> tuple[Rule, Mapping[str, float]]:
        """The rule and the parameters given to it."""
        raise NotImplementedError("abstract: a subclass says by which rule it learns")

    # Learning

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OnlineBase:
        """Learn from scratch, in `passes` passes over the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), the class of each row
        sample_weight : array-like of shape (n_samples,), default=None
            What the step of each row is multiplied by; rows of weight 0 are skipped.

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            X, y = self._validate(X, y, dtype=self._dtypes(), reset=True)
            classes, codes = classes_and_codes(y)
            refuse_few_classes(classes)
            weights = row_weights(y, sample_weight, self.class_weight, classes, some=True)
            if not self.shuffle and self.passes == 1:
                warn_if_sorted(codes, len(classes))
            features = Features(X.shape[1], getattr(self, "feature_names_in_", None))
            model = self._new_model(classes, features, X.dtype, closed=False)
            self._learn(model, X, codes, weights, passes=self.passes)
            self._set_model(model)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> OnlineBase:
        """Go on learning, with one pass over these rows.

        Any cutting of a stream into chunks gives the same model, to the bit.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), the class of each row
        classes : array-like, default=None
            All classes that will come: they begin with the first row, and others are refused. Without
            it, a class begins with the first row that carries it.
        sample_weight : array-like of shape (n_samples,), default=None
            What the step of each row is multiplied by; rows of weight 0 are skipped.

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            model: Model | None = getattr(self, "_model", None)
            keys = None if model is None or not model.features.keyed else column_keys(X)
            dtypes = self._dtypes() if model is None else [model.heads.dtype]
            X, y = self._validate(X, y, dtype=dtypes, reset=model is None)
            X = canonical(X) if scipy.sparse.issparse(X) else X
            check_rows(X)

            def rows(features: Features) -> Any:
                if not features.keyed:
                    features.widen(X.shape[1], getattr(self, "feature_names_in_", None))
                return features.map(X, keys, grow=True)

            features = Features(X.shape[1]) if model is None else model.features
            self._go_on(model, features, rows, y, classes, sample_weight)
        return self

    def fit_stream(self, source: Any) -> OnlineBase:
        """Learn a stream larger than memory from scratch, in one pass, chunk by chunk.

        Parameters
        ----------
        source : str, path, sequence of those, or iterable of (X, y) or (X, y, weights)
            Files in svmlight's or Vowpal Wabbit's format, as `maxcosine.stream.open` takes them; or such a
            stream itself, or any other chunks. Columns and classes may come late.

        Returns
        -------
        self
        """
        from maxcosine.stream import open as open_stream

        named = isinstance(source, str | os.PathLike) or (
            isinstance(source, list | tuple) and all(isinstance(one, str | os.PathLike) for one in source)
        )
        chunks = open_stream(source) if named else source
        if not isinstance(chunks, Iterable):
            raise TypeError(
                f"a stream is the name of a file, several names, or an iterable of chunks (X, y), and not a "
                f"{type(source).__name__}"
            )
        twin = clone(self).set_params(grow_features=True)
        for number, chunk in enumerate(chunks):
            if not isinstance(chunk, tuple | list) or len(chunk) not in (2, 3):
                raise TypeError(f"chunk {number} of the stream is neither (X, y) nor (X, y, weights)")
            X, y, weights = chunk if len(chunk) == 3 else (*chunk, None)
            twin.partial_fit(X, y, sample_weight=weights)
        if not hasattr(twin, "_model"):
            raise ValueError("there is no example in the stream; is it the right file?")
        self._set_model(twin._model)
        return self

    def _go_on(
        self,
        model: Model | None,
        features: Features,
        rows: Callable[[Features], Any],
        y: np.ndarray,
        classes: Any,
        sample_weight: Any,
    ) -> None:
        """Learn from rows that were checked; what could still be refused comes before any change."""
        self._refuse_balanced()
        named = None if classes is None else given_classes(classes)
        if model is not None:
            self._refuse_changes(model)
        labels = labels_to_come(y, named, None if model is None else model.classes)
        if model is not None and model.closed and named is None and len(labels):
            raise unknown_labels(labels, model.classes)
        weights = row_weights(y, sample_weight, self.class_weight, labels)
        if model is not None and not model.rule.builtin:
            # An unproven rule may fail in the middle; then the model must be as it was.
            model = model.copy()
            features = model.features
        mapped = rows(features)
        started = model is not None
        if model is None:
            # The first classes are there, and the others begin when they come, unless they were named.
            first = labels if named is not None else labels[: 1 if self.multiclass == "joint" else 2]
            model = self._new_model(np.sort(first), features, mapped.dtype, closed=named is not None)
            labels = labels[len(first) :]
        if len(labels):
            model.add_classes(labels, waiting=named is None)
        if named is not None:
            model.closed = True
        codes = known_codes(y, model.classes)
        if not started and not self.shuffle and len(model.classes) > 1:
            warn_if_sorted(codes, len(model.classes))
        model.heads.set_params(model.rule.make_params(self._rule()[1]))
        self._learn(model, mapped, codes, weights, passes=1)
        self._set_model(model)
        self.__dict__.pop("_prepared_for", None)  # the rule's parameters are other ones now, perhaps

    def _refuse_balanced(self) -> None:
        if isinstance(self.class_weight, str):
            raise ValueError(
                "class_weight='balanced' needs all labels at once, as fit has them; for a stream give "
                "the weights themselves, class_weight={label: weight}, or sample_weight"
            )

    def _refuse_changes(self, model: Model) -> None:
        """What cannot change between calls of partial_fit; the rule's parameters can."""
        rule, params = self._rule()
        rule.make_params(params)
        heads = model.heads
        now = {
            "rule": rule,
            "average": self.average,
            "fit_intercept": self.fit_intercept,
            "multiclass": self.multiclass,
        }
        then = {
            "rule": heads.rule,
            "average": heads.average,
            "fit_intercept": heads.fit_intercept,
            "multiclass": model.multiclass,
        }
        if self.dtype is not None:
            now["dtype"], then["dtype"] = np.dtype(self.dtype), heads.dtype
        for name, value in now.items():
            if value is not then[name] and value != then[name]:
                raise ValueError(
                    f"{name} was {then[name]!r} when learning began and is {value!r} now; "
                    "start anew with fit, or with another estimator"
                )

    def _dtypes(self) -> list[Any]:
        """The types that weights may have; X of another one becomes the first."""
        return FLOATS if self.dtype is None else [np.dtype(self.dtype)]

    def _new_model(self, classes: np.ndarray, features: Features, dtype: Any, *, closed: bool) -> Model:
        rule, given = self._rule()
        try:
            return Model.create(
                rule,
                rule.make_params(given),
                classes,
                features,
                np.dtype(dtype),
                fit_intercept=self.fit_intercept,
                average=self.average,
                multiclass=self.multiclass,
                closed=closed,
            )
        except MemoryError as error:
            raise MemoryError(
                f"no memory for the weights of {features.n_features:,} features and {len(classes)} classes; "
                "reduce the columns, for example by hashing, or use float32"
            ) from error

    def _set_model(self, model: Model) -> None:
        self._model = model
        self.classes_ = model.classes
        self.n_features_in_ = model.features.n_features

    def _with_model(self, model: Model) -> OnlineBase:
        """A new estimator of this kind with another model."""
        twin: OnlineBase = clone(self)
        twin._set_model(model)
        if model.features.names is not None:
            twin.feature_names_in_ = model.features.names
        return twin

    def _learn(self, model: Model, rows: Any, codes: np.ndarray, weights: np.ndarray, *, passes: int) -> None:
        random = check_random_state(self.random_state)
        for number in range(1, passes + 1):
            order = random.permutation(len(codes)) if self.shuffle else np.arange(len(codes))
            if not self.verbose:
                predicted = NOT_PREDICTED if self._judge is None else np.empty(len(codes), np.int64)
                model.learn(rows, codes, order, weights, predicted=predicted)
                if self._judge is not None:
                    self._judge(codes, predicted)
                continue
            title = f"pass {number} of {passes}" if passes > 1 else "learning"
            for part in reported(order, f"[{type(self).__name__}] {title}", model):
                model.learn(rows, codes, part, weights)

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
        if not reset and self._model.features.keyed:
            X, y = check_X_y(X, y, estimator=self, **checks)
        elif self.grow_features and not reset:
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
        return self._model.scores(self._rows(X), effective_n_jobs(self.n_jobs))

    def _rows(self, X: Any) -> Any:
        """X as rows of slots, to be scored."""
        features = self._model.features
        keys = column_keys(X) if features.keyed else None
        checks: dict[str, Any] = {"accept_sparse": "csr", "dtype": [self._model.heads.dtype], "order": "C"}
        if features.keyed:
            X = check_array(X, estimator=self, **checks)
        elif self.grow_features:
            # Columns never seen have no weight, and columns left out have no value.
            self._check_grown_names(X)
            X = check_array(X, estimator=self, **checks)[:, : features.n_features]
            X = X if scipy.sparse.issparse(X) else np.ascontiguousarray(X)
        else:
            X = validate_data(self, X, reset=False, **checks)
        if scipy.sparse.issparse(X):
            check_indices(X)
        return features.map(X, keys, grow=False)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row; a score of 0 predicts ``classes_[0]``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        """
        codes = self._model_or_error().predicted_codes(self.decision_function(X))
        predicted: np.ndarray = self.classes_[codes]
        return predicted

    def _model_or_error(self) -> Model:
        check_is_fitted(self)
        return self._model

    def attained_margin(self, X: Any, y: Any) -> Any:
        """The margin that the hypothesis attains on these examples, zero rows skipped.

        If X, y are all examples it was learnt from, the largest margin of any separator lies
        between this and ``certificate_.margin_ceiling``.

        Returns
        -------
        a number for two classes, and for joint learning; else one a class
        """
        check_consistent_length(X, y)
        scores = self.decision_function(X)
        rows = X if scipy.sparse.issparse(X) else np.asarray(X)
        used = np.asarray((rows != 0).sum(axis=1)).ravel() > 0
        if not used.any() or not np.all(self.certificate_.norm):
            raise ValueError("no margin is attained: X has only zero rows, or the hypothesis is 0")
        codes = known_codes(np.asarray(y), self.classes_)
        margins = self._model.margins(scores[used], codes[used]).min(axis=1)
        return float(margins[0]) if len(margins) == 1 else margins

    # What was learnt

    def sparsify(self) -> OnlineBase:
        """Keep weights only for the columns that have any; `coef_` is then a sparse array.

        Predictions stay the same, and so does learning: a column that is new to the model gets
        weights when it first comes. It pays when fewer than half of the columns have weights.

        Returns
        -------
        self
        """
        self._model_or_error().sparsify()
        return self

    def densify(self) -> OnlineBase:
        """Undo `sparsify`: weights for every column.

        Returns
        -------
        self
        """
        self._model_or_error().densify()
        return self

    @property
    def coef_(self) -> Any:
        """Weights, of shape (1, n_features) for two classes, else (n_classes, n_features).

        For two classes w itself; for more, and rules to which the length of w means nothing, w / Lambda.
        After `sparsify` a sparse array.
        """
        return self._model_or_error().hypothesis()[0]

    @property
    def intercept_(self) -> np.ndarray:
        """The weights of the constant feature, of shape (1,) or (n_classes,)."""
        return self._model_or_error().hypothesis()[1]

    @property
    def features_(self) -> np.ndarray:
        """What each column of `coef_` is known by: a name, an id, or the number of a column of X."""
        return self._model_or_error().features.keys()

    @property
    def certificate_(self) -> Certificate:
        """What is proven of the hypothesis and of the examples seen."""
        return self._model_or_error().certificate()

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
        return self._model_or_error().n_seen

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
        A name in :data:`maxcosine.RULES`, or a rule of your own made with :func:`maxcosine.rules.rule`.
    rule_params : dict, default=None
        Values for the rule's parameters, in place of their defaults.
    average : bool, default=False
        Predict with the average of the hypotheses after each example.
    fit_intercept : bool, default=True
        Add a constant feature 1; it counts in the norm of each example.
    multiclass : {"ovr", "joint"}, default="ovr"
        How several classes are learnt: each against the rest, or jointly, by one hypothesis that tells
        every class from the best wrong one.
    passes : int, default=1
        Passes over the rows that `fit` makes.
    shuffle : bool, default=False
        Visit the rows in random order, anew in each pass.
    random_state : int, RandomState instance or None, default=None
        The seed of `shuffle`.
    class_weight : dict or "balanced", default=None
        What the steps of each class are multiplied by; "balanced", for `fit`, in inverse proportion to
        how often the classes occur.
    grow_features : bool, default=False
        Let later calls of `partial_fit` bring more columns; rows may then have fewer, too.
    dtype : {"float32", "float64"}, default=None
        The type of the weights; None is that of X, and float64 for dicts.
    n_jobs : int, default=None
        Threads that predictions are made with; None is one, -1 all cores.
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
        class_weight: Any = None,
        grow_features: bool = False,
        dtype: str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            average=average,
            fit_intercept=fit_intercept,
            multiclass=multiclass,
            passes=passes,
            shuffle=shuffle,
            random_state=random_state,
            class_weight=class_weight,
            grow_features=grow_features,
            dtype=dtype,
            n_jobs=n_jobs,
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
