"""What Python writes as CSV is read back exactly, and lines of JSON are never lost in silence."""

import csv
import io
import json

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from maxcosine import core
from maxcosine.data import ReadOptions, Stream, StreamError
from maxcosine.records import RecordOptions

FIELDS = st.text(st.sampled_from("ab,;|\t\"'\r\n \\é東"), max_size=6)
LINE_ENDS = st.sampled_from(["\n", "\r\n"])


def kept_rows(path, block_bytes, **options):
    """The columns of all rows as they are, the lines of the rows, and the stream."""
    stream = Stream(
        path,
        ReadOptions(
            records=RecordOptions(**options), keep_columns=("*",), on_bad="skip", block_bytes=block_bytes, threads=1
        ),
    )
    stream.bad.file = io.BytesIO()
    rows, lines = [], []
    for batch in stream.batches():
        assert batch.kept_columns.num_rows == len(batch)
        rows += batch.kept_columns.to_pylist() or [{}] * len(batch)
        lines += [batch.places.start(row).line for row in range(len(batch))]
    return rows, lines, stream


@settings(max_examples=50)
@given(
    rows=st.lists(st.lists(FIELDS, min_size=3, max_size=3), min_size=1, max_size=8),
    line_end=LINE_ENDS,
    delimiter=st.sampled_from(",;|\t"),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    block_bytes=st.integers(1, 60),
)
@example([["a", '"', "\r"], ["\n\n", "", "\r\n"], ["", "", ""]], "\r\n", ",", csv.QUOTE_MINIMAL, 1)
def test_csv_of_python_is_read_back_exactly(tmp_path_factory, rows, line_end, delimiter, quoting, block_bytes):
    text = io.StringIO(newline="")
    if any("\r" in field for row in rows for field in row):  # older Pythons quote it only if lines end in CR LF
        quoting = csv.QUOTE_ALL
    if delimiter == "\t":  # without quotes in the header, they are characters like any other
        quoting = csv.QUOTE_ALL
    writer = csv.writer(text, delimiter=delimiter, lineterminator=line_end, quoting=quoting)
    starts = []
    for row in [["x", "y", "z"], *rows]:
        starts.append(text.getvalue().count("\n"))
        writer.writerow(row)
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    path.write_bytes(text.getvalue().encode())
    found, lines, stream = kept_rows(path, block_bytes, text="x", categorical=("y", "z"))
    assert stream.n_bad == 0
    assert [[row["x"], row["y"], row["z"]] for row in found] == rows
    assert lines == starts[1:]


@settings(max_examples=50)
@given(
    rows=st.lists(st.tuples(st.integers(0, 4), FIELDS, st.sampled_from(["", "\n", "\r\n\n"])), min_size=1, max_size=10),
    block_bytes=st.integers(1, 60),
)
def test_ragged_rows_are_named_by_their_lines(tmp_path_factory, rows, block_bytes):
    text, good, bad, blank = "x,y\n", [], [], 0
    for n_fields, field, gap in rows:
        line = text.count("\n")
        quoted = field.replace('"', '""')
        if n_fields == 2:
            good.append((line, field))
        elif n_fields:
            bad.append(line)
        text += ",".join([f'"{quoted}"'] * n_fields) + "\n" + gap
        blank += n_fields == 0
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    path.write_bytes(text.encode())
    found, lines, stream = kept_rows(path, block_bytes, categorical=("x", "y"))
    assert list(zip(lines, [row["x"] for row in found], strict=True)) == good
    assert stream.n_bad == len(bad)
    for line, message in zip(bad, stream.bad.messages, strict=False):
        assert message.startswith(f"{path}:{line + 1}: the row has ")
    assert stream.place.source == 1


