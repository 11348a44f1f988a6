"""Input that cannot be learnt from is refused with a message that helps, and leaves no trace."""

import itertools
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from maxcosine import OnlineClassifier
from tests.learners import STORAGES, attributes, everything, learnt, points

LEARNERS = [
    OnlineClassifier("mcp"),
    OnlineClassifier("aggressive_romma", average=True, grow_features=True),
    OnlineClassifier("norma", shuffle=True, random_state=0),
]
BOTH = ("fit", "partial_fit")


class Case(NamedTuple):
    name: str
    spoil: Callable  # (X, y) -> X, y
    match: str
    calls: tuple[str, ...] = BOTH


def cell(value, row, storage, dtype=np.float64):
    def spoil(X, y):
        X = X.astype(dtype)
        X[row, 2] = value
        return STORAGES[storage](X), y

    return spoil


def norm(value, row, storage, dtype=np.float64):
    def spoil(X, y):
        X = X.astype(dtype)
        X[row] *= value / np.linalg.norm(X[row])
        return STORAGES[storage](X), y

    return spoil


def values():
    """Values and norms that no weight could carry, in the first row and the last, dense and sparse."""
    for storage in STORAGES:
        for row in (0, 119):
            where = f"{storage}, row {row}"
            yield Case(f"NaN, {where}", cell(np.nan, row, storage), rf"NaN in row {row}; .*drop the row")
            for sign in (1, -1):
                infinity = cell(sign * np.inf, row, storage)
                yield Case(
                    f"{sign:+d} inf, {where}",
                    infinity,
                    rf"infinity or a value too large for float\d\d in row {row}; drop the row",
                )
            for value in (1e-200, 1e200):
                match = rf"Row {row} of X has the norm {re.escape(f'{value:g}')};.*Rescale"
                yield Case(f"norm {value}, {where}", norm(value, row, storage), match)


def labels(*given, dtype=object):
    return lambda X, y: (X[: len(given)], np.array(given, dtype=dtype))


