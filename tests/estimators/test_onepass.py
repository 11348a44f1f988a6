"""OnePassClassifier: equal to its reference, the same bits in every way of learning, late classes, probabilities."""

import pickle
import threading

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.utils.estimator_checks import check_estimator

from maxcosine import BadRow, OnePassClassifier, ProgressiveError
from tests.estimators.test_checks import EXPECTED_FAILURES
from tests.onepass.learning import assert_same_bits
from tests.onepass_reference import OnePassReference

LABELS = np.array(["quince", "apple", "melon", "fig"])


def stream(n=200, n_features=12, n_classes=2, seed=0, density=0.6):
    random = np.random.default_rng(seed)
    centres = random.normal(size=(n_classes, n_features))
    codes = random.integers(0, n_classes, n)
    X = (centres[codes] + random.normal(size=(n, n_features))) * 10.0 ** random.integers(-3, 4, n_features)
    return np.where(random.random(X.shape) < density, X, 0.0), LABELS[codes]


def state(learner):
    return learner.model_.state


def by_arrival(y):
    """The code of each label in the order in which labels come."""
    order = list(dict.fromkeys(y.tolist()))
    return np.array([order.index(label) for label in y]), order


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_scores_predictions_and_probabilities_are_those_of_the_reference_after_every_example(n_classes):
    X, y = stream(60, n_classes=n_classes)
    codes, order = by_arrival(y)
    learner, reference = OnePassClassifier(), OnePassReference(X.shape[1])
    for x, label, code in zip(X, y, codes, strict=True):
        reference.learn(x, code)
        learner.partial_fit(x[None], [label])
        known = order[: reference.n_classes]
        if len(known) < 2:
            assert learner.predict(X[:3]).tolist() == known * 3
            continue
        expected = np.array([reference.probabilities(row) for row in X[:5]])
        columns = [learner.classes_.tolist().index(label) for label in known]
        assert learner.predict_proba(X[:5])[:, columns] == pytest.approx(expected, rel=1e-7)
        best = [known[reference.predicted(reference.margins(row))] for row in X[:5]]
        assert learner.predict(X[:5]).tolist() == best
    assert learner.mistakes_ == reference.mistakes
    assert learner.error_ == ProgressiveError(reference.mistakes, 60)
    assert learner.certificate_.norm / learner.certificate_.coef_sum == pytest.approx(reference.ceiling(), rel=1e-9)
    assert learner.certificate_.margin_ceiling >= reference.ceiling()


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_chunks_storages_and_dicts_give_the_same_bits(tmp_path, n_classes, dtype):
    X, y = stream(150, n_classes=n_classes)
    X = X.astype(dtype)
    whole = OnePassClassifier().fit(X, y)
    sparse = OnePassClassifier().fit(scipy.sparse.csr_array(X), y)
    assert_same_bits(state(whole), state(sparse))
    chunked, ones = OnePassClassifier(), OnePassClassifier()
    for start in (0, 1, 2, 7, 50):
        stop = {0: 1, 1: 2, 2: 7, 7: 50, 50: 150}[start]
        chunked.partial_fit(X[start:stop], y[start:stop])
    for k in range(150):
        ones.partial_fit(scipy.sparse.csr_array(X[[k]]), y[[k]])
    assert_same_bits(state(whole), state(chunked))
    assert_same_bits(state(whole), state(ones))
    for learner in (chunked, ones):
        assert np.array_equal(learner.predict_proba(X), whole.predict_proba(X))
        assert learner.mistakes_ == whole.mistakes_


def test_dicts_learn_what_columns_learn():
    X, y = stream(150, n_classes=3)
    whole = OnePassClassifier().fit(X, y)
    dicts = [{f"f{k}": float(value) for k, value in enumerate(row) if value} for row in X]
    one, many = OnePassClassifier(), OnePassClassifier()
    for x, label in zip(dicts, y.tolist(), strict=True):
        one.learn_one(x, label)
    many.learn_many(dicts, y)
    assert_same_bits(state(one), state(many))
    assert one.predict_proba(dicts) == pytest.approx(whole.predict_proba(X), rel=1e-9)
    found = one.predict_proba_one(dicts[3])
    assert list(found.values()) == one.predict_proba(dicts[3:4])[0].tolist()
    assert max(found, key=found.get) == one.predict_one(dicts[3])
    assert OnePassClassifier().predict_proba_one({"a": 1.0}) == {}
    assert one.predict_proba_one({"never": 5.0}) == one.predict_proba_one({})


