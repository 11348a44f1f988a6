"""A job on Spark: a task a shard, and the parts merged in a tree of tasks, round by round.

The driver sees no data and one part at a time. A task is a pure function of its shard and of where the
round starts from, so that Spark may run it anywhere, and again: the result is the same, to the bit, as that
of `maxcosine.distributed.fit` on the same shards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark import RDD, Broadcast, SparkContext, TaskContext
from pyspark.sql import DataFrame

from maxcosine.distributed.parts import Job, Part, close_round, combine, learn
from maxcosine.distributed.shards import TextShard
from maxcosine.distributed.spark.rows import CheckedRows
from maxcosine.distributed.spark.watch import watched

Answer = tuple[int, bytes | None, str | None]
"""What a task gives: the number of its shard, or of its group of shards, and a part; or, in place of the
part, why the data were refused, which no second try would change."""

ANSWER = pa.schema([("number", pa.int32()), ("part", pa.binary()), ("refusal", pa.string())])
ANSWER_IN_SPARK = "number int, part binary, refusal string"

# So many parts, if they are to be merged at once, are merged by the driver: it takes less than a shuffle.
MOST_ON_DRIVER = 16

NO_EXAMPLE = "there is no example in any of the partitions; is it the right data?"


def fit_rows(rows: DataFrame, job: Job, n_features: int, *, skip: bool, patience: float) -> Part:
    """Learn the partitions of a DataFrame of features, labels and, maybe, weights."""

    def answers(start: Broadcast | None) -> RDD:
        task = partial(_learn_partition, job, n_features, skip, start)
        return rows.mapInArrow(task, ANSWER_IN_SPARK).rdd

    return _run(rows.sparkSession.sparkContext, job, answers, patience)


def fit_shards(context: SparkContext, shards: Sequence[TextShard], job: Job, *, patience: float) -> Part:
    """Learn shards of files, which the executors read themselves."""
    numbered = context.parallelize(list(enumerate(shards)), len(shards))

    def answers(start: Broadcast | None) -> RDD:
        return numbered.map(partial(_learn_shard, job, start))

    return _run(context, job, answers, patience)


def _run(
    context: SparkContext, job: Job, answers: Callable[[Broadcast | None], RDD], patience: float
) -> Part:
    start: Part | None = None
    for _ in range(job.rounds):
        sent = None if start is None else context.broadcast(start.to_bytes())
        with watched(context, patience):
            merged = _merge(job, answers(sent))
        start = close_round(job, merged, start)
        if sent is not None:
            sent.destroy()
    if start is None or not start.model:
        raise ValueError(NO_EXAMPLE)
    return start


def _merge(job: Job, answers: RDD) -> Part:
    """Merge neighbours, so many at a time, in tasks; the last few on the driver."""
    n = answers.getNumPartitions()
    width = job.fan_in or n
    while n > min(width, MOST_ON_DRIVER):
        n = -(-n // width)
        grouped = answers.map(partial(_with_group, width))
        answers = grouped.partitionBy(n, int).mapPartitions(partial(_merge_group, job))
    _, part, refusal = _merged(job, 0, answers.collect()) or (0, None, NO_EXAMPLE)
    if part is None:
        raise ValueError(refusal)
    return Part.from_bytes(part)


def _merged(job: Job, group: int, answers: Iterable[Answer]) -> Answer | None:
    """The parts of one group as one; the first refusal, if there is one; nothing of nothing."""
    ordered = sorted(answers, key=lambda answer: answer[0])
    if not ordered:
        return None
    parts = []
    for _, part, refusal in ordered:
        if part is None:
            return group, None, refusal
        parts.append(Part.from_bytes(bytes(part)))
    return _answer(group, lambda: combine(job, parts))


def _answer(number: int, work: Callable[[], Part]) -> Answer:
    try:
        return number, work().to_bytes(), None
    except (ValueError, ArithmeticError) as error:
        return number, None, str(error)


# What runs on the executors


def _learn_partition(
    job: Job, n_features: int, skip: bool, start: Broadcast | None, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    number = TaskContext.get().partitionId()
    rows = CheckedRows(number, n_features, job.estimator.dtype, skip=skip)

    def learnt() -> Part:
        part = learn(job, rows.chunks(batches), _received(start))
        *before, tally = part.rounds
        return replace(part, rounds=(*before, replace(tally, bad=rows.n_bad, first_bad=rows.first_bad)))

    columns = zip(_answer(number, learnt), ANSWER, strict=True)
    yield pa.RecordBatch.from_arrays(
        [pa.array([value], field.type) for value, field in columns], schema=ANSWER
    )


def _learn_shard(job: Job, start: Broadcast | None, numbered: tuple[int, TextShard]) -> Answer:
    number, shard = numbered
    return _answer(number, lambda: learn(job, shard, _received(start)))


def _with_group(width: int, answer: Answer) -> tuple[int, Answer]:
    return answer[0] // width, answer


def _merge_group(job: Job, grouped: Iterable[tuple[int, Answer]]) -> Iterator[Answer]:
    merged = _merged(job, TaskContext.get().partitionId(), (answer for _, answer in grouped))
    if merged is not None:
        yield merged


def _received(start: Broadcast | None) -> Part | None:
    return None if start is None else Part.from_bytes(start.value)
