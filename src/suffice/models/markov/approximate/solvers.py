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

from suffice.array_types import Floats
from suffice.engines.gibbs import GibbsChains
from suffice.engines.loopy import LoopyBeliefs
from suffice.engines.tempering import climbed
from suffice.errors import ConvergenceWarning, OptionError, warn
from suffice.fitting.control import Outcome
from suffice.models.markov.approximate.problem import SampledProblem
from suffice.models.markov.approximate.rows import model_scopes
from suffice.models.markov.learning import in_sums
from suffice.solvers import gradient
from suffice.solvers.penalties import GaussianPenalty, LaplacePenalty
from suffice.solvers.scaling import inner
from suffice.solvers.stochastic import AscentSteps, NoisyGradient, stochastic_ascent

#: Sites that show whether persistent chains mix, after how many draws at weights that stay put, and the share of their
#: variance that lies between chains where they do not.
WITNESSES, LONG, STUCK = 64, 100, 0.6
#: Updates after which a ladder is looked at; the share of exchanges below which it is set up anew; and rungs so few
#: that it always is, as it may have been set up for a distribution without modes.
RENEWED, FROZEN, LADDERS = 50, 0.1, 3
#: Updates to expect of a fit by replicas, and the longest that they may take, in seconds, by estimate.
UPDATES, MOST_SECONDS = 2_000, 600.0

TITLES = {
    "sml": "stochastic maximum likelihood: persistent Gibbs chains, averaged iterates",
    "tempered": "stochastic maximum likelihood: persistent replicas at several temperatures, averaged iterates",
    "cd": "contrastive divergence, CD-{sweeps}, averaged iterates",
    "pseudolikelihood": "pseudo-likelihood by L-BFGS",
    "loopy-bp": "L-BFGS on the expectations of loopy belief propagation",
}


@dataclass(frozen=True, eq=False)
class Ascended:
    """Weights (n_weights,), and how the iteration ended."""

    weights: Floats
    title: str
    outcome: Outcome
    notes: tuple[str, ...] = ()


def solve(problem: SampledProblem, solver: str, *, tempered: bool = False) -> Ascended:
    """Find the weights, in the units of the problem; tempered: the chains of ``"sml"`` are replicas."""
    if isinstance(problem.penalty, LaplacePenalty) and solver != "pseudolikelihood":
        raise OptionError(f"solver={solver!r} takes a normal prior; a Laplace prior goes with 'pseudolikelihood'.")
    ended = tempered_sml(problem) if tempered else _METHODS[solver](problem)
    title = TITLES["tempered" if tempered else solver].format(sweeps=problem.sampling.sweeps)
    return replace(ended, title=title)


# -- chains ----------------------------------------------------------------------------------------------------------


def sml_gradient(problem: SampledProblem, weights: Floats, chains: GibbsChains, *, measuring: bool = False) -> Floats:
    """Observed less expected features, a row, plus the slope of the prior; the chains are moved.

    With minibatches the observed features are those of rows drawn at random, except where the gap is measured.
    """
    observed = _observed(problem, chains, measuring=measuring)
    problem.load(weights)
    problem.sampler.sweep(chains, problem.sampling.sweeps)
    expected = problem.model.expected(problem.sampler.shares(chains))
    return np.asarray(observed - expected + problem.prior_slope(weights))


def _observed(problem: SampledProblem, chains: GibbsChains, *, measuring: bool) -> Floats:
    """Means of the features over the rows, or over some of them, drawn by the seed and the sweep of the chains."""
    if problem.batch_size is None or measuring:
        return problem.observed
    rows = problem.batch(chains, problem.batch_size)
    return problem.model.expected(problem.sampler.counts(rows) / problem.batch_size)


def cd_gradient(problem: SampledProblem, weights: Floats, chains: GibbsChains, *, measuring: bool = False) -> Floats:
    """Features of rows drawn at random less those of the same rows after k sweeps, plus the slope of the prior."""
    rows = problem.batch(chains, chains.count)
    chains.states[...] = rows
    problem.load(weights)
    problem.sampler.sweep(chains, problem.sampling.sweeps)
    moved = problem.sampler.counts(rows) - problem.sampler.counts(chains.states)
    return np.asarray(problem.model.expected(moved / chains.count) + problem.prior_slope(weights))


