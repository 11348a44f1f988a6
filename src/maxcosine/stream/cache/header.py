"""What a cache says of itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from maxcosine.record import Record
from maxcosine.stream.rows import Rows
from maxcosine.stream.source import sizes

if TYPE_CHECKING:
    from maxcosine.stream.chunks import Stream

KEY, CHECKSUM = b"maxcosine", b"crc32"
VERSION = 1
KINDS = ("columns", "ids", "names")
DTYPES = ("float32", "float64")
MOST_BITS = 31


class Header(Record, frozen=True):
    """How the examples of a cache were read."""

    kind: str
    """What features are known by: "columns" (hashed if there are bits), "ids" or "names"."""
    bits: int
    dtype: str
    normalize: str | None
    log1p: bool
    applied: bool
    """Whether values are transformed already; those of names are not."""
    weighted: bool
    data: dict[str, int | None]
    """Where the examples are from: file names and sizes."""
    version: int = VERSION

    @classmethod
    def of(cls, stream: Stream, rows: Rows) -> Header:
        kind = "names" if rows.names is not None else "ids" if stream.exact else "columns"
        return cls(
            kind,
            stream.bits,
            stream.dtype.name,
            stream.normalize,
            stream.log1p,
            applied=kind != "names",
            weighted=stream.format != "svmlight",
            data=sizes(stream.source.names),
        )

    @property
    def options(self) -> dict[str, Any]:
        """How a stream reads text in the same way."""
        return {
            "bits": self.bits,
            "exact": self.kind != "columns",
            "dtype": self.dtype,
            "normalize": self.normalize,
            "log1p": self.log1p,
        }

    def schema(self, pa: Any) -> Any:
        """The columns of the Arrow file, and this as its metadata."""
        feature = {"columns": pa.uint32(), "ids": pa.uint64(), "names": pa.utf8()}[self.kind]
        columns = {
            "label": pa.utf8(),
            "weight": pa.float64(),
            self.kind: pa.list_(feature),
            "values": pa.list_(pa.from_numpy_dtype(np.dtype(self.dtype))),
            "goes_on": pa.bool_(),
        }
        if not self.weighted:
            del columns["weight"]
        return pa.schema(columns, metadata={KEY: json.dumps(self.as_dict())})
