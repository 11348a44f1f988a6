"""Many threads may read one classifier, or one may learn; see `threaded.py` for what they do."""

import copy
import pickle
import subprocess
import sys
import threading
import time

import pytest
from sklearn.base import clone

from maxcosine import OnlineClassifier
from maxcosine.core import ModelLock
from tests.estimators.threaded import SCENARIOS

NAMES = [scenario.__name__ for scenario in SCENARIOS]


def run(name, seconds):
    done = subprocess.run(
        [sys.executable, "-m", "tests.estimators.threaded", name, str(seconds)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


@pytest.mark.parametrize("name", NAMES)
def test_threads_share_a_classifier(name):
    run(name, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_threads_share_a_classifier_for_long(name):
    run(name, 60.0 if name == "one_learner" else 20.0)


# The lock


def in_thread(work):
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_readers_read_together_and_learners_alone():
    lock, inside = ModelLock(), threading.Barrier(3, timeout=10.0)

    def read():
        with lock.reading:
            inside.wait()  # all of them are inside at the same time

    for thread in [in_thread(read) for _ in range(3)]:
        thread.join(10.0)
    assert not inside.broken
    count = 0

    def learn():
        nonlocal count
        for _ in range(500):
            with lock.learning:
                seen = count
                time.sleep(0)
                count = seen + 1

    for thread in [in_thread(learn) for _ in range(4)]:
        thread.join(30.0)
    assert count == 2000


@pytest.mark.parametrize(("holds", "waits"), [("reading", "learning"), ("learning", "reading"), ("learning",) * 2])
def test_a_thread_that_waits_lets_others_run(holds, waits):
    lock, order = ModelLock(), []

    def wait():
        with getattr(lock, waits):
            order.append("inside")

    with getattr(lock, holds):
        thread = in_thread(wait)
        for _ in range(20):
            time.sleep(0.005)
        order.append("this thread ran on")
    thread.join(10.0)
    assert order == ["this thread ran on", "inside"]


def test_a_learner_that_waits_goes_before_readers_that_come_later():
    lock, order = ModelLock(), []

    def use(section, name):
        with section:
            order.append(name)

    with lock.reading:
        learner = in_thread(lambda: use(lock.learning, "learner"))
        time.sleep(0.05)
        reader = in_thread(lambda: use(lock.reading, "reader"))
        time.sleep(0.05)
        assert order == []
    learner.join(10.0)
    reader.join(10.0)
    assert order == ["learner", "reader"]


def test_an_error_releases_the_lock():
    lock = ModelLock()
    for section in (lock.reading, lock.learning):
        with pytest.raises(KeyError), section:
            raise KeyError
    with lock.learning:
        pass


def test_a_copy_has_a_lock_of_its_own_and_an_alias_shares_it():
    learner = OnlineClassifier()
    learner.learn_many([{"a": 1.0}, {"b": 1.0}], ["x", "y"])
    with learner.model_.lock.learning:
        alias = copy.copy(learner)  # refers to the same model
    assert alias.model_ is learner.model_
    for copied in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner)), clone(learner).fit([[1], [2]], [0, 1])):
        with learner.model_.lock.learning:
            copied.predict([{"a": 1.0}] if copied.model_.features.keyed else [[1.0]])
    with learner.model_.copy().lock.learning, learner.model_.lock.learning:
        pass


def test_examples_may_be_predicted_while_they_are_handed_over():
    learner, X, y = OnlineClassifier(), [{"a": 1.0}, {"b": 1.0}] * 3, ["x", "y"] * 3
    learner.learn_many(X, y)
    predicted = []

    def predicting():
        for x in X:
            predicted.append(learner.predict_one(x))
            yield x

    learner.learn_many(predicting(), y)
    assert predicted == learner.predict_many(x for x in X).tolist() == y


def test_using_a_model_within_its_own_learning_is_an_error_and_no_deadlock():
    learner = OnlineClassifier()
    learner.learn_many([{"a": 1.0}, {"b": 1.0}], ["x", "y"])

    class Sly:
        def __float__(self):
            return float(learner.n_seen_)

    with pytest.raises(RuntimeError, match="this thread is learning"):
        learner.learn_one({"a": Sly()}, "x")
    assert learner.n_seen_ == 2
    learner.learn_one({"a": 1.0}, "x")
    assert learner.n_seen_ == 3
