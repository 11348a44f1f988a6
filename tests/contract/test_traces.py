"""A trace tells what the learner did: its steps are those of the pseudocode, and its scalars follow from them."""

import numpy as np
import pytest

from maxcosine import RULES
from maxcosine.trace import STEP
from tests.contract.streams import are_examples, augmented, csr, late, separable, signs, stream
from tests.learners import PAIRWISE_SETTINGS, STORAGES, Setting, everything
from tests.reference import REFERENCE, joint_examples, norm, weight_factors, weighted

pytestmark = pytest.mark.filterwarnings("ignore::maxcosine.SortedLabelsWarning")

SETTINGS = [Setting(learning, False, learning == "ovr", "float64") for learning in ("binary", "ovr", "joint")]
STEPS = ("margin", "keep", "add")
AFTER = ("norm", "coef_sum", "ell")


def replay(rule, Z, Y, weights=None):
    """The steps of the pseudocode on the examples of one head; zero rows and those of weight 0 have none."""
    algorithm = REFERENCE[rule] if weights is None else weighted(REFERENCE[rule])

    class Recording(algorithm):
        def update(self, lam, y, a, keep=1.0):
            self.step = keep, lam * factor
            super().update(lam, y, a, keep)

    used = Z.any(axis=1) & (np.ones(len(Z), bool) if weights is None else weights > 0.0)
    factors = np.ones(len(Z))
    if weights is not None:
        factors[weights > 0.0] = weight_factors(weights[weights > 0.0])
    learner, steps = Recording(), []
    for row in np.flatnonzero(used):
        factor = learner.factor = factors[row]
        margin = 0.0 if learner.w is None else Y[row] * np.dot(learner.w, Z[row])
        learner.step = 1.0, 0.0
        learner.learn(Z[row], Y[row])
        steps.append((row, margin, *learner.step, norm(learner.w), learner.coef_sum, learner.bound))
    return np.array(steps, dtype=[("row", int), *((name, float) for name in (*STEPS, *AFTER))])


def assert_steps_are(trace, head, expected, tolerance=1e-9):
    steps = trace[trace["head"] == head]
    assert steps["row"].tolist() == expected["row"].tolist()
    assert steps["mistake"].tolist() == (expected["margin"] <= 0).tolist()
    for name in (*STEPS, *AFTER):
        size = np.abs(expected[name]).max()
        np.testing.assert_allclose(steps[name], expected[name], rtol=tolerance, atol=tolerance * size, err_msg=name)


def traced(setting, rule, X, codes, classes=True, **options):
    learner = setting.classifier(rule)
    named = np.arange(setting.n_classes) if classes else None
    return learner.partial_fit(X, codes, classes=named, trace=True, **options)


def signed_examples(setting, X, codes):
    """The rows and signs that each one-vs-rest head sees."""
    positives = [1] if setting.n_classes == 2 else range(setting.n_classes)
    return [(augmented(X, setting.fit_intercept), signs(codes == positive)) for positive in positives]


# The pseudocode


def test_steps_are_those_of_the_reference(rule):
    for setting in SETTINGS:
        X, codes = stream(80, 20, n_classes=setting.n_classes, noise=0.03)
        if setting.fit_intercept and RULES[rule].restarts:
            clear = X.any(axis=1)  # after the example (0, 1) margins are ties, see test_reference.py
            X, codes = X[clear], codes[clear]
        trace = traced(setting, rule, X, codes).trace_
        if setting.learning == "joint":
            Z = joint_examples(rule, X, codes, setting.n_classes)
            heads = [(Z, np.ones(len(Z)))]
        else:
            heads = signed_examples(setting, X, codes)
        for head, (Z, Y) in enumerate(heads):
            assert_steps_are(trace, head, replay(rule, Z, Y))


def test_steps_include_the_factor_of_the_weight(rule):
    X, codes, _ = separable(120, 6)
    weights = 10.0 ** np.random.default_rng(0).uniform(-0.5, 0.5, len(X))
    weights[3::7] = 0.0
    trace = traced(SETTINGS[0], rule, X, codes, sample_weight=weights).trace_
    assert_steps_are(trace, 0, replay(rule, X, signs(codes), weights))
    assert trace["example"].tolist() == list(range(np.count_nonzero(weights)))  # as if rows of weight 0 were absent


def test_late_heads_have_no_steps_before_they_begin(rule):
    setting = Setting("ovr", False, False, "float64")
    X, codes = late(100, 8, [50, 0, 22, 10], noise=0.0)
    learner = traced(setting, rule, X, codes, classes=False)
    for head, since in enumerate(learner.certificate_.since):
        expected = replay(rule, X[since:], signs(codes[since:] == head))
        expected["row"] += since
        assert_steps_are(learner.trace_, head, expected)


def test_joint_head_has_no_step_before_the_second_class(rule):
    X, codes = late(60, 12, [0, 10, 20, 40], noise=0.02)
    trace = traced(SETTINGS[2], rule, X, codes, classes=False).trace_
    Z = joint_examples(rule, X, codes, 4, late=True)
    assert trace["row"].min() == 10
    assert_steps_are(trace, 0, replay(rule, Z, np.ones(len(Z))))


# What follows from the steps


