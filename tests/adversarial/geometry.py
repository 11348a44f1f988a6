"""The heads of a case in exact arithmetic: their examples, the best separators, and the hypotheses learnt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from maxcosine import OnlineClassifier
from tests.adversarial.exact import Nearest, Vector, dot, nearest_point, scaled, whole
from tests.adversarial.generator import Case
from tests.adversarial.history import History

Examples = frozenset[tuple[int, int]]
"""One-vs-rest: rows with their signs. Joint: rows, each with the code of another class."""


@dataclass
class Geometry:
    """The examples of one case as whole numbers; nearest points are computed once for all models."""

    case: Case
    _nearest: dict[Examples, Nearest] = field(default_factory=dict)

    @cached_property
    def classes(self) -> list[int]:
        return np.unique(self.case.y).tolist()

    @cached_property
    def _rows(self) -> tuple[list[Vector], Fraction]:
        X = self.case.X.astype(np.float64)
        if self.case.fit_intercept:
            X = np.hstack([X, np.ones((len(X), 1))])
        numbers, unit = whole(X.ravel())
        width = X.shape[1]
        return [numbers[start : start + width] for start in range(0, len(numbers), width)], unit

    @property
    def unit(self) -> Fraction:
        return self._rows[1]

    def example(self, row: int, other: int) -> Vector:
        """An example, as `Examples` names it, in units of `unit`."""
        x = self._rows[0][row]
        if not self.case.joint:
            return scaled(other, x)
        # Kesler's construction: the row in the block of its class, and its opposite in that of the other one.
        blocks: list[Vector] = [(0,) * len(x)] * len(self.classes)
        blocks[self.classes.index(int(self.case.y[row]))] = x
        blocks[self.classes.index(other)] = scaled(-1, x)
        return tuple(value for block in blocks for value in block)

    def sq_radius(self, examples: Examples) -> Fraction:
        """The largest square norm of an example."""
        points = [self.example(*one) for one in examples]
        return max(dot(point, point) for point in points) * self.unit**2

    def seen(self, history: History, label: int | None) -> Examples:
        """The examples that a head has seen; `label` is its class, None if it learns all classes."""
        if label is None:
            return frozenset((row, other) for row, rivals in history.events for other in rivals)
        y = self.case.y
        return frozenset(
            (row, self._sign(y[row], label)) for row, _ in map(history.events.__getitem__, history.seen[label])
        )

    def all_of(self, history: History, label: int | None) -> Examples:
        """The examples that all rows learnt so far are to a head, those before it began included."""
        y = self.case.y
        if label is None:
            return frozenset((row, other) for row in history.rows for other in history.classes if other != y[row])
        return frozenset((row, self._sign(y[row], label)) for row in history.rows)

    @staticmethod
    def _sign(of: int, label: int) -> int:
        return 1 if of == label else -1

    def nearest(self, examples: Examples) -> Nearest:
        """The nearest point to the origin of the hull of some examples."""
        if examples not in self._nearest:
            points = {self.example(*one) for one in examples}
            self._nearest[examples] = nearest_point(sorted(points), self.unit)
        return self._nearest[examples]


def heads_of(learner: OnlineClassifier) -> list[int | None]:
    """What each head of a model learns: a class against the rest, or None for all classes."""
    if learner.multiclass == "joint":
        return [None]
    classes: list[int | None] = learner.classes_.tolist()
    return classes[-1:] if len(classes) <= 2 else classes


@dataclass(frozen=True)
class Hypotheses:
    """The hypotheses of a model at one moment."""

    classes: list[int]
    columns: np.ndarray
    """Weights of shape (columns, features), with the constant weight last if there is an intercept."""
    exponents: list[int] = field(default_factory=list)
    """By head: the power of two that makes the last hypothesis as long as its rule means it."""

    @classmethod
    def of(cls, learner: OnlineClassifier, *, last: bool = False) -> Hypotheses:
        """Those that predict or, if `last`, those not averaged."""
        heads = learner.model_.heads
        w, constant = (heads.last() if last else heads).hypotheses()
        if heads.fit_intercept:
            w = np.hstack([w, constant[:, None]])
        return cls(learner.classes_.tolist(), w.astype(np.float64), heads.table["w_exponent"].tolist())

    def exponent_of_head(self, label: int | None) -> int:
        """The exponent of one head; 0 where it has not begun."""
        if label is None or len(self.classes) <= 2:
            return self.exponents[0] if self.exponents else 0
        return self.exponents[self.classes.index(label)] if label in self.classes else 0

    def of_head(self, label: int | None, all_classes: Iterable[int]) -> np.ndarray:
        """The weights of one head, in the order of its examples; 0 where it has not begun."""
        nothing = np.zeros(self.columns.shape[1])
        if label is None:
            known = dict(zip(self.classes, self.columns, strict=True))
            return np.concatenate([known.get(one, nothing) for one in all_classes])
        if not self.classes:
            return nothing
        if len(self.classes) <= 2:
            # One head for both classes. A second class that has not come yet shares it, too.
            if len(self.classes) == 2 and label not in self.classes:
                return nothing
            return self.columns[0] if label == self.classes[-1] else -self.columns[0]
        return self.columns[self.classes.index(label)] if label in self.classes else nothing
