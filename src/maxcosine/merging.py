"""Merge models learnt on different data into one model that is certified on all of it.

A hypothesis w whose coefficients sum to Lambda is the point u = w / Lambda in the convex hull of its signed
examples. So the points u_1, ..., u_k of k models lie in the hull of all examples, and so does every weighted
mean of them. The mean nearest to the origin has the largest bound, 1 / norm(u), that follows from these
points: this is the "certified" merge. The plain mean has a smaller bound and often predicts a little better
on noisy data: this is the "mean" merge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import nnls

from maxcosine.calibration import new_calibration
from maxcosine.certificate import HOW, Merge
from maxcosine.features import union
from maxcosine.framework import ell
from maxcosine.heads import LIMITS, LOG_OVERFLOWED, Heads, Proven
from maxcosine.labels import united
from maxcosine.model import Model

COUNTS = ("learnt", "mistakes", "updates")

# What the heads of all models must agree in.
SETTINGS = ("fit_intercept", "average", "probability")

# A merged point may be the origin if it is shorter than the shortest of the points by this factor.
SMALLEST_NORM = 2.0**-40

# Twice the unit roundoff of float64, in which points are merged, and more than the operations on each number.
ROUNDING = 2.0**-52
OPERATIONS = 16

# Lengths in the units of others are within these powers of two: beyond, one of them is nothing beside the other.
LOWEST_EXPONENT, HIGHEST_EXPONENT = -1000, 60

# The norm of w that a rule goes on from, if the length of w has no meaning to it.
SHORTEST_W, LONGEST_W = 1e-6, 1e6


class NotSeparable(ValueError):
    """Models that cannot be merged, because the origin lies within rounding in the hull of their hypotheses.

    Attributes
    ----------
    margin_ceiling : float
        No separator of the examples of all models has a larger margin.
    """

    def __init__(self, margin_ceiling: float) -> None:
        self.margin_ceiling = margin_ceiling
        super().__init__(
            "these models cannot be merged: within rounding, the origin lies in the hull of their hypotheses; nothing "
            f"separates the examples of all of them with a margin above {margin_ceiling!r}"
        )


def merge(models: Sequence[Model], how: str = "certified", *, weights: Sequence[float] | None = None) -> Model:
    """Merge models of one rule into a new one, which can go on learning.

    It has all their classes and features. Its scores have another scale, so its calibration starts anew. `weights` are
    those of the models in the plain mean. See `maxcosine.merge`, which merges classifiers.
    """
    if how not in HOW:
        raise ValueError(f"how={how!r} is not a way of merging; it is one of {', '.join(HOW)}")
    if not models:
        raise ValueError("there is nothing to merge: give at least one fitted model")
    _check_compatible(models)
    mean_weights = np.ones(len(models)) if weights is None else np.asarray(weights, np.float64)
    if mean_weights.shape != (len(models),) or not (np.isfinite(mean_weights) & (mean_weights > 0.0)).all():
        raise ValueError(f"weights must be {len(models)} positive numbers, one for each model; got {weights}")
    first = models[0]
    classes = united(*[model.classes for model in models])
    features, slots = union([model.features for model in models])
    params, dtype = tuple(first.heads.arrays.params[0, :-1]), first.heads.dtype
    settings = {name: getattr(first.heads, name) for name in SETTINGS}
    merged = Model.create(first.rule, params, classes, features, dtype, multiclass=first.multiclass, **settings)
    merged.closed = all(model.closed for model in models)
    merged.make_room()
    parts = [
        _Part(model, slots[k], model.columns_for(classes), float(mean_weights[k])) for k, model in enumerate(models)
    ]
    bounds = np.array([_merge_head(merged.heads, h, parts, how) for h in range(len(merged.heads.table))])
    certified, mean = (column if len(bounds) > 1 else column[0].item() for column in bounds.T)
    merged.merge = Merge(how, len(models), certified, mean)
    for model in models:
        add_scalars(merged.heads.arrays.scalars, model.heads.arrays.scalars)
    if first.features.sparse:
        merged.sparsify()
    return merged


def _check_compatible(models: Sequence[Model]) -> None:
    """Refuse models that learn by different rules or in different spaces."""

    def traits(model: Model) -> dict[str, Any]:
        return {
            "rule": model.rule,
            "multiclass": model.multiclass,
            **{name: getattr(model.heads, name) for name in SETTINGS},
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
    """Find the point of a hull that is nearest to the origin, as a mean of the hull's points.

    The weights tau >= 0 minimise norm(U tau)^2 + (sum(tau) - 1)^2 by non-negative least squares, and are then
    divided by their sum. The unknowns are s_k = tau_k norm(u_k), so that points of very different norms are
    equally precise. `gram` holds the dot products of the points, none of which is 0.
    """
    norms = np.sqrt(gram.diagonal())
    values, vectors = np.linalg.eigh(gram / np.outer(norms, norms))
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    bounds = norms.min() / norms
    s, _ = nnls(np.vstack([root, bounds]), np.append(np.zeros(len(norms)), 1.0))
    tau: np.ndarray = s * bounds / (s @ bounds)
    return tau


@dataclass
class _Part:
    """A model that is merged, and where its features and columns are in the merged model."""

    model: Model
    slots: np.ndarray
    """The slot in the merged model of each slot of this one."""
    columns: Sequence[tuple[int, float]]
    """For each column of the merged model: the column of this one, or -1, and its sign."""
    weight: float = 1.0

    @cached_property
    def last(self) -> Proven:
        return self.model.heads.proven()

    @cached_property
    def average(self) -> Proven:
        return self.model.heads.proven(averaged=True)

    @cached_property
    def best_bounds(self) -> np.ndarray:
        return np.atleast_1d(self.model.certificate().best_bound)

    def member(self, head: np.void) -> _Member | None:
        """Return this model's hypothesis for a head of the merged model, or None if it has none."""
        columns = self.columns[head["first"] : head["stop"]]
        if head["joint"]:
            return _Member(self, 0, columns)
        return _Member(self, columns[0][0], columns) if columns[0][0] >= 0 else None


