"""A small data set and small results, for tests."""

import numpy as np

from maxcosine.experiments.datasets import Dataset
from maxcosine.experiments.results import Results, Run


def small_dataset(n_train=120, n_test=50, n_features=20, n_labels=3, buckets=6, seed=0):
    """Classes around centres of their own, with some overlap."""
    random = np.random.default_rng(seed)
    centres = random.integers(0, 200, (n_labels, n_features))
    y = random.integers(0, n_labels, n_train + n_test)
    X = np.clip(centres[y] + random.normal(0, 60, (len(y), n_features)), 0, 255).astype(np.uint8)
    return Dataset(
        name="small",
        title="Small",
        X_train=X[:n_train],
        y_train=y[:n_train],
        X_test=X[n_train:],
        y_test=y[n_train:],
        labels=tuple("abcdefghij"[:n_labels]),
        buckets=buckets,
        sha256="5" * 64,
        source="a test",
    )


def results_of(counts, labels=None):
    """Results with these test mistakes: for each rule an array of shape (labels, permutations)."""
    first = np.asarray(next(iter(counts.values())))
    runs = [
        Run(rule, label, permutation, int(np.asarray(found)[label, permutation]), 5, 7, 0.5, 2.0, 0.01)
        for label in range(first.shape[0])
        for permutation in range(first.shape[1])
        for rule, found in counts.items()
    ]
    return Results(
        dataset={
            "name": "small",
            "title": "Small",
            "train": 120,
            "test": 50,
            "features": 20,
            "labels": labels or [str(k) for k in range(first.shape[0])],
            "sha256": "5" * 64,
            "source": "a test",
        },
        protocol={
            "rules": list(counts),
            "permutations": first.shape[1],
            "buckets": 6,
            "bucket_size": 20,
            "seed": 0,
        },
        runs=runs,
    )
