"""`maxcosine train --on`: the model of a cluster, and what is refused."""

import json

import numpy as np
import pytest

from maxcosine import OnlineClassifier, distributed, load
from tests.cli.test_train import svm
from tests.commands import run


def assert_the_model_is_that_of_the_shards(tmp_path, on):
    (tmp_path / "a.svm").write_text(svm(300) + "c1 7:x\n")
    (tmp_path / "b.svm").write_text(svm(100, seed=1))
    options = [
        "--passes",
        2,
        "--shards",
        3,
        "--how",
        "mean",
        "--rule",
        "pa1",
        "--param",
        "C=0.1",
        "--on-bad",
        "skip",
    ]
    # Here first: workers that have to compile would all do it at the same time.
    learner = OnlineClassifier("pa1", rule_params={"C": 0.1}, dtype="float32")
    shards = distributed.plan(tmp_path / "a.svm", n_shards=3, on_bad="skip")
    expected = distributed.fit(shards, learner, how="mean", rounds=2)
    ran = run(tmp_path, "train", "a.svm", "--model", "m", "--on", on, *options, "--test", "b.svm", "--json")
    assert ran.returncode == 0, ran.stderr
    outcome = json.loads(ran.stdout)
    found = load(tmp_path / "m")
    assert found.coef_.tobytes() == expected.coef_.tobytes()
    assert found.certificate_ == expected.certificate_
    assert (outcome["examples"], outcome["bad_lines"], outcome["test_examples"]) == (600, 1, 100)
    assert "a.svm:301:6: this is not a decimal number" in outcome["first_bad_lines"][0]
    assert outcome["progressive_error"] == expected.rounds_[0].mistakes / 300
    assert outcome["bound"] == pytest.approx(np.squeeze(expected.certificate_.bound).tolist())


@pytest.mark.slow
def test_dask(tmp_path):
    assert_the_model_is_that_of_the_shards(tmp_path, "dask-local:2")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--on", "hadoop"], "'hadoop' names no cluster; write dask://HOST:PORT"),
        (["--on", "dask-local:2", "--checkpoint", "c"], "--checkpoint is for one machine; leave it out"),
        (["--on", "dask-local:2", "--keep-names"], "--keep-names is for one machine"),
    ],
)
def test_what_a_cluster_cannot_do_is_refused(tmp_path, options, message):
    (tmp_path / "a.svm").write_text(svm(5))
    ran = run(tmp_path, "train", "a.svm", "--model", "m", *options)
    assert ran.returncode == 1
    assert message in ran.stderr
    assert not (tmp_path / "m").exists()
