"""`maxcosine explore`: a family of rules on the command line."""

import pytest

from tests.cli.examples import outcome, refuse, succeed, svm

FAMILY = ["--curve", "1/(1 + a*abs(v))", "--theta", "t", "--param", "a=1:0:8", "--param", "t=0.5:0:1"]
FEW = ["--grid", "a=0:8:3", "--grid", "t=0.5,0.9", "--permutations", "2", "--search-permutations", "1"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.svm").write_text(svm(300))
    return tmp_path


def test_members_winners_and_judgement_as_json(folder):
    found = outcome(folder, "explore", *FAMILY, *FEW, "--on", "a.svm")
    assert [(one["values"]["a"], one["m"]) for one in found["members"] if one["values"]["t"] == "1/2"] == [
        ("0", "1"),
        ("4", "1/2"),
        ("8", "1/4"),
    ]
    assert found["searched"] == {"train": 200, "test": 40, "permutations": 1}
    best = min(one["mistakes"] for one in found["members"] if one["m"] is not None)
    winner = next(one for one in found["members"] if one["values"] == found["winners"]["best_proven"])
    assert winner["mistakes"] == best
    assert {one["other"] for one in found["judged"]["differences"]} >= {"mcp", "mcp_exact", "soft_mcp"}
    assert found["judged"]["permutations"] == 2


@pytest.mark.slow
def test_table_says_how_many_were_tried_and_report_and_figures_are_written(folder):
    printed = succeed(folder, "explore", *FAMILY, *FEW, "--on", "a.svm", "--report", "map.html", "--figures", "f")
    assert "6 members of family were tried, " in printed
    assert "Best proven: a = " in printed
    assert "</html>" in (folder / "map.html").read_text()
    names = {path.name for path in (folder / "f").iterdir()}
    assert {"map.svg", "map.png", "band.svg", "paired.png"} <= names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--grid", "q=1"], "no parameter 'q'"),
        (["--on", "nothing.svm"], "nothing.svm"),
        (["--report", "no/map.html"], "there is no folder"),
    ],
)
def test_wrong_options_are_refused_before_any_work(folder, arguments, message):
    assert message in refuse(folder, "explore", *FAMILY, *arguments)
    assert [path.name for path in folder.iterdir()] == ["a.svm"]


def test_existing_report_is_replaced_only_with_force(folder):
    (folder / "map.html").write_text("precious")
    message = refuse(folder, "explore", *FAMILY, *FEW, "--on", "a.svm", "--report", "map.html")
    assert "map.html exists; replace it with --force" in message
    assert (folder / "map.html").read_text() == "precious"
