"""From the JSON and the tensors of a file to a model; everything is checked before it is used."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from reprlib import repr as short
from typing import Any

import numpy as np

from maxcosine.calibration import CALIBRATION, new_calibration
from maxcosine.certificate import HOW, Merge
from maxcosine.core import FeatureIndex
from maxcosine.features import Features
from maxcosine.heads import HEAD, LOG_OVERFLOWED, MODEL_SCALARS
from maxcosine.model import MULTICLASS, Model
from maxcosine.model_file.container import Checker, TensorFile
from maxcosine.model_file.encode import LAYOUT, bad_calibration, bad_scalar
from maxcosine.records import RecordSchema, SchemaError
from maxcosine.rules import RULES
from maxcosine.rules.rule import Rule

# Scalars of the heads that format 1 lacks, and those that only format 1 has.
NEW_IN_2, GONE_IN_2 = ("w_exponent", "sum_exponent", "roundings"), ("claim_v", "sum_norm")

HASHED = ("ids", "names")
FEATURE_KINDS = ("columns", "sparse columns", "ids", "names")


def read_model(file: TensorFile, description: dict[str, Any], rules: Sequence[Rule]) -> Model:
    """Read the model of a file, given its JSON and the caller's own rules."""
    rule = _rule(file, description, rules)
    classes = read_classes(file, description)
    features = read_features(file, description)
    settings = {name: file.get(description, name, bool) for name in ("average", "fit_intercept", "closed")}
    multiclass = file.choice(description, "multiclass", MULTICLASS)
    joint = multiclass == "joint"
    n_heads = 1 if joint or len(classes) <= 2 else len(classes)
    weights = _weights(
        file, description["format"], features, len(classes) if joint else n_heads, average=settings["average"]
    )
    n_rows = len(weights["v"])
    table = _table(file, description["format"], n_heads)
    scalars = _scalars(file, description["format"], table)
    calibration = _calibration(file)
    if fault := bad_scalar(table, scalars, n_rows) or bad_calibration(calibration, scalars):
        raise file.bad(fault)
    state = file.take("state", np.float64, (n_heads, len(rule.state)), finite=True)
    class_seen = file.take("came", np.bool_, (len(classes),)).view(np.uint8) != 0  # any byte but 0 is true
    params, dtype = _params(file, rule), weights["v"].dtype
    settings["probability"] = len(calibration) > 0
    model = Model.create(rule, params, classes, features, dtype, multiclass=multiclass, **settings)
    heads = model.heads
    for name in LAYOUT:
        if not np.array_equal(table[name], heads.table[name]):
            raise file.bad(f"the tensor 'head.{name}' does not fit {len(classes)} classes, {multiclass}")
    if n_rows > heads.n_features:
        heads.grow(n_rows)
    arrays = heads.arrays
    for name, array in weights.items():
        getattr(arrays, name)[tuple(slice(n) for n in array.shape)] = array
    arrays.table[:] = table
    arrays.scalars[:] = scalars
    arrays.calibration[:] = calibration
    arrays.state[:, : len(rule.state)] = state
    arrays.class_seen[: len(classes)] = class_seen
    model.merge = _merge(file, description)
    return model


def _weights(
    file: TensorFile, format_number: int, features: Features, n_columns: int, *, average: bool
) -> dict[str, np.ndarray]:
    v = read_weights(file, "v", features, n_columns)
    # The sums of format 1 have the type of the weights.
    sums = np.dtype(np.float64) if format_number > 1 else v.dtype
    weights = {"bias": file.take("bias", v.dtype, (n_columns,), finite=True)}
    weights["total_bias"] = file.take("total_bias", sums, (n_columns,), finite=True)
    if average:
        weights["total"] = file.take("total", sums, v.shape, finite=True)
    return {"v": v, **weights}


def read_weights(file: TensorFile, name: str, features: Features, n_columns: int) -> np.ndarray:
    """Read the weights of features."""
    weights = file.take(name, shape=(None, n_columns), finite=True)
    if weights.dtype not in (np.float32, np.float64):
        raise file.bad(f"the weights are {weights.dtype}, expected float32 or float64")
    # There may be more weights than features in an index: features of a refused chunk are forgotten.
    if len(weights) < features.n_slots or (features.index is None and len(weights) > features.n_slots):
        raise file.bad(f"there are weights for {len(weights):,} features, but {features.n_slots:,} features")
    return weights


