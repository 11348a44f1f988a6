"""What travels between machines, and what is done with it there: learn a shard, merge parts.

All functions here are pure: the same arguments give the same bits, on any machine and at any time, so that
work that was lost can be done again. An engine only decides where they run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from maxcosine import model_file
from maxcosine.certificate import HOW
from maxcosine.distributed.shards import TextShard
from maxcosine.distributed.tally import Tally
from maxcosine.estimators import OnlineBase
from maxcosine.merging import add_counts, merge, without_counts
from maxcosine.model import Model


@dataclass(frozen=True)
class Job:
    """What is to be learnt, and how.

    Attributes
    ----------
    estimator : an unfitted classifier
    how : "certified" or "mean", as `maxcosine.merge` takes it
    rounds : passes over the data; after each, all shards go on from what was merged
    fan_in : how many parts are merged at a time, in a tree; 0: all at once
    """

    estimator: OnlineBase
    how: str = "certified"
    rounds: int = 1
    fan_in: int = 0

    def __post_init__(self) -> None:
        if self.how not in HOW:
            raise ValueError(f"how={self.how!r} is not a way of merging; it is one of {', '.join(HOW)}")
        if self.rounds < 1:
            raise ValueError(f"rounds={self.rounds}; there is at least one")
        if self.fan_in < 0 or self.fan_in == 1:
            raise ValueError(f"fan_in={self.fan_in}; it is at least 2, or 0 to merge all parts at once")
        if self.estimator.shuffle:
            raise ValueError(
                "with shuffle=True the result would not depend on the shards alone; shuffle the data"
            )
        if self.estimator.passes != 1:
            raise ValueError(f"passes={self.estimator.passes}: say rounds={self.estimator.passes} instead")
        self.estimator._validate_params()
        # Its parameters alone: nothing that it has learnt before travels.
        object.__setattr__(self, "estimator", clone(self.estimator))


@dataclass(frozen=True)
class Part:
    """What was learnt from one or more shards."""

    model: bytes
    """A model file; empty if no example has come."""
    shards: int
    """How many shards with examples it is of."""
    rounds: tuple[Tally, ...]
    """What was counted, round by round."""

    def to_bytes(self) -> bytes:
        """All of it as bytes: a line of JSON, and the model file."""
        said = {"shards": self.shards, "rounds": [asdict(tally) for tally in self.rounds]}
        return json.dumps(said).encode() + b"\n" + self.model

    @classmethod
    def from_bytes(cls, content: bytes) -> Part:
        line, _, model = content.partition(b"\n")
        said = json.loads(line)
        return cls(model, said["shards"], tuple(Tally.from_dict(tally) for tally in said["rounds"]))


def learn(job: Job, shard: Any, start: Part | None = None) -> Part:
    """Learn one shard, from nothing or from where the last round ended.

    Parameters
    ----------
    shard : a `TextShard`; or chunks, (X, y) or (X, y, weights), or a function that gives them. X is an
        array, a sparse matrix, a data frame, or a list of dicts.
    """
    model = without_counts(_model(job, start)) if start is not None and start.model else None
    if isinstance(shard, TextShard):
        model, tally = shard.learn(job.estimator, model)
    else:
        model, tally = _learn_chunks(job.estimator, shard() if callable(shard) else shard, model)
    before = () if start is None else start.rounds
    if model is None or not tally.examples:
        return Part(b"", 0, (*before, tally))
    return Part(model_file.to_bytes(model), 1, (*before, tally))


def combine(job: Job, parts: Sequence[Part]) -> Part:
    """Merge parts of one round, in their order; those without examples only bring their counts."""
    *before, _ = parts[0].rounds
    rounds = (*before, sum((part.rounds[-1] for part in parts), Tally()))
    full = [part for part in parts if part.model]
    if len(full) < 2:
        return replace(full[0] if full else parts[0], rounds=rounds)
    shards = [part.shards for part in full]
    merged = merge([_model(job, part) for part in full], job.how, weights=shards)
    assert merged.merge is not None
    merged.merge = replace(merged.merge, models=sum(shards))
    return Part(model_file.to_bytes(merged), sum(shards), rounds)


def close_round(job: Job, merged: Part, start: Part | None = None) -> Part:
    """What a round ends with: what was merged, and what was counted before the round."""
    if start is None or not start.model:
        return merged
    if not merged.model:
        return replace(start, rounds=merged.rounds)
    model = _model(job, merged)
    add_counts(model, _model(job, start))
    return replace(merged, model=model_file.to_bytes(model))


def fitted(job: Job, part: Part) -> OnlineBase:
    """The classifier that a part is; `rounds_` says what was counted, round by round."""
    if not part.model:
        raise ValueError("there is no example in any of the shards; is it the right data?")
    estimator = job.estimator._with_model(_model(job, part))
    estimator.rounds_ = part.rounds
    return estimator


def run(job: Job, shards: Sequence[Any], call_each: Callable[..., list[Any]]) -> Any:
    """All of a job, as calls of the functions above; returns what the last call gave, a `Part`.

    `call_each(function, arguments)` calls it once for each tuple of arguments, here and now, or elsewhere
    and later: what it gives, in the same order, is only ever passed on to other calls.
    """
    if not shards:
        raise ValueError("there are no shards to learn from; give at least one")
    start = None
    for _ in range(job.rounds):
        parts = call_each(learn, [(job, shard, start) for shard in shards])
        width = job.fan_in or len(parts)
        while len(parts) > 1:
            groups = [parts[k : k + width] for k in range(0, len(parts), width)]
            parts = call_each(combine, [(job, group) for group in groups])
        [start] = call_each(close_round, [(job, parts[0], start)])
    return start


def here(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Calls one after another, in this process."""
    return [function(*given) for given in arguments]


