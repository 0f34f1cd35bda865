"""What a user gives as STRUCTURE: a file of a model, a list of edges, or text such as ``A->B; B->C``."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import suffice as sf
from suffice.errors import OptionError
from suffice.formats.networks import FactorNetwork, TableNetwork
from suffice.graphs.notation import parse_graph

#: Endings that hold a model of this library or of others.
_MODELS = (".bif", ".bifxml", ".xmlbif", ".xml", ".net", ".uai", ".dsl", ".xdsl", ".suffice", ".json")
EXPECTED = (
    "Expected a file (.bif, .xmlbif, .net, .uai, .dsl, .xdsl, .json, .suffice, or .csv and .txt with edges), or edges "
    "such as 'A->B; B->C' (directed), 'A--B; B--C' (not directed), '{A, B, C}' (a clique)"
)


@dataclass(frozen=True)
class GivenStructure:
    """Edges as written, or the model of a file.

    `arrows` are (parent, child); `cliques` are sets of variables joined without direction; `alone` are names by
    themselves. `states` are those that a file declares beside its edges.
    """

    arrows: tuple[tuple[str, str], ...] = ()
    cliques: tuple[tuple[str, ...], ...] = ()
    alone: tuple[str, ...] = ()
    model: Any = None
    states: Mapping[str, Any] = field(default_factory=dict)

    @property
    def directed(self) -> bool:
        """Whether it is that of a directed model; one with arrows and lines is refused."""
        if self.arrows and self.cliques:
            first = " -- ".join(self.cliques[0])
            raise OptionError(
                f"The structure has arrows ({self.arrows[0][0]} -> {self.arrows[0][1]}) and lines ({first}). Arrows "
                "make a Bayesian network and lines a Markov network; a chain graph with both is not one of the models "
                "here."
            )
        return not self.cliques


def read_structure(text: str) -> GivenStructure:
    """The structure in a file, or in the text itself."""
    path = Path(text)
    if text == "-":
        raise OptionError("STRUCTURE cannot come from stdin; name a file, or write the edges. DATA can, as '-'.")
    if os.path.isfile(text):  # Edges may be longer than any path, which this takes for no file.
        return _from_file(path)
    if any(mark in text for mark in ("->", "--", "{", "<-")):
        return parse_edges(text)
    if path.suffix or "/" in text or path.is_dir():
        raise OptionError(f"There is no file {text!r}. {EXPECTED}.")
    return parse_edges(text)


def _from_file(path: Path) -> GivenStructure:
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".csv"):
        return _from_csv(path)
    if name.endswith(".json"):
        plain = _plain_json(path)
        if plain is not None:
            return plain
    if name.endswith(".uai"):
        from suffice.formats import uai

        return _numbered(uai.load(path))
    if name.endswith(_MODELS):
        return GivenStructure(model=sf.read(path))
    return parse_edges(_text_of(path))


def _text_of(path: Path) -> str:
    """The text of a file, without the mark that some editors put first."""
    from suffice.storage.unpacking import unpacked_text

    with unpacked_text(path, "utf-8-sig") as stream:
        try:
            return stream.read()
        except UnicodeDecodeError as error:
            raise OptionError(f"{path} is not text in UTF-8 (byte {error.start + 1}). {EXPECTED}.") from None


def _numbered(network: TableNetwork | FactorNetwork) -> GivenStructure:
    """The structure of a UAI file, which has numbers for names: columns of rows are named 0, 1, 2 and so on."""
    states = {str(variable.name): list(variable.states) for variable in network.domain.variables}
    if isinstance(network, FactorNetwork):
        scopes = dict.fromkeys(tuple(map(str, scope)) for scope, _ in network.factors if scope)
        return GivenStructure(cliques=tuple(scopes), states=states)
    arrows = tuple((str(parent), str(child)) for child, parents in network.parents.items() for parent in parents)
    return GivenStructure(arrows=arrows, alone=tuple(states), states=states)


def _plain_json(path: Path) -> GivenStructure | None:
    """Edges or parents in a JSON file that is not one of this library's; None where it is."""
    try:
        content = json.loads(_text_of(path))
    except json.JSONDecodeError as error:
        raise OptionError(f"{path} is not JSON: {error}.") from None
    if isinstance(content, list) and all(isinstance(edge, list) for edge in content):
        return GivenStructure(arrows=tuple(_pair(edge, path) for edge in content))
    if not isinstance(content, dict) or not content:
        return None
    if isinstance(content.get("edges"), list):
        directed = content.get("directed", True)
        wrong = [edge for edge in content["edges"] if not isinstance(edge, list)]
        if wrong:
            raise OptionError(f'{path} holds the edge {wrong[0]!r}; expected a list of names, as in ["A", "B"].')
        edges = tuple(tuple(map(str, edge)) for edge in content["edges"])
        alone = tuple(map(str, content.get("nodes", ())))
        if directed:
            return GivenStructure(arrows=tuple(_pair(list(edge), path) for edge in edges), alone=alone)
        return GivenStructure(cliques=edges, alone=alone)
    if all(isinstance(parents, list) for parents in content.values()):
        arrows = tuple((str(parent), child) for child, parents in content.items() for parent in parents)
        return GivenStructure(arrows=arrows, alone=tuple(content))
    return None


def _pair(edge: list[Any], path: Path) -> tuple[str, str]:
    if len(edge) != 2:
        raise OptionError(f"{path} holds the edge {edge!r}; expected [parent, child].")
    return str(edge[0]), str(edge[1])


def _from_csv(path: Path) -> GivenStructure:
    """Two columns, from and to, or three with ``->`` or ``--`` in the last; a line of these words is a header.

    Cells are told apart by commas, semicolons or tabs, whichever the first line has.
    """
    text = _text_of(path)
    mark = next((mark for mark in (",", ";", "\t") if mark in text.partition("\n")[0]), ",")
    read = csv.reader(text.splitlines(), delimiter=mark)
    rows = [[cell.strip() for cell in row] for row in read if any(cell.strip() for cell in row)]
    if rows and [cell.lower() for cell in rows[0][:2]] in (["from", "to"], ["parent", "child"], ["source", "target"]):
        rows = rows[1:]
    arrows: list[tuple[str, str]] = []
    lines: list[tuple[str, str]] = []
    for number, row in enumerate(rows, 1):
        kind = row[2] if len(row) > 2 and row[2] else "->"
        if len(row) not in (2, 3) or kind not in ("->", "--"):
            raise OptionError(
                f"{path}, edge {number}: found {row!r}; expected from, to and, if not '->', the kind '--'. The "
                "structure comes first, then the rows: suffice fit STRUCTURE DATA."
            )
        (arrows if kind == "->" else lines).append((row[0], row[1]))
    return GivenStructure(tuple(arrows), tuple(lines))


def parse_edges(text: str) -> GivenStructure:
    """Edges written as text; see `suffice.graphs.notation`."""
    return GivenStructure(*parse_graph(text, EXPECTED))
