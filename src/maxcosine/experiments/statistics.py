"""Statistics of the counts of an experiment: means, paired differences, tests, wins and ranks.

All rules learn from the same orders, so they are compared in pairs: the difference of two counts does not
contain the effect that an order has on both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maxcosine.experiments.results import Results

RESAMPLES = 10_000
CONFIDENCE = 0.95
MAX_EXACT = 300
"""With more differences than this, the signed-rank test uses the normal approximation."""


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
    """A bootstrap interval for the mean over permutations."""
    p: float
    """Wilcoxon's signed-rank test, two-sided, with Holm's correction: over all rules and labels compared, or,
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
    """Return the rule that the others are compared with: the paper's, or else the last."""
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
    p_values = holm([signed_rank(paired.ravel()) for _, _, paired in family])
    return [
        Difference(
            rule,
            other,
            label,
            float(paired.mean()),
            *interval(paired),
            p,
            better=int(np.sum(paired < 0)),
            worse=int(np.sum(paired > 0)),
            pairs=paired.size,
        )
        for (other, label, paired), p in zip(family, p_values, strict=True)
    ]


def interval(paired: np.ndarray) -> tuple[float, float]:
    """Return a bootstrap interval for the mean of differences of shape (labels, permutations).

    Permutations are resampled within each label. The seed is fixed: the same counts give the same interval.
    """
    n_labels, n = paired.shape
    random = np.random.default_rng(0)
    totals = np.zeros(RESAMPLES)
    for of_label in paired:
        totals += of_label[random.integers(0, n, (RESAMPLES, n))].mean(axis=1)
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(totals / n_labels, [tail, 1.0 - tail])
    return float(low), float(high)


def signed_rank(differences: np.ndarray) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test; 1 if all differences are zero.

    Up to MAX_EXACT differences the test is exact, ties included: under the null hypothesis each rank enters
    the sum with probability 1/2, so the distribution of the sum is built up rank by rank.
    """
    from scipy import stats

    nonzero = differences[differences != 0.0]
    if not len(nonzero):
        return 1.0
    if len(nonzero) > MAX_EXACT:
        return float(stats.wilcoxon(nonzero, method="asymptotic").pvalue)
    ranks = (2.0 * stats.rankdata(np.abs(nonzero))).astype(np.int64)  # twice the ranks: ties have halves
    chances = np.zeros(ranks.sum() + 1)
    chances[0] = 1.0
    for rank in ranks:
        shifted = np.zeros_like(chances)
        shifted[rank:] = chances[:-rank]
        chances = (chances + shifted) / 2.0
    total = ranks[nonzero > 0.0].sum()
    tail = min(chances[: total + 1].sum(), chances[total:].sum())
    return float(min(1.0, 2.0 * tail))


def holm(p_values: list[float]) -> list[float]:
    """Correct p-values for multiple tests (Holm 1979).

    The k-th smallest of m is multiplied by m - k + 1, and is not less than the corrected one before it.
    """
    order = np.argsort(p_values)
    steps = np.asarray(p_values)[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return corrected.tolist()
