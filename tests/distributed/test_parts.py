"""Section 8 of the theory, over shards and rounds: certified on all data, counted once, the same bits."""

import itertools

import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.datasets import load_digits

from maxcosine import MCPClassifier, MCPExactClassifier, OnlineClassifier, PAClassifier, rule
from maxcosine.distributed import Job, Part, Tally, close_round, combine, fit, fitted, here, learn, run
from maxcosine.merging import HOW
from maxcosine.model_file import BadModelFile
from tests.contract.streams import bits, separable, signs
from tests.reference import maximal_margin

X, Y = load_digits(return_X_y=True)
both_ways = pytest.mark.parametrize("how", HOW)
all_at_once_or_not = pytest.mark.parametrize("fan_in", [0, 2, 3])


def cut(n, X=X, y=Y):
    """n shards of one chunk each, one behind the other."""
    edges = np.linspace(0, len(y), n + 1).astype(int)
    return [[(X[i:j], y[i:j])] for i, j in itertools.pairwise(edges)]


def points(learner):
    heads = learner._model.heads
    w, _ = heads.hypotheses()
    return w / heads.exact_coef_sum[:, None]


@pytest.mark.parametrize("average", [False, True])
def test_one_shard_is_one_pass(average):
    learner = MCPExactClassifier(average=average)
    whole = MCPExactClassifier(average=average).partial_fit(X, Y)
    assert bits(fit(cut(1), learner)._model) == bits(whole._model)
    again = fit(cut(1), learner, rounds=2)
    whole.partial_fit(X, Y)
    np.testing.assert_allclose(again.coef_, whole.coef_, rtol=1e-12, atol=1e-300)
    assert again.n_seen_ == whole.n_seen_
    assert again.mistakes_.tolist() == whole.mistakes_.tolist()


def test_chunks_of_a_shard_make_no_difference():
    [[(rows, labels)], *others] = cut(3)
    chunks = [
        (rows[:7], labels[:7]),
        (rows[:0], labels[:0]),
        (rows[7:], labels[7:], np.ones(len(labels) - 7)),
    ]
    one, other = fit(cut(3), MCPClassifier(), rounds=2), fit([chunks, *others], MCPClassifier(), rounds=2)
    assert one.coef_.tobytes() == other.coef_.tobytes()


@both_ways
@all_at_once_or_not
def test_what_was_seen_is_counted_once_a_round(how, fan_in):
    shards, rounds = cut(5), 3
    learner = fit(shards, MCPExactClassifier(), how=how, rounds=rounds, fan_in=fan_in)
    assert learner.n_seen_ == rounds * len(Y)
    assert [tally.examples for tally in learner.rounds_] == [len(Y)] * rounds
    # Round by round, what each shard counts when it begins with nothing counted.
    job, start, expected = Job(MCPExactClassifier(), how, 1, fan_in), None, np.zeros((2, 10), int)
    for _ in range(rounds):
        parts = [learn(job, shard, start) for shard in shards]
        for part in parts:
            alone = fitted(job, part).certificate_
            expected += alone.mistakes, alone.updates
        [start] = [run(job, shards, here)] if start is None else [_merged(job, parts, start)]
    assert np.array_equal([learner.mistakes_, learner.updates_], expected)
    assert learner.certificate_.merge.models == len(shards)


def _merged(job, parts, start):
    width = job.fan_in or len(parts)
    while len(parts) > 1:
        parts = [combine(job, parts[k : k + width]) for k in range(0, len(parts), width)]
    return close_round(job, parts[0], start)


