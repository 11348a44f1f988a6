"""No NaN or infinity ever enters a model, whatever the stream; norms and claims stay true."""

import functools
import itertools

import numpy as np
import pytest

from maxcosine import RULES, OnlineClassifier, PAClassifier
from tests.contract.streams import stream
from tests.learners import ALL_SETTINGS, PAIRWISE_SETTINGS, tensors

pytestmark = pytest.mark.filterwarnings("ignore::maxcosine.SortedLabelsWarning")

LONGEST = {"float32": 0.99e9, "float64": 0.99e48}
"""About the longest example that is accepted; the shortest is its inverse."""


def directions(rng, n, n_features):
    X = rng.normal(size=(n, n_features))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


# Streams that hurt: rows and codes 0 or 1


def noisy(rng, n, dtype):
    """Three labels in ten are wrong: the bound of the ROMMA family grows geometrically."""
    X = rng.normal(size=(n, 5))
    return X, (X[:, 0] > 0) ^ (rng.random(n) < 0.3)


def contradicting(rng, n, dtype):
    """Every example comes with both labels, at once and again later."""
    X = rng.normal(size=(n // 4, 4))
    return np.vstack([np.repeat(X, 2, axis=0), X, X]), np.resize([0, 1], 4 * len(X))


def nearly_antiparallel(rng, n, dtype):
    """One direction with both labels, up to angles of 1e-8: hardly any margin is left."""
    X = np.ones(6) + 1e-8 * rng.normal(size=(n, 6))
    return X * rng.uniform(0.5, 2.0, (n, 1)), rng.integers(0, 2, n)


def of_all_lengths(rng, n, dtype):
    """Norms log-uniform over all that is accepted."""
    top = np.log(LONGEST[dtype])
    return directions(rng, n, 5) * np.exp(rng.uniform(-top, top, (n, 1))), rng.integers(0, 2, n)


def longest_first(rng, n, dtype):
    """One example of the largest norm, then all of the smallest."""
    X = directions(rng, n, 20) / LONGEST[dtype]
    X[0] *= LONGEST[dtype] ** 2
    return X, rng.integers(0, 2, n)


def shortest_first(rng, n, dtype):
    X, codes = longest_first(rng, n, dtype)
    return X / np.square(np.linalg.norm(X, axis=1, keepdims=True)), codes


def shrinking(rng, n, dtype):
    """A chain of parallel examples, each a little shorter: a restart each time."""
    return np.full((n, 3), 1.0) * np.geomspace(1.0, 1e-8, n)[:, None], np.ones(n)


def shrinking_and_alternating(rng, n, dtype):
    X, _ = shrinking(rng, n, dtype)
    return X, np.resize([0, 1], n)


def swinging(rng, n, dtype):
    """w swings between an example and its opposite, so that the average nearly vanishes."""
    X = np.tile([0.2, 0.66, 0.2 / 7], (n, 1))
    X[0] /= 2
    return X, np.resize([1, 0], n)


def easy(rng, n, dtype):
    """One example over and over: rules that decay do nothing else."""
    return np.tile(np.array([1.0, *[0.4] * 100]), (n, 1)), np.ones(n)


STREAMS = {
    make.__name__: make
    for make in (
        noisy,
        contradicting,
        nearly_antiparallel,
        of_all_lengths,
        longest_first,
        shortest_first,
        shrinking,
        shrinking_and_alternating,
        swinging,
        easy,
    )
}


@functools.cache
def made(name, dtype, n, n_classes=2):
    """A stream; with four classes, each of its two is divided at random."""
    X, codes = STREAMS[name](np.random.default_rng(0), n, dtype)
    codes = np.asarray(codes, np.int64)
    if n_classes == 4:
        codes = codes + 2 * np.random.default_rng(1).integers(0, 2, len(codes))
    return X.astype(dtype), codes


def weights_of(size, n):
    """None, or weights that are extreme."""
    if size == "any size":
        return 10.0 ** np.random.default_rng(0).uniform(-12, 12, n)
    return None if size == "none" else np.resize([1e-12, 1e12, 1.0], n)


def learn(rule, setting, X, codes, weights):
    learner = setting.classifier(rule)
    return learner.partial_fit(X, codes, classes=np.arange(setting.n_classes), sample_weight=weights)


def assert_finite_and_tracked(learner):
    """Every number of the model is finite, and sq_v is the square norm of v, head by head.

    A slack may be infinite: then nothing is claimed of the hypothesis. Returns the tensors of the model.
    """
    model = tensors(learner)
    for name, array in model.items():
        if name in ("head.slack_v", "head.sum_slack"):
            assert np.all(array >= 0.0), name
        elif array.dtype.kind == "f":
            assert np.isfinite(array).all(), name
    exact = np.square(model["v"].astype(np.float64)).sum(axis=0) + np.square(model["bias"].astype(np.float64))
    exact = np.add.reduceat(exact, model["head.first"])
    np.testing.assert_allclose(model["head.sq_v"], exact, rtol=2e-2)
    return model


def assert_true_and_finite(learner, X):
    """What is claimed allows for rounding, too.

    1 / ell is known up to eps times the longest example so far, which the first one bounds from below.
    """
    certificate, model = learner.certificate_, assert_finite_and_tracked(learner)
    eps = np.finfo(learner.coef_.dtype).eps
    first = np.linalg.norm([*X[0].astype(np.float64), float(learner.fit_intercept)])
    for proven in (certificate, certificate.last):
        for name in ("coef_sum", "norm", "bound", "best_bound"):
            assert np.isfinite(getattr(proven, name)).all()
        assert np.all(proven.bound * eps * model["head.radius"] <= 1.01)
        assert np.all(proven.best_bound * eps * first <= 1.01)


def assert_learns(rule, setting, name, n, size):
    X, codes = made(name, setting.dtype, n, setting.n_classes)
    learner = learn(rule, setting, X, codes, weights_of(size, len(X)))
    assert learner.n_seen_ == len(X)
    assert_true_and_finite(learner, X)
    assert np.isfinite(learner.decision_function(X[:50])).all()


def test_every_stream_leaves_a_finite_model_and_true_claims(rule):
    for name, setting in itertools.product(STREAMS, PAIRWISE_SETTINGS):
        assert_learns(rule, setting, name, 400, "any size" if setting.average else "none")


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_every_long_stream_leaves_a_finite_model_and_true_claims(rule, name):
    for setting, size in itertools.product(ALL_SETTINGS, ("none", "any size", "alternating")):
        assert_learns(rule, setting, name, 20_000, size)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.02, 0.3, 0.5])
