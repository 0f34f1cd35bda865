"""Priors on the coefficients of a regression, as penalties on the SUM of the log-likelihood over rows.

A prior speaks of the coefficients without the intercept, which is exempt unless it is asked to be penalised; one that
has an entry more speaks of the intercept first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.errors import OptionError
from suffice.families.laplace import Laplace
from suffice.families.linear_gaussian_prior import LinearGaussianPrior
from suffice.families.multivariate_normal import MultivariateNormal
from suffice.families.normal import Normal
from suffice.families.normal_inverse_gamma import NormalInverseGamma
from suffice.families.normal_wishart import NormalWishart
from suffice.models.glm.design import Design
from suffice.solvers.penalties import GaussianPenalty, LaplacePenalty


@dataclass(frozen=True, eq=False)
class Conjugate:
    """The prior of a Gaussian regression: v ~ InverseGamma(alpha, beta), coefficients ~ N(mean, v / strength).

    `mean` and `strength` (k,) are in the order of the names; a strength of 0 is a flat coefficient.
    """

    alpha: float
    beta: float
    mean: Floats
    strength: Floats


#: From this scale of a Laplace prior on, one over it, and that times numbers of the data, are floats.
LEAST_SCALE = 1e-200


@dataclass(frozen=True, eq=False)
class CoefficientPenalties:
    """What the priors take off the log-likelihood, in the engine's layout, for each of several linear predictors."""

    gaussian: GaussianPenalty | None = None
    laplace: LaplacePenalty | None = None
    conjugate: Conjugate | None = None

    @property
    def any(self) -> bool:
        """Whether there is a prior at all."""
        return not (self.gaussian is None and self.laplace is None and self.conjugate is None)


def is_conjugate(prior: Any) -> bool:
    """Whether a prior, or one of several, speaks of the variance as well as of the coefficients."""
    several = prior if isinstance(prior, tuple | list) else (prior,)
    return any(isinstance(one, NormalInverseGamma | LinearGaussianPrior | NormalWishart) for one in several)


def read_prior(prior: Any, design: Design, *, penalize_intercept: bool, outputs: int = 1) -> CoefficientPenalties:
    """The penalties of a prior, or of several that are multiplied."""
    penalties = CoefficientPenalties()
    for one in prior if isinstance(prior, tuple | list) else () if prior is None else (prior,):
        if isinstance(one, Normal | MultivariateNormal):
            if penalties.gaussian is not None:
                raise OptionError("Two Gaussian priors on the same coefficients; give one.")
            penalties = replace(penalties, gaussian=_gaussian(one, design, penalize_intercept, outputs))
        elif isinstance(one, Laplace):
            rate = _rates(_spread(one.scale_, design, penalize_intercept, outputs, 1.0, "scale"))
            rate[_exempt(design, penalize_intercept, np.shape(one.scale_), outputs)] = 0.0
            mean = _spread(one.mean_, design, penalize_intercept, outputs, 0.0, "mean")
            penalties = replace(penalties, laplace=LaplacePenalty(mean, rate))
        elif isinstance(one, NormalInverseGamma | LinearGaussianPrior):
            penalties = replace(penalties, conjugate=_conjugate(one, design, penalize_intercept))
        else:
            raise OptionError(
                f"The prior is {one!r}; coefficients take Normal(mean, variance), MultivariateNormal(mean, "
                "covariance), Laplace(scale), a Normal and a Laplace in a tuple and, with a Gaussian response, "
                "NormalInverseGamma or LinearGaussianPrior."
            )
    return penalties


def _gaussian(prior: Any, design: Design, penalize: bool, outputs: int) -> GaussianPenalty:
    if isinstance(prior, MultivariateNormal):
        return _full(prior, design, penalize, outputs)
    precision = 1.0 / _spread(prior.variance_, design, penalize, outputs, 1.0, "variance")
    precision[_exempt(design, penalize, np.shape(prior.variance_), outputs)] = 0.0
    return GaussianPenalty(_spread(prior.mean_, design, penalize, outputs, 0.0, "mean"), precision)


