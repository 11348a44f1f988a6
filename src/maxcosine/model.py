"""A learnt model as a value: classes, features, heads, and what can be read off them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from maxcosine.certificate import Certificate, Merge
from maxcosine.engine import Heads, Proven, csr_array, joint, learn, norms, one_vs_rest, score
from maxcosine.engine.learn import NOT_PREDICTED, UNWEIGHTED
from maxcosine.example import OneByOne
from maxcosine.features import Features, plain_dict
from maxcosine.record import Record
from maxcosine.rules.rule import Rule

MULTICLASS = ("ovr", "joint")


def _layout(n_classes: int, multiclass: str) -> np.ndarray:
    """One class, or two, are learnt by one head; more by one head each, or by one for all."""
    if multiclass == "joint":
        return joint(n_classes)
    return one_vs_rest([n_classes - 1] if n_classes <= 2 else range(n_classes))


class Model(Record):
    """Two classes are learnt by one head; more by one head each against the rest, or jointly by one."""

    rule: Rule
    classes: np.ndarray
    """In order."""
    heads: Heads
    features: Features
    closed: bool = True
    """All classes were named: no others may come."""
    merge: Merge | None = None

    def __post_init__(self) -> None:
        self._read = dict[str, Any]()  # off the heads, since they last changed
        self._learner: OneByOne | None = None
        self._number_classes()

    def _number_classes(self) -> None:
        self._labels = self.classes.tolist()
        self._codes = {label: code for code, label in enumerate(self._labels)}

    def code_of(self, label: Any) -> int | None:
        """The position of a label among the classes; None if it is new."""
        return self._codes.get(label)

    def label_of(self, scores: np.ndarray) -> Any:
        """The class that the scores of one row predict."""
        return self._labels[self.predicted_codes(scores)[0]]

    @property
    def _one_by_one(self) -> OneByOne:
        if self._learner is None:
            self._learner = OneByOne(self.heads.dtype)
        return self._learner

    @classmethod
    def create(
        cls,
        rule: Rule,
        params: tuple[float, ...],
        classes: np.ndarray,
        features: Features,
        dtype: np.dtype,
        *,
        fit_intercept: bool,
        average: bool,
        multiclass: str = "ovr",
        closed: bool = True,
    ) -> Model:
        heads = Heads.create(
            rule,
            params,
            _layout(len(classes), multiclass),
            features.n_slots,
            dtype,
            fit_intercept=fit_intercept,
            average=average,
        )
        return cls(rule, classes, heads, features, closed)

    @property
    def multiclass(self) -> str:
        return "joint" if self.heads.joint else "ovr"

    @property
    def one_score(self) -> bool:
        """Up to two classes are told apart by one score."""
        return len(self.classes) <= 2

    @property
    def n_seen(self) -> int:
        return int(self.heads.table["seen"].max())

    def copy(self) -> Model:
        return self.replace(heads=self.heads.copy(), features=self.features.copy())

    # Learning

    def learn(
        self,
        rows: Any,
        codes: np.ndarray,
        order: np.ndarray | None = None,
        weights: np.ndarray = UNWEIGHTED,
        *,
        mapped: bool = False,
        predicted: np.ndarray = NOT_PREDICTED,
    ) -> None:
        """Learn from rows of slots, as `features.map` gives them, in the order given.

        `mapped` and `predicted` as in the engine's `learn`; slots of an index are always mapped.
        """
        self.changed()
        self.make_room()
        mapped = mapped or self.features.index is not None
        learn(self.heads, rows, codes, order, weights, mapped=mapped, predicted=predicted)

    def make_room(self) -> None:
        """There are weights for every feature that has come."""
        wanted = self.features.n_slots
        if self.features.index is not None:
            self.heads.reserve(wanted)
        elif wanted > self.heads.n_features:
            self.heads.grow(wanted)

    def learn_one(self, x: Mapping[Any, Any], code: int, weight: float) -> int:
        """Learn from one example of keys; returns how many features there are then."""
        self._read.clear()
        features = self.features
        before = features.index
        x = x if type(x) is dict else plain_dict(x)
        try:
            index = before if before and x else features.index_for(x, grow=True)
            (self._learner or self._one_by_one).learn(self.heads, index, x, code, weight)
        except BaseException:
            features.index = before
            raise
        return index.count

    def score_one(self, x: Mapping[Any, Any]) -> np.ndarray:
        """Scores of one example of keys, as `scores` gives them for one row."""
        x = plain_dict(x)
        index = self.features.index_for(x, grow=False)
        return self._told_apart(self._one_by_one.score(self.heads, index, x, as_points=self.as_points))

    def add_classes(self, labels: np.ndarray, *, waiting: bool) -> None:
        """Classes that the model did not know, in the order in which they come.

        `waiting`: each begins with the first row that carries it; else all begin now. One-vs-rest, the
        first two classes of a model begin together: what one learns, the other learns reversed.
        """
        if len(self.classes) == 1 and not self.heads.joint:
            self._add_classes(labels[:1], waiting=False)
            labels = labels[1:]
        if len(labels):
            self._add_classes(labels, waiting=waiting)

    def _add_classes(self, labels: np.ndarray, *, waiting: bool) -> None:
        classes = distinct(np.concatenate([self.classes, labels]))
        layout = _layout(len(classes), self.multiclass)
        known, came = self._labels, self.heads.arrays.came
        self.heads.rearrange(layout, self.columns_for(classes), waiting=waiting)
        self.classes = classes
        self._number_classes()
        for label, has_come in zip(known, came, strict=False):  # some may still be waited for
            self.heads.arrays.came[self._codes[label]] = has_come
        self.changed()

    def columns_for(self, classes: np.ndarray) -> list[tuple[int, float]]:
        """For a model of these classes: which of this one's columns each column is, and its sign.

        -1 where this model has none. One head for two classes is the second against the first.
        """
        here, wanted = self._codes, classes.tolist()
        if self.heads.joint or len(self.classes) > 2:
            return [(here.get(label, -1), 1.0) for label in wanted]
        positive = self._labels[-1]
        sources = [(0 if label in here else -1, 1.0 if label == positive else -1.0) for label in wanted]
        if len(wanted) > 2:
            return sources
        # One head for both: known by either of them.
        column, sign = sources[-1]
        return [(column, sign) if column >= 0 else (sources[0][0], -sources[0][1])]

    def changed(self) -> None:
        """The heads have learnt: forget what was read off them."""
        self._read.clear()

    # Predicting

    def scores(self, rows: Any, n_threads: int = 1) -> np.ndarray:
        """Scores of rows of slots: one a row for up to two classes, else one a class."""
        return self._told_apart(score(self.heads, rows, as_points=self.as_points, n_threads=n_threads))

    def _told_apart(self, scores: np.ndarray) -> np.ndarray:
        """One score a row for up to two classes: that of the second, beside the first."""
        if not self.one_score:
            return scores
        return scores[:, -1] - scores[:, 0] if scores.shape[1] == 2 else scores[:, 0]

    def predicted_codes(self, scores: np.ndarray) -> np.ndarray:
        """Positions of the predicted classes; one score above 0 is the second class."""
        if len(self.classes) == 1:
            return np.zeros(len(scores), np.intp)
        return (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)

    def margins(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Margins of examples of these classes, for each hypothesis, relative to its norm."""
        if self.heads.joint:
            if scores.ndim == 1:
                scores = np.column_stack([-scores / 2.0, scores / 2.0])
            rows = np.arange(len(codes))
            own = scores[rows, codes].copy()
            others = scores.copy()
            others[rows, codes] = -np.inf
            margins = (own - others.max(axis=1))[None]
        else:
            signs = np.where(codes == self.heads.table["positive"][:, None], 1.0, -1.0)
            margins = signs * np.atleast_2d(scores.T)
        w, constant = self.heads.hypotheses()
        lengths = self.heads.by_head(norms(w, constant))
        if self.as_points:
            lengths = lengths / self._unit()
        quotients: np.ndarray = margins / lengths[:, None]
        return quotients

    @property
    def as_points(self) -> bool:
        """Whether scores are those of w / Lambda.

        Where the length of w means nothing, the heads of several classes are made comparable as
        points of the hull.
        """
        return self.rule.scale_free and not self.heads.joint and not self.one_score

    def _unit(self) -> np.ndarray:
        """What each column is divided by."""
        if not self.as_points:
            return np.ones(self.heads.n_columns)
        coef_sum = self.heads.exact_coef_sum
        return np.where(coef_sum > 0.0, coef_sum, 1.0)

    def hypothesis(self) -> tuple[Any, np.ndarray]:
        """Weights of shape (scores, features), and constant weights: what scores are made with.

        The weights are a sparse array where the features are sparse.
        """
        if "hypothesis" not in self._read:
            w, constant = self.heads.hypotheses()
            w, unit = w[:, : self.features.n_slots], self._unit()
            if self.heads.joint and self.one_score:
                w, constant = w[-1:] - w[:1], constant[-1:] - constant[:1]
            elif self.as_points:
                w, constant = (w / unit[:, None]).astype(w.dtype), (constant / unit).astype(w.dtype)
            w.setflags(write=False)
            constant.setflags(write=False)
            self._read["hypothesis"] = self._in_columns(w), constant
        return self._read["hypothesis"]  # type: ignore[no-any-return]

    def _in_columns(self, w: np.ndarray) -> Any:
        if not self.features.sparse:
            return w
        assert self.features.index is not None
        columns = self.features.index.keys().astype(np.int64)
        heads, slots = np.nonzero(w)
        shape = (len(w), self.features.n_features)
        return csr_array((w[heads, slots], (heads, columns[slots])), shape=shape)

    # Memory

    def sparsify(self) -> None:
        """Keep weights only for columns that have any."""
        features, heads = self.features, self.heads
        if features.index is not None:
            return
        arrays = heads.arrays
        used = arrays.v.any(axis=1)
        if heads.average:
            used |= arrays.total.any(axis=1)
        columns = np.flatnonzero(used)
        heads.select(columns, len(columns))
        features.make_sparse(columns)
        self.changed()

    def densify(self) -> None:
        """Undo `sparsify`: weights for every column."""
        features = self.features
        if not features.sparse:
            return
        assert features.index is not None
        columns = features.index.keys().astype(np.int64)
        slots = np.full(features.n_features, -1)
        slots[columns] = np.arange(len(columns))
        self.heads.select(slots, features.n_features)
        features.index = None
        self.changed()

    # What is proven

    def certificate(self) -> Certificate:
        """What is proven so far, of the hypothesis that predictions are made with."""
        if "certificate" not in self._read:
            heads = self.heads
            certificate = self._certificate(heads.proven(), None)
            if heads.average:
                certificate = self._certificate(heads.averaged_proven(), certificate)
            self._read["certificate"] = certificate
        return self._read["certificate"]  # type: ignore[no-any-return]

    def _certificate(self, proven: Proven, last: Certificate | None) -> Certificate:
        table = self.heads.table
        best_bound = np.maximum(table["best_bound"], proven.bound)
        if last is not None:
            best_bound = np.maximum(best_bound, last.best_bound)
        since = np.where(table["since"] < 0, table["seen"], table["since"])
        weighted = bool(table["weighted"].any())
        one = len(table) == 1

        def given(values: np.ndarray) -> Any:
            return values[0].item() if one else values.copy()

        return Certificate(
            rule=self.rule.name,
            coef_sum=given(proven.coef_sum),
            norm=given(proven.norm),
            bound=given(proven.bound),
            best_bound=given(best_bound),
            rounding=given(proven.rounding),
            since=given(since),
            seen=given(table["seen"] - since),
            mistakes=given(table["mistakes"]),
            updates=given(table["updates"]),
            augmented=self.heads.fit_intercept,
            joint=self.heads.joint,
            weighted=weighted,
            classes=None if one else self.classes,
            own_bound=self._own_bounds(given) if self.rule.own_bound and not weighted else None,
            merge=self.merge,
            before_averaging=last,
        )

    def _own_bounds(self, given: Any) -> Any:
        assert self.rule.own_bound is not None
        heads = self.heads
        sq_w = np.square(heads.table["scale"]) * heads.table["sq_v"]
        n_state = len(self.rule.state)
        return given(
            np.array(
                [
                    self.rule.own_bound(tuple(state[:n_state]), sq, coef_sum)
                    for state, sq, coef_sum in zip(heads.arrays.state, sq_w, heads.coef_sum, strict=True)
                ]
            )
        )


def distinct(labels: np.ndarray) -> np.ndarray:
    """The different labels, sorted: `np.unique` without its import of `numpy.ma`, a twentieth of a start."""
    ordered = np.sort(labels)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def in_order_of_appearance(labels: np.ndarray) -> np.ndarray:
    """The different labels, each where it first comes."""
    different, first = np.unique(labels, return_index=True)
    ordered: np.ndarray = different[np.argsort(first, kind="stable")]
    return ordered
