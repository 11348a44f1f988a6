"""What the models of all learners share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from maxcosine.core import FeatureIndex, ModelLock
from maxcosine.features import Features, plain_dict
from maxcosine.labels import LabelEncoder
from maxcosine.progressive_error import ProgressiveError


class BaseModel:
    """What all models have: classes, features, a lock, and predictions from scores.

    Threads share a model by its lock: any number hold `lock.reading`, or one holds `lock.learning`. A thread that
    took it twice would wait for itself. So only the methods and functions that users call take it, for the whole of
    what they do: those of the classifiers, of `training` and of `model_file`, and here `copy` and pickling.
    """

    classes: np.ndarray
    """The classes, sorted."""
    features: Features
    closed: bool
    """All classes were named: no others may come."""
    lock: ModelLock
    """Its own; the successive models of one classifier share one."""
    _cache: dict[str, Any]
    """What was computed from what was learnt since that last changed."""

    def __post_init__(self) -> None:
        self.labels = LabelEncoder(self.classes)

    @property
    def rule_name(self) -> str:
        """The name of what it learns by."""
        raise NotImplementedError("a subclass has a rule")

    @property
    def n_seen(self) -> int:
        """Examples seen."""
        raise NotImplementedError("a subclass counts")

    @property
    def n_judged(self) -> int:
        """Examples of positive weight: each was predicted before it was learnt."""
        raise NotImplementedError("a subclass counts")

    @property
    def mistakes(self) -> int:
        """How many of them were predicted wrongly."""
        raise NotImplementedError("a subclass counts")

    @property
    def learnt(self) -> Any:
        """The arrays that it learns into; growing replaces its attributes and changes no array."""
        raise NotImplementedError("a subclass has arrays")

    @property
    def dtype(self) -> np.dtype:
        """The type of its weights."""
        dtype: np.dtype = self.learnt.dtype
        return dtype

    @property
    def may_fail(self) -> bool:
        """Whether learning may end in the middle of rows that were checked, as a user's rule can make it."""
        return False

    def await_classes(self) -> None:
        """Predict a class of this new model only after its first row."""

    @property
    def one_score(self) -> bool:
        """Whether one score tells the classes apart: up to two classes."""
        return len(self.classes) <= 2

    @property
    def error(self) -> ProgressiveError:
        """The progressive error, with an interval for the mean true error of the hypotheses used."""
        return ProgressiveError(self.mistakes, self.n_judged)

    @property
    def drifts(self) -> list[Any]:
        """The alarms of a drift so far; only the one-pass learner watches for them."""
        return []

    def copy(self) -> Self:
        """An independent model of the same values."""
        with self.lock.reading:
            return self.copied()

    def copied(self) -> Self:
        """A copy for a caller that holds the lock."""
        raise NotImplementedError("a subclass copies its arrays")

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    def __getstate__(self) -> dict[str, Any]:
        # A copy, because the arrays are pickled after this has returned.
        return {name: value for name, value in vars(self.copy()).items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, lock=ModelLock())

    def changed(self) -> None:
        """It has learnt: forget what was computed from what it had learnt before."""
        self._cache.clear()

    @contextmanager
    def unchanged_on_error(self) -> Iterator[None]:
        """Forget the features, classes and room that the block has added if it raises; it must not learn."""
        features, learnt = vars(self.features).copy(), vars(self.learnt).copy()
        own, n_slots = vars(self).copy(), self.features.n_slots
        try:
            yield
        except BaseException:
            # Growing replaces arrays and changes none, so the old ones are as they were.
            vars(self).update(own)
            vars(self.features).update(features)
            vars(self.learnt).update(learnt)
            if self.features.index is not None:
                self.features.index.truncate(n_slots)
            raise

    def add_classes(self, labels: np.ndarray, *, waiting: bool) -> None:
        """Add classes that the model did not know; if `waiting`, each begins with its first row, else now."""
        raise NotImplementedError("a subclass has room for classes")

    def learn(
        self,
        rows: Any,
        codes: np.ndarray,
        order: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        *,
        mapped: bool = False,
        predicted: np.ndarray | None = None,
    ) -> None:
        """Learn from rows of slots, as `features.map` gives them; see `maxcosine.engine.learn`."""
        raise NotImplementedError("a subclass learns")

    def make_room(self) -> None:
        """Make room for the weights of every feature that has come."""
        wanted = self.features.n_slots
        if self.features.index is not None:
            self.learnt.reserve(wanted)
        elif wanted > self.learnt.n_features:
            self.learnt.grow(wanted)

    def learn_one(self, x: Mapping[Any, Any], code: int, weight: float) -> int:
        """Learn from one example of keys; returns how many features there are then."""
        self.changed()
        features = self.features
        before = features.index
        x = plain_dict(x)
        try:
            index = before if before and x else features.index_for(x, grow=True)
            self._learn_dict(index, x, code, weight)
        except BaseException:
            features.index = before
            raise
        return len(index)

    def _learn_dict(self, index: FeatureIndex, x: dict[Any, Any], code: int, weight: float) -> None:
        raise NotImplementedError("a subclass learns")

    def scores(self, rows: Any, n_threads: int = 1) -> np.ndarray:
        """Scores of rows of slots: one a row for up to two classes, else one a class."""
        raise NotImplementedError("a subclass scores")

    def contributions(self, rows: Any, score: int) -> Any:
        """What the features of rows of slots add to the score of this number: `Contributions`."""
        raise NotImplementedError("a subclass has weights")

    @property
    def has_probabilities(self) -> bool:
        """Whether there are probabilities of the classes."""
        raise NotImplementedError("a subclass knows")

    def margins(self, rows: Any, n_threads: int = 1) -> np.ndarray:
        """What probabilities are computed from: numbers for each row of slots."""
        raise NotImplementedError("a subclass scores")

    def margins_of_one(self, x: Mapping[Any, Any]) -> np.ndarray:
        """What probabilities are computed from, of one example of keys, as `margins` gives it for one row."""
        raise NotImplementedError("a subclass scores")

    def probabilities(self, margins: np.ndarray) -> np.ndarray:
        """Probabilities of the classes, one column each; those of classes that have not come are 0."""
        raise NotImplementedError("a subclass is calibrated")

    def certificate(self) -> Any:
        """What is proven so far of the hypothesis that predicts."""
        raise NotImplementedError("a subclass has certificates")

    def predicted_codes(self, scores: np.ndarray) -> np.ndarray:
        """Codes of the predicted classes; a single score above 0 means the second class."""
        if len(self.classes) == 1:
            return np.zeros(len(scores), np.intp)
        return (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)

    def predict(self, rows: Any, n_threads: int = 1) -> np.ndarray:
        """The predicted classes of rows of slots."""
        return np.asarray(self.classes[self.predicted_codes(self.scores(rows, n_threads))])
