"""Reading and writing by ending: the registry of file formats, and the conversions that those of networks share.

A format loads what a file holds and, where it can be written, saves a model. It sees a model from outside only: through
its public names, or as the plain data of ``model.to_dict()`` and ``Class.from_dict(state)``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np

from suffice.checks import choice
from suffice.choices import ParentOrder, choices
from suffice.domain import Domain, Variable
from suffice.errors import FileFormatError, OptionError, listing, shortened
from suffice.formats.networks import FactorNetwork, GradedCauses, TableNetwork
from suffice.models.bayesian.declaration import BayesianNetwork
from suffice.models.bayesian.nodes.table import TableNode
from suffice.registry import Registry

FilePath = str | os.PathLike[str]
M = TypeVar("M")


class Format(NamedTuple):
    """What reads a file of a format, and what writes one; None where it is only read.

    `ordered` reads a file whose tables may have their parents in either order.
    """

    load: Callable[[FilePath], Any]
    save: Callable[[FilePath, Any], None] | None = None
    ordered: Callable[[FilePath, ParentOrder], Any] | None = None


#: Ending -> its format, loaded on first use; other packages offer theirs in the group of entry points.
FORMATS: Registry[Format] = Registry("suffice.formats")


def register(ending: str, load: Callable[[FilePath], Any], save: Callable[[FilePath, Any], None] | None = None) -> None:
    """Enter a format by the ending of its files, such as ``".bif"``; the longest ending that fits a path counts."""
    FORMATS.register(ending, lambda: Format(load, save))


@overload
def read(path: FilePath, *, parent_order: ParentOrder | None = None) -> Any: ...


@overload
def read(path: FilePath, kind: type[M], *, parent_order: ParentOrder | None = None) -> M: ...


def read(path: FilePath, kind: type[Any] | None = None, *, parent_order: ParentOrder | None = None) -> Any:
    """Load the object in a file: a model, a distribution, a `Summary`; the ending says the format.

    ``.json`` and ``.suffice`` give back what was written, to the bit. A ``.json`` that lists nodes, arcs and the
    distribution of each node is read as a network. A file that is damaged, hostile or written by a newer version raises
    `FileFormatError` and builds nothing.

    kind: the class that is expected, such as ``sf.GLM``: an object of another one is an error, and checkers know the
        type of what is read.
    parent_order: of the tables of ``.uai`` and ``.xdsl`` files: ``"forward"`` where the last parent is the fastest, as
        these formats say, ``"reversed"`` where the first one is, as pyAgrum writes them. By default as the file says
        who wrote it; a UAI file does not, and a warning says how it is read.
    """
    if not (kind is None or isinstance(kind, type)):
        raise OptionError(f"kind is {shortened(kind)}; expected the class of what the file holds, such as sf.GLM.")
    loaded = _opened(path, parent_order)
    if kind is not None and not isinstance(loaded, kind):
        raise FileFormatError(f"{os.fspath(path)!r} holds a {type(loaded).__name__}; expected a {kind.__name__}.")
    return loaded


def _opened(path: FilePath, parent_order: ParentOrder | None) -> Any:
    known = _format_of(path)
    if parent_order is None:
        return known.load(path)
    choice(parent_order, "parent_order", choices(ParentOrder))
    if known.ordered is None:
        raise OptionError(f"parent_order= is for '.uai' and '.xdsl' files; {os.fspath(path)!r} has its own.")
    return known.ordered(path, parent_order)


def write(model: object, path: FilePath) -> None:
    """Save a model, a distribution or a `Summary`; the ending says the format.

    The file is replaced whole: after a crash the old one is still there.
    """
    check_writable(path)(path, model)


def check_writable(path: FilePath) -> Callable[[FilePath, Any], None]:
    """What writes files of this ending; one that is unknown, or only read, is refused."""
    save = _format_of(path).save
    if save is None:
        raise OptionError(
            f"{os.fspath(path)!r}: this format can be read but not written. Choose '.json' or '.suffice'."
        )
    return save


def _format_of(path: FilePath) -> Format:
    if not isinstance(path, str | os.PathLike):
        raise OptionError(f"path is {shortened(path)} ({type(path).__name__}); expected the path of a file, as text.")
    name = os.path.basename(str(os.fspath(path))).lower()
    # Other packages are asked only where no ending of this one fits: to look for them takes longer than most files.
    for endings in (FORMATS.own, FORMATS.names):
        for ending in sorted(endings(), key=len, reverse=True):
            if name.endswith(ending) and (known := FORMATS.find(ending)) is not None:
                return known
    raise OptionError(f"{os.fspath(path)!r} has no known ending; known: {', '.join(FORMATS.names())}.")


# -- the library's own files -----------------------------------------------------------------------------------------


def _stored() -> Format:
    from suffice import storage

    def load(path: FilePath) -> Any:
        model = storage.load(path)
        if storage.exported_class(type(model).__name__) is not type(model):
            raise FileFormatError(f"{os.fspath(path)!r} holds a {type(model).__name__}, not a model or a summary.")
        return model

    return Format(load, storage.save)


def _json() -> Format:
    """A JSON text of nodes and arcs is told from the library's own by its keys."""
    from suffice.formats import arcs_json

    own = _stored()
    return Format(lambda path: arcs_json.load(path) if arcs_json.holds_network(path) else own.load(path), own.save)