@pytest.mark.parametrize("setting", [s for s in PAIRWISE_SETTINGS if s.learning != "joint"])
def test_norm_and_coef_sum_follow_from_the_steps(rule, setting):
    """Over shuffled passes, from the fields row, keep and add alone."""
    X, codes = stream(60, 20, n_classes=setting.n_classes, noise=0.03, dtype=setting.dtype)
    learner = setting.classifier(rule, shuffle=True, passes=3, random_state=0).fit(X, codes, trace=True)
    tolerance = 1e-9 if setting.dtype == "float64" else 1e-3
    for head, (Z, Y) in enumerate(signed_examples(setting, X.astype(float), codes)):
        steps, w, coef_sum = learner.trace_[learner.trace_["head"] == head], np.zeros(Z.shape[1]), 0.0
        for step in steps:
            row = step["row"]
            w = step["keep"] * w + step["add"] * Y[row] * Z[row]
            coef_sum = step["keep"] * coef_sum + step["add"]
            assert step["norm"] == pytest.approx(norm(w), rel=tolerance)
            assert step["coef_sum"] == pytest.approx(coef_sum, rel=1e-9)
            assert step["ell"] == pytest.approx(coef_sum / norm(w), rel=tolerance)
        certificate = learner.certificate_.last
        assert steps["ell"][-1] == pytest.approx(np.atleast_1d(certificate.bound)[head], rel=10 * tolerance)


@pytest.mark.parametrize("rule", ["mcp", "cmcp", "naromma"])
def test_lengths_without_meaning_jump_by_powers_of_two_and_ell_does_not(rule):
    """On noise w shrinks without end, and the engine rescales it."""
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(30_000, 5)), rng.integers(0, 2, 30_000)
    trace = SETTINGS[0].classifier(rule).fit(X, codes, trace=True).trace_
    end = np.searchsorted(np.maximum.accumulate(trace["ell"]), 1e50)  # far beyond, the engine holds Lambda
    before, steps = trace[: end - 1], trace[1:end]
    coef_sum = steps["keep"] * before["coef_sum"] + steps["add"]
    exponents = np.log2(steps["coef_sum"] / coef_sum)
    np.testing.assert_allclose(exponents, exponents.round(), atol=1e-9)
    assert np.count_nonzero(exponents.round()) >= 2
    np.testing.assert_allclose(steps["ell"], steps["coef_sum"] / steps["norm"], rtol=1e-12)
    assert np.isfinite(trace["norm"]).all()


def test_counts_are_those_of_the_certificate(rule):
    for setting in PAIRWISE_SETTINGS:
        X, codes = stream(120, 12, n_classes=setting.n_classes, dtype=setting.dtype)
        learner = setting.classifier(rule, passes=2).fit(X, codes, trace=True)
        certificate, trace = learner.certificate_, learner.trace_
        mistakes, updates = np.atleast_1d(certificate.mistakes), np.atleast_1d(certificate.updates)
        for head in range(len(mistakes)):
            steps = trace[trace["head"] == head]
            assert steps["mistake"].sum() == mistakes[head]
            assert np.count_nonzero(steps["add"]) == updates[head]
            assert len(steps) == 2 * np.count_nonzero(are_examples(X, setting.fit_intercept))


# The same for every storage, chunk and order


def test_tracing_changes_no_bit_of_the_model(rule):
    for setting in PAIRWISE_SETTINGS:
        X, codes = stream(100, 12, n_classes=setting.n_classes, dtype=setting.dtype)
        plain = setting.classifier(rule, passes=2).fit(X, codes)
        assert everything(setting.classifier(rule, passes=2).fit(X, codes, trace=True)) == everything(plain)


def unsorted(X):
    """Sparse rows whose columns fall, which the core leaves to be sorted."""
    sparse = csr(X)
    for start, stop in zip(sparse.indptr[:-1], sparse.indptr[1:], strict=True):
        sparse.indices[start:stop], sparse.data[start:stop] = (
            sparse.indices[start:stop][::-1].copy(),
            sparse.data[start:stop][::-1].copy(),
        )
    return sparse


def test_trace_is_the_same_for_every_storage(rule):
    for setting in PAIRWISE_SETTINGS:
        X, codes = stream(100, 12, n_classes=setting.n_classes, dtype=setting.dtype)
        options = {"shuffle": True, "random_state": 1, "passes": 2}
        dense, *others = (
            setting.classifier(rule, **options).fit(storage(X), codes, trace=True).trace_
            for storage in (*STORAGES.values(), unsorted)
        )
        assert dense.dtype == STEP
        for other in others:
            assert np.array_equal(other, dense)


def test_traces_of_chunks_add_up_to_that_of_the_whole(rule):
    for setting in PAIRWISE_SETTINGS:
        X, codes = stream(100, 12, n_classes=setting.n_classes, dtype=setting.dtype)
        classes = np.arange(setting.n_classes)
        whole = setting.classifier(rule).partial_fit(X, codes, classes, trace=True).trace_
        learner, parts = setting.classifier(rule), []
        for start, stop in ((0, 1), (1, 40), (40, 100)):
            part = learner.partial_fit(X[start:stop], codes[start:stop], classes, trace=True).trace_.copy()
            part["row"] += start
            parts.append(part)
        assert np.array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize(("shape", "verbose"), [((700, 600), 0), ((20_000, 3), 1)], ids=["dense blocks", "reports"])
def test_rows_are_numbered_across_blocks(shape, verbose):
    """The core packs dense rows in blocks, and progress reports come between blocks of rows."""
    X, codes = stream(*shape)
    learner = SETTINGS[0].classifier("perceptron", shuffle=True, random_state=0, passes=2, verbose=verbose)
    trace = learner.fit(X, codes, trace=True).trace_
    orders = np.random.RandomState(0)
    order = np.concatenate([orders.permutation(len(X)) for _ in range(2)])
    kept = X.any(axis=1)[order]
    assert trace["row"].tolist() == order[kept].tolist()
    assert trace["example"].tolist() == np.flatnonzero(kept).tolist()
