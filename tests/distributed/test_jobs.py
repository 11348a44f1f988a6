"""Models of shards are merged into one that is certified on all examples (Section 8 of the theory)."""

import numpy as np
import pytest
from scipy.optimize import nnls

from maxcosine import MCPClassifier, MCPExactClassifier, OnlineClassifier, PAClassifier, rule
from maxcosine.distributed import Job, PartialModel, Tally, fit
from maxcosine.model_file import BadModelFile
from tests.contract.streams import separable, signs
from tests.distributed.digits import X, Y, assert_same, cut
from tests.reference import maximal_margin


@pytest.mark.parametrize("average", [False, True])
def test_one_shard_is_one_pass(average):
    learner = MCPExactClassifier(average=average)
    whole = MCPExactClassifier(average=average).partial_fit(X, Y)
    one = fit(cut(1), learner)
    assert one.coef_.tobytes() == whole.coef_.tobytes()
    assert one.certificate_ == whole.certificate_
    two = fit(cut(1), learner, rounds=2)
    whole.partial_fit(X, Y)
    np.testing.assert_allclose(two.coef_, whole.coef_, rtol=1e-12, atol=1e-300)
    assert (two.n_seen_, two.mistakes_) == (whole.n_seen_, whole.mistakes_)
    assert two.certificate_.mistakes.tolist() == whole.certificate_.mistakes.tolist()


def test_chunks_of_a_shard_make_no_difference():
    [[(rows, labels)], *others] = cut(3)
    chunks = [
        (rows[:7], labels[:7]),
        (rows[:0], labels[:0]),
        (rows[7:], labels[7:], np.ones(len(labels) - 7)),
    ]
    assert_same(fit([lambda: chunks, *others], MCPClassifier(), rounds=2), fit(cut(3), MCPClassifier(), rounds=2))


@pytest.mark.parametrize(("how", "fan_in"), [("certified", 0), ("mean", 2)])
def test_examples_are_counted_once_per_round(how, fan_in):
    shards = cut(5)
    learner = fit(shards, MCPExactClassifier(), how=how, rounds=3, fan_in=fan_in)
    assert learner.n_seen_ == 3 * len(Y)
    assert [tally.examples for tally in learner.rounds_] == [len(Y)] * 3
    assert learner.certificate_.merge.models == len(shards)
    # The sum of the counts of each shard and round, each counted from 0.
    job, expected, wrong = Job(MCPExactClassifier(), how, fan_in=fan_in), np.zeros((2, 10), int), 0
    for rounds in range(3):
        start = fit_part(job, shards, rounds)
        for shard in shards:
            part = job.to_estimator(job.learn(shard, start))
            expected += part.certificate_.mistakes, part.certificate_.updates
            wrong += part.mistakes_
    assert np.array_equal([learner.certificate_.mistakes, learner.updates_], expected)
    assert learner.mistakes_ == wrong == sum(tally.mistakes for tally in learner.rounds_)


def fit_part(job, shards, rounds):
    """The result of some rounds, by the steps of the job."""
    start = None
    for _ in range(rounds):
        parts = [job.learn(shard, start) for shard in shards]
        width = job.fan_in or len(parts)
        while len(parts) > 1:
            parts = [job.merge(parts[k : k + width]) for k in range(0, len(parts), width)]
        start = job.finish_round(parts[0], start)
    return start


def test_late_classes_begin_with_their_first_example():
    y = np.where(Y < 5, Y, 5)
    shards = [[(X[y < 2], y[y < 2])], [(X[y >= 2], y[y >= 2])]]
    learner = fit(shards, MCPClassifier(), rounds=2)
    first, both = np.count_nonzero(y < 2), len(y)
    certificate = learner.certificate_
    assert learner.classes_.tolist() == [0, 1, 2, 3, 4, 5]
    assert learner.n_seen_ == 2 * both
    # In the first round, the second shard has no examples of classes 0 and 1, the first none of the others.
    assert certificate.since[:2].tolist() == [both - first] * 2
    assert (certificate.since[2:] >= first).all()
    assert (certificate.since + certificate.seen == learner.n_seen_).all()
    assert (certificate.seen >= both).all()  # all of the second round


