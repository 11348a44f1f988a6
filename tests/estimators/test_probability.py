"""Probabilities of rules: equal to a naive reference, the same bits in every way of learning, calibrated."""

import copy
import itertools
import pickle
from contextlib import suppress

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import maxcosine
import maxcosine.distributed
from maxcosine import RULES, MCPClassifier, OnePassClassifier, OnlineClassifier, PAClassifier, merge
from maxcosine.calibration import probabilities
from tests.contract.streams import csr, late, stream
from tests.estimators.test_checks import EXPECTED_FAILURES
from tests.learners import PAIRWISE_SETTINGS, everything, learnt
from tests.onepass_reference import Calibration

pytestmark = pytest.mark.filterwarnings("ignore::maxcosine.SortedLabelsWarning")

N_ROWS, N_FEATURES = 90, 6

# Rules to which the length of w means nothing, or something; that restart, and that shrink w.
SOME_RULES = ["mcp", "naromma", "aggressive_romma", "norma", "pa1"]

OF_TWO_CLASSES = {
    "check_classifiers_train": (
        "predict returns the class that decision_function has above 0, and probability 1/2 is at another score where "
        "one class is rare; the check wants both"
    ),
}


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.slow] * (name not in SOME_RULES)) for name in RULES])
def some_rule(request):
    """Every rule if slow tests run, else a few different ones."""
    return request.param


class Reference:
    """Calibrates the scores that a classifier without probabilities has of each row before it learns it."""

    def __init__(self, learner):
        self.learner = learner
        self.known = []
        self.newton = Calibration()
        self.newton.theta[0] = 1.0
        self.size = self.rows = 0

    def scores(self, x):
        """Scores of the classes that have come, sorted; of w / Lambda where the length of w means nothing."""
        model = self.learner.model_
        w, constant = (array.astype(float) for array in model.heads.hypotheses())
        scores = w[:, : len(x)] @ x + constant
        if model.rule.scale_free:
            coef_sum = model.heads.by_column(model.heads.coef_sum)
            scores = scores / np.where(coef_sum > 0, coef_sum, 1)
        if len(scores) == 1:
            scores = np.array([-scores[0], scores[0]])
        return scores[model.labels.codes(np.array(self.known))]

    def margins(self, scores):
        margins = scores * self.rows / self.size if self.size else 0 * scores
        return margins[1:] - margins[:1] if len(margins) == 2 else margins

    def learn(self, x, label, weight=1.0):
        if weight > 0 and label in self.known and len(self.known) > 1:
            scores = self.scores(x)
            self.size += np.abs(scores).mean()
            self.rows += 1
            if len(scores) > 2 and self.newton.curvature[1, 1] > 1:
                self.newton.theta[1], self.newton.curvature = 0.0, np.eye(2)
            self.newton.learn(self.margins(scores), self.known.index(label), self.rows)
        if weight > 0:
            self.known = sorted({*self.known, label})
        self.learner.partial_fit(x[None], [label], sample_weight=[weight])

    def probabilities(self, x):
        return self.newton.probabilities(self.margins(self.scores(x)))


def probable(setting, rule="mcp", **options):
    return setting.classifier(rule, probability=True, **options)


def rows_of(setting):
    """Rows, classes of which some come late, and weights of which some are 0."""
    first_rows = [3, 0] if setting.learning == "binary" else [40, 0, 60, 10]
    X, y = late(N_ROWS, N_FEATURES, first_rows, dtype=setting.dtype)
    X[0] = np.arange(1, N_FEATURES + 1)
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], N_ROWS)
    weights[[0, 3, 10, 40, 60]] = 1.0
    return X, y, weights


def dicts(X):
    return [{k: value for k, value in enumerate(row) if value} for row in X.astype(float).tolist()]


