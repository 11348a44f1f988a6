"""Section 6 of the theory: what Lambda / norm(w) proves, at every step, for every rule."""

import numpy as np
import pytest
from sklearn.svm import SVC

from maxcosine import RULES, OnlineClassifier
from tests.contract.streams import (
    augmented,
    averaged_or_not,
    both_types,
    every_rule,
    every_storage,
    new_model,
    one_by_one,
    separable,
    signs,
    stacked,
    taught,
    teach,
    with_intercept_or_not,
)
from tests.reference import attained_margin, maximal_margin

ROUNDING = {"float32": 1e-5, "float64": 1e-12}
BUDGETED = [name for name, rule in RULES.items() if rule.own_bound]


def svm_margin(Z, Y):
    """The maximal margin through the origin, by a hard-margin SVM on the examples and their mirror images."""
    mirrored = np.vstack([Y[:, None] * Z, -Y[:, None] * Z]).astype(np.float64)
    svm = SVC(kernel="linear", C=1e10, tol=1e-9).fit(mirrored, np.repeat([1, -1], len(Z)))
    return 1.0 / np.linalg.norm(svm.coef_)


def hypothesis(model):
    heads = model.heads
    return stacked(heads.averaged_weights() if heads.average else heads.weights())[0]


@every_rule
@both_types
@with_intercept_or_not
@averaged_or_not
def test_cosine_to_the_separator_is_at_least_gamma_ell(name, dtype, fit_intercept, average):
    X, codes, w_star = separable(150, 5, fit_intercept=fit_intercept, dtype=dtype)
    gamma = (signs(codes) * (augmented(X, fit_intercept) @ w_star)).min()
    best_of_last = 0.0
    for model in one_by_one(new_model(name, X, fit_intercept=fit_intercept, average=average), X, codes):
        w, certificate = hypothesis(model)[: len(w_star)], model.certificate()
        cosine = np.dot(w, w_star) / np.linalg.norm(w)
        assert cosine >= gamma * certificate.bound - ROUNDING[dtype]
        assert certificate.best_bound >= certificate.bound
        assert certificate.last.best_bound >= best_of_last * (1 - ROUNDING[dtype])
        best_of_last = certificate.last.best_bound
        assert gamma <= certificate.margin_ceiling * (1 + ROUNDING[dtype])


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "intercept"])
def solved(request):
    """A separable set, and its maximal margin by two independent programs."""
    X, codes, _ = separable(80, 4, margin=0.05, fit_intercept=request.param, seed=1)
    Z, Y = augmented(X, request.param), signs(codes)
    margin = svm_margin(Z, Y)
    assert margin == pytest.approx(maximal_margin(Z, Y), rel=1e-5)
    return X, codes, request.param, margin


@every_rule
@both_types
@averaged_or_not
def test_maximal_margin_lies_between_the_attained_one_and_the_ceiling(name, dtype, average, solved):
    X, codes, fit_intercept, margin = solved
    X = X.astype(dtype)
    learner = OnlineClassifier(name, average=average, fit_intercept=fit_intercept, passes=20).fit(X, codes)
    attained = learner.attained_margin(X, codes)
    w = stacked((learner.coef_, learner.intercept_))[0, : X.shape[1] + fit_intercept]
    Z = augmented(X, fit_intercept).astype(np.float64)
    assert attained == pytest.approx(attained_margin(w, Z, signs(codes)), abs=ROUNDING[dtype])
    assert attained <= margin + 1e-5 * margin
    assert margin <= learner.certificate_.margin_ceiling * (1 + 1e-5)
    assert margin <= learner.certificate_.last.margin_ceiling * (1 + 1e-5)


@every_rule
def test_ceiling_holds_for_each_class_against_the_rest(name):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, 120)
    X = 3.0 * np.eye(4)[codes] + 0.3 * rng.normal(size=(120, 4))
    learner = OnlineClassifier(name, passes=3, average=True).fit(X, codes)
    attained = learner.attained_margin(X, codes)
    for head in range(4):
        margin = maximal_margin(augmented(X, True), signs(codes == head))
        assert margin > 0.1
        assert attained[head] <= margin * (1 + 1e-9)
        assert margin <= learner.certificate_.margin_ceiling[head] * (1 + 1e-9)


@every_storage
def test_zero_rows_attain_no_margin(storage):
    X = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    y = [0, 1, 1]
    learner = OnlineClassifier("mcp", fit_intercept=False).fit(X, y)
    assert learner.attained_margin(storage(X), y) == pytest.approx(np.sqrt(0.5))


@pytest.mark.parametrize("name", BUDGETED)
@both_types
@with_intercept_or_not
def test_mistakes_to_come_are_within_the_budget(name, dtype, fit_intercept):
    X, codes, _ = separable(120, 8, margin=0.05, fit_intercept=fit_intercept, dtype=dtype, seed=2)
    Z = augmented(X, fit_intercept).astype(np.float64)
    radius = np.linalg.norm(Z, axis=1).max() * (1 + 1e-9)
    margin = maximal_margin(Z, signs(codes)) * (1 - 1e-5)
    X, codes = np.tile(X, (4, 1)), np.tile(codes, 4)
    history = []
    for model in one_by_one(new_model(name, X, fit_intercept=fit_intercept), X, codes):
        certificate = model.certificate()
        history.append((certificate.mistakes, certificate.mistake_budget(margin, radius)))
    mistakes, budget = np.array(history).T
    assert np.all(mistakes[-1] - mistakes <= budget + 1e-6)
    assert mistakes[-1] <= (radius / margin) ** 2  # Theorem 10


@pytest.mark.parametrize("name", BUDGETED)
def test_a_refuted_margin_has_no_budget(name):
    model = taught(name, np.array([[3.0, 4.0]]), [1])
    assert np.isnan(model.certificate().mistake_budget(5.1, 5.0))
    for margin, radius in ((0.0, 1.0), (1.0, -1.0), (np.nan, 1.0), (1.0, np.inf)):
        with pytest.raises(ValueError, match="must be a positive number"):
            model.certificate().mistake_budget(margin, radius)


@pytest.mark.parametrize("name", [name for name in RULES if name not in BUDGETED])
def test_other_rules_have_no_budget(name):
    X, codes, _ = separable(20, 3)
    with pytest.raises(ValueError, match="no mistake budget"):
        taught(name, X, codes).certificate().mistake_budget(0.1, 1.0)


@every_rule
def test_nothing_seen_proves_nothing(name):
    X = np.zeros((3, 2))
    certificate = teach(new_model(name, X, average=True), X, [0, 1, 1]).certificate()
    assert (certificate.bound, certificate.margin_ceiling, certificate.seen) == (0.0, np.inf, 3)