def test_classes_that_come_late_begin_where_they_came():
    y = np.where(Y < 5, Y, 5)
    shards = [[(X[y < 2], y[y < 2])], [(X[y >= 2], y[y >= 2])]]
    learner = fit(shards, MCPClassifier(), rounds=2)
    first, both = np.count_nonzero(y < 2), len(y)
    assert learner.classes_.tolist() == [0, 1, 2, 3, 4, 5]
    assert learner.n_seen_ == 2 * both
    # Classes 0 and 1 were unknown to the second shard in the first round, the others to the first.
    assert learner.certificate_.since[:2].tolist() == [both - first] * 2
    assert (learner.certificate_.since[2:] >= first).all()
    assert (learner.certificate_.since + learner.certificate_.seen == learner.n_seen_).all()
    assert (learner.certificate_.seen >= both).all()  # all of the second round


@pytest.mark.parametrize("average", [False, True])
@both_ways
def test_shards_without_examples_or_with_one_class(how, average):
    (ones, others) = (X[Y == 1], Y[Y == 1]), (X[Y != 1], np.zeros(np.count_nonzero(Y != 1), int))
    shards = [[], [ones], [(X[:0], Y[:0])], [others], []]
    learner = fit(shards, MCPExactClassifier(average=average), how=how, rounds=2, fan_in=2)
    assert learner.classes_.tolist() == [0, 1]
    assert learner.n_seen_ == 2 * len(Y)
    assert learner.certificate_.merge.models == 2
    assert learner.certificate_.bound > 0.0


def test_no_example_at_all():
    with pytest.raises(ValueError, match="no example in any of the shards"):
        fit([[], []], MCPClassifier(), rounds=2)
    with pytest.raises(ValueError, match="no shards"):
        fit([], MCPClassifier())


@both_ways
@all_at_once_or_not
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("name", ["mcp_exact", "perceptron", "aggressive_romma"])
def test_the_certificate_is_proven_on_all_data(name, average, how, fan_in):
    Z, codes, _ = separable(60, 5)
    learner = OnlineClassifier(name, fit_intercept=False, average=average)
    for rounds in (1, 2, 3):
        merged = fit(cut(5, Z, codes), learner, how=how, rounds=rounds, fan_in=fan_in)
        certificate = merged.certificate_
        assert certificate.bound > 0
        assert certificate.margin_ceiling >= maximal_margin(Z, signs(codes)) * (1 - 1e-9)
        # w / Lambda is a mean of the signed examples: the distance to their hull is 0.
        [u] = points(merged)
        hull, weight = (signs(codes)[:, None] * Z).T, 1e3
        stacked = np.vstack([hull, np.full(len(Z), weight)])
        _, distance = nnls(stacked, np.append(u, weight))
        assert distance <= 1e-9 * np.linalg.norm(u)


def test_certified_proves_at_least_what_each_shard_does():
    Z, codes, _ = separable(60, 5)
    job = Job(MCPExactClassifier(fit_intercept=False))
    parts = [learn(job, shard) for shard in cut(5, Z, codes)]
    bounds = [fitted(job, part).certificate_.bound for part in parts]
    assert fitted(job, combine(job, parts)).certificate_.bound >= max(bounds) * (1 - 1e-9)


@all_at_once_or_not
def test_the_mean_of_a_tree_is_the_mean_of_all(fan_in):
    shards = [*cut(7), []]
    wanted = points(fit(shards, MCPExactClassifier(), how="mean"))
    found = points(fit(shards, MCPExactClassifier(), how="mean", fan_in=fan_in))
    assert np.abs(found - wanted).max() <= 1e-12 * np.abs(wanted).max()


def test_averaging_sums_over_all_rounds():
    """The averaged point is between that of the first round and that of the second."""
    job = Job(MCPExactClassifier(average=True, fit_intercept=False), "mean")
    shards = cut(3)
    first = run(job, shards, here)
    second = combine(job, [learn(job, shard, first) for shard in shards])
    both = points(fitted(job, close_round(job, second, first)))
    one, other = (fitted(job, part)._model.heads for part in (first, second))
    sums = [heads.averaged_weights()[0] * heads.rounds[:, None] for heads in (one, other)]
    units = one.table["sum_coef"] + other.table["sum_coef"]
    expected = (sums[0] + sums[1]) / units[:, None]
    assert np.abs(both - expected).max() <= 1e-12 * np.abs(expected).max()


