"""Rules that learn side by side in one sweep learn as each would alone, to the bit."""

import numpy as np
import pytest
import scipy.sparse

from maxcosine import RULES
from maxcosine.engine import learn, score
from maxcosine.heads import Heads, one_vs_rest
from maxcosine.trace import Trace

N_FEATURES = 40


def alone(rule, *, average, dtype=np.float64):
    return Heads.create(
        rule,
        rule.make_params(),
        one_vs_rest([1]),
        N_FEATURES,
        np.dtype(dtype),
        fit_intercept=False,
        average=average,
    )


def examples(dtype=np.float64, n=300):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, N_FEATURES)) * (random.random((n, N_FEATURES)) < 0.3)
    codes = (X @ random.normal(size=N_FEATURES) + 0.3 * random.normal(size=n) > 0).astype(np.int64)
    return scipy.sparse.csr_array(X.astype(dtype)), codes


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_rule_learns_beside_all_others_as_it_would_alone(average, dtype):
    X, codes = examples(dtype)
    parts = [alone(rule, average=average, dtype=dtype) for rule in RULES.values()]
    together = Heads.side_by_side([alone(rule, average=average, dtype=dtype) for rule in RULES.values()])
    learn(together, X, codes)
    scores = score(together, X)
    for h, part in enumerate(parts):
        learn(part, X, codes)
        own = part.table[0].copy()
        own["first"], own["stop"] = h, h + 1
        own["logged"] = together.table[h]["logged"]  # beside a rule that restarts, all are logged
        assert together.rules[h] is part.rule
        assert together.table[h] == own
        assert np.array_equal(together.last().hypotheses()[0][h], part.last().hypotheses()[0][0])
        assert np.array_equal(scores[:, h], score(part, X)[:, 0])
        assert together.proven().bound[h] == part.proven().bound[0]
        if average:
            assert together.proven(averaged=True).bound[h] == part.proven(averaged=True).bound[0]


def test_heads_that_have_learnt_go_on_side_by_side():
    X, codes = examples()
    rules = [RULES["aggressive_romma"], RULES["naromma"], RULES["pa"]]
    parts = [alone(rule, average=False) for rule in rules]
    for part in parts:
        learn(part, X[:100], codes[:100])
    together = Heads.side_by_side(parts)
    learn(together, X[100:], codes[100:])
    for h, part in enumerate(parts):
        learn(part, X[100:], codes[100:])
        assert np.array_equal(together.last().hypotheses()[0][h], part.last().hypotheses()[0][0])
        assert together.table[h]["mistakes"] == part.table[0]["mistakes"]


def test_one_trace_has_the_steps_of_all_rules():
    X, codes = examples()
    together = Heads.side_by_side([alone(rule, average=False) for rule in RULES.values()])
    traces = Trace(len(codes) * len(RULES)), Trace(len(codes))
    learn(together, X, codes, trace=traces[0])
    learn(alone(RULES["mcp"], average=False), X, codes, trace=traces[1])
    head = list(RULES).index("mcp")
    steps, own = traces[0].steps, traces[1].steps
    own["head"] = head
    assert np.array_equal(steps[steps["head"] == head], own)


@pytest.mark.parametrize("rule", ["pa", "mcp"])
def test_the_last_hypotheses_of_averaged_heads_predict_as_without_averaging(rule):
    X, codes = examples()
    averaged, plain = alone(RULES[rule], average=True), alone(RULES[rule], average=False)
    learn(averaged, X, codes)
    learn(plain, X, codes)
    assert np.array_equal(score(averaged.last(), X), score(plain, X))
    assert not np.array_equal(score(averaged, X), score(plain, X))
