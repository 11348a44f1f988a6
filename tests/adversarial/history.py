"""Learn a case by one of its models, and keep book of what each head has seen."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from maxcosine import BadRow, BadStep, OnlineClassifier, load, merge, save
from maxcosine.estimators.fitted import with_model
from maxcosine.merging import NotSeparable, add_counts, without_counts
from tests.adversarial.generator import Case, ModelSpec
from tests.learners import IN_MEMORY


@dataclass
class History:
    """The examples that a model has learnt, and which of them each head has seen.

    One-vs-rest, a head is known by its class. The first two classes of a model have seen the same examples; a later
    one begins with its first row. Jointly, an example is a row beside each class known by then.
    """

    case: Case
    events: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    """The row of each example, and the other classes known by then."""
    seen: dict[int, list[int]] = field(default_factory=dict)
    """By class: which of these events its head has seen."""
    weighed: list[tuple[int, bool]] = field(default_factory=list)
    """All rows of positive weight, and whether each is an example: rows without a direction have a weight, too."""

    def copy(self) -> History:
        seen = {label: list(events) for label, events in self.seen.items()}
        return History(self.case, list(self.events), seen, list(self.weighed))

    @property
    def classes(self) -> list[int]:
        return sorted(self.seen)

    @property
    def rows(self) -> list[int]:
        """The rows learnt, each once."""
        return sorted({row for row, _ in self.events})

    def begin(self, label: int) -> None:
        """A class begins, unless it has begun."""
        if label not in self.seen:
            self.seen[label] = (
                [event for events in self.seen.values() for event in events] if len(self.seen) < 2 else []
            )

    def begin_together(self, labels: np.ndarray) -> None:
        """Classes that are all known from the start."""
        for label in np.unique(labels).tolist():
            self.seen.setdefault(label, [])

    def learn(self, rows: tuple[int, ...]) -> None:
        """Add what one pass over these rows shows to each head."""
        examples, labels = self.case.examples, self.case.y.tolist()
        for row in rows:
            self.begin(labels[row])
            if self.case.weight_of[row] > 0.0:
                self.weighed.append((row, bool(examples[row])))
            if examples[row]:
                for events in self.seen.values():
                    events.append(len(self.events))
                rivals = tuple(other for other in self.seen if other != labels[row])
                self.events.append((row, rivals))

    @classmethod
    def merged(cls, parts: list[History]) -> History:
        """What a merged model has seen: a head that several models know, the examples of all of them."""
        both = cls(parts[0].case)
        classes = sorted({label for part in parts for label in part.seen})
        both.seen = {label: [] for label in classes}
        for part in parts:
            moved = {label: [event + len(both.events) for event in events] for label, events in part.seen.items()}
            both.events += part.events
            for label in classes:
                # One head for up to two classes is known by either of them.
                known = moved.get(label) if len(classes) > 2 else next(iter(moved.values()))
                both.seen[label] += known or []
        return both


@dataclass
class Node:
    """A model in the course of a plan; after a refusal there is none."""

    history: History
    learner: OnlineClassifier | None
    refusal: str = ""
    trunk: bool = True
    """Whether the model that the plan ends with comes from this one by learning alone."""
    excluded: float = math.inf
    """The margin that a refused merge excludes."""


Visit = Callable[[Node], None]


class Refused(Exception):
    """The model could not go on, for a reason that it gave."""


def run(case: Case, model: ModelSpec, visit: Visit = lambda node: None) -> Node:
    """Learn by a plan; `visit` sees the model after each step."""
    plan, node = case.plan, Node(History(case), case.classifier(model), trunk=False)
    try:
        _learn(node, plan.base, visit)
        ends = []
        for chunks in plan.parts:
            part = Node(node.history.copy(), _continued(case, model, node), trunk=not plan.merges)
            _learn(part, chunks, visit)
            ends.append(part)
        if plan.merges:
            node = _merged(case, node, ends)
            visit(node)
        elif ends:
            node = ends[0]
        _learn(node, plan.rest, visit)
    except Refused as refused:
        node = refused.args[0]
        visit(node)
    return node


def _continued(case: Case, model: ModelSpec, start: Node) -> OnlineClassifier:
    if not case.plan.base:
        return case.classifier(model)
    if not case.plan.merges:
        return start.learner
    return with_model(start.learner, without_counts(start.learner.model_))


def _learn(node: Node, chunks: tuple[tuple[int, ...], ...], visit: Visit) -> None:
    case, plan = node.history.case, node.history.case.plan
    for chunk in chunks:
        rows, learner, is_new = list(chunk), node.learner, not node.history.seen
        weights = None if case.weights is None else case.weights[rows]
        classes = np.unique(case.y) if plan.named and is_new else None
        try:
            if plan.passes and is_new:
                learner.fit(case.X[rows], case.y[rows], sample_weight=weights)
                node.history.begin_together(case.y[rows])
                node.history.learn(chunk * plan.passes)
            else:
                learner.partial_fit(case.X[rows], case.y[rows], classes=classes, sample_weight=weights)
                node.history.begin_together([] if classes is None else classes)
                node.history.learn(chunk)
        except (BadRow, BadStep) as error:
            raise Refused(Node(node.history, None, type(error).__name__)) from None
        if plan.saved and chunk is chunks[0]:
            node.learner = saved_and_loaded(learner)
        visit(node)


def _merged(case: Case, base: Node, ends: list[Node]) -> Node:
    history = History.merged([end.history for end in ends])
    try:
        merged = merge([end.learner for end in ends], case.plan.how)
    except NotSeparable as error:
        raise Refused(Node(history, None, "not separable", excluded=error.margin_ceiling)) from None
    if case.plan.base:
        add_counts(merged.model_, base.learner.model_)
    return Node(history, merged)


def saved_and_loaded(learner: OnlineClassifier) -> OnlineClassifier:
    """The classifier after a way through a file."""
    rule = learner.model_.rule
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        path = Path(folder) / "model.safetensors"
        save(learner, path)
        return load(path, rules=() if rule.builtin else (rule,))


def bits(learner: OnlineClassifier) -> list[bytes]:
    """All that a model has learnt."""
    return [array.tobytes() for array in learner.model_.heads.arrays]
