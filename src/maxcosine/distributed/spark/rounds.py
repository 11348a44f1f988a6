"""The rounds of a job on Spark: tasks learn the shards and merge the models in a tree.

The driver sees no data. Each task is a pure function of its shard and of the model that the round starts
from, so Spark may run it anywhere and repeat it: the result has the same bits as `maxcosine.distributed.fit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark import RDD, Broadcast, SparkContext, TaskContext
from pyspark.sql import DataFrame

from maxcosine.distributed.jobs import NO_EXAMPLES, Job, PartialModel
from maxcosine.distributed.spark.cluster import PATIENCE, fail_without_executors, session
from maxcosine.distributed.spark.rows import RowReader
from maxcosine.distributed.text_shards import TextShard

# The driver merges this many models itself if they are the last: that is faster than a shuffle.
MAX_ON_DRIVER = 16

RESULT_SCHEMA = pa.schema([("number", pa.int32()), ("model", pa.binary()), ("error", pa.string())])
RESULT_TYPE = "number int, model binary, error string"

Result = tuple[int, bytes | None, str | None]
"""The result of a task: the number of its shard or group, and a partial model or an error message.

Bad data are not raised as exceptions in tasks: Spark would repeat the task in vain and hide the message."""


def run_on(on: str, job: Job, shards: Sequence[TextShard]) -> PartialModel:
    """Run a job in a new session: "spark", as Spark is configured, or the URL of a master."""
    spark = session() if on == "spark" else session({"spark.master": on})
    try:
        return fit_shards(spark.sparkContext, shards, job, PATIENCE)
    finally:
        spark.stop()


def fit_shards(context: SparkContext, shards: Sequence[TextShard], job: Job, patience: float) -> PartialModel:
    """Learn shards of files, which the executors read themselves."""
    numbered = context.parallelize(list(enumerate(shards)), len(shards))

    def learn(start: Broadcast) -> RDD:
        return numbered.map(lambda item: _result(item[0], lambda: job.learn(item[1], start.value)))

    return _run(context, job, learn, patience)


def fit_rows(rows: DataFrame, job: Job, n_features: int, skip_bad: bool, patience: float) -> PartialModel:
    """Learn the partitions of a DataFrame with columns of features, labels and, optionally, weights."""

    def learn(start: Broadcast) -> RDD:
        task = partial(_learn_partition, job, n_features, skip_bad, start)
        return rows.mapInArrow(task, RESULT_TYPE).rdd

    return _run(rows.sparkSession.sparkContext, job, learn, patience)


def _learn_partition(
    job: Job, n_features: int, skip_bad: bool, start: Broadcast, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    number = TaskContext.get().partitionId()
    rows = RowReader(number, n_features, job.estimator.dtype, skip_bad=skip_bad)

    def learn() -> PartialModel:
        part = job.learn(rows.chunks(batches), start.value)
        *earlier, tally = part.rounds
        return replace(part, rounds=(*earlier, replace(tally, bad=rows.n_bad, first_bad=rows.first_bad)))

    number, model, error = _result(number, learn)
    yield pa.RecordBatch.from_pylist([{"number": number, "model": model, "error": error}], RESULT_SCHEMA)


def _run(context: SparkContext, job: Job, learn: Callable[[Broadcast], RDD], patience: float) -> PartialModel:
    start: PartialModel | None = None
    for _ in range(job.rounds):
        sent = context.broadcast(start)
        with fail_without_executors(context, patience):
            merged = _merge_tree(job, learn(sent), sent)
        start = job.finish_round(merged, start)
        sent.destroy()
    if start is None or not start.model:
        raise ValueError(NO_EXAMPLES)
    return start


def _merge_tree(job: Job, results: RDD, start: Broadcast) -> PartialModel:
    """Merge neighbouring models in tasks, and the last few on the driver; `start` is what the round began with."""
    n = results.getNumPartitions()
    width = job.fan_in or n

    def merge_partition(grouped: Iterable[tuple[int, Result]]) -> Iterator[Result]:
        return _merge_group(job, TaskContext.get().partitionId(), (result for _, result in grouped), start)

    while n > min(width, MAX_ON_DRIVER):
        n = -(-n // width)
        grouped = results.map(lambda result: (result[0] // width, result))
        results = grouped.partitionBy(n, int).mapPartitions(merge_partition)
    for _, model, error in _merge_group(job, 0, results.collect(), start):
        if model is None:
            raise ValueError(error)
        return PartialModel.from_bytes(model)
    raise ValueError(NO_EXAMPLES)


def _merge_group(job: Job, number: int, results: Iterable[Any], start: Broadcast) -> Iterator[Result]:
    """Merge results in the order of their shards; gives the first error instead, or nothing for nothing."""
    ordered = sorted(results, key=lambda result: result[0])
    errors = [error for _, model, error in ordered if model is None]
    if errors:
        yield number, None, errors[0]
    elif ordered:
        models = [PartialModel.from_bytes(bytes(model)) for _, model, _ in ordered]
        yield _result(number, lambda: job.merge(models, start.value))


def _result(number: int, step: Callable[[], PartialModel]) -> Result:
    try:
        return number, step().to_bytes(), None
    except (ValueError, ArithmeticError) as error:
        return number, None, str(error)
