"""Formulas as MathML, which browsers draw by themselves: no script, no network."""

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)
#: The name of a function, whose argument does not stand in brackets.
FUNCTION = re.compile(r"(<mi>(?:log|exp|det)</mi>)(?!\s*<mo[^>]*>[(\[|])")
SPACE = r'\1<mspace width="0.17em"></mspace>'


def translated(node: nodes.Element, *, as_block: bool) -> str:
    """The MathML of a formula; one that cannot be read is a warning that names its place."""
    try:
        return FUNCTION.sub(SPACE, str(tex2mathml(node.astext(), as_block=as_block)))
    except MathError as error:
        LOGGER.warning("%s in the formula %r", error, node.astext(), location=node)
        return ""


def inline(translator: HTML5Translator, node: nodes.math) -> None:
    """A formula in a line of text."""
    translator.body.append(translated(node, as_block=False))
    raise nodes.SkipNode


def block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """A formula on lines of its own."""
    translator.body.append(f"<div>{translated(node, as_block=True)}</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Enter the renderer that conf.py names."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
