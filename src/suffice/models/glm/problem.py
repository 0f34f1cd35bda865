"""What a solver sees of a regression: value, slope and information at a vector of coefficients.

The objective is ``log-likelihood / phi - penalty`` in the engine's layout of the coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property, partial, wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.engines.linear_predictor import (
    BLAS,
    CoefficientLayout,
    ResponseDistribution,
    RootCurvature,
    RowBlock,
    RowCurvature,
    RowProducts,
    curvature_task,
    information_product,
    linear_predictor,
    root_task,
    row_products,
    several_product,
    several_root_task,
    several_task,
    slope_task,
    transpose_products,
    weighted,
    weighted_sum,
)
from suffice.models.glm.family import Family, RowDistribution, Totals, of_counts
from suffice.models.glm.held_rows import RegressionRows
from suffice.solvers.information import Information
from suffice.solvers.penalties import GaussianPenalty

Answer = TypeVar("Answer")

#: Rows of a part whose columns are met once: those of many columns need not stay in the cache.
ONCE = 4_096


def _outside(method: Callable[..., Answer]) -> Callable[..., Answer]:
    """Without warnings: points outside of what the link allows, or so far out that means overflow, are asked for.

    Their value is not finite, which is what solvers look at.
    """

    @wraps(method)
    def quiet(*given: Any) -> Answer:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return method(*given)

    return quiet


@dataclass(frozen=True, eq=False)
class RegressionProblem:
    """Rows, a distribution of the rows, and a Gaussian penalty (or None); `outputs` linear predictors.

    `rooted` asks for the exact root of the information in each pass. `kept` are the coefficients that a solver sees;
    the others stay at their values in `fixed`. `record` is told every point and its objective.
    """

    rows: RegressionRows
    layout: CoefficientLayout
    distribution: ResponseDistribution
    penalty: GaussianPenalty | None = None
    phi: float = 1.0
    outputs: int = 1
    rooted: bool = False
    kept: NDArray[np.intp] | None = None
    fixed: Floats | None = None
    record: Callable[[Floats, float], None] | None = None

    @property
    def width(self) -> int:
        """Number of all parameters."""
        return self.layout.size * self.outputs

    @property
    def size(self) -> int:
        """Number of coefficients that a solver sees."""
        return self.width if self.kept is None else len(self.kept)

    @cached_property
    def products(self) -> RowProducts:
        """How dense rows are multiplied in passes for the gradient."""
        law = getattr(self.distribution, "law", "")
        return row_products(self.rows.rows if self.rows.in_memory else 0, self.layout.dense, law)

    def holding(self, kept: NDArray[np.intp], fixed: Floats) -> RegressionProblem:
        """The same problem with all coefficients but `kept` held at their values in `fixed`."""
        return replace(self, kept=kept, fixed=fixed)

    def whole(self, beta: Floats) -> Floats:
        """All coefficients, from those that a solver sees."""
        if self.kept is None or self.fixed is None:
            return beta
        whole = self.fixed.copy()
        whole[self.kept] = beta
        return whole

    def on(self, block: RowBlock) -> RegressionProblem:
        """The same problem on other rows."""
        return replace(self, rows=RegressionRows.of(block), record=None)

    def shaped(self, beta: Floats) -> Floats:
        """Coefficients (size,) as (k, m), predictors first in memory."""
        return beta.reshape(self.outputs, -1).T

    @_outside
    def curvature(self, beta: Floats) -> tuple[float, Floats, Information]:
        """Value, gradient and information of the log-likelihood at phi = 1, without the penalty."""
        sums = self.rows.taken(self._named(beta))
        if sums is None:
            sums = self.rows.reduce(self._curvatures(beta))
        if self.rooted:
            return sums.value, sums.gradient, Information(sums.root.T @ sums.root, root=sums.root)
        return sums.value, sums.gradient, Information(sums.body, sums.cross, sums.levels)

    def _curvatures(self, beta: Floats) -> Callable[[RowBlock], Any]:
        """What `curvature` asks."""
        if self.rooted:
            return self.roots(beta)
        if self.outputs > 1:
            return several_task(self.layout, self.distribution, self.shaped(beta))
        return curvature_task(self.layout, self.distribution, beta)

    def _named(self, beta: Floats) -> Hashable:
        """The point at which `curvature` asks, by name; it belongs to this distribution and to no equal one."""
        return "curvature", self.distribution, self.rooted, beta.tobytes()

    def expect(self, beta: Floats) -> None:
        """Let the rows be asked about a point along with what is asked next: each round has its price elsewhere."""
        if not self.rows.in_memory:
            whole = self.whole(beta)
            self.rows.expect(self._named(whole), self.rows.asked(self._curvatures(whole)))

    @_outside
    def evaluate(self, beta: Floats) -> tuple[float, Floats, Information]:
        """Value, gradient and information of the objective."""
        beta = self.whole(beta)
        value, gradient, information = self.curvature(beta)
        if self.phi != 1.0:
            value, gradient, information = value / self.phi, gradient / self.phi, information.times(1.0 / self.phi)
        if self.penalty is not None:
            value -= self.penalty.value(beta)
            gradient = gradient - self.penalty.slope(beta)
            information = information.plus(self.penalty.precision)
        if self.record is not None:
            self.record(beta, value)
        if self.kept is None:
            return value, gradient, information
        return value, gradient[self.kept], information.part(self.kept)

    @_outside
    def objective(self, beta: Floats) -> tuple[float, Floats]:
        """Value and gradient alone: half the arithmetic or less."""
        beta = self.whole(beta)
        sums = self.rows.reduce(self.slopes(beta))
        value, gradient = sums.value / self.phi, sums.gradient / self.phi
        if self.penalty is not None:
            value, gradient = value - self.penalty.value(beta), gradient - self.penalty.slope(beta)
        if self.record is not None:
            self.record(beta, value)
        return value, gradient if self.kept is None else gradient[self.kept]

    @_outside
    def diagonal(self, beta: Floats) -> Floats:
        """The diagonal of the information of the objective, where there are too many coefficients for the whole."""
        whole = self.whole(beta)
        shaped = whole if self.outputs == 1 else self.shaped(whole)
        question = partial(_diagonal, layout=self.layout, distribution=self.distribution, beta=shaped)
        of_rows = self.rows.reduce(question) / self.phi
        diagonal = of_rows if self.penalty is None else of_rows + self.penalty.diagonal()
        return diagonal if self.kept is None else diagonal[self.kept]

    def product(self, beta: Floats) -> Callable[[Floats], Floats]:
        """The information times a vector, by two products with X; nothing of size (k, k) is made."""
        beta = self.whole(beta)

        def times(given: Floats) -> Floats:
            vector = given
            if self.kept is not None:
                vector = np.zeros(self.width)
                vector[self.kept] = given
            product = self.rows.reduce(self.turned(beta, vector)).gradient / self.phi
            product = product if self.penalty is None else product + self.penalty.product(vector)
            return product if self.kept is None else product[self.kept]

        return times

    # -- what a distribution with parameters of its own replaces -------------------------------------------------------

    def slopes(self, beta: Floats) -> Callable[[RowBlock], RowCurvature]:
        """The task that finds value and gradient of the log-likelihood at phi = 1."""
        if self.outputs > 1:
            return several_task(self.layout, self.distribution, self.shaped(beta), information=False)
        return slope_task(self.layout, self.distribution, beta, self.products)

    def roots(self, beta: Floats) -> Callable[[RowBlock], RootCurvature]:
        """The task that finds value, gradient and a root of the information at phi = 1; dense columns only."""
        if self.outputs > 1:
            return several_root_task(self.layout, self.distribution, self.shaped(beta))
        return root_task(self.layout, self.distribution, beta)

    def turned(self, beta: Floats, vector: Floats) -> Callable[[RowBlock], RowCurvature]:
        """The task that finds the information at phi = 1 times a vector, as the gradient of its answer."""
        if self.outputs > 1:
            return several_product(self.layout, self.distribution, self.shaped(beta), self.shaped(vector))
        return information_product(self.layout, self.distribution, beta, vector)

    def possible(self, whole: Floats, index: int) -> Floats:
        """All parameters, moved where the value of parameter `at` leaves no room for them."""
        return whole


def _diagonal(
    block: RowBlock, *, layout: CoefficientLayout, distribution: ResponseDistribution, beta: Floats
) -> Floats:
    """The diagonal of the information at phi = 1, predictors first."""
    total = np.zeros((1 if beta.ndim == 1 else beta.shape[1], layout.size))
    for part in layout.parts(block):
        about = weighted(distribution(linear_predictor(layout, part, beta), part.y)[2], part.weights)
        own = about[:, None] if about.ndim == 1 else np.diagonal(about, axis1=1, axis2=2)
        sparse = None if part.sparse is None else part.sparse.power(2)
        total += transpose_products(layout, replace(part, dense=part.dense**2, sparse=sparse), own)
    return total.ravel()


# -- sums over rows ----------------------------------------------------------------------------------------------------


def totals(rows: RegressionRows, layout: CoefficientLayout, distribution: RowDistribution, beta: Floats) -> Totals:
    """Deviance, Pearson's statistic and the rest, at fitted coefficients."""
    return rows.reduce(totals_question(layout, distribution, beta))


