"""Learning from records: tables with named columns, in files or in memory."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone

from maxcosine.data import ReadOptions, RowBatch, Stream, StreamError
from maxcosine.data.inputs import Inputs
from maxcosine.estimators.fitted import lock_of, set_model, set_trace
from maxcosine.estimators.learning import check_unchanged, refuse_balanced
from maxcosine.estimators.parameters import check_parameters
from maxcosine.estimators.record_streams import how_known, open_records, tell_new_columns
from maxcosine.features import Features
from maxcosine.records import RecordOptions
from maxcosine.rules.rule import Rule
from maxcosine.training import StreamLearner

if TYPE_CHECKING:
    from maxcosine.estimators.base import StreamClassifier

_OF_RECORDS = {field.name for field in fields(RecordOptions)}


class RecordMethods:
    """The methods `fit_records` and `partial_fit_records` of every classifier."""

    def fit_records(self, source: Any, label: str, **options: Any) -> Self:
        """Learn records from scratch, in one pass: raw data as people have them, with text, categories and dates.

        Columns become features by what they are: numbers; booleans, categories and short strings, one feature a value;
        dates, by their parts; texts, one feature a word; lists of strings; nested objects. A missing value is a feature
        of its own. What the columns are is inferred from the first 1,000 rows. `predict` and the other methods then
        take such records, too: data frames, Arrow tables and lists of dicts.

        Parameters
        ----------
        source : str, path, sequence of those, data frame, Arrow data or iterable of dicts
            Files in CSV, TSV, JSON lines, Parquet or Arrow IPC, plain, gzip or zstd; pandas, polars, pyarrow and
            whatever exports Arrow data; or dicts of column to value.
        label : str
            The column of the labels. Whole numbers and booleans keep their type; so do
            texts in memory that look like them.
        **options : dict
            The parameters of `maxcosine.records.RecordOptions`: `weight`, `numeric`, `categorical`, `text`, `drop`,
            `ngrams` and `chars`; and of `maxcosine.data.ReadOptions`, for example `exact=True` for features without
            hashing.

        Returns
        -------
        self
            The fitted classifier.

        Examples
        --------
        >>> from maxcosine import OnePassClassifier
        >>> mails = [
        ...     {"text": "free money now", "sender": "shop", "spam": "yes"},
        ...     {"text": "lunch at noon", "sender": "friend", "spam": "no"},
        ... ]
        >>> learner = OnePassClassifier().fit_records(mails, label="spam", text="text")
        >>> learner.predict([{"text": "free money", "sender": "shop"}]).tolist()
        ['yes']
        """
        estimator: Any = self
        check_parameters(estimator)
        model = _learn(estimator, None, source, _read_options(estimator, label, options))
        with lock_of(self).learning:
            set_model(self, model)
            set_trace(self, None)
        return self

    def partial_fit_records(self, source: Any, **options: Any) -> Self:
        """Go on learning from records, in one pass; the columns keep what they are.

        Parameters
        ----------
        source : str, path, sequence of those, data frame, Arrow data or iterable of dicts
            As for `fit_records`.
        **options : dict
            How to read: parameters of `maxcosine.data.ReadOptions`, such as `on_bad`.

        Returns
        -------
        self
            The classifier.
        """
        estimator: Any = self
        check_parameters(estimator)
        model = estimator.model_.copy()
        schema = model.features.records
        if schema is None:
            raise ValueError("this classifier was not learnt from records; begin with fit_records")
        check_unchanged(estimator, model)
        read = ReadOptions(**options, schema=schema, **how_known(model), purpose="learn", any_norm=estimator._any_norm)
        learnt = _learn(estimator, model, source, read)
        with lock_of(self).learning:
            set_model(self, learnt)
        return self


def _read_options(estimator: StreamClassifier, label: str, options: dict[str, Any]) -> ReadOptions:
    known = _OF_RECORDS | {field.name for field in fields(ReadOptions)}
    if unknown := sorted(set(options) - known):
        raise TypeError(f"fit_records has no option {unknown[0]!r}; its options are {', '.join(sorted(known))}")
    of_records = {name: options.pop(name) for name in list(options) if name in _OF_RECORDS}
    records = RecordOptions(label=label, **of_records)
    dtype = estimator.dtype or "float32"
    own: dict[str, Any] = {"dtype": dtype, "purpose": "learn", "any_norm": estimator._any_norm, "keep_names": True}
    return ReadOptions(**{**own, **options}, records=records)


class _EstimatorSettings:
    """The settings of a `StreamLearner` that are those of a classifier."""

    def __init__(self, estimator: StreamClassifier, stream: Stream) -> None:
        self._estimator, self._stream = estimator, stream

    @property
    def own_rules(self) -> list[Rule]:
        """None: nothing is read from a file."""
        return []

    def new_model(self, labels: Sequence[str], features: Features) -> Any:
        """Return a model that has learnt nothing, with classes in the type of the label column."""
        estimator = self._estimator
        classes = _native_labels(labels[: estimator._n_first(np.array(labels))], self._stream)
        model = estimator._new_model(np.sort(classes), features, np.dtype(self._stream.options.dtype), closed=False)
        model.await_classes()
        return model

    def prepare(self, model: Any) -> None:
        """Give a model the parameters that may change at any time."""
        self._estimator._prepare(model)


def _native_labels(labels: Sequence[str], stream: Stream) -> np.ndarray:
    """Return labels of a stream as whole numbers, booleans or texts; texts in memory stay texts."""
    schema = stream.options.schema
    assert schema is not None
    assert schema.label is not None
    if schema.label_type == "text" or (schema.label.stored == "string" and not isinstance(stream.inputs, Inputs)):
        return np.array(labels)
    if schema.label_type == "boolean":
        return np.array([label == "true" for label in labels])
    try:
        return np.array([int(label) for label in labels])
    except ValueError:
        shown = ", ".join(map(repr, labels[:20]))
        raise StreamError(
            f"the first labels are whole numbers, and not all others: {shown}; write them alike"
        ) from None


def _learn(estimator: Any, model: Any, source: Any, options: ReadOptions) -> Any:
    """Learn a stream of records into a model, or into a new one, which only this thread knows."""
    refuse_balanced(estimator)
    stream = open_records(source, options)
    learner = StreamLearner(_EstimatorSettings(clone(estimator), stream), model)
    for batch in stream.batches():
        learner.learn(stream, _weighted(batch, stream, estimator.class_weight))
    learnt: Any = learner.model
    stream.refuse_empty(stream.n_examples, 0 if learnt is None else learnt.features.n_features)
    tell_new_columns(stream)
    if stream.n_bad:
        warnings.warn(f"{stream.n_bad:,} bad rows skipped: {'; '.join(stream.bad.messages)}", stacklevel=3)
    return learnt


def _weighted(batch: RowBatch, stream: Stream, class_weight: Any) -> RowBatch:
    """Multiply the weights of the classes into those of the rows."""
    if not class_weight:
        return batch
    labels = _native_labels(stream.labels.names, stream).tolist()
    factors = np.array([float(class_weight.get(label, 1.0)) for label in labels])[batch.codes]
    return replace(batch, weights=factors if batch.weights is None else batch.weights * factors)