def _arcs_json() -> Format:
    from suffice.formats import arcs_json

    return Format(arcs_json.load)


def _arpa() -> Format:
    from suffice.formats import arpa

    return Format(arpa.load, arpa.save)


# -- networks of tables ----------------------------------------------------------------------------------------------


def _tables(
    load: Callable[[FilePath], TableNetwork],
    save: Callable[[FilePath, TableNetwork], None] | None = None,
    *,
    graded: bool = False,
) -> Format:
    """A format that holds tables only, or noisy-MAX nodes too."""
    return Format(
        lambda path: from_table_network(load(path)),
        None if save is None else lambda path, model: save(path, to_table_network(model, graded=graded)),
    )


def _bif() -> Format:
    from suffice.formats import bif

    return _tables(bif.load, bif.save)


def _xmlbif() -> Format:
    from suffice.formats import xmlbif

    return _tables(xmlbif.load, xmlbif.save)


def _net() -> Format:
    from suffice.formats import net

    return _tables(net.load, net.save)


def _dsl() -> Format:
    from suffice.formats import dsl

    return _tables(dsl.load)


def _xdsl() -> Format:
    from suffice.formats import xdsl

    return _tables(xdsl.load, xdsl.save, graded=True)._replace(
        ordered=lambda path, order: from_table_network(xdsl.load(path, order))
    )


def _uai() -> Format:
    """Tables of a Bayesian network, or factors."""
    from suffice.formats import uai

    def load(path: FilePath, order: ParentOrder | None = None) -> Any:
        network = uai.load(path, order)
        if not isinstance(network, TableNetwork):
            return network
        if order is None:
            uai.warn_of_order(path, network)
        return from_table_network(network)

    def save(path: FilePath, model: Any) -> None:
        from suffice.models.markov.declaration import MarkovNetwork

        factors = isinstance(model, MarkovNetwork)
        uai.save(path, to_factor_network(model) if factors else to_table_network(model))

    return Format(load, save, load)


for _ending, _load in (
    *((".json", _json), (".suffice", _stored), (".json.gz", _arcs_json), (".arpa", _arpa), (".arpa.gz", _arpa)),
    *((".bif", _bif), (".bif.gz", _bif), (".bifxml", _xmlbif), (".bifxml.gz", _xmlbif)),
    *((".xmlbif", _xmlbif), (".xmlbif.gz", _xmlbif), (".xml", _xmlbif), (".xml.gz", _xmlbif)),
    *((".net", _net), (".net.gz", _net), (".uai", _uai), (".uai.gz", _uai)),
    *((".dsl", _dsl), (".dsl.gz", _dsl), (".xdsl", _xdsl), (".xdsl.gz", _xdsl)),
):
    FORMATS.register(_ending, _load)


