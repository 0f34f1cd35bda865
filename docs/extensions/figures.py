"""Run the code of a page that plots, and put each figure below the block that draws it.

Figures are SVG inside the page, so that a build writes nothing but its own folder. A block that fails, or prints
something else than the page says, fails the build.
"""

import base64
import io
import os
from html import escape
from typing import Any

from sphinx.application import Sphinx

from documents import Example, examples_of, run_examples

STYLE = "background: white; border-radius: 0.4rem; max-width: 100%; padding: 0.3rem"


def draw(figure: Any) -> str:
    """A figure as a MyST block; the titles of its axes are the text for those who cannot see it."""
    image = io.BytesIO()
    figure.savefig(image, format="svg", bbox_inches="tight", metadata={"Date": None})
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    source = "data:image/svg+xml;base64," + base64.b64encode(image.getvalue()).decode()
    alt = escape("; ".join(titles) or "plot")
    return f'\n\n```{{raw}} html\n<p><img style="{STYLE}" alt="{alt}" src="{source}"></p>\n```\n'


def run_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """Insert the figures of a page after the blocks that leave them open."""
    if "matplotlib" not in source[0]:
        return
    from matplotlib import pyplot

    pyplot.rcParams.update({"svg.hashsalt": docname, "axes.spines.top": False, "axes.spines.right": False})
    drawn: list[tuple[int, str]] = []

    def collect(example: Example) -> None:
        drawn.extend((example.end, draw(pyplot.figure(number))) for number in pyplot.get_fignums())
        pyplot.close("all")

    run_examples(examples_of(source[0]), docname, collect)
    for end, block in reversed(drawn):
        source[0] = source[0][:end] + block + source[0][end:]


def setup(app: Sphinx) -> dict[str, bool]:
    """Enter the extension."""
    os.environ["MPLBACKEND"] = "agg"  # No window system is needed.
    app.connect("source-read", run_page)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