@dataclass
class _Member:
    """A hypothesis of one model as a point u = w / Lambda: the last one, or the averaged one."""

    part: _Part
    head: int
    columns: Sequence[tuple[int, float]]
    averaged: bool = False

    @property
    def row(self) -> np.void:
        """The scalars of the hypothesis."""
        return self.part.model.heads.table[self.head]  # type: ignore[no-any-return]

    @property
    def coef_sum(self) -> float:
        """Lambda, in the units of the stored weights."""
        return self.row["sum_coef" if self.averaged else "coef_v"]  # type: ignore[no-any-return]

    @property
    def proven(self) -> Proven:
        """What is proven of the hypotheses of its model."""
        return self.part.average if self.averaged else self.part.last

    @property
    def slack(self) -> float:
        """A bound on the rounding error of the point."""
        heads = self.part.model.heads
        unit = 1.0 / heads.rounds[self.head] if self.averaged else self.row["scale"]
        return self.proven.slack[self.head] / (unit * self.coef_sum)  # type: ignore[no-any-return]

    def length(self, exponent: int) -> float:
        """norm(w) in units of 2^exponent."""
        own = self.row["sum_exponent" if self.averaged else "w_exponent"]
        relative = min(max(int(own) - int(exponent), LOWEST_EXPONENT), HIGHEST_EXPONENT)
        return math.ldexp(self.proven.norm[self.head], relative)

    def column(self, position: int, n_features: int) -> np.ndarray:
        """Return one column of u, over the features of the merged model and the constant feature."""
        u = np.zeros(n_features + 1)
        column, sign = self.columns[position]
        if column < 0:
            return u
        arrays, slots = self.part.model.heads.arrays, self.part.slots
        u[slots] = arrays.v[: len(slots), column]
        u[-1] = arrays.bias[column]
        if self.averaged:
            u *= self.row["sum_scale"]
            u[slots] += arrays.total[: len(slots), column]
            u[-1] += arrays.total_bias[column]
        u *= sign / self.coef_sum
        return u


@dataclass
class _Mean:
    """A weighted mean of the points of some hypotheses."""

    members: Sequence[_Member]
    weights: np.ndarray
    columns: list[np.ndarray]
    """The mean, one array for each column of the merged head."""
    norm: float
    slack: float
    """A bound on the rounding error."""

    def length(self, exponent: int) -> float:
        """The mean of the norms of the hypotheses, in units of 2^exponent."""
        return float(self.weights @ np.array([member.length(exponent) for member in self.members]))

    @property
    def longest(self) -> float:
        """An upper bound on the norm of the exact point, and so on the margin of every separator."""
        n_numbers = sum(map(len, self.columns))
        return (self.norm + self.slack) * (1.0 + ROUNDING * (n_numbers + OPERATIONS))


