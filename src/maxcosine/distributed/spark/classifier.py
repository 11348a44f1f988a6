"""`MaxCosineClassifier` and its model: any rule as an Estimator of Spark ML."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel, TaskContext, keyword_only
from pyspark.ml.classification import ClassificationModel, Classifier
from pyspark.ml.linalg import DenseVector, Vector, VectorUDT
from pyspark.ml.util import (
    DefaultParamsReadable,
    DefaultParamsReader,
    DefaultParamsWritable,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DoubleType,
    FloatType,
    NumericType,
    StringType,
    StructField,
    StructType,
)

from maxcosine import estimators, model_file
from maxcosine.certificate import Certificate
from maxcosine.distributed.parts import Part, fitted
from maxcosine.distributed.shards import SHARD_BYTES, plan
from maxcosine.distributed.spark.engine import NO_EXAMPLE, fit_rows, fit_shards
from maxcosine.distributed.spark.params import MaxCosineParams
from maxcosine.distributed.spark.rows import DENSE, CheckedRows
from maxcosine.distributed.spark.session import session
from maxcosine.distributed.spark.watch import watched
from maxcosine.distributed.tally import Tally
from maxcosine.estimators.files import load as load_estimator
from maxcosine.estimators.files import save as save_estimator
from maxcosine.model import Model


class MaxCosineClassifier(MaxCosineParams, Classifier, DefaultParamsWritable, DefaultParamsReadable):
    """Any rule as an Estimator of Spark ML: every partition is learnt by a task, and the parts are merged.

    The result depends on the partitions, their order and the order of their rows, not on timing or on how
    many executors there are. What is proven of it is proven of all rows.

    Parameters
    ----------
    featuresCol : str, default="features"
        A column of vectors, dense or sparse, or of arrays of numbers.
    labelCol : str, default="label"
        A column of whole numbers, or of strings; predictions are of the same kind.
    predictionCol, rawPredictionCol : str, default="prediction" and "rawPrediction"
        What `transform` adds: the class, and a vector of one score a class. "" leaves it out.
    weightCol : str, default=None
        A column of what the step of each row is multiplied by.
    rule, ruleParams, average, multiclass, fitIntercept, dtype
        As `maxcosine.OnlineClassifier` takes them.
    how : {"certified", "mean"}, default="certified"
        The point of the hull of what was learnt that proves most, or their plain mean.
    rounds : int, default=1
        Passes over the data. After each, every partition goes on from what was merged.
    fanIn : int, default=16
        Merge so many parts at a time, in a tree; 0: all at once, by one task.
    onBad : {"error", "skip"}, default="error"
        A row that cannot be learnt from (null, NaN, another length) is an error that says where it is, or
        is left out and counted. What cannot be predicted is an error, or null.
    executorTimeout : float, default=300
        Give up after so many seconds without any executor; 0: never.
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
        executorTimeout: float = 300.0,
    ) -> None:
        super().__init__()
        self._set(**self._input_kwargs)

    def setParams(self, **params: Any) -> MaxCosineClassifier:
        """Set parameters by their names."""
        self._set(**params)
        return self

    def _fit(self, dataset: DataFrame) -> MaxCosineModel:
        job, skip, patience = self._job(), self._skips(), self._value("executorTimeout")
        rows = self._rows(dataset)
        again = job.rounds > 1 and dataset.storageLevel == StorageLevel.NONE
        if again:
            rows.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            with watched(dataset.sparkSession.sparkContext, patience):
                n_features = _n_features(dataset, self._value("featuresCol"))
            part = fit_rows(rows, job, n_features, skip=skip, patience=patience)
        finally:
            if again:
                rows.unpersist()
        model: MaxCosineModel = self._copyValues(MaxCosineModel(part))
        return model

    def _rows(self, dataset: DataFrame) -> DataFrame:
        """The columns that are learnt from, in types that tasks expect."""
        label, kind = F.col(self._value("labelCol")), dataset.schema[self._value("labelCol")].dataType
        columns = [_features(dataset, self._value("featuresCol"))]
        columns.append(label if isinstance(kind, StringType) else label.cast("double"))
        if self.isDefined("weightCol") and self._value("weightCol"):
            columns.append(F.col(self._value("weightCol")).cast("double"))
        return dataset.select(*columns)

    def fit_files(
        self,
        files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        spark: SparkSession | None = None,
        *,
        n_shards: int | None = None,
        shard_bytes: int = SHARD_BYTES,
        **options: Any,
    ) -> MaxCosineModel:
        """Learn files that the executors read themselves, each task its own bytes of them.

        Driver and executors must see the files by the same names. The classes are strings, as the files
        have them.

        Parameters
        ----------
        files : a name or several: files or globs, in svmlight's or Vowpal Wabbit's format; plain, or, one
            shard each, gzip or zstd
        spark : the session; by default, the one that there is, or a new one
        n_shards, shard_bytes : how many shards to make, at most, or how large they are, about
        **options : how the files are read, as `maxcosine.stream.open` takes it
        """
        job = self._job()
        options = {"on_bad": "skip" if self._skips() else "error", **options}
        shards = plan(files, n_shards=n_shards, shard_bytes=shard_bytes, **options)
        context = (spark or session()).sparkContext
        part = fit_shards(context, shards, job, patience=self._value("executorTimeout"))
        model: MaxCosineModel = self._copyValues(MaxCosineModel(part))
        return model


