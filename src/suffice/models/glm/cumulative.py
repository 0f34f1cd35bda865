"""Ordered labels: ``P(y <= k | x) = F(threshold_k - eta)``, F the inverse of the link and eta the linear predictor.

The parameters are the K - 1 thresholds, then the coefficients. Where the density of F is log-concave, as for all links
here, the log-likelihood is concave in both together, and it is -inf where thresholds are not in order: a line search
never leaves the region in which they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.engines.linear_predictor import (
    CoefficientLayout,
    RootCurvature,
    RowBlock,
    RowCurvature,
    linear_predictor,
    transpose_product,
    transpose_products,
    weighted,
    weighted_sum,
    wide_products,
)
from suffice.models.glm.held_rows import RegressionRows
from suffice.models.glm.links import CumulativeLink, Link
from suffice.models.glm.problem import RegressionProblem
from suffice.solvers.information import Information
from suffice.solvers.penalties import GaussianPenalty

Places = NDArray[np.intp]
#: The links whose density is log-concave.
LINKS = ("logit", "probit", "cloglog", "loglog")
#: Beyond this no link has any density left.
_FAR = 700.0
#: Slopes from which on their squares may not be floats.
_STEEP = 1e150


def log_between(link: Link, upper: Floats, lower: Floats) -> Floats:
    """Log(F(upper) - F(lower)), from the tail in which less is lost; -inf where the two are not in order."""
    with np.errstate(all="ignore"):
        if link.name == "logit":
            # F(a) - F(b) = F(a) (1 - F(b)) (1 - exp(b - a)), whichever tail they are in.
            logs = link.log_mean(upper) + link.log_rest(lower) + np.log(-np.expm1(lower - upper))
        else:
            below, above = link.log_mean(upper), link.log_rest(lower)
            left = below + np.log(-np.expm1(link.log_mean(lower) - below))
            right = above + np.log(-np.expm1(link.log_rest(upper) - above))
            logs = np.where(below <= above, left, right)
        return np.where(upper > lower, logs, -np.inf)


class CumulativeDistribution:
    """The distribution of a row between two ends, ``P = F(upper) - F(lower)``; those at infinity are the scale's."""

    def __init__(self, link: Link) -> None:
        """Keep the link."""
        assert isinstance(link, CumulativeLink)
        self.link = link

    def __call__(
        self, upper: Floats, lower: Floats
    ) -> tuple[Floats, tuple[Floats, Floats], tuple[Floats, Floats, Floats]]:
        """Log P (n,), its slopes in both ends, and minus its second derivatives (upper, mixed, lower)."""
        value = log_between(self.link, upper, lower)
        with np.errstate(all="ignore"):
            up, bent_up = self._share(upper, value)
            low, bent_low = self._share(lower, value)
        # Ends so close that squares of slopes are no floats count as crossed.
        apart = (up < _STEEP) & (low < _STEEP)
        value, up, low = np.where(apart, value, -np.inf), np.where(apart, up, 0.0), np.where(apart, low, 0.0)
        return value, (up, -low), (up * (up - bent_up), -up * low, low * (low + bent_low))

    def _share(self, end: Floats, value: Floats) -> tuple[Floats, Floats]:
        """Density at an end over P, and the slope of the log density; 0 at infinity."""
        near = np.clip(end, -_FAR, _FAR)
        inside = np.isfinite(end) & np.isfinite(value)
        share = np.where(inside, np.exp(np.where(inside, self.link.log_slope(near) - value, 0.0)), 0.0)
        return share, np.where(share > 0.0, self.link.bend(near), 0.0)


@dataclass(frozen=True, eq=False)
class Ends:
    """The two ends of each row: their places (n,) in ``[-inf, thresholds, inf]``, and their values (n,)."""

    above: Places
    below: Places
    upper: Floats
    lower: Floats