def calibration(learner):
    return learner.model_.heads.arrays.calibration.tobytes()


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("learning", ["binary", "ovr", "joint"])
def test_probabilities_are_those_of_the_reference_after_every_row(some_rule, learning, average):
    setting = next(one for one in PAIRWISE_SETTINGS if one.learning == learning)
    multiclass = "joint" if learning == "joint" else "ovr"
    options = {"average": average, "multiclass": multiclass, "dtype": "float64"}
    X, y, weights = rows_of(setting)
    X = X.astype(float)
    learner = OnlineClassifier(some_rule, probability=True, **options)
    reference = Reference(OnlineClassifier(some_rule, **options))
    for number, (x, label, weight) in enumerate(zip(X, y.tolist(), weights.tolist(), strict=True)):
        learner.partial_fit(x[None], [label], sample_weight=[weight])
        reference.learn(x, label, weight)
        if len(reference.known) > 1:
            found = learner.predict_proba(X[:3])[:, np.isin(learner.classes_, reference.known)]
            expected = np.array([reference.probabilities(x) for x in X[:3]])
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12, err_msg=f"row {number}")
    assert learnt(learner) == learnt(reference.learner)


def chunks(cuts, storage):
    def learn(learner, X, y, w):
        for start, stop in itertools.pairwise([0, *cuts, len(y)]):
            learner.partial_fit(storage(X[start:stop]), y[start:stop], sample_weight=w[start:stop])

    return learn


def each_dict(learner, X, y, w):
    for x, label, weight in zip(dicts(X), y.tolist(), w.tolist(), strict=True):
        learner.learn_one(x, label, weight)


WAYS = {
    "CSR": chunks([], csr),
    "chunks": chunks([1, 2, 41, 42], np.asarray),
    "row at a time": chunks(range(1, N_ROWS), csr),
    "dict at a time": each_dict,
    "dicts at once": lambda learner, X, y, w: learner.learn_many(dicts(X), y, w),
}


@pytest.mark.parametrize("way", WAYS)
def test_way_of_learning_changes_no_bit(some_rule, way):
    for setting in PAIRWISE_SETTINGS:
        X, y, w = rows_of(setting)
        expected = probable(setting, some_rule).partial_fit(X, y, sample_weight=w)
        found = probable(setting, some_rule)
        WAYS[way](found, X, y, w)
        assert calibration(found) == calibration(expected), setting
        assert np.array_equal(found.predict_proba(dicts(X)), expected.predict_proba(X))
        one = found.predict_proba_one(dicts(X)[7])
        assert list(one.values()) == expected.predict_proba(X[7:8])[0].tolist()


def test_probability_changes_nothing_else(some_rule):
    for setting in PAIRWISE_SETTINGS:
        X, y, w = rows_of(setting)
        plain = setting.classifier(some_rule).partial_fit(X, y, sample_weight=w)
        assert learnt(probable(setting, some_rule).partial_fit(X, y, sample_weight=w)) == learnt(plain)


def test_two_classes_with_one_head_and_with_one_head_each_have_the_same_bits(some_rule):
    X, y = stream(60, N_FEATURES)
    one = OnlineClassifier(some_rule, probability=True).partial_fit(X, y)
    several = OnlineClassifier(some_rule, probability=True).partial_fit(X, y)
    several.model_.add_classes(np.array([-1, 7]), waiting=True)
    before = calibration(one)
    assert np.array_equal(several.predict_proba(X), np.pad(one.predict_proba(X), [(0, 0), (1, 1)]))
    X, y = stream(30, N_FEATURES, seed=1)
    assert calibration(one.partial_fit(X, y)) == calibration(several.partial_fit(X, y)) != before


def test_rows_of_weight_0_are_as_if_absent():
    X, y = stream(80, N_FEATURES, n_classes=3)
    w = np.where(np.arange(80) % 3, 1.0, 0.0)
    whole = MCPClassifier(probability=True).fit(X, y, sample_weight=w)
    part = MCPClassifier(probability=True).fit(X[w > 0], y[w > 0])
    assert calibration(whole) == calibration(part)


@pytest.mark.parametrize("restore", ["save", "pickle", "copy", "densify"])
def test_learning_goes_on_to_the_same_bits(restore, tmp_path):
    for setting in PAIRWISE_SETTINGS:
        X, y, w = rows_of(setting)
        expected = probable(setting).partial_fit(X, y, sample_weight=w)
        learner = probable(setting).partial_fit(X[:50], y[:50], sample_weight=w[:50])
        if restore == "save":
            maxcosine.save(learner, tmp_path / "m")
            learner = maxcosine.load(tmp_path / "m")
        elif restore == "pickle":
            learner = pickle.loads(pickle.dumps(learner))
        elif restore == "copy":
            learner = copy.deepcopy(learner)
        else:
            learner.sparsify().densify()
        learner.partial_fit(X[50:], y[50:], sample_weight=w[50:])
        assert everything(learner) == everything(expected)


