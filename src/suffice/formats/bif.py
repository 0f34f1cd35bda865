r"""BIF, the Bayesian interchange format (version 0.15), as bnlearn, pgmpy, pyAgrum and JavaBayes write it.

::

    network alarm { property author = "A. Writer" ; }
    variable rain { type discrete [ 2 ] { yes, no }; }
    variable wet { type discrete [ 2 ] { yes, no }; }
    probability ( rain ) { table 0.2, 0.8; }
    probability ( wet | rain ) { (yes) 0.9, 0.1; (no) 0.05, 0.95; }

Labels decide, not positions: rows come in any order, ``default`` stands for the rows that are not given, and blocks may
refer to later ones. A ``table`` below a node with parents has the node slowest and the last parent fastest, as the
format says: axes (node, parents ...). Commas are blanks to the format; here they also keep labels of several words
apart, and the number of states or parents decides which is meant. Labels with marks of the format stand in double
quotes, where ``\"`` and ``\\`` are a quote and a backslash.
"""

from __future__ import annotations

import itertools
import math
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats
from suffice.formats import streams
from suffice.formats.networks import NAMELESS, Draft, TableNetwork, faulty_row, row_label
from suffice.formats.tokens import Scanner, Token, quoted, shortened
from suffice.records import record

if TYPE_CHECKING:
    from suffice.formats.labels import TextNode

MARKS = ",;{}()[]|"
# What most files consist of, each by one match: a variable without properties, behind the word ``variable``; the names
# of a block; a row. Labels that need care do not match, or fail a check, and are then read token by token.
_VARIABLE = re.compile(
    rf'\s*+([^\s"{re.escape(MARKS)}]++)\s*+\{{\s*+type\s++discrete\s*+\[\s*+([0-9]{{1,9}})\s*+\]'
    r'\s*+\{([^"{}()\[\];|]*+)\}\s*+;\s*+\}'
)
_FAMILY = re.compile(r'\s*+\(([^"(){};|,\[\]]*+)(?:\|([^"(){};|\[\]]*+))?\)\s*+\{')
_ROW = re.compile(r'\s*+\(([^()"{};|]*+)\)([-+0-9.eE,\s]*+);')
_BODY = re.compile(r'[^{}"]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^{}"]*+)*+', re.DOTALL)
# Patterns of the writer, which `re` compiles when they are first used.
_PLAIN = rf'(?:[^\s"{re.escape(MARKS)}/]|/(?![/*]))+'
# pyAgrum takes a property only when it starts with a word and has no quotes.
_PLAIN_PROPERTY = r'\w[^\s";{}/]*+(?: [^\s";{}/]++)*+'


def load(source: streams.Source) -> TableNetwork:
    """Read a network from a path (also gzipped) or a stream."""
    return streams.load_text(source, parse)


def save(path: streams.FilePath, network: TableNetwork) -> None:
    """Write a network; a name that ends in .gz is packed."""
    streams.write(path, render(network))


# --------------------------------------------------------------------------------------------------------------------
# Reading
# --------------------------------------------------------------------------------------------------------------------


@record()
class _ProbabilityBlock:
    """A probability block: where it and its names begin, and its body; `plain` are its names, where they look plain."""

    position: int
    names: int
    plain: tuple[str, str | None] | None
    start: int
    end: int
    about: list[str]
    node: str = ""
    parents: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()


class _TableRows:
    """What the body of a block gives: values by row, by default, or all at once."""

    def __init__(self) -> None:
        self.index: list[int] = []
        self.positions: list[int] = []
        self.cells: list[str] = []
        self.spans: list[tuple[int, int]] = []
        self.default: Floats | None = None
        self.table: Floats | None = None

    @cached_property
    def places(self) -> dict[int, int]:
        """Row -> where it stands; asked for once all rows are there."""
        return dict(zip(self.index, self.positions, strict=True))


