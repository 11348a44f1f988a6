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
    found = statistics.differences(results, "mcp")
    assert [(d.label, d.mean) for d in found] == [(0, -1.0), (1, 0.0), (None, -0.5)]
    assert not any(d.settled for d in found)


def test_differences_are_paired(results):
    found = {(d.other, d.label): d for d in statistics.differences(results, "mcp")}
    assert set(found) == set(itertools.product(["pa", "romma"], [0, 1, None]))
    one, overall = found["pa", 0], found["pa", None]
    assert (one.mean, one.better, one.worse, one.pairs) == (-2.0, 4, 0, 4)
    assert one.low <= one.mean <= one.high < 0.0
    assert one.settled
    assert (overall.mean, overall.better, overall.worse, overall.pairs) == (-0.75, 4, 2, 8)
    assert not found["romma", 1].settled


def test_interval_and_p_value_of_one_label_are_those_of_students_test():
    paired = np.round(np.random.default_rng(1).normal(3.0, 10.0, (1, 20)))
    expected = stats.ttest_1samp(paired[0], 0.0)
    low, high, p = statistics.mean_test(paired)
    assert (low, high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert p == pytest.approx(expected.pvalue)


def test_interval_over_labels_keeps_the_differences_between_labels_out():
    random = np.random.default_rng(2)
    noise = np.round(random.normal(0.0, 10.0, (4, 50)))
    apart = noise + np.array([[-900.0], [-300.0], [400.0], [800.0]])
    low, high, _ = statistics.mean_test(apart)
    assert high - low == pytest.approx(np.subtract(*statistics.mean_test(noise)[1::-1]))
    half = 1.96 * np.sqrt((noise.var(axis=1, ddof=1) / 50).sum()) / 4
    assert (low, high) == pytest.approx((apart.mean() - half, apart.mean() + half), abs=0.05)


def test_two_labels_are_compared_as_welch_compares_two_samples():
    one, other = np.array([[1.0, 4.0, 2.0, 8.0, 5.0]]), np.array([[3.0, 30.0, -20.0, 9.0, 44.0]])
    welch = stats.ttest_ind(one[0], -other[0], equal_var=False)  # the sum of two means as a difference
    low, high, p = statistics.mean_test(np.vstack([one, other]))
    assert p == pytest.approx(welch.pvalue)
    assert (2 * low, 2 * high) == pytest.approx(tuple(welch.confidence_interval(0.95)))


@given(st.lists(st.lists(st.integers(-30, 40), min_size=5, max_size=5), min_size=1, max_size=4))
def test_interval_and_p_value_never_contradict_each_other(differences):
    paired = np.array(differences, float)
    low, high, p = statistics.mean_test(paired)
    assert low <= paired.mean() <= high
    if abs(p - 0.05) > 1e-9:
        assert (low <= 0.0 <= high) == (p > 0.05)


def test_few_equal_differences_do_not_prove_much():
    for n, smallest in ((2, 0.03), (3, 0.002)):
        low, high, p = statistics.mean_test(np.full((1, n), -3.0))
        assert low < -3.0 < high
        assert p > smallest
    low, high, p = statistics.mean_test(np.zeros((1, 20)))
    assert (low, p) == (-high, 1.0)


def test_one_order_decides_nothing():
    assert statistics.mean_test(np.full((3, 1), -50.0)) == (-np.inf, np.inf, 1.0)


def test_a_clear_p_value_beside_an_interval_around_zero_is_impossible():
    # Many small gains and one large loss: ranks favour one rule, and means do not.
    counts = {"mcp": [[9] * 19 + [60]], "pa": [[10] * 20]}
    (by_label, overall) = statistics.differences(results_of(counts), "mcp")
    assert stats.wilcoxon(np.subtract(*map(np.ravel, counts.values()))).pvalue < 0.001
    for found in (by_label, overall):
        assert found.low < 0.0 < found.high
        assert found.p > 0.05


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30))
def test_holm_never_lowers_a_p_value_and_keeps_the_order(p_values):
    corrected = statistics.holm(p_values)
    assert all(p <= q <= 1.0 for p, q in zip(p_values, corrected, strict=True))
    assert min(corrected) == pytest.approx(min(1.0, len(p_values) * min(p_values)))
    by_p = [q for _, q in sorted(zip(p_values, corrected, strict=True))]
    assert by_p == sorted(by_p)
    assert statistics.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
