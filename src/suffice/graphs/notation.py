"""Graphs written as text: ``A -> B <- C; D -- E; {F, G, H}; K``, or as R does, ``[A][C][B|A:C]`` and ``~A:B + B:C``.

A line may be a single dash with spaces around it, ``A - B``, and a formula may come without its ``~``.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from suffice.errors import OptionError

#: One node of a model string: the child, and its parents.
_MODEL_NODE = re.compile(r"\[([^\[\]|]+)(?:\|([^\[\]|]+))?\]\s*")
#: Edges as others write them.
_OTHER_EDGES = "\u2192|\u2190|\u2014|\u2013| => | <= | ~ "
#: Terms of a formula without its ~: names with a colon or an asterisk between them, and sums of these.
_TERMS = re.compile(r"(?=[^:*]+[:*])[^\W\d][\w.]*(?:\s*[:*+]\s*[^\W\d][\w.]*)+")
#: What others write, which here would be taken for letters of a name.
_FOREIGN = re.compile(f"^>|<$|^-|-$|[{{}}]|{_OTHER_EDGES}")
#: A name in quotation marks, which may hold anything, with what stands before it; its end is that of a name.
_QUOTED = re.compile(r"""(^|[;\n{,>-])(\s*)(["'])(.+?)\3(?=\s*(?:$|[;\n},<-]))""")
#: Statements in braces after a word, as Graphviz and dagitty write a whole graph.
_WRAPPED = re.compile(r"(?:strict\s+)?(?:digraph|graph|dag)\b[^{}]*\{([^{}]*)\}\s*")
#: Stands before the number of a name in quotation marks while the text is taken apart: a character for private use.
_SHELTER = "\ue000"


class WrittenGraph(NamedTuple):
    """`arrows` are (parent, child), `cliques` sets of names joined without direction, `alone` names by themselves."""

    arrows: tuple[tuple[str, str], ...]
    cliques: tuple[tuple[str, ...], ...]
    alone: tuple[str, ...]


def is_written(text: str) -> bool:
    """Whether a text is a graph rather than the name of a file."""
    plain = text.strip()
    marked = any(mark in text for mark in ("->", "<-", "--", " - ", "{", ";", "\n")) or re.search(_OTHER_EDGES, text)
    formula = plain.startswith("~") or _TERMS.fullmatch(plain) is not None
    return bool(marked) or formula or _MODEL_NODE.match(plain) is not None


def parse_graph(text: str, expected: str) -> WrittenGraph:
    """Edges written as text, one or several to a statement: ``A->B->C; D--E; {F, G, H}; K``; or a formula of R.

    Statements end with a semicolon or a line; what follows ``#`` is a comment. A name that holds such marks stands in
    quotation marks.

    expected: what the errors say was expected.

    >>> parse_graph("a -> b <- c; d", "edges").arrows
    (('a', 'b'), ('c', 'b'))
    >>> parse_graph("[a][c][b|a:c]", "edges").arrows
    (('a', 'b'), ('c', 'b'))
    >>> parse_graph("~a:b + b:c", "edges").cliques
    (('a', 'b'), ('b', 'c'))
    >>> parse_graph("a - b - c", "edges").cliques
    (('a', 'b'), ('b', 'c'))
    >>> parse_graph("'a->b' -> c", "edges").arrows
    (('a->b', 'c'),)
    """
    if text.strip().startswith("["):
        return _model_string(text.strip(), expected)
    if text.strip().startswith("~"):
        return _generators(text.strip(), expected)
    if _TERMS.fullmatch(text.strip()):
        return _generators(f"~{text.strip()}", expected)
    quoted: dict[str, str] = {}

    def sheltered(name: re.Match[str]) -> str:
        token = f"{_SHELTER}{len(quoted)}"
        quoted[token] = name[4]
        return f"{name[1]}{name[2]}{token}"

    plain = _QUOTED.sub(sheltered, text)
    wrapped = _WRAPPED.fullmatch(plain.strip())
    read = _statements(plain if wrapped is None else wrapped[1], text, expected)
    return WrittenGraph(*(tuple(_named(part, quoted) for part in parts) for parts in read)) if quoted else read


def _named(part: Any, quoted: dict[str, str]) -> Any:
    """Names, alone or in tuples, with those in quotation marks as they were."""
    return tuple(_named(name, quoted) for name in part) if isinstance(part, tuple) else quoted.get(part, part)


def _statements(text: str, whole: str, expected: str) -> WrittenGraph:
    """What the statements of a text say."""
    arrows: list[tuple[str, str]] = []
    cliques: list[tuple[str, ...]] = []
    alone: list[str] = []
    plain = re.sub(r"#[^\n]*", "", text)
    for statement in filter(None, (part.strip() for part in re.split(r"[;\n]", plain))):
        if statement.startswith("{"):
            if not statement.endswith("}"):
                raise OptionError(f"The clique {statement!r} has no closing brace.")
            cliques.append(tuple(name.strip() for name in statement[1:-1].split(",") if name.strip()))
            continue
        parts = re.split(r"(->|<-|--| - )", statement)
        names = [name.strip() for name in parts[::2]]
        _check_names(names, statement)
        if not all(names):
            raise OptionError(f"The statement {statement!r} names no variable at one end; {expected}.")
        if len(names) == 1:
            alone.append(names[0])
        for first, mark, second in zip(names, parts[1::2], names[1:], strict=False):
            if mark in ("--", " - "):
                cliques.append((first, second))
            else:
                arrows.append((first, second) if mark == "->" else (second, first))
    if not (arrows or cliques or alone):
        raise OptionError(f"The structure {whole!r} is empty; {expected}.")
    return WrittenGraph(tuple(arrows), tuple(cliques), tuple(alone))


def _check_names(names: list[str], statement: str) -> None:
    """Refuse a statement that is written in another way and would give variables with odd names."""
    joined = len(names) > 1
    minus = " - " in statement and any(re.search(r"[:*+]", name) for name in names)
    if minus or any(_FOREIGN.search(name) for name in names) or (joined and any("," in name for name in names)):
        formula = " Formulas of a regression go to GLM(formula=), on the command line to --model glm." * (
            "~" in statement
        )
        raise OptionError(
            f"The statement {statement!r} is not written as edges are here: 'A -> B', 'A <- B' or 'A -- B', several "
            "apart by semicolons or lines, and '{A, B, C}' for a clique by itself. Put a name that holds such marks "
            f"into quotation marks.{formula}"
        )


def _generators(text: str, expected: str) -> WrittenGraph:
    """``~A:B + B:C``, the generators of a graphical or log-linear model, as R's gRim and loglm write them."""
    terms = [[name.strip() for name in re.split(r"[:*]", term)] for term in text[1:].split("+")]
    odd = [name for term in terms for name in term if not name or re.search(r"[|^~\-]|^\.$", name)]
    if odd:
        raise OptionError(
            f"The formula {text!r} holds {odd[0]!r}; a formula of a graph is written ~A:B + B:C, with the names of "
            f"each clique apart by colons. {expected[:1].upper()}{expected[1:]}."
        )
    cliques = [tuple(term) for term in terms if len(term) > 1]
    return WrittenGraph((), tuple(cliques), tuple(term[0] for term in terms if len(term) == 1))


def _model_string(text: str, expected: str) -> WrittenGraph:
    """``[child|parent:parent]`` for each node, as R's bnlearn and deal write them."""
    arrows: list[tuple[str, str]] = []
    alone: list[str] = []
    position = 0
    while position < len(text):
        node = _MODEL_NODE.match(text, position)
        if node is None:
            raise OptionError(
                f"The model string {text!r} cannot be read from {text[position:]!r} on: a node is written [child] or "
                f"[child|parent:parent]; {expected}."
            )
        child, parents = node[1].strip(), [name.strip() for name in (node[2] or "").split(":")]
        alone.append(child)
        arrows += [(parent, child) for parent in parents if parent]
        position = node.end()
    unknown = {parent for parent, _ in arrows} - set(alone)
    if unknown:
        raise OptionError(f"The model string has the parent {min(unknown)!r}, and no node [{min(unknown)}|...].")
    return WrittenGraph(tuple(arrows), (), tuple(alone))
