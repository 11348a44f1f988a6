"""One model, one safetensors file: all arrays as tensors, everything else as versioned JSON beside them.

Nothing in a file is ever executed, and nothing is used before it was checked. A model that was saved and
loaded goes on learning to the same bits as one that never was; and the tensors say what was learnt and
not how: they are the same for every cutting of a stream into chunks. See `digest`.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from maxcosine import __version__, files
from maxcosine.certificate import Merge
from maxcosine.engine.heads import HEAD, LIMITS
from maxcosine.features import Features
from maxcosine.index import MOST_FEATURES, FeatureIndex
from maxcosine.index.kernels import spans
from maxcosine.model import MULTICLASS, Model
from maxcosine.record import Record
from maxcosine.rules import RULES
from maxcosine.rules.rule import Rule

FORMAT = 1

# Where the JSON is among the metadata of the file, and the checksum of it and of the tensors.
DESCRIPTION, CHECKSUM = "maxcosine", "sha256"
MOST_METADATA = 2**24

KINDS = ("columns", "sparse columns", "ids", "names")

# Fields of the heads that files of format 1 may lack, because a later version added them: what they were.
ADDED_FIELDS: dict[str, float] = {}

# Fields that follow from the classes and the rule.
LAYOUT = ("positive", "joint", "first", "stop", "scale_free")
# What the other fields are at most, and a scale at least.
MOST_COUNTED = 2**62
MOST, LEAST = float(np.finfo(np.float64).max), float(np.finfo(np.float64).smallest_subnormal)
# What `logged` is when slots were written and the log does not say which.
ANYWHERE = np.iinfo(np.int64).max

# Labels that are texts of fixed width keep theirs up to this one.
WIDEST_LABEL = 256

BLOCK_BYTES = 2**22
BLOCK_NAMES = 2**16

TYPES: dict[str, np.dtype] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U64": np.dtype("<u8"),
    "U32": np.dtype("<u4"),
    "U16": np.dtype("<u2"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
CODES = {dtype: code for code, dtype in TYPES.items()}

WRITE_ANEW = "write the model anew, or take another copy of the file"


class BadModelFile(ValueError):
    """A file that holds no model, or a damaged one, or one that this version cannot read."""


class Loaded(Record):
    """What a file holds."""

    model: Model
    provenance: dict[str, Any] | None
    estimator: dict[str, Any] | None
    more: dict[str, Any] | None
    tensors: dict[str, np.ndarray]


def save(
    model: Model,
    path: str | os.PathLike[str],
    *,
    provenance: dict[str, Any] | None = None,
    estimator: dict[str, Any] | None = None,
    more: dict[str, Any] | None = None,
    tensors: dict[str, np.ndarray] | None = None,
) -> None:
    """Write a model to a file, which is there whole or not at all.

    Parameters
    ----------
    model : what was learnt
    path : the file; one that is there is replaced in one moment, at the end
    provenance : where the model is from, as JSON: command, data, versions, times
    estimator : what `save_estimator` keeps of an estimator
    more : other JSON that is to be kept, for example where in a stream learning has come to
    tensors : other arrays that are to be kept, by name
    """
    contents = _contents(model, provenance, estimator, more, tensors)
    try:
        with files.writing(Path(path)) as file:
            _write(file, *contents)
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise  # it says where
        raise type(error)(error.errno, error.strerror or str(error), os.fspath(path)) from error


def to_bytes(model: Model, *, more: dict[str, Any] | None = None) -> bytes:
    """The bytes of a model file, as `save` writes it."""
    file = io.BytesIO()
    _write(file, *_contents(model, more=more))
    return file.getvalue()


def load(path: str | os.PathLike[str], *, rules: Sequence[Rule] = ()) -> Loaded:
    """Read a file that `save` wrote; raises `BadModelFile` if anything about it is not as it must be.

    Parameters
    ----------
    path : the file
    rules : rules of your own, one of which the model was learnt by
    """
    return _loaded(path, rules, os.fspath(path))


def from_bytes(content: bytes, *, rules: Sequence[Rule] = ()) -> Loaded:
    """Read what `to_bytes` gave, with all checks of `load`."""
    import tempfile  # which those who read or write files need not wait for

    # The library that reads tensors reads files only.
    with tempfile.NamedTemporaryFile(suffix=".safetensors") as file:
        file.write(content)
        file.flush()
        return _loaded(file.name, rules, "a model that was received")


def _loaded(path: str | os.PathLike[str], rules: Sequence[Rule], title: str) -> Loaded:
    with _opened(path, title) as reader:
        described = reader.described()
        model = _model(reader, described, rules)
        provenance, estimator, more = (
            reader.get(described, name, dict, type(None)) for name in ("provenance", "estimator", "more")
        )
        own = [name for name in reader.names if name.startswith("more.")]
        tensors = {name.removeprefix("more."): reader.any_array(name) for name in own}
        reader.refuse_unread()
    return Loaded(model, provenance, estimator, more, tensors)


def digest(path: str | os.PathLike[str]) -> str:
    """A SHA-256 over names, types, shapes and bytes of all tensors of a file, whatever its metadata.

    It is that of one JSON list a tensor, sorted by name: [name, type, shape, SHA-256 of the bytes].
    """
    with _opened(path) as reader:
        return reader.digest()


# Writing


def _contents(
    model: Model,
    provenance: dict[str, Any] | None = None,
    estimator: dict[str, Any] | None = None,
    more: dict[str, Any] | None = None,
    tensors: dict[str, np.ndarray] | None = None,
) -> tuple[str, dict[str, _Tensor]]:
    """What is written: the JSON, and the tensors."""
    described = {
        "format": FORMAT,
        "written_by": f"maxcosine {__version__}",
        **_description(model),
        "provenance": provenance,
        "estimator": estimator,
        "more": more,
    }
    contents = _tensors(model)
    for name, array in (tensors or {}).items():
        contents[f"more.{name}"] = _tensor(np.asarray(array), f"the tensor {name!r}")
    return _as_json(described), contents


class _Tensor(Record):
    """An array that is to be written, block by block: no copy of the whole is made."""

    dtype: np.dtype
    shape: tuple[int, ...]
    blocks: Iterable[Any]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def _tensor(array: np.ndarray, what: str, *, finite: bool = False) -> _Tensor:
    dtype = array.dtype.newbyteorder("<")
    if dtype not in CODES:
        raise TypeError(f"{what} has the type {array.dtype}, for which a model file has no place")

    def blocks() -> Iterator[np.ndarray]:
        rows = np.atleast_1d(array)
        for start, stop in _spans(rows.shape, dtype):
            block = np.ascontiguousarray(rows[start:stop], dtype)
            if finite and not np.isfinite(block).all():
                raise ValueError(f"{what} has values that are not finite; such a model is not saved")
            yield block

    return _Tensor(dtype, array.shape, blocks())


def _spans(shape: Sequence[int], dtype: np.dtype) -> Iterator[tuple[int, int]]:
    """Rows that make blocks of a few megabytes; none of an array that is empty."""
    a_row = math.prod(shape[1:]) * dtype.itemsize
    step = max(1, BLOCK_BYTES // max(1, a_row))
    for start in range(0, shape[0] if a_row else 0, step):
        yield start, min(start + step, shape[0])


def _write(file: Any, text: str, tensors: dict[str, _Tensor]) -> None:
    """The layout of safetensors: the length of the header, the header, the bytes of the tensors."""
    # Large items first, as the library does it: all are aligned to their own size.
    names = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    header: dict[str, Any] = {"__metadata__": {CHECKSUM: "0" * 64, DESCRIPTION: text}}
    stop = 0
    for name in names:
        tensor = tensors[name]
        start, stop = stop, stop + tensor.nbytes
        header[name] = {"dtype": CODES[tensor.dtype], "shape": tensor.shape, "data_offsets": [start, stop]}
    raw = json.dumps(header, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)
    file.write(len(raw).to_bytes(8, "little") + raw)
    lines = []
    for name in names:
        sha = hashlib.sha256()
        for block in tensors[name].blocks:
            file.write(block)
            sha.update(block)
        lines.append(_line(name, CODES[tensors[name].dtype], tensors[name].shape, sha))
    file.seek(8 + raw.index(b"0" * 64))  # nothing before it holds a zero
    file.write(_checksum(_digest(lines), text).encode())


def _line(name: str, code: str, shape: Sequence[int], sha: Any) -> str:
    return json.dumps([name, code, list(shape), sha.hexdigest()])


def _digest(lines: Iterable[str]) -> str:
    # A line begins with the name in quotes, and no two names are the same: this is the order of names.
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def _checksum(digest: str, text: str) -> str:
    return hashlib.sha256(f"{digest}\n{text}".encode()).hexdigest()


def _as_json(described: dict[str, Any]) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, np.generic) and not isinstance(value.item(), np.generic):
            return value.item()
        raise TypeError(f"{value!r} is a {type(value).__name__}, which JSON cannot hold; give a plain value")

    # Only ASCII: names of files may hold what is no Unicode.
    try:
        text = json.dumps(described, default=plain, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        raise ValueError(
            f"provenance and more are kept as JSON: {error}; give finite, plain values"
        ) from None
    if len(text) > MOST_METADATA:
        raise ValueError(
            f"provenance, parameters and the like take {len(text):,} bytes as JSON, and a model file has "
            f"room for {MOST_METADATA:,}; give large things as tensors"
        )
    return text


def _description(model: Model) -> dict[str, Any]:
    rule, features, heads = model.rule, model.features, model.heads
    return {
        "rule": {
            "name": rule.name,
            "own": not rule.builtin,
            "params": list(rule.params),
            "state": list(rule.state),
        },
        "multiclass": model.multiclass,
        "average": bool(heads.average),
        "fit_intercept": bool(heads.fit_intercept),
        "closed": bool(model.closed),
        "classes": {"dtype": _label_type(model.classes)},
        "features": {
            "kind": _kind(features),
            "columns": features.n_columns,
            "bits": features.bits,
        },
        "merge": None if model.merge is None else {"how": model.merge.how, "models": model.merge.models},
    }


def _kind(features: Features) -> str:
    if features.index is None:
        return "columns"
    return "sparse columns" if features.sparse else features.index.kind


def _label_type(classes: np.ndarray) -> str:
    if classes.dtype.kind == "U" and classes.dtype.itemsize > 4 * WIDEST_LABEL:
        return f"<U{max(map(len, classes.tolist()))}"
    return classes.dtype.str


def _tensors(model: Model) -> dict[str, _Tensor]:
    heads, features = model.heads, model.features
    arrays, n_columns, table = heads.arrays, heads.n_columns, heads.table.copy()
    if heads.n_features < features.n_slots:
        model.make_room()
        arrays = heads.arrays
    # Not the room for features to come, nor the columns that only fill up a vector.
    n_rows = max(features.n_slots, int(table["highest"].max()) + 1)
    # How long the log is depends on that room. It only saves time: what was written is anywhere now.
    table["logged"] = np.where(table["logged"] > 0, ANYWHERE, 0)
    fault = _fault_of(table, n_rows)
    if fault:
        raise ValueError(f"{fault}; such a model is not saved")

    def weights(name: str, array: np.ndarray) -> _Tensor:
        return _tensor(array, name, finite=True)

    tensors = {f"head.{name}": _tensor(table[name], name) for name in HEAD.names or ()}
    tensors |= {
        "v": weights("v", arrays.v[:n_rows, :n_columns]),
        "bias": weights("bias", arrays.bias[:n_columns]),
        "total_bias": weights("total_bias", arrays.total_bias[:n_columns]),
        "state": weights("state", arrays.state[:, : len(model.rule.state)]),
        "params": weights("params", arrays.params[0, : len(model.rule.params)]),
        "came": _tensor(arrays.came[: len(model.classes)] != 0, "came"),
    }
    if heads.average:
        tensors["total"] = weights("total", arrays.total[:n_rows, :n_columns])
    tensors |= _class_tensors(model.classes)
    tensors |= _feature_tensors(features)
    if model.merge is not None:
        tensors["merge.certified"] = _tensor(np.asarray(model.merge.certified, np.float64), "merge")
        tensors["merge.mean"] = _tensor(np.asarray(model.merge.mean, np.float64), "merge")
    return tensors


def _class_tensors(classes: np.ndarray) -> dict[str, _Tensor]:
    if classes.dtype.kind in "UO" and all(isinstance(label, str) for label in classes.tolist()):
        return _text_tensors("classes", classes.tolist())
    if classes.dtype.kind not in "biuf" or classes.dtype.itemsize > 8:
        raise TypeError(
            f"classes of type {classes.dtype}, such as {classes.tolist()[0]!r}, have no place in a model "
            "file; learn from labels that are str, int, float or bool"
        )
    return {"classes": _tensor(classes, "the classes")}


def _feature_tensors(features: Features) -> dict[str, _Tensor]:
    tensors: dict[str, _Tensor] = {}
    if features.index is not None and features.index.named:
        tensors |= _index_tensors(features.index)
    elif features.index is not None:
        tensors["ids"] = _tensor(features.index.table.words[: len(features.index)], "ids")
    if features.names is not None:
        tensors |= _text_tensors("columns", features.names.tolist())
    kept = features.kept_names
    if kept is not None:
        columns = sorted(kept)
        tensors["kept.columns"] = _tensor(np.array(columns, np.int64), "kept.columns")
        tensors |= _text_tensors("kept", [kept[column] for column in columns])
    return tensors


def _text_tensors(name: str, texts: Sequence[str]) -> dict[str, _Tensor]:
    """Texts as UTF-8, one after another, and where each begins, and the last ends."""
    try:
        parts = [text.encode() for text in texts]
    except UnicodeEncodeError as error:
        raise ValueError(f"{error.object!r} among the {name} is no Unicode text; call it otherwise") from None
    starts = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=starts[1:])
    letters = np.frombuffer(b"".join(parts), np.uint8)
    return {f"{name}.letters": _tensor(letters, name), f"{name}.starts": _tensor(starts, name)}


def _index_tensors(index: FeatureIndex) -> dict[str, _Tensor]:
    """The names of an index, straight from where it keeps them: there may be many."""
    first, last = np.empty((2, len(index)), np.int64)
    spans(index.table, first, last)
    starts = np.zeros(len(index) + 1, np.int64)
    np.cumsum(last - first, out=starts[1:])

    def letters() -> Iterator[bytes]:
        words = memoryview(index.table.words).cast("B")
        for k in range(0, len(index), BLOCK_NAMES):
            block = zip(first[k : k + BLOCK_NAMES].tolist(), last[k : k + BLOCK_NAMES].tolist(), strict=True)
            yield b"".join(words[start:stop] for start, stop in block)

    return {
        "names.letters": _Tensor(TYPES["U8"], (int(starts[-1]),), letters()),
        "names.starts": _tensor(starts, "names"),
    }


# Reading


class Checker:
    """Reads JSON of which nothing is believed."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    def bad(self, found: str, do: str = WRITE_ANEW) -> BadModelFile:
        return BadModelFile(f"{self.path}: {found}; {do}")

    def get(self, values: Any, name: str, *kinds: type) -> Any:
        """A value of a JSON object, if it is of one of these types."""
        value = values.get(name) if type(values) is dict else None
        if type(value) not in kinds:
            wanted = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
            raise self.bad(f"its metadata say {name}={shown(value)}, which is not {wanted}")
        return value

    def choice(self, values: Any, name: str, allowed: Sequence[str]) -> str:
        value: str = self.get(values, name, str)
        if value not in allowed:
            raise self.bad(f"its metadata say {name}={shown(value)}, which is none of {', '.join(allowed)}")
        return value


