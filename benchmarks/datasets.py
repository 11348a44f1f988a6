"""The data sets of the benchmarks: two real ones, if a folder holds them, and a synthetic one."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import scipy.sparse
from sklearn.datasets import load_svmlight_file


class Missing(Exception):
    """A file that the folder given with --data does not hold."""


def _find(folder: Path | None, *candidates: str) -> Path:
    for name in candidates:
        if folder is not None and (folder / name).is_file():
            return folder / name
    raise Missing(candidates[0])


def _idx(path: Path) -> np.ndarray:
    raw = gzip.decompress(path.read_bytes())
    shape = np.frombuffer(raw, ">u4", raw[3], 4).astype(int)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * len(shape)).reshape(shape)


def mnist(folder: Path | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """60,000 and 10,000 digits, pixels as float32, and their labels."""
    arrays = []
    for part in ("train", "t10k"):
        images = _idx(_find(folder, f"mnist/{part}-images-idx3-ubyte.gz"))
        arrays.append(images.reshape(len(images), -1).astype(np.float32))
        arrays.append(_idx(_find(folder, f"mnist/{part}-labels-idx1-ubyte.gz")))
    return arrays[0], arrays[1], arrays[2], arrays[3]


def newsgroups(folder: Path | None, part: str = "train") -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """20 Newsgroups (bydate, the training or the test part), word counts as float32, in two classes."""
    with gzip.open(_find(folder, f"sparse/20news_{part}.svm.gz")) as lines:
        X, y = load_svmlight_file(lines, dtype=np.float32)
    # scikit-learn's own learners take 32-bit indices only.
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y


def newsgroup_dicts(folder: Path | None) -> tuple[list[dict[str, float]], list[bool]]:
    """20 Newsgroups as River takes it: dicts of word to count, and whether the class is the second."""
    with gzip.open(_find(folder, "sparse/20news.vocab.gz"), "rt", encoding="utf-8") as lines:
        words = [line.rstrip("\n") for line in lines]
    X, y = newsgroups(folder)
    examples = []
    for row in range(X.shape[0]):
        span = slice(X.indptr[row], X.indptr[row + 1])
        columns, values = X.indices[span].tolist(), X.data[span].tolist()
        examples.append({words[column]: value for column, value in zip(columns, values, strict=True)})
    return examples, (y > 0).tolist()


def log_uniform(
    n_rows: int, n_features: int, ids_a_row: int = 60, seed: int = 0
) -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """Rows of log-uniform ids, as words are, with random labels: most rows update."""
    random = np.random.default_rng(seed)
    ids = np.exp(random.random((n_rows, ids_a_row)) * np.log(n_features)).astype(np.int32) - 1
    indptr = np.arange(0, ids.size + 1, ids_a_row, dtype=np.int32)
    values = random.random(ids.size, dtype=np.float32)
    X = scipy.sparse.csr_matrix((values, ids.ravel(), indptr), shape=(n_rows, n_features))
    X.sum_duplicates()
    return X, random.choice([-1, 1], n_rows)
