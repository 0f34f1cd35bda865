"""Conjugate priors of normal distributions: the posterior's point for the M-step, and the prior's density there."""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import EstimateError, OptionError
from suffice.families.normal_inverse_gamma import NormalInverseGamma
from suffice.families.normal_wishart import NormalWishart


def check_prior(prior: Any, d: int, shape: str) -> None:
    """Raise where a prior does not belong to distributions of d columns with such covariances."""
    if isinstance(prior, NormalInverseGamma) and d == 1 and shape != "tied":
        return
    if isinstance(prior, NormalWishart) and shape == "full" and len(prior.mean_) == d:
        return
    raise OptionError(
        f"prior is {prior!r}; normal distributions of {d} columns with {shape} covariances take a NormalInverseGamma "
        "(one column, not tied) or a NormalWishart of that many dimensions (full covariances)."
    )


def updated(prior: Any, estimate: str, weight: float, mean: Floats, scatter: Floats) -> tuple[Floats, Floats]:
    """Mean (d,) and covariance (d, d): the mode or the mean of the posterior after weighted rows."""
    if isinstance(prior, NormalInverseGamma):
        posterior: Any = prior._updated(float(weight), float(mean[0]), max(float(scatter[0, 0]), 0.0))
        point = posterior.mode() if estimate == "map" else posterior.mean()
        return np.array([point["mean"]]), np.array([[point["variance"]]])
    posterior = prior._updated(float(weight), mean, scatter)
    point = posterior.mode() if estimate == "map" else posterior.mean()
    if estimate != "map" and "covariance" not in point:
        raise EstimateError(
            "The covariance of a state has no posterior mean: the posterior needs dof > d + 1. Use estimate='map', or "
            "a larger dof."
        )
    covariance = np.linalg.inv(point["precision"]) if estimate == "map" else point["covariance"]
    return np.asarray(point["mean"]), np.asarray((covariance + covariance.T) / 2)


def log_density(prior: Any, mean: Floats, covariance: Floats) -> float:
    """Log density of the prior at a distribution, in the parameters in which its mode is taken."""
    if isinstance(prior, NormalInverseGamma):
        return float(prior.log_prob({"mean": float(mean[0]), "variance": float(covariance[0, 0])}))
    return float(prior.log_prob({"mean": mean, "precision": np.linalg.inv(covariance)}))
