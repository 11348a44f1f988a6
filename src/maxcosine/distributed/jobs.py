"""Learn shards separately and merge the results: the steps of a job, and `fit`, which runs them here.

The steps are pure functions. The same arguments give the same bits on every machine, so work that was lost
can be repeated. Dask and Spark only decide where each step runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from maxcosine import model_file, onepass_merging
from maxcosine.certificate import HOW
from maxcosine.data import MAX_REPORTED, Stream
from maxcosine.distributed.text_shards import TextShard
from maxcosine.estimators import OnePassClassifier, OnlineBase
from maxcosine.estimators.base import StreamClassifier
from maxcosine.estimators.dicts import learn_dicts
from maxcosine.estimators.fitted import with_model
from maxcosine.estimators.learning import learn_chunk
from maxcosine.estimators.merging import refuse_how
from maxcosine.estimators.parameters import check_parameters, rule_of
from maxcosine.estimators.weights import row_weights
from maxcosine.merging import add_counts, merge, without_counts
from maxcosine.training import OnePassSettings, Settings, StreamLearner

MAX_ONE_PASS_ROUNDS = 2
NO_EXAMPLES = "there are no examples in the data; check that these are the right data"


@dataclass(frozen=True)
class Tally:
    """Counts of one round over one or more shards.

    Parameters
    ----------
    examples : int
        The number of examples.
    mistakes : int
        Examples that the model of their shard predicted wrongly just before it learnt them.
    bad : int
        Lines or rows that were skipped.
    first_bad : tuple of str
        Messages about the first of them, with their places and faults.
    """

    examples: int = 0
    mistakes: int = 0
    bad: int = 0
    first_bad: tuple[str, ...] = ()

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.examples + other.examples,
            self.mistakes + other.mistakes,
            self.bad + other.bad,
            (*self.first_bad, *other.first_bad)[:MAX_REPORTED],
        )


@dataclass(frozen=True)
class PartialModel:
    """A model that was learnt from some of the shards.

    Parameters
    ----------
    model : bytes
        The content of a model file; empty if the shards have no examples.
    shards : int
        The number of shards with examples.
    rounds : tuple of Tally
        The counts of each round.
    """

    model: bytes
    shards: int
    rounds: tuple[Tally, ...]

    def to_bytes(self) -> bytes:
        """Return a line of JSON with the counts, followed by the model file."""
        counts = {"shards": self.shards, "rounds": [asdict(tally) for tally in self.rounds]}
        return json.dumps(counts).encode() + b"\n" + self.model

    @classmethod
    def from_bytes(cls, content: bytes) -> PartialModel:
        """Read what `to_bytes` wrote."""
        line, _, model = content.partition(b"\n")
        counts = json.loads(line)
        rounds = [Tally(**{**tally, "first_bad": tuple(tally["first_bad"])}) for tally in counts["rounds"]]
        return cls(model, counts["shards"], tuple(rounds))


@dataclass
class Job:
    """A training on several shards: its parameters and its steps.

    Parameters
    ----------
    estimator : OnlineBase or OnePassClassifier
        A classifier; it stays unchanged.
    how, rounds, fan_in : str, int, int
        As in `maxcosine.distributed.fit`.
    """

    estimator: StreamClassifier
    how: str = "certified"
    rounds: int = 1
    fan_in: int = 0

    def __post_init__(self) -> None:
        if self.how not in HOW:
            raise ValueError(f"how={self.how!r} is not a way of merging; choose one of {', '.join(HOW)}")
        if self.rounds < 1:
            raise ValueError(f"rounds={self.rounds}; choose at least 1")
        if self.fan_in < 0 or self.fan_in == 1:
            raise ValueError(f"fan_in={self.fan_in}; choose at least 2, or 0 to merge all models at once")
        if self.estimator.shuffle:
            raise ValueError("shuffle=True makes the result depend on chance; shuffle the data instead")
        self.estimator = clone(self.estimator)
        check_parameters(self.estimator)
        if isinstance(self.estimator, OnlineBase):
            if self.estimator.passes != 1:
                passes = self.estimator.passes
                raise ValueError(f"passes={passes} is for one machine; use rounds={passes}")
            rule_of(self.estimator)
            return
        refuse_how(self.how)
        if self.rounds > MAX_ONE_PASS_ROUNDS:
            raise ValueError(
                f"rounds={self.rounds} is unstable for OnePassClassifier, because each round adds the steps of all "
                "shards to one hypothesis; choose 1 or 2, or the classifier of a rule"
            )

    @property
    def _one_pass(self) -> bool:
        return isinstance(self.estimator, OnePassClassifier)

    def learn(self, shard: Any, start: PartialModel | None = None) -> PartialModel:
        """Learn one shard, starting from the result of the round before."""
        model = self._model(start) if start is not None and start.model else None
        if model is not None and not self._one_pass:
            model = without_counts(model)
        if isinstance(shard, TextShard):
            model, tally = _learn_lines(self.estimator, model, shard)
        else:
            model, tally = _learn_chunks(self.estimator, model, shard() if callable(shard) else shard)
        rounds = (tally,) if start is None else (*start.rounds, tally)
        if model is None or not tally.examples:
            return PartialModel(b"", 0, rounds)
        return PartialModel(model_file.to_bytes(model), 1, rounds)

    def merge(self, parts: Sequence[PartialModel], start: PartialModel | None = None) -> PartialModel:
        """Merge models of the same round, in the order given; `start` is the result of the round before."""
        *earlier, _ = parts[0].rounds
        rounds = (*earlier, sum((part.rounds[-1] for part in parts), Tally()))
        learnt = [part for part in parts if part.model]
        if len(learnt) < 2:
            return replace(learnt[0] if learnt else parts[0], rounds=rounds)
        shards, models = [part.shards for part in learnt], [self._model(part) for part in learnt]
        model: Any
        if self._one_pass:
            model = onepass_merging.merge(models, self._model(start) if start is not None and start.model else None)
        else:
            model = merge(models, self.how, weights=shards)
            model.merge = replace(model.merge, models=sum(shards))
        return PartialModel(model_file.to_bytes(model), sum(shards), rounds)

    def finish_round(self, merged: PartialModel, start: PartialModel | None = None) -> PartialModel:
        """Add the examples counted in earlier rounds to the merged model of this round.

        One-pass models have them already.
        """
        if start is None or not start.model:
            return merged
        if not merged.model:
            return replace(start, rounds=merged.rounds)
        if self._one_pass:
            return merged
        model = self._model(merged)
        add_counts(model, self._model(start))
        return replace(merged, model=model_file.to_bytes(model))

    def to_estimator(self, result: PartialModel) -> Any:
        """Return the fitted classifier; its attribute `rounds_` holds the tally of each round."""
        if not result.model:
            raise ValueError(NO_EXAMPLES)
        estimator: Any = with_model(self.estimator, self._model(result))
        estimator.rounds_ = result.rounds
        return estimator

    def _model(self, part: PartialModel) -> Any:
        rules = [rule_of(self.estimator)[0]] if isinstance(self.estimator, OnlineBase) else []
        return model_file.from_bytes(part.model, rules=rules).model


def run_job(job: Job, shards: Sequence[Any], call_each: Callable[..., list[Any]]) -> Any:
    """Run all steps of a job.

    Parameters
    ----------
    job : Job
        The job.
    shards : sequence
        The shards, as in `maxcosine.distributed.fit`.
    call_each : callable
        ``call_each(step, arguments)`` calls a step once for each tuple of arguments. It returns the results
        in the same order, or placeholders for them, which are only passed on to other steps.

    Returns
    -------
    PartialModel
        The result of the last step, or its placeholder.
    """
    if not shards:
        raise ValueError("there are no shards to learn from; give at least one")
    start = None
    for _ in range(job.rounds):
        parts = call_each(job.learn, [(shard, start) for shard in shards])
        width = job.fan_in or len(parts)
        while len(parts) > 1:
            groups = [parts[first : first + width] for first in range(0, len(parts), width)]
            parts = call_each(job.merge, [(group, start) for group in groups])
        [start] = call_each(job.finish_round, [(parts[0], start)])
    return start


def fit(
    shards: Sequence[Any], estimator: StreamClassifier, *, how: str = "certified", rounds: int = 1, fan_in: int = 0
) -> Any:
    """Learn shards one after another in this process, and merge the results.

    The result depends on the shards and their order only. Dask and Spark give the same bits.

    Parameters
    ----------
    shards : sequence
        Each shard is a `TextShard`; or an iterable of chunks (X, y) or (X, y, weights), where X is an array,
        a sparse matrix, a data frame or a list of dicts; or a function that returns such an iterable.
    estimator : OnlineBase or OnePassClassifier
        A classifier; it stays unchanged.
    how : {"certified", "mean"}, default="certified"
        Merge to the hypothesis with the largest proven bound, or to the mean of the hypotheses. It does not apply to
        `OnePassClassifier`.
    rounds : int, default=1
        The number of passes over the data. Each round starts from the merged model of the round before.
        `OnePassClassifier` allows up to 2.
    fan_in : int, default=0
        The number of models that one merge combines, in a tree; 0 merges all models at once.

    Returns
    -------
    OnlineBase or OnePassClassifier
        A fitted classifier. Its attribute `rounds_` holds one `Tally` per round.

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
    return job.to_estimator(run_job(job, shards, lambda step, arguments: [step(*given) for given in arguments]))


