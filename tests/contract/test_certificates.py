"""What Lambda / norm(w) proves: at every step, for every rule, in every setting, with weights and without."""

import itertools

import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.svm import SVC

from maxcosine import RULES, OnlineClassifier
from tests.contract.streams import (
    augmented,
    claims,
    clusters,
    csr,
    hypotheses,
    late,
    problems,
    separable,
    separable_in,
    signs,
    stream,
)
from tests.learners import PAIRWISE_SETTINGS, everything
from tests.reference import all_joint_examples, attained_margin, cosine, maximal_margin, norm

pytestmark = pytest.mark.filterwarnings("ignore::maxcosine.SortedLabelsWarning")

# Of reading w off a classifier, which rounds it to its type.
ROUNDING = {"float32": 1e-5, "float64": 1e-12}
# Of computing the margin of a separator of length 1, in float64, relative to the rows of about length 1.
MARGIN_ROUNDING = 1e-14
BUDGETED = [name for name, rule in RULES.items() if rule.own_bound]


def random_weights(n, decades, seed=0):
    return 10.0 ** np.random.default_rng(seed).uniform(-decades, decades, n)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_cosine_to_a_separator_is_at_least_gamma_ell_at_every_step(rule, settings, weighted):
    for setting in settings:
        X, codes, separators = separable_in(setting, 24)
        gammas = [
            (Y * (Z @ w_star)).min() - MARGIN_ROUNDING
            for (Z, Y), w_star in zip(problems(setting, X, codes), separators, strict=True)
        ]
        weights = random_weights(len(X), 3) if weighted else np.ones(len(X))
        rounding, stored = (10 if weighted else 1) * ROUNDING[setting.dtype], 0.0
        learner = setting.classifier(rule)
        for k in range(len(X)):
            row = slice(k, k + 1)
            classes = np.arange(setting.n_classes)
            learner.partial_fit(X[row], codes[row], classes=classes, sample_weight=weights[row])
            certificate = learner.certificate_
            for w, w_star, gamma, bound in zip(
                hypotheses(setting, learner), separators, gammas, claims(certificate, "bound"), strict=True
            ):
                assert gamma > 0.04
                assert not bound or cosine(w, w_star) >= gamma * bound - rounding, (setting, k)
            for proven in (certificate, certificate.last):
                assert np.all(claims(proven, "margin_ceiling") >= gammas)
            assert np.all(claims(certificate, "best_bound") >= claims(certificate, "bound"))
            assert np.all(claims(certificate, "best_bound") >= claims(certificate.last, "best_bound"))
            best = learner.model_.heads.table["best_bound"].copy()
            assert np.all(claims(certificate.last, "best_bound") >= best)
            assert np.all(best >= stored)  # what a refresh has proven stays proven
            stored = best


def svm_margin(Z, Y):
    """The maximal margin through the origin, by a hard-margin SVM on the examples and their mirror images."""
    mirrored = np.vstack([Y[:, None] * Z, -Y[:, None] * Z])
    svm = SVC(kernel="linear", C=1e10, tol=1e-9).fit(mirrored, np.repeat([1, -1], len(Z)))
    return 1.0 / norm(svm.coef_[0])


@pytest.fixture(scope="module")
def solved():
    """For each setting: rows and codes, and the maximal margin of each of its problems."""
    return {setting: _solve(setting) for setting in PAIRWISE_SETTINGS}


def _solve(setting):
    X, codes, _ = separable_in(setting, 40, seed=1)
    margins = [maximal_margin(Z, Y) for Z, Y in problems(setting, X, codes)]
    return X, codes, np.array(margins)


def test_maximal_margin_of_the_reference_is_that_of_a_hard_margin_svm(solved):
    for setting, (X, codes, margins) in solved.items():
        Z, Y = problems(setting, X, codes)[0]
        assert margins[0] == pytest.approx(svm_margin(Z, Y), rel=1e-4)


