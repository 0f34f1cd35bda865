"""Graphs as SVG: no style of their own, so that a page may colour them by class."""

from __future__ import annotations

import html
from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise

from suffice.views.layout import HEIGHT, Placement, Point, short_name

#: White space around a graph, in pixels.
FRAME = 8.0


def draw_graph(
    placement: Placement,
    *,
    title: str,
    link: Callable[[Hashable], str | None] = lambda _: None,
    identity: Callable[[Hashable], str] | None = None,
) -> str:
    """The graph as one `svg` element.

    Args:
        placement: where its nodes are.
        title: what is read aloud.
        link: the address that a node leads to, or None.
        identity: a name for each node by which a script finds it.
    """
    wide, high = placement.width + 2 * FRAME, placement.height + 2 * FRAME
    parts = [
        f'<svg class="graph" role="group" aria-label="{html.escape(title)}" viewBox="0 0 {wide:.1f} {high:.1f}" '
        f'width="{wide:.0f}" height="{high:.0f}" xmlns="http://www.w3.org/2000/svg">',
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="8.5" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="tip" d="M0 0.8 L10 5 L0 9.2 L2.4 5 z"/></marker></defs>',
        f'<g transform="translate({FRAME:.0f} {FRAME:.0f})">',
    ]
    mark = ' marker-end="url(#tip)"' if placement.directed else ""
    for route in placement.routes:
        d = _curve(route) if placement.directed else _line(route)
        parts.append(f'<path class="edge" d="{d}"{mark} fill="none"/>')
    for node, (x, y) in placement.places.items():
        parts.append(_box(node, x, y, placement.widths[node], link(node), identity(node) if identity else None))
    return "".join([*parts, "</g></svg>"])


def _box(node: Hashable, x: float, y: float, wide: float, link: str | None, identity: str | None) -> str:
    whole = f"<title>{html.escape(str(node))}</title>" if short_name(node) != str(node) else ""
    mark = f' data-node="{html.escape(identity)}"' if identity else ""
    shape = (
        f'<g class="node"{mark}>{whole}<rect x="{x - wide / 2:.1f}" y="{y - HEIGHT / 2:.1f}" width="{wide:.1f}" '
        f'height="{HEIGHT:.0f}" rx="8"/><text x="{x:.1f}" y="{y + 4.2:.1f}" text-anchor="middle">'
        f"{html.escape(short_name(node))}</text></g>"
    )
    return shape if link is None else f'<a href="{html.escape(link)}">{shape}</a>'


def _line(route: Sequence[Point]) -> str:
    return "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in route)


def _curve(route: Sequence[Point]) -> str:
    """From the lower side of the first box to the upper side of the last: smooth, and upright at both ends."""
    points = [(route[0][0], route[0][1] + HEIGHT / 2), *route[1:-1], (route[-1][0], route[-1][1] - HEIGHT / 2 - 1)]
    around = zip(points, points[2:], strict=False)
    slopes = [0.0, *((after[0] - before[0]) / (after[1] - before[1]) for before, after in around), 0.0]
    d = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for piece, ((x0, y0), (x1, y1)) in enumerate(pairwise(points)):
        reach = (y1 - y0) * (0.5 if len(points) == 2 else 0.4)
        first = f"{x0 + slopes[piece] * reach:.1f} {y0 + reach:.1f}"
        second = f"{x1 - slopes[piece + 1] * reach:.1f} {y1 - reach:.1f}"
        d += f" C{first} {second} {x1:.1f} {y1:.1f}"
    return d