def parse(text: str, name: str = "<text>") -> TableNetwork:
    """Read a network from text; `name` stands for the file in messages."""
    scanner = Scanner(text, name, marks=MARKS, comments=("//", "/*"))
    draft = Draft(scanner)
    blocks: list[_ProbabilityBlock] = []
    about: dict[str, Any] = {"network": [], "variables": {}, "tables": {}}
    while (token := scanner.take()).kind != "end":
        if token.kind != "word" or token.text not in ("network", "variable", "probability"):
            raise scanner.wrong(token, "'network', 'variable' or 'probability'")
        if token.text == "network":
            _read_network(scanner, about)
        elif token.text == "variable":
            _read_variable(scanner, draft, about)
        else:
            blocks.append(_skip_block(scanner, token.start))
    for block in blocks:
        _read_block(scanner, draft, block)
        about["tables"][block.node] = block.about
    return draft.finish(about)


def _read_network(scanner: Scanner, about: dict[str, Any]) -> None:
    title = _joined(scanner, scanner.until("{"))
    about["name"] = "" if title == NAMELESS else title
    while not scanner.accept("}"):
        about["network"].append(_read_property(scanner, scanner.take()))


def _read_property(scanner: Scanner, token: Token) -> str:
    if token.kind != "word" or token.text != "property":
        raise scanner.wrong(token, "'property' or '}'")
    tokens = scanner.until(";")
    return tokens[0].text if len(tokens) == 1 else scanner.raw(tokens)


def _read_variable(scanner: Scanner, draft: Draft, about: dict[str, Any]) -> None:
    match = _VARIABLE.match(scanner.text, scanner.position)
    if match is not None and (plain := _plain(match[3])) and len(plain) == int(match[2]):
        scanner.position = match.end()
        draft.declare(match[1], plain, match.start(1))
        return
    header = scanner.until("{", "},;")
    if not header:
        raise scanner.wrong(scanner.peek(), "the name of a variable before '{'")
    name = _joined(scanner, header)
    states: list[str] | None = None
    properties = []
    while not scanner.accept("}"):
        token = scanner.take()
        if token.kind == "word" and token.text == "type":
            if states is not None:
                raise scanner.error(f"variable {name!r} has two types; expected one", token.start)
            states = _read_type(scanner, name)
        else:
            properties.append(_read_property(scanner, token))
    if states is None:
        raise scanner.error(f"variable {name!r} has no 'type' with its states", header[0].start)
    draft.declare(name, states, header[0].start)
    about["variables"][name] = properties


def _read_type(scanner: Scanner, name: str) -> list[str]:
    kind = scanner.take()
    if kind.kind != "word" or kind.text != "discrete":
        raise scanner.wrong(kind, f"'discrete', the one type that can be read, for variable {name!r}")
    scanner.expect("[")
    count = scanner.take()
    if not re.fullmatch(r"[0-9]{1,9}", count.text):
        raise scanner.wrong(count, f"the number of states of {name!r}")
    scanner.expect("]")
    opening = scanner.expect("{")
    tokens = scanner.until("}", "{;()|")
    scanner.expect(";")
    states = _labels(scanner, tokens, int(count.text))
    if states is None:
        listed = [token.text for token in tokens if token.text != ","]
        raise scanner.error(
            f"variable {name!r} declares {count.text} states and lists {len(listed)}: {shortened(', '.join(listed))}",
            opening.start,
        )
    return states


def _plain(text: str) -> list[str]:
    """Labels of one word each with commas between them; none at all where the text is not so plain."""
    labels = [label.strip() for label in text.split(",")]
    return labels if all(len(label.split()) == 1 for label in labels) else []


def _groups(tokens: list[Token]) -> list[list[Token]]:
    """Tokens between commas; nothing between two commas is no group."""
    groups: list[list[Token]] = [[]]
    for token in tokens:
        if token.is_mark(","):
            groups.append([])
        else:
            groups[-1].append(token)
    return [group for group in groups if group]


def _joined(scanner: Scanner, tokens: list[Token]) -> str:
    """A label: one string, or words with single blanks between them."""
    return tokens[0].text if len(tokens) == 1 else " ".join(scanner.raw(tokens).split())


