"""Examples as a DataFrame, and the same examples as shards of the local runner."""

import hashlib
import itertools

import numpy as np
from pyspark.ml.linalg import Vectors

N_ROWS, N_FEATURES, N_PARTITIONS = 600, 7, 5
NAMES = np.array(["apple", "birch", "cedar"])


def examples(seed=0, n_classes=3):
    """Rows with zeros, and the class that a hidden matrix gives each."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(N_ROWS, N_FEATURES)) * (random.random((N_ROWS, N_FEATURES)) < 0.6)
    return X, (X @ random.normal(size=(N_FEATURES, n_classes))).argmax(axis=1)


def vector(row, sparse):
    used = np.flatnonzero(row)
    return Vectors.sparse(len(row), used, row[used]) if sparse else Vectors.dense(row)


def frame(spark, X, y, n_partitions=N_PARTITIONS):
    """One column for each kind of features and labels."""
    rows = [
        (vector(x, sparse=k % 3 == 0), x.tolist(), float(label), str(NAMES[label]), 1.0 + k % 2)
        for k, (x, label) in enumerate(zip(X, y, strict=True))
    ]
    columns = ["features", "array", "label", "name", "weight"]
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, n_partitions), columns)


def shards(*columns, n_partitions=N_PARTITIONS):
    """The same rows as Spark has divided them."""
    ends = [k * len(columns[0]) // n_partitions for k in range(n_partitions + 1)]
    return [[tuple(column[start:end] for column in columns)] for start, end in itertools.pairwise(ends)]


def same_bits(model, estimator):
    from maxcosine import model_file

    expected = model_file.to_bytes(estimator._model)
    return hashlib.sha256(model._part.model).digest() == hashlib.sha256(expected).digest()
