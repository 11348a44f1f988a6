"""The values and the words of a certificate. Its theorems are tested in tests/contract."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

from maxcosine import RULES, OnlineClassifier, merge, rule
from maxcosine.certificate_text import rounded_down, rounded_up
from tests.reference import run

BUDGETED = [name for name, rule in RULES.items() if rule.own_bound]
COUNTS = ("seen", "mistakes", "updates")
NUMBERS = ("coef_sum", "norm", "bound", "best_bound", "margin_ceiling", "rounding")

averages = pytest.mark.parametrize("average", [False, True], ids=["last", "average"])


def separable(n_rows=80, n_columns=5, seed=3):
    """Rows that a separator through the origin keeps at a distance, and labels of -1 and 1."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, n_columns))
    y = np.where(X[:, 0] > 0, 1, -1)
    X[:, 0] += 0.5 * y
    return X, y


def certificate(rule="mcp", n_classes=2, **params):
    X, y = separable()
    labels = y if n_classes == 2 else np.arange(len(X)) % n_classes
    return OnlineClassifier(rule, **{"fit_intercept": False, **params}).fit(X, labels).certificate_


@averages
def test_two_classes_have_numbers_and_more_classes_one_number_each(average):
    two, four = (certificate(n_classes=n, average=average, fit_intercept=True) for n in (2, 4))
    for name in (*NUMBERS, *COUNTS):
        assert type(getattr(two, name)) is (int if name in COUNTS else float)
        assert getattr(four, name).shape == (4,)
    assert (two.rule, two.averaged, two.augmented, two.joint) == ("mcp", average, True, False)
    assert certificate(multiclass="joint", n_classes=4).joint


@pytest.mark.parametrize("rule", RULES)
def test_bound_norm_and_ceiling_fit_the_weights(rule):
    X, y = separable()
    for average in (False, True):
        learner = OnlineClassifier(rule, average=average).fit(X, y)
        proven = learner.certificate_
        assert proven.bound == pytest.approx(proven.coef_sum / proven.norm, rel=1e-15)
        # The ceiling is rounded up: it is no less than 1 / best_bound, in exact arithmetic.
        assert Fraction(proven.margin_ceiling) * Fraction(proven.best_bound) >= 1
        assert proven.margin_ceiling == pytest.approx(1.0 / proven.best_bound, rel=1e-15)
        assert proven.best_bound >= proven.bound
        assert proven.norm == pytest.approx(np.linalg.norm([*learner.coef_[0], *learner.intercept_]), rel=1e-14)


@pytest.mark.parametrize("rule", RULES)
def test_numbers_are_those_of_the_reference(rule):
    proven, expected = certificate(rule), run(rule, *separable())
    for name in ("coef_sum", "bound"):
        assert getattr(proven, name) == pytest.approx(getattr(expected, name), rel=1e-9)
    assert proven.bound <= proven.best_bound <= expected.best_bound * (1 + 1e-9)
    for name in COUNTS:
        assert getattr(proven, name) == getattr(expected, name)
    if rule in BUDGETED:
        assert proven.own_bound == pytest.approx(expected.own_bound, rel=1e-9)
    else:
        assert proven.own_bound is expected.own_bound is None


@pytest.mark.parametrize("n_classes", [2, 3])
def test_nothing_is_proven_before_any_update(n_classes):
    proven = OnlineClassifier(fit_intercept=False).fit(np.zeros((9, 2)), np.arange(9) % n_classes).certificate_
    assert np.all(np.isinf(proven.margin_ceiling))
    assert not np.any([proven.bound, proven.best_bound, proven.coef_sum, proven.norm, proven.updates])
    assert np.all(proven.seen == 9)
    assert n_classes > 2 or "proven: nothing yet" in repr(proven)


@averages
def test_a_certificate_is_a_value(average):
    X, y = separable()
    learner = OnlineClassifier(average=average).fit(X, y)
    early = learner.certificate_
    text = repr(early)
    learner.partial_fit(X, y)
    assert repr(early) == text != repr(learner.certificate_)
    assert early == OnlineClassifier(average=average).fit(X, y).certificate_ != learner.certificate_
    with pytest.raises(AttributeError):
        early.bound = 1.0


def test_last_is_the_certificate_of_the_last_hypothesis():
    averaged, last = certificate(average=True), certificate()
    assert averaged.last == last
    assert last.last is last
    assert averaged.last.last is averaged.last


# Words


@averages
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_repr_says_what_is_proven_in_which_space(average, fit_intercept):
    proven = certificate(average=average, fit_intercept=fit_intercept)
    text = repr(proven)
    assert f"no separator of the 80 examples seen has a margin above {rounded_up(proven.margin_ceiling, 6)}" in text
    assert f"at least {rounded_down(proven.bound, 6)} g" in text
    assert ("the features and a constant 1, through the origin" in text) == fit_intercept
    assert ("averaged" in text) == average


def test_repr_of_several_classes_is_a_table():
    proven = certificate(n_classes=4)
    *words, header = repr(proven).splitlines()[:-4]
    assert "no separator of a class from the rest has a margin above its ceiling" in " ".join(words)
    assert " ".join(header.split()) == "class ceiling bound best bound Lambda norm mistakes updates"
    for k, line in enumerate(repr(proven).splitlines()[-4:]):
        label, ceiling, *_, mistakes, updates = line.split()
        assert (int(label), int(mistakes), int(updates)) == (k, proven.mistakes[k], proven.updates[k])
        assert float(ceiling) == pytest.approx(proven.margin_ceiling[k], rel=1e-4)


