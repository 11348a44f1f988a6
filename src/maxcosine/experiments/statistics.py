"""Statistics of the counts of an experiment: means, paired differences, tests, wins and ranks.

All rules learn from the same orders, so they are compared in pairs: the difference of two counts does not
contain the effect that an order has on both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maxcosine.experiments.results import Results

CONFIDENCE = 0.95
ROUNDING_VARIANCE = 1.0 / 12.0
"""The variance of rounding to whole numbers: equal counts do not show a smaller one."""


@dataclass(frozen=True)
class Difference:
    """How many more test mistakes one rule makes than another; negative is better."""

    rule: str
    other: str
    label: int | None
    """None: the mean over all labels."""
    mean: float
    low: float
    high: float
    """An interval for the mean over permutations; infinite if there is only one."""
    p: float
    """The p-value of the same mean, two-sided, with Holm's correction: over all rules and labels compared, or,
    for the mean over all labels, over the rules compared."""
    better: int
    """The number of pairs in which the rule made fewer mistakes."""
    worse: int
    pairs: int

    @property
    def settled(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0.0 or self.high < 0.0


def focus(results: Results) -> str:
    """Return the rule that the others are compared with: the one that `protocol` names, the paper's, or the last."""
    if named := results.protocol.get("focus"):
        return str(named)
    return "mcp" if "mcp" in results.rules else results.rules[-1]


def means(results: Results) -> dict[str, np.ndarray]:
    """Return for each rule the mean test mistakes on each label."""
    return {rule: counts.mean(axis=1) for rule, counts in results.counts().items()}


def overall_means(results: Results) -> dict[str, float]:
    """Return for each rule the mean test mistakes over all labels."""
    return {rule: float(found.mean()) for rule, found in means(results).items()}


def spreads(results: Results) -> dict[str, np.ndarray]:
    """Return for each rule the standard deviation over permutations of its test mistakes on each label."""
    return {rule: spread(counts) for rule, counts in results.counts().items()}


def spread(counts: np.ndarray) -> np.ndarray:
    """Return the standard deviation over permutations, the last axis; that of a single one is 0."""
    return np.asarray(counts.std(axis=-1, ddof=min(1, counts.shape[-1] - 1)))


def wins(results: Results) -> dict[str, float]:
    """Return on how many labels each rule has the lowest mean; rules that tie share the label."""
    table = np.array(list(means(results).values()))
    best = table == table.min(axis=0)
    shares = (best / best.sum(axis=0)).sum(axis=1)
    return dict(zip(results.rules, shares.tolist(), strict=True))


def mean_ranks(results: Results) -> dict[str, float]:
    """Return for each rule the mean over labels of its rank by mean mistakes; 1 is best."""
    from scipy import stats  # takes a second to import

    table = np.array(list(means(results).values()))
    ranks = stats.rankdata(table, axis=0).mean(axis=1)
    return dict(zip(results.rules, ranks.tolist(), strict=True))


def differences(results: Results, rule: str) -> list[Difference]:
    """Compare one rule with each other rule: first label by label, then over all labels."""
    counts = results.counts()
    paired = {other: counts[rule] - counts[other] for other in results.rules if other != rule}
    by_label = [(other, label, d[[label]]) for other, d in paired.items() for label in range(len(d))]
    overall = [(other, None, d) for other, d in paired.items()]
    return [*_compare(rule, by_label), *_compare(rule, overall)]


def _compare(rule: str, family: Sequence[tuple[str, int | None, np.ndarray]]) -> list[Difference]:
    """Compare a rule with others, with one correction for the whole family of tests."""
    tests = [mean_test(paired) for _, _, paired in family]
    p_values = holm([p for _, _, p in tests])
    return [
        Difference(
            rule,
            other,
            label,
            float(paired.mean()),
            low,
            high,
            p,
            better=int(np.sum(paired < 0)),
            worse=int(np.sum(paired > 0)),
            pairs=paired.size,
        )
        for (other, label, paired), (low, high, _), p in zip(family, tests, p_values, strict=True)
    ]


def mean_test(paired: np.ndarray) -> tuple[float, float, float]:
    """Return an interval for the mean of differences of shape (labels, permutations), and its p-value.

    This is Student's t-test of the mean, with Welch's degrees of freedom if there are several labels: the
    differences vary over permutations, separately for each label. The interval contains 0 if and only if the
    p-value is at least 1 - CONFIDENCE. One permutation gives no interval: it is infinite, with p = 1.
    """
    from scipy import stats  # takes a second to import

    n_labels, n = paired.shape
    if n == 1:
        return -np.inf, np.inf, 1.0
    variances = np.maximum(paired.var(axis=1, ddof=1), ROUNDING_VARIANCE) / n
    error = float(np.sqrt(variances.sum())) / n_labels
    freedom = (n - 1) * variances.sum() ** 2 / np.square(variances).sum()
    mean, half = float(paired.mean()), error * float(stats.t.ppf((1.0 + CONFIDENCE) / 2.0, freedom))
    return mean - half, mean + half, float(2.0 * stats.t.sf(abs(mean) / error, freedom))


def holm(p_values: list[float]) -> list[float]:
    """Correct p-values for multiple tests (Holm 1979).

    The k-th smallest of m is multiplied by m - k + 1, and is not less than the corrected one before it.
    """
    order = np.argsort(p_values)
    steps = np.asarray(p_values)[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return corrected.tolist()
