"""Sphinx configuration; build with ``make docs``."""

import os

# Without Numba's wrappers autodoc sees plain functions, with their signatures and docstrings.
os.environ["NUMBA_DISABLE_JIT"] = "1"

from sphinx.application import Sphinx

from maxcosine import __version__

project = "maxcosine"
author = "The maxcosine developers"
copyright = "2026, The maxcosine developers"
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # autodoc lists them

html_theme = "pydata_sphinx_theme"
html_title = "maxcosine"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
html_sidebars = {"**": []}


def skip_metadata_routing(
    app: Sphinx, what: str, name: str, obj: object, skip: bool, options: object
) -> bool | None:
    """Leave out the set_*_request methods that scikit-learn adds to every estimator."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def setup(app: Sphinx) -> None:
    app.connect("autodoc-skip-member", skip_metadata_routing)
