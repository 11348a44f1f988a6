"""What a training came to: for JSON, and for the model that remembers it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from maxcosine import __version__
from maxcosine.base_model import BaseModel
from maxcosine.data import Stream
from maxcosine.labels import label_text
from maxcosine.progressive_error import ProgressiveError


@dataclass
class Status:
    """How far a training is."""

    passes: int = 0
    """Passes that are finished."""
    examples: int = 0
    """Examples of all passes."""
    judged: int = 0
    """Examples of positive weight: each was predicted before the model learnt from it."""
    wrong: int = 0
    """How many of these predictions were wrong; the first, before any class is known, is."""
    bad: int = 0
    """Bad lines of the data, which were skipped."""
    stopped: str = ""
    """Why it stopped before the end of the data; empty if it did not."""
    stretch_start: int = 0
    """Wrong predictions before the current stretch of `Stopping.patience` examples."""
    last_stretch: int | None = None
    """Wrong predictions in the last finished stretch."""

    @property
    def error(self) -> ProgressiveError:
        """The share of wrong predictions, and what it proves if this is the first pass."""
        return ProgressiveError(self.wrong, self.judged)


def provenance(
    status: Status, data: list[dict[str, Any]], options: dict[str, Any], command: str, seconds: float
) -> dict[str, Any]:
    """Return what a model remembers of its training; `data` is as `describe_inputs` returns it."""
    return {
        "command": command,
        "data": data,
        "versions": {"maxcosine": __version__},
        "examples": status.examples,
        "progressive_mistakes": status.wrong,
        "bad_lines": status.bad,
        "passes": status.passes,
        "seconds": seconds,
        "options": options,
    }


def outcome(
    model: BaseModel,
    status: Status,
    seconds: float,
    *,
    bad_messages: Sequence[str],
    read_bytes: int,
    resumed_at: int = 0,
) -> dict[str, Any]:
    """Return the figures of a training, for JSON; an earlier run learnt `resumed_at` examples."""
    certificate = model.certificate()
    return {
        "examples": status.examples,
        "stopped": status.stopped or None,
        "resumed_at": resumed_at,
        "classes": [label_text(label) for label in model.classes.tolist()],
        "features": model.features.n_slots if model.features.records else model.features.n_features,
        "rule": model.rule_name,
        "progressive_error": status.error.rate,
        # Examples that were learnt before prove nothing about others.
        "error_interval": [status.error.low, status.error.high] if status.passes == 1 else None,
        "drift": [one._asdict() for one in model.drifts],
        "bad_lines": status.bad,
        "first_bad_lines": list(bad_messages),
        "updates": json_value(getattr(certificate, "updates", None)),
        "bound": json_value(certificate.bound),
        "margin_ceiling": json_value(certificate.margin_ceiling),
        "seconds": seconds,
        "examples_per_second": (status.examples - resumed_at) / seconds,
        "megabytes_per_second": read_bytes / seconds / 1e6 if read_bytes else None,
    }


def json_value(value: Any) -> Any:
    """Return a number or an array for JSON, which knows no infinity: None stands for it."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list):
        return [json_value(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def refuse_empty(model: BaseModel | None, stream: Stream) -> BaseModel:
    """Return the model; refuse data without an example, and data without a feature."""
    stream.refuse_empty(0 if model is None else model.n_seen, 0 if model is None else model.features.n_features)
    assert model is not None
    return model
