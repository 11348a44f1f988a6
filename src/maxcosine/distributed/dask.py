"""Shards learnt by the workers of a Dask cluster.

Each shard is one task a round, and merging is done by workers, too: whoever starts the job holds no data, and
gets one model in the end. Tasks that a lost worker had are done again by others, to the same bits.
"""

from __future__ import annotations

import os
import re
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from distributed import Client, Future, KilledWorker, LocalCluster, default_client
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from maxcosine.distributed.parts import Job, Part, close_round, fitted, learn, run
from maxcosine.distributed.shards import plan
from maxcosine.estimators import OnlineBase, OnlineClassifier
from maxcosine.stream.source import expand

PATIENCE = 30.0
"""Seconds without any worker after which a job is given up."""
SECONDS_BETWEEN_LOOKS = 0.25
KEEPING_MEMORY = {
    "MALLOC_TRIM_THRESHOLD_": str(2**25),
    "MALLOC_MMAP_THRESHOLD_": str(2**25),
    "MALLOC_ARENA_MAX": "1",
}
"""What glibc reads from the environment of a process."""


class WorkersLost(RuntimeError):
    """A job that nobody is left to do."""


def fit(
    source: Any,
    estimator: OnlineBase,
    *,
    y: Any = None,
    sample_weight: Any = None,
    how: str = "certified",
    rounds: int = 1,
    fan_in: int = 0,
    client: Client | None = None,
    patience: float = PATIENCE,
    progress: bool | None = None,
    **files: Any,
) -> OnlineBase:
    """Learn data that lie with the workers of a Dask cluster, or in files that they all can read.

    Every partition is a shard. The result depends on these and on their order only; it is that of
    `maxcosine.distributed.fit`, to the bit.

    Parameters
    ----------
    source : what to learn from

        - a dask array, with `y`; blocks are dense or sparse
        - a dask dataframe, with `y`
        - a dask bag of (x, label), x being a dict, or of chunks (X, y) or (X, y, weights)
        - a list of delayed values, each one such chunk or a list of them
        - names of files in svmlight's or Vowpal Wabbit's format, or globs
    estimator : a classifier, which stays as it is
    y : a dask array or series of the classes; or the name of a column of the dataframe
    sample_weight : a dask array or series of weights; or the name of a column
    how, rounds, fan_in : as `maxcosine.distributed.fit` takes them
    client : whose workers to use, default=the current one
    patience : float, default=30
        After so many seconds without any worker the job is given up.
    progress : bool, default=None
        Show a bar on standard error; None: if that is a terminal.
    **files : for files, `n_shards` or `shard_bytes`, and how they are read: `maxcosine.distributed.plan`

    Returns
    -------
    a fitted classifier, as `maxcosine.distributed.fit` returns it
    """
    job = Job(estimator, how, rounds, fan_in)
    cluster = _Cluster(client or _current_client(), patience)
    shards = _shards(source, y, sample_weight, files)
    try:
        with _bar(rounds * len(shards), progress) as cluster.show:
            part: Part = cluster.result(run(job, shards, cluster.call_each))
    except BaseException:
        cluster.cancel()
        raise
    return fitted(job, part)


@contextmanager
def connected(on: str) -> Iterator[Client]:
    """A client of the cluster of this name, as `maxcosine.distributed.train_files` takes it; processes on this
    machine end with it."""
    if found := re.fullmatch(r"dask://(.+:\d+)", on):
        with Client(f"tcp://{found[1]}", set_as_default=False) as client:
            yield client
    elif found := re.fullmatch(r"dask-local:([1-9]\d*)", on):
        with _local_cluster(int(found[1])) as local, Client(local, set_as_default=False) as client:
            yield client
    else:
        raise ValueError(f"{on!r} names no cluster; write dask://HOST:PORT, or dask-local:N for N processes")