def _merge_head(heads: Heads, h: int, parts: Sequence[_Part], how: str) -> tuple[float, float]:
    """Merge head h; return the bounds of both ways of merging for the hypothesis that predicts."""
    head = heads.table[h]
    members = [member for part in parts if (member := part.member(head)) is not None]
    rows = [member.row for member in members]
    for name in COUNTS:
        head[name] = sum(row[name] for row in rows)
    for name in ("weighted", "radius", "w_exponent"):
        head[name] = max(row[name] for row in rows)
    head["sum_exponent"] = head["w_exponent"]
    # Each Lambda has the roundings of its updates and, averaged, of its rounds; the merged one has some more.
    head["roundings"] = max(row["roundings"] + 2 * row["learnt"] for row in rows) + 4 * OPERATIONS
    head["best_bound"] = max(member.part.best_bounds[member.head] for member in members)
    head["seen"] = sum(part.model.n_seen for part in parts)
    head["since"] = head["seen"] - sum(row["seen"] - max(row["since"], 0) for row in rows)

    bounds = 0.0, 0.0
    for averaged in (False, True) if heads.average else (False,):
        points = [replace(member, averaged=averaged) for member in members]
        started = [point for point in points if point.coef_sum > 0.0]
        if started:
            mean, bounds = _merged_point(heads, head, started, how)
            (_set_average if averaged else _start_from)(heads, h, mean)
    return bounds


def _merged_point(
    heads: Heads, head: np.void, members: Sequence[_Member], how: str
) -> tuple[_Mean, tuple[float, float]]:
    """Merge the points of some hypotheses; return the merged point, and ell of both ways of merging."""
    eps, positions = LIMITS[heads.dtype].eps, range(head["stop"] - head["first"])
    slacks = np.array([member.slack for member in members])

    def points(position: int) -> np.ndarray:
        return np.stack([member.column(position, heads.n_features) for member in members])

    def mean_of(tau: np.ndarray) -> _Mean:
        columns = [_products("k,kj->j", tau, points(position)) for position in positions]
        norm = float(np.sqrt(sum(_products("j,j->", column, column) for column in columns)))
        rounding = ROUNDING * (len(members) + OPERATIONS) * (tau @ norms) + LIMITS[np.dtype(np.float64)].underflow
        used = tau > 0.0  # a slack may be infinite
        return _Mean(members, tau, columns, norm, float(tau[used] @ slacks[used] + rounding))

    gram = np.zeros((len(members), len(members)))
    for position in positions:
        columns = points(position)
        gram += _products("ij,kj->ik", columns, columns)
    norms = np.sqrt(gram.diagonal())
    if not norms.all():
        raise NotSeparable(float(slacks[norms == 0.0].min()))
    certified = mean_of(nearest_point(gram))
    # The rounding error of one model may cost more than the model adds: then the best one stays alone.
    lengths = norms + slacks
    if certified.norm + certified.slack > lengths.min():
        certified = mean_of((np.arange(len(norms)) == lengths.argmin()).astype(float))
    weights = np.array([member.part.weight for member in members])
    mean = mean_of(weights / weights.sum())
    chosen = certified if how == "certified" else mean
    if chosen.norm <= min(chosen.slack, max(eps, SMALLEST_NORM) * norms.min()):
        raise NotSeparable(chosen.longest)
    smallest = eps * head["radius"]  # no norm below this one is claimed
    reduced = 1.0 - ROUNDING * head["roundings"]
    certified_bound, mean_bound = (reduced * ell(1.0, max(one.longest, smallest)) for one in (certified, mean))
    return chosen, (certified_bound, mean_bound)


def _products(subscripts: str, *arrays: np.ndarray) -> Any:
    """Sum products in a fixed order: that of BLAS depends on the number of threads."""
    return np.einsum(subscripts, *arrays, optimize=False)


def _start_from(heads: Heads, h: int, mean: _Mean) -> None:
    """Set the last hypothesis of head h, and the state that the rule goes on with."""
    rule, head, arrays, limits = heads.rule, heads.table[h], heads.arrays, LIMITS[heads.dtype]
    for column, weights in zip(range(head["first"], head["stop"]), mean.columns, strict=True):
        arrays.v[:, column], arrays.bias[column] = weights[:-1] / mean.norm, weights[-1] / mean.norm
    length = mean.length(head["w_exponent"]) if rule.restart_norm is None else rule.restart_norm(1.0 / mean.norm)
    if rule.scale_free:
        length = min(max(length, SHORTEST_W), LONGEST_W)
    # v is the mean divided by its norm, and rounded to the type of the weights; so norm(v) is 1 up to rounding.
    head["scale"] = length
    head["coef_v"] = 1.0 / mean.norm
    head["slack_v"] = mean.slack / mean.norm * (1.0 + ROUNDING * OPERATIONS) + limits.eps + limits.underflow
    head["sq_v"] = head["peak_sq_v"] = 1.0
    head["start_sq_w"] = length * length if rule.scale_free else 0.0
    head["highest"] = heads.n_features - 1
    head["logged"] = LOG_OVERFLOWED
    head["best_bound"] = max(head["best_bound"], heads.proven().bound[h])
    states = np.stack([member.part.model.heads.arrays.state[member.head] for member in mean.members])
    state = rule.restart(length * length, length / mean.norm, tuple((mean.weights @ states)[:-1]))
    arrays.state[h, : len(state)] = state


