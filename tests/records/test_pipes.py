"""Records that arrive through a pipe, slowly, are answered as they arrive."""

import json
import os
import select
import subprocess
import threading
import time

import pytest

from maxcosine import model_file
from maxcosine.data import ReadOptions, Stream
from maxcosine.records import RecordOptions
from tests.commands import command, run

ROWS = [{"x": "red", "n": 1.5, "y": "a"}, {"x": "blue", "n": -2, "y": "b"}] * 20
CSV = "x,n,y\n" + "".join(f"{row['x']},{row['n']},{row['y']}\n" for row in ROWS)
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)
TEXTS = {"csv": CSV, "jsonl": LINES}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    (folder / "data.csv").write_text(CSV)
    assert run(folder, "train", "data.csv", "--label", "y", "--model", "model").returncode == 0
    return folder / "model"


class Pipe:
    """Standard input that is a pipe, written to by a test."""

    def __init__(self, monkeypatch):
        reader, self.writer = os.pipe()
        self.file = os.fdopen(reader, "rb")
        monkeypatch.setattr("sys.stdin", self.file)

    def write(self, text):
        os.write(self.writer, text.encode())

    def close(self):
        os.close(self.writer)


@pytest.fixture
def pipe(monkeypatch):
    made = Pipe(monkeypatch)
    yield made
    made.file.close()


@pytest.mark.parametrize("format", TEXTS)
def test_rows_are_given_as_they_arrive(pipe, model, format):
    schema = model_file.load(model).model.features.records
    lines = TEXTS[format].splitlines(keepends=True)
    header = [lines.pop(0)] if format == "csv" else []
    stream = Stream("-", ReadOptions(schema=schema, threads=1))
    batches = stream.batches()
    for text in header:
        pipe.write(text)
    for n, line in enumerate(lines[:4]):
        # Half a line is no row yet.
        half = threading.Timer(0.02, pipe.write, [line[5:]])
        pipe.write(line[:5])
        half.start()
        batch = next(batches)
        assert len(batch) == 1
        assert batch.places.start(0).line == n + len(header)
    pipe.write(lines[4].rstrip("\n"))
    pipe.close()
    assert [len(batch) for batch in batches] == [1]


@pytest.mark.parametrize("format", TEXTS)
def test_a_pipe_gives_the_same_rows_as_a_file(pipe, tmp_path, format):
    (tmp_path / f"data.{format}").write_text(TEXTS[format])

    def rows(source):
        stream = Stream(source, ReadOptions(records=RecordOptions(label="y")))
        return [
            (batch.keys[a:b].tolist(), batch.values[a:b].tolist(), label)
            for batch in stream.batches()
            for a, b, label in zip(batch.indptr, batch.indptr[1:], batch.codes.tolist(), strict=False)
        ]

    def write():
        for start in range(0, len(TEXTS[format]), 50):
            pipe.write(TEXTS[format][start : start + 50])
            time.sleep(0.001)
        pipe.close()

    writer = threading.Thread(target=write)
    writer.start()
    assert rows("-") == rows(tmp_path / f"data.{format}")
    writer.join()


def test_a_header_may_arrive_in_pieces(pipe):
    pieces = ['"first\n', 'name"', ",y", "\n1,a\n", "2,b\n"]
    stream = Stream("-", ReadOptions(records=RecordOptions(label="y")))

    def write():
        for piece in pieces:
            pipe.write(piece)
            time.sleep(0.01)
        pipe.close()

    writer = threading.Thread(target=write)
    writer.start()
    assert sum(map(len, stream.batches())) == 2
    writer.join()
    assert [one.name for one in stream.options.schema.columns] == ["first\nname"]


@pytest.mark.parametrize("format", TEXTS)
def test_the_command_answers_each_record_before_the_next_one(model, format):
    process = subprocess.Popen(command("predict", model, "-"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    lines = TEXTS[format].splitlines(keepends=True)
    if format == "csv":
        process.stdin.write(lines.pop(0).encode())
    for line, row in zip(lines[:5], ROWS, strict=False):
        process.stdin.write(line.encode())
        ready, _, _ = select.select([process.stdout], [], [], 60)
        assert ready
        assert process.stdout.readline().decode() == f"{row['y']}\n"
    process.stdin.close()
    assert process.stdout.read() == b""
    assert process.wait(60) == 0
    process.stdout.close()


def test_the_command_answers_bad_records_by_empty_lines(model):
    text = "x,n\nred,1.5\nblue\nblue,none\nblue,-2\n"
    done = run(model.parent, "predict", "model", "-", "--on-bad", "skip", input=text)
    assert done.stdout.splitlines() == ["a", "", "", "b"]
    assert done.returncode == 0
    done = run(model.parent, "predict", "model", "-", input=text)
    assert done.returncode == 1
    assert "standard input:3: the row has 1 fields, and the header has 2" in done.stderr


def test_the_command_learns_from_a_pipe(model, tmp_path):
    digests = []
    for text, more in [(CSV, []), (LINES, []), (CSV.replace(",", "\t"), ["--format", "tsv"])]:
        done = run(tmp_path, "train", "-", "--label", "y", "--model", "m", *more, input=text)
        assert done.returncode == 0, done.stderr
        from safetensors.numpy import load_file

        digests.append({name: array.tobytes() for name, array in load_file(tmp_path / "m").items()})
        (tmp_path / "m").unlink()
    assert digests[0] == digests[1] == digests[2]