CASES = [
    *values(),
    Case("norm 1e13 in float32", norm(1e13, 7, "dense", np.float32), r"norm 1e\+13.*Rescale", ("fit",)),
    Case("1-d X", lambda X, y: (X[:, 0], y), r"Expected 2D array, got 1D array.*[Rr]eshape"),
    Case("3-d X", lambda X, y: (X[None], y), "dim 3"),
    Case("strings in X", lambda X, y: ([["a", "b"]] * len(y), y), "could not convert string to float"),
    Case("complex X", lambda X, y: (X + 1j, y), "Complex data not supported"),
    Case("no rows", lambda X, y: (X[:0], y[:0]), "0 sample"),
    Case("no columns", lambda X, y: (X[:, :0], y), "0 feature"),
    Case("sparse, no rows", lambda X, y: (scipy.sparse.csr_array((0, 6)), y[:0]), "0 sample"),
    Case("fewer labels than rows", lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
    Case("more labels than rows", lambda X, y: (X[:-1], y), "inconsistent numbers of samples"),
    Case("no y", lambda X, y: (X, None), "requires y"),
    Case("NaN label", labels(0.0, 1.0, np.nan, dtype=float), "y contains NaN"),
    Case("NaN among names", labels("a", "b", np.nan), "contains NaN"),
    Case("None among names", labels("a", "b", None, "a"), r"y.*(None|types)"),
    Case(
        "labels of mixed types",
        labels(0, "a", 1, "b"),
        r"y mixes labels of types int, str; make|not among the classes: \['a'",
    ),
    Case(
        "continuous targets",
        lambda X, y: (X, y + 0.5 * X[:, 0]),
        r"Unknown label type: continuous|not among the classes: \[-2",
    ),
    Case("several labels a row", lambda X, y: (X, np.column_stack([y, 1 - y])), "y should be a 1d array"),
    Case("one class only", lambda X, y: (X, 0 * y), r"greater than one; got 1 class: \[0\]", ("fit",)),
    Case(
        "labels of another type",
        lambda X, y: (X, np.array(["no", "yes"])[y]),
        "y mixes labels of types int, str",
        ("partial_fit",),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_refused_call_leaves_a_learner_exactly_as_it_was(case):
    X, y = points()
    for learner, call in itertools.product(LEARNERS, case.calls):
        fitted, twin = (clone(learner).fit(X, y) for _ in range(2))
        before = everything(fitted)
        with pytest.raises(ValueError, match=f"(?s){case.match}"):
            getattr(fitted, call)(*case.spoil(*points(seed=1)))
        assert everything(fitted) == before
        assert learnt(fitted.partial_fit(X, y)) == learnt(twin.partial_fit(X, y))


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_refused_first_call_leaves_a_learner_unfitted(case):
    for call in case.calls:
        learner = OnlineClassifier()
        before = attributes(learner)
        classes = {"classes": [0, 1]} if call == "partial_fit" else {}
        with pytest.raises(ValueError):  # noqa: PT011, the words are tested above
            getattr(learner, call)(*case.spoil(*points()), **classes)
        assert attributes(learner) == before
        with pytest.raises(NotFittedError):
            check_is_fitted(learner)
        with pytest.raises(NotFittedError):
            learner.predict(points()[0])


def test_value_beyond_the_type_of_the_weights_is_named_with_its_row():
    X, y = points()
    learner = OnlineClassifier().fit(X.astype(np.float32), y)
    X[3] *= 1e60
    with pytest.raises(ValueError, match=r"too large for float32 in row 3"):
        learner.partial_fit(X, y)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_predicting_refuses_values_that_are_not_finite(value, storage):
    for call, grow_features in itertools.product(("predict", "decision_function", "score"), (False, True)):
        X, y = points()
        learner = OnlineClassifier(grow_features=grow_features).fit(X, y)
        X[5, 2] = value
        with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
            getattr(learner, call)(storage(X), *([y] if call == "score" else []))


# The classes of partial_fit


@pytest.mark.parametrize(
    ("classes", "match"),
    [
        ([0], r"greater than one; got 1 class: \[0\]"),
        ([], "greater than one; got 0 classes"),
        ([0, 2], r"labels that are not among the classes: \[1\]; the classes are \[0, 2\]"),
        (["no", "yes"], "labels that are not among the classes"),
        (np.array([0, "a"], dtype=object), "classes.*types"),
        ([0, 1, np.nan], "classes.*NaN"),
    ],
    ids=repr,
)
def test_first_partial_fit_needs_all_classes(classes, match):
    learner = OnlineClassifier()
    with pytest.raises(ValueError, match=f"(?s){match}"):
        learner.partial_fit(*points(), classes=classes)
    assert not learner.__sklearn_is_fitted__()


@pytest.mark.parametrize(
    ("classes", "match"),
    [
        ([0], "greater than one"),
        ([0, 2], r"not among the classes: \[1\]"),
        (["no", "yes"], "not among the classes"),
        ([2, 0, 3], r"not among the classes: \[1\]"),
    ],
    ids=repr,
)
def test_later_partial_fit_keeps_the_classes(classes, match):
    X, y = points()
    learner = OnlineClassifier().partial_fit(X, y, classes=[1, 0])
    before = everything(learner)
    with pytest.raises(ValueError, match=match):
        learner.partial_fit(X, y, classes=classes)
    with pytest.raises(ValueError, match=r"lacks classes that the model has: \[1\]"):
        learner.partial_fit(X, 2 * y, classes=[0, 2])
    with pytest.raises(ValueError, match=r"not among the classes: \[2\]; the classes are \[0, 1\]"):
        learner.partial_fit(X, y + 1)
    assert everything(learner) == before
    learner.partial_fit(X, y, classes=(1, 0)).partial_fit(X, y, classes={1, 0})


@pytest.mark.parametrize("y", [[0], [3]], ids=["known class", "new class"])
def test_rows_too_wide_for_memory_leave_the_model_as_it_was(y):
    learner = OnlineClassifier(grow_features=True).partial_fit(np.eye(3), [0, 1, 2])
    before = everything(learner)
    with pytest.raises(MemoryError):
        learner.partial_fit(scipy.sparse.csr_array((1, 2**46)), y)
    assert everything(learner) == before
    learner.partial_fit(np.eye(4), [0, 1, 2, 3])
    assert learner.classes_.tolist() == [0, 1, 2, 3]
    assert learner.n_features_in_ == 4
