"""The scripts docs/generate_*.py as modules."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def load_generator(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
