"""Gaussian regression with a conjugate prior on coefficients and variance: the posterior in closed form."""

from __future__ import annotations

import numpy as np

from suffice.array_types import Floats
from suffice.errors import EstimateError
from suffice.fitting.contract import Found, Judgement
from suffice.fitting.control import Control, Outcome, State
from suffice.models.glm.certificate import in_units
from suffice.models.glm.covariances import RowEnd, null_deviance
from suffice.models.glm.family import RowDistribution, Totals
from suffice.models.glm.fit_options import FitOptions
from suffice.models.glm.fitted import GLMFitted
from suffice.models.glm.problem import RegressionProblem, totals
from suffice.models.glm.rank import checked_sums
from suffice.models.glm.regression import Factory, GLMProblem
from suffice.models.glm.rows import RegressionData


class ConjugateRegression(GLMProblem):
    """Coefficients given the variance v are Gaussian with precision (X'X + S) / v, and v is inverse-gamma."""

    def __init__(self, options: FitOptions, data: RegressionData, factory: Factory) -> None:
        """Refuse another response than the Gaussian one."""
        super().__init__(options, data, factory)
        prior = options.penalties(data.design).conjugate
        assert prior is not None
        self.prior, self.distribution = prior, RowDistribution(options.one_family, options.link)
        self.sums = checked_sums(data.blocks, self.distribution.family)
        if (options.family.name, options.link.name) != ("gaussian", "identity"):
            raise EstimateError(
                f"The prior on coefficients and variance together is conjugate to the Gaussian response with the "
                f"identity link only, not to {options.family.name} with {options.link.name}. Use Normal(variance=...)."
            )
        self.strength, self.mean = data.design.internal(prior.strength), data.design.internal(prior.mean)
        self.bare = RegressionProblem(data.blocks, data.design.layout, self.distribution)

    def solve(self, control: Control) -> Found[GLMFitted]:
        """The posterior, and its means."""
        design, prior, weight = self.data.design, self.prior, self.sums.weight
        beta = np.zeros(self.bare.size)
        for _ in range(3):  # The first step is exact but for rounding, which the next ones take out.
            _, gradient, information = self.bare.curvature(beta)
            together = information.plus(self.strength)
            beta = beta + together.solve(gradient - self.strength * (beta - self.mean))
        if not together.definite:
            raise EstimateError(
                "A coefficient without a prior cannot be told from others; use penalize_intercept=True."
            )
        sums = self._sums(beta)
        shape = prior.alpha + 0.5 * (weight - int((self.strength == 0.0).sum()))
        scale = prior.beta + 0.5 * (sums.deviance + float(self.strength @ (beta - self.mean) ** 2))
        if not shape > 1.0:
            raise EstimateError(f"The posterior mean of the variance needs a shape above 1; it is {shape:g}.")
        variance = scale / (shape - 1.0)
        together = self.bare.curvature(beta)[2].plus(self.strength)
        information, known = together.times(1.0 / variance), self.options.known_dispersion is not None
        end = RowEnd(self.data, self.distribution, beta, information, variance)
        public = design.public(beta)
        fitted = GLMFitted(
            **self.data.learned_names(),
            family=self.options.family.name,
            link=self.options.link.name,
            beta=public[:, None],
            information=information,
            dispersion=variance,
            ml_dispersion=sums.deviance / weight,
            deviance=sums.deviance,
            null_deviance=null_deviance(self.data, self.distribution, self.sums.mean),
            pearson=sums.pearson,
            df_resid=self.data.weight - len(beta),
            n_params=len(beta) + int(not known),
            sandwich=end.covariance(self.options.given["covariance"]),
            posterior=(public, design.public_matrix(together.inverse()), shape, scale),
        )
        outcome = Outcome(
            State(beta, self.distribution.family.log_likelihood(sums, variance), 0.0), True, "closed form", ()
        )
        return Found(fitted, "closed form", "posterior mean", outcome)

    def _sums(self, beta: Floats) -> Totals:
        return totals(self.data.blocks, self.bare.layout, self.distribution, beta)

    def judge(self, fitted: GLMFitted) -> Judgement:
        """The mean of the coefficients is their mode, whatever the variance: the slope is 0, and the bound exact."""
        beta, variance = self.data.design.internal(fitted.beta[:, 0]), fitted.dispersion
        _, gradient, information = self.bare.curvature(beta)
        slope = (gradient - self.strength * (beta - self.mean)) / variance
        together = information.plus(self.strength).times(1.0 / variance)
        left = 0.5 * float(slope @ together.solve(slope)) / self.sums.weight
        value = self.distribution.family.log_likelihood(self._sums(beta), variance) + self.data.constant
        certificate = in_units(slope, together.diagonal(), left, bound=True, exists=True)
        return Judgement(value, value, certificate, kept=self.matched(fitted))
