"""The examples in these pages are tests; each page runs in an empty folder."""

import pytest


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
