"""How far a penalised fit can be from its optimum, by duality.

A concave log-likelihood L lies below its tangent at any point p, and below the likelihood U of a distribution that fits
every row. For every share c from 0 to 1 the objective ``L(b) - R(b)`` is therefore at most

    c (L(p) + L'(p) (b - p)) + (1 - c) U - R(b),

whose maximum over b has a closed form where R is a sum over coefficients: ``R*(c L'(p))``, the conjugate of R. This is
Fenchel's dual at the rows' slopes in p, times c. A coefficient with an absolute value alone holds slopes up to its
rate, which is what c is for; one without any prior holds none, which is why p is the best point in those.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.models.glm.priors import CoefficientPenalties
from suffice.models.glm.problem import RegressionProblem
from suffice.solvers.irls import Last

#: Steps in the coefficients without a prior.
STEPS = 30
#: A slope in these, in its standard deviations, that is rounding.
STILL = 1e-12


def duality_gap(problem: RegressionProblem, last: Last, penalties: CoefficientPenalties, best: float) -> float | None:
    """The most by which the objective could still rise; None where no dual point was found.

    `last` has value, slope and information of the problem, which knows the Gaussian prior and not the Laplace one.
    `best` is the log-likelihood of a distribution that fits every row, in units of the problem.
    """
    gaussian, laplace = penalties.gaussian, penalties.laplace
    if problem.kept is not None or (gaussian is not None and gaussian.precision.ndim == 2):
        return None
    zero = np.zeros(problem.size)
    curve, centre = (zero, zero) if gaussian is None else (gaussian.precision, gaussian.mean)
    rate, corner = (zero, zero) if laplace is None else (laplace.rate, laplace.mean)
    free = np.flatnonzero((curve == 0.0) & (rate == 0.0))
    bare = replace(problem, penalty=None, record=None)
    tangent = _tangent(bare, last, free)
    if tangent is None:
        return None
    point, value, slope = tangent
    slope[free] = 0.0
    lasso = (curve == 0.0) & (rate > 0.0)
    over = np.abs(slope[lasso]) / rate[lasso]
    share = 1.0 / max(1.0, float(over.max(initial=0.0)))
    bound = share * (value - float(slope @ point)) + (1.0 - share) * best
    bound += _conjugate(share * slope, curve, centre, rate, corner)
    here = last.value - (0.0 if laplace is None else laplace.value(last.beta))
    return max(0.0, bound - here) if math.isfinite(bound) else None


def _tangent(bare: RegressionProblem, last: Last, free: NDArray[np.intp]) -> tuple[Floats, float, Floats] | None:
    """A point that is the best one in the free coefficients, with value and slope of the log-likelihood there."""
    point = last.beta.copy()
    value, slope = bare.objective(point)
    if not len(free):
        return point, value, slope
    if last.information.size != len(point):
        return None
    information = last.information.part(free)
    unit = np.sqrt(information.diagonal())
    if not information.definite:
        return None
    size = float((np.abs(slope[free]) / unit).max())
    for _ in range(STEPS):
        if size <= STILL:
            break
        new = point.copy()
        new[free] += information.solve(slope[free])
        moved = bare.objective(new)
        now = float((np.abs(moved[1][free]) / unit).max())
        if not now < size:
            break
        point, (value, slope), size = new, moved, now
    return (point, value, slope) if size <= 1e3 * STILL else None


def _conjugate(slope: Floats, curve: Floats, centre: Floats, rate: Floats, corner: Floats) -> float:
    """The largest ``slope' b - R(b)``, R the sum of ``curve (b - centre)^2 / 2 + rate |b - corner|``."""
    smooth = curve > 0.0
    largest = float(slope[~smooth] @ corner[~smooth])
    v, q, m, r, a = (one[smooth] for one in (slope, curve, centre, rate, corner))
    above, below = m + (v - r) / q, m + (v + r) / q
    b = np.where(above > a, above, np.where(below < a, below, a))
    return largest + float((v * b - 0.5 * q * (b - m) ** 2 - r * np.abs(b - a)).sum())
