"""DSL, the older text format of GeNIe and SMILE; read only.

::

    net example {
        node rain {
            TYPE = CPT;
            HEADER = { ID = rain; NAME = "Rain today"; };
            PARENTS = ();
            DEFINITION = { NAMESTATES = (yes, no); PROBABILITIES = (0.2, 0.8); };
        };
    };

The values of ``PROBABILITIES`` have the node fastest, then the last parent; the first parent is slowest: the axes
(parents ..., node). A ``TRUTHTABLE`` gives the state of the node for each row in ``RESULTINGSTATES``. A ``NOISY_MAX``
has in ``STRENGTHS`` the states of each parent, strongest first, and in ``PROBABILITIES`` what each of these brings
about and, last, the leak; the states of the node stand from the highest to the lowest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeVar

from suffice.array_types import Floats
from suffice.formats import streams
from suffice.formats.networks import Draft, TableNetwork
from suffice.formats.tokens import Scanner, Token

_Kept = TypeVar("_Kept")

MARKS = "=,;{}()"
MOST_DEPTH = 32
_VALUE = re.compile(r'[^;{}"]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^;{}"]*+)*+', re.DOTALL)


def load(source: streams.Source) -> TableNetwork:
    """Read a network from a path (also gzipped) or a stream."""
    return streams.load_text(source, parse)


@dataclass
class _AttributeBlock:
    """What stands between braces: the spans of attributes, and blocks by key."""

    values: dict[str, tuple[int, int]] = field(default_factory=dict)
    blocks: dict[str, _AttributeBlock] = field(default_factory=dict)

    def block(self, key: str) -> _AttributeBlock:
        """The block of that key, empty if there is none."""
        return self.blocks.get(key, _AttributeBlock())


@dataclass
class _Node:
    """A node: its identifier, its place and its block."""

    name: str
    position: int
    block: _AttributeBlock


def parse(text: str, name: str = "<text>") -> TableNetwork:
    """Read a network from text; `name` stands for the file in messages."""
    scanner = Scanner(text, name, marks=MARKS, comments=("//", "/*"))
    token = scanner.take()
    if token.kind != "word" or token.text != "net":
        raise scanner.wrong(token, "'net'")
    title = scanner.name_token("the name of the network")
    nodes: list[_Node] = []
    net = _read_block(scanner, nodes, 0)
    scanner.accept(";")
    if (token := scanner.take()).kind != "end":
        raise scanner.wrong(token, "the end of the file after the network")
    draft = Draft(scanner)
    for node in nodes:
        if "ID" in node.block.block("HEADER").values:
            node.name = _text(scanner, node.block.block("HEADER").values["ID"])
        draft.declare(node.name, _listed(scanner, node, "NAMESTATES"), node.position)
    for node in nodes:
        _read_table(scanner, draft, node)
    return draft.finish(
        {
            "name": title.text,
            "network": _attributes(scanner, net.block("HEADER"), "ID"),
            "variables": {node.name: _about(scanner, node) for node in nodes},
        }
    )


def _read_block(scanner: Scanner, nodes: list[_Node], depth: int) -> _AttributeBlock:
    """Attributes and blocks up to the closing brace; nodes are gathered wherever they stand."""
    opening = scanner.expect("{")
    if depth > MOST_DEPTH:
        raise scanner.error(f"blocks inside blocks, more than {MOST_DEPTH} deep", opening.start)
    block = _AttributeBlock()
    while not scanner.accept("}"):
        key = scanner.take()
        if key.kind != "word":
            raise scanner.wrong(key, "an attribute or '}'")
        token = scanner.peek()
        if token.kind in ("word", "string"):
            scanner.take()
            inner = _read_block(scanner, nodes, depth + 1)
            if key.text == "node":
                nodes.append(_Node(token.text, token.start, inner))
            scanner.accept(";")
            continue
        if scanner.accept("=") and not scanner.peek().is_mark("{"):
            _keep(scanner, block.values, key, _value_span(scanner))
        else:
            _keep(scanner, block.blocks, key, _read_block(scanner, nodes, depth + 1))
            scanner.accept(";")
    return block


def _keep(scanner: Scanner, kept: dict[str, _Kept], key: Token, value: _Kept) -> None:
    if key.text in kept:
        raise scanner.error(f"the attribute {key.text!r} is given twice", key.start)
    kept[key.text] = value


def _value_span(scanner: Scanner) -> tuple[int, int]:
    """Move over a value and the semicolon behind it; strings may hold semicolons."""
    start = scanner.peek().start
    match = _VALUE.match(scanner.text, start)
    assert match is not None  # The pattern matches nothing as well.
    scanner.position = match.end()
    scanner.expect(";")
    return start, match.end()


def _tokens(scanner: Scanner, span: tuple[int, int]) -> list[Token]:
    scanner.position = span[0]
    tokens = []
    while (token := scanner.peek()).end <= span[1] and token.kind != "end":
        tokens.append(scanner.take())
    return tokens


def _text(scanner: Scanner, span: tuple[int, int]) -> str:
    """The value as one word or string."""
    tokens = _tokens(scanner, span)
    if len(tokens) != 1 or tokens[0].kind == "mark":
        raise scanner.error("found no single word or string; expected one", span[0])
    return tokens[0].text


def _listed(scanner: Scanner, node: _Node, key: str) -> list[str]:
    """The words or strings of a list in brackets, with commas between them."""
    block = node.block if key == "PARENTS" else node.block.block("DEFINITION")
    if key not in block.values:
        raise scanner.error(f"node {node.name!r} has no {key!r}", node.position)
    tokens = _tokens(scanner, block.values[key])
    inner = [token for token in tokens[1:-1] if not token.is_mark(",")]
    bracketed = len(tokens) > 1 and tokens[0].is_mark("(") and tokens[-1].is_mark(")")
    if not bracketed or any(token.kind == "mark" for token in inner):
        raise scanner.error(f"{key!r} of node {node.name!r} is no list in brackets", block.values[key][0])
    return [token.text for token in inner]


def _read_table(scanner: Scanner, draft: Draft, node: _Node) -> None:
    values = node.block.values
    kind = _text(scanner, values["TYPE"]) if "TYPE" in values else "CPT"
    parents = _listed(scanner, node, "PARENTS") if "PARENTS" in values else []
    if kind == "CPT":
        draft.fill(node.name, parents, _probabilities(scanner, node), node.position)
    elif kind == "NOISY_MAX":
        words = _listed(scanner, node, "STRENGTHS")
        if wrong := [word for word in words if not word.isdecimal()]:
            raise scanner.error(f"'STRENGTHS' of node {node.name!r} holds {wrong[0]!r}, no number", node.position)
        strengths = [int(word) for word in words]
        draft.cause(node.name, parents, strengths, _probabilities(scanner, node), node.position)
    elif kind == "TRUTHTABLE":
        draft.choose(node.name, parents, _listed(scanner, node, "RESULTINGSTATES"), node.position)
    else:
        raise scanner.error(
            f"node {node.name!r} is of type {kind!r}; only CPT, TRUTHTABLE and NOISY_MAX can be read", node.position
        )


def _probabilities(scanner: Scanner, node: _Node) -> Floats:
    """The numbers of a node."""
    span = node.block.block("DEFINITION").values.get("PROBABILITIES")
    if span is None:
        raise scanner.error(f"node {node.name!r} has no 'PROBABILITIES'", node.position)
    start, end = span
    if end - start < 2 or scanner.text[start] != "(" or not scanner.text[start:end].rstrip().endswith(")"):
        raise scanner.error(f"'PROBABILITIES' of node {node.name!r} is no list in brackets", start)
    scanner.position = start + 1
    return scanner.floats(*scanner.number_span(")"))


def _attributes(scanner: Scanner, block: _AttributeBlock, *left_out: str) -> tuple[str, ...]:
    return tuple(
        f"{key} = {scanner.text[start:end].strip()}"
        for key, (start, end) in block.values.items()
        if key not in left_out
    )


def _about(scanner: Scanner, node: _Node) -> tuple[str, ...]:
    """The header beside the identifier, and the properties of the user."""
    header = node.block.block("HEADER")
    same = "NAME" in header.values and _text(scanner, header.values["NAME"]) == node.name
    about = _attributes(scanner, header, "ID", "NAME" if same else "ID")
    return (*about, *_attributes(scanner, node.block.block("USER_PROPERTIES")))
