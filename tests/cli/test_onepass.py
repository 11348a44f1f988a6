"""Commands with the one-pass learner, which is the default of `train`."""

import json
import re

import numpy as np
import pytest

from maxcosine import OnePassClassifier, load, model_file
from tests.cli.examples import labels, outcome, refuse, succeed, svm
from tests.commands import run


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.svm").write_text(svm(400))
    (tmp_path / "b.svm").write_text(svm(150, seed=1))
    (tmp_path / "many.svm").write_text(svm(400, classes=4))
    return tmp_path


def train(folder, *arguments):
    return outcome(folder, "train", *arguments, "--model", "m")


@pytest.mark.parametrize("data", ["a.svm", "many.svm"])
def test_command_learns_what_the_classifier_learns(folder, data):
    found = train(folder, data, "--test", "b.svm")
    learner = OnePassClassifier().fit_stream(folder / data)
    assert found["rule"] == "onepass"
    assert found["updates"] is None
    assert found["progressive_error"] == learner.mistakes_ / 400
    assert found["margin_ceiling"] == learner.certificate_.margin_ceiling
    learner.model_.features.set_hashing(0, "svmlight")
    (folder / "python").write_bytes(model_file.to_bytes(learner.model_))
    assert model_file.digest(folder / "python") == model_file.digest(folder / "m")
    assert isinstance(load(folder / "m"), OnePassClassifier)


def flipped(folder):
    """Write a stream whose labels change their meaning after 400 rows."""
    later = svm(400, seed=2).replace("c0 ", "x ").replace("c1 ", "c0 ").replace("x ", "c1 ")
    (folder / "flipped.svm").write_text(svm(400) + later)
    return "flipped.svm"


def test_drift_is_shown_by_train_and_inspect(folder):
    found = train(folder, flipped(folder))
    assert [one["outcome"] for one in found["drift"]] == ["restarted"]
    assert 400 < found["drift"][0]["alarm"] <= 464
    assert outcome(folder, "inspect", "m")["drift"] == found["drift"]
    shown = " ".join(succeed(folder, "inspect", "m").split())
    assert re.search(r"drift alarm after 4\d\d examples; a fresh learner replaced .* \(a heuristic\)", shown)
    warned = train(folder, "flipped.svm", "--on-drift", "warn")
    assert {one["outcome"] for one in warned["drift"]} == {"warned"}
    ignored = train(folder, "flipped.svm", "--on-drift", "ignore")
    assert ignored["drift"] == []
    assert ignored["progressive_error"] > found["progressive_error"]


def test_training_goes_on_from_a_model_on_trial_to_the_same_bits(folder):
    whole = train(folder, flipped(folder))
    expected = model_file.digest(folder / "m")
    lines = (folder / "flipped.svm").read_text().splitlines(keepends=True)
    (folder / "first.svm").write_text("".join(lines[:450]))
    (folder / "rest.svm").write_text("".join(lines[450:]))
    found = succeed(folder, "train", "first.svm", "--model", "first")
    assert "a fresh learner is on trial" in " ".join(found.split())
    assert train(folder, "rest.svm", "--init", "first")["drift"] == whole["drift"]
    assert model_file.digest(folder / "m") == expected


def test_on_drift_is_for_onepass_on_one_machine(folder):
    arguments = ("train", "a.svm", "--model", "m", "--on-drift", "warn")
    assert "goes with onepass" in refuse(folder, *arguments, "--rule", "mcp")
    assert "one machine" in refuse(folder, *arguments, "--on", "dask-local:2")


def test_hashed_exact_and_double_models_go_on_from_checkpoints_to_the_same_bits(folder):
    for options in (["--bits", "8"], ["--exact"], ["--float64"]):
        train(folder, "many.svm", *options)
        whole = model_file.digest(folder / "m")
        train(folder, "many.svm", *options, "--checkpoint", "c", "--checkpoint-every", "170", "--force")
        assert model_file.digest(folder / "m") == whole
        train(folder, "many.svm", *options, "--checkpoint", "c", "--checkpoint-every", "170", "--resume")
        assert model_file.digest(folder / "m") == whole


def test_model_is_continued_by_init(folder):
    lines = (folder / "a.svm").read_text().splitlines(keepends=True)
    (folder / "first.svm").write_text("".join(lines[:150]))
    (folder / "rest.svm").write_text("".join(lines[150:]))
    train(folder, "a.svm", "--exact")
    whole = model_file.digest(folder / "m")
    train(folder, "first.svm", "--exact")
    outcome(folder, "train", "rest.svm", "--init", "m", "--model", "n")
    assert model_file.digest(folder / "n") == whole
    assert "--rule mcp" in refuse(folder, "train", "rest.svm", "--init", "m", "--model", "n", "--rule", "mcp")