def totals_question(
    layout: CoefficientLayout, distribution: RowDistribution, beta: Floats, products: RowProducts = BLAS
) -> Callable[[RowBlock], Totals]:
    """What `totals` asks."""
    return partial(_totals, layout=layout, distribution=distribution, beta=beta, products=products)


def _totals(
    block: RowBlock,
    *,
    layout: CoefficientLayout,
    distribution: RowDistribution,
    beta: Floats,
    products: RowProducts,
) -> Totals:
    parts = layout.parts(block, ONCE)
    sums = [_totals_of(distribution, linear_predictor(layout, part, beta, products), part) for part in parts]
    return sum(sums[1:], start=sums[0])


def deviance_of(rows: RegressionRows, layout: CoefficientLayout, distribution: RowDistribution, beta: Floats) -> float:
    """The deviance alone, which costs a part of `totals`."""
    # In this order, as what is not known stays so.
    return max(float(rows.reduce(deviance_question(layout, distribution, beta))), 0.0)


def deviance_question(
    layout: CoefficientLayout, distribution: RowDistribution, beta: Floats
) -> Callable[[RowBlock], float]:
    """What `deviance_of` asks."""
    return partial(_deviance, layout=layout, distribution=distribution, beta=beta)


def _deviance(block: RowBlock, *, layout: CoefficientLayout, distribution: RowDistribution, beta: Floats) -> float:
    total = 0.0
    for part in layout.parts(block, ONCE):
        if part.offset is None and not layout.size - layout.constant:  # Equal responses have equal deviances.
            each = of_counts(partial(_deviances_at, distribution, beta.sum()), part.y)
        else:
            each = distribution.family.deviances(distribution.link, linear_predictor(layout, part, beta), part.y)
        total += weighted_sum(each, part.weights)
    return total


