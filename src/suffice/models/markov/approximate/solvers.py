"""Learning without exact inference: stochastic maximum likelihood and its kin.

- ``"sml"``: the expected features come from persistent chains, ``w <- w + step (observed - mean over chains)``
  (Younes 1989; Tieleman 2008). Its limit is the maximum of the likelihood.
- ``"cd"``: contrastive divergence. The chains begin at rows and run k sweeps (Hinton 2002); another limit, near by.
- ``"pseudolikelihood"``: the mean of ``sum_i log p(x_i | all others)`` is maximised (Besag 1975). Exact and consistent,
  but not the likelihood.
- ``"loopy-bp"``: the expected features are the beliefs of loopy propagation, the slope of the Bethe log Z.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.engines.gibbs import Chains
from suffice.engines.loopy import LoopyBeliefs
from suffice.errors import OptionError
from suffice.iteration import Outcome
from suffice.models.markov.approximate.problem import SampledProblem
from suffice.models.markov.approximate.rows import model_scopes
from suffice.models.markov.priors import GaussianPenalty, LaplacePenalty
from suffice.solvers import gradient
from suffice.solvers.scaling import inner
from suffice.solvers.stochastic import Steps, stochastic_ascent

Floats = NDArray[np.float64]

TITLES = {
    "sml": "stochastic maximum likelihood: persistent Gibbs chains, averaged iterates",
    "cd": "contrastive divergence, CD-{sweeps}, averaged iterates",
    "pseudolikelihood": "pseudo-likelihood by L-BFGS",
    "loopy-bp": "L-BFGS on the expectations of loopy belief propagation",
}


@dataclass(frozen=True, eq=False)
class Fitted:
    """Weights (n_weights,), how the iteration ended, what was maximised (sum over rows; None: the likelihood)."""

    weights: Floats
    title: str
    outcome: Outcome
    objective: float | None = None
    notes: tuple[str, ...] = ()


def solve(problem: SampledProblem, solver: str) -> Fitted:
    """Find the weights."""
    if isinstance(problem.penalty, LaplacePenalty) and solver != "pseudolikelihood":
        raise OptionError(f"solver={solver!r} takes a normal prior; a Laplace prior goes with 'pseudolikelihood'.")
    inside, units = problem.in_units()
    found = _METHODS[solver](inside)
    title = TITLES[solver].format(sweeps=problem.sampling.sweeps)
    return replace(found, weights=found.weights / units, title=title)


# -- chains ----------------------------------------------------------------------------------------------------------


def sml_gradient(problem: SampledProblem, weights: Floats, chains: Chains, *, measuring: bool = False) -> Floats:
    """Observed less expected features, a row, plus the slope of the prior; the chains are moved.

    With minibatches the observed features are those of rows drawn at random, except where the gap is measured.
    """
    observed = problem.observed
    if problem.batch_size is not None and not measuring:
        rows = problem.batch(chains, problem.batch_size)
        observed = problem.model.expected(problem.sampler.counts(rows) / problem.batch_size)
    problem.load(weights)
    problem.sampler.sweep(chains, problem.sampling.sweeps)
    expected = problem.model.expected(problem.sampler.shares(chains))
    return np.asarray(observed - expected + problem.prior_slope(weights))


def cd_gradient(problem: SampledProblem, weights: Floats, chains: Chains, *, measuring: bool = False) -> Floats:
    """Features of rows drawn at random less those of the same rows after k sweeps, plus the slope of the prior."""
    rows = problem.batch(chains, chains.count)
    chains.states[...] = rows
    problem.load(weights)
    problem.sampler.sweep(chains, problem.sampling.sweeps)
    moved = problem.sampler.counts(rows) - problem.sampler.counts(chains.states)
    return np.asarray(problem.model.expected(moved / chains.count) + problem.prior_slope(weights))


def _by_chains(slope: Callable[..., Floats], solver: str) -> Callable[[SampledProblem], Fitted]:
    """The method that follows this noisy gradient."""

    def method(problem: SampledProblem) -> Fitted:
        sampling = problem.sampling
        size = problem.batch_size
        count = sampling.chains if solver == "sml" or size is None else size
        begin = problem.sampler.start(count, problem.seed)
        if solver == "cd" or size is not None:
            problem.whole_rows(solver)
        if solver == "sml":
            problem.load(problem.start)
            problem.sampler.sweep(begin, sampling.burn_in)

        def noisy(x: Floats, chains: dict[str, Any], *, measuring: bool) -> Floats:
            walk = Chains.from_arrays(chains)
            found = slope(problem, x, walk, measuring=measuring)
            chains.update(walk.to_arrays())
            return found

        least = sampling.accuracy * float(np.sqrt(2.0 * np.log(2.0 * len(problem.start)) / problem.weight))
        control = replace(problem.control, tolerance=max(problem.control.tolerance, least))
        noise = len(problem.start) * (1.0 / count + (0.0 if size is None or solver == "cd" else 1.0 / size))
        outcome = stochastic_ascent(
            noisy,
            problem.start,
            begin.to_arrays(),
            control,
            spread=problem.spread,
            noise=noise,
            steps=Steps(problem.step_size),
            problem=problem.fingerprint(solver),
        )
        return Fitted(outcome.state.parameters, "", outcome)

    return method


# -- pseudo-likelihood -----------------------------------------------------------------------------------------------


def pseudo_objective(problem: SampledProblem, weights: Floats) -> tuple[float, Floats]:
    """Mean over rows of sum_i log p(x_i | all others), less a normal penalty, and its slope (n_weights,)."""
    rows = problem.whole_rows("pseudolikelihood")
    problem.load(weights)
    value, cells = problem.sampler.pseudo_likelihood(rows.states, rows.shares)
    slope = problem.model.expected(cells) + problem.prior_slope(weights)
    if isinstance(problem.penalty, GaussianPenalty):
        value -= problem.penalty.value(weights) / problem.weight
    return value, slope


def _pseudo_likelihood(problem: SampledProblem) -> Fitted:
    variance, penalty = problem.spread**2, problem.penalty

    def objective(weights: Floats) -> tuple[float, Floats]:
        return pseudo_objective(problem, weights)

    def scale(weights: Floats, slope: Floats) -> Floats:
        return 1.0 / variance

    name = problem.fingerprint("pseudolikelihood")
    if isinstance(penalty, LaplacePenalty):
        centre, rate = penalty.mean, penalty.rate / problem.weight
        moved = gradient.owlqn(
            lambda away: objective(centre + away),
            rate,
            problem.start - centre,
            problem.control,
            scale=scale,
            problem=name,
        )
        outcome = replace(moved, state=replace(moved.state, parameters=centre + moved.state.parameters))
    else:
        outcome = gradient.lbfgs(objective, problem.start, problem.control, scale=scale, problem=name)
    return _in_sums(problem, outcome)


def _in_sums(problem: SampledProblem, outcome: Outcome) -> Fitted:
    """Objectives as sums over rows."""
    total = outcome.state.objective * problem.weight
    history = tuple(value * problem.weight for value in outcome.history)
    ended = replace(outcome, state=replace(outcome.state, objective=total), history=history)
    return Fitted(outcome.state.parameters, "", ended, total)


# -- loopy belief propagation ----------------------------------------------------------------------------------------


def _loopy(problem: SampledProblem) -> Fitted:
    model, failures, calls = problem.model, 0, 0
    engine = LoopyBeliefs(model.domain.shape(model.domain.names), model_scopes(model))

    def objective(weights: Floats) -> tuple[float, Floats]:
        nonlocal failures, calls
        found = engine.solve(model.log_potentials(weights))
        calls, failures = calls + 1, failures + (not found.converged)
        value = inner(weights, problem.observed) - found.log_partition
        slope = problem.observed - model.expected(found.shares) + problem.prior_slope(weights)
        if isinstance(problem.penalty, GaussianPenalty):
            value -= problem.penalty.value(weights) / problem.weight
        return value, slope

    scale = 1.0 / problem.spread**2
    outcome = gradient.lbfgs(
        objective,
        problem.start,
        problem.control,
        scale=lambda weights, slope: scale,
        problem=problem.fingerprint("loopy-bp"),
    )
    notes = (f"the messages did not stand still in {failures} of {calls} evaluations",) if failures else ()
    return replace(_in_sums(problem, outcome), notes=notes)


_METHODS: dict[str, Callable[[SampledProblem], Fitted]] = {
    "sml": _by_chains(sml_gradient, "sml"),
    "cd": _by_chains(cd_gradient, "cd"),
    "pseudolikelihood": _pseudo_likelihood,
    "loopy-bp": _loopy,
}
