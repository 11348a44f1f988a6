"""What the counts of an experiment say: spreads, paired differences, tests, wins and ranks.

Rules are compared in pairs: every rule learns from the same orders, so the difference of two counts is
free of what the order does to both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxcosine.experiments.results import Results

RESAMPLES = 10_000
CONFIDENCE = 0.95
ALPHA = 1.0 - CONFIDENCE
MOST_EXACT = 300


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
    """Wilcoxon's signed-rank test, two-sided, corrected after Holm for all labels and rules compared; for all
    labels together, of all pairs, corrected for the rules compared."""
    better: int
    """In how many pairs the rule made fewer mistakes."""
    worse: int
    pairs: int

    @property
    def settled(self) -> bool:
        """Whether the interval leaves no doubt about the sign."""
        return self.low > 0.0 or self.high < 0.0


def focus(results: Results) -> str:
    """The rule that the others are compared with: the paper's, if it is among them."""
    rules = results.rules
    return "mcp" if "mcp" in rules else rules[-1]


def means(results: Results) -> dict[str, np.ndarray]:
    """For each rule the mean test mistakes of each label."""
    return {rule: counts.mean(axis=1) for rule, counts in results.counts().items()}


def spreads(results: Results) -> dict[str, np.ndarray]:
    """For each rule the standard deviation over permutations of the test mistakes of each label."""
    return {
        rule: counts.std(axis=1, ddof=1) if counts.shape[1] > 1 else np.zeros(len(counts))
        for rule, counts in results.counts().items()
    }


def wins(results: Results) -> dict[str, float]:
    """On how many labels a rule has the fewest mistakes in the mean; a tie counts in parts."""
    table = np.array(list(means(results).values()))
    best = table == table.min(axis=0)
    shares = (best / best.sum(axis=0)).sum(axis=1)
    return dict(zip(results.rules, shares.tolist(), strict=True))


def mean_ranks(results: Results) -> dict[str, float]:
    """The mean over labels of a rule's rank by mean mistakes: 1 is the best."""
    from scipy import stats  # it takes a second to import

    table = np.array(list(means(results).values()))
    ranks = stats.rankdata(table, axis=0).mean(axis=1)
    return dict(zip(results.rules, ranks.tolist(), strict=True))


def differences(results: Results, rule: str) -> list[Difference]:
    """One rule beside each of the others: label by label, and all labels together."""
    counts = results.counts()
    others = [other for other in results.rules if other != rule]
    by_label, overall = [], []
    for other in others:
        paired = counts[rule] - counts[other]
        by_label += [(other, label, paired[label : label + 1]) for label in range(len(paired))]
        overall.append((other, None, paired))
    return [
        Difference(
            rule,
            other,
            label,
            float(paired.mean()),
            *interval(paired),
            p,
            int(np.sum(paired < 0)),
            int(np.sum(paired > 0)),
            paired.size,
        )
        for family in (by_label, overall)
        for (other, label, paired), p in zip(
            family, holm([signed_rank(paired.ravel()) for _, _, paired in family]), strict=True
        )
    ]


def interval(paired: np.ndarray) -> tuple[float, float]:
    """A bootstrap interval for the mean of differences of shape (labels, permutations).

    Permutations are drawn anew within each label. The draws are the same every time: an interval is a
    function of the counts.
    """
    n_labels, n = paired.shape
    random = np.random.default_rng(0)
    totals = np.zeros(RESAMPLES)
    for of_label in paired:
        totals += of_label[random.integers(0, n, (RESAMPLES, n))].mean(axis=1)
    low, high = np.quantile(totals / n_labels, [ALPHA / 2.0, 1.0 - ALPHA / 2.0])
    return float(low), float(high)


def signed_rank(differences: np.ndarray) -> float:
    """The p-value of Wilcoxon's signed-rank test, two-sided; 1 if nothing differs.

    Exact, ties included, for up to MOST_EXACT differences; by the normal distribution for more. The chance of
    each sum of ranks is added up rank by rank: each is counted or not, with one chance in two.
    """
    from scipy import stats

    differing = differences[differences != 0.0]
    if not len(differing):
        return 1.0
    if len(differing) > MOST_EXACT:
        return float(stats.wilcoxon(differing, method="asymptotic").pvalue)
    ranks = (2.0 * stats.rankdata(np.abs(differing))).astype(np.int64)  # ties have half ranks
    chances = np.zeros(ranks.sum() + 1)
    chances[0] = 1.0
    for rank in ranks:
        counted = np.zeros_like(chances)
        counted[rank:] = chances[:-rank]
        chances = (chances + counted) / 2.0
    found = ranks[differing > 0.0].sum()
    tail = min(chances[: found + 1].sum(), chances[found:].sum())
    return float(min(1.0, 2.0 * tail))


def holm(p_values: list[float]) -> list[float]:
    """p-values corrected for their number (Holm 1979): the k-th smallest of m times m - k + 1, and never less
    than the one before."""
    order = np.argsort(p_values)
    steps = np.asarray(p_values)[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return corrected.tolist()
