"""docs/shards.md includes tables that agree with the committed measurements."""

import json

from tests.docs.generators import DOCS, load_generator


def test_tables_are_the_output_of_the_generator():
    results = json.loads((DOCS / "results" / "distribute.json").read_text(encoding="utf-8"))
    tables = (DOCS / "results" / "distribute.inc").read_text(encoding="utf-8")
    assert load_generator("generate_distribute").sections(results) == tables