def test_maximal_margin_lies_between_the_attained_one_and_the_ceiling(rule, solved):
    for setting, (X, codes, margins) in solved.items():
        learner = setting.classifier(rule, passes=20).fit(X, codes)
        attained = np.atleast_1d(learner.attained_margin(X, codes))
        for w, (Z, Y), margin in zip(hypotheses(setting, learner), problems(setting, X, codes), attained, strict=True):
            assert margin == pytest.approx(attained_margin(w, Z, Y), abs=1e-4)
        assert np.all(attained <= margins * (1 + 1e-5))
        for proven in (learner.certificate_, learner.certificate_.last):
            assert np.all(margins <= claims(proven, "margin_ceiling") * (1 + 1e-5))


def test_hypothesis_is_a_point_of_the_hull_on_noisy_data(rule, settings):
    """So no separator has a margin above its norm, whether or not there is one."""
    for setting in settings:
        X, codes = stream(60, 4, n_classes=setting.n_classes, noise=0.3, dtype=setting.dtype, seed=2)
        learner = setting.classifier(rule).fit(X, codes)
        for w, (Z, Y), bound, ceiling in zip(
            hypotheses(setting, learner),
            problems(setting, X, codes),
            claims(learner.certificate_, "bound"),
            claims(learner.certificate_, "margin_ceiling"),
            strict=True,
        ):
            point = w / (norm(w) * bound)  # w / Lambda
            columns = (Y[:, None] * Z).T
            _, distance = nnls(np.vstack([columns, np.ones(columns.shape[1])]), np.append(point, 1.0))
            assert distance <= 2e3 * np.finfo(setting.dtype).eps * np.linalg.norm(columns, axis=0).max()
            assert ceiling >= maximal_margin(Z, Y) - 1e-6


def test_ceilings_hold_where_labels_are_noise(rule):
    """More columns than rows: any labels are separable, with a small margin."""
    X, codes = np.random.default_rng(1).normal(size=(24, 30)), np.resize([0, 1, 1], 24)
    best = maximal_margin(X, signs(codes))
    assert best > 0.1
    X, codes = np.tile(X, (4, 1)), np.tile(codes, 4)
    for average, decades in itertools.product((False, True), (0, 3)):
        learner = OnlineClassifier(rule, average=average, fit_intercept=False)
        certificate = learner.fit(X, codes, sample_weight=random_weights(len(X), decades)).certificate_
        assert certificate.margin_ceiling >= best * (1 - 1e-9)
        assert certificate.last.margin_ceiling >= best * (1 - 1e-9)


def test_ceiling_holds_for_the_examples_since_its_class_began(rule):
    for multiclass, noise in itertools.product(("ovr", "joint"), (0.0, 0.2)):
        X, y = late(60, 5, [50, 0, 22, 10], noise=noise)
        X = np.column_stack([X, 3.0 * np.eye(4)[y]])  # so that there is a margin
        X[5::17] = 0.0  # with an intercept, rows of no feature limit the margin too
        learner = OnlineClassifier(rule, average=True, multiclass=multiclass, shuffle=True, random_state=3)
        certificate = learner.partial_fit(X, y).certificate_
        order = np.random.RandomState(3).permutation(60)
        Z, labels = augmented(X, True)[order], y[order]
        for head, since in enumerate(claims(certificate, "since")):
            rows, codes = Z[since:], labels[since:]
            if multiclass == "joint":
                pairs = all_joint_examples(rows, codes, 4)
                margin = maximal_margin(pairs, np.ones(len(pairs)))
            else:
                margin = maximal_margin(rows, signs(codes == head))
            assert margin <= claims(certificate, "margin_ceiling")[head] * (1 + 1e-9) + 1e-9


def test_zero_rows_attain_no_margin():
    X, y = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]), [0, 1, 1]
    learner = OnlineClassifier("mcp", fit_intercept=False).fit(X, y)
    for storage in (np.asarray, csr, lambda X: csr(X, explicit_zeros=True)):
        assert learner.attained_margin(storage(X), y) == pytest.approx(np.sqrt(0.5))


# The first example, and none