def test_fit_stream_and_passes_are_calibrated():
    X, y = stream(90, N_FEATURES, n_classes=3)
    streamed = MCPClassifier(probability=True).fit_stream([(X[:40], y[:40]), (X[40:], y[40:])])
    assert calibration(streamed) == calibration(MCPClassifier(probability=True).partial_fit(X, y))
    assert MCPClassifier(probability=True, passes=2).fit(X, y).model_.heads.arrays.calibration["rows"] == 180


def test_classes_that_have_not_come_have_probability_0():
    learner = MCPClassifier(probability=True)
    assert learner.predict_proba_one({"a": 1.0}) == {}
    learner.learn_one({"a": 1.0}, "x")
    assert learner.predict_proba_one({"a": 1.0}) == {"x": 1.0}
    learner.learn_one({"b": 1.0}, "y")
    assert learner.predict_proba_one({"a": 1.0}) == {"x": 0.5, "y": 0.5}  # no row was judged yet
    learner.model_.add_classes(np.array(["z"]), waiting=True)
    learner.learn_one({"a": 1.0}, "x")
    assert learner.predict_proba_one({"a": 1.0})["z"] == 0.0


@pytest.mark.parametrize("scale", [1e-15, 1e15])
def test_probabilities_do_not_depend_on_the_scale_of_the_rows(scale):
    X, y = stream(200, N_FEATURES)
    options = {"fit_intercept": False, "probability": True}
    expected = MCPClassifier(**options).fit(X, y).predict_proba(X)
    found = MCPClassifier(**options).fit(scale * X, y).predict_proba(scale * X)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_probabilities_are_always_finite(some_rule):
    X, y = stream(120, N_FEATURES, n_classes=3)
    X *= 10.0 ** np.random.default_rng(0).integers(-40, 40, (120, 1))
    for average in (False, True):
        learner = OnlineClassifier(some_rule, average=average, probability=True).partial_fit(X[:4], y[:4])
        with suppress(ArithmeticError):  # the weights of some rules overflow
            learner.partial_fit(X, y)
        p = learner.predict_proba(X)
        assert np.isfinite(p).all()
        assert p.sum(axis=1) == pytest.approx(np.ones(120))
        (record,) = learner.model_.heads.arrays.calibration.tolist()
        assert np.isfinite(np.hstack(record)).all()


# Without probabilities, and merged


def test_without_probability_there_are_no_methods():
    X, y = stream(60, N_FEATURES)
    learner = MCPClassifier().fit(X, y)
    for name in ("predict_proba", "predict_log_proba", "predict_proba_one"):
        assert not hasattr(learner, name)
        assert hasattr(MCPClassifier(probability=True), name)
        assert hasattr(OnePassClassifier(), name)
    with pytest.raises(AttributeError, match="predict_proba"):
        learner.predict_proba(X)
    with pytest.raises(ValueError, match="learnt with probability=False"):
        learner.set_params(probability=True).predict_proba(X)
    with pytest.raises(ValueError, match="probability was False when learning began"):
        learner.partial_fit(X, y)
    with pytest.raises(NotFittedError):
        MCPClassifier(probability=True).predict_proba(X)


def test_a_merged_model_starts_a_new_calibration():
    X, y = stream(120, N_FEATURES, noise=0.0)
    parts = [MCPClassifier(probability=True).fit(X[k::2], y[k::2]) for k in range(2)]
    merged = merge(parts)
    with pytest.raises(ValueError, match=r"go on with partial_fit, or use scikit-learn's CalibratedClassifierCV"):
        merged.predict_proba(X)
    merged.partial_fit(X, y)
    assert merged.predict_proba(X).shape == (120, 2)
    assert merged.model_.heads.arrays.calibration["rows"] == 120
    with pytest.raises(ValueError, match="must agree in probability: it is True for model 0 and False"):
        merge([parts[0], MCPClassifier().fit(X, y)])


