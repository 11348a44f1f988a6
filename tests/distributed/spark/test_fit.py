"""A Spark cluster gives the same bits as one process."""

import gzip
import subprocess
import sys

import numpy as np
import pytest
from pyspark.errors import PythonException
from pyspark.ml.linalg import Vectors
from pyspark.sql import functions as F

import maxcosine
from maxcosine import OnePassClassifier, OnlineClassifier, distributed, model_file
from maxcosine.distributed.spark import MaxCosineClassifier, MaxCosineModel
from tests.distributed.digits import LINES, assert_same
from tests.distributed.spark.data import N_ROWS, NAMES, examples, frame, shards

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def data():
    return examples()


@pytest.fixture(scope="module")
def df(spark, data):
    return frame(spark, *data)


def test_vectors_in_a_tree_of_rounds(df, data):
    X, y = data
    expected = distributed.fit(shards(X, y * 1.0), OnlineClassifier(average=True), rounds=2, fan_in=2)
    model = MaxCosineClassifier(rounds=2, fanIn=2, average=True).fit(df)
    assert_same(model.estimator, expected)
    assert model.tallies == expected.rounds_


def test_one_pass_in_a_tree_of_two_rounds(df, data, tmp_path):
    X, y = data
    expected = distributed.fit(shards(X, y * 1.0), OnePassClassifier(), rounds=2, fan_in=2)
    model = MaxCosineClassifier(rule="onepass", rounds=2, fanIn=2).fit(df)
    assert model_file.to_bytes(model.learnt) == model_file.to_bytes(expected.model_)
    assert model.tallies == expected.rounds_
    assert [row.prediction for row in model.transform(df).collect()] == expected.predict(X).tolist()
    model.write_file(tmp_path / "model")
    read = MaxCosineModel.read_file(tmp_path / "model")
    assert type(read.estimator) is OnePassClassifier
    for params, message in [
        ({"rounds": 3}, "rounds=3 is unstable for OnePassClassifier"),
        ({"average": True}, "average does not apply to rule='onepass'; leave it out"),
    ]:
        with pytest.raises(ValueError, match=message):
            MaxCosineClassifier(rule="onepass", **params).fit(df)


def test_arrays_strings_weights_and_a_mean(df, data):
    X, y = data
    rows = df.withColumn("array", F.col("array").cast("array<float>"))
    model = MaxCosineClassifier(
        featuresCol="array",
        labelCol="name",
        weightCol="weight",
        rule="pa1",
        ruleParams={"C": 0.5},
        multiclass="joint",
        how="mean",
    ).fit(rows)
    weights = 1.0 + np.arange(N_ROWS) % 2
    learner = OnlineClassifier("pa1", rule_params={"C": 0.5}, multiclass="joint")
    expected = distributed.fit(shards(X.astype(np.float32), NAMES[y], weights), learner, how="mean")
    assert_same(model.estimator, expected)
    assert model.classes == sorted(NAMES)


def test_empty_partitions_and_a_merge_outside_the_driver(spark, data):
    X, y = data[0][:20], data[1][:20]
    model = MaxCosineClassifier(fanIn=0).fit(frame(spark, X, y, n_partitions=24))
    assert_same(model.estimator, distributed.fit(shards(X, y * 1.0, n_partitions=24), OnlineClassifier()))


@pytest.mark.parametrize("form", ["svm", "vw"])
def test_files(spark, tmp_path, data, form):
    X, y = data
    bar, prefix, options = ("|n ", "f", {"bits": 12}) if form == "vw" else ("", "", {})
    lines = [
        f"{label} {bar}" + " ".join(f"{prefix}{j + 1}:{v:.6g}" for j, v in enumerate(x) if v) + "\n"
        for x, label in zip(X, y, strict=True)
    ]
    for k in range(3):
        text = "".join(lines[200 * k : 200 * (k + 1)]).encode()
        path = tmp_path / f"{k}.{form}{'.gz' if k == 2 else ''}"
        path.write_bytes(gzip.compress(text) if k == 2 else text)
    files = str(tmp_path / f"*.{form}*")
    expected = distributed.fit(distributed.plan(files, n_shards=5, **options), OnlineClassifier(), rounds=2)
    model = MaxCosineClassifier(rounds=2).fit_files(files, spark, n_shards=5, **options)
    assert_same(model.estimator, expected)
    assert model.tallies[1].examples == N_ROWS


