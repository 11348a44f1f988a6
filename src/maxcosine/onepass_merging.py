"""Merge models of the one-pass learner that have seen different rows, all beginning from one base or from nothing.

Counts and sums over rows are those of the base and what each model added. A dual, last or average, becomes

    base + sum_k c_k (model_k - base),  c_k = sqrt(share of model k in the rows added),

which keeps the size of the scores: plain sums would grow like the square root of the number of models. What a model
added to a dual, last or average, is a combination of rows with coefficients >= 0, and so is the merged dual: its
certificate is proven. The geometry is then fixed anew. Models merged in a tree give the same as all at once.

Rounding. core/onepass_claim.hpp bounds the error of a weight by ((1 + r)^n - 1) sqrt(Q SS), where Q is `sq_steps`, a
bound on the sum of the squared coefficients over R^2, and a weight is written at most n times. Of the merged dual, that
sum is q = Q_base + sum_k c_k^2 (Q_k - Q_base). By Cauchy and Schwarz, the errors of the models, times c_k, add up to at
most ((1 + r)^n - 1) sqrt(q SS). With a base it is sqrt(2) times that, because steps are rounded relative to the base,
too. Then the weight is written once more, which costs as much again at most. So Q = 4 q is enough without a base, and
16 q with one. For sums over rows, 2 T unit roundings are allowed. The errors of the models take no more than T of them,
because c_k <= 1, and merging takes one for each model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from maxcosine.drift import DriftWatch
from maxcosine.features import union
from maxcosine.labels import LabelEncoder, united
from maxcosine.onepass import LANES, OnePassState
from maxcosine.onepass_model import OnePassModel
from maxcosine.score_sketch import ScoreSketch

# What adds up exactly: of each feature, and of the rows.
OF_FEATURES = ("count", "total", "square")
OF_ROWS = ("rows", "mistakes", "energy", "errors", "sizes")

# Of the numbers that are merged, those with one row for each feature.
PER_FEATURE = (*OF_FEATURES, "weights")

# The largest factor of q, see above: without a base, and with one.
ROUNDING_OF_MERGE, ROUNDING_WITH_BASE = 4.0, 16.0

Numbers = dict[str, np.ndarray]
"""Some of the numbers of a state by name, in arrays that may be changed."""


class _Part(NamedTuple):
    """A state, with its blocks in the order of the merged one."""

    state: OnePassState
    slots: np.ndarray
    """The slot in the merged state of each slot of this one."""
    before: OnePassState
    """The base, in the same order; its slots are the first of these."""


def merge(models: Sequence[OnePassModel], base: OnePassModel | None = None) -> OnePassModel:
    """Merge models into a new one, which can go on learning; all of them have gone on from `base`, if it is given.

    It has all their classes and features.
    """
    if not models:
        raise ValueError("there is nothing to merge: give at least one fitted model")
    _check_compatible(models)
    models = [_settled(model) for model in models]
    everyone = [*models] if base is None else [base, *models]
    classes = united(*[model.classes for model in everyone])
    features, slots = union([model.features for model in everyone])
    known = [_codes_by_block(model, LabelEncoder(classes)) for model in everyone]
    order = list(dict.fromkeys(code for codes in known for code in codes))
    if base is None:
        start, slots, known = OnePassState.create(0, models[0].dtype), [np.zeros(0, np.int64), *slots], [[], *known]
    else:
        start = base.state

    parts = []
    for number, model in enumerate(models):
        own_slots, own_known = slots[number + 1], known[number + 1]
        went_on = own_known[: len(known[0])] == known[0] and np.array_equal(own_slots[: len(slots[0])], slots[0])
        if not went_on or model.state.rows < start.rows:
            raise ValueError(f"model {number} has not gone on from the base; merge it without one")
        before = OnePassState(start.arrays)
        before.add_classes(model.state.n_classes)  # as it was when they came
        parts.append(_Part(_arranged(model.state, own_known, order), own_slots, _arranged(before, own_known, order)))
    started = _Part(_arranged(start, known[0], order), slots[0], start)

    state = OnePassState.create(features.n_slots, models[0].dtype, n_classes=len(order))
    _merge_into(state, started, parts)
    blocks = np.full(len(classes), -1)
    blocks[order] = np.arange(len(order))
    sketch = _merged_sketch(base, models, known, order)
    return OnePassModel(
        classes,
        state,
        features,
        all(model.closed for model in models),
        blocks,
        sketch,
        n_seen=_added_up(lambda model: model.n_seen, models, base),
        mistakes=_added_up(lambda model: model.mistakes, models, base),
    )


def _settled(model: OnePassModel) -> OnePassModel:
    """A model in which the learner that predicts stands alone, if two are on trial."""
    trial = model.drift.trial
    if trial is None or not trial.fresh_predicts:
        return model
    return replace(model, state=trial.state, sketch=trial.sketch, drift=DriftWatch())


def _added_up(count: Callable[[OnePassModel], int], models: Sequence[OnePassModel], base: OnePassModel | None) -> int:
    """The count of the base and what each model added."""
    before = 0 if base is None else count(base)
    return before + sum(count(model) - before for model in models)


def _merged_sketch(
    base: OnePassModel | None, models: Sequence[OnePassModel], known: Sequence[list[int]], order: list[int]
) -> ScoreSketch | None:
    """The counts of the base and what each model added; None with more than two classes."""
    if len(order) > 2 or any(model.sketch is None for model in models):
        return None

    def counts(sketch: ScoreSketch | None, codes: list[int]) -> np.ndarray:
        found = ScoreSketch() if sketch is None else sketch
        return (found if codes == order[: len(codes)] else found.flipped()).counts

    first = counts(None if base is None else base.sketch, known[0])
    added = [counts(model.sketch, codes) - first for model, codes in zip(models, known[1:], strict=True)]
    return ScoreSketch(first + np.sum(added, axis=0))


def _check_compatible(models: Sequence[OnePassModel]) -> None:
    """Refuse models of different labels, or whose weights are rounded differently."""

    def traits(model: OnePassModel) -> dict[str, str]:
        labels = "strings" if isinstance(model.classes.tolist()[0], str) else "numbers"
        return {"dtype": str(model.dtype), "labels": labels}

    for number, model in enumerate(models):
        for name, wanted in traits(models[0]).items():
            found = traits(model)[name]
            if found != wanted:
                raise ValueError(
                    f"models that are merged must agree in {name}: it is {wanted!r} for model 0 and {found!r} for "
                    f"model {number}"
                )


def _codes_by_block(model: OnePassModel, encoder: LabelEncoder) -> list[int]:
    """The codes of the classes that have come, in the order of their blocks."""
    come = np.flatnonzero((model.blocks >= 0) & (model.blocks < model.state.n_classes))
    codes: list[int] = encoder.codes(model.classes)[come[np.argsort(model.blocks[come])]].tolist()
    return codes


def _arranged(state: OnePassState, known: list[int], order: list[int]) -> OnePassState:
    """A state whose blocks are in another order, with blocks for more classes; `state` stays as it is."""
    other = OnePassState(state.arrays)
    other.rearrange([known.index(code) if code in known else -1 for code in order])
    return other


def _merge_into(state: OnePassState, base: _Part, parts: Sequence[_Part]) -> None:
    """Set the numbers of a new state of the same blocks, and of all features, and fix its geometry."""
    added = np.array([part.state.rows - base.state.rows for part in parts])
    shares = np.asarray(added / max(1, added.sum()))

    def total(numbers_of: Callable[[OnePassState, int], Numbers], factors: Any) -> Numbers:
        return _total(numbers_of, factors, base, parts, state.n_features)

    counts, by_shares = total(_counts, [1] * len(parts)), total(_by_shares, shares)
    duals = total(_duals, _factors(shares, base, parts))
    scalars, rows = state.scalars, int(counts["rows"][0])
    for name in OF_FEATURES:
        state.arrays.features[name] = counts[name]
    for name in OF_ROWS:
        scalars[name] = counts[name] if scalars[name].ndim else counts[name][0]
    scalars["mean_weight"] = counts["weight"][0] / max(1, rows)
    scalars["calibration"] = by_shares["calibration"]
    of_merge = ROUNDING_WITH_BASE if base.state.rows else ROUNDING_OF_MERGE
    scalars["sq_steps"] = np.maximum(counts["sq_steps"], of_merge * by_shares["sq_steps"])
    for x in duals.values():
        x[..., 1::2] = _sum_of_weights(rows) * (x[..., ::2] - x[..., 1::2])
    state.arrays.weights[:] = duals["weights"].reshape(state.arrays.weights.shape)
    state.arrays.blocks["s"], state.arrays.blocks["beta"] = duals["s"], duals["beta"]
    scalars["coef_sum"] = duals["coef_sum"]
    state.fix_geometry()


def _factors(shares: np.ndarray, base: _Part, parts: Sequence[_Part]) -> np.ndarray:
    """Return c of each part.

    What an average lacks of the steps of the base must not become negative: its Lambda bounds it. When all shards are
    learnt again, c is far from that.
    """
    factors: np.ndarray = np.sqrt(shares)
    before = _sum_of_weights(base.state.rows)
    if before == 0.0:
        return factors
    reach = float(factors @ [1.0 - before / _sum_of_weights(part.state.rows) for part in parts])
    return factors / max(1.0, reach)


def _total(
    numbers_of: Callable[[OnePassState, int], Numbers],
    factors: Any,
    base: _Part,
    parts: Sequence[_Part],
    n_features: int,
) -> Numbers:
    """Return base + sum of factor * (part - base), for numbers of the merged state's features and blocks."""
    total = {}
    for name, x in numbers_of(base.state, len(base.slots)).items():
        if name in PER_FEATURE:
            total[name] = np.zeros((n_features, *x.shape[1:]), x.dtype)
            total[name][base.slots] = x
        else:
            total[name] = x
    for factor, part in zip(factors, parts, strict=True):
        before = numbers_of(part.before, len(base.slots))
        for name, x in numbers_of(part.state, len(part.slots)).items():
            x[: len(before[name])] -= before[name]
            total[name][part.slots if name in PER_FEATURE else slice(None)] += factor * x
    return total


