"""Examples parsed once and read many times: an Arrow IPC file, which other programs read, too.

A record batch holds rows in their order. Its columns are

- label: utf8, null for none; not a dictionary, as one that grows while it is written few can read;
- weight: float64, not there for data that have no weights;
- columns: list<uint32>, or ids: list<uint64>, or names: list<utf8>: the features, by what they are known by;
- values: list<float32> or list<float64>, as long;
- goes_on: bool, whether the row is only a part of an example, which goes on with the next row.

Batches end where they have 2^19 values or 2 MB of names, so that reading takes little memory. A long example
is in parts: each is a batch of its own with the label and the weight of the example, and goes on; a last one,
which does not, has no features. The last batch of a file is empty.

What else there is to know is JSON in the schema's metadata, under "maxcosine": see `header`. Columns and ids
come once in an example, their values not 0 and transformed as asked for. Names are as they came: which of
them are the same is seen by the index of whoever reads them, and only then can values be added up and
transformed. The metadata of each batch have a checksum, under "crc32": see `arrow.checksum_of`.
"""

from __future__ import annotations

import os

from maxcosine.stream.source import STANDARD_INPUT, Source, StreamError

MAGIC = b"ARROW1"


def is_cache(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as a cache does."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:  # whoever reads it says why it cannot be read
        return False


def are_caches(source: Source, format: str) -> bool:
    """Whether the inputs are caches; it is refused if only some of them are."""
    if format == "cache":
        if STANDARD_INPUT in source.names:
            raise StreamError("standard input is no cache: it is read by its file's name; name the file")
        return True
    if format != "auto":
        return False
    found = [is_cache(name) for name in source.names]
    if any(found) and not all(found):
        cache, other = source.title(found.index(True)), source.title(found.index(False))
        raise StreamError(
            f"{cache} is a cache, and {other} is not; give caches only, or text only: `maxcosine convert` "
            "makes a cache of text"
        )
    return all(found)
