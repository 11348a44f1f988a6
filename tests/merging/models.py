"""Models to merge, and the points that they are."""

import functools

import numpy as np
import pytest

from maxcosine import RULES, OnlineClassifier
from tests.contract.streams import augmented, signs
from tests.reference import all_joint_examples, maximal_margin

# One rule that restarts, one that decays, one that is scale-free with a state, one that is none of it.
DIFFERENT = ("aggressive_romma", "norma", "mcp", "pa1")

every_rule = pytest.mark.parametrize("name", RULES)
some_rules = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in DIFFERENT)) for name in RULES]
)
both_kinds = pytest.mark.parametrize("multiclass", ["ovr", "joint"])
averaged_or_not = pytest.mark.parametrize("average", [False, True], ids=["last", "averaged"])


def parts(name, X, y, k=3, **options):
    """k models, each learnt on every k-th row."""
    classes = np.unique(y)
    return [OnlineClassifier(name, **options).partial_fit(X[i::k], y[i::k], classes=classes) for i in range(k)]


def of_one_example(name, a, label=1):
    model = OnlineClassifier(name, fit_intercept=False)
    return model.partial_fit(np.atleast_2d(a), [label], classes=[0, 1])


def points(learner):
    """The points u = w / Lambda of the hypotheses that predict, constant weights included."""
    heads = learner.model_.heads
    w, constant = heads.hypotheses()
    rows = np.column_stack([w, constant]).astype(np.float64)
    return rows.reshape(len(heads.table), -1) / heads.coef_sum[:, None]


def assert_same_points(learner, other, tolerance=1e-12):
    assert learner.classes_.tolist() == other.classes_.tolist()
    expected = points(other)
    assert np.abs(points(learner) - expected).max() <= tolerance * np.abs(expected).max()


@functools.cache
def clusters():
    """Rows of three classes that are separable, one against the rest and jointly, and their best margins."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 90)
    X = 3.0 * np.eye(3)[y] + 0.3 * rng.normal(size=(90, 3))
    Z = augmented(X, True)
    ovr = np.array([maximal_margin(Z, signs(y == code)) for code in range(3)])
    pairs = all_joint_examples(Z, y, 3)
    return X, y, {"ovr": ovr, "joint": maximal_margin(pairs, np.ones(len(pairs)))}
