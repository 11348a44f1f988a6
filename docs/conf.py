"""Sphinx configuration; build the documentation with ``make docs``."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
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
numpydoc_show_class_members = False  # the template of a class page lists them

html_theme = "pydata_sphinx_theme"
html_title = "maxcosine"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
html_math_renderer = "mathml"


def skip_metadata_routing(
    app: Sphinx, what: str, name: str, obj: object, skip: bool, options: object
) -> bool | None:
    """Leave out the metadata routing methods that scikit-learn adds to every estimator."""
    generated = name.startswith("set_") and name.endswith("_request")
    return True if generated or name == "get_metadata_routing" else None


def visit_math(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def visit_math_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    translator.body.append(tex2mathml(node.astext(), as_block=True) + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.connect("autodoc-skip-member", skip_metadata_routing)
    # Browsers render MathML themselves: formulas need neither a script nor the network.
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
