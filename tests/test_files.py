"""Files are there whole or not at all; what is no file is written to as it is."""

import os
import stat
import threading

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
        file.write("third, which is no bytes")
    assert path.read_text() == "second"
    assert os.listdir(tmp_path) == ["file"]


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    path, read = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    files.write(path, "through")
    reader.join(timeout=60)
    assert read == [b"through"]
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_link_to_a_device_is_written_through(tmp_path):
    path = tmp_path / "link"
    path.symlink_to(os.devnull)
    files.write(path, "nothing")
    assert path.is_symlink()
    assert path.is_char_device()


def test_a_link_to_a_file_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to("file")
    files.write(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "text"