@pytest.mark.parametrize(("how", "average"), [("certified", False), ("mean", True)])
def test_shards_without_examples_or_with_one_class(how, average):
    ones, others = (X[Y == 1], Y[Y == 1]), (X[Y != 1], np.zeros(np.count_nonzero(Y != 1), int))
    shards = [[], [ones], [(X[:0], Y[:0])], [others], []]
    learner = fit(shards, MCPExactClassifier(average=average), how=how, rounds=2, fan_in=2)
    assert learner.classes_.tolist() == [0, 1]
    assert learner.n_seen_ == 2 * len(Y)
    assert learner.certificate_.merge.models == 2
    assert learner.certificate_.bound > 0.0


def test_no_examples_are_an_error():
    with pytest.raises(ValueError, match="no examples in the data"):
        fit([[], []], MCPClassifier(), rounds=2)
    with pytest.raises(ValueError, match="no shards"):
        fit([], MCPClassifier())


@pytest.mark.parametrize(
    ("name", "average", "how", "fan_in"),
    [("mcp_exact", False, "certified", 0), ("perceptron", True, "mean", 2), ("mcp", True, "certified", 3)],
)
def test_certificate_is_proven_on_all_examples(name, average, how, fan_in):
    Z, codes, _ = separable(60, 5)
    learner = OnlineClassifier(name, fit_intercept=False, average=average)
    for rounds in (1, 2, 3):
        merged = fit(cut(5, Z, codes), learner, how=how, rounds=rounds, fan_in=fan_in)
        certificate = merged.certificate_
        assert certificate.bound > 0
        assert certificate.margin_ceiling >= maximal_margin(Z, signs(codes)) * (1 - 1e-9)
        # w / Lambda is a mean of the signed examples: its distance to their hull is 0.
        u = merged.coef_[0] / certificate.coef_sum
        hull, weight = (signs(codes)[:, None] * Z).T, 1e3
        stacked = np.vstack([hull, np.full(len(Z), weight)])
        _, distance = nnls(stacked, np.append(u, weight))
        assert distance <= 1e-9 * np.linalg.norm(u)


def test_certified_bound_is_at_least_that_of_each_shard():
    Z, codes, _ = separable(60, 5)
    job = Job(MCPExactClassifier(fit_intercept=False))
    parts = [job.learn(shard) for shard in cut(5, Z, codes)]
    bounds = [job.to_estimator(part).certificate_.bound for part in parts]
    assert job.to_estimator(job.merge(parts)).certificate_.bound >= max(bounds) * (1 - 1e-9)


def test_mean_of_a_tree_is_the_mean_of_all():
    shards = [*cut(7), []]
    expected = fit(shards, MCPExactClassifier(), how="mean").coef_
    for fan_in in (2, 3):
        found = fit(shards, MCPExactClassifier(), how="mean", fan_in=fan_in).coef_
        assert np.abs(found - expected).max() <= 1e-12 * np.abs(expected).max()


def test_averages_include_all_rounds():
    """The average over two rounds lies between those of the first and of the second round."""
    job = Job(MCPExactClassifier(average=True, fit_intercept=False), "mean")
    shards = cut(3)
    start = fit_part(job, shards, 1)
    second = job.merge([job.learn(shard, start) for shard in shards])
    a, b, both = (job.to_estimator(part).coef_ for part in (start, second, job.finish_round(second, start)))
    share = np.sum((both - a) * (b - a), axis=1) / np.sum((b - a) ** 2, axis=1)
    assert ((share > 0) & (share < 1)).all()
    np.testing.assert_allclose(both, a + share[:, None] * (b - a), rtol=0, atol=1e-12 * np.abs(both).max())


