"""XDSL, the XML format of GeNIe and SMILE; read only.

The values of ``<probabilities>`` have the node fastest, then the last parent; the first parent is slowest: the axes
(parents ..., node). pyAgrum writes the first parent before the last one: files that name aGrUM as their author are read
so. A ``<deterministic>`` node gives its state for each row in ``<resultingstates>``. Other kinds of node (noisy-MAX,
equations, decisions, utilities, time slices) are refused by name.
"""

from __future__ import annotations

from suffice.choices import ParentOrder
from suffice.formats import streams
from suffice.formats.networks import Draft, TableNetwork
from suffice.formats.xmltree import Element, XmlDocument


def load(source: streams.Source, parent_order: ParentOrder | None = None) -> TableNetwork:
    """Read a network from a path (also gzipped) or a stream.

    parent_order: "forward" where the last parent is the fastest, "reversed" where the first one is; by default as the
        author that the file names writes it.
    """
    content = streams.read(source)
    return parse(content.data, content.name, parent_order)


def parse(text: str | bytes, name: str = "<text>", parent_order: ParentOrder | None = None) -> TableNetwork:
    """Read a network from text; `name` stands for the file in messages, and `parent_order` is as in `load`."""
    document = XmlDocument(text, name)
    root = document.root
    if root.tag != "smile":
        raise document.error(f"found <{root.tag}>; expected <smile>, the root of an XDSL file", root.position)
    if root.all("dynamic"):
        raise document.error(
            "the network has time slices (<dynamic>), which cannot be read", root.all("dynamic")[0].position
        )
    nodes = document.one(root, "nodes", "the file").children
    draft = Draft(document)
    names = [_declare(document, draft, node) for node in nodes]
    by_agrum = any(app.startswith("aGrUM") for app in _authors(root))
    reverse = by_agrum if parent_order is None else parent_order == "reversed"
    for node_name, node in zip(names, nodes, strict=True):
        _define(document, draft, node_name, node, first_is_fastest=reverse)
    titles = _titles(root)
    return draft.finish(
        {
            "name": root.attributes.get("id", ""),
            "network": [text for element in root.all("properties") for text in _properties(element)],
            "variables": {
                node_name: _properties(node, titles.get(node_name))
                for node_name, node in zip(names, nodes, strict=True)
            },
        }
    )


def _declare(document: XmlDocument, draft: Draft, node: Element) -> str:
    name = node.attributes.get("id")
    if name is None:
        raise document.error(f"<{node.tag}> has no attribute 'id'", node.position)
    if node.tag not in ("cpt", "deterministic"):
        raise document.error(
            f"node {name!r} is <{node.tag}>; only <cpt> and <deterministic> can be read", node.position
        )
    states = [state.attributes.get("id") for state in node.all("state")]
    if None in states:
        raise document.error(f"a state of node {name!r} has no attribute 'id'", node.position)
    draft.declare(name, states, node.position)
    return name


def _define(document: XmlDocument, draft: Draft, name: str, node: Element, *, first_is_fastest: bool) -> None:
    parents = [word for element in node.all("parents") for word in element.text.split()]
    parents = parents[::-1] if first_is_fastest else parents
    if node.tag == "cpt":
        table = document.one(node, "probabilities", f"node {name!r}")
        draft.fill(name, parents, document.floats(table), node.position)
    else:
        states = document.one(node, "resultingstates", f"node {name!r}").text.split()
        draft.choose(name, parents, states, node.position)


def _properties(element: Element, title: str | None = None) -> tuple[str, ...]:
    """Properties of the user as ``key = text``, and the title that the screen shows."""
    about = [f"{child.attributes.get('id', '')} = {child.text}" for child in element.all("property")]
    return (*([f"name = {title}"] if title else []), *about)


def _authors(root: Element) -> list[str]:
    """The programs that the extensions of the file name as their author."""
    return [element.attributes.get("app", "") for part in root.all("extensions") for element in part.all("genie")]


def _titles(root: Element) -> dict[str, str]:
    """Identifier -> the title of the node on the screen, where it differs."""
    titles = {}
    for extension in root.all("extensions"):
        for element in extension.inside():
            name = element.attributes.get("id", "")
            for title in element.all("name") if element.tag == "node" else ():
                if title.text != name:
                    titles[name] = title.text
    return titles