def _counts(state: OnePassState, n_features: int) -> Numbers:
    """What adds up exactly."""
    scalars = {name: np.atleast_1d(state.scalars[name]).copy() for name in (*OF_ROWS, "sq_steps")}
    features = {name: state.arrays.features[name][:n_features].copy() for name in OF_FEATURES}
    return {**scalars, **features, "weight": np.array([state.rows * state.scalars["mean_weight"]])}


def _by_shares(state: OnePassState, n_features: int) -> Numbers:
    return {name: state.scalars[name].copy() for name in ("calibration", "sq_steps")}


def _duals(state: OnePassState, n_features: int) -> Numbers:
    """u, s, beta and Lambda of the last dual and the average of each head, in this order along the last axis."""
    a, n_blocks = state.arrays, state.n_blocks
    numbers = {
        "weights": a.weights[:n_features, : LANES * n_blocks].reshape(n_features, n_blocks, LANES),
        "s": a.blocks["s"][:n_blocks],
        "beta": a.blocks["beta"][:n_blocks],
        "coef_sum": state.scalars["coef_sum"],
    }
    numbers = {name: x.astype(np.float64) for name, x in numbers.items()}
    if state.rows:
        for x in numbers.values():
            x[..., 1::2] = x[..., ::2] - x[..., 1::2] / _sum_of_weights(state.rows)
    return numbers


def _sum_of_weights(rows: int) -> float:
    """C_T, the weight of all rows so far in an average with weights t."""
    return rows * (rows + 1) / 2.0
