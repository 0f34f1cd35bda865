"""A network of tables as text, for writers: formats of others know no labels but text."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.domain import state_key
from suffice.errors import OptionError
from suffice.formats.networks import TableNetwork, faulty_row, find_cycle, row_name

#: Gives the reason why a format cannot hold a text, or None.
Refuse = Callable[[str], str | None]

_NO_ROWS: Floats = np.zeros((0, 0))


@dataclass(frozen=True)
class TextNode:
    """A node ready to be written: all labels as text; `table` has shape (rows, card), the last parent fastest."""

    name: str
    states: tuple[str, ...]
    parents: tuple[str, ...]
    parent_states: tuple[tuple[str, ...], ...]
    table: Floats
    about: tuple[str, ...]
    about_table: tuple[str, ...]


@dataclass(frozen=True)
class TextNetwork:
    """A network ready to be written."""

    name: str
    about: tuple[str, ...]
    nodes: tuple[TextNode, ...]


def as_text(
    network: TableNetwork,
    format_name: str,
    refuse: Refuse | None = None,
    *,
    refuse_about: Refuse | None = None,
    graded: bool = False,
) -> TextNetwork:
    """Check a network and turn its labels into text.

    refuse_about: the same for texts beside the model; by default as labels.
    graded: whether the format holds noisy-MAX nodes, which then have no rows of a table.

    Numbers and truth values are written as Python writes them; a file of these formats gives them back as text. Labels
    of other types, two labels with the same text, and labels that `refuse` gives a reason against are errors.
    """
    check_network(network, format_name)
    refuse_about = refuse_about or refuse
    domain, about = network.domain, network.properties
    names = dict(zip(domain, _texts(domain.names, "the names of the variables", refuse), strict=True))
    states = {node: _texts(domain[node].states, f"the states of {node!r}", refuse) for node in domain}
    nodes = tuple(
        TextNode(
            name=names[node],
            states=states[node],
            parents=tuple(names[parent] for parent in network.parents[node]),
            parent_states=tuple(states[parent] for parent in network.parents[node]),
            table=_NO_ROWS if graded and node in network.causes else checked_rows(network, node),
            about=_properties(about.get("variables", {}).get(node, ()), refuse_about),
            about_table=_properties(about.get("tables", {}).get(node, ()), refuse_about),
        )
        for node in domain
    )
    name = "".join(_properties([about.get("name", "")], refuse_about))
    return TextNetwork(name, _properties(about.get("network", ()), refuse_about), nodes)


def _properties(texts: Iterable[str], refuse: Refuse | None) -> tuple[str, ...]:
    """Texts beside the model, without blanks around them."""
    stripped = tuple(text.strip() for text in texts)
    for text in stripped:
        if reason := _unwritable(text) or (refuse(text) if refuse else None):
            raise OptionError(f"A property is {text!r}, {reason}. Remove it, or choose another format.")
    return stripped


def check_network(network: Any, format_name: str) -> None:
    """Refuse what is no directed network of tables."""
    if not isinstance(network, TableNetwork):
        raise OptionError(f"{format_name} holds directed networks of tables; this is {type(network).__name__}.")
    if cycle := find_cycle(network.parents):
        raise OptionError(f"The parents form a cycle: {' -> '.join(map(repr, cycle))}.")


def checked_rows(network: TableNetwork, node: Hashable) -> Floats:
    """The table of a node as rows, once it is one that a reader will take back."""
    parents = [network.domain[parent] for parent in network.parents[node]]
    table = network.table(node)
    shape = network.domain.shape((*network.parents[node], node))
    if table.shape != shape:
        raise OptionError(f"The table of node {node!r} has shape {table.shape}; its states and parents need {shape}.")
    rows = table.reshape(-1, shape[-1])
    if fault := faulty_row(rows):
        raise OptionError(f"The file would not be read again: {row_name(node, parents, fault[0])} {fault[1]}.")
    return rows


def _texts(labels: Iterable[Hashable], what: str, refuse: Refuse | None) -> tuple[str, ...]:
    labels_by_text: dict[str, Hashable] = {}
    for label in labels:
        kind = state_key(label)[0]
        if kind not in ("str", "bool", "number"):
            raise OptionError(f"Among {what} is {label!r} ({type(label).__name__}); the format holds text. Rename it.")
        text = str(label)
        reason = _unwritable(text) or (refuse(text) if refuse else None)
        if reason:
            raise OptionError(f"Among {what} is {label!r}, {reason}. Rename it, or choose another format.")
        if text in labels_by_text:
            raise OptionError(
                f"Among {what}, {labels_by_text[text]!r} and {label!r} are the same text. Rename one of them."
            )
        labels_by_text[text] = label
    return tuple(labels_by_text)


def _unwritable(text: str) -> str | None:
    if "\r" in text or "\x00" in text:
        return "with a carriage return or a NUL, which text files do not keep"
    if any("\ud800" <= character <= "\udfff" for character in text):
        return "with half of a surrogate pair, which UTF-8 does not hold"
    return None
