"""A model that learns from a stream: labels and features may appear at any time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

import numpy as np

from maxcosine.base_model import BaseModel
from maxcosine.core import FeatureIndex
from maxcosine.data import RowBatch, Stream, StreamError
from maxcosine.data.stream import slots_of
from maxcosine.drift import OnDrift
from maxcosine.engine import BadStep
from maxcosine.features import Features
from maxcosine.labels import label_text
from maxcosine.model import Model
from maxcosine.onepass_model import OnePassModel
from maxcosine.rows import BadRow, SlotRows
from maxcosine.rules.rule import Rule


@dataclass(frozen=True)
class Settings:
    """The options of a new model; `params` are as `rule.make_params` returns them."""

    rule: Rule
    params: tuple[float, ...]
    average: bool = False
    fit_intercept: bool = False
    multiclass: str = "ovr"
    dtype: str | np.dtype = "float32"
    probability: bool = False

    @property
    def own_rules(self) -> list[Rule]:
        """The rules that a model file may refer to."""
        return [self.rule]

    def new_model(self, labels: Sequence[str], features: Features) -> BaseModel:
        """Return a model that has learnt nothing; its first classes exist from the start, others begin later."""
        classes = np.sort(np.array(labels[: 1 if self.multiclass == "joint" else 2]))
        model = Model.create(
            self.rule,
            self.params,
            classes,
            features,
            np.dtype(self.dtype),
            fit_intercept=self.fit_intercept,
            average=self.average,
            probability=self.probability,
            multiclass=self.multiclass,
            closed=False,
        )
        model.await_classes()
        return model

    def prepare(self, model: BaseModel) -> None:
        """Give a model what may change at any time: of a rule, nothing."""


@dataclass(frozen=True)
class OnePassSettings:
    """The options of a one-pass model: it needs none."""

    dtype: str | np.dtype = "float32"
    on_drift: OnDrift = "restart"

    @property
    def own_rules(self) -> list[Rule]:
        """It has no rule."""
        return []

    def new_model(self, labels: Sequence[str], features: Features) -> BaseModel:
        """Return a model that has learnt nothing; its classes begin with their first rows."""
        return OnePassModel.create(np.sort(np.array(labels[:1])), features, np.dtype(self.dtype), closed=False)

    def prepare(self, model: BaseModel) -> None:
        """Give a model what may change at any time."""
        if isinstance(model, OnePassModel):
            model.on_drift = self.on_drift


class AnySettings(Protocol):
    """What a `StreamLearner` needs of settings."""

    @property
    def own_rules(self) -> list[Rule]:
        """The rules that a model file may refer to."""

    def new_model(self, labels: Sequence[str], features: Features) -> BaseModel:
        """Return a model that has learnt nothing."""

    def prepare(self, model: BaseModel) -> None:
        """Give a model what may change at any time."""


class StreamLearner:
    """Learns the batches of a stream into a model: a new one, or one that goes on learning.

    Attributes
    ----------
    model : BaseModel or None
        None before the first example.
    """

    def __init__(self, settings: AnySettings, model: BaseModel | None = None) -> None:
        self.settings = settings
        self.model = model
        self._codes = np.zeros(0, np.int64)
        """The code of each label of the stream among the classes of the model."""
        self._has_name = np.zeros(0, bool)
        """Which hashed columns have a name."""

    def learn(self, stream: Stream, batch: RowBatch) -> np.ndarray:
        """Learn rows in their order; return the code predicted for each row just before it was learnt.

        The code is -1 before any class is known.
        """
        if not len(batch):
            return np.zeros(0, np.int64)
        # Rows before the second class are learnt separately: the result must not depend on where blocks end.
        labels, n_single = stream.labels.names, self._n_single(stream, batch)
        if not n_single:
            return self._learn_rows(stream, labels, batch)
        single, rest = batch[:n_single], batch[n_single:]
        predicted = self._learn_rows(stream, labels[: batch.codes[0] + 1], single)
        if not len(rest):
            return predicted
        later = self._learn_rows(stream, labels, rest)
        # The classes in the rest may have changed the code of the only class before.
        return np.concatenate([np.where(predicted < 0, predicted, self.codes_of(single)), later])

    def codes_of(self, batch: RowBatch) -> np.ndarray:
        """Return the codes of the classes of rows that were learnt."""
        codes: np.ndarray = self._codes[batch.codes]
        return codes

    def _n_single(self, stream: Stream, batch: RowBatch) -> int:
        """Count the rows before a second class, if the model has no second class yet."""
        labels = stream.labels.names
        if self.model is None:
            first = labels[batch.codes[0]]
        elif len(self.model.classes) == 1:
            first = label_text(self.model.classes.tolist()[0])
        else:
            return 0
        others = np.array([label != first for label in labels])[batch.codes]
        return int(np.argmax(others)) if others.any() else len(batch)

    def _learn_rows(self, stream: Stream, labels: Sequence[str], batch: RowBatch) -> np.ndarray:
        model = self.model = self.model or self._new_model(stream, labels, batch)
        self.settings.prepare(model)
        predicted = np.empty(len(batch), np.int64)
        try:
            with model.lock.learning:
                rows = rows_of(stream, model.features, batch, grow=True)
                model.features.records = stream.options.schema
                self._add_labels(model, labels)
                self._keep_names(model.features, batch)
                model.learn(rows, self.codes_of(batch), weights=batch.weights, mapped=True, predicted=predicted)
        except (BadRow, BadStep) as error:
            place = batch.places.start(error.row)
            raise StreamError(f"{stream.inputs.where(place.source, place.line)}: {error}") from None
        return predicted

    def _new_model(self, stream: Stream, labels: Sequence[str], batch: RowBatch) -> BaseModel:
        bits = stream.options.bits
        if stream.options.schema is not None:
            features = Features.of_records(stream.options.schema, bits)
        elif batch.kind != "columns":
            features = Features.by_key(batch.kind)
        else:
            features = Features(1 << bits if bits else 0)
            features.set_hashing(bits, stream.text_format)
        return self.settings.new_model(labels, features)

    def _add_labels(self, model: BaseModel, labels: Sequence[str]) -> None:
        """Find the classes of new labels; a new class begins with the first row that has it."""
        if len(labels) == len(self._codes):
            return
        codes = model.labels.text_codes(labels)
        new = [label for label, code in zip(labels, codes, strict=True) if code < 0]
        if new and model.closed:
            known = ", ".join(map(label_text, model.classes.tolist()[:20]))
            raise StreamError(f"the model knows no class {new[0]!r}; its classes are {known}")
        if new:
            try:
                model.add_classes(model.labels.parse(new), waiting=True)
            except ValueError as error:
                raise StreamError(str(error)) from None
            codes = model.labels.text_codes(labels)
        self._codes = codes

    def _keep_names(self, features: Features, batch: RowBatch) -> None:
        """Remember the first name of each hashed column."""
        if batch.hashed_names is None or batch.hashed_columns is None:
            return
        if features.kept_names is None:
            features.kept_names = {}
        if len(self._has_name) != features.n_features:
            self._has_name = np.zeros(features.n_features, bool)
            self._has_name[list(features.kept_names)] = True
        columns, (letters, starts) = batch.hashed_columns, batch.hashed_names
        new = np.flatnonzero(~self._has_name[columns])
        found, first = np.unique(columns[new], return_index=True)
        self._has_name[found] = True
        for column, k in zip(found.tolist(), new[first].tolist(), strict=True):
            name = letters[starts[k] : starts[k + 1]].tobytes()
            features.kept_names[column] = name.decode(errors="backslashreplace")


def rows_of(stream: Stream, features: Features, batch: RowBatch, *, grow: bool) -> SlotRows:
    """Map a batch of a stream to the slots of a model; new features get a slot, or are left out."""
    if len(batch):
        _check_kind(stream, features, batch)
    index = features.index
    if features.undecided:
        index = FeatureIndex(batch.kind)
        if grow:
            features.index = index
    elif batch.kind == "columns":
        batch = _fit_columns(features, batch, grow)
        if index is None:
            columns = cast(np.ndarray, batch.keys)
            return SlotRows(batch.indptr, columns, batch.values, features.n_slots, batch.squares)
    assert index is not None
    return SlotRows(*slots_of(batch, index, stream.options, grow=grow), features.n_slots)


def _fit_columns(features: Features, batch: RowBatch, grow: bool) -> RowBatch:
    """Give the model the columns of a batch, or leave out those that it does not have."""
    columns, n_columns = cast(np.ndarray, batch.keys), batch.n_columns
    if n_columns is None:
        n_columns = int(columns.max()) + 1 if len(columns) else 0
    if n_columns <= features.n_features:
        return batch
    if not grow:
        known = columns < features.n_features
        indptr = np.concatenate([[0], np.cumsum(known)])[batch.indptr]
        return replace(batch, indptr=indptr, keys=columns[known], values=batch.values[known], squares=None)
    if features.names is not None:
        raise StreamError(
            f"the model has {features.n_features} columns with names, and the data have more columns; "
            "learn from data frames with the estimators"
        )
    features.widen(n_columns, None)
    return batch


def _check_kind(stream: Stream, features: Features, batch: RowBatch) -> None:
    """Refuse data whose features are known by something else than those of the model."""
    title = stream.inputs.title(0)
    advice = "give data in the format that it was learnt from"
    if features.keyed:
        if features.undecided or features.by_name == (batch.kind == "names"):
            return
        known, given = ("name", "numbers") if features.by_name else ("number", "names")
        raise StreamError(f"the model knows its features by {known}, and those of {title} have {given}; {advice}")
    bits = stream.options.bits or None
    if bits != features.bits:
        known = f"hashed to {features.bits} bits" if features.bits else "column numbers"
        given = f"hashed to {bits} bits" if bits else "column numbers"
        raise StreamError(f"the features of the model are {known}, and those of {title} are {given}; {advice}")
