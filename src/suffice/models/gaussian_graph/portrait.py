"""What there is to see of a Gaussian graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from suffice.fitting.portrait import (
    Graph,
    Grid,
    NamedMatrix,
    Portrait,
    VariableDistribution,
    learned_portrait,
    matrix_grid,
    redrawn_rows,
)
from suffice.models.gaussian_graph.estimates import inference_of

if TYPE_CHECKING:
    from suffice.models.gaussian_graph.declaration import GaussianGraph
    from suffice.models.gaussian_graph.fitted import GaussianGraphFitted

#: Nodes up to which the partial correlations of all pairs are shown, and of how many they are printed.
MOST_NODES, MOST_PRINTED = 40, 12


def portrait_of(graph: GaussianGraphFitted) -> Portrait:
    """Its graph, means and standard deviations, and the partial correlations that its edges stand for."""
    tables: list[Callable[[], Grid | None]] = [partial(_moments, graph)]
    if len(graph.nodes) <= MOST_NODES:
        tables.append(partial(_correlations, graph))
    return Portrait(
        title="GaussianGraph",
        kind="gaussian",
        graph=Graph(graph.nodes, graph.structure.edges),
        n_params=lambda: graph.n_params,
        parameters=lambda: {"mean": graph.mean, "precision": graph.precision},
        text=partial(_text, graph),
        variables=partial(_variables, graph),
        tables=tables,
        precision=partial(_precision, graph),
    )


def portrait_of_model(model: GaussianGraph) -> Portrait:
    """The same with what the rows say about its parameters; of a model without a fit its graph alone."""
    if model._fit is None:
        return Portrait("GaussianGraph", "gaussian", graph=Graph(model.nodes, model.edges))
    return replace(
        learned_portrait(model),
        inference=lambda: inference_of(
            model.fitted_, model.statistics_.weight, prior=model.get_params(deep=False)["prior"] is not None
        ),
        redraw=partial(redrawn_rows, model),
    )


def _variables(graph: GaussianGraphFitted) -> list[VariableDistribution]:
    spreads = np.sqrt(np.diag(graph.covariance)).tolist()
    return [VariableDistribution.normal(*each) for each in zip(graph.nodes, graph.mean.tolist(), spreads, strict=True)]


def _moments(graph: GaussianGraphFitted) -> Grid:
    values = np.column_stack([graph.mean, np.sqrt(np.diag(graph.covariance))])
    return matrix_grid("Variables", graph.nodes, ["mean", "standard deviation"], values, "none")


def _correlations(graph: GaussianGraphFitted) -> Grid:
    return matrix_grid("Partial correlations", graph.nodes, graph.nodes, graph.partial_correlations, "signed")


def _precision(graph: GaussianGraphFitted, partial_correlations: bool) -> NamedMatrix:
    values = graph.partial_correlations if partial_correlations else graph.precision
    return NamedMatrix(graph.nodes, graph.nodes, np.asarray(values), signed=True)


def _text(graph: GaussianGraphFitted) -> str:
    """Partial correlations of the first nodes."""
    matrix = str(np.round(graph.partial_correlations[:MOST_PRINTED, :MOST_PRINTED], 3))
    rest = len(graph.nodes) - MOST_PRINTED
    more = f"\n... ({rest} more nodes)" if rest > 0 else ""
    return f"partial correlations of {', '.join(map(str, graph.nodes[:MOST_PRINTED]))}\n{matrix}{more}"
