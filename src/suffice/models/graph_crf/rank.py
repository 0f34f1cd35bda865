"""The number of parameters of a conditional random field on graphs: see `suffice.models.conditional_field.rank`."""

from __future__ import annotations

import numpy as np

from suffice.array_types import Floats
from suffice.models.conditional_field.rank import FeatureRank, numerical_rank, rank_of_draws
from suffice.models.graph_crf.rounds import GraphShard, LabelDraws, entries
from suffice.models.graph_crf.structure import CliqueStructure
from suffice.models.graph_crf.templates import Template
from suffice.sources.held import Held


def graph_rank(structure: CliqueStructure, held: Held[GraphShard] | None) -> FeatureRank:
    """The number of parameters that examples tell apart; without them, a bound of it."""
    if structure.size == 1:
        return FeatureRank(0)
    rank = None if held is None else _rank(structure, held)
    if rank is not None:
        return FeatureRank(rank)
    bound = sum(template.features * _kinds(template) for template in structure.templates)
    return FeatureRank(bound, exact=False)


def _rank(structure: CliqueStructure, held: Held[GraphShard]) -> int | None:
    def draws(count: int, seed: int) -> Floats:
        return np.asarray(held.sum(None, LabelDraws(structure, count, seed)))

    return rank_of_draws(draws, structure.length, float(held.sum(None, entries)))


def _kinds(template: Template) -> int:
    """How many ways there are for labels to tell a feature's weights apart: constants change nothing."""
    if template.matrix is None:
        return template.cells - 1
    return numerical_rank(template.matrix - template.matrix.mean(axis=0))