class _Reader(Checker):
    """An open file, of which nothing is believed either."""

    def __init__(self, path: str | os.PathLike[str], file: Any) -> None:
        super().__init__(path)
        self.file = file
        self.names = sorted(file.keys())
        self._unread = set(self.names)

    def described(self) -> dict[str, Any]:
        """The JSON of the file, after its format and its checksum were found right."""
        metadata = self.file.metadata() or {}
        if DESCRIPTION not in metadata:
            raise self.bad(
                "a safetensors file, but not one of a model of maxcosine",
                "give one that maxcosine has written",
            )
        text = metadata[DESCRIPTION]
        if len(text) > MOST_METADATA:
            raise self.bad(f"its metadata take {len(text):,} bytes, and at most {MOST_METADATA:,} are read")
        try:
            described = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.bad(f"its metadata are no JSON ({error})") from None
        if type(described) is not dict:
            raise self.bad(f"its metadata are {shown(described)} and not a JSON object")
        number = self.get(described, "format", int)
        if number > FORMAT:
            by = described.get("written_by")
            raise self.bad(
                f"written by a newer version{f', {shown(by)}' if by else ''}: its format is {number}, and "
                f"this version, {__version__}, reads formats up to {FORMAT}",
                "upgrade maxcosine",
            )
        if number < 1:
            raise self.bad(f"its format is {number}, and there is none below 1")
        if metadata.get(CHECKSUM) != _checksum(self.digest(), text):
            raise self.bad("damaged: what it holds does not agree with its checksum")
        return described

    def digest(self) -> str:
        lines = []
        for name in self.names:
            tensor, sha = self.file.get_slice(name), hashlib.sha256()
            code, shape = tensor.get_dtype(), tensor.get_shape()
            if code not in TYPES or len(shape) > 32:
                raise self.bad(f"the tensor {shown(name)} is of type {code} and of {len(shape)} dimensions")
            for block in self._blocks(name, code, shape):
                sha.update(block.data)
            lines.append(_line(name, code, shape, sha))
        return _digest(lines)

    def _blocks(self, name: str, code: str, shape: Sequence[int]) -> Iterator[np.ndarray]:
        if not shape:
            yield self.file.get_tensor(name)
            return
        tensor = self.file.get_slice(name)
        for start, stop in _spans(shape, TYPES[code]):
            yield np.ascontiguousarray(tensor[start:stop])

    def dtype(self, name: str) -> np.dtype:
        self._refuse_missing(name)
        return TYPES[self.file.get_slice(name).get_dtype()]

    def shape(self, name: str) -> tuple[int, ...]:
        self._refuse_missing(name)
        return tuple(self.file.get_slice(name).get_shape())

    def _refuse_missing(self, name: str) -> None:
        if name not in self.names:
            raise self.bad(f"the tensor {name!r} is missing")

    def check(self, name: str, dtype: np.dtype, shape: Sequence[int | None]) -> None:
        """Refuse a tensor that is not of this type and shape; None is any length."""
        there, found = self.dtype(name), self.shape(name)
        fits = len(found) == len(shape) and all(w in (None, n) for w, n in zip(shape, found, strict=True))
        if there != dtype or not fits:
            wanted = " x ".join("any number" if n is None else f"{n:,}" for n in shape) or "one number"
            raise self.bad(
                f"the tensor {name!r} is {there} of shape {found}, and {dtype} of shape {wanted} is wanted"
            )
        self._unread.discard(name)

    def array(self, name: str, dtype: np.dtype, shape: Sequence[int | None]) -> np.ndarray:
        """A tensor that was checked so."""
        self.check(name, dtype, shape)
        values: np.ndarray = np.array(self.file.get_tensor(name), dtype.newbyteorder("="))
        return values

    def any_array(self, name: str) -> np.ndarray:
        return self.array(name, self.dtype(name), self.shape(name))

    def fill(self, name: str, target: np.ndarray) -> None:
        """Read weights, block by block, into an array that is longer and wider."""
        shape = self.shape(name)
        self.check(name, target.dtype.newbyteorder("<"), shape)
        start = 0
        for block in self._blocks(name, CODES[self.dtype(name)], shape):
            if not np.isfinite(block).all():
                raise self.bad(f"the tensor {name!r} has values that are not finite")
            stop = start + len(block)
            target[(slice(start, stop), *(slice(n) for n in block.shape[1:]))] = block
            start = stop

    def texts(self, name: str) -> Iterator[list[str]]:
        """Texts, some at a time."""
        starts = self.array(f"{name}.starts", TYPES["I64"], (None,))
        letters = self.array(f"{name}.letters", TYPES["U8"], (None,)).tobytes()
        if not len(starts) or starts[0] != 0 or starts[-1] != len(letters) or (np.diff(starts) < 0).any():
            raise self.bad(f"the tensor '{name}.starts' does not divide the {len(letters):,} letters")
        for k in range(0, len(starts) - 1, BLOCK_NAMES):
            ends = starts[k : k + BLOCK_NAMES + 1].tolist()
            try:
                yield [letters[a:b].decode() for a, b in itertools.pairwise(ends)]
            except UnicodeDecodeError as error:
                raise self.bad(f"the tensor '{name}.letters' is no UTF-8 ({error.reason})") from None

    def refuse_unread(self) -> None:
        if self._unread:
            name = min(self._unread)
            raise self.bad(f"it holds a tensor {shown(name)}, which no model of this kind has")


