"""Docstrings are plain text with code in backticks: signs that reStructuredText would read as markup are kept.

``mean_`` is an attribute and no link, ``x | y`` a condition and no substitution, ``a * b`` a product.
"""

import re
from typing import Any

from sphinx.application import Sphinx

#: Code, which is left alone, or a sign of markup.
MARKUP = re.compile(r"(``.+?``|`[^`]+`)|(?<=\w)_(?=\W|$)|[*|]")


def escape(line: str) -> str:
    """Escape the signs of one line outside of code."""
    if line.lstrip().startswith((">>>", "...")):
        return line
    return MARKUP.sub(lambda found: found[0] if found[1] else "\\" + found[0], line)


def keep_signs(app: Sphinx, kind: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Escape a docstring in place, but not the results of its examples."""
    shown = False  # between a prompt and the next blank line stands what Python prints
    for at, line in enumerate(lines):
        shown = bool(line.strip()) and (shown or line.lstrip().startswith(">>>"))
        if not shown:
            lines[at] = escape(line)


def setup(app: Sphinx) -> dict[str, bool]:
    """Run before the Google style is translated."""
    app.connect("autodoc-process-docstring", keep_signs, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