def _table(file: TensorFile, format_number: int, n_heads: int) -> np.ndarray:
    """Read the scalars of the heads.

    Format 1 has two that are not used any more, and lacks the exponents. Its best bounds rest on norms that were not
    summed anew, so they are left out: what the weights themselves prove stays.
    """
    table = np.zeros(n_heads, HEAD)
    new = NEW_IN_2 if format_number == 1 else ()
    for field in HEAD.names or ():
        if field not in new:
            table[field] = file.take(f"head.{field}", HEAD[field], (n_heads,))
    if format_number == 1:
        for field in GONE_IN_2:
            file.take(f"head.{field}", np.float64, (n_heads,))
        table["best_bound"] = 0.0
        table["roundings"] = table["updates"]
    table["logged"] = np.where(table["logged"] > 0, LOG_OVERFLOWED, table["logged"])
    return table


def _scalars(file: TensorFile, format_number: int, table: np.ndarray) -> np.ndarray:
    """Read the scalars of the model; those of format 1 follow from its heads, mistakes only if it has one head."""
    scalars = np.zeros(1, MODEL_SCALARS)
    if format_number == 1:
        mistakes = table["mistakes"][0] if len(table) == 1 else 0
        scalars[0] = 1.0, table["seen"].max(), mistakes
        return scalars
    for field in MODEL_SCALARS.names or ():
        scalars[field] = file.take(f"model.{field}", MODEL_SCALARS[field], (1,))
    return scalars


def _calibration(file: TensorFile) -> np.ndarray:
    """Read the calibration of the model; without its tensors, the model has no probabilities."""
    calibration = new_calibration(wanted=any(name.startswith("calibration.") for name in file.untaken))
    for field in CALIBRATION.names or () if len(calibration) else ():
        dtype = CALIBRATION[field]
        calibration[field] = file.take(f"calibration.{field}", dtype.base, (1, *dtype.shape), finite=True)
    return calibration


def _rule(file: TensorFile, description: dict[str, Any], rules: Sequence[Rule]) -> Rule:
    entry = file.get(description, "rule", dict)
    rule = find_rule(file, file.get(entry, "name", str), file.get(entry, "own", bool), rules)
    for what in ("params", "state"):
        there, here = file.get(entry, what, list), list(getattr(rule, what))
        if there != here:
            raise file.bad(
                f"its rule {rule.name!r} has the {what} {short(there)}, but the rule here has {here}",
                "load it with the rule, or the version of maxcosine, that it was learnt with",
            )
    return rule


def find_rule(checker: Checker, name: str, own: bool, rules: Sequence[Rule]) -> Rule:
    """Find a rule by its name: a built-in one or, if `own`, one of the rules that the caller gave."""
    known: Mapping[str, Rule] = {rule.name: rule for rule in rules} if own else RULES
    if name in known:
        return known[name]
    if own:
        known_as = name if name.isidentifier() else "..."
        raise checker.bad(
            f"learnt by the user's rule {short(name)}, of which the file has only the name",
            f"load it with rules=[{known_as}], or in a command with --rule FILE.py:{known_as}",
        )
    raise checker.bad(
        f"learnt by the rule {short(name)}, but the rules of this version are {', '.join(RULES)}",
        "upgrade maxcosine",
    )


def _params(file: TensorFile, rule: Rule) -> Any:
    params = file.take("params", np.float64, (len(rule.params),)).tolist()
    try:
        return rule.make_params(dict(zip(rule.params, params, strict=True)))
    except ValueError as error:
        raise file.bad(str(error)) from None


def read_classes(file: TensorFile, description: dict[str, Any]) -> np.ndarray:
    """Read the classes of a model."""
    name: str = file.get(file.get(description, "classes", dict), "dtype", str)
    if re.fullmatch(r"[<>|](U\d+|O)", name):
        classes = np.array(_texts(file, "classes"), object if name[1] == "O" else np.str_)
    elif re.fullmatch(r"\|[biu]1|[<>]([iuf][248])", name):
        classes = file.take("classes", np.dtype(name).newbyteorder("<"), (None,)).astype(name)
    else:
        raise file.bad(f"its classes have the type {short(name)}")
    # A comparison with NaN is never true.
    if not len(classes) or not (classes[:-1] < classes[1:]).all() or classes[0] != classes[0]:
        raise file.bad(f"its {len(classes):,} classes are not sorted and distinct")
    return classes


