"""Check all that one model of a case claims, from its first chunk to its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from maxcosine.certificate import Certificate
from tests.adversarial import claims
from tests.adversarial.exact import Nearest, dot, float_above, sqrt_above, whole
from tests.adversarial.generator import Case, ModelSpec
from tests.adversarial.geometry import Examples, Geometry, Hypotheses, heads_of
from tests.adversarial.history import Node, bits, run
from tests.adversarial.replay import DIGITS, Replay, average_error, exactly, weight_factors

# Longer histories are not replayed row by row.
MOST_REPLAYED = 100

# An average that cancelled to less than its rounding errors claims nothing.
MOST_ROUNDING = 0.25

# Averages are compared if the replay is at least this close to the model: if both went the same way.
CLOSE = 1e-3


# Hypotheses are read in the type of the model. This close to its smallest number, they are not what was learnt.
FAINT = {dtype: 1e13 * float(np.finfo(dtype).tiny) for dtype in ("float32", "float64")}


@dataclass
class Finding:
    """A claim that is false."""

    check: str
    text: str

    def __str__(self) -> str:
        return f"{self.check}: {self.text}"


@dataclass
class ModelChecks:
    """The checks of one model; `done` counts them by kind, so that a check that never ran is seen."""

    case: Case
    model: ModelSpec
    geometry: Geometry
    findings: list[Finding] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    trunk: list[tuple[list[int | None], Certificate]] = field(default_factory=list)

    def note(self, check: str, fault: str | None, where: str = "") -> None:
        self.done[check] += 1
        if fault is not None:
            self.findings.append(Finding(check, f"{fault}{where}"))

    def nearest(self, examples: Examples) -> Nearest | None:
        return self.geometry.nearest(examples) if examples else None

    def is_faint(self, w: np.ndarray) -> bool:
        """Whether w may have lost digits, or all of it, when it was read."""
        return bool(0.0 < np.abs(w).max() < FAINT[self.case.dtype])

    def run(self) -> ModelChecks:
        """Learn by the plan and check every step; then learn without asking, and row by row."""
        end = run(self.case, self.model, self.visit)
        silent = run(self.case, self.model)
        if end.learner is None:
            self.done[f"refused: {end.refusal}"] += 1
            return self
        self.note("asking", None if bits(end.learner) == bits(silent.learner) else "asking changed the model")
        self.check_budgets(end)
        self.check_mistake_bound(end)
        if not self.case.plan.merges and len(end.history.events) <= MOST_REPLAYED:
            RowByRow(self, end).check()
        return self

    def visit(self, node: Node) -> None:
        """Check the claims of a model in the course of the plan."""
        if node.learner is None:
            if node.refusal == "not separable":
                self.check_refusal(node)
            return
        certificate, heads = node.learner.certificate_, heads_of(node.learner)
        if node.trunk:
            self.trunk.append((heads, certificate))
        for which, one in {"": certificate, "last ": certificate.last}.items():
            if which and not certificate.averaged:
                continue
            hypotheses = Hypotheses.of(node.learner, last=bool(which))
            for h, label in enumerate(heads):
                nearest = self.nearest(self.geometry.seen(node.history, label))
                where = f" (head of {label}, after {len(node.history.events)} examples)"
                self.note(f"{which}ceiling", claims.ceiling_fault(at(one.margin_ceiling, h), nearest), where)
                w = hypotheses.of_head(label, self.geometry.classes)
                if not self.is_faint(w):
                    fault = claims.bound_fault(w, at(one.bound, h), at(one.rounding, h), nearest)
                    self.note(f"{which}bound", fault, where)
                self.done["separable"] += nearest is not None and nearest.separable
        self.check_attained(node, certificate)

    def check_attained(self, node: Node, certificate: Certificate) -> None:
        rows = node.history.rows
        try:
            attained = node.learner.attained_margin(self.case.X[rows], self.case.y[rows])
        except ValueError as error:
            if "no margin is attained" not in str(error) and rows:
                raise
            return
        for h, label in enumerate(heads_of(node.learner)):
            examples = self.geometry.all_of(node.history, label)
            if examples:
                best_bound = at(certificate.best_bound, h) if self.saw_all(node, label, examples) else 0.0
                fault = claims.attained_fault(at(attained, h), best_bound, self.geometry.nearest(examples))
                self.note("attained", fault, f" (head of {label}, {len(node.history.events)} examples)")

    def saw_all(self, node: Node, label: int | None, examples: Examples) -> bool:
        """Whether a head is certified on no other examples than these."""
        return self.geometry.seen(node.history, label) <= examples

    def check_refusal(self, node: Node) -> None:
        """A merge is refused only where no separator of some head has a margin above the one that it excludes."""
        classes = node.history.classes
        heads: Iterable[int | None] = [None] if self.case.joint else classes[-1:] if len(classes) <= 2 else classes
        hulls = [self.nearest(self.geometry.seen(node.history, label)) for label in heads]
        faults = [claims.ceiling_fault(node.excluded, nearest) for nearest in hulls]
        fault = f"a merge is refused; {faults[0]}" if all(faults) else None
        self.note("refusal", fault)

    def check_budgets(self, end: Node) -> None:
        """Count the mistakes after each certificate, against the budget that it gave."""
        final = end.learner.certificate_
        if final.own_bound is None or final.weighted or not self.trunk:
            return
        for h, label in enumerate(heads_of(end.learner)):
            examples = self.geometry.seen(end.history, label)
            nearest = self.nearest(examples)
            if nearest is None or not nearest.margin:
                continue
            radius = float_above(sqrt_above(self.geometry.sq_radius(examples)))
            for heads, certificate in self.trunk:
                if label in heads:
                    then = heads.index(label)
                    mistakes = at(final.mistakes, h) - at(certificate.mistakes, then)
                    budget = at(certificate.mistake_budget(nearest.margin, radius), then)
                    where = f" (head of {label}, {at(certificate.seen, then)} rows seen, margin {nearest.margin!r})"
                    self.note("budget", claims.budget_fault(budget, mistakes), where)

    def check_mistake_bound(self, end: Node) -> None:
        """Count all mistakes, against the bound that is proven of the rule from its start on."""
        final = end.learner.certificate_
        if final.gain is None or self.case.plan.merges:
            return
        for h, label in enumerate(heads_of(end.learner)):
            examples = self.geometry.seen(end.history, label)
            nearest = self.nearest(examples)
            if nearest is not None and nearest.separable:
                most = self.geometry.sq_radius(examples) / nearest.sq_margin / Fraction(final.gain)
                fault = claims.budget_fault(float_above(most), at(final.mistakes, h))
                self.note("mistake bound", fault, f" (head of {label}, from the start on)")


@dataclass
class RowByRow:
    """A twin that does not average learns row by row: its margins are counted, its hypotheses averaged."""

    checks: ModelChecks
    end: Node

    def check(self) -> None:
        checks, hypotheses = self.checks, self.learn()
        certificate, averaged = self.end.learner.certificate_, Hypotheses.of(self.end.learner)
        for h, label in enumerate(heads_of(self.end.learner)):
            vectors = [one.of_head(label, checks.geometry.classes) for one in hypotheses]
            if any(map(checks.is_faint, vectors)):
                checks.done["faint"] += 1
                continue
            counts = self.count_mistakes(label, vectors)
            checks.note("mistakes", claims.mistakes_fault(at(certificate.mistakes, h), *counts), f" (head of {label})")
            if not certificate.averaged or not self.events(label):
                continue
            if at(certificate.rounding, h) > MOST_ROUNDING:
                checks.done["average lost in rounding"] += 1
                continue
            w = averaged.of_head(label, checks.geometry.classes)
            exponents = [one.exponent_of_head(label) for one in hypotheses]
            self.check_average(label, w, at(certificate.rounding, h), vectors, exponents)

    def check_average(
        self, label: int | None, w: np.ndarray, rounding: float, vectors: list[np.ndarray], exponents: list[int]
    ) -> None:
        """Compare an averaged hypothesis with the mean of the twin's hypotheses.

        Where the length of w means nothing, a model holds it within a range, and the average is that of the hypotheses
        at the lengths that the rule gives them. Those are compared with a replay, too, if it goes the same way.
        """
        checks, dtype, free = self.checks, self.checks.case.dtype, self.checks.model.function.scale_free
        own = [vectors[event + 1] for event in self.events(label)]
        lengths = [Decimal(2) ** exponents[event + 1] for event in self.events(label)]
        meant = [[c * value for value in exactly(one)] for c, one in zip(lengths, own, strict=True)]
        where = f" (head of {label})"
        checks.note("average", claims.average_fault(average_error(w, own, meant, free), rounding, dtype), where)
        # A model that cancels to exactly 0 starts anew at a length of its own; the replay may miss 0 by a digit.
        if free and all(one.any() for one in own):
            replayed = average_error(w, own, self.replay(label, len(w)), free)
            if replayed.wobble > CLOSE:
                checks.done["average not replayed"] += 1
            else:
                checks.note("replayed average", claims.replayed_fault(replayed), where)

    def learn(self) -> list[Hypotheses]:
        """The hypotheses of the twin before each example, and after the last one."""
        case, plan = self.checks.case, self.checks.case.plan
        twin = case.classifier(replace(self.checks.model, average=False))
        classes = np.unique(case.y) if plan.named or plan.passes else None
        width = case.X.shape[1] + case.fit_intercept
        hypotheses = [Hypotheses([], np.zeros((0, width)))]
        unweighted = case.weights is None and case.class_weight is None
        for row, is_example in self.end.history.weighed:
            X, y = case.X[row : row + 1], case.y[row : row + 1]
            if unweighted and hypotheses[-1].classes and y[0] in hypotheses[-1].classes:
                twin.model_.learn(X, np.searchsorted(twin.classes_, y))  # what partial_fit does, without its checks
            else:
                weights = None if case.weights is None else case.weights[row : row + 1]
                twin.partial_fit(X, y, classes=classes, sample_weight=weights)
            classes = None
            if is_example:
                hypotheses.append(Hypotheses.of(twin))
        return hypotheses

    def events(self, label: int | None) -> list[int]:
        """The examples that a head has learnt from."""
        history = self.end.history
        return [e for e, (_, rivals) in enumerate(history.events) if rivals] if label is None else history.seen[label]

    def count_mistakes(self, label: int | None, vectors: list[np.ndarray]) -> tuple[int, int]:
        """How many margins were certainly <= 0, and how many were so up to rounding."""
        checks, history = self.checks, self.end.history
        certain = possible = 0
        eps = Fraction(float(np.finfo(checks.case.dtype).eps))
        for event in self.events(label):
            row, rivals = history.events[event]
            w, _ = whole(vectors[event])
            others = rivals if label is None else [1 if checks.case.y[row] == label else -1]
            examples = [checks.geometry.example(row, other) for other in others]
            margins = [(dot(w, x), 2 * eps * sum(abs(a * b) for a, b in zip(w, x, strict=True))) for x in examples]
            certain += any(margin <= -error for margin, error in margins)
            possible += any(margin <= error for margin, error in margins)
        return certain, possible

    def replay(self, label: int | None, width: int) -> list[Any]:
        """The hypotheses of the rule with exact scalars, after each example."""
        checks, history, case = self.checks, self.end.history, self.checks.case
        rule, events = checks.model.function, self.events(label)
        weights = case.weight_of
        factors = weight_factors([weights[row] for row, _ in history.weighed])
        factors = [factor for factor, (_, is_example) in zip(factors, history.weighed, strict=True) if is_example]
        unweighted = case.weights is None and case.class_weight is None
        replayed = []
        with localcontext() as context:
            context.prec = DIGITS
            params = rule.make_params(checks.model.params)
            replay = Replay(rule, params, exactly(np.zeros(width)), state=rule.initial_state())
            for event in events:
                row, rivals = history.events[event]
                others = sorted(rivals) if label is None else [1 if case.y[row] == label else -1]
                examples = [self.decimals(row, other) for other in others]
                # Jointly, the wrong class of the highest score, the first of equals.
                example = min(examples, key=replay.margin)
                replay.learn(example, 1.0 if unweighted else factors[event])
                replayed.append(list(replay.w))
        return replayed

    def decimals(self, row: int, other: int) -> list[Any]:
        geometry = self.checks.geometry
        # Dyadic numbers of this size are floats again.
        return exactly([float(value * geometry.unit) for value in geometry.example(row, other)])


def at(value: Any, h: int) -> Any:
    """The number of one head."""
    return np.atleast_1d(value)[h].item()


def check_case(case: Case) -> list[ModelChecks]:
    """Check all models of a case."""
    geometry, checked = Geometry(case), []
    for model in case.models:
        try:
            checked.append(ModelChecks(case, model, geometry).run())
        except Exception as error:
            error.add_note(case.describe(model))
            raise
    return checked


def smallest(case: Case, model: ModelSpec, check: str) -> tuple[Case, Finding]:
    """Leave out rows as long as the same check still fails."""

    def fault(one: Case) -> Finding | None:
        if not one.plan.rows or not one.clear:
            return None
        found = ModelChecks(one, model, Geometry(one)).run().findings
        return next((finding for finding in found if finding.check == check), None)

    finding = fault(case)
    assert finding is not None, "the fault does not show again"
    shorter = True
    while shorter:
        shorter = False
        for row in sorted(case.plan.rows):
            tried = replace(case, plan=case.plan.without(row))
            if smaller := fault(tried):
                case, finding, shorter = tried, smaller, True
    return case, finding