def test_rows_that_no_rule_could_learn_from_are_learnt(folder):
    (folder / "large.svm").write_text("".join(f"{k % 2} 1:{1e12 + k} 2:{k % 2}\n" for k in range(60)))
    assert train(folder, "large.svm")["examples"] == 60
    assert "norm" in refuse(folder, "train", "large.svm", "--model", "m", "--rule", "mcp")


@pytest.mark.parametrize(
    ("option", "name"),
    [
        (["--average"], "--average"),
        (["--no-intercept"], "--no-intercept"),
        (["--passes", "2"], "--passes"),
        (["--param", "C=1"], "--param"),
        (["--probability"], "--probability"),
    ],
)
def test_options_of_rules_are_refused(folder, option, name):
    message = refuse(folder, "train", "a.svm", "--model", "m", *option)
    assert f"{name} goes with a rule, such as --rule mcp" in message
    assert not (folder / "m").exists()


def test_probabilities_are_those_of_the_classifier(folder):
    for data in ("a.svm", "many.svm"):
        train(folder, data)
        lines = succeed(folder, "predict", "m", "b.svm", "--probabilities").splitlines()
        learner = load(folder / "m")
        printed = np.array([[float(one) for one in line.split("\t")[1:]] for line in lines])
        assert printed.sum(axis=1) == pytest.approx(np.ones(150))
        assert [line.split("\t")[0] for line in lines] == [str(learner.classes_[k]) for k in printed.argmax(axis=1)]
        first = json.loads(succeed(folder, "predict", "m", "b.svm", "--probabilities", "--json").splitlines()[0])
        assert list(first["probabilities"].values()) == pytest.approx(printed[0], rel=1e-6)
    train(folder, "a.svm", "--rule", "mcp")
    assert "two kinds" in refuse(folder, "predict", "m", "b.svm", "--probabilities", "--scores")


def test_threshold_keeps_what_it_promises(folder):
    random = np.random.default_rng(0)
    rows = [(k % 3 == 0, random.normal(size=3) + (k % 3 == 0)) for k in range(3000)]
    text = [
        f"{'spam' if bad else 'ham'} " + " ".join(f"{i}:{x:.4f}" for i, x in enumerate(row, 1)) for bad, row in rows
    ]
    (folder / "first.svm").write_text("\n".join(text[:2000]) + "\n")
    (folder / "later.svm").write_text("\n".join(text[2000:]) + "\n")
    train(folder, "first.svm")
    ran = run(folder, "predict", "m", "later.svm", "--threshold", "recall=0.9")
    predicted, right = ran.stdout.splitlines(), labels((folder / "later.svm").read_text())
    recall = np.mean([a == "spam" for a, b in zip(predicted, right, strict=True) if b == "spam"])
    assert recall == pytest.approx(0.9, abs=0.05)
    assert re.search(r"expect precision [\d.]+%, recall 9\d\.\d%, [\d.]+% of the examples kept", ran.stderr)
    for wrong in ("recall", "best=1", "recall=x", "recall=2"):
        assert refuse(folder, "predict", "m", "later.svm", "--threshold", wrong).startswith("error: ")


def test_inspect_shows_certificate_error_and_heaviest_features(folder):
    train(folder, "a.svm")
    shown = succeed(folder, "inspect", "m", "--top", "2")
    assert "Certificate of the one-pass hypothesis" in shown
    assert re.search(r"^true error +[\d.]+% to [\d.]+%", shown, re.MULTILINE)
    found = outcome(folder, "inspect", "m", "--top", "2")
    # Each class has a feature of its own: 100 for c0, 101 for c1.
    assert {name for name, _ in found["heaviest"]["c1"]} == {"100", "101"}


def test_compare_has_the_one_pass_learner_beside_the_rules(folder):
    found = outcome(folder, "compare", "many.svm", "--test", "b.svm", "--rules", "mcp,onepass")
    rows = {row["rule"]: row for row in found["rules"]}
    train(folder, "many.svm", "--test", "b.svm")
    assert rows["onepass"]["progressive_error"] == train(folder, "many.svm")["progressive_error"]
    assert rows["onepass"]["margin_ceilings"] == []
    assert "OnePass" in succeed(folder, "compare", "a.svm")


def test_merged_models_predict_the_data_of_all(folder):
    lines = (folder / "many.svm").read_text().splitlines(keepends=True)
    for k in range(2):
        (folder / f"part-{k}.svm").write_text("".join(lines[k::2]))
        succeed(folder, "train", f"part-{k}.svm", "--model", f"part-{k}.model")
    merged = outcome(folder, "merge", "part-0.model", "part-1.model", "--model", "m")
    assert merged["certificate"]["seen"] == 400
    assert outcome(folder, "evaluate", "m", "many.svm")["error"] < 0.1
    message = refuse(folder, "merge", "part-0.model", "part-1.model", "--model", "m", "--how", "mean")
    assert "how='mean' does not apply to models of OnePassClassifier" in message
