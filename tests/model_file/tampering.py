"""Take model files apart, change them, and put them together again."""

import io
import json
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from safetensors import safe_open

import maxcosine
from maxcosine.model_file import BadModelFile, container
from tests.model_file.setups import SETUPS, by_id, by_name, points


@cache
def real_file(setup):
    """The bytes of a file of this setup."""
    with tempfile.NamedTemporaryFile() as file:
        maxcosine.save(SETUPS[setup][0]("mcp"), file.name)
        return Path(file.name).read_bytes()


def parts(content):
    """The JSON and the tensors of a file."""
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(content)
        with safe_open(file.name, "np") as tensors:
            arrays = {name: np.array(tensors.get_tensor(name)) for name in tensors.keys()}  # noqa: SIM118
            return json.loads(tensors.metadata()["maxcosine"]), arrays


def file_of(described, tensors):
    """A file of these parts, with the right checksum."""
    file = io.BytesIO()
    text = described if isinstance(described, str) else json.dumps(described)
    container.write(file, text, {name: np.asarray(array) for name, array in tensors.items()})
    return file.getvalue()


def setting(name, value):
    """Replace an entry of the JSON."""

    def change(described, tensors):
        *folders, last = name.split("/")
        for folder in folders:
            described = described[folder]
        described[last] = value

    return change


def tensor(name, make):
    """Replace a tensor by a function of it; None removes it."""

    def change(described, tensors):
        tensors[name] = make(tensors.get(name))
        if tensors[name] is None:
            del tensors[name]

    return change


def refused_or_works(path):
    """Load, predict and learn; return whether the file was refused."""
    try:
        learner = maxcosine.load(path)
    except BadModelFile:
        return True
    assert np.isfinite(learner.model_.heads.arrays.v).all()
    features, labels = learner.model_.features, learner.classes_[np.arange(60) % len(learner.classes_)]
    X = points(3, n_columns=30 if features.keyed else features.n_features)[0]
    rows = (by_name if features.by_name else by_id)(X) if features.keyed else X
    with np.errstate(all="ignore"):
        try:
            (learner.predict_many if features.keyed else learner.predict)(rows)
            (learner.learn_many if features.keyed else learner.partial_fit)(rows, labels)
        except (ArithmeticError, ValueError):
            pass  # absurd numbers may overflow, which is refused
    return False
