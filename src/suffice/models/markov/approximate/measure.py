"""The slope of an approximate fit by fresh chains, which know nothing of it: they begin anew."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.engines.chain_means import ChainMeans
from suffice.engines.gibbs import GibbsChains
from suffice.engines.tempering import Lengths, fresh_means
from suffice.fitting.report import MonteCarlo, in_standard_errors
from suffice.models.markov.approximate.problem import SampledProblem
from suffice.models.markov.family import LogLinearFamily
from suffice.models.markov.priors import penalised_slope
from suffice.solvers.penalties import GaussianPenalty

#: Standard errors by which a slope may exceed the tolerance.
SIGNIFICANT = 3.0


# -- the slope by fresh chains -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SampledSlope:
    """The slope of the objective (n_weights,) a row by fresh chains, features in the units of the problem.

    `error` (n_weights,) are its Monte Carlo standard errors, `means` what the chains say about the features under the
    distribution, and `exact` the slope by a junction tree, where one fits.
    """

    problem: SampledProblem
    slope: Floats
    error: Floats
    means: ChainMeans
    exact: Floats | None = None

    @property
    def variance(self) -> Floats:
        """Variance of each feature (n_weights,) in one row, by the chains; by the rows where these tell too little."""
        drawn, rows = self.means.variance, self.problem.spread**2
        return rows if drawn is None else np.where(np.isfinite(drawn), drawn, rows)

    def monte_carlo(self) -> MonteCarlo:
        """What the chains say about the gap, in standard errors of each statistic.

        Features whose weights run to infinity say nothing about mixing: they vary less and less.
        """
        sampling, weight, penalty = self.problem.sampling, self.problem.weight, self.problem.penalty
        size, r_hat = self.means.mixing(self.problem.bounded)
        variance = weight * self.variance
        if isinstance(penalty, GaussianPenalty):
            variance = variance + penalty.diagonal()
        return MonteCarlo(
            sampling.chains,
            sampling.draws,
            in_standard_errors(weight * self.error, variance),
            min(size, float(sampling.chains * sampling.draws)),
            r_hat,
            None if self.exact is None else in_standard_errors(weight * self.exact, variance),
            levels=self.means.levels,
        )

    def doubt(self, tolerance: float) -> str:
        """Why a fit that its own chains call done is not; empty where nothing is against it.

        By exact inference there is no doubt about the chains.
        """
        unmixed = self.monte_carlo().distrust if self.exact is None else ""
        slope = self.slope if self.exact is None else self.exact
        return unmixed or slope_doubt(self.problem, slope, self.error, tolerance)


def measure_slope(
    problem: SampledProblem,
    weights: Floats,
    lengths: Lengths,
    exact: Floats | None = None,
    observed: tuple[Floats, Floats] | None = None,
) -> SampledSlope:
    """The slope at these weights, by chains that know nothing of them.

    Args:
        problem: In units of its features, as the weights (n_weights,) are.
        weights: Where to measure.
        lengths: How long chains run.
        exact: The slope by a junction tree, where one fits.
        observed: Means of the features over the rows and their errors, where chains have to tell them.
    """
    means = fresh_chains(problem, weights, lengths)
    seen, error = (problem.observed, 0.0) if observed is None else observed
    slope = penalised_slope(problem.penalty, weights, seen - means.mean, problem.weight)
    return SampledSlope(problem, slope, np.hypot(means.error, error), means, exact)


def fresh_chains(problem: SampledProblem, weights: Floats, lengths: Lengths) -> ChainMeans:
    """Means of all features (n_weights,) under the distribution of these weights, by chains that begin anew."""
    sampler = problem.sampler
    problem.load(weights)

    def start() -> GibbsChains:
        return sampler.start(problem.sampling.chains, problem.seed)

    def add(states: NDArray[np.uint8], out: Floats) -> None:
        sampler.add_features(problem.matrix, states, out)

    functions, logs = (add, problem.model.n_weights), problem.model.log_potentials(weights)
    return fresh_means(sampler, logs, start, functions, lengths, problem.seed, problem.bounded)[0]


def exact_slope(problem: SampledProblem, weights: Floats, family: LogLinearFamily) -> tuple[float, Floats]:
    """Log Z and the slope (n_weights,) by a junction tree; family: the distributions of the model as it was given."""
    log_z, expected = family.over(problem.model).moments(weights)
    return log_z, penalised_slope(problem.penalty, weights, problem.observed - expected, problem.weight)


def slope_doubt(problem: SampledProblem, slope: Floats, error: Floats, tolerance: float) -> str:
    """Why a slope with this standard error is not that of a fit that is done; empty where it is.

    It may be as large as the tolerance and three standard errors. Weights that run to infinity are never done.
    """
    beyond = np.abs(slope) - tolerance * problem.spread - SIGNIFICANT * error
    beyond[~problem.bounded] = -np.inf
    worst = int(np.argmax(beyond)) if len(beyond) else 0
    if not len(beyond) or beyond[worst] <= 0.0:
        return ""
    name, here = problem.model.weight_names[worst], abs(float(slope[worst]) / float(problem.spread[worst]))
    return (
        f"the gap of {name} is {here:.2g} standard deviations by chains that the fit has not seen, and the tolerance "
        f"is {tolerance:.2g}"
    )
