"""How far from the optimum the weights of graphs can be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from suffice.fitting.report import Certificate
from suffice.models.chain_crf.existence import Standing
from suffice.models.feature_sums import Sums
from suffice.models.graph_crf.objective import WORDS, GraphObjective
from suffice.models.graph_crf.sampling import slope_by_chains
from suffice.models.label_certificate import decrement
from suffice.models.label_learning import relative_gap, slopes

Floats = NDArray[np.float64]


def certify(
    objective: GraphObjective, x: Floats, standing: Standing | None = None
) -> tuple[Certificate, float, float, float, Sums]:
    """The certificate at x, the log-likelihood, the objective, the relative norm of the slope, and sums of features.

    standing: whether the likelihood has a maximum; None where x does not stand for one.
    """
    value, slope, likelihood = slopes(objective, x)
    penalties, bound, chains = objective.penalties, None, None
    if objective.concave and penalties.gaussian is not None:
        # The objective is as strongly concave as the prior, whatever else is taken off it.
        bound = penalties.gaussian.loss_bound(slope)
    elif objective.concave and penalties.laplace is not None:
        bound = penalties.laplace.loss_bound(slope, x, -value)
    rise = bound
    if standing is not None and objective.concave and not penalties.any and standing.exists is not False:
        rise = standing.rise if standing.rise is not None else decrement(objective, x, slope, objective.observed())
    if objective.engine.wide == "gibbs" and objective.apart is not None:
        slope, _, chains = slope_by_chains(objective, x)
        likelihood = slope + penalties.smooth(x)[1]
    certificate = Certificate(
        moment_gap=float(np.abs(slope).max(initial=0.0)),
        value_gap=None if rise is None else rise / objective.weight,
        bound=bound is not None,
        exact=objective.exact,
        # Likelihoods and pseudo-likelihoods are at most 1: with a prior there is a maximum. Bethe's have no bound.
        exists=True if bound is not None or (penalties.any and objective.engine.wide != "loopy") else None,
        scale="counts, summed over examples",
        engine="" if objective.exact else objective.routes.said(WORDS[objective.engine.wide]),
        monte_carlo=chains,
    )
    if standing is not None:
        certificate = standing.judged(certificate, objective.structure.names)
    sums = Sums.of(objective.observed(), likelihood, slope, prior=penalties.any)
    return certificate, value + penalties.value(x), value, relative_gap(x, slope), sums
