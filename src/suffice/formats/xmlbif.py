"""XMLBIF (version 0.3), the XML interchange format of JavaBayes, Weka, pgmpy and pyAgrum.

The values of a ``TABLE`` have the ``FOR`` variable fastest, then the last ``GIVEN``; the first ``GIVEN`` is slowest:
the axes (parents ..., node). The inline DTD of the format is accepted; a file that declares entities is refused.
"""

from __future__ import annotations

from xml.sax.saxutils import escape

from suffice.formats import streams
from suffice.formats.labels import as_text
from suffice.formats.networks import NAMELESS, Draft, TableNetwork
from suffice.formats.tokens import numbers
from suffice.formats.xmltree import Element, XmlDocument, refused


def load(source: streams.Source) -> TableNetwork:
    """Read a network from a path (also gzipped) or a stream."""
    content = streams.read(source)
    return parse(content.data, content.name)


def save(path: streams.FilePath, network: TableNetwork) -> None:
    """Write a network; a name that ends in .gz is packed."""
    streams.write(path, render(network))


def parse(text: str | bytes, name: str = "<text>") -> TableNetwork:
    """Read a network from text; `name` stands for the file in messages."""
    document = XmlDocument(text, name)
    root = document.root
    if root.tag != "BIF":
        raise document.error(f"found <{root.tag}>; expected <BIF>, the root of an XMLBIF file", root.position)
    network = document.one(root, "NETWORK", "the file")
    draft = Draft(document)
    variables, definitions = network.all("VARIABLE"), network.all("DEFINITION")
    names = [_read_variable(document, draft, element) for element in variables]
    nodes = [_read_definition(document, draft, element) for element in definitions]
    title = next((element.text for element in network.all("NAME")), "")
    return draft.finish(
        {
            "name": "" if title == NAMELESS else title,
            "network": _properties(network),
            "variables": dict(zip(names, map(_properties, variables), strict=True)),
            "tables": dict(zip(nodes, map(_properties, definitions), strict=True)),
        }
    )


def _properties(element: Element) -> tuple[str, ...]:
    return tuple(child.text for child in element.all("PROPERTY"))


def _read_variable(document: XmlDocument, draft: Draft, element: Element) -> str:
    name = document.one(element, "NAME", "a variable").text
    kind = element.attributes.get("TYPE", "nature")
    if kind != "nature":
        raise document.error(f"variable {name!r} is of type {kind!r}; only 'nature' can be read", element.position)
    draft.declare(name, [outcome.text for outcome in element.all("OUTCOME")], element.position)
    return name


def _read_definition(document: XmlDocument, draft: Draft, element: Element) -> str:
    node = document.one(element, "FOR", "a definition").text
    parents = [given.text for given in element.all("GIVEN")]
    table = document.one(element, "TABLE", f"the definition of node {node!r}")
    draft.fill(node, parents, document.floats(table), element.position)
    return node


def render(network: TableNetwork) -> str:
    """The network as text; every float is its shortest exact decimal, so that reading gives the same bits."""
    written = as_text(network, "XMLBIF", refused)
    parts = ['<?xml version="1.0" encoding="UTF-8"?>\n<BIF VERSION="0.3">\n<NETWORK>\n']
    parts.append(_line("NAME", written.name or NAMELESS))
    parts += [_line("PROPERTY", text) for text in written.about]
    for node in written.nodes:
        parts.append('<VARIABLE TYPE="nature">\n' + _line("NAME", node.name, 1))
        parts += [_line("OUTCOME", state, 1) for state in node.states]
        parts += [_line("PROPERTY", text, 1) for text in node.about]
        parts.append("</VARIABLE>\n")
    for node in written.nodes:
        parts.append("<DEFINITION>\n" + _line("FOR", node.name, 1))
        parts += [_line("GIVEN", parent, 1) for parent in node.parents]
        parts.append(_line("TABLE", "\n".join(map(numbers, node.table)), 1))
        parts += [_line("PROPERTY", text, 1) for text in node.about_table]
        parts.append("</DEFINITION>\n")
    parts.append("</NETWORK>\n</BIF>\n")
    return "".join(parts)


def _line(tag: str, text: str, depth: int = 0) -> str:
    return f"{'  ' * depth}<{tag}>{escape(text)}</{tag}>\n"
