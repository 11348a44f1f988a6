"""Commands with records: train, score and explain, and the others that read them."""

import gzip
import json
import os
import signal
import subprocess
import time

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from maxcosine import OnePassClassifier, load, model_file
from tests.cli.examples import outcome, refuse, succeed
from tests.commands import command, run
from tests.estimators.test_records import mails


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    mails(300).to_json(folder / "a.jsonl", orient="records", lines=True)
    mails(200, 1).to_csv(folder / "b.csv", index=False)
    mails(100, 2).to_parquet(folder / "c.parquet", index=False)
    (folder / "a.jsonl.gz").write_bytes(gzip.compress((folder / "a.jsonl").read_bytes()))
    found = outcome(folder, "train", "a.jsonl", "--label", "label", "--model", "m", "--test", "b.csv")
    assert found["test_error"] < 0.05
    return folder


def score(folder, *arguments):
    return outcome(folder, "score", "m", *arguments)


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_training_is_that_of_the_classifier_and_shows_the_columns(trained, tmp_path):
    shown = run(trained, "train", "a.jsonl.gz", "--label", "label", "--model", tmp_path / "m")
    assert shown.returncode == 0
    assert [line.split() for line in shown.stderr.splitlines()[1:]] == [
        ["label", "label"],
        ["number", "size"],
        ["category", "sender"],
        ["text", "text"],
    ]
    assert model_file.digest(tmp_path / "m") == model_file.digest(trained / "m")
    learner = OnePassClassifier().fit_records(trained / "a.jsonl", label="label")
    expected = learner.decision_function(mails(50, 5))
    assert np.array_equal(load(trained / "m").decision_function(mails(50, 5)), expected)
    about = outcome(trained, "inspect", "m", "--top", 50)
    assert about["records"] == {"label": ["label"], "number": ["size"], "category": ["sender"], "text": ["text"]}
    assert about["features"]["count"] == len(learner.features_)
    names = [name for name, _ in about["heaviest"]["spam"]]
    assert "sender=shop" in names
    assert "label columns" not in succeed(trained, "inspect", "m")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.jsonl"], "this looks like JSON. Name the column of the labels: --label NAME"),
        (["b.csv"], "b.csv: this looks like CSV. Name the column of the labels: --label NAME"),
        (["c.parquet"], "with the columns text, size, sender, label; name the column of the labels: --label NAME"),
        (["b.csv", "--text", "text"], "--text is about records; name the column of their labels, too: --label COLUMN"),
        (["b.csv", "--label", "stars"], "b.csv: there is no column 'stars'; the columns are text, size, sender, label"),
        (["b.csv", "--label", "label", "--drop", "x,y"], "b.csv: there is no column 'x'"),
        (["b.csv", "--label", "label", "--chars", "a..b"], "--chars a..b: write the least and the most characters"),
        (["b.csv", "--label", "label", "--chars", "3..99"], "chars is (3, 99); give the least and the most characters"),
        (["b.csv", "--label", "label", "--ngrams", "0"], "ngrams is 0, and chars is not given"),
        (["b.csv", "--label", "label", "--format", "vw"], "vw has no named columns"),
        (["b.csv", "--label", "label", "--numeric", "sender"], "b.csv:2: the value '"),
    ],
)
def test_what_cannot_be_read_is_refused(trained, arguments, message, tmp_path):
    assert message in refuse(trained, "train", *arguments, "--model", tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_killed_training_continues_to_the_same_bits(tmp_path):
    mails(30_000).to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    arguments = ["train", "a.jsonl", "--label", "label", "--checkpoint", "c", "--checkpoint-every", 2000]
    outcome(tmp_path, *arguments, "--model", "whole", "--force")
    (tmp_path / "c").unlink()
    process = subprocess.Popen(command(*arguments, "--model", "m"), cwd=tmp_path, stderr=subprocess.DEVNULL)
    while not (tmp_path / "c").exists() and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "m").exists()
    found = outcome(tmp_path, *arguments, "--model", "m", "--resume")
    assert found["resumed_at"] >= 2000
    assert model_file.digest(tmp_path / "m") == model_file.digest(tmp_path / "whole")


