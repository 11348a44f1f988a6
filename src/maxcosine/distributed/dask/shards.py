"""The partitions of Dask collections as shards."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from dask import is_dask_collection
from dask.delayed import Delayed, delayed

from maxcosine.distributed.text_shards import plan


def make_shards(source: Any, y: Any, sample_weight: Any, file_options: dict[str, Any]) -> list[Any]:
    """Return the shards of anything that `maxcosine.distributed.dask.fit` learns from."""
    first = source[0] if isinstance(source, list | tuple) and source else source
    if isinstance(first, str | os.PathLike):
        return list(plan(source, **file_options))
    if file_options:
        raise TypeError(f"{', '.join(file_options)}: only for files, not for a {type(source).__name__}")
    if isinstance(source, list | tuple) and isinstance(first, Delayed):
        return [_chunks(value) for value in source]
    if not is_dask_collection(source) or not hasattr(source, "to_delayed"):
        raise TypeError(
            f"cannot learn from a {type(source).__name__}; give a dask array, dataframe or bag, a list of "
            "delayed chunks, or names of files"
        )
    if not is_array(source) and not is_frame(source):
        return [_chunks(partition) for partition in source.to_delayed()]
    if y is None:
        raise TypeError(f"a dask {type(source).__name__} has no labels; pass them as y")
    if is_frame(source) and isinstance(y, str):
        if not isinstance(sample_weight, str | None):
            raise TypeError("y is the name of a column; name the column of the weights, too")
        return [_chunks_of_frame(partition, y, sample_weight) for partition in source.to_delayed()]
    columns = [_partitions(column) for column in (source, y, sample_weight) if column is not None]
    if len({len(partitions) for partitions in columns}) > 1:
        raise ValueError(
            f"X, y and weights have {', '.join(str(len(partitions)) for partitions in columns)} partitions; "
            "divide them at the same rows, with rechunk or repartition"
        )
    return [_chunk(*partitions) for partitions in zip(*columns, strict=True)]


def is_array(source: Any) -> bool:
    """Tell whether this is a dask array, without importing `dask.array`."""
    return hasattr(source, "rechunk")


def is_frame(source: Any) -> bool:
    """Tell whether this is a dask dataframe, without importing `dask.dataframe`."""
    return hasattr(source, "columns")


def whole_rows(array: Any) -> Any:
    """Return a dask array of the same rows whose blocks have all columns."""
    return array.rechunk({1: -1}) if array.ndim == 2 and array.numblocks[1] > 1 else array


def _partitions(source: Any) -> list[Delayed]:
    """Return the partitions of an array, a dataframe or a series."""
    source = whole_rows(source) if is_array(source) else source
    partitions: list[Delayed] = np.ravel(source.to_delayed()).tolist()
    return partitions


@delayed(pure=False)
def _chunk(X: Any, y: Any, weights: Any = None) -> list[Any]:
    return [(X, np.asarray(y), None if weights is None else np.asarray(weights))]


@delayed(pure=False)
def _chunks_of_frame(frame: Any, label: str, weight: str | None) -> list[Any]:
    weights = None if weight is None else frame[weight].to_numpy()
    X = frame.drop(columns=[label] if weight is None else [label, weight])
    return [(X, frame[label].to_numpy(), weights)]


@delayed(pure=False)
def _chunks(value: Any) -> list[Any]:
    """Return the chunks of a delayed value or of a partition of a bag: examples (dict, label), or chunks."""
    items = [value] if isinstance(value, tuple) else list(value)
    if items and isinstance(items[0][0], dict):
        return [([x for x, _ in items], [label for _, label in items])]
    return items