@contextmanager
def _opened(path: str | os.PathLike[str], title: str | None = None) -> Iterator[_Reader]:
    from safetensors import SafetensorError, safe_open  # which those who write files need not wait for

    title = os.fspath(path) if title is None else title
    with open(path, "rb"):
        pass  # whoever may not read it, or names a folder, is told so as always
    try:
        with safe_open(os.fspath(path), "np") as file:
            yield _Reader(title, file)
    except SafetensorError as error:
        found = f"not a safetensors file, or a damaged or truncated one ({error})"
        raise Checker(title).bad(found) from error


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _model(reader: _Reader, described: dict[str, Any], rules: Sequence[Rule]) -> Model:
    rule = _rule(reader, described, rules)
    classes = _classes(reader, described)
    features = _features(reader, described)
    average, fit_intercept = (reader.get(described, name, bool) for name in ("average", "fit_intercept"))
    multiclass = reader.choice(described, "multiclass", MULTICLASS)
    joint = multiclass == "joint"
    n_heads = 1 if joint or len(classes) <= 2 else len(classes)
    n_columns = len(classes) if joint else n_heads

    n_rows, dtype = _check_weights(reader, features, n_columns, average=average)
    table = _table(reader, n_heads)
    state = reader.array("state", TYPES["F64"], (n_heads, len(rule.state)))
    params = reader.array("params", TYPES["F64"], (len(rule.params),))
    came = reader.array("came", TYPES["BOOL"], (len(classes),)).view(np.uint8) != 0  # bytes may be any
    fault = _fault_of(table, n_rows)
    if fault or not np.isfinite(state).all():
        raise reader.bad(fault or "the state of the rule is not finite")
    try:
        chosen = rule.make_params(dict(zip(rule.params, params.tolist(), strict=True)))
    except ValueError as error:
        raise reader.bad(str(error)) from None

    model = Model.create(
        rule,
        chosen,
        classes,
        features,
        dtype,
        fit_intercept=fit_intercept,
        average=average,
        multiclass=multiclass,
        closed=reader.get(described, "closed", bool),
    )
    heads = model.heads
    for name in LAYOUT:
        if not np.array_equal(table[name], heads.table[name]):
            raise reader.bad(f"the tensor 'head.{name}' is not that of {len(classes)} classes, {multiclass}")
    if n_rows > heads.n_features:
        heads.grow(n_rows)
    arrays = heads.arrays
    for name in ("v", "bias", "total_bias", *(["total"] if average else [])):
        reader.fill(name, getattr(arrays, name))
    arrays.table[:] = table
    arrays.state[:, : len(rule.state)] = state
    arrays.came[: len(classes)] = came
    model.merge = _merged(reader, described)
    return model


