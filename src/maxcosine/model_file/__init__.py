"""Model files: one safetensors file holds one model.

Arrays are tensors; everything else is one JSON object in the file's metadata, with a format number. Its entry `rule` or
`kind` says what kind of model it describes. Loading executes nothing from the file and checks everything before it is
used. A model that was saved and loaded goes on learning to the same bits as one that was not. The tensors depend on the
examples and their order alone, not on the chunks of a stream. See `digest`.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from maxcosine import __version__, files
from maxcosine.base_model import BaseModel
from maxcosine.model import Model
from maxcosine.model_file import decode, encode, onepass
from maxcosine.model_file.container import FORMAT, BadModelFile, Checker, TensorFile, open_tensors, to_json, write
from maxcosine.model_file.decode import find_rule
from maxcosine.onepass_model import OnePassModel
from maxcosine.rules.rule import Rule

__all__ = [
    "FORMAT",
    "BadModelFile",
    "Checker",
    "Loaded",
    "digest",
    "find_rule",
    "from_bytes",
    "load",
    "save",
    "to_bytes",
]

# Tensors of the caller have this prefix in the file.
MORE = "more."


@dataclass
class Loaded:
    """The content of a model file; see the parameters of `save`."""

    model: Any
    """A `Model` or a `OnePassModel`."""
    provenance: dict[str, Any] | None
    estimator: dict[str, Any] | None
    more: dict[str, Any] | None
    tensors: dict[str, np.ndarray]


def save(
    model: BaseModel,
    path: str | os.PathLike[str],
    *,
    provenance: dict[str, Any] | None = None,
    estimator: dict[str, Any] | None = None,
    more: dict[str, Any] | None = None,
    tensors: dict[str, np.ndarray] | None = None,
) -> None:
    """Write a model to a file.

    An existing file is replaced at the end, when the new one is complete and on disk.

    Parameters
    ----------
    model : Model or OnePassModel
        What was learnt.
    path : str or path
        The file.
    provenance : dict, default=None
        Where the model is from: command, data, versions, times. All dicts are stored as JSON.
    estimator : dict, default=None
        The class and the parameters of a classifier.
    more : dict, default=None
        Other JSON to store, for example the position in a stream.
    tensors : dict of str to array, default=None
        Other arrays to store.
    """
    own = {f"{MORE}{name}": np.asarray(array) for name, array in (tensors or {}).items()}
    try:
        with files.writing(Path(path)) as file, model.lock.reading:  # until all is written, but not until it is on disk
            write(file, _json(model, provenance, estimator, more), {**_tensors_of(model), **own})
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        # A failed write does not say which file it was.
        raise type(error)(error.errno, error.strerror or str(error), os.fspath(path)) from error


def to_bytes(model: BaseModel) -> bytes:
    """Return the bytes of a model file, as `save` writes them."""
    file = io.BytesIO()
    with model.lock.reading:
        write(file, _json(model), _tensors_of(model))
    return file.getvalue()


def _tensors_of(model: BaseModel) -> dict[str, np.ndarray]:
    if isinstance(model, OnePassModel):
        return onepass.tensors_of(model)
    assert isinstance(model, Model)
    return encode.tensors_of(model)


def _json(model: BaseModel, provenance: Any = None, estimator: Any = None, more: Any = None) -> str:
    kept = {"provenance": provenance, "estimator": estimator, "more": more}
    written_by = f"maxcosine {__version__}"
    return to_json({"format": FORMAT, "written_by": written_by, **_described(model), **kept})


def _described(model: BaseModel) -> dict[str, Any]:
    if isinstance(model, OnePassModel):
        return onepass.describe(model)
    assert isinstance(model, Model)
    return encode.describe(model)


def load(path: str | os.PathLike[str], *, rules: Sequence[Rule] = ()) -> Loaded:
    """Read a file that `save` wrote.

    Parameters
    ----------
    path : str or path
        The file.
    rules : sequence of Rule, default=()
        Your own rules, if the model was learnt by one of them.

    Returns
    -------
    Loaded
        The model, and everything that was saved with it.

    Raises
    ------
    BadModelFile
        If the file is damaged, holds no model, or needs another version or a rule that is not given.
    """
    return _load(path, os.fspath(path), rules)


def from_bytes(content: bytes, *, rules: Sequence[Rule] = ()) -> Loaded:
    """Read what `to_bytes` returned, with all checks of `load`."""
    with tempfile.NamedTemporaryFile(suffix=".safetensors") as file:  # safetensors reads metadata from files only
        file.write(content)
        file.flush()
        return _load(file.name, "a model that was received", rules)


def _load(path: str | os.PathLike[str], title: str, rules: Sequence[Rule]) -> Loaded:
    with open_tensors(path, title) as file:
        description = file.description()
        model = _read_model(file, description, rules)
        provenance, estimator, more = (
            file.get(description, name, dict, type(None)) for name in ("provenance", "estimator", "more")
        )
        own = sorted(name for name in file.untaken if name.startswith(MORE))
        tensors = {name.removeprefix(MORE): file.take(name) for name in own}
        file.refuse_untaken()
    return Loaded(model, provenance, estimator, more, tensors)


def _read_model(file: TensorFile, description: dict[str, Any], rules: Sequence[Rule]) -> BaseModel:
    if "kind" not in description:  # files of rules do not name their kind
        return decode.read_model(file, description, rules)
    file.choice(description, "kind", [onepass.KIND])
    return onepass.read_model(file, description)


def digest(path: str | os.PathLike[str]) -> str:
    """Return a SHA-256 of the names, types, shapes and bytes of all tensors, without the metadata.

    It is the SHA-256 of one JSON list for each tensor, [name, type, shape, SHA-256 of the bytes], sorted and
    joined by newlines.
    """
    with open_tensors(path, os.fspath(path)) as file:
        return file.digest()