def test_training_goes_on_from_a_model(trained, tmp_path):
    outcome(trained, "train", "b.csv", "--init", "m", "--model", tmp_path / "longer")
    twice = OnePassClassifier().fit_records([trained / "a.jsonl", trained / "b.csv"], label="label")
    assert np.array_equal(load(tmp_path / "longer").decision_function(mails(9)), twice.decision_function(mails(9)))


def test_rules_are_compared_on_records(trained):
    found = outcome(trained, "compare", "b.csv", "--label", "label", "--rules", "onepass,mcp", "--split", "0.2")
    assert [row["rule"] for row in found["rules"]] == ["onepass", "mcp"]
    assert found["examples"] == 160


def test_predictions_and_evaluation(trained):
    expected = load(trained / "m").predict(mails(200, 1)).tolist()
    assert succeed(trained, "predict", "m", "b.csv").split() == expected
    assert outcome(trained, "evaluate", "m", "b.csv")["examples"] == 200
    without = "".join(line.rpartition(",")[0] + "\n" for line in (trained / "b.csv").read_text().splitlines())
    (trained / "unlabelled.csv").write_text(without)
    assert succeed(trained, "predict", "m", "unlabelled.csv").split() == expected


# score


def test_every_format_is_written_beside_its_columns_in_order(trained, tmp_path):
    found = score(trained, "a.jsonl.gz", "b.csv", "c.parquet", "--output", tmp_path)
    assert found == {"model": "m", "records": 600, "written": 600, "bad_rows": 0}
    learner = load(trained / "m")
    read = {
        "a.jsonl": (mails(300), pa.Table.from_pylist(rows_of(tmp_path / "a.jsonl"))),
        "b.csv": (mails(200, 1), pa.csv.read_csv(tmp_path / "b.csv")),
        "c.parquet": (mails(100, 2), pa.parquet.read_table(tmp_path / "c.parquet")),
    }
    for data, table in read.values():
        assert table.column_names == ["text", "size", "sender", "label", "predicted", "score", "probability"]
        assert table["text"].to_pylist() == data.text.tolist()
        assert table["predicted"].to_pylist() == learner.predict(data).tolist()
        np.testing.assert_array_equal(table["score"].to_numpy(), learner.decision_function(data))
        np.testing.assert_allclose(table["probability"].to_numpy(), learner.predict_proba(data).max(axis=1), rtol=1e-15)


def test_columns_classes_and_formats_are_chosen(trained, tmp_path):
    arguments = ["b.csv", "--output", tmp_path / "out.jsonl", "--keep", "label", "--class", "ham", "--top", "2"]
    score(trained, *arguments)
    learner, data = load(trained / "m"), mails(200, 1)
    rows = rows_of(tmp_path / "out.jsonl")
    names = ["label", "predicted", "score", "probability", "predicted_2", "probability_2"]
    assert list(rows[0]) == names
    np.testing.assert_array_equal([row["score"] for row in rows], -learner.decision_function(data))
    np.testing.assert_array_equal([row["probability"] for row in rows], learner.predict_proba(data)[:, 0])
    assert all({row["predicted"], row["predicted_2"]} == {"ham", "spam"} for row in rows)
    score(trained, "b.csv", "--output", tmp_path / "new", "--to", "parquet", "--keep", "")
    table = pa.parquet.read_table(tmp_path / "new" / "b.parquet")
    assert table.column_names == ["predicted", "score", "probability"]