def _check_weights(
    reader: _Reader, features: Features, n_columns: int, *, average: bool
) -> tuple[int, np.dtype]:
    """How many rows the weights have, and their type; all that is weights must have the same."""
    dtype = reader.dtype("v")
    if dtype.newbyteorder("=") not in LIMITS:
        raise reader.bad(f"the weights are {dtype}, and only float32 and float64 are known")
    shape = reader.shape("v")
    n_rows = shape[0] if shape else 0
    # Behind the features of an index there may be weights of features that were forgotten.
    if n_rows < features.n_slots or (features.index is None and n_rows > features.n_slots):
        raise reader.bad(f"there are weights for {n_rows:,} features, and {features.n_slots:,} features")
    for name in ("v", "total") if average else ("v",):
        reader.check(name, dtype, (n_rows, n_columns))
    for name in ("bias", "total_bias"):
        reader.check(name, dtype, (n_columns,))
    return n_rows, dtype.newbyteorder("=")


def _rule(reader: _Reader, described: dict[str, Any], rules: Sequence[Rule]) -> Rule:
    said = reader.get(described, "rule", dict)
    rule = rule_called(reader, reader.get(said, "name", str), reader.get(said, "own", bool), rules)
    for what in ("params", "state"):
        there, here = reader.get(said, what, list), list(getattr(rule, what))
        if there != here:
            raise reader.bad(
                f"its rule {rule.name!r} had the {what} {shown(there)}, and the one here has {here}",
                "load it with the rule, or the version of maxcosine, that it was learnt with",
            )
    return rule


