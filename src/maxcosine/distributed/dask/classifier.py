"""`fit` and `DaskOnlineClassifier`: learn Dask collections, and predict them lazily."""

from __future__ import annotations

from typing import Any

import numpy as np
from dask import is_dask_collection
from dask.delayed import delayed
from distributed import Client
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from maxcosine.distributed.dask.cluster import PATIENCE, run_with
from maxcosine.distributed.dask.shards import is_array, make_shards, whole_rows
from maxcosine.distributed.jobs import Job
from maxcosine.estimators import OnlineClassifier
from maxcosine.estimators.base import StreamClassifier


def fit(
    source: Any,
    estimator: StreamClassifier,
    *,
    y: Any = None,
    sample_weight: Any = None,
    how: str = "certified",
    rounds: int = 1,
    fan_in: int = 0,
    client: Client | None = None,
    patience: float = PATIENCE,
    progress: bool | None = None,
    **file_options: Any,
) -> Any:
    """Learn a Dask collection, or files that all workers can read.

    Every partition is a shard. The result depends on the partitions and their order only and has the same
    bits as that of `maxcosine.distributed.fit`.

    Parameters
    ----------
    source : dask array, dataframe or bag, list of delayed values, or names of files
        An array or a dataframe needs `y`. A bag holds examples (dict, label) or chunks (X, y) or
        (X, y, weights). A delayed value is one such chunk or a list of them. Files are in svmlight or Vowpal
        Wabbit format; globs are allowed.
    estimator : OnlineBase or OnePassClassifier
        A classifier; it stays unchanged.
    y : dask array or series, or str, default=None
        The labels, or the name of the dataframe's column that holds them.
    sample_weight : dask array or series, or str, default=None
        The weights of the examples, or the name of the column that holds them.
    how, rounds, fan_in : str, int, int
        As in `maxcosine.distributed.fit`.
    client : distributed.Client, default=None
        The client whose workers learn; by default the current one.
    patience : float, default=30
        Seconds without any worker after which `WorkersLost` is raised.
    progress : bool, default=None
        Show a bar on standard error; by default, if this is a terminal.
    **file_options : dict
        For files: `n_shards`, `shard_bytes` and how the files are read, see `maxcosine.distributed.plan`.

    Returns
    -------
    OnlineBase or OnePassClassifier
        A fitted classifier, as `maxcosine.distributed.fit` returns it.
    """
    job = Job(estimator, how, rounds, fan_in)
    shards = make_shards(source, y, sample_weight, file_options)
    return job.to_estimator(run_with(client, job, shards, patience, progress))


class DaskOnlineClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that learns on the workers of a Dask cluster and predicts Dask collections lazily.

    Each partition is learnt separately, and the models are merged into one that is certified on all examples
    (section 8 of the theory).

    Parameters
    ----------
    estimator : OnlineBase or OnePassClassifier, default=None
        The classifier to train; by default ``OnlineClassifier()``.
    how : {"certified", "mean"}, default="certified"
        Merge to the hypothesis with the largest proven bound, or to the mean of the hypotheses.
    rounds : int, default=1
        The number of passes over the data. Each round starts from the merged model of the round before.
        `OnePassClassifier` allows up to 2.
    fan_in : int, default=0
        The number of models that one merge combines, in a tree; 0 merges all models at once.
    patience : float, default=30
        Seconds without any worker after which `fit` raises `WorkersLost`.
    progress : bool, default=None
        Show a bar on standard error; by default, if this is a terminal.

    Attributes
    ----------
    estimator_ : OnlineBase or OnePassClassifier
        The fitted classifier. It does not depend on Dask.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.

    Examples
    --------
    >>> import dask.array, maxcosine
    >>> from distributed import Client
    >>> from maxcosine.distributed.dask import DaskOnlineClassifier
    >>> from sklearn.datasets import load_digits
    >>> X, y = (dask.array.from_array(a, chunks=(500, *a.shape[1:])) for a in load_digits(return_X_y=True))
    >>> with Client(processes=False, n_workers=1, dashboard_address=None):
    ...     learner = DaskOnlineClassifier(maxcosine.MCPExactClassifier(), rounds=2).fit(X, y)
    ...     mistakes = int((learner.predict(X) != y).sum().compute())
    >>> mistakes < 200
    True
    """

    def __init__(
        self,
        estimator: StreamClassifier | None = None,
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
        """Learn any source of `maxcosine.distributed.dask.fit` with the current client."""
        params = self.get_params(deep=False)
        estimator = params.pop("estimator") or OnlineClassifier()
        self.estimator_ = fit(X, estimator, y=y, sample_weight=sample_weight, **params)
        self.classes_ = self.estimator_.classes_
        return self

    def to_local(self) -> Any:
        """Return the fitted classifier, which does not depend on Dask."""
        check_is_fitted(self)
        return self.estimator_

    def predict(self, X: Any) -> Any:
        """Predict the class of each row, lazily for a dask array or dataframe."""
        return self._map("predict", X, self.to_local().classes_[:0])

    def decision_function(self, X: Any) -> Any:
        """Compute one score per row for two classes, otherwise one per row and class; lazily, as `predict`."""
        n_classes = len(self.to_local().classes_)
        return self._map("decision_function", X, np.empty((0, n_classes) if n_classes > 2 else 0))

    def _map(self, method: str, X: Any, empty: np.ndarray) -> Any:
        """Call a method on each partition; `empty` is the result for a partition without rows."""
        if not is_dask_collection(X):
            return getattr(self.estimator_, method)(X)
        # Delayed, so that the task graph contains the model once and not in every task.
        learner = delayed(self.estimator_, pure=False, traverse=False)
        if is_array(X):
            X = whole_rows(X)
            shape: dict[str, Any] = {"drop_axis": 1}
            if empty.ndim == 2:
                shape = {"chunks": (X.chunks[0], (empty.shape[1],))}
            return X.map_blocks(_call, learner=learner, method=method, empty=empty, meta=empty, **shape)
        columns = [str(label) for label in self.classes_.tolist()]
        meta = (None, empty.dtype) if empty.ndim == 1 else dict.fromkeys(columns, empty.dtype)
        return X.map_partitions(_call_on_frame, learner, method, empty, columns, meta=meta)


def _call(X: Any, learner: StreamClassifier, method: str, empty: np.ndarray) -> np.ndarray:
    result: np.ndarray = getattr(learner, method)(X) if X.shape[0] else empty
    return result


def _call_on_frame(frame: Any, learner: StreamClassifier, method: str, empty: np.ndarray, columns: list[str]) -> Any:
    import pandas

    values = _call(frame, learner, method, empty)
    if values.ndim == 1:
        return pandas.Series(values, index=frame.index)
    return pandas.DataFrame(values, index=frame.index, columns=columns)