def _full(prior: MultivariateNormal, design: Design, penalize: bool, outputs: int) -> GaussianPenalty:
    if outputs > 1:
        raise OptionError("A full covariance needs one linear predictor; use Normal(variance=...) for several.")
    covariance = np.atleast_2d(np.asarray(prior.covariance_, dtype=np.float64))
    held = int(design.constant and len(covariance) == design.size - 1)
    if len(covariance) != design.size - held:
        raise OptionError(
            f"The covariance of the prior has shape {covariance.shape}; there are {design.size} coefficients: "
            f"{', '.join(design.names[:8])}."
        )
    if penalize and held:
        raise OptionError("penalize_intercept=True needs a covariance that has the intercept first.")
    precision = np.zeros((design.size, design.size))
    inverse = np.linalg.inv(covariance)
    precision[held:, held:] = 0.5 * (inverse + inverse.T)
    mean = np.zeros(design.size)
    mean[held:] = prior.mean_
    places = design.places
    return GaussianPenalty(mean[places], precision[np.ix_(places, places)])


def _spread(value: Any, design: Design, penalize: bool, outputs: int, missing: float, what: str) -> Floats:
    """One number for each coefficient, in the engine's layout, repeated for each linear predictor."""
    array = np.asarray(value, dtype=np.float64)
    if array.ndim == 0:
        entries = np.full(design.size, float(array))
    elif array.shape == (design.size,):
        entries = array.copy()
    elif array.shape == (design.size - 1,) and design.constant and not penalize:
        entries = np.concatenate(([missing], array))
    else:
        raise OptionError(
            f"The {what} of the prior has shape {array.shape}; there are {design.size} coefficients: "
            f"{', '.join(design.names[:8])}."
        )
    return np.tile(entries[design.places], outputs)


def _rates(scales: Floats) -> Floats:
    """One over each scale, where that is a number."""
    if (scales < LEAST_SCALE).any():
        raise OptionError(
            f"The scale of the prior is {float(scales.min()):.3g}, and one over it is too large for double precision. "
            "Leave out columns whose coefficient is known to be 0, or use offset= for one that is known."
        )
    return 1.0 / scales


def _exempt(design: Design, penalize: bool, shape: tuple[int, ...], outputs: int) -> NDArray[np.bool_]:
    """Where the intercept stands, unless it has a prior: because it was asked to, or by an entry of its own."""
    exempt = np.zeros(design.size, dtype=np.bool_)
    if design.constant and not penalize and shape != (design.size,):
        exempt[0] = True
    return np.tile(exempt, outputs)


def _conjugate(prior: Any, design: Design, penalize: bool) -> Conjugate:
    strength = np.ones(design.size)
    if isinstance(prior, LinearGaussianPrior):
        exempt, mean, worth = prior.on_ != "all", float(prior.mean_), 1.0
    else:
        exempt, mean, worth = not penalize, float(prior.delta_), float(prior.gamma_)
    strength *= worth
    centre = np.full(design.size, mean)
    if design.constant and exempt:
        strength[0] = centre[0] = 0.0
    return Conjugate(float(prior.alpha_), float(prior.beta_), centre, strength)


def ahead_of(penalties: CoefficientPenalties, thresholds: int) -> CoefficientPenalties:
    """Priors on the coefficients alone: the thresholds before them have none."""
    if penalties.conjugate is not None:
        raise OptionError("The prior on coefficients and variance is for a Gaussian response; use Normal(variance=).")
    none = np.zeros(thresholds)
    gaussian, laplace = penalties.gaussian, penalties.laplace
    if gaussian is not None:
        precision = np.concatenate((none, gaussian.precision)) if gaussian.precision.ndim == 1 else None
        if precision is None:
            precision = np.pad(gaussian.precision, (thresholds, 0))
        gaussian = GaussianPenalty(np.concatenate((none, gaussian.mean)), precision)
    if laplace is not None:
        laplace = LaplacePenalty(np.concatenate((none, laplace.mean)), np.concatenate((none, laplace.rate)))
    return CoefficientPenalties(gaussian, laplace)