def test_the_highest_scores_are_kept_exactly(trained, tmp_path):
    found = score(trained, "a.jsonl", "b.csv", "--output", tmp_path, "--keep-top", "10%")
    assert found["records"] == 500
    assert found["written"] == 50
    scores = np.concatenate([load(trained / "m").decision_function(one) for one in (mails(300), mails(200, 1))])
    kept = [row["score"] for row in rows_of(tmp_path / "a.jsonl")]
    kept += pa.csv.read_csv(tmp_path / "b.csv")["score"].to_pylist()
    assert sorted(kept) == sorted(scores)[-50:]


def test_thresholds_choose_labels(trained, tmp_path):
    learner, data = load(trained / "m"), mails(200, 1)
    score(trained, "b.csv", "--output", tmp_path / "out.csv", "--threshold", "precision=0.99")
    predicted = pa.csv.read_csv(tmp_path / "out.csv")["predicted"].to_pylist()
    kept = learner.decision_function(data) >= learner.threshold(precision=0.99).threshold
    assert predicted == np.where(kept, "spam", "ham").tolist()


def test_a_pipe_stays_a_pipe(trained):
    lines = (trained / "a.jsonl").read_text().splitlines(keepends=True)
    process = subprocess.Popen(
        command("score", "m", "-", "--keep", ""), cwd=trained, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    answers = []
    for line in lines[:5]:  # each is answered before the next one is sent
        process.stdin.write(line)
        process.stdin.flush()
        answers.append(json.loads(process.stdout.readline())["predicted"])
    process.stdin.close()
    assert process.wait() == 0
    assert answers == load(trained / "m").predict(mails(300)).tolist()[:5]


def test_the_highest_scores_of_a_pipe_are_those_of_the_training(trained):
    found = run(trained, "score", "m", "-", "--keep-top", "10%", input=(trained / "b.csv").read_text())
    assert found.returncode == 0
    assert "of the examples had while the model learnt" in found.stderr
    least = load(trained / "m").threshold(share=0.1).threshold
    expected = load(trained / "m").decision_function(mails(200, 1))
    assert [json.loads(line)["score"] for line in found.stdout.splitlines()] == expected[expected >= least].tolist()


def test_scoring_resumes_where_outputs_are_complete(trained, tmp_path):
    score(trained, "b.csv", "--output", tmp_path)
    (tmp_path / "b.csv").write_text("complete")
    message = refuse(trained, "score", "m", "a.jsonl", "b.csv", "--output", tmp_path)
    assert f"{tmp_path / 'b.csv'} exists; replace it with --force, or go on with --resume" in message
    found = score(trained, "a.jsonl", "b.csv", "--output", tmp_path, "--resume")
    assert found["written"] == 300
    assert (tmp_path / "b.csv").read_text() == "complete"
    assert score(trained, "a.jsonl", "b.csv", "--output", tmp_path, "--force")["written"] == 500


def test_bad_rows_are_counted_and_told(trained, tmp_path):
    lines = (trained / "a.jsonl").read_text().splitlines()
    lines[7] = '{"text": "free", "size": "much", "sender": "shop"}'
    (trained / "bad.jsonl").write_text("\n".join(lines))
    message = refuse(trained, "score", "m", "bad.jsonl", "--output", tmp_path / "bad.jsonl")
    assert "bad.jsonl:8: the value 'much' of 'size' is not a number" in message
    assert not list(tmp_path.iterdir())
    done = run(trained, "score", "m", "bad.jsonl", "--output", tmp_path / "bad.jsonl", "--on-bad", "skip", "--json")
    assert json.loads(done.stdout)["bad_rows"] == 1
    assert "skipped bad.jsonl:8: the value 'much'" in done.stderr
    assert len(rows_of(tmp_path / "bad.jsonl")) == 299


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["b.csv", "--keep", "nothing"], "there is no column 'nothing' to keep; the columns are text, size"),
        (["b.csv", "--class", "eggs"], "--class eggs: the model knows no such class; its classes are ham, spam"),
        (["b.csv", "--keep-top", "many"], "--keep-top many: write a percentage, such as 10%"),
        (["b.csv", "--to", "parquet"], "Parquet is not written to standard output"),
        (["b.csv", "--threshold", "recall=0.9", "--keep-top", "5%"], "give one of them"),
        (["b.csv", "--output", "b.csv", "--force"], "b.csv is an input; name another folder with --output"),
        (["scored.jsonl"], "the data have a column 'predicted', too; keep others with --keep"),
    ],
)
def test_what_cannot_be_scored_is_refused(trained, arguments, message):
    rows = [{"text": "a", "size": 1.0, "sender": "shop", "predicted": "ham"}]
    (trained / "scored.jsonl").write_text(json.dumps(rows[0]) + "\n")
    assert message in refuse(trained, "score", "m", *arguments)


