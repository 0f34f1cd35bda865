"""What a notebook shows of a model: how it was made, its graph where it is small, and its receipt."""

from __future__ import annotations

import html

from suffice.fitting.portrait import Portrait
from suffice.fitting.report import Report
from suffice.views.drawing import draw_graph
from suffice.views.layout import place_graph

#: Nodes up to which the graph is drawn in a notebook.
MOST_DRAWN = 60
#: A notebook has no style sheet of ours: the parts of the drawing carry their colours themselves.
COLOURS = {
    'class="edge"': 'stroke="#7a8494" stroke-width="1.3"',
    'class="tip"': 'fill="#7a8494"',
    "<rect ": '<rect fill="#eef7f7" stroke="#0b6e75" stroke-width="1.3" ',
    "<text ": '<text fill="#1c2430" font-family="sans-serif" font-size="12" ',
}


def card_of(made: str, portrait: Portrait, report: Report | None) -> str:
    """A `div` for a notebook."""
    receipt = "<p><em>not fitted</em></p>" if report is None else report._repr_html_()
    parts = [f"<p><code>{html.escape(made)}</code></p>", _graph(portrait), receipt]
    return f"<div class='suffice-model'>{''.join(parts)}</div>"


def _graph(portrait: Portrait) -> str:
    graph = portrait.graph
    if graph is None or not 0 < len(graph.nodes) <= MOST_DRAWN:
        return ""
    drawn = draw_graph(place_graph(graph), title=f"Graph of {len(graph.nodes)} nodes")
    for mark, colour in COLOURS.items():
        drawn = drawn.replace(mark, colour)
    return f"<div style='overflow-x:auto'>{drawn}</div>"
