"""Statistics by hand, and by their laws."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from maxcosine.experiments import statistics
from tests.experiments.small import results_of

COUNTS = {
    "pa": [[10, 12, 14, 12], [20, 20, 22, 18]],
    "mcp": [[8, 10, 11, 11], [21, 20, 22, 19]],
    "romma": [[30, 31, 29, 30], [20, 20, 22, 18]],
}


@pytest.fixture
def results():
    return results_of(COUNTS)


def test_means_and_spreads_of_each_label(results):
    assert statistics.means(results)["pa"].tolist() == [12.0, 20.0]
    assert statistics.spreads(results)["pa"] == pytest.approx([np.sqrt(8 / 3), np.sqrt(8 / 3)])


def test_one_permutation_has_no_spread():
    results = results_of({"pa": [[3], [4]], "mcp": [[2], [4]]})
    assert statistics.spreads(results)["pa"].tolist() == [0.0, 0.0]
    found = {(d.label, d.mean, d.low, d.high) for d in statistics.differences(results, "mcp")}
    assert found == {(0, -1.0, -1.0, -1.0), (1, 0.0, 0.0, 0.0), (None, -0.5, -0.5, -0.5)}


def test_wins_share_ties_and_ranks_are_means_over_labels(results):
    assert statistics.wins(results) == {"pa": 0.5, "mcp": 1.0, "romma": 0.5}
    assert statistics.mean_ranks(results) == {"pa": (2 + 1.5) / 2, "mcp": (1 + 3) / 2, "romma": (3 + 1.5) / 2}


def test_differences_are_paired(results):
    found = {(d.other, d.label): d for d in statistics.differences(results, "mcp")}
    assert set(found) == set(itertools.product(["pa", "romma"], [0, 1, None]))
    one = found["pa", 0]
    assert (one.mean, one.better, one.worse, one.pairs) == (-2.0, 4, 0, 4)
    assert one.low <= one.mean <= one.high < 0.0
    assert one.settled
    everything = found["pa", None]
    assert (everything.mean, everything.better, everything.worse, everything.pairs) == (-0.75, 4, 2, 8)
    assert found["romma", 1].mean == 0.5
    assert not found["romma", 1].settled


def test_the_interval_of_a_mean_is_close_to_the_normal_one():
    random = np.random.default_rng(1)
    paired = random.normal(3.0, 10.0, (1, 400))
    low, high = statistics.interval(paired)
    half = 1.96 * paired.std() / 20.0
    assert low == pytest.approx(paired.mean() - half, abs=0.1)
    assert high == pytest.approx(paired.mean() + half, abs=0.1)


def test_labels_are_resampled_apart():
    # Labels that differ by a constant add no doubt about the mean.
    assert statistics.interval(np.array([[5.0] * 10, [-100.0] * 10])) == (-47.5, -47.5)


def test_the_paper_s_rule_is_the_one_the_others_are_compared_with(results):
    assert statistics.focus(results) == "mcp"
    assert statistics.focus(results_of({"pa": [[1]], "romma": [[2]]})) == "romma"


def test_signed_rank_by_counting_all_signs():
    differences = np.array([1.0, -2.0, 3.0, 4.0, 5.0, -6.5, 7.0])
    ranks = np.arange(1, 8)  # the differences are in the order of their sizes
    statistic = ranks[differences > 0].sum()
    sums = [ranks[list(signs)].sum() for signs in map(np.array, itertools.product([False, True], repeat=7))]
    tail = np.mean([total >= statistic for total in sums])
    assert statistics.signed_rank(differences) == pytest.approx(2.0 * min(tail, 1.0 - tail + 1 / 128))
    assert statistics.signed_rank(np.zeros(5)) == 1.0


@pytest.mark.parametrize("n", [5, 12, 30, 200])
def test_signed_rank_is_scipys_where_nothing_is_tied(n):
    differences = np.random.default_rng(n).normal(0.2, 1.0, n)
    assert statistics.signed_rank(differences) == pytest.approx(
        stats.wilcoxon(differences, method="exact").pvalue
    )


def test_signed_rank_of_many_pairs_is_near_the_exact_one(monkeypatch):
    differences = np.random.default_rng(0).normal(0.1, 1.0, 320)
    many = statistics.signed_rank(differences)
    monkeypatch.setattr(statistics, "MOST_EXACT", 1000)
    assert many == pytest.approx(statistics.signed_rank(differences), rel=0.02)


def test_signed_rank_of_ties_by_counting_all_signs():
    differences = np.array([1.0, -1.0, 2.0, 2.0, 2.0, -3.0, 0.0, 4.0])
    ranks = stats.rankdata(np.abs(differences[differences != 0]))
    signs = np.array(list(itertools.product([False, True], repeat=7)))
    sums, found = signs @ ranks, ranks[differences[differences != 0] > 0].sum()
    assert statistics.signed_rank(differences) == pytest.approx(2.0 * np.mean(sums >= found))


def test_holm_by_hand():
    assert statistics.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30))
def test_holm_never_lowers_and_keeps_the_order(p_values):
    corrected = statistics.holm(p_values)
    assert all(p <= q <= 1.0 for p, q in zip(p_values, corrected, strict=True))
    assert min(corrected) == pytest.approx(min(1.0, len(p_values) * min(p_values)))
    by_p = [q for _, q in sorted(zip(p_values, corrected, strict=True))]
    assert by_p == sorted(by_p)
