"""The package as its users meet it: names, versions, documentation, imports."""

import importlib.metadata
import importlib.resources
import inspect
import pathlib
import re
import subprocess
import sys

import pytest

import maxcosine
from maxcosine import RULES, OnlineClassifier

ROOT = pathlib.Path(__file__).parents[1]

CLASSIFIERS = [name for name in maxcosine.__all__ if name.endswith("Classifier")]

WITHOUT_SKLEARN = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "sklearn":
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
import maxcosine, maxcosine.model_file, maxcosine.merging, maxcosine.training
assert maxcosine.framework and maxcosine.RULES and maxcosine.Certificate
assert not {"sklearn", "pyarrow", "numba", "sympy"} & set(sys.modules)
"""


def test_version_is_the_same_everywhere():
    citation = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert citation[1].strip("\"'") == maxcosine.__version__
    assert importlib.metadata.version("maxcosine") == maxcosine.__version__
    assert maxcosine.__version__ in (ROOT / "CHANGELOG.md").read_text()


def test_types_are_shipped():
    assert importlib.resources.files("maxcosine").joinpath("py.typed").is_file()


def test_public_names_resolve_and_are_listed():
    for name in maxcosine.__all__:
        assert getattr(maxcosine, name) is not None
        assert name in dir(maxcosine)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        maxcosine.nothing  # noqa: B018


def test_imports_without_scikit_learn():
    subprocess.run([sys.executable, "-c", WITHOUT_SKLEARN], check=True)


def test_every_rule_has_a_class_and_the_variants_of_pa_share_one():
    classes = [
        getattr(maxcosine, name) for name in CLASSIFIERS if name not in ("OnlineClassifier", "OnePassClassifier")
    ]
    assert {cls().rule_name for cls in classes} == set(RULES) - {"pa", "pa2"}
    assert {maxcosine.PAClassifier(variant).rule_name for variant in ("pa", "pa2")} == {"pa", "pa2"}
    assert OnlineClassifier().rule in RULES


# numpydoc's own checks: a docstring in its place, every parameter documented, in whole sentences.
CHECKS = {"GL06", "GL07", "GL08", "PR01", "PR02", "PR04", "PR06", "PR07", "PR08", "PR09", "PR10"} | {
    "RT01", "RT03", "RT04", "RT05", "SS03", "SS05", "SS06", "YD01",
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_are_documented_parameter_by_parameter(name):
    validate = pytest.importorskip("numpydoc.validate").validate
    cls = getattr(maxcosine, name)
    own = [attribute for attribute in dir(cls) if not attribute.startswith("_") and _is_ours(cls, attribute)]
    for path in (f"maxcosine.{name}", *(f"maxcosine.{name}.{attribute}" for attribute in own)):
        faults = [(code, text) for code, text in validate(path)["errors"] if code in CHECKS]
        assert not faults, path
    for section in ("Parameters", "Attributes", "References", "Examples"):
        assert f"\n    {section}\n    ---" in cls.__doc__
    attributes = cls.__doc__.partition("Attributes\n")[2]
    assert all(f"    {attribute} : " in attributes for attribute in own if attribute.endswith("_"))


def _is_ours(cls, name):
    value = inspect.getattr_static(cls, name)
    function = value.fget if isinstance(value, property) else value
    return getattr(function, "__module__", "").startswith("maxcosine")
