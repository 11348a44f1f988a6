"""docs/performance.md says what the committed measurements say."""

import importlib.util
import json
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def load_generator():
    spec = importlib.util.spec_from_file_location("generate_performance", DOCS / "generate_performance.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_generator_makes():
    results = json.loads((DOCS / "results" / "performance.json").read_text(encoding="utf-8"))
    page = (DOCS / "performance.md").read_text(encoding="utf-8")
    assert load_generator().page(results) == page
    for row in results["works"]:
        assert f"**{row['peer_s'] / row['ours_s']:.1f}**" in page
        said_short = f"{row['work']}: {row['ratio']:.1f} times as fast" in page
        assert said_short == (row["ratio"] < row["least"])