def test_other_models_are_not_for_scoring(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n0 2:1\n")
    outcome(tmp_path, "train", "a.svm", "--model", "m")
    assert "m was not learnt from records (train --label NAME)" in refuse(tmp_path, "score", "m", "a.svm")


# explain


def test_words_and_columns_carry_a_prediction(trained):
    record = {"text": "Free LUNCH", "size": 2.2, "sender": "shop", "unknown": 1}
    found = outcome(trained, "explain", "m", json.dumps(record))
    learner = load(trained / "m")
    assert found["predicted"] == found["label"] == learner.predict_one(record)
    parts = {one["feature"]: one["adds"] for one in found["features"]}
    assert set(parts) == {"text:free", "text:lunch", "size", "size=2..2.5", "sender=shop"}
    assert parts["text:free"] > 0 > parts["text:lunch"]
    assert sum(parts.values()) + found["rest"] == pytest.approx(found["score"])
    assert found["score"] == pytest.approx(learner.decision_function([record])[0])
    against = outcome(trained, "explain", "m", json.dumps(record), "--label", "ham", "--top", "2")
    assert against["score"] == pytest.approx(-found["score"])
    assert against["more"] == 3
    assert sum(one["adds"] for one in against["features"]) + against["rest"] == pytest.approx(against["score"])
    shown = succeed(trained, "explain", "m", json.dumps(record))
    assert shown.startswith("predicted spam; score +")
    assert "text:free" in shown


def test_records_are_explained_from_files_and_for_rules(trained, tmp_path):
    record = mails(1, 3).to_dict("records")[0]
    (tmp_path / "one.json").write_text(json.dumps(record))
    outcome(trained, "train", "a.jsonl", "--label", "label", "--rule", "mcp", "--exact", "--model", tmp_path / "m")
    found = outcome(tmp_path, "explain", "m", "one.json")
    assert found["score"] == pytest.approx(abs(load(tmp_path / "m").decision_function([record])[0]))
    assert run(tmp_path, "explain", "m", "-", input=json.dumps(record)).returncode == 0
    assert "RECORD: not a JSON object" in refuse(tmp_path, "explain", "m", '{"text": ')
    assert "the model knows no class 'eggs'" in refuse(tmp_path, "explain", "m", "one.json", "--label", "eggs")
    (tmp_path / "a.svm").write_text("1 1:1\n0 2:1\n" * 5)
    outcome(tmp_path, "train", "a.svm", "--exact", "--model", "ids")
    assert [one["feature"] for one in outcome(tmp_path, "explain", "ids", '{"1": 1.0}')["features"]] in (["1"], [])


def test_a_training_on_a_cluster(trained, tmp_path):
    pytest.importorskip("distributed")
    found = outcome(
        trained,
        "train",
        "a.jsonl",
        "b.csv",
        "--label",
        "label",
        "--on",
        "dask-local:2",
        "--shards",
        3,
        "--model",
        tmp_path / "m",
    )
    assert found["examples"] == 500
    assert load(tmp_path / "m").score(mails(100, 2), mails(100, 2).label) > 0.9
    assert os.path.getsize(tmp_path / "m") < 100_000