def test_rounds_learn():
    """A fast likeness of the requirement on MNIST, which test_mnist.py asks for."""
    train, test = np.arange(len(Y)) % 4 > 0, np.arange(len(Y)) % 4 == 0
    single = MCPExactClassifier().fit(X[train], Y[train])

    def mistakes(learner):
        return ((learner.decision_function(X[test]) > 0) != (Y[test][:, None] == range(10))).sum()

    shards = cut(4, X[train], Y[train])
    for how, rounds, allowed in (("certified", 1, 1.25), ("certified", 3, 1.25), ("mean", 3, 1.0)):
        found = fit(shards, MCPExactClassifier(), how=how, rounds=rounds)
        assert mistakes(found) <= allowed * mistakes(single)


def test_dicts_and_columns_of_different_shards_are_united():
    shards = [
        [([{"a": 1.0, "b": 2.0}, {"b": 1.0}], ["x", "y"])],
        lambda: iter([([{"c": 1.0}, {"b": 3.0}], ["x", "z"], [1.0, 2.0])]),
    ]
    learner = fit(shards, PAClassifier(), rounds=2)
    assert learner.features_.tolist() == ["a", "b", "c"]
    assert learner.classes_.tolist() == ["x", "y", "z"]
    assert learner.predict_one({"c": 1.0}) == "x"
    wider = fit([[(X[:500, :40], Y[:500])], [(X[500:], Y[500:])]], MCPClassifier(), rounds=2)
    assert wider.n_features_in_ == 64


def test_a_part_travels_as_bytes():
    job = Job(MCPClassifier())
    part = learn(job, cut(2)[0])
    assert Part.from_bytes(part.to_bytes()) == part
    empty = learn(job, [])
    assert Part.from_bytes(empty.to_bytes()) == empty == Part(b"", 0, (Tally(),))
    damaged = bytearray(part.model)
    damaged[-1] ^= 1
    with pytest.raises(BadModelFile, match="a model that was received: damaged"):
        fitted(job, Part(bytes(damaged), 1, part.rounds))


@rule
def own_step(margin, sq_w, sq_x, coef_sum, state, params):
    return 1.0, (1.0 / sq_x if margin <= 0.0 else 0.0), state


def test_a_rule_of_ones_own():
    learner = fit(cut(3), OnlineClassifier(own_step), rounds=2)
    assert learner.score(X, Y) > 0.8


def test_progressive_mistakes_are_those_before_learning():
    job = Job(MCPExactClassifier())
    one_by_one, wrong = MCPExactClassifier(), 0
    for row, (x, y) in enumerate(zip(X[:60], Y[:60], strict=True)):
        if row >= 2:
            wrong += one_by_one.predict([x])[0] != y
        one_by_one.partial_fit([x], [y])
    found = learn(job, [(X[:2], Y[:2]), (X[2:60], Y[2:60])]).rounds[0].mistakes
    assert wrong <= found <= wrong + 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"how": "median"}, "how='median' is not a way of merging"),
        ({"rounds": 0}, "rounds=0"),
        ({"fan_in": 1}, "fan_in=1"),
        ({"estimator": MCPClassifier(shuffle=True)}, "shuffle the data"),
        ({"estimator": MCPClassifier(passes=3)}, "rounds=3 instead"),
        ({"estimator": MCPClassifier(average="yes")}, "average"),
    ],
)
def test_what_cannot_be_done_is_refused_at_once(given, message):
    with pytest.raises(ValueError, match=message):
        Job(**{"estimator": MCPClassifier(), **given})


def test_the_estimator_stays_as_it_was():
    learner = MCPClassifier().partial_fit(X[:5], Y[:5])
    before = bits(learner._model)
    fitted_one = fit(cut(2), learner)
    assert bits(learner._model) == before
    assert fitted_one.n_seen_ == len(Y)