def from_table_network(network: TableNetwork) -> BayesianNetwork:
    """The model that a file of tables holds; what the reader changed is in `notes_`."""
    model = _with_causes(network) if network.causes else _of_tables(network)
    model.notes_ = network.notes
    return model


def _of_tables(network: TableNetwork) -> BayesianNetwork:
    return BayesianNetwork.from_tables(network.domain, network.parents, network.tables)


def _with_causes(network: TableNetwork) -> BayesianNetwork:
    """A network some of whose nodes are noisy-MAX."""
    from suffice.models.bayesian.nodes.noisy_kinds import NoisyMax, given_noisy_max

    domain, parents = network.domain, network.parents
    kinds: dict[Hashable, NoisyMax] = {}
    nodes: dict[Hashable, Any] = {}
    for name, causes in network.causes.items():
        resting = causes.inactive
        above = [domain[parent].states for parent in parents[name]]
        kinds[name] = NoisyMax(
            order=[domain[name].states[code] for code in causes.order],
            inactive={p: states[code] for p, states, code in zip(parents[name], above, resting, strict=True)},
        )
        active = [np.delete(effect, code, axis=0) for effect, code in zip(causes.effects, resting, strict=True)]
        shares = np.concatenate([causes.leak[None], *active])[:, causes.order]
        nodes[name] = given_noisy_max(domain.select([*parents[name], name]), causes.order, resting, shares)
    model = BayesianNetwork(parents, states={v.name: list(v.states) for v in domain.variables}, nodes=kinds)
    for name, table in network.tables.items():
        nodes[name] = TableNode.given(domain.select([*parents[name], name]), table)
    return model._with_nodes({name: nodes[name] for name in model.nodes})


def to_table_network(model: object, *, graded: bool = False) -> TableNetwork:
    """The tables of a network, for the formats that hold no more; `graded` ones hold noisy-MAX nodes as they are."""
    if not isinstance(model, BayesianNetwork):
        raise OptionError(
            f"This format holds Bayesian networks; a {type(model).__name__} goes to '.json' or '.suffice', and a "
            "Markov network to '.uai' as well. Give another ending."
        )
    real = [node for node in model.nodes if model.node(node).domain[node].kind != "discrete"]
    if real:
        raise OptionError(
            f"{listing(real)} hold numbers; this format has discrete nodes only. Write the network to '.json' or "
            "'.suffice'."
        )
    nodes = {name: model.node(name) for name in model.nodes}
    causes = _causes_of(nodes) if graded else {}
    tables = {name: model.table(name).values for name in nodes if name not in causes}
    domain = Domain(node.domain[name] for name, node in nodes.items())
    return TableNetwork(domain, {name: model.parents(name) for name in nodes}, tables, causes=causes)


def _causes_of(nodes: dict[Hashable, Any]) -> dict[Hashable, GradedCauses]:
    """The noisy-MAX nodes among some."""
    from suffice.models.bayesian.nodes.noisy_max import NoisyMaxNode

    return {
        name: GradedCauses(node.order, node.inactive, *node.alone)
        for name, node in nodes.items()
        if isinstance(node, NoisyMaxNode) and node.parents
    }


def to_factor_network(model: Any) -> FactorNetwork:
    """The potentials of a Markov network, whose product is its distribution up to a constant, for its file."""
    nodes = list(model.nodes)
    if set(nodes) == set(range(len(nodes))):
        nodes.sort()  # The file names variables by their places, which these names are.
    domain = Domain(Variable.discrete(node, model.states(node)) for node in nodes)
    return FactorNetwork(domain, tuple((table.variables, np.asarray(table.values)) for table in model.factors()))
