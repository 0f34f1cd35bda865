"""How near an approximate fit is: its moment gap measured by fresh chains, and its likelihood with an error."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from suffice.engines.annealing import log_partition
from suffice.engines.chain_means import ChainMeans
from suffice.engines.gibbs import GibbsChains
from suffice.engines.tempering import fresh_means
from suffice.fitting.report import Certificate, MonteCarlo
from suffice.models.markov.approximate.options import GibbsSampling
from suffice.models.markov.approximate.problem import SampledProblem
from suffice.models.markov.feature import Feature
from suffice.models.markov.feature_spread import offsets
from suffice.models.markov.law import LawFamily
from suffice.models.markov.log_linear import LogLinear
from suffice.solvers.gradient import pseudo_gradient
from suffice.solvers.penalties import LaplacePenalty
from suffice.solvers.scaling import inner

Floats = NDArray[np.float64]

#: Standard errors by which a slope may exceed the tolerance.
SIGNIFICANT = 3.0
#: A mean this near to the end of a feature, relative to its range, lies at its end.
EDGE = 1e-12

#: What the moment gap is, of solvers that maximise something else.
OTHERWISE = "the moment gap is the likelihood's, by {chains:,} Gibbs chains"
ENGINES = {
    "sml": "stochastic: Gibbs sampling, {chains:,} chains",
    "cd": "stochastic: contrastive divergence, done where its own slope is small; " + OTHERWISE,
    "pseudolikelihood": "pseudo-likelihood, done where its own slope is small; " + OTHERWISE,
    "loopy-bp": "approximate: loopy belief propagation, done where Bethe's slope is small; " + OTHERWISE,
}


@dataclass(frozen=True)
class Measured:
    """An approximate fit at its weights, by chains that know nothing of it.

    `gap` is the largest slope, in what `scale` says; `log_likelihood` and `objective` are sums over rows. `exists` and
    `directions` say whether the maximum does, as far as single weights tell.
    """

    gap: float
    scale: str
    engine: str
    log_likelihood: float
    objective: float
    monte_carlo: MonteCarlo | None = None
    exists: bool | None = None
    directions: tuple[str, ...] = ()
    #: Means of the features (n_weights,) under the fit by the chains, and their standard errors.
    expected: Floats | None = None
    errors: Floats | None = None
    #: What is against the fit, by these chains; empty where nothing is.
    doubt: str = ""
    #: What is against the estimate of the likelihood; empty where nothing is.
    likelihood_doubt: str = ""

    def certificate(self) -> Certificate:
        """The certificate, for a judge."""
        return Certificate(
            self.gap,
            exact=False,
            exists=self.exists,
            directions=self.directions,
            scale=self.scale,
            engine=self.engine,
            monte_carlo=self.monte_carlo,
        )


def measure(
    problem: SampledProblem,
    weights: Floats,
    solver: str,
    exact: LawFamily | None,
    tolerance: float = math.inf,
) -> Measured:
    """Measure at the weights that are returned; exact: the same laws by a junction tree, where one fits.

    tolerance: the gap, in standard deviations of a feature, at which the solver was done.
    """
    # Features less their centres: an offset of a feature would make the likelihood a difference of large numbers.
    inside, units = problem.in_units()
    at, running = weights * units, np.concatenate(_running(inside))
    slope, means = _fresh_slope(inside, at, running)
    exact_slope, error, unsure = None, None, ""
    if exact is not None:
        log_z, marginals = exact.over(inside.model).margins(at)
        exact_slope = _slope(inside, at, inside.model.expected(marginals))
    else:
        logs = inside.model.log_potentials(at)
        found = log_partition(inside.sampler, logs, chains=problem.sampling.chains, random_state=problem.seed)
        log_z, error, unsure = found.value, problem.weight * found.standard_error, found.distrust
    likelihood = problem.weight * (inner(at, inside.observed) - log_z)
    penalised = likelihood - (0.0 if problem.penalty is None else problem.penalty.value(weights))
    exists, directions = _existence(inside)
    scale = (
        "largest slope of the objective, a row"
        if problem.penalty is not None
        else ("largest difference of an observed and an expected mean of a feature")
    )
    carlo = replace(
        drawn(problem.sampling, means, means.error, running),
        exact_gap=None if exact_slope is None else float(np.abs(exact_slope).max(initial=0.0)),
        log_likelihood_error=error,
    )
    # By exact inference there is no doubt about the chains.
    judged = slope if exact_slope is None else exact_slope
    against = (carlo.distrust if exact_slope is None else "") or doubt(inside, judged, means.error, tolerance, running)
    return Measured(
        float(np.abs(slope).max(initial=0.0)),
        scale + ("" if (units == 1.0).all() else ", in units of its spread"),
        ENGINES[solver].format(chains=problem.sampling.chains),
        likelihood,
        penalised,
        carlo,
        exists,
        directions,
        expected=means.mean * units + offsets(inside.model),
        errors=means.error * units,
        doubt=against,
        likelihood_doubt=unsure,
    )


def unmeasured(problem: SampledProblem, solver: str) -> Measured:
    """What is left to say where somebody has stopped the measuring: the fit itself is done."""
    exists, directions = _existence(problem.in_units()[0])
    engine = ENGINES[solver].format(chains=problem.sampling.chains)
    return Measured(
        math.inf,
        "not measured: interrupted",
        engine,
        -math.inf,
        -math.inf,
        exists=exists,
        directions=directions,
        doubt="its measurement was interrupted",
    )


def drawn(
    sampling: GibbsSampling, means: ChainMeans, error: Floats, running: NDArray[np.intp] | None = None
) -> MonteCarlo:
    """What chains say about a gap with these standard errors (k,); features at the places `running` say nothing.

    Their weights run to infinity, and they vary less and less.
    """
    judged = np.ones(len(means.mean), bool)
    if running is not None:
        judged[running] = False
    size, r_hat = means.mixing(judged)
    most = float(sampling.chains * sampling.draws)
    largest = float(error.max(initial=0.0))
    return MonteCarlo(sampling.chains, sampling.draws, largest, min(size, most), r_hat, levels=means.levels)


def doubt(
    problem: SampledProblem, slope: Floats, error: Floats, tolerance: float, running: NDArray[np.intp] | None = None
) -> str:
    """Why a fit that its own chains call done is not, by the slope that fresh ones find; empty where it is done.

    A slope may be as large as the tolerance and three standard errors. Weights that run to infinity, at the places
    `running`, are never done.
    """
    beyond = np.abs(slope) - tolerance * problem.spread - SIGNIFICANT * error
    if running is not None:
        beyond[running] = -np.inf
    worst = int(np.argmax(beyond)) if len(beyond) else 0
    if not len(beyond) or beyond[worst] <= 0.0:
        return ""
    name, here = problem.model.weight_names[worst], abs(float(slope[worst]) / float(problem.spread[worst]))
    return (
        f"the gap of {name} is {here:.2g} standard deviations by chains that the fit has not seen, and the tolerance "
        f"is {tolerance:.2g}"
    )


def fresh_chains(problem: SampledProblem, weights: Floats, running: NDArray[np.intp] | None = None) -> ChainMeans:
    """Means of all features (n_weights,) under the law of these weights, by chains that know nothing of it."""
    sampling, sampler = problem.sampling, problem.sampler
    problem.load(weights)
    judged = np.ones(problem.model.n_weights, bool)
    if running is not None:
        judged[running] = False

    def start() -> GibbsChains:
        return sampler.start(sampling.chains, problem.seed)

    def add(states: NDArray[np.uint8], out: Floats) -> None:
        sampler.add_features(problem.matrix, states, out)

    functions, logs = (add, problem.model.n_weights), problem.model.log_potentials(weights)
    return fresh_means(sampler, logs, start, functions, sampling.lengths, problem.seed, judged)[0]


def _fresh_slope(problem: SampledProblem, weights: Floats, running: NDArray[np.intp]) -> tuple[Floats, ChainMeans]:
    """The slope (n_weights,) at these weights by fresh chains, and the means that it comes from."""
    found = fresh_chains(problem, weights, running)
    return _slope(problem, weights, found.mean), found


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
