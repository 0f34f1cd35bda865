"""Least squares of a Gaussian response in closed form, where the rows in float64 would lose digits.

The products of all columns are summed in double-double arithmetic, and solved by the code that learns linear-Gaussian
nodes of networks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from suffice import double_double
from suffice.array_types import Floats
from suffice.engines.linear_predictor import moments_task
from suffice.errors import EstimateError, ExistenceWarning, Remark
from suffice.families.orthogonal import residuals
from suffice.families.regression import EXACT_COLUMNS, LeastSquares, Products, least_squares
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
PERFECTLY = Remark(
    "the fit is perfect: the likelihood has no bound, and the dispersion and all errors are rounding", ExistenceWarning
)
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
    """Sums of products of the columns that a solver sees and of the response, and whether the first is an intercept."""

    products: Products
    constant: bool

    @property
    def weight(self) -> float:
        """Of all rows."""
        return float(self.products.weight[0])

    @property
    def own(self) -> slice:
        """Which of the weights of a regression with an intercept are coefficients here."""
        return slice(0 if self.constant else 1, None)

    def _weights(self, beta: Floats) -> Floats:
        """Coefficients (k,) as weights (1, q)."""
        return (beta if self.constant else np.append(0.0, beta))[None]

    @cached_property
    def solved(self) -> LeastSquares:
        """Least squares with all digits that the sums have."""
        return least_squares(self.products, careful=True)

    @cached_property
    def perfect(self) -> bool:
        """Whether the response is a combination of the columns, so that every row can be fitted."""
        return bool(self.products.perfect(self.solved.weights, self.solved.squares)[0])

    def left(self, beta: Floats) -> float:
        """The sum of squares that coefficients (k,) leave."""
        return float(residuals(self.products.raw, self._weights(beta))[1][0])

    def certificate(self, beta: Floats, dispersion: float | None) -> Certificate:
        """How far coefficients (k,) are from least squares; a dispersion that is not known is at its best for them.

        Where every row is fitted, slopes are in units of the response, as no other is left.
        """
        raw, weights, left = self.products.raw, self._weights(beta), self.left(beta)
        slopes = double_double.rounded(residuals(raw, weights)[0])[0, self.own]
        perfect = self.perfect and dispersion is None
        lengths = np.diagonal(raw[0, 0])[self.own]
        unit = (float(lengths[-1]) if perfect else left) / self.weight if dispersion is None else dispersion
        slope, variance = slopes / (unit or 1.0), lengths[:-1] / (unit or 1.0)
        slope = np.where((variance > 0.0) & (unit > 0.0), slope, 0.0)
        if perfect:
            return in_units(slope, variance, exists=False, directions=(NO_DISPERSION,))
        share = float(shares_by_pairs(raw, weights)[0])
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
    columns = np.arange(layout.size) if problem.kept is None else problem.kept
    constant = bool(layout.constant and columns[0] == 0)
    axes = [*(columns[int(constant) :] - int(layout.constant)).tolist(), layout.dense]
    products = (Products.of if constant else Products.through_origin)(sums, axes)
    return Squares(products, constant) if np.isfinite(products.raw).all() else None


def solve_squares(problem: RegressionProblem) -> tuple[Squares, Result, float] | None:
    """Products, coefficients with the information at dispersion 1, and the mean square they leave: 0 if perfect.

    None where the products would not be exact, or do not tell all columns apart.
    """
    squares = read_squares(problem)
    if squares is None or not squares.solved.determined.all():
        return None
    own = squares.own
    beta, root = squares.solved.weights[0, own], squares.products.root[0, own, own]
    left = 0.0 if squares.perfect else float(squares.solved.squares[0])
    last = Last(beta, -0.5 * left, np.zeros(len(beta)), Information(root.T @ root, root=root))
    outcome = Outcome(State(beta, last.value, 0.0), True, "closed form", ())
    return squares, Result(beta, outcome, last, (), METHOD), left / squares.weight