def rule_called(checker: Checker, name: str, own: bool, rules: Sequence[Rule]) -> Rule:
    """A rule that is here already: one of maxcosine, or, if the model's is no such, one that was given."""
    known: Mapping[str, Rule] = {rule.name: rule for rule in rules} if own else RULES
    if name in known:
        return known[name]
    if own:
        raise checker.bad(
            f"learnt by {shown(name)}, a rule of one's own, of which the file keeps only the name",
            f"load it with rules=[{name if name.isidentifier() else '...'}]",
        )
    raise checker.bad(
        f"learnt by the rule {shown(name)}, and the rules of this version are {', '.join(RULES)}",
        "upgrade maxcosine",
    )


def _classes(reader: _Reader, described: dict[str, Any]) -> np.ndarray:
    said: str = reader.get(reader.get(described, "classes", dict), "dtype", str)
    try:
        dtype = np.dtype(said) if re.fullmatch(r"[<>|]([biuf][1248]|U\d{1,9}|O)", said) else None
    except (TypeError, ValueError):
        dtype = None
    if dtype is None:
        raise reader.bad(f"its classes are said to be of type {shown(said)}")
    if dtype.kind in "UO":
        labels = [label for block in reader.texts("classes") for label in block]
        longest = max(map(len, labels), default=0)
        if dtype.kind == "U" and not longest <= dtype.itemsize // 4 <= max(longest, WIDEST_LABEL):
            raise reader.bad(f"its classes are said to be of type {said}, and the longest has {longest}")
        classes = np.array(labels, dtype)
    else:
        classes = reader.array("classes", dtype.newbyteorder("<"), (None,)).astype(dtype)
    # In order and each once; no comparison with NaN holds.
    if not len(classes) or not (classes[:-1] < classes[1:]).all() or classes[0] != classes[0]:
        raise reader.bad(f"its {len(classes):,} classes are not in order, each once")
    return classes


