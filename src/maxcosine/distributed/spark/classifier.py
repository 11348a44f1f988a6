"""`MaxCosineClassifier`: any rule as an Estimator of Spark ML."""

from __future__ import annotations

from typing import Any

from pyspark import StorageLevel, keyword_only
from pyspark.ml.classification import Classifier
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from maxcosine.data.inputs import InputNames
from maxcosine.distributed.jobs import NO_EXAMPLES
from maxcosine.distributed.spark.cluster import PATIENCE, fail_without_executors, session
from maxcosine.distributed.spark.model import MaxCosineModel, feature_column
from maxcosine.distributed.spark.params import MaxCosineParams
from maxcosine.distributed.spark.rounds import fit_rows, fit_shards
from maxcosine.distributed.text_shards import plan


class MaxCosineClassifier(MaxCosineParams, Classifier, DefaultParamsWritable, DefaultParamsReadable):
    """Any rule as an Estimator of Spark ML.

    One task learns each partition, and the models are merged into one that is certified on all rows (section
    8 of the theory). The result depends on the partitions, their order and the order of their rows. It does
    not depend on timing or on the number of executors.

    Parameters
    ----------
    featuresCol : str, default="features"
        A column of vectors, dense or sparse, or of arrays of numbers.
    labelCol : str, default="label"
        A column of whole numbers or strings; predictions have the same type.
    predictionCol : str, default="prediction"
        The column for predicted classes; "" adds none.
    rawPredictionCol : str, default="rawPrediction"
        The column for vectors of scores, one per class; "" adds none.
    weightCol : str, default=None
        A column of weights: how much each row counts, relative to the mean weight so far.
    rule : str, default="mcp"
        A name in `maxcosine.RULES`, or "onepass" for `maxcosine.OnePassClassifier`, which has no `ruleParams`,
        `average`, `multiclass`, `fitIntercept` and `how`, and up to two `rounds`.
    ruleParams : dict, default=None
        The rule's parameters, by name.
    average : bool, default=False
        Predict with the average of the hypotheses after each example.
    multiclass : {"ovr", "joint"}, default="ovr"
        Learn each class against the rest, or all classes jointly.
    fitIntercept : bool, default=True
        Add a constant feature 1.
    dtype : {"float32", "float64", ""}, default=""
        The type of the weights; "" is the type of the features.
    how : {"certified", "mean"}, default="certified"
        Merge to the hypothesis with the largest proven bound, or to the mean of the hypotheses.
    rounds : int, default=1
        The number of passes over the data. Each round starts from the merged model of the round before.
    fanIn : int, default=16
        The number of models that one merge combines, in a tree; 0 merges all models at once.
    onBad : {"error", "skip"}, default="error"
        A row that is null, contains NaN or has another length raises an error that says where it is, or is
        skipped and counted. In `transform`, the prediction for a skipped row is null.
    executorTimeout : float, default=300
        Seconds without any executor after which `ExecutorsLost` is raised; 0 waits forever.

    Examples
    --------
    >>> from maxcosine.distributed.spark import MaxCosineClassifier, session
    >>> rows = [([k % 10 - 4.5, 1.0], float(k % 10 > 4)) for k in range(100)]
    >>> df = session({"spark.master": "local[1]"}).createDataFrame(rows, ["features", "label"])
    >>> model = MaxCosineClassifier(rounds=2).fit(df)
    >>> model.tallies[0].examples, model.transform(df).first().prediction
    (100, 0.0)
    """

    @keyword_only
    def __init__(
        self,
        *,
        featuresCol: str = "features",
        labelCol: str = "label",
        predictionCol: str = "prediction",
        rawPredictionCol: str = "rawPrediction",
        weightCol: str | None = None,
        rule: str = "mcp",
        ruleParams: dict[str, float] | None = None,
        average: bool = False,
        multiclass: str = "ovr",
        fitIntercept: bool = True,
        dtype: str = "",
        how: str = "certified",
        rounds: int = 1,
        fanIn: int = 16,
        onBad: str = "error",
        executorTimeout: float = PATIENCE,
    ) -> None:
        super().__init__()
        self._set(**self._input_kwargs)

    def setParams(self, **params: Any) -> MaxCosineClassifier:
        """Set parameters by name."""
        self._set(**params)
        return self

    def _fit(self, dataset: DataFrame) -> MaxCosineModel:
        job, skip_bad, patience = self._job(), self._skip_bad(), self.getOrDefault("executorTimeout")
        rows = self._select(dataset)
        persist = job.rounds > 1 and dataset.storageLevel == StorageLevel.NONE
        if persist:
            rows.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            with fail_without_executors(dataset.sparkSession.sparkContext, patience):
                n_features = _n_features(dataset, self.getOrDefault("featuresCol"))
            result = fit_rows(rows, job, n_features, skip_bad, patience)
        finally:
            if persist:
                rows.unpersist()
        model: MaxCosineModel = self._copyValues(MaxCosineModel(result))
        return model

    def _select(self, dataset: DataFrame) -> DataFrame:
        """Select features, labels and, optionally, weights, in the types that `RowReader` expects."""
        label = self.getOrDefault("labelCol")
        is_text = isinstance(dataset.schema[label].dataType, StringType)
        columns = [
            feature_column(dataset, self.getOrDefault("featuresCol")),
            F.col(label) if is_text else F.col(label).cast("double"),
        ]
        if self.isDefined("weightCol") and self.getOrDefault("weightCol"):
            columns.append(F.col(self.getOrDefault("weightCol")).cast("double"))
        return dataset.select(*columns)

    def fit_files(self, files: InputNames, spark: SparkSession | None = None, **options: Any) -> MaxCosineModel:
        """Learn text files that the executors read themselves.

        The driver and the executors must see the files by the same names. Classes are strings, as in the
        files. The session is by default the active one, or a new one. The other options are those of
        `maxcosine.distributed.plan`: `n_shards`, `shard_bytes` and how the files are read.
        """
        job = self._job()
        shards = plan(files, **{"on_bad": "skip" if self._skip_bad() else "error", **options})
        context = (spark or session()).sparkContext
        result = fit_shards(context, shards, job, self.getOrDefault("executorTimeout"))
        model: MaxCosineModel = self._copyValues(MaxCosineModel(result))
        return model


def _n_features(dataset: DataFrame, features: str) -> int:
    """Return the number of features from the column's metadata, or else from the first row."""
    number = dataset.schema[features].metadata.get("ml_attr", {}).get("num_attrs")
    if number is not None:
        return int(number)
    row = dataset.select(features).where(F.col(features).isNotNull()).first()
    if row is None:
        raise ValueError(NO_EXAMPLES)
    return len(row[0])