def _local_cluster(n_workers: int) -> LocalCluster:
    """Processes on this machine, with one thread each: a shard is learnt in order, by one core.

    They keep the memory that a block of text needed for the next one, which Dask's would give back each time.
    """
    environment = {**dask.config.get("distributed.nanny.pre-spawn-environ"), **KEEPING_MEMORY}
    with dask.config.set({"distributed.nanny.pre-spawn-environ": environment}):
        return LocalCluster(
            n_workers=n_workers, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        )


def _current_client() -> Client:
    try:
        return default_client()
    except ValueError:
        raise ValueError(
            "there is no Dask client; make one before, such as client = distributed.Client(), or pass client="
        ) from None


class _Cluster:
    """Calls functions on workers, and looks after them while they run."""

    def __init__(self, client: Client, patience: float) -> None:
        self._client, self._patience = client, patience
        self._token = uuid.uuid4().hex[:12]
        self._n_calls = 0
        self._learning: list[Future] = []
        self._learnt = 0
        self.show: Callable[[int], None] = lambda learnt: None

    def call_each(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Future]:
        """Call a function once for each tuple of arguments, on any workers.

        A round is waited for: data that are not needed before the next one do not stay in memory.
        """
        # Names of our own: Dask would take calls of the same arguments for one and the same.
        self._n_calls += 1
        name = f"{function.__name__}-{self._token}-{self._n_calls}"
        call = delayed(function, pure=False)
        calls = [call(*given, dask_key_name=f"{name}-{k}") for k, given in enumerate(arguments)]
        futures: list[Future] = self._client.compute(calls)
        if function is learn:
            self._learning = futures
        if function is close_round:
            self.wait(futures[0])
            self._learnt += len(self._learning)
            self._learning = []
        return futures

    def result(self, future: Future) -> Any:
        """What a call gave, once it is here."""
        seconds = self._patience
        while True:
            self.wait(future)
            try:
                return future.result(timeout=seconds)
            except TimeoutError:  # it was lost at the last moment and is made anew, or it is large
                seconds *= 2.0

    def cancel(self) -> None:
        """Nobody needs what workers are busy with."""
        if self._client.status == "running":
            self._client.cancel(self._learning, force=True)

    def wait(self, future: Future) -> None:
        """Until it is done; raises what went wrong, and `WorkersLost` if nobody is left to do it."""
        seen = time.monotonic()
        while not future.done():
            with suppress(TimeoutError):
                future.exception(timeout=SECONDS_BETWEEN_LOOKS)
            self.show(self._learnt + sum(one.status == "finished" for one in self._learning))
            if self._n_workers():
                seen = time.monotonic()
            elif time.monotonic() - seen > self._patience:
                raise WorkersLost(
                    f"there has been no worker for {self._patience:g} seconds, and the job is given up; look "
                    "into the logs of the workers for why they ended (often memory), and start others"
                )
        if future.status == "finished":
            return
        if future.status == "cancelled":
            raise WorkersLost("the job was cancelled, or the Dask scheduler is gone; start it anew")
        error: Exception = future.exception()
        if isinstance(error, KilledWorker):
            raise WorkersLost(
                f"{error.allowed_failures + 1} workers ended while they worked on {error.task}; look into "
                "their logs (often memory: make shards smaller), or allow for more by Dask's setting "
                "distributed.scheduler.allowed-failures"
            ) from error
        for k, one in enumerate(self._learning):
            if one.status == "error":
                error.add_note(f"in shard {k} of {len(self._learning)}, counted from 0")
                break
        raise error

    def _n_workers(self) -> int:
        if self._client.status != "running":
            return 0
        try:
            return len(self._client.nthreads())
        except OSError:  # a scheduler that does not answer has none, as far as we can tell
            return 0