def _features(reader: _Reader, described: dict[str, Any]) -> Features:
    said = reader.get(described, "features", dict)
    kind = reader.choice(said, "kind", KINDS)
    keyed = kind in ("ids", "names")
    n_columns: int | None = reader.get(said, "columns", type(None) if keyed else int)
    if n_columns is not None and not 0 <= n_columns < 2**63:
        raise reader.bad(f"its metadata say columns={shown(n_columns)}")
    index = None if kind == "columns" else _index(reader, kind)
    if index is not None and n_columns is not None and (index.keys() >= np.uint64(n_columns)).any():
        raise reader.bad(f"the tensor 'ids' names columns beyond the {n_columns:,} that there are")
    features = Features(n_columns, _column_names(reader, n_columns), index)
    features.bits = reader.get(said, "bits", int, type(None))
    if features.bits is not None and not (0 <= features.bits < 63 and n_columns == 2**features.bits):
        raise reader.bad(f"its metadata say bits={shown(features.bits)} and columns={n_columns}")
    if "kept.columns" in reader.names:
        features.kept_names = _kept_names(reader, n_columns)
    return features


def _index(reader: _Reader, kind: str) -> FeatureIndex:
    """Every feature gets its slot anew, in its turn: nothing of how the index looks inside is in the file."""
    index, name = FeatureIndex("names" if kind == "names" else "ids"), "ids"
    blocks: Iterable[Any]
    if index.named:
        name, n = "names", _length(reader, "names.starts") - 1
        blocks = reader.texts("names")
    else:
        n = _length(reader, "ids")
        blocks = [reader.array("ids", TYPES["U64"], (None,))]
    if n > MOST_FEATURES:
        raise reader.bad(f"it has {n:,} features, and an index holds at most {MOST_FEATURES:,}")
    for block in blocks:
        try:
            index.slots_of(block)
        except OverflowError as error:
            raise reader.bad(str(error)) from None
    if len(index) != n:
        raise reader.bad(f"{n - len(index):,} of the {n:,} {name} of its features are there twice")
    return index


