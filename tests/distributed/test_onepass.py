"""Shards of the one-pass learner: rounds, trees, text, and workers of Dask."""

import dask.array
import numpy as np
import pytest
from distributed import Client, LocalCluster

from maxcosine import OnePassClassifier, model_file
from maxcosine.distributed import Job, PartialModel, fit, plan
from maxcosine.distributed.dask import DaskOnlineClassifier
from maxcosine.distributed.dask import fit as fit_on_dask
from maxcosine.onepass_merging import merge
from tests.distributed.digits import LINES, X, Y, cut

ROWS = 300


def bits(learner):
    return model_file.to_bytes(learner.model_), getattr(learner, "rounds_", None)


def test_one_shard_is_one_pass():
    for rounds in (1, 2):
        learner = fit(cut(1), OnePassClassifier(), rounds=rounds)
        whole = OnePassClassifier(grow_features=True, on_drift="ignore")  # as workers learn
        for _ in range(rounds):
            whole.partial_fit(X, Y)
        assert model_file.to_bytes(learner.model_) == model_file.to_bytes(whole.model_)


def test_two_rounds_are_two_merges():
    parts = [OnePassClassifier().partial_fit(*shard[0]).model_ for shard in cut(4)]
    base = merge(parts)
    found = fit(cut(4), OnePassClassifier())
    assert model_file.to_bytes(found.model_) == model_file.to_bytes(base)
    parts = [base.copy() for _ in range(4)]
    for part, [(rows, labels)] in zip(parts, cut(4), strict=True):
        part.learn(rows, labels)
    found = fit(cut(4), OnePassClassifier(), rounds=2)
    assert model_file.to_bytes(found.model_) == model_file.to_bytes(merge(parts, base))


@pytest.mark.parametrize("fan_in", [0, 2, 3])
def test_examples_are_counted_once_per_round(fan_in):
    learner = fit(cut(5), OnePassClassifier(), rounds=2, fan_in=fan_in)
    assert learner.n_seen_ == 2 * len(Y)
    assert [tally.examples for tally in learner.rounds_] == [len(Y)] * 2
    assert learner.mistakes_ == sum(tally.mistakes for tally in learner.rounds_)
    assert learner.rounds_[1].mistakes < learner.rounds_[0].mistakes
    assert learner.score(X, Y) > 0.93
    once = fit(cut(5), OnePassClassifier(), rounds=2)
    scores = once.decision_function(X)
    np.testing.assert_allclose(learner.decision_function(X), scores, rtol=0, atol=1e-6 * np.abs(scores).max())


def test_shards_without_examples_or_with_one_class():
    ones, others = (X[Y == 1], Y[Y == 1]), (X[Y != 1], np.zeros(np.count_nonzero(Y != 1), int))
    shards = [[], [ones], [(X[:0], Y[:0])], [others], []]
    learner = fit(shards, OnePassClassifier(), rounds=2, fan_in=2)
    assert learner.classes_.tolist() == [0, 1]
    assert learner.n_seen_ == 2 * len(Y)
    assert np.isfinite(learner.certificate_.margin_ceiling)
    with pytest.raises(ValueError, match="no examples in the data"):
        fit([[], []], OnePassClassifier(), rounds=2)


def test_features_and_classes_of_all_shards_are_united():
    shards = [
        [([{"a": 1.0, "b": 2.0}, {"b": 1.0}], ["x", "y"])],
        [([{"c": 1.0}, {"b": 3.0}], ["x", "z"], [1.0, 2.0])],
    ]
    learner = fit(shards, OnePassClassifier(), rounds=2)
    assert learner.features_.tolist() == ["a", "b", "c"]
    assert learner.classes_.tolist() == ["x", "y", "z"]
    assert learner.predict_one({"c": 1.0}) == "x"


@pytest.mark.parametrize("options", [{}, {"exact": True}, {"bits": 10}], ids=str)
def test_shards_of_text(tmp_path, options):
    path = tmp_path / "digits.svm"
    path.write_text("".join(LINES))
    [whole] = plan(path, n_shards=1, **options)
    one = fit([whole], OnePassClassifier(dtype="float64"))
    expected = OnePassClassifier(dtype="float64").fit_stream(path, **options)
    assert one.mistakes_ == expected.mistakes_
    np.testing.assert_allclose(one.certificate_, expected.certificate_, rtol=1e-12)  # exact features have other slots
    several = fit(plan(path, n_shards=4, **options), OnePassClassifier(class_weight={"3": 2.0}), rounds=2)
    assert (several.n_seen_, several.classes_.tolist()) == (2 * len(Y), [str(k) for k in range(10)])
    assert several.model_.dtype == np.float32


def test_partial_models_travel_as_bytes():
    job = Job(OnePassClassifier())
    part = job.learn(cut(2)[0])
    assert PartialModel.from_bytes(part.to_bytes()) == part


def test_invalid_parameters_are_refused_at_once():
    for params, message in [
        ({"how": "mean"}, "how='mean' does not apply to models of OnePassClassifier"),
        ({"rounds": 3}, "rounds=3 is unstable for OnePassClassifier, .*; choose 1 or 2, or the classifier of a rule"),
        ({"rounds": 0}, "rounds=0; choose at least 1"),
        ({"estimator": OnePassClassifier(shuffle=True)}, "shuffle the data"),
        ({"estimator": OnePassClassifier(dtype="float16")}, "'dtype' parameter"),
    ]:
        with pytest.raises(ValueError, match=message):
            Job(**{"estimator": OnePassClassifier(), **params})


# Dask


@pytest.fixture(scope="module")
def client():
    """Two workers in this process."""
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)
    with cluster, Client(cluster) as client:
        yield client


@pytest.mark.parametrize("rounds", [1, 2])
def test_workers_of_dask_give_the_same_bits(client, rounds):
    shards = [[(X[k : k + ROWS], Y[k : k + ROWS])] for k in range(0, len(Y), ROWS)]
    expected = fit(shards, OnePassClassifier(), rounds=rounds, fan_in=3)
    rows, labels = dask.array.from_array(X, chunks=(ROWS, 64)), dask.array.from_array(Y, chunks=ROWS)
    assert bits(fit_on_dask(rows, OnePassClassifier(), y=labels, rounds=rounds, fan_in=3)) == bits(expected)
    learner = DaskOnlineClassifier(OnePassClassifier(), rounds=rounds, fan_in=3).fit(rows, labels)
    assert np.array_equal(learner.predict(rows).compute(), expected.predict(X))
    assert np.array_equal(learner.decision_function(rows).compute(), expected.decision_function(X))


def test_error_is_not_given_after_a_second_round():
    """The rows of a second round were learnt before, so their predictions prove nothing."""
    once, twice = (fit(cut(2), OnePassClassifier(), rounds=rounds) for rounds in (1, 2))
    assert once.error_.judged == len(Y)
    assert not hasattr(twice, "error_")
