"""Reading and writing by ending: the library's own file, and the table in which other formats enter.

A format is a module with ``load(path)`` and, where it can be written, ``save(path, model)``. It sees a model from
outside only: through its public names, or as the plain data of ``model.to_plain()`` and ``Class.from_plain(state)``.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

import numpy as np

from suffice.domain import Domain, Variable
from suffice.errors import FileFormatError, OptionError, listing, shortened
from suffice.formats.networks import FactorNetwork, TableNetwork
from suffice.models.bayesian.declaration import BayesianNetwork

FilePath = str | os.PathLike[str]

_NETWORKS = {".bif": "bif", ".bifxml": "xmlbif", ".xmlbif": "xmlbif", ".xml": "xmlbif", ".net": "net", ".uai": "uai"}
_READ_ONLY = {".dsl": "dsl", ".xdsl": "xdsl"}

#: Ending -> the module that reads and writes it, imported on first use.
FORMATS: dict[str, str] = {
    ".json": "suffice.storage",
    ".suffice": "suffice.storage",
    ".json.gz": "suffice.formats.arcs_json",
    ".arpa": "suffice.formats.arpa",
    ".arpa.gz": "suffice.formats.arpa",
    **{
        ending + packed: f"suffice.formats.{module}"
        for ending, module in (_NETWORKS | _READ_ONLY).items()
        for packed in ("", ".gz")
    },
}


def read(path: FilePath) -> Any:
    """Load the object in a file: a model, a distribution, a `Summary`; the ending says the format.

    ``.json`` and ``.suffice`` give back what was written, to the bit. A ``.json`` that lists nodes, arcs and the law of
    each node is read as a network. A file that is damaged, hostile or written by a newer version raises
    `FileFormatError` and builds nothing.
    """
    module = _reader_of(path)
    found = module.load(path)
    if isinstance(found, TableNetwork):
        return from_table_network(found)
    if module.__name__ == "suffice.storage" and not hasattr(found, "to_plain"):
        raise FileFormatError(f"{os.fspath(path)!r} holds a {type(found).__name__}, not a model or a summary.")
    return found


def write(model: Any, path: FilePath) -> None:
    """Save a model, a distribution or a `Summary`; the ending says the format.

    The file is replaced whole: after a crash the old one is still there.
    """
    module = check_writable(path)
    if not hasattr(module, "render"):
        module.save(path, model)
    elif module.__name__.endswith(".uai") and hasattr(model, "potential"):
        module.save(path, to_factor_network(model))
    else:
        module.save(path, to_table_network(model))


def check_writable(path: FilePath) -> Any:
    """The module that writes files of this ending; one that is unknown, or only read, is refused."""
    module = _format_of(path)
    if not hasattr(module, "save"):
        raise OptionError(
            f"{os.fspath(path)!r}: this format can be read but not written. Choose '.json' or '.suffice'."
        )
    return module


def from_table_network(network: TableNetwork) -> BayesianNetwork:
    """The model that a file of tables holds; what the reader changed is in `notes_`."""
    model = BayesianNetwork.from_tables(network.domain, network.parents, network.tables)
    model.notes_ = network.notes
    return model


def to_table_network(model: Any) -> TableNetwork:
    """The tables of a network, for the formats that hold tables only."""
    if not isinstance(model, BayesianNetwork):
        raise OptionError(
            f"This format holds Bayesian networks; a {type(model).__name__} goes to '.json' or '.suffice', and a "
            "Markov network to '.uai' as well."
        )
    real = [node for node in model.nodes if model.node(node).domain[node].kind != "discrete"]
    if real:
        raise OptionError(
            f"{listing(real)} hold numbers; this format has discrete nodes only. Write the network to '.json' or "
            "'.suffice'."
        )
    tables = {node: model.table(node).values for node in model.nodes}
    domain = Domain(model.node(node).domain[node] for node in model.nodes)
    return TableNetwork(domain, {node: model.parents(node) for node in model.nodes}, tables)


def to_factor_network(model: Any) -> FactorNetwork:
    """The potentials of a Markov network, whose product is its law up to a constant, for the format that holds them."""
    nodes = list(model.nodes)
    if set(nodes) == set(range(len(nodes))):
        nodes.sort()  # The file names variables by their places, which these names are.
    domain = Domain(Variable.discrete(node, model.states(node)) for node in nodes)
    return FactorNetwork(domain, tuple((table.variables, np.asarray(table.values)) for table in model.factors()))


def _reader_of(path: FilePath) -> Any:
    """The module for the ending; a JSON text of nodes and arcs is told from the library's own by its keys."""
    module = _format_of(path)
    if module.__name__ != "suffice.storage" or not os.fspath(path).lower().endswith(".json"):
        return module
    arcs_json = importlib.import_module("suffice.formats.arcs_json")
    return arcs_json if arcs_json.holds_network(path) else module


def _format_of(path: FilePath) -> Any:
    if not isinstance(path, str | os.PathLike):
        raise OptionError(f"path is {shortened(path)} ({type(path).__name__}); expected the path of a file, as text.")
    name = os.path.basename(str(os.fspath(path))).lower()
    for ending in sorted(FORMATS, key=len, reverse=True):
        if name.endswith(ending):
            return importlib.import_module(FORMATS[ending])
    raise OptionError(f"{os.fspath(path)!r} has no known ending; known: {', '.join(FORMATS)}.")
