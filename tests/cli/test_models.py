"""`maxcosine predict`, `evaluate`, `inspect` and `merge`, as a user meets them."""

import io
import json
import re
import subprocess
import sys

import numpy as np
import pytest
import rich.console

from maxcosine import MCPClassifier, save
from maxcosine.cli import tables
from maxcosine.stream.evaluation import MOST_SCORES, Ranking
from tests.cli.test_train import digest, svm, train, vw
from tests.commands import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models of two and of three classes, of columns, hashed and exact."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "a.svm").write_text(svm(200))
    (folder / "b.svm").write_text(svm(200, seed=1))
    (folder / "many.svm").write_text(svm(300, classes=3))
    (folder / "a.vw").write_text(vw(200))
    train(folder, "a.svm", "--model", "two")
    train(folder, "many.svm", "--model", "three")
    train(folder, "a.vw", "--model", "hashed", "--bits", 16, "--keep-names")
    train(folder, "a.vw", "--model", "exact", "--exact", "--normalize", "l2")
    return folder


def lines(folder, *arguments, **options):
    ran = run(folder, "predict", *arguments, **options)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def labels(text):
    return [line.split()[0] for line in text.splitlines()]


# Predicting


@pytest.mark.parametrize(
    ("model", "data"), [("two", "b.svm"), ("three", "many.svm"), ("hashed", "a.vw"), ("exact", "a.vw")]
)
def test_labels_and_scores_agree(folder, model, data):
    found = lines(folder, model, data)
    scored = [line.split("\t") for line in lines(folder, model, data, "--scores", "--threads", 2)]
    classes = sorted(set(labels((folder / data).read_text())))
    assert [label for label, *_ in scored] == found
    for label, *scores in scored:
        values = np.array(scores, float)
        best = int(values[0] > 0) if len(values) == 1 else int(values.argmax())
        assert label == classes[best]
        assert len(values) == (1 if len(classes) == 2 else len(classes))
    right = labels((folder / data).read_text())
    assert np.mean([a == b for a, b in zip(found, right, strict=True)]) > 0.9


def test_labels_in_the_data_are_not_looked_at(folder):
    text = (folder / "b.svm").read_text()
    without = "".join(line.split(" ", 1)[1] for line in text.splitlines(keepends=True))
    assert lines(folder, "two", "-", input=without) == lines(folder, "two", "b.svm")
    assert lines(folder, "two", "-", input=text.replace("c0", "other")) == lines(folder, "two", "b.svm")


def test_a_row_that_is_skipped_is_answered_by_an_empty_line(folder):
    given = "1:1\nbad bad\n2:1\n3:nan\n\n4:1\n"
    ran = run(folder, "predict", "two", "-", "--on-bad", "skip", "--bad-lines", "bad.txt", input=given)
    assert ran.returncode == 0
    assert [bool(line) for line in ran.stdout.split("\n")] == [True, False, True, False, True, False]
    assert "2 bad lines skipped" in ran.stderr
    assert "skipped standard input:2:5: " in ran.stderr
    assert (folder / "bad.txt").read_text() == "bad bad\n3:nan\n"


def test_features_that_the_model_does_not_know_count_for_nothing(folder):
    assert lines(folder, "two", "-", "--scores", input="1:1 100:1 900:1\n") == lines(
        folder, "two", "-", "--scores", input="1:1 100:1\n"
    )
    unknown = "|w f1 nothing\n|w f1\n"
    assert len(lines(folder, "exact", "-", input=unknown)) == 2


def test_output_goes_to_a_file_that_is_whole_or_not_there(folder):
    assert lines(folder, "two", "b.svm", "--output", "out.txt") == []
    assert (folder / "out.txt").read_text().splitlines() == lines(folder, "two", "b.svm")
    ran = run(folder, "predict", "two", "-", "--output", "half.txt", input="1:1\nbad bad\n")
    assert ran.returncode == 1
    assert not list(folder.glob("*half*"))


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        ("two", "a.vw", "the features of the model are column numbers, and those of a.vw are hashed"),
        ("exact", "a.svm", "the model knows its features by name, and those of a.svm have numbers"),
        ("a.svm", "a.svm", "a.svm"),
        ("nowhere", "a.svm", "nowhere"),
    ],
)
def test_what_does_not_go_together_is_refused(folder, model, data, message):
    for command in ("predict", "evaluate"):
        ran = run(folder, command, model, data)
        assert ran.returncode == 1
        assert message in ran.stderr
        assert "Traceback" not in ran.stderr


