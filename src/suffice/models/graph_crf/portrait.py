"""What there is to see of a graph CRF."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from suffice.fitting.portrait import Grid, Portrait, matrix_grid
from suffice.models.graph_crf.graphs import EDGES, NODES

if TYPE_CHECKING:
    from suffice.models.graph_crf.fitted import GraphCRFFitted


def portrait_of(fitted: GraphCRFFitted) -> Portrait:
    """Weights of nodes by label and feature, of edges by both labels for each feature."""
    return Portrait(
        title="GraphCRF",
        kind="graph-crf",
        facts={"labels": fitted.structure.labels},
        n_params=lambda: fitted.n_params,
        parameters=fitted.named_weights,
        tables=_tables(fitted),
    )


def _tables(fitted: GraphCRFFitted) -> list[Callable[[], Grid | None]]:
    labels, nodes, edges = fitted.structure.labels, fitted.template_weights(NODES), fitted.template_weights(EDGES)
    features = [f"feature {number}" for number in range(nodes.shape[1])]
    tables: list[Callable[[], Grid | None]] = [
        partial(matrix_grid, "Weights of nodes", labels, features, nodes, "signed")
    ]
    for number in range(edges.shape[2]):
        title = "Weights of edges" if edges.shape[2] == 1 else f"Weights of edges, feature {number}"
        tables.append(partial(matrix_grid, title, labels, labels, edges[:, :, number], "signed"))
    return tables