def _by_chains(slope: Callable[..., Floats], solver: str) -> Callable[[SampledProblem], Ascended]:
    """The method that follows this noisy gradient."""

    def method(problem: SampledProblem) -> Ascended:
        sampling = problem.sampling
        size = problem.batch_size
        count = sampling.chains if solver == "sml" or size is None else size
        begin = problem.sampler.start(count, problem.seed)
        if solver == "cd" or size is not None:
            problem.whole_rows(solver)
        if solver == "sml":
            problem.load(problem.start)
            problem.sampler.sweep(begin, sampling.burn_in)

        watch = Watch(begin.states.shape[0]) if solver == "sml" and affordable(problem) else None

        def noisy(x: Floats, chains: dict[str, Any], *, measuring: bool) -> Floats:
            walk = GibbsChains.from_arrays(chains)
            drawn = slope(problem, x, walk, measuring=measuring)
            chains.update(walk.to_arrays())
            if watch is not None:
                watch.see(walk.states, measuring=measuring)
            return drawn

        noise = 1.0 / count + (0.0 if size is None or solver == "cd" else 1.0 / size)
        return _ascend(problem, noisy, begin.to_arrays(), noise)

    return method


def affordable(problem: SampledProblem) -> bool:
    """Whether a fit by replicas is allowed, and would end in some minutes, by a guess at the number of rungs."""
    rungs = 4.0 + float(np.sqrt(len(problem.model.domain)))
    seconds = problem.sampler.seconds(problem.sampling.chains, problem.sampling.sweeps * UPDATES)
    return problem.sampling.tempering and rungs * seconds < MOST_SECONDS


class StuckError(Exception):
    """The persistent chains do not mix: each reports the slope of the mode it is in. `updates` were made so far."""

    def __init__(self, updates: int) -> None:
        """Say how far it went."""
        super().__init__(f"The chains are stuck after {updates} updates.")
        self.updates = updates


class Watch:
    """Watches persistent chains while the weights stay put, and raises where they do not mix."""

    def __init__(self, sites: int) -> None:
        """Look at some of the sites."""
        self._chosen = np.linspace(0, sites - 1, min(sites, WITNESSES)).astype(np.intp)
        self._updates, self._draws = 0, 0

    def see(self, states: NDArray[np.uint8], *, measuring: bool) -> None:
        """The chains after one update more; measuring: at weights that stay put."""
        self._updates += 1
        if not measuring:
            self._draws = 0
            return
        values = states[self._chosen].astype(np.float64)
        if not self._draws:
            self._sum, self._squares = np.zeros(values.shape), np.zeros(len(values))
        self._draws += 1
        self._sum += values
        self._squares += (values**2).mean(axis=1)
        if self._draws >= LONG and self._draws % LONG == 0:
            means = self._sum / self._draws
            variance = self._squares / self._draws - means.mean(axis=1) ** 2
            if (means.var(axis=1) > STUCK * variance).any():
                raise StuckError(self._updates)


def tempered_sml(problem: SampledProblem) -> Ascended:
    """Stochastic maximum likelihood with replicas, for distributions between whose modes chains do not move.

    The ladder is set up anew when the weights have changed so much that its rungs hardly exchange states. No checkpoint
    is written: a run that goes on from one begins with single chains.
    """
    sampling, sampler, model, size = problem.sampling, problem.sampler, problem.model, problem.batch_size
    if size is not None:
        problem.whole_rows("sml")
    held: list[Any] = []

    def renew(weights: Floats) -> None:
        begin = sampler.start(sampling.chains, problem.seed)
        held[:] = climbed(sampler, model.log_potentials(weights), begin, sampling.burn_in, problem.seed)

    renew(problem.start)
    calls = 0

    def noisy(x: Floats, chains: dict[str, Any], *, measuring: bool) -> Floats:
        nonlocal calls
        calls += 1
        ladder, replicas = held
        # A ladder of one step has not been tried by exchanges: at weights of 0 all powers are the same distribution.
        if calls % RENEWED == 0 and (ladder.weakest() < FROZEN or len(replicas.powers) < LADDERS):
            renew(x)
            ladder, replicas = held
        observed = _observed(problem, replicas.rungs[-1], measuring=measuring)
        ladder.load(model.log_potentials(x))
        ladder.sweep(replicas, sampling.sweeps)
        expected = model.expected(sampler.counts(replicas.states) / replicas.count)
        return np.asarray(observed - expected + problem.prior_slope(x))

    control = replace(problem.control, checkpoint=None)
    noise = 1.0 / sampling.chains + (0.0 if size is None else 1.0 / size)
    return _ascend(replace(problem, control=control), noisy, {}, noise)


