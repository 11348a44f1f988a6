"""docs/performance.md agrees with the committed measurements."""

import json

from tests.docs.generators import DOCS, load_generator


def test_page_is_the_output_of_the_generator():
    results = json.loads((DOCS / "results" / "performance.json").read_text(encoding="utf-8"))
    page = (DOCS / "performance.md").read_text(encoding="utf-8")
    assert load_generator("generate_performance").page(results) == page