@contextmanager
def _bar(total: int, wanted: bool | None) -> Iterator[Callable[[int], None]]:
    """A bar of shards learnt, where somebody sees it."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield lambda learnt: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("learning"), BarColumn(), MofNCompleteColumn(), TextColumn("shards,")
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task("learning", total=total)
        yield lambda learnt: bar.update(task, completed=learnt)
        bar.update(task, completed=total)


# Shards of the collections of Dask


def _shards(source: Any, y: Any, sample_weight: Any, files: dict[str, Any]) -> list[Any]:
    named = isinstance(source, str | os.PathLike) or (
        isinstance(source, list | tuple) and bool(source) and isinstance(source[0], str | os.PathLike)
    )
    if named:
        # Workers need not be in the same folder.
        names = expand([source] if isinstance(source, str | os.PathLike) else source)
        return list(plan([os.path.abspath(name) for name in names], **files))
    if files:
        raise TypeError(f"{', '.join(files)}: options of files, and {type(source).__name__} is no file")
    if isinstance(source, list | tuple) and source and all(isinstance(one, Delayed) for one in source):
        return [_chunks_of_delayed(one) for one in source]
    kind = _kind(source)
    if kind == "bag":
        return [_chunks_of_bag(one) for one in source.to_delayed()]
    if y is None:
        raise TypeError(f"a dask {kind} is learnt with its classes: pass y")
    if kind == "dataframe" and isinstance(y, str):
        if not isinstance(sample_weight, str | None):
            raise TypeError("y is the name of a column: name the column of the weights, too")
        return [_chunks_of_frame(one, y, sample_weight) for one in source.to_delayed()]
    columns = [_blocks(one) for one in (source, y, sample_weight) if one is not None]
    if len({len(blocks) for blocks in columns}) > 1:
        raise ValueError(
            f"X, y and weights have {', '.join(str(len(blocks)) for blocks in columns)} partitions; divide "
            "them at the same rows, with rechunk or repartition"
        )
    return [_chunk(*blocks) for blocks in zip(*columns, strict=True)]


def _kind(source: Any) -> str:
    """Which collection of Dask something is; by name, so that only what is used is imported."""
    for one in type(source).__mro__:
        if one.__module__.startswith("dask.") and one.__name__ in ("Array", "Bag", "DataFrame", "Series"):
            return one.__name__.lower()
    raise TypeError(
        f"a {type(source).__name__} is nothing to learn from here; give a dask array, dataframe or bag, "
        "a list of delayed chunks, or names of files"
    )


def _blocks(source: Any) -> list[Delayed]:
    """The partitions of an array, a dataframe or a series, each with all its columns."""
    if _kind(source) == "array" and source.ndim == 2:
        source = source.rechunk({1: -1}) if source.numblocks[1] > 1 else source
    blocks: list[Delayed] = np.ravel(source.to_delayed()).tolist()
    return blocks


@delayed(pure=False)
def _chunk(X: Any, y: Any, weights: Any = None) -> list[Any]:
    return [(X, np.asarray(y), None if weights is None else np.asarray(weights))]


@delayed(pure=False)
def _chunks_of_frame(frame: Any, label: str, weight: str | None) -> list[Any]:
    weights = None if weight is None else frame[weight].to_numpy()
    X = frame.drop(columns=[label] if weight is None else [label, weight])
    return [(X, frame[label].to_numpy(), weights)]


@delayed(pure=False)
def _chunks_of_delayed(value: Any) -> list[Any]:
    chunks: list[Any] = value if isinstance(value, list) else [value]
    return chunks


@delayed(pure=False)
def _chunks_of_bag(items: Any) -> list[Any]:
    pairs: list[Any] = list(items)
    if not pairs or not isinstance(pairs[0][0], dict):
        return pairs
    return [([x for x, _ in pairs], [label for _, label in pairs])]


class DaskOnlineClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that is fitted by the workers of a Dask cluster, and predicts dask collections lazily.

    Parameters
    ----------
    estimator : a classifier of maxcosine, default=OnlineClassifier()
    how, rounds, fan_in : as `maxcosine.distributed.fit` takes them
    patience : float, default=30
        After so many seconds without any worker a fit is given up.
    progress : bool, default=None
        Show a bar; None: on a terminal.

    Attributes
    ----------
    estimator_ : the fitted classifier, an ordinary one
    classes_ : array of shape (n_classes,)

    Examples
    --------
    >>> import dask.array, maxcosine
    >>> from distributed import Client
    >>> from maxcosine.distributed.dask import DaskOnlineClassifier
    >>> from sklearn.datasets import load_digits
    >>> X, y = (dask.array.from_array(a, chunks=(500, *a.shape[1:])) for a in load_digits(return_X_y=True))
    >>> with Client(n_workers=1, threads_per_worker=1, dashboard_address=None):  # doctest: +SKIP
    ...     learner = DaskOnlineClassifier(maxcosine.MCPExactClassifier(), rounds=2).fit(X, y)
    ...     mistakes = (learner.predict(X) != y).sum().compute()
    """

    def __init__(
        self,
        estimator: OnlineBase | None = None,
        *,
        how: str = "certified",
        rounds: int = 1,
        fan_in: int = 0,
        patience: float = PATIENCE,
        progress: bool | None = None,
    ) -> None:
        self.estimator = estimator
        self.how = how
        self.rounds = rounds
        self.fan_in = fan_in
        self.patience = patience
        self.progress = progress

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> DaskOnlineClassifier:
        """Learn a dask collection, with the current client; parameters as :func:`fit` takes them."""
        self.estimator_ = fit(
            X,
            OnlineClassifier() if self.estimator is None else clone(self.estimator),
            y=y,
            sample_weight=sample_weight,
            how=self.how,
            rounds=self.rounds,
            fan_in=self.fan_in,
            patience=self.patience,
            progress=self.progress,
        )
        self.classes_ = self.estimator_.classes_
        return self

    def to_local(self) -> OnlineBase:
        """The fitted classifier without anything of Dask."""
        check_is_fitted(self)
        return self.estimator_

    def predict(self, X: Any) -> Any:
        """The class of each row: a dask array of an array, a series of a dataframe."""
        return self._mapped("predict", X, self.to_local().classes_[:0])

    def decision_function(self, X: Any) -> Any:
        """Scores: one a row for two classes, else one a class."""
        n_classes = len(self.to_local().classes_)
        return self._mapped("decision_function", X, np.empty((0, n_classes) if n_classes > 2 else 0))

    def _mapped(self, method: str, X: Any, empty: np.ndarray) -> Any:
        if not hasattr(X, "dask"):
            return getattr(self.estimator_, method)(X)
        # As one task of its own: the graph holds the model once, however many blocks there are.
        learner = delayed(self.estimator_, pure=False, traverse=False)
        if _kind(X) == "array":
            X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
            shape: dict[str, Any] = (
                {"drop_axis": 1} if empty.ndim == 1 else {"chunks": (X.chunks[0], (empty.shape[1],))}
            )
            return X.map_blocks(_answer, learner=learner, method=method, meta=empty, **shape)
        return X.map_partitions(
            _answer_frame, learner, method, meta=_frame(empty, X._meta.index[:0], self.classes_)
        )


def _answer(X: Any, learner: OnlineBase, method: str) -> np.ndarray:
    answer: np.ndarray = getattr(learner, method)(X)
    return answer


def _answer_frame(X: Any, learner: OnlineBase, method: str) -> Any:
    if not len(X):
        n_classes = len(learner.classes_)
        nothing = (
            learner.classes_[:0] if method == "predict" else np.empty((0, n_classes) if n_classes > 2 else 0)
        )
        return _frame(nothing, X.index, learner.classes_)
    return _frame(getattr(learner, method)(X), X.index, learner.classes_)


def _frame(values: np.ndarray, index: Any, classes: np.ndarray) -> Any:
    import pandas

    if values.ndim == 1:
        return pandas.Series(values, index=index)
    return pandas.DataFrame(values, index=index, columns=[str(label) for label in classes.tolist()])