def _length(reader: _Reader, name: str) -> int:
    # What is no list of numbers is refused when it is read.
    return reader.shape(name)[0] if len(reader.shape(name)) == 1 else 0


def _column_names(reader: _Reader, n_columns: int | None) -> np.ndarray | None:
    if "columns.starts" not in reader.names or n_columns is None:
        return None
    names = [name for block in reader.texts("columns") for name in block]
    if len(names) > n_columns:
        raise reader.bad(f"there are {len(names):,} names for {n_columns:,} columns")
    column_names = np.empty(len(names), object)
    column_names[:] = names
    return column_names


def _kept_names(reader: _Reader, n_columns: int | None) -> dict[int, str]:
    columns = reader.array("kept.columns", TYPES["I64"], (None,))
    names = [name for block in reader.texts("kept") for name in block]
    inside = n_columns is not None and ((columns >= 0) & (columns < n_columns)).all()
    if len(names) != len(columns) or not inside or (np.diff(columns) <= 0).any():
        raise reader.bad(f"the {len(names):,} names that were kept are not of as many columns, in order")
    return dict(zip(columns.tolist(), names, strict=True))


def _table(reader: _Reader, n_heads: int) -> np.ndarray:
    table = np.zeros(n_heads, HEAD)
    for field in HEAD.names or ():
        name = f"head.{field}"
        if name in reader.names or field not in ADDED_FIELDS:
            table[field] = reader.array(name, HEAD[field].newbyteorder("<"), (n_heads,))
        else:
            table[field] = ADDED_FIELDS[field]
    table["logged"] = np.where(table["logged"] > 0, ANYWHERE, table["logged"])
    return table


