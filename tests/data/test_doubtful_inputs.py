"""Files in other formats, and labels that are hardly classes, are refused alike by commands and from Python."""

import bz2
import gzip

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from maxcosine import MCPClassifier
from maxcosine.data import ReadOptions, Stream, StreamError, open_stream, write_cache
from tests.cli.examples import outcome, refuse, svm


def refuses(path, message):
    """Assert that `train`, `fit_stream` and `open_stream` refuse a file with the same message."""
    error = refuse(path.parent, "train", path.name, "--model", "model")
    assert message in error
    for source in (lambda: path, lambda: [str(path)], lambda: open_stream(path)):
        with pytest.raises(StreamError) as refused:
            MCPClassifier().fit_stream(source())
        assert message in str(refused.value)
    assert not (path.parent / "model").exists()
    return error


# Formats


CSV = "size,colour,label\n1,2,x\n3,4,y\n"
JSON = '{"label": "a", "x": 1}\n{"label": "b", "x": 2}\n'


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("d.csv", CSV, "CSV"),
        ("d.csv", "1,0.5,2\n0,1,3\n", "CSV"),
        ("d.csv", "label;size\nx;1\ny;2\n", "CSV"),
        ("d.csv", "date,label\n2024-01-01 12:30,x\n", "CSV"),
        ("d", CSV, "CSV"),
        ("d.tsv", "label\tsize\nx\t1\n", "TSV"),
        ("d", "label\tsize\tcolour\nx\t1\t2\n", "TSV"),
        ("d.jsonl", JSON, "JSON"),
        ("d", '\n{"label":"a|b","x":[1:2]}\n', "JSON"),
        ("d.json", '[\n{"label": "a"}]', "JSON"),
        ("d.json", '[{"label": "a"}]', "JSON"),
    ],
)
def test_text_in_another_format_is_refused_by_its_name(tmp_path, name, text, format):
    (tmp_path / name).write_text(text)
    error = refuses(tmp_path / name, f"{name}: this looks like {format}")
    for advice in ("'label id:value ...'", "'label |namespace feature:value ...'", "--format"):
        assert advice in error


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [("a.csv.gz", gzip.compress(CSV.encode()), "CSV"), ("a.bz2", bz2.compress(svm(9).encode()), "bzip2")],
    ids=["gzip", "bzip2"],  # the bytes of gzip tell the time
)
def test_compressed_files_are_recognised_too(tmp_path, name, content, format):
    (tmp_path / name).write_bytes(content)
    refuses(tmp_path / name, f"{name}: this looks like {format}")


def test_every_input_is_looked_at(tmp_path):
    (tmp_path / "a").write_text(svm(60))
    (tmp_path / "b").write_text(CSV)
    with pytest.raises(StreamError, match="b: this looks like CSV"):
        MCPClassifier().fit_stream([tmp_path / "a", tmp_path / "b"])


@pytest.mark.parametrize(
    "text",
    ["1,3 1:0.5 2:1\n2 1:1\n", "1\n2 3:1\n", "-1\t1:1\t2:1\n1\t3:1\n", "{a} 1:1\n[b 2:1\n", "1:1 2:1\n"],
)
def test_unusual_svmlight_is_read(tmp_path, text):
    path = tmp_path / "data.csv"
    path.write_text(text)
    assert sum(map(len, Stream(path).batches())) == text.count("\n")


def test_a_format_that_is_given_is_believed(tmp_path):
    (tmp_path / "d.csv").write_text("a,b\n1,2 3:4\n")
    with pytest.raises(StreamError, match=r"d.csv: this looks like CSV"):
        list(Stream(tmp_path / "d.csv"))
    assert MCPClassifier().fit_stream(tmp_path / "d.csv", format="svmlight").classes_.tolist() == ["1,2", "a,b"]
    assert outcome(tmp_path, "train", "d.csv", "--model", "m", "--format", "svmlight")["examples"] == 2


@pytest.mark.parametrize(
    ("name", "write", "format"),
    [
        ("d.parquet", pa.parquet.write_table, "a Parquet file"),
        ("d.arrow", pa.feather.write_feather, "an Arrow file"),
    ],
)
def test_tables_of_other_programs_are_refused_by_the_name_of_their_format(tmp_path, name, write, format):
    write(pa.table({"size": [1.5, 2.0], "label": ["x", "y"]}), str(tmp_path / name))
    error = refuses(tmp_path / name, f"{name}: this is {format} of records")
    assert "with the columns size, label; name the column of the labels: --label NAME" in error


