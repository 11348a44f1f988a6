"""Work that took long is not overwritten unless the user says so, and outputs are checked before anything is read."""

import pytest

from tests.cli.examples import outcome, refuse, succeed, svm
from tests.commands import run


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.svm").write_text(svm(100))
    return tmp_path


CHECK = ["train", "a.svm", "--model", "m", "--checkpoint", "check", "--checkpoint-every", 30]


def test_a_checkpoint_is_continued_or_replaced_only_if_the_user_says_so(folder):
    assert outcome(folder, *CHECK)["resumed_at"] == 0
    before = (folder / "check").read_bytes()
    error = refuse(folder, *CHECK)
    assert "the checkpoint check exists; continue from it with --resume, or start again with --force" in error
    assert (folder / "check").read_bytes() == before
    assert outcome(folder, *CHECK, "--resume")["resumed_at"] == 90
    assert outcome(folder, *CHECK, "--force")["resumed_at"] == 0
    error = refuse(folder, *CHECK, "--force", "--resume")
    assert "--resume continues and --force starts again; give one of them" in error


REPRODUCE = ["reproduce", "digits", "--permutations", 1, "--rules", "mcp"]


def test_results_are_replaced_only_if_the_user_says_so(tmp_path):
    succeed(tmp_path, *REPRODUCE)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["maxcosine-digits.html", "maxcosine-digits.json"]
    before = (tmp_path / "maxcosine-digits.json").read_bytes()
    error = refuse(tmp_path, *REPRODUCE)
    assert "maxcosine-digits.json exists; continue with --resume, replace it with --force, or name another" in error
    assert (tmp_path / "maxcosine-digits.json").read_bytes() == before
    succeed(tmp_path, *REPRODUCE, "--resume")
    assert (tmp_path / "maxcosine-digits.json").read_bytes() == before
    succeed(tmp_path, *REPRODUCE, "--force")
    assert (tmp_path / "maxcosine-digits.json").read_bytes() != before
    (tmp_path / "maxcosine-digits.json").unlink()
    assert "maxcosine-digits.html exists" in refuse(tmp_path, *REPRODUCE)
    succeed(tmp_path, *REPRODUCE, "--json", "other.json")
    assert (tmp_path / "other.html").exists()


def test_the_finished_part_of_an_interrupted_experiment_is_not_lost(tmp_path):
    (tmp_path / "maxcosine-digits.json.partial").write_text("finished units\n")
    error = refuse(tmp_path, *REPRODUCE)
    assert "maxcosine-digits.json.partial exists; continue with --resume" in error
    assert (tmp_path / "maxcosine-digits.json.partial").read_text() == "finished units\n"


@pytest.mark.parametrize(
    "arguments",
    [
        "train a.svm --model no/m",
        "train a.svm --model m --checkpoint no/c",
        "train a.svm --model m --predictions no/p",
        "convert a.svm --output no/a.arrow",
        "merge m --model no/merged",
        "compare a.svm --report no/r.html",
        "predict model a.svm --output no/labels",
        "predict model a.svm --bad-lines no/bad",
        "reproduce digits --json no/r.json",
    ],
)
def test_an_output_in_a_folder_that_does_not_exist_is_an_error_before_anything_is_read(tmp_path, arguments):
    # Reading any of these would be another error.
    for name in ("a.svm", "model", "m"):
        (tmp_path / name).write_bytes(b"\0\0\0")
    error = refuse(tmp_path, *arguments.split())
    assert ": there is no folder no; create it, or name another" in error
    assert not (tmp_path / "no").exists()


def test_a_folder_that_exists_is_fine(folder):
    (folder / "models").mkdir()
    assert run(folder, "train", "a.svm", "--model", "models/m").returncode == 0