@dataclass(frozen=True, eq=False)
class CumulativeRows:
    """What rows of `classes` ordered labels answer; the parameters are ``[thresholds][coefficients]``.

    A response of k + classes has no upper end any more, one of k + 2 classes no lower end, one of k + 3 classes
    neither: what rows still say once a separating direction has decided a part of them.
    """

    layout: CoefficientLayout
    distribution: CumulativeDistribution
    classes: int

    @property
    def width(self) -> int:
        """Thresholds and coefficients."""
        return self.classes - 1 + self.layout.size

    def split(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Thresholds and coefficients."""
        return parameters[: self.classes - 1], parameters[self.classes - 1 :]

    def ends(self, part: RowBlock, parameters: Floats) -> Ends:
        """Where the probability of each row begins and ends."""
        theta, beta = self.split(parameters)
        codes = part.y.astype(np.intp)
        own, opened = codes % self.classes, codes // self.classes
        above = np.where(opened & 1, self.classes, own + 1)
        below = np.where(opened & 2, 0, own)
        eta = linear_predictor(self.layout, part, beta)
        edges = np.concatenate(([-np.inf], theta, [np.inf]))
        return Ends(above, below, edges[above] - eta, edges[below] - eta)

    def _by_threshold(self, places: Places, values: Floats) -> Floats:
        """Sums (K - 1,) of values at each threshold."""
        return np.bincount(places, values, minlength=self.classes + 1)[1:-1].astype(np.float64, copy=False)

    def pulled(self, part: RowBlock, ends: Ends, up: Floats, low: Floats) -> Floats:
        """Slopes in the ends of each row as a slope in all parameters: an end is a threshold less eta."""
        own = self._by_threshold(ends.above, up) + self._by_threshold(ends.below, low)
        return np.concatenate((own, -transpose_product(self.layout, part, up + low)))

    # -- answers -----------------------------------------------------------------------------------------------------

    def slopes(self, parameters: Floats, block: RowBlock) -> RowCurvature:
        """Value and gradient."""
        value, gradient = 0.0, np.zeros(self.width)
        for part in self.layout.parts(block):
            ends = self.ends(part, parameters)
            terms, (up, low), _ = self.distribution(ends.upper, ends.lower)
            value += weighted_sum(terms, part.weights)
            gradient += self.pulled(part, ends, weighted(up, part.weights), weighted(low, part.weights))
        return RowCurvature(value, gradient)

    def turned(self, parameters: Floats, vector: Floats, block: RowBlock) -> RowCurvature:
        """The information times a vector."""
        moves, along = self.split(vector)
        moves = np.concatenate(([0.0], moves, [0.0]))
        product = np.zeros(self.width)
        for part in self.layout.parts(block):
            ends = self.ends(part, parameters)
            (upper, mixed, lower) = self.distribution(ends.upper, ends.lower)[2]
            eta = linear_predictor(self.layout, replace(part, offset=None), along)
            up, low = moves[ends.above] - eta, moves[ends.below] - eta
            product += self.pulled(
                part,
                ends,
                weighted(upper * up + mixed * low, part.weights),
                weighted(mixed * up + lower * low, part.weights),
            )
        return RowCurvature(0.0, product)

    def roots(self, parameters: Floats, block: RowBlock) -> RootCurvature:
        """Value, gradient and a root of the information: two rows for each row, from a root of that about its ends."""
        value, gradient, root = 0.0, np.zeros(self.width), np.zeros((0, self.width))
        for part in self.layout.parts(block, max(2_048, 4 * self.width)):
            ends = self.ends(part, parameters)
            terms, (up, low), second = self.distribution(ends.upper, ends.lower)
            value += weighted_sum(terms, part.weights)
            gradient += self.pulled(part, ends, weighted(up, part.weights), weighted(low, part.weights))
            upper, mixed, lower = (weighted(one, part.weights) for one in second)
            first = np.sqrt(np.maximum(upper, 0.0))
            side = np.divide(mixed, first, out=np.zeros_like(mixed), where=first > 0.0)
            rest = np.sqrt(np.maximum(lower - side**2, 0.0))
            above, below = self._by_end(part, ends.above), self._by_end(part, ends.below)
            scaled = (first[:, None] * above + side[:, None] * below, rest[:, None] * below)
            root = np.asarray(np.linalg.qr(np.vstack((root, *scaled)), mode="r"))
        return RootCurvature(value, gradient, root)

    def _by_end(self, part: RowBlock, places: Places) -> Floats:
        """The slope of an end of each row in all parameters (n, k); ends at infinity have no curvature to multiply."""
        edges = np.eye(self.classes + 1)[:, 1:-1]
        return np.column_stack((edges[places], -part.dense))

    def sums(self, parameters: Floats, squares: bool, whole: RowBlock) -> RowCurvature:
        """Value, gradient and observed information; squares: the outer products of the scores in its place."""
        (part,) = self.layout.parts(whole, whole.rows)
        ends = self.ends(part, parameters)
        terms, (up, low), second = self.distribution(ends.upper, ends.lower)
        gradient = self.pulled(part, ends, weighted(up, part.weights), weighted(low, part.weights))
        if squares:
            second = (up * up, up * low, low * low)
        upper, mixed, lower = (weighted(one, part.weights) for one in second)
        products = self._products(part, ends, upper, mixed, lower)
        return RowCurvature(weighted_sum(terms, part.weights), gradient, *products)

    def _products(
        self, part: RowBlock, ends: Ends, upper: Floats, mixed: Floats, lower: Floats
    ) -> tuple[Floats, Floats | None, Floats | None]:
        """Body, cross and levels of the information: that of the thresholds, of the coefficients, and between."""
        held, classes = self.classes - 1, self.classes
        own = np.diag(self._by_threshold(ends.above, upper) + self._by_threshold(ends.below, lower))
        both = np.bincount(ends.above * (classes + 1) + ends.below, mixed, minlength=(classes + 1) ** 2)
        pairs = both.reshape(classes + 1, classes + 1)[1:-1, 1:-1]
        own += pairs + pairs.T
        rows = np.arange(part.rows)
        sides = np.zeros((part.rows, classes + 1))
        sides[rows, ends.above] -= upper + mixed
        sides[rows, ends.below] -= mixed + lower
        between = transpose_products(self.layout, part, sides[:, 1:-1])
        within = np.maximum(upper + 2.0 * mixed + lower, 0.0)
        inner, cross, levels = wide_products(self.layout, part, within)
        body = np.empty((held + self.layout.body,) * 2)
        body[:held, :held], body[held:, held:] = own, inner
        body[:held, held:] = between[:, : self.layout.body]
        body[held:, :held] = body[:held, held:].T
        return body, None if cross is None else np.vstack((between[:, self.layout.body :], cross)), levels


@dataclass(frozen=True, eq=False)
class CumulativeProblem(RegressionProblem):
    """The regression of `classes` ordered labels; the parameters are ``[thresholds][coefficients]``."""

    classes: int = 2

    @property
    def width(self) -> int:
        """Thresholds and coefficients."""
        return self.classes - 1 + self.layout.size

    @property
    def labels(self) -> CumulativeRows:
        """What is asked of the rows; the distribution takes two ends in place of eta and y."""
        distribution: Any = self.distribution
        return CumulativeRows(self.layout, distribution, self.classes)

    # -- what solvers ask --------------------------------------------------------------------------------------------

    def slopes(self, beta: Floats) -> Callable[[RowBlock], RowCurvature]:
        """Value and gradient."""
        return partial(self.labels.slopes, beta)

    def turned(self, beta: Floats, vector: Floats) -> Callable[[RowBlock], RowCurvature]:
        """The information times a vector."""
        return partial(self.labels.turned, beta, vector)

    def roots(self, beta: Floats) -> Callable[[RowBlock], RootCurvature]:
        """Value, gradient and a root of the information."""
        return partial(self.labels.roots, beta)

    def diagonal(self, beta: Floats) -> Floats:
        """From the whole information: thresholds and coefficients of one linear predictor are few."""
        return self.evaluate(beta)[2].diagonal()

    def _curvatures(self, beta: Floats) -> Callable[[RowBlock], Any]:
        """Value, gradient and observed information."""
        return self.roots(beta) if self.rooted else partial(self.labels.sums, beta, False)

    def score_squares(self, beta: Floats) -> Floats:
        """The sum over rows of the outer product of their scores (k, k): the middle of the sandwich."""
        sums = self.rows.reduce(partial(self.labels.sums, beta, True))
        assert sums.body is not None
        return Information(sums.body, sums.cross, sums.levels).dense()

    def possible(self, whole: Floats, index: int) -> Floats:
        """Thresholds on both sides of threshold `at` make room for it."""
        if index >= self.classes - 1:
            return whole
        moved = whole.copy()
        gaps = np.arange(self.classes - 1) - index
        step = 1e-3 * max(1.0, abs(float(whole[index])))
        theta = moved[: self.classes - 1]
        theta[index + 1 :] = np.maximum(theta[index + 1 :], whole[index] + step * gaps[index + 1 :])
        theta[:index] = np.minimum(theta[:index], whole[index] + step * gaps[:index])
        return moved


def cumulative_problem(
    rows: RegressionRows,
    layout: CoefficientLayout,
    link: Link,
    classes: int,
    penalty: GaussianPenalty | None = None,
) -> CumulativeProblem:
    """What solvers see of ordered labels; the penalty has the thresholds first."""
    distribution: Any = CumulativeDistribution(link)
    return CumulativeProblem(rows, layout, distribution, penalty, classes=classes)
