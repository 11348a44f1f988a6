"""The paper's protocol (Section 5), for any rules.

One label is learnt against the rest, in one pass over the training examples: buckets of them, in random
order. Then the mistakes on the test examples are counted. That is done for every label, and for a number of
permutations of the buckets, drawn anew for each label. No intercept; features as they are.

Every rule learns from the same orders, side by side in one sweep, so that comparisons are paired. A rule and
its averaged twin are one run of the rule: they differ in the hypothesis that is tested.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maxcosine.engine import Heads, learn, one_vs_rest, packed, score
from maxcosine.experiments.results import AVERAGED, Run, finite
from maxcosine.rules import RULES
from maxcosine.rules.rule import Rule

if TYPE_CHECKING:
    from maxcosine.experiments.datasets import Dataset

PAPER = ("pa", "aggressive_romma", "mcp")
PERMUTATIONS = 20

# Weights are float64: counts are those that exact arithmetic would give, but for ties.
_TYPE = np.dtype(np.float64)


@dataclass(frozen=True)
class Learner:
    """A rule with its usual parameters, and whether its hypotheses are averaged."""

    rule: Rule
    averaged: bool = False

    @property
    def name(self) -> str:
        return f"{AVERAGED}{self.rule.name}" if self.averaged else self.rule.name


def learners_of(rules: Sequence[str | Rule], *, average: bool = False) -> list[Learner]:
    """The learners of these names, each once; `average` adds the averaged twins.

    A name is that of a built-in rule, or ``avg_`` and that name; a rule of one's own is given itself.
    """
    learners = [one for rule in rules for one in [_learner(rule)]]
    if average:
        learners += [Learner(one.rule, averaged=True) for one in learners if not one.averaged]
    unique = list({one.name: one for one in learners}.values())
    if not unique:
        raise ValueError(f"no rule is given; name some, for example {','.join(PAPER)}")
    return unique


def _learner(rule: str | Rule) -> Learner:
    if isinstance(rule, Rule):
        return Learner(rule)
    name = rule.removeprefix(AVERAGED)
    if name not in RULES:
        raise ValueError(
            f"there is no rule {rule!r}; the rules are {', '.join(RULES)}, each also as {AVERAGED}..."
        )
    return Learner(RULES[name], averaged=rule != name)


@dataclass(frozen=True)
class Protocol:
    """What is run; the same protocol on the same data finds the same counts, to the last."""

    learners: Sequence[Learner]
    buckets: int
    permutations: int = PERMUTATIONS
    seed: int = 0

    def order(self, label: int, permutation: int) -> np.ndarray:
        """The order of the buckets, drawn for each label."""
        return np.random.default_rng([self.seed, label, permutation]).permutation(self.buckets)


class Laboratory:
    """A data set laid out for the protocol, and the learners at work on it."""

    def __init__(self, data: Dataset, protocol: Protocol) -> None:
        if len(data.X_train) < protocol.buckets or protocol.permutations < 1:
            raise ValueError(
                f"{len(data.X_train)} examples cannot come in {protocol.buckets} buckets, "
                f"{protocol.permutations} times; ask for fewer buckets, and one permutation at least"
            )
        self.data, self.protocol = data, protocol
        self.bucket_size = len(data.X_train) // protocol.buckets
        rows = [slice(b * self.bucket_size, (b + 1) * self.bucket_size) for b in range(protocol.buckets)]
        self._buckets = [packed(data.X_train[span], _TYPE) for span in rows]
        self._classes = [data.y_train[span] for span in rows]
        self._test = packed(data.X_test, _TYPE)
        # One head a rule: a rule and its averaged twin are one.
        self._rules = list({learner.rule.name: learner.rule for learner in protocol.learners}.values())
        self._average = any(learner.averaged for learner in protocol.learners)

    @property
    def units(self) -> list[tuple[int, int]]:
        """Label and permutation of all that is to be done."""
        labels, permutations = range(len(self.data.labels)), range(self.protocol.permutations)
        return [(label, permutation) for permutation in permutations for label in labels]

    @property
    def examples(self) -> list[int]:
        """How many examples have come after each bucket."""
        return [self.bucket_size * (k + 1) for k in range(self.protocol.buckets)]

    def run(self, units: Collection[tuple[int, int]], jobs: int) -> Generator[dict[str, Any]]:
        """Do these units, `jobs` at a time, and yield each when it is finished.

        Threads, because the kernels let go of the interpreter lock. When the caller stops, so do they:
        what has begun is finished, in a fraction of a second, and what has not begun never begins.
        """
        waiting: Iterator[tuple[int, int]] = iter(units)
        running: set[Future[dict[str, Any]]] = set()
        with ThreadPoolExecutor(jobs) as pool:
            try:
                while True:
                    for unit in _take(waiting, 2 * jobs - len(running)):
                        running.add(pool.submit(self.unit, *unit))
                    if not running:
                        return
                    finished, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in finished:
                        yield future.result()
            finally:
                for future in running:
                    future.cancel()

    def unit(self, label: int, permutation: int) -> dict[str, Any]:
        """All learners learn one label in one order: their runs, and their curves."""
        started = time.perf_counter()
        heads = self._new_heads()
        record = _Record(heads, self.protocol.buckets)
        for bucket in self.protocol.order(label, permutation):
            codes = (self._classes[bucket] == label).astype(np.int64)
            learn(heads, self._buckets[bucket], codes)
            record.take()
        found = {False: self._outcome(heads.last(), label)}
        if self._average:
            found[True] = self._outcome(heads, label)
        seconds = (time.perf_counter() - started) / len(self.protocol.learners)
        runs, curves, bounds = [], {}, heads.proven().bound
        for learner in self.protocol.learners:
            h, outcome = self._rules.index(learner.rule), found[learner.averaged]
            head = heads.table[h]
            bound = float(outcome.bound[h])
            best = max(bound, float(bounds[h]), float(head["best_bound"]))
            run = Run(
                rule=learner.name,
                label=label,
                permutation=permutation,
                test_mistakes=int(outcome.mistakes[h]),
                train_mistakes=int(head["mistakes"]),
                updates=int(head["updates"]),
                bound=bound,
                margin_ceiling=finite(1.0 / best if best > 0.0 else np.inf),
                seconds=seconds,
            )
            runs.append(vars(run))
            curves[learner.name] = record.curves(h, averaged=learner.averaged)
        return {"label": label, "permutation": permutation, "runs": runs, "curves": curves}

    def _new_heads(self) -> Heads:
        return Heads.side_by_side(
            [
                Heads.create(
                    rule,
                    rule.make_params(),
                    one_vs_rest([1]),
                    self._test.shape[1],
                    _TYPE,
                    fit_intercept=False,
                    average=self._average,
                )
                for rule in self._rules
            ]
        )

    def _outcome(self, heads: Heads, label: int) -> _Outcome:
        positive = score(heads, self._test) > 0.0
        mistakes = np.count_nonzero(positive != (self.data.y_test == label)[:, None], axis=0)
        proven = heads.averaged_proven() if heads.average else heads.proven()
        return _Outcome(mistakes, proven.bound)


@dataclass(frozen=True)
class _Outcome:
    """Of each head: mistakes on the test examples, and what is proven of its hypothesis."""

    mistakes: np.ndarray
    bound: np.ndarray


class _Record:
    """What the heads were after each bucket."""

    def __init__(self, heads: Heads, buckets: int) -> None:
        self._heads, self._taken = heads, 0
        parts = heads.table, heads.arrays.v, heads.arrays.total
        self._table, self._v, self._total = (np.empty((buckets, *part.shape), part.dtype) for part in parts)

    def take(self) -> None:
        arrays, k = self._heads.arrays, self._taken
        self._table[k], self._v[k], self._total[k] = arrays.table, arrays.v, arrays.total
        self._taken += 1

    def curves(self, h: int, *, averaged: bool) -> dict[str, list[Any]]:
        """The curves of a head: one value after each bucket."""
        table = self._table[:, h]
        # Directions and sums of coefficients, each in a unit of its own: only their quotient matters.
        w = self._v[:, :, h]
        coef_sum, slack = table["claim_v"], np.zeros(len(w))
        if averaged:
            w = w * table["sum_scale"][:, None] + self._total[:, :, h]
            coef_sum, slack = table["sum_coef"], table["sum_slack"]
        norms = np.sqrt(np.einsum("ij,ij->i", w, w))
        last = norms[-1] if norms[-1] > 0.0 else 1.0
        bound = np.divide(coef_sum, norms + slack, out=np.zeros(len(w)), where=norms > 0.0)
        best = np.maximum.accumulate(np.maximum(table["best_bound"], bound))
        ceiling = np.divide(1.0, best, out=np.full(len(w), np.inf), where=best > 0.0)
        cosine = np.divide(w @ w[-1], norms * last, out=np.zeros(len(w)), where=norms > 0.0)
        return {
            "mistakes": table["mistakes"].tolist(),
            "bound": bound.tolist(),
            "margin_ceiling": [finite(value) for value in ceiling.tolist()],
            "cosine": np.minimum(cosine, 1.0).tolist(),
        }


def _take(units: Iterator[tuple[int, int]], n: int) -> Iterator[tuple[int, int]]:
    for _, unit in zip(range(n), units, strict=False):
        yield unit