def _learn_lines(estimator: StreamClassifier, model: Any, shard: TextShard) -> tuple[Any, Tally]:
    dtype = str(model.dtype) if model is not None else estimator.dtype or shard.options.dtype
    names, spans = zip(*shard.spans, strict=True)
    stream = Stream(
        names, replace(shard.options, dtype=dtype, purpose="learn", any_norm=estimator._any_norm), spans=spans
    )
    learner = StreamLearner(_settings(estimator, dtype), model)
    before = 0 if model is None else model.mistakes
    for batch in stream.batches():
        if estimator.class_weight is not None and len(batch):
            labels = np.array(stream.labels.names)
            weights = row_weights(labels[batch.codes], batch.weights, estimator.class_weight, labels)
            batch = replace(batch, weights=weights)
        learner.learn(stream, batch)
    mistakes = 0 if learner.model is None else learner.model.mistakes - before
    return learner.model, Tally(stream.n_examples, mistakes, stream.n_bad, tuple(stream.bad.messages))


def _settings(estimator: StreamClassifier, dtype: str) -> Settings | OnePassSettings:
    if not isinstance(estimator, OnlineBase):
        return OnePassSettings(dtype, on_drift="ignore")  # the rows of a shard are in no order of time
    rule, params = rule_of(estimator)
    e = estimator
    return Settings(rule, params, e.average, e.fit_intercept, e.multiclass, dtype, e.probability)


def _learn_chunks(estimator: StreamClassifier, model: Any, chunks: Iterable[Any]) -> tuple[Any, Tally]:
    learner: Any = clone(estimator) if model is None else with_model(estimator, model)
    learner.set_params(grow_features=True, verbose=0)
    if isinstance(learner, OnePassClassifier):
        learner.set_params(on_drift="ignore")  # the rows of a shard are in no order of time
    examples, before = 0, 0 if model is None else model.mistakes
    for chunk in chunks:
        X, y, weights = chunk if len(chunk) == 3 else (*chunk, None)
        if not len(y):
            continue
        if isinstance(X, list | tuple) and isinstance(X[0], dict):
            learn_dicts(learner, X, y, weights)
        else:
            learn_chunk(learner, X, y, sample_weight=weights)
        examples += len(y)
    if not examples:
        return model, Tally()
    return learner.model_, Tally(examples, learner.mistakes_ - before)
