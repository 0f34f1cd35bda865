"""How near an approximate fit is: its moment gap measured by fresh chains, and its likelihood with an error.

The chains of a judge know nothing of the fit: they begin anew, with random numbers of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.engines.annealing import log_partition
from suffice.errors import SamplingWarning, warn
from suffice.fitting.confirmation import DENIED as DENIED_BY_CERTIFICATE
from suffice.fitting.confirmation import allowed
from suffice.fitting.report import Certificate
from suffice.models.markov.approximate.measure import SampledSlope, slope_doubt
from suffice.models.markov.approximate.problem import SampledProblem
from suffice.models.markov.approximate.solvers import bethe, cd_gradient, pseudo_objective
from suffice.models.markov.certificate import gap_fields
from suffice.models.markov.existence import own_limits
from suffice.models.markov.priors import penalised_slope
from suffice.solvers.penalties import GaussianPenalty
from suffice.solvers.scaling import inner

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
