"""On a cluster the model is that of the local runner, to the bit."""

import gzip

import numpy as np
import pytest
from pyspark.ml.linalg import Vectors
from pyspark.sql import functions as F

from maxcosine import OnlineClassifier, distributed
from maxcosine.distributed.spark import MaxCosineClassifier
from tests.distributed.spark.data import N_ROWS, NAMES, examples, frame, same_bits, shards

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def data():
    return examples()


@pytest.fixture(scope="module")
def df(spark, data):
    return frame(spark, *data)


def test_vectors_in_a_tree_of_rounds(df, data):
    X, y = data
    # The local runner goes first: what it compiles, the executors only load.
    local = distributed.fit(shards(X, y * 1.0), OnlineClassifier(average=True), rounds=2, fan_in=2)
    model = MaxCosineClassifier(rounds=2, fanIn=2, average=True).fit(df)
    assert same_bits(model, local)
    assert model.tallies == local.rounds_
    assert model.tallies[0].examples == N_ROWS


def test_arrays_strings_weights_and_a_mean(df, data):
    X, y = data
    given = df.withColumn("array", F.col("array").cast("array<float>"))
    model = MaxCosineClassifier(
        featuresCol="array",
        labelCol="name",
        weightCol="weight",
        rule="pa1",
        ruleParams={"C": 0.5},
        multiclass="joint",
        how="mean",
    ).fit(given)
    weights = 1.0 + np.arange(N_ROWS) % 2
    local = distributed.fit(
        shards(X.astype(np.float32), NAMES[y], weights),
        OnlineClassifier("pa1", rule_params={"C": 0.5}, multiclass="joint"),
        how="mean",
    )
    assert same_bits(model, local)
    assert model.classes == sorted(NAMES)


def test_more_parts_than_a_driver_takes_and_empty_ones(spark, data):
    X, y = data[0][:20], data[1][:20]
    model = MaxCosineClassifier(fanIn=0).fit(frame(spark, X, y, n_partitions=24))
    local = distributed.fit(shards(X, y * 1.0, n_partitions=24), OnlineClassifier())
    assert same_bits(model, local)


@pytest.mark.parametrize(("form", "packed"), [("svm", False), ("svm", True), ("vw", False)])
def test_files_that_the_executors_read(spark, tmp_path, data, form, packed):
    X, y = data
    bar, prefix, options = ("|n ", "f", {"bits": 12}) if form == "vw" else ("", "", {})
    lines = [
        f"{label} {bar}"
        + " ".join(f"{prefix}{j + 1}:{value:.6g}" for j, value in enumerate(x) if value)
        + "\n"
        for x, label in zip(X, y, strict=True)
    ]
    for k in range(3):
        text = "".join(lines[200 * k : 200 * (k + 1)]).encode()
        path = tmp_path / f"{k}.{form}{'.gz' if packed else ''}"
        path.write_bytes(gzip.compress(text) if packed else text)
    files = str(tmp_path / f"*.{form}*")
    local = distributed.fit(distributed.plan(files, n_shards=5, **options), OnlineClassifier(), rounds=2)
    model = MaxCosineClassifier(rounds=2).fit_files(files, spark, n_shards=5, **options)
    assert same_bits(model, local)
    assert model.tallies[1].examples == N_ROWS
    assert model.certificate.merge.models == (3 if packed else 5)


BAD = [
    ([1.0] * 7, None, "its label is null"),
    ([1.0] * 7, 0.5, "its label is 0.5, no whole number"),
    (None, 1.0, "its features are null"),
    ([1.0] * 6, 1.0, "it has 6 features, and there are 7"),
    ([float("nan")] * 7, 1.0, "its features hold NaN or null"),
]


def with_bad_rows(spark, df):
    bad = [(features, label) for features, label, _ in BAD]
    few = spark.createDataFrame(bad, "array array<double>, label double").coalesce(1)
    return df.select("array", "label").union(few)


def test_bad_rows_end_it_by_saying_where(spark, df):
    with pytest.raises(ValueError, match="partition 5, row 0: its label is null; drop such rows"):
        MaxCosineClassifier(featuresCol="array").fit(with_bad_rows(spark, df))


def test_bad_rows_are_skipped_and_counted(spark, df, data):
    X, y = data
    model = MaxCosineClassifier(featuresCol="array", onBad="skip").fit(with_bad_rows(spark, df))
    assert same_bits(model, distributed.fit(shards(X, y * 1.0), OnlineClassifier()))
    [tally] = model.tallies
    assert (tally.examples, tally.bad) == (N_ROWS, len(BAD))
    assert tally.first_bad == tuple(f"partition 5, row {k}: {reason}" for k, (*_, reason) in enumerate(BAD))


def test_no_rows_are_an_error(df):
    with pytest.raises(ValueError, match="no example in any of the partitions"):
        MaxCosineClassifier().fit(df.where("label > 7"))


def test_features_must_be_vectors_or_arrays(df):
    with pytest.raises(TypeError, match=r"'name' is of type string.*VectorAssembler"):
        MaxCosineClassifier(featuresCol="name").fit(df)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"rule": "mpc"}, "did you mean 'mcp'"),
        ({"how": "best"}, "how='best' is not a way of merging"),
        ({"rounds": 0}, "rounds=0; there is at least one"),
        ({"fanIn": 1}, "fan_in=1; it is at least 2"),
        ({"onBad": "ignore"}, "onBad='ignore'; it is one of error, skip"),
        ({"rule": "pa1", "ruleParams": {"D": 1.0}}, "D"),
    ],
)
def test_values_that_cannot_be_are_refused_before_any_job(df, params, message):
    with pytest.raises(ValueError, match=message):
        MaxCosineClassifier(**params).fit(df)


def test_predictions_are_those_of_the_classifier(df, data):
    X, y = data
    model = MaxCosineClassifier().fit(df)
    found = model.transform(df.drop("rawPrediction")).select("prediction", "rawPrediction", "name").collect()
    local = model.estimator
    assert [row.prediction for row in found] == local.predict(X).tolist()
    np.testing.assert_array_equal([row.rawPrediction.toArray() for row in found], local.decision_function(X))
    assert [row.name for row in found] == NAMES[y].tolist()
    assert model.predict(Vectors.dense(X[0])) == found[0].prediction


def test_two_classes_have_two_scores_and_strings_are_predicted(df, data):
    X, y = data
    two = MaxCosineClassifier(labelCol="name", rawPredictionCol="", predictionCol="tree")
    model = two.fit(df.where("name != 'cedar'"))
    few = df.where("name != 'cedar'").limit(50)
    found = model.transform(few)
    assert found.columns[-1] == "tree"
    expected = model.estimator.predict(X[y != 2][:50]).tolist()
    assert [row.tree for row in found.collect()] == expected
    raw = model.predictRaw(Vectors.dense(X[0])).toArray()
    assert raw[0] == -raw[1]


def test_rows_that_cannot_be_predicted_are_null_or_an_error(spark, df):
    from pyspark.errors import PythonException

    model = MaxCosineClassifier(featuresCol="array", onBad="skip").fit(df)
    rows = with_bad_rows(spark, df).where("label is null or label = 0.5 or array is null").coalesce(1)
    assert [row.prediction is None for row in model.transform(rows).collect()] == [False, False, True]
    with pytest.raises(PythonException, match="partition 0, row 2: its features are null"):
        model.copy({model.onBad: "error"}).transform(rows).collect()
