"""Labels and codes: the one place that knows the code of a label.

The classes of a model are sorted, and the code of a class is its position among them. Arrays of labels,
single labels and the text of a stream are all encoded here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

# Up to this many classes, comparing with each class is faster than a binary search.
FEW_CLASSES = 32

# Below this, float64 has every whole number.
LARGEST_EXACT = 2.0**53

# The first labels of a data set usually contain every class.
FIRST_LABELS = 1000


class LabelEncoder:
    """Gives labels their codes, among sorted classes.

    Parameters
    ----------
    classes : array of shape (n_classes,)
        The classes, sorted and without duplicates.

    Examples
    --------
    >>> encoder = LabelEncoder(np.array(["eggs", "ham", "spam"]))
    >>> encoder.code("ham")
    1
    >>> encoder.codes(np.array(["spam", "eggs", "toast"])).tolist()
    [2, 0, -1]
    """

    def __init__(self, classes: np.ndarray) -> None:
        self.classes = classes
        is_number = classes.dtype.kind in "iuf"
        self._beyond_float = is_number and not bool((np.abs(classes.astype(np.float64)) < LARGEST_EXACT).all())
        self._labels = classes.tolist()
        self._codes = {label: code for code, label in enumerate(self._labels)}

    def code(self, label: Any) -> int | None:
        """Return the code of one label, or None if it is unknown."""
        return self._codes.get(label)

    def label(self, code: int) -> Any:
        """Return the label of a code, as a plain Python value."""
        return self._labels[code]

    def codes(self, labels: np.ndarray) -> np.ndarray:
        """Return the codes of an array of labels, -1 for those that are unknown."""
        classes = self.classes
        if self._beyond_float and labels.dtype != classes.dtype and labels.dtype.kind in "iuf":
            # NumPy would compare as float64; Python compares numbers of different types exactly.
            return np.array([self._codes.get(label, -1) for label in labels.tolist()], np.int64)
        if len(classes) <= FEW_CLASSES:
            codes = np.full(len(labels), -1)
            for code, label in enumerate(classes):
                codes += (code + 1) * (labels == label)
            return codes
        try:
            codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        except TypeError:  # labels of a type that does not compare with the classes
            return np.full(len(labels), -1)
        return np.where(classes[codes] == labels, codes, -1)

    def text_codes(self, texts: Sequence[str]) -> np.ndarray:
        """Return the codes of labels written as text, -1 for those that are unknown."""
        codes = {label_text(label): code for label, code in self._codes.items()}
        return np.array([codes.get(text, -1) for text in texts], np.int64)

    def parse(self, texts: Sequence[str]) -> np.ndarray:
        """Return new labels, given as text, in the type of the classes."""
        kind = self.classes.dtype.kind
        if kind in "OU":
            return np.array(texts)
        try:
            read = {"true": True, "false": False}.__getitem__ if kind == "b" else self.classes.dtype.type
            labels = np.array([read(text) for text in texts])
            if [label_text(label) for label in labels.tolist()] != list(texts):
                raise ValueError
            return labels
        except (ValueError, OverflowError, KeyError):
            raise ValueError(
                f"the labels {', '.join(map(repr, texts[:5]))} cannot be added to a model whose classes are "
                f"{', '.join(map(repr, self._labels[:5]))}; train a new model, or map labels to numbers"
            ) from None


def label_text(label: Any) -> str:
    """Write a label as a stream writes it: whole numbers have no decimal point, booleans are in lower case.

    >>> label_text(2.0), label_text("ham"), label_text(True)
    ('2', 'ham', 'true')
    """
    if isinstance(label, bool):
        return str(label).lower()
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)


def encode(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted classes of an array of labels, and the code of each label.

    >>> classes, codes = encode(np.array(["ham", "eggs", "ham"]))
    >>> classes.tolist(), codes.tolist()
    (['eggs', 'ham'], [1, 0, 1])
    """
    classes = np.unique(labels[:FIRST_LABELS])
    codes = LabelEncoder(classes).codes(labels)
    if (codes < 0).any():
        classes = np.unique(labels)
        codes = LabelEncoder(classes).codes(labels)
    return classes, codes


def united(*parts: np.ndarray) -> np.ndarray:
    """Return the sorted union of arrays of labels; refuse labels that their common type would change.

    >>> united(np.array([3, 1]), np.array([2.0])).tolist()
    [1.0, 2.0, 3.0]
    """
    together = np.concatenate(parts)
    # Python compares numbers of different types exactly.
    for before, after in zip((label for part in parts for label in part.tolist()), together.tolist(), strict=True):
        if before != after:
            raise changed_label(before, after)
    return np.unique(together)


def changed_label(before: Any, after: Any) -> ValueError:
    """Return the error for labels of several types, whose common type has no exact value for one of them."""
    return ValueError(
        f"beside labels of another type, NumPy would change the label {before!r} to {after!r}; "
        "give all labels in one type"
    )


def in_order_of_appearance(labels: np.ndarray) -> np.ndarray:
    """Return the different labels of an array, in the order of their first rows.

    >>> in_order_of_appearance(np.array(["ham", "eggs", "ham"])).tolist()
    ['ham', 'eggs']
    """
    different, first = np.unique(labels, return_index=True)
    return different[np.argsort(first, kind="stable")]
