"""Examples as a DataFrame, and the same examples as shards."""

import numpy as np
from pyspark.ml.linalg import Vectors

from tests.distributed.digits import cut

N_ROWS, N_FEATURES, N_PARTITIONS = 600, 7, 5
NAMES = np.array(["apple", "birch", "cedar"])


def examples(n_classes=3):
    """Rows with zeros, and the classes that a random matrix gives them."""
    random = np.random.default_rng(0)
    X = random.normal(size=(N_ROWS, N_FEATURES)) * (random.random((N_ROWS, N_FEATURES)) < 0.6)
    return X, (X @ random.normal(size=(N_FEATURES, n_classes))).argmax(axis=1)


def vector(row, sparse):
    used = np.flatnonzero(row)
    return Vectors.sparse(len(row), used, row[used]) if sparse else Vectors.dense(row)


def frame(spark, X, y, n_partitions=N_PARTITIONS):
    """A column for each type of features and labels."""
    rows = [
        (vector(x, sparse=k % 3 == 0), x.tolist(), float(label), str(NAMES[label]), 1.0 + k % 2)
        for k, (x, label) in enumerate(zip(X, y, strict=True))
    ]
    columns = ["features", "array", "label", "name", "weight"]
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, n_partitions), columns)


def shards(*columns, n_partitions=N_PARTITIONS):
    """The same rows in the same partitions."""
    return cut(n_partitions, *columns)