def test_a_million_noisy_rows_leave_a_finite_model(rule, noise):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1_000_000, 5))
    codes = ((X[:, 0] > 0) ^ (rng.random(len(X)) < noise)).astype(int)
    for setting in PAIRWISE_SETTINGS:
        if setting.learning == "binary":
            learner = learn(rule, setting, X.astype(setting.dtype), codes, None)
            assert_true_and_finite(learner, X)
            assert learner.coef_.any()


def test_one_direction_never_loses_its_ceiling(rule):
    """Examples of one label along one direction: the shortest of them is the maximal margin."""
    rng = np.random.default_rng(0)
    direction = directions(rng, 1, 4)
    lengths = 10.0 ** rng.uniform(-3, 3, (500, 1))
    for dtype in ("float32", "float64"):
        X, eps = (lengths * direction).astype(dtype), np.finfo(dtype).eps
        for size in ("none", "any size", "alternating"):
            learner = OnlineClassifier(rule, average=True, fit_intercept=False)
            learner.partial_fit(X, np.ones(500, int), classes=[0, 1], sample_weight=weights_of(size, 500))
            certificate = learner.certificate_
            for proven in (certificate, certificate.last):
                least = lengths.min() * (1 - 1e4 * eps) - eps * lengths.max()
                assert proven.margin_ceiling >= least


