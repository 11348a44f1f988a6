"""Thresholds from counts of scores: compared with sorting all scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxcosine import OnePassClassifier, merge, model_file
from maxcosine.score_sketch import BINS, ScoreSketch, _edges


def scores(n=5000, seed=0):
    random = np.random.default_rng(seed)
    is_second = random.random(n) < 0.3
    return random.normal(size=n) * random.choice([0.1, 1.0], n) + np.where(is_second, 1.0, -1.0), is_second


def sketch_of(values, is_second):
    sketch = ScoreSketch()
    sketch.add(values, is_second)
    return sketch


def measured(values, is_second, threshold):
    kept = values >= threshold
    return is_second[kept].mean(), (kept & is_second).sum() / is_second.sum(), kept.mean()


@given(st.floats(-1e6, 1e6))
def test_a_score_is_in_the_bin_between_its_edges(value):
    sketch = sketch_of(np.array([value]), np.array([True]))
    (place,) = np.flatnonzero(sketch.counts[1])
    edges = np.append(_edges(), np.inf)
    rounding = 1e-9 * (1.0 + abs(value))
    assert edges[place] - rounding <= value <= edges[place + 1] + rounding


@pytest.mark.parametrize("wanted", [{"precision": 0.9}, {"recall": 0.8}, {"share": 0.1}, {"cost": 3.0}])
def test_what_is_expected_at_a_threshold_is_what_the_scores_give(wanted):
    values, is_second = scores()
    found = sketch_of(values, is_second).threshold(**wanted)
    assert (found.precision, found.recall, found.share) == pytest.approx(
        measured(values, is_second, found.threshold), abs=1e-12
    )


def test_thresholds_are_the_best_up_to_the_width_of_a_bin():
    values, is_second = scores()
    sketch = sketch_of(values, is_second)
    order = np.argsort(-values)
    precision = np.cumsum(is_second[order]) / np.arange(1, len(values) + 1)
    kept = np.flatnonzero(precision >= 0.9)[-1] + 1
    assert sketch.threshold(precision=0.9).share == pytest.approx(kept / len(values), rel=0.02)
    assert sketch.threshold(recall=0.8).recall >= 0.8
    assert sketch.threshold(recall=0.8).recall == pytest.approx(0.8, abs=0.01)
    assert 0.095 < sketch.threshold(share=0.1).share <= 0.1
    costs = [
        3.0 * (~is_second[values >= t]).sum() + is_second[values < t].sum()
        for t in np.quantile(values, np.linspace(0, 1, 500))
    ]
    found = sketch.threshold(cost=3.0)
    cost = 3.0 * (~is_second[values >= found.threshold]).sum() + is_second[values < found.threshold].sum()
    assert cost <= 1.01 * min(costs)


def test_chunks_add_up_and_flipping_exchanges_the_classes():
    values, is_second = scores()
    parts = ScoreSketch()
    for start in range(0, len(values), 700):
        parts.add(values[start : start + 700], is_second[start : start + 700])
    assert np.array_equal(parts.counts, sketch_of(values, is_second).counts)
    flipped, other = parts.flipped(), sketch_of(-values, ~is_second)
    assert flipped.threshold(recall=0.9).threshold == pytest.approx(other.threshold(recall=0.9).threshold, rel=0.01)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({}, "give one of"),
        ({"precision": 0.9, "recall": 0.9}, "give one of"),
        ({"precision": 1.5}, "at most 1"),
        ({"cost": 0.0}, "above 0"),
        ({"share": 1e-9}, "allow at least"),
    ],
)
def test_wishes_that_make_no_sense_are_refused(wanted, message):
    with pytest.raises(ValueError, match=message):
        sketch_of(*scores()).threshold(**wanted)


def test_precision_that_is_out_of_reach_is_refused_with_the_best():
    with pytest.raises(ValueError, match=r"at most 0\.5"):
        sketch_of(np.zeros(10), np.arange(10) % 2 == 0).threshold(precision=0.9)
    with pytest.raises(ValueError, match="both classes"):
        sketch_of(np.ones(10), np.ones(10, bool)).threshold(precision=0.9)


@pytest.mark.parametrize("flip", [False, True])
def test_classifier_keeps_its_promise_on_later_rows(flip):
    random = np.random.default_rng(1)
    X = random.normal(size=(4000, 6))
    y = (X[:, 0] + X[:, 1] + 0.5 * random.normal(size=4000) > 1.0) ^ flip
    learner = OnePassClassifier().fit(X[:2000], y[:2000])
    assert learner.model_.sketch.counts.sum() == 2000
    for wanted in ({"precision": 0.9}, {"recall": 0.9}, {"share": 0.2}):
        found = learner.threshold(**wanted)
        later = measured(learner.decision_function(X[2000:]), y[2000:], found.threshold)
        assert (found.precision, found.recall, found.share) == pytest.approx(later, abs=0.08)


def test_sketch_does_not_depend_on_chunks_dicts_or_copies():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(100, 3)), random.random(100) < 0.5
    whole = OnePassClassifier().fit(X, y)
    parts, ones = OnePassClassifier(), OnePassClassifier()
    for start in range(0, 100, 30):
        parts.partial_fit(X[start : start + 30], y[start : start + 30])
    for x, label in zip(X, y.tolist(), strict=True):
        ones.learn_one(dict(enumerate(x.tolist())), label)
    assert np.array_equal(whole.model_.sketch.counts, parts.model_.sketch.counts)
    assert np.array_equal(whole.model_.sketch.counts, ones.model_.sketch.counts)
    copy = whole.model_.copy()
    whole.partial_fit(X, y)
    assert copy.sketch.counts.sum() == 100


def test_three_classes_have_no_threshold():
    learner = OnePassClassifier().fit(np.eye(3), [0, 1, 2])
    assert learner.model_.sketch is None
    with pytest.raises(ValueError, match="tells two classes apart, and the model has 3"):
        learner.threshold(precision=0.5)


def test_memory_is_bounded():
    assert ScoreSketch().counts.nbytes == 2 * 8 * BINS


def test_sketch_is_written_and_read_with_its_model():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(100, 3)), random.random(100) < 0.5
    learner = OnePassClassifier().fit(X, y)
    found = model_file.from_bytes(model_file.to_bytes(learner.model_)).model
    assert np.array_equal(found.sketch.counts, learner.model_.sketch.counts)
    three = OnePassClassifier().fit(np.eye(3), [0, 1, 2])
    assert model_file.from_bytes(model_file.to_bytes(three.model_)).model.sketch is None


@pytest.mark.parametrize("change", [lambda s: s.counts.__imul__(-1), lambda s: s.counts.__iadd__(7)])
def test_counts_that_no_rows_have_are_refused(change):
    learner = OnePassClassifier().fit(np.eye(4), [0, 1, 0, 1])
    change(learner.model_.sketch)
    with pytest.raises(model_file.BadModelFile, match="does not count rows"):
        model_file.from_bytes(model_file.to_bytes(learner.model_))


@pytest.mark.parametrize("reverse", [False, True])
def test_merged_models_have_the_counts_of_all(reverse):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(200, 3)), random.random(200) < 0.5
    first, second = np.argmax(y), np.argmin(y)
    start = [second, first] if reverse else [first, second]
    rows = [[first, second, *range(100)], [*start, *range(100, 200)]]
    parts = [OnePassClassifier().fit(X[some], y[some]) for some in rows]
    merged = merge(parts)
    counts = [part.model_.sketch.counts for part in parts]
    expected = counts[0] + (counts[1][::-1, ::-1] if reverse else counts[1])
    assert np.array_equal(merged.model_.sketch.counts, expected)
    assert merged.threshold(recall=0.9).recall >= 0.9
