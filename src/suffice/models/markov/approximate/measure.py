"""How near an approximate fit is: its moment gap measured by fresh chains, and its likelihood with an error.

The chains of a judge know nothing of the fit: they begin anew, with random numbers of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.engines.annealing import log_partition
from suffice.engines.chain_means import ChainMeans
from suffice.engines.gibbs import GibbsChains
from suffice.engines.tempering import Lengths, fresh_means
from suffice.errors import SamplingWarning, warn
from suffice.fitting.report import DENIED as DENIED_BY_CERTIFICATE
from suffice.fitting.report import Certificate, MonteCarlo, allowed, in_standard_errors
from suffice.models.markov.approximate.problem import SampledProblem
from suffice.models.markov.approximate.solvers import bethe, cd_gradient, pseudo_objective
from suffice.models.markov.certificate import gap_fields
from suffice.models.markov.existence import own_limits
from suffice.models.markov.family import LogLinearFamily
from suffice.models.markov.priors import penalised_slope
from suffice.solvers.penalties import GaussianPenalty
from suffice.solvers.scaling import inner

#: Standard errors by which a slope may exceed the tolerance.
SIGNIFICANT = 3.0
#: Slopes of contrastive divergence whose mean is taken.
DRAWS = 200
#: Why a fit has not converged whose own chains say that it has.
DENIED = "denied by fresh chains"
#: Why a fit has not converged whose weights run to infinity.
NO_MAXIMUM = "no maximum"

#: What the moment gap is, of solvers that maximise something else.
OTHERWISE = "the moment gap is the likelihood's, by {chains:,} Gibbs chains"
ENGINES = {
    "sml": "stochastic: Gibbs sampling, {chains:,} chains",
    "cd": "stochastic: contrastive divergence, done where its own slope is small; " + OTHERWISE,
    "pseudolikelihood": "pseudo-likelihood, done where its own slope is small; " + OTHERWISE,
    "loopy-bp": "approximate: loopy belief propagation, done where Bethe's slope is small; " + OTHERWISE,
}


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
        drawn = self.means.error**2 * self.means.effective_sample_size
        return np.where(np.isfinite(drawn), drawn, self.problem.spread**2)

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


# -- for a judge -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SampledMeasurement:
    """An approximate fit at its weights: what a judge says of it.

    `log_likelihood` is a sum over rows and `likelihood_error` its standard error, None where it is exact; `doubt` is
    what is against the fit and `likelihood_doubt` what is against the estimate of its likelihood, empty where nothing
    is. `certificate` has the rest.
    """

    log_likelihood: float
    certificate: Certificate
    doubt: str = ""
    likelihood_doubt: str = ""


def measured(
    slope: SampledSlope, likelihood: tuple[float, float | None, str], tolerance: float, engine: str
) -> SampledMeasurement:
    """What a slope by fresh chains comes to.

    likelihood: its sum over rows, the standard error of that, and what is against it. tolerance: the gap, in standard
    deviations of a feature, at which the solver was done.
    """
    problem = slope.problem
    exists, directions = existence(problem)
    certificate = Certificate(
        exact=False,
        exists=exists,
        directions=directions,
        engine=engine,
        monte_carlo=replace(slope.monte_carlo(), log_likelihood_error=likelihood[1]),
        **gap_fields(slope.slope, slope.variance, problem.weight, problem.penalty, problem.units),
    )
    return SampledMeasurement(likelihood[0], certificate, slope.doubt(tolerance), likelihood[2])


def unmeasured(problem: SampledProblem, engine: str) -> SampledMeasurement:
    """What is left to say where somebody has stopped the measuring: the fit itself is done."""
    exists, directions = existence(problem)
    certificate = Certificate(math.inf, exact=False, exists=exists, directions=directions, engine=engine)
    return SampledMeasurement(-math.inf, certificate, doubt="its measurement was interrupted")


def estimated_log_z(problem: SampledProblem, weights: Floats) -> tuple[float, float, str]:
    """Log Z by annealed importance sampling, its standard error, and what is against it."""
    logs = problem.model.log_potentials(weights)
    estimate = log_partition(problem.sampler, logs, chains=problem.sampling.chains, random_state=problem.seed)
    return estimate.value, estimate.standard_error, estimate.distrust


def log_likelihood(problem: SampledProblem, weights: Floats, log_z: float | None) -> tuple[float, float | None, str]:
    """That of all rows, its standard error and what is against it; log_z: where it is known, else it is estimated."""
    error, unsure = None, ""
    if log_z is None:
        log_z, deviation, unsure = estimated_log_z(problem, weights)
        error = problem.weight * deviation
    # Features less their centres: an offset of a feature would make the likelihood a difference of large numbers.
    return problem.weight * (inner(weights, problem.observed) - log_z), error, unsure


def existence(problem: SampledProblem) -> tuple[bool | None, tuple[str, ...]]:
    """A prior has a maximum; a feature that was always at its end has none; beyond that nothing is decided."""
    if problem.penalty is not None:
        return True, ()
    limits, names = own_limits(problem.model, problem.margins), problem.model.weight_names
    running = [k for end in (-np.inf, np.inf) for k in np.flatnonzero(limits == end)]
    directions = tuple(f"weight of {names[k]} -> {limits[k]:.0f}" for k in running)
    return (False if directions else None), directions


def measure_own(problem: SampledProblem, weights: Floats, solver: str, tolerance: float) -> tuple[float | None, str]:
    """The objective of a solver that does not climb the likelihood, a sum over rows, and why it is not done there.

    The certificate has the slope of the likelihood, which does not vanish at these weights. Whether the fit is done is
    told by the slope of its own objective: of the pseudo-likelihood, of Bethe's log-likelihood, or the mean of the
    slopes that contrastive divergence follows, by fresh rows and chains, which has no objective (None). tolerance: that
    of a stochastic solver.
    """
    if solver == "cd":
        chains = problem.sampler.start(problem.sampling.chains, problem.seed)
        slopes = np.array([cd_gradient(problem, weights, chains) for _ in range(DRAWS)])
        error = slopes.std(axis=0, ddof=1) / np.sqrt(len(slopes))
        return None, slope_doubt(problem, slopes.mean(axis=0), error, tolerance)
    smooth = pseudo_objective if solver == "pseudolikelihood" else lambda inside, x: bethe(inside)(x)[:2]
    value, slope = smooth(problem, weights)
    penalty = problem.penalty
    if penalty is not None and not isinstance(penalty, GaussianPenalty):
        value -= penalty.value(weights) / problem.weight
        slope = penalised_slope(penalty, weights, slope, problem.weight)
    gap, most = float(np.abs(slope).max(initial=0.0)), allowed(problem.control.tolerance)
    against = f"at the weights returned the slope of its own objective is {gap:.2e}, and {most:.2e} would be its end"
    return problem.weight * value, "" if gap <= most else against


def verdict(measurement: SampledMeasurement, own_doubt: str | None = None) -> dict[str, Any]:
    """Why a fit has not converged that its own chains call done, and why the chains are not to be relied on.

    Fields of a `Judgement`; the verdict has its short form before a colon, and is empty where the fit is done.
    own_doubt: what a solver that climbs something else than the likelihood has against its own objective; None for one
    that climbs the likelihood. Warns where what a report says is not to be relied on whatever the verdict is.
    """
    certificate, unreliable = measurement.certificate, ""
    carlo, against = certificate.monte_carlo, measurement.doubt if own_doubt is None else own_doubt
    if carlo is not None and carlo.exact_gap is None and carlo.distrust:
        unreliable = f"The moment gap in the certificate is not to be relied on: {carlo.distrust}."
    if unreliable and (own_doubt is not None or not against):
        warn(unreliable, SamplingWarning)
        unreliable = ""
    if measurement.likelihood_doubt:
        unsure = measurement.likelihood_doubt
        warn(f"The log-likelihood in the report is not to be relied on: {unsure}.", SamplingWarning)
    words = ""
    if against:
        words = f"{DENIED if own_doubt is None else DENIED_BY_CERTIFICATE}: {against}"
    elif certificate.exists is False:  # A point on the way to infinity is no end.
        words = f"{NO_MAXIMUM}: {'; '.join(certificate.directions[:3])}. Give a prior"
    return {"verdict": words, "unreliable": unreliable}
