"""A model that learns from a stream: labels and features as they come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxcosine.engine import BadRow, BadStep
from maxcosine.engine.learn import UNWEIGHTED
from maxcosine.features import Features
from maxcosine.index import FeatureIndex
from maxcosine.model import Model
from maxcosine.record import Record
from maxcosine.rules.rule import Rule
from maxcosine.stream.chunks import Stream
from maxcosine.stream.rows import Rows, n_columns
from maxcosine.stream.source import StreamError


class Settings(Record, frozen=True):
    """What a new model is to be."""

    rule: Rule
    params: tuple[float, ...]
    average: bool = False
    fit_intercept: bool = False
    multiclass: str = "ovr"
    dtype: Any = np.float32


class StreamLearner:
    """Learns rows of a stream into a model."""

    def __init__(self, settings: Settings, model: Model | None = None) -> None:
        self.settings = settings
        self.model = model
        self._codes = np.empty(0, np.int64)
        """Of the labels of the stream: their positions among the classes."""
        self._named = np.empty(0, np.bool_)
        """Of hashed columns: whether a name of theirs is kept."""

    def learn(self, stream: Stream, rows: Rows, *, predicting: bool = True) -> np.ndarray:
        """Learn rows, in their order; returns what was predicted of each, as positions among the classes.

        What the engine refuses is told by its line.
        """
        if not len(rows):
            return np.empty(0, np.int64)
        before = self._n_seen
        try:
            return self._learn_in_order(stream, rows, predicting)
        except (BadRow, BadStep) as error:
            at = rows.ends.start(self._n_seen - before)
            raise StreamError(f"{stream.where(at.source, at.line)}: {error}") from None

    @property
    def _n_seen(self) -> int:
        return 0 if self.model is None else self.model.n_seen

    def _learn_in_order(self, stream: Stream, rows: Rows, predicting: bool) -> np.ndarray:
        alone = self._n_alone(stream, rows)
        if alone:
            # Nothing but the first class is predicted before a second one comes, wherever blocks end.
            self._learn(stream, stream.labels[: rows.codes[0] + 1], rows[:alone], False)
        rest = np.empty(0, np.int64)
        if alone < len(rows):
            rest = self._learn(stream, stream.labels, rows[alone:] if alone else rows, predicting)
        return np.concatenate([self.codes_of(rows[:alone]), rest]) if predicting and alone else rest

    def _n_alone(self, stream: Stream, rows: Rows) -> int:
        """How many rows there are before a second class, if there is none yet."""
        if self.model is None:
            first = stream.labels[rows.codes[0]]
        elif len(self.model.classes) == 1:
            first = text_of(self.model.classes.tolist()[0])
        else:
            return 0
        others = np.array([label != first for label in stream.labels])[rows.codes]
        return int(np.argmax(others)) if others.any() else len(rows)

    def _learn(self, stream: Stream, labels: Sequence[str], rows: Rows, predicting: bool) -> np.ndarray:
        model = self.model if self.model is not None else self._new_model(stream, labels, rows)
        self.model = model
        X = matrix(stream, model, rows, grow=True)
        self._know(model, labels)
        self._keep_names(model.features, rows)
        codes = self.codes_of(rows)
        predicted = np.empty(len(rows) if predicting else 0, np.int64)
        weights = UNWEIGHTED if rows.weights is None else rows.weights
        model.learn(X, codes, weights=weights, mapped=True, predicted=predicted)
        return predicted

    def codes_of(self, rows: Rows) -> np.ndarray:
        """The classes of rows that were learnt, as positions among those of the model."""
        codes: np.ndarray = self._codes[rows.codes]
        return codes

    def _new_model(self, stream: Stream, labels: Sequence[str], rows: Rows) -> Model:
        s = self.settings
        # The first classes are there, the others begin when they come.
        first = np.sort(np.array(labels[: 1 if s.multiclass == "joint" else 2]))
        return Model.create(
            s.rule,
            s.params,
            first,
            new_features(stream, rows),
            np.dtype(s.dtype),
            fit_intercept=s.fit_intercept,
            average=s.average,
            multiclass=s.multiclass,
            closed=False,
        )

    def _know(self, model: Model, labels: Sequence[str]) -> None:
        """Find the classes of new labels; classes that are new begin with the first row that carries them."""
        if len(labels) == len(self._codes):
            return
        texts = [text_of(label) for label in model.classes.tolist()]
        new = [label for label in labels if label not in texts]
        if new and model.closed:
            raise StreamError(f"the model knows no class {new[0]!r}; its classes are {', '.join(texts[:20])}")
        if new:
            model.add_classes(_typed(new, model.classes), waiting=True)
        position = {text_of(label): k for k, label in enumerate(model.classes.tolist())}
        self._codes = np.array([position[label] for label in labels], np.int64)

    def _keep_names(self, features: Features, rows: Rows) -> None:
        """Remember the first name of each hashed column."""
        if rows.named is None:
            return
        if features.kept_names is None:
            features.kept_names = {}
        if len(self._named) != features.n_features:
            self._named = np.zeros(features.n_features, np.bool_)
            self._named[list(features.kept_names)] = True
        for letters, starts, columns, _ in rows.named:
            new = np.flatnonzero(~self._named[columns])
            found, first = np.unique(columns[new], return_index=True)
            self._named[found] = True
            for column, k in zip(found.tolist(), new[first].tolist(), strict=True):
                name = letters[starts[k] : starts[k + 1]].tobytes()
                features.kept_names[column] = name.decode(errors="backslashreplace")


def new_features(stream: Stream, rows: Rows) -> Features:
    """What the features of a stream are known by."""
    if stream.exact:
        return Features.by_key("ids" if rows.names is None else "names")
    features = Features(1 << stream.bits if stream.bits else 0)
    features.bits = stream.bits or None
    return features


def matrix(stream: Stream, model: Model, rows: Rows, *, grow: bool) -> Any:
    """The rows over the slots of a model; features that it does not know are new ones, or left out."""
    features = model.features
    if not len(rows):
        return features.slot_rows(rows.indptr, rows.columns, rows.data)
    _check_kind(stream, features, rows)
    if features.undecided:
        kind = "names" if rows.names is not None else "ids"
        index = FeatureIndex(kind)
        if grow:
            features.index = index
        rows = stream.mapped(rows, index, grow=grow)
    elif features.keyed:
        assert features.index is not None
        rows = stream.mapped(rows, features.index, grow=grow)
    else:
        width = n_columns(rows.columns) if rows.n_columns is None else rows.n_columns
        if width > features.n_features:
            if grow:
                _widen(features, width)
            else:
                rows = _within(rows, features.n_features)
        if features.index is not None:
            rows = stream.mapped(rows, features.index, grow=grow)
    return features.slot_rows(rows.indptr, rows.columns, rows.data, rows.squares)


def _check_kind(stream: Stream, features: Features, rows: Rows) -> None:
    """Refuse data whose features are known by something else than those of the model."""
    if features.keyed:
        if features.undecided or features.by_name == (rows.names is not None):
            return
        known, given = ("name", "numbers") if features.by_name else ("number", "names")
        raise StreamError(
            f"the model knows its features by {known}, and those of {stream.source.title(0)} have {given}; "
            "give data in the format that it was learnt from"
        )
    if (stream.bits or None) != features.bits:
        known = f"hashed to {features.bits} bits" if features.bits else "column numbers"
        given = f"hashed to {stream.bits} bits" if stream.bits else "column numbers"
        raise StreamError(
            f"the features of the model are {known}, and those of {stream.source.title(0)} are {given}; "
            "give data in the format that it was learnt from"
        )


def _widen(features: Features, n_columns: int) -> None:
    if features.names is not None:
        raise StreamError(
            f"the model has {features.n_features} columns with names, and the data have more; "
            "learn from data frames with the estimators"
        )
    features.widen(n_columns, None)


def _within(rows: Rows, n_columns: int) -> Rows:
    """The rows without columns that a model does not have."""
    kept = rows.columns < n_columns
    before = np.concatenate([[0], np.cumsum(kept)])
    return Rows(
        before[rows.indptr], rows.columns[kept], None, rows.data[kept], rows.codes, rows.weights, rows.ends
    )


def plain(value: Any) -> Any:
    """A number or an array as JSON has it, where nothing is infinite."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def text_of(label: Any) -> str:
    """A class as a stream writes it: whole numbers without a point."""
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)


def _typed(labels: Sequence[str], classes: np.ndarray) -> np.ndarray:
    """New labels as the classes of a model are."""
    if classes.dtype.kind in "OU":
        return np.array(labels)
    try:
        return np.array([classes.dtype.type(label) for label in labels])
    except ValueError:
        raise StreamError(
            f"the label {labels[0]!r} is no number, as the classes of the model are; "
            "train a new model, or map labels to numbers"
        ) from None
