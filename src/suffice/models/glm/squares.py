"""Least squares of a Gaussian response in closed form, where the rows in float64 would lose digits.

The products of all columns are summed in double-double arithmetic and made orthogonal there, by the same code that
learns linear-Gaussian nodes of networks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from suffice import double_double
from suffice.array_types import Floats
from suffice.engines.linear_predictor import moments_task
from suffice.errors import EstimateError
from suffice.families.orthogonal import orthogonalised
from suffice.families.regression import EXACT_COLUMNS, bordered
from suffice.families.regression_check import shares_by_pairs
from suffice.fitting.control import Outcome, State
from suffice.fitting.report import Certificate
from suffice.models.glm.certificate import in_units
from suffice.models.glm.family import Family
from suffice.models.glm.problem import RegressionProblem, ResponseSums
from suffice.models.glm.solve import Result, refuse_response
from suffice.solvers.information import Information
from suffice.solvers.irls import Last

#: A pivot of the information, columns scaled to length 1, below which the rows in float64 lose digits.
DOUBTFUL = 1e-3
#: A dispersion below this, in squares of the response or of its ratio to the mean, is rounding.
PERFECT = 1e-29
#: The least dispersion of a perfect fit, where the response is 0 throughout.
LEAST_DISPERSION = 1e-200
#: What runs to the edge where every row is fitted.
NO_DISPERSION = "dispersion -> 0 (the fit is perfect)"
#: What is said about it.
PERFECTLY = "the fit is perfect: the likelihood has no bound, and the dispersion and all errors are rounding"
#: The method of a fit in closed form.
METHOD = "least squares from double-double sums"


def no_dispersion() -> EstimateError:
    """The error for a perfect fit of which nothing is left to say."""
    return EstimateError(
        "The fit is perfect: the dispersion is 0 and the likelihood has no bound. Leave columns out, or give "
        "dispersion= a number."
    )


def square_of_y(sums: ResponseSums) -> float:
    """The largest y^2; of a response that is 0 throughout a number that stands for it."""
    return refuse_response(sums.largest) ** 2 or LEAST_DISPERSION


def least_spread(family: Family, sums: ResponseSums) -> float:
    """The dispersion up to which a fit is perfect."""
    return PERFECT * (1.0 if family.name != "gaussian" else square_of_y(sums))


def rounding_of_y(sums: ResponseSums) -> float:
    """The square of the rounding of the response: the least dispersion of a perfect fit."""
    return max(float(np.finfo(np.float64).eps) ** 2 * square_of_y(sums), LEAST_DISPERSION)


def is_doubtful(information: Information) -> bool:
    """Whether some column is nearly a combination of those before."""
    factor = information._factor
    return factor is None or float((np.diagonal(factor) ** 2).min(initial=1.0)) < DOUBTFUL


@dataclass(frozen=True, eq=False)
class Squares:
    """Products (2, 1, k + 1, k + 1) in pairs of the columns that a solver sees and the response, and the weight."""

    products: Floats
    weight: float

    def _residual(self, beta: Floats) -> tuple[Floats, float]:
        """Slopes X'(y - X b) (k,) at coefficients (k,), and the sum of squares that they leave."""
        c = np.append(-beta, 1.0)
        pairs = double_double.scale(self.products[:, 0], c)
        slopes = double_double.sum_pairs(pairs[0], pairs[1])
        total = double_double.scale(slopes, c)
        return double_double.rounded(slopes)[:-1], max(
            0.0, float(double_double.rounded(double_double.sum_pairs(total[0], total[1])))
        )

    def left(self, beta: Floats) -> float:
        """The sum of squares that coefficients (k,) leave."""
        return self._residual(beta)[1]

    @cached_property
    def perfect(self) -> bool:
        """Whether the response is a combination of the columns, so that every row can be fitted."""
        return bool(orthogonalised(self.products).dependent[0, -1])

    def certificate(self, beta: Floats, dispersion: float | None) -> Certificate:
        """How far coefficients (k,) are from least squares; a dispersion that is not known is at its best for them.

        Where every row is fitted, slopes are in units of the response, as no other is left.
        """
        slopes, left = self._residual(beta)
        perfect = self.perfect and dispersion is None
        lengths = np.diagonal(self.products[0, 0])
        unit = (float(lengths[-1]) if perfect else left) / self.weight if dispersion is None else dispersion
        slope, variance = slopes / (unit or 1.0), lengths[:-1] / (unit or 1.0)
        slope = np.where((variance > 0.0) & (unit > 0.0), slope, 0.0)
        if perfect:
            return in_units(slope, variance, exists=False, directions=(NO_DISPERSION,))
        share = float(shares_by_pairs(self.products, beta[None])[0])
        if not share < 1.0:
            return in_units(slope, variance, exists=True)
        left_over = -0.5 * math.log1p(-share) if dispersion is None else 0.5 * share * left / dispersion / self.weight
        return in_units(slope, variance, left_over, bound=True, exists=True)


def read_squares(problem: RegressionProblem) -> Squares | None:
    """The products of a problem; None where they would not be exact, or columns are sparse."""
    layout = problem.layout
    if layout.sparse or layout.levels or not 0 < layout.dense < EXACT_COLUMNS or not problem.size:
        return None
    sums = problem.rows.reduce(moments_task(layout))
    raw = bordered(*(getattr(sums, name) for name in sums.pairs)) if layout.constant else sums.cross_pair
    if problem.kept is not None:
        chosen = np.append(problem.kept, len(raw[0]) - 1)
        raw = raw[:, chosen[:, None], chosen]
    return Squares(raw[:, None], sums.weight) if np.isfinite(raw).all() else None


def solve_squares(squares: Squares) -> tuple[Result, float] | None:
    """The coefficients, with the information at dispersion 1, and the mean square that they leave: 0 if perfect."""
    orthogonal = orthogonalised(squares.products)
    if orthogonal.dependent[0, :-1].any():
        return None
    beta, root = orthogonal.weights[0], orthogonal.root[0]
    left = 0.0 if orthogonal.dependent[0, -1] else float(double_double.rounded(orthogonal.squares)[0, -1])
    last = Last(beta, -0.5 * left, np.zeros(len(beta)), Information(root.T @ root, root=root))
    outcome = Outcome(State(beta, last.value, 0.0), True, "closed form", ())
    return Result(beta, outcome, last, (), METHOD), left / squares.weight
