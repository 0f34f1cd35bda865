"""What there is to see of a mixture."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from suffice.families.normal import Normal
from suffice.families.portrait import portrait_of
from suffice.fitting.portrait import Portrait, VariableDistribution, matrix_grid, or_none

if TYPE_CHECKING:
    from suffice.models.hidden_markov.emissions.law import Mixture


def mixture_portrait(mixture: Mixture) -> Portrait:
    """Its weights and components; of normal ones the distribution itself."""
    drawn = portrait_of(mixture)
    components = or_none(lambda: mixture.components_) or ()
    if not components or not all(isinstance(one, Normal) for one in components):
        return drawn
    parts = [(one.mean_, math.sqrt(one.variance_)) for one in components]
    normals = tuple((float(w), float(m), s) for w, (m, s) in zip(mixture.weights_, parts, strict=True))
    rows = [f"component {at + 1}" for at in range(len(parts))]
    table = partial(matrix_grid, "Components", rows, ["mean", "standard deviation"], parts, "none")
    return replace(
        drawn,
        variables=lambda: [VariableDistribution("value", normals=normals)],
        tables=[*drawn.tables, table],
    )