def test_a_closed_pipe_ends_without_a_traceback(folder):
    for command in ("predict two b.svm", "inspect two", "evaluate two b.svm"):
        ran = subprocess.run(
            ["sh", "-c", f"{sys.executable} -m maxcosine {command} | head -1"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert len(ran.stdout.splitlines()) == 1
        assert ran.stderr == ""


def test_models_of_the_estimators_predict_files(folder):
    X = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0], [2.0, 0.0, 1.0], [0.0, 3.0, 0.0]])
    fitted = MCPClassifier().fit(X, [1, -1, 1, -1])
    save(fitted, folder / "fitted")
    assert lines(folder, "fitted", "-", input="0:1 2:1\n1:1\n7:1 1:1\n") == ["1", "-1", "-1"]


# Evaluating


def test_evaluation_counts_what_predict_says(folder):
    found = json.loads(run(folder, "evaluate", "three", "many.svm", "--json").stdout)
    right = labels((folder / "many.svm").read_text())
    predicted = lines(folder, "three", "many.svm")
    assert found["examples"] == 300
    assert found["classes"] == ["c0", "c1", "c2"]
    assert found["error"] == pytest.approx(np.mean([a != b for a, b in zip(right, predicted, strict=True)]))
    for i, a in enumerate(found["classes"]):
        for j, b in enumerate(found["classes"]):
            pairs = zip(right, predicted, strict=True)
            assert found["confusion"][i][j] == sum(pair == (a, b) for pair in pairs)
    assert found["recall"][0] == pytest.approx(found["confusion"][0][0] / sum(found["confusion"][0]))
    assert found["auc"] is None


@pytest.mark.parametrize("width", [60, 80, 110])
@pytest.mark.parametrize("names", ["c{}", "comp.sys.machines.number{}"])
@pytest.mark.parametrize("n", [2, 5, 20])
def test_no_label_and_no_count_is_cut(folder, monkeypatch, width, names, n):
    monkeypatch.setattr(tables, "console", lambda: console)
    console = rich.console.Console(width=width, file=io.StringIO())
    counts = np.random.default_rng(0).integers(1000, 9999, (n, n))
    classes = [names.format(k) for k in range(n)]
    shares = [0.5] * n
    tables.show_evaluation(
        {
            "examples": int(counts.sum()),
            "error": 0.5,
            "auc": None,
            "bad_lines": 0,
            "classes": classes,
            "confusion": counts.tolist(),
            "precision": shares,
            "recall": shares,
        }
    )
    shown = console.file.getvalue()
    assert "…" not in shown
    for k, label in enumerate(classes if width == 110 else []):  # else a long one takes several lines
        (line,) = [line for line in shown.splitlines() if line.split()[:1] == [label]]
        whole = [f"{count:,}" for count in counts[k]]
        others = np.where(np.arange(n) == k, 0, counts[k])
        in_short = [
            f"{counts[k].sum():,}",
            "50.00%",
            "50.00%",
            classes[others.argmax()],
            f"({others.max():,})",
        ]
        assert line.split()[1:] in ([*whole, "50.00%", "50.00%"], in_short)


def test_labels_that_the_model_does_not_know_are_mistakes(folder):
    (folder / "new.svm").write_text("new 1:1\nc0 100:5\n")
    found = json.loads(run(folder, "evaluate", "two", "new.svm", "--json").stdout)
    assert found["classes"] == ["c0", "c1", "new"]
    assert (found["examples"], found["error"]) == (2, 0.5)
    assert "unknown" in run(folder, "evaluate", "two", "new.svm").stdout


def test_lines_without_a_label_cannot_be_evaluated(folder):
    ran = run(folder, "evaluate", "two", "-", input="1:1\n")
    assert ran.returncode == 1
    assert "standard input:1:1: the line has no label" in ran.stderr


