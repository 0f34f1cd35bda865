"""Settings of the documents: MyST pages, plots drawn while the pages are built, formulas as MathML."""

import sys
from pathlib import Path

import suffice

HERE = Path(__file__).resolve().parent
# `figures` runs the code of the pages with the very functions by which the tests run it.
sys.path[:0] = [str(HERE / "extensions"), str(HERE.parent / "tests")]

project = "suffice"
author = "The suffice developers"
copyright = "The suffice developers, BSD-3-Clause"
version = release = suffice.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "docstrings",
    "figures",
    "formulas",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"suffice {version}"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["page.css"]
html_math_renderer = "mathml"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# Methods in every sidebar of every page would double the time of a build.
toc_object_entries = False

default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_numpy_docstring = False
