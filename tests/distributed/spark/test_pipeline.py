"""The classifier works like those of Spark ML: in pipelines, in cross-validation, saved and loaded."""

import numpy as np
import pytest
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.evaluation import MulticlassClassificationEvaluator
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder

import maxcosine
from maxcosine.distributed.spark import MaxCosineClassifier, MaxCosineModel
from tests.distributed.digits import assert_same
from tests.distributed.spark.data import examples

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def df(spark):
    X, y = examples(n_classes=2)
    rows = [(*x, float(label)) for x, label in zip(X[:, :3].tolist(), y, strict=True)]
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, 2), ["a", "b", "c", "label"])


@pytest.fixture(scope="module")
def pipeline():
    assembler = VectorAssembler(inputCols=["a", "b", "c"], outputCol="features")
    return Pipeline(stages=[assembler, MaxCosineClassifier(average=True)])


@pytest.fixture(scope="module")
def fitted(df, pipeline):
    return pipeline.fit(df)


def test_cross_validation_of_a_pipeline(df, pipeline):
    classifier = pipeline.getStages()[-1]
    grid = ParamGridBuilder().addGrid(classifier.rule, ["mcp", "perceptron"]).build()
    search = CrossValidator(
        estimator=pipeline,
        estimatorParamMaps=grid,
        evaluator=MulticlassClassificationEvaluator(metricName="accuracy"),
        numFolds=2,
        seed=1,
    ).fit(df)
    assert min(search.avgMetrics) > 0.6
    best = search.bestModel.stages[-1]
    assert best.getOrDefault("rule") == grid[int(np.argmax(search.avgMetrics))][classifier.rule]
    assert best.certificate.rule == best.getOrDefault("rule")


def test_pipelines_are_saved_and_loaded(tmp_path, df, pipeline, fitted):
    pipeline.save(str(tmp_path / "pipeline"))
    again = Pipeline.load(str(tmp_path / "pipeline"))
    assert again.getStages()[-1].getOrDefault("average") is True
    fitted.save(str(tmp_path / "model"))
    loaded = PipelineModel.load(str(tmp_path / "model"))
    first, second = fitted.stages[-1], loaded.stages[-1]
    assert isinstance(second, MaxCosineModel)
    assert second.uid == first.uid
    assert_same(second.estimator, first.estimator)
    assert {p.name: v for p, v in second.extractParamMap().items()} == {
        p.name: v for p, v in first.extractParamMap().items()
    }
    assert loaded.transform(df).first() == fitted.transform(df).first()


def test_model_files_are_exchanged_with_the_package(tmp_path, df, fitted):
    model, path = fitted.stages[-1], tmp_path / "spark.model"
    model.write_file(path)
    learner = maxcosine.load(path)
    X = np.array(df.select("a", "b", "c").collect())
    predicted = [row.prediction for row in fitted.transform(df).collect()]
    assert learner.predict(X).tolist() == predicted
    assert learner.certificate_.bound == model.certificate.bound
    read = MaxCosineModel.read_file(path)
    assert [row.prediction for row in read.transform(fitted.stages[0].transform(df)).collect()] == predicted