def _fault_of(table: np.ndarray, n_rows: int) -> str | None:
    """What is wrong with the scalars of the heads: the kernels trust them."""

    bounds: dict[str, tuple[Any, Any]] = {
        "weighted": (0, 1),
        "since": (-1, table["seen"]),
        "highest": (-1, n_rows - 1),
        "logged": (0, ANYWHERE),
        "scale": (LEAST, MOST),
    }
    for name in HEAD.names or ():
        whole = HEAD[name].kind == "i"
        low, high = bounds.get(name, (0, MOST_COUNTED if whole else MOST))
        good = (table[name] >= low) & (table[name] <= high)
        if name not in LAYOUT and not good.all():
            value = table[name][np.flatnonzero(~good)[0]]
            return f"the tensor 'head.{name}' has the value {value}, which cannot be"
    return None


def _merged(reader: _Reader, described: dict[str, Any]) -> Merge | None:
    said = reader.get(described, "merge", dict, type(None))
    if said is None:
        return None
    from maxcosine.merging import HOW

    how, models = reader.choice(said, "how", HOW), reader.get(said, "models", int)
    bounds = [reader.any_array(name) for name in ("merge.certified", "merge.mean")]
    shape = bounds[0].shape
    sound = all(b.dtype == np.float64 and b.shape == shape and (b >= 0.0).all() for b in bounds)
    if models < 1 or len(shape) > 1 or not sound:
        raise reader.bad(f"the bounds of the {models} models that it was merged from cannot be")
    certified, mean = (b if shape else b.item() for b in bounds)
    return Merge(how, models, certified, mean)
