"""Which features of an example carry its prediction, in the words of the data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxcosine.base_model import BaseModel
from maxcosine.data import RowBatch, Stream
from maxcosine.features import Features
from maxcosine.rows import SlotRows
from maxcosine.training.learner import rows_of


class Explanation(NamedTuple):
    """What each feature adds to a score.

    Parameters
    ----------
    features : list of (str, float, float)
        Name, value and what it adds to the score, the largest first; those that the model does not know are left out.
    rest : float
        What is left of the score: the constant and, of the one-pass learner, what the absence of features counts.
    score : float
        The score.
    """

    features: list[tuple[str, float, float]]
    rest: float
    score: float


def explain(model: BaseModel, rows: SlotRows, names: dict[int, str], score: int) -> Explanation:
    """Explain the score of this number, of one row of slots; `names` are those of its slots, if they are known."""
    found = model.contributions(rows, score)
    parts = found.of_features.tocoo()
    values = dict(zip(rows.slots.tolist(), rows.values.tolist(), strict=True))
    listed = [
        (names.get(slot, str(slot)), float(values[slot]), float(part))
        for slot, part in zip(parts.coords[1].tolist(), parts.data.tolist(), strict=True)
        if part
    ]
    rest = float(found.rest[0])
    return Explanation(sorted(listed, key=lambda one: -abs(one[2])), rest, rest + sum(part for _, _, part in listed))


def rows_and_names(stream: Stream, model: BaseModel, batch: RowBatch) -> tuple[SlotRows, dict[int, str]]:
    """Return records as rows of slots, and the names of these slots; names that share a column are joined by "or"."""
    rows = rows_of(stream, model.features, batch, grow=False)
    if batch.hashed_names is None or batch.hashed_columns is None:
        return rows, names_of(model.features, rows.slots)
    letters, starts = batch.hashed_names
    names: dict[int, str] = {}  # by column
    for k, column in enumerate(batch.hashed_columns.tolist()):
        name = letters[starts[k] : starts[k + 1]].tobytes().decode(errors="backslashreplace")
        known = names.get(column, "").split(" or ")
        names[column] = name if known == [""] else " or ".join(dict.fromkeys([*known, name]))
    columns = model.features.slot_keys()[rows.slots].tolist()
    return rows, {
        slot: names.get(column, str(column)) for slot, column in zip(rows.slots.tolist(), columns, strict=True)
    }


def names_of(features: Features, slots: np.ndarray) -> dict[int, str]:
    """Return the names of slots: keys, or the names that hashed columns have kept."""
    return dict(zip(slots.tolist(), map(str, features.names_of(slots)), strict=True))
