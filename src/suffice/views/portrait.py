"""What there is to show of a fitted model: its graph, its tables and the laws of its variables.

A model is looked at from outside, through the public names that it has; what it does not have is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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

#: What regressions call the axis of their coefficients.
COEFFICIENT = "coefficient"
#: Nodes up to which a graph is drawn; more would not be readable.
MOST_DRAWN = 250
#: Rows of a table that are shown, and cells up to which it is made.
MOST_ROWS, MOST_CELLS = 64, 20_000
#: Tables that are shown.
MOST_TABLES = 120


@dataclass(frozen=True)
class Grid:
    """A table to be shown: `axes` name the columns with labels, `head` the others; `left_out` rows are not shown.

    `over` is written once above the head. `plain` are columns without colours.
    """

    title: str
    axes: tuple[str, ...]
    head: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    values: Floats
    colours: Colours
    left_out: int = 0
    over: str = ""
    plain: tuple[int, ...] = ()


@dataclass(frozen=True)
class Law:
    """The law of one variable: probabilities of its states, or `normal`, its mean and standard deviation."""

    name: Hashable
    states: tuple[Hashable, ...] = ()
    probabilities: tuple[float, ...] = ()
    normal: tuple[float, float] | None = None


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
        return [law for source in _LAWS for law in _or_none(partial(source, model)) or ()], ""
    try:
        found = model.marginals()
    except (SufficeError, NotImplementedError) as error:
        return [], f"The laws of single variables are not shown: {error}"
    return [_law(name, law) for name, law in found.items()], ""


def _law(name: Hashable, law: Any) -> Law:
    if isinstance(law, Table):
        return Law(name, tuple(law.domain.variables[0].states), tuple(law.values.tolist()))
    mean, variance = (float(np.asarray(getattr(law, part)).ravel()[0]) for part in ("mean", "covariance"))
    return Law(name, normal=(mean, math.sqrt(variance)))


def _laws_of_columns(model: Any) -> list[Law]:
    """Of a Gaussian graph: each variable; of a law of states: the column itself."""
    if hasattr(model, "precision_") and hasattr(model, "nodes"):
        pairs = zip(model.mean_.tolist(), np.sqrt(np.diag(model.covariance_)).tolist(), strict=True)
        return [Law(name, normal=pair) for name, pair in zip(model.nodes, pairs, strict=True)]
    parameters, states = getattr(model, "parameters_", {}), getattr(model, "states_", ())
    if not isinstance(parameters, Mapping):
        return []
    if set(parameters) == {"mean", "variance"} and np.ndim(parameters["mean"]) == 0:
        return [Law("value", normal=(float(parameters["mean"]), math.sqrt(float(parameters["variance"]))))]
    shares = parameters.get("probabilities")
    if shares is None and "probability" in parameters and len(states) == 2:
        shares = [1.0 - parameters["probability"], parameters["probability"]]
    if shares is None or len(states) != np.size(shares) or np.ndim(shares) != 1:
        return []
    return [Law("value", tuple(states), tuple(np.asarray(shares, dtype=np.float64).tolist()))]


def _laws_of_states(model: Any) -> list[Law]:
    """Of models of sequences: the first state, and the share of each state in the long run."""
    if not hasattr(model, "transitions_"):
        return []
    states, first = tuple(model.states_), np.asarray(getattr(model.initial_, "values", model.initial_))
    found = [Law("first state", states, tuple(first.ravel().tolist()))]
    matrix = np.asarray(getattr(model.transitions_, "values", model.transitions_))
    if matrix.shape == (len(states), len(states)) and np.isfinite(matrix).all():
        # The least squares solution is a law also where several are stationary.
        system = np.vstack([matrix.T - np.eye(len(states)), np.ones(len(states))])
        rest = np.linalg.lstsq(system, np.append(np.zeros(len(states)), 1.0), rcond=None)[0]
        found.append(Law("state in the long run", states, tuple(np.clip(rest, 0.0, 1.0).tolist())))
    return found


def _laws_of_labels(model: Any) -> list[Law]:
    """Of conditional random fields: the labels given to them."""
    shares = getattr(model, "label_shares_", None)
    return [] if shares is None else [Law("labels given", tuple(model.labels_), tuple(shares.tolist()))]


_LAWS = (_laws_of_columns, _laws_of_states, _laws_of_labels)


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
    head, axes = tuple(map(str, last.states)), tuple(str(variable.name) for variable in outer)
    over = "" if last.name == COEFFICIENT else str(last.name)
    return Grid(title, axes, head, labels, rows[:MOST_ROWS], colours, max(0, len(rows) - MOST_ROWS), over)


def _matrix(
    title: str,
    rows: Sequence[object],
    columns: Sequence[object],
    values: Any,
    colours: Colours,
    plain: tuple[int, ...] = (),
) -> Grid:
    numbers = np.asarray(values, dtype=np.float64).reshape(len(rows), len(columns))
    labels = tuple((str(row),) for row in rows[:MOST_ROWS])
    left_out = max(0, len(rows) - MOST_ROWS)
    return Grid(title, ("",), tuple(map(str, columns)), labels, numbers[:MOST_ROWS], colours, left_out, plain=plain)


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
        if is_law:
            return grid_of(table, title, "share")
        grid = grid_of(table, title, "signed")
        # Intercepts and variances are in other units than the effects of parents.
        return replace(grid, plain=tuple(at for at, name in enumerate(grid.head) if name.startswith("(")))

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
            yield from _emissions(states, model.emissions_)
    if hasattr(model, "transition_weights_"):
        labels = model.labels_
        yield lambda: _matrix("Weights of transitions", labels, labels, model.transition_weights_, "signed")
        top = model.top_features(20)
        names = [f"{one.feature} → {one.label}" for one in top]
        yield lambda: _matrix("Largest weights", names, ["weight"], [one.weight for one in top], "signed")


def _emissions(states: Sequence[object], laws: Sequence[Any]) -> Makers:
    """Parameters of the law of each state: numbers and vectors in a table of all states, matrices in one for each."""
    parameters = [getattr(law, "parameters_", {}) for law in laws]
    titles = getattr(laws[0], "columns_", None) or getattr(laws[0], "_options", {}).get("columns")
    names = [name for name, value in parameters[0].items() if np.ndim(value) == 0]
    if names:
        values = [[held[name] for name in names] for held in parameters]
        yield lambda: _matrix("Value, given the state", states, names, values, "signed")
    for name, value in parameters[0].items():
        columns = list(titles or range(np.shape(value)[-1] if np.ndim(value) else 0))
        if np.ndim(value) == 1:
            rows = [held[name] for held in parameters]
            yield partial(_matrix, f"{name.capitalize()}, given the state", states, columns, rows, "signed")
        elif np.ndim(value) == 2:
            for state, held in zip(states, parameters, strict=True):
                title = f"{name.capitalize()} in state {state}"
                yield partial(_matrix, title, columns, columns, held[name], "signed")


def _templates(model: Any) -> Makers:
    """Of a graph CRF: weights of nodes by label and feature, of edges by both labels for each feature."""
    if not hasattr(model, "node_weights_") or not hasattr(model, "edge_weights_"):
        return
    labels, nodes, edges = model.labels_, model.node_weights_, model.edge_weights_
    features = [f"feature {at}" for at in range(nodes.shape[1])]
    yield lambda: _matrix("Weights of nodes", labels, features, nodes, "signed")
    for at in range(min(edges.shape[2], MOST_TABLES)):
        title = "Weights of edges" if edges.shape[2] == 1 else f"Weights of edges, feature {at}"
        yield partial(_matrix, title, labels, labels, edges[:, :, at], "signed")


def _parameters(model: Any) -> Makers:
    """Of a law of a column: its parameters; of a regression its table."""
    parameters = getattr(model, "parameters_", None)
    if isinstance(parameters, Mapping):
        single = {name: value for name, value in parameters.items() if np.ndim(value) == 0}
        if single:
            yield lambda: _matrix("Parameters", list(single), ["value"], list(single.values()), "signed")
        for name, value in parameters.items():
            if name not in single:
                yield partial(_parameter, model, name, np.asarray(value, dtype=np.float64))
    elif hasattr(model, "coefficients_") and callable(getattr(model, "summary", None)):
        table = model.summary()
        names = [name for name, _ in table.rows]
        values = [values for _, values in table.rows]
        # Errors and p values have no sign; the ends of the intervals are no estimates.
        plain = tuple(at for at in range(len(table.columns)) if at != 0)
        yield lambda: _matrix("Coefficients", names, table.columns, values, "signed", plain)


def _parameter(model: Any, name: str, value: Floats) -> Grid:
    states, size = getattr(model, "states_", ()), value.shape[-1]
    columns = list(states) if len(states) == size else [str(k) for k in range(size)]
    rows = [name] if value.ndim == 1 else columns
    shares = bool(value.ndim == 1 and abs(value.sum() - 1) < 1e-9 and (value >= 0).all())
    return _matrix(name, rows, columns, value, "share" if shares else "signed")


_SOURCES = (_node_tables, _potentials, _gaussian, _sequences, _templates, _parameters)


def _or_none(make: Callable[[], Any]) -> Any:
    """What is asked for, or None where the library says that there is none."""
    try:
        return make()
    except (SufficeError, AttributeError):
        return None
