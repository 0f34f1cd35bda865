"""The size of a negative binomial response: ``variance = mean + mean^2 / size``."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from suffice.array_types import Floats
from suffice.engines.linear_predictor import CoefficientLayout, RowBlock, linear_predictor, weighted_sum
from suffice.models.glm.families import NegativeBinomialFamily
from suffice.models.glm.held_rows import RegressionRows
from suffice.models.glm.links import Link

#: A size from which the counts cannot be told from Poisson counts.
POISSON = 1e8
#: Moves of the log size are below this and do not halve any more: the slopes are rounding, as they are of large sizes.
NEAR = 1e-3
#: Sizes below this are those of counts that are all 0, however small.
VANISHING = 1e-100
#: What a certificate says where the likelihood rises with the size for ever.
RUNNING_SIZE = "size -> inf: Poisson counts"


def best_size(
    rows: RegressionRows, layout: CoefficientLayout, link: Link, beta: Floats, family: NegativeBinomialFamily
) -> NegativeBinomialFamily:
    """The size, from `VANISHING` to `POISSON`, of the largest likelihood at given means: Newton in its log."""
    before = math.inf
    for _ in range(100):
        slope, curve = _slopes(rows, layout, link, beta, family)
        # In t = log size: dl/dt = size l', d2l/dt2 = size^2 l'' + size l'.
        first, second = family.size * slope, family.size**2 * curve + family.size * slope
        move = -first / second if second < 0.0 else math.copysign(1.0, first)
        family = NegativeBinomialFamily(family.size * math.exp(max(-2.0, min(2.0, move))))
        if not VANISHING < family.size < POISSON:
            return NegativeBinomialFamily(min(max(family.size, VANISHING), POISSON))
        if abs(move) < 1e-12 or at_rounding(abs(move), before):
            break
        before = abs(move)
    return family


def at_rounding(move: float, before: float) -> bool:
    """Whether moves of the log size, which shrink by far more than half near the maximum, are rounding alone."""
    return move < NEAR and move > 0.5 * before


def _slopes(
    rows: RegressionRows, layout: CoefficientLayout, link: Link, beta: Floats, family: NegativeBinomialFamily
) -> tuple[float, float]:
    slope, curve = rows.reduce(partial(_size_slopes, layout=layout, link=link, beta=beta, family=family))
    return float(slope), float(curve)


def _size_slopes(
    block: RowBlock, *, layout: CoefficientLayout, link: Link, beta: Floats, family: NegativeBinomialFamily
) -> Floats:
    sums = np.zeros(2)
    for part in layout.parts(block):
        mean = link.mean(linear_predictor(layout, part, beta))
        sums += [weighted_sum(slope, part.weights) for slope in family.size_slopes(part.y, mean)]
    return sums
