"""The prior of a linear-Gaussian node: an inverse-gamma variance, and normal weights that share it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.engines.square_root import LOG_2PI
from suffice.errors import EstimateError, OptionError
from suffice.families.base import Distribution, Seed, as_float, as_location, as_scale, as_shape
from suffice.families.conjugate import ConjugatePrior, as_point
from suffice.families.regression import Products
from suffice.families.regression_distribution import PseudoRows, RegressionDistribution
from suffice.statistics import Moments, Summary


class LinearGaussianPrior(Distribution, ConjugatePrior):
    """The distribution of the weights w and the variance v of ``y ~ N(w_0 + w_1 x_1 + ... + w_p x_p, v)``.

    Its density is::

        p(w, v) = InverseGamma(v | alpha, beta) * product over c of N(w_c | mean, v)

    With ``on="parents"`` the product runs over the parents and the intercept is flat; with ``on="all"`` it includes the
    intercept, and a node without parents has the prior ``NormalInverseGamma(alpha, beta, gamma=1, delta=mean)``.
    The number of parents is that of the node.

    Args:
        alpha: shape of the variance.
        beta: scale of the variance.
        mean: centre of every weight that has a prior.
        on: ``"parents"`` or ``"all"``.

    >>> LinearGaussianPrior(alpha=2, beta=1, on="all").mode(parents=1)
    {'weights': array([0., 0.]), 'variance': 0.25}
    """

    parameter_names = ("alpha", "beta", "mean", "on")
    alpha_: float
    beta_: float
    mean_: float
    on_: str

    def __init__(self, alpha: float, beta: float, mean: float = 0.0, on: str = "parents") -> None:
        """See the class."""
        super().__init__(alpha=alpha, beta=beta, mean=mean, on=on)

    def _check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        if parameters["on"] not in ("parents", "all"):
            raise OptionError(f"on is {parameters['on']!r}; expected 'parents' (flat intercept) or 'all'.")
        positive = {"alpha": as_shape(parameters["alpha"], "alpha"), "beta": as_scale(parameters["beta"], "beta")}
        mean = float(as_location(as_float(parameters["mean"], "mean"), "mean"))
        return {**positive, "mean": mean, "on": parameters["on"]}

    def pseudo_rows(self, parents: int) -> PseudoRows:
        """The prior of a node with some real parents, as rows that were never seen.

        Each weight with a prior is a row in which only its column is 1 and y is the mean.
        """
        scatter = np.eye(parents + 1)
        scatter[-1, :] = scatter[:, -1] = self.mean_
        scatter[-1, -1] = parents * self.mean_**2 + 2 * self.beta_
        everywhere = self.on_ == "all"
        centre = np.zeros(parents + 1)
        centre[-1] = self.mean_ if everywhere else 0.0
        return PseudoRows(float(everywhere), centre, scatter, self.alpha_, self.beta_, int(not everywhere), 0.0)

    # -- as a distribution
    # ----------------------------------------------------------------------------------------------------

    def log_prob(self, x: Any) -> Any:
        """Log density at (weights, variance): a dict or a pair of arrays (..., p + 1), intercept first, and (...)."""
        weights, variance = as_point(x, ("weights", "variance"))
        held = weights if self.on_ == "all" else weights[..., 1:]
        square = ((held - self.mean_) ** 2).sum(axis=-1) + 2 * self.beta_
        constant = self.alpha_ * math.log(self.beta_) - math.lgamma(self.alpha_) - 0.5 * held.shape[-1] * LOG_2PI
        with np.errstate(divide="ignore", invalid="ignore"):
            value = constant - (self.alpha_ + 1 + 0.5 * held.shape[-1]) * np.log(variance) - square / (2 * variance)
        value = np.where(variance > 0, value, -np.inf)
        return float(value) if value.ndim == 0 else value

    def distribution(self, parents: int = 0) -> RegressionDistribution:
        """The prior of a node with some real parents as a distribution of its own; a flat intercept has none."""
        if self.on_ != "all":
            raise EstimateError(
                "With on='parents' the intercept is flat, so the prior is no distribution until it has seen a row. Use "
                "on='all'."
            )
        q = parents + 1
        return RegressionDistribution(np.full(q, self.mean_), np.eye(q), self.alpha_, self.beta_)

    def mean(self, parents: int = 0) -> dict[str, Any]:
        """The means of weights and variance; needs on='all' and alpha > 1."""
        return self.distribution(parents).mean()

    def mode(self, parents: int = 0) -> dict[str, Any]:
        """The joint mode in (weights, variance); needs on='all'."""
        return self.distribution(parents).mode()

    def sample(self, n: int = 1, random_state: Seed = None, *, parents: int = 0) -> dict[str, Floats]:
        """`n` draws of weights (n, parents + 1) and variance (n,); needs on='all'."""
        return self.distribution(parents).sample(n, random_state)

    # -- as a prior --------------------------------------------------------------------------------------------------

    def _from_summary(self, summary: Summary) -> RegressionDistribution:
        """Of a node, the last of the real columns, given the others."""
        names = summary.domain.names
        moments = summary[Moments(names)]
        if not moments.weight > 0:
            return self.distribution(len(names) - 1)
        products = Products.of(moments, list(range(len(names))))
        prior = self.pseudo_rows(len(names) - 1)
        solved, squares = prior.solve(products)
        shape = float(prior.shape(products.weight)[0])
        return RegressionDistribution(solved.weights[0], solved.spread[0], shape, float(squares[0]) / 2)

    def stationarity(self, point: Any) -> Floats:
        """Slope of the log density in the weights, then in the variance."""
        weights, variance = as_point(point, ("weights", "variance"))
        held = np.ones(len(weights)) if self.on_ == "all" else np.append(0.0, np.ones(len(weights) - 1))
        away = held * (self.mean_ - weights)
        square = away @ away + 2 * self.beta_
        slope = -(self.alpha_ + 1 + 0.5 * held.sum()) / variance + square / (2 * variance**2)
        return np.append(away / variance, slope)
