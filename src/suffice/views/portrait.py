"""What there is to show of a fitted model: its graph, its tables and the laws of its variables.

A model is looked at from outside, through the public names that it has; what it does not have is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from suffice.errors import SufficeError
from suffice.table import Table
from suffice.views.layout import Placement, place_graph

Floats = NDArray[np.float64]
#: Shares are coloured from 0 to 1, factors to both sides of 1, signed numbers to both sides of 0, others not at all.
Colours = Literal["share", "factor", "signed", "none"]

#: Nodes up to which a graph is drawn; more would not be readable.
MOST_DRAWN = 250
#: Rows of a table that are shown, and cells up to which it is made.
MOST_ROWS, MOST_CELLS = 64, 20_000
#: Tables that are shown.
MOST_TABLES = 120


@dataclass(frozen=True)
class Grid:
    """A table to be shown: `axes` name the columns with labels, `head` the others; `left_out` rows are not shown."""

    title: str
    axes: tuple[str, ...]
    head: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    values: Floats
    colours: Colours
    left_out: int = 0


@dataclass(frozen=True)
class Law:
    """The law of one variable: probabilities of its states, or in words."""

    name: Hashable
    states: tuple[Hashable, ...] = ()
    probabilities: tuple[float, ...] = ()
    words: str = ""


# -- the graph -------------------------------------------------------------------------------------------------------


def graph_of(model: Any) -> Placement | str | None:
    """Where its nodes are drawn; a sentence where there are too many, and None where the model has no graph."""
    nodes, edges = (_or_none(partial(getattr, model, name)) for name in ("nodes", "edges"))
    if nodes is None or edges is None:
        return None
    if len(nodes) > MOST_DRAWN:
        return (
            f"A graph of {len(nodes):,} nodes and {len(edges):,} edges is not drawn; the limit is {MOST_DRAWN} nodes."
        )
    return place_graph(tuple(nodes), tuple(edges), directed=callable(getattr(model, "parents", None)))


# -- laws of the variables -------------------------------------------------------------------------------------------


def laws_of(model: Any) -> tuple[list[Law], str]:
    """The law of every variable without evidence, and why there are none where that is the case."""
    if not callable(getattr(model, "marginals", None)):
        return [], ""
    try:
        found = model.marginals()
    except (SufficeError, NotImplementedError) as error:
        return [], f"The laws of single variables are not shown: {error}"
    return [_law(name, law) for name, law in found.items()], ""


def _law(name: Hashable, law: Any) -> Law:
    if isinstance(law, Table):
        return Law(name, tuple(law.domain.variables[0].states), tuple(law.values.tolist()))
    mean, variance = (float(np.asarray(getattr(law, part)).ravel()[0]) for part in ("mean", "covariance"))
    return Law(name, words=f"mean {mean:.5g}, standard deviation {math.sqrt(variance):.5g}")


# -- tables ----------------------------------------------------------------------------------------------------------


def grids_of(model: Any) -> tuple[list[Grid], int]:
    """The tables of a model, and how many more it has."""
    found = [make for source in _SOURCES for make in source(model)]
    grids = [grid for make in found[:MOST_TABLES] if (grid := _or_none(make)) is not None]
    return grids, max(0, len(found) - MOST_TABLES)


def grid_of(table: Table, title: str, colours: Colours) -> Grid:
    """A table with its last variable along the columns."""
    *outer, last = table.domain.variables
    rows = table.values.reshape(-1, last.card)
    places = [place for place, _ in zip(np.ndindex(*(v.card for v in outer)), range(MOST_ROWS), strict=False)]
    labels = tuple(tuple(str(v.states[code]) for v, code in zip(outer, place, strict=True)) for place in places)
    head = tuple(f"{last.name}={state}" for state in last.states)
    axes = tuple(str(variable.name) for variable in outer)
    return Grid(title, axes, head, labels, rows[:MOST_ROWS], colours, max(0, len(rows) - MOST_ROWS))


def _matrix(title: str, rows: Sequence[object], columns: Sequence[object], values: Any, colours: Colours) -> Grid:
    numbers = np.asarray(values, dtype=np.float64).reshape(len(rows), len(columns))
    labels = tuple((str(row),) for row in rows[:MOST_ROWS])
    left_out = max(0, len(rows) - MOST_ROWS)
    return Grid(title, ("",), tuple(map(str, columns)), labels, numbers[:MOST_ROWS], colours, left_out)


Makers = Iterator[Callable[[], Grid | None]]


def _node_tables(model: Any) -> Makers:
    """Of a Bayesian network: P(node | parents), or the coefficients of a node."""
    if not callable(getattr(model, "node", None)):
        return

    def make(name: Hashable) -> Grid | None:
        domain = model.node(name).domain
        discrete = [variable.card for variable in domain.variables if variable.kind == "discrete"]
        if math.prod(discrete) > MOST_CELLS:
            return None
        table, parents = model.table(name), ", ".join(map(str, model.parents(name)))
        is_law = table.variables[-1] == name
        title = f"P({name} | {parents})" if parents and is_law else f"P({name})" if is_law else f"{name}: coefficients"
        return grid_of(table, title, "share" if is_law else "none")

    yield from (partial(make, name) for name in model.nodes)


def _potentials(model: Any) -> Makers:
    """Of a Markov network: its factors, and the weights of its features."""
    if not callable(getattr(model, "potential", None)):
        return

    def make(clique: tuple[Hashable, ...]) -> Grid | None:
        if math.prod(len(model.states(name)) for name in clique) > MOST_CELLS:
            return None
        return grid_of(model.potential(clique), f"Potential of {', '.join(map(str, clique))}", "factor")

    yield from (partial(make, clique) for clique in model.cliques)
    if model.features:
        yield lambda: _matrix("Weights", model.weight_names_, ["weight"], model.weights_, "signed")


def _gaussian(model: Any) -> Makers:
    """Of a Gaussian graph: means and standard deviations, and partial correlations."""
    if not hasattr(model, "precision_") or not hasattr(model, "nodes"):
        return
    nodes = model.nodes
    mean, spread = model.mean_, np.sqrt(np.diag(model.covariance_))
    columns = ["mean", "standard deviation"]
    yield lambda: _matrix("Variables", nodes, columns, np.column_stack([mean, spread]), "none")
    if len(nodes) <= 40:
        scale = np.sqrt(np.diag(model.precision_))
        correlations = -model.precision_ / np.outer(scale, scale) + 2 * np.eye(len(nodes))
        yield lambda: _matrix("Partial correlations", nodes, nodes, correlations, "signed")


def _sequences(model: Any) -> Makers:
    """Of a model of sequences: initial states, transitions, emissions, weights of transitions."""
    states = _or_none(lambda: model.states_) if hasattr(model, "transitions_") else None
    if states is not None:
        for title, name in (("First state", "initial_"), ("Next state, given the state", "transitions_")):
            value = getattr(model, name)
            if isinstance(value, Table):
                yield partial(grid_of, value, title, "share")
            else:
                rows = ["P"] if value.ndim == 1 else states
                yield partial(_matrix, title, rows, states, value, "share")
        symbols = getattr(model, "symbols_", ())
        if symbols:
            yield lambda: _matrix("Symbol, given the state", states, symbols, model.emission_probabilities_, "share")
        elif hasattr(model, "emissions_"):
            yield lambda: _emissions(states, model.emissions_)
    if hasattr(model, "transition_weights_"):
        labels = model.labels_
        yield lambda: _matrix("Weights of transitions", labels, labels, model.transition_weights_, "signed")
        top = model.top_features(20)
        names = [f"{one.feature} → {one.label}" for one in top]
        yield lambda: _matrix("Largest weights", names, ["weight"], [one.weight for one in top], "signed")


def _emissions(states: Sequence[object], laws: Sequence[Any]) -> Grid | None:
    """Parameters of the law of each state, where all are numbers."""
    names = list(laws[0].parameters_)
    values = [[law.parameters_[name] for name in names] for law in laws]
    numbers = all(np.ndim(value) == 0 for row in values for value in row)
    return _matrix("Value, given the state", states, names, values, "none") if numbers else None


def _parameters(model: Any) -> Makers:
    """Of a law of a column: its parameters; of a regression its table."""
    parameters = getattr(model, "parameters_", None)
    if isinstance(parameters, Mapping):
        single = {name: value for name, value in parameters.items() if np.ndim(value) == 0}
        if single:
            yield lambda: _matrix("Parameters", list(single), ["value"], list(single.values()), "none")
        for name, value in parameters.items():
            if name not in single:
                yield partial(_parameter, model, name, np.asarray(value, dtype=np.float64))
    elif hasattr(model, "coefficients_") and callable(getattr(model, "summary", None)):
        table = model.summary()
        names = [name for name, _ in table.rows]
        yield lambda: _matrix("Coefficients", names, table.columns, [values for _, values in table.rows], "none")


def _parameter(model: Any, name: str, value: Floats) -> Grid:
    states, size = getattr(model, "states_", ()), value.shape[-1]
    columns = list(states) if len(states) == size else [str(k) for k in range(size)]
    rows = [name] if value.ndim == 1 else columns
    shares = bool(value.ndim == 1 and abs(value.sum() - 1) < 1e-9 and (value >= 0).all())
    return _matrix(name, rows, columns, value, "share" if shares else "none")


_SOURCES = (_node_tables, _potentials, _gaussian, _sequences, _parameters)


def _or_none(make: Callable[[], Any]) -> Any:
    """What is asked for, or None where the library says that there is none."""
    try:
        return make()
    except (SufficeError, AttributeError):
        return None