def _set_average(heads: Heads, h: int, mean: _Mean) -> None:
    """Set the averaged hypothesis of head h, as a sum over all rounds."""
    head, arrays = heads.table[h], heads.arrays
    factor = head["learnt"] * mean.length(head["sum_exponent"]) / mean.norm
    for column, weights in zip(range(head["first"], head["stop"]), mean.columns, strict=True):
        arrays.total[:, column], arrays.total_bias[column] = weights[:-1] * factor, weights[-1] * factor
    head["sum_coef"] = factor
    head["sum_slack"] = (
        factor * (mean.slack + ROUNDING * OPERATIONS * mean.norm) + LIMITS[np.dtype(np.float64)].underflow
    )


def add_scalars(scalars: np.ndarray, other: np.ndarray) -> None:
    """Add the counts of another model to those of this one; the mean weight is then that of the rows of both."""
    n, more = int(scalars["weighed_rows"][0]), int(other["weighed_rows"][0])
    if more:
        scalars["mean_weight"] += (other["mean_weight"] - scalars["mean_weight"]) * (more / (n + more))
    for name in ("weighed_rows", "mistakes"):
        scalars[name] += other[name]


# Rounds: several models go on from the same one, and its counts must be counted once.


def without_counts(model: Model) -> Model:
    """Copy a model to go on from, with all its counts and sums over time set to 0."""
    start = model.copy()
    start.merge = None
    table, arrays = start.heads.table, start.heads.arrays
    for name in ("seen", *COUNTS, "sum_scale", "sum_coef", "sum_slack"):
        table[name] = 0
    arrays.scalars[:] = 0
    arrays.calibration[:] = new_calibration(wanted=start.has_probabilities)
    table["since"] = np.minimum(table["since"], 0)
    arrays.total[:] = 0.0
    arrays.total_bias[:] = 0.0
    return start


def add_counts(model: Model, start: Model) -> None:
    """Add the counts of `start` to a model that went on from `without_counts(start)`, alone or merged.

    An averaged model then has the sum over all rounds, those of `start` included. Neither model is sparse.
    """
    heads = model.heads
    model.changed()
    model.make_room()
    _, (_, slots) = union([model.features, start.features])
    part = _Part(start, slots, start.columns_for(model.classes))
    seen = start.n_seen
    add_scalars(heads.arrays.scalars, start.heads.arrays.scalars)
    for h, head in enumerate(heads.table):
        head["seen"] += seen
        member = part.member(head)
        if member is None or member.row["since"] < 0:
            head["since"] += seen
            continue
        head["since"] += member.row["since"]
        for name in COUNTS:
            head[name] += member.row[name]
        if heads.average and member.row["sum_coef"] > 0.0:
            _add_average(heads, h, replace(member, averaged=True))


def _add_average(heads: Heads, h: int, start: _Member) -> None:
    """Add the sum over time of `start` to that of head h, both in the unit of the longer hypotheses."""
    head, arrays, row = heads.table[h], heads.arrays, start.row
    unit = max(int(head["sum_exponent"]), int(row["sum_exponent"]))
    own, other = (
        math.ldexp(1.0, max(int(e) - unit, LOWEST_EXPONENT)) for e in (head["sum_exponent"], row["sum_exponent"])
    )
    written = 0.0
    for position, column in enumerate(range(head["first"], head["stop"])):
        weights = other * start.coef_sum * start.column(position, heads.n_features)
        total = own * np.append(arrays.total[:, column], arrays.total_bias[column]) + weights
        arrays.total[:, column], arrays.total_bias[column] = total[:-1], total[-1]
        written += float(np.linalg.norm(weights) + np.linalg.norm(total))
    head["sum_scale"] *= own
    head["sum_coef"] = own * head["sum_coef"] + other * row["sum_coef"]
    slack = other * start.slack * start.coef_sum + ROUNDING * OPERATIONS * written
    head["sum_slack"] = own * head["sum_slack"] + slack + LIMITS[np.dtype(np.float64)].underflow
    head["sum_exponent"] = unit
    head["roundings"] += OPERATIONS
