"""Stopping before the end of the data: when an error is proven, or when a stretch gained nothing."""

import numpy as np
import pytest

from maxcosine import RULES, ProgressiveError
from maxcosine.data import ReadOptions
from maxcosine.training import Settings, Stopping, StreamLearner, Training
from maxcosine.training.outcome import Status


def write(path, n=6000, noise=0.05):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 4)).round(3)
    y = np.where((X[:, 0] > 0) ^ (random.random(n) < noise), 1, -1)
    lines = (f"{label} " + " ".join(f"{k + 1}:{x}" for k, x in enumerate(row)) for label, row in zip(y, X, strict=True))
    path.write_text("\n".join(lines) + "\n")
    return path


def train(path, stopping, *, block_bytes=2**21, checkpoint=None, every=10**6):
    rule = RULES["mcp"]
    learner = StreamLearner(Settings(rule, rule.make_params(), dtype="float64"))
    read = ReadOptions(dtype="float64", block_bytes=block_bytes)
    training = Training([str(path)], read, learner, stopping=stopping, checkpoint=checkpoint, every=every)
    training.run()
    return training


def test_training_stops_at_the_first_look_at_which_the_error_is_proven(tmp_path):
    path = write(tmp_path / "a.svm")
    whole = train(path, Stopping())
    assert whole.status.examples == 6000
    assert whole.status.stopped == ""
    limit = whole.status.error.rate * 1.3
    stopped = train(path, Stopping(error=limit))
    n = stopped.status.examples
    assert n < 6000
    assert n % 1000 == 0
    assert stopped.status.error.high <= limit
    assert "the error is at most" in stopped.status.stopped
    lines = path.read_text().splitlines(keepends=True)
    (tmp_path / "before.svm").write_text("".join(lines[: n - 1000]))
    assert train(tmp_path / "before.svm", Stopping()).status.error.high > limit


@pytest.mark.parametrize("stopping", [Stopping(error=0.2), Stopping(patience=700), Stopping(error=0.2, patience=700)])
def test_where_it_stops_does_not_depend_on_blocks_or_checkpoints(tmp_path, stopping):
    path = write(tmp_path / "a.svm")
    one = train(path, stopping)
    two = train(path, stopping, block_bytes=4096)
    three = train(path, stopping, checkpoint=tmp_path / "c", every=300)
    assert one.status == two.status == three.status
    assert one.status.stopped
    weights = [training.model.hypothesis()[0] for training in (one, two, three)]
    assert np.array_equal(weights[0], weights[1])
    assert np.array_equal(weights[0], weights[2])


def test_patience_ends_with_a_stretch_that_gained_nothing():
    status, stopping = Status(), Stopping(patience=100)
    for wrong in (40, 30, 20, 20):
        assert not status.stopped
        status.examples += 100
        status.wrong += wrong
        stopping.look(status)
    assert status.stopped == "the last 100 examples had 20 wrong predictions, those before 20"


def test_error_is_not_proven_by_a_second_pass():
    status = Status(passes=1, examples=10_000, judged=10_000, wrong=0)
    Stopping(error=0.5).look(status)
    assert not status.stopped
    assert ProgressiveError(0, 10_000).high < 0.5


@pytest.mark.parametrize("error", [0.0, 1.0, -0.1])
def test_errors_that_cannot_be_proven_are_refused(error):
    with pytest.raises(ValueError, match="share between 0 and 1"):
        Stopping(error=error)