def _labels(scanner: Scanner, tokens: list[Token], wanted: int) -> list[str] | None:
    """So many labels from tokens: one between two commas or, when that is another number, one for each word."""
    groups = _groups(tokens)
    if len(groups) == wanted and not any(len(group) > 1 and _has_string(group) for group in groups):
        return [_joined(scanner, group) for group in groups]
    words = [token for group in groups for token in group]
    is_clear = len(words) == wanted and not any(token.kind == "mark" for token in words)
    return [token.text for token in words] if is_clear else None


def _has_string(tokens: list[Token]) -> bool:
    return any(token.kind == "string" for token in tokens)


def _skip_block(scanner: Scanner, position: int) -> _ProbabilityBlock:
    """The names of a probability block; they and the body wait until all variables are known."""
    names, plain = scanner.position, None
    match = _FAMILY.match(scanner.text, names)
    if match is not None and match[1].strip():
        plain = (match[1], match[2])
        scanner.position = match.end()
    elif _header(scanner):
        scanner.expect("{")
    else:
        raise scanner.error("the block names no variable; expected 'probability ( node | parents )'", position)
    body = _BODY.match(scanner.text, scanner.position)
    assert body is not None  # The pattern matches nothing as well.
    start, scanner.position = body.span()
    scanner.expect("}")
    return _ProbabilityBlock(position, names, plain, start, body.end(), [])


def _header(scanner: Scanner) -> list[Token]:
    scanner.expect("(")
    return scanner.until(")", "{};(")


def _read_block(scanner: Scanner, draft: Draft, block: _ProbabilityBlock) -> None:
    names = _plain_family(draft, block) or _family(scanner, draft, block)
    block.node, block.parents = names[0], tuple(names[1:])
    block.shape = draft.family(block.node, block.parents, block.position)
    rows = _plain_rows(scanner, draft, block) or _read_body(scanner, draft, block)
    if rows.table is not None:
        draft.define(block.node, block.parents, _whole_table(scanner, block, rows), block.position)
    else:
        table = _table_of_rows(scanner, draft, block, rows)
        draft.define(block.node, block.parents, table, block.position, rows_at=rows.places)


def _plain_family(draft: Draft, block: _ProbabilityBlock) -> list[str]:
    """Node and parents, where each is one word and the name of a variable; else nothing."""
    if block.plain is None:
        return []
    node, parents = block.plain
    names = _plain(node if parents is None else f"{node},{parents}")
    return names if all(name in draft for name in names) else []


def _family(scanner: Scanner, draft: Draft, block: _ProbabilityBlock) -> list[str]:
    """Node and parents, token by token."""
    scanner.position = block.names
    header = _header(scanner)
    bar = next((number for number, token in enumerate(header) if token.is_mark("|")), None)
    names = _names(scanner, draft, header[:bar])
    if bar is not None:
        if len(names) != 1:
            raise scanner.error(f"found {len(names)} variables before '|'; expected one", header[0].start)
        names += _names(scanner, draft, header[bar + 1 :])
    return names


def _names(scanner: Scanner, draft: Draft, tokens: list[Token]) -> list[str]:
    """Names of declared variables: one between two commas, or several words that are all names."""
    names: list[str] = []
    for group in _groups(tokens):
        whole, words = _joined(scanner, group), [token.text for token in group]
        if len(group) == 1 or (whole in draft and not all(word in draft for word in words)):
            names.append(whole)
        elif whole not in draft and all(word in draft for word in words):
            names += words
        else:
            reason = "may be one name or several; put names in quotes" if whole in draft else "is no variable"
            raise scanner.error(f"{shortened(whole)!r} {reason}", group[0].start)
    if not names:
        raise scanner.error("found no variable; expected a name", tokens[0].start if tokens else scanner.position)
    return names