def test_text_without_a_feature_is_refused(tmp_path):
    (tmp_path / "data").write_text("1\n2\n1\n")
    refuses(tmp_path / "data", "data has a feature; is it text in another format?")
    (tmp_path / "data").write_text("# nothing\n")
    refuses(tmp_path / "data", "there is no example in ")


def test_a_line_without_a_label_is_refused(tmp_path):
    (tmp_path / "data").write_text("a 1:1\n2:1\nb 1:2\n")
    refuses(tmp_path / "data", "data:2:1: the line has no label")
    skipped = MCPClassifier().fit_stream(tmp_path / "data", on_bad="skip")
    assert skipped.classes_.tolist() == ["a", "b"]


def test_options_of_reading_are_for_files():
    with pytest.raises(TypeError, match="bits is an option for reading files; leave it out for chunks"):
        MCPClassifier().fit_stream([([[1.0]], ["a"])], bits=5)


# Labels


@pytest.mark.parametrize("label", ["1.5", "-0.25", "2.5e-30", "1e-3", "3.000001"])
@pytest.mark.parametrize("kind", ["data", "data.arrow"])
def test_labels_that_are_not_whole_are_refused_unless_the_user_insists(tmp_path, label, kind):
    (tmp_path / "data").write_text(f"1 1:1\n2.0 2:1\n{label} 3:1\n")
    if kind != "data":
        write_cache(open_stream(tmp_path / "data"), tmp_path / kind)
    line = "data:3" if kind == "data" else "data.arrow: example 3"
    error = refuses(tmp_path / kind, f"{line}: the label ")
    assert "is a number that is not whole" in error
    assert "any_labels=True (--any-labels)" in error
    learnt = MCPClassifier().fit_stream(tmp_path / kind, any_labels=True)
    assert len(learnt.classes_) == 3
    assert len(MCPClassifier().fit_stream(open_stream(tmp_path / kind, any_labels=True)).classes_) == 3
    assert len(outcome(tmp_path, "train", kind, "--model", "m", "--any-labels")["classes"]) == 3


@pytest.mark.parametrize("label", ["1.0", "+3", "1e3", "1e300", "-7", "1.2.3", "v1.5", "1,5", "0.5kg", "1_0.5", "nan"])
def test_whole_numbers_and_words_are_labels(tmp_path, label):
    (tmp_path / "data").write_text(f"0 1:1\n{label} 3:1\n")
    assert len(MCPClassifier().fit_stream(tmp_path / "data").classes_) == 2


def many_classes(n, first):
    """Return lines of one class, and from line `first` on a new class in each of `n` lines."""
    return "c 1:1\n" * first + "".join(f"n{k} 2:1\n" for k in range(n))


def read_to_learn(path, **options):
    stream = Stream(path, ReadOptions(purpose="learn", block_bytes=5000, **options))
    return [len(batch) for batch in stream.batches()]


def test_more_than_a_thousand_classes_are_refused_unless_they_come_late(tmp_path):
    (tmp_path / "data").write_text(many_classes(1000, first=1))
    error = refuses(tmp_path / "data", "data:1001: the label 'n999' is the 1,001st class after 1,001 examples")
    assert "any_labels=True (--any-labels)" in error
    assert sum(read_to_learn(tmp_path / "data", any_labels=True)) == 1001
    path = tmp_path / "data"
    path.write_text(many_classes(999, first=1))
    assert sum(read_to_learn(path)) == 1000
    path.write_text(many_classes(1000, first=18_999))
    with pytest.raises(StreamError, match="data:19999: the label 'n999' is the 1,001st class after 19,999 examples"):
        read_to_learn(path)
    path.write_text(many_classes(1500, first=19_000))
    assert sum(read_to_learn(path)) == 20_500


def test_doubtful_labels_can_be_read_and_evaluated(tmp_path):
    path = tmp_path / "data"
    path.write_text("0.5 1:1\n" + many_classes(1100, first=1))
    for purpose in ("read", "evaluate"):
        assert sum(map(len, open_stream(path, purpose=purpose).batches())) == 1102


def test_comparing_takes_the_same_labels_as_training(tmp_path):
    (tmp_path / "a.svm").write_text("0.5 1:1\n1.5 2:1\n" * 20)
    arguments = ["compare", "a.svm", "--rules", "mcp", "--split", 0.2]
    assert "the label 0.5 is a number that is not whole" in refuse(tmp_path, *arguments)
    assert outcome(tmp_path, *arguments, "--any-labels")["test_examples"] == 8
