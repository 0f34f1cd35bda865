"""Markov networks made from something else: a grid, physics, potentials, a Bayesian network."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, cast

import numpy as np

from suffice.array_types import Floats
from suffice.checks import choice
from suffice.choices import Coding
from suffice.errors import NotFittedError, OptionError, listing, shortened
from suffice.families.base import as_numbers
from suffice.models.markov.structure import (
    grid_edges,
    ising_terms,
    potts_terms,
)
from suffice.table import Table

#: The states of an Ising model by their coding.
CODINGS: dict[str, tuple[int, int]] = {"spin": (-1, 1), "binary": (0, 1)}


class Network(Protocol):
    """What a builder makes."""

    def __init__(self, structure: object, **options: Any) -> None: ...

    def with_weights(self, weights: object) -> Self:
        """A copy with these weights given."""


N = TypeVar("N", bound=Network)
T = TypeVar("T")
P = ParamSpec("P")


class Constructor(Protocol[P]):
    """A class method that makes an instance of the class it is asked of."""

    def __get__(self, instance: object, owner: type[T]) -> Callable[P, T]:
        """The method of a class."""


def constructor(function: Callable[Concatenate[Any, P], Any]) -> Constructor[P]:
    """The class method that a builder of this module is."""
    return cast("Constructor[P]", classmethod(function))


def grid(cls: type[N], /, rows: int, columns: int, **options: Any) -> N:
    """A grid of variables named (row, column), with a table on each pair of neighbours."""
    edges: list[Any] = list(grid_edges(rows, columns))
    return cls(edges or [((0, 0),)], **options)


def ising(cls: type[N], /, graph: object, *, coding: Coding = "spin", **options: Any) -> N:
    """The Ising model, p(x) proportional to exp(sum_i u_i x_i + sum_ij w_ij x_i x_j).

    Args:
        cls: the class of the network.
        graph: a networkx graph, or a list of edges.
        coding: ``"spin"`` for states -1 and +1, ``"binary"`` for 0 and 1. The two describe the same distributions with
            different weights.
        options: those of the network.

    After a fit `fields_` gives u by node and `couplings_` w by edge.
    """
    choice(coding, "coding", CODINGS)
    terms, nodes = ising_terms(graph)
    return cls(terms, states=dict.fromkeys(nodes, CODINGS[coding]), **options)


def potts(cls: type[N], /, graph: object, states: Any, *, fields: bool = True, tied: bool = False, **options: Any) -> N:
    """The Potts model, p(x) proportional to exp(sum_i h_i(x_i) + sum_ij w_ij 1{x_i = x_j}).

    Args:
        cls: the class of the network.
        graph: a networkx graph, or a list of edges.
        states: number of states, or the list of them, of every node.
        fields: whether each node has a table h of its own.
        tied: whether all edges share one weight w.
        options: those of the network.
    """
    terms, nodes = potts_terms(graph, fields=fields, tied=tied)
    labels = list(range(states)) if isinstance(states, int) else list(states)
    return cls(terms, states=dict.fromkeys(nodes, labels), **options)


def from_potentials(cls: type[N], /, potentials: Mapping[Any, Any], **options: Any) -> N:
    """A network with given potentials: a dict from cliques to tables of numbers of at least 0.

    A table without labels has the states 0, 1, 2, ... unless ``states=`` declares them.
    """
    if not isinstance(potentials, Mapping):
        raise OptionError(
            f"potentials is {shortened(potentials)}; expected a dict from cliques to tables, such as "
            "{('a', 'b'): [[1, 2], [3, 1]]}."
        )
    tables, states = _read_potentials(potentials, options.pop("states", None) or {})
    network = cls(list(tables), states=states, **options)
    with np.errstate(divide="ignore"):
        return network.with_weights(np.concatenate([np.zeros(0), *(np.log(t).ravel() for t in tables.values())]))


def from_bayesian_network(cls: type[N], /, net: Any, **options: Any) -> N:
    """The same distribution without directions: a clique for each family, whose potential is its table. log Z is 0."""
    return from_potentials(cls, _family_tables(net), **options)


def _read_potentials(
    potentials: Mapping[Any, Any], states: Mapping[Any, Any]
) -> tuple[dict[tuple[Hashable, ...], Floats], dict[Hashable, Any]]:
    """Potentials by clique as arrays, and the states of all variables: declared, of labelled tables, or 0, 1, 2, ..."""
    declared = dict(states)
    tables: dict[tuple[Hashable, ...], Floats] = {}
    for clique, values in potentials.items():
        names = clique if isinstance(clique, tuple) else (clique,)
        if isinstance(values, Table):
            for variable in values.domain.variables:
                declared.setdefault(variable.name, list(variable.states))
            ordered = values.transpose(names)
            array = ordered.values
            for axis, name in enumerate(names):
                own = ordered.domain[name]
                array = array.take([own.index(state) for state in declared[name]], axis=axis)
        else:
            array = np.array(as_numbers(values, f"The potential of {listing(names)}"))
            _declare_axes(names, array.shape, declared)
        if not np.isfinite(array).all() or (array < 0).any():
            raise OptionError(
                f"The potential of {listing(names)} holds numbers that are negative or not finite; expected finite "
                f"ones of at least 0."
            )
        tables[names] = array
    return tables, declared


def _declare_axes(names: tuple[Hashable, ...], shape: tuple[int, ...], declared: dict[Hashable, Any]) -> None:
    """Give the variables of an array without labels the states 0, 1, 2, ...; those that have states must fit."""
    if len(shape) != len(names):
        raise OptionError(f"The potential of {listing(names)} has {len(shape)} axes; expected {len(names)}.")
    for name, card in zip(names, shape, strict=True):
        known = declared.setdefault(name, list(range(card)))
        if len(known) != card:
            raise OptionError(
                f"The potential of {listing(names)} has {card} cells along {name!r}, which has {len(known)} states: "
                f"{listing(known)}."
            )


def _family_tables(net: Any) -> dict[tuple[Hashable, ...], Table]:
    """The tables of a discrete Bayesian network, by family."""
    if not (hasattr(net, "nodes") and callable(getattr(net, "table", None))):
        raise OptionError(f"net is {shortened(net)}; expected a fitted BayesianNetwork.")
    tables = {}
    for node in net.nodes:
        try:
            table = net.table(node)
        except NotFittedError:
            raise NotFittedError(
                "The Bayesian network has no tables yet. Fit it first; MarkovNetwork(net) takes its families as "
                "cliques and learns from data."
            ) from None
        if not isinstance(table, Table) or set(table.variables) != {*net.parents(node), node}:
            raise OptionError(f"The node {node!r} is no table; only discrete networks become Markov networks.")
        if np.isnan(table.values).any():
            raise OptionError(f"The table of {node!r} has undefined rows. Fit with a prior, or unseen='uniform'.")
        tables[table.variables] = table
    return tables
