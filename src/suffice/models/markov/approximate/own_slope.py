"""What an approximate solver climbs where that is not the likelihood, asked once more at the weights that are returned.

The certificate has the slope of the likelihood, which does not vanish there. Whether a fit is done is told by the slope
of its own objective: of the pseudo-likelihood, of Bethe's log-likelihood, or the mean of the slopes that contrastive
divergence follows, by fresh rows and chains.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from suffice.fitting.report import allowed
from suffice.models.markov.approximate.measure import doubt
from suffice.models.markov.approximate.problem import SampledProblem
from suffice.models.markov.approximate.solvers import bethe, cd_gradient, pseudo_objective
from suffice.solvers.gradient import pseudo_gradient
from suffice.solvers.penalties import LaplacePenalty

Floats = NDArray[np.float64]

#: Slopes of contrastive divergence whose mean is taken.
DRAWS = 200


@dataclass(frozen=True)
class Own:
    """The objective of a solver at the weights, a sum over rows (None: it has none), and why it is not done there."""

    objective: float | None
    doubt: str


def measure_own(problem: SampledProblem, weights: Floats, solver: str, tolerance: float) -> Own:
    """Ask the objective of a solver for its slope; tolerance: that of a stochastic solver."""
    inside, units = problem.in_units()
    at = weights * units
    if solver == "cd":
        slopes = _drawn(inside, at)
        error = slopes.std(axis=0, ddof=1) / np.sqrt(len(slopes))
        return Own(None, doubt(inside, slopes.mean(axis=0), error, tolerance))
    value, slope = pseudo_objective(inside, at) if solver == "pseudolikelihood" else bethe(inside)(at)[:2]
    penalty = inside.penalty
    if isinstance(penalty, LaplacePenalty):
        value -= penalty.value(at) / problem.weight
        slope = pseudo_gradient(at - penalty.mean, slope, penalty.rate / problem.weight)
    gap, most = float(np.abs(slope).max(initial=0.0)), allowed(problem.control.tolerance)
    against = f"at the weights returned the slope of its own objective is {gap:.2e}, and {most:.2e} would be its end"
    return Own(problem.weight * value, "" if gap <= most else against)


def _drawn(problem: SampledProblem, weights: Floats) -> Floats:
    """Slopes of contrastive divergence at weights that stay put (DRAWS, n_weights)."""
    chains = problem.sampler.start(problem.sampling.chains, problem.seed)
    return np.array([cd_gradient(problem, weights, chains) for _ in range(DRAWS)])
