"""Files of one-pass models: from a model to JSON and tensors and back.

The core trusts the arrays of a state. So a file is refused unless its lists of slots are as the core makes them and its
numbers lie within limits that no stream reaches, far enough from overflow that learning goes on from there.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from maxcosine.drift import Drift, DriftAlarm, DriftWatch, Trial
from maxcosine.model_file.container import TensorFile, blocks_of
from maxcosine.model_file.decode import read_classes, read_features, read_weights
from maxcosine.model_file.encode import (
    LARGEST_CALIBRATION,
    LARGEST_SIZE,
    MAX_COUNT,
    class_tensors,
    curvature_bounds,
    describe_features,
    feature_tensors,
)
from maxcosine.onepass import BLOCK, FEATURE, LANES, SCALARS, OnePassArrays, OnePassState
from maxcosine.onepass_model import OnePassModel
from maxcosine.rows import LARGEST_WEIGHT
from maxcosine.score_sketch import BINS, ScoreSketch

KIND = "onepass"
SKETCH = ("sketch.bins", "sketch.counts")

# What begins the names of the tensors of a fresh learner on trial.
TRIAL = "trial."
# The counts of a trial that the JSON holds; its learner is in tensors.
TRIAL_COUNTS = ("limit", "age", "errors_of_old", "errors_of_fresh", "only_old", "only_fresh")
OUTCOMES = ("warned", "trial", "restarted", "kept")

# The length of the tensor "visited" says it.
IMPLIED = "n_visited"

# Of squashed values: 1e-100 <= |z| <= log(1 + the largest float64) < 710.
LARGEST_Z = 2.0**10
SMALLEST_SQUARE, LARGEST_SQUARE = 0.99e-200, LARGEST_Z**2

# N^-2 lies between 1 / (largest z)^2 and sqrt(T + 1) / (smallest z)^2. D^2 is N^-2 / sqrt(n).
SMALLEST_METRIC, LARGEST_METRIC = 2.0**-60, 1e215

# Sums over features that are kept: products of D^2 or N^-2, centres and, for averages, C_T.
LARGEST_SUM, LARGEST_PRODUCT = 1e225, 1e240

# Lambda: no step takes it above 1e16, and merging adds. mcp_exact divides by it; its first step is at least 1e-12.
LARGEST_COEF_SUM, SMALLEST_COEF_SUM = 1e18, 1e-24

LARGEST_ENERGY = 1e60

# As in core/onepass_geometry.hpp: sums are computed anew before there are more visits.
VISITS_A_SLOT = 64


def describe(model: OnePassModel) -> dict[str, Any]:
    """Return the JSON that describes a model."""
    return {
        "kind": KIND,
        "closed": bool(model.closed),
        "classes": {"dtype": model.classes.dtype.str},
        "features": describe_features(model.features),
        "seen": model.n_seen,
        "mistakes": model.mistakes,
        "drift": _describe_drift(model.drift),
    }


def _describe_drift(drift: DriftWatch) -> dict[str, Any]:
    trial = None if drift.trial is None else {name: getattr(drift.trial, name) for name in TRIAL_COUNTS}
    return {"alarm": asdict(drift.alarm), "trial": trial, "history": [list(one) for one in drift.history]}


def tensors_of(model: OnePassModel) -> dict[str, np.ndarray]:
    """Return the tensors of a model; those that are large are views of its arrays."""
    model.make_room()
    tensors = {"blocks": model.blocks} | _learner_tensors(model, model.state, model.sketch)
    if (trial := model.drift.trial) is not None:
        trial.state.make_ready(model.state.n_features, 0)
        own = _learner_tensors(model, trial.state, trial.sketch)
        tensors |= {f"{TRIAL}{name}": tensor for name, tensor in own.items()}
    return tensors | class_tensors(model.classes) | feature_tensors(model.features)


def _learner_tensors(model: OnePassModel, state: OnePassState, sketch: ScoreSketch | None) -> dict[str, np.ndarray]:
    # The spare room for features and for blocks is left out.
    a, n_blocks = state.arrays, state.n_blocks
    n_rows = max(model.features.n_slots, int(model.state.scalars["slots_used"]))
    used = OnePassArrays(
        weights=a.weights[:n_rows, : LANES * n_blocks],
        features=a.features[:n_rows],
        visited=a.visited[: state.scalars["n_visited"]],
        blocks=a.blocks[:n_blocks],
        scalars=a.scalars,
    )
    if fault := fault_in(used, model.blocks):
        raise ValueError(f"{fault}; such a model is not saved")
    tensors = {"weights": used.weights, "visited": used.visited}
    for prefix, records in (("feature", used.features), ("block", used.blocks), ("scalar", used.scalars)):
        tensors |= {f"{prefix}.{name}": records[name] for name in records.dtype.names or () if name != IMPLIED}
    if sketch is not None:
        tensors |= dict(zip(SKETCH, sketch.compact(), strict=True))
    return tensors


def read_model(file: TensorFile, description: dict[str, Any]) -> OnePassModel:
    """Read the model of a file, given its JSON."""
    classes, features = read_classes(file, description), read_features(file, description)
    closed = file.get(description, "closed", bool)
    blocks = file.take("blocks", np.int64, (len(classes),))
    state, sketch = _read_learner(file, features, blocks)
    model = OnePassModel(classes, state, features, closed, blocks.copy(), sketch, state.rows, state.mistakes)
    if "seen" not in description:  # written before there was a watch for drifts
        return model
    model.n_seen, model.mistakes = _count(file, description, "seen"), _count(file, description, "mistakes")
    if model.n_seen < state.rows or model.mistakes > model.n_seen:
        raise file.bad(f"the metadata have seen={model.n_seen} and mistakes={model.mistakes}, which cannot be")
    model.drift = _read_drift(file, file.get(description, "drift", dict), model)
    return model


def _count(file: TensorFile, values: dict[str, Any], name: str) -> int:
    count: int = file.get(values, name, int)
    if not 0 <= count <= MAX_COUNT:
        raise file.bad(f"the metadata have {name}={count}, which is out of range")
    return count


def _read_drift(file: TensorFile, values: dict[str, Any], model: OnePassModel) -> DriftWatch:
    stored = file.get(values, "alarm", dict)
    starts = file.get(stored, "starts", list)
    alarm = DriftAlarm(_count(file, stored, "rows"), _count(file, stored, "errors"), starts)
    within = all(type(start) is int and 0 <= start <= alarm.errors for start in starts)
    if not within or alarm.errors > alarm.rows or len(starts) != alarm.n_sizes:
        raise file.bad("the metadata have an alarm that does not count errors")
    history = [_read_entry(file, entry, model.n_seen) for entry in file.get(values, "history", list)]
    counts = file.get(values, "trial", dict, type(None))
    if (counts is not None) is not bool(history and history[-1].outcome == "trial"):
        raise file.bad("the metadata have a trial without an alarm, or an alarm without its trial")
    if counts is None:
        return DriftWatch(alarm, None, history)
    state, sketch = _read_learner(file, model.features, model.blocks, TRIAL)
    if state.dtype != model.dtype:
        raise file.bad(f"the tensor '{TRIAL}weights' has another type than 'weights'")
    return DriftWatch(alarm, Trial(state, sketch, *(_count(file, counts, name) for name in TRIAL_COUNTS)), history)


def _read_entry(file: TensorFile, entry: Any, seen: int) -> Drift:
    if type(entry) is not list or len(entry) != 3 or entry[2] not in OUTCOMES:
        raise file.bad(f"the metadata have the drift {entry!r:.80}, which is none")
    alarm, ended, outcome = entry
    if type(alarm) is not int or not 0 <= alarm <= seen:
        raise file.bad(f"the metadata have the drift {entry!r:.80}, but {seen} examples were seen")
    if outcome in ("restarted", "kept") and (type(ended) is not int or not alarm <= ended <= seen):
        raise file.bad(f"the metadata have the drift {entry!r:.80}, whose trial ended at no example that was seen")
    return Drift(alarm, ended if outcome in ("restarted", "kept") else None, outcome)


def _read_learner(
    file: TensorFile, features: Any, blocks: np.ndarray, prefix: str = ""
) -> tuple[OnePassState, ScoreSketch | None]:
    """Read the state and the sketch of a learner, from tensors whose names begin with the prefix."""
    scalars = _records(file, f"{prefix}scalar", SCALARS, 1)
    n_classes = int(scalars["n_classes"][0])
    if not 0 <= n_classes <= len(blocks):
        raise file.bad(
            f"the tensor '{prefix}scalar.n_classes' has the value {n_classes}, but there are {len(blocks)} classes"
        )
    n_blocks = OnePassState.create(0, n_classes=n_classes).n_blocks
    weights = read_weights(file, f"{prefix}weights", features, LANES * n_blocks)
    visited = file.take(f"{prefix}visited", np.uint32, (None,))
    scalars[IMPLIED] = len(visited)
    table, lanes = (
        _records(file, f"{prefix}feature", FEATURE, len(weights)),
        _records(file, f"{prefix}block", BLOCK, n_blocks),
    )
    if fault := fault_in(OnePassArrays(weights, table, visited, lanes, scalars), blocks):
        raise file.bad(fault)
    state = OnePassState.create(len(weights), weights.dtype, n_classes=n_classes)
    arrays = state.arrays._replace(features=table, blocks=lanes, scalars=scalars)
    arrays.weights[:] = weights
    arrays.visited[: len(visited)] = visited
    state.arrays = arrays
    return state, _read_sketch(file, int(scalars["rows"][0]), prefix)


def _read_sketch(file: TensorFile, rows: int, prefix: str) -> ScoreSketch | None:
    of_bins, of_counts = (prefix + name for name in SKETCH)
    if of_bins not in file.untaken:
        return None
    bins = file.take(of_bins, np.int64, (None,))
    counts = file.take(of_counts, np.int64, (2, len(bins)))
    if (counts < 0).any() or counts.sum() > rows:
        raise file.bad(f"the tensor '{of_counts}' does not count rows")
    if (np.diff(bins) <= 0).any() or (len(bins) and not 0 <= bins[0] <= bins[-1] < BINS):
        raise file.bad(f"the tensor '{of_bins}' does not list bins in their order")
    return ScoreSketch.from_compact(bins, counts)


def _records(file: TensorFile, prefix: str, dtype: np.dtype, n: int) -> np.ndarray:
    records = np.zeros(n, dtype)
    for name in dtype.names or ():
        if name != IMPLIED:
            records[name] = file.take(f"{prefix}.{name}", dtype[name].base, (n, *dtype[name].shape), finite=True)
    return records


def fault_in(arrays: OnePassArrays, blocks: np.ndarray) -> str | None:
    """Say what is wrong with the arrays of a state, without spare room, or with the blocks of its classes."""
    begun = np.sort(blocks[blocks >= 0])
    if not np.array_equal(begun, np.arange(len(begun))) or (blocks < -1).any():
        return "the tensor 'blocks' does not number classes in the order in which they come"
    if len(begun) < arrays.scalars["n_classes"][0]:
        return f"the tensor 'scalar.n_classes' has a value above {len(begun)}, the classes that have come"
    return _fault_in_numbers(arrays) or _fault_in_features(arrays)


def _fault_in_features(arrays: OnePassArrays) -> str | None:
    """Say which list of slots is not as the core makes it; the core would write outside its memory."""
    features, visited, (scalars,) = arrays.features, arrays.visited, arrays.scalars
    unseen = features["count"] == 0
    if any(features[name][unseen].any() for name in FEATURE.names or ()) or arrays.weights[unseen].any():
        return "the tensor 'feature.count' is 0 for a feature that has other numbers"
    if not unseen[scalars["slots_used"] :].all():
        return "the tensor 'scalar.slots_used' is not above all features that have come"
    # The features of the rows since T was last a power of two are listed, each once.
    current = np.flatnonzero(~unseen & (features["period"] == int(scalars["rows"]).bit_length()))
    if not np.array_equal(np.sort(visited), current):
        return "the tensor 'visited' does not list the features of the period"
    return None


Bounds = dict[str, tuple[Any, Any]]
"""The smallest and the largest value of each field."""


def _fault_in_numbers(arrays: OnePassArrays) -> str | None:
    """Say which number is out of range, if one is."""
    (s,) = arrays.scalars
    rows = int(s["rows"])
    # Lambda bounds u, s and beta of a last dual; for what the average lacks, the bound is C_T times that.
    lanes = np.repeat(s["coef_sum"][[0, 2]], 2) * np.tile([1.0, rows * (rows + 1) / 2.0], 2)
    for prefix, records, bounds in (
        ("scalar", arrays.scalars, _scalar_bounds(s, lanes, len(arrays.features))),
        ("feature", arrays.features, _feature_bounds(arrays.features["count"], rows)),
        ("block", arrays.blocks, _block_bounds(lanes)),
    ):
        for name, (low, high) in bounds.items():
            good = (records[name] >= low) & (records[name] <= high)
            if not good.all():
                value = records[name][~good][0]
                return f"the tensor '{prefix}.{name}' has the value {value}, which is out of range"
    highest = LARGEST_Z * np.tile(lanes, len(arrays.blocks))
    if not all((np.abs(block) <= highest).all() for block in blocks_of(arrays.weights)):
        return "the tensor 'weights' has values that are out of range"
    return None


def _scalar_bounds(s: Any, lanes: np.ndarray, n_rows: int) -> Bounds:
    rows, in_sums = s["rows"], (-LARGEST_SUM, LARGEST_SUM)
    # mcp_exact divides by its Lambda unless that is 0.
    least_coef_sum = SMALLEST_COEF_SUM if s["coef_sum"][2] > 0.0 else 0.0
    return {
        "rows": (0, MAX_COUNT),
        "mistakes": (0, rows),
        "slots_used": (0, n_rows),
        "n_visited": (0, n_rows),
        "visits": (0, VISITS_A_SLOT * int(s["slots_used"])),
        "stale": (0, 1),
        "mean_weight": (0.0, LARGEST_WEIGHT),
        **dict.fromkeys(("sq_centre", "scaled_centre", "peak", "sq_u"), in_sums),
        "coef_sum": (
            [0.0, -2.0 * lanes[1], least_coef_sum, -2.0 * lanes[3]],
            [LARGEST_COEF_SUM, 2.0 * lanes[1], LARGEST_COEF_SUM, 2.0 * lanes[3]],
        ),
        "energy": (1.0, LARGEST_ENERGY),
        "sq_steps": (0.0, LARGEST_ENERGY),
        "errors": (0.0, rows),
        "sizes": (0.0, LARGEST_SIZE),
        "calibration": (-LARGEST_CALIBRATION, LARGEST_CALIBRATION),
        "curvature": curvature_bounds(s["curvature"]),
    }


def _feature_bounds(n: np.ndarray, rows: int) -> Bounds:
    seen = n > 0
    metric = np.where(seen, SMALLEST_METRIC, 0.0), np.where(seen, LARGEST_METRIC, 0.0)
    return {
        "count": (0, rows),
        "total": (-LARGEST_Z * n, LARGEST_Z * n),
        "square": (np.where(seen, SMALLEST_SQUARE, 0.0), LARGEST_SQUARE * n),
        "centre": (-LARGEST_Z * n, LARGEST_Z * n),
        "inverse_scale": metric,
        "metric": metric,
        "next_fix": (0, MAX_COUNT),
        "period": (0, rows.bit_length()),
    }


def _block_bounds(lanes: np.ndarray) -> Bounds:
    return {
        "s": (-2.0 * lanes, 2.0 * lanes),
        "beta": (-2.0 * lanes, 2.0 * lanes),
        "centred": (-LARGEST_PRODUCT, LARGEST_PRODUCT),
    }
