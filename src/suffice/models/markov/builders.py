"""Markov networks made from something else: a grid, physics, potentials, a Bayesian network."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.domain import Domain, Variable
from suffice.errors import NotFittedError, OptionError, listing
from suffice.models.markov.feature import Feature
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.numbers import real_numbers
from suffice.models.markov.structure import (
    Term,
    agreement,
    grid_edges,
    ising_terms,
    potts_terms,
    product_of,
    value_of,
)
from suffice.table import Table

Floats = NDArray[np.float64]

CODINGS: dict[str, tuple[int, int]] = {"spin": (-1, 1), "binary": (0, 1)}


class MarkovBuilders:
    """Constructors of a Markov network, and what physicists read in it."""

    _options: dict[str, Any]
    _terms: tuple[Term, ...]
    _domain: Domain
    _weights: Floats

    def __init__(self, structure: Any, **options: Any) -> None:
        raise NotImplementedError

    def with_weights(self, weights: ArrayLike) -> Self:
        """A copy with these weights given; states have to be declared."""
        raise NotImplementedError

    @classmethod
    def grid(cls, rows: int, columns: int, **options: Any) -> Self:
        """A grid of variables named (row, column), with a table on each pair of neighbours."""
        edges: list[Any] = list(grid_edges(rows, columns))
        return cls(edges or [((0, 0),)], **options)

    @staticmethod
    def grid_edges(rows: int, columns: int) -> list[tuple[Hashable, Hashable]]:
        """The edges of a grid of variables named (row, column): a graph for `ising` and `potts`."""
        return grid_edges(rows, columns)

    @classmethod
    def ising(cls, graph: Any, *, coding: str = "spin", **options: Any) -> Self:
        """The Ising model, p(x) proportional to exp(sum_i u_i x_i + sum_ij w_ij x_i x_j).

        Args:
            graph: a networkx graph, or a list of edges.
            coding: ``"spin"`` for states -1 and +1, ``"binary"`` for 0 and 1. The two describe the same laws with
                different weights.
            options: those of the network.

        After a fit `fields_` gives u by node and `couplings_` w by edge.
        """
        if coding not in CODINGS:
            raise OptionError(f"coding is {coding!r}; expected one of {listing(CODINGS)}.")
        terms, nodes = ising_terms(graph)
        return cls(terms, states=dict.fromkeys(nodes, CODINGS[coding]), **options)

    @classmethod
    def potts(cls, graph: Any, states: Any, *, fields: bool = True, tied: bool = False, **options: Any) -> Self:
        """The Potts model, p(x) proportional to exp(sum_i h_i(x_i) + sum_ij w_ij 1{x_i = x_j}).

        Args:
            graph: a networkx graph, or a list of edges.
            states: number of states, or the list of them, of every node.
            fields: whether each node has a table h of its own.
            tied: whether all edges share one weight w.
            options: those of the network.
        """
        terms, nodes = potts_terms(graph, fields=fields, tied=tied)
        labels = list(range(states)) if isinstance(states, int) else list(states)
        return cls(terms, states=dict.fromkeys(nodes, labels), **options)

    @classmethod
    def from_potentials(cls, potentials: Mapping[Any, Any], **options: Any) -> Self:
        """A network with given potentials: a dict from cliques to tables of numbers of at least 0.

        A table without labels has the states 0, 1, 2, ... unless ``states=`` declares them.
        """
        declared = dict(options.pop("states", None) or {})
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
                array = real_numbers(values, f"The potential of {listing(names)}")
                _declare_axes(names, array.shape, declared)
            if not np.isfinite(array).all() or (array < 0).any():
                raise OptionError(f"The potential of {listing(names)} holds numbers that are negative or not finite.")
            tables[names] = array
        network = cls(list(tables), states=declared, **options)
        with np.errstate(divide="ignore"):
            return network.with_weights(np.concatenate([np.zeros(0), *(np.log(t).ravel() for t in tables.values())]))

    @classmethod
    def from_bayesian_network(cls, net: Any, **options: Any) -> Self:
        """The same law without directions: one clique for each family, whose potential is its table. log Z is 0."""
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
        return cls.from_potentials(tables, **options)

    # -- what physicists read ----------------------------------------------------------------------------------------

    @property
    def weights_(self) -> Floats:
        """The weights."""
        raise NotImplementedError

    @property
    def fields_(self) -> dict[Hashable, Any]:
        """The fields by node: u, the weight of a feature f(x) = x; of a Potts model a dict from states to h.

        Plus or minus infinity where a field ran there.
        """
        found: dict[Any, Any] = {}
        for term, weights in self._term_weights():
            if isinstance(term, Feature) and len(term.placements[0]) == 1 and self._is_like(term, value_of):
                found |= {scope[0]: float(weights[0]) for scope in term.placements}
            elif not isinstance(term, Feature) and len(term) == 1:
                found[term[0]] = dict(zip(self._domain[term[0]].states, weights.tolist(), strict=True))
        return self._found(found, "field, a feature f(x) = x of one variable or a table of one")

    @property
    def couplings_(self) -> dict[tuple[Hashable, ...], float]:
        """The couplings w by edge: the weights of features f(x, y) = x y, or 1{x = y} in a Potts model.

        Edges that share a weight all have it.
        """
        found: dict[Any, float] = {}
        for term, weights in self._term_weights():
            if isinstance(term, Feature) and len(term.placements[0]) == 2:
                if self._is_like(term, product_of) or self._is_like(term, agreement):
                    found |= dict.fromkeys(term.placements, float(weights[0]))
        return self._found(found, "coupling, a feature f(x, y) = x y or 1{x = y} of pairs")

    def _term_weights(self) -> list[tuple[Term, Floats]]:
        weights = self.weights_
        model = LogLinear(self._domain, self._terms)
        return [(term, weights[place]) for term, place in zip(self._terms, model.weight_slices, strict=True)]

    def _is_like(self, term: Feature, function: Any) -> bool:
        """Whether a feature has the values of a function; one of states that are no numbers is not."""
        try:
            wanted = Feature(list(term.placements), function).tables(self._domain)
        except OptionError:
            return False
        return all(map(np.array_equal, wanted, term.tables(self._domain)))

    def _found(self, found: dict[Any, float], what: str) -> dict[Any, float]:
        if not found:
            raise OptionError(f"The network has no {what}.")
        return found


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


def closed_domain(domain: Domain) -> Domain:
    """The same variables with their states declared: any other state is an error."""
    return Domain(Variable.discrete(variable.name, variable.states) for variable in domain.variables)