def test_first_example_is_a_mistake_and_proves_its_own_length(rule):
    for setting, row in itertools.product(PAIRWISE_SETTINGS, ([3.0, 4.0], [0.0, 0.0])):
        if not any(row) and not setting.fit_intercept:
            continue
        # Without an intercept, rows of no feature are no examples.
        around = [] if setting.fit_intercept else [[0.0, 0.0]]
        X, y = np.array([*around, row, *around]), [*(0 for _ in around), 1, *(0 for _ in around)]
        learner = setting.classifier(rule).partial_fit(X, y, classes=np.arange(setting.n_classes))
        certificate = learner.certificate_
        length = np.linalg.norm([*row, setting.fit_intercept]) * (np.sqrt(2.0) if setting.learning == "joint" else 1)
        ceilings = claims(certificate, "margin_ceiling")
        assert np.all(ceilings >= length * (1 - MARGIN_ROUNDING))
        np.testing.assert_allclose(ceilings, length, rtol=1e-5)
        for name, count in (("seen", len(X)), ("mistakes", 1), ("updates", 1)):
            assert claims(certificate, name).tolist() == [count] * len(ceilings)
        assert learner.predict([row]).tolist() == [1]


def test_one_example_proves_its_own_length_whatever_its_weight(rule):
    for dtype, weight in itertools.product(("float32", "float64"), (1e-12, 0.3, 1e12)):
        learner = OnlineClassifier(rule, fit_intercept=False, dtype=dtype)
        learner.partial_fit([[3.0, 4.0]], [1], classes=[0, 1], sample_weight=[weight])
        assert learner.certificate_.bound == pytest.approx(0.2, rel=1e-6)


def test_nothing_seen_proves_nothing(rule):
    for setting, weight in itertools.product(PAIRWISE_SETTINGS, (0.0, 1.0)):
        if weight and setting.fit_intercept:
            continue
        y = np.arange(8) % setting.n_classes
        # Rows of weight 0 are as if absent; without an intercept, a row without features is seen and teaches nothing.
        X = np.zeros((8, 2)) if weight else np.ones((8, 2))
        learner = setting.classifier(rule).partial_fit(X, y, sample_weight=np.full(8, weight))
        certificate = learner.certificate_
        assert not claims(certificate, "bound").any()
        assert np.all(np.isinf(claims(certificate, "margin_ceiling")))
        assert not claims(certificate, "mistakes").any()
        assert not learner.coef_.any()
        assert not learner.intercept_.any()
        assert learner.n_seen_ == 8 * weight
        assert learner.classes_.tolist() == list(range(setting.n_classes))
        assert learner.predict(np.ones((1, 2))).tolist() == [0]
        assert setting.learning == "ovr" or "nothing yet" in repr(certificate)


def test_asking_for_a_certificate_changes_nothing(rule, settings):
    for setting in settings:
        X, y = stream(60, 5, n_classes=setting.n_classes, noise=0.3, dtype=setting.dtype)
        asked, unasked = setting.classifier(rule), setting.classifier(rule)
        for start in range(0, 60, 7):
            rows = slice(start, start + 7)
            for learner in (asked, unasked):
                learner.partial_fit(X[rows], y[rows], classes=np.arange(setting.n_classes))
            assert np.all(claims(asked.certificate_, "best_bound") > 0.0)
        assert everything(asked) == everything(unasked), setting


# Mistake budgets


@pytest.mark.parametrize("name", BUDGETED)
def test_mistakes_to_come_are_within_the_budget(name):
    for setting in PAIRWISE_SETTINGS:
        if setting.average:
            continue
        X, codes, _ = separable_in(setting, 40, seed=2)
        solved = problems(setting, X, codes)
        margins = np.array([maximal_margin(Z, Y) for Z, Y in solved]) * (1 - 1e-5)
        radius = max(np.linalg.norm(Z, axis=1).max() for Z, _ in solved) * (1 + 1e-9)
        X, codes, history = np.tile(X, (4, 1)), np.tile(codes, 4), []
        learner = setting.classifier(name)
        for start in range(0, len(X), 5):
            some = slice(start, start + 5)
            learner.partial_fit(X[some], codes[some], classes=np.arange(setting.n_classes))
            certificate = learner.certificate_
            budget = [np.atleast_1d(certificate.mistake_budget(margin, radius)) for margin in margins]
            history.append((claims(certificate, "mistakes"), np.diag(budget) if len(budget) > 1 else budget[0]))
        total = history[-1][0]
        for mistakes, budget in history:
            assert np.all(total - mistakes <= budget + 1e-6)
        assert np.all(total <= (radius / margins) ** 2 / RULES[name].gain + 1e-6)  # Theorem 10
        refuted = certificate.mistake_budget(1.01 * claims(certificate, "margin_ceiling").max(), radius)
        assert np.all(np.isnan(refuted))


