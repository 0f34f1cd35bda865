"""Does the maximum exist? Labels of graphs that some direction of the weights separates from all others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.models.conditional_field.curvature import ends_nearby
from suffice.models.conditional_field.existence import UNDECIDED, Extremes, Standing, at_their_ends, standing_of
from suffice.models.conditional_field.priors import Penalties
from suffice.models.conditional_field.rank import FeatureRank
from suffice.models.graph_crf.decoding import best_codes, label_scores
from suffice.models.graph_crf.graphs import Graphs
from suffice.models.graph_crf.objective import GraphObjective
from suffice.models.graph_crf.structure import Structure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def graph_standing(
    objective: GraphObjective, graphs: Graphs, codes: Ints, weights: Floats, rank: FeatureRank
) -> Standing:
    """Whether the likelihood of labelled graphs has a maximum; weights (k,): where a fit ended.

    Where a feature has its lowest or highest sum, its weight alone is such a direction, of the likelihood and of the
    pseudo-likelihood; other directions are tried where best labels are exact.
    """
    structure, once = objective.structure, np.ones(len(graphs))
    if objective.engine.wide == "loopy" and not objective.exact:
        return UNDECIDED
    observed = structure.observed(graphs, codes, once)
    low, high = _ends(structure, graphs)
    alone = at_their_ends(observed, low, high)
    if alone.any():
        return Standing(False, alone)
    if not objective.exact:
        return UNDECIDED

    def best_features(x: Floats) -> Floats:
        best = best_codes(structure, graphs, x, objective.engine, np.random.default_rng(0))
        return structure.observed(graphs, best, once)

    def few() -> Any:
        even = GraphObjective(structure, graphs, codes, once, Penalties(), objective.engine)
        return best_features, observed, even.smooth(np.zeros_like(weights))[1]

    def near() -> float | None:
        return ends_nearby(objective, weights, _ranges(structure, graphs), rank.value) if rank.exact else None

    return standing_of(_extremes(objective, graphs, codes), (weights,), few, near)


def _ends(structure: Structure, graphs: Graphs) -> tuple[Floats, Floats]:
    """Bounds (k,) of the sum of every feature over all labels: each clique at the cell that suits it best."""
    if structure.size == 1:  # One label alone leaves nothing to choose, and no feature its cell.
        still = np.zeros(structure.length)
        return still, still
    low, high = [], []
    for template, part in zip(structure.templates, graphs.parts, strict=True):
        rises, falls = np.maximum(part.features, 0.0).sum(axis=0), np.minimum(part.features, 0.0).sum(axis=0)
        most = np.ones(template.rows) if template.matrix is None else template.matrix.max(axis=0)
        least = np.zeros(template.rows) if template.matrix is None else template.matrix.min(axis=0)
        high.append((np.outer(most, rises) + np.outer(least, falls)).ravel())
        low.append((np.outer(least, rises) + np.outer(most, falls)).ravel())
    return np.concatenate(low), np.concatenate(high)


def _ranges(structure: Structure, graphs: Graphs) -> Floats:
    """Bounds (k,) of the range of every feature over the labels of any one example."""
    found = []
    for template, part in zip(structure.templates, graphs.parts, strict=True):
        sums = np.zeros((len(graphs), template.features))
        np.add.at(sums, part.owner, np.abs(part.features))
        spread = np.ones(template.rows) if template.matrix is None else np.ptp(template.matrix, axis=0)
        found.append(np.outer(spread, sums.max(axis=0)).ravel())
    return np.concatenate(found)


def _extremes(objective: GraphObjective, graphs: Graphs, codes: Ints) -> Extremes:
    structure = objective.structure

    def found(x: Floats) -> tuple[Floats, Floats]:
        scores = structure.scores(x, graphs)
        best = best_codes(structure, graphs, x, objective.engine, np.random.default_rng(0))
        return label_scores(structure, graphs, scores, codes), label_scores(structure, graphs, scores, best)

    return found
