"""The paper's protocol (Section 5), for any rules.

Each label is learnt against the rest, in one pass over buckets of training examples in random order; then the
mistakes on the test examples are counted. This is repeated for several permutations of the buckets, drawn
separately for each label. There is no intercept, and features are not scaled.

All rules learn from the same orders, side by side in one sweep, so that comparisons are paired. A rule and
its averaged variant share one run: they differ in the hypothesis that is tested.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from maxcosine.experiments.datasets import Dataset
from maxcosine.experiments.results import AVERAGED, Run, Unit
from maxcosine.experiments.rule_heads import WEIGHT_TYPE, RuleHeads
from maxcosine.rows import SlotRows, csr_array, slot_rows_of
from maxcosine.rules import RULES
from maxcosine.rules.rule import Rule

PAPER_RULES = ("pa", "aggressive_romma", "mcp")
PERMUTATIONS = 20


@dataclass(frozen=True)
class Learner:
    """A rule with the defaults of its parameters, with or without averaging."""

    rule: Rule
    averaged: bool = False

    @property
    def name(self) -> str:
        return f"{AVERAGED}{self.rule.name}" if self.averaged else self.rule.name


def learners_of(
    rules: Sequence[str | Rule], *, average: bool = False, params: Mapping[str, Mapping[str, float]] | None = None
) -> list[Learner]:
    """Return the learners of these rules, without duplicates.

    Parameters
    ----------
    rules : names of built-in rules, each alone or after ``avg_`` for its averaged variant, and `Rule` objects
    average : whether to add the averaged variant of every rule
    params : by the name of a rule, parameters that differ from their defaults
    """
    learners = [_learner(rule) for rule in rules]
    # A rule and its averaged variant share one run, and so they must stay one object.
    variants = {one.rule.name: one.rule.with_params((params or {}).get(one.rule.name, {})) for one in learners}
    learners = [replace(one, rule=variants[one.rule.name]) for one in learners]
    if average:
        learners += [Learner(one.rule, averaged=True) for one in learners if not one.averaged]
    if not learners:
        raise ValueError(f"no rule is given; name some, for example {','.join(PAPER_RULES)}")
    return list({one.name: one for one in learners}.values())


def _learner(rule: str | Rule) -> Learner:
    if isinstance(rule, Rule):
        return Learner(rule)
    name = rule.removeprefix(AVERAGED)
    if name not in RULES:
        raise ValueError(f"there is no rule {rule!r}; the rules are {', '.join(RULES)}, each also as {AVERAGED}NAME")
    return Learner(RULES[name], averaged=rule != name)


@dataclass(frozen=True)
class Protocol:
    """What to run: the same protocol on the same data gives exactly the same counts."""

    learners: Sequence[Learner]
    buckets: int
    permutations: int = PERMUTATIONS
    seed: int = 0
    curves: bool = True
    """Whether to record curves while learning; that keeps the hypotheses after every bucket in memory."""

    def order(self, label: int, permutation: int) -> np.ndarray:
        """Return the order of the buckets."""
        return np.random.default_rng([self.seed, label, permutation]).permutation(self.buckets)


class Experiment:
    """A protocol applied to a data set. A unit of work is one label in one order, for all learners."""

    def __init__(self, data: Dataset, protocol: Protocol) -> None:
        if len(data.y_train) < protocol.buckets or protocol.permutations < 1:
            raise ValueError(
                f"{len(data.y_train)} examples cannot be divided into {protocol.buckets} buckets in "
                f"{protocol.permutations} orders; use fewer buckets and at least one permutation"
            )
        self.data, self.protocol = data, protocol
        self.bucket_size = len(data.y_train) // protocol.buckets
        n = self.bucket_size * protocol.buckets
        starts = range(0, n, self.bucket_size)
        self._rows = [_slot_rows(data.X_train[start : start + self.bucket_size]) for start in starts]
        self._classes = np.split(data.y_train[:n], protocol.buckets)
        self._test_rows = _slot_rows(data.X_test)
        self._rules = list({learner.rule.name: learner.rule for learner in protocol.learners}.values())
        self._average = any(learner.averaged for learner in protocol.learners)

    @property
    def units(self) -> list[tuple[int, int]]:
        """The label and the permutation of every unit."""
        labels, permutations = range(len(self.data.labels)), range(self.protocol.permutations)
        return [(label, permutation) for permutation in permutations for label in labels]

    @property
    def examples(self) -> list[int]:
        """The number of examples learnt after each bucket."""
        return [self.bucket_size * (k + 1) for k in range(self.protocol.buckets)]

    def run(self, units: Collection[tuple[int, int]], jobs: int | None) -> Generator[Unit]:
        """Run units in `jobs` threads, as many as processors by default, and yield each when it is finished.

        Closing the iterator cancels the units that have not started and waits for the others.
        """
        with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:  # threads suffice: the engine releases the GIL
            futures = [pool.submit(self.run_unit, *unit) for unit in units]
            try:
                for future in as_completed(futures):
                    yield future.result()
            finally:
                pool.shutdown(cancel_futures=True)

    def run_unit(self, label: int, permutation: int) -> Unit:
        """Let all learners learn one label in one order, and test them."""
        started = time.perf_counter()
        heads = RuleHeads(self._rules, self.data.X_test.shape[1], average=self._average)
        for bucket in self.protocol.order(label, permutation):
            heads.learn(self._rows[bucket], self._classes[bucket] == label, record=self.protocol.curves)
        is_label = self.data.y_test == label
        outcomes = {averaged: heads.outcomes(self._test_rows, is_label, averaged=averaged) for averaged in heads.kinds}
        seconds = (time.perf_counter() - started) / len(self.protocol.learners)
        unit: Unit = {"label": label, "permutation": permutation, "runs": [], "curves": {}}
        for learner in self.protocol.learners:
            name, averaged, head = learner.name, learner.averaged, self._rules.index(learner.rule)
            run = Run(name, label, permutation, **outcomes[averaged][head], seconds=seconds)
            unit["runs"].append(asdict(run))
            if self.protocol.curves:
                unit["curves"][name] = heads.curves(head, averaged=averaged)
        return unit


def _slot_rows(X: Any) -> SlotRows:
    return slot_rows_of(csr_array(X, dtype=WEIGHT_TYPE))
