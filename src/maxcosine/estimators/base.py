"""The base class of all classifiers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from maxcosine.estimators.dicts import DictMethods
from maxcosine.estimators.documentation import documented
from maxcosine.estimators.fitted import FittedAttributes, LinearAttributes, lock_of, set_model, set_trace
from maxcosine.estimators.labels import classes_and_codes, known_codes, warn_if_sorted
from maxcosine.estimators.learning import learn_chunk, learn_passes, learning, new_model, weight_types
from maxcosine.estimators.parameters import Check, check_parameters, rule_of
from maxcosine.estimators.probabilities import ProbabilityMethods
from maxcosine.estimators.records import RecordMethods
from maxcosine.estimators.validation import check_training_data, rows_to_score
from maxcosine.estimators.weights import row_weights
from maxcosine.features import Features
from maxcosine.model import Model
from maxcosine.rows import check_rows
from maxcosine.rules.rule import Rule


# A dataclass writes the constructor that scikit-learn wants: every parameter is stored under its name.
@dataclass(eq=False, repr=False, kw_only=True)
class StreamClassifier(
    DictMethods, RecordMethods, ProbabilityMethods, FittedAttributes, ClassifierMixin, BaseEstimator
):
    """What all classifiers have: learning from arrays, chunks, files and dicts, and predictions."""

    shuffle: bool = False
    random_state: Any = None
    class_weight: Any = None
    grow_features: bool = False
    dtype: str | None = None
    n_jobs: int | None = None
    verbose: int = 0

    # The checks of parameters that a subclass adds, and whether it learns from rows of any finite norm.
    _checks: ClassVar[Mapping[str, Check]] = {}
    _any_norm: ClassVar[bool] = False

    def _new_model(self, labels: np.ndarray, features: Features, dtype: np.dtype, *, closed: bool) -> Any:
        """Return a model that has learnt nothing; `labels` are its first classes, `closed` refuses others."""
        raise NotImplementedError("a subclass has models of its own")

    def _settings(self, model: Any) -> list[tuple[str, Any, Any]]:
        """Return the parameters that a model depends on: name, value in the model, value now."""
        return [("dtype", model.dtype, np.dtype(self.dtype or model.dtype))]

    def _n_first(self, labels: np.ndarray) -> int:
        """Return how many of the first classes of a stream begin together."""
        return len(labels)

    def _prepare(self, model: Any) -> None:
        """Give a model the parameters that may change at any time."""

    def _check_rows(self, rows: Any) -> None:
        """Refuse rows that cannot be learnt from."""
        check_rows(rows)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from scratch, in one pass over the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            The class of each row.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts, relative to the mean weight so far. Rows of weight 0 are as if absent.

        Returns
        -------
        self
            The fitted classifier.
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any, *, passes: int = 1, trace: bool = False) -> Self:
        with learning(self):
            check_parameters(self)
            X, y = check_training_data(self, X, y, dtype=weight_types(self), reset=True)
            classes, codes = classes_and_codes(y)
            weights = row_weights(y, sample_weight, self.class_weight, classes, allow_all_zero=False)
            if not self.shuffle and passes == 1:
                warn_if_sorted(codes, len(classes), stacklevel=3)
            features = Features(X.shape[1], getattr(self, "feature_names_in_", None))
            model = new_model(self, classes, features, X.dtype, closed=False)
            learn_passes(self, model, X, codes, weights, passes=passes, trace=trace)
            set_model(self, model)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning, in one pass over these rows.

        The model does not depend on how a stream is cut into chunks, to the bit.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            The class of each row.
        classes : array-like, default=None
            All classes: they begin with the first row, and others are refused. Without it, a class begins
            with its first row.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts, relative to the mean weight so far. Rows of weight 0 are as if absent.

        Returns
        -------
        self
            The classifier.
        """
        with learning(self):
            learn_chunk(self, X, y, classes, sample_weight)
        return self

    def fit_stream(self, source: Any, **options: Any) -> Self:
        """Learn a stream larger than memory from scratch, in one pass, chunk by chunk.

        Columns and classes may appear late. Files in other formats are refused, and so are labels that are hardly
        classes: numbers that are not whole, or more than 1,000 classes before example 20,000. If they are meant, say
        ``any_labels=True``.

        Parameters
        ----------
        source : str, path, sequence of those, or iterable of (X, y) or (X, y, weights)
            Files in the format of svmlight or Vowpal Wabbit, as :func:`maxcosine.data.open_stream` takes
            them; or a stream, or any other chunks.
        **options : dict
            How files are read: the parameters of `maxcosine.data.ReadOptions`.

        Returns
        -------
        self
            The fitted classifier.
        """
        from maxcosine.data import Stream, open_stream

        sources = source if isinstance(source, list | tuple) else [source]
        are_files = all(isinstance(one, str | os.PathLike) for one in sources)
        if options and not are_files:
            raise TypeError(f"{next(iter(options))} is an option for reading files; leave it out for chunks")
        stream = open_stream(source, any_norm=self._any_norm, **options) if are_files else source
        chunks = stream.chunks_to_learn() if isinstance(stream, Stream) else stream
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
        if isinstance(stream, Stream):
            twin._model.features.set_hashing(stream.options.bits, stream.text_format)
        with learning(self):
            set_model(self, twin._model)
            set_trace(self, None)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute the scores ``X @ coef_.T + intercept_``.

        Parameters
        ----------
        X : array-like, sparse matrix or list of dicts, of n_samples rows
            The rows; dicts are as `learn_one` takes them.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            One score for each row for two classes, else one for each class.
        """
        with lock_of(self).reading:
            check_is_fitted(self)
            return self._model.scores(rows_to_score(self, X), effective_n_jobs(self.n_jobs))

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of each row; a score of 0 predicts ``classes_[0]``.

        Parameters
        ----------
        X : array-like, sparse matrix or list of dicts, of n_samples rows
            The rows; dicts are as `learn_one` takes them.

        Returns
        -------
        array of shape (n_samples,)
            The classes.
        """
        with lock_of(self).reading:
            check_is_fitted(self)
            return self._model.predict(rows_to_score(self, X), effective_n_jobs(self.n_jobs))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class OnlineBase(LinearAttributes, StreamClassifier):
    """Base class of the classifiers of all rules.

    A subclass says by which rule it learns. Use it for `isinstance`; to learn, use
    :class:`~maxcosine.OnlineClassifier` or the class of a rule, such as :class:`~maxcosine.MCPClassifier`.

    Parameters
    ----------
    {parameters_and_attributes}

    Examples
    --------
    >>> from maxcosine import MCPClassifier, OnlineBase
    >>> isinstance(MCPClassifier(), OnlineBase)
    True
    """

    average: bool = False
    fit_intercept: bool = True
    multiclass: str = "ovr"
    passes: int = 1
    probability: bool = False

    def _rule(self) -> tuple[Rule, Mapping[str, float]]:
        """Return the rule and the parameters that the user gave it."""
        raise NotImplementedError("a subclass says by which rule it learns")

    def _new_model(self, labels: np.ndarray, features: Features, dtype: np.dtype, *, closed: bool) -> Model:
        rule, params = rule_of(self)
        return Model.create(
            rule,
            params,
            np.sort(labels),
            features,
            dtype,
            fit_intercept=self.fit_intercept,
            average=self.average,
            probability=self.probability,
            multiclass=self.multiclass,
            closed=closed,
        )

    def _settings(self, model: Model) -> list[tuple[str, Any, Any]]:
        heads = model.heads
        return [
            ("rule", heads.rule, rule_of(self)[0]),
            ("average", heads.average, self.average),
            ("probability", heads.probability, self.probability),
            ("fit_intercept", heads.fit_intercept, self.fit_intercept),
            ("multiclass", model.multiclass, self.multiclass),
            *super()._settings(model),
        ]

    def _n_first(self, labels: np.ndarray) -> int:
        return 1 if self.multiclass == "joint" else 2

    def _prepare(self, model: Model) -> None:
        model.heads.set_params(rule_of(self)[1])

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, trace: bool = False) -> Self:
        """Learn from scratch, in `passes` passes over the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            The class of each row.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts, relative to the mean weight so far. Rows of weight 0 are as if absent.
        trace : bool, default=False
            Record every step in `trace_`. It takes 72 bytes for each row and hypothesis, in each pass.

        Returns
        -------
        self
            The fitted classifier.
        """
        return self._fit(X, y, sample_weight, passes=self.passes, trace=trace)

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, *, trace: bool = False
    ) -> Self:
        """Go on learning, in one pass over these rows.

        The model does not depend on how a stream is cut into chunks, to the bit.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            The class of each row.
        classes : array-like, default=None
            All classes: they begin with the first row, and others are refused. Without it, a class begins
            with its first row.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts, relative to the mean weight so far. Rows of weight 0 are as if absent.
        trace : bool, default=False
            Record every step in `trace_`. It takes 72 bytes for each row and hypothesis.

        Returns
        -------
        self
            The classifier.
        """
        with learning(self):
            learn_chunk(self, X, y, classes, sample_weight, trace=trace)
        return self

    def attained_margin(self, X: Any, y: Any) -> Any:
        """Compute the margin that the hypothesis attains on these examples, rounded down.

        Rows of zeros are skipped if there is no intercept: they have no direction.

        If they are all examples that it was learnt from, the largest margin of any separator lies between
        this one and ``certificate_.margin_ceiling``.

        Parameters
        ----------
        X : array-like, sparse matrix or list of dicts, of n_samples rows
            The rows; dicts are as `learn_one` takes them.
        y : array-like of shape (n_samples,)
            The class of each row.

        Returns
        -------
        float or array of shape (n_classes,)
            A number for two classes and for joint learning, else one for each class.
        """
        check_consistent_length(X, y)
        with lock_of(self).reading:
            model = self.model_
            codes = known_codes(np.asarray(y), model.classes)
            margins = model.attained_margins(rows_to_score(self, X), codes, effective_n_jobs(self.n_jobs))
        return float(margins[0]) if len(margins) == 1 else margins

    def sparsify(self) -> Self:
        """Keep weights only for the columns that have any; `coef_` is then a sparse array.

        Predictions and further learning stay the same: a new column gets weights when it first occurs. It
        saves memory if fewer than half of the columns have weights.

        Returns
        -------
        self
            The classifier.
        """
        with lock_of(self).learning:
            self.model_.sparsify()
        return self

    def densify(self) -> Self:
        """Undo `sparsify`: store weights for every column.

        Returns
        -------
        self
            The classifier.
        """
        with lock_of(self).learning:
            self.model_.densify()
        return self