def _plain_rows(scanner: Scanner, draft: Draft, block: _ProbabilityBlock) -> _TableRows | None:
    """The rows of a body that lists every row once, with plain labels, and nothing else; else None."""
    matches = list(_ROW.finditer(scanner.text, block.start, block.end))
    codes = [draft.codes(parent) for parent in block.parents]
    # Before the labels of all rows are made: a small file may declare any number of rows.
    if len(matches) != math.prod(block.shape[:-1]) or any("," in str(state) for code in codes for state in code):
        return None
    numbers = {", ".join(map(str, states)): row for row, states in enumerate(itertools.product(*codes))}
    ends = [block.start, *(match.end() for match in matches)]
    cells = [match[2].replace(",", " ").split() for match in matches]
    rows = _TableRows()
    rows.index = [numbers[match[1]] for match in matches if match[1] in numbers]
    if (
        len(set(rows.index)) != len(matches)
        or [match.start() for match in matches] != ends[:-1]
        or scanner.text[ends[-1] : block.end].strip()
        or any(len(part) != block.shape[-1] for part in cells)
    ):
        return None
    rows.positions = [match.start(1) - 1 for match in matches]
    rows.spans = [match.span(2) for match in matches]
    rows.cells = list(itertools.chain.from_iterable(cells))
    return rows


def _read_body(scanner: Scanner, draft: Draft, block: _ProbabilityBlock) -> _TableRows:
    rows = _TableRows()
    codes = [draft.codes(parent) for parent in block.parents]
    scanner.position = block.start
    while True:
        match = _ROW.match(scanner.text, scanner.position)
        if match is not None:
            labels = match[1].split(",") if match[1] else []
            row = 0
            try:
                for label, code in zip(labels, codes, strict=True):
                    row = row * len(code) + code[label.strip()]
            except (KeyError, ValueError):
                match = None
        if match is None:
            if scanner.accept("}"):
                return rows
            _read_statement(scanner, draft, block, rows)
            continue
        scanner.position = match.end()
        _add_row(scanner, block, rows, row, match.start(1) - 1, match.span(2))


def _add_row(
    scanner: Scanner, block: _ProbabilityBlock, rows: _TableRows, row: int, position: int, span: tuple[int, int]
) -> None:
    cells = scanner.text[span[0] : span[1]].replace(",", " ").split()
    if len(cells) != block.shape[-1]:
        raise scanner.error(
            f"node {block.node!r} has {block.shape[-1]} states and this row has {len(cells)} values", position
        )
    rows.index.append(row)
    rows.positions.append(position)
    rows.cells += cells
    rows.spans.append(span)


def _read_statement(scanner: Scanner, draft: Draft, block: _ProbabilityBlock, rows: _TableRows) -> None:
    """A row with labels that need care, ``table``, ``default`` or ``property``."""
    token = scanner.take()
    if token.is_mark("("):
        labels = scanner.until(")", "{};(")
        row = _row_of(scanner, draft, block, labels, token.start)
        _add_row(scanner, block, rows, row, token.start, scanner.number_span(";"))
    elif token.kind == "word" and token.text in ("table", "default"):
        values = scanner.floats(*scanner.number_span(";"))
        wanted = block.shape[-1] if token.text == "default" else math.prod(block.shape)
        if (rows.default if token.text == "default" else rows.table) is not None:
            raise scanner.error(f"node {block.node!r} has {token.text!r} twice", token.start)
        if len(values) != wanted:
            raise scanner.error(
                f"the {token.text} of node {block.node!r} has {len(values)} values; expected {wanted}", token.start
            )
        setattr(rows, token.text, values)
    elif token.kind == "word" and token.text == "property":
        block.about.append(_read_property(scanner, token))
    else:
        raise scanner.wrong(token, "'(', 'table', 'default', 'property' or '}'")


def _row_of(scanner: Scanner, draft: Draft, block: _ProbabilityBlock, tokens: list[Token], position: int) -> int:
    labels = _labels(scanner, tokens, len(block.parents))
    if labels is None:
        raise scanner.error(
            f"a row of node {block.node!r} must name one state of each of its {len(block.parents)} parents", position
        )
    row = 0
    for parent, label in zip(block.parents, labels, strict=True):
        codes = draft.codes(parent)
        if label not in codes:
            known = shortened(", ".join(map(str, codes)), 200)
            raise scanner.error(
                f"a row of node {block.node!r} has the state {label!r} of its parent {parent!r}; known: {known}",
                position,
            )
        row = row * len(codes) + codes[label]
    return row


