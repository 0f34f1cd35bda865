"""Priors on the weights of a chain, as penalties on the SUM of the log-likelihood over sequences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from suffice.array_types import Floats
from suffice.errors import OptionError
from suffice.families.laplace import Laplace
from suffice.families.multivariate_normal import MultivariateNormal
from suffice.families.normal import Normal
from suffice.models.markov.priors import read_penalty
from suffice.solvers.penalties import GaussianPenalty, LaplacePenalty


@dataclass(frozen=True, eq=False)
class WeightPenalties:
    """A Gaussian penalty, a Laplace penalty, both (elastic net) or none."""

    gaussian: GaussianPenalty | None = None
    laplace: LaplacePenalty | None = None

    @property
    def any(self) -> bool:
        """Whether there is a prior at all."""
        return self.gaussian is not None or self.laplace is not None

    def smooth(self, weights: Floats) -> tuple[float, Floats | float]:
        """Value and slope of the Gaussian part."""
        if self.gaussian is None:
            return 0.0, 0.0
        return self.gaussian.value(weights), self.gaussian.slope(weights)

    def value(self, weights: Floats) -> float:
        """What both take off the log-likelihood."""
        rough = 0.0 if self.laplace is None else self.laplace.value(weights)
        return self.smooth(weights)[0] + rough


def read_prior(prior: Any, k: int) -> WeightPenalties:
    """The penalties of a prior, or of a Normal and a Laplace in a tuple, on k weights."""
    gaussian = laplace = None
    for one in prior if isinstance(prior, tuple | list) else () if prior is None else (prior,):
        if not isinstance(one, Normal | MultivariateNormal | Laplace):
            raise OptionError(
                f"The prior is {one!r}; weights take Normal(mean, variance), MultivariateNormal(mean, covariance), "
                "Laplace(scale), or a Gaussian and a Laplace in a tuple."
            )
        penalty = read_penalty(one, k)
        if isinstance(penalty, GaussianPenalty):
            if gaussian is not None:
                raise OptionError("Two Normal priors on the same weights; give one.")
            gaussian = penalty
        elif isinstance(penalty, LaplacePenalty):
            if laplace is not None or (penalty.mean != 0.0).any():
                raise OptionError("A Laplace prior on weights is given once and has mean 0.")
            laplace = penalty
    return WeightPenalties(gaussian, laplace)
