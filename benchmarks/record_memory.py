"""Peak memory of `maxcosine train` on generated files of records, which are far larger than what it may take."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from record_data import newsgroups_frame
from timing import Finished, maxcosine_command, run

SEED = 0
WORD = "qqwordqq"  # stands where each generated record has a word of its own
ROW_GROUP_BYTES = 60_000_000
WRITTEN_AT_ONCE = 2000
LAUNCHER = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""

Record = dict[str, Any]


def run_with_peak(command: Sequence[str | Path]) -> Finished:
    """Run a command from a small process, because a process begins with the peak of the one that started it."""
    found = run([sys.executable, "-c", LAUNCHER, *command])
    return Finished(found.seconds, int(found.printed.split()[-1]) * 1024 / 1e6, found.printed)


def real_records(texts: Sequence[str], labels: Sequence[str]) -> list[Record]:
    """Return documents as records with text, number, category and label, with a place for a word of their own."""
    frame = newsgroups_frame(texts, labels)
    frame["text"] = f"{WORD} " + frame["text"]
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def own_word(number: int) -> str:
    """Return a word that only one record has."""
    return f"m{number:x}"


def write_lines(path: Path, lines: Sequence[str], n_bytes: int, header: str = "") -> None:
    """Write lines that are drawn at random until the file has so many bytes."""
    random = np.random.default_rng(SEED)
    parts = [line.partition(WORD) for line in lines]
    n_written = n_lines = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(header)
        while n_written < n_bytes:
            drawn = [parts[k] for k in random.integers(len(parts), size=WRITTEN_AT_ONCE).tolist()]
            block = "".join(f"{head}{own_word(n_lines + k)}{tail}" for k, (head, _, tail) in enumerate(drawn))
            n_lines += len(drawn)
            n_written += file.write(block)


def write_json(path: Path, records: Sequence[Record], n_bytes: int) -> None:
    """Write JSON lines."""
    write_lines(path, [json.dumps(record) + "\n" for record in records], n_bytes)


def write_csv(path: Path, records: Sequence[Record], n_bytes: int) -> None:
    """Write CSV with a header."""

    def line(values: Any) -> str:
        file = io.StringIO()
        csv.writer(file).writerow(values)
        return file.getvalue()

    write_lines(path, [line(record.values()) for record in records], n_bytes, line(records[0]))


def row_groups(records: Sequence[Record]) -> Iterator[pa.Table]:
    """Give tables of records that are drawn at random, each with the size of a row group, without end."""
    random = np.random.default_rng(SEED)
    table = pa.Table.from_pylist(list(records))
    tails = [record["text"].removeprefix(WORD) for record in records]
    n_rows = int(ROW_GROUP_BYTES / (table.nbytes / len(table)))
    n_given = 0
    while True:
        drawn = random.integers(len(table), size=n_rows)
        texts = [own_word(n_given + k) + tails[number] for k, number in enumerate(drawn.tolist())]
        group = table.take(pa.array(drawn))
        yield group.set_column(group.column_names.index("text"), "text", pa.array(texts))
        n_given += n_rows


def write_parquet(path: Path, records: Sequence[Record], n_bytes: int) -> None:
    """Write Parquet without compression, so that sizes of files can be compared."""
    groups = row_groups(records)
    group = next(groups)
    with pa.parquet.ParquetWriter(path, group.schema, compression="none", use_dictionary=["domain", "label"]) as file:
        while path.stat().st_size < n_bytes:
            file.write_table(group, row_group_size=len(group))
            group = next(groups)


WRITERS: dict[str, Callable[[Path, Sequence[Record], int], None]] = {
    "jsonl": write_json,
    "csv": write_csv,
    "parquet": write_parquet,
}


def train(data: Path) -> tuple[Finished, float]:
    """Train on a file in two threads; return the finished process and the size of its model file in MB."""
    model = data.parent / "memory.model"
    command = maxcosine_command("train", data, "--label", "label", "--threads", "2", "--model", model, "--quiet")
    found = run_with_peak(command)
    size = model.stat().st_size / 1e6
    model.unlink()
    return found, size
