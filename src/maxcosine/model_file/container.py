"""The container of a model: a safetensors file with a JSON object and a checksum in its metadata."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from reprlib import repr as short
from typing import IO, Any

import numpy as np

from maxcosine import __version__

FORMAT = 2

# The entries of the metadata: the JSON object, and the checksum of it and of the tensors.
DESCRIPTION, CHECKSUM = "maxcosine", "sha256"

# safetensors reads headers of at most 100 MB.
MAX_DESCRIPTION = 2**24

# Weights are written, and names are read, in blocks: that takes no second copy of them.
BLOCK_BYTES, BLOCK_NAMES = 2**22, 2**16

# The types of tensors, as safetensors calls them.
CODES = {
    np.dtype(f"<{kind.lower()}{bits // 8}"): f"{kind}{bits}"
    for kind, sizes in {"F": (16, 32, 64), "I": (8, 16, 32, 64), "U": (8, 16, 32, 64)}.items()
    for bits in sizes
} | {np.dtype(bool): "BOOL"}

MAX_DIMENSIONS = 32


class BadModelFile(ValueError):
    """A file that holds no model, or a damaged one, or one that this version cannot read."""


def to_json(description: Mapping[str, Any]) -> str:
    """Return the JSON of a dict, whose scalars may be NumPy's."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.generic) and not isinstance(value.item(), np.generic):
            return value.item()
        raise TypeError(f"{value!r} is a {type(value).__name__}, which JSON cannot hold; give a plain value")

    try:
        # ASCII only: the names of files may contain surrogates, which UTF-8 cannot encode.
        text = json.dumps(description, default=plain, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        raise ValueError(f"cannot store the metadata as JSON: {error}; give finite, plain values") from None
    if len(text) > MAX_DESCRIPTION:
        raise ValueError(
            f"the metadata take {len(text):,} bytes as JSON, and a model file has room for "
            f"{MAX_DESCRIPTION:,}; store large values as tensors"
        )
    return text


def write(file: IO[bytes], text: str, tensors: Mapping[str, np.ndarray]) -> None:
    """Write a safetensors file: the length of the header, the header, the bytes of the tensors.

    `safetensors.numpy.save_file` does not raise OSError when the disk is full, so the few lines are here.
    """
    checksum = _checksum(digest_of(tensors.items()), text)
    header: dict[str, Any] = {"__metadata__": {CHECKSUM: checksum, DESCRIPTION: text}}
    # Large items first: then all tensors are aligned to their item sizes.
    names = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    stop = 0
    for name in names:
        array = tensors[name]
        start, stop = stop, stop + array.nbytes
        header[name] = {"dtype": _code(name, array), "shape": array.shape, "data_offsets": [start, stop]}
    raw = json.dumps(header, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)
    file.write(len(raw).to_bytes(8, "little") + raw)
    for name in names:
        for block in blocks_of(tensors[name]):
            file.write(block.data)


def blocks_of(array: np.ndarray) -> Iterator[np.ndarray]:
    """Yield an array as contiguous, little-endian blocks of a few megabytes."""
    rows = np.atleast_1d(array)
    step = max(1, BLOCK_BYTES * len(rows) // max(1, array.nbytes))
    for start in range(0, len(rows), step):
        yield np.ascontiguousarray(rows[start : start + step], array.dtype.newbyteorder("<"))


def digest_of(tensors: Iterable[tuple[str, np.ndarray]]) -> str:
    """Return the SHA-256 of tensors; see `maxcosine.model_file.digest`."""
    lines = []
    for name, array in tensors:
        sha = hashlib.sha256()
        for block in blocks_of(array):
            sha.update(block.data)
        lines.append(json.dumps([name, _code(name, array), array.shape, sha.hexdigest()]))
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def _code(name: str, array: np.ndarray) -> str:
    dtype = array.dtype.newbyteorder("<")
    if dtype not in CODES:
        raise TypeError(f"the tensor {name!r} has the type {dtype}, which a model file cannot store")
    return CODES[dtype]


def _checksum(digest: str, text: str) -> str:
    return hashlib.sha256(f"{digest}\n{text}".encode()).hexdigest()


class Checker:
    """Reads JSON objects; raises BadModelFile, which begins with a title, if a value is not as expected."""

    def __init__(self, title: str) -> None:
        self.title = title

    def bad(self, found: str, advice: str = "save the model again, or use another copy") -> BadModelFile:
        """Return an error that says how the file is bad, and how to go on."""
        return BadModelFile(f"{self.title}: {found}; {advice}")

    def get(self, values: Any, name: str, *types: type) -> Any:
        """Return an entry of a JSON object if it has one of these types."""
        value = values.get(name) if type(values) is dict else None
        if type(value) not in types:
            wanted = " or ".join("null" if kind is type(None) else kind.__name__ for kind in types)
            raise self.bad(f"the metadata have {name}={short(value)}, which is not {wanted}")
        return value

    def choice(self, values: Any, name: str, allowed: Sequence[str]) -> str:
        """Return an entry of a JSON object if it is one of these strings."""
        value: str = self.get(values, name, str)
        if value not in allowed:
            raise self.bad(f"the metadata have {name}={short(value)}, which is not in {', '.join(allowed)}")
        return value


class TensorFile(Checker):
    """An open safetensors file, which checks each tensor that is taken from it."""

    def __init__(self, file: Any, title: str) -> None:
        super().__init__(title)
        self.file = file
        self.untaken = set(file.keys())

    def description(self) -> dict[str, Any]:
        """Return the JSON object, after a check of the format and of the checksum."""
        metadata = self.file.metadata() or {}
        if DESCRIPTION not in metadata:
            raise self.bad("a safetensors file, but not a model of maxcosine", "give a file of maxcosine")
        text = metadata[DESCRIPTION]
        try:
            description = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.bad(f"the metadata are not JSON ({error})") from None
        if type(description) is not dict:
            raise self.bad(f"the metadata are {short(description)} and not a JSON object")
        number = self.get(description, "format", int)
        if number > FORMAT:
            raise self.bad(
                f"written by a newer version, {short(description.get('written_by'))}, in format {number}; "
                f"this version, {__version__}, reads formats up to {FORMAT}",
                "upgrade maxcosine",
            )
        if number < 1:
            raise self.bad(f"the format is {number}, but formats begin at 1")
        if metadata.get(CHECKSUM) != _checksum(self.digest(), text):
            raise self.bad("damaged: the content does not match its checksum")
        return description

    def digest(self) -> str:
        """Return the SHA-256 of all tensors."""
        for name in self.file.keys():  # noqa: SIM118, a file is not iterable
            tensor = self.file.get_slice(name)
            code, n_dimensions = tensor.get_dtype(), len(tensor.get_shape())
            if code not in CODES.values() or n_dimensions > MAX_DIMENSIONS:
                raise self.bad(f"the tensor {short(name)} has the type {code} and {n_dimensions} dimensions")
        return digest_of((name, self.file.get_tensor(name)) for name in self.file.keys())  # noqa: SIM118

    def take(
        self, name: str, dtype: Any = None, shape: Sequence[int | None] | None = None, *, finite: bool = False
    ) -> np.ndarray:
        """Return a tensor if it has this type and shape; None allows any."""
        if name not in self.untaken:
            raise self.bad(f"the tensor {name!r} is missing")
        self.untaken.remove(name)
        array: np.ndarray = self.file.get_tensor(name)
        dtype = array.dtype if dtype is None else np.dtype(dtype)
        lengths = array.shape if shape is None else shape
        fits = len(lengths) == array.ndim and all(n in (None, m) for n, m in zip(lengths, array.shape, strict=True))
        if array.dtype != dtype or not fits:
            found, wanted = f"{array.dtype} of shape {array.shape}", f"{dtype} of shape {tuple(lengths)}"
            raise self.bad(f"the tensor {name!r} is {found}, expected {wanted}")
        if finite and not all(np.isfinite(block).all() for block in blocks_of(array)):
            raise self.bad(f"the tensor {name!r} has values that are not finite")
        return array

    def take_texts(self, name: str) -> Iterator[list[str]]:
        """Yield texts in blocks, from their UTF-8 and where each starts."""
        starts = self.take(f"{name}.starts", np.int64, (None,))
        letters = self.take(f"{name}.letters", np.uint8, (None,)).tobytes()
        if not len(starts) or starts[0] != 0 or starts[-1] != len(letters) or (np.diff(starts) < 0).any():
            raise self.bad(f"the tensor '{name}.starts' does not divide {len(letters):,} bytes into texts")
        for k in range(0, len(starts) - 1, BLOCK_NAMES):
            ends = starts[k : k + BLOCK_NAMES + 1].tolist()
            try:
                yield [letters[a:b].decode() for a, b in itertools.pairwise(ends)]
            except UnicodeDecodeError as error:
                raise self.bad(f"the tensor '{name}.letters' is not UTF-8 ({error.reason})") from None

    def refuse_untaken(self) -> None:
        """Refuse a file with tensors that no model of this kind has."""
        if self.untaken:
            raise self.bad(f"the tensor {short(min(self.untaken))} belongs to no model of this kind")


@contextmanager
def open_tensors(path: str | os.PathLike[str], title: str) -> Iterator[TensorFile]:
    """Open a safetensors file; errors begin with the title."""
    from safetensors import SafetensorError, safe_open  # here, because writing does not need it

    with open(path, "rb"):
        pass  # raises the usual errors for missing files and folders
    try:
        with safe_open(os.fspath(path), "np") as file:
            yield TensorFile(file, title)
    except SafetensorError as error:
        raise Checker(title).bad(f"not a safetensors file, or damaged or truncated ({error})") from error
