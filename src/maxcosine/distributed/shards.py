"""Shards of text files: runs of whole lines, by the bytes at which they begin and end."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maxcosine.distributed.tally import MOST_TOLD, Tally
from maxcosine.engine.heads import LIMITS
from maxcosine.estimators.weights import row_weights
from maxcosine.model import Model
from maxcosine.stream.cache import is_cache
from maxcosine.stream.chunks import Stream
from maxcosine.stream.learner import Settings, StreamLearner
from maxcosine.stream.rows import Rows
from maxcosine.stream.source import STANDARD_INPUT, Span, StreamError, expand, is_packed, line_start

if TYPE_CHECKING:
    from maxcosine.estimators import OnlineBase

SHARD_BYTES = 128 << 20


@dataclass(frozen=True)
class TextShard:
    """Lines of one file or of several, one after another; it holds no data, only where they are."""

    spans: tuple[tuple[str, Span], ...]
    """Files, and which of their bytes."""
    options: Mapping[str, Any]
    """How they are read, as `maxcosine.stream.open` takes it."""

    def learn(self, estimator: OnlineBase, model: Model | None) -> tuple[Model | None, Tally]:
        """Learn its lines, from nothing or into a model; there is none if there was no line."""
        dtype = np.dtype(estimator.dtype or self.options.get("dtype", "float32"))
        dtype = dtype if model is None else model.heads.dtype
        stream = self._open(dtype)
        learner = StreamLearner(_settings(estimator, dtype), model)
        mistakes = 0
        for rows in stream.rows():
            rows = _weighted(rows, stream, estimator.class_weight)
            predicted = learner.learn(stream, rows)
            mistakes += int(np.count_nonzero(predicted != learner.codes_of(rows)))
            del rows  # before the next ones come
        tally = Tally(stream.n_examples, mistakes, stream.n_bad, tuple(stream.first_bad[:MOST_TOLD]))
        return learner.model, tally

    def _open(self, dtype: np.dtype) -> Stream:
        limits = LIMITS[dtype]
        given = {
            **self.options,
            "dtype": dtype,
            "labelled": True,
            "limits": (limits.low_sq_x, limits.high_sq_x),
            "spans": [span for _, span in self.spans],
        }
        return Stream([name for name, _ in self.spans], **given)


def _settings(estimator: OnlineBase, dtype: np.dtype) -> Settings:
    rule, given = estimator._rule()
    return Settings(
        rule,
        rule.make_params(given),
        estimator.average,
        estimator.fit_intercept,
        estimator.multiclass,
        dtype,
    )


def _weighted(rows: Rows, stream: Stream, class_weight: Any) -> Rows:
    if class_weight is None or not len(rows):
        return rows
    labels = np.array(stream.labels)
    return rows.replace(weights=row_weights(labels[rows.codes], rows.weights, class_weight, labels))


def plan(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    n_shards: int | None = None,
    shard_bytes: int = SHARD_BYTES,
    **options: Any,
) -> list[TextShard]:
    """Divide files among shards of about the same size, at the ends of lines.

    Files are taken one after another. A compressed file, or a cache, is in one shard as a whole.

    Parameters
    ----------
    files : a name or several: files or globs, in svmlight's or Vowpal Wabbit's format
    n_shards : how many shards to make, at most
    shard_bytes : without it, how large they are, about
    **options : how the files are read, as `maxcosine.stream.open` takes it

    Examples
    --------
    >>> import tempfile, pathlib, maxcosine.distributed
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "few.svm"
    >>> _ = path.write_text("+1 1:0.5 3:1\\n-1 2:2\\n+1 1:2\\n")
    >>> [shard.spans[0][1] for shard in maxcosine.distributed.plan(path, n_shards=2)]
    [Span(start=0, stop=13), Span(start=13, stop=27)]
    """
    names = expand([files] if isinstance(files, str | os.PathLike) else files)
    if STANDARD_INPUT in names:
        raise StreamError("standard input cannot be divided among workers; write it to a file")
    for name in names:
        if not os.path.isfile(name):
            raise StreamError(f"{name}: this is no plain file, which could be divided; copy it to one")
    options = {"threads": 1, **options}
    options["format"] = Stream(names, **options).recognise()
    starts = np.concatenate([[0], np.cumsum([os.path.getsize(name) for name in names])])
    total = int(starts[-1])
    n_shards = -(-total // shard_bytes) if n_shards is None else n_shards
    if n_shards < 1 and total:
        raise ValueError(f"n_shards={n_shards}; there is at least one")
    if not total:
        return [TextShard(((names[0], Span()),), options)]
    cuts = [_cut(names, starts, total * k // n_shards) for k in range(n_shards)] + [total]
    return [
        TextShard(_spans(names, starts, begin, end), options)
        for begin, end in itertools.pairwise(cuts)
        if begin < end
    ]


def _cut(names: Sequence[str], starts: np.ndarray, at: int) -> int:
    """The first place at this byte of all files, or behind it, where one shard may end and another begin."""
    number = min(int(np.searchsorted(starts, at, side="right")) - 1, len(names) - 1)
    offset, begin, end = at - int(starts[number]), int(starts[number]), int(starts[number + 1])
    if not offset:
        return at
    is_whole = is_packed(names[number]) or is_cache(names[number])
    return end if is_whole else begin + line_start(names[number], offset)


def _spans(names: Sequence[str], starts: np.ndarray, begin: int, end: int) -> tuple[tuple[str, Span], ...]:
    """What lies between two bytes of all files."""
    found = []
    for name, first, last in zip(names, starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        if first < end and begin < last:
            whole = begin <= first and last <= end
            span = Span() if whole else Span(max(begin, first) - first, min(end, last) - first)
            found.append((name, span))
    return tuple(found)