SCRIPT = """
import sys, maxcosine
from maxcosine.distributed import train_files
learner = train_files(sys.argv[1], maxcosine.OnlineClassifier(), "spark", n_shards=3, rounds=2)
maxcosine.save(learner, sys.argv[2])
"""


def test_cluster_by_name(tmp_path):
    path, saved = tmp_path / "digits.svm", tmp_path / "model"
    path.write_text("".join(LINES[:500]))
    subprocess.run([sys.executable, "-c", SCRIPT, path, saved], check=True)  # its session ends with it
    expected = distributed.fit(distributed.plan(path, n_shards=3), OnlineClassifier(), rounds=2)
    found = maxcosine.load(saved)
    assert found.coef_.tobytes() == expected.coef_.tobytes()
    assert found.certificate_ == expected.certificate_


BAD = [
    ([1.0] * 7, None, "its label is null"),
    ([1.0] * 7, 0.5, "its label is 0.5, not a whole number"),
    (None, 1.0, "its features are null"),
    ([1.0] * 6, 1.0, "it has 6 features instead of 7"),
    ([float("nan")] * 7, 1.0, "its features contain NaN or null"),
]


def with_bad_rows(spark, df):
    bad = [(features, label) for features, label, _ in BAD]
    rows = spark.createDataFrame(bad, "array array<double>, label double").coalesce(1)
    return df.select("array", "label").union(rows)


def test_bad_rows_are_reported_or_skipped(spark, df, data):
    X, y = data
    rows = with_bad_rows(spark, df)
    with pytest.raises(ValueError, match="partition 5, row 0: its label is null; remove such rows"):
        MaxCosineClassifier(featuresCol="array").fit(rows)
    model = MaxCosineClassifier(featuresCol="array", onBad="skip").fit(rows)
    expected = distributed.fit(shards(X, y * 1.0), OnlineClassifier())
    assert model.estimator.coef_.tobytes() == expected.coef_.tobytes()
    [tally] = model.tallies
    assert (tally.examples, tally.bad) == (N_ROWS, len(BAD))
    assert tally.first_bad == tuple(f"partition 5, row {k}: {reason}" for k, (*_, reason) in enumerate(BAD))
    unlabelled = rows.where("label is null or label = 0.5 or array is null").coalesce(1)
    assert [row.prediction is None for row in model.transform(unlabelled).collect()] == [False, False, True]
    with pytest.raises(PythonException, match="partition 0, row 2: its features are null"):
        model.copy({model.onBad: "error"}).transform(unlabelled).collect()


def test_invalid_parameters_and_data_are_refused(df):
    for params, message in [
        ({"rule": "mpc"}, "did you mean 'mcp'"),
        ({"how": "best"}, "how='best' is not a way of merging"),
        ({"onBad": "ignore"}, "onBad='ignore'; choose one of error, skip"),
        ({"rule": "pa1", "ruleParams": {"D": 1.0}}, "D"),
    ]:
        with pytest.raises(ValueError, match=message):
            MaxCosineClassifier(**params).fit(df)
    with pytest.raises(ValueError, match="no examples in the data"):
        MaxCosineClassifier().fit(df.where("label > 7"))
    with pytest.raises(TypeError, match=r"'name' has type string.*VectorAssembler"):
        MaxCosineClassifier(featuresCol="name").fit(df)


def test_predictions_are_those_of_the_classifier(df, data):
    X, y = data
    model = MaxCosineClassifier().fit(df)
    found = model.transform(df).select("prediction", "rawPrediction", "name").collect()
    learner = model.estimator
    assert [row.prediction for row in found] == learner.predict(X).tolist()
    np.testing.assert_array_equal([row.rawPrediction.toArray() for row in found], learner.decision_function(X))
    assert [row.name for row in found] == NAMES[y].tolist()
    assert model.predict(Vectors.dense(X[0])) == found[0].prediction
    assert (model.numFeatures, model.numClasses) == (7, 3)
    with pytest.raises(ValueError, match="the column 'prediction' exists already"):
        model.transform(df.withColumn("prediction", F.lit(0.0)))


def test_two_classes_have_two_scores_and_strings_are_predicted(df, data):
    X, y = data
    two = df.where("name != 'cedar'")
    model = MaxCosineClassifier(labelCol="name", rawPredictionCol="", predictionCol="tree").fit(two)
    found = model.transform(two.limit(50))
    assert found.columns == [*df.columns, "tree"]
    assert [row.tree for row in found.collect()] == model.estimator.predict(X[y != 2][:50]).tolist()
    raw = model.predictRaw(Vectors.dense(X[0])).toArray()
    assert raw[0] == -raw[1]
