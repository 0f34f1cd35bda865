"""What the curvature says about a likelihood of labels without a prior: how much it can still rise, and that it ends.

How much it can rise is about half the squared Newton decrement: ``g' H^+ g / 2`` for the slope g and minus the second
derivatives H, the covariance of the features. Products of H with vectors are central differences of the exact slope,
and the equations are solved by conjugate gradients. They stay in the span of the features, where H bends, because g
lies there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.engines.workers import with_one_blas_thread
from suffice.models.conditional_field.objective import FieldObjective

#: Products of H with vectors before the answer is left open.
MOST_PRODUCTS = 100
#: The answer is given once it has risen by less than this share over so many products.
SETTLED, LAST = 0.02, 4
#: Rounding of a slope, as a share of the sums of features that it is a difference of.
ROUNDING = 64 * float(np.finfo(np.float64).eps)
#: Rounding of a second derivative, as a share of the sum of a feature: that of slopes over a step of 1e-4.
FLAT = 1e-11
#: Differences for a whole matrix: how far they go, in ranges of a feature, and what they can tell from nothing.
FIRST, SEEN = 1e-4, 1e-6
#: How far a difference goes: the standard deviation of the score of an example, and what is near enough to it.
STEP, NEAR = 1e-3, 30.0


def decrement(objective: FieldObjective[Any], x: Floats, slope: Floats, observed: Floats) -> float | None:
    """Half the squared decrement at x (k,), where the slope is known; None where the equations were not solved.

    observed (k,): the sums of features over the labels given.
    """
    sizes = np.maximum(np.abs(observed), np.abs(observed - slope))
    noise = ROUNDING * sizes
    diagonal = 1.0 / np.where(sizes > 0.0, sizes, 1.0)
    if (np.abs(slope) <= noise).all():
        return 0.5 * float(slope @ (diagonal * slope))
    return with_one_blas_thread(lambda: _solved(CurvatureProducts(objective, x), slope, diagonal, noise))


def _solved(product: CurvatureProducts, slope: Floats, diagonal: Floats, noise: Floats) -> float | None:
    residual, direction = slope.copy(), diagonal * slope
    length, total, rises = float(slope @ direction), 0.0, []
    for _ in range(min(MOST_PRODUCTS, 2 * len(slope) + 10)):
        image = product(direction)
        curvature = float(direction @ image)
        if not curvature > ROUNDING * float(np.abs(direction) @ np.abs(image)):
            break
        share = length / curvature
        rises.append(share * length)
        total += share * length
        residual -= share * image
        ahead = diagonal * residual
        following = float(residual @ ahead)
        # One product solves a single equation; more of them must have settled.
        settled = sum(rises[-LAST:]) <= SETTLED * total and len(rises) > LAST
        if settled or following <= 1e-6 * rises[0] / max(share, 1e-300) or (np.abs(residual) <= noise).all():
            return 0.5 * total
        direction = ahead + following / length * direction
        length = following
    return 0.5 * total if (np.abs(residual) <= 16.0 * noise).all() else None


def ends_nearby(objective: FieldObjective[Any], x: Floats, ranges: Floats, rank: int) -> float | None:
    """Half the squared decrement at x (k,) where the curvature proves that the likelihood has a maximum, else None.

    Third derivatives of a log partition along v are at most the range of ``v . phi`` over labels times the second ones.
    So a slope that falls at a rate c at x falls at no less than ``c exp(-range t)`` further on, and in all it falls by
    ``c / range`` (Bach 2010, Self-concordant analysis for logistic regression). Where that is more than the slope at x
    along every v, the likelihood falls in the end along all of them: there is a maximum.

    ranges (k,): bounds of the range of each feature over the labels of any one example; rank: that of the features.
    """
    moves = ranges > 0.0
    if not rank or rank > moves.sum():
        return None if rank else 0.0
    units, slope = ranges[moves], objective.smooth(x)[1][moves]
    bends = np.empty((len(units), len(units)))
    for row, column in enumerate(np.flatnonzero(moves).tolist()):
        change = np.zeros(len(x))
        change[column] = FIRST / ranges[column]
        behind, ahead = objective.smooth(x - change)[1], objective.smooth(x + change)[1]
        bends[row] = (behind - ahead)[moves] / (2.0 * FIRST)
    # In units of the ranges no unit vector has a range above the root of k.
    bends /= units
    curvatures, vectors = with_one_blas_thread(lambda: np.linalg.eigh((bends + bends.T) / 2.0))
    curvatures, vectors = curvatures[::-1][:rank], vectors[:, ::-1][:, :rank]
    if not curvatures[-1] > SEEN * curvatures[0]:
        return None
    along = vectors.T @ (slope / units)
    squared = float(along @ (along / curvatures))
    return 0.5 * squared if math.sqrt(squared * len(units) / float(curvatures[-1])) < 0.5 else None


def information(objective: FieldObjective[Any], x: Floats) -> Floats:
    """Minus the matrix of second derivatives (k, k): the covariance of the features, and the prior's precision.

    Without a prior it is singular: adding a number to the weights of a feature for all labels changes nothing. Slopes
    are 0 along such directions, so that rows show them exactly, while columns have the error of differences. They are
    taken out: an error of 1e-8 over a curvature of 1e-12 would send the weights far away.
    """
    matrix = np.empty((len(x), len(x)))
    for column in range(len(x)):
        size = 1e-4 * max(1.0, abs(float(x[column])))
        moved = x.copy()
        moved[column] += size
        ahead = objective.smooth(moved)[1]
        moved[column] -= 2.0 * size
        matrix[column] = (objective.smooth(moved)[1] - ahead) / (2.0 * size)
    if objective.penalties.gaussian is not None:  # It bends the objective everywhere.
        return 0.5 * (matrix + matrix.T)
    _, curvatures, rows = np.linalg.svd(matrix)
    least = FLAT * (10.0 * float(curvatures.max(initial=0.0)) + float(np.abs(objective.features).max(initial=0.0)))
    rows = rows[curvatures > least]
    within = rows @ matrix @ rows.T
    return np.asarray(0.5 * rows.T @ (within + within.T) @ rows)


class CurvatureProducts:
    """Products of minus the second derivatives with vectors."""

    def __init__(self, objective: FieldObjective[Any], x: Floats) -> None:
        """At weights x (k,)."""
        self.objective, self.x = objective, x
        self.curvature = 1.0  # Of the last direction, in the units of its largest entry.

    def __call__(self, direction: Floats) -> Floats:
        """The product with a vector (k,)."""
        unit = float(np.abs(direction).max())
        product = np.zeros_like(direction)
        for _ in range(3):
            step = STEP / unit / math.sqrt(max(self.curvature, 1e-30))
            behind = self.objective.smooth(self.x - step * direction)[1]
            product = (behind - self.objective.smooth(self.x + step * direction)[1]) / (2.0 * step)
            seen = float(direction @ product) / unit**2 / self.objective.weight
            if not seen > 0.0 or 1.0 / NEAR < seen / self.curvature < NEAR:
                break
            self.curvature = seen
        return product
