"""Files are complete or unchanged; links, pipes and devices stay what they are."""

import os
import stat
import threading
from pathlib import Path

import pytest

from maxcosine import files


def test_a_file_is_replaced_at_the_end_or_stays(tmp_path):
    path = tmp_path / "file"
    files.write(path, "first")
    with files.writing(path) as file:
        file.write(b"second")
        assert path.read_text() == "first"
    assert path.read_text() == "second"
    with pytest.raises(TypeError), files.writing(path) as file:
        file.write("third, which is not bytes")
    assert path.read_text() == "second"
    assert os.listdir(tmp_path) == ["file"]
    with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
        files.write(tmp_path, "text")


def test_a_pipe_is_written_to(tmp_path):
    path, read = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    files.write(path, "through")
    reader.join(timeout=60)
    assert read == [b"through"]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_links_stay_links(tmp_path):
    (tmp_path / "device").symlink_to(os.devnull)
    files.write(tmp_path / "device", "nothing")
    assert (tmp_path / "device").is_char_device()
    (tmp_path / "link").symlink_to("file")
    files.write(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "text"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"MAXCOSINE_CACHE": "~/mine"}, "home/mine"),
        ({"XDG_CACHE_HOME": "/shared"}, "/shared/maxcosine"),
        ({"XDG_CACHE_HOME": "relative"}, "home/.cache/maxcosine"),
        ({}, "home/.cache/maxcosine"),
    ],
)
def test_the_users_cache(tmp_path, monkeypatch, variables, expected):
    for name in ("MAXCOSINE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert files.user_cache() == tmp_path / Path(expected)
