"""`maxcosine predict`, `evaluate`, `inspect` and `merge`."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from maxcosine import MCPClassifier, load, model_file, save
from maxcosine.training import ranking
from tests.cli.examples import labels, outcome, refuse, succeed, svm, vw
from tests.commands import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models of two and of three classes, of columns, hashed and exact."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "a.svm").write_text(svm(200))
    (folder / "b.svm").write_text(svm(200, seed=1))
    (folder / "three.svm").write_text(svm(300, classes=3))
    (folder / "a.vw").write_text(vw(200))
    succeed(folder, "train", "a.svm", "--rule", "mcp", "--model", "two")
    succeed(folder, "train", "three.svm", "--model", "three")
    succeed(folder, "train", "a.vw", "--model", "hashed", "--bits", 16, "--keep-names")
    succeed(folder, "train", "a.vw", "--model", "exact", "--exact", "--normalize", "l2")
    return folder


def predict(folder, *arguments, **options):
    return succeed(folder, "predict", *arguments, **options).splitlines()


def share_of_equal(a, b):
    return np.mean([one == other for one, other in zip(a, b, strict=True)])


# Predicting


def test_labels_are_those_of_the_highest_scores(folder):
    for model, data in [("two", "b.svm"), ("three", "three.svm"), ("hashed", "a.vw"), ("exact", "a.vw")]:
        predicted, right = predict(folder, model, data), labels((folder / data).read_text())
        assert share_of_equal(predicted, right) > 0.9
        classes, scored = sorted(set(right)), predict(folder, model, data, "--scores", "--threads", 2)
        for label, (found, *scores) in zip(predicted, (line.split("\t") for line in scored), strict=True):
            values = np.array(scores, float)
            assert len(values) == (1 if len(classes) == 2 else len(classes))
            assert label == found == classes[int(values[0] > 0) if len(values) == 1 else values.argmax()]


@pytest.mark.parametrize("options", [[], ["--average"], ["--exact", "--multiclass", "joint"]])
def test_probabilities_of_rules_are_those_of_the_classifier(folder, options):
    for data in ("a.svm", "three.svm"):
        succeed(folder, "train", data, "--model", "m", "--rule", "mcp", "--probability", *options)
        learner = load(folder / "m")
        for line in predict(folder, "m", data, "--probabilities", "--json"):
            found = json.loads(line)["probabilities"]
            assert list(found) == learner.classes_.tolist()
            assert sum(found.values()) == pytest.approx(1.0)
        (line,) = predict(folder, "m", "-", "--probabilities", input="1:0.5 3:-1\n")
        (expected,) = learner.predict_proba([{1: 0.5, 3: -1.0}])
        assert [float(one) for one in line.split("\t")[1:]] == pytest.approx(expected, rel=1e-6)


def test_probabilities_that_are_refused(folder):
    error = refuse(folder, "predict", "two", "b.svm", "--probabilities")
    assert "two was learnt by mcp without them; train with --probability, or with --rule onepass" in error
    for name in ("a", "b"):
        succeed(folder, "train", f"{name}.svm", "--model", name, "--rule", "mcp", "--probability")
    succeed(folder, "merge", "a", "b", "--model", "both")
    assert "a merged model has no probabilities" in refuse(folder, "predict", "both", "b.svm", "--probabilities")
    succeed(folder, "train", "a.svm", "--init", "both", "--model", "more")
    assert len(predict(folder, "more", "b.svm", "--probabilities")) == 200
    arguments = ("train", "a.svm", "--model", "never", "--rule", "mcp", "--probability", "--on", "dask-local:2")
    assert "--probability is for one machine" in refuse(folder, *arguments)


def test_labels_and_unknown_features_are_ignored(folder):
    text, expected = (folder / "b.svm").read_text(), predict(folder, "two", "b.svm", "--scores")
    without = "".join(line.split(" ", 1)[1] for line in text.splitlines(keepends=True))
    for given in (without, text.replace("c0", "other"), text.replace("\n", " 900:1\n")):
        assert predict(folder, "two", "-", "--scores", input=given) == expected
    known, unknown = predict(folder, "exact", "-", input="|w f1\n|w f1 nothing\n")
    assert known == unknown


def test_a_line_that_is_skipped_is_answered_by_an_empty_line(folder):
    given = "1:1\nbad bad\n2:1\n3:nan\n\n4:1\n"
    ran = run(folder, "predict", "two", "-", "--on-bad", "skip", "--bad-lines", "bad.txt", input=given)
    assert ran.returncode == 0
    assert [bool(line) for line in ran.stdout.split("\n")] == [True, False, True, False, True, False]
    assert "2 bad lines skipped" in ran.stderr
    assert "skipped standard input:2:5: " in ran.stderr
    assert (folder / "bad.txt").read_text() == "bad bad\n3:nan\n"


def test_an_output_file_is_complete_or_absent(folder):
    assert predict(folder, "two", "b.svm", "--output", "out.txt") == []
    assert (folder / "out.txt").read_text().splitlines() == predict(folder, "two", "b.svm")
    refuse(folder, "predict", "two", "-", "--output", "half.txt", input="1:1\nbad bad\n")
    assert not list(folder.glob("*half*"))


def test_data_that_do_not_fit_the_model_are_refused(folder):
    for model, data, message in [
        ("two", "a.vw", "the features of the model are column numbers, and those of a.vw are hashed"),
        ("exact", "a.svm", "the model knows its features by name, and those of a.svm have numbers"),
        ("a.svm", "a.svm", "a.svm"),
        ("nowhere", "a.svm", "nowhere"),
    ]:
        assert message in refuse(folder, "predict", model, data)
        assert message in refuse(folder, "evaluate", model, data)


def test_a_closed_pipe_ends_without_a_traceback(folder):
    ran = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m maxcosine inspect two | head -1"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert len(ran.stdout.splitlines()) == 1
    assert ran.stderr == ""


def test_models_of_estimators_predict_files(folder):
    X = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0], [2.0, 0.0, 1.0], [0.0, 3.0, 0.0]])
    save(MCPClassifier().fit(X, [1, -1, 1, -1]), folder / "fitted")
    assert predict(folder, "fitted", "-", input="0:1 2:1\n1:1\n7:1 1:1\n") == ["1", "-1", "-1"]


# Evaluating


def test_evaluation_counts_predictions(folder):
    found = outcome(folder, "evaluate", "three", "three.svm")
    right, predicted = labels((folder / "three.svm").read_text()), predict(folder, "three", "three.svm")
    pairs = list(zip(right, predicted, strict=True))
    assert (found["examples"], found["classes"], found["auc"]) == (300, ["c0", "c1", "c2"], None)
    assert found["error"] == pytest.approx(1 - share_of_equal(right, predicted))
    counts = [[pairs.count((a, b)) for b in found["classes"]] for a in found["classes"]]
    assert found["confusion"] == counts
    assert found["recall"][0] == pytest.approx(counts[0][0] / sum(counts[0]))
    assert found["precision"][0] == pytest.approx(counts[0][0] / sum(row[0] for row in counts))


@pytest.mark.parametrize("max_scores", [1 << 20, 100])  # beyond, scores are counted in bins
def test_area_under_the_curve(folder, monkeypatch, max_scores):
    monkeypatch.setattr(ranking, "MAX_SCORES", max_scores)
    random = np.random.default_rng(0)
    lines = [f"c{random.integers(2)} {random.integers(40)}:1\n" for _ in range(500)]
    (folder / "random.svm").write_text("".join(lines))
    scored = predict(folder, "two", "random.svm", "--scores")
    scores = np.array([line.split("\t")[1] for line in scored], float)
    positive = np.array([label == "c1" for label in labels("".join(lines))])
    difference = scores[positive][:, None] - scores[~positive]
    expected = np.mean(difference > 0) + np.mean(difference == 0) / 2
    assert outcome(folder, "evaluate", "two", "random.svm")["auc"] == pytest.approx(expected)


def test_labels_in_the_evaluation(folder):
    (folder / "new.svm").write_text("new 1:1\nc0 100:5\n")
    found = outcome(folder, "evaluate", "two", "new.svm")
    assert found["classes"] == ["c0", "c1", "new"]
    assert (found["examples"], found["error"]) == (2, 0.5)
    assert "unknown" in succeed(folder, "evaluate", "two", "new.svm")
    error = refuse(folder, "evaluate", "two", "-", input="1:1\n")
    assert "standard input:1:1: the line has no label" in error


@pytest.mark.parametrize(
    ("n", "columns", "title"),
    [
        (5, 110, "labels by predicted class"),
        (5, 60, "labels; the confusion matrix is in --json"),
        (20, 110, "labels; the confusion matrix is in --json"),
    ],
)
def test_tables_do_not_cut_labels_or_counts(tmp_path, n, columns, title):
    names = [f"group{k}" for k in range(n)]
    (tmp_path / "a.svm").write_text("".join(f"{names[k % n]} {k % n}:1\n" for k in range(1200 * n)))
    succeed(tmp_path, "train", "a.svm", "--model", "model")
    shown = succeed(tmp_path, "evaluate", "model", "a.svm", env={"COLUMNS": str(columns)})
    assert title in shown
    assert "…" not in shown
    for name in names:
        assert re.search(rf"^ *{re.escape(name)} .*\b1,200\b.*100\.00%", shown, re.MULTILINE)


# Inspecting


def test_properties_of_a_model(folder):
    found = outcome(folder, "inspect", "two", "--top", 3)
    assert (found["rule"], found["classes"]) == ("mcp", ["c0", "c1"])
    assert found["features"] == {"kind": "columns", "count": 102, "bits": None}
    assert found["certificate"]["seen"] == 200
    assert found["trained"]["command"] == "maxcosine train a.svm --rule mcp --model two"
    weights = [abs(weight) for _, weight in found["heaviest"]["c1"]]
    assert len(weights) == 3
    assert weights == sorted(weights, reverse=True)
    text = succeed(folder, "inspect", "two", "--top", 0)
    assert "no separator" in text
    assert re.search(r"^data +a.svm \([\d,]+ bytes\)", text, re.MULTILINE)


def test_features_are_shown_by_their_names(folder):
    for model, names in [
        ("two", ["100", "101"]),
        ("hashed", ["w^f100", "w^f101"]),
        ("exact", ["w^f100", "w^f101"]),
    ]:
        heaviest = outcome(folder, "inspect", model, "--top", 2)["heaviest"]["c1"]
        assert sorted(name for name, _ in heaviest) == names
        assert names[0] in succeed(folder, "inspect", model)


# Merging


@pytest.mark.parametrize("options", [[], ["--bits", 16, "--keep-names"], ["--exact"]])
def test_merged_models_predict_the_data_of_all(folder, options):
    kind = "vw" if options else "svm"
    lines = (folder / f"a.{kind}").read_text().splitlines(keepends=True)
    for k, part in enumerate((lines[:100], lines[100:])):
        (folder / f"part-{k}.{kind}").write_text("".join(part))
        succeed(folder, "train", f"part-{k}.{kind}", "--model", f"part-{k}.model", "--rule", "mcp", *options)
    ran = run(folder, "merge", "part-*.model", "--model", "merged")
    assert "2 models merged into merged" in ran.stderr
    found = outcome(folder, "inspect", "merged", "--top", 2)
    assert found["certificate"]["seen"] == 200
    assert found["features"]["bits"] == (16 if "--bits" in options else None)
    if options:
        assert {name for name, _ in found["heaviest"]["c1"]} == {"w^f100", "w^f101"}
    assert share_of_equal(predict(folder, "merged", f"a.{kind}"), labels("".join(lines))) > 0.9
    succeed(folder, "merge", "part-0.model", "part-1.model", "--model", "again")
    assert model_file.digest(folder / "again") == model_file.digest(folder / "merged")


def test_merges_that_are_refused(folder):
    succeed(folder, "train", "a.vw", "--model", "other", "--bits", 17)
    error = refuse(folder, "merge", "hashed", "other", "--model", "never")
    assert "hashed was learnt with bits 16 and other with 17" in error
    assert not (folder / "never").exists()
    error = refuse(folder, "merge", "hashed", "other", "--model", "other")
    assert "--model other is an input, too; name another file" in error
