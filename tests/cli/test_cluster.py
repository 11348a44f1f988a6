"""`maxcosine train --on`: learning on a cluster."""

import numpy as np
import pytest

from maxcosine import OnlineClassifier, distributed, load
from tests.cli.examples import outcome, refuse, svm


@pytest.mark.slow
def test_model_of_a_cluster_is_the_one_of_its_shards(tmp_path):
    (tmp_path / "a.svm").write_text(svm(300) + "c1 7:x\n")
    (tmp_path / "b.svm").write_text(svm(100, seed=1))
    learner = OnlineClassifier("pa1", rule_params={"C": 0.1}, dtype="float32")
    shards = distributed.plan(tmp_path / "a.svm", n_shards=3, on_bad="skip")
    expected = distributed.fit(shards, learner, how="mean", rounds=2)
    options = ["--on", "dask-local:2", "--shards", 3, "--how", "mean", "--passes", 2]
    options += ["--rule", "pa1", "--param", "C=0.1", "--on-bad", "skip", "--test", "b.svm"]
    found = outcome(tmp_path, "train", "a.svm", "--model", "model", *options)
    model = load(tmp_path / "model")
    assert model.coef_.tobytes() == expected.coef_.tobytes()
    assert model.certificate_ == expected.certificate_
    assert (found["examples"], found["bad_lines"], found["test_examples"]) == (600, 1, 100)
    assert "a.svm:301:6: this is not a decimal number" in found["first_bad_lines"][0]
    assert found["progressive_error"] == sum(one.mistakes for one in expected.rounds_) / 600
    assert found["bound"] == pytest.approx(np.squeeze(expected.certificate_.bound).tolist())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--on", "hadoop"], "'hadoop' names no cluster; write dask://HOST:PORT"),
        (["--on", "dask-local:2", "--checkpoint", "c"], "--checkpoint is for one machine; leave it out"),
        (["--on", "dask-local:2", "--keep-names"], "--keep-names is for one machine"),
    ],
)
def test_options_for_one_machine_are_refused(tmp_path, options, message):
    (tmp_path / "a.svm").write_text(svm(5))
    assert message in refuse(tmp_path, "train", "a.svm", "--model", "model", *options)
    assert not (tmp_path / "model").exists()
