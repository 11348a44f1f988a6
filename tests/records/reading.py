"""Records that are read, for tests."""

import gzip
import io
import itertools
import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import zstandard

from maxcosine.data import ReadOptions, Stream
from maxcosine.data.tables import Tables
from maxcosine.records import RecordOptions


def stream_of(source, label=None, schema=None, **options):
    """Open records in a file or in memory; options are those of records and of reading."""
    of_records = {name: options.pop(name) for name in list(options) if name in RecordOptions.__dataclass_fields__}
    records = None if schema else RecordOptions(label=label, **of_records)
    inputs = source if isinstance(source, str | list) or hasattr(source, "__fspath__") else Tables(source)
    if isinstance(source, list) and source and isinstance(source[0], dict):
        inputs = Tables(source)
    return Stream(inputs, ReadOptions(records=records, schema=schema, **options))


def read(source, **options):
    """Read all records: the features of each row by name, and the stream."""
    stream = stream_of(source, exact=True, dtype="float64", **options)
    rows = []
    chunks = [(chunk.X, stream.feature_keys()) for chunk in stream]
    for X, keys in chunks:
        for a, b in zip(X.indptr, X.indptr[1:], strict=False):
            rows.append(dict(zip(keys[X.indices[a:b]].tolist(), X.data[a:b].tolist(), strict=True)))
    return rows, stream


def read_hashed(source, bits=18, **options):
    """Read all records: the features of each row by column."""
    stream = stream_of(source, bits=bits, dtype="float64", **options)
    rows = []
    for X, _, _ in stream:
        for a, b in zip(X.indptr, X.indptr[1:], strict=False):
            rows.append(dict(zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True)))
    return rows, stream


def outcome(source, **options):
    """What reading gives, whatever the blocks are: features, labels, weights, places, bad lines, schema."""
    bad_lines = io.BytesIO()
    stream = stream_of(source, exact=True, **options)
    stream.bad.file = bad_lines
    rows, weights, labels = [], [], []
    for batch in stream.batches():
        letters, starts = batch.keys
        names = [letters[a:b].tobytes() for a, b in itertools.pairwise(starts)]
        for row in range(len(batch)):
            a, b = batch.indptr[row : row + 2]
            place = batch.places.start(row)
            rows.append((names[a:b], batch.values[a:b].tolist(), place.source, place.line, place.bad))
        labels += batch.codes.tolist()
        weights += [1.0] * len(batch) if batch.weights is None else batch.weights.tolist()
    found = [rows, labels, weights, stream.labels.names, bad_lines.getvalue(), stream.n_bad, stream.bad.messages]
    return [*found, stream.options.schema, stream.place, sorted(stream.new_columns)]


def json_lines(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def as_csv(table, delimiter=","):
    file = io.BytesIO()
    pa.csv.write_csv(table, file, pa.csv.WriteOptions(delimiter=delimiter))
    return file.getvalue()


def as_parquet(table, row_group_size=100):
    file = io.BytesIO()
    pa.parquet.write_table(table, file, row_group_size=row_group_size)
    return file.getvalue()


def as_arrow(table):
    file = io.BytesIO()
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=70)
    return file.getvalue()


WRAPPED = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}
