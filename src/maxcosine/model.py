"""A learnt model as a value: its classes, its features and its heads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from maxcosine.base_model import BaseModel
from maxcosine.calibration import calibrated
from maxcosine.certificate import Certificate, Merge, certificate_of
from maxcosine.core import FeatureIndex, ModelLock
from maxcosine.engine import learn, learn_dict, score
from maxcosine.features import Features, plain_dict
from maxcosine.heads import Heads, joint, one_vs_rest, quotient
from maxcosine.labels import LabelEncoder, united
from maxcosine.onepass_hypothesis import Contributions
from maxcosine.rows import csr_array, csr_of_slots, row_sizes
from maxcosine.rules.rule import Rule
from maxcosine.trace import Trace

MULTICLASS = ("ovr", "joint")

# Twice the unit roundoff of float64, in which scores are computed.
ROUNDING = 2.0**-52

# Products with shorter hypotheses may underflow.
SMALLEST_NORM = 2.0**-800


@dataclass(eq=False)
class Model(BaseModel):
    """Two classes are learnt by one head; more by one head each against the rest, or jointly by one head."""

    classes: np.ndarray
    heads: Heads
    features: Features
    closed: bool = True
    merge: Merge | None = None
    """How the model was merged from others."""
    _cache: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    lock: ModelLock = field(default_factory=ModelLock, init=False, repr=False)

    @classmethod
    def create(
        cls,
        rule: Rule,
        params: tuple[float, ...],
        classes: np.ndarray,
        features: Features,
        dtype: np.dtype,
        *,
        multiclass: str = "ovr",
        closed: bool = True,
        **settings: bool,
    ) -> Model:
        """A model that has seen nothing; `settings` are the fit_intercept, average and probability of its heads."""
        table = _layout(len(classes), multiclass)
        heads = Heads.create(rule, params, table, features.n_slots, dtype, **settings)
        return cls(classes, heads, features, closed)

    @property
    def learnt(self) -> Heads:
        """Its heads."""
        return self.heads

    @property
    def rule(self) -> Rule:
        """The rule that it learns by."""
        return self.heads.rule

    @property
    def rule_name(self) -> str:
        """The name of its rule."""
        return self.rule.name

    @property
    def may_fail(self) -> bool:
        """Whether its rule is a user's."""
        return not self.rule.builtin

    @property
    def multiclass(self) -> str:
        """How more than two classes are learnt: "ovr" or "joint"."""
        return "joint" if self.heads.joint else "ovr"

    @property
    def n_seen(self) -> int:
        """Examples seen."""
        return int(self.heads.table["seen"].max())

    @property
    def n_judged(self) -> int:
        """Examples of positive weight: each was predicted before it was learnt."""
        return int(self.heads.arrays.scalars["weighed_rows"][0])

    @property
    def mistakes(self) -> int:
        """How many of them the last hypotheses predicted wrongly; wrong, too, is one before any class is known."""
        return int(self.heads.arrays.scalars["mistakes"][0])

    def copied(self) -> Self:
        """A copy for a caller that holds the lock."""
        return replace(self, heads=self.heads.copy(), features=self.features.copy())

    # Learning

    def await_classes(self) -> None:
        """Predict a class of this new model only after its first row."""
        self.heads.arrays.class_seen[:] = False

    def learn(
        self,
        rows: Any,
        codes: np.ndarray,
        order: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        *,
        mapped: bool = False,
        predicted: np.ndarray | None = None,
        trace: Trace | None = None,
    ) -> None:
        """Learn from rows of slots, as `features.map` gives them; see `maxcosine.engine.learn`."""
        self.changed()
        self.make_room()
        mapped = mapped or self.features.index is not None
        learn(self.heads, rows, codes, order, weights, mapped=mapped, predicted=predicted, trace=trace)

    def _learn_dict(self, index: FeatureIndex, x: dict[Any, Any], code: int, weight: float) -> None:
        learn_dict(self.heads, index, x, code, weight)

    def add_classes(self, labels: np.ndarray, *, waiting: bool) -> None:
        """Add classes that the model did not know, in the order in which they come.

        If `waiting`, each begins with its first row; else all begin now. One-vs-rest, the first two classes of a
        model begin together: what one learns, the other learns reversed.
        """
        if len(self.classes) == 1 and not self.heads.joint:
            self._add_classes(labels[:1], waiting=False)
            if waiting:
                self.heads.arrays.class_seen[self.labels.codes(labels[:1])] = False
            labels = labels[1:]
        if len(labels):
            self._add_classes(labels, waiting=waiting)

    def _add_classes(self, labels: np.ndarray, *, waiting: bool) -> None:
        classes = united(self.classes, labels)
        known, class_seen = self.classes, self.heads.arrays.class_seen
        self.heads.rearrange(_layout(len(classes), self.multiclass), self.columns_for(classes), waiting=waiting)
        self.classes = classes
        self.labels = LabelEncoder(classes)
        # Classes that were still waited for go on waiting.
        self.heads.arrays.class_seen[self.labels.codes(known)] = class_seen[: len(known)]
        self.changed()

    def columns_for(self, classes: np.ndarray) -> list[tuple[int, float]]:
        """For a model of these classes: which of this model's columns each column is, and its sign.

        The column is -1 where this model has none. One head for two classes is the second against the first.
        """
        codes, wanted = self.labels.codes(classes), classes.tolist()
        if self.heads.joint or len(self.classes) > 2:
            return [(int(code), 1.0) for code in codes]
        positive = self.labels.label(len(self.classes) - 1)
        sources = [
            (0 if code >= 0 else -1, 1.0 if label == positive else -1.0)
            for code, label in zip(codes, wanted, strict=True)
        ]
        if len(wanted) > 2:
            return sources
        # One head for both classes: known by either of them.
        column, sign = sources[-1]
        return [(column, sign) if column >= 0 else (sources[0][0], -sources[0][1])]

    # Predicting

    def scores(self, rows: Any, n_threads: int = 1) -> np.ndarray:
        """Scores of rows of slots: one a row for up to two classes, else one a class."""
        return self._told_apart(score(self.heads, rows, as_points=self.as_points, n_threads=n_threads))

    def score_one(self, x: Mapping[Any, Any]) -> np.ndarray:
        """Scores of one example of keys, as `scores` gives them for one row."""
        return self._told_apart(self._column_scores(x, self.as_points))

    def _column_scores(self, x: Mapping[Any, Any], as_points: bool) -> np.ndarray:
        x = plain_dict(x)
        index = self.features.index_for(x, grow=False)
        return np.array([self.heads.engine.score_dict(index, x, as_points, self.heads.n_columns)])

    def _told_apart(self, scores: np.ndarray) -> np.ndarray:
        """One score a row for up to two classes: of the second class against the first."""
        if not self.one_score:
            return scores
        return np.asarray(scores[:, -1] - scores[:, 0] if scores.shape[1] == 2 else scores[:, 0])

    @property
    def has_probabilities(self) -> bool:
        """Whether its scores are calibrated."""
        return self.heads.probability

    def margins(self, rows: Any, n_threads: int = 1) -> np.ndarray:
        """Scores as core/head_calibration.hpp calibrates them, one a column of the weights."""
        return score(self.heads, rows, as_points=self.rule.scale_free, n_threads=n_threads)

    def margins_of_one(self, x: Mapping[Any, Any]) -> np.ndarray:
        """Scores of one example of keys, as `margins` gives them for one row."""
        return self._column_scores(x, self.rule.scale_free)

    def probabilities(self, margins: np.ndarray) -> np.ndarray:
        """Probabilities of the classes, one column each; those of classes that have not come are 0."""
        if not self.has_probabilities:
            raise ValueError("this model was learnt with probability=False; learn it again with probability=True")
        arrays, found = self.heads.arrays, np.zeros((len(margins), len(self.classes)))
        known = np.flatnonzero(arrays.class_seen[: len(self.classes)])
        if len(known) < 2:
            found[:, known[:1] if len(known) else 0] = 1.0
            return found
        if self.merge is not None and not arrays.calibration["rows"][0]:
            raise ValueError(
                "a merged model has no probabilities before it has learnt more rows: go on with partial_fit, or use "
                "scikit-learn's CalibratedClassifierCV"
            )
        scores = np.column_stack([-margins, margins]) if margins.shape[1] == 1 else margins
        found[:, known] = calibrated(arrays.calibration[0], scores[:, known])
        return found

    def attained_margins(self, rows: Any, codes: np.ndarray, n_threads: int = 1) -> np.ndarray:
        """The smallest margin of these rows of slots for each hypothesis, relative to its norm and rounded down.

        Without an intercept, rows of zeros are left out: they have no direction.
        """
        heads, n_values, sq_x = self.heads, *row_sizes(rows)
        sq_x = sq_x + heads.fit_intercept
        used, (norm, spread) = sq_x > 0.0, self._norm_and_spread()
        if not used.any() or not (norm > SMALLEST_NORM).all():
            raise ValueError("no margin is attained: X has only zero rows, or the hypothesis is 0")
        unit = self._unit() if self.as_points else np.ones(len(norm))
        margins = self._margins(self.scores(rows, n_threads), codes) / (norm / unit)[:, None]
        # Scores are sums of products; each, and each norm, is rounded relative to the lengths of row and hypothesis.
        of_scores = ROUNDING * (n_values + 16) * np.sqrt(sq_x) * spread[:, None]
        of_norms = ROUNDING * (256 + heads.n_features / 128) * np.abs(margins)
        return np.asarray((margins - of_scores - of_norms)[:, used].min(axis=1))

    def _norm_and_spread(self) -> tuple[np.ndarray, np.ndarray]:
        """The norms of the hypotheses that predict, and those of the parts that their scores add up, relative to them.

        The parts are the columns of two classes that are learnt jointly, and of an average the last and the total.
        """
        heads, last = self.heads, self.heads.proven().norm
        if not heads.average:
            return last, np.full(len(last), 2.0)
        norm = heads.proven(averaged=True).norm
        moved = last / heads.table["scale"] * heads.table["sum_scale"] / heads.rounds
        return norm, 2.0 * (1.0 + 2.0 * quotient(moved, norm))

    def _margins(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Margins of examples of these classes, for each hypothesis."""
        if self.heads.joint:
            if scores.ndim == 1:
                scores = np.column_stack([-scores / 2.0, scores / 2.0])
            rows = np.arange(len(codes))
            others = scores.copy()
            others[rows, codes] = -np.inf
            return np.asarray((scores[rows, codes] - others.max(axis=1))[None])
        signs = np.where(codes == self.heads.table["positive"][:, None], 1.0, -1.0)
        return np.asarray(signs * np.atleast_2d(scores.T))

    @property
    def as_points(self) -> bool:
        """Whether scores are those of w / Lambda.

        Where the length of w means nothing, the heads of several classes are comparable as points of the hull.
        """
        return self.rule.scale_free and not self.heads.joint and not self.one_score

    def _unit(self) -> np.ndarray:
        """The length that each column is divided by."""
        if not self.as_points:
            return np.ones(self.heads.n_columns)
        coef_sum = self.heads.coef_sum
        return np.where(coef_sum > 0.0, coef_sum, 1.0)

    # What was learnt

    def hypothesis(self) -> tuple[Any, np.ndarray]:
        """Weights of shape (scores, features) and constant weights, as scores are computed with them.

        The weights are a sparse array where the features are sparse.
        """
        if "hypothesis" not in self._cache:
            w, constant = self.heads.hypotheses()
            w, unit = w[:, : self.features.n_slots], self._unit()
            if self.heads.joint and self.one_score:
                w, constant = w[-1:] - w[:1], constant[-1:] - constant[:1]
            elif self.as_points:
                w, constant = (w / unit[:, None]).astype(w.dtype), (constant / unit).astype(w.dtype)
            w.setflags(write=False)
            constant.setflags(write=False)
            if self.features.sparse:
                heads, slots = np.nonzero(w)
                columns, shape = self.features.slot_columns(), (len(w), self.features.n_features)
                w = csr_array((w[heads, slots], (heads, columns[slots])), shape=shape)
            self._cache["hypothesis"] = w, constant
        return self._cache["hypothesis"]  # type: ignore[no-any-return]

    def contributions(self, rows: Any, score: int) -> Contributions:
        """What the features of rows of slots add to the score of this number."""
        X = csr_of_slots(rows, self.features.n_slots)
        constant = self.hypothesis()[1]
        X.data *= self.feature_weights()[score][X.indices]
        return Contributions(X, np.full(X.shape[0], float(constant[score])))

    def feature_weights(self) -> np.ndarray:
        """What the feature of each slot counts, of shape (scores, slots): the weights."""
        w = self.hypothesis()[0]
        return w.toarray()[:, self.features.slot_columns()] if self.features.sparse else np.asarray(w)

    def certificate(self) -> Certificate:
        """What is proven so far of the hypothesis that predicts."""
        if "certificate" not in self._cache:
            self._cache["certificate"] = certificate_of(self.heads, self.classes, self.merge)
        return self._cache["certificate"]  # type: ignore[no-any-return]

    # Memory

    def sparsify(self) -> None:
        """Keep weights only for columns that have any."""
        features, heads = self.features, self.heads
        if features.index is not None:
            return
        used = heads.arrays.v.any(axis=1)
        if heads.average:
            used |= heads.arrays.total.any(axis=1)
        columns = np.flatnonzero(used)
        heads.select(columns, len(columns))
        features.index = FeatureIndex("ids", columns)
        self.changed()

    def densify(self) -> None:
        """Undo `sparsify`: weights for every column."""
        features = self.features
        if not features.sparse:
            return
        columns, slots = features.slot_columns(), np.full(features.n_features, -1)
        slots[columns] = np.arange(len(columns))
        self.heads.select(slots, features.n_features)
        features.index = None
        self.changed()


def _layout(n_classes: int, multiclass: str) -> np.ndarray:
    """One class, or two, are learnt by one head; more by one head each, or by one for all."""
    if multiclass == "joint":
        return joint(n_classes)
    return one_vs_rest([n_classes - 1] if n_classes <= 2 else range(n_classes))
