"""Labels: which classes there are, and which of them each row has."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from maxcosine.model import in_order_of_appearance

FIRST_LABELS = 1000
FEW_CLASSES = 32


class SortedLabelsWarning(UserWarning):
    """One pass over rows sorted by class learns one class after the other, and forgets."""


def classes_and_codes(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes in order, and the position of each label among them."""
    # The first labels mostly hold every class, and comparing is faster than sorting all of y.
    classes = np.unique(y[:FIRST_LABELS])
    codes = _codes(y, classes)
    if (codes < 0).any():
        classes = np.unique(y)
        codes = _codes(y, classes)
    _refuse_continuous(classes)
    return classes, codes


def _refuse_continuous(labels: np.ndarray) -> None:
    """Numbers that are not whole are no classes."""
    whole = labels.dtype.kind == "f" and np.array_equal(labels, np.floor(labels))
    if whole or labels.dtype.kind in "biuU":
        return
    with warnings.catch_warnings():
        # scikit-learn takes many different labels for a regression, and these are all different.
        warnings.simplefilter("ignore", UserWarning)
        check_classification_targets(labels)


def refuse_mixed_types(labels: Any, name: str) -> None:
    """NumPy would make strings of all labels, or fail to sort them."""
    plain = isinstance(labels, (list, tuple))
    if not plain and getattr(labels, "dtype", None) != np.dtype(object):
        return
    kinds = {type(label) for label in labels}
    if len({issubclass(kind, str) for kind in kinds}) < 2:
        return
    if any(isinstance(label, float) and label != label for label in labels):
        raise ValueError(f"{name} contains NaN among its labels; drop these rows")
    found = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise ValueError(f"{name} mixes labels of types {found}; make them all strings or all numbers")


def _codes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The position of each label in `classes`, which are sorted; -1 if it is not among them."""
    if len(classes) == 2:
        second = y == classes[1]
        return np.where((y == classes[0]) | second, second.astype(np.int64), -1)
    if len(classes) <= FEW_CLASSES:
        codes = np.full(len(y), -1)
        for code, label in enumerate(classes):
            codes += (code + 1) * (y == label)
        return codes
    try:
        codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    except TypeError:
        return np.full(len(y), -1)
    return np.where(classes[codes] == y, codes, -1)


def known_codes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The position of each label in `classes`; a label that is not among them is an error."""
    codes = _codes(y, classes)
    if (codes < 0).any():
        raise unknown_labels(np.unique(np.asarray(y)[codes < 0]), classes)
    return codes


def unknown_labels(labels: np.ndarray, classes: np.ndarray) -> ValueError:
    return ValueError(
        f"y holds labels that are not among the classes: {labels[:5].tolist()}; "
        f"the classes are {classes.tolist()}"
    )


def labels_to_come(y: np.ndarray, named: np.ndarray | None, known: np.ndarray | None) -> np.ndarray:
    """The classes that a model is to get before it learns from y, in the order in which they come.

    `named` are the classes that the caller says there are, `known` those that the model has.
    """
    if named is None:
        labels = in_order_of_appearance(y if known is None else y[_codes(y, known) < 0])
        if len(labels):
            _refuse_continuous(labels)
    else:
        refuse_few_classes(named)
        known_codes(y, named)
        missing = [] if known is None else [label for label in known.tolist() if label not in named.tolist()]
        if missing:
            raise ValueError(
                f"classes={named.tolist()!r} lacks classes that the model has: {missing[:5]}; "
                "classes may become more, not fewer"
            )
        labels = named if known is None else named[_codes(named, known) < 0]
    if known is not None and len(labels):
        refuse_mixed_types([*known[:1].tolist(), *labels[:1].tolist()], "y")
        together = np.concatenate([known, labels])
        if len(np.unique(together)) < len(together):
            raise ValueError(
                f"labels of types {known.dtype} and {labels.dtype} cannot be told apart as {together.dtype}; "
                "give all labels in one type"
            )
    return labels


def given_classes(classes: Any) -> np.ndarray:
    """The classes that a caller named, in order."""
    given = classes if isinstance(classes, np.ndarray) else list(classes)
    refuse_mixed_types(given, "classes")
    given = np.unique(given)
    if given.dtype.kind == "f" and np.isnan(given).any():
        raise ValueError("classes holds NaN, which is no class; leave it out")
    _refuse_continuous(given)
    return given


def refuse_few_classes(classes: np.ndarray) -> None:
    if len(classes) < 2:
        raise ValueError(
            f"The number of classes has to be greater than one; got {len(classes)} class"
            f"{'' if len(classes) == 1 else 'es'}: {classes.tolist()}"
        )


def warn_if_sorted(codes: np.ndarray, n_classes: int) -> None:
    runs = 1 + int(np.count_nonzero(codes[1:] != codes[:-1]))
    if runs == n_classes and len(codes) > 2 * n_classes:
        warnings.warn(
            "the rows are sorted by class, and one pass in this order learns one class after the "
            "other; set shuffle=True, or shuffle the rows",
            SortedLabelsWarning,
            stacklevel=4,
        )
