"""HUGIN NET, as HUGIN, bnlearn, GeNIe, pgmpy and pyAgrum write it.

::

    net { node_size = (80 40); }
    node rain { label = "Rain"; states = ( "yes" "no" ); }
    node wet { states = ( "yes" "no" ); }
    potential ( rain ) { data = ( 0.2 0.8 ); }
    potential ( wet | rain ) { data = (( 0.9 0.1 )( 0.05 0.95 )); }

The values of ``data`` have the node fastest, then the last parent; the first parent is slowest: the axes (parents ...,
node). Brackets inside are for the eye. Names are identifiers in this format: a variable with another name is written
under an identifier with its name in the attribute ``original_name``, which the reader puts back.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from typing import Any

from suffice.errors import listing
from suffice.formats import streams
from suffice.formats.labels import TextNetwork, TextNode, as_text
from suffice.formats.networks import Draft, TableNetwork
from suffice.formats.tokens import Scanner, Token, numbers, quoted, shortened

MARKS = "={}();|,"
ORIGINAL = "original_name"
_DATA = re.compile(r"[-+0-9.eE,()\s]*+")
_BLANKS = str.maketrans("(),", "   ")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ATTRIBUTE = re.compile(rf'({_IDENTIFIER.pattern}) = ("(?:[^"\\]|\\.)*"|[-+.\w]+|\([-+.\w ]*\))', re.ASCII | re.DOTALL)
_NUMBERED = re.compile(r"property_[0-9]+")
_OTHER_KINDS = ("continuous", "decision", "utility", "function", "class", "instance", "interval")


def load(source: streams.Source) -> TableNetwork:
    """Read a network from a path (also gzipped) or a stream."""
    return streams.load_text(source, parse)


def save(path: streams.FilePath, network: TableNetwork) -> None:
    """Write a network; a name that ends in .gz is packed."""
    streams.write(path, render(network))


# --------------------------------------------------------------------------------------------------------------------
# Reading
# --------------------------------------------------------------------------------------------------------------------


@dataclass
class _NetBlock:
    """What stands between braces: attributes as tokens, and the span of ``data``."""

    position: int
    attributes: dict[str, list[Token]] = field(default_factory=dict)
    data: tuple[int, int] | None = None

    def about(self, scanner: Scanner, *known: str) -> tuple[str, ...]:
        """The attributes that are not known ones, as text."""
        return tuple(
            # What was no attribute in another format was written as the text of a numbered one.
            value[0].text
            if _NUMBERED.fullmatch(key) and len(value) == 1 and value[0].kind == "string"
            else f"{key} = {scanner.raw(value)}"
            for key, value in self.attributes.items()
            if key not in known
        )


def parse(text: str, name: str = "<text>") -> TableNetwork:
    """Read a network from text; `name` stands for the file in messages."""
    scanner = Scanner(text, name, marks=MARKS, comments=("%",))
    draft = Draft(scanner)
    about: dict[str, Any] = {"network": (), "variables": {}, "tables": {}}
    names: dict[str, str] = {}
    potentials: list[tuple[list[Token], _NetBlock]] = []
    while (token := scanner.take()).kind != "end":
        if token.kind == "word" and token.text == "discrete":
            token = scanner.take()
        if token.kind != "word" or token.text not in ("net", "node", "potential"):
            kinds = ", ".join(map(repr, _OTHER_KINDS))
            note = f" ({kinds} are not read)" if token.text in _OTHER_KINDS else ""
            raise scanner.wrong(token, f"'net', 'node' or 'potential'{note}")
        if token.text == "net":
            about.update(_read_net(scanner, token))
        elif token.text == "node":
            _read_node(scanner, draft, names, about)
        else:
            scanner.expect("(")
            header = scanner.until(")", "{};=(")
            potentials.append((header, _read_block(scanner, token.start)))
    for header, block in potentials:
        node = _read_potential(scanner, draft, names, header, block)
        about["tables"][node] = block.about(scanner)
    return draft.finish(about)


def _read_block(scanner: Scanner, position: int) -> _NetBlock:
    """Attributes up to the closing brace."""
    block = _NetBlock(position)
    scanner.expect("{")
    while not scanner.accept("}"):
        key = scanner.take()
        if key.kind != "word":
            raise scanner.wrong(key, "an attribute or '}'")
        if key.text in block.attributes or (key.text == "data" and block.data is not None):
            raise scanner.error(f"the attribute {key.text!r} is given twice", key.start)
        scanner.expect("=")
        if key.text == "data":
            block.data = _data_span(scanner)
        else:
            value = scanner.until(";")
            if not value:
                raise scanner.error(f"the attribute {key.text!r} has no value", key.start)
            block.attributes[key.text] = value
    return block


def _data_span(scanner: Scanner) -> tuple[int, int]:
    """Move over numbers in balanced brackets, and the semicolon behind them."""
    start = scanner.position
    match = _DATA.match(scanner.text, start)
    assert match is not None  # The pattern matches nothing as well.
    scanner.position = match.end()
    scanner.expect(";")
    depths = list(itertools.accumulate(1 if mark == "(" else -1 for mark in re.findall(r"[()]", match[0])))
    if not depths or depths[-1] != 0 or min(depths) < 0:
        raise scanner.error("the brackets of 'data' do not match", start)
    return start, match.end()


def _read_net(scanner: Scanner, token: Token) -> dict[str, Any]:
    block = _read_block(scanner, token.start)
    title = block.attributes.get("name", [])
    if len(title) == 1 and title[0].kind == "string":
        return {"name": title[0].text, "network": block.about(scanner, "name")}
    return {"network": block.about(scanner)}


def _read_node(scanner: Scanner, draft: Draft, names: dict[str, str], about: dict[str, Any]) -> None:
    token = scanner.name_token("the name of a node")
    block = _read_block(scanner, token.start)
    if token.text in names:
        raise scanner.error(f"node {token.text!r} is declared twice; names must differ", token.start)
    if "states" not in block.attributes:
        raise scanner.error(f"node {token.text!r} has no 'states'", token.start)
    original = block.attributes.get(ORIGINAL, [token])
    if len(original) != 1:
        raise scanner.wrong(original[1], f"one string after '{ORIGINAL} ='")
    name = names[token.text] = original[0].text
    draft.declare(name, _listed(scanner, block.attributes["states"], f"the states of node {name!r}"), token.start)
    about["variables"][name] = block.about(scanner, "states", ORIGINAL)


def _listed(scanner: Scanner, tokens: list[Token], what: str) -> list[str]:
    """The words or strings between one pair of brackets."""
    if len(tokens) < 2 or not (tokens[0].is_mark("(") and tokens[-1].is_mark(")")):
        raise scanner.wrong(tokens[0], f"{what} in brackets")
    inner = tokens[1:-1]
    if wrong := next((token for token in inner if token.kind == "mark"), None):
        raise scanner.wrong(wrong, what)
    return [token.text for token in inner]


def _read_potential(
    scanner: Scanner, draft: Draft, names: dict[str, str], header: list[Token], block: _NetBlock
) -> str:
    marks = [number for number, token in enumerate(header) if token.kind == "mark"]
    if not header or marks != ([1] if header[1:] else []) or (header[1:] and header[1].text != "|"):
        shown = shortened(scanner.raw(header))
        raise scanner.error(
            f"found the header '( {shown} )'; expected '( node )' or '( node | parents )'", block.position
        )
    if unknown := next((token for token in header if token.kind != "mark" and token.text not in names), None):
        raise scanner.error(f"there is no node {unknown.text!r}; known: {listing(names)}", unknown.start)
    node, *parents = (names[token.text] for token in header if token.kind != "mark")
    if block.data is None:
        reason = "an expression ('model_data') and no 'data'" if "model_data" in block.attributes else "no 'data'"
        raise scanner.error(f"the potential of node {node!r} has {reason}; only tables can be read", block.position)
    start, end = block.data
    parts = scanner.text[start:end].translate(_BLANKS).split()
    draft.fill(node, parents, scanner.convert(parts, [block.data]), block.position)
    return node


# --------------------------------------------------------------------------------------------------------------------
# Writing
# --------------------------------------------------------------------------------------------------------------------


def render(network: TableNetwork) -> str:
    """The network as text; every float is its shortest exact decimal, so that reading gives the same bits."""
    written = as_text(network, "HUGIN NET")
    names = _identifiers(written)
    title = [f"  name = {quoted(written.name)};\n"] if written.name else []
    parts = ["net\n{\n", *title, *_attributes(written.about, "name"), "}\n"]
    for node in written.nodes:
        parts.append(f"node {names[node.name]}\n{{\n  states = ( {' '.join(map(quoted, node.states))} );\n")
        if names[node.name] != node.name:
            parts.append(f"  {ORIGINAL} = {quoted(node.name)};\n")
        parts += [*_attributes(node.about, "states", ORIGINAL), "}\n"]
    for node in written.nodes:
        given = f" | {' '.join(names[parent] for parent in node.parents)}" if node.parents else ""
        parts.append(f"potential ( {names[node.name]}{given} )\n{{\n  data = {_nested(node)};\n")
        parts += [*_attributes(node.about_table, "data"), "}\n"]
    return "".join(parts)


def _identifiers(network: TextNetwork) -> dict[str, str]:
    """Name -> identifier: the name itself where it is one, else one made from it that no other node has."""
    taken = {node.name for node in network.nodes if _IDENTIFIER.fullmatch(node.name)}
    identifiers = {name: name for name in taken}
    for node in network.nodes:
        if node.name not in identifiers:
            stem = "N_" + re.sub(r"[^A-Za-z0-9]", "_", node.name)
            choices = itertools.chain([stem], (f"{stem}_{number}" for number in itertools.count(2)))
            identifiers[node.name] = next(choice for choice in choices if choice not in taken)
            taken.add(identifiers[node.name])
    return identifiers


def _attributes(texts: tuple[str, ...], *reserved: str) -> list[str]:
    """Properties as attributes: as they are where they are attributes, else as the text of a numbered one."""
    lines, used = [], set(reserved)
    for number, text in enumerate(texts, 1):
        match = _ATTRIBUTE.fullmatch(text)
        if match and match[1] not in used and not _NUMBERED.fullmatch(match[1]):
            used.add(match[1])
            lines.append(f"  {text};\n")
        else:
            lines.append(f"  property_{number} = {quoted(text)};\n")
    return lines


def _nested(node: TextNode) -> str:
    """The rows in brackets, with a pair for each parent around them."""
    rows = [f"( {numbers(values)} )" for values in node.table]
    for states in reversed(node.parent_states):
        rows = [f"({''.join(group)})" for group in zip(*[iter(rows)] * len(states), strict=True)]
    return rows[0]