def _deviances_at(distribution: RowDistribution, predictor: float, y: Floats) -> Floats:
    return distribution.family.deviances(distribution.link, np.full_like(y, predictor), y)


def _totals_of(distribution: RowDistribution, eta: Floats, part: RowBlock) -> Totals:
    family, y, weights = distribution.family, part.y, part.weights
    with np.errstate(all="ignore"):
        value, deviance, away, variance = family.figures(distribution.link, eta, y)
        pearson = np.where(np.abs(away) > 0.0, away * (away / variance), 0.0)
    return Totals(
        float(len(y)) if weights is None else math.fsum(weights),
        max(weighted_sum(deviance, weights), 0.0),
        weighted_sum(pearson, weights),
        weighted_sum(value, weights),
    )


@dataclass(frozen=True)
class ResponseSums:
    """What the response alone says, whatever the coefficients: its weight, its sum, its largest size.

    `base` is the part of the log-likelihood at phi = 1 that no mean enters, `log_y` the sum of log y where the family
    needs it, `quasi` whether some y is none that the family draws.
    """

    weight: float
    total: Any
    largest: float
    base: float = 0.0
    log_y: float = 0.0
    quasi: bool = False

    @property
    def mean(self) -> float:
        """The mean of the response, or of its first column."""
        return float(np.ravel(self.total)[0]) / self.weight

    def __add__(self, other: ResponseSums) -> ResponseSums:
        """Both sets of rows."""
        return ResponseSums(
            self.weight + other.weight,
            self.total + other.total,
            max(self.largest, other.largest),
            self.base + other.base,
            self.log_y + other.log_y,
            self.quasi or other.quasi,
        )


def response_sums(rows: RegressionRows, family: Family | None = None) -> ResponseSums:
    """Those of all rows, in one pass; of labels (codes) and of vectors without what a family adds."""
    return rows.once(("response", family), partial(sums_of_response, family=family))


def sums_of_response(block: RowBlock, *, family: Family | None) -> ResponseSums:
    """What `response_sums` asks."""
    y, weights = block.y, np.ones(block.rows) if block.weights is None else block.weights
    sums = ResponseSums(float(weights.sum()), weights @ y, float(np.abs(y).max(initial=0.0)))
    if family is None:
        return sums
    log_y = weighted_sum(np.log(y), weights) if family.support == "positive numbers" else 0.0
    return replace(sums, base=weighted_sum(family.base(y), weights), log_y=log_y, quasi=family.is_quasi(y))


@dataclass(frozen=True)
class Largest:
    """The largest of some numbers, or of each of some arrays, which "adds" by taking the larger."""

    value: Any

    def __add__(self, other: Largest) -> Largest:
        """Both sets of rows."""
        return Largest(np.maximum(self.value, other.value))


def largest_move(problem: RegressionProblem, direction: Floats) -> float:
    """The largest |x' direction| of any row with weight, over all linear predictors."""
    shaped = direction if problem.outputs == 1 else problem.shaped(direction)
    question = partial(_largest_move, layout=problem.layout, direction=shaped, products=problem.products)
    return float(problem.rows.reduce(question).value)


def move_bound(problem: RegressionProblem, direction: Floats) -> float:
    """A bound of `largest_move` by the largest size of each column, which is asked for once a fit; else infinite."""
    layout = problem.layout
    if problem.outputs > 1 or layout.sparse or layout.levels or layout.factors or not problem.products.compiled:
        return math.inf
    sizes = problem.rows.once("sizes of columns", partial(_column_sizes, products=problem.products)).value
    constant = int(layout.constant)
    sizes = np.concatenate((np.ones(constant), sizes))
    return float(sizes @ np.abs(direction))


def _column_sizes(block: RowBlock, *, products: RowProducts) -> Largest:
    return Largest(products.column_sizes(block.dense))


def _largest_move(block: RowBlock, *, layout: CoefficientLayout, direction: Floats, products: RowProducts) -> Largest:
    largest = 0.0
    for part in layout.parts(block):
        bare = part if part.offset is None else replace(part, offset=None)
        move = np.abs(linear_predictor(layout, bare, direction, products))
        if part.weights is not None:
            move = move[part.weights > 0.0]
        largest = max(largest, float(move.max(initial=0.0)))
    return Largest(largest)
