"""docs/results/records.md agrees with the committed figures."""

import importlib
import json

import pyarrow.parquet
import pytest

from tests.docs.generators import DOCS, load_generator

RESULTS = json.loads((DOCS / "results" / "records.json").read_text(encoding="utf-8"))
PAGE = (DOCS / "results" / "records.md").read_text(encoding="utf-8")
SECTIONS = [section for part in RESULTS.values() for section in part["sections"]]
FOUND = {f"{section['title']}: {one['work']}": one for section in SECTIONS for one in section["results"]}
LOSSES = PAGE.partition("## Where it misses")[2].partition("\n## ")[0]


def test_page_is_the_output_of_the_generator():
    assert load_generator("generate_records").page(RESULTS) == PAGE


@pytest.mark.parametrize("work", FOUND)
def test_what_misses_its_target_or_is_behind_is_listed(work):
    one = FOUND[work]
    behind = one["peer"] is not None and one["ours"] > one["peer"]
    worse = one["error"] is not None and one["error"] > one["peer_error"]
    assert (f"- {work}: " in LOSSES) == (one["reached"] is False or behind or worse)


@pytest.fixture
def memory(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS.parent / "benchmarks"))
    return importlib.import_module("record_memory")


@pytest.mark.parametrize("name", ["jsonl", "csv", "parquet"])
def test_generated_files_have_so_many_bytes_and_words_of_their_own(memory, monkeypatch, tmp_path, name):
    monkeypatch.setattr(memory, "ROW_GROUP_BYTES", 10_000)
    texts = ['From: a@b.edu Lines: 3 He said, "no"', "From: c@d.org Lines: 5 Nothing"]
    records = memory.real_records(texts, ["one", "two"])
    file = tmp_path / f"generated.{name}"
    memory.WRITERS[name](file, records, 200_000)
    assert 200_000 <= file.stat().st_size < 1_000_000
    if name == "parquet":
        table = pyarrow.parquet.read_table(file)
    else:
        reader = importlib.import_module("pyarrow.json" if name == "jsonl" else "pyarrow.csv")
        table = (reader.read_json if name == "jsonl" else reader.read_csv)(file)
    words = [text.split(" ", 1) for text in table["text"].to_pylist()]
    assert len({word for word, _ in words}) == len(table)
    assert {text for _, text in words} == set(texts)
    assert set(zip(table["label"].to_pylist(), table["domain"].to_pylist(), strict=True)) == {
        ("one", "edu"),
        ("two", "org"),
    }