def fit(
    shards: Sequence[Any],
    estimator: OnlineBase,
    *,
    how: str = "certified",
    rounds: int = 1,
    fan_in: int = 0,
) -> OnlineBase:
    """Learn shards, one after another in this process, and merge what was learnt.

    Every engine gives this result, to the bit: it depends on the shards and their order only.

    Parameters
    ----------
    shards : sequence of shards, see `learn`; they are read once a round
    estimator : a classifier, which stays as it is
    how : {"certified", "mean"}, default="certified"
        The point of the hull of what was learnt that proves most, or their plain mean.
    rounds : int, default=1
        Passes over the data. After each, every shard goes on from what was merged.
    fan_in : int, default=0
        Merge so many parts at a time, in a tree; 0: all at once.

    Returns
    -------
    a fitted classifier, with `rounds_`: examples, mistakes and bad lines of each round

    Examples
    --------
    >>> import maxcosine.distributed
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> shards = [[(X[i::4], y[i::4])] for i in range(4)]
    >>> learner = maxcosine.distributed.fit(shards, maxcosine.MCPExactClassifier(), rounds=2)
    >>> learner.n_seen_ == 2 * len(y)
    True
    >>> learner.rounds_[1].mistakes < learner.rounds_[0].mistakes
    True
    """
    job = Job(estimator, how, rounds, fan_in)
    return fitted(job, run(job, shards, here))


def _model(job: Job, part: Part) -> Model:
    return model_file.from_bytes(part.model, rules=[job.estimator._rule()[0]]).model


def _learn_chunks(
    estimator: OnlineBase, chunks: Iterable[Any], model: Model | None
) -> tuple[Model | None, Tally]:
    twin = clone(estimator) if model is None else estimator._with_model(model)
    twin.set_params(grow_features=True, verbose=0)
    examples = mistakes = 0

    def judge(codes: np.ndarray, predicted: np.ndarray) -> None:
        nonlocal examples, mistakes
        examples += len(codes)
        mistakes += int(np.count_nonzero(codes != predicted))

    twin._judge = judge
    for chunk in chunks:
        X, y, weights = chunk if len(chunk) == 3 else (*chunk, None)
        if not len(y):
            continue
        if isinstance(X, list | tuple) and isinstance(X[0], dict):
            twin.learn_many(X, y, weights)
        else:
            twin.partial_fit(X, y, sample_weight=weights)
    return getattr(twin, "_model", None), Tally(examples, mistakes)
