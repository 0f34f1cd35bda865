"""The number of parameters of a conditional random field on graphs: see `suffice.models.conditional_field.rank`."""

from __future__ import annotations

import numpy as np

from suffice.array_types import Floats
from suffice.models.conditional_field.rank import FeatureRank, numerical_rank, rank_of_draws
from suffice.models.graph_crf.graphs import Graphs
from suffice.models.graph_crf.structure import CliqueStructure
from suffice.models.graph_crf.templates import Template


def graph_rank(structure: CliqueStructure, graphs: Graphs | None) -> FeatureRank:
    """The number of parameters that examples tell apart; without them, a bound of it."""
    if structure.size == 1:
        return FeatureRank(0)
    rank = None if graphs is None else _rank(structure, graphs)
    if rank is not None:
        return FeatureRank(rank)
    bound = sum(template.features * _kinds(template) for template in structure.templates)
    return FeatureRank(bound, exact=False)


def _rank(structure: CliqueStructure, graphs: Graphs) -> int | None:
    nodes = int(graphs.offsets[-1])

    def draws(count: int, seed: int) -> Floats:
        rng = np.random.default_rng(seed)
        return np.array([draw(rng) for _ in range(count)])

    def draw(rng: np.random.Generator) -> Floats:
        shares = rng.standard_normal(len(graphs))
        one, other = rng.integers(0, structure.size, (2, nodes))
        return structure.observed(graphs, one, shares) - structure.observed(graphs, other, shares)

    entries = sum(part.features.size for part in graphs.parts) + nodes
    return rank_of_draws(draws, structure.length, entries)


def _kinds(template: Template) -> int:
    """How many ways there are for labels to tell a feature's weights apart: constants change nothing."""
    if template.matrix is None:
        return template.cells - 1
    return numerical_rank(template.matrix - template.matrix.mean(axis=0))
