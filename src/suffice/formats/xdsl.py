"""XDSL, the XML format of GeNIe and SMILE.

The values of ``<probabilities>`` have the node fastest, then the last parent; the first parent is slowest: the axes
(parents ..., node). pyAgrum writes the first parent before the last one: files that name aGrUM as their author are read
so. A ``<deterministic>`` node gives its state for each row in ``<resultingstates>``. A ``<noisymax>`` node has in
``<strengths>`` the states of each parent, strongest first, and in ``<parameters>`` what each of these brings about by
itself (the parameters of Diez, without the leak) and, last, the leak; its states stand from the highest to the lowest,
which the weakest state of a parent brings about. Other kinds of node (equations, decisions, utilities, time slices) are
refused by name.
"""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from suffice.array_types import Floats
from suffice.choices import ParentOrder
from suffice.domain import Domain, Variable
from suffice.errors import OptionError
from suffice.formats import streams
from suffice.formats.labels import as_text
from suffice.formats.networks import NAMELESS, Draft, GradedCauses, TableNetwork, faulty_row
from suffice.formats.tokens import numbers
from suffice.formats.xmltree import Element, XmlDocument, refused

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def load(source: streams.Source, parent_order: ParentOrder | None = None) -> TableNetwork:
    """Read a network from a path (also gzipped) or a stream.

    parent_order: "forward" where the last parent is the fastest, "reversed" where the first one is; by default as the
        author that the file names writes it.
    """
    content = streams.read(source)
    return parse(content.data, content.name, parent_order)


def save(path: streams.FilePath, network: TableNetwork) -> None:
    """Write a network; a name that ends in .gz is packed."""
    streams.write(path, render(network))


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
            "name": "" if root.attributes.get("id") == NAMELESS else root.attributes.get("id", ""),
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
    if node.tag not in ("cpt", "deterministic", "noisymax"):
        raise document.error(
            f"node {name!r} is <{node.tag}>; only <cpt>, <deterministic> and <noisymax> can be read", node.position
        )
    states = [state.attributes.get("id") for state in node.all("state")]
    if None in states:
        raise document.error(f"a state of node {name!r} has no attribute 'id'", node.position)
    draft.declare(name, states, node.position)
    return name


def _define(document: XmlDocument, draft: Draft, name: str, node: Element, *, first_is_fastest: bool) -> None:
    parents = [word for element in node.all("parents") for word in element.text.split()]
    if node.tag == "noisymax":
        words = document.one(node, "strengths", f"node {name!r}").text.split()
        if wrong := [word for word in words if not word.isdecimal()]:
            raise document.error(f"<strengths> of node {name!r} holds {wrong[0]!r}, no number", node.position)
        values = document.floats(document.one(node, "parameters", f"node {name!r}"))
        draft.cause(name, parents, [int(word) for word in words], values, node.position)
        return
    parents = parents[::-1] if first_is_fastest else parents
    if node.tag == "cpt":
        table = document.one(node, "probabilities", f"node {name!r}")
        draft.fill(name, parents, document.floats(table), node.position)
    else:
        states = document.one(node, "resultingstates", f"node {name!r}").text.split()
        draft.choose(name, parents, states, node.position)


def render(network: TableNetwork) -> str:
    """The network as text; every float is its shortest exact decimal, so that reading gives the same bits.

    The states of a noisy-MAX node are written from the highest to the lowest, as the format has them.
    """
    turned = _highest_first(network)
    written = as_text(turned, "XDSL", _refused, refuse_about=refused, graded=True)
    parts = ['<?xml version="1.0" encoding="UTF-8"?>\n']
    parts.append(f'<smile version="1.0" id={quoteattr(written.name or NAMELESS)}>\n')
    if written.about:
        parts += ["  <properties>\n", *(_property(text, 2) for text in written.about), "  </properties>\n"]
    parts.append("  <nodes>\n")
    for name, node in zip(turned.domain.names, written.nodes, strict=True):
        causes = turned.causes.get(name)
        tag = "cpt" if causes is None else "noisymax"
        parts.append(f"    <{tag} id={quoteattr(node.name)}>\n")
        parts += [f"      <state id={quoteattr(state)} />\n" for state in node.states]
        if node.parents:
            parts.append(f"      <parents>{' '.join(node.parents)}</parents>\n")
        parts += [_property(text, 3) for text in node.about]
        if causes is None:
            parts.append(f"      <probabilities>{' '.join(map(numbers, node.table))}</probabilities>\n")
        else:
            orders = [_strengths(*one) for one in zip(causes.effects, causes.inactive, strict=True)]
            rows = [row for effect, order in zip(causes.effects, orders, strict=True) for row in effect[order]]
            if fault := faulty_row(np.stack([*rows, causes.leak])):
                raise OptionError(f"The file would not be read again: a cause of node {node.name!r} {fault[1]}.")
            strengths = " ".join(str(code) for order in orders for code in order)
            parts.append(f"      <strengths>{strengths}</strengths>\n")
            parts.append(f"      <parameters>{' '.join(map(numbers, [*rows, causes.leak]))}</parameters>\n")
        parts.append(f"    </{tag}>\n")
    parts.append("  </nodes>\n</smile>\n")
    return "".join(parts)


def _strengths(effect: Floats, resting: int) -> list[int]:
    """The codes of a parent, the largest effects first and the one that causes nothing last."""
    others = [code for code in range(len(effect)) if code != resting]
    states = np.arange(effect.shape[1])
    return [*sorted(others, key=lambda code: float(effect[code] @ states)), resting]


def _highest_first(network: TableNetwork) -> TableNetwork:
    """The same network with the states of its noisy-MAX nodes from the highest to the lowest."""
    places = {node: list(causes.order[::-1]) for node, causes in network.causes.items()}
    variables = [
        Variable.discrete(v.name, [v.states[code] for code in places[v.name]]) if v.name in places else v
        for v in network.domain.variables
    ]
    tables, graded = dict(network.tables), {}
    for node, parents in network.parents.items():
        if node in tables:
            for axis, name in enumerate((*parents, node)):
                if name in places:
                    tables[node] = np.take(tables[node], places[name], axis=axis)
            continue
        causes, own = network.causes[node], places[node]
        effects = [
            effect[places[parent] if parent in places else slice(None)][:, own]
            for parent, effect in zip(parents, causes.effects, strict=True)
        ]
        inactive = tuple(
            places[parent].index(code) if parent in places else code
            for parent, code in zip(parents, causes.inactive, strict=True)
        )
        graded[node] = GradedCauses(tuple(range(len(own)))[::-1], inactive, causes.leak[own], tuple(effects))
    return TableNetwork(Domain(variables), network.parents, tables, network.notes, network.properties, graded)


def _property(text: str, depth: int) -> str:
    """A property as an element; ``key = text`` has its key."""
    key, equals, rest = text.partition(" = ")
    key, rest = (key, rest) if equals and _NAME.fullmatch(key) else ("note", text)
    return f"{'  ' * depth}<property id={quoteattr(key)}>{escape(rest)}</property>\n"


def _refused(text: str) -> str | None:
    """Why GeNIe cannot take this label."""
    if not _NAME.fullmatch(text):
        return "which is no identifier of GeNIe: a letter, then letters, digits and underscores"
    return None


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