def test_files_learn_what_columns_learn(tmp_path):
    X, y = stream(120, n_classes=3)
    lines = [
        f"{label} " + " ".join(f"{k}:{float(value)!r}" for k, value in enumerate(row) if value)
        for label, row in zip(y, X, strict=True)
    ]
    (tmp_path / "a.svm").write_text("\n".join(lines) + "\n")
    found = OnePassClassifier().fit_stream(tmp_path / "a.svm", dtype="float64")
    assert_same_bits(state(found), state(OnePassClassifier().fit(X, y)))


def test_files_with_rows_of_any_norm_are_learnt(tmp_path):
    (tmp_path / "large.svm").write_text("".join(f"{k % 2} 1:{1e12 + k} 2:{k % 2}\n" for k in range(60)))
    assert OnePassClassifier().fit_stream(tmp_path / "large.svm").n_seen_ == 60


def test_names_of_classes_do_not_change_what_is_learnt():
    X, y = stream(100, n_classes=3)
    renamed = np.array([{"quince": 5, "apple": 9, "melon": -1}[label] for label in y])
    one, two = OnePassClassifier().fit(X, y), OnePassClassifier().fit(X, renamed)
    assert_same_bits(state(one), state(two))
    names = {"quince": 5, "apple": 9, "melon": -1}
    assert [names[label] for label in one.predict(X)] == two.predict(X).tolist()
    flipped = OnePassClassifier().fit(X, y == "quince")
    assert flipped.decision_function(X) == pytest.approx(
        -OnePassClassifier().fit(X, y != "quince").decision_function(X)
    )


def test_named_classes_begin_at_once_and_others_are_refused():
    X, y = stream(60, n_classes=3)
    learner = OnePassClassifier().partial_fit(X[:1], y[:1], classes=LABELS)
    assert state(learner).n_blocks == 4
    assert learner.predict_proba(X).shape == (60, 4)
    learner.partial_fit(X, y)
    with pytest.raises(ValueError, match="not among the classes"):
        learner.partial_fit(X[:1], ["pear"])


def test_rows_of_weight_zero_are_as_if_absent_and_their_class_is_not_predicted():
    X, y = stream(100, n_classes=3)
    weights = np.where(y == "melon", 0.0, 1.0)
    learner = OnePassClassifier().fit(X, y, weights)
    kept = OnePassClassifier().fit(X[weights > 0], y[weights > 0])
    assert_same_bits(state(learner), state(kept))
    assert "melon" in learner.classes_
    assert "melon" not in learner.predict(X)
    assert (learner.predict_proba(X)[:, learner.classes_.tolist().index("melon")] == 0.0).all()
    assert learner.predict(X).tolist() == kept.predict(X).tolist()


def test_weights_are_relative():
    X, y = stream(100)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 100)
    one, two = (OnePassClassifier().fit(X, y, factor * weights) for factor in (1.0, 4.0))
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))
    assert not np.array_equal(one.predict_proba(X), OnePassClassifier().fit(X, y).predict_proba(X))


def test_scores_follow_from_the_documented_formula():
    for n_classes in (2, 3):
        X, y = stream(300, n_classes=n_classes)
        learner = OnePassClassifier().fit(X, y)
        z = np.sign(X) * np.log1p(np.abs(X)) - learner.center_
        R = np.sqrt(1.0 + np.square(z / learner.scale_).sum(axis=1))
        scores = z @ learner.weights_.T / R[:, None] + learner.intercept_
        found = learner.decision_function(X)
        assert scores.squeeze() == pytest.approx(found, rel=1e-9, abs=1e-12)
    assert not hasattr(learner, "coef_")


