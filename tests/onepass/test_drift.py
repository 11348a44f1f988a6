"""OnePassClassifier on a stream that changes: a fresh learner beside the old one, and the better predicts."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import make_classification

from maxcosine import DriftWarning, OnePassClassifier, load, merge, model_file, save
from maxcosine.model_file import BadModelFile

N, FLIP = 3000, 1800
TRIAL = FLIP + 70  # while the trial goes on


def stream(n_classes=2, seed=0):
    """Rows whose labels change their meaning after FLIP of them."""
    X, y = make_classification(N, 12, n_informative=6, n_classes=n_classes, class_sep=2.0, random_state=seed)
    y[FLIP:] = (y[FLIP:] + 1) % n_classes
    return X, y


def learnt(X, y, size, weights=None, begin=0, **params):
    """A classifier that has learnt rows in chunks; the first chunk has `begin` rows."""
    learner = OnePassClassifier(**params)
    starts = [*([0] if begin else []), *range(begin, len(y), size)]
    for start, stop in zip(starts, [*starts[1:], len(y)], strict=True):
        part = slice(start, stop)
        learner.partial_fit(X[part], y[part], sample_weight=None if weights is None else weights[part])
    return learner


@pytest.mark.parametrize("n_classes", [2, 4])
def test_flipped_labels_cost_little_more_than_a_restart_by_an_oracle(n_classes):
    X, y = stream(n_classes)
    learner = learnt(X[:FLIP], y[:FLIP], 100)
    assert learner.drift_ == []
    before = learner.mistakes_
    learner.partial_fit(X[FLIP:], y[FLIP:])
    oracle = OnePassClassifier().fit(X[FLIP:], y[FLIP:])
    (drift,) = learner.drift_
    assert drift.outcome == "restarted"
    assert FLIP < drift.alarm <= FLIP + 64
    # Both learners pay for learning anew; the alarm needs one block of 32 rows, or two.
    assert learner.mistakes_ - before <= oracle.mistakes_ + 64
    assert learner.n_seen_ == N
    assert learner.certificate_.seen == N - drift.alarm
    ignoring = learnt(X, y, N, on_drift="ignore")
    assert ignoring.drift_ == []
    assert ignoring.mistakes_ - before > 1.5 * (learner.mistakes_ - before)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("with_weights", [False, True])
def test_same_bits_for_any_chunks_and_storage(n_classes, with_weights):
    X, y = stream(n_classes)
    random = np.random.default_rng(3)
    weights = random.choice([0.0, 1.0, 2.0], N) if with_weights else None
    for n in (N, TRIAL):  # after the trial, and during it
        found = set()
        sparse = scipy.sparse.csr_array(X)
        for rows, size, begin in ((X, n, 0), (X[:n], 1, n - 150), (X, 37, 0), (X, 1500, FLIP + 3), (sparse, 501, 0)):
            learner = learnt(rows[:n], y[:n], size, None if weights is None else weights[:n], begin)
            found.add(model_file.to_bytes(learner.model_))
        assert len(found) == 1
        assert learner.drift_[-1].outcome == ("restarted" if n == N else "trial") or with_weights


def test_predictions_before_learning_do_not_depend_on_chunks():
    X, y = stream()
    weights = np.random.default_rng(3).choice([0.0, 1.0], N)
    found = set()
    for size in (N, 29):
        learner = OnePassClassifier().partial_fit(X[:10], y[:10], classes=[0, 1])
        before = learner.mistakes_
        predicted = np.full(N, -1)
        for start in range(10, N, size):
            part = slice(start, start + size)
            learner.model_.learn(X[part], y[part], weights=weights[part], predicted=predicted[part])
        wrong = (predicted != y)[10:]
        assert wrong[weights[10:] > 0].sum() == learner.mistakes_ - before
        found.add(predicted.tobytes())
        assert wrong[-500:].mean() < 0.2  # of rows of weight 0, too
    assert len(found) == 1


def test_dicts_are_watched_like_rows():
    X, y = stream()
    examples = [{f"f{k}": value for k, value in enumerate(row)} for row in X.tolist()]
    one, many = OnePassClassifier(), OnePassClassifier()
    for x, label in zip(examples, y.tolist(), strict=True):
        one.learn_one(x, label)
    many.learn_many(examples, y)
    assert one.drift_[0].outcome == "restarted"
    assert model_file.to_bytes(one.model_) == model_file.to_bytes(many.model_)


def test_model_on_trial_is_saved_copied_and_goes_on_with_the_same_bits(tmp_path):
    X, y = stream()
    whole, stop = learnt(X, y, N), TRIAL
    learner = learnt(X[:stop], y[:stop], stop)
    assert learner.drift_[0].outcome == "trial"
    probabilities = learner.predict_proba(X)
    save(learner, tmp_path / "model")
    for other in (load(tmp_path / "model"), pickle.loads(pickle.dumps(learner)), learner):
        assert other.drift_ == learner.drift_
        np.testing.assert_array_equal(other.predict_proba(X), probabilities)
        other.partial_fit(X[stop:], y[stop:])
        assert model_file.to_bytes(other.model_) == model_file.to_bytes(whole.model_)


def test_features_and_classes_that_come_during_a_trial():
    X, y = stream()
    learner = learnt(X[:TRIAL], y[:TRIAL], 500, grow_features=True)
    assert learner.model_.drift.trial is not None
    wide = np.hstack([X[TRIAL:], np.ones((N - TRIAL, 3))])
    labels = y[TRIAL:].copy()
    labels[::7] = 5
    copies = [pickle.loads(pickle.dumps(learner)) for _ in range(2)]
    copies[0].partial_fit(wide, labels)
    for row, label in zip(wide, labels, strict=True):
        copies[1].partial_fit(row[None], [label])
    assert copies[0].predict(wide[:20]).shape == (20,)
    assert model_file.to_bytes(copies[0].model_) == model_file.to_bytes(copies[1].model_)
    assert copies[0].classes_.tolist() == [0, 1, 5]


def test_warning_only():
    X, y = stream()
    with pytest.warns(DriftWarning, match=r"may have changed: alarm after 1,\d+ examples"):
        learner = learnt(X, y, 250, on_drift="warn")
    assert {one.outcome for one in learner.drift_} == {"warned"}
    still = learnt(X, y, 250, on_drift="ignore")
    np.testing.assert_array_equal(learner.decision_function(X), still.decision_function(X))


def test_unknown_reaction_is_refused():
    with pytest.raises(ValueError, match=r"'on_drift' parameter .* must be one of 'restart', 'warn', 'ignore'"):
        OnePassClassifier(on_drift="panic").fit([[1.0], [2.0]], [0, 1])


def test_merge_takes_the_learner_that_predicts():
    X, y = stream()
    part = learnt(X[:TRIAL], y[:TRIAL], 500)
    assert part.model_.active is part.model_.drift.trial.state
    other = OnePassClassifier().fit(X[TRIAL:], y[TRIAL:])
    merged = merge([part, other])
    assert merged.n_seen_ == N
    assert merged.mistakes_ == part.mistakes_ + other.mistakes_
    assert merged.drift_ == []
    assert (merged.predict(X[FLIP:]) == y[FLIP:]).mean() > 0.85


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(seen=-1), "out of range"),
        (lambda d: d.update(mistakes=10**9), "cannot be"),
        (lambda d: d["drift"]["alarm"].update(starts=[0]), "does not count errors"),
        (lambda d: d["drift"].update(trial=None), "without its trial"),
        (lambda d: d["drift"].update(history=[[1, 2]]), "which is none"),
        (lambda d: d["drift"].update(history=[[10**9, None, "trial"]]), "examples were seen"),
        (lambda d: d["drift"].update(history=[[5, 4, "kept"]]), "at no example"),
    ],
)
def test_tampered_drift_is_refused(tmp_path, monkeypatch, change, message):
    X, y = stream()
    model = learnt(X[:TRIAL], y[:TRIAL], N).model_
    described = model_file.onepass.describe

    def changed(model):
        description = described(model)
        change(description)
        return description

    monkeypatch.setattr(model_file.onepass, "describe", changed)
    model_file.save(model, tmp_path / "model")
    monkeypatch.undo()
    with pytest.raises(BadModelFile, match=message):
        model_file.load(tmp_path / "model")