class MaxCosineModel(MaxCosineParams, ClassificationModel, MLWritable, MLReadable):
    """What a `MaxCosineClassifier` has learnt; it predicts in Spark, and elsewhere as `estimator`."""

    def __init__(self, part: Part) -> None:
        super().__init__()
        self._part = part
        self._model: Model | None = None

    @property
    def learnt(self) -> Model:
        """The model itself."""
        if self._model is None:
            self._model = model_file.from_bytes(self._part.model).model
        return self._model

    @property
    def estimator(self) -> estimators.OnlineBase:
        """The same as a classifier of scikit-learn, which can go on learning."""
        return fitted(self._job(), self._part)

    @property
    def certificate(self) -> Certificate:
        """What is proven of it and of all rows."""
        return self.learnt.certificate()

    @property
    def classes(self) -> list[Any]:
        """The classes, in the order of the raw predictions."""
        return list(self.learnt.classes.tolist())

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """Examples, mistakes and bad rows of each round."""
        return self._part.rounds

    @property
    def numFeatures(self) -> int:
        return self.learnt.features.n_features

    @property
    def numClasses(self) -> int:
        return len(self.learnt.classes)

    def predictRaw(self, value: Vector) -> Vector:
        """A score for each class."""
        return DenseVector(_raw_scores(self.learnt, value.toArray()[None])[0])

    def predict(self, value: Vector) -> Any:
        """The class of one vector."""
        return self.classes[int(np.argmax(self.predictRaw(value).toArray()))]

    def _transform(self, dataset: DataFrame) -> DataFrame:
        self._refuse_keys()
        named = {"raw": self._value("rawPredictionCol"), "predicted": self._value("predictionCol")}
        taken = [name for name in named.values() if name in dataset.columns]
        if taken:
            raise ValueError(f"there is a column {taken[0]!r} already; name another one, or drop it")
        sent = dataset.sparkSession.sparkContext.broadcast(self._part.model)
        n_features, skip, numeric = self.numFeatures, self._skips(), self._numeric

        def scored(arrays: Iterator[pa.Array]) -> Iterator[pa.Array]:
            model = model_file.from_bytes(sent.value).model
            rows = CheckedRows(TaskContext.get().partitionId(), n_features, str(model.heads.dtype), skip=skip)
            for array in arrays:
                X, kept = rows.read(array)
                yield _predictions(model, X, kept, len(array), numeric)

        kind = DoubleType() if numeric else StringType()
        both = StructType([StructField("raw", VectorUDT()), StructField("predicted", kind)])
        predictions = F.arrow_udf(scored, both)(_features(dataset, self._value("featuresCol")))
        added = [predictions[field].alias(name) for field, name in named.items() if name]
        return dataset.select("*", *added)

    def _refuse_keys(self) -> None:
        if self.learnt.features.keyed:
            raise ValueError(
                "the features of this model are known by id or name, and vectors have neither; write_file "
                "it, and predict with `maxcosine predict`"
            )

    @property
    def _numeric(self) -> bool:
        return self.learnt.classes.dtype.kind != "U"

    # Files

    def write_file(self, path: str | os.PathLike[str]) -> None:
        """Write a model file on the driver, which `maxcosine.load` and the commands read."""
        save_estimator(self.estimator, path)

    @classmethod
    def read_file(cls, path: str | os.PathLike[str]) -> MaxCosineModel:
        """A model out of a model file, wherever it was learnt, to predict with in Spark."""
        estimator = load_estimator(path)
        rule, given = estimator._rule()
        model = cls(Part(model_file.to_bytes(estimator._model), 1, ()))
        model._set(
            rule=rule.name,
            ruleParams=dict(given),
            average=estimator.average,
            multiclass=estimator.multiclass,
            fitIntercept=estimator.fit_intercept,
            dtype=estimator.dtype or "",
        )
        return model

    def write(self) -> MLWriter:
        """As Spark ML writes models: a folder, on any file system that Spark knows."""
        return _Writer(self)

    @classmethod
    def read(cls) -> MLReader:
        """The counterpart of `write`."""
        return _Reader()


