"""From a model to the JSON and the tensors of its file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxcosine.calibration import CALIBRATION
from maxcosine.features import Features
from maxcosine.heads import HEAD, LOG_OVERFLOWED, MODEL_SCALARS
from maxcosine.model import Model
from maxcosine.model_file.container import blocks_of
from maxcosine.rows import LARGEST_WEIGHT

# Fields of the heads that follow from the classes and the rule.
LAYOUT = ("positive", "joint", "first", "stop", "scale_free")

MAX_COUNT = 2**62
MAX_EXPONENT = 2**60  # the difference of two fits, too
MAX_FLOAT = float(np.finfo(np.float64).max)
MIN_SCALE = float(np.finfo(np.float64).smallest_subnormal)

# Of calibrations. Learning takes no slope below the smallest and no size above the largest, and stays far within the
# others, as in core/calibration.hpp.
SMALLEST_SLOPE, LARGEST_SIZE = 0.05, 1e290
LARGEST_CALIBRATION, LARGEST_CURVATURE = 1e100, 1e225


def describe(model: Model) -> dict[str, Any]:
    """Return the JSON that describes a model."""
    rule, features, heads, merge = model.rule, model.features, model.heads, model.merge
    return {
        "rule": {"name": rule.name, "own": not rule.builtin, "params": list(rule.params), "state": list(rule.state)},
        "multiclass": model.multiclass,
        "average": bool(heads.average),
        "fit_intercept": bool(heads.fit_intercept),
        "closed": bool(model.closed),
        "classes": {"dtype": model.classes.dtype.str},
        "features": describe_features(features),
        "merge": None if merge is None else {"how": merge.how, "models": merge.models},
    }


def describe_features(features: Features) -> dict[str, Any]:
    """Return the JSON that describes the features of a model."""
    kind = "columns"
    if features.index is not None:
        kind = "sparse columns" if features.sparse else features.index.kind
    found = {"kind": kind, "columns": features.n_columns, "bits": features.bits, "hashed": features.hashed}
    return found if features.records is None else {**found, "records": features.records.to_json()}


def tensors_of(model: Model) -> dict[str, np.ndarray]:
    """Return the tensors of a model; those that are large are views of its arrays."""
    heads, features, rule = model.heads, model.features, model.rule
    model.make_room()
    arrays, n_columns, table = heads.arrays, heads.n_columns, heads.table.copy()
    # The spare rows and the padding of the columns are left out.
    n_rows = max(features.n_slots, int(table["highest"].max()) + 1)
    # The length of the log depends on the spare rows. The log only saves time, so it counts as overflowed.
    table["logged"] = np.where(table["logged"] > 0, LOG_OVERFLOWED, 0)
    if fault := bad_scalar(table, arrays.scalars, n_rows) or bad_calibration(arrays.calibration, arrays.scalars):
        raise ValueError(f"{fault}; such a model is not saved")
    weights = {
        "v": arrays.v[:n_rows, :n_columns],
        "bias": arrays.bias[:n_columns],
        "total_bias": arrays.total_bias[:n_columns],
        "state": arrays.state[:, : len(rule.state)],
        "params": arrays.params[0, : len(rule.params)],
    }
    if heads.average:
        weights["total"] = arrays.total[:n_rows, :n_columns]
    for name, array in weights.items():
        if not all(np.isfinite(block).all() for block in blocks_of(array)):
            raise ValueError(f"{name} has values that are not finite; such a model is not saved")
    tensors = {f"head.{name}": table[name] for name in HEAD.names or ()}
    tensors |= {f"model.{name}": arrays.scalars[name] for name in MODEL_SCALARS.names or ()}
    if heads.probability:
        tensors |= {f"calibration.{name}": arrays.calibration[name] for name in CALIBRATION.names or ()}
    tensors |= {**weights, "came": arrays.class_seen[: len(model.classes)] != 0}
    tensors |= class_tensors(model.classes) | feature_tensors(features)
    if model.merge is not None:
        tensors["merge.certified"] = np.asarray(model.merge.certified, np.float64)
        tensors["merge.mean"] = np.asarray(model.merge.mean, np.float64)
    return tensors


def class_tensors(classes: np.ndarray) -> dict[str, np.ndarray]:
    """Return the tensors of classes."""
    if classes.dtype.kind in "UO" and all(isinstance(label, str) for label in classes.tolist()):
        return _text_tensors("classes", classes.tolist())
    if classes.dtype.kind not in "biuf" or classes.dtype.itemsize > 8:
        raise TypeError(
            f"a model file cannot store classes of type {classes.dtype}, such as {classes.tolist()[0]!r}; "
            "learn from labels that are str, int, float or bool"
        )
    return {"classes": classes}


def feature_tensors(features: Features) -> dict[str, np.ndarray]:
    """Return the tensors of features: their keys and names."""
    tensors: dict[str, np.ndarray] = {}
    if features.index is not None and features.index.named:
        tensors["names.letters"], tensors["names.starts"] = features.index.letters()
    elif features.index is not None:
        tensors["ids"] = features.index.keys()
    if features.names is not None:
        tensors |= _text_tensors("columns", features.names.tolist())
    if features.kept_names is not None:
        columns = sorted(features.kept_names)
        tensors["kept.columns"] = np.array(columns, np.int64)
        tensors |= _text_tensors("kept", [features.kept_names[column] for column in columns])
    return tensors


def _text_tensors(name: str, texts: Sequence[str]) -> dict[str, np.ndarray]:
    """Store texts as one run of UTF-8 and where each starts; the last start is the end."""
    try:
        parts = [text.encode() for text in texts]
    except UnicodeEncodeError as error:
        raise ValueError(f"{error.object!r} among the {name} is not valid Unicode; rename it") from None
    starts = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return {f"{name}.letters": np.frombuffer(b"".join(parts), np.uint8), f"{name}.starts": starts}


def bad_scalar(table: np.ndarray, scalars: np.ndarray, n_rows: int) -> str | None:
    """Say which scalar of the heads or of the model is out of range, if one is: the core trusts them."""
    bounds: dict[str, tuple[Any, Any]] = {
        "weighted": (0, 1),
        "since": (-1, table["seen"]),
        "highest": (-1, n_rows - 1),
        "logged": (0, LOG_OVERFLOWED),
        "scale": (MIN_SCALE, MAX_FLOAT),
        # Infinite where rounding leaves nothing to claim.
        "slack_v": (0.0, np.inf),
        "sum_slack": (0.0, np.inf),
        "w_exponent": (-MAX_EXPONENT, MAX_EXPONENT),
        "sum_exponent": (-MAX_EXPONENT, MAX_EXPONENT),
        "mistakes": (0, scalars["weighed_rows"]),
        "mean_weight": (0.0, LARGEST_WEIGHT),
    }
    for prefix, records in (("head", table), ("model", scalars)):
        for name in records.dtype.names or ():
            if name in LAYOUT:
                continue
            whole = records.dtype[name].kind == "i"
            low, high = bounds.get(name, (0, MAX_COUNT if whole else MAX_FLOAT))
            if fault := _out_of_range(f"{prefix}.{name}", records[name], low, high):
                return fault
    return None


def bad_calibration(calibration: np.ndarray, scalars: np.ndarray) -> str | None:
    """Say which number of a calibration is out of range, if one is."""
    bounds: dict[str, tuple[Any, Any]] = {
        "slope": (SMALLEST_SLOPE, LARGEST_CALIBRATION),
        "offset": (-LARGEST_CALIBRATION, LARGEST_CALIBRATION),
        "size": (0.0, LARGEST_SIZE),
        "rows": (0, scalars["weighed_rows"]),
    }
    for record in calibration:
        for name in CALIBRATION.names or ():
            low, high = curvature_bounds(record[name]) if name == "curvature" else bounds[name]
            if fault := _out_of_range(f"calibration.{name}", np.atleast_1d(record[name]), low, high):
                return fault
    return None


def curvature_bounds(h: np.ndarray) -> tuple[list[float], list[float]]:
    """Return the smallest and the largest entries of a curvature, of the slope, of both, and of the offset.

    A curvature is the identity plus squares, so its determinant is at least its first entry.
    """
    mixed = float(np.sqrt(max(0.0, h[0] * h[2] - h[0] / 2.0)))
    return [1.0, -mixed, 1.0], [LARGEST_CURVATURE, mixed, MAX_COUNT]


def _out_of_range(name: str, values: np.ndarray, low: Any, high: Any) -> str | None:
    good = (values >= low) & (values <= high)
    return None if good.all() else f"the tensor '{name}' has the value {values[~good][0]}, which is out of range"
