"""Statistics, compared with hand-computed values and with SciPy."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from maxcosine.experiments import statistics
from tests.experiments.small import results_of


@pytest.fixture
def results():
    return results_of(
        {
            "pa": [[10, 12, 14, 12], [20, 20, 22, 18]],
            "mcp": [[8, 10, 11, 11], [21, 20, 22, 19]],
            "romma": [[30, 31, 29, 30], [20, 20, 22, 18]],
        }
    )


def test_means_spreads_wins_and_ranks(results):
    assert statistics.means(results)["pa"].tolist() == [12.0, 20.0]
    assert statistics.spreads(results)["pa"] == pytest.approx([np.sqrt(8 / 3), np.sqrt(8 / 3)])
    assert statistics.wins(results) == {"pa": 0.5, "mcp": 1.0, "romma": 0.5}
    assert statistics.mean_ranks(results) == {"pa": (2 + 1.5) / 2, "mcp": (1 + 3) / 2, "romma": (3 + 1.5) / 2}
    assert statistics.focus(results) == "mcp"
    assert statistics.focus(results_of({"pa": [[1]], "romma": [[2]]})) == "romma"


def test_one_permutation_has_no_spread():
    results = results_of({"pa": [[3], [4]], "mcp": [[2], [4]]})
    assert statistics.spreads(results)["pa"].tolist() == [0.0, 0.0]
    found = {(d.label, d.mean, d.low, d.high) for d in statistics.differences(results, "mcp")}
    assert found == {(0, -1.0, -1.0, -1.0), (1, 0.0, 0.0, 0.0), (None, -0.5, -0.5, -0.5)}


def test_differences_are_paired(results):
    found = {(d.other, d.label): d for d in statistics.differences(results, "mcp")}
    assert set(found) == set(itertools.product(["pa", "romma"], [0, 1, None]))
    one, overall = found["pa", 0], found["pa", None]
    assert (one.mean, one.better, one.worse, one.pairs) == (-2.0, 4, 0, 4)
    assert one.low <= one.mean <= one.high < 0.0
    assert one.settled
    assert (overall.mean, overall.better, overall.worse, overall.pairs) == (-0.75, 4, 2, 8)
    assert not found["romma", 1].settled


def test_interval_is_close_to_the_normal_one_and_resamples_each_label_separately():
    paired = np.random.default_rng(1).normal(3.0, 10.0, (1, 400))
    low, high = statistics.interval(paired)
    half = 1.96 * paired.std() / 20.0
    assert (low, high) == pytest.approx((paired.mean() - half, paired.mean() + half), abs=0.1)
    assert statistics.interval(np.array([[5.0] * 10, [-100.0] * 10])) == (-47.5, -47.5)


def test_signed_rank_with_ties_by_enumeration():
    differences = np.array([1.0, -1.0, 2.0, 2.0, 2.0, -3.0, 0.0, 4.0])
    nonzero = differences[differences != 0]
    ranks = stats.rankdata(np.abs(nonzero))
    sums = np.array(list(itertools.product([False, True], repeat=7))) @ ranks
    expected = 2.0 * np.mean(sums >= ranks[nonzero > 0].sum())
    assert statistics.signed_rank(differences) == pytest.approx(expected)
    assert statistics.signed_rank(np.zeros(5)) == 1.0


@pytest.mark.parametrize(("n", "tolerance"), [(200, 1e-9), (320, 0.02)])
def test_signed_rank_without_ties_is_that_of_scipy(n, tolerance):
    differences = np.random.default_rng(n).normal(0.1, 1.0, n)
    exact = stats.wilcoxon(differences, method="exact").pvalue
    assert statistics.signed_rank(differences) == pytest.approx(exact, rel=tolerance)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30))
def test_holm_never_lowers_a_p_value_and_keeps_the_order(p_values):
    corrected = statistics.holm(p_values)
    assert all(p <= q <= 1.0 for p, q in zip(p_values, corrected, strict=True))
    assert min(corrected) == pytest.approx(min(1.0, len(p_values) * min(p_values)))
    by_p = [q for _, q in sorted(zip(p_values, corrected, strict=True))]
    assert by_p == sorted(by_p)
    assert statistics.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