def read_features(file: TensorFile, description: dict[str, Any]) -> Features:
    """Read the features of a model."""
    entry = file.get(description, "features", dict)
    kind = file.choice(entry, "kind", FEATURE_KINDS)
    n_columns: int | None = file.get(entry, "columns", type(None) if kind in ("ids", "names") else int)
    if n_columns is not None and not 0 <= n_columns < 2**63:
        raise file.bad(f"the metadata have columns={short(n_columns)}")
    index = None if kind == "columns" else _index(file, "names" if kind == "names" else "ids")
    if index is not None and n_columns is not None and (index.keys() >= np.uint64(n_columns)).any():
        raise file.bad(f"the tensor 'ids' has columns outside the {n_columns:,} columns")
    features = Features(n_columns, _column_names(file, n_columns), index)
    features.bits = file.get(entry, "bits", int, type(None))
    if features.bits is not None and not (0 <= features.bits < 63 and n_columns == 2**features.bits):
        raise file.bad(f"the metadata have bits={short(features.bits)} and columns={n_columns}")
    features.hashed = file.get(entry, "hashed", str, type(None))  # files of 0.1.0 have no such entry
    if features.hashed not in (None, *HASHED) or (features.hashed and features.bits is None):
        raise file.bad(f"the metadata have hashed={short(features.hashed)} and bits={features.bits}")
    schema = file.get(entry, "records", dict, type(None))
    if schema is not None:
        try:
            features.records = RecordSchema.from_json(schema)
        except SchemaError as error:
            raise file.bad(str(error)) from None
    if "kept.columns" in file.untaken:
        features.kept_names = _kept_names(file, n_columns)
    return features


def _index(file: TensorFile, kind: str) -> FeatureIndex:
    """Build an index from its keys, in the order of their slots."""
    index, n_keys = FeatureIndex(kind), 0
    blocks: Iterable[Any] = file.take_texts("names") if index.named else [file.take("ids", np.uint64, (None,))]
    for block in blocks:
        n_keys += len(block)
        try:
            index.slots_of(block)
        except OverflowError as error:
            raise file.bad(str(error)) from None
    if len(index) != n_keys:
        raise file.bad(f"{n_keys - len(index):,} of the {n_keys:,} {kind} of its features are duplicates")
    return index


def _texts(file: TensorFile, name: str) -> list[str]:
    return list(chain.from_iterable(file.take_texts(name)))


def _column_names(file: TensorFile, n_columns: int | None) -> np.ndarray | None:
    if "columns.starts" not in file.untaken or n_columns is None:
        return None
    names = _texts(file, "columns")
    if len(names) > n_columns:
        raise file.bad(f"there are {len(names):,} names for {n_columns:,} columns")
    return np.array(names, object)


def _kept_names(file: TensorFile, n_columns: int | None) -> dict[int, str]:
    columns, names = file.take("kept.columns", np.int64, (None,)), _texts(file, "kept")
    inside = n_columns is not None and ((columns >= 0) & (columns < n_columns)).all()
    if len(names) != len(columns) or not inside or (np.diff(columns) <= 0).any():
        raise file.bad(f"the {len(names):,} kept names do not belong to as many columns, in order")
    return dict(zip(columns.tolist(), names, strict=True))


def _merge(file: TensorFile, description: dict[str, Any]) -> Merge | None:
    entry = file.get(description, "merge", dict, type(None))
    if entry is None:
        return None
    how, models = file.choice(entry, "how", HOW), file.get(entry, "models", int)
    certified, mean = (file.take(f"merge.{name}", np.float64) for name in HOW)
    good = certified.shape == mean.shape and certified.ndim <= 1
    if models < 1 or not good or not ((certified >= 0.0) & (mean >= 0.0)).all():
        raise file.bad(f"the bounds of its merge of {models} models are invalid")
    return Merge(how, models, *(b if b.ndim else b.item() for b in (certified, mean)))
