"""A learner outlives its process, and its copies are independent of it."""

import copy
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest

from maxcosine import RULES, OnlineClassifier
from tests.estimators.learners import everything, learnt, points

GO_ON = """
import pickle, sys
with open(sys.argv[1], "rb") as file:
    learners, X, y = pickle.load(file)
results = [(learner.predict(X), learner.partial_fit(X, y)) for learner in learners]
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
def test_copies_are_equal_and_independent(learner, n_classes, average, duplicate):
    learner.set_params(average=average).fit(*points(n_classes))
    assert goes_on_as(duplicate(learner), learner)


def test_unfitted_learner_survives_pickling(learner):
    copied = pickle.loads(pickle.dumps(learner))
    assert copied.get_params() == learner.get_params()
    assert learnt(copied.fit(*points())) == learnt(learner.fit(*points()))


def test_fresh_process_predicts_the_same_and_goes_on_to_the_same_bits(tmp_path, n_classes):
    learners = [
        OnlineClassifier(rule, average=average).fit(*points(n_classes))
        for rule in RULES
        for average in (False, True)
    ]
    X, y = points(n_classes, seed=1)
    (tmp_path / "there").write_bytes(pickle.dumps((learners, X, y)))
    subprocess.run([sys.executable, "-c", GO_ON, tmp_path / "there", tmp_path / "back"], check=True)
    results = pickle.loads((tmp_path / "back").read_bytes())
    for learner, (predicted, went_on) in zip(learners, results, strict=True):
        assert np.array_equal(predicted, learner.predict(X))
        assert everything(went_on) == everything(learner.partial_fit(X, y))


@pytest.mark.parametrize("mmap_mode", [None, "r", "c"])
def test_joblib_files_predict_and_go_on_learning(tmp_path, average, mmap_mode):
    learner = OnlineClassifier(average=average).fit(*points())
    joblib.dump(learner, tmp_path / "learner.joblib")
    loaded = joblib.load(tmp_path / "learner.joblib", mmap_mode=mmap_mode)
    assert np.array_equal(loaded.predict(points()[0]), learner.predict(points()[0]))
    assert goes_on_as(loaded, learner)
    assert learnt(joblib.load(tmp_path / "learner.joblib")) != learnt(loaded)  # the file is as it was
