"""Streams for the one-pass learner, by name: rows, codes in the order of arrival, and weights."""

import numpy as np

from tests.contract.streams import late, stream


def by_arrival(codes):
    """Codes that count classes in the order of their first rows."""
    seen = {}
    return np.array([seen.setdefault(code, len(seen)) for code in codes.tolist()])


def random_weights(n, seed=0):
    return np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 3.0, 40.0], n)


def binary(n=500, seed=0):
    X, codes = stream(n, 7, seed=seed)
    return X, codes, None


def arriving(n=500):
    X, codes, _ = binary(n)
    return X, by_arrival(codes), None


def weighted(n=500):
    return *binary(n)[:2], random_weights(n)


def unscaled(n=500):
    """Each feature has a unit of its own, from 1e-30 to 1e30."""
    X, codes, _ = binary(n)
    return X * 10.0 ** np.linspace(-30, 30, 7), codes, None


def wild(n=500):
    """Every value has a unit of its own, from 1e-30 to 1e30."""
    X, codes, _ = binary(n)
    return X * 10.0 ** np.random.default_rng(0).uniform(-30, 30, X.shape), codes, None


def spikes(n=500):
    """Features that were tiny have a value of usual size, shortly before T = 16 and T = 64 and before D is fixed anew.

    D is then as for tiny values and the centre is not, so the sums over all features grow by 60 digits for a while.
    """
    X, codes, _ = binary(n)
    X[:, :2] = 0.0
    X[2:10, 0] = X[40:48, 1] = 1e-30
    X[12, 0] = X[60, 1] = 1e3
    X[100::9, :2] = 1.0
    return X, codes, None


def constants(n=500):
    """Two features are the same in all rows, one is 0 in all, and one is as good as constant."""
    X, codes, _ = binary(n)
    X[:, 0], X[:, 1], X[:, 2] = 1.0, -0.3, 0.0
    X[:, 3] = 50.0 + X[:, 3]
    return X, codes, None


def late_features(n=500):
    X, codes, _ = binary(n)
    for f in range(7):
        X[: f * f * 9, f] = 0.0
    return X, codes, None


def short_rows(n=500):
    """Most rows have one feature or none."""
    X, codes = stream(n, 40, density=0.03)
    return X, codes, None


def counts(n=500):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, n)
    rates = rng.gamma(0.3, 2.0, (2, 30))
    return rng.poisson(rates[codes]).astype(float), codes, None


def joint(n=500, n_classes=4):
    X, codes = stream(n, 7, n_classes=n_classes)
    return X, codes, None


def joint_weighted(n=500):
    return *joint(n, 5)[:2], random_weights(n)


def late_classes(n=500):
    X, codes = late(n, 7, [0, 3, 40, 170, 171])
    return X, by_arrival(codes), None


def late_classes_weighted(n=500):
    """Rows of weight 0 do not make a class known."""
    X, codes, _ = late_classes(n)
    weights = random_weights(n)
    weights[170] = 0.0
    learnt = weights > 0
    codes[learnt] = by_arrival(codes[learnt])
    return X, codes, weights


def one_class(n=60):
    X, codes, _ = binary(n)
    return X, np.zeros_like(codes), None


# The number of classes that are known from the start, and the stream.
STREAMS = {
    "binary": (2, binary),
    "arriving": (0, arriving),
    "weighted": (2, weighted),
    "unscaled": (2, unscaled),
    "wild": (2, wild),
    "spikes": (2, spikes),
    "constants": (2, constants),
    "late features": (2, late_features),
    "short rows": (2, short_rows),
    "counts": (2, counts),
    "joint": (4, joint),
    "joint weighted": (5, joint_weighted),
    "late classes": (0, late_classes),
    "late classes weighted": (0, late_classes_weighted),
    "one class": (0, one_class),
}