# The mistakes to come


def test_budget_is_what_the_rules_own_bound_leaves():
    for name in BUDGETED:
        proven = certificate(name)
        margin, radius = proven.margin_ceiling / 2, 3.0
        expected = radius**2 * (1 / margin**2 - proven.own_bound**2)
        found = proven.mistake_budget(margin, radius)
        assert found == pytest.approx(expected, rel=1e-12)
        margin, radius, own = map(Fraction, (margin, radius, proven.own_bound))
        assert Fraction(found) >= radius**2 * (1 / margin**2 - own**2)  # rounded up


def test_budget_of_a_margin_above_the_ceiling_is_nan():
    for n_classes in (2, 4):
        proven = certificate(n_classes=n_classes)
        assert np.all(np.isnan(proven.mistake_budget(2 * np.max(proven.margin_ceiling), 1.0)))
        within = proven.mistake_budget(np.min(proven.margin_ceiling) / 2, 1.0)
        assert np.all(within > 0)
        assert np.shape(within) == np.shape(proven.margin_ceiling)


HALF_STEPS = {"scale_free": True, "own_bound": RULES["mcp_exact"].own_bound}


def half_steps(margin, sq_w, sq_x, coef_sum, state, params):
    """CMCP's step, divided by two: ell^2 gains 2 k (1 - v) - k^2 >= 3/4 for k = 1/2 and v <= 0."""
    if coef_sum == 0.0:
        return 0.0, 1.0, state
    return 1.0, (0.5 * sq_w / (coef_sum * sq_x) if margin <= 0.0 else 0.0), state


@pytest.mark.parametrize("gain", [0.75, 0.5, 1 / 3])
def test_budget_grows_as_the_gain_falls(gain):
    X, y = separable()
    proven = [
        OnlineClassifier(rule(half_steps, gain=one, **HALF_STEPS), fit_intercept=False).fit(X, y).certificate_
        for one in (None, gain)
    ]
    assert [one.gain for one in proven] == [1.0, gain]  # 1 unless given, as the own bound of a rule promises
    margin = proven[0].margin_ceiling / 2
    exact = (1 / Fraction(margin) ** 2 - Fraction(proven[1].own_bound) ** 2) * 9 / Fraction(gain)
    assert exact <= Fraction(proven[1].mistake_budget(margin, 3.0)) <= exact * (1 + Fraction(1, 10**12))
    assert proven[1].mistake_budget(margin, 3.0) == pytest.approx(proven[0].mistake_budget(margin, 3.0) / gain)


def test_gain_is_that_of_the_rule_unless_steps_were_weighted():
    X, y = separable()
    for name, one in RULES.items():
        learner = OnlineClassifier(name).fit(X, y)
        assert learner.certificate_.gain == one.gain
        assert learner.partial_fit(X[:1], y[:1], sample_weight=[3.0]).certificate_.gain is None


def test_error_names_the_rules_that_have_a_budget():
    for name in {*RULES} - {*BUDGETED}:
        with pytest.raises(ValueError, match=rf"rule '{name}' has no mistake budget.*: {', '.join(BUDGETED)}$"):
            certificate(name).mistake_budget(1.0, 1.0)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_repr_says_how_many_mistakes_the_rule_can_make(n_classes):
    line = "mistakes on examples of norm <= R that a separator of margin g separates: at most {}(R / g)^2, in real"
    for name, one in RULES.items():
        assert (line.format("") in repr(certificate(name, n_classes))) == (one.gain is not None)
    half = rule(half_steps, gain=0.75, **HALF_STEPS)
    assert line.format("1.34 ") in repr(certificate(half, n_classes))
    X, y = separable()
    merged = merge([OnlineClassifier().fit(X[part], y[part]) for part in (slice(40), slice(40, 80))])
    assert "at most" not in repr(merged.certificate_)


# The margin attained


@pytest.mark.parametrize("storage", [np.array, scipy.sparse.csr_array, "explicit"])
def test_attained_margin_counts_zero_rows_where_they_are_examples(storage):
    """With an intercept, in every storage: there the row is (0, 1). Without one it has no direction."""
    X, y = separable()
    rows = np.vstack([X, np.zeros((1, X.shape[1]))])
    if storage == "explicit":
        stored = scipy.sparse.csr_array(np.where(rows == 0.0, 1.0, rows))
        stored.data[-X.shape[1] :] = 0.0
    else:
        stored = storage(rows)
    for label, fit_intercept in itertools.product((-1, 1), (False, True)):
        learner = OnlineClassifier(passes=20, fit_intercept=fit_intercept).fit(X, y)
        attained = learner.attained_margin(stored, np.append(y, label))
        of_zero_row = label * learner.intercept_[0] / learner.certificate_.norm if fit_intercept else np.inf
        assert attained == pytest.approx(min(learner.attained_margin(X, y), of_zero_row))
        learner = OnlineClassifier(passes=20, fit_intercept=fit_intercept).fit(stored, np.append(y, label))
        assert learner.attained_margin(stored, np.append(y, label)) <= learner.certificate_.margin_ceiling


def test_no_margin_is_attained_on_rows_that_are_no_examples():
    learner = OnlineClassifier(fit_intercept=False).fit(*separable())
    with pytest.raises(ValueError, match="no margin is attained: X has only zero rows, or the hypothesis is 0"):
        learner.attained_margin(np.zeros((2, 5)), [-1, 1])
