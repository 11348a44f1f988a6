"""A part of an input of records that was read, but not parsed: what all formats have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from maxcosine.data.parsed import BadLine
from maxcosine.records import RecordSchema


@dataclass
class ReadRecords:
    """The records of a block, as the rows of one or several tables, whose types may differ."""

    tables: list[Any]
    lines: np.ndarray  # the line of each row, counted from the first line of the block
    offsets: np.ndarray | None = None  # the byte of the block where each row begins
    bad: list[BadLine] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # columns that the schema does not have, and that were not read


class RawBlock(Protocol):
    """A part of an input that was read, but not parsed."""

    @property
    def source(self) -> int:
        """The number of the input."""

    @property
    def offset(self) -> int:
        """Bytes of the input before it, decompressed; 0 if the format has no lines."""

    @property
    def end(self) -> int:
        """Bytes of the input up to its end."""

    @property
    def is_first(self) -> bool:
        """Whether the input begins with it."""

    @property
    def is_last(self) -> bool:
        """Whether the input ends with it."""

    @property
    def n_lines(self) -> int:
        """Lines of the block; rows, if the format has no lines."""

    @property
    def lacks_keys(self) -> bool:
        """Whether a row may lack columns, as an object of JSON may."""

    def read(self, schema: RecordSchema | None) -> ReadRecords:
        """Parse it; types that the format does not tell are those of the schema."""

    def text_of(self, row: int) -> bytes:
        """Return a row of what `read` returned as it is written in the input, or as JSON."""
