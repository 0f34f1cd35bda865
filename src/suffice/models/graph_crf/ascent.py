"""Graphs too wide for exact inference learned by their likelihood: ascent along gradients measured by Gibbs sampling.

Chains persist from update to update (Tieleman 2008). A picture of a thousand nodes has slopes of hundreds, so steps are
measured in its own units: component j of the mean slope is divided by its curvature where labels are drawn at random,
``spread_j^2 = (sum_n w_n Var(phi_j) + prior precision) / sum_n w_n``. Steps adapt, the answer is the mean of the
iterates, and the fit ends when the slope at the answer is small beside what the data can tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.engines.gibbs import GibbsChains
from suffice.fitting.control import Control, Outcome
from suffice.models.graph_crf.inference import unary_scores
from suffice.models.graph_crf.objective import GraphObjective, expected_features
from suffice.models.graph_crf.sampling import GibbsLabels, slope_by_chains
from suffice.models.graph_crf.stochastic import GraphStochastic
from suffice.solvers.gradient import pseudo_gradient
from suffice.solvers.stochastic import stochastic_ascent

#: Random labellings that measure the spread of the features.
LABELLINGS = 100
#: The slope at which a fit ends, as a share of the standard error of the observed features.
ACCURACY = 0.25


#: Standard errors by which a slope may exceed the tolerance.
SIGNIFICANT = 3.0


def ascend(
    objective: GraphObjective, run: GraphStochastic, start: Floats, control: Control, *, problem: str = ""
) -> Outcome:
    """Maximise the likelihood of wide examples, and of those beside them that are not, from a start (k,)."""
    slope, begin = _noisy_slope(objective, run)
    spread = _spread(objective, run)
    size, weight = len(start), objective.weight
    least = ACCURACY * float(np.sqrt(2.0 * np.log(2.0 * size) / weight))
    control = replace(control, tolerance=max(control.tolerance, least))
    noise = size / (run.plan.samples * weight)
    outcome = stochastic_ascent(slope, start, begin, control, spread=spread, noise=noise, problem=problem)
    return judged(objective, outcome, control.tolerance * spread) if outcome.converged else outcome


def judged(objective: GraphObjective, outcome: Outcome, tolerance: Floats) -> Outcome:
    """The outcome where fresh chains agree with those of the fit; else one that has not converged, with a warning.

    The mean slope may be as large as the tolerance (k,) and three standard errors.
    """
    x, laplace = outcome.state.parameters, objective.penalties.laplace
    slope, error, chains = slope_by_chains(objective, x)
    if laplace is not None:
        slope = pseudo_gradient(x - laplace.mean, slope, laplace.rate)
    beyond = (np.abs(slope) - SIGNIFICANT * error) / objective.weight - tolerance
    words = chains.distrust
    if not words and beyond.max(initial=0.0) > 0.0:
        words = f"by chains that the fit has not seen the slope is {np.abs(slope).max():.2g} counts"
    if not words:
        return outcome
    denied = f"The fit has not converged: {words}."
    return replace(outcome, converged=False, stop_reason="denied by fresh chains", warning=denied)


def _noisy_slope(objective: GraphObjective, run: GraphStochastic) -> tuple[Callable[..., Floats], dict[str, Any]]:
    """The slope of the mean objective as chains measure it, and where these chains begin."""
    if objective.apart is None:
        raise AssertionError("GibbsChains measure examples that are too wide.")
    structure, (graphs, codes, shares) = objective.structure, objective.apart
    labels = GibbsLabels(structure, graphs, np.arange(len(graphs)), threads=objective.engine.threads)
    observed = structure.observed(graphs, codes, shares)
    laplace = objective.penalties.laplace

    def slope(x: Floats, chains: dict[str, Any], *, measuring: bool) -> Floats:
        walk = GibbsChains.from_arrays(chains)
        scores = structure.scores(x, graphs)
        labels.sampler.load(labels.union.flat(unary_scores(structure, graphs, scores), scores))
        labels.sampler.sweep(walk, run.plan.sweeps)
        chains.update(walk.to_arrays())
        tables = [np.empty_like(table) for table in scores]
        labels.union.write(labels.sampler.shares(walk), tables)
        for number, template in enumerate(structure.templates):
            if number and template.size == 1:
                tables[number] = tables[0][graphs.places(number)[:, 0]]
        total = observed - expected_features(structure, graphs, tables, shares) + objective.narrow(x)[1]
        total = total - objective.penalties.smooth(x)[1]
        if laplace is not None:
            total = total - laplace.rate * np.sign(x)
        return np.asarray(total / objective.weight)

    return slope, labels.sampler.start(run.plan.samples, run.rng).to_arrays()


def _spread(objective: GraphObjective, run: GraphStochastic) -> Floats:
    """The root of the curvature (k,) of the mean objective where labels are drawn at random."""
    structure, graphs = run.structure, run.graphs
    draws = run.rng.integers(0, structure.size, (LABELLINGS, int(graphs.offsets[-1])))
    # The variance of a sum with shares sqrt(w) is the sum of w times the variances.
    sums = np.array([structure.observed(graphs, draw, np.sqrt(run.weights)) for draw in draws])
    curvature = sums.var(axis=0, ddof=1)
    if objective.penalties.gaussian is not None:
        curvature = curvature + objective.penalties.gaussian.diagonal()
    return np.asarray(np.sqrt(np.maximum(curvature, 1e-12 * max(1.0, float(curvature.max()))) / objective.weight))
