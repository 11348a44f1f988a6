"""docs/distribute.md says what the committed results file says."""

import importlib.util
import json
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_measured_part_is_what_the_generator_makes():
    spec = importlib.util.spec_from_file_location("generate_distribute", DOCS / "generate_distribute.py")
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    found = json.loads((DOCS / "results" / "distribute.json").read_text())
    assert generator.sections(found) == (DOCS / "results" / "distribute.inc").read_text(encoding="utf-8")
