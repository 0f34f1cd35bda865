"""Cumulants of the statistics of an exponential family, by numerical derivatives of its information."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from suffice.array_types import Floats

if TYPE_CHECKING:
    from suffice.families.member import FamilyMember


#: Half the width of the piece on which the information is interpolated, in standard deviations of the statistic, and
#: the number of points there.
WIDTH, POINTS = 0.5, 17
#: How often the piece is halved where it leaves the natural parameters of the family.
MOST_HALVINGS = 40


def numeric_cumulants(family: FamilyMember, order: int, direction: Floats) -> Floats:
    """Cumulants 1 to `order` of ``direction . T``.

    They are the derivatives of ``A(eta + t direction)`` at t = 0. The first two are the mean and the variance; those
    above are derivatives of the variance along the direction, whose values at Chebyshev points of a short piece give a
    polynomial: exact to about 1e-10 for the third, and some two digits fewer for each one above.
    """
    eta = family.natural_parameters()
    mean = float(direction @ family.expected_statistics(eta))

    def variance(t: float) -> float:
        try:
            return float(direction @ family.statistics_covariance(eta + t * direction) @ direction)
        except (ValueError, ZeroDivisionError, OverflowError):
            return math.nan

    spread = variance(0.0)
    if order < 3 or not spread > 0:
        return np.array([mean, spread, *[0.0] * (order - 2)][:order])
    width, nodes = WIDTH / math.sqrt(spread), np.polynomial.chebyshev.chebpts1(POINTS)
    for _ in range(MOST_HALVINGS):
        values = np.array([variance(width * node) for node in nodes])
        # Beyond the edge of the family the normaliser is infinite; a variance there means nothing.
        ends = [family.log_normalizer(eta + width * end * direction) for end in (-1.0, 1.0)]
        if np.isfinite(values).all() and (values > 0).all() and np.isfinite(ends).all():
            break
        width /= 2
    piece = np.polynomial.Chebyshev.fit(width * nodes, values, POINTS - 1, domain=[-width, width])
    return np.array([mean, spread, *(float(piece.deriv(s)(0.0)) for s in range(1, order - 1))])
