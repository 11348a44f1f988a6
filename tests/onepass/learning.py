"""Learning by the compiled one-pass learner, and its state in the terms of the reference."""

import numpy as np
import scipy.sparse

from maxcosine.core import NO_ROOM
from maxcosine.onepass import OnePassState

FINISHED, NOT_CANONICAL, BAD_ROW, _, NEW_CLASS = range(5)  # enum class Refusal in core/sweep.hpp


def csr(X):
    X = scipy.sparse.csr_array(X)
    return X.indptr.astype(np.int64), X.indices.astype(np.uint32), X.data


def learn(state, X, codes, weights=None, *, sparse=False):
    """Learn from the rows, with new classes as they come; returns the margins and the predictions."""
    codes, n = np.asarray(codes, np.int64), len(codes)
    X = np.ascontiguousarray(X, state.dtype)
    predicted, margins = np.full(n, -9), np.full((n, max([3, state.n_classes, *(codes + 1)])), np.nan)
    if X.shape[1] > state.n_features:
        state.grow(X.shape[1])
    done = 0
    while done < n:
        order = np.arange(done, n)
        if sparse:
            more, fault = state.engine.learn_rows(*csr(X), False, codes, weights, order, predicted, margins)
        else:
            more, fault = state.engine.learn_dense(X, codes, weights, order, predicted, margins)
        done += more
        if fault == NEW_CLASS:
            state.add_classes(codes[done] + 1)
        elif fault == BAD_ROW:
            raise ValueError(f"row {done} is not finite")
        else:
            assert fault == FINISHED
    return margins, predicted


def learn_dict(state, index, x, code, weight=1.0):
    while True:
        fault, detail, margins = state.engine.learn_dict(index, x, code, weight)
        if fault == NO_ROOM:
            state.reserve(detail)
        elif fault == NEW_CLASS:
            state.add_classes(code + 1)
        else:
            return fault, detail, margins


def margins_of(state, X, *, sparse=False):
    margins = np.full((len(X), state.n_blocks), np.nan)
    if sparse:
        state.engine.score_rows(*csr(np.asarray(X, state.dtype)), margins)
    else:
        state.engine.score_dense(np.ascontiguousarray(X, state.dtype), margins)
    return margins


def learnt(X, codes, weights=None, *, dtype=np.float64, n_classes=0, sparse=False):
    state = OnePassState.create(np.shape(X)[1], dtype, n_classes=n_classes)
    learn(state, X, codes, weights, sparse=sparse)
    return state


def assert_same_bits(a, b):
    """The same state, whatever room it has for features and blocks."""
    n_features, n_blocks = min(a.n_features, b.n_features), a.n_blocks
    assert a.n_classes == b.n_classes
    for name in ("features", "blocks", "scalars", "weights", "visited"):
        x, y = getattr(a.arrays, name), getattr(b.arrays, name)
        n = {"blocks": n_blocks, "scalars": 1, "visited": a.scalars["n_visited"]}.get(name, n_features)
        x, y = (part[:n, : 4 * n_blocks] if name == "weights" else part[:n] for part in (x, y))
        assert x.tobytes() == y.tobytes(), name


def as_reference(state):
    """The numbers of a state that the reference has, too."""
    a, s, n = state.arrays, state.scalars, state.n_blocks
    T = state.rows
    C = T * (T + 1) / 2
    numbers = {
        "n": a.features["count"],
        "S": a.features["total"],
        "SS": a.features["square"],
        "mu": state.centre,
        "N": a.features["inverse_scale"],
        "D": a.features["metric"],
        "errors": s["errors"],
        "sizes": s["sizes"],
        "mistakes": s["mistakes"],
        "mean_weight": s["mean_weight"],
        "theta": s["calibration"],
        "curvature": s["curvature"],
    }
    W = a.weights.reshape(state.n_features, -1, 4)[:, :n].astype(np.float64)
    for h in range(2):
        of_u, of_v = 2 * h, 2 * h + 1
        for name, x in [("u", W.transpose(1, 0, 2)), ("s", a.blocks["s"][:n]), ("beta", a.blocks["beta"][:n])]:
            numbers[f"{name} last {h}"] = x[..., of_u]
            numbers[f"{name} average {h}"] = x[..., of_u] - x[..., of_v] / C
        numbers[f"Lambda last {h}"] = s["coef_sum"][of_u]
        numbers[f"Lambda average {h}"] = s["coef_sum"][of_u] - s["coef_sum"][of_v] / C
    numbers["energy"] = s["energy"]
    return numbers


def of_reference(reference):
    g, calibration = reference.geometry, reference.calibration
    numbers = {name: getattr(g, name) for name in ("n", "S", "SS", "mu", "N", "D")}
    numbers |= {name: getattr(reference, name) for name in ("errors", "sizes", "mistakes", "mean_weight")}
    numbers["theta"] = calibration.theta
    numbers["curvature"] = calibration.curvature[[0, 0, 1], [0, 1, 1]]
    for h, head in enumerate(reference.heads):
        for name, dual in [("last", head.last), ("average", head.average())]:
            numbers |= {f"{part} {name} {h}": getattr(dual, part) for part in ("u", "s", "beta")}
            numbers[f"Lambda {name} {h}"] = dual.coef_sum
    numbers["energy"] = np.array([head.energy for head in reference.heads])
    return numbers


def distance(a, b, least_scale=0.0):
    """The largest difference of two arrays, relative to the largest number in them."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    scale = max(np.abs(a).max(initial=least_scale), np.abs(b).max(initial=0.0))
    return np.abs(a - b).max(initial=0.0) / scale if scale > 0.0 else 0.0


def assert_equals_reference(state, reference, tolerance):
    ours, theirs = as_reference(state), of_reference(reference)
    assert ours.keys() == theirs.keys()
    for name in ours:
        x, y = ours[name], theirs[name]
        if name in ("N", "D", "mu", "S", "SS") or name[:2] == "u ":  # features differ by their units
            x, y = np.atleast_2d(x), np.atleast_2d(y)
            far = max((distance(x[:, f], y[:, f]) for f in range(x.shape[1])), default=0.0)
        elif name[:2] == "s " or name[:5] == "beta ":  # terms of both signs, whose sizes sum to at most Lambda
            far = distance(x, y, least_scale=theirs["Lambda " + name.split(" ", 1)[1]])
        else:
            far = distance(x, y)
        assert far <= tolerance, (name, far, x, y)
