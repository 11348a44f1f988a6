"""What a certificate says, and what it refuses to say."""

import numpy as np
import pytest
import scipy.sparse

from maxcosine import RULES, OnlineClassifier
from tests.reference import attained_margin, maximal_margin, run

BUDGETED = ["romma", "aggressive_romma", "naromma", "cmcp", "mcp", "mcp_exact"]
NUMBERS = ["coef_sum", "norm", "bound", "best_bound", "margin_ceiling", "seen", "mistakes", "updates"]

every_rule = pytest.mark.parametrize("rule", RULES)
averages = pytest.mark.parametrize("average", [False, True], ids=["last", "average"])
intercepts = pytest.mark.parametrize("fit_intercept", [False, True], ids=["plain", "augmented"])


def separable(n_rows=80, n_columns=5, seed=3):
    """Rows that some separator through the origin keeps at a distance, and labels of -1 and 1."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, n_columns))
    y = np.where(X[:, 0] > 0, 1, -1)
    X[:, 0] += 0.5 * y
    return X, y


def certificate(rule, average=False, fit_intercept=False, n_classes=2):
    X, y = separable()
    labels = y if n_classes == 2 else np.arange(len(X)) % n_classes
    return OnlineClassifier(rule, average=average, fit_intercept=fit_intercept).fit(X, labels).certificate_


# Fields


@every_rule
@averages
@intercepts
def test_two_classes_have_numbers(rule, average, fit_intercept):
    proven = certificate(rule, average, fit_intercept)
    for name in NUMBERS:
        assert type(getattr(proven, name)) is (int if name in ("seen", "mistakes", "updates") else float)
    assert proven.rule == rule
    assert proven.averaged is average
    assert proven.augmented is fit_intercept


@every_rule
@averages
@intercepts
def test_more_classes_have_one_number_each(rule, average, fit_intercept):
    proven = certificate(rule, average, fit_intercept, n_classes=4)
    for name in NUMBERS:
        assert getattr(proven, name).shape == (4,)
    assert proven.seen.tolist() == [80] * 4


@every_rule
@averages
@pytest.mark.parametrize("n_classes", [2, 4])
def test_bound_is_lambda_over_norm_and_the_ceiling_is_one_over_the_best(rule, average, n_classes):
    proven = certificate(rule, average, n_classes=n_classes)
    assert np.allclose(proven.bound, proven.coef_sum / proven.norm, rtol=1e-15)
    assert np.array_equal(proven.margin_ceiling, 1.0 / proven.best_bound)
    assert np.all(proven.bound <= proven.best_bound)
    assert np.all(proven.last.best_bound * (1 - 1e-9) <= proven.best_bound)


@every_rule
@averages
@intercepts
def test_norm_is_that_of_the_weights_with_the_constant_one(rule, average, fit_intercept):
    X, y = separable()
    learner = OnlineClassifier(rule, average=average, fit_intercept=fit_intercept).fit(X, y)
    weights = [*learner.coef_[0], *learner.intercept_]
    assert np.isclose(learner.certificate_.norm, np.linalg.norm(weights), rtol=1e-14)


@every_rule
def test_numbers_are_those_of_the_reference(rule):
    X, y = separable()
    proven, expected = certificate(rule), run(rule, X, y)
    for name in ("coef_sum", "bound", "best_bound", "own_bound"):
        if getattr(expected, name) is not None:
            assert np.isclose(getattr(proven, name), getattr(expected, name), rtol=1e-9)
    assert (proven.own_bound is None) == (expected.own_bound is None) == (rule not in BUDGETED)
    for name in ("seen", "mistakes", "updates"):
        assert getattr(proven, name) == getattr(expected, name)


@every_rule
@averages
@intercepts
def test_ceiling_is_at_least_the_maximal_margin(rule, average, fit_intercept):
    X, y = separable()
    seen = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    assert certificate(rule, average, fit_intercept).margin_ceiling >= maximal_margin(seen, y) * (1 - 1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_ceiling_is_infinite_before_any_update(n_classes):
    zeros, labels = np.zeros((9, 2)), np.arange(9) % n_classes
    proven = OnlineClassifier().fit(zeros, labels).certificate_
    assert np.all(np.isinf(proven.margin_ceiling))
    assert not np.any([proven.bound, proven.best_bound, proven.coef_sum, proven.norm])
    assert not np.any([proven.mistakes, proven.updates])
    assert np.all(proven.seen == 9)


@averages
def test_certificate_is_a_value(average):
    X, y = separable()
    learner = OnlineClassifier(average=average).fit(X, y)
    early = learner.certificate_
    text = repr(early)
    learner.partial_fit(X, y)
    assert repr(early) == text != repr(learner.certificate_)
    assert learner.certificate_ == learner.certificate_
    with pytest.raises(AttributeError):
        early.bound = 1.0


@every_rule
def test_last_is_the_certificate_of_the_last_hypothesis(rule):
    averaged, last = certificate(rule, average=True), certificate(rule)
    assert averaged.last == last
    assert last.last is last
    assert averaged.last.last is averaged.last


# Words


@every_rule
@averages
@intercepts
def test_repr_states_what_is_proven_and_where(rule, average, fit_intercept):
    proven = certificate(rule, average, fit_intercept)
    text = repr(proven)
    assert f"no separator of the 80 examples seen has a margin above {proven.margin_ceiling:.6g}" in text
    assert f"at least {proven.bound:.6g}" in text
    assert ("the features and a constant 1, through the origin" in text) == fit_intercept
    assert "the features" in text
    assert ("averaged" in text) == average
    assert rule in text


@intercepts
def test_repr_of_more_classes_has_a_line_for_each(fit_intercept):
    proven = certificate("mcp", fit_intercept=fit_intercept, n_classes=4)
    *words, header = repr(proven).splitlines()[:-4]
    assert "no separator of a class from the rest has a margin above its ceiling" in " ".join(words)
    assert ("and a constant 1" in " ".join(words)) == fit_intercept
    assert header.split() == [
        "class",
        "ceiling",
        "bound",
        "best",
        "bound",
        "Lambda",
        "norm",
        "mistakes",
        "updates",
    ]
    for k, line in enumerate(repr(proven).splitlines()[-4:]):
        head, ceiling, *_, mistakes, updates = line.split()
        assert (int(head), int(mistakes), int(updates)) == (k, proven.mistakes[k], proven.updates[k])
        assert np.isclose(float(ceiling), proven.margin_ceiling[k], rtol=1e-4)


def test_repr_claims_nothing_before_any_update():
    proven = OnlineClassifier().fit(np.zeros((2, 2)), [0, 1]).certificate_
    assert "nothing yet" in repr(proven)


# The mistakes to come


@pytest.mark.parametrize("rule", BUDGETED)
@averages
def test_budget_is_what_the_rules_own_bound_leaves(rule, average):
    proven = certificate(rule, average)
    margin, radius = proven.margin_ceiling / 2, 3.0
    expected = radius**2 * (1 / margin**2 - proven.own_bound**2)
    assert np.isclose(proven.mistake_budget(margin, radius), expected, rtol=1e-12)
    assert type(proven.mistake_budget(margin, radius)) is float


@pytest.mark.parametrize("rule", BUDGETED)
def test_budget_holds_for_the_mistakes_that_come(rule):
    X, y = separable(n_rows=400)
    margin, radius = maximal_margin(X, y), np.linalg.norm(X, axis=1).max()
    learner = OnlineClassifier(rule, fit_intercept=False).fit(X[:50], y[:50])
    before = learner.certificate_
    learner.partial_fit(X[50:], y[50:])
    assert learner.mistakes_ - before.mistakes <= before.mistake_budget(margin * (1 - 1e-9), radius)


@pytest.mark.parametrize("rule", BUDGETED)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_budget_of_a_margin_above_the_ceiling_is_nan(rule, n_classes):
    proven = certificate(rule, n_classes=n_classes)
    assert np.all(np.isnan(proven.mistake_budget(2 * np.max(proven.margin_ceiling), 1.0)))
    within = proven.mistake_budget(np.min(proven.margin_ceiling) / 2, 1.0)
    assert np.all(within > 0)
    assert np.shape(within) == np.shape(proven.margin_ceiling)


@pytest.mark.parametrize("rule", sorted(set(RULES) - set(BUDGETED)))
def test_rules_without_a_budget_say_so(rule):
    with pytest.raises(ValueError, match=f"rule '{rule}' has no mistake budget.*mcp"):
        certificate(rule).mistake_budget(0.1, 1.0)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("name", ["margin", "radius"])
def test_budget_of_what_is_not_positive_is_refused(name, value):
    with pytest.raises(ValueError, match=f"{name}={value} must be a positive number"):
        certificate("mcp").mistake_budget(**{"margin": 0.01, "radius": 1.0} | {name: value})


# The margin attained, from below


@every_rule
@averages
@intercepts
def test_maximal_margin_lies_between_the_attained_one_and_the_ceiling(rule, average, fit_intercept):
    X, y = separable()
    seen = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    learner = OnlineClassifier(rule, average=average, fit_intercept=fit_intercept, passes=20).fit(X, y)
    w = np.array([*learner.coef_[0], *learner.intercept_])[: seen.shape[1]]
    attained = learner.attained_margin(X, y)
    assert np.isclose(attained, attained_margin(w, seen, y), rtol=1e-9)
    best = maximal_margin(seen, y)
    assert attained <= best * (1 + 1e-9) <= learner.certificate_.margin_ceiling * (1 + 2e-9)


@pytest.mark.parametrize("storage", [np.array, scipy.sparse.csr_array, "explicit"])
def test_attained_margin_skips_zero_rows_however_they_are_stored(storage):
    X, y = separable()
    learner = OnlineClassifier(passes=20).fit(X, y)
    rows = np.vstack([X, np.zeros((1, X.shape[1]))])
    if storage == "explicit":
        stored = scipy.sparse.csr_array(np.where(rows == 0.0, 1.0, rows))
        stored.data[-X.shape[1] :] = 0.0
    else:
        stored = storage(rows)
    for label in (-1, 1):
        assert np.isclose(learner.attained_margin(stored, np.append(y, label)), learner.attained_margin(X, y))