def test_budget_needs_a_positive_margin_and_radius():
    certificate = OnlineClassifier("mcp").fit(*clusters(20, 2)).certificate_
    for margin, radius in ((0.0, 1.0), (1.0, -1.0), (np.nan, 1.0), (1.0, np.inf)):
        with pytest.raises(ValueError, match="must be a positive number"):
            certificate.mistake_budget(margin, radius)


@pytest.mark.parametrize("name", [name for name in RULES if name not in BUDGETED])
def test_other_rules_have_no_budget(name):
    for multiclass in ("ovr", "joint"):
        certificate = OnlineClassifier(name, multiclass=multiclass).fit(*clusters(20)).certificate_
        with pytest.raises(ValueError, match="no mistake budget"):
            certificate.mistake_budget(0.1, 1.0)


@pytest.mark.parametrize("name", BUDGETED)
def test_weighted_steps_have_no_mistake_budget(name):
    X, codes, _ = separable(60, 4)
    for weight in (2.0, 0.5, 1.0 + 1e-15):
        learner = OnlineClassifier(name, fit_intercept=False).fit(X, codes, sample_weight=np.ones(60))
        assert learner.certificate_.mistake_budget(1e-3, 1.0) > 0.0
        learner.partial_fit(X[:1], codes[:1], sample_weight=[weight])
        certificate = learner.certificate_
        assert certificate.weighted
        assert certificate.own_bound is None
        assert "steps were weighted" in repr(certificate)
        with pytest.raises(ValueError, match="sample_weight or class_weight"):
            certificate.mistake_budget(1e-3, 1.0)
        with pytest.raises(ValueError, match="sample_weight or class_weight"):  # it stays weighted
            learner.partial_fit(X, codes).certificate_.mistake_budget(1e-3, 1.0)


@pytest.mark.parametrize("name", BUDGETED)
def test_rows_of_weight_0_cost_no_mistake_budget(name):
    X, codes, _ = separable(60, 4)
    learner = OnlineClassifier(name).fit(X, codes, sample_weight=(np.arange(60) % 3 > 0).astype(float))
    assert not learner.certificate_.weighted
    assert learner.certificate_.mistake_budget(1e-3, 1.0) > 0.0


# What a certificate shows


def test_joint_certificate_is_one_for_all_classes_and_says_so(some_rule):
    X, y = stream(60, 5, n_classes=4)
    for average in (False, True):
        certificate = OnlineClassifier(some_rule, average=average, multiclass="joint").fit(X, y).certificate_
        assert certificate.joint
        assert certificate.classes is None
        numbers = ("coef_sum", "norm", "bound", "best_bound", "margin_ceiling", "since", "seen", "mistakes")
        assert all(np.isscalar(getattr(certificate, number)) for number in numbers)
        assert f"joint {some_rule} hypothesis" in repr(certificate)
        assert "no weights tell the classes of the 60 examples seen apart" in repr(certificate)
        assert "once for each class" in repr(certificate)


def test_certificate_shows_from_which_example_a_late_class_counts():
    X, y = late(1300, 5, [0, 1, 2, 1234])
    learner = OnlineClassifier().partial_fit(X[:2], y[:2])
    assert "from example" not in repr(learner.certificate_)
    shown = repr(learner.partial_fit(X[2:], y[2:]).certificate_).splitlines()
    header = next(line for line in shown if line.lstrip().startswith("class"))
    assert header.endswith("from example")
    rows = shown[shown.index(header) + 1 :]
    assert [line.split()[-1] for line in rows] == ["1", "1", "3", "1,235"]
    named = OnlineClassifier().partial_fit(X, y, classes=[0, 1, 2, 3])
    assert "from example" not in repr(named.certificate_)


def test_average_is_certified_beside_the_last_hypothesis(some_rule):
    X, y = stream(100, 6)
    certificate = OnlineClassifier(some_rule, average=True).fit(X, y).certificate_
    plain = OnlineClassifier(some_rule).fit(X, y).certificate_
    assert certificate.averaged
    assert not certificate.last.averaged
    assert plain.last is plain
    assert certificate.best_bound >= plain.best_bound * (1 - 1e-9)