def _ascend(problem: SampledProblem, noisy: NoisyGradient, chains: dict[str, Any], noise: float) -> Ascended:
    """Follow a noisy gradient; noise: its variance in a feature, in units of that of the feature."""
    control = replace(problem.control, tolerance=tolerance_of(problem))
    outcome = stochastic_ascent(
        noisy,
        problem.start,
        chains,
        control,
        spread=problem.spread,
        noise=len(problem.start) * noise,
        steps=AscentSteps(problem.step_size),
    )
    return Ascended(outcome.state.parameters, "", outcome)


def tolerance_of(problem: SampledProblem) -> float:
    """The gap, in standard deviations of a feature, at which a stochastic fit is done; see `GibbsSampling`."""
    least = problem.sampling.accuracy * float(np.sqrt(2.0 * np.log(2.0 * len(problem.start)) / problem.weight))
    return max(problem.control.tolerance, least)


# -- pseudo-likelihood -----------------------------------------------------------------------------------------------


def pseudo_objective(problem: SampledProblem, weights: Floats) -> tuple[float, Floats]:
    """Mean over rows of sum_i log p(x_i | all others), less a normal penalty, and its slope (n_weights,)."""
    rows = problem.whole_rows("pseudolikelihood")
    value, cells = rows.pseudo_likelihood(problem.sampler, problem.model.log_potentials(weights))
    slope = problem.model.expected(cells) + problem.prior_slope(weights)
    if isinstance(problem.penalty, GaussianPenalty):
        value -= problem.penalty.value(weights) / problem.weight
    return value, slope


def _pseudo_likelihood(problem: SampledProblem) -> Ascended:
    variance, penalty = problem.spread**2, problem.penalty

    def objective(weights: Floats) -> tuple[float, Floats]:
        return pseudo_objective(problem, weights)

    def scale(weights: Floats, slope: Floats) -> Floats:
        return 1.0 / variance

    if isinstance(penalty, LaplacePenalty):
        centre, rate = penalty.mean, penalty.rate / problem.weight
        moved = gradient.owlqn(
            lambda away: objective(centre + away),
            rate,
            problem.start - centre,
            problem.control,
            scale=scale,
        )
        outcome = replace(moved, state=replace(moved.state, parameters=centre + moved.state.parameters))
    else:
        outcome = gradient.lbfgs(objective, problem.start, problem.control, scale=scale)
    return Ascended(outcome.state.parameters, "", in_sums(outcome, problem.weight))


# -- loopy belief propagation ----------------------------------------------------------------------------------------


def bethe(problem: SampledProblem) -> Callable[[Floats], tuple[float, Floats, bool]]:
    """Bethe's mean log-likelihood less a normal penalty, its slope (n_weights,), and whether the messages stood still.

    Messages go on from where those of the last weights came to.
    """
    model = problem.model
    engine = LoopyBeliefs(model.domain.shape(model.domain.names), model_scopes(model))

    def objective(weights: Floats) -> tuple[float, Floats, bool]:
        beliefs = engine.solve(model.log_potentials(weights))
        value = inner(weights, problem.observed) - beliefs.log_partition
        slope = problem.observed - model.expected(beliefs.shares) + problem.prior_slope(weights)
        if isinstance(problem.penalty, GaussianPenalty):
            value -= problem.penalty.value(weights) / problem.weight
        return value, slope, beliefs.converged

    return objective


def _loopy(problem: SampledProblem) -> Ascended:
    failures, calls, evaluate = 0, 0, bethe(problem)

    def objective(weights: Floats) -> tuple[float, Floats]:
        nonlocal failures, calls
        value, slope, stood = evaluate(weights)
        calls, failures = calls + 1, failures + (not stood)
        return value, slope

    scale = 1.0 / problem.spread**2
    outcome = gradient.lbfgs(objective, problem.start, problem.control, scale=lambda weights, slope: scale)
    notes = (f"the messages did not stand still in {failures} of {calls} evaluations",) if failures else ()
    if outcome.converged and not evaluate(outcome.state.parameters)[2]:
        # Beliefs of messages that still move are no slope of anything.
        warn("The messages of loopy propagation do not stand still at the result.", ConvergenceWarning)
        outcome = replace(outcome, converged=False, stop_reason="messages")
    return Ascended(outcome.state.parameters, "", in_sums(outcome, problem.weight), notes)


_METHODS: dict[str, Callable[[SampledProblem], Ascended]] = {
    "sml": _by_chains(sml_gradient, "sml"),
    "cd": _by_chains(cd_gradient, "cd"),
    "pseudolikelihood": _pseudo_likelihood,
    "loopy-bp": _loopy,
}
