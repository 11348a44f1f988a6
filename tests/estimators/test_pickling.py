"""A classifier outlives its process, and its copies are independent of it."""

import copy
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest

from maxcosine import RULES
from tests.learners import PAIRWISE_SETTINGS, everything, learnt, points

GO_ON = """
import pickle, sys
with open(sys.argv[1], "rb") as file:
    learners = pickle.load(file)
results = [(learner.predict(X), learner.partial_fit(X, y)) for learner, X, y in learners]
with open(sys.argv[2], "wb") as file:
    pickle.dump(results, file)
"""


def goes_on_as(copied, original):
    """Whether a copy is the same and learns the same, to the bit, and on its own."""
    X, y = points(len(original.classes_), seed=1)
    before = everything(original)
    if everything(copied) != before:
        return False
    after = learnt(copied.partial_fit(X, y))
    return everything(original) == before and after == learnt(original.partial_fit(X, y))


@pytest.mark.parametrize(
    "duplicate",
    [lambda learner: pickle.loads(pickle.dumps(learner)), copy.deepcopy],
    ids=["pickle", "deepcopy"],
)
def test_copies_are_equal_and_independent(learner, n_classes, duplicate):
    copied = duplicate(learner)  # before it has learnt anything
    assert copied.get_params() == learner.get_params()
    assert learnt(copied.fit(*points(n_classes))) == learnt(learner.fit(*points(n_classes)))
    assert goes_on_as(duplicate(learner), learner)


def test_fresh_process_predicts_the_same_and_goes_on_to_the_same_bits(tmp_path):
    learners = [
        (setting.classifier(rule).fit(*points(setting.n_classes)), *points(setting.n_classes, seed=1))
        for rule in RULES
        for setting in PAIRWISE_SETTINGS
    ]
    (tmp_path / "there").write_bytes(pickle.dumps(learners))
    subprocess.run([sys.executable, "-c", GO_ON, tmp_path / "there", tmp_path / "back"], check=True)
    results = pickle.loads((tmp_path / "back").read_bytes())
    for (learner, X, y), (predicted, went_on) in zip(learners, results, strict=True):
        assert np.array_equal(predicted, learner.predict(X))
        assert everything(went_on) == everything(learner.partial_fit(X, y))


@pytest.mark.parametrize("mmap_mode", [None, "r", "c"])
def test_joblib_files_predict_and_go_on_learning(tmp_path, mmap_mode):
    for setting in PAIRWISE_SETTINGS:
        X, y = points(setting.n_classes)
        learner = setting.classifier("mcp").fit(X, y)
        joblib.dump(learner, tmp_path / "learner.joblib")
        loaded = joblib.load(tmp_path / "learner.joblib", mmap_mode=mmap_mode)
        assert np.array_equal(loaded.predict(X), learner.predict(X))
        assert goes_on_as(loaded, learner)
        assert learnt(joblib.load(tmp_path / "learner.joblib")) != learnt(loaded)  # the file is unchanged