def test_the_area_under_the_curve(monkeypatch):
    random = np.random.default_rng(0)
    scores, positive = np.round(random.normal(size=500), 1), random.random(500) < 0.3
    above = (scores[positive][:, None] > scores[~positive]).mean()
    expected = above + (scores[positive][:, None] == scores[~positive]).mean() / 2
    exact, counted = Ranking(), Ranking()
    exact.add(scores, positive)
    assert exact.auc() == pytest.approx(expected)
    monkeypatch.setattr("maxcosine.stream.evaluation.MOST_SCORES", 100)
    for start in range(0, 500, 60):
        counted.add(scores[start : start + 60], positive[start : start + 60])
    assert counted.auc() == pytest.approx(expected)
    assert Ranking().auc() is None
    assert MOST_SCORES * 9 < 20e6


# Inspecting


def test_what_there_is_to_say_about_a_model(folder):
    found = json.loads(run(folder, "inspect", "two", "--json", "--top", "3").stdout)
    assert found["rule"] == "mcp"
    assert found["classes"] == ["c0", "c1"]
    assert found["features"] == {"kind": "columns", "count": 102, "bits": None}
    assert found["certificate"]["seen"] == 200
    assert found["trained"]["command"] == "maxcosine train a.svm --model two --json"
    heaviest = found["heaviest"]["c1"]
    assert {name for name, _ in heaviest[:2]} == {"100", "101"}
    assert [abs(w) for _, w in heaviest] == sorted((abs(w) for _, w in heaviest), reverse=True)
    text = run(folder, "inspect", "two").stdout
    assert "no separator" in text
    assert re.search(r"^data +a.svm \([\d,]+ bytes\)", text, re.MULTILINE)
    assert run(folder, "inspect", "two", "--top", "0").returncode == 0


@pytest.mark.parametrize("model", ["hashed", "exact"])
def test_features_are_shown_by_their_words(folder, model):
    found = json.loads(run(folder, "inspect", model, "--json", "--top", "2").stdout)
    assert {name for name, _ in found["heaviest"]["c1"]} == {"w^f100", "w^f101"}
    assert "w^f100" in run(folder, "inspect", model).stdout


# Merging


@pytest.mark.parametrize("way", [[], ["--bits", 16, "--keep-names"], ["--exact"]])
def test_models_of_parts_are_one_of_the_whole(folder, way):
    kind = "vw" if way else "svm"
    text = (folder / f"a.{kind}").read_text().splitlines(keepends=True)
    for k, part in enumerate((text[:100], text[100:])):
        (folder / f"part-{k}.{kind}").write_text("".join(part))
        train(folder, f"part-{k}.{kind}", "--model", f"part-{k}", *way)
    ran = run(folder, "merge", "part-0", "part-1", "--model", "merged")
    assert ran.returncode == 0, ran.stderr
    assert "2 models merged into merged" in ran.stderr
    found = json.loads(run(folder, "inspect", "merged", "--json").stdout)
    assert found["certificate"]["seen"] == 200
    assert found["features"]["bits"] == (16 if "--bits" in way else None)
    if way:
        assert {name for name, _ in found["heaviest"]["c1"][:2]} == {"w^f100", "w^f101"}
    right = labels("".join(text))
    predicted = lines(folder, "merged", f"a.{kind}")
    assert np.mean([a == b for a, b in zip(right, predicted, strict=True)]) > 0.9
    run(folder, "merge", "part-0", "part-1", "--model", "again")
    assert digest(folder, "again") == digest(folder, "merged")


def test_models_to_merge_may_be_a_pattern_and_stay_what_they_are(folder):
    for k in range(2):
        train(folder, "a.svm", "--model", f"day-{k}.model")
    ran = run(folder, "merge", "day-*.model", "--model", "week")
    assert "2 models merged into week" in ran.stderr
    ran = run(folder, "merge", "day-0.model", "day-1.model", "--model", "day-1.model")
    assert ran.returncode == 1
    assert "--model day-1.model is an input, too; name another file" in ran.stderr


def test_models_that_were_learnt_in_other_ways_are_not_merged(folder):
    train(folder, "a.vw", "--model", "other", "--bits", 17)
    ran = run(folder, "merge", "hashed", "other", "--model", "never")
    assert ran.returncode == 1
    assert "hashed was learnt with bits 16 and other with 17" in ran.stderr
    assert not (folder / "never").exists()
