"""Threads that use one classifier at the same time; run in a process of its own, because a fault would end it.

Usage: python -m tests.estimators.threaded SCENARIO SECONDS
"""

import copy
import faulthandler
import itertools
import pickle
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import maxcosine
from maxcosine import MCPClassifier, OnlineClassifier, model_file
from maxcosine.data import ReadOptions, Stream
from maxcosine.rules import RULES
from maxcosine.training import Settings, StreamLearner, score
from tests.learners import IN_MEMORY, learnt, tensors

LABELS = [f"class{k}" for k in range(12)]


def example(number):
    """Example `number` of a stream in which features and classes appear late, and its label."""
    random = np.random.default_rng(number)
    late = min(len(LABELS), 2 + number // 300)
    label = int(random.integers(late))
    words = random.integers(20 + number // 2, size=8).tolist()
    return {f"word{word}": 1.0 + (word % late == label) for word in words}, LABELS[label]


class Threads:
    """Calls functions in threads, again and again, until time is up; the first exception is raised."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds
        self.errors, self.counts, self.threads = [], {}, []

    def add(self, name, work):
        def loop():
            try:
                while time.monotonic() < self.end and not self.errors:
                    work()
                    self.counts[name] = self.counts.get(name, 0) + 1
            except BaseException as error:
                self.errors.append(error)

        self.threads.append(threading.Thread(target=loop, name=name, daemon=True))

    def run(self):
        for thread in self.threads:
            thread.start()
        for thread in self.threads:
            thread.join(timeout=max(0.0, self.end - time.monotonic()) + 60.0)
            assert not thread.is_alive(), f"{thread.name} waits for ever"
        if self.errors:
            raise self.errors[0]
        print(self.counts)
        assert all(self.counts.values())
        assert set(self.counts) == {thread.name for thread in self.threads}


def add_readers(threads, learner, rows):
    """Everything that only reads: predictions, attributes, files, pickles and copies."""
    rows = list(rows)

    def predict():
        assert set(learner.predict(rows)) <= set(LABELS)
        assert learner.predict_one(rows[0]) in LABELS
        assert learner.predict_many(rows).shape == (len(rows),)
        assert np.isfinite(learner.decision_function(rows)).all()
        assert 0.0 <= learner.score(rows, [LABELS[0]] * len(rows)) <= 1.0

    def look():
        assert np.isfinite(learner.coef_).all()
        assert np.isfinite(learner.intercept_).all()
        certificate = learner.certificate_
        assert np.all(np.asarray(certificate.bound) >= 0.0)
        assert np.all(np.asarray(learner.updates_) >= 0)
        assert learner.n_seen_ > 0
        assert len(learner.features_) > 0
        assert set(learner.classes_) <= set(LABELS)

    def duplicate():
        for make in (lambda: pickle.loads(pickle.dumps(learner)), lambda: copy.deepcopy(learner)):
            check_consistent(make(), rows)
        other = learner.model_.copy()
        assert len(other.classes) == len(other.labels.classes)
        assert other.heads.n_features >= other.features.n_slots

    threads.add("predict", predict)
    threads.add("predict too", predict)
    threads.add("look", look)
    threads.add("duplicate", duplicate)


def check_consistent(copied, rows):
    """The parts of a copy or a file belong to one moment."""
    assert copied.coef_.shape[1] == len(copied.features_) == copied.n_features_in_
    assert len(copied.classes_) == len(copied.model_.classes)
    assert np.isfinite(copied.coef_).all()
    seen = copied.n_seen_
    copied.predict(rows)
    copied.learn_one({"another word": 1.0}, "another class")
    assert copied.n_seen_ == seen + 1


def add_saver(threads, learner, folder, kept, rows):
    names = itertools.count()

    def save():
        path = Path(folder) / f"{next(names)}.model"
        before = learner.n_seen_
        maxcosine.save(learner, path)
        loaded = maxcosine.load(path)
        assert before <= loaded.n_seen_ <= learner.n_seen_
        if len(kept) < 4:
            kept.append(maxcosine.load(path))
        check_consistent(loaded, rows)
        path.unlink()

    threads.add("save", save)


def replayed(n_examples):
    learner = OnlineClassifier("mcp", average=True)
    X, y = zip(*map(example, range(n_examples)), strict=True)
    learner.learn_many(X, y)
    return learner


def one_learner(seconds):
    """One thread learns, in every way; the model, and every file, is that of a sequential replay."""
    learner, numbers, kept = OnlineClassifier("mcp", average=True), itertools.count(), []

    def learn():
        learner.learn_one(*example(next(numbers)))
        X, y = zip(*[example(next(numbers)) for _ in range(3)], strict=True)
        learner.learn_many(X, y)
        X, y = zip(*[example(next(numbers)) for _ in range(2)], strict=True)
        for x, label in zip(X, y, strict=True):
            learner.partial_fit(pd.DataFrame([x]), [label])

    learn()
    threads = Threads(seconds)
    threads.add("learn", learn)
    rows = [example(k)[0] for k in range(400, 500)]
    add_readers(threads, learner, rows)
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        add_saver(threads, learner, folder, kept, rows)
        threads.run()
    n_examples = next(numbers)
    assert learner.n_seen_ == n_examples
    assert learnt(learner) == learnt(replayed(n_examples))
    for loaded in kept:
        once, again = tensors(loaded), tensors(replayed(loaded.n_seen_))
        assert once.keys() == again.keys()
        assert all(np.array_equal(once[name], again[name]) for name in once)


def many_learners(seconds):
    """Several threads learn at the same time: no example is lost."""
    learner, learnt_rows = OnlineClassifier("pa1"), []
    learner.learn_one(*example(0))
    threads = Threads(seconds)

    def add_learner(name, first, step, learn):
        numbers = itertools.count(first, 7)

        def work():
            chunk = [example(next(numbers)) for _ in range(step)]
            learn(*zip(*chunk, strict=True))
            learnt_rows.append(step)

        threads.add(name, work)

    add_learner("learn one", 1, 1, lambda X, y: learner.learn_one(X[0], y[0]))
    add_learner("learn one too", 2, 1, lambda X, y: learner.learn_one(X[0], y[0]))
    add_learner("learn many", 3, 5, lambda X, y: learner.learn_many(X, y))
    add_learner("partial fit", 4, 2, lambda X, y: learner.partial_fit(pd.DataFrame(list(X)).fillna(0.0), y))
    rows = [example(k)[0] for k in range(400, 420)]
    add_readers(threads, learner, rows)
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        add_saver(threads, learner, folder, [], rows)
        threads.run()
    assert learner.n_seen_ == 1 + sum(learnt_rows)


def first_calls(seconds):
    """Several threads make the first call: one makes the model, and all examples are learnt."""
    end, n_threads = time.monotonic() + seconds, 6
    columns, rounds = np.eye(4), 0
    while time.monotonic() < end:
        for fresh, call in (
            (MCPClassifier(), lambda learner, k: learner.learn_one({f"word{k}": 1.0}, LABELS[k])),
            (MCPClassifier(), lambda learner, k: learner.learn_many([{f"word{k}": 1.0}], [LABELS[k]])),
            (MCPClassifier(), lambda learner, k: learner.partial_fit(columns[k % 4 : k % 4 + 1], [LABELS[k]])),
        ):
            barrier, errors = threading.Barrier(n_threads), []

            def work(k, fresh=fresh, call=call, barrier=barrier, errors=errors):
                barrier.wait()
                try:
                    call(fresh, k)
                except BaseException as error:
                    errors.append(error)

            workers = [threading.Thread(target=work, args=(k,)) for k in range(n_threads)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            assert not errors, errors
            assert fresh.n_seen_ == n_threads
            assert fresh.classes_.tolist() == LABELS[:n_threads]
            rounds += 1
    print(rounds, "rounds")


def wider_columns(seconds):
    """One thread learns ever wider arrays, makes the model sparse and dense, and fits anew; others read."""
    learner = MCPClassifier(grow_features=True).partial_fit(np.eye(3), LABELS[:3])
    threads, widths = Threads(seconds), itertools.count(4)

    def learn():
        width = next(widths)
        X = np.random.default_rng(width).normal(size=(5, width % 500 + 3))
        y = np.array(LABELS)[np.arange(5) % min(12, 3 + width % 500 // 20)]
        if width % 500 == 0:
            learner.fit(X, y)
        elif width % 100 == 1:
            learner.sparsify()
        elif width % 100 == 50:
            learner.densify()
        learner.partial_fit(X, y)

    def read():
        X = np.ones((7, 600))
        assert set(learner.predict(X)) <= set(LABELS)
        assert learner.predict_one({0: 1.0, 2: 1.0}) in LABELS
        certificate, margins = learner.certificate_, learner.decision_function(X)
        assert np.isfinite(margins).all()
        assert np.all(np.asarray(certificate.norm) >= 0.0)

    def duplicate():
        other = pickle.loads(pickle.dumps(learner))
        assert other.coef_.shape[1] == other.n_features_in_
        content = model_file.from_bytes(model_file.to_bytes(learner.model_)).model
        assert content.features.n_features == content.hypothesis()[0].shape[1]
        maxcosine.merge([learner, learner, other])

    threads.add("learn", learn)
    for name in ("read", "read too"):
        threads.add(name, read)
    threads.add("duplicate", duplicate)
    threads.run()


@maxcosine.rule
def plain_perceptron(margin, sq_w, sq_x, coef_sum, state, params):
    """A user's rule, which learns on a copy of the model."""
    return 1.0, (1.0 if margin <= 0.0 else 0.0), state


def own_rule(seconds):
    """Several threads learn by a user's rule, on copies that replace the model: no example is lost."""
    learner, learnt_rows = OnlineClassifier(plain_perceptron), []
    learner.learn_one(*example(0))
    threads = Threads(seconds)
    for first in (1, 2, 3):
        numbers = itertools.count(first, 3)

        def learn(numbers=numbers):
            learner.learn_one(*example(next(numbers)))
            learnt_rows.append(1)

        threads.add(f"learn {first}", learn)
    add_readers(threads, learner, [example(k)[0] for k in range(20)])
    threads.run()
    assert learner.n_seen_ == 1 + sum(learnt_rows)


def streams(seconds):
    """A stream is learnt batch by batch while other threads score with its model and save it."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        path = Path(folder) / "data.vw"
        lines = [f"{y} | {' '.join(f'{k}:{v}' for k, v in x.items())}\n" for x, y in map(example, range(5000))]
        path.write_text("".join(lines))
        read = ReadOptions(exact=True, block_bytes=1 << 13, purpose="learn")
        learner = StreamLearner(Settings(RULES["mcp"], ()))
        stream = Stream(path, read)
        batches = stream.batches()
        learner.learn(stream, next(batches))
        model, threads = learner.model, Threads(seconds)
        n_rows = [model.n_seen]

        def learn():
            nonlocal stream, batches
            batch = next(batches, None)
            if batch is None:
                stream = Stream(path, read)
                batches = stream.batches()
                return
            learner.learn(stream, batch)
            n_rows.append(len(batch))

        def predict():
            other = Stream(path, read)
            for batch in itertools.islice(other.batches(), 5):
                scores, predicted, _ = score(model, other, batch)
                assert np.isfinite(scores).all()
                assert len(predicted) == len(batch)

        def save():
            model_file.save(model, Path(folder) / "saved")
            loaded = model_file.load(Path(folder) / "saved").model
            assert loaded.hypothesis()[0].shape[1] == loaded.features.n_features

        threads.add("learn", learn)
        threads.add("predict", predict)
        threads.add("save", save)
        threads.run()
        assert model.n_seen == sum(n_rows)


SCENARIOS = [one_learner, many_learners, first_calls, wider_columns, own_rule, streams]

if __name__ == "__main__":
    faulthandler.enable()
    faulthandler.dump_traceback_later(float(sys.argv[2]) + 150.0, exit=True)
    warnings.simplefilter("ignore")
    sys.setswitchinterval(1e-5)
    {scenario.__name__: scenario for scenario in SCENARIOS}[sys.argv[1]](float(sys.argv[2]))
