"""A training from records that is killed at any moment resumes to the same bits."""

import itertools
import random
import signal
import subprocess
import time

import pyarrow as pa
import pytest

from maxcosine import model_file
from maxcosine.data import Place
from tests.commands import command, run
from tests.records.reading import WRAPPED, as_arrow, as_csv, as_parquet, json_lines, stream_of
from tests.records.test_formats import make_rows

OUTPUTS = ("model", "predictions", "bad-lines")


def write_data(folder, name, n, seed=1):
    """Records of all kinds, with bad rows between them."""
    at = random.Random(seed)
    rows = [{**row, "when": str(row["when"])} for row in make_rows(200)]
    rows = [{**at.choice(rows), "number": at.random()} for _ in range(n)]
    for k, row in enumerate(rows):
        row["late"] = None if k < 1500 else row["late"]
    format = name.partition(".")[2].partition(".")[0]
    table = pa.Table.from_pylist(rows)
    if format == "csv":
        header, *lines = as_csv(table).split(b'"\n"')  # rows begin and end with quotes
        content = header + b'"\n"' + b'"\n"'.join(lines)
        content += b"ragged,row\n" * 3 + content.partition(b"\n")[2]
    elif format == "jsonl":
        lines = json_lines(rows).splitlines(keepends=True)
        for k in range(0, len(lines), 97):
            lines[k] += b'{"number": [1]}\nno object\n'
        content = b"".join(lines)
    else:
        content = as_parquet(table, 333) if format == "parquet" else as_arrow(table)
    wrap = name[name.index(format) + len(format) :]
    (folder / name).write_bytes(WRAPPED[wrap](content))


def training(name, *more):
    outputs = [text for output in OUTPUTS for text in (f"--{output}", output)]
    options = ["--label", "label", "--weight", "weight", "--numeric", "number", "--ngrams", "2", "--on-bad", "skip"]
    hashed = [] if "--exact" in more else ["--bits", "10"]
    return ["train", name, *options, *hashed, *outputs, *more]


def take_outcome(folder):
    found = [model_file.digest(folder / "model"), *((folder / name).read_bytes() for name in OUTPUTS[1:])]
    for name in OUTPUTS:
        (folder / name).unlink()
    return found


FILES = ["data.csv", "data.csv.gz", "data.jsonl", "data.jsonl.zst", "data.parquet", "data.arrow"]


@pytest.mark.parametrize("name", ["data.csv", "data.jsonl", "data.parquet", "data.arrow"])
def test_reading_continues_at_any_row(tmp_path, name):
    write_data(tmp_path, name, 150)
    options = {"label": "label", "on_bad": "skip", "numeric": "number", "exact": True}

    def rows_from(start, schema, block_bytes):
        stream = stream_of(tmp_path / name, schema=schema, **options | {"block_bytes": block_bytes})
        stream.place = stream.start = start
        rows = []
        for batch in stream.batches():
            letters, starts = batch.keys
            for row in range(len(batch)):
                a, b = batch.indptr[row : row + 2]
                rows.append((letters[starts[a] : starts[b]].tobytes(), batch.places.start(row)))
        return rows, stream

    everything, stream = rows_from(Place(), None, 2 << 20)
    for row in (0, 1, 7, 101, len(everything) - 1):
        for block_bytes in (500, 1 << 20):
            rest, other = rows_from(everything[row][1], stream.options.schema, block_bytes)
            assert rest == everything[row:]
            assert other.place == stream.place


@pytest.mark.parametrize("name", ["data.csv", "data.parquet"])
def test_a_killed_training_resumes_to_the_same_bits(tmp_path, name):
    kill_and_resume(tmp_path, name, n=3000, n_kills=1, every=500)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("more", [[], ["--exact"]])
def test_a_training_that_is_killed_often_resumes_to_the_same_bits(tmp_path, name, more):
    kill_and_resume(tmp_path, name, n=20_000, n_kills=6, more=more)


def kill_and_resume(folder, name, n, n_kills, every=1000, more=()):
    write_data(folder, name, n)
    done = run(folder, *training(name, *more))
    assert done.returncode == 0, done.stderr
    expected = take_outcome(folder)
    resuming = training(name, "--checkpoint", "checkpoint", "--checkpoint-every", 100, "--resume", *more)
    moments, n_killed = random.Random(1), 0
    for _ in range(n_kills):
        process = subprocess.Popen(
            command(*resuming), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        wait_for_checkpoint(folder / "checkpoint", process)
        time.sleep(moments.random() * 0.1)
        n_killed += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    assert n_killed
    done = run(folder, *resuming)
    assert done.returncode == 0, done.stderr
    assert "resuming from checkpoint" in done.stderr
    assert take_outcome(folder) == expected


def wait_for_checkpoint(path, process):
    """Wait until a checkpoint is written, or the process ends."""

    def stamp():
        return path.stat().st_mtime_ns if path.exists() else 0

    before = stamp()
    for _ in itertools.takewhile(lambda _: process.poll() is None and stamp() == before, range(60_000)):
        time.sleep(0.001)


def test_a_checkpoint_of_other_columns_is_refused(tmp_path):
    write_data(tmp_path, "data.csv", 150)
    options = ["--checkpoint", "checkpoint", "--checkpoint-every", 100]
    assert run(tmp_path, *training("data.csv", *options)).returncode == 0
    done = run(tmp_path, *training("data.csv", *options, "--resume", "--drop", "color"))
    assert done.returncode == 1
    assert "checkpoint is of another training" in done.stderr