def _whole_table(scanner: Scanner, block: _ProbabilityBlock, rows: _TableRows) -> Floats:
    """The values of ``table``, moved from the axes (node, parents ...) to (parents ..., node)."""
    assert rows.table is not None
    if rows.index or rows.default is not None:
        raise scanner.error(
            f"node {block.node!r} has a 'table' beside rows or a 'default'; expected one", block.position
        )
    if not block.parents:
        return rows.table
    card = block.shape[-1]
    table = np.ascontiguousarray(np.moveaxis(rows.table.reshape(card, *block.shape[:-1]), 0, -1))
    if faulty_row(table.reshape(-1, card)) and not faulty_row(rows.table.reshape(-1, card)):
        raise scanner.error(
            f"the table of node {block.node!r} sums to one over its fastest index; in this format the node is the "
            "slowest and its last parent the fastest. Write one row for each state of the parents: ( states ) values;",
            block.position,
        )
    return table


def _table_of_rows(scanner: Scanner, draft: Draft, block: _ProbabilityBlock, rows: _TableRows) -> Floats:
    """The table from its rows and, where there is one, its default."""
    count, card = math.prod(block.shape[:-1]), block.shape[-1]
    given = rows.places
    if len(given) != len(rows.index):
        row, position = next(
            (row, position) for row, position in zip(rows.index, rows.positions, strict=True) if given[row] != position
        )
        raise scanner.error(f"node {block.node!r} has the row ({_label(draft, block, row)}) twice", position)
    if len(given) < count and rows.default is None:
        row = next(row for row in range(count) if row not in given)
        raise scanner.error(f"node {block.node!r} has no row ({_label(draft, block, row)})", block.position)
    table = np.empty((count, card))
    if rows.default is not None:
        table[:] = rows.default
    table[rows.index] = scanner.convert(rows.cells, rows.spans).reshape(-1, card)
    return table.reshape(block.shape)


def _label(draft: Draft, block: _ProbabilityBlock, row: int) -> str:
    return row_label([draft.variable(parent) for parent in block.parents], row)


# --------------------------------------------------------------------------------------------------------------------
# Writing
# --------------------------------------------------------------------------------------------------------------------


def render(network: TableNetwork) -> str:
    """The network as text; every float is its shortest exact decimal, so that reading gives the same bits."""
    from suffice.formats.labels import as_text

    written = as_text(network, "BIF")
    parts = [f"network {_word(written.name or NAMELESS)} {{\n"]
    parts += [f"  property {_property(text)} ;\n" for text in written.about]
    parts.append("}\n")
    for node in written.nodes:
        states = ", ".join(map(_word, node.states))
        parts.append(f"variable {_word(node.name)} {{\n  type discrete [ {len(node.states)} ] {{ {states} }};\n")
        parts += [f"  property {_property(text)} ;\n" for text in node.about]
        parts.append("}\n")
    for node in written.nodes:
        parts += _block_lines(node)
    return "".join(parts)


def _block_lines(node: TextNode) -> list[str]:
    given = f" | {', '.join(map(_word, node.parents))}" if node.parents else ""
    lines = [f"probability ( {_word(node.name)}{given} ) {{\n"]
    labels = itertools.product(*([_word(state) for state in states] for states in node.parent_states))
    for row, values in zip(labels, node.table.tolist(), strict=True):
        head = f"({', '.join(row)})" if node.parents else "table"
        lines.append(f"  {head} {', '.join(map(repr, values))};\n")
    lines += [f"  property {_property(text)} ;\n" for text in node.about_table]
    return [*lines, "}\n"]


def _word(label: str) -> str:
    return label if re.fullmatch(_PLAIN, label) else quoted(label)


def _property(text: str) -> str:
    return text if re.fullmatch(_PLAIN_PROPERTY, text) else quoted(text)
