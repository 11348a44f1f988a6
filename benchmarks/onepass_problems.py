"""The classification problems that ``benchmarks/onepass.py`` measures."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from gallery import SEED, SPARSE, TEST_SHARE, load_sparse
from sklearn.datasets import load_breast_cancer

from maxcosine.experiments import datasets

WORD_COUNTS = ("20news", "sms_spam")
"""Sets of word counts, which batch learners may also see as tf-idf."""
IMAGE_CHOICE_ROWS, GROUP_CHOICE_ROWS = 3_000, 2_000
"""As many images, and texts of 20 classes, decide on the parameters of a batch learner, to save time."""


@dataclass(frozen=True)
class Problem:
    """Training and test rows; the classes are the codes 0, 1, 2, ..."""

    name: str
    title: str
    content: str
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    sha256: str
    divided: bool = False
    """Whether the test rows were taken from the training rows."""
    word_counts: bool = False
    small: bool = False
    """Whether River, which learns from dicts, takes part."""
    choice_rows: int | None = None
    """How many training rows decide on the parameters of a batch learner; None is all."""
    rest_title: str | None = None
    """The title of the problems of one label against the rest, if they are measured too."""

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1

    @cached_property
    def vw_rows(self) -> tuple[list[str], list[str]]:
        """The training and the test rows as Vowpal Wabbit's text, without labels."""
        return vw_text(self.X), vw_text(self.X_test)


@dataclass(frozen=True)
class Stream:
    """The training rows of a problem in some order."""

    problem: Problem
    order: np.ndarray

    @cached_property
    def X(self) -> Any:
        return self.problem.X[self.order]

    @cached_property
    def y(self) -> np.ndarray:
        return self.problem.y[self.order]


def vw_text(X: Any) -> list[str]:
    """Write rows as Vowpal Wabbit reads them."""
    X = scipy.sparse.csr_array(X)
    X.eliminate_zeros()
    cells = [f" {column}:{value:g}" for column, value in zip(X.indices.tolist(), X.data.tolist(), strict=True)]
    ends = X.indptr.tolist()
    return ["|" + "".join(cells[start:end]) for start, end in pairwise(ends)]


def load_all(folder: Path) -> Iterator[Problem]:
    """Load one problem after the other; those that are not available are left out, with a message."""
    loaders: dict[str, Callable[[], Problem]] = {name: partial(_sparse, name, folder) for name in SPARSE}
    loaders["20news_groups"] = partial(_newsgroups, folder)
    loaders["mnist"] = partial(_images, "mnist", folder)
    loaders["fashion"] = partial(_images, "fashion", folder)
    loaders["digits"] = _digits
    loaders["breast_cancer"] = _breast_cancer
    for name, load in loaders.items():
        try:
            yield load()
        except (FileNotFoundError, datasets.Unavailable) as error:
            print(f"{name} is left out: {error}")


def _sparse(name: str, folder: Path) -> Problem:
    data = load_sparse(name, folder)
    title, content = SPARSE[name]
    return Problem(
        name,
        title,
        content,
        _int32_indices(data.X),
        data.positive.astype(np.int64),
        _int32_indices(data.X_test),
        data.test_positive.astype(np.int64),
        data.sha256,
        divided=data.divided,
        word_counts=name in WORD_COUNTS,
        small=name == "mushrooms",
    )


def _newsgroups(folder: Path) -> Problem:
    data = load_sparse("20news", folder)
    paths = [folder / "sparse" / f"20news_{part}.groups.gz" for part in ("train", "test")]
    groups, test_groups = (np.array(gzip.decompress(path.read_bytes()).decode().split()) for path in paths)
    names, y = np.unique(groups, return_inverse=True)
    return Problem(
        "20news_groups",
        "20 Newsgroups, 20 classes",
        "word counts; each group is a class",
        _int32_indices(data.X),
        y,
        _int32_indices(data.X_test),
        np.searchsorted(names, test_groups),
        hashlib.sha256(data.sha256.encode() + b"".join(path.read_bytes() for path in paths)).hexdigest(),
        word_counts=True,
        choice_rows=GROUP_CHOICE_ROWS,
    )


def _images(name: str, folder: Path) -> Problem:
    data = datasets.load(name, folder)
    X, X_test = (scipy.sparse.csr_matrix(images.astype(np.float64)) for images in (data.X_train, data.X_test))
    return Problem(
        name,
        f"{data.title}, ten classes",
        "pixels from 0 to 255",
        X,
        data.y_train,
        X_test,
        data.y_test,
        data.sha256,
        choice_rows=IMAGE_CHOICE_ROWS,
        rest_title="MNIST, one label against the rest" if name == "mnist" else None,
    )


def _digits() -> Problem:
    data = datasets.load_digits()
    arrays = data.X_train, data.y_train, data.X_test, data.y_test
    content = "pixels from 0 to 16; ten classes"
    return Problem("digits", "digits of scikit-learn", content, *arrays, data.sha256, small=True)


def _breast_cancer() -> Problem:
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(y))
    test, train = order[::TEST_SHARE], np.delete(order, np.s_[::TEST_SHARE])
    return Problem(
        "breast_cancer",
        "breast cancer of scikit-learn",
        "measurements of very different scales",
        X[train],
        y[train],
        X[test],
        y[test],
        hashlib.sha256(X.tobytes() + y.tobytes()).hexdigest(),
        divided=True,
        small=True,
    )


def _int32_indices(X: Any) -> scipy.sparse.csr_matrix:
    """Return the rows with the indices that all of scikit-learn's learners take."""
    return scipy.sparse.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
