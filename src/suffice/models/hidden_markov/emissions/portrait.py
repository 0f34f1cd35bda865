"""What there is to see of a mixture."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from suffice.families.normal import Normal
from suffice.fitting.portrait import Portrait, VariableDistribution, matrix_grid

if TYPE_CHECKING:
    from suffice.models.hidden_markov.emissions.distributions import MixtureFitted


def mixture_portrait(mixture: MixtureFitted) -> Portrait:
    """Its weights and components; of normal ones the distribution itself."""
    rows = [f"component {number}" for number, _ in enumerate(mixture.components, start=1)]
    tables = [partial(matrix_grid, "weights", ["weights"], rows, mixture.weights, "share")]
    normals: tuple[tuple[float, float, float], ...] = ()
    if all(isinstance(one, Normal) for one in mixture.components):
        parts = [(one.mean_, math.sqrt(one.variance_)) for one in mixture.components]
        normals = tuple((float(w), float(m), s) for w, (m, s) in zip(mixture.weights, parts, strict=True))
        tables.append(partial(matrix_grid, "Components", rows, ["mean", "standard deviation"], parts, "none"))
    return Portrait(
        title=mixture.title,
        kind="distribution",
        n_params=lambda: mixture.n_params,
        parameters=lambda: {"weights": mixture.weights},
        text=lambda: f"weights = {mixture.weights}",
        variables=lambda: [VariableDistribution("value", normals=normals)] if normals else [],
        tables=tables,
    )
