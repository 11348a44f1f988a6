"""Checks of labels: what can be a class, and which classes a model gets."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from maxcosine.labels import LARGEST_EXACT, LabelEncoder, changed_label, encode, in_order_of_appearance, united


class SortedLabelsWarning(UserWarning):
    """One pass over rows sorted by class learns one class after the other, and forgets."""


def classes_and_codes(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted classes, at least two, and the code of each label."""
    classes, codes = encode(y)
    _refuse_continuous(classes)
    _refuse_few_classes(classes)
    return classes, codes


def _refuse_continuous(labels: np.ndarray) -> None:
    """Refuse numbers that are not whole: they are not classes."""
    whole = labels.dtype.kind == "f" and np.array_equal(labels, np.floor(labels))
    if whole or labels.dtype.kind in "biuU":
        return
    with warnings.catch_warnings():
        # scikit-learn warns of many distinct labels, and these are all distinct.
        warnings.simplefilter("ignore", UserWarning)
        check_classification_targets(labels)


def refuse_mixed_types(labels: Any, name: str) -> None:
    """Refuse labels that NumPy would change when it gives them one type, and strings among other labels."""
    plain = isinstance(labels, (list, tuple))
    if not plain and getattr(labels, "dtype", None) != np.dtype(object):
        return
    kinds = {type(label) for label in labels}
    if plain and labels and all(issubclass(kind, Real) for kind in kinds) and max(map(abs, labels)) > LARGEST_EXACT:
        for before, after in zip(labels, np.asarray(labels).tolist(), strict=True):
            if before != after and before == before:
                raise changed_label(before, after)
    if len({issubclass(kind, str) for kind in kinds}) < 2:
        return
    if any(isinstance(label, float) and label != label for label in labels):
        raise ValueError(f"{name} contains NaN among its labels; drop these rows")
    found = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise ValueError(f"{name} mixes labels of types {found}; make them all strings or all numbers")


def known_codes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the codes of labels that must all be among the classes."""
    codes = LabelEncoder(classes).codes(y)
    if (codes < 0).any():
        raise unknown_labels(np.unique(np.asarray(y)[codes < 0]), classes)
    return codes


def unknown_labels(labels: np.ndarray, classes: np.ndarray) -> ValueError:
    """Return the error for labels that are not among the classes."""
    return ValueError(
        f"y holds labels that are not among the classes: {labels[:5].tolist()}; the classes are {classes.tolist()}"
    )


def new_classes(y: np.ndarray, named: np.ndarray | None, known: np.ndarray | None) -> np.ndarray:
    """Return the classes to add to a model before it learns from y, in order of appearance.

    `named` are the classes that the caller passed, `known` those that the model has.
    """
    if named is None:
        labels = in_order_of_appearance(y if known is None else y[LabelEncoder(known).codes(y) < 0])
        if len(labels):
            _refuse_continuous(labels)
    else:
        _refuse_few_classes(named)
        known_codes(y, named)
        missing = [] if known is None else [label for label in known.tolist() if label not in named.tolist()]
        if missing:
            raise ValueError(
                f"classes={named.tolist()!r} lacks classes that the model has: {missing[:5]}; "
                "classes can be added, but not removed"
            )
        labels = named if known is None else named[LabelEncoder(known).codes(named) < 0]
    if known is not None and len(labels):
        refuse_mixed_types([*known[:1].tolist(), *labels[:1].tolist()], "y")
        united(known, labels)
    return labels


def named_classes(classes: Any) -> np.ndarray:
    """Return the classes that a caller passed, sorted."""
    given = classes if isinstance(classes, np.ndarray) else list(classes)
    refuse_mixed_types(given, "classes")
    given = np.unique(given)
    if given.dtype.kind == "f" and np.isnan(given).any():
        raise ValueError("classes contains NaN, which cannot be a class; leave it out")
    _refuse_continuous(given)
    return given


def _refuse_few_classes(classes: np.ndarray) -> None:
    """Refuse fewer than two classes."""
    if len(classes) < 2:
        raise ValueError(
            f"The number of classes has to be greater than one; got {len(classes)} class"
            f"{'' if len(classes) == 1 else 'es'}: {classes.tolist()}"
        )


def warn_if_sorted(codes: np.ndarray, n_classes: int, *, stacklevel: int) -> None:
    """Warn if all rows of each class come one after the other."""
    runs = 1 + int(np.count_nonzero(codes[1:] != codes[:-1]))
    if runs == n_classes and len(codes) > 2 * n_classes:
        warnings.warn(
            "the rows are sorted by class, and one pass in this order learns one class after the "
            "other; set shuffle=True, or shuffle the rows",
            SortedLabelsWarning,
            stacklevel=stacklevel + 1,
        )
