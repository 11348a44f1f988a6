"""Examples of files larger than memory: text, pipes, archives and caches, one block after another."""

from maxcosine.data.batch import RowBatch
from maxcosine.data.cache_file import is_cache
from maxcosine.data.caches import write_cache
from maxcosine.data.input_file import STANDARD_INPUT, is_compressed
from maxcosine.data.inputs import Place, Span, describe_inputs, expand, next_line_start
from maxcosine.data.options import ReadOptions, StreamError
from maxcosine.data.parsed import MAX_REPORTED
from maxcosine.data.stream import Chunk, Stream, open_stream

__all__ = [
    "MAX_REPORTED",
    "STANDARD_INPUT",
    "Chunk",
    "Place",
    "ReadOptions",
    "RowBatch",
    "Span",
    "Stream",
    "StreamError",
    "describe_inputs",
    "expand",
    "is_cache",
    "is_compressed",
    "next_line_start",
    "open_stream",
    "write_cache",
]
