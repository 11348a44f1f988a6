"""`MaxCosineModel`: a fitted model that predicts DataFrames."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.ml.classification import ClassificationModel
from pyspark.ml.linalg import DenseVector, Vector, VectorUDT
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLReader, MLWritable, MLWriter
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from maxcosine import model_file
from maxcosine.base_model import BaseModel
from maxcosine.distributed.jobs import PartialModel
from maxcosine.distributed.spark.params import ONE_PASS, MaxCosineParams
from maxcosine.distributed.spark.rows import DENSE, RowReader
from maxcosine.estimators import OnePassClassifier
from maxcosine.estimators.base import StreamClassifier
from maxcosine.estimators.files import load, save
from maxcosine.estimators.parameters import rule_of


class MaxCosineModel(MaxCosineParams, ClassificationModel, MLWritable, MLReadable):
    """A model that `MaxCosineClassifier` has learnt.

    `transform` adds the predicted class and a vector of scores to a DataFrame.

    Parameters
    ----------
    result : PartialModel
        The result of the last round.

    Attributes
    ----------
    learnt : Model or OnePassModel
        The model itself.
    certificate : Certificate or OnePassCertificate
        What is proven about the model and all rows that it has learnt.
    classes : list
        The classes, in the order of the raw predictions.
    tallies : tuple of Tally
        Examples, mistakes and bad rows of each round.

    Examples
    --------
    >>> import tempfile, maxcosine
    >>> from maxcosine.distributed.spark import MaxCosineModel, session
    >>> learner = maxcosine.MCPClassifier().fit([[2.0, 0.0], [0.0, 1.0]], [1.0, 0.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     maxcosine.save(learner, f"{folder}/few.model")
    ...     model = MaxCosineModel.read_file(f"{folder}/few.model")
    >>> df = session({"spark.master": "local[1]"}).createDataFrame([([3.0, 1.0],)], ["features"])
    >>> model.transform(df).first().prediction
    1.0
    """

    def __init__(self, result: PartialModel) -> None:
        super().__init__()
        self._result = result
        self.learnt = model_file.from_bytes(result.model).model
        self.certificate = self.learnt.certificate()
        self.classes = self.learnt.classes.tolist()
        self.tallies = result.rounds

    @property
    def estimator(self) -> StreamClassifier:
        """The same model as a scikit-learn classifier, which can continue to learn."""
        estimator: StreamClassifier = self._job().to_estimator(self._result)
        return estimator

    @property
    def numFeatures(self) -> int:
        """The number of features."""
        return int(self.learnt.features.n_features)

    @property
    def numClasses(self) -> int:
        """The number of classes."""
        return len(self.classes)

    def predictRaw(self, value: Vector) -> Vector:
        """Return a vector with one score per class."""
        return DenseVector(_raw_scores(self.learnt, value.toArray()[None])[0])

    def predict(self, value: Vector) -> Any:
        """Return the class of one vector."""
        return self.classes[int(np.argmax(self.predictRaw(value).toArray()))]

    def _transform(self, dataset: DataFrame) -> DataFrame:
        if self.learnt.features.keyed:
            raise ValueError(
                "this model knows its features by id or name, but vectors have neither; save it with "
                "write_file, and use `maxcosine predict`"
            )
        names = {field: self.getOrDefault(f"{field}Col") for field in ("rawPrediction", "prediction")}
        for name in names.values():
            if name in dataset.columns:
                raise ValueError(f"the column {name!r} exists already; choose another name, or drop it")
        content = dataset.sparkSession.sparkContext.broadcast(self._result.model)
        n_features, skip_bad = self.numFeatures, self._skip_bad()

        def predict(columns: Iterator[pa.Array]) -> Iterator[pa.Array]:
            model = model_file.from_bytes(content.value).model
            partition, dtype = TaskContext.get().partitionId(), str(model.dtype)
            rows = RowReader(partition, n_features, dtype, skip_bad=skip_bad)
            for column in columns:
                X, kept = rows.read(column)
                yield _predictions(model, X, kept, len(column))

        kind = T.DoubleType() if _is_numeric(self.learnt) else T.StringType()
        both = T.StructType([T.StructField("rawPrediction", VectorUDT()), T.StructField("prediction", kind)])
        predictions = F.arrow_udf(predict, both)(feature_column(dataset, self.getOrDefault("featuresCol")))
        added = [predictions[field].alias(name) for field, name in names.items() if name]
        return dataset.select("*", *added)

    def write_file(self, path: str | os.PathLike[str]) -> None:
        """Write a model file on the driver, which `maxcosine.load` and the commands can read."""
        save(self.estimator, path)

    @classmethod
    def read_file(cls, path: str | os.PathLike[str]) -> MaxCosineModel:
        """Read a model file, which need not come from Spark."""
        estimator = load(path)
        model = cls(PartialModel(model_file.to_bytes(estimator.model_), 1, ()))
        if isinstance(estimator, OnePassClassifier):
            model._set(rule=ONE_PASS, dtype=estimator.dtype or "")
            return model
        rule, params = rule_of(estimator)
        model._set(
            rule=rule.name,
            ruleParams=params._asdict(),
            average=estimator.average,
            multiclass=estimator.multiclass,
            fitIntercept=estimator.fit_intercept,
            dtype=estimator.dtype or "",
        )
        return model

    def write(self) -> MLWriter:
        """Return a writer for a folder, on any file system that Spark knows."""
        return _Writer(self)

    @classmethod
    def read(cls) -> MLReader:
        """Return a reader for folders that `write` wrote."""
        return _Reader()


class _Writer(MLWriter):
    def __init__(self, model: MaxCosineModel) -> None:
        super().__init__()
        self._model = model

    def saveImpl(self, path: str) -> None:
        DefaultParamsWriter.saveMetadata(self._model, path, self.sparkSession)
        content = self._model._result.to_bytes()
        self.sparkSession.createDataFrame([(content,)], "part binary").write.parquet(os.path.join(path, "data"))


class _Reader(MLReader):
    def load(self, path: str) -> MaxCosineModel:
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        row = self.sparkSession.read.parquet(os.path.join(path, "data")).first()
        model = MaxCosineModel(PartialModel.from_bytes(bytes(row.part)))
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model


def feature_column(dataset: DataFrame, name: str) -> Any:
    """Return a column of vectors, or of arrays of floats or doubles; cast other arrays of numbers."""
    kind = dataset.schema[name].dataType
    if isinstance(kind, VectorUDT):
        return F.col(name)
    if isinstance(kind, T.ArrayType) and isinstance(kind.elementType, T.NumericType):
        is_float = isinstance(kind.elementType, T.FloatType | T.DoubleType)
        return F.col(name) if is_float else F.col(name).cast("array<double>")
    raise TypeError(
        f"the column {name!r} has type {kind.simpleString()}; features are vectors or arrays of numbers, "
        "which pyspark.ml.feature.VectorAssembler makes from columns"
    )


def _is_numeric(model: BaseModel) -> bool:
    return model.classes.dtype.kind != "U"


def _raw_scores(model: BaseModel, X: Any) -> np.ndarray:
    """Return one score per class; the predicted class has the largest one."""
    scores = model.scores(model.features.map(X, grow=False))
    if len(model.classes) == 2:
        return np.column_stack([-scores, scores])
    return scores.reshape(len(scores), -1)


def _predictions(model: BaseModel, X: Any, kept: np.ndarray, n_rows: int) -> pa.Array:
    """Return a dense vector of scores and the class of each row; null for rows that were not kept."""
    scores = _raw_scores(model, X)
    raw, missing = np.zeros((n_rows, scores.shape[1])), np.ones(n_rows, np.bool_)
    raw[kept], missing[kept] = scores, False
    # Null vectors need values all the same: in Spark's type, no field of a vector is null.
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
    labels = model.classes[raw.argmax(axis=1)].astype(np.float64 if _is_numeric(model) else object)
    return pa.StructArray.from_arrays([vectors, pa.array(labels, mask=missing)], ["rawPrediction", "prediction"])
