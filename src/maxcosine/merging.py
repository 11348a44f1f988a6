"""Merge models learnt on different data into one that is certified on all of it; the only place that
merges.

A hypothesis w with coefficients that sum to Lambda is the point u = w / Lambda of the hull of its
examples, so points u_1, ..., u_k of k models lie in the hull of all examples, and so does every mean of
them. The one nearest to the origin has the largest bound, 1 / norm(u), that can be proven from them:
"certified". Their plain mean is certified too, by a smaller bound, and often predicts a little better on
noisy data: "mean".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from scipy.optimize import nnls

from maxcosine.certificate import Merge
from maxcosine.engine import Heads
from maxcosine.engine.heads import LIMITS
from maxcosine.features import union
from maxcosine.model import Model, distinct

M = TypeVar("M")

HOW = ("certified", "mean")

# A merged point this much shorter than the shortest of the points is the origin.
SMALLEST_NORM = 2.0**-40


def merge(models: Sequence[M], how: str = "certified", *, weights: Sequence[float] | None = None) -> M:
    """One model of several fitted ones: their classes and features, certified on all their examples.

    Parameters
    ----------
    models : fitted classifiers of one rule, learnt on different data
    how : {"certified", "mean"}, default="certified"
        The combination with the largest proven bound, never below the largest of the models'; or the
        plain mean of their points w / Lambda, which often predicts a little better on noisy data. The
        certificate of the result shows the bounds of both.
    weights : how much each model counts in the mean, default=None
        None is all the same. A model that is itself the mean of three counts three times as much as one
        that is not, for the mean of all.

    Returns
    -------
    a new model of the type of the first; it can go on learning

    Examples
    --------
    >>> import maxcosine
    >>> X, y = [[2.0, 0.0], [0.0, 1.0], [1.0, 0.5], [0.5, 2.0]], [1, 0, 1, 0]
    >>> parts = [maxcosine.MCPClassifier().partial_fit(X[i:i + 2], y[i:i + 2]) for i in (0, 2)]
    >>> merged = maxcosine.merge(parts)
    >>> bounds = [part.certificate_.bound for part in parts]
    >>> merged.certificate_.bound >= max(bounds)
    True
    """
    if how not in HOW:
        raise ValueError(f"how={how!r} is not a way of merging; it is one of {', '.join(HOW)}")
    models = list(models)
    if not models:
        raise ValueError("there is nothing to merge: give at least one fitted model")
    for number, model in enumerate(models):
        if not isinstance(model, Model) and getattr(model, "_model", None) is None:
            raise ValueError(f"model {number} is not fitted: {model!r}")
    values = [model if isinstance(model, Model) else model._model for model in models]  # type: ignore[attr-defined]
    _refuse_differences(values)
    merged = _merge(values, how, _checked(weights, len(models)))
    first: Any = models[0]
    result: Any = merged if isinstance(first, Model) else first._with_model(merged)
    return result  # type: ignore[no-any-return]


def _checked(weights: Sequence[float] | None, n_models: int) -> np.ndarray:
    checked = np.ones(n_models) if weights is None else np.asarray(weights, np.float64)
    if checked.shape != (n_models,) or not (np.isfinite(checked) & (checked > 0.0)).all():
        raise ValueError(f"weights must be {n_models} numbers above 0, one a model; they are {weights}")
    return checked


def _refuse_differences(models: Sequence[Model]) -> None:
    """What models must have in common to speak of one space and to go on learning by one rule."""

    def traits(model: Model) -> dict[str, Any]:
        heads = model.heads
        return {
            "rule": model.rule,
            "multiclass": model.multiclass,
            "fit_intercept": heads.fit_intercept,
            "average": heads.average,
            "labels": "strings" if isinstance(model.classes.tolist()[0], str) else "numbers",
        }

    wanted = traits(models[0])
    for number, model in enumerate(models):
        for name, value in traits(model).items():
            if value != wanted[name]:
                here, there = (getattr(v, "name", v) for v in (wanted[name], value))
                raise ValueError(
                    f"models that are merged must agree in {name}: it is {here!r} for model 0 and "
                    f"{there!r} for model {number}"
                )


def nearest_point(gram: np.ndarray) -> np.ndarray:
    """Weights tau >= 0, of sum 1, of the point of a hull nearest to the origin.

    `gram` holds the dot products of the hull's points u_k, none of them 0. By non-negative least squares:
    the minimum over tau >= 0 of norm(U tau)^2 + (sum(tau) - 1)^2, divided by its sum; in units
    s_k = tau_k norm(u_k), so that points of very different norms lose nothing.
    """
    norms = np.sqrt(gram.diagonal())
    values, vectors = np.linalg.eigh(gram / np.outer(norms, norms))
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    bounds = norms.min() / norms
    s, _ = nnls(np.vstack([root, bounds]), np.append(np.zeros(len(norms)), 1.0))
    tau: np.ndarray = s * bounds / (s @ bounds)
    return tau


def _merge(models: Sequence[Model], how: str, weights: np.ndarray) -> Model:
    first = models[0]
    classes = distinct(np.concatenate([model.classes for model in models]))
    features, slots = union([model.features for model in models])
    merged = Model.create(
        first.rule,
        tuple(first.heads.arrays.params[0, :-1]),
        classes,
        features,
        first.heads.dtype,
        fit_intercept=first.heads.fit_intercept,
        average=first.heads.average,
        multiclass=first.multiclass,
        closed=all(model.closed for model in models),
    )
    merged.make_room()
    sources = [model.columns_for(classes) for model in models]
    bounds = np.array(
        [
            _merge_head(merged.heads, h, models, slots, sources, weights, how)
            for h in range(len(merged.heads.table))
        ]
    )
    certified, mean = (column if len(bounds) > 1 else column[0].item() for column in bounds.T)
    merged.merge = Merge(how, len(models), certified, mean)
    if first.features.sparse:
        merged.sparsify()
    return merged


def _merge_head(
    heads: Heads,
    h: int,
    models: Sequence[Model],
    slots: Sequence[np.ndarray],
    sources: Sequence[Sequence[tuple[int, float]]],
    weights: np.ndarray,
    how: str,
) -> tuple[float, float]:
    """Head h of the merged model; returns the bounds, by both ways, of what it predicts with."""
    head = heads.table[h]
    columns = range(head["first"], head["stop"])
    members = [
        _Member(model, slots[k], [sources[k][column] for column in columns], weights[k])
        for k, model in enumerate(models)
        if heads.joint or sources[k][h][0] >= 0
    ]
    rows = [member.row for member in members]
    for name in ("learnt", "mistakes", "updates"):
        head[name] = sum(row[name] for row in rows)
    for name in ("weighted", "radius"):
        head[name] = max(row[name] for row in rows)
    head["best_bound"] = max(member.best_bound for member in members)
    head["seen"] = sum(model.n_seen for model in models)
    head["since"] = head["seen"] - sum(row["seen"] - max(row["since"], 0) for row in rows)

    bounds = 0.0, 0.0
    started = [member for member in members if member.row["coef_v"] > 0.0]
    if started:
        bounds = _merge_last(heads, h, started, how)
    if heads.average:
        averaged = [member.averaged() for member in members if member.row["sum_coef"] > 0.0]
        if averaged:
            bounds = _merge_averaged(heads, h, averaged, how)
    return bounds


class _Member:
    """A hypothesis of one model as a point u = w / Lambda, column by column of the merged head."""

    def __init__(
        self, model: Model, slots: np.ndarray, sources: Sequence[tuple[int, float]], weight: float = 1.0
    ) -> None:
        heads = model.heads
        self.heads, self.slots, self.sources, self.weight = heads, slots, sources, weight
        head = 0 if heads.joint else sources[0][0]
        self.best_bound = np.atleast_1d(model.certificate().best_bound)[head]
        self.row, self.state = heads.table[head], heads.arrays.state[head]
        self.unit = self.row["coef_v"]
        self.slack = self.row["slack_v"] / self.unit if self.unit > 0.0 else 0.0
        self.norm = heads.proven().norm[head]
        self.average = False

    def averaged(self) -> _Member:
        """The averaged hypothesis in place of the last."""
        self.average = True
        self.unit = self.row["sum_coef"]
        self.slack = self.row["sum_slack"] / self.unit
        self.norm = self.heads.averaged_proven().norm[0 if self.heads.joint else self.sources[0][0]]
        return self

    def column(self, position: int, n_features: int) -> np.ndarray:
        """The weights of one column over the features of all models, the constant weight last."""
        point = np.zeros(n_features + 1)
        column, sign = self.sources[position]
        if column < 0:
            return point
        a, n_slots = self.heads.arrays, len(self.slots)
        point[self.slots] = a.v[:n_slots, column]
        point[-1] = a.bias[column]
        if self.average:
            point *= self.row["sum_scale"]
            point[self.slots] += a.total[:n_slots, column]
            point[-1] += a.total_bias[column]
        point *= sign / self.unit
        return point


class _Point:
    """A mean of points: its weights, column by column, its norm, and what rounding may have done to it."""

    def __init__(self, heads: Heads, h: int, members: Sequence[_Member], how: str) -> None:
        head, eps = heads.table[h], LIMITS[heads.dtype].eps
        self._members, self._n_features = members, heads.n_features
        self._positions = range(head["stop"] - head["first"])
        self.smallest = eps * head["radius"]
        gram = np.zeros((len(members), len(members)))
        for position in self._positions:
            columns = self._points(position)
            gram += _products("ij,kj->ik", columns, columns)
        norms = np.sqrt(gram.diagonal())
        if not norms.all():
            raise _nothing_separates()
        certified = self._certified(gram, norms)
        weights = np.array([member.weight for member in members])
        mean = self._combined(weights / weights.sum())
        self.tau, self.columns, self.norm, self.slack = certified if how == "certified" else mean
        if self.norm <= max(eps, SMALLEST_NORM) * norms.min():
            raise _nothing_separates()
        self.length = float(self.tau @ np.array([member.norm for member in members]))
        self.bounds = tuple(1.0 / max(norm + slack, self.smallest) for _, _, norm, slack in (certified, mean))

    def _points(self, position: int) -> np.ndarray:
        return np.stack([member.column(position, self._n_features) for member in self._members])

    def _combined(self, tau: np.ndarray) -> tuple[np.ndarray, list[np.ndarray], float, float]:
        """The mean with weights tau: the weights, its columns, its norm, and its slack."""
        columns = [_products("k,kj->j", tau, self._points(position)) for position in self._positions]
        norm = float(np.sqrt(sum(_products("j,j->", column, column) for column in columns)))
        return tau, columns, norm, float(tau @ np.array([member.slack for member in self._members]))

    def _certified(
        self, gram: np.ndarray, norms: np.ndarray
    ) -> tuple[np.ndarray, list[np.ndarray], float, float]:
        found = self._combined(nearest_point(gram))
        # What rounding did to one model may outweigh what it brings: then the best one stays alone.
        lengths = norms + np.array([member.slack for member in self._members])
        if found[2] + found[3] <= lengths.min():
            return found
        return self._combined((np.arange(len(norms)) == lengths.argmin()).astype(float))


def _products(subscripts: str, *arrays: np.ndarray) -> Any:
    """Sums of products over features, always in the same order: BLAS has one for each number of threads."""
    return np.einsum(subscripts, *arrays, optimize=False)


def _nothing_separates() -> ValueError:
    return ValueError(
        "these models cannot be merged: the origin lies in the hull of their hypotheses, so nothing "
        "separates the examples of all of them"
    )


def _merge_last(heads: Heads, h: int, members: Sequence[_Member], how: str) -> Any:
    """The last hypothesis, and what the rule goes on with."""
    point, rule, head, a = _Point(heads, h, members, how), heads.rule, heads.table[h], heads.arrays
    eps = LIMITS[heads.dtype].eps
    for column, weights in zip(range(head["first"], head["stop"]), point.columns, strict=True):
        a.v[:, column], a.bias[column] = weights[:-1] / point.norm, weights[-1] / point.norm
    length = point.length if rule.restart_norm is None else rule.restart_norm(1.0 / point.norm)
    if rule.scale_free:
        length = min(max(length, 1e-6), 1e6)
    norm_v = float(heads.norm_v[h])
    head["scale"] = length / norm_v
    head["sq_v"] = head["peak_sq_v"] = norm_v * norm_v
    head["coef_v"] = norm_v / point.norm
    head["slack_v"] = norm_v * (point.slack / point.norm + 2.0 * eps)
    head["start_sq_w"] = length * length if rule.scale_free else 0.0
    head["highest"] = heads.n_features - 1
    head["logged"] = np.iinfo(np.int64).max
    bound = min(head["coef_v"] / (norm_v + head["slack_v"]), 1.0 / point.smallest)
    head["claim_v"] = bound * norm_v
    head["best_bound"] = max(head["best_bound"], bound)
    mean_state = point.tau @ np.stack([member.state for member in members])
    restarted = rule.restart(length * length, length / point.norm, tuple(mean_state[:-1]))
    a.state[h, : len(restarted)] = restarted
    return point.bounds


def _merge_averaged(heads: Heads, h: int, members: Sequence[_Member], how: str) -> Any:
    """The averaged hypothesis, as the sum over all rounds that it stands for."""
    point, head, a = _Point(heads, h, members, how), heads.table[h], heads.arrays
    factor = head["learnt"] * point.length / point.norm
    for column, weights in zip(range(head["first"], head["stop"]), point.columns, strict=True):
        a.total[:, column], a.total_bias[column] = weights[:-1] * factor, weights[-1] * factor
    head["sum_coef"] = factor
    head["sum_norm"] = factor * point.norm
    head["sum_slack"] = factor * (point.slack + 2.0 * LIMITS[heads.dtype].eps * point.norm)
    return point.bounds


# Models that all went on from the same one: what that one counted must be counted once.


def as_start(model: Model) -> Model:
    """A copy to go on from that has counted nothing yet: neither examples nor, averaging, rounds."""
    start = model.copy().replace(merge=None)
    table, arrays = start.heads.table, start.heads.arrays
    for name in ("seen", "learnt", "mistakes", "updates", "sum_scale", "sum_coef", "sum_norm", "sum_slack"):
        table[name] = 0
    table["since"] = np.minimum(table["since"], 0)
    arrays.total[:] = 0.0
    arrays.total_bias[:] = 0.0
    return start


def count_start(model: Model, start: Model) -> None:
    """Add what `start` had counted to a model that went on from it without, alone or merged.

    Averaging, this is the sum over all rounds, those of the start included. Neither is sparse.
    """
    heads = model.heads
    model.changed()
    model.make_room()
    _, (_, slots) = union([model.features, start.features])
    sources = start.columns_for(model.classes)
    seen = start.n_seen
    for h, head in enumerate(heads.table):
        head["seen"] += seen
        known = sources[h][0] >= 0 or heads.joint
        columns = range(head["first"], head["stop"])
        member = _Member(start, slots, [sources[column] for column in columns]) if known else None
        if member is None or member.row["since"] < 0:
            head["since"] += seen
            continue
        head["since"] += member.row["since"]
        for name in ("learnt", "mistakes", "updates"):
            head[name] += member.row[name]
        if heads.average and member.row["sum_coef"] > 0.0:
            _add_average(heads, h, member.averaged())


def _add_average(heads: Heads, h: int, start: _Member) -> None:
    head, a = heads.table[h], heads.arrays
    for position, column in enumerate(range(head["first"], head["stop"])):
        weights = start.unit * start.column(position, heads.n_features)
        a.total[:, column] += weights[:-1]
        a.total_bias[column] += weights[-1]
    for name in ("sum_coef", "sum_norm"):
        head[name] += start.row[name]
    head["sum_slack"] += start.row["sum_slack"] + 2.0 * LIMITS[heads.dtype].eps * head["sum_norm"]
