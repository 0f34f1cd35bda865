"""What there is to see of a network through time: its arcs, and P(node | parents) of each family."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from suffice.fitting.inference import joined
from suffice.fitting.portrait import Graph, Portrait, or_none
from suffice.models.bayesian.portrait import grid_of, text_of
from suffice.models.dynamic_network.estimates import parted, redrawn
from suffice.models.dynamic_network.structure import SliceStructure

if TYPE_CHECKING:
    from suffice.models.dynamic_network.declaration import DynamicBayesianNetwork
    from suffice.models.dynamic_network.fitted import DynamicFitted


def graph_of(structure: SliceStructure) -> Graph:
    """The nodes of a slice, with those of slices before and inputs on which they depend."""
    edges = tuple((parent, child) for child, parents in structure.parents.items() for parent in parents)
    names = dict.fromkeys((*(parent for parent, _ in edges), *structure.nodes))
    return Graph(tuple(names), edges, directed=True)


def portrait_of(fitted: DynamicFitted) -> Portrait:
    """Its graph, and P(node | parents) of each family."""
    return Portrait(
        title=fitted.title,
        kind="dynamic",
        graph=graph_of(fitted.structure),
        n_params=lambda: fitted.n_params,
        parameters=lambda: {family: fitted.table(family) for family in fitted.nodes},
        text=partial(text_of, fitted.network),
        tables=[partial(grid_of, fitted.network, family) for family in fitted.nodes],
        table=fitted.table,
    )


def portrait_of_model(model: DynamicBayesianNetwork) -> Portrait:
    """The same with what the fit makes equal; of a model that has learned nothing its graph alone."""
    fitted = or_none(lambda: model.fitted_)
    if fitted is None:
        return Portrait("DynamicBayesianNetwork", "dynamic", graph=graph_of(model._structure))
    return replace(
        portrait_of(fitted),
        n_params=lambda: model.n_params_,
        matched=model.matched_statistics,
        redraw=partial(redrawn, model),
        parted=parted,
        inference=lambda: joined([model.node(name).inference() for name in model._learning.leading]),
    )