def test_shards_are_merged_and_go_on():
    X, y = stream(120, N_FEATURES, noise=0.0)
    shards = [[(X[k::2], y[k::2])] for k in range(2)]
    learner = maxcosine.distributed.fit(shards, MCPClassifier(probability=True), rounds=2)
    with pytest.raises(ValueError, match="merged model"):
        learner.predict_proba(X)
    assert learner.partial_fit(X, y).predict_proba(X).shape == (120, 2)


# How good they are


def calibration_error(p, y):
    """The expected calibration error of the predicted class, in ten bins."""
    sure, right = p.max(axis=1), p.argmax(axis=1) == y
    bins = np.minimum((10 * sure).astype(int), 9)
    shares = [(bins == k).mean() * abs(sure[bins == k].mean() - right[bins == k].mean()) for k in np.unique(bins)]
    return sum(shares)


def sigmoids(scores):
    p = 1 / (1 + np.exp(-np.clip(scores, -30, 30)))
    p = np.column_stack([1 - p, p]) if p.ndim == 1 else p
    return p / p.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("data", [load_breast_cancer, load_digits])
@pytest.mark.parametrize("rule", ["mcp", "soft_mcp", "pa1", "perceptron", "romma"])
def test_probabilities_are_better_than_sigmoids_of_scores(rule, data):
    X, y = data(return_X_y=True)
    order, half = np.random.default_rng(0).permutation(len(y)), len(y) // 2
    X, y = StandardScaler().fit_transform(X[order]), y[order]
    for average in (False, True):
        learner = OnlineClassifier(rule, average=average, probability=True).fit(X[:half], y[:half])
        p, scores = learner.predict_proba(X[half:]), learner.decision_function(X[half:])
        assert log_loss(y[half:], p) < log_loss(y[half:], sigmoids(scores))
        assert calibration_error(p, y[half:]) < 0.09
        assert np.array_equal(learner.predict_log_proba(X[half:]), np.log(p))
        if data is load_digits:
            assert np.array_equal(p.argmax(axis=1), scores.argmax(axis=1))


# Beside scikit-learn


def failed_checks(expected, **options):
    """The checks of scikit-learn that fail beside the expected ones."""
    learner = PAClassifier(probability=True, **options)
    checks = check_estimator(learner, on_fail=None, on_skip=None, expected_failed_checks=expected)
    return {check["check_name"]: check["exception"] for check in checks if check["status"] == "failed"}


@pytest.mark.parametrize("options", [{}, {"average": True}, {"multiclass": "joint"}])
def test_checks_of_scikit_learn_pass(options):
    assert failed_checks(EXPECTED_FAILURES | OF_TWO_CLASSES, **options) == {}


@pytest.mark.parametrize("options", [{}, {"average": True}, {"multiclass": "joint"}])
def test_without_the_offset_no_more_checks_fail_than_without_probabilities(options, monkeypatch):
    monkeypatch.setattr(
        "maxcosine.calibration.probabilities", lambda slope, _, margins: probabilities(slope, 0.0, margins)
    )
    assert failed_checks(EXPECTED_FAILURES, **options) == {}


def test_fixed_thresholds_of_rules():
    X, y = load_breast_cancer(return_X_y=True)
    learner = make_pipeline(StandardScaler(), MCPClassifier(average=True, probability=True))
    strict = FixedThresholdClassifier(learner, threshold=0.9, response_method="predict_proba").fit(X[:400], y[:400])
    p = learner.fit(X[:400], y[:400]).predict_proba(X[400:])
    assert np.array_equal(strict.predict(X[400:]) == 1, p[:, 1] >= 0.9)


def test_fixed_thresholds_of_the_one_pass_learner():
    X, y = load_breast_cancer(return_X_y=True)
    learner = OnePassClassifier().fit(X[:400], y[:400])
    chosen = learner.threshold(precision=0.99).threshold
    fixed = FixedThresholdClassifier(learner, threshold=chosen, response_method="decision_function")
    kept = fixed.fit(X[:400], y[:400]).predict(X[400:]) == 1
    assert np.array_equal(kept, learner.decision_function(X[400:]) >= chosen)
    assert y[400:][kept].mean() > 0.97


def test_every_rule_has_probabilities():
    X, y = stream(60, N_FEATURES)
    for rule in RULES:
        assert OnlineClassifier(rule, probability=True).fit(X, y).predict_proba(X).shape == (60, 2)
