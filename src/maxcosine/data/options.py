"""How data are read, one value that streams, training, commands and shards share; the error of every reader."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxcosine.records import RecordOptions, RecordSchema

CHOICES: dict[str, tuple[str | None, ...]] = {
    "format": ("auto", "svmlight", "vw", "cache", "csv", "tsv", "jsonl"),
    "dtype": ("float32", "float64"),
    "normalize": (None, "l2"),
    "purpose": ("read", "evaluate", "learn"),
    "on_bad": ("error", "skip"),
}

DEFAULT_BITS = 20  # names are hashed to 2^20 columns unless the caller asks for something else
MAX_BITS = 31
DEFAULT_MAX_THREADS = 4  # more threads do not pay by default: one thread learns as fast as four parse
BLOCK_BYTES = 2 << 20
MAX_LINE_BYTES = 64 << 20


class StreamError(ValueError):
    """Input that cannot be read; the message gives the place, the fault and a remedy."""


@dataclass(frozen=True)
class ReadOptions:
    """How the examples of files or pipes are read.

    Parameters
    ----------
    format : {"auto", "svmlight", "vw", "cache", "csv", "tsv", "jsonl"}, default="auto"
        "cache" is an Arrow IPC or Parquet file that `maxcosine convert` wrote. "auto" looks at the first
        bytes, the name and the first line.
    bits : int, default=0
        Hash features to 2^bits columns. 0: svmlight ids are column numbers; names are hashed to 2^20.
    exact : bool, default=False
        Know features by their own id or name, through an index that grows with them.
    dtype : {"float32", "float64"}, default="float32"
        Type of the values.
    normalize : {None, "l2"}, default=None
        "l2" scales each row to length 1.
    log1p : bool, default=False
        Replace each value x by sign(x) log(1 + abs(x)), before rows are scaled.
    strict : bool, default=False
        Refuse a cache that was written with other values of the five options above. Without it, the cache's
        own values replace those that the caller left at their defaults.
    purpose : {"read", "evaluate", "learn"}, default="read"
        Which lines are bad lines although they can be parsed. To evaluate, every line needs a label; to
        learn, it also needs a norm that weights of type `dtype` can learn from.
    any_norm : bool, default=False
        Learn from rows of any finite norm, as the one-pass learner does.
    on_bad : {"error", "skip"}, default="error"
        Stop at a bad line, or count it and continue.
    any_labels : bool, default=False
        Learn labels that are hardly classes, too. Without it, a label that is a number but not whole, and the
        1,001st class before example 20,000, are errors.
    threads : int or None, default=None
        Threads that parse. None: one per processor, at most 4. 1: no other thread is started.
    keep_names : bool, default=False
        Keep the names of hashed features.
    records : RecordOptions, optional
        The data are records, tables with named columns: CSV, TSV, JSON lines, Parquet, Arrow IPC. These are the
        columns of labels and weights, and those that are not what they look like.
    schema : RecordSchema, optional
        What the columns of records are, if it is known already; else it is inferred from the first rows.
    keep_columns : tuple of str or None, default=None
        Columns of records that batches keep as they are; ("*",) keeps all.
    block_bytes : int, default=2 MB
        Size of the blocks that are read. A longer line enlarges its block, up to 64 MB.

    Examples
    --------
    >>> from maxcosine.data import ReadOptions
    >>> ReadOptions(bits=22, normalize="l2").feature_options
    {'bits': 22, 'exact': False, 'dtype': 'float32', 'normalize': 'l2', 'log1p': False}
    """

    format: str = "auto"
    bits: int = 0
    exact: bool = False
    dtype: str = "float32"
    normalize: str | None = None
    log1p: bool = False
    strict: bool = False
    purpose: str = "read"
    any_norm: bool = False
    on_bad: str = "error"
    any_labels: bool = False
    threads: int | None = None
    keep_names: bool = False
    records: RecordOptions | None = None
    schema: RecordSchema | None = None
    keep_columns: tuple[str, ...] | None = None
    block_bytes: int = BLOCK_BYTES

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", np.dtype(self.dtype).name)
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} is {getattr(self, name)!r}; it is one of {', '.join(map(repr, choices))}")
        if self.bits and self.exact:
            raise ValueError("features are hashed, bits > 0, or exact, but not both; choose one")
        if not 0 <= self.bits <= MAX_BITS:
            raise ValueError(f"bits is {self.bits}; it is from 1 to {MAX_BITS}, or 0 for features that are not hashed")
        if self.threads is not None and self.threads < 1:
            raise ValueError(f"threads is {self.threads}; it is at least 1, or None for all processors")
        if self.are_records and not (self.bits or self.exact):
            object.__setattr__(self, "bits", DEFAULT_BITS)
        if not 1 <= self.block_bytes <= MAX_LINE_BYTES:
            raise ValueError(f"block_bytes is {self.block_bytes:,}; it is from 1 to {MAX_LINE_BYTES:,}")

    @property
    def are_records(self) -> bool:
        """Whether the data are records."""
        return self.records is not None or self.schema is not None

    @property
    def feature_options(self) -> dict[str, Any]:
        """The options that decide which features and values the examples have."""
        return {name: getattr(self, name) for name in ("bits", "exact", "dtype", "normalize", "log1p")}

    @property
    def l2(self) -> bool:
        """Whether rows are scaled to length 1."""
        return self.normalize == "l2"

    @property
    def n_threads(self) -> int:
        """How many threads parse."""
        return self.threads or min(os.cpu_count() or 1, DEFAULT_MAX_THREADS)
