"""The largest weights of a chain CRF."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from suffice.checks import draw_count, truth
from suffice.models.conditional_field.labels import code_of

if TYPE_CHECKING:
    from suffice.models.chain_crf.fitted import ChainCRFFitted


class StateWeight(NamedTuple):
    """The weight of a feature for a label."""

    feature: Any
    label: Hashable
    weight: float


class TransitionWeight(NamedTuple):
    """The weight of a step from one label to the next."""

    before: Any
    after: Any
    weight: float


def top_features(
    fitted: ChainCRFFitted, n: int = 20, *, label: Hashable = None, lowest: bool = False
) -> list[StateWeight]:
    """The n largest (or lowest) state weights, of one label or of all."""
    n, lowest = draw_count(n), truth(lowest, "lowest")
    structure, weights = fitted.structure, fitted.structure.states(fitted.weights)
    places = np.arange(len(weights))
    if label is not None:
        places = places[structure.packing.labels == code_of(label, structure.labels)]
    order = places[np.argsort(weights[places] if lowest else -weights[places], kind="stable")][:n]
    names, features = structure.space.labels, structure.packing.features
    return [
        StateWeight(names[features[p]], structure.labels[structure.packing.labels[p]], float(weights[p])) for p in order
    ]


def top_transitions(fitted: ChainCRFFitted, n: int = 20, *, lowest: bool = False) -> list[TransitionWeight]:
    """The n largest (or lowest) transition weights."""
    n, lowest = draw_count(n), truth(lowest, "lowest")
    structure = fitted.structure
    matrix = structure.transitions(fitted.weights)
    cells = np.argwhere(structure.free)
    values = matrix[structure.free]
    order = np.argsort(values if lowest else -values, kind="stable")[:n]
    labels = structure.labels
    return [TransitionWeight(labels[i], labels[j], float(matrix[i, j])) for i, j in cells[order].tolist()]