@settings(max_examples=50)
@given(
    parts=st.lists(st.sampled_from(["a", ",", '"', '""', "\n", "\r\n", "\r", " ", "b,c\n", 'd,"e"\n']), max_size=20),
    sizes=st.lists(st.integers(1, 30), min_size=2, max_size=2),
)
@example(["b,c\n", "a", "\r", "b,c\n"], [1, 30])
@example(["b,c\n", '"', "a", "\n", "b,c\n", "b,c\n"], [1, 30])
def test_any_text_is_rows_or_bad_rows(tmp_path_factory, parts, sizes):
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    path.write_bytes(("x,y\nb,c\n" + "".join(parts)).encode())
    (rows, lines, stream), other = (kept_rows(path, size, categorical=("x", "y")) for size in sizes)
    assert (rows, lines) == other[:2]
    assert stream.bad.file.getvalue() == other[2].bad.file.getvalue()
    assert stream.bad.messages == other[2].bad.messages
    # What is not in a row is in the bad lines.
    letters = "".join(value for row in rows for value in row.values() if value)
    everything = letters + stream.bad.file.getvalue().decode()
    for letter in "ade":
        assert everything.count(letter) == "".join(parts).count(letter)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["2024-01-01", "2024-01-01 10:00:00", "5", ""]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "a.b", ""]), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from(["x", "y", "a", "a.b", "z", "é"]), VALUES, max_size=4).map(json.dumps)
LINES = st.one_of(
    OBJECTS,
    OBJECTS,
    VALUES.map(json.dumps),
    st.sampled_from(['{"x":1}{"x":2}', '{"x":1', '"b":2}', '{"x":1,"x":2}', "{}", "{x}", "[[", '{"y":"\\ud800"}']),
    st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), min_size=1, max_size=9),
)


@settings(max_examples=40)
@given(lines=st.lists(LINES, max_size=9), sizes=st.lists(st.integers(1, 80), min_size=2, max_size=2))
@example(['{"a":1}', '{"a":{"b":2}}', '{"a":null,"z":[1,"x"]}'], [1, 80])
@example(['{"a.b":"2024-01-01 10:00:00"}', '{"a":{"b":"2024-01-01"}}'], [1, 80])
@example(['{"a":[]}', '{"a":false}', '{"a":[null]}', '{"a":["x"]}'], [1, 80])
@example(['{"y":9007199254740993}', '{"y":0.5}', '{"y":12345678901234567890}'], [1, 80])
def test_any_lines_are_rows_or_bad_lines(tmp_path_factory, lines, sizes):
    content = "".join(line + "\n" for line in ['{"x":1}', *lines]).encode()
    path = tmp_path_factory.mktemp("json") / "data.jsonl"
    path.write_bytes(content)
    n_lines = 1 + sum(bool(line.strip(" \t\r")) for line in lines)
    found = []
    for size in sizes:
        try:
            rows, places, stream = kept_rows(path, size, numeric=("x",))
        except StreamError as error:  # a column that cannot be read at all
            found.append(str(error))
            continue
        assert len(rows) + stream.n_bad == n_lines
        bad = stream.bad.file.getvalue().splitlines()
        assert len(bad) == stream.n_bad
        all_lines = content.split(b"\n")
        assert sorted([all_lines[place] for place in places] + bad) == sorted(
            line for line in all_lines if line.strip(b" \t\r")
        )
        found.append((places, stream.bad.messages, bad, stream.options.schema, sorted(stream.new_columns)))
    assert found[0] == found[1]
    if isinstance(found[0], str):
        assert "leave it out" in found[0] or "rename" in found[0]


@given(text=st.binary(max_size=60), cut=st.integers(0, 60), delimiter=st.sampled_from("\0,\t"))
def test_a_block_can_be_cut_behind_any_whole_record(text, cut, delimiter):
    def records(part):
        starts, lines, whole, n_lines, _ = core.find_records(
            np.frombuffer(part, np.uint8), 0, len(part), delimiter, True
        )
        return list(zip(starts.tolist(), lines.tolist(), strict=True)), whole, n_lines

    everything, _, n_lines = records(text)
    first, whole, n_first = records(text[:cut])
    _, _, n_first = records(text[:whole])
    first = [one for one in first if one[0] < whole]
    second, _, n_second = records(text[whole:])
    assert everything == first + [(start + whole, line + n_first) for start, line in second]
    assert n_lines == n_first + n_second