class _Writer(MLWriter):
    def __init__(self, model: MaxCosineModel) -> None:
        super().__init__()
        self._model = model

    def saveImpl(self, path: str) -> None:
        DefaultParamsWriter.saveMetadata(self._model, path, self.sparkSession)
        part = self._model._part.to_bytes()
        self.sparkSession.createDataFrame([(part,)], "part binary").write.parquet(_data(path))


class _Reader(MLReader):
    def load(self, path: str) -> MaxCosineModel:
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        row = self.sparkSession.read.parquet(_data(path)).first()
        model = MaxCosineModel(Part.from_bytes(bytes(row.part)))
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model


def _data(path: str) -> str:
    return os.path.join(path, "data")


def _features(dataset: DataFrame, name: str) -> Any:
    """The column of features as tasks expect it: vectors, or arrays of floats or doubles."""
    kind = dataset.schema[name].dataType
    if isinstance(kind, VectorUDT):
        return F.col(name)
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, NumericType):
        given = isinstance(kind.elementType, FloatType | DoubleType)
        return F.col(name) if given else F.col(name).cast("array<double>")
    raise TypeError(
        f"the column {name!r} is of type {kind.simpleString()}; features are vectors or arrays of numbers, "
        "which pyspark.ml.feature.VectorAssembler makes of columns"
    )


def _n_features(dataset: DataFrame, features: str) -> int:
    """How many features each row has to have: as the column says, or else as the first row has."""
    said = dataset.schema[features].metadata.get("ml_attr", {}).get("num_attrs")
    if said is not None:
        return int(said)
    row = dataset.select(features).where(F.col(features).isNotNull()).first()
    if row is None:
        raise ValueError(NO_EXAMPLE)
    return len(row[0])


def _raw_scores(model: Model, X: Any) -> np.ndarray:
    """One score a class, the largest of them for the class that is predicted."""
    scores = model.scores(model.features.map(X, grow=False))
    if len(model.classes) == 2:
        return np.column_stack([-scores, scores])
    return scores.reshape(len(scores), -1)


def _predictions(model: Model, X: Any, kept: np.ndarray, n_rows: int, numeric: bool) -> pa.Array:
    """Of each row, a dense vector of scores and the class; null for rows that were not kept."""
    scores = _raw_scores(model, X)
    raw, missing = np.zeros((n_rows, scores.shape[1])), np.ones(n_rows, np.bool_)
    raw[kept], missing[kept] = scores, False
    labels = model.classes[raw.argmax(axis=1)]
    # What lies behind a null must be there all the same: Spark says that no field of a vector is null.
    vectors = pa.StructArray.from_arrays(
        [
            pa.array(np.full(n_rows, DENSE, np.int8)),
            pa.nulls(n_rows, pa.int32()),
            pa.nulls(n_rows, pa.list_(pa.int32())),
            pa.ListArray.from_arrays(np.arange(n_rows + 1, dtype=np.int32) * raw.shape[1], raw.ravel()),
        ],
        ["type", "size", "indices", "values"],
        mask=pa.array(missing),
    )
    predicted = pa.array(labels.astype(np.float64 if numeric else object), mask=missing)
    return pa.StructArray.from_arrays([vectors, predicted], ["raw", "predicted"])
