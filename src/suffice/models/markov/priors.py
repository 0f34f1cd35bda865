"""Priors on the weights of a log-linear model, read as penalties."""

from __future__ import annotations

import numpy as np

from suffice.array_types import Floats
from suffice.checks import LEAST_SIZE, check_size
from suffice.errors import OptionError
from suffice.families.laplace import Laplace
from suffice.families.multivariate_normal import MultivariateNormal
from suffice.families.normal import Normal
from suffice.solvers.gradient import pseudo_gradient
from suffice.solvers.penalties import GaussianPenalty, LaplacePenalty, Penalty


def read_penalty(prior: object, k: int) -> Penalty | None:
    """The penalty of a prior on k weights; None without a prior."""
    if prior is None:
        return None
    if isinstance(prior, Normal):
        return GaussianPenalty(_vector(prior.mean_, k, "mean"), 1.0 / _vector(prior.variance_, k, "variance"))
    if isinstance(prior, MultivariateNormal):
        mean, covariance = _vector(prior.mean_, k, "mean"), np.asarray(prior.covariance_, dtype=np.float64)
        if covariance.shape != (k, k):
            raise OptionError(f"The covariance of the prior has shape {covariance.shape}; the model has {k} weights.")
        precision = np.linalg.inv(covariance)
        return GaussianPenalty(mean, 0.5 * (precision + precision.T))
    if isinstance(prior, Laplace):
        return LaplacePenalty(_vector(prior.mean_, k, "mean"), 1.0 / _vector(prior.scale_, k, "scale"))
    raise OptionError(
        f"The prior is {prior!r}; weights take Normal(mean, variance), MultivariateNormal(mean, covariance) or "
        "Laplace(scale). For pseudo-counts add them to the table of counts."
    )


def penalised_slope(penalty: Penalty | None, weights: Floats, slope: Floats, weight: float) -> Floats:
    """The slope (k,) of the objective a row: that of the log-likelihood with its prior, for so many rows.

    Under a Laplace prior, which has a corner, that of least size.
    """
    if isinstance(penalty, GaussianPenalty):
        return np.asarray(slope - penalty.slope(weights) / weight)
    if isinstance(penalty, LaplacePenalty):
        return pseudo_gradient(weights - penalty.mean, slope, penalty.rate / weight)
    return slope


def _vector(value: object, size: int, what: str) -> Floats:
    array = np.asarray(value, dtype=np.float64)
    check_size(array, f"The {what} of the prior", least=0.0 if what == "mean" else LEAST_SIZE)
    if array.ndim and array.shape != (size,):
        raise OptionError(
            f"The {what} of the prior has shape {array.shape}; the model has {size} weights, in the order of "
            "weight_names_."
        )
    return np.array(np.broadcast_to(array, (size,)))
