"""Sphinx configuration; build the documentation with ``make docs``."""

import os
import re
import subprocess
import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.writers.html5 import HTML5Translator

from maxcosine import __version__

project = "maxcosine"
author = "The maxcosine developers"
copyright = "2026, The maxcosine developers"
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
]
templates_path = ["_templates"]
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "groupwise"
autodoc_typehints = "none"  # the docstrings name the types
numpydoc_show_class_members = False  # the template of a class page lists them

html_theme = "pydata_sphinx_theme"
html_title = "maxcosine"
html_static_path = ["_static"]
html_css_files = ["formulas.css"]
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
html_math_renderer = "mathml"


COMMANDS = (
    *("train", "predict", "score", "evaluate", "inspect", "explain", "compare", "convert", "merge"),
    *("reproduce", "derive", "explore"),
)


def write_help(app: Sphinx) -> None:
    """Write the help text of each command to a file that reference/commands.md includes."""
    folder = Path(app.srcdir) / "reference" / "generated"
    folder.mkdir(exist_ok=True)
    for command in COMMANDS:
        text = subprocess.run(
            [sys.executable, "-m", "maxcosine", command, "--help"],
            env={**os.environ, "COLUMNS": "100"},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        (folder / f"{command}.txt").write_text(text.strip() + "\n")


def check_offline(app: Sphinx, exception: Exception | None) -> None:
    """Fail if a page loads anything from the network."""
    loads = re.compile(r'<(?:script|link|img|iframe)\b[^>]*(?:src|href)="(?:https?:)?//[^"]*"')
    for page in Path(app.outdir).rglob("*.html"):
        if found := loads.search(page.read_text(encoding="utf-8")):
            raise ExtensionError(f"{page} needs the network: {found[0]}")


def skip_inherited(app: Sphinx, what: str, name: str, obj: object, skip: bool, options: object) -> bool | None:
    """Leave out methods that scikit-learn adds to every estimator: metadata routing, and `set_output`."""
    generated = name.startswith("set_") and name.endswith("_request")
    return True if generated or name in ("get_metadata_routing", "set_output") else None


def visit_math(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def visit_math_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(translator.starttag(node, "div", CLASS="formula"))
    translator.body.append(tex2mathml(node.astext(), as_block=True) + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", write_help)
    app.connect("build-finished", check_offline)
    app.connect("autodoc-skip-member", skip_inherited)
    # Browsers render MathML themselves: formulas need neither a script nor the network.
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
