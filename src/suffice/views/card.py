"""What a notebook shows of a model: how it was made, its graph where it is small, and its receipt."""

from __future__ import annotations

import html
from typing import Any

from suffice.errors import NotFittedError
from suffice.views.drawing import draw_graph
from suffice.views.layout import Placement
from suffice.views.portrait import graph_of

#: Nodes up to which the graph is drawn in a notebook.
MOST_DRAWN = 60
#: A notebook has no style sheet of ours: the parts of the drawing carry their colours themselves.
COLOURS = {
    'class="edge"': 'stroke="#7a8494" stroke-width="1.3"',
    'class="tip"': 'fill="#7a8494"',
    "<rect ": '<rect fill="#eef7f7" stroke="#0b6e75" stroke-width="1.3" ',
    "<text ": '<text fill="#1c2430" font-family="sans-serif" font-size="12" ',
}


def card_of(model: Any) -> str:
    """A `div` for a notebook."""
    parts = [f"<p><code>{html.escape(repr(model))}</code></p>", _graph(model)]
    try:
        parts.append(model.report_._repr_html_())
    except NotFittedError:
        parts.append("<p><em>not fitted</em></p>")
    return f"<div class='suffice-model'>{''.join(parts)}</div>"


def _graph(model: Any) -> str:
    if len(getattr(model, "nodes", None) or ()) > MOST_DRAWN:
        return ""
    placement = graph_of(model)
    if not isinstance(placement, Placement) or not placement.places:
        return ""
    drawn = draw_graph(placement, title=f"Graph of {len(placement.places)} nodes")
    for mark, colour in COLOURS.items():
        drawn = drawn.replace(mark, colour)
    return f"<div style='overflow-x:auto'>{drawn}</div>"