def test_rounds_reduce_mistakes():
    train, test = np.arange(len(Y)) % 4 > 0, np.arange(len(Y)) % 4 == 0

    def mistakes(learner):
        return ((learner.decision_function(X[test]) > 0) != (Y[test][:, None] == range(10))).sum()

    single, shards = MCPExactClassifier().fit(X[train], Y[train]), cut(4, X[train], Y[train])
    for how, rounds, allowed in (("certified", 1, 1.25), ("certified", 3, 1.25), ("mean", 3, 1.0)):
        learner = fit(shards, MCPExactClassifier(), how=how, rounds=rounds)
        assert mistakes(learner) <= allowed * mistakes(single)


def test_features_of_all_shards_are_united():
    shards = [
        [([{"a": 1.0, "b": 2.0}, {"b": 1.0}], ["x", "y"])],
        [([{"c": 1.0}, {"b": 3.0}], ["x", "z"], [1.0, 2.0])],
    ]
    learner = fit(shards, PAClassifier(), rounds=2)
    assert learner.features_.tolist() == ["a", "b", "c"]
    assert learner.classes_.tolist() == ["x", "y", "z"]
    assert learner.predict_one({"c": 1.0}) == "x"
    wider = fit([[(X[:500, :40], Y[:500])], [(X[500:], Y[500:])]], MCPClassifier(), rounds=2)
    assert wider.n_features_in_ == 64


def test_partial_models_travel_as_bytes():
    job = Job(MCPClassifier())
    part, empty = job.learn(cut(2)[0]), job.learn([])
    assert PartialModel.from_bytes(part.to_bytes()) == part
    assert PartialModel.from_bytes(empty.to_bytes()) == empty == PartialModel(b"", 0, (Tally(),))
    damaged = bytearray(part.model)
    damaged[-1] ^= 1
    with pytest.raises(BadModelFile, match="damaged"):
        job.to_estimator(PartialModel(bytes(damaged), 1, part.rounds))


@rule
def own_step(margin, sq_w, sq_x, coef_sum, state, params):
    return 1.0, (1.0 / sq_x if margin <= 0.0 else 0.0), state


def test_user_defined_rule():
    assert fit(cut(3), OnlineClassifier(own_step), rounds=2).score(X, Y) > 0.8


def test_mistakes_are_those_before_learning():
    one_by_one, wrong = MCPExactClassifier(), 0
    for row, (x, y) in enumerate(zip(X[:60], Y[:60], strict=True)):
        if row >= 2:
            wrong += one_by_one.predict([x])[0] != y
        one_by_one.partial_fit([x], [y])
    [tally] = fit([[(X[:2], Y[:2]), (X[2:60], Y[2:60])]], MCPExactClassifier()).rounds_
    assert wrong <= tally.mistakes <= wrong + 2


def test_invalid_parameters_are_refused_at_once():
    for params, message in [
        ({"how": "median"}, "how='median' is not a way of merging"),
        ({"rounds": 0}, "rounds=0"),
        ({"fan_in": 1}, "fan_in=1"),
        ({"estimator": MCPClassifier(shuffle=True)}, "shuffle the data"),
        ({"estimator": MCPClassifier(passes=3)}, "use rounds=3"),
        ({"estimator": MCPClassifier(average="yes")}, "average"),
        ({"estimator": OnlineClassifier("pa1", rule_params={"D": 1.0})}, "D"),
    ]:
        with pytest.raises(ValueError, match=message):
            Job(**{"estimator": MCPClassifier(), **params})


def test_estimator_stays_unchanged():
    learner = MCPClassifier().partial_fit(X[:5], Y[:5])
    before = learner.coef_.tobytes(), learner.certificate_
    assert fit(cut(2), learner).n_seen_ == len(Y)
    assert (learner.coef_.tobytes(), learner.certificate_) == before