def test_one_direction_never_loses_its_joint_ceiling(rule):
    """Rows of one class along one direction u: the best weights are (-u, 2u, -u) / sqrt(6)."""
    lengths = np.exp(np.random.default_rng(0).uniform(-8, 8, 1000))
    for dtype in ("float32", "float64"):
        X = (lengths[:, None] * np.array([0.6, 0.0, 0.8])).astype(dtype)
        margin = np.sqrt(1.5) * np.linalg.norm(X.astype(np.float64), axis=1).min()
        learner = OnlineClassifier(rule, average=True, fit_intercept=False, multiclass="joint")
        certificate = learner.partial_fit(X, np.ones(1000, int), classes=[0, 1, 2]).certificate_
        for proven in (certificate, certificate.last):
            assert proven.margin_ceiling >= margin * (1 - 1e4 * np.finfo(dtype).eps)


def test_tracked_norm_is_the_norm(rule, settings):
    tolerance = {"float32": 1e-4, "float64": 1e-9}
    for setting in settings:
        X, codes = stream(40, 6, n_classes=setting.n_classes, dtype=setting.dtype)
        learner = setting.classifier(rule)
        for start in range(0, 40, 10):
            some = slice(start, start + 10)
            learner.partial_fit(X[some], codes[some], classes=np.arange(setting.n_classes))
            model = tensors(learner)
            weights = np.vstack([model["v"], model["bias"]]).astype(np.float64)
            exact = np.add.reduceat(np.square(weights).sum(axis=0), model["head.first"])
            np.testing.assert_allclose(model["head.sq_v"], exact, rtol=tolerance[setting.dtype])
            norms = model["head.scale"] * np.sqrt(exact)
            found = np.atleast_1d(learner.certificate_.last.norm)
            np.testing.assert_allclose(found, norms, rtol=tolerance[setting.dtype])


@pytest.mark.parametrize("rounds", [100, 148, 150, 535, 538, 600, 890, 2000])
def test_long_decay_leaves_a_true_model(rounds):
    """NORMA that halves w in every round: w falls below the smallest number, and no claim is false."""
    for dtype in ("float32", "float64"):
        X, codes = np.tile(np.array([1.0, *[0.4] * 100], dtype), (rounds, 1)), np.ones(rounds, int)
        margin = np.linalg.norm(X[0])
        for average in (False, True):
            params = {"eta": 1.0, "lambda_reg": 0.5, "nu": 0.0}
            learner = OnlineClassifier("norma", rule_params=params, average=average, fit_intercept=False)
            certificate = learner.partial_fit(X, codes, classes=[0, 1]).certificate_
            assert certificate.margin_ceiling == pytest.approx(margin, rel=1e-5)
            assert certificate.last.margin_ceiling == pytest.approx(margin, rel=1e-5)
            learner.partial_fit(X[:1], [0])  # the first mistake after many rounds
            model = assert_finite_and_tracked(learner)
            w = model["head.scale"] * model["v"][:, 0].astype(np.float64)
            np.testing.assert_allclose(w, -X[0], rtol=1e-5)


# Long runs in float32


@pytest.mark.slow
def test_weights_that_no_longer_move_prove_nothing_more():
    X, y = np.ones((2**22, 1), np.float32), np.ones(2**22, int)
    learner = PAClassifier("pa1", C=1e-12, fit_intercept=False)
    for _ in range(16):  # in float32, 1 + tiny is 1 long before the end
        learner.partial_fit(X, y, classes=[0, 1])
    assert learner.certificate_.margin_ceiling >= 1.0  # the margin there is
    assert learner.certificate_.last.bound <= 1.0


@pytest.mark.slow
def test_averages_that_no_longer_move_prove_nothing_more():
    X, y = np.full((2**22, 1), 1.4e-5, np.float32), np.ones(2**22, int)
    learner = PAClassifier("pa1", fit_intercept=False, average=True)
    for _ in range(6):
        learner.partial_fit(X, y, classes=[0, 1])
    assert learner.certificate_.margin_ceiling >= np.float64(X[0, 0])


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.scale_free])
def test_averages_do_not_depend_on_the_unit(name):
    random = np.random.default_rng(4)
    X = random.normal(size=(600, 10))
    y = X @ random.normal(size=10) + random.normal(size=600) > 0
    for unit in (1e-20, 1e-11, 1e11, 1e13):
        one, other = (OnlineClassifier(name, average=True, fit_intercept=False).fit(X * c, y) for c in (1.0, unit))
        assert np.mean(one.predict(X) != other.predict(X * unit)) < 0.005
