"""A model of the one-pass learner as a value: its classes, its features and its state."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from maxcosine.base_model import BaseModel
from maxcosine.core import NO_ROOM, FeatureIndex, ModelLock
from maxcosine.drift import Drift, DriftWarning, DriftWatch, OnDrift, Trial
from maxcosine.engine import in_threads
from maxcosine.features import Features, plain_dict
from maxcosine.labels import LabelEncoder, united
from maxcosine.onepass import OnePassState
from maxcosine.onepass_hypothesis import Contributions, OnePassCertificate, contributions, hypothesis_of
from maxcosine.rows import SlotRows, bad_row, canonical, csr_of_slots, row_values, slot_rows_of
from maxcosine.score_sketch import ScoreSketch, Threshold

# Why the core ended a sweep: `enum class Refusal` in core/sweep.hpp.
_FINISHED, _NOT_CANONICAL, _BAD_ROW, _BAD_STEP, _NEW_CLASS = range(5)

ONEPASS = "onepass"
"""What commands call this learner, where others have the name of a rule."""


@dataclass(eq=False)
class OnePassModel(BaseModel):
    """Two classes have one block of weights; more are learnt jointly, with one block each."""

    classes: np.ndarray
    state: OnePassState
    features: Features
    closed: bool = True
    blocks: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    """By class code: the number of its block, in the order in which classes come; -1 before its first row."""
    sketch: ScoreSketch | None = field(default_factory=ScoreSketch)
    """The margins that rows of two classes had before they were learnt; None with more classes."""
    n_seen: int = 0
    """Examples seen; those of weight 0 are not."""
    mistakes: int = 0
    """How many of them were predicted wrongly before they were learnt, by the hypothesis that predicted."""
    drift: DriftWatch = field(default_factory=DriftWatch)
    on_drift: OnDrift = "restart"
    _cache: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    lock: ModelLock = field(default_factory=ModelLock, init=False, repr=False)

    @classmethod
    def create(cls, classes: np.ndarray, features: Features, dtype: np.dtype, *, closed: bool = True) -> OnePassModel:
        """A model that has seen nothing; if `closed`, all classes begin now, else each with its first row."""
        n_known = len(classes) if closed else 0
        state = OnePassState.create(features.n_slots, dtype, n_classes=n_known)
        blocks = np.arange(len(classes)) if closed else np.full(len(classes), -1)
        return cls(classes, state, features, closed, blocks)

    @property
    def learnt(self) -> OnePassState:
        """Its state."""
        return self.state

    @property
    def rule_name(self) -> str:
        """What commands call the one-pass learner."""
        return ONEPASS

    @property
    def n_judged(self) -> int:
        """The same: rows of weight 0 are not seen."""
        return self.n_seen

    @property
    def drifts(self) -> list[Drift]:
        """The alarms of a drift so far, and what came of them."""
        return list(self.drift.history)

    @property
    def active(self) -> OnePassState:
        """The state of the learner that predicts: the old one, or a fresh one on trial that makes fewer errors."""
        trial = self.drift.trial
        return trial.state if trial is not None and trial.fresh_predicts else self.state

    def copied(self) -> Self:
        """A copy for a caller that holds the lock."""
        return replace(
            self,
            state=self.state.copy(),
            features=self.features.copy(),
            blocks=self.blocks.copy(),
            sketch=None if self.sketch is None else self.sketch.copy(),
            drift=self.drift.copy(),
        )

    # Learning

    def add_classes(self, labels: np.ndarray, *, waiting: bool) -> None:
        """Add classes that the model did not know; if `waiting`, each begins with its first row, else now."""
        classes = united(self.classes, labels)
        encoder, blocks = LabelEncoder(classes), np.full(len(classes), -1)
        blocks[encoder.codes(self.classes)] = self.blocks
        self.classes, self.labels, self.blocks = classes, encoder, blocks
        if not waiting:
            self._begin(encoder.codes(labels))
            self.state.add_classes(int(self.blocks.max()) + 1)  # others may still be waited for
        self.changed()

    def _begin(self, codes: np.ndarray) -> None:
        """Give classes that have none the next blocks, in the order of these codes."""
        if (self.blocks >= 0).all():
            return
        found, first = np.unique(codes, return_index=True)
        new = [code for code in found[np.argsort(first)].tolist() if self.blocks[code] < 0]
        blocks = self.blocks.copy()
        blocks[new] = blocks.max(initial=-1) + 1 + np.arange(len(new))
        self.blocks = blocks

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
        """Learn from rows of slots, as `features.map` gives them; the parameters are those of `engine.learn`."""
        self.changed()
        self.make_room()
        order = np.arange(len(codes)) if order is None else order
        counts = np.ones(len(order), bool) if weights is None else weights[order] > 0.0
        n_known = self.state.n_classes
        self._begin(codes[order[counts]])
        blocks = np.maximum(self.blocks, 0)[codes]  # rows of weight 0 may be of a class that has not come
        mapped = mapped or self.features.index is not None
        if len(self.classes) > 2:
            self._forget_sketches()
        rows = np.ascontiguousarray(rows) if isinstance(rows, np.ndarray) else rows

        def learn(state: OnePassState, sketch: ScoreSketch | None, start: int) -> np.ndarray:
            """Let a learner learn the rows from this place of the order on; return the blocks that it predicted."""
            found = np.empty(len(codes), np.int64)
            margins = None if sketch is None else np.empty((len(codes), 1))
            self._sweep_all(state, rows, mapped, blocks, weights, order[start:], found, margins)
            if sketch is not None and margins is not None:
                learnt = order[start:][counts[start:]]
                sketch.add(margins[learnt, 0], blocks[learnt] == 1)
            return found[order[start:]]

        guesses = self._watch(blocks[order], counts, learn(self.state, self.sketch, 0), n_known, learn)
        if predicted is not None:
            predicted[order] = self._codes_of_blocks()[guesses]

    def _forget_sketches(self) -> None:
        self.sketch = None
        if self.drift.trial is not None:
            self.drift.trial.sketch = None

    def _sweep_all(
        self,
        state: OnePassState,
        rows: Any,
        mapped: bool,
        blocks: Any,
        weights: Any,
        order: np.ndarray,
        found: Any,
        margins: Any,
    ) -> None:
        done = 0
        while done < len(order):
            more, fault = _sweep(state, rows, mapped, blocks, weights, order[done:], found, margins)
            done += more
            if fault == _NEW_CLASS:
                state.add_classes(int(blocks[order[done]]) + 1, expected=int(self.blocks.max()) + 1)
            elif fault == _NOT_CANONICAL:
                rows = canonical(rows)
            elif fault == _BAD_ROW:
                row = int(order[done])
                raise bad_row(row_values(rows, row), row)

    def _watch(
        self,
        truth: np.ndarray,
        counts: np.ndarray,
        guesses: np.ndarray,
        n_known: int,
        learn: Callable[[OnePassState, ScoreSketch | None, int], np.ndarray],
    ) -> np.ndarray:
        """Count rows that the old learner has learnt, and look for a drift; return what was predicted for them.

        Learners do not depend on each other. So a fresh one may learn all rows from the alarm on before it is known
        which of the two predicts, and the outcome does not depend on chunks.

        Parameters
        ----------
        truth, counts, guesses
            For each row: its block, whether its weight is positive, and the block that the old learner predicted.
        n_known
            How many classes were known before these rows.
        learn
            Lets a learner learn the rows from a place on, and returns its predictions.
        """
        drift, places, done = self.drift, np.flatnonzero(counts), 0
        while drift.trial is not None or self.on_drift != "ignore":
            if drift.trial is None:
                wrong = (guesses != truth)[places[done:]]
                taken = drift.goes_off(wrong, self.n_seen + done, "trial" if self.on_drift == "restart" else "warned")
                if taken is None:
                    break
                done += taken
                if self.on_drift == "warn":
                    warnings.warn(f"the stream may have changed: {drift.history[-1]}", DriftWarning, stacklevel=2)
                else:
                    known = max(n_known, int(truth[places[:done]].max(initial=-1)) + 1)
                    drift.trial = self._new_trial(known, self.state.rows - (len(places) - done))
                continue
            start = int(places[done - 1]) + 1 if done else 0
            if start == len(guesses):
                break
            trial = drift.trial
            trial.state.make_ready(self.state.n_features, n_known)
            fresh = learn(trial.state, trial.sketch, start)
            now = places[done:]
            chosen, outcome = trial.judge((guesses != truth)[now], (fresh != truth[start:])[now - start])
            stop = int(now[len(chosen) - 1]) + 1 if outcome else len(guesses)
            # A row of weight 0 is predicted by the learner that predicts the next row that counts.
            by_fresh = np.append(chosen, trial.fresh_predicts)[np.searchsorted(now[: len(chosen)], range(start, stop))]
            guesses[start:stop] = np.where(by_fresh, fresh[: stop - start], guesses[start:stop])
            done += len(chosen)
            if outcome is None:
                break
            if outcome == "restarted":
                self.state, self.sketch = trial.state, trial.sketch
                guesses[stop:] = fresh[stop - start :]
            drift.end_trial(self.n_seen + done, outcome)
        self.n_seen += len(places)
        self.mistakes += int((guesses != truth)[places].sum())
        return guesses

    def _new_trial(self, n_classes: int, limit: int) -> Trial:
        state = OnePassState.create(self.state.n_features, self.dtype, n_classes=n_classes)
        return Trial(state, ScoreSketch() if len(self.classes) <= 2 else None, limit)

    def _codes_of_blocks(self) -> np.ndarray:
        """By block: the code of its class; the last entry, which -1 refers to, is -1."""
        codes = np.full(max(2, int(self.blocks.max(initial=-1)) + 1) + 1, -1)
        known = np.flatnonzero(self.blocks >= 0)
        codes[self.blocks[known]] = known
        return codes

    def _learn_dict(self, index: FeatureIndex, x: dict[Any, Any], code: int, weight: float) -> None:
        if weight > 0.0:
            self._begin(np.array([code]))
        block, n_known = max(0, int(self.blocks[code])), self.state.n_classes
        if len(self.classes) > 2:
            self._forget_sketches()

        def learn(state: OnePassState, sketch: ScoreSketch | None, start: int) -> np.ndarray:
            while True:
                fault, detail, margins = state.engine.learn_dict(index, x, block, weight)
                if fault == NO_ROOM:
                    state.reserve(detail)
                elif fault == _NEW_CLASS:
                    state.add_classes(block + 1)
                elif fault == _BAD_ROW:
                    raise bad_row(np.array([float(value) for value in x.values()]), 0)
                else:
                    break
            if sketch is not None and weight > 0.0:
                sketch.add(np.array(margins), np.array([block == 1]))
            return np.array([detail])

        guesses = learn(self.state, self.sketch, 0)
        self._watch(np.array([block]), np.array([weight > 0.0]), guesses, n_known, learn)

    # Predicting

    def scores(self, rows: Any, n_threads: int = 1) -> np.ndarray:
        """Scores of rows of slots: one a row for up to two classes, else one a class."""
        return self.by_class(self.margins(rows, n_threads))

    def score_one(self, x: Mapping[Any, Any]) -> np.ndarray:
        """Scores of one example of keys, as `scores` gives them for one row."""
        return self.by_class(self.margins_of_one(x))

    @property
    def has_probabilities(self) -> bool:
        """It always has."""
        return True

    def margins_of_one(self, x: Mapping[Any, Any]) -> np.ndarray:
        """Margins of one example of keys, as `margins` gives them for one row."""
        x = plain_dict(x)
        index = self.features.index_for(x, grow=False)
        return np.array([self.active.engine.score_dict(index, x)])

    def margins(self, rows: Any, n_threads: int = 1) -> np.ndarray:
        """Margins of rows of slots, one for each block."""
        state = self.active
        engine, n_rows = state.engine, rows.shape[0] if hasattr(rows, "shape") else len(rows)
        found = np.empty((n_rows, state.n_blocks))
        work: Callable[[int, int], None]
        if isinstance(rows, np.ndarray):
            dense = np.ascontiguousarray(rows)

            def work(start: int, stop: int) -> None:
                engine.score_dense(dense[start:stop], found[start:stop])

        else:
            sparse = rows if isinstance(rows, SlotRows) else slot_rows_of(rows)

            def work(start: int, stop: int) -> None:
                engine.score_rows(sparse.indptr[start : stop + 1], sparse.slots, sparse.values, found[start:stop])

        in_threads(work, n_rows, n_threads)
        return found

    @property
    def _sign(self) -> float:
        """1 if the one block is that of the second class, -1 if it is that of the first."""
        return -1.0 if self.blocks[0] == 1 or self.blocks[-1] == 0 else 1.0

    def by_class(self, margins: np.ndarray) -> np.ndarray:
        """One score for up to two classes; else one a class, of which those that have not come have the lowest."""
        if self.one_score:
            return self._sign * margins[:, 0]
        if margins.shape[1] == 1:
            margins = np.column_stack([-margins[:, 0] / 2.0, margins[:, 0] / 2.0])
        scores = np.repeat(margins.min(axis=1, keepdims=True), len(self.classes), axis=1)
        known = np.flatnonzero(self._has_come())
        scores[:, known] = margins[:, self.blocks[known]]
        return scores

    def _has_come(self) -> np.ndarray:
        return (self.blocks >= 0) & (self.blocks < self.active.n_classes)

    def predicted_codes(self, scores: np.ndarray) -> np.ndarray:
        """Codes of the predicted classes, among those that have come."""
        known = np.flatnonzero(self._has_come())
        if len(known) <= 1 or len(self.classes) == 1:
            return np.full(len(scores), known[0] if len(known) else 0, np.intp)
        return super().predicted_codes(scores) if self.one_score else known[scores[:, known].argmax(axis=1)]

    def probabilities(self, margins: np.ndarray) -> np.ndarray:
        """Probabilities of the classes, one column each; those of classes that have not come are 0."""
        known = np.flatnonzero(self._has_come())
        found = np.zeros((len(margins), len(self.classes)))
        if len(known) <= 1:
            found[:, known[:1] if len(known) else 0] = 1.0
        else:
            found[:, known] = self.active.probabilities(margins)[:, self.blocks[known]]
        return found

    def threshold(self, **wanted: float | None) -> Threshold:
        """The threshold on scores for a precision, recall, share or cost ratio; see `ScoreSketch.threshold`."""
        trial = self.drift.trial
        sketch = trial.sketch if trial is not None and trial.fresh_predicts else self.sketch
        if sketch is None or len(self.classes) != 2:
            raise ValueError(f"a threshold tells two classes apart, and the model has {len(self.classes)}")
        sketch = sketch if self._sign > 0.0 else sketch.flipped()
        return sketch.threshold(**wanted)

    # What was learnt

    def hypothesis(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Weights of shape (scores, features), constants of shape (scores,), centres and scales of the features.

        With z = sign(x) log(1 + |x|) and R = sqrt(1 + sum ((z - centre) / scale)^2), a score is the sum of
        weight (z - centre), divided by R, plus the constant. Features that have not come have the scale infinity.
        """
        if "hypothesis" not in self._cache:
            weights, constants, centre, scale = hypothesis_of(self.active, self.features.n_slots)
            weights, constants = self.by_class(weights.T).T, self.by_class(constants[None])[0]
            if self.one_score:
                weights, constants = weights[None], np.atleast_1d(constants)
            found = (weights, constants, centre, scale)
            for array in found:
                array.setflags(write=False)
            self._cache["hypothesis"] = found
        return self._cache["hypothesis"]  # type: ignore[no-any-return]

    def feature_weights(self) -> np.ndarray:
        """What the feature of each slot counts, of shape (scores, slots): weight times deviation of its values.

        So words that are frequent enough to matter come before those that were seen once.
        """
        weights, state = self.hypothesis()[0], self.active
        seen, rows = state.arrays.features[: self.features.n_slots], max(1, state.rows)
        return weights * np.sqrt(np.maximum(0.0, seen["square"] / rows - np.square(seen["total"] / rows)))

    def contributions(self, rows: Any, score: int) -> Contributions:
        """What the features of rows of slots add to the score of this number."""
        weights, constants, centre, scale = self.hypothesis()
        rows = csr_of_slots(rows, self.features.n_slots)
        return contributions(rows, weights[score], constants[score], centre, scale)

    def certificate(self) -> OnePassCertificate:
        """What is proven of the rows seen, in the geometry as it is now."""
        if "certificate" not in self._cache:
            state = self.active
            claim = state.claim()
            self._cache["certificate"] = OnePassCertificate(claim.ceiling, claim.norm, claim.coef_sum, state.rows)
        return self._cache["certificate"]  # type: ignore[no-any-return]


def _sweep(
    state: OnePassState, rows: Any, mapped: bool, blocks: Any, weights: Any, order: Any, found: Any, margins: Any
) -> tuple[int, int]:
    """Let the core learn rows; return how many it has done, and why it ended."""
    if isinstance(rows, np.ndarray):
        return state.engine.learn_dense(rows, blocks, weights, order, found, margins)
    sparse = rows if isinstance(rows, SlotRows) else slot_rows_of(rows)
    return state.engine.learn_rows(
        sparse.indptr, sparse.slots, sparse.values, mapped, blocks, weights, order, found, margins
    )
