"""A fitted linear-Gaussian node: its regressions, what is known about their error, and its posterior."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain
from suffice.errors import EstimateError, FileFormatError, OptionError, listing
from suffice.families.conjugate import tails
from suffice.families.regression import Products
from suffice.families.regression_law import PseudoRows, RegressionLaw, variance_quantiles, weight_quantiles
from suffice.models.nodes import Columns
from suffice.models.regressions import LOG_2PI, MOST_NUMBERS, Codes, Floats, Regressions, named
from suffice.statistics import Moments, MomentsBy, Statistic, Summary
from suffice.table import Table


@dataclass(frozen=True)
class LinearGaussianNode(Regressions):
    """A fitted or given linear-Gaussian node.

    Besides the regressions, for each of the k configurations: `size` (k,), the weight of its rows; `spread` (k, q, q),
    the covariance of the weights in units of the variance, inf on the diagonal where the rows do not determine a
    weight; and with a `prior`, `posterior` (k, 2), shape and scale of the inverse-gamma variance. `evidence` is the log
    marginal likelihood. `pool` names the columns whose moments the node reads, where several nodes share them. `notes`
    are warnings; `directions` say what runs to the edge where the likelihood has no maximum.

    Variances of maximum likelihood are mean squares of the residuals (ddof 0).
    """

    size: Floats | None = None
    spread: Floats | None = None
    posterior: Floats | None = None
    prior: PseudoRows | None = None
    evidence: float | None = None
    estimate: str = "given"
    pool: tuple[Hashable, ...] = ()
    notes: tuple[str, ...] = ()
    directions: tuple[str, ...] = ()

    @property
    def n_params(self) -> int:
        """Free parameters: weights and a variance for each joint state of the discrete parents.

        Where these are too many to be listed, only those with a regression of their own count.
        """
        each = len(self.default_weights) + 1
        every = self.n_configurations * each
        return every if every <= MOST_NUMBERS else len(self.weights) * each

    @property
    def n_unseen(self) -> int:
        """Number of joint states of the discrete parents without any rows."""
        return self.n_configurations - len(self.configurations)

    @property
    def exists(self) -> bool:
        """Whether the objective has a maximum; the likelihood has none where a variance shrinks to 0."""
        return not self.directions

    # -- errors and the posterior ------------------------------------------------------------------------------------

    @property
    def standard_errors_(self) -> Floats:
        """Of the weights, in the shape of `weights_`; inf for weights that the rows do not determine.

        Maximum likelihood: from the information at the estimate, with its variance (ddof 0). With a prior: posterior
        standard deviations, which need a posterior shape above 1.
        """
        if self.spread is None:
            raise EstimateError(f"{self.name!r} was not learned from rows, so its weights have no standard errors.")
        if self.prior is None:
            spread, scale = self.spread, self.variance
            default = np.full(spread.shape[1], np.inf)
        else:
            _, spread, alpha, beta = self._posteriors
            scale = np.where(alpha > 1, beta / np.where(alpha > 1, alpha - 1, 1.0), np.inf)
        diagonal = np.diagonal(spread, axis1=1, axis2=2)
        bounded = np.where(np.isinf(diagonal), 0.0, diagonal)
        errors = np.where(np.isinf(diagonal), np.inf, np.sqrt(scale[:, None] * bounded))
        if self.prior is not None:
            errors, default = errors[:-1], errors[-1]
        return self.dense(errors, default)

    @cached_property
    def _posteriors(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Weights, spread, shape and scale of each configuration, and last of the joint states without rows.

        The latter are those of the prior, or NaN where it leaves the intercept flat.
        """
        if self.prior is None or self.spread is None or self.posterior is None:
            raise EstimateError(f"{self.name!r} was fitted without a prior, so it has no posterior. Give prior=.")
        q = len(self.default_weights)
        weights, spread, figures = np.full((1, q), np.nan), np.full((1, q, q), np.nan), np.full((1, 2), np.nan)
        if not self.prior.flat:
            solved, squares = self.prior.solve(Products.none(q))
            weights, spread, figures = solved.weights, solved.spread, np.array([[self.prior.alpha, squares[0] / 2]])
        alpha, beta = np.concatenate([self.posterior, figures]).T
        return np.concatenate([self.weights, weights]), np.concatenate([self.spread, spread]), alpha, beta

    def _posteriors_at(self, places: NDArray[np.intp]) -> tuple[Floats, Floats, Floats, Floats]:
        """The same (n, ...) at some positions."""
        weights, spread, alpha, beta = self._posteriors
        if self.prior is not None and self.prior.flat and (places < 0).any():
            raise EstimateError(
                f"Some joint state of {listing(self.discrete_parents)} has no rows and {self.name!r} has a flat prior "
                "of the intercept, so there is no posterior. Use LinearGaussianPrior(..., on='all')."
            )
        return weights[places], spread[places], alpha[places], beta[places]

    def posterior_law(self, where: Mapping[Hashable, Hashable] | None = None, /, **states: Hashable) -> RegressionLaw:
        """The posterior of weights and variance at a joint state of the discrete parents; needs a prior."""
        found = self._posteriors_at(self.positions(self.codes_of(named(where, states))))
        weights, spread, alpha, beta = (part[0] for part in found)
        return RegressionLaw(weights, spread, float(alpha), float(beta))

    @property
    def posterior_(self) -> RegressionLaw:
        """The posterior of weights and variance of a node without discrete parents."""
        if self.discrete_parents:
            raise OptionError(
                f"{self.name!r} has one posterior for each joint state of {listing(self.discrete_parents)}; give the "
                "states to posterior_law."
            )
        return self.posterior_law()

    def credible_intervals(self, level: float = 0.95) -> tuple[Table, Table]:
        """Lower and upper ends of the central posterior interval of each coefficient; needs a prior.

        Weights are Student-t, variances inverse-gamma. Joint states without rows have the interval of the prior, or NaN
        where it is flat.
        """
        centre, spread, alpha, beta = self._posteriors
        shares = np.array(tails(level))
        diagonal = np.diagonal(spread, axis1=1, axis2=2)
        weights = weight_quantiles(centre, diagonal, alpha[:, None], beta[:, None], shares)
        ends = np.concatenate([weights, variance_quantiles(alpha, beta, shares)[:, None]], axis=1)
        low, high = (self.table(self.dense(ends[:-1, :, end], ends[-1, :, end])) for end in (0, 1))
        return low, high

    def predictive_log_prob(self, columns: Columns) -> Floats:
        """Log density of each row with weights and variance integrated out (Student-t); needs a prior."""
        from scipy.special import gammaln

        y = np.asarray(columns[self.name], dtype=np.float64)
        at = self.positions(self.parent_codes(columns, len(y)))
        weights, spread, alpha, beta = self._posteriors_at(at)
        x = np.stack([np.ones(len(y)), *(np.asarray(columns[name], dtype=np.float64) for name in self.real_parents)], 1)
        scale = 2 * beta * (1 + np.einsum("ni,nij,nj->n", x, spread, x))
        away = y - (x * weights).sum(axis=1)
        centre = gammaln(alpha + 0.5) - gammaln(alpha) - 0.5 * np.log(math.pi * scale)
        return np.asarray(centre - (alpha + 0.5) * np.log1p(away**2 / scale))

    # -- the objective -----------------------------------------------------------------------------------------------

    def log_likelihood(self, summary: Summary) -> float:
        """Sum over rows of the log density; point masses count as in `log_prob`."""
        products, cells = products_of(self.domain, summary, self.pool)
        if not products.weight.any():
            return 0.0
        return float(log_likelihoods(products, *self._rows(self.positions(cells))).sum())

    def gap(self, summary: Summary) -> float:
        """Slope of the objective, measured afresh: largest over the configurations, each weighted by its share of rows.

        For the weights it is the correlation of the residuals with 1 and with each parent; for the variance, its
        relative distance from the (penalised) mean square.
        """
        seen, cells = products_of(self.domain, summary, self.pool)
        if not seen.weight.any() or self.estimate == "given":
            return 0.0
        found = gaps(seen, self.prior, self.estimate, *self._rows(self.positions(cells)))
        return float((found * (seen.weight / seen.weight.sum())).max())

    def log_evidence(self) -> float | None:
        """Log marginal likelihood of the node's rows given its parents; None without a prior.

        Where the prior leaves the intercept flat, it is relative to an intercept of density one.
        """
        return self.evidence

    # -- files -------------------------------------------------------------------------------------------------------

    def to_plain(self) -> dict[str, Any]:
        """Plain data."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"kind": self.kind, **found, "prior": None if self.prior is None else self.prior.to_plain()}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> LinearGaussianNode:
        """Rebuild from plain data, checking shapes, codes and signs."""
        options = {key: value for key, value in plain.items() if key != "kind"}
        if options["prior"] is not None:
            options["prior"] = PseudoRows(**options["prior"])
        node = cls(**options)
        what = (
            f"The linear-Gaussian node {node.name!r}" if isinstance(node.domain, Domain) and node.domain else "A node"
        )
        if what == "A node" or not _sound(node):
            raise FileFormatError(f"{what} has arrays of the wrong type or shape, or a negative variance.")
        return node


def _sound(node: LinearGaussianNode) -> bool:
    """Whether the arrays of a node from a file fit together."""
    k, q, b = len(node.weights), len(node.real_parents) + 1, len(node.discrete_parents)
    shapes: dict[str, tuple[int, ...]] = {
        "weights": (k, q),
        "variance": (k,),
        "default_weights": (q,),
        "size": (k,),
        "spread": (k, q, q),
        "posterior": (k, 2),
    }
    for name, shape in shapes.items():
        array = getattr(node, name)
        optional = array is None and name in ("size", "spread", "posterior")
        if not optional and not (isinstance(array, np.ndarray) and array.dtype == np.float64 and array.shape == shape):
            return False
    codes, cards = node.configurations, np.array(node.domain.shape(node.discrete_parents), dtype=np.int64)
    if not (isinstance(codes, np.ndarray) and codes.dtype == np.int32 and codes.shape == (k, b)):
        return False
    inside = ((codes >= 0) & (codes < cards)).all() and (b > 0 or k == 1)
    if node.prior is not None:
        prior = node.prior
        inside = inside and prior.centre.shape == (q,) and prior.scatter.shape == (q, q) and node.posterior is not None
    return bool(inside and not (node.variance < 0).any() and not node.default_variance < 0)


# --------------------------------------------------------------------------------------------------------------------
# The objective of k regressions
# --------------------------------------------------------------------------------------------------------------------


def log_likelihoods(products: Products, weights: Floats, variance: Floats) -> Floats:
    """Log-likelihoods (k,) at some weights (k, q) and variances (k,); a point mass is 0 if every row is on it."""
    squares = products.squares(weights)
    point = variance == 0
    spread = np.where(point, 1.0, variance)
    density = -0.5 * (products.weight * (LOG_2PI + np.log(spread)) + squares / spread)
    return (
        np.where(point, np.where(products.perfect(weights, squares), 0.0, -np.inf), density) if point.any() else density
    )


def gaps(seen: Products, prior: PseudoRows | None, estimate: str, weights: Floats, variance: Floats) -> Floats:
    """Slopes (k,) of the objective at some weights and variances, as `LinearGaussianNode.gap` explains."""
    products = seen if prior is None else prior.added_to(seen)
    divisor = seen.weight if prior is None else prior.divisor(seen.weight, estimate)
    squares = products.squares(weights)
    diagonal = np.diagonal(products.scatter, axis1=1, axis2=2)
    units = np.sqrt(np.concatenate([products.weight[:, None], diagonal[:, :-1]], axis=1) * diagonal[:, -1:])
    slopes = np.abs(products.slopes(weights)) / np.where(units > 0, units, 1.0)
    off = np.abs(squares / divisor / np.where(variance > 0, variance, 1.0) - 1)
    if not variance.all():
        off = np.where(variance > 0, off, np.where(products.perfect(weights, squares), 0.0, np.inf))
    return np.maximum(slopes.max(axis=1), off)


# --------------------------------------------------------------------------------------------------------------------
# Statistics
# --------------------------------------------------------------------------------------------------------------------


def statistic_of(domain: Domain, pool: tuple[Hashable, ...]) -> Statistic:
    """The moments that a node needs: of its family, or of a pool of columns; by the states of discrete parents."""
    reals = tuple(v.name for v in domain.variables if v.kind != "discrete")
    discrete = tuple(v.name for v in domain.variables if v.kind == "discrete")
    if discrete:
        return MomentsBy(reals, discrete)
    if pool and not set(reals) <= set(pool):
        raise OptionError(f"The pool {listing(pool)} does not hold all of the columns {listing(reals)}.")
    return Moments(pool or reals)


def products_of(domain: Domain, summary: Summary, pool: tuple[Hashable, ...]) -> tuple[Products, Codes]:
    """Sums of products of (real parents, node) for each joint state of the discrete parents seen, and these states."""
    statistic = statistic_of(domain, pool)
    places = {name: at for at, name in enumerate(statistic.variables)}
    axes = [places[v.name] for v in domain.variables if v.kind != "discrete"]
    answer = summary[statistic]
    cells = answer.cells if isinstance(statistic, MomentsBy) else np.zeros((1, 0), dtype=np.int32)
    return Products.of(answer, axes), cells
