"""Records that are read for a classifier: how they are opened, and as rows to score."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np

from maxcosine.base_model import BaseModel
from maxcosine.data import ReadOptions, Stream
from maxcosine.rows import SlotRows
from maxcosine.training import rows_of


def how_known(model: BaseModel) -> dict[str, Any]:
    """Return how the features of a model are known."""
    features = model.features
    return {
        "bits": features.bits or 0,
        "exact": features.keyed,
        "dtype": str(model.dtype),
        "keep_names": features.kept_names is not None,
    }


def open_records(source: Any, options: ReadOptions) -> Stream:
    """Open records in files or in memory."""
    sources = source if isinstance(source, list | tuple) else [source]
    if sources and all(isinstance(one, str | os.PathLike) for one in sources):
        return Stream(source, options)
    from maxcosine.data.tables import Tables

    return Stream(Tables(source), options)


def tell_new_columns(stream: Stream) -> None:
    """Warn about columns that the model does not know."""
    if stream.new_columns:
        warnings.warn(f"columns that are not in the schema are ignored: {', '.join(stream.new_columns)}", stacklevel=4)


def record_rows(model: BaseModel, X: Any) -> SlotRows:
    """Return records as rows of slots, to score; features that the model does not know are left out."""
    schema = model.features.records
    stream = open_records(X, ReadOptions(schema=schema, **how_known(model) | {"keep_names": False}))
    parts = [rows_of(stream, model.features, batch, grow=False) for batch in stream.batches()]
    tell_new_columns(stream)
    return joined_rows(parts, model.features.n_slots, model.dtype)


def joined_rows(parts: list[SlotRows], n_slots: int, dtype: np.dtype) -> SlotRows:
    """Join rows of slots, in their order."""
    ends = np.cumsum([0, *(part.indptr[-1] - part.indptr[0] for part in parts)])
    indptr = [part.indptr[1:] - part.indptr[0] + end for part, end in zip(parts, ends, strict=False)]
    slots = [part.slots[part.indptr[0] : part.indptr[-1]] for part in parts]
    values = [part.values[part.indptr[0] : part.indptr[-1]] for part in parts]
    return SlotRows(
        np.concatenate([[0], *indptr]).astype(np.int64),
        np.concatenate([np.zeros(0, np.uint32), *slots]),
        np.concatenate([np.zeros(0, dtype), *values]),
        n_slots,
    )
