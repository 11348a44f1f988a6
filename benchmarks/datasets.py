"""The data of the benchmarks: MNIST and 20 Newsgroups, if a folder has them, and synthetic examples."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import scipy.sparse
from sklearn.datasets import load_svmlight_file

from maxcosine.experiments import datasets


class Missing(Exception):
    """A file that the folder does not have."""


def find(folder: Path | None, name: str) -> Path:
    """Return the path of a file in the folder of data."""
    if folder is None or not (folder / name).is_file():
        raise Missing(f"{name} is not in the folder that --data names")
    return folder / name


def mnist(folder: Path | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return 60,000 and 10,000 digits with pixels of float32, and their labels."""
    try:
        data = datasets.load("mnist", folder)
    except datasets.Unavailable:
        raise Missing("MNIST is not available") from None
    X, X_test = (images.astype(np.float32) for images in (data.X_train, data.X_test))
    return X, data.y_train, X_test, data.y_test


def newsgroups(folder: Path | None, part: str = "train") -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """Return 20 Newsgroups (bydate, the training or the test part): word counts as float32, two classes."""
    X, y = load_svmlight_file(str(find(folder, f"sparse/20news_{part}.svm.gz")), dtype=np.float32)
    # scikit-learn's own learners take indices of 32 bits only.
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y


def newsgroup_dicts(folder: Path | None) -> tuple[list[dict[str, float]], list[bool]]:
    """Return 20 Newsgroups as dicts of words and counts, and whether the class is the second."""
    with gzip.open(find(folder, "sparse/20news.vocab.gz"), "rt", encoding="utf-8") as lines:
        words = [line.rstrip("\n") for line in lines]
    X, y = newsgroups(folder)
    examples = []
    for row in range(X.shape[0]):
        span = slice(X.indptr[row], X.indptr[row + 1])
        columns, values = X.indices[span].tolist(), X.data[span].tolist()
        examples.append({words[column]: value for column, value in zip(columns, values, strict=True)})
    return examples, (y > 0).tolist()


def log_uniform(
    n_rows: int, n_features: int, ids_per_row: int = 60, seed: int = 0
) -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """Return rows with log-uniform ids, similar to words, and random labels, so that most rows update."""
    random = np.random.default_rng(seed)
    ids = np.exp(random.random((n_rows, ids_per_row)) * np.log(n_features)).astype(np.int32) - 1
    indptr = np.arange(0, ids.size + 1, ids_per_row, dtype=np.int32)
    values = random.random(ids.size, dtype=np.float32)
    X = scipy.sparse.csr_matrix((values, ids.ravel(), indptr), shape=(n_rows, n_features))
    X.sum_duplicates()
    return X, random.choice([-1, 1], n_rows)
