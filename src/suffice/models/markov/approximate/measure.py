"""How near an approximate fit is: its moment gap measured by fresh chains, and its likelihood with an error."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from suffice.engines.annealing import log_partition
from suffice.engines.gibbs import ChainMeans, track
from suffice.models.markov.approximate.problem import SampledProblem
from suffice.models.markov.feature import Feature
from suffice.models.markov.law import LawFamily
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.priors import LaplacePenalty
from suffice.report import Certificate, MonteCarlo
from suffice.solvers.gradient import pseudo_gradient
from suffice.solvers.scaling import inner

Floats = NDArray[np.float64]

#: A mean this near to the end of a feature, relative to its range, lies at its end.
EDGE = 1e-12

ENGINES = {
    "sml": "stochastic: Gibbs sampling, {chains:,} chains",
    "cd": "stochastic: contrastive divergence, measured by {chains:,} Gibbs chains",
    "pseudolikelihood": "pseudo-likelihood, measured by {chains:,} Gibbs chains",
    "loopy-bp": "approximate: loopy belief propagation, measured by {chains:,} Gibbs chains",
}


@dataclass(frozen=True)
class Measured:
    """Certificate, log-likelihood (sum over rows) and objective of an approximate fit."""

    certificate: Certificate
    log_likelihood: float
    objective: float
    #: Means of the features (n_weights,) under the fit by the chains, and their standard errors.
    expected: Floats | None = None
    errors: Floats | None = None


def measure(
    problem: SampledProblem, weights: Floats, solver: str, exact: LawFamily | None, objective: float | None
) -> Measured:
    """Measure at the weights that are returned; exact: the same laws by a junction tree, where one fits."""
    inside, units = problem.in_units()
    gap, drawn, means = _gap(inside, weights * units, np.concatenate(_running(problem)))
    exact_gap, error = None, None
    if exact is not None:
        log_z, marginals = exact.margins(weights)
        slope = _slope(inside, weights * units, inside.model.expected(marginals))
        exact_gap = float(np.abs(slope).max(initial=0.0))
    else:
        logs = problem.model.log_potentials(weights)
        found = log_partition(problem.sampler, logs, chains=problem.sampling.chains, random_state=problem.seed)
        log_z, error = found.value, problem.weight * found.standard_error
    likelihood = problem.weight * (inner(weights, problem.observed) - log_z)
    penalised = likelihood - (0.0 if problem.penalty is None else problem.penalty.value(weights))
    exists, directions = _existence(problem)
    scale = (
        "largest slope of the objective, a row"
        if problem.penalty is not None
        else ("largest difference of an observed and an expected mean of a feature")
    )
    certificate = Certificate(
        gap,
        exact=False,
        exists=exists,
        directions=directions,
        scale=scale + ("" if (units == 1.0).all() else ", in units of its spread"),
        engine=ENGINES[solver].format(chains=problem.sampling.chains),
        monte_carlo=MonteCarlo(*drawn, exact_gap=exact_gap, log_likelihood_error=error),
    )
    value = penalised if objective is None else objective
    return Measured(certificate, likelihood, value, means.mean * units, means.error * units)


def unmeasured(problem: SampledProblem, solver: str) -> Measured:
    """What is left to say where somebody has stopped the measuring: the fit itself is done."""
    exists, directions = _existence(problem)
    engine = ENGINES[solver].format(chains=problem.sampling.chains)
    found = Certificate(
        math.inf, exact=False, exists=exists, directions=directions, scale="not measured: interrupted", engine=engine
    )
    return Measured(found, -math.inf, -math.inf)


def mixing(found: ChainMeans, most: int, running: NDArray[np.intp] | None = None) -> tuple[float, float]:
    """The smallest effective sample size and the largest R-hat of the features that vary; `most`: of independent draws.

    Two kinds of features tell nothing about mixing: those whose weights run to infinity, at the places `running`, and
    those with one and the same value in all draws that their variance is estimated from.
    """
    varies = found.effective_sample_size > 0.0
    if running is not None:
        varies[running] = False
    size = float(found.effective_sample_size[varies].min(initial=float(most)))
    return size, float(found.r_hat[varies].max(initial=1.0))


def _gap(
    problem: SampledProblem, weights: Floats, running: NDArray[np.intp]
) -> tuple[float, tuple[int, int, float, float, float], ChainMeans]:
    """The largest slope at these weights by fresh chains; chains, draws, error, effective size and R-hat; the means."""
    sampling, sampler = problem.sampling, problem.sampler
    problem.load(weights)
    chains = sampler.start(sampling.chains, problem.seed)
    sampler.sweep(chains, sampling.burn_in)

    def add(states: NDArray[np.uint8], out: Floats) -> None:
        sampler.add_features(problem.matrix, states, out)

    found = track(sampler, chains, (add, problem.model.n_weights), sampling.draws)
    slope = _slope(problem, weights, found.mean)
    drawn = (float(found.error.max(initial=0.0)), *mixing(found, sampling.chains * sampling.draws, running))
    return float(np.abs(slope).max(initial=0.0)), (sampling.chains, sampling.draws, *drawn), found


def _slope(problem: SampledProblem, weights: Floats, expected: Floats) -> Floats:
    """Slope of the log-likelihood with its prior, a row."""
    slope = np.asarray(problem.observed - expected + problem.prior_slope(weights))
    if isinstance(problem.penalty, LaplacePenalty):
        return pseudo_gradient(weights - problem.penalty.mean, slope, problem.penalty.rate / problem.weight)
    return slope


def _existence(problem: SampledProblem) -> tuple[bool | None, tuple[str, ...]]:
    """A prior has a maximum; a feature that was always at its end has none; beyond that nothing is decided."""
    if problem.penalty is not None:
        return True, ()
    (low, high), names = _running(problem), problem.model.weight_names
    found = [f"weight of {names[k]} -> -inf" for k in low] + [f"weight of {names[k]} -> inf" for k in high]
    return (False if found else None), tuple(found)


def _running(problem: SampledProblem) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Places of the weights that run to minus and to plus infinity, as their features were always at one end."""
    if problem.penalty is not None:
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    lowest, highest = feature_range(problem.model)
    slack = EDGE * (highest - lowest)
    observed = problem.observed
    tables = np.ones(problem.model.n_weights, bool)
    for term, place in zip(problem.model.terms, problem.model.weight_slices, strict=True):
        tables[place] = not isinstance(term, Feature)
    varies = highest > lowest
    low = np.flatnonzero(varies & (observed <= lowest + slack))
    return low, np.flatnonzero(varies & ~tables & (observed >= highest - slack))


def feature_range(model: LogLinear) -> tuple[Floats, Floats]:
    """The least and the largest value of each feature (n_weights,), on each of its scopes by itself."""
    entries = model.matrix.tocoo()
    sizes = np.diff(model.starts)
    scope_of = np.repeat(np.arange(len(model.scopes)), sizes)
    scope = scope_of[entries.row]
    keys, part, used = np.unique(scope * model.n_weights + entries.col, return_inverse=True, return_counts=True)
    partial = used < sizes[keys // model.n_weights]  # Cells that are not listed have the value 0.
    ends = []
    for at, outer in ((np.minimum, np.inf), (np.maximum, -np.inf)):
        found = np.full(len(keys), outer)
        at.at(found, part, entries.data)
        found = np.where(partial, at(found, 0.0), found)
        ends.append(np.bincount(keys % model.n_weights, found, model.n_weights).astype(np.float64))
    return ends[0], ends[1]
