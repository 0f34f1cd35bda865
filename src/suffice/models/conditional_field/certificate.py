"""How far from the optimum the weights of a conditional random field can be."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.fitting.report import Certificate, MonteCarlo
from suffice.models.conditional_field.curvature import decrement
from suffice.models.conditional_field.existence import Standing
from suffice.models.conditional_field.matched import FeatureTotals
from suffice.models.conditional_field.objective import FieldObjective, relative_gap, slopes

Floats = NDArray[np.float64]
SlopeByChains = tuple[Floats, MonteCarlo]


class Measured(NamedTuple):
    """The certificate, the log-likelihood, the objective, the relative norm of the slope, and totals of features."""

    certificate: Certificate
    log_likelihood: float
    objective: float
    slope: float
    totals: FeatureTotals


def certify(
    objective: FieldObjective[Any], x: Floats, standing: Standing | None = None, chains: SlopeByChains | None = None
) -> Measured:
    """What is measured at x.

    standing: whether the likelihood has a maximum; None where x does not stand for one. chains: the slope (k,) by fresh
    chains, and how well they measured it, where expectations are sampled.
    """
    value, slope, likelihood = slopes(objective, x)
    penalties, bound = objective.penalties, None
    if objective.concave and penalties.gaussian is not None:
        # The objective is as strongly concave as the prior, whatever else is taken off it.
        bound = penalties.gaussian.loss_bound(slope)
    elif objective.concave and penalties.laplace is not None:
        bound = penalties.laplace.loss_bound(slope, x, -value)
    rise = bound
    if standing is not None and objective.concave and not penalties.any and standing.exists is not False:
        rise = standing.rise if standing.rise is not None else decrement(objective, x, slope, objective.observed())
    if chains is not None:
        slope = chains[0]
        likelihood = slope + penalties.smooth(x)[1]
    certificate = Certificate(
        moment_gap=float(np.abs(slope).max(initial=0.0)),
        value_gap=None if rise is None else rise / objective.weight,
        bound=bound is not None,
        exact=objective.exact,
        # Likelihoods and pseudo-likelihoods are at most 1: with a prior there is a maximum.
        exists=True if bound is not None or (penalties.any and objective.at_most_one) else None,
        scale="counts, summed over examples",
        engine=objective.engine_in_words,
        monte_carlo=None if chains is None else chains[1],
    )
    if standing is not None:
        certificate = standing.judged(certificate, objective.structure.names)
    totals = FeatureTotals.of(objective.observed(), likelihood, slope, prior=penalties.any)
    return Measured(certificate, value + penalties.value(x), value, relative_gap(x, slope), totals)
