"""What rounding does to long runs: certificates stay true, and storage and units change nothing."""

import numpy as np
import pytest
import scipy.sparse

from maxcosine import RULES, OnlineClassifier, PAClassifier
from maxcosine.compiled import JIT_ENABLED
from tests.contract.streams import every_rule

LONG = 2**22 if JIT_ENABLED else 2**10


@pytest.mark.slow
def test_weights_that_no_longer_move_prove_nothing_more():
    X, y = np.ones((LONG, 1), np.float32), np.ones(LONG, int)
    learner = PAClassifier("pa1", C=1e-12, fit_intercept=False)
    for _ in range(16):  # in float32, 1 + tiny is 1 long before the end
        learner.partial_fit(X, y, classes=[0, 1])
    assert learner.certificate_.margin_ceiling >= 1.0  # the margin there is
    assert learner.certificate_.last.bound <= 1.0


@pytest.mark.slow
def test_averages_that_no_longer_move_prove_nothing_more():
    X, y = np.full((LONG, 1), 1.4e-5, np.float32), np.ones(LONG, int)
    learner = PAClassifier("pa1", fit_intercept=False, average=True)
    for _ in range(6):
        learner.partial_fit(X, y, classes=[0, 1])
    assert learner.certificate_.margin_ceiling >= np.float64(X[0, 0])


@every_rule
def test_arrays_with_gaps_are_read_as_what_they_hold(name):
    random = np.random.default_rng(3)
    X, y = random.normal(size=(200, 7)), random.integers(0, 2, 200)
    plain = scipy.sparse.csr_array(X)
    data, indices = np.full(2 * plain.nnz, 77.0), np.full(2 * plain.nnz, 5, plain.indices.dtype)
    data[::2], indices[::2] = plain.data, plain.indices
    gaps = scipy.sparse.csr_array((data[::2], indices[::2], plain.indptr), shape=plain.shape)
    assert not gaps.data.flags.c_contiguous
    expected, found = (OnlineClassifier(name).fit(rows, y) for rows in (plain, gaps))
    assert np.array_equal(expected.coef_, found.coef_)


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.scale_free])
@pytest.mark.parametrize("unit", [1e-20, 1e-11, 1e11, 1e13])
def test_averages_do_not_depend_on_the_unit(name, unit):
    random = np.random.default_rng(4)
    X = random.normal(size=(600, 10))
    y = X @ random.normal(size=10) + random.normal(size=600) > 0
    one, other = (
        OnlineClassifier(name, average=True, fit_intercept=False).fit(X * c, y) for c in (1.0, unit)
    )
    assert np.mean(one.predict(X) != other.predict(X * unit)) < 0.005


@pytest.mark.parametrize("average", [False, True])
def test_heads_are_compared_by_their_lambda_and_not_by_what_is_claimed_of_it(average):
    random = np.random.default_rng(5)
    X, y = random.normal(size=(300, 6)).astype(np.float32), random.integers(0, 3, 300)
    learner = OnlineClassifier("mcp", average=average, fit_intercept=False).fit(X, y)
    heads = learner._model.heads
    before = learner.coef_
    heads.table["slack_v"] *= 1e4  # as after a stream 10,000 times as long
    heads.table["claim_v"] /= 2.0
    learner._model.changed()
    assert np.array_equal(learner.coef_, before)
