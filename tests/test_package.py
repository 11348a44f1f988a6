"""The package as others meet it."""

import importlib.metadata
import importlib.resources
import pathlib
import re
import subprocess
import sys
import tomllib

import pytest

import maxcosine
from maxcosine import RULES, OnlineClassifier

ROOT = pathlib.Path(__file__).parents[1]

WITHOUT_SKLEARN = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "sklearn":
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
import maxcosine, maxcosine.model, maxcosine.engine, maxcosine.rules
assert maxcosine.framework and maxcosine.RULES and maxcosine.Certificate
assert not [name for name in sys.modules if name.partition(".")[0] == "sklearn"]
"""


def test_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    citation = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert citation[1].strip("\"'") == maxcosine.__version__
    if "version" in project["project"]:
        assert project["project"]["version"] == maxcosine.__version__
    else:
        assert project["tool"]["hatch"]["version"]["path"] == "src/maxcosine/__init__.py"
    assert importlib.metadata.version("maxcosine") == maxcosine.__version__


def test_changelog_knows_the_version():
    assert maxcosine.__version__ in (ROOT / "CHANGELOG.md").read_text()


def test_types_are_shipped():
    assert importlib.resources.files("maxcosine").joinpath("py.typed").is_file()


@pytest.mark.parametrize("name", maxcosine.__all__)
def test_public_names_resolve_and_are_listed(name):
    assert getattr(maxcosine, name) is not None
    assert name in dir(maxcosine)


def test_public_things_are_documented():
    for name in set(maxcosine.__all__) - {"RULES"}:
        assert getattr(maxcosine, name).__doc__


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        maxcosine.nothing  # noqa: B018


def test_imports_without_scikit_learn():
    subprocess.run([sys.executable, "-c", WITHOUT_SKLEARN], check=True)


def test_every_rule_has_a_named_class_and_the_variants_of_pa_share_one():
    classes = [getattr(maxcosine, name) for name in maxcosine.__all__ if name.endswith("Classifier")]
    classes.remove(OnlineClassifier)
    assert {cls().rule_name for cls in classes} == set(RULES) - {"pa1", "pa2"}
    assert len(classes) == len(RULES) - 2
    assert {maxcosine.PAClassifier(variant).rule_name for variant in ("pa1", "pa2")} == {"pa1", "pa2"}