def test_features_may_come_late_and_be_scaled_in_any_way():
    X, y = stream(200)
    learner = OnePassClassifier(grow_features=True)
    learner.partial_fit(X[:100, :5], y[:100]).partial_fit(X[100:], y[100:])
    padded = X.copy()
    padded[:100, 5:] = 0.0
    assert_same_bits(state(learner), state(OnePassClassifier().fit(padded, y)))
    times = np.where(np.arange(200)[:, None] % 3, 1.7e9, 1.6e9)  # outside of what float32 weights of a rule can learn
    assert np.isfinite(
        OnePassClassifier(dtype="float32").fit(np.hstack([X, times]), y).decision_function(np.hstack([X, times]))
    ).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused_and_change_nothing(bad):
    X, y = stream(50)
    learner = OnePassClassifier().fit(X, y)
    before = pickle.dumps(state(learner).arrays)
    wrong = X.copy()
    wrong[20, 3] = bad
    for given in (wrong, scipy.sparse.csr_array(wrong)):
        with pytest.raises(BadRow, match="row 20"):
            learner.partial_fit(given, y)
    with pytest.raises((BadRow, ValueError)):
        OnePassClassifier().fit(wrong, y)
    assert pickle.dumps(state(learner).arrays) == before


def test_pickles_copies_and_clones_go_on_to_the_same_bits():
    X, y = stream(120, n_classes=3)
    learner = OnePassClassifier(dtype="float32").fit(X[:60], y[:60])
    other = pickle.loads(pickle.dumps(learner))
    model = learner.model_.copy()
    learner.partial_fit(X[60:], y[60:])
    other.partial_fit(X[60:], y[60:])
    assert_same_bits(state(learner), state(other))
    assert model.n_seen == 60
    assert clone(learner).get_params() == learner.get_params()


def test_shuffled_rows_are_learnt_in_the_order_of_the_seed():
    X, y = stream(100, n_classes=3)
    order = np.random.RandomState(7).permutation(100)
    shuffled = OnePassClassifier(shuffle=True, random_state=7).fit(X, y)
    assert_same_bits(state(shuffled), state(OnePassClassifier().fit(X[order], y[order])))


def test_probabilities_are_calibrated_and_work_with_thresholds():
    X, y = load_breast_cancer(return_X_y=True)
    learner = OnePassClassifier().fit(X[:400], y[:400])
    p = learner.predict_proba(X[400:])
    assert p.sum(axis=1) == pytest.approx(np.ones(len(p)))
    assert np.array_equal(np.exp(learner.predict_log_proba(X[400:])), np.exp(np.log(p)))
    log_loss = -np.log(p[np.arange(len(p)), y[400:]]).mean()
    assert log_loss < 0.15
    strict = FixedThresholdClassifier(OnePassClassifier(), threshold=0.9, response_method="predict_proba")
    found = strict.fit(X[:400], y[:400]).predict(X[400:])
    assert np.array_equal(found == 1, p[:, 1] >= 0.9)
    assert CalibratedClassifierCV(OnePassClassifier(), cv=3).fit(X, y).score(X, y) > 0.9


def test_error_interval_contains_the_test_error_on_digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    learner = OnePassClassifier().fit(X[:1200], y[:1200])
    assert learner.score(X[1200:], y[1200:]) > 0.92
    assert learner.error_.low < learner.mistakes_ / 1200 < learner.error_.high


@pytest.mark.filterwarnings("ignore::maxcosine.SortedLabelsWarning")
def test_checks_of_scikit_learn_pass():
    checks = check_estimator(OnePassClassifier(), on_fail=None, on_skip=None, expected_failed_checks=EXPECTED_FAILURES)
    assert {check["check_name"]: check["exception"] for check in checks if check["status"] == "failed"} == {}


def test_threads_that_predict_beside_one_that_learns_see_whole_models():
    X, y = stream(2000, n_classes=3)
    learner = OnePassClassifier().fit(X[:500], y[:500])
    failures = []

    def predict():
        for _ in range(50):
            p = learner.predict_proba(X[:200])
            if not (np.isfinite(p).all() and np.allclose(p.sum(axis=1), 1.0)):
                failures.append(p)

    threads = [threading.Thread(target=predict) for _ in range(3)]
    for thread in threads:
        thread.start()
    for start in range(500, 2000, 50):
        learner.partial_fit(X[start : start + 50], y[start : start + 50])
    for thread in threads:
        thread.join()
    assert failures == []
    assert_same_bits(state(learner), state(OnePassClassifier().fit(X, y)))
